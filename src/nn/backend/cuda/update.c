/* Gradients to sums, and to new weights, on the GPU. */
#include "context.h"
#include "nn/optimizer.h"

#include <math.h>

static const struct {
    const char *name;
    int rule;
} rules[] = {{"sgd", GPU_RULE_SGD},
             {"rmsprop", GPU_RULE_RMSPROP},
             {"adam", GPU_RULE_ADAM},
             {"adamw", GPU_RULE_ADAMW}};

/* -1: there is none. */
static int find_rule(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rules); i++) {
        if (strcmp(rules[i].name, name) == 0) {
            return rules[i].rule;
        }
    }
    return -1;
}

bool cuda_has_rule(const char *name)
{
    return find_rule(name) >= 0;
}

/* Blocks of the kernel: a thread updates several elements if there are many. */
#define UPDATE_BLOCKS 4096

_Static_assert(BACKEND_DECAY_ELEMS == 16, "as kernels/update.cu");

weir_status cuda_update(void *context, const struct backend_update *update)
{
    struct cuda_context *self = context;
    struct gpu *gpu = self->gpu;
    const struct weir_optimizer_config *config = update->config;
    double lr = update->learning_rate, t = (double)update->step + 1;
    const struct gpu_update_args args = {
        .weights = update->weights,
        .gradients = update->gradients,
        .state1 = update->states[0],
        .state2 = update->states[1],
        .is_decayed = update->is_decayed,
        .scale = self->scale,
        .is_scaled = update->is_scaled,
        .n = update->n_elems,
        .rule = find_rule(config->name),
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
    size_t n_blocks = WEIR_MIN(update->n_elems / GPU_BLOCK + 1, (size_t)UPDATE_BLOCKS);
    WEIR_TRY(cuda_scale_check(self, update->gradients, update->n_elems));
    WEIR_TRY(gpu->ops->launch(gpu, GPU_KERNEL_update, GPU_F32, (uint32_t)n_blocks, 1, &args,
                              sizeof args));
    return cuda_scale_move(self);
}

weir_status cuda_add(void *context, float *to, const float *from, size_t n_elems, bool adds)
{
    struct gpu *gpu = ((struct cuda_context *)context)->gpu;
    const struct gpu_flat_args args = {.x = from, .out = to, .n = n_elems, .adds = adds};
    size_t n_blocks = WEIR_MIN(n_elems / GPU_BLOCK + 1, (size_t)UPDATE_BLOCKS);
    return gpu->ops->launch(gpu, GPU_KERNEL_cast_to_f32, GPU_F32, (uint32_t)n_blocks, 1, &args,
                            sizeof args);
}
