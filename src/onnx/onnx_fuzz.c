/* Any bytes: the reader refuses them, or their rows are looked at, the model runs on zeros, planned, or a run is refused;
 * so it does with another shape of an input that is called x. */
#include "onnx/onnx.h"

#include <stdlib.h>

#define INPUTS_MAX 16
#define RUNS       2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(struct weir_onnx *onnx)
{
    struct weir_tensor *in[INPUTS_MAX] = {NULL}, *out[INPUTS_MAX] = {NULL};
    struct weir_error err;
    size_t n_in, n_out;
    const struct weir_onnx_port *ports = weir_onnx_inputs(onnx, &n_in);
    (void)weir_onnx_outputs(onnx, &n_out);
    weir_status status = n_in <= INPUTS_MAX && n_out <= INPUTS_MAX ? WEIR_OK : WEIR_ERR_LIMIT;
    for (size_t i = 0; status == WEIR_OK && i < n_in; i++) {
        int64_t dims[WEIR_TENSOR_RANK_MAX];
        for (int32_t k = 0; k < ports[i].rank; k++) {
            dims[k] = ports[i].dims[k] < 0 ? 2 : WEIR_MIN(ports[i].dims[k], (int64_t)64);
        }
        status = weir_tensor_create(ports[i].dtype, WEIR_MAX(ports[i].rank, 0), dims, &in[i], &err);
    }
    for (int k = 0; status == WEIR_OK && k < RUNS; k++) { /* the plan is made, then repeated */
        status = weir_onnx_run(onnx, in, out, &err);
        for (size_t i = 0; status == WEIR_OK && i < n_out; i++) {
            weir_tensor_release(out[i]);
        }
    }
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        weir_tensor_release(in[i]);
    }
}

static void load_and_run(const void *data, size_t size)
{
    const struct weir_onnx_limits limits = {.run_bytes = (size_t)1 << 20, .n_threads = 1};
    struct weir_onnx *onnx = NULL;
    struct weir_error err;
    if (weir_onnx_load(data, size, &limits, &onnx, &err) == WEIR_OK) {
        run(onnx);
        weir_onnx_free(onnx);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct weir_onnx_port said = {.name = "x", .rank = 4, .dims = {-1, 3, -1, 32}};
    char why[WEIR_ONNX_ROWS_BYTES];
    struct weir_buf other;
    struct weir_error err;
    (void)weir_onnx_rows_of_file(data, size, why);
    load_and_run(data, size);
    if (weir_onnx_reshape(data, size, &said, 1, &other, &err) == WEIR_OK) {
        load_and_run(other.data, other.len);
        weir_buf_fini(&other);
    }
    return 0;
}
