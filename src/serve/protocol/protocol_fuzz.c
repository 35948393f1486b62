/* A request's body, read by the protocol that the first byte names: it never reads beyond its bytes,
 * and what it accepts can be written. */
#include "serve/protocol/protocol_private.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const signatures[] = {
    "{\"format\":\"onnx\",\"executor\":\"onnx\",\"why\":\"\",\"inputs\":["
    "{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[-1,2]},"
    "{\"name\":\"b\",\"datatype\":\"INT64\",\"shape\":[-1,1]},"
    "{\"name\":\"s\",\"datatype\":\"BYTES\",\"shape\":[-1]}],\"outputs\":["
    "{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,2]}],"
    "\"is_batched\":true,\"picture\":null,\"output_kind\":\"tensor\",\"labels\":null}",
    "{\"format\":\"onnx\",\"executor\":\"onnx\",\"why\":\"\",\"inputs\":["
    "{\"name\":\"x\",\"datatype\":\"UINT8\",\"shape\":[-1,-1]}],\"outputs\":["
    "{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,2]}],"
    "\"is_batched\":true,\"picture\":null,\"output_kind\":\"tensor\",\"labels\":null}"};

static char *const paths[][4] = {{"v2", "models", "m", "infer"},
                                 {"v1", "models", "m:predict", NULL},
                                 {"models", "m", "invocations", NULL}};

static void write_answer(const struct protocol_route *route, struct infer *infer)
{
    struct weir_tensor *out[1];
    struct protocol_answer answer;
    int64_t dims[] = {infer->n_rows, 2};
    if (infer->n_rows > 4096 ||
        weir_tensor_create(WEIR_DTYPE_FLOAT, 2, dims, out, NULL) != WEIR_OK) {
        return;
    }
    infer->out = out;
    protocol_answer_init(&answer);
    route->write(infer, &answer);
    protocol_answer_fini(&answer);
    weir_tensor_release(out[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_signature signature;
    struct weir_error err;
    const struct protocol *protocol;
    const struct protocol_route *route;
    if (size < 2) {
        return 0;
    }
    size_t i_path = data[0] % 3, n_segments = paths[i_path][3] != NULL ? 4 : 3;
    const char *text = signatures[data[0] / 3 % 2];
    char *body = malloc(size - 1); /* of just this size, so that a sanitizer sees a byte too far */
    if (body == NULL) {
        return 0;
    }
    memcpy(body, data + 2, size - 2);
    weir_arena_init(&arena, 0);
    struct protocol_request request = {.json_bytes = data[1] < 128 ? -1 : data[1] - 128,
                                       .body = body,
                                       .body_len = size - 2,
                                       .arena = &arena};
    if (weir_signature_parse(text, strlen(text), "test", &arena, &signature, &err) == WEIR_OK &&
        protocol_find("POST", paths[i_path], n_segments, &request, &protocol, &route, &err) ==
            WEIR_OK) {
        struct infer infer = {.model = "m", .version = 1, .signature = &signature, .arena = &arena};
        if (route->read(&request, &infer, &err) == WEIR_OK) {
            write_answer(route, &infer);
        }
        infer_fini(&infer);
    }
    weir_arena_fini(&arena);
    free(body);
    return 0;
}
