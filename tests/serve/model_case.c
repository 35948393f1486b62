/*
 * model_case EXECUTOR MODEL FOLDER [LIBRARY]: runs a model on the tensors input_0.pb, input_1.pb … of
 * a folder (TensorProto, as in ONNX's test cases) and compares with output_0.pb …. It prints the
 * largest difference, and exits with 0 if that is at most 1e-4 (relative, for values above 1).
 * EXECUTOR "choose" takes the one that suits the model; its name is printed.
 *
 * model_case stream [interpret]: runs model after model from the standard input, by the executor
 * "onnx" or by its interpreter alone. There a model is a number of parts (u32 of this machine), the file and an input in
 * each part after it: a length (u32) and its bytes. Of each a line is printed: "ok" and of each output
 * " TYPE DIMENSIONS HEX", or the error.
 */
#include "serve/executor.h"

#include "base/arena.h"
#include "base/file.h"
#include "onnx/model.h"
#include "onnx/onnx.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-4
#define FILE_MAX  ((size_t)256 << 20)

static struct weir_error err;

static int fail(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, err.message);
    return EXIT_FAILURE;
}

static bool read_tensors(const char *folder, const char *kind, size_t n, struct weir_tensor **out)
{
    for (size_t i = 0; i < n; i++) {
        struct weir_arena arena;
        char path[1024], *data;
        size_t len;
        weir_arena_init(&arena, FILE_MAX);
        (void)snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, kind, i);
        bool is_read = weir_file_read(path, FILE_MAX, &arena, &data, &len, &err) == WEIR_OK &&
                       onnx_tensor_read(data, len, &out[i], &err) == WEIR_OK;
        weir_arena_fini(&arena);
        if (!is_read) {
            return false;
        }
    }
    return true;
}

/* Of elements whose bits differ. Only floats may. */
static double difference(const struct weir_tensor *got, const struct weir_tensor *expected,
                         size_t i)
{
    const size_t at = i * weir_dtype_bytes(got->dtype);
    double x, y;
    if (weir_dtype_class(got->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return INFINITY;
    }
    weir_elems_to_f64(got->dtype, (char *)got->data + at, &x, 1);
    weir_elems_to_f64(got->dtype, (char *)expected->data + at, &y, 1);
    if (isnan(x) || isnan(y)) {
        return isnan(x) && isnan(y) ? 0 : INFINITY;
    }
    return x == y ? 0 : fabs(x - y) / fmax(1, fabs(y));
}

static bool is_same_string(const struct weir_tensor *a, const struct weir_tensor *b, size_t i)
{
    const struct weir_tensor_string *x = a->data, *y = b->data;
    return x[i].len == y[i].len && (x[i].len == 0 || memcmp(x[i].bytes, y[i].bytes, x[i].len) == 0);
}

static double compare(const struct weir_tensor *got, const struct weir_tensor *expected)
{
    if (got->dtype != expected->dtype || got->rank != expected->rank ||
        memcmp(got->dims, expected->dims, (size_t)got->rank * sizeof *got->dims) != 0) {
        return INFINITY;
    }
    double worst = 0;
    size_t elem_bytes = weir_dtype_bytes(got->dtype);
    for (size_t i = 0; i < got->n_elems; i++) {
        if (got->dtype == WEIR_DTYPE_STRING) {
            worst = is_same_string(got, expected, i) ? worst : INFINITY;
        } else if (memcmp((char *)got->data + i * elem_bytes,
                          (char *)expected->data + i * elem_bytes, elem_bytes) != 0) {
            worst = fmax(worst, difference(got, expected, i));
        }
    }
    return worst;
}

static int run(struct serve_model *model, const char *folder)
{
    struct weir_tensor *in[SERVE_PORTS_MAX] = {NULL}, *out[SERVE_PORTS_MAX] = {NULL},
                       *expected[SERVE_PORTS_MAX] = {NULL};
    if (!read_tensors(folder, "input", model->n_inputs, in) ||
        !read_tensors(folder, "output", model->n_outputs, expected)) {
        return fail(folder);
    }
    double worst = 0;
    for (int i = 0; i < 2; i++) { /* The second run finds what the first left. */
        if (serve_model_run(model, in, out, &err) != WEIR_OK) {
            return fail("run");
        }
        for (size_t k = 0; k < model->n_outputs; k++) {
            worst = fmax(worst, compare(out[k], expected[k]));
        }
        serve_tensors_release(out, model->n_outputs);
    }
    serve_tensors_release(in, model->n_inputs);
    serve_tensors_release(expected, model->n_outputs);
    (void)printf("%s %g\n", model->kind->name, worst);
    return worst <= TOLERANCE ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- model after model ------------------------------------------------------------------------ */

static bool read_exactly(void *to, size_t n)
{
    return fread(to, 1, n, stdin) == n;
}

/* The next part, in memory of its own; NULL at the end of the input. */
static char *read_part(uint32_t *out_len)
{
    char *part = read_exactly(out_len, sizeof *out_len) ? malloc((size_t)*out_len + 1) : NULL;
    if (part != NULL && !read_exactly(part, *out_len)) {
        free(part);
        return NULL;
    }
    return part;
}

static void print_bytes(const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)printf("%02x", ((const uint8_t *)bytes)[i]);
    }
}

static void print_tensor(const struct weir_tensor *tensor)
{
    char dims[WEIR_TENSOR_TEXT_BYTES];
    (void)printf(" %s %s ", weir_dtype_name(tensor->dtype),
                 weir_tensor_dims_text(tensor->rank, tensor->dims, dims));
    if (tensor->dtype != WEIR_DTYPE_STRING) {
        print_bytes(tensor->data, tensor->n_elems * weir_dtype_bytes(tensor->dtype));
    }
    for (size_t i = 0; tensor->dtype == WEIR_DTYPE_STRING && i < tensor->n_elems; i++) {
        const struct weir_tensor_string *text = (struct weir_tensor_string *)tensor->data + i;
        print_bytes(text->bytes, text->len);
        (void)printf(",");
    }
    (void)printf(tensor->n_elems == 0 ? "-" : "");
}

static weir_status run_streamed(struct weir_onnx *onnx, struct weir_tensor *const *in, size_t n_in)
{
    struct weir_tensor *out[SERVE_PORTS_MAX] = {NULL};
    size_t n_wanted, n_out;
    (void)weir_onnx_inputs(onnx, &n_wanted);
    (void)weir_onnx_outputs(onnx, &n_out);
    if (n_wanted != n_in || n_out > SERVE_PORTS_MAX) {
        return weir_error_set(&err, WEIR_ERR_INVALID, "%zu inputs of %zu", n_in, n_wanted);
    }
    weir_status status = weir_onnx_run(onnx, in, out, &err);
    if (status == WEIR_OK) { /* the second run finds what the first left */
        serve_tensors_release(out, n_out);
        status = weir_onnx_run(onnx, in, out, &err);
    }
    (void)printf(status == WEIR_OK ? "ok" : "");
    for (size_t i = 0; status == WEIR_OK && i < n_out; i++) {
        print_tensor(out[i]);
    }
    serve_tensors_release(out, status == WEIR_OK ? n_out : 0);
    return status;
}

static weir_status run_next(uint32_t n_parts, const struct weir_onnx_limits *limits)
{
    struct weir_tensor *in[SERVE_PORTS_MAX] = {NULL};
    struct weir_onnx *onnx = NULL;
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < n_parts; i++) {
        uint32_t len = 0;
        char *part = read_part(&len);
        if (part == NULL || n_parts > SERVE_PORTS_MAX) {
            exit(EXIT_FAILURE);
        }
        if (status == WEIR_OK) {
            status = i == 0 ? weir_onnx_load(part, len, limits, &onnx, &err)
                            : onnx_tensor_read(part, len, &in[i - 1], &err);
        }
        free(part);
    }
    status = status == WEIR_OK ? run_streamed(onnx, in, n_parts - 1) : status;
    serve_tensors_release(in, n_parts - 1);
    weir_onnx_free(onnx);
    return status;
}

static int stream(bool only_interprets)
{
    const struct weir_onnx_limits limits = {.n_threads = 1, .only_interprets = only_interprets};
    for (uint32_t n_parts; read_exactly(&n_parts, sizeof n_parts);) {
        weir_status status = run_next(n_parts, &limits);
        (void)printf("%s\n", status == WEIR_OK ? "" : err.message);
        (void)fflush(stdout);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "stream") == 0) {
        return stream(argc > 2 && strcmp(argv[2], "interpret") == 0);
    }
    if (argc < 4) {
        (void)fprintf(stderr, "usage: model_case EXECUTOR MODEL FOLDER [LIBRARY]\n");
        return EXIT_FAILURE;
    }
    const struct executor_options options = {
        .n_threads = 2, .batch_max = 4, .onnxruntime_path = argc > 4 ? argv[4] : NULL};
    struct serve_model *model;
    char why[EXECUTOR_WHY_BYTES] = "";
    weir_status status = strcmp(argv[1], "choose") == 0
                             ? executor_choose(argv[2], &options, &model, why, &err)
                             : executor_load(argv[1], argv[2], &options, &model, &err);
    if (status != WEIR_OK) {
        (void)fail("load");
        return weir_status_exit(status);
    }
    int exit_status = run(model, argv[3]);
    if (why[0] != '\0') {
        (void)printf("%s\n", why);
    }
    serve_model_unload(model);
    return exit_status;
}
