/**
 * Camera watch: what is remembered of each camera by whoever looks at its frames one by one: when one
 * was seen, when one was counted, and whether all are the same picture. Bounded; pure but for its own
 * memory; for one thread.
 */
#ifndef WEIR_PREDICT_CAMERA_WATCH_H
#define WEIR_PREDICT_CAMERA_WATCH_H

#include "predict/source.h"
#include "stats/frozen.h"
#include "stats/monitor.h"

struct watched_camera {
    char name[FRAME_CAMERA_BYTES];
    int64_t seen_ms; /**< By the caller's clock. */
    int64_t
        due_ms; /**< Of the last frame that was counted, by the frames' clock; INT64_MIN: none. */
    struct weir_frozen frozen;
    bool is_frozen;
};

struct camera_watch {
    struct watched_camera items[WEIR_MONITOR_CAMERAS_MAX];
    size_t n;
};

/** The camera, seen at now_ms: new if it was not known. NULL where WEIR_MONITOR_CAMERAS_MAX others
 *  are known: it is not looked at. Valid until the next call of either function. */
struct watched_camera *camera_watch_see(struct camera_watch *watch, const char *name,
                                        int64_t now_ms);

/** Forget those that were not seen for silent_ms or longer: a camera that was taken away froze no
 *  more. @return One of them was frozen. */
bool camera_watch_forget(struct camera_watch *watch, int64_t now_ms, int64_t silent_ms);

#endif
