/* Updates on the GPU of a net, by the kernel `update`. */
#include "optimizer_private.h"

#include "nn/backend/cuda/kernels.h"
#include "nn/run/net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements that have one byte in the table of decays: parameters start at a multiple of it. */
#define DECAY_ELEMS 16

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
    size_t n = n_elems_of(optimizer) / DECAY_ELEMS + 1;
    unsigned char *table = calloc(n, 1);
    if (!table) {
        return WEIR_ERR_NOMEM;
    }
    for (size_t i = 0; i < optimizer->n_segments; i++) {
        const struct optimizer_segment *segment = &optimizer->segments[i];
        for (size_t at = segment->first / DECAY_ELEMS; at * DECAY_ELEMS < segment->end; at++) {
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

/* Those without norms. @return false: the kernel has no such rule. */
static bool find_rule(const struct weir_optimizer_config *config, int *out)
{
    static const struct {
        const char *name;
        int rule;
    } rules[] = {{"sgd", GPU_RULE_SGD},
                 {"rmsprop", GPU_RULE_RMSPROP},
                 {"adam", GPU_RULE_ADAM},
                 {"adamw", GPU_RULE_ADAMW}};

    for (size_t i = 0; !weir_optimizer_needs_all(config) && i < WEIR_ARRAY_LEN(rules); i++) {
        if (strcmp(rules[i].name, config->name) == 0) {
            *out = rules[i].rule;
            return true;
        }
    }
    return false;
}

static struct gpu_update_args update_args(const struct weir_optimizer *optimizer, int rule,
                                          double lr, uint64_t step)
{
    const struct weir_optimizer_config *config = &optimizer->config;
    const struct optimizer_on_gpu *on_gpu = optimizer->on_gpu;
    double t = (double)step + 1;
    return (struct gpu_update_args){
        .weights = on_gpu->net->op_weights,
        .gradients = on_gpu->net->op_gradients,
        .state1 = on_gpu->states[0],
        .state2 = on_gpu->states[1],
        .is_decayed = on_gpu->is_decayed,
        .n = n_elems_of(optimizer),
        .rule = rule,
        .is_nesterov = config->is_nesterov,
        .lr = (float)lr,
        .decay = (float)config->weight_decay,
        .momentum = (float)config->momentum,
        .alpha = (float)config->alpha,
        .beta1 = (float)config->beta1,
        .beta2 = (float)config->beta2,
        .rest_alpha = (float)(1 - config->alpha),
        .rest1 = (float)(1 - config->beta1),
        .rest2 = (float)(1 - config->beta2),
        .epsilon = (float)config->epsilon,
        .correction1 = (float)(lr / (1 - pow(config->beta1, t))),
        .correction2 = (float)sqrt(1 - pow(config->beta2, t)),
    };
}

/* Blocks of the kernel: a thread updates several elements if there are many. */
#define UPDATE_BLOCKS 4096

weir_status optimizer_gpu_update(struct weir_optimizer *optimizer, struct weir_net *net, double lr,
                                 uint64_t step)
{
    struct gpu *gpu = net->on_gpu.gpu;
    int rule;
    if (!gpu || !find_rule(&optimizer->config, &rule)) {
        return WEIR_ERR_UNSUPPORTED;
    }
    WEIR_TRY(attach(optimizer, net));
    net_enter(net);
    struct gpu_update_args args = update_args(optimizer, rule, lr, step);
    size_t n_blocks = WEIR_MIN((size_t)args.n / GPU_BLOCK + 1, (size_t)UPDATE_BLOCKS);
    WEIR_TRY(gpu->ops->launch(gpu, GPU_KERNEL_update, GPU_F32, (uint32_t)n_blocks, 1, &args,
                              sizeof args));
    optimizer->on_gpu->is_newer = true;
    return net_gpu_weights_updated(net);
}
