/**
 * Undecoded: whether what a camera sends becomes pictures. One that sends what no decoder takes is not silent, and yet it shows nothing.
 *
 * A unit that can stand alone and gives no picture is a failure; others may wait for a key frame, which some cameras send once in
 * a minute. Pure; begins as zeros.
 */
#ifndef WEIR_CAMERA_UNDECODED_H
#define WEIR_CAMERA_UNDECODED_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define CAMERA_UNDECODED_KEYS   3
#define CAMERA_UNDECODED_MS     20000  /**< With so many key frames in it. */
#define CAMERA_UNDECODED_MAX_MS 300000 /**< With none. */

struct camera_undecoded {
    int64_t blind_ms; /**< Since when nothing was decoded that was to be; 0: something was. */
    int64_t n_keys;   /**< Key frames since then. */
};

/**
 * A unit that was to be decoded has been put into the decoder.
 * @param now_ms  Monotonic. @param has_decoded  It gave a picture, its own or an earlier one.
 * @return CORRUPT, with a sentence for people: nothing has been decoded for too long.
 */
weir_status camera_undecoded_check(struct camera_undecoded *undecoded, int64_t now_ms, bool is_key,
                                   bool has_decoded, struct weir_error *err) WEIR_MUST_CHECK;

#endif
