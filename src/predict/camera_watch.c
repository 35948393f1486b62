#include "predict/camera_watch.h"

#include <stdio.h>
#include <string.h>

struct watched_camera *camera_watch_see(struct camera_watch *watch, const char *name,
                                        int64_t now_ms)
{
    size_t i = 0;
    while (i < watch->n && strcmp(watch->items[i].name, name) != 0) {
        i++;
    }
    if (i == WEIR_MONITOR_CAMERAS_MAX) {
        return NULL;
    }
    if (i == watch->n) {
        watch->items[i] = (struct watched_camera){.due_ms = INT64_MIN};
        (void)snprintf(watch->items[i].name, sizeof watch->items[i].name, "%s", name);
        watch->n++;
    }
    watch->items[i].seen_ms = now_ms;
    return &watch->items[i];
}

bool camera_watch_forget(struct camera_watch *watch, int64_t now_ms, int64_t silent_ms)
{
    bool was_frozen = false;
    for (size_t i = 0; i < watch->n;) {
        if (now_ms - watch->items[i].seen_ms < silent_ms) {
            i++;
            continue;
        }
        was_frozen = was_frozen || watch->items[i].is_frozen;
        watch->items[i] = watch->items[--watch->n];
    }
    return was_frozen;
}
