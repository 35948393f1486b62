/*
 * onnx-bench MODEL BATCH THREADS [INPUT OUTPUT]: runs a model of one input as often as lines on stdin
 * say, and answers each line with the milliseconds of each run. With INPUT and OUTPUT, files of f32,
 * it first runs once on those numbers. "profile" instead of a number: times by node, to stderr.
 * bench/onnx_against_onnxruntime.py drives it.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "onnx/onnx.h"

#include "onnx/fast/fast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)2 << 30)

struct bench {
    struct weir_onnx *onnx;
    struct weir_tensor *in;
    struct weir_error err;
};

static weir_status load(struct bench *bench, const char *path, int64_t batch, int32_t n_threads)
{
    struct weir_arena arena;
    char *bytes;
    size_t n, n_in;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    const struct weir_onnx_limits limits = {.n_threads = n_threads};
    weir_arena_init(&arena, FILE_MAX);
    weir_status status = weir_file_read(path, FILE_MAX, &arena, &bytes, &n, &bench->err);
    if (status == WEIR_OK) {
        status = weir_onnx_load(bytes, n, &limits, &bench->onnx, &bench->err);
    }
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    const struct weir_onnx_port *port = weir_onnx_inputs(bench->onnx, &n_in);
    for (int32_t i = 0; i < port->rank; i++) {
        dims[i] = port->dims[i] < 0 ? batch : port->dims[i];
    }
    WEIR_TRY(
        weir_tensor_create(port->dtype, WEIR_MAX(port->rank, 0), dims, &bench->in, &bench->err));
    for (size_t i = 0; i < bench->in->n_elems && port->dtype == WEIR_DTYPE_FLOAT; i++) {
        ((float *)bench->in->data)[i] = (float)(i * 7919 % 1000) / 500 - 1;
    }
    return WEIR_OK;
}

static weir_status run(struct bench *bench, const char *output)
{
    struct weir_tensor *out[64] = {NULL};
    size_t n_out;
    (void)weir_onnx_outputs(bench->onnx, &n_out);
    WEIR_TRY(n_out <= WEIR_ARRAY_LEN(out) ? WEIR_OK : WEIR_ERR_LIMIT);
    WEIR_TRY(weir_onnx_run(bench->onnx, &bench->in, out, &bench->err));
    if (output != NULL) {
        FILE *file = fopen(output, "wb");
        if (file != NULL) {
            (void)fwrite(out[0]->data, weir_dtype_bytes(out[0]->dtype), out[0]->n_elems, file);
            (void)fclose(file);
        }
    }
    for (size_t i = 0; i < n_out; i++) {
        weir_tensor_release(out[i]);
    }
    return WEIR_OK;
}

static weir_status run_on_file(struct bench *bench, const char *input, const char *output)
{
    FILE *file = fopen(input, "rb");
    size_t n = file != NULL ? fread(bench->in->data, weir_dtype_bytes(bench->in->dtype),
                                    bench->in->n_elems, file)
                            : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    return n == bench->in->n_elems
               ? run(bench, output)
               : weir_error_set(&bench->err, WEIR_ERR_INVALID, "%s is too short", input);
}

static weir_status answer(struct bench *bench)
{
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strncmp(line, "profile", 7) == 0) {
            fast_profile(bench->onnx->fast);
            for (int i = 0; i < 10; i++) {
                WEIR_TRY(run(bench, NULL));
            }
            fast_profile_print(bench->onnx->fast, stderr);
            continue;
        }
        for (long left = strtol(line, NULL, 10); left > 0; left--) {
            uint64_t begin = weir_mono_ns();
            WEIR_TRY(run(bench, NULL));
            (void)printf("%.4f ", (double)(weir_mono_ns() - begin) / 1e6);
        }
        (void)printf("\n");
        (void)fflush(stdout);
    }
    return WEIR_OK;
}

int main(int argc, char **argv)
{
    struct bench bench = {.onnx = NULL};
    if (argc != 4 && argc != 6) {
        (void)fprintf(stderr, "onnx-bench MODEL BATCH THREADS [INPUT OUTPUT]\n");
        return 2;
    }
    weir_status status =
        load(&bench, argv[1], strtol(argv[2], NULL, 10), (int32_t)strtol(argv[3], NULL, 10));
    if (status == WEIR_OK && argc == 6) {
        status = run_on_file(&bench, argv[4], argv[5]);
    }
    if (status == WEIR_OK) {
        status = run(&bench, NULL);
    }
    if (status == WEIR_OK) {
        (void)printf("ready, %zu steps interpreted\n", fast_n_interpreted(bench.onnx->fast));
        (void)fflush(stdout);
        status = answer(&bench);
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "onnx-bench: %s\n", bench.err.message);
    }
    weir_tensor_release(bench.in);
    weir_onnx_free(bench.onnx);
    return status == WEIR_OK ? 0 : 1;
}
