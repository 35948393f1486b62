#include "predict/stage.h"

#include "endpoint/stage/classify.h"
#include "predict/kinds.h"

#include <math.h>
#include <stdlib.h>

struct stages {
    struct weir_arena arena; /**< Of the options. */
    struct weir_stage_chain chain;
};

static weir_status check_model(const struct weir_stage_chain *chain, const struct model *model,
                               struct weir_error *err)
{
    for (size_t i = 0; i < chain->n; i++) {
        const struct stage_ops *ops = predict_ops_of(chain->items[i].kind);
        weir_status status =
            ops->check != NULL ? ops->check(chain->items[i].options, model, err) : WEIR_OK;
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "model %s version %lld ", model->name,
                                     (long long)model->version);
        }
    }
    return WEIR_OK;
}

weir_status stages_create(const json_t *list, const struct model *model, struct stages **out,
                          struct weir_error *err)
{
    struct stages *stages = weir_xalloc(sizeof *stages);
    weir_arena_init(&stages->arena, 0);
    weir_status status =
        weir_stages_read(list, true, "deployment: $.stages", &stages->arena, &stages->chain, err);
    if (status == WEIR_OK) {
        status = check_model(&stages->chain, model, err);
    }
    if (status != WEIR_OK) {
        stages_destroy(stages);
        return status;
    }
    *out = stages;
    return WEIR_OK;
}

void stages_destroy(struct stages *stages)
{
    if (stages == NULL) {
        return;
    }
    weir_arena_fini(&stages->arena);
    free(stages);
}

weir_status stages_run(const struct stages *stages, struct stage_frame *frame,
                       struct weir_error *err)
{
    for (size_t i = 0; i < stages->chain.n; i++) {
        const struct weir_configured *stage = &stages->chain.items[i];
        const struct stage_ops *ops = predict_ops_of(stage->kind);
        WEIR_TRY(ops->run(stage->options, frame, err));
    }
    return WEIR_OK;
}

double stages_threshold(const struct stages *stages)
{
    for (size_t i = 0; i < stages->chain.n; i++) {
        if (stages->chain.items[i].kind == &weir_stage_classify_kind) {
            return ((const struct weir_stage_classify *)stages->chain.items[i].options)->threshold;
        }
    }
    return NAN;
}
