/*
 * model_case EXECUTOR MODEL FOLDER [LIBRARY]: runs a model on the tensors input_0.pb, input_1.pb … of
 * a folder (TensorProto, as in ONNX's test cases) and compares with output_0.pb …. It prints the
 * largest difference, and exits with 0 if that is at most 1e-4 (relative, for values above 1).
 * EXECUTOR "choose" takes the one that suits the model; its name is printed.
 */
#include "serve/executor.h"

#include "base/arena.h"
#include "base/file.h"
#include "onnx/model.h"

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

static double difference(double got, double expected)
{
    if (isnan(got) || isnan(expected)) {
        return isnan(got) && isnan(expected) ? 0 : INFINITY;
    }
    return fabs(got - expected) / fmax(1, fabs(expected));
}

static double number(const struct weir_tensor *tensor, size_t i)
{
    switch (tensor->dtype) {
    case WEIR_DTYPE_FLOAT:
        return (double)((float *)tensor->data)[i];
    case WEIR_DTYPE_DOUBLE:
        return ((double *)tensor->data)[i];
    case WEIR_DTYPE_INT64:
        return (double)((int64_t *)tensor->data)[i];
    case WEIR_DTYPE_INT32:
        return ((int32_t *)tensor->data)[i];
    case WEIR_DTYPE_BOOL:
    case WEIR_DTYPE_UINT8:
        return ((uint8_t *)tensor->data)[i];
    default:
        return NAN;
    }
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
            worst = fmax(worst, difference(number(got, i), number(expected, i)));
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

int main(int argc, char **argv)
{
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
