#include "serve/executor.h"
#include "serve/model/external_data.h"
#include "serve/signature.h"
#include "serve/test_model.h"

#include "base/file.h"
#include "base/kind_laws.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "nn/net_file.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static char folder[WEIR_DIR_TEMPORARY_BYTES];
static char path[WEIR_DIR_TEMPORARY_BYTES + 32];
static struct weir_error err;

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("serve", folder, &err), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/model", folder);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(folder, &err), WEIR_OK);
}

static void write_file(const void *bytes, size_t n)
{
    ck_assert_int_eq(weir_file_write(path, bytes, n, 0600, &err), WEIR_OK);
}

static struct weir_tensor *random_input(const struct serve_model *model, int64_t batch)
{
    struct weir_tensor *in;
    struct weir_rng rng;
    test_model_zeros(model, batch, &in);
    weir_rng_init(&rng, 7, 0);
    for (size_t i = 0; i < in->n_elems; i++) {
        ((float *)in->data)[i] = (float)weir_rng_normal(&rng);
    }
    return in;
}

START_TEST(the_table_of_executors_keeps_the_laws_of_kinds)
{
    kind_laws_check(&weir_executors);
}

END_TEST

/* The oracle is the net itself, with the reference back-end and one image at a time. */
static void expect_net_output(const struct weir_tensor *in, const struct weir_tensor *out)
{
    struct weir_net *net;
    struct weir_net_file *file;
    const struct weir_net_config config = {
        .batch = 1, .n_threads = 1, .backend = &weir_reference_backend};
    ck_assert_int_eq(weir_net_file_load(path, &config, &net, &file, &err), WEIR_OK);
    size_t n_in = in->n_elems / (size_t)in->dims[0], n_out = out->n_elems / (size_t)in->dims[0];
    for (int64_t i = 0; i < in->dims[0]; i++) {
        memcpy(weir_net_input(net), (float *)in->data + (size_t)i * n_in, n_in * sizeof(float));
        ck_assert_int_eq(weir_net_forward(net, 1, NULL), WEIR_OK);
        for (size_t k = 0; k < n_out; k++) {
            float got = ((float *)out->data)[(size_t)i * n_out + k];
            ck_assert_msg(fabsf(got - weir_net_output(net)[k]) < 1e-5f, "image %lld: %g",
                          (long long)i, (double)got);
        }
    }
    weir_net_destroy(net);
    weir_net_file_close(file);
}

static const struct {
    int32_t n_threads, batch_max;
    int64_t batch;
} runs[] = {{1, 1, 1}, {2, 1, 1}, {2, 1, 3},  {2, 4, 1},
            {2, 4, 3}, {2, 4, 4}, {1, 4, 11}, {2, 40, 37}};

START_TEST(a_net_file_gives_the_nets_output_at_any_batch)
{
    const struct executor_options options = {.n_threads = runs[_i].n_threads,
                                             .batch_max = runs[_i].batch_max};
    struct serve_model *model;
    struct weir_tensor *out;
    char why[EXECUTOR_WHY_BYTES];
    test_model_save(path, TEST_CLASSIFIER, 3);
    ck_assert_msg(executor_choose(path, &options, &model, why, &err) == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(model->kind->name, "weir");
    ck_assert(serve_model_is_batched(model));
    struct weir_tensor *in = random_input(model, runs[_i].batch);
    ck_assert_msg(serve_model_run(model, &in, &out, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(out->dims[0], runs[_i].batch);
    ck_assert_int_eq(out->dims[1], 3);
    expect_net_output(in, out);
    weir_tensor_release(in);
    weir_tensor_release(out);
    serve_model_unload(model);
}

END_TEST

/* Squares of 2 pixels, 3 numbers each, of an image of H rows and W columns. */
#define DETECTOR(h, w)                                                                             \
    "{\"input\": [1, " h ", " w "], \"layers\": ["                                                 \
    "{\"name\": \"a\", \"type\": \"conv\", \"k\": 3, \"kernel\": 3, \"stride\": 2, \"pad\": 1},"   \
    "{\"name\": \"s\", \"type\": \"conv\", \"from\": \"a\", \"k\": 1, \"kernel\": 1},"             \
    "{\"name\": \"t\", \"type\": \"flatten\"},"                                                    \
    "{\"name\": \"p\", \"type\": \"conv\", \"from\": \"a\", \"k\": 2, \"kernel\": 1},"             \
    "{\"name\": \"q\", \"type\": \"flatten\"},"                                                    \
    "{\"name\": \"c\", \"type\": \"concat\", \"from\": [\"t\", \"q\"]}],"                          \
    "\"loss\": {\"type\": \"detect\", \"values\": 3}}"

/* The oracle is a net whose own size that is, with the same weights. */
static void expect_detector_output(const char *spec, const struct weir_tensor *in,
                                   const struct weir_tensor *out)
{
    struct weir_graph *graph;
    struct weir_net *net;
    struct weir_net_import import;
    const struct weir_net_config config = {
        .batch = 1, .n_threads = 1, .backend = &weir_reference_backend};
    ck_assert_int_eq(weir_model_build(spec, 1, &graph, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_file_import(path, net, &import, &err), WEIR_OK);
    memcpy(weir_net_input(net), in->data, in->n_elems * sizeof(float));
    ck_assert_int_eq(weir_net_forward(net, 1, NULL), WEIR_OK);
    ck_assert_uint_eq(out->n_elems, (size_t)weir_graph_output_shape(graph).c);
    for (size_t k = 0; k < out->n_elems; k++) {
        ck_assert(fabsf(((float *)out->data)[k] - weir_net_output(net)[k]) < 1e-5f);
    }
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

START_TEST(a_detector_takes_pictures_of_any_size)
{
    static const struct {
        const char *spec;
        int64_t h, w;
    } sizes[] = {{DETECTOR("8", "6"), 8, 6},
                 {DETECTOR("20", "31"), 20, 31},
                 {DETECTOR("20", "31"), 20, 31},
                 {DETECTOR("8", "6"), 8, 6}};

    struct serve_model *model;
    struct weir_rng rng;
    char why[EXECUTOR_WHY_BYTES];
    test_model_save(path, DETECTOR("8", "6"), 3);
    ck_assert_msg(executor_choose(path, NULL, &model, why, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(model->inputs[0].dims[1], 1);
    ck_assert_int_eq(model->inputs[0].dims[3], -1);
    ck_assert_int_eq(model->outputs[0].dims[1], -1);
    weir_rng_init(&rng, 11, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sizes); i++) {
        struct weir_tensor *in, *out;
        const int64_t dims[] = {1, 1, sizes[i].h, sizes[i].w};
        ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 4, dims, &in, &err), WEIR_OK);
        for (size_t k = 0; k < in->n_elems; k++) {
            ((float *)in->data)[k] = (float)weir_rng_normal(&rng);
        }
        ck_assert_msg(serve_model_run(model, &in, &out, &err) == WEIR_OK, "%s", err.message);
        expect_detector_output(sizes[i].spec, in, out);
        weir_tensor_release(in);
        weir_tensor_release(out);
    }
    struct weir_tensor *in, *out;
    const int64_t large[] = {1, 1, 8, 5000};
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 4, large, &in, &err), WEIR_OK);
    ck_assert_int_eq(serve_model_run(model, &in, &out, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "at most 4096"));
    weir_tensor_release(in);
    serve_model_unload(model);
}

END_TEST

START_TEST(an_onnx_file_is_run_by_weirs_own)
{
    unsigned char bytes[512];
    struct serve_model *model;
    struct weir_tensor *out;
    char why[EXECUTOR_WHY_BYTES];
    write_file(bytes, test_onnx_write("Neg", bytes));
    ck_assert_msg(executor_choose(path, NULL, &model, why, &err) == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(model->kind->name, "onnx");
    ck_assert(serve_model_is_batched(model));
    struct weir_tensor *in = random_input(model, 5);
    ck_assert_int_eq(serve_model_run(model, &in, &out, &err), WEIR_OK);
    for (size_t i = 0; i < in->n_elems; i++) {
        ck_assert(((float *)out->data)[i] == -((float *)in->data)[i]);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    serve_model_unload(model);
}

END_TEST

START_TEST(an_input_that_does_not_fit_is_refused_and_the_model_goes_on)
{
    struct serve_model *model;
    struct weir_tensor *in, *out;
    test_model_save(path, TEST_CLASSIFIER, 3);
    ck_assert_int_eq(executor_load("weir", path, NULL, &model, &err), WEIR_OK);
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 4, (int64_t[]){1, 3, 6, 8}, &in, &err),
                     WEIR_OK);
    ck_assert_int_eq(serve_model_run(model, &in, &out, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "\"input\" is 1x3x6x8"));
    weir_tensor_release(in);
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_DOUBLE, 4, (int64_t[]){1, 3, 8, 6}, &in, &err),
                     WEIR_OK);
    ck_assert_int_eq(serve_model_run(model, &in, &out, &err), WEIR_ERR_INVALID);
    weir_tensor_release(in);
    in = random_input(model, 1);
    ck_assert_int_eq(serve_model_run(model, &in, &out, &err), WEIR_OK);
    weir_tensor_release(in);
    weir_tensor_release(out);
    serve_model_unload(model);
}

END_TEST

START_TEST(what_is_no_model_is_refused_by_a_sentence)
{
    struct serve_model *model;
    char why[EXECUTOR_WHY_BYTES];
    static const char zeros[4096];
    write_file("hello", 5);
    ck_assert_int_eq(executor_choose(path, NULL, &model, why, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "neither"));
    write_file(zeros, sizeof zeros);
    ck_assert_int_eq(executor_choose(path, NULL, &model, why, &err), WEIR_ERR_INVALID);
    write_file("", 0);
    ck_assert_int_eq(executor_choose(path, NULL, &model, why, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "empty"));
    ck_assert_int_eq(executor_choose(folder, NULL, &model, why, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(executor_choose("/nowhere/at/all", NULL, &model, why, &err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(executor_load("oracle", path, NULL, &model, &err), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_file_that_was_cut_off_is_refused)
{
    struct serve_model *model;
    char why[EXECUTOR_WHY_BYTES], *bytes;
    size_t n;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    test_model_save(path, TEST_CLASSIFIER, 3);
    ck_assert_int_eq(weir_file_read(path, 1 << 20, &arena, &bytes, &n, &err), WEIR_OK);
    for (size_t len = 1; len < n; len += 1 + len / 8) {
        write_file(bytes, len);
        ck_assert_int_ne(executor_choose(path, NULL, &model, why, &err), WEIR_OK);
        ck_assert_int_ne(err.message[0], '\0');
    }
    weir_arena_fini(&arena);
}

END_TEST

/* ModelProto with a graph with an initializer of data_location EXTERNAL; the same deeper. */
START_TEST(a_model_that_names_other_files_is_refused)
{
    static const char direct[] = "\x3a\x04\x2a\x02\x70\x01";
    static const char listed[] = "\x3a\x04\x2a\x02\x6a\x00";
    static const char in_node[] = "\x3a\x08\x0a\x06\x2a\x04\x2a\x02\x70\x01";
    static const char in_sparse[] = "\x3a\x06\x7a\x04\x0a\x02\x70\x01";
    static const char inside[] = "\x3a\x04\x2a\x02\x70\x00";
    ck_assert_int_eq(external_data_refuse(direct, sizeof direct - 1, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(external_data_refuse(listed, sizeof listed - 1, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(external_data_refuse(in_node, sizeof in_node - 1, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(external_data_refuse(in_sparse, sizeof in_sparse - 1, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(external_data_refuse(inside, sizeof inside - 1, &err), WEIR_OK);
    ck_assert_int_eq(external_data_refuse(inside, sizeof inside - 2, &err), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(without_a_library_it_is_said_what_is_lacking_and_what_to_install)
{
    unsigned char bytes[512];
    struct serve_model *model;
    char why[EXECUTOR_WHY_BYTES];
    const struct executor_options options = {.onnxruntime_path = "/nowhere/at/all"};
    write_file(bytes, test_onnx_write("Quark", bytes));
    ck_assert_int_eq(executor_choose(path, &options, &model, why, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "operator Quark of opset 13") != NULL &&
                      strstr(err.message, "/nowhere/at/all") != NULL,
                  "%s", err.message);
    write_file("no library", 10);
    const struct executor_options wrong = {.onnxruntime_path = path};
    ck_assert_int_eq(executor_load("onnxruntime", path, &wrong, &model, &err), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_net_beyond_the_memory_bound_is_refused)
{
    struct serve_model *model;
    test_model_save(path, TEST_CLASSIFIER, 3);
    const struct executor_options options = {.memory_max_bytes = 1000};
    ck_assert_int_eq(executor_load("weir", path, &options, &model, &err), WEIR_ERR_LIMIT);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("executor");
    TCase *tcase = tcase_create("executor");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_table_of_executors_keeps_the_laws_of_kinds);
    tcase_add_loop_test(tcase, a_net_file_gives_the_nets_output_at_any_batch, 0,
                        WEIR_ARRAY_LEN(runs));
    tcase_add_test(tcase, a_detector_takes_pictures_of_any_size);
    tcase_add_test(tcase, an_onnx_file_is_run_by_weirs_own);
    tcase_add_test(tcase, an_input_that_does_not_fit_is_refused_and_the_model_goes_on);
    tcase_add_test(tcase, what_is_no_model_is_refused_by_a_sentence);
    tcase_add_test(tcase, a_file_that_was_cut_off_is_refused);
    tcase_add_test(tcase, a_net_beyond_the_memory_bound_is_refused);
    tcase_add_test(tcase, a_model_that_names_other_files_is_refused);
    tcase_add_test(tcase, without_a_library_it_is_said_what_is_lacking_and_what_to_install);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
