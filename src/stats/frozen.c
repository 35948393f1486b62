#include "stats/frozen.h"

#include "base/macros.h"

#include <string.h>

bool weir_frozen_add(struct weir_frozen *frozen, uint64_t digest, int64_t time_ms)
{
    uint64_t n_kept = WEIR_MIN(frozen->n, (uint64_t)WEIR_FROZEN_RECENT);
    bool is_duplicate = false;
    for (uint64_t i = 0; i < n_kept; i++) {
        is_duplicate = is_duplicate || frozen->recent[i] == digest;
    }
    bool is_equal = frozen->n > 0 && frozen->recent[(frozen->n - 1) % WEIR_FROZEN_RECENT] == digest;
    if (!is_equal) {
        frozen->n_equal = 0;
        frozen->since_ms = time_ms;
    }
    frozen->n_equal++;
    frozen->recent[frozen->n++ % WEIR_FROZEN_RECENT] = digest;
    return is_duplicate;
}

bool weir_frozen_is(const struct weir_frozen *frozen, int64_t time_ms, int64_t after_ms)
{
    return frozen->n_equal >= WEIR_FROZEN_FRAMES && time_ms - frozen->since_ms >= after_ms;
}

/* Four lanes of multiply and shift, so that products overlap; the end is mixed as MurmurHash3's. */
uint64_t weir_frozen_digest(const void *bytes, size_t len)
{
    static const uint64_t odd[4] = {0x9E3779B97F4A7C15U, 0xC2B2AE3D27D4EB4FU, 0x165667B19E3779F9U,
                                    0xD6E8FEB86659FD93U};
    uint64_t lane[4] = {len, ~(uint64_t)len, len * odd[0], len * odd[1]}, word;
    const unsigned char *from = bytes;
    size_t i_lane = 0;
    while (len > 0) {
        size_t n = WEIR_MIN(len, sizeof word);
        word = 0;
        memcpy(&word, from, n);
        uint64_t mixed = (lane[i_lane] ^ word) * odd[i_lane];
        lane[i_lane] = mixed ^ mixed >> 29;
        i_lane = (i_lane + 1) % 4;
        from += n;
        len -= n;
    }
    uint64_t out = 0;
    for (size_t i = 0; i < 4; i++) {
        out = (out ^ lane[i]) * 0xFF51AFD7ED558CCDU;
        out ^= out >> 33;
    }
    return out;
}
