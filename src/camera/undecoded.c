#include "undecoded.h"

weir_status camera_undecoded_check(struct camera_undecoded *undecoded, int64_t now_ms, bool is_key,
                                   bool has_decoded, struct weir_error *err)
{
    if (has_decoded) {
        *undecoded = (struct camera_undecoded){0};
        return WEIR_OK;
    }
    undecoded->blind_ms = undecoded->blind_ms != 0 ? undecoded->blind_ms : now_ms;
    undecoded->n_keys += is_key;
    int64_t passed_ms = now_ms - undecoded->blind_ms;
    int64_t most_ms =
        undecoded->n_keys >= CAMERA_UNDECODED_KEYS ? CAMERA_UNDECODED_MS : CAMERA_UNDECODED_MAX_MS;
    return passed_ms < most_ms
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                "none of the pictures that it has sent for %lld s can be decoded",
                                (long long)passed_ms / 1000);
}
