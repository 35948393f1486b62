/* Updates on the GPU of a net, by its back-end. */
#include "optimizer_private.h"

#include "nn/run/net.h"

#include <stdlib.h>

static size_t n_elems_of(const struct weir_optimizer *optimizer)
{
    size_t n = optimizer->n_segments;
    return n == 0 ? 0 : optimizer->segments[n - 1].end;
}

static weir_status upload(struct gpu *gpu, void *to, const void *from, size_t size_bytes)
{
    WEIR_TRY(gpu->ops->upload(gpu, to, from, size_bytes));
    return gpu->ops->wait_uploads(gpu);
}

static weir_status make_decays(const struct weir_optimizer *optimizer, struct gpu *gpu, void **out)
{
    size_t n = n_elems_of(optimizer) / BACKEND_DECAY_ELEMS + 1;
    unsigned char *table = calloc(n, 1);
    if (!table) {
        return WEIR_ERR_NOMEM;
    }
    for (size_t i = 0; i < optimizer->n_segments; i++) {
        const struct optimizer_segment *segment = &optimizer->segments[i];
        for (size_t at = segment->first / BACKEND_DECAY_ELEMS;
             at * BACKEND_DECAY_ELEMS < segment->end; at++) {
            table[at] = segment->traits.decay > 0;
        }
    }
    weir_status status = gpu->ops->alloc(gpu, n, out, NULL);
    status = status == WEIR_OK ? upload(gpu, *out, table, n) : status;
    free(table);
    return status;
}

static void free_all(struct optimizer_on_gpu *on_gpu)
{
    struct gpu *gpu = on_gpu->net->on_gpu.gpu;
    for (size_t i = 0; i < OPTIMIZER_STATES_MAX; i++) {
        gpu->ops->free(gpu, on_gpu->states[i]);
    }
    gpu->ops->free(gpu, on_gpu->is_decayed);
    free(on_gpu);
}

static weir_status fill(const struct weir_optimizer *optimizer, struct optimizer_on_gpu *on_gpu)
{
    struct gpu *gpu = on_gpu->net->on_gpu.gpu;
    WEIR_TRY(make_decays(optimizer, gpu, &on_gpu->is_decayed));
    for (size_t i = 0; i < optimizer->n_states; i++) {
        size_t size_bytes = optimizer->states[i].n_elems * sizeof(float);
        WEIR_TRY(gpu->ops->alloc(gpu, size_bytes, &on_gpu->states[i], NULL));
        WEIR_TRY(upload(gpu, on_gpu->states[i], optimizer->states[i].data, size_bytes));
    }
    return WEIR_OK;
}

/* A net's GPU has the state of one optimiser. */
static weir_status attach(struct weir_optimizer *optimizer, struct weir_net *net)
{
    if (optimizer->on_gpu && optimizer->on_gpu->net == net) {
        return WEIR_OK;
    }
    optimizer_gpu_detach(optimizer);
    if (net->on_gpu.optimizer) {
        optimizer_gpu_detach(net->on_gpu.optimizer);
    }
    struct optimizer_on_gpu *on_gpu = calloc(1, sizeof *on_gpu);
    if (!on_gpu) {
        return WEIR_ERR_NOMEM;
    }
    on_gpu->net = net;
    net_enter(net);
    weir_status status = fill(optimizer, on_gpu);
    if (status != WEIR_OK) {
        free_all(on_gpu);
        return status;
    }
    optimizer->on_gpu = on_gpu;
    net->on_gpu.optimizer = optimizer;
    return WEIR_OK;
}

void optimizer_gpu_fetch(const struct weir_optimizer *optimizer)
{
    struct optimizer_on_gpu *on_gpu = optimizer->on_gpu;
    if (!on_gpu || !on_gpu->is_newer) {
        return;
    }
    struct gpu *gpu = on_gpu->net->on_gpu.gpu;
    net_enter(on_gpu->net);
    on_gpu->is_newer = false;
    weir_status status = WEIR_OK; /* a GPU that fails stays so: the next wait tells */
    for (size_t i = 0; status == WEIR_OK && i < optimizer->n_states; i++) {
        status = gpu->ops->download(gpu, optimizer->states[i].data, on_gpu->states[i],
                                    optimizer->states[i].n_elems * sizeof(float));
    }
    status = status == WEIR_OK ? gpu->ops->wait(gpu) : status;
    (void)status;
}

void optimizer_gpu_detach(struct weir_optimizer *optimizer)
{
    struct optimizer_on_gpu *on_gpu = optimizer->on_gpu;
    if (!on_gpu) {
        return;
    }
    optimizer_gpu_fetch(optimizer);
    net_enter(on_gpu->net);
    on_gpu->net->on_gpu.optimizer = NULL;
    optimizer->on_gpu = NULL;
    free_all(on_gpu);
}

weir_status optimizer_gpu_update(struct weir_optimizer *optimizer, struct weir_net *net, double lr,
                                 uint64_t step)
{
    const struct weir_optimizer_config *config = &optimizer->config;
    const struct weir_backend *backend = net->backend;
    if (!net->on_gpu.gpu || weir_optimizer_needs_all(config) || !backend->has_rule(config->name)) {
        return WEIR_ERR_UNSUPPORTED;
    }
    WEIR_TRY(attach(optimizer, net));
    net_enter(net);
    const struct backend_update update = {
        .config = config,
        .weights = net->op_weights,
        .gradients = net->op_gradients,
        .states = {optimizer->on_gpu->states[0], optimizer->on_gpu->states[1]},
        .is_decayed = optimizer->on_gpu->is_decayed,
        .is_scaled = net->on_gpu.are_gradients_scaled,
        .n_elems = n_elems_of(optimizer),
        .learning_rate = lr,
        .step = step};
    WEIR_TRY(backend->update(net->backend_context, &update));
    optimizer->on_gpu->is_newer = true;
    return net_gpu_weights_updated(net);
}
