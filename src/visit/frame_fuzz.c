/* Any bytes as a stream of frames: whole or in parts, they are the same frames, and the same end. */
#include "visit/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    size_t n_frames, n_bytes;
    weir_status status;
};

static struct result read_all(const uint8_t *data, size_t size, size_t part, bool is_from_task)
{
    char *payload = malloc(WEIR_FRAME_MAX_BYTES);
    struct weir_frames frames = {
        .is_from_task = is_from_task, .payload = payload, .size = WEIR_FRAME_MAX_BYTES};
    struct result result = {0, 0, WEIR_OK};
    while (size > 0 && result.status == WEIR_OK && payload != NULL) {
        size_t n = part < size ? part : size, used = 0;
        bool is_whole = false;
        result.status = weir_frames_take(&frames, data, n, &used, &is_whole);
        if (result.status != WEIR_OK) {
            break;
        }
        if (used == 0 || used > n || (is_whole && frames.len > WEIR_FRAME_MAX_BYTES)) {
            abort();
        }
        result.n_frames += is_whole;
        result.n_bytes += is_whole ? frames.len : 0;
        data += used;
        size -= used;
    }
    free(payload);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    bool is_from_task = (data[0] & 1) != 0;
    size_t part = 1 + (data[0] >> 1);
    struct result whole = read_all(data + 1, size - 1, size, is_from_task);
    struct result parts = read_all(data + 1, size - 1, part, is_from_task);
    if (whole.n_frames != parts.n_frames || whole.n_bytes != parts.n_bytes ||
        whole.status != parts.status) {
        abort();
    }
    return 0;
}
