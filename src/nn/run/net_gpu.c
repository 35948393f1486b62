/* What differs where tensors lie on a GPU: memory, copies for the caller, and recorded programs. */
#include "net.h"

#include "nn/net_group.h"
#include "nn/optimizer/optimizer_private.h"

#include <math.h>
#include <stdlib.h>

/* ---- memory ----------------------------------------------------------------------------------- */

weir_status net_map(struct weir_net *net, struct slab *slab, size_t size_bytes,
                    struct weir_error *err)
{
    struct gpu *gpu = net->on_gpu.gpu;
    void *base = NULL;
    if (!gpu) {
        return slab_map(slab, size_bytes) ? WEIR_OK : WEIR_ERR_NOMEM;
    }
    WEIR_TRY(gpu->ops->alloc(gpu, size_bytes, &base, err));
    *slab = (struct slab){base, size_bytes, 0};
    return WEIR_OK;
}

void net_unmap(struct weir_net *net, struct slab *slab)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (!gpu) {
        slab_unmap(slab);
        return;
    }
    gpu->ops->free(gpu, slab->base);
    *slab = (struct slab){NULL, 0, 0};
}

static weir_status map_pinned(struct gpu *gpu, struct slab *slab, size_t size_bytes,
                              struct weir_error *err)
{
    void *base = NULL;
    WEIR_TRY(gpu->ops->alloc_pinned(gpu, size_bytes, &base, err));
    *slab = (struct slab){base, size_bytes, 0};
    return WEIR_OK;
}

weir_status net_gpu_map_io(struct weir_net *net, size_t io_bytes, struct weir_error *err)
{
    size_t n_elems = (size_t)net->plan->batch * op_elems(net->plan->shapes[net->plan->input]);
    if (net->plan->is_training) {
        WEIR_TRY(net_map(net, &net->on_gpu.ahead, n_elems * sizeof(float), err));
    }
    return map_pinned(net->on_gpu.gpu, &net->on_gpu.host_io, io_bytes, err);
}

weir_status net_gpu_map_params(struct weir_net *net, const struct weir_net_config *config,
                               struct weir_error *err)
{
    struct net_on_gpu *on_gpu = &net->on_gpu;
    size_t weight_bytes = net->n_weight_elems * sizeof(float);
    WEIR_TRY(net_map(net, &on_gpu->weights, weight_bytes, err));
    WEIR_TRY(net_map(net, &on_gpu->gradients, net->gradient_bytes, err));
    net->op_weights = (float *)(void *)on_gpu->weights.base;
    net->op_gradients = (float *)(void *)on_gpu->gradients.base;
    if (!config->alloc_weights) {
        WEIR_TRY(map_pinned(on_gpu->gpu, &on_gpu->host_weights, weight_bytes, err));
        net->weights = (float *)(void *)on_gpu->host_weights.base;
    }
    return WEIR_OK;
}

void net_gpu_unmap(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    gpu->ops->enter(gpu);
    if (net->on_gpu.optimizer) {
        optimizer_gpu_detach(net->on_gpu.optimizer);
    }
    weir_status status = gpu->ops->wait(gpu); /* nothing is to write freed memory */
    (void)status;
    weir_net_group_close(net);
    net_unmap(net, &net->on_gpu.weights);
    net_unmap(net, &net->on_gpu.gradients);
    net_unmap(net, &net->on_gpu.lane_scratch);
    net_unmap(net, &net->on_gpu.ahead);
    gpu->ops->free_pinned(gpu, net->on_gpu.host_io.base);
    gpu->ops->free_pinned(gpu, net->on_gpu.host_weights.base);
}

/* ---- lanes ------------------------------------------------------------------------------------ */

/* Mark 0 is where lane 0 is; the others are ends of deferred tasks, by the stage that opened them. */
#define N_STAGE_MARKS (GPU_MARKS - 1)

_Static_assert(N_STAGE_MARKS > PLAN_LANE_SLACK + 1, "a mark is waited for before it is used again");

static int mark_of(int32_t i_stage)
{
    return 1 + i_stage % N_STAGE_MARKS;
}

static weir_status join(struct weir_net *net, int i_mark)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (!net->on_gpu.has_mark[i_mark]) {
        return WEIR_OK;
    }
    net->on_gpu.has_mark[i_mark] = false;
    return gpu->ops->wait_mark(gpu, i_mark);
}

weir_status net_gpu_begin_stage(struct weir_net *net, int32_t i_stage)
{
    int32_t i_opened = i_stage - 1 - PLAN_LANE_SLACK;
    net->on_gpu.i_stage = i_stage;
    return i_opened >= 0 ? join(net, mark_of(i_opened)) : WEIR_OK;
}

weir_status net_gpu_enter_lane(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    WEIR_TRY(gpu->ops->mark(gpu, 0));
    gpu->ops->set_lane(gpu, 1);
    return gpu->ops->wait_mark(gpu, 0);
}

weir_status net_gpu_leave_lane(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    int i_mark = mark_of(net->on_gpu.i_stage);
    weir_status status = gpu->ops->mark(gpu, i_mark);
    net->on_gpu.has_mark[i_mark] = true;
    gpu->ops->set_lane(gpu, 0);
    return status;
}

weir_status net_gpu_run_program(struct weir_net *net, const struct program *program)
{
    struct gpu *gpu = net->on_gpu.gpu;
    weir_status status = workers_run(net->workers, program);
    gpu->ops->set_lane(gpu, 0);
    for (int i = 1; i < GPU_MARKS; i++) {
        weir_status waited = join(net, i);
        status = status == WEIR_OK ? waited : status;
    }
    weir_status summed = net->on_gpu.group.is_open ? gpu->ops->join_group(gpu) : WEIR_OK;
    return status == WEIR_OK ? summed : status;
}

_Static_assert(NET_RECORDS <= GPU_RECORDS, "each has a slot");

/* ---- recorded programs ------------------------------------------------------------------------ */

static weir_status record(struct weir_net *net, enum net_record slot, const struct program *program)
{
    struct gpu *gpu = net->on_gpu.gpu;
    WEIR_TRY(gpu->ops->begin_record(gpu));
    weir_status status = net_gpu_run_program(net, program);
    weir_status ended = gpu->ops->end_record(gpu, (int)slot);
    return status == WEIR_OK ? ended : status;
}

/* A program queues the same calls every time: it runs once, to be recorded. With a profile it runs
 * each time, as every operation is waited for. */
weir_status net_gpu_run_recorded(struct weir_net *net, enum net_record slot,
                                 const struct program *program)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (net->profile) {
        return net_gpu_run_program(net, program);
    }
    weir_status status = gpu->ops->replay(gpu, (int)slot);
    if (status == WEIR_ERR_NOT_FOUND) {
        WEIR_TRY(record(net, slot, program));
        status = gpu->ops->replay(gpu, (int)slot);
    }
    return status;
}

/* ---- weights ---------------------------------------------------------------------------------- */

static weir_status refresh(struct weir_net *net)
{
    net->are_statistics_stale = true;
    return net_gpu_run_recorded(net, NET_REFRESH, &net->refresh);
}

weir_status net_gpu_weights_changed(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    /* A caller that has written weights has asked for them. */
    if (!net->on_gpu.are_weights_behind) {
        WEIR_TRY(gpu->ops->upload(gpu, net->op_weights, net->weights,
                                  net->n_weight_elems * sizeof(float)));
        WEIR_TRY(gpu->ops->wait_uploads(gpu));
    }
    return refresh(net);
}

weir_status net_gpu_weights_updated(struct weir_net *net)
{
    net->on_gpu.are_weights_behind = true;
    return refresh(net);
}

static weir_status fetch(struct weir_net *net, void *to, const void *from, size_t size_bytes)
{
    struct gpu *gpu = net->on_gpu.gpu;
    net_enter(net);
    WEIR_TRY(gpu->ops->download(gpu, to, from, size_bytes));
    return gpu->ops->wait(gpu);
}

void weir_net_statistics_changed(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    size_t first = net->n_trainable_elems, n = net->n_weight_elems - first;
    net->are_statistics_stale = true;
    if (gpu && n > 0) {
        net_enter(net);
        weir_status status =
            gpu->ops->upload(gpu, net->op_weights + first, net->weights + first, n * sizeof(float));
        status = status == WEIR_OK ? gpu->ops->wait_uploads(gpu) : status;
        (void)status; /* a GPU that fails stays so: the next wait tells */
    }
}

void net_gpu_fetch_weights(struct weir_net *net)
{
    net->on_gpu.are_weights_behind = false;
    weir_status status =
        fetch(net, net->weights, net->op_weights, net->n_weight_elems * sizeof(float));
    (void)status;
}

/* In fp16 a step leaves gradients with the loss scale; an update on the GPU takes them so. */
static void unscale(struct weir_net *net)
{
    if (net->on_gpu.are_gradients_scaled) {
        net->on_gpu.are_gradients_scaled = false;
        net_enter(net);
        weir_status status =
            net->backend->unscale(net->backend_context, net->op_gradients, net->n_trainable_elems);
        (void)status; /* a GPU that fails stays so: the next wait tells */
    }
}

void net_gpu_fetch_gradients(struct weir_net *net)
{
    if (!net->gradients) {
        if (!slab_map(&net->own_gradients, net->gradient_bytes)) {
            return;
        }
        net->gradients = (float *)(void *)net->own_gradients.base;
    }
    if (net->on_gpu.are_gradients_behind) {
        net->on_gpu.are_gradients_behind = false;
        unscale(net);
        weir_status status = fetch(net, net->gradients, net->op_gradients, net->gradient_bytes);
        (void)status;
    }
}

/* ---- runs ------------------------------------------------------------------------------------- */

static size_t input_bytes(const struct weir_net *net)
{
    return (size_t)net->run.n_images * op_elems(net->plan->shapes[net->plan->input]) *
           sizeof(float);
}

/* Beside what computes. The memory of a step that computes is not touched: its kernels read a copy. */
static weir_status upload_ahead(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    net->on_gpu.is_input_new = false;
    net->on_gpu.has_ahead = true;
    return gpu->ops->upload_ahead(gpu, net->on_gpu.ahead.base, net->caller.input, input_bytes(net));
}

static weir_status bring_input(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (!net->run.is_training) {
        bool is_new = net->on_gpu.is_input_new;
        net->on_gpu.is_input_new = false;
        return is_new ? gpu->ops->upload(gpu, net->io.input, net->caller.input, input_bytes(net))
                      : WEIR_OK;
    }
    if (net->on_gpu.is_input_new) {
        WEIR_TRY(upload_ahead(net));
    }
    if (!net->on_gpu.has_ahead) {
        return WEIR_OK;
    }
    net->on_gpu.has_ahead = false;
    return gpu->ops->take_ahead(gpu, net->io.input, net->on_gpu.ahead.base, input_bytes(net));
}

/* The batch, and what the step is. */
static weir_status begin(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    const struct net_run *run = &net->run;
    net_enter(net);
    WEIR_TRY(bring_input(net));
    if (run->has_loss) {
        WEIR_TRY(gpu->ops->upload(gpu, net->io.labels, net->caller.labels,
                                  (size_t)run->n_images * sizeof(int32_t)));
    }
    const struct backend_step step = {.step = run->step,
                                      .first_image = net->first_image,
                                      .inv_n_labelled = run->inv_n_labelled,
                                      .n_images = run->n_images};
    return net->backend->set_step(net->backend_context, &step);
}

/* All is queued: the caller's memory of this batch is free when its uploads are done. */
static weir_status fill_ahead(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (!net->run.is_training || !net->on_gpu.fill) {
        return WEIR_OK;
    }
    WEIR_TRY(gpu->ops->wait_uploads(gpu));
    return net->on_gpu.fill(net->on_gpu.fill_context) ? upload_ahead(net) : WEIR_OK;
}

/* @param waits  Else the caller may write the next batch, and no more. */
static weir_status end(struct weir_net *net, bool waits)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (net->run.has_loss && waits) {
        WEIR_TRY(
            gpu->ops->download(gpu, net->caller.losses, net->io.losses, sizeof *net->io.losses));
    }
    if (waits || !net->run.is_training) {
        size_t out_bytes = op_elems(net->plan->shapes[net->plan->output]) * sizeof(float);
        WEIR_TRY(gpu->ops->download(gpu, net->caller.output, net->io.output,
                                    (size_t)net->run.n_images * out_bytes));
    }
    WEIR_TRY(fill_ahead(net));
    return waits ? gpu->ops->wait(gpu) : gpu->ops->wait_uploads(gpu);
}

/* The running statistics lie behind all trainable weights. */
static weir_status fetch_statistics(struct weir_net *net, bool waits)
{
    struct gpu *gpu = net->on_gpu.gpu;
    size_t first = net->n_trainable_elems, n = net->n_weight_elems - first;
    net->are_statistics_stale = true;
    if (n == 0) {
        return WEIR_OK;
    }
    if (!waits) {
        net->on_gpu.are_weights_behind = true;
        return WEIR_OK;
    }
    return gpu->ops->download(gpu, net->weights + first, net->op_weights + first,
                              n * sizeof(float));
}

static void report_buckets(struct weir_net *net, weir_net_bucket_fn on_bucket, void *context)
{
    net_gpu_fetch_gradients(net);
    gradient_buckets_start(net, on_bucket, context);
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        gradient_buckets_op_done(net, &net->plan->ops[i].op);
    }
}

/* Weights that are pending are written by the caller's function, in its own memory. */
static weir_status take_pending(struct weir_net *net)
{
    if (!lazy_weights_has_pending(net)) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_net_wait_weights(net));
    return net_gpu_weights_changed(net);
}

/* Queues forward and backward, and waits for what the caller wants to know. */
static weir_status take_step(struct weir_net *net, bool waits)
{
    WEIR_TRY(begin(net));
    WEIR_TRY(net->on_gpu.group.is_open ? net_group_run(net)
                                       : net_gpu_run_recorded(net, NET_TRAINING, &net->training));
    net->on_gpu.are_gradients_behind = true;
    net->on_gpu.are_gradients_scaled = net->is_scaled;
    WEIR_TRY(fetch_statistics(net, waits));
    return end(net, waits);
}

weir_status net_gpu_step(struct weir_net *net, weir_net_bucket_fn on_bucket, void *bucket_context,
                         bool waits)
{
    net_enter(net);
    WEIR_TRY(take_pending(net));
    gradient_buckets_start(net, NULL, NULL);
    weir_status status = take_step(net, waits || on_bucket);
    if (status != WEIR_OK) {
        return net->on_gpu.group.is_open ? net_group_fail(net, status) : status;
    }
    if (on_bucket) {
        report_buckets(net, on_bucket, bucket_context);
    }
    return WEIR_OK;
}

weir_status net_gpu_forward(struct weir_net *net, bool waits)
{
    bool has_loss = net->run.has_loss;
    net_enter(net);
    WEIR_TRY(take_pending(net));
    net_refresh_statistics(net);
    WEIR_TRY(begin(net));
    WEIR_TRY(net_gpu_run_recorded(net, has_loss ? NET_INFERENCE_WITH_LOSS : NET_INFERENCE,
                                  &net->inference));
    return end(net, waits);
}

/* ---- the loss scale --------------------------------------------------------------------------- */

struct weir_loss_scale weir_net_loss_scale(struct weir_net *net)
{
    struct weir_loss_scale scale = {.scale = 1};
    if (net->is_scaled) {
        net_enter(net);
        weir_status status = net->backend->get_scale(net->backend_context, &scale);
        (void)status; /* a GPU that fails stays so: the next wait tells */
    }
    return scale;
}

weir_status weir_net_set_loss_scale(struct weir_net *net, const struct weir_loss_scale *scale)
{
    if (!net->is_scaled) {
        return WEIR_OK;
    }
    if (!isfinite(scale->scale) || scale->scale <= 0) {
        return WEIR_ERR_INVALID;
    }
    net_enter(net);
    return net->backend->set_scale(net->backend_context, scale);
}

bool net_note_gradients(struct weir_net *net, const float *gradients)
{
    bool is_finite = true;
    for (size_t i = 0; net->is_scaled && is_finite && i < net->n_trainable_elems; i++) {
        is_finite = isfinite(gradients[i]);
    }
    if (net->is_scaled) {
        net_enter(net);
        weir_status status = net->backend->note_update(net->backend_context, is_finite);
        (void)status; /* as above */
    }
    return is_finite;
}
