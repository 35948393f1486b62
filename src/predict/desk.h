/**
 * Desk: what people ask of this replica by its server: to see its cameras live, and to look at photos.
 *
 * A thread asks the server what is wanted, with a long poll as long as nobody watches. While somebody does, it sends pictures:
 * of each camera that is watched the newest frame that the engine has looked at, with what was found, at most DESK_A_SECOND
 * of one camera and DESK_ALL_A_SECOND of all of them. The same thread looks at photos (look.h), one question after the other; no
 * picture is sent in the meantime.
 *
 * What it costs frames: while a camera is watched, its frame is copied, twice a second at most, by the engine (0.3 ms of a
 * megapixel); it is made smaller and a JPEG by the desk's thread. No more than DESK_SHOTS_MAX copies wait; with more, the
 * next frame has to do. While nobody watches it costs a look at a number.
 *
 * A server that is away, or refuses, is asked again after 1 s, 2 s … 60 s. Nothing is kept for it: a picture that could not be
 * sent is old.
 */
#ifndef WEIR_PREDICT_DESK_H
#define WEIR_PREDICT_DESK_H

#include "predict/intake.h"
#include "predict/serving.h"
#include "predict/spec.h"
#include "predict/stage.h"

#define DESK_A_SECOND     2
#define DESK_ALL_A_SECOND 8
#define DESK_SHOTS_MAX    4
#define DESK_WATCHED_MAX  256
#define DESK_SIDE_MAX     640                /**< Pixels of a picture's longer side. */
#define DESK_JPEG_BYTES   ((size_t)48 << 10) /**< It has at most so many. */

struct desk;

/** All borrowed, until desk_stop. The spec names a server. */
struct desk_config {
    const struct predict_spec *spec;
    struct intake *intake;
    struct serving_slot *slot;
};

weir_status desk_start(const struct desk_config *config, struct desk **out,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** The engine has looked at a frame, and has its pixels still: if its camera is watched, they are copied. On the engine's thread.
 *  NULL is accepted. */
void desk_show(struct desk *desk, const struct stage_frame *at);

/** End the thread: calls to the server at once, a look when its photo is done. The intake must be closed. NULL is accepted. */
void desk_stop(struct desk *desk);

#endif
