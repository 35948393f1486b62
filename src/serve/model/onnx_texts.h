/** Texts that an ONNX file carries for Weir: metadata_props whose keys begin with "weir.". */
#ifndef WEIR_SERVE_ONNX_TEXTS_H
#define WEIR_SERVE_ONNX_TEXTS_H

#include "base/arena.h"
#include "base/status.h"

#define ONNX_TEXTS_MAX       8
#define ONNX_TEXTS_MAX_BYTES ((size_t)32 << 20)

struct onnx_texts {
    struct {
        const char *key, *text;
    } texts[ONNX_TEXTS_MAX];

    size_t n;
};

/** Reads them into the arena; what is no text, too long or too many is passed over.
 *  CORRUPT: the file is no protobuf. */
weir_status onnx_texts_read(const void *bytes, size_t n, struct weir_arena *arena,
                            struct onnx_texts *out, struct weir_error *err) WEIR_MUST_CHECK;

/** The text of a key, or NULL. */
const char *onnx_texts_find(const struct onnx_texts *texts, const char *key);

#endif
