/*
 * A net goes into a file and comes back: the outputs of the net read must be the bits of the one
 * that was written, and files that are no model are refused with the reason.
 */
#include "nn/net_file.h"

#include "base/file.h"
#include "base/test_main.h"
#include "nn/model_file.h"
#include "nn/safetensors.h"
#include "nn/zoo.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define BATCH 3

static char dir[64], path[96];
static struct weir_model_spec *spec;
static struct weir_net *net;
static struct weir_error err;
static const char *const labels[] = {"anna", "böse \"Zeichen\"", "c"};

static const struct weir_net_config inference = {
    .batch = BATCH, .n_threads = 1, .backend = &weir_reference_backend};

static struct weir_net_file_info info_of(const struct weir_model_spec *of)
{
    return (struct weir_net_file_info){
        .input = {.shape = weir_model_spec_input(of), .mean = {0.25f}, .std = {0.1f}},
        .graph = weir_model_spec_text(of),
        .labels = labels,
        .n_labels = 3,
        .baseline = "{\"brightness\":{}}",
        .training = "{\"seed\":7}"};
}

static void make_net(void)
{
    const struct weir_shape shape = {1, 32, 24};
    struct weir_graph *graph = NULL;
    (void)snprintf(dir, sizeof dir, "/tmp/weir-net-file-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/model.safetensors", dir);
    ck_assert_int_eq(weir_zoo_spec("face-embed", &shape, &spec, &err), WEIR_OK);
    ck_assert_int_eq(weir_model_spec_build(spec, 3, &graph, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_create(graph, &inference, &net, &err), WEIR_OK);
    weir_graph_destroy(graph);
    weir_net_init_weights(net, 5);
    struct weir_net_file_info info = info_of(spec);
    ck_assert_msg(weir_net_file_save(path, net, &info, &err) == WEIR_OK, "%s", err.message);
}

static void drop_net(void)
{
    weir_net_destroy(net);
    weir_model_spec_destroy(spec);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

static void fill_input(struct weir_net *of)
{
    float *input = weir_net_input(of);
    for (int i = 0; i < BATCH * 32 * 24; i++) {
        input[i] = sinf((float)i * 0.37f);
    }
}

START_TEST(a_net_read_back_computes_the_same_bits)
{
    struct weir_net *read = NULL;
    struct weir_net_file *file = NULL;
    ck_assert_msg(weir_net_file_load(path, &inference, &read, &file, &err) == WEIR_OK, "%s",
                  err.message);
    fill_input(net);
    fill_input(read);
    ck_assert_int_eq(weir_net_forward(net, BATCH, NULL), WEIR_OK);
    ck_assert_int_eq(weir_net_forward(read, BATCH, NULL), WEIR_OK);
    ck_assert_mem_eq(weir_net_output(net), weir_net_output(read), BATCH * 128 * sizeof(float));

    const struct weir_net_file_info *info = weir_net_file_info(file);
    ck_assert_uint_eq(info->n_labels, 3);
    ck_assert_str_eq(info->labels[1], labels[1]);
    ck_assert_str_eq(info->graph, weir_model_spec_text(spec));
    ck_assert_int_eq(info->input.shape.w, 24);
    ck_assert(info->input.mean[0] == 0.25f && info->input.std[0] == 0.1f);
    ck_assert_str_eq(info->training, "{\"seed\":7}");
    ck_assert(weir_graph_is_embedding(weir_net_file_graph(file)));
    weir_net_destroy(read);
    weir_net_file_close(file);
}

END_TEST

START_TEST(the_class_weights_of_a_margin_loss_stay_out_of_the_file)
{
    struct weir_safetensors *file = NULL;
    size_t n_tensors = 0, n_params = 0;
    (void)weir_net_params(net, &n_params);
    ck_assert_int_eq(weir_safetensors_open(path, &file, &err), WEIR_OK);
    const struct weir_safetensors_entry *entries = weir_safetensors_entries(file, &n_tensors);
    ck_assert_uint_eq(n_tensors, n_params - 1);
    for (size_t i = 0; i < n_tensors; i++) {
        ck_assert_msg(strncmp(entries[i].name, "margin", 6) != 0, "%s", entries[i].name);
    }
    weir_safetensors_close(file);
}

END_TEST

START_TEST(brightness_undoes_the_normalisation)
{
    /* Two channels worked by hand: pixels 0.25 and 0.75, 0.5 and 0.5. */
    struct weir_net_input input = {
        .shape = {3, 1, 2}, .mean = {0.5f, 0.25f, 0}, .std = {0.25f, 0.5f, 1}};
    const float tensor[] = {-1, 1, 0.5f, 0.5f, 0.5f, 0.5f};
    ck_assert_double_eq_tol(weir_net_input_brightness(&input, tensor), 0.5, 1e-7);
}

END_TEST

START_TEST(a_weight_that_is_not_finite_is_neither_written_nor_read)
{
    size_t n = 0;
    const struct weir_param *param = weir_net_params(net, &n);
    param++; /* the first are the class weights, which are not written */
    weir_net_weights(net, NULL)[param->first_elem] = NAN;
    struct weir_net_file_info info = info_of(spec);
    ck_assert_int_eq(weir_net_file_save(path, net, &info, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, param->name));

    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *bytes = NULL;
    size_t len = 0;
    ck_assert_int_eq(weir_file_read(path, 16 << 20, &arena, &bytes, &len, &err), WEIR_OK);
    const float bad = INFINITY;
    memcpy(bytes + len - sizeof bad, &bad, sizeof bad);
    struct weir_net_file *file = NULL;
    struct weir_net *read = NULL;
    ck_assert_int_eq(weir_net_file_open_memory(bytes, len, "bad", &file, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_file_create_net(file, &inference, &read, &err), WEIR_ERR_CORRUPT);
    weir_net_file_close(file);
    weir_arena_fini(&arena);
}

END_TEST

static const struct broken {
    const char *key, *text; /**< text NULL: left out. */
    const char *expected;   /**< In the message. */
} broken[] = {
    {"weir.graph", NULL, "weir.graph"},
    {"weir.graph", "{\"input\":[1,4,4],\"layers\":[]}", "weir.graph"},
    {"weir.input", NULL, "weir.input"},
    {"weir.input", "{\"c\":1,\"h\":32,\"w\":24,\"mean\":[0],\"std\":[0]}", "std"},
    {"weir.input", "{\"c\":1,\"h\":32,\"w\":25,\"mean\":[0],\"std\":[1]}", "32×25"},
    {"weir.input", "{\"c\":1,\"h\":32,\"w\":24,\"mean\":[0],\"std\":[1],\"crop\":\"x\"}", "crop"},
    {"weir.labels", "[]", "class names"},
    {"weir.labels", "[1,2]", "class names"},
    {"weir.baseline", "[]", "weir.baseline"},
};

START_TEST(metadata_that_is_no_model_is_refused_with_the_reason)
{
    const struct broken *row = &broken[_i];
    struct weir_safetensors_text texts[4] = {
        {"weir.graph", weir_model_spec_text(spec)},
        {"weir.input", "{\"c\":1,\"h\":32,\"w\":24,\"mean\":[0],\"std\":[1]}"},
        {"weir.labels", "[\"a\"]"},
        {"weir.baseline", "{}"}};
    size_t n = 0;
    for (size_t i = 0; i < 4; i++) {
        bool is_row = strcmp(texts[i].key, row->key) == 0;
        if (is_row && row->text == NULL) {
            continue;
        }
        texts[n] = is_row ? (struct weir_safetensors_text){row->key, row->text} : texts[i];
        n++;
    }
    void *bytes = NULL;
    size_t len = 0;
    struct weir_net_file *file = NULL;
    ck_assert_int_eq(weir_safetensors_encode(NULL, 0, texts, n, &bytes, &len, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_file_open_memory(bytes, len, "it", &file, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, row->expected) != NULL, "%s", err.message);
    free(bytes);
}

END_TEST

START_TEST(a_missing_or_misshapen_tensor_is_named)
{
    struct weir_safetensors_text texts[] = {
        {"weir.graph", "{\"input\":[1,2,2],\"layers\":[{\"name\":\"fc\",\"type\":\"linear\","
                       "\"k\":\"classes\"}],\"loss\":{\"type\":\"softmax\"}}"},
        {"weir.input", "{\"c\":1,\"h\":2,\"w\":2,\"mean\":[0],\"std\":[1]}"},
        {"weir.labels", "[\"a\",\"b\"]"}};
    const float data[8] = {0};
    struct weir_safetensors_tensor tensors[] = {
        {.name = "fc.weight", .dims = {4, 2}, .n_dims = 2, .data = data},
        {.name = "fc.bias", .dims = {2}, .n_dims = 1, .data = data}};
    for (int i = 0; i < 2; i++) {
        void *bytes = NULL;
        size_t len = 0;
        struct weir_net_file *file = NULL;
        struct weir_net *read = NULL;
        ck_assert_int_eq(weir_safetensors_encode(tensors + i, 1, texts, 3, &bytes, &len, &err),
                         WEIR_OK);
        ck_assert_int_eq(weir_net_file_open_memory(bytes, len, "it", &file, &err), WEIR_OK);
        ck_assert_int_eq(weir_net_file_create_net(file, &inference, &read, &err), WEIR_ERR_CORRUPT);
        ck_assert_ptr_nonnull(strstr(err.message, "fc."));
        weir_net_file_close(file);
        free(bytes);
    }
}

END_TEST

/* ---- weights of another program ------------------------------------------------------------- */

/** A convolution of that name, norm, ReLU, and a linear "fc" of n_classes. */
static struct weir_net *make_small(const char *conv, int32_t n_classes, uint64_t seed)
{
    struct weir_graph *graph = weir_graph_create();
    struct weir_net *made = NULL;
    struct weir_conv_params params = {.k = 6, .kernel_h = 3, .kernel_w = 3, .stride = 1};
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){1, 8, 8});
    x = weir_graph_conv(graph, conv, x, &params);
    x = weir_graph_relu(graph, "relu", weir_graph_batch_norm(graph, "bn", x));
    x = weir_graph_linear(graph, "fc", x, n_classes, true);
    weir_graph_softmax_loss(graph, "loss", x);
    const struct weir_net_config config = {.batch = 2, .n_threads = 1, .is_training = true};
    ck_assert_int_eq(weir_net_create(graph, &config, &made, &err), WEIR_OK);
    weir_net_init_weights(made, seed);
    weir_graph_destroy(graph);
    return made;
}

/** The parameters of `from` but the one of index i_left_out, as plain safetensors, and a tensor that
 * the net does not have. */
static void write_plain(struct weir_net *from, size_t i_left_out)
{
    struct weir_safetensors_tensor tensors[16];
    size_t n_params = 0, n = 0;
    const struct weir_param *params = weir_net_params(from, &n_params);
    const float foreign[1] = {7};
    for (size_t i = 0; i < n_params; i++) {
        if (i == i_left_out) {
            continue;
        }
        tensors[n] = (struct weir_safetensors_tensor){.name = params[i].name,
                                                      .n_dims = params[i].n_dims,
                                                      .data = weir_net_weights(from, NULL) +
                                                              params[i].first_elem};
        for (int32_t d = 0; d < params[i].n_dims; d++) {
            tensors[n].dims[d] = params[i].dims[d];
        }
        n++;
    }
    tensors[n++] = (struct weir_safetensors_tensor){
        .name = "bn.num_batches_tracked", .dims = {1}, .n_dims = 1, .data = foreign};
    ck_assert_int_eq(weir_safetensors_write(path, tensors, n, NULL, 0, &err), WEIR_OK);
}

/** Do the two nets hold the same values of params[i]? */
static bool has_same_values(struct weir_net *a, struct weir_net *b, size_t i)
{
    const struct weir_param *pa = &weir_net_params(a, &(size_t){0})[i];
    const struct weir_param *pb = &weir_net_params(b, &(size_t){0})[i];
    return pa->n_elems == pb->n_elems &&
           memcmp(weir_net_weights(a, NULL) + pa->first_elem,
                  weir_net_weights(b, NULL) + pb->first_elem, pa->n_elems * sizeof(float)) == 0;
}

/* Parameters of make_small: fc.weight, fc.bias, bn.weight, bn.bias, conv.weight, statistics. */
enum { N_SMALL = 7, N_SMALL_HEAD = 2 };

START_TEST(an_import_takes_all_but_a_head_of_other_classes)
{
    struct weir_net *from = make_small("conv", 5, 1);
    float *statistics =
        weir_net_weights(from, NULL) + weir_net_params(from, &(size_t){0})[5].first_elem;
    statistics[0] = 0.25f;
    write_plain(from, SIZE_MAX);
    for (int32_t n_classes = 4; n_classes <= 5; n_classes++) {
        struct weir_net *to = make_small("conv", n_classes, 2);
        struct weir_net *fresh = make_small("conv", n_classes, 2);
        struct weir_net_import result;
        size_t n_head = n_classes == 5 ? 0 : N_SMALL_HEAD;
        weir_status status = weir_net_file_import(path, to, &result, &err);
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        ck_assert_uint_eq(result.n_read, N_SMALL - n_head);
        ck_assert_uint_eq(result.n_new, n_head);
        ck_assert_uint_eq(result.n_unused, 1 + n_head);
        for (size_t i = 0; i < N_SMALL; i++) {
            ck_assert(has_same_values(to, i < n_head ? fresh : from, i));
        }
        if (n_head > 0) {
            ck_assert_str_eq(result.last_new, "fc.bias");
        } else {
            ck_assert_ptr_null(result.last_new);
        }
        weir_net_destroy(to);
        weir_net_destroy(fresh);
    }
    weir_net_destroy(from);
}

END_TEST

START_TEST(an_import_with_a_gap_or_of_another_network_names_the_tensor)
{
    static const struct {
        const char *conv;
        size_t i_left_out;
        weir_status status;
        const char *named;
    } rows[] = {{"conv", 4, WEIR_ERR_CORRUPT, "conv.weight"},
                {"conv", 6, WEIR_ERR_CORRUPT, "bn.running_var"},
                {"other", SIZE_MAX, WEIR_ERR_CORRUPT, "other.weight"}};

    for (size_t r = 0; r < WEIR_ARRAY_LEN(rows); r++) {
        struct weir_net *from = make_small("conv", 5, 1), *to = make_small(rows[r].conv, 5, 2);
        struct weir_net_import result;
        write_plain(from, rows[r].i_left_out);
        ck_assert_int_eq(weir_net_file_import(path, to, &result, &err), rows[r].status);
        ck_assert_msg(strstr(err.message, rows[r].named) != NULL, "%s", err.message);
        weir_net_destroy(from);
        weir_net_destroy(to);
    }
}

END_TEST

START_TEST(an_import_that_fits_nowhere_is_refused_and_changes_nothing)
{
    const float data[1] = {1};
    struct weir_net_import result;
    struct weir_net *to = make_small("conv", 5, 2), *fresh = make_small("conv", 5, 2);
    const struct weir_safetensors_tensor tensor = {"features.0.weight", {1}, 1, data};
    ck_assert_int_eq(weir_safetensors_write(path, &tensor, 1, NULL, 0, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_file_import(path, to, &result, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "conv.weight"));
    for (size_t i = 0; i < N_SMALL; i++) {
        ck_assert(has_same_values(to, fresh, i));
    }
    weir_net_destroy(to);
    weir_net_destroy(fresh);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("net_file");
    TCase *tcase = tcase_create("net_file");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, make_net, drop_net);
    tcase_add_test(tcase, a_net_read_back_computes_the_same_bits);
    tcase_add_test(tcase, the_class_weights_of_a_margin_loss_stay_out_of_the_file);
    tcase_add_test(tcase, brightness_undoes_the_normalisation);
    tcase_add_test(tcase, a_weight_that_is_not_finite_is_neither_written_nor_read);
    tcase_add_test(tcase, a_missing_or_misshapen_tensor_is_named);
    tcase_add_loop_test(tcase, metadata_that_is_no_model_is_refused_with_the_reason, 0,
                        (int)WEIR_ARRAY_LEN(broken));
    tcase_add_test(tcase, an_import_takes_all_but_a_head_of_other_classes);
    tcase_add_test(tcase, an_import_with_a_gap_or_of_another_network_names_the_tensor);
    tcase_add_test(tcase, an_import_that_fits_nowhere_is_refused_and_changes_nothing);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
