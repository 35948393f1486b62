#include "plan.h"

/* Length of a chain of recomputed values, each made from the one before: so many exist at once when
 * the last is needed. A value further from a kept one is kept itself. */
#define CHAIN_MAX 6

/* Ops whose forward kernel is a pass over memory and writes nothing but its output. A convolution's
 * is work; a dropout's draws numbers; pools shrink their input, so there is little to save. */
static bool is_cheap(enum layer_kind kind)
{
    static const bool is_cheap_kind[LAYER_KIND_COUNT] = {
        [LAYER_BATCH_NORM] = true, [LAYER_RELU] = true, [LAYER_RELU6] = true,  [LAYER_PRELU] = true,
        [LAYER_SCALE] = true,      [LAYER_ADD] = true,  [LAYER_CONCAT] = true, [LAYER_CAST] = true,
    };
    return is_cheap_kind[kind];
}

/* Values that backward reads in any case. */
static void mark_needed(const struct net_plan *plan, bool *is_needed)
{
    for (int32_t i = 0; i < plan->n_ops; i++) {
        const struct plan_op *o = &plan->ops[i];
        const struct op_reads reads = plan_op_reads(&o->op);
        if (o->op.kind == LAYER_INPUT || !plan->needs_gradient[o->out]) {
            continue;
        }
        is_needed[o->in[0]] = is_needed[o->in[0]] || reads.backward_x || reads.deferred_x;
        is_needed[o->out] = is_needed[o->out] || reads.backward_y;
    }
    /* The caller's stays where it is. */
    is_needed[plan->input] =
        is_needed[plan->input] || (plan->n_ops > 0 && plan->ops[0].op.kind != LAYER_INPUT);
}

weir_status plan_mark_recomputed(struct net_plan *plan)
{
    bool *is_needed = calloc((size_t)plan->n_values, sizeof(*is_needed));
    int32_t *chain = calloc((size_t)plan->n_values, sizeof(*chain)); /* 0: not recomputed */
    if (!is_needed || !chain) {
        free(is_needed);
        free(chain);
        return WEIR_ERR_NOMEM;
    }
    mark_needed(plan, is_needed);
    for (int32_t i = 0; i < plan->n_ops; i++) {
        const struct plan_op *o = &plan->ops[i];
        int32_t before = 0;
        bool can_be_made = is_cheap(o->op.kind) && o->out != plan->output;
        for (int32_t j = 0; j < o->op.n_in; j++) {
            before = WEIR_MAX(before, chain[o->in[j]]);
            can_be_made = can_be_made && (is_needed[o->in[j]] || chain[o->in[j]] > 0);
        }
        if (can_be_made && before < CHAIN_MAX) {
            chain[o->out] = before + 1;
            plan->is_recomputed[o->out] = true;
        }
    }
    free(is_needed);
    free(chain);
    return WEIR_OK;
}
