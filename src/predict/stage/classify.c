#include "endpoint/stage/classify.h"

#include "predict/serving.h"
#include "predict/stage.h"

#include <math.h>
#include <string.h>

/* The `n` likeliest, likeliest first; the first of equals wins. n is small. */
static void find_top(const float *probabilities, size_t n_labels, size_t *out, size_t n)
{
    size_t n_found = 0;
    for (size_t i = 0; i < n_labels; i++) {
        size_t at = n_found;
        while (at > 0 && probabilities[out[at - 1]] < probabilities[i]) {
            at--;
        }
        if (at == n) {
            continue;
        }
        n_found = WEIR_MIN(n_found + 1, n);
        memmove(out + at + 1, out + at, (n_found - at - 1) * sizeof *out);
        out[at] = i;
    }
}

/* The texts are the model's. */
static const struct decision_label *labels_of(const struct model *model, const float *probabilities,
                                              const size_t *top, size_t n, struct weir_arena *arena)
{
    struct decision_label *labels = WEIR_ARENA_ARRAY(arena, n, struct decision_label);
    for (size_t i = 0; i < n; i++) {
        labels[i] = (struct decision_label){model->labels[top[i]], (double)probabilities[top[i]]};
    }
    return labels;
}

static weir_status classify_one(const struct weir_stage_classify *classify, struct stage_frame *at,
                                struct stage_object *object, struct weir_error *err)
{
    struct model *model = at->serving->model;
    const float *probabilities;
    size_t top[WEIR_STAGE_CLASSIFY_TOP_MAX], n = WEIR_MIN((size_t)classify->top, model->dim);
    WEIR_TRY(stage_object_put(at, object, 0, err));
    WEIR_TRY(model_run(model, 1, &probabilities, err));
    find_top(probabilities, model->dim, top, n);
    if (!isfinite(probabilities[top[0]])) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "the model gives no finite probabilities of this picture");
    }
    const char *label = model->labels[top[0]];
    object->finding = (struct finding){.is_label = true,
                                       .is_rejected = classify->reject != NULL &&
                                                      strcmp(classify->reject, label) == 0,
                                       .name = label,
                                       .score = (double)probabilities[top[0]],
                                       .threshold = classify->threshold};
    if (classify->top > 1) {
        object->labels = labels_of(model, probabilities, top, n, &at->arena);
        object->n_labels = n;
    }
    return WEIR_OK;
}

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    for (size_t i = 0; i < at->n_objects; i++) {
        if (at->objects[i].refused == NULL) {
            WEIR_TRY(classify_one(options, at, &at->objects[i], err));
        }
    }
    return WEIR_OK;
}

static bool has_label(const struct model *model, const char *label)
{
    for (size_t i = 0; i < model->dim; i++) {
        if (strcmp(model->labels[i], label) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status check(const void *options, const struct model *model, struct weir_error *err)
{
    const struct weir_stage_classify *classify = options;
    if (model->gives != WEIR_STAGE_MODEL_CLASSIFIES) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "gives embeddings: stage \"classify\" needs a classifier; a pipeline "
                              "that recognises people needs a gallery");
    }
    if (classify->reject != NULL && !has_label(model, classify->reject)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "has no label \"%.100s\", which stage \"classify\" is to reject",
                              classify->reject);
    }
    return WEIR_OK;
}

const struct stage_ops stage_classify = {.run = run, .check = check};
