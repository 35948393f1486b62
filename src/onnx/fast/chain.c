#include "chain.h"

#include <string.h>

static const char *const heads[] = {"Conv", "ConvTranspose", "Gemm", "MatMul",
                                    "Add",  "Sum",           "Mul",  "BatchNormalization"};

static const char *const links[] = {
    "BatchNormalization", "Add",  "Sum",         "Sub",       "Mul",  "Div", "Relu",
    "LeakyRelu",          "Clip", "HardSigmoid", "HardSwish", "Tanh", "Elu", "Sigmoid",
    "QuantizeLinear"};

struct finder {
    struct weir_onnx *onnx;
    struct fast_chains *chains;
    size_t *reader; /* By value: the last step that reads it. */
    bool *is_taken; /* By step. */
};

static bool is_one_of(const struct onnx_step *step, const char *const *types, size_t n)
{
    for (size_t i = 0; step->node->domain[0] == '\0' && i < n; i++) {
        if (strcmp(step->node->type, types[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void count_uses(struct finder *f)
{
    const struct weir_onnx *onnx = f->onnx;
    for (size_t i = 0; i < onnx->n_steps; i++) {
        const struct onnx_step *step = &onnx->steps[i];
        for (size_t k = 0; k < step->node->n_out; k++) {
            if (step->out[k] >= 0) {
                f->chains->producer[step->out[k]] = (int32_t)i;
            }
        }
        for (size_t k = 0; step->op != NULL && k < step->node->n_in; k++) {
            if (step->in[k] >= 0) {
                f->chains->n_uses[step->in[k]]++;
                f->reader[step->in[k]] = i;
            }
        }
    }
    for (size_t i = 0; i < onnx->n_outputs; i++) {
        f->chains->n_uses[onnx->output_values[i]] += 2; /* never an inner value of a chain */
    }
}

static bool append(struct finder *f, struct fast_chain *chain, size_t i_step)
{
    const struct onnx_step *step = &f->onnx->steps[i_step];
    if (chain->n == FAST_CHAIN_MAX || f->is_taken[i_step] || step->op == NULL ||
        step->node->n_out != 1 || !is_one_of(step, links, WEIR_ARRAY_LEN(links))) {
        return false;
    }
    chain->steps[chain->n++] = i_step;
    f->is_taken[i_step] = true;
    return true;
}

/* x, Sigmoid(x) and their product: the two steps follow. */
static bool append_swish(struct finder *f, struct fast_chain *chain, int32_t value)
{
    const struct onnx_step *steps = f->onnx->steps;
    size_t i_mul = f->reader[value];
    if (chain->n + 2 > FAST_CHAIN_MAX || strcmp(steps[i_mul].node->type, "Mul") != 0) {
        return false;
    }
    int32_t other = steps[i_mul].in[0] == value ? steps[i_mul].in[1] : steps[i_mul].in[0];
    int32_t i_sigmoid = other >= 0 ? f->chains->producer[other] : -1;
    bool is = i_sigmoid >= 0 && f->chains->n_uses[other] == 1 &&
              strcmp(steps[i_sigmoid].node->type, "Sigmoid") == 0 &&
              steps[i_sigmoid].in[0] == value && !f->is_taken[i_mul];
    return is && append(f, chain, (size_t)i_sigmoid) && append(f, chain, i_mul);
}

static void extend(struct finder *f, struct fast_chain *chain)
{
    bool goes_on = is_one_of(&f->onnx->steps[chain->steps[0]], heads, WEIR_ARRAY_LEN(heads));
    while (goes_on) {
        const struct onnx_step *last = &f->onnx->steps[chain->steps[chain->n - 1]];
        int32_t value = last->node->n_out == 1 ? last->out[0] : -1;
        int32_t n_uses = value >= 0 ? f->chains->n_uses[value] : 0;
        goes_on = n_uses == 1   ? append(f, chain, f->reader[value])
                  : n_uses == 2 ? f->reader[value] > 0 && append_swish(f, chain, value)
                                : false;
    }
}

/* Chains run at the places of their last steps: in their order. */
static void put_in_order(struct finder *f, const struct fast_chain *by_last)
{
    for (size_t i = 0; i < f->onnx->n_steps; i++) {
        if (by_last[i].n > 0) {
            f->chains->chains[f->chains->n++] = by_last[i];
        }
    }
}

static void find_last(struct finder *f)
{
    struct fast_chains *chains = f->chains;
    for (size_t c = 0; c < chains->n; c++) {
        for (size_t i = 0; i < chains->chains[c].n; i++) {
            const struct onnx_step *step = &f->onnx->steps[chains->chains[c].steps[i]];
            for (size_t k = 0; k < step->node->n_in; k++) {
                if (step->in[k] >= 0) {
                    chains->last[step->in[k]] = c;
                }
            }
            for (size_t k = 0; k < step->node->n_out; k++) {
                if (step->out[k] >= 0) {
                    chains->last[step->out[k]] = c; /* unless somebody reads it later */
                }
            }
        }
    }
    for (size_t i = 0; i < f->onnx->n_outputs; i++) {
        chains->last[f->onnx->output_values[i]] = chains->n;
    }
}

void fast_chains_find(struct weir_onnx *onnx, struct fast_chains *chains)
{
    struct weir_arena *arena = &onnx->model->arena;
    *chains =
        (struct fast_chains){.chains = WEIR_ARENA_ARRAY(arena, onnx->n_steps, struct fast_chain),
                             .last = WEIR_ARENA_ARRAY(arena, onnx->n_values, size_t),
                             .n_uses = WEIR_ARENA_ARRAY(arena, onnx->n_values, int32_t),
                             .producer = WEIR_ARENA_ARRAY(arena, onnx->n_values, int32_t)};
    struct finder f = {onnx, chains, WEIR_ARENA_ARRAY(arena, onnx->n_values, size_t),
                       WEIR_ARENA_ARRAY(arena, onnx->n_steps, bool)};
    struct fast_chain *by_last = WEIR_ARENA_ARRAY(arena, onnx->n_steps, struct fast_chain);
    memset(chains->producer, -1, onnx->n_values * sizeof *chains->producer);
    count_uses(&f);
    for (size_t i = 0; i < onnx->n_steps; i++) {
        if (onnx->steps[i].op != NULL && !f.is_taken[i]) {
            struct fast_chain chain = {.steps = {i}, .n = 1};
            f.is_taken[i] = true;
            extend(&f, &chain);
            by_last[chain.steps[chain.n - 1]] = chain;
        }
    }
    put_in_order(&f, by_last);
    find_last(&f);
}
