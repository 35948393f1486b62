#include "base/model_format.h"

#include <stdbool.h>
#include <string.h>

/* safetensors: the length of the header in 8 bytes, then JSON. A protobuf message of ONNX begins
 * with a field of ModelProto, of which the first ones are below 16. */
enum weir_model_format weir_model_format_sniff(const void *bytes, size_t n, uint64_t file_bytes)
{
    const uint8_t *at = bytes;
    if (n >= 9 && at[8] == '{') {
        uint64_t header = 0;
        for (int i = 7; i >= 0; i--) {
            header = header << 8 | at[i];
        }
        if (header >= 2 && file_bytes >= 8 && header <= file_bytes - 8) {
            return WEIR_MODEL_FORMAT_WEIR;
        }
    }
    if (n < 4) {
        return WEIR_MODEL_FORMAT_UNKNOWN;
    }
    static const uint8_t firsts[] = {
        1 << 3, 2 << 3 | 2, 3 << 3 | 2, 4 << 3 | 2, 6 << 3 | 2, 7 << 3 | 2, 8 << 3 | 2,
    };
    bool is_version = at[0] == firsts[0] && at[1] >= 1 && at[1] < 100; /* ir_version */
    bool is_other = memchr(firsts + 1, at[0], sizeof firsts - 1) != NULL;
    return is_version || is_other ? WEIR_MODEL_FORMAT_ONNX : WEIR_MODEL_FORMAT_UNKNOWN;
}

const char *weir_model_format_text(enum weir_model_format format)
{
    static const char *const texts[] = {"unknown", "weir", "onnx"};
    return texts[format];
}

weir_status weir_model_format_check(const void *bytes, size_t n, uint64_t file_bytes,
                                    const char *name, struct weir_error *err)
{
    if (weir_model_format_sniff(bytes, n, file_bytes) != WEIR_MODEL_FORMAT_UNKNOWN) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "%.300s: neither a model that Weir trained (safetensors) nor ONNX", name);
}
