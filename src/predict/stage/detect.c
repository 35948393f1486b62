#include "endpoint/stage/detect.h"

#include "predict/finder.h"
#include "predict/serving.h"
#include "predict/stage.h"

#include <math.h>

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct weir_detection *found;
    size_t n;
    (void)options; /* The finder was made by them. */
    WEIR_TRY(finder_find(at->serving->finder, &at->view, &found, &n, err));
    at->has_detector = true;
    stage_objects_reset(at, n);
    for (size_t i = 0; i < n; i++) {
        at->objects[i].has_box = true;
        at->objects[i].detection = found[i];
    }
    return WEIR_OK;
}

const struct stage_ops stage_detect = {.run = run};

static float or_usual(double value)
{
    return value > 0 ? (float)value : NAN;
}

bool finder_wish_of(const struct weir_stage_chain *chain, struct finder_wish *out)
{
    const struct weir_stage_detect *detect = weir_stages_options(chain, &weir_stage_detect_kind);
    if (detect == NULL) {
        return false;
    }
    *out = (struct finder_wish){.model = detect->model,
                                .classes = detect->classes,
                                .detector = {.kind = detect->as,
                                             .of_kind = detect->options,
                                             .threshold = or_usual(detect->threshold),
                                             .overlap = or_usual(detect->overlap),
                                             .width = (int32_t)detect->width,
                                             .height = (int32_t)detect->height,
                                             .min_size = (int32_t)detect->min_face,
                                             .tiles_max = (int32_t)detect->tiles}};
    return true;
}
