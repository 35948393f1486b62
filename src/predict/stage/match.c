#include "predict/serving.h"
#include "predict/stage.h"

static struct finding find(const struct serving *serving, const float *embedding)
{
    const struct gallery *gallery = serving->gallery;
    struct match match = match_best(&gallery->templates, embedding);
    const char *person = match.person >= 0 ? gallery->persons[match.person] : NULL;
    const struct thresholds thresholds = gallery_thresholds(gallery);
    return (struct finding){.name = person,
                            .score = match.score,
                            .threshold = decide_threshold(person, &thresholds, &serving->lists)};
}

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    (void)options;
    (void)err;
    for (size_t i = 0; i < at->n_objects; i++) {
        struct stage_object *object = &at->objects[i];
        if (object->embedding != NULL) {
            object->finding = find(at->serving, object->embedding);
        }
    }
    return WEIR_OK;
}

const struct stage_ops stage_match = {.run = run};
