/* Steps and forward passes as the caller asks for them: what is checked before, and what is told
 * afterwards. */
#include "net.h"

void net_enter(const struct weir_net *net)
{
    if (net->backend->enter_thread) {
        net->backend->enter_thread();
    }
    if (net->on_gpu.gpu) {
        net->on_gpu.gpu->ops->enter(net->on_gpu.gpu);
    }
}

static void note_refreshed(struct weir_net *net)
{
    net->are_statistics_stale = false;
    net->are_copies_of_backward = false;
    net->are_packed_fresh = false;
}

void weir_net_weights_changed(struct weir_net *net)
{
    net_enter(net);
    if (net->on_gpu.gpu) {
        /* A GPU that fails stays so: the next wait tells. */
        weir_status status = net_gpu_weights_changed(net);
        (void)status;
        return;
    }
    /* Refreshing only copies and scales: a back-end that fails here would have failed in create. */
    weir_status status = workers_run(net->workers, &net->refresh);
    (void)status;
    note_refreshed(net);
}

/* Inference uses running statistics, which steps move without touching weights. */
void net_refresh_statistics(struct weir_net *net)
{
    for (int32_t i = 0; net->are_statistics_stale && i < net->plan->n_ops; i++) {
        const struct op *op = &net->plan->ops[i].op;
        if (op->kind == LAYER_BATCH_NORM && !op->is_folded) {
            weir_status status = net->backend->kernels[op->kind].refresh(op, 0, net->threads.base);
            (void)status;
        }
    }
    net->are_statistics_stale = false;
}

/* A step before has left the convolutions with what backward reads. */
static void refresh_copies(struct weir_net *net)
{
    if (net->are_copies_of_backward) {
        weir_net_weights_changed(net);
    }
}

/* @return false if a label is out of range. */
static bool count_labels(const struct weir_net *net, int32_t n, int32_t *out_n_labelled)
{
    int32_t n_classes = net->plan->ops[net->plan->i_loss].op.n_classes, n_labelled = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t label = net->caller.labels[i];
        if (label < -1 || label >= n_classes) {
            return false;
        }
        n_labelled += label >= 0;
    }
    *out_n_labelled = n_labelled;
    return true;
}

static weir_status take_step(struct weir_net *net, const struct net_run *run,
                             struct weir_step_result *out)
{
    net->run = *run;
    net_enter(net);
    refresh_copies(net);
    net->are_statistics_stale = true;
    net->are_copies_of_backward = net->plan->refreshes_backward;
    net->are_packed_fresh = false;
    WEIR_TRY(workers_run(net->workers, &net->training));
    if (out) {
        *out = net_sum_losses(net, net->plan->n_slices);
    }
    return WEIR_OK;
}

/* @return false if there is a label out of range, or nothing to train. */
static bool begin_step(const struct weir_net *net, uint64_t step, struct net_run *out)
{
    int32_t n_labelled;
    if (!net->plan->is_training || !count_labels(net, net->plan->batch, &n_labelled)) {
        return false;
    }
    int64_t n_mean = net->n_labelled > 0 ? net->n_labelled : n_labelled;
    *out = (struct net_run){.schedule = &net->plan->training,
                            .is_training = true,
                            .has_loss = true,
                            .n_images = net->plan->batch,
                            .step = step,
                            .inv_n_labelled = n_mean > 0 ? 1.0 / (double)n_mean : 0};
    return true;
}

weir_status weir_net_step(struct weir_net *net, uint64_t step, weir_net_bucket_fn on_bucket,
                          void *bucket_context, struct weir_step_result *out)
{
    struct net_run run;
    if (net->plan->updates_in_backward || !begin_step(net, step, &run)) {
        return WEIR_ERR_INVALID;
    }
    if (net->on_gpu.gpu) {
        net->run = run;
        WEIR_TRY(net_gpu_step(net, on_bucket, bucket_context, out != NULL));
        if (out) {
            *out = net_sum_losses(net, net->plan->n_slices);
        }
        return WEIR_OK;
    }
    gradient_buckets_start(net, on_bucket, bucket_context);
    return take_step(net, &run, out);
}

weir_status weir_net_step_and_update(struct weir_net *net, uint64_t step, weir_net_apply_fn apply,
                                     void *apply_context, struct weir_step_result *out)
{
    struct net_run run;
    if (!net->plan->updates_in_backward || !begin_step(net, step, &run)) {
        return WEIR_ERR_INVALID;
    }
    run.apply = apply;
    run.apply_context = apply_context;
    gradient_buckets_start(net, NULL, NULL);
    WEIR_TRY(take_step(net, &run, out));
    if (net->run.is_spoilt) {
        return WEIR_OK;
    }
    WEIR_TRY(workers_run(net->workers, &net->rest));
    WEIR_TRY(workers_run(net->workers, &net->rest_refresh));
    note_refreshed(net);
    return WEIR_OK;
}

/* Slices that hold the first n images. */
static int32_t slices_of(const struct net_plan *plan, int32_t n)
{
    int32_t n_slices = 0;
    while (plan_slice_first(plan, n_slices) < n) {
        n_slices++;
    }
    return n_slices;
}

/* @param waits  Or, on a GPU, return when it is queued. */
static weir_status forward(struct weir_net *net, int32_t n, struct weir_step_result *result,
                           bool waits)
{
    const struct net_plan *plan = net->plan;
    int32_t n_labelled = 0, n_slices;
    if (n < 0 || n > plan->batch || (result && plan->i_loss < 0) ||
        (result && net->on_gpu.gpu && net->io.targets) ||
        (result && !count_labels(net, n, &n_labelled))) {
        return WEIR_ERR_INVALID;
    }
    n_slices = slices_of(plan, n);
    net->run = (struct net_run){.schedule = &plan->inference,
                                .has_loss = result != NULL,
                                .n_images = n,
                                .inv_n_labelled = n_labelled > 0 ? 1.0 / n_labelled : 0};
    if (net->on_gpu.gpu) {
        WEIR_TRY(net_gpu_forward(net, waits));
        if (result) {
            *result = net_sum_losses(net, plan->n_slices);
        }
        return WEIR_OK;
    }
    net_enter(net);
    WEIR_TRY(weir_net_wait_weights(net));
    refresh_copies(net);
    net_refresh_statistics(net);
    struct program program = net->inference;
    program.n_tiles = n_slices * plan->n_row_tiles;
    if (n_slices > 0) {
        WEIR_TRY(workers_run(net->workers, &program));
        net->are_packed_fresh = true;
    }
    if (result) {
        *result = net_sum_losses(net, n_slices);
    }
    return WEIR_OK;
}

weir_status weir_net_forward(struct weir_net *net, int32_t n, struct weir_step_result *result)
{
    return forward(net, n, result, true);
}

weir_status weir_net_begin_forward(struct weir_net *net, int32_t n)
{
    return forward(net, n, NULL, false);
}

weir_status weir_net_wait(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (!gpu) {
        return WEIR_OK;
    }
    net_enter(net);
    return gpu->ops->wait(gpu);
}

weir_status weir_net_check_copies(struct weir_net *net, struct weir_error *err)
{
    return weir_net_wait(net) == WEIR_OK
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_INTERNAL,
                     "the GPU has failed: its newest weights are lost; begin again at the "
                     "last checkpoint");
}
