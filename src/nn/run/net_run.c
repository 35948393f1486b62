#include "net.h"
#include "profile_private.h"

#include <math.h>

static real *at_location(const struct weir_net *net, struct location location, weir_value_t value,
                         int32_t first, int32_t i_thread)
{
    size_t image_elems = op_elems(net->plan->shapes[value]);
    char *at;
    switch (location.kind) {
    case LOCATION_SLAB:
        at = net->activations.base + (size_t)first * plan_image_bytes(net->plan, value);
        return (real *)(void *)(at + location.offset);
    case LOCATION_TILE:
        at = net->threads.base + (size_t)i_thread * net->thread_bytes + net->scratch_bytes;
        return (real *)(void *)(at + location.offset);
    case LOCATION_INPUT:
        return net->io.input + (size_t)first * image_elems;
    case LOCATION_OUTPUT:
        return net->io.output + (size_t)first * image_elems;
    case LOCATION_NONE:
        break;
    }
    return NULL;
}

/* The op's packed weights. */
static void *packed_at(const struct weir_net *net, int32_t i_op, bool is_backward)
{
    struct location location = net->run.schedule->packed_weights[2 * i_op + is_backward];
    return location.kind == LOCATION_SLAB ? net->activations.base + location.offset : NULL;
}

/* Everything a kernel of op `o` may touch for images first .. first + n; `data` is where values are
 * at that time of the step. */
static struct op_tile make_tile(const struct weir_net *net, const struct plan_op *o,
                                const struct location *data, int32_t i_thread, int32_t i_slice,
                                int32_t first, int32_t n)
{
    const struct task_schedule *s = net->run.schedule;
    bool is_loss = net->plan->i_loss >= 0 && o == &net->plan->ops[net->plan->i_loss];
    struct op_tile tile = {.i_thread = i_thread,
                           .i_slice = i_slice,
                           .first = first,
                           .n = n,
                           .is_training = net->run.is_training,
                           .step = net->run.step,
                           .labels = net->io.labels + first,
                           .targets = is_loss && net->io.targets
                                          ? net->io.targets + (size_t)first * op_elems(o->op.in[0])
                                          : NULL,
                           .inv_n_labelled = net->run.inv_n_labelled,
                           .loss = &net->io.losses[i_slice],
                           .scratch = net->threads.base + (size_t)i_thread * net->thread_bytes};
    if (!is_loss) {
        tile.y = at_location(net, data[o->out], o->out, first, i_thread);
    }
    for (int32_t j = 0; j < o->op.n_in; j++) {
        tile.x[j] = at_location(net, data[o->in[j]], o->in[j], first, i_thread);
    }
    if (o->op.kind == LAYER_INPUT) {
        tile.x[0] = net->io.input + (size_t)first * op_elems(o->op.out);
    }
    if (!net->run.is_training) {
        return tile;
    }
    tile.dy = is_loss ? NULL : at_location(net, s->gradients[o->out], o->out, first, i_thread);
    for (int32_t j = 0; j < o->op.n_in; j++) {
        if (net->plan->needs_gradient[o->in[j]]) {
            tile.dx[j] = at_location(net, s->gradients[o->in[j]], o->in[j], first, i_thread);
            tile.dx_adds[j] = o->dx_adds[j];
        }
    }
    return tile;
}

/* Records an operation. On a GPU it is only queued: wait until it is done. */
static void end_record(const struct weir_net *net, int32_t i_thread, int32_t i_op, int what,
                       int32_t n_images, uint64_t begin_ns)
{
    if (net->profile && net->on_gpu.gpu) {
        weir_status status = net->on_gpu.gpu->ops->wait(net->on_gpu.gpu);
        (void)status; /* the next wait tells too */
    }
    profile_end(net->profile, i_thread, i_op, what, n_images, begin_ns);
}

/* @param scale  A power of two that the values are multiplied by while they are rounded. */
static void round_values(const struct net_plan *plan, weir_value_t value, real *at, int32_t n,
                         float scale)
{
    enum weir_precision type = plan->types[value];
    size_t n_elems = type == WEIR_PRECISION_F32 ? 0 : (size_t)n * op_elems(plan->shapes[value]);
    for (size_t i = 0; at && i < n_elems; i++) {
        at[i] = op_rounded(type, at[i] * scale) / scale;
    }
}

/* Rounds what a kernel for f32 wrote to what one for bf16 or fp16 would have stored. */
static void round_written(const struct weir_net *net, const struct plan_op *o,
                          enum task_phase phase, const struct op_tile *tile)
{
    const struct net_plan *plan = net->plan;
    if (phase == TASK_FORWARD || phase == TASK_RECOMPUTE) {
        round_values(plan, o->out, tile->y, tile->n, 1);
    }
    for (int32_t j = 0; phase == TASK_BACKWARD && j < o->op.n_in; j++) {
        round_values(plan, o->in[j], tile->dx[j], tile->n, net->loss_scale);
    }
}

/* `rows` rows further down in the picture. */
static real *move_down(const struct net_plan *plan, weir_value_t value, const real *at,
                       int32_t rows)
{
    size_t row_bytes = plan_image_bytes(plan, value) / (size_t)plan->shapes[value].h;
    return at ? (real *)(void *)((char *)(uintptr_t)at + (size_t)rows * row_bytes) : NULL;
}

/* A forward kernel on one row tile of the tile's image. */
static weir_status run_row_tile(const struct weir_net *net, const struct plan_op *o, op_tile_fn fn,
                                struct op_tile *tile, int32_t i_row_tile)
{
    const struct op part = op_of_row_tile(&o->op, i_row_tile);
    const struct op_row_tile *row_tile = &o->op.row_tiles[i_row_tile];
    tile->i_row_tile = i_row_tile;
    tile->y = move_down(net->plan, o->out, tile->y, row_tile->first_out);
    for (int32_t j = 0; j < o->op.n_in; j++) {
        tile->x[j] = move_down(net->plan, o->in[j], tile->x[j],
                               j == 0 ? row_tile->first_in : row_tile->first_out);
    }
    return fn(&part, tile);
}

static weir_status run_task(const struct weir_net *net, struct plan_task task, int32_t i_thread,
                            int32_t i_slice, int32_t i_row_tile)
{
    const struct plan_op *o = &net->plan->ops[task.i_op];
    const struct op_kernels *kernels = &net->backend->kernels[o->op.kind];
    int32_t first, n = plan_tile_images(net->plan, &o->op, i_slice, &first);
    const struct location *data = net->run.schedule->again;
    op_tile_fn fn = NULL;
    switch (task.phase) {
    case TASK_RECOMPUTE:
        fn = kernels->forward;
        break;
    case TASK_FORWARD:
        data = net->run.schedule->data;
        fn = kernels->forward;
        break;
    case TASK_LOSS:
        data = net->run.schedule->data;
        fn = net->run.has_loss ? kernels->forward : NULL;
        break;
    case TASK_FORWARD_SUMS:
        data = net->run.schedule->data;
        fn = kernels->forward_sums;
        break;
    case TASK_BACKWARD_SUMS:
        fn = kernels->backward_sums;
        break;
    case TASK_BACKWARD:
        fn = kernels->backward;
        break;
    case TASK_WEIGHT_GRADIENT:
    case TASK_REFRESH_BACKWARD:
    case TASK_PACK_FORWARD:
    case TASK_PACK_BACKWARD:
        break; /* run_deferred */
    }
    if (!fn || (o->op.n_row_tiles == 0 && i_row_tile > 0)) {
        return WEIR_OK; /* an op without row tiles is done with the first */
    }
    if (task.phase == TASK_LOSS) {
        n = WEIR_MIN(n, net->run.n_images - first); /* other tasks compute a slice whole */
    }
    struct op_tile tile = make_tile(net, o, data, i_thread, i_slice, first, n);
    tile.packed_weights = packed_at(net, task.i_op, task.phase == TASK_BACKWARD);
    if (o->op.n_row_tiles > 0) {
        return run_row_tile(net, o, fn, &tile, i_row_tile);
    }
    WEIR_TRY(fn(&o->op, &tile));
    if (net->backend->keeps_f32) {
        round_written(net, o, task.phase, &tile);
    }
    return WEIR_OK;
}

static weir_status run_tile(void *context, int32_t i_thread, int32_t i_stage, int32_t i_tile)
{
    struct weir_net *net = context;
    const struct task_schedule *s = net->run.schedule;
    if (net->on_gpu.gpu && net->run.is_training) {
        WEIR_TRY(net_gpu_begin_stage(net, i_stage));
    }
    int32_t i_slice = i_tile / net->plan->n_row_tiles, i_row_tile = i_tile % net->plan->n_row_tiles;
    for (int32_t i = s->first_task[i_stage]; i < s->first_task[i_stage + 1]; i++) {
        int32_t first;
        int32_t n =
            plan_tile_images(net->plan, &net->plan->ops[s->tasks[i].i_op].op, i_slice, &first);
        if (n == 0) {
            continue; /* an op that batches slices; another slice is its first */
        }
        WEIR_TRY(lazy_weights_require(net, s->tasks[i].i_op, i_thread));
        uint64_t begin_ns = profile_begin(net->profile);
        WEIR_TRY(run_task(net, s->tasks[i], i_thread, i_slice, i_row_tile));
        end_record(net, i_thread, s->tasks[i].i_op, (int)s->tasks[i].phase, n, begin_ns);
    }
    return WEIR_OK;
}

struct weir_step_result net_sum_losses(const struct weir_net *net, int32_t n_slices)
{
    struct weir_step_result result = {0, 0, 0};
    for (int32_t i = 0; i < n_slices; i++) {
        result.loss += net->caller.losses[i].loss;
        result.n_correct += net->caller.losses[i].n_correct;
        result.n_labelled += net->caller.losses[i].n_labelled;
    }
    if (result.n_labelled > 0) {
        result.loss /= result.n_labelled;
    }
    return result;
}

static weir_status end_stage(void *context, int32_t i_thread, int32_t i_stage)
{
    struct weir_net *net = context;
    const struct task_schedule *s = net->run.schedule;
    for (int32_t i = s->first_combine[i_stage]; i < s->first_combine[i_stage + 1]; i++) {
        const struct op *op = &net->plan->ops[s->combines[i].i_op].op;
        const struct op_kernels *kernels = &net->backend->kernels[op->kind];
        bool is_forward = s->combines[i].phase == TASK_FORWARD_SUMS;
        uint64_t begin_ns = profile_begin(net->profile);
        WEIR_TRY(is_forward ? kernels->forward_combine(op) : kernels->backward_combine(op));
        end_record(net, i_thread, s->combines[i].i_op,
                   is_forward ? PROFILE_FORWARD_COMBINE : PROFILE_BACKWARD_COMBINE,
                   net->plan->batch, begin_ns);
        if (!is_forward) {
            gradient_buckets_op_done(net, op);
        }
    }
    if (net->run.apply && i_stage == s->loss_stage) {
        net->run.is_spoilt = !isfinite(net_sum_losses(net, net->plan->n_slices).loss);
    }
    return WEIR_OK;
}

void net_add_to(float *sum, const float *part, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += part[i];
    }
}

void *net_part_memory(const struct weir_net *net, int32_t i_thread)
{
    return net->threads.base + (size_t)(i_thread + 1) * net->thread_bytes - net->part_bytes;
}

struct op_tile net_gradient_tile(const struct weir_net *net, const struct plan_op *o,
                                 int32_t i_thread, int32_t first, int32_t n)
{
    return make_tile(net, o, net->run.schedule->again, i_thread, 0, first, n);
}

/* Room for one part of the largest gradient that is made of parts, or for rows of one. */
size_t net_part_bytes(const struct net_plan *plan)
{
    size_t most = 0;
    for (int32_t i = 0; plan->is_training && i < plan->n_ops; i++) {
        const struct op *op = &plan->ops[i].op;
        if (op->update_rows > 0) {
            most = WEIR_MAX(most, net_row_bytes(plan, &plan->ops[i]));
        } else if (plan->n_gradient_parts > 1 && plan_has_parts(op)) {
            size_t n_elems = op->params[OP_WEIGHT].n_elems + op->params[OP_BIAS].n_elems;
            most = WEIR_MAX(most, n_elems * sizeof(float));
        }
    }
    return (most + 63) / 64 * 64;
}

/* Makes the gradient of a later part of the batch in the thread's memory, and adds it to that of
 * the parts before. */
static weir_status add_part(struct weir_net *net, const struct plan_op *o, int32_t i_thread,
                            int32_t i_part)
{
    const struct op_param *params = o->op.params;
    struct op part = o->op;
    part.params[OP_WEIGHT].gradient = net_part_memory(net, i_thread);
    if (params[OP_BIAS].gradient) {
        part.params[OP_BIAS].gradient = part.params[OP_WEIGHT].gradient + params[OP_WEIGHT].n_elems;
    }
    int32_t n = part.gradient_batch;
    struct op_tile tile = net_gradient_tile(net, o, i_thread, i_part * n, n);
    WEIR_TRY(net->backend->kernels[part.kind].weight_gradient(&part, &tile));
    net_add_to(params[OP_WEIGHT].gradient, part.params[OP_WEIGHT].gradient,
               params[OP_WEIGHT].n_elems);
    if (params[OP_BIAS].gradient) {
        net_add_to(params[OP_BIAS].gradient, part.params[OP_BIAS].gradient,
                   params[OP_BIAS].n_elems);
    }
    return WEIR_OK;
}

/* In a lane of its own, with scratch memory of its own. */
static weir_status make_gradient_on_gpu(struct weir_net *net, const struct plan_op *o)
{
    struct op_tile tile = net_gradient_tile(net, o, 0, 0, o->op.gradient_batch);
    tile.scratch = net->on_gpu.lane_scratch.base;
    WEIR_TRY(net_gpu_enter_lane(net));
    weir_status status = net->backend->kernels[o->op.kind].weight_gradient(&o->op, &tile);
    weir_status left = net_gpu_leave_lane(net);
    return status == WEIR_OK ? left : status;
}

static weir_status make_gradient(struct weir_net *net, const struct plan_op *o, int32_t i_thread)
{
    if (net->on_gpu.gpu) {
        return make_gradient_on_gpu(net, o);
    }
    struct op_tile tile = net_gradient_tile(net, o, i_thread, 0, o->op.gradient_batch);
    WEIR_TRY(net->backend->kernels[o->op.kind].weight_gradient(&o->op, &tile));
    for (int32_t i = 1; i < net->plan->batch / o->op.gradient_batch; i++) {
        WEIR_TRY(add_part(net, o, i_thread, i));
    }
    return WEIR_OK;
}

static weir_status run_refresh_backward(const struct weir_net *net, int32_t i_op, int32_t i_thread)
{
    const struct op *op = &net->plan->ops[i_op].op;
    void *scratch = net->threads.base + (size_t)i_thread * net->thread_bytes;
    uint64_t begin_ns = profile_begin(net->profile);
    WEIR_TRY(net->backend->kernels[op->kind].refresh_backward(op, i_thread, scratch));
    end_record(net, i_thread, i_op, TASK_REFRESH_BACKWARD, 0, begin_ns);
    return WEIR_OK;
}

static weir_status run_pack(struct weir_net *net, struct plan_task task, int32_t i_thread)
{
    const struct op *op = &net->plan->ops[task.i_op].op;
    bool is_backward = task.phase == TASK_PACK_BACKWARD;
    if (!net->run.is_training && net->are_packed_fresh) {
        return WEIR_OK;
    }
    WEIR_TRY(lazy_weights_require(net, task.i_op, i_thread));
    uint64_t begin_ns = profile_begin(net->profile);
    net->backend->kernels[op->kind].pack(op, is_backward, packed_at(net, task.i_op, is_backward));
    end_record(net, i_thread, task.i_op, (int)task.phase, 0, begin_ns);
    return WEIR_OK;
}

static weir_status refresh_op(const struct weir_net *net, int32_t i_op, int32_t i_thread)
{
    const struct op *op = &net->plan->ops[i_op].op;
    void *scratch = net->threads.base + (size_t)i_thread * net->thread_bytes;
    uint64_t begin_ns = profile_begin(net->profile);
    if (net->backend->kernels[op->kind].refresh) {
        WEIR_TRY(net->backend->kernels[op->kind].refresh(op, i_thread, scratch));
        end_record(net, i_thread, i_op, PROFILE_REFRESH, 0, begin_ns);
    }
    return WEIR_OK;
}

/* A task that has updated all of an op's parameters has them in cache, and no other task reads the
 * op's copies. */
static bool is_refreshed_early(const struct op *op)
{
    return op->n_updates == 1;
}

static weir_status run_deferred(void *context, int32_t i_thread, int32_t i_deferred)
{
    struct weir_net *net = context;
    struct plan_task task = net->run.schedule->deferred_tasks[i_deferred];
    const struct plan_op *o = &net->plan->ops[task.i_op];
    if (task.phase == TASK_REFRESH_BACKWARD) {
        return run_refresh_backward(net, task.i_op, i_thread);
    }
    if (task.phase != TASK_WEIGHT_GRADIENT) {
        return run_pack(net, task, i_thread);
    }
    if (net->run.is_spoilt) {
        return WEIR_OK;
    }
    bool is_updated = o->op.n_updates > 0;
    uint64_t begin_ns = profile_begin(net->profile);
    WEIR_TRY(o->op.update_rows > 0 ? net_update_rows(net, o, i_thread, task.i_part)
                                   : make_gradient(net, o, i_thread));
    if (is_updated && o->op.update_rows == 0) {
        net_apply_gradients(net, &o->op);
    }
    end_record(net, i_thread, task.i_op,
               is_updated ? (int)PROFILE_GRADIENT_AND_UPDATE : (int)task.phase, net->plan->batch,
               begin_ns);
    gradient_buckets_op_done(net, &o->op);
    return is_refreshed_early(&o->op) ? refresh_op(net, task.i_op, i_thread) : WEIR_OK;
}

static weir_status run_refresh(void *context, int32_t i_thread, int32_t i_deferred)
{
    const struct weir_net *net = context;
    return refresh_op(net, net->refresh_ops[i_deferred], i_thread);
}

static struct program program_of(struct weir_net *net, const struct task_schedule *s)
{
    return (struct program){.stages = s->stages,
                            .n_stages = s->n_stages,
                            .deferred = s->deferred,
                            .n_deferred = s->n_deferred,
                            .n_tiles = net->plan->n_slices * net->plan->n_row_tiles,
                            .run_tile = run_tile,
                            .end_stage = end_stage,
                            .run_deferred = run_deferred,
                            .context = net};
}

weir_status net_make_programs(struct weir_net *net)
{
    size_t n_ops = (size_t)net->plan->n_ops;
    net->refresh_deferred = calloc(n_ops + 1, sizeof(*net->refresh_deferred));
    net->refresh_ops = calloc(n_ops + 1, sizeof(*net->refresh_ops));
    if (!net->refresh_deferred || !net->refresh_ops) {
        return WEIR_ERR_NOMEM;
    }
    net->refresh = (struct program){
        .deferred = net->refresh_deferred, .run_deferred = run_refresh, .context = net};
    net->rest_refresh = net->refresh;
    /* First those that are not refreshed in backward. */
    for (int32_t i = 0; i < 2 * net->plan->n_ops; i++) {
        int32_t i_op = i % net->plan->n_ops;
        const struct op *op = &net->plan->ops[i_op].op;
        bool is_early = i >= net->plan->n_ops;
        /* On a GPU norms are refreshed before inference alone, with the statistics. */
        bool is_left = net->on_gpu.gpu && op->kind == LAYER_BATCH_NORM;
        if (net->backend->kernels[op->kind].refresh && !op->is_folded && !is_left &&
            is_refreshed_early(op) == is_early) {
            net->refresh_ops[net->refresh.n_deferred++] = i_op;
            net->rest_refresh.n_deferred += !is_early;
        }
    }
    net->training = program_of(net, &net->plan->training);
    net->inference = program_of(net, &net->plan->inference);
    return net_make_updates(net);
}
