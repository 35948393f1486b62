/**
 * Model files by their first bytes: what can be said of one without reading it, where it is sent, taken or loaded.
 */
#ifndef WEIR_BASE_MODEL_FORMAT_H
#define WEIR_BASE_MODEL_FORMAT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum weir_model_format {
    WEIR_MODEL_FORMAT_UNKNOWN,
    WEIR_MODEL_FORMAT_WEIR, /**< safetensors, as Weir trains. */
    WEIR_MODEL_FORMAT_ONNX,
};

/** First bytes that suffice. */
#define WEIR_MODEL_SNIFF_BYTES 16

/** What a file of file_bytes may be that begins with these n bytes. Pure. */
enum weir_model_format weir_model_format_sniff(const void *bytes, size_t n, uint64_t file_bytes);

/** "weir", "onnx", "unknown". */
const char *weir_model_format_text(enum weir_model_format format);

/** Is it one of these? @return INVALID with the sentence that says so of `name`. */
weir_status weir_model_format_check(const void *bytes, size_t n, uint64_t file_bytes,
                                    const char *name, struct weir_error *err) WEIR_MUST_CHECK;

#endif
