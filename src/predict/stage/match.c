#include "predict/serving.h"
#include "predict/stage.h"

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct serving *serving = at->serving;
    const struct gallery *gallery = serving->gallery;
    struct match match = match_best(&gallery->templates, at->embedding);
    const char *person = match.person >= 0 ? gallery->persons[match.person] : NULL;
    const struct thresholds thresholds = gallery_thresholds(gallery);
    (void)options;
    (void)err;
    at->finding =
        (struct finding){.name = person,
                         .score = match.score,
                         .threshold = decide_threshold(person, &thresholds, &serving->lists)};
    return WEIR_OK;
}

const struct stage_ops stage_match = {.run = run};
