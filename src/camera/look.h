/** Look: at each frame that is cut, small and grey: what is wrong with the picture, and does anything move in it. One thread. */
#ifndef WEIR_CAMERA_LOOK_H
#define WEIR_CAMERA_LOOK_H

#include "video/wire.h"
#include "vision/condition.h"

struct camera_look {
    struct weir_condition_watch *watch;
    uint8_t grey[WEIR_CONDITION_WIDTH * WEIR_CONDITION_HEIGHT];
    double motion;    /**< Least share that must change; 0: frames come in any case. */
    int64_t given_us; /**< Time of the last frame that was let through. */
    bool has_given;
};

/** @param motion  0 to 1. @return NOMEM. */
weir_status camera_look_init(struct camera_look *look, double motion,
                             struct weir_error *err) WEIR_MUST_CHECK;
void camera_look_fini(struct camera_look *look);

/**
 * Look at a frame's pixels; notes in the frame what they say.
 * @return Is it let through: enough of it moves, or none has been for a second.
 * Cost: 1 ms for 1080p.
 */
bool camera_look_at(struct camera_look *look, const uint8_t *pixels,
                    struct weir_video_frame *frame);

#endif
