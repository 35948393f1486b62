/* Any bytes as a message, and as a replica's answer: read or refused. */
#include "gateway/oip.h"

#include <stdbool.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_buf out;
    struct oip_infer infer;
    struct oip_name name;
    struct weir_error err;
    struct weir_protobuf message = {data, data + size};
    weir_arena_init(&arena, 0);
    weir_buf_init(&out, 1 << 20);
    if (oip_read_infer(message, 1 << 16, &arena, &infer, &err) == WEIR_OK) {
        size_t n = 0;
        for (size_t i = 0; i < infer.n_pieces; i++) {
            n += infer.pieces[i].iov_len;
        }
        must(n == infer.body_bytes && infer.pieces[0].iov_len == infer.json_bytes);
    }
    (void)(oip_read_name(message, &arena, &name, &err) == WEIR_OK);
    if (size > 0) {
        (void)(oip_write_infer((const char *)data + 1, size - 1, data[0], &out, &err) == WEIR_OK);
        (void)(oip_write_metadata((const char *)data + 1, size - 1, &out, &err) == WEIR_OK);
        (void)(oip_write_config((const char *)data + 1, size - 1, &out, &err) == WEIR_OK);
        (void)(oip_write_statistics((const char *)data + 1, size - 1, &out, &err) == WEIR_OK);
    }
    weir_buf_fini(&out);
    weir_arena_fini(&arena);
    return 0;
}
