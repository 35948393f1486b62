#include "predict/serving.h"
#include "predict/stage.h"

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    (void)options;
    WEIR_TRY(model_put(at->serving->model, 0, &at->image, &at->decision->brightness, err));
    WEIR_TRY(model_put(at->serving->model, 0, &at->image, &at->decision->brightness, err));
    return model_run(at->serving->model, 1, &at->embedding, err);
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
