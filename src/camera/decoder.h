/** Decoder: units into pictures, by libavcodec in one thread. Damaged pictures are dropped, and with them all up to the next key frame. */
#ifndef WEIR_CAMERA_DECODER_H
#define WEIR_CAMERA_DECODER_H

#include "cut.h"
#include "input.h"

struct camera_decoder;

/** What a unit passes on to its picture. */
struct camera_origin {
    int64_t seq, media_us, wall_ms;
    uint64_t received_ns;
    uint32_t epoch;
};

/** @return UNSUPPORTED: the libraries know no such codec; NOMEM. */
weir_status camera_decoder_open(const struct camera_stream *stream, int64_t max_pixels,
                                bool key_frames, struct camera_decoder **out,
                                struct weir_error *err) WEIR_MUST_CHECK;
void camera_decoder_close(struct camera_decoder *decoder);

/**
 * Put a unit in; NULL: there is none behind it. Then take until END.
 * @param is_wanted  Else the picture may be left out where no other needs it.
 * @return OK, also for a damaged one, which is counted; LIMIT: the frames are larger than max_pixels.
 */
weir_status camera_decoder_put(struct camera_decoder *decoder, const struct camera_unit *unit,
                               int64_t seq, bool is_wanted, struct weir_error *err) WEIR_MUST_CHECK;

/** The next picture, borrowed until the next call. @return END: there is none yet. */
weir_status camera_decoder_take(struct camera_decoder *decoder, struct camera_picture *out,
                                struct camera_origin *out_origin) WEIR_MUST_CHECK;

/** What comes next has nothing to do with what came. */
void camera_decoder_reset(struct camera_decoder *decoder);

uint64_t camera_decoder_n_damaged(const struct camera_decoder *decoder);

#endif
