/**
 * Camera source: what the kinds rtsp, mjpeg, v4l2 and video have in common, which is all of it: what differs is in weir-camera
 * (camera/input.h) and in what it may reach.
 *
 * A camera has a thread and a process of its own (video/camera.h). A frame's key is CAMERA/CONNECTION.EPOCH/SEQ: a connection is
 * named by the time of its begin, so no frame of a later one has the same. The status has a member "cameras" beside what every source
 * has: by name {"state", "connected", "since", "lost_since", "error", "cause", "codec", "size": [w, h], "fps", "period_ms", "age_ms", "frames",
 * "dropped", "dropped_undecided" (while a passage was not decided), "taken_age_ms" (how old its last frame was when the engine took it;
 * -1: it took none), "damaged", "lost", "skipped", "connections", "health", "health_since", "clock_since", "clock_off_ms"}, of which each
 * takes at most CAMERA_STATUS_BYTES as JSON, so that the report of WEIR_CAMERAS_MAX fits its place (ion/replica.h). "lost_since": no frame
 * has come since then, however often it was tried; "cause": the name of the status that "error" has; "health_since", "clock_since": since
 * when its pictures, its clock, are not well. The source is connected while all of its cameras are.
 */
#ifndef WEIR_PREDICT_CAMERA_SOURCE_H
#define WEIR_PREDICT_CAMERA_SOURCE_H

#include "predict/source.h"

#define CAMERA_STATUS_BYTES 2000 /**< With its name. */

weir_status camera_source_start(const struct source_config *config, struct source **out,
                                struct weir_error *err) WEIR_MUST_CHECK;
/** A live camera has one frame at work, others any number. */
size_t camera_source_at_once(const struct predict_spec *spec);
void camera_source_close(struct source *source);
void camera_source_stop(struct source *source);
size_t camera_source_ignored(struct source *source, char *why);
json_t *camera_source_status(struct source *source);

#define CAMERA_SOURCE_OPS                                                                          \
    {                                                                                              \
        .limits = {.max_queued = (size_t)FRAME_UNDECIDED_QUEUED * 64,                              \
                   .max_in_hand = (size_t)FRAME_UNDECIDED_QUEUED * 64,                             \
                   .max_bytes = (size_t)64 << 20},                                                 \
        .start = camera_source_start, .at_once = camera_source_at_once,                            \
        .close = camera_source_close, .stop = camera_source_stop,                                  \
        .ignored = camera_source_ignored, .status = camera_source_status                           \
    }

#endif
