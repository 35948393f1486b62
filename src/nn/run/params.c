#include "net.h"

#include "base/hash.h"
#include "base/rng.h"

#include <math.h>

/* Parameters start on a cache line, so that two never share one between threads. */
#define ALIGN_ELEMS 16

static size_t align(size_t n_elems)
{
    return (n_elems + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
}

static void add_param(struct weir_net *net, struct op *op, int slot, const char *suffix,
                      int32_t n_dims, const int32_t *dims)
{
    size_t i = net->n_params++;
    struct weir_param *param = &net->params[i];
    bool is_running = slot == OP_RUNNING_MEAN || slot == OP_RUNNING_VAR;
    snprintf(net->param_names[i], sizeof(net->param_names[i]), "%s.%s", op->name, suffix);
    *param = (struct weir_param){.name = net->param_names[i],
                                 .n_dims = n_dims,
                                 .first_elem = net->n_weight_elems,
                                 .n_elems = 1,
                                 .is_trainable = !is_running,
                                 .is_decayed = n_dims > 1};
    for (int32_t d = 0; d < n_dims; d++) {
        param->dims[d] = dims[d];
        param->n_elems *= (size_t)dims[d];
    }
    net->n_weight_elems += align(param->n_elems);
    op->params[slot].index = (int32_t)i;
    op->params[slot].n_elems = param->n_elems;
}

static void add_trainable(struct weir_net *net, struct op *op)
{
    const int32_t channels = op->in[0].c;
    switch (op->kind) {
    case LAYER_CONV:
        add_param(net, op, OP_WEIGHT, "weight", 4,
                  (int32_t[]){op->conv.k, channels / op->conv.groups, op->conv.kernel_h,
                              op->conv.kernel_w});
        break;
    case LAYER_LINEAR:
        add_param(net, op, OP_WEIGHT, "weight", 2,
                  (int32_t[]){op->conv.k, (int32_t)op_elems(op->in[0])});
        break;
    case LAYER_MARGIN_LOSS:
        add_param(net, op, OP_WEIGHT, "weight", 2, (int32_t[]){op->n_classes, channels});
        break;
    case LAYER_BATCH_NORM:
        add_param(net, op, OP_WEIGHT, "weight", 1, &channels);
        add_param(net, op, OP_BIAS, "bias", 1, &channels);
        break;
    case LAYER_PRELU:
        add_param(net, op, OP_WEIGHT, "weight", 1, &channels);
        break;
    default:
        break;
    }
    if ((op->kind == LAYER_CONV || op->kind == LAYER_LINEAR) && op->conv.has_bias) {
        add_param(net, op, OP_BIAS, "bias", 1, &op->conv.k);
    }
}

/* Gradients lie as the weights do. If no caller sees them, they lie one behind the other, and those
 * that are never whole have no memory. @return Elements of the slab. */
static size_t bind_gradients(struct weir_net *net)
{
    size_t n_elems = 0;
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        struct op *op = &net->plan->ops[i].op;
        for (int slot = 0; slot < OP_MAX_PARAMS; slot++) {
            struct op_param *p = &op->params[slot];
            const struct weir_param *row = p->index >= 0 ? &net->params[p->index] : NULL;
            bool is_never_whole = op->update_rows > 0 && slot == OP_WEIGHT;
            if (!row || !row->is_trainable || is_never_whole) {
                continue;
            }
            size_t first = net->plan->updates_in_backward ? n_elems : row->first_elem;
            p->gradient = net->op_gradients ? net->op_gradients + first : NULL;
            n_elems += align(row->n_elems);
        }
    }
    return n_elems;
}

weir_status net_make_params(struct weir_net *net)
{
    size_t max_params = (size_t)net->plan->n_ops * OP_MAX_PARAMS + 1;
    net->params = calloc(max_params, sizeof(*net->params));
    net->param_names = calloc(max_params, sizeof(*net->param_names));
    net->buckets.is_done = calloc(max_params, sizeof(*net->buckets.is_done));
    if (!net->params || !net->param_names || !net->buckets.is_done) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        for (int slot = 0; slot < OP_MAX_PARAMS; slot++) {
            net->plan->ops[i].op.params[slot].index = -1;
        }
    }
    /* By layer, not by op: the order must not depend on what a back-end can fuse. */
    for (int32_t i = net->plan->n_values - 1; i >= 0; i--) {
        struct plan_op *o = plan_find_op(net->plan, i);
        if (o) {
            add_trainable(net, &o->op);
        }
    }
    net->n_trainable_params = net->n_params;
    net->n_trainable_elems = net->n_weight_elems;
    net->gradient_bytes = net->plan->is_training ? bind_gradients(net) * sizeof(float) : 0;
    for (int32_t i = net->plan->n_values - 1; i >= 0; i--) {
        struct plan_op *o = plan_find_op(net->plan, i);
        if (o && o->op.kind == LAYER_BATCH_NORM) {
            add_param(net, &o->op, OP_RUNNING_MEAN, "running_mean", 1, &o->op.in[0].c);
            add_param(net, &o->op, OP_RUNNING_VAR, "running_var", 1, &o->op.in[0].c);
        }
    }
    return WEIR_OK;
}

void net_bind_params(struct weir_net *net)
{
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        for (int slot = 0; slot < OP_MAX_PARAMS; slot++) {
            struct op_param *p = &net->plan->ops[i].op.params[slot];
            if (p->index >= 0) {
                const struct weir_param *row = &net->params[p->index];
                p->value = net->op_weights + row->first_elem;
            }
        }
    }
    (void)bind_gradients(net);
}

/* Standard deviation of an op's initial weights: He et al. 2015; over outputs for convolutions (as
 * PyTorch's ResNet), over inputs for linears; margin weights only have a direction. */
static double initial_deviation(const struct op *op)
{
    switch (op->kind) {
    case LAYER_CONV:
        return sqrt(2.0 / ((double)op->conv.k * op->conv.kernel_h * op->conv.kernel_w));
    case LAYER_LINEAR:
        return sqrt(2.0 / (double)op_elems(op->in[0]));
    default:
        return sqrt(1.0 / op->in[0].c);
    }
}

static void fill(float *values, size_t n, float value)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = value;
    }
}

/* A parameter as the caller has it. */
static float *values_of(const struct weir_net *net, const struct op *op, int slot)
{
    return net->weights + net->params[op->params[slot].index].first_elem;
}

static void init_op(struct weir_net *net, const struct op *op, uint64_t seed)
{
    const struct op_param *weight = &op->params[OP_WEIGHT];
    if (op->kind == LAYER_BATCH_NORM) {
        fill(values_of(net, op, OP_WEIGHT), weight->n_elems, 1);
        fill(values_of(net, op, OP_RUNNING_MEAN), weight->n_elems, 0);
        fill(values_of(net, op, OP_RUNNING_VAR), weight->n_elems, 1);
    } else if (op->kind == LAYER_PRELU) {
        fill(values_of(net, op, OP_WEIGHT), weight->n_elems, PRELU_INITIAL);
    } else if (weight->index >= 0) {
        struct weir_rng rng;
        double factor = op->initial_factor > 0 ? (double)op->initial_factor : 1;
        double deviation = factor * initial_deviation(op);
        weir_rng_init(&rng, seed, weir_hash_text(WEIR_HASH_BEGIN, net->params[weight->index].name));
        for (size_t i = 0; i < weight->n_elems; i++) {
            values_of(net, op, OP_WEIGHT)[i] = (float)(deviation * weir_rng_normal(&rng));
        }
    }
    if (op->params[OP_BIAS].index >= 0) {
        fill(values_of(net, op, OP_BIAS), op->params[OP_BIAS].n_elems, op->initial_bias);
    }
}

void weir_net_init_weights(struct weir_net *net, uint64_t seed)
{
    net->on_gpu.are_weights_behind = false; /* all are written */
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        init_op(net, &net->plan->ops[i].op, seed);
    }
    weir_net_weights_changed(net);
}

const struct weir_param *weir_net_params(const struct weir_net *net, size_t *out_n)
{
    *out_n = net->n_params;
    return net->params;
}

float *weir_net_weights(struct weir_net *net, size_t *out_n_elems)
{
    if (out_n_elems) {
        *out_n_elems = net->n_weight_elems;
    }
    if (net->on_gpu.are_weights_behind) {
        net_gpu_fetch_weights(net);
    }
    return net->weights;
}

float *weir_net_gradients(struct weir_net *net, size_t *out_n_elems)
{
    if (net->on_gpu.gpu && net->plan->is_training) {
        net_gpu_fetch_gradients(net);
    }
    if (out_n_elems) {
        *out_n_elems =
            net->gradients && !net->plan->updates_in_backward ? net->n_trainable_elems : 0;
    }
    return net->plan->updates_in_backward ? NULL : net->gradients;
}

size_t weir_net_n_trainable_elems(const struct weir_net *net)
{
    return net->n_trainable_elems;
}
