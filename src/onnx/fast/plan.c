#include "plan.h"

#include "alarm.h"
#include "batch.h"
#include "op.h"
#include "plan_private.h"

#include <stdlib.h>
#include <string.h>

/* Values that the model begins a run with. */
static void place_givens(struct fast_plan *plan)
{
    const struct weir_onnx *onnx = plan->fast->onnx;
    for (size_t i = 0; i < onnx->n_values; i++) {
        if (onnx->is_constant[i]) {
            plan->values[i].place = FAST_CONSTANT;
        }
    }
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        const struct weir_tensor *tensor = onnx->values[onnx->input_values[i]];
        plan->values[onnx->input_values[i]].place = FAST_RUNTIME;
        plan->inputs[i].dtype = tensor->dtype;
        plan->inputs[i].rank = tensor->rank;
        memcpy(plan->inputs[i].dims, tensor->dims, sizeof tensor->dims);
    }
}

static bool is_dead(const struct fast_plan *plan, int32_t value)
{
    return value >= 0 && plan->values[value].place != FAST_ABSENT && fast_is_dying(plan, value);
}

static weir_status let_go(struct fast_plan *plan, int32_t value, struct weir_error *err)
{
    bool is_input = plan->fast->chains.producer[value] < 0;
    fast_forget(plan, value);
    if (plan->values[value].place == FAST_RUNTIME && !is_input &&
        plan->fast->onnx->values[value] != NULL) {
        WEIR_TRY(fast_add_drop(plan, value, err));
    }
    return WEIR_OK;
}

static weir_status drop_dead(struct fast_plan *plan, const struct fast_chain *chain,
                             struct weir_error *err)
{
    for (size_t i = 0; i < chain->n; i++) {
        const struct onnx_step *step = &plan->fast->onnx->steps[chain->steps[i]];
        for (size_t k = 0; k < step->node->n_in; k++) {
            if (is_dead(plan, step->in[k])) {
                WEIR_TRY(let_go(plan, step->in[k], err));
            }
        }
        for (size_t k = 0; k < step->node->n_out; k++) {
            if (is_dead(plan, step->out[k])) {
                WEIR_TRY(let_go(plan, step->out[k], err));
            }
        }
    }
    return WEIR_OK;
}

/* Has the step been computed for all runs of this shape? */
static bool is_known(const struct fast_plan *plan, const struct onnx_step *step)
{
    return step->node->n_out > 0 && fast_is_constant(plan, step->out[0]);
}

static weir_status make_chain(struct fast_plan *plan, const struct fast_chain *chain,
                              struct weir_error *err)
{
    for (size_t i = 0; i < chain->n;) {
        const struct onnx_step *step = &plan->fast->onnx->steps[chain->steps[i]];
        fast_prepare_fn prepare = fast_op_find(step->node->type, plan->keeps_nan);
        const struct fast_link link = {chain->steps + i, chain->n - i};
        size_t n_taken = 0;
        plan->i_step = chain->steps[i];
        if (prepare != NULL && step->node->n_out >= 1 && step->out[0] >= 0) {
            WEIR_TRY(prepare(plan, &link, &n_taken, err));
        }
        if (n_taken == 0) {
            WEIR_TRY(fast_add_interpreted(plan, chain->steps[i], err));
            n_taken = 1;
        }
        for (size_t k = 0; k < n_taken; k++) {
            const struct onnx_step *taken = &plan->fast->onnx->steps[chain->steps[i + k]];
            plan->keeps_apart =
                plan->keeps_apart && (is_known(plan, taken) || batch_keeps_apart(plan, taken));
        }
        i += n_taken;
    }
    return drop_dead(plan, chain, err);
}

static weir_status make_all(struct fast_plan *plan, struct weir_error *err)
{
    const struct fast_chains *chains = &plan->fast->chains;
    const struct weir_onnx *onnx = plan->fast->onnx;
    const int64_t none = 0;
    WEIR_TRY(weir_tensor_create(WEIR_DTYPE_UINT8, 1, &none, &plan->anchor, err));
    region_begin(&plan->fast->region);
    place_givens(plan);
    alarm_silence(plan->fast->n_threads);
    plan->n_images = batch_count(onnx);
    plan->keeps_apart = plan->n_images > 0;
    for (plan->i_chain = 0; plan->i_chain < chains->n; plan->i_chain++) {
        WEIR_TRY(make_chain(plan, &chains->chains[plan->i_chain], err));
    }
    for (size_t i = 0; i < onnx->n_outputs; i++) {
        struct fast_form *form;
        bool is_made = plan->values[onnx->output_values[i]].place == FAST_REGION;
        plan->keeps_apart = plan->keeps_apart && is_made;
        if (is_made) {
            WEIR_TRY(fast_form_plain(plan, onnx->output_values[i], &form, err));
        }
    }
    return WEIR_OK;
}

weir_status fast_plan_make(struct fast *fast, bool keeps_nan, struct fast_plan **out,
                           struct weir_error *err)
{
    struct fast_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model's plan");
    }
    plan->fast = fast;
    plan->keeps_nan = keeps_nan;
    weir_arena_init(&plan->arena, 0);
    plan->values = WEIR_ARENA_ARRAY(&plan->arena, fast->onnx->n_values + 1, struct fast_value);
    plan->inputs = WEIR_ARENA_ARRAY(&plan->arena, fast->onnx->n_inputs + 1, struct fast_shape);
    weir_status status = make_all(plan, err);
    if (status != WEIR_OK) {
        fast_plan_free(plan);
        return status;
    }
    *out = plan;
    return WEIR_OK;
}

weir_status fast_plan_run(struct fast_plan *plan, bool *out_holds, struct weir_error *err)
{
    *out_holds = true;
    plan->rings = false;
    alarm_silence(plan->fast->n_threads);
    for (size_t i = 0; i < plan->n_actions; i++) {
        WEIR_TRY(fast_action_run(plan, plan->actions[i], err));
        if (plan->actions[i]->has_moved) {
            *out_holds = false;
            break;
        }
    }
    return WEIR_OK;
}

void fast_plan_free(struct fast_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (size_t i = 0; i < plan->n_actions; i++) {
        fast_action_fini(plan->actions[i]);
    }
    for (size_t i = 0; i < plan->fast->onnx->n_values; i++) {
        weir_tensor_release(plan->values[i].tensor);
    }
    weir_tensor_release(plan->anchor);
    weir_arena_fini(&plan->arena);
    free(plan->actions);
    free(plan);
}
