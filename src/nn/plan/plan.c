#include "plan.h"

#include <math.h>

int32_t plan_slice_first(const struct net_plan *plan, int32_t i_slice)
{
    return (int32_t)((int64_t)i_slice * plan->batch / plan->n_slices);
}

int32_t plan_tile_max(const struct net_plan *plan)
{
    return (plan->batch + plan->n_slices - 1) / plan->n_slices;
}

int32_t plan_tile_images(const struct net_plan *plan, const struct op *op, int32_t i_slice,
                         int32_t *out_first)
{
    int32_t n_slices = WEIR_MAX(op->n_batched_slices, 1);
    *out_first = plan_slice_first(plan, i_slice);
    return i_slice % n_slices != 0
               ? 0
               : plan_slice_first(plan, WEIR_MIN(i_slice + n_slices, plan->n_slices)) - *out_first;
}

size_t plan_image_bytes(const struct net_plan *plan, weir_value_t value)
{
    bool is_short = plan->types[value] != WEIR_PRECISION_F32 && !plan->keeps_f32;
    return op_elems(plan->shapes[value]) * (is_short ? sizeof(uint16_t) : sizeof(float));
}

static void schedule_fini(struct task_schedule *s)
{
    free(s->tasks);
    free(s->first_task);
    free(s->combines);
    free(s->first_combine);
    free(s->stages);
    free(s->deferred_tasks);
    free(s->deferred);
    free(s->data);
    free(s->gradients);
    free(s->again);
    free(s->packed_weights);
}

void plan_destroy(struct net_plan *plan)
{
    if (!plan) {
        return;
    }
    schedule_fini(&plan->training);
    schedule_fini(&plan->inference);
    for (int32_t i = 0; plan->ops && i < plan->n_ops; i++) {
        free(plan->ops[i].op.row_tiles);
    }
    free(plan->ops);
    free(plan->shapes);
    free(plan->types);
    free(plan->needs_gradient);
    free(plan->is_recomputed);
    free(plan);
}

static weir_status check_config(const struct weir_graph *graph,
                                const struct weir_net_config *config, struct weir_error *err)
{
    WEIR_TRY(weir_graph_check(graph, err));
    if (config->batch < 1 || config->batch > 65536) {
        return weir_error_set(err, WEIR_ERR_INVALID, "batch must be 1 to 65536, not %d",
                              config->batch);
    }
    if (config->n_slices < 0 || config->n_slices > config->batch) {
        return weir_error_set(err, WEIR_ERR_INVALID, "n_slices must be 0 to the batch %d, not %d",
                              config->batch, config->n_slices);
    }
    if (config->n_row_tiles < 0 || config->n_row_tiles > WEIR_NET_ROW_TILES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "n_bands must be 0 to %d, not %d",
                              WEIR_NET_ROW_TILES_MAX, config->n_row_tiles);
    }
    if (config->n_row_tiles > 1 && !config->backend->gpu &&
        (config->is_training || !config->backend->can_fuse)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "n_bands: pictures are cut into bands for inference by oneDNN only");
    }
    if (config->precision == WEIR_PRECISION_TF32 && !config->backend->has_tf32) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "precision tf32: on GPUs only (back-end cuda); use f32 or bf16");
    }
    if (config->precision == WEIR_PRECISION_F16 && !config->backend->has_fp16) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "precision fp16: on GPUs only (needs the back-end cuda); use bf16 or f32");
    }
    if (config->precision == WEIR_PRECISION_F16 &&
        (config->loss_scale < 0 || !isfinite(config->loss_scale) || config->loss_scale_steps < 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "loss_scale must be a number > 0, and loss_scale_steps not below 0");
    }
    if (config->updates_in_backward && config->backend->gpu) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "updates_in_backward: not on a GPU; use weir_optimizer_update_net");
    }
    if (config->convolution == WEIR_CONVOLUTION_WINOGRAD &&
        (config->precision != WEIR_PRECISION_F32 || !config->backend->has_winograd)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "convolution winograd: in f32 by oneDNN only; use auto or direct");
    }
    if (config->n_gradient_parts < 0 ||
        (config->n_gradient_parts > 0 && config->batch % config->n_gradient_parts != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "n_gradient_parts must divide the batch %d, not %d", config->batch,
                              config->n_gradient_parts);
    }
    if (config->updates_in_backward && (!config->is_training || config->alloc_gradients)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "updates_in_backward: for training, and without alloc_gradients, as "
                              "nobody gets to see the gradients");
    }
    if (config->is_training && graph->loss < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "training needs a graph that ends in a loss");
    }
    const struct graph_layer *last = &graph->layers[graph_output(graph)];
    if (last->out.h != 1 || last->out.w != 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "layer %s: the output must be a vector per image, not %d x %d x %d",
                              last->name, last->out.c, last->out.h, last->out.w);
    }
    for (int32_t i = 0; i < graph->n_layers; i++) {
        if (shape_elems(graph->layers[i].out) * config->batch > (int64_t)1 << 36) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "layer %s: too large for a batch of %d",
                                  graph->layers[i].name, config->batch);
        }
    }
    return WEIR_OK;
}

static void batch_slices(struct net_plan *plan, bool (*batches_slices)(const struct op *op))
{
    bool can_batch = batches_slices && plan->n_row_tiles == 1 && plan->n_slices > 1;
    for (int32_t i = 0; can_batch && i < plan->n_ops; i++) {
        struct op *op = &plan->ops[i].op;
        bool has_weights = op->kind == LAYER_LINEAR || op->kind == LAYER_CONV;
        op->n_batched_slices = has_weights && batches_slices(op) ? PLAN_BATCHED_SLICES : 0;
    }
}

int32_t plan_update_first(const struct op *op, int32_t i_part)
{
    int32_t n_rows = WEIR_MAX(op->update_rows, 1), n_calls = (op->conv.k + n_rows - 1) / n_rows;
    int32_t i_call = (int32_t)((int64_t)i_part * n_calls / op->n_updates);
    return WEIR_MIN(i_call * n_rows, op->conv.k);
}

/* Decides which parameters are updated where their gradients are made; nothing else does. Not those
 * of norms and PReLUs: they are few, and what backward recomputes reads them. Not those of a margin
 * loss: they belong to the loss. Not those of linears whose gradient is made whole: all threads
 * update them faster, behind backward. */
static void choose_updates(struct net_plan *plan, const struct weir_backend *backend)
{
    for (int32_t i = 0; plan->updates_in_backward && i < plan->n_ops; i++) {
        struct op *op = &plan->ops[i].op;
        if (op->kind != LAYER_CONV && op->kind != LAYER_LINEAR) {
            continue;
        }
        op->n_updates = op->kind == LAYER_CONV;
        if (op->kind == LAYER_LINEAR && backend->gradient_rows) {
            op->update_rows = WEIR_MIN(backend->gradient_rows(op), op->conv.k);
        }
        if (op->update_rows > 0) {
            op->is_rank_one =
                op->batch == 1 && backend->is_rank_one && op->type == WEIR_PRECISION_F32;
            int32_t n_calls = (op->conv.k + op->update_rows - 1) / op->update_rows;
            size_t n_parts = op_elems(op->in[0]) * (size_t)op->conv.k / PLAN_UPDATE_ELEMS;
            n_parts = n_parts < PLAN_UPDATE_MIN_PARTS ? 1 : n_parts;
            op->n_updates = (int32_t)WEIR_MIN((size_t)n_calls, n_parts);
        }
    }
}

static weir_status make(struct net_plan *plan, const struct weir_graph *graph,
                        const struct weir_net_config *config)
{
    plan->batch = config->batch;
    plan->n_slices = config->n_slices > 0 ? config->n_slices : WEIR_MIN(config->batch, 16);
    plan->n_row_tiles = WEIR_MAX(config->n_row_tiles, 1);
    if (plan->n_row_tiles > 1) {
        plan->n_slices = plan->batch;
    }
    plan->n_gradient_parts = WEIR_MAX(config->n_gradient_parts, 1);
    plan->knows_signs = config->backend->knows_signs;
    plan->is_in_order = config->backend->gpu != NULL;
    if (plan->is_in_order) {
        plan->n_slices = plan->n_row_tiles = plan->n_gradient_parts = 1;
    }
    plan->is_training = config->is_training;
    plan->updates_in_backward = config->updates_in_backward;
    plan->is_channels_last = config->backend->is_channels_last;
    plan->precision =
        config->precision == WEIR_PRECISION_TF32 ? WEIR_PRECISION_F32 : config->precision;
    plan->convolution = config->convolution;
    plan->keeps_f32 = config->backend->keeps_f32;
    plan->refreshes_backward = plan->is_training && !config->keeps_all &&
                               config->backend->kernels[LAYER_CONV].refresh_backward;
    WEIR_TRY(plan_make_ops(plan, graph, config->backend->can_fuse));
    WEIR_TRY(plan_make_row_tiles(plan));
    batch_slices(plan, config->backend->batches_slices);
    choose_updates(plan, config->backend);
    for (int32_t i = 0; plan->is_training && config->backend->packed_bytes && i < plan->n_ops;
         i++) {
        struct op *op = &plan->ops[i].op;
        op->packed_bytes = config->backend->packed_bytes(op);
        plan->has_packed = plan->has_packed || op->packed_bytes > 0;
    }
    if (plan->is_training && !config->keeps_all) {
        WEIR_TRY(plan_mark_recomputed(plan));
    }
    if (plan->is_training) {
        WEIR_TRY(plan_make_schedule(plan, &plan->training, true));
        WEIR_TRY(plan_assign_locations(plan, &plan->training, true));
    }
    WEIR_TRY(plan_make_schedule(plan, &plan->inference, false));
    return plan_assign_locations(plan, &plan->inference, false);
}

weir_status plan_create(const struct weir_graph *graph, const struct weir_net_config *config,
                        struct net_plan **out, struct weir_error *err)
{
    WEIR_TRY(check_config(graph, config, err));
    struct net_plan *plan = calloc(1, sizeof(*plan));
    if (!plan) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory for the plan of a net");
    }
    weir_status status = make(plan, graph, config);
    if (status != WEIR_OK) {
        plan_destroy(plan);
        return status == WEIR_ERR_NOMEM
                   ? weir_error_set(err, status, "out of memory for the plan of a net")
                   : status;
    }
    *out = plan;
    return WEIR_OK;
}
