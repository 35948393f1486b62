#include "find/finder.h"
#include "predict/serving.h"
#include "predict/stage.h"

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct weir_detection *found;
    size_t n;
    (void)options; /* The finder was made by them. */
    WEIR_TRY(finder_find(at->finder, &at->view, &found, &n, err));
    at->has_detector = true;
    stage_objects_reset(at, n);
    for (size_t i = 0; i < n; i++) {
        at->objects[i].has_box = true;
        at->objects[i].detection = found[i];
    }
    return WEIR_OK;
}

const struct stage_ops stage_detect = {.run = run, .is_apart = true};
