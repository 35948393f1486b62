#include "predict/serving.h"
#include "predict/stage.h"

#include <string.h>

/* Those that are to be embedded, from number `from` on; at most as many as the model takes at once. */
static size_t put_some(struct stage_frame *at, size_t from, struct stage_object **out,
                       size_t *out_next, weir_status *out_status, struct weir_error *err)
{
    size_t n = 0, i = from;
    struct model *model = at->serving->model;
    for (; i < at->n_objects && n < model->batch && *out_status == WEIR_OK; i++) {
        if (at->objects[i].refused == NULL) {
            out[n] = &at->objects[i];
            *out_status = stage_object_put(at, out[n], n, err);
            n++;
        }
    }
    *out_next = i;
    return n;
}

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    struct model *model = at->serving->model;
    struct stage_object **some = WEIR_ARENA_ARRAY(&at->arena, model->batch, struct stage_object *);
    float *vectors = WEIR_ARENA_ARRAY(&at->arena, at->n_objects * model->dim + 1, float);
    const float *given;
    (void)options;
    for (size_t next = 0; next < at->n_objects;) {
        weir_status status = WEIR_OK;
        size_t n = put_some(at, next, some, &next, &status, err);
        WEIR_TRY(status);
        if (n == 0) {
            break;
        }
        WEIR_TRY(model_run(model, n, &given, err));
        memcpy(vectors, given, n * model->dim * sizeof *vectors);
        for (size_t i = 0; i < n; i++, vectors += model->dim) {
            some[i]->embedding = vectors;
        }
    }
    return WEIR_OK;
}

static weir_status check(const void *options, const struct model *model, struct weir_error *err)
{
    (void)options;
    if (model->gives == WEIR_STAGE_MODEL_EMBEDS) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "is a classifier: a gallery needs a model that gives embeddings (loss: "
                          "margin); without a gallery the pipeline classifies");
}

const struct stage_ops stage_embed = {.run = run, .check = check};
