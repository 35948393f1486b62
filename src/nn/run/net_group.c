/* Gradients summed over the GPUs of a group, bucket by bucket, while backward is queued. */
#include "nn/net_group.h"

#include "net.h"

#include <string.h>

_Static_assert(WEIR_NET_GPU_BYTES == GPU_PLACE_BYTES, "they are the same text");
_Static_assert(sizeof(struct weir_net_group_id) == sizeof(struct gpu_group_id), "the same bytes");

weir_status weir_net_gpu_find(const struct weir_net_config *config, struct weir_net_gpu *out,
                              struct weir_error *err)
{
    struct gpu_probe probe;
    if (!config->backend || !config->backend->probe) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "the net does not lie on a GPU");
    }
    WEIR_TRY(config->backend->probe(config->gpu, &probe, err));
    memcpy(out->place, probe.place, sizeof out->place);
    return WEIR_OK;
}

weir_status weir_net_group_make_id(struct weir_net *net, struct weir_net_group_id *out,
                                   struct weir_error *err)
{
    struct gpu *gpu = net->on_gpu.gpu;
    struct gpu_group_id id;
    if (!gpu) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "the net does not lie on a GPU");
    }
    net_enter(net);
    WEIR_TRY(gpu->ops->make_group_id(gpu, &id, err));
    memcpy(out->bytes, id.bytes, sizeof out->bytes);
    return WEIR_OK;
}

weir_status weir_net_group_open(struct weir_net *net, const struct weir_net_group *group,
                                struct weir_error *err)
{
    struct gpu *gpu = net->on_gpu.gpu;
    struct net_in_group *own = &net->on_gpu.group;
    struct gpu_group on_gpu = {.rank = group->rank,
                               .size = group->size,
                               .timeout_ms = group->timeout_ms,
                               .check = group->check,
                               .context = group->context};
    if (!gpu || !net->plan->is_training || net->plan->updates_in_backward) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a group is for nets that train on GPUs and keep their gradients");
    }
    memcpy(on_gpu.id.bytes, group->id.bytes, sizeof on_gpu.id.bytes);
    weir_net_group_close(net);
    net_enter(net);
    if (group->accumulates) {
        WEIR_TRY(net_map(net, &own->sums, net->gradient_bytes, err));
    }
    weir_status status = gpu->ops->open_group(gpu, &on_gpu, err);
    if (status != WEIR_OK) {
        net_unmap(net, &own->sums);
        return status;
    }
    own->is_open = own->is_first_run = own->is_last_run = true;
    own->is_warm = false;
    weir_net_set_bucket_bytes(net, WEIR_NET_GROUP_BUCKET_BYTES);
    return WEIR_OK;
}

void weir_net_group_close(struct weir_net *net)
{
    struct gpu *gpu = net->on_gpu.gpu;
    if (gpu) {
        net_enter(net);
        gpu->ops->close_group(gpu);
        net_unmap(net, &net->on_gpu.group.sums);
        net->on_gpu.group.is_open = false;
    }
}

void weir_net_group_set_run(struct weir_net *net, bool is_first, bool is_last)
{
    net->on_gpu.group.is_first_run = is_first;
    net->on_gpu.group.is_last_run = is_last;
}

weir_status weir_net_group_failure(const struct weir_net *net, struct weir_error *err)
{
    const struct gpu *gpu = net->on_gpu.gpu;
    if (!gpu || gpu->group_failure.status == WEIR_OK) {
        return WEIR_OK;
    }
    if (err) {
        *err = gpu->group_failure;
    }
    return gpu->group_failure.status;
}

/* ---- a step ----------------------------------------------------------------------------------- */

/* Queues the sum of a bucket behind both lanes, as some gradients are made in one and some in the other. */
static weir_status sum_bucket(struct weir_net *net, size_t first_elem, size_t n_elems)
{
    struct gpu *gpu = net->on_gpu.gpu;
    struct net_in_group *own = &net->on_gpu.group;
    float *gradients = net->op_gradients + first_elem;
    weir_status status = WEIR_OK;
    WEIR_TRY(net_gpu_enter_lane(net));
    if (!own->is_first_run) {
        const float *sums = (const float *)(const void *)own->sums.base + first_elem;
        status = net->backend->add(net->backend_context, gradients, sums, n_elems, true);
    }
    status = status == WEIR_OK ? gpu->ops->all_reduce(gpu, gradients, n_elems) : status;
    weir_status left = net_gpu_leave_lane(net);
    return status == WEIR_OK ? left : status;
}

/* A weir_net_bucket_fn. */
static void on_bucket(void *context, size_t first_elem, size_t n_elems)
{
    struct weir_net *net = context;
    struct net_in_group *own = &net->on_gpu.group;
    if (own->status == WEIR_OK) {
        own->status = sum_bucket(net, first_elem, n_elems);
    }
}

/* The first step is not recorded: the library makes its connections meanwhile. */
static weir_status run_summed(struct weir_net *net)
{
    struct net_in_group *own = &net->on_gpu.group;
    enum net_record slot = own->is_first_run ? NET_TRAINING_SUMMED : NET_TRAINING_ADDED_SUMMED;
    bool was_warm = own->is_warm;
    own->is_warm = true;
    own->status = WEIR_OK;
    gradient_buckets_start(net, on_bucket, net);
    weir_status status = was_warm ? net_gpu_run_recorded(net, slot, &net->training)
                                  : net_gpu_run_program(net, &net->training);
    gradient_buckets_start(net, NULL, NULL);
    return own->status != WEIR_OK ? own->status : status;
}

weir_status net_group_run(struct weir_net *net)
{
    struct net_in_group *own = &net->on_gpu.group;
    if (own->is_last_run && (own->is_first_run || own->sums.base)) {
        return run_summed(net);
    }
    if (!own->sums.base) {
        return WEIR_ERR_INVALID; /* it was opened for steps of one run */
    }
    WEIR_TRY(net_gpu_run_recorded(net, NET_TRAINING_PART, &net->training));
    return net->backend->add(net->backend_context, (float *)(void *)own->sums.base,
                             net->op_gradients, net->gradient_bytes / sizeof(float),
                             !own->is_first_run);
}

weir_status net_group_fail(struct weir_net *net, weir_status status)
{
    struct gpu *gpu = net->on_gpu.gpu;
    weir_net_group_close(net);
    weir_status waited = gpu->ops->wait(gpu); /* for what is left, so that weights can be fetched */
    (void)waited;
    return gpu->group_failure.status != WEIR_OK ? gpu->group_failure.status : status;
}
