/* Gradients to new weights, by the rules of optimizer.h. */

/* @param factor  Of the gradient. */
INLINE void update_one(const struct gpu_update_args *a, u64 i, float factor)
{
    float w = a->weights[i], g = a->gradients[i] * factor, step;
    float decay = a->is_decayed[i / 16] ? a->decay : 0;
    switch (a->rule) {
    case GPU_RULE_SGD:
        g += decay * w;
        step = g;
        if (a->state1) {
            float v = a->momentum * a->state1[i] + g;
            a->state1[i] = v;
            step = a->is_nesterov ? g + a->momentum * v : v;
        }
        a->weights[i] = w - a->lr * step;
        break;
    case GPU_RULE_RMSPROP: {
        g += decay * w;
        float s = a->alpha * a->state1[i] + a->rest_alpha * g * g;
        step = g / (sqrtf(s) + a->epsilon);
        a->state1[i] = s;
        if (a->state2) {
            step += a->momentum * a->state2[i];
            a->state2[i] = step;
        }
        a->weights[i] = w - a->lr * step;
        break;
    }
    default: { /* adam, adamw */
        if (a->rule == GPU_RULE_ADAMW) {
            w *= 1 - a->lr * decay;
        } else {
            g += decay * w;
        }
        float m = a->beta1 * a->state1[i] + a->rest1 * g;
        float s = a->beta2 * a->state2[i] + a->rest2 * g * g;
        a->state1[i] = m;
        a->state2[i] = s;
        a->weights[i] = w - a->correction1 * m / (sqrtf(s) / a->correction2 + a->epsilon);
    }
    }
}

KERNEL(update, struct gpu_update_args)
{
    EACH_THREAD
    {
        float factor = a.is_scaled ? 1 / a.scale->scale : 1;
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n = a.scale && a.scale->is_spoilt ? 0 : a.n;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            update_one(&a, i, factor);
        }
    }
}
