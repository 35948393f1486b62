/* A request's JSON as tensors of each class of types, and gone over: neither may read beyond it. */
#include "serve/protocol/tensor_json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(enum weir_dtype dtype, const char *text, size_t len)
{
    struct weir_arena arena;
    struct tensor_fill fill;
    struct weir_json_scan scan;
    struct weir_error err;
    struct weir_tensor *tensor;
    weir_arena_init(&arena, 0);
    weir_json_scan_init(&scan, text, len, &err);
    tensor_fill_init(&fill, dtype, &arena);
    if (tensor_fill_value(&fill, &scan) == WEIR_OK && weir_json_scan_end(&scan) == WEIR_OK &&
        tensor_fill_take(&fill, &tensor, &err) == WEIR_OK) {
        struct weir_buf buf;
        weir_buf_init(&buf, 1 << 24);
        tensor_json_put_nested(&buf, tensor);
        weir_buf_fini(&buf);
        weir_tensor_release(tensor);
    }
    tensor_fill_fini(&fill);
    weir_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_DOUBLE,
                                             WEIR_DTYPE_INT8,  WEIR_DTYPE_UINT64,
                                             WEIR_DTYPE_BOOL,  WEIR_DTYPE_STRING};
    struct weir_json_scan scan;
    struct weir_error err;
    char *text = malloc(size + 1); /* of just this size, so that a sanitizer sees a byte too far */
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(dtypes); i++) {
        read_as(dtypes[i], text, size);
    }
    weir_json_scan_init(&scan, text, size, &err);
    if (weir_json_scan_skip(&scan, NULL) == WEIR_OK) {
        (void)weir_json_scan_end(&scan);
    }
    free(text);
    return 0;
}
