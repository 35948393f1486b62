#include "onnx_texts.h"

#include "base/json.h"
#include "base/protobuf.h"

#include <string.h>

#define PREFIX "weir."

enum { MODEL_PROPERTY = 14, PROPERTY_KEY = 1, PROPERTY_VALUE = 2 };

static char *copy(const struct weir_protobuf *bytes, struct weir_arena *arena)
{
    size_t len = weir_protobuf_len(bytes);
    char *text = weir_arena_memdup(arena, bytes->at, len);
    return strlen(text) == len && weir_text_is_utf8(text) ? text : NULL;
}

static weir_status read_property(struct weir_protobuf bytes, struct weir_arena *arena,
                                 struct onnx_texts *out, struct weir_error *err)
{
    struct weir_protobuf key = {0}, value = {0};
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.type == WEIR_PROTOBUF_BYTES && field.number == PROPERTY_KEY) {
            key = field.bytes;
        } else if (field.type == WEIR_PROTOBUF_BYTES && field.number == PROPERTY_VALUE) {
            value = field.bytes;
        }
    }
    bool is_ours = weir_protobuf_len(&key) > strlen(PREFIX) && weir_protobuf_len(&key) < 64 &&
                   memcmp(key.at, PREFIX, strlen(PREFIX)) == 0;
    size_t len = weir_protobuf_len(&value);
    if (status == WEIR_ERR_END && is_ours && out->n < ONNX_TEXTS_MAX &&
        arena->used_bytes + len <= ONNX_TEXTS_MAX_BYTES) {
        out->texts[out->n].key = copy(&key, arena);
        out->texts[out->n].text = copy(&value, arena);
        out->n += out->texts[out->n].key != NULL && out->texts[out->n].text != NULL;
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

weir_status onnx_texts_read(const void *bytes, size_t n, struct weir_arena *arena,
                            struct onnx_texts *out, struct weir_error *err)
{
    struct weir_protobuf whole = {.at = bytes, .end = (const uint8_t *)bytes + n};
    struct weir_protobuf_field field;
    weir_status status;
    *out = (struct onnx_texts){0};
    while ((status = weir_protobuf_next(&whole, &field, err)) == WEIR_OK) {
        if (field.number == MODEL_PROPERTY && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_property(field.bytes, arena, out, err));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

const char *onnx_texts_find(const struct onnx_texts *texts, const char *key)
{
    for (size_t i = 0; i < texts->n; i++) {
        if (strcmp(texts->texts[i].key, key) == 0) {
            return texts->texts[i].text;
        }
    }
    return NULL;
}
