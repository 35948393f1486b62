/*
 * The proof that rows are apart, held against runs. Each of ONNX's own cases is made into models whose
 * batch is one dimension of some of its inputs, in any place: where the proof says that rows are apart,
 * rows that are asked together must come out, to the bit, as each does alone. The graphs of published
 * networks must be proven, or nothing would be gained.
 */
#include "rows.h"

#include "onnx/onnx_private.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "tensor/convert.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX     ((size_t)64 << 20)
#define PORTS_MAX    8
#define REQUESTS     3
#define LEAST_PROVEN 900
#define LEAST_MIXED  400

/** A case, made into a model of a batch. */
struct trial {
    struct weir_rng rng;
    struct weir_arena arena; /* The case's file and names. */
    const char *name;
    const char *file;
    size_t n_file;
    struct weir_tensor *data[PORTS_MAX];
    size_t n_data;
    bool is_batched[PORTS_MAX];
    int32_t axis; /* Of the batch, from the end. */
    struct weir_onnx *onnx;
    size_t which[PORTS_MAX]; /* Data of the model's inputs. */
};

static struct {
    int n_proven, n_mixed, n_unsure, n_run, n_failed;
} counts;

/* ---- models ----------------------------------------------------------------------------------- */

static const char *suffixed(struct trial *t, const char *name, const char *suffix)
{
    return weir_arena_printf(&t->arena, "%s@%s", name, suffix);
}

/* Node `from` -> `to`, that moves an axis to the front, or the first axis to there. */
static void put_transpose(struct trial *t, struct onnx_node *node, const char *from, const char *to,
                          int32_t rank, int32_t axis, bool to_front)
{
    int64_t *perm = WEIR_ARENA_ARRAY(&t->arena, (size_t)rank, int64_t);
    for (int32_t i = 0; i < rank; i++) {
        int32_t before = i <= axis ? i - 1 : i, behind = i < axis ? i + 1 : i;
        perm[i] = to_front ? (i == 0 ? axis : before) : (i == axis ? 0 : behind);
    }
    *node = (struct onnx_node){
        .name = "turn", .type = "Transpose", .domain = "", .n_in = 1, .n_out = 1};
    node->in = WEIR_ARENA_ARRAY(&t->arena, 1, const char *);
    node->out = WEIR_ARENA_ARRAY(&t->arena, 1, const char *);
    node->in[0] = from;
    node->out[0] = to;
    node->attributes = WEIR_ARENA_ARRAY(&t->arena, 1, struct onnx_attribute);
    node->n_attributes = 1;
    node->attributes[0] = (struct onnx_attribute){
        .name = "perm", .type = ONNX_ATTRIBUTE_INTS, .n = (size_t)rank, .ints = perm};
}

static int32_t front_axis(const struct trial *t, const struct weir_tensor *tensor)
{
    return tensor->rank + t->axis;
}

/* Inputs of the batch are turned to have it in front; the others become constants. */
static size_t change_inputs(struct trial *t, struct onnx_graph *graph, struct onnx_node *nodes)
{
    size_t n_nodes = 0, n_kept = 0, n_constants = graph->n_initializers;
    struct onnx_initializer *all =
        WEIR_ARENA_ARRAY(&t->arena, n_constants + graph->n_inputs, struct onnx_initializer);
    memcpy(all, graph->initializers, n_constants * sizeof *all);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        struct onnx_value input = graph->inputs[i];
        if (!t->is_batched[i]) {
            all[n_constants++] = (struct onnx_initializer){input.name, t->data[i]};
            continue;
        }
        const char *name = input.name;
        int32_t axis = front_axis(t, t->data[i]);
        input.name = suffixed(t, name, "in");
        put_transpose(t, &nodes[n_nodes++], input.name, name, input.rank, axis, false);
        memmove(input.dims + 1, t->data[i]->dims, (size_t)axis * sizeof *input.dims);
        memcpy(input.dims + 1 + axis, t->data[i]->dims + axis + 1,
               (size_t)(input.rank - axis - 1) * sizeof *input.dims);
        input.dims[0] = -1;
        t->which[n_kept] = i;
        graph->inputs[n_kept++] = input;
    }
    graph->n_inputs = n_kept;
    graph->initializers = all;
    graph->n_initializers = n_constants;
    return n_nodes;
}

/* Dimension `out_axis` of each output becomes its first. False: one has not as many. */
static bool change_outputs(struct trial *t, struct onnx_graph *graph, struct onnx_node *nodes,
                           size_t *n_nodes, int32_t out_axis)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        struct onnx_value *output = &graph->outputs[i];
        if (!output->has_shape || output->rank <= out_axis) {
            return false;
        }
        const char *name = output->name;
        output->name = suffixed(t, name, "out");
        put_transpose(t, &nodes[(*n_nodes)++], name, output->name, output->rank, out_axis, true);
    }
    return true;
}

static void free_model(struct trial *t)
{
    weir_onnx_free(t->onnx);
    t->onnx = NULL;
}

/* The changed model, linked. False: there is none. */
static bool make_model(struct trial *t, int32_t out_axis)
{
    struct weir_error err;
    struct weir_onnx *onnx = calloc(1, sizeof *onnx);
    ck_assert_ptr_nonnull(onnx);
    t->onnx = onnx;
    onnx->limits.run_bytes = (size_t)1 << 28;
    if (onnx_model_read(t->file, t->n_file, &onnx->model, &err) != WEIR_OK) {
        return false;
    }
    struct onnx_graph *graph = &onnx->model->graph;
    size_t most = graph->n_nodes + graph->n_inputs + graph->n_outputs;
    struct onnx_node *nodes = WEIR_ARENA_ARRAY(&t->arena, most, struct onnx_node);
    if (graph->n_inputs != t->n_data) {
        return false;
    }
    size_t n = change_inputs(t, graph, nodes);
    memcpy(nodes + n, graph->nodes, graph->n_nodes * sizeof *nodes);
    n += graph->n_nodes;
    bool is = change_outputs(t, graph, nodes, &n, out_axis);
    graph->nodes = nodes;
    graph->n_nodes = n;
    return is && onnx_link(onnx, &err) == WEIR_OK && onnx_fold(onnx, &err) == WEIR_OK;
}

/* ---- runs ------------------------------------------------------------------------------------- */

/* A request of rows of the data, in the model's order of dimensions. A row may be far off. */
static struct weir_tensor *make_rows(struct trial *t, size_t i_input, const int64_t *rows,
                                     const double *scales, int64_t n)
{
    const struct weir_tensor *data = t->data[t->which[i_input]];
    const struct onnx_value *input = &t->onnx->model->graph.inputs[i_input];
    int32_t axis = front_axis(t, data);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct weir_tensor *x;
    memcpy(dims, input->dims, sizeof dims);
    dims[0] = n;
    ck_assert_int_eq(weir_tensor_create(data->dtype, data->rank, dims, &x, NULL), WEIR_OK);
    size_t n_inner = 1, bytes = weir_dtype_bytes(data->dtype), to = 0;
    for (int32_t k = axis + 1; k < data->rank; k++) {
        n_inner *= (size_t)data->dims[k];
    }
    size_t all = (size_t)data->dims[axis] * n_inner, n_outer = all > 0 ? data->n_elems / all : 0;
    for (int64_t i = 0; i < n; i++) {
        for (size_t outer = 0; outer < n_outer; outer++, to += n_inner) {
            size_t from = (outer * (size_t)data->dims[axis] + (size_t)rows[i]) * n_inner;
            ck_assert_int_eq(weir_elems_copy(data->dtype, (char *)x->data + to * bytes,
                                             (const char *)data->data + from * bytes, n_inner),
                             WEIR_OK);
            for (size_t k = 0; data->dtype == WEIR_DTYPE_FLOAT && k < n_inner; k++) {
                ((float *)x->data)[to + k] *= (float)scales[i];
            }
        }
    }
    return x;
}

static weir_status run(struct weir_onnx *onnx, struct weir_tensor **in, struct weir_tensor **out)
{
    struct weir_error err;
    for (size_t i = 0; i < PORTS_MAX; i++) {
        out[i] = NULL;
    }
    weir_status status = weir_onnx_run(onnx, in, out, &err);
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        weir_tensor_release(in[i]);
    }
    return status;
}

static void release(struct weir_tensor **tensors)
{
    for (size_t i = 0; i < PORTS_MAX; i++) {
        weir_tensor_release(tensors[i]);
    }
}

static bool is_same_elem(enum weir_dtype dtype, const char *a, const char *b)
{
    double x, y;
    if (dtype == WEIR_DTYPE_STRING) {
        const struct weir_tensor_string *s = (const void *)a, *u = (const void *)b;
        return s->len == u->len && (s->len == 0 || memcmp(s->bytes, u->bytes, s->len) == 0);
    }
    weir_elems_to_f64(dtype, a, &x, 1);
    weir_elems_to_f64(dtype, b, &y, 1);
    return x == y || (isnan(x) && isnan(y));
}

/* Rows `first` on of what came of all are what came of some. */
static bool is_part(const struct weir_tensor *all, const struct weir_tensor *some, int64_t first)
{
    size_t bytes = weir_dtype_bytes(all->dtype);
    if (some->dims[0] == 0 ||
        all->n_elems / (size_t)all->dims[0] != some->n_elems / (size_t)some->dims[0]) {
        return false;
    }
    const char *at =
        (const char *)all->data + (size_t)first * (some->n_elems / (size_t)some->dims[0]) * bytes;
    for (size_t i = 0; i < some->n_elems; i++) {
        if (!is_same_elem(all->dtype, at + i * bytes, (const char *)some->data + i * bytes)) {
            return false;
        }
    }
    return true;
}

/* Requests of one to three rows, asked alone and together. */
static bool holds(struct trial *t, int64_t n_data)
{
    static const double far[] = {1, 1, 1, -1, 0.01, 1000};
    int64_t rows[3 * REQUESTS], sizes[REQUESTS], n = 0;
    double scales[3 * REQUESTS];
    struct weir_tensor *in[PORTS_MAX], *joined[PORTS_MAX], *out[PORTS_MAX];
    for (size_t i = 0; i < REQUESTS; i++) {
        sizes[i] = 1 + (int64_t)weir_rng_below(&t->rng, 3);
        n += sizes[i];
    }
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (int64_t)weir_rng_below(&t->rng, (uint64_t)n_data);
        scales[i] = far[weir_rng_below(&t->rng, WEIR_ARRAY_LEN(far))];
    }
    for (size_t i = 0; i < t->onnx->n_inputs; i++) {
        in[i] = make_rows(t, i, rows, scales, n);
    }
    bool is = true, ran = run(t->onnx, in, joined) == WEIR_OK;
    counts.n_run += ran;
    for (int64_t k = 0, first = 0; ran && is && k < REQUESTS; first += sizes[k++]) {
        for (size_t i = 0; i < t->onnx->n_inputs; i++) {
            in[i] = make_rows(t, i, rows + first, scales + first, sizes[k]);
        }
        is = run(t->onnx, in, out) == WEIR_OK;
        for (size_t i = 0; is && i < t->onnx->n_outputs; i++) {
            is = joined[i]->rank > 0 && joined[i]->dims[0] == n && out[i]->dims[0] == sizes[k] &&
                 is_part(joined[i], out[i], first);
        }
        release(out);
    }
    release(joined);
    return is;
}

/* ---- cases ------------------------------------------------------------------------------------ */

static void judge(struct trial *t, int64_t n_data, int32_t out_axis)
{
    char why[WEIR_ONNX_ROWS_BYTES];
    if (make_model(t, out_axis)) {
        enum weir_onnx_rows rows = weir_onnx_rows(t->onnx, why);
        counts.n_proven += rows == WEIR_ONNX_ROWS_APART;
        counts.n_mixed += rows == WEIR_ONNX_ROWS_MIXED;
        counts.n_unsure += rows == WEIR_ONNX_ROWS_UNSURE;
        if (rows == WEIR_ONNX_ROWS_APART && !holds(t, n_data)) {
            counts.n_failed++;
            printf("%s: batch at %d of inputs %d%d%d, %d of outputs: proven, and not so\n", t->name,
                   t->axis, t->is_batched[0], t->is_batched[1], t->is_batched[2], out_axis);
        }
    }
    free_model(t);
}

/* The batch is `axis` from the end, of inputs of `mask`. False: they have no such dimension. */
static void try_axis(struct trial *t, unsigned mask, int32_t axis)
{
    int64_t n = -1;
    for (size_t i = 0; i < t->n_data; i++) {
        const struct weir_tensor *data = t->data[i];
        t->is_batched[i] = (mask >> i & 1U) != 0;
        if (t->is_batched[i]) {
            if (data->rank + axis < 0 || (n >= 0 && data->dims[data->rank + axis] != n)) {
                return;
            }
            n = data->dims[data->rank + axis];
        }
    }
    t->axis = axis;
    for (int32_t out_axis = 0; n > 0 && out_axis < 4; out_axis++) {
        judge(t, n, out_axis);
    }
}

static void try_case(struct trial *t, const char *folder)
{
    char path[1200], *bytes;
    size_t n;
    struct weir_error err;
    weir_arena_init(&t->arena, 0);
    (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
    ck_assert_int_eq(weir_file_read(path, FILE_MAX, &t->arena, &bytes, &t->n_file, NULL), WEIR_OK);
    t->file = bytes;
    for (t->n_data = 0; t->n_data < PORTS_MAX; t->n_data++) {
        (void)snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder, t->n_data);
        if (!weir_path_exists(path)) {
            break;
        }
        ck_assert_int_eq(weir_file_read(path, FILE_MAX, &t->arena, &bytes, &n, NULL), WEIR_OK);
        if (onnx_tensor_read(bytes, n, &t->data[t->n_data], &err) != WEIR_OK) {
            break;
        }
    }
    unsigned whole = (1U << t->n_data) - 1;
    for (int32_t axis = -1; axis >= -4; axis--) {
        for (size_t i = 0; t->n_data > 1 && i < t->n_data; i++) {
            try_axis(t, 1U << i, axis);
            try_axis(t, whole & ~(1U << i), axis);
        }
        try_axis(t, whole, axis);
    }
    for (size_t i = 0; i < t->n_data; i++) {
        weir_tensor_release(t->data[i]);
    }
    weir_arena_fini(&t->arena);
}

START_TEST(what_is_proven_of_onnxs_own_cases_holds)
{
    static const char *const groups[] = {"node", "pytorch-operator", "pytorch-converted"};
    const char *seed = getenv("WEIR_TEST_SEED");
    struct trial t = {.name = NULL};
    uint64_t number = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    printf("WEIR_TEST_SEED=%llu\n", (unsigned long long)number);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(groups); i++) {
        char folder[512], path[1024];
        (void)snprintf(folder, sizeof folder, "%s/onnx/%s", getenv("WEIR_SHARED_DATA"), groups[i]);
        DIR *dir = opendir(folder);
        ck_assert_ptr_nonnull(dir);
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            if (entry->d_name[0] != '.') {
                (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
                t.name = entry->d_name;
                weir_rng_init(&t.rng, number, i);
                try_case(&t, path);
            }
        }
        (void)closedir(dir);
    }
    printf("%d models proven, %d run; %d mix their rows, %d are not known\n", counts.n_proven,
           counts.n_run, counts.n_mixed, counts.n_unsure);
    (void)fflush(stdout);
    ck_assert_int_eq(counts.n_failed, 0);
    ck_assert_int_ge(counts.n_run, LEAST_PROVEN);
    ck_assert_int_ge(counts.n_mixed, LEAST_MIXED);
}

END_TEST

/* ---- published networks ----------------------------------------------------------------------- */

static const char *const light[] = {"bvlc_alexnet", "inception_v2", "resnet50",
                                    "squeezenet",   "vgg19",        "zfnet512"};

/* Reshapes to a batch of one keep the batch there is instead. */
static void free_reshapes(struct onnx_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        for (size_t k = 0;
             strcmp(graph->nodes[i].type, "Reshape") == 0 && k < graph->n_initializers; k++) {
            struct weir_tensor *to = graph->initializers[k].tensor;
            if (strcmp(graph->nodes[i].in[1], graph->initializers[k].name) == 0 &&
                *(int64_t *)to->data == 1) {
                *(int64_t *)to->data = 0;
            }
        }
    }
}

/* Their batch of one is made free. */
START_TEST(published_networks_are_proven)
{
    char path[512], *bytes;
    size_t n;
    struct weir_arena arena;
    struct onnx_model *model;
    struct weir_error err;
    const struct onnx_node *cause;
    weir_arena_init(&arena, 0);
    (void)snprintf(path, sizeof path, "%s/onnx/light/light_%s.onnx", getenv("WEIR_SHARED_DATA"),
                   light[_i]);
    ck_assert_int_eq(weir_file_read(path, FILE_MAX, &arena, &bytes, &n, NULL), WEIR_OK);
    ck_assert_int_eq(onnx_model_read(bytes, n, &model, &err), WEIR_OK);
    for (size_t i = 0; i < model->graph.n_inputs; i++) {
        model->graph.inputs[i].dims[0] = -1;
    }
    free_reshapes(&model->graph);
    enum rows_verdict verdict = rows_prove(model, NULL, NULL, &arena, &cause);
    printf("%s: %d %s %s\n", light[_i], verdict, cause != NULL ? cause->type : "",
           cause != NULL ? cause->name : "");
    (void)fflush(stdout);
    ck_assert_int_eq(verdict, ROWS_APART);
    onnx_model_free(model);
    weir_arena_fini(&arena);
}

END_TEST

int main(void)
{
    const char *root = getenv("WEIR_SHARED_DATA");
    char path[512];
    (void)snprintf(path, sizeof path, "%s/onnx/node", root != NULL ? root : "");
    if (!weir_path_is_dir(path)) {
        printf("skipped: no ONNX cases under WEIR_SHARED_DATA\n");
        return 77;
    }
    Suite *suite = suite_create("rows");
    TCase *tests = tcase_create("rows");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, what_is_proven_of_onnxs_own_cases_holds);
    tcase_add_loop_test(tests, published_networks_are_proven, 0, (int)WEIR_ARRAY_LEN(light));
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
