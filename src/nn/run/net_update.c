/* How gradients become new weights by the net's threads: after a step, or where they are made. */
#include "net.h"

#include <stdlib.h>
#include <string.h>

/* Elements of a range of an update: its gradients, weights and states fit in a core's cache. */
#define UPDATE_ELEMS ((size_t)1 << 16)

/* ---- after the backward pass ----------------------------------------------------------------- */

static weir_status run_update(void *context, int32_t i_thread, int32_t i_deferred)
{
    const struct weir_net *net = context;
    size_t first = (size_t)i_deferred * UPDATE_ELEMS;
    (void)i_thread;
    net->update_fn(net->update_context, first,
                   WEIR_MIN(net->n_trainable_elems - first, UPDATE_ELEMS));
    return WEIR_OK;
}

void weir_net_run_ranges(struct weir_net *net, weir_net_update_fn fn, void *context)
{
    net_enter(net);
    net->update_fn = fn;
    net->update_context = context;
    weir_status status = workers_run(net->workers, &net->update);
    (void)status; /* run_update does not fail */
}

void weir_net_update(struct weir_net *net, weir_net_update_fn fn, void *context)
{
    weir_net_run_ranges(net, fn, context);
    weir_net_weights_changed(net);
}

static weir_status run_rest(void *context, int32_t i_thread, int32_t i_deferred)
{
    const struct weir_net *net = context;
    (void)i_thread;
    net->run.apply(net->run.apply_context, &net->rest_ranges[i_deferred]);
    return WEIR_OK;
}

static int32_t count_ranges(size_t n_elems)
{
    return (int32_t)((n_elems + UPDATE_ELEMS - 1) / UPDATE_ELEMS);
}

/* @param ranges  NULL: only count them. */
static int32_t list_rest(const struct weir_net *net, struct weir_gradients *ranges)
{
    int32_t n = 0;
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        const struct op *op = &net->plan->ops[i].op;
        for (int slot = 0; op->n_updates == 0 && slot < OP_MAX_PARAMS; slot++) {
            const struct op_param *param = &op->params[slot];
            if (!param->gradient) {
                continue;
            }
            for (size_t at = 0; ranges && at < param->n_elems; at += UPDATE_ELEMS) {
                ranges[n + (int32_t)(at / UPDATE_ELEMS)] =
                    (struct weir_gradients){.values = param->gradient + at,
                                            .scale = 1,
                                            .first_elem = net->params[param->index].first_elem + at,
                                            .n_elems = WEIR_MIN(param->n_elems - at, UPDATE_ELEMS)};
            }
            n += count_ranges(param->n_elems);
        }
    }
    return n;
}

weir_status net_make_updates(struct weir_net *net)
{
    int32_t n_updates = count_ranges(net->n_trainable_elems), n_rest = list_rest(net, NULL);
    net->update_deferred = calloc((size_t)n_updates + 1, sizeof(*net->update_deferred));
    net->rest_deferred = calloc((size_t)n_rest + 1, sizeof(*net->rest_deferred));
    net->rest_ranges = calloc((size_t)n_rest + 1, sizeof(*net->rest_ranges));
    if (!net->update_deferred || !net->rest_deferred || !net->rest_ranges) {
        return WEIR_ERR_NOMEM;
    }
    (void)list_rest(net, net->rest_ranges);
    net->update = (struct program){.deferred = net->update_deferred,
                                   .n_deferred = n_updates,
                                   .run_deferred = run_update,
                                   .context = net};
    net->rest = (struct program){.deferred = net->rest_deferred,
                                 .n_deferred = n_rest,
                                 .run_deferred = run_rest,
                                 .context = net};
    return WEIR_OK;
}

/* ---- where gradients are made ---------------------------------------------------------------- */

/* Elements [first, first + n) of a parameter. */
static void apply(const struct weir_net *net, const struct op_param *param, const float *values,
                  float scale, size_t first, size_t n)
{
    const struct weir_gradients gradients = {.values = values,
                                             .scale = scale,
                                             .first_elem =
                                                 net->params[param->index].first_elem + first,
                                             .n_elems = n};
    net->run.apply(net->run.apply_context, &gradients);
}

void net_apply_gradients(const struct weir_net *net, const struct op *op)
{
    for (int slot = 0; slot < OP_MAX_PARAMS; slot++) {
        const struct op_param *param = &op->params[slot];
        if (param->gradient) {
            apply(net, param, param->gradient, 1, 0, param->n_elems);
        }
    }
}

static size_t dy_elem_bytes(const struct net_plan *plan, const struct plan_op *o)
{
    return plan_image_bytes(plan, o->out) / op_elems(plan->shapes[o->out]);
}

/* Memory for rows and for their outputs' bias gradients, twice if gradients are made of parts; then
 * dy. */
size_t net_row_bytes(const struct net_plan *plan, const struct plan_op *o)
{
    size_t n_rows = (size_t)o->op.update_rows, n_parts = o->op.gradient_batch < plan->batch ? 2 : 1;
    return n_parts * n_rows * (op_elems(o->op.in[0]) + 1) * sizeof(float) +
           n_rows * (size_t)o->op.gradient_batch * dy_elem_bytes(plan, o);
}

/* Columns first .. first + n of dy. */
static void copy_dy(const struct net_plan *plan, const struct plan_op *o,
                    const struct op_tile *tile, size_t first, size_t n, char *to)
{
    size_t elem_bytes = dy_elem_bytes(plan, o), row_bytes = op_elems(o->op.out) * elem_bytes;
    const char *from = (const char *)(const void *)tile->dy + first * elem_bytes;
    for (size_t i = 0; i < (size_t)tile->n; i++) {
        memcpy(to + i * n * elem_bytes, from + i * row_bytes, n * elem_bytes);
    }
}

/* Rows of the gradient, into this thread's memory, and those of the bias's: as a layer of fewer
 * outputs has them, by the same kernel, and so with the same bits. */
static weir_status make_rows(const struct weir_net *net, const struct plan_op *o, int32_t i_thread,
                             int32_t first_row, int32_t n_rows)
{
    struct op part = o->op;
    struct op_param *weight = &part.params[OP_WEIGHT], *bias = &part.params[OP_BIAS];
    size_t n = (size_t)n_rows * op_elems(part.in[0]);
    float *rows = net_part_memory(net, i_thread), *beside = rows + n;
    float *biases = bias->gradient ? bias->gradient + first_row : NULL;
    bool has_parts = part.gradient_batch < net->plan->batch;
    char *dy = (char *)(has_parts ? beside + n + n_rows : beside);
    part.conv.k = part.out.c = n_rows;
    weight->n_elems = n;
    for (int32_t first = 0; first < net->plan->batch; first += part.gradient_batch) {
        struct op_tile tile = net_gradient_tile(net, o, i_thread, first, part.gradient_batch);
        copy_dy(net->plan, o, &tile, (size_t)first_row, (size_t)n_rows, dy);
        tile.dy = (const real *)(const void *)dy;
        weight->gradient = first == 0 ? rows : beside;
        bias->gradient = !biases ? NULL : first == 0 ? biases : beside + n;
        WEIR_TRY(net->backend->kernels[part.kind].weight_gradient(&part, &tile));
        if (first > 0) {
            net_add_to(rows, beside, n);
            net_add_to(biases, beside + n, biases ? (size_t)n_rows : 0);
        }
    }
    return WEIR_OK;
}

/* Of one image a row is the image's input, scaled: it is never made. */
static void apply_rank_one(const struct weir_net *net, const struct plan_op *o, int32_t i_thread,
                           int32_t first, int32_t end)
{
    const struct op_tile tile = net_gradient_tile(net, o, i_thread, 0, 1);
    float *biases = o->op.params[OP_BIAS].gradient;
    size_t len = op_elems(o->op.in[0]);
    for (int32_t row = first; row < end; row++) {
        apply(net, &o->op.params[OP_WEIGHT], tile.x[0], tile.dy[row], (size_t)row * len, len);
        if (biases) {
            biases[row] = tile.dy[row];
        }
    }
}

weir_status net_update_rows(const struct weir_net *net, const struct plan_op *o, int32_t i_thread,
                            int32_t i_part)
{
    const struct op *op = &o->op;
    const struct op_param *bias = &op->params[OP_BIAS];
    size_t len = op_elems(op->in[0]);
    int32_t first = plan_update_first(op, i_part), end = plan_update_first(op, i_part + 1);
    if (op->is_rank_one) {
        apply_rank_one(net, o, i_thread, first, end);
    }
    for (int32_t row = first; !op->is_rank_one && row < end; row += op->update_rows) {
        int32_t n_rows = WEIR_MIN(end - row, op->update_rows);
        WEIR_TRY(make_rows(net, o, i_thread, row, n_rows));
        apply(net, &op->params[OP_WEIGHT], net_part_memory(net, i_thread), 1, (size_t)row * len,
              (size_t)n_rows * len);
    }
    if (bias->gradient) {
        apply(net, bias, bias->gradient + first, 1, (size_t)first, (size_t)(end - first));
    }
    return WEIR_OK;
}
