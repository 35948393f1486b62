/** What is wrong with cameras: rules of the watch (watch.h), by the view of ion/camera.h. */
#ifndef WEIR_WATCH_CAMERAS_H
#define WEIR_WATCH_CAMERAS_H

#include "watch/watch.h"

/** Add what is wrong with the cameras of an ION: camera_lost and camera_unwell, one each of a camera at most. Those of a pipeline that
 *  is paused, or has no model to serve, are not looked at. Pure. */
void watch_cameras(const struct weir_watch_seen *seen, const struct weir_ion_state *ion,
                   struct weir_arena *arena, struct weir_watch_findings *findings);

#endif
