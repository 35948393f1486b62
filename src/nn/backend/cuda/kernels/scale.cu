/* The loss scale: gradients without it, gradients that are not finite, and its rule. */

KERNEL(unscale, struct gpu_scale_args)
{
    EACH_THREAD
    {
        /* A power of two: only a result below the smallest normal number is rounded. */
        float factor = 1 / a.scale->scale;
        u64 step = (u64)BLOCKS * BLOCK_THREADS;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < a.n; i += step) {
            a.gradients[i] *= factor;
        }
    }
}

#define LARGEST_F32 3.402823466e38F

/* Threads that find one all write the same. */
KERNEL(find_spoilt, struct gpu_scale_args)
{
    EACH_THREAD
    {
        int is_spoilt = 0;
        u64 step = (u64)BLOCKS * BLOCK_THREADS;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < a.n; i += step) {
            is_spoilt |= !(fabsf(a.gradients[i]) <= LARGEST_F32);
        }
        if (is_spoilt) {
            a.scale->is_spoilt = 1;
        }
    }
}

#define SCALE_LEAST 5.9604644775390625e-8F /* 2^-24 */
#define SCALE_MOST  1099511627776.0F       /* 2^40 */

/* Behind an update, or in its place. */
KERNEL(move_scale, struct gpu_scale_args)
{
    EACH_THREAD
    {
        if (THREAD == 0 && BLOCK == 0) {
            struct gpu_scale s = *a.scale;
            if (s.is_spoilt || a.is_spoilt) {
                s.n_good = 0;
                s.n_skipped++;
                s.scale = s.scale > SCALE_LEAST ? s.scale / 2 : s.scale;
            } else if (++s.n_good >= (unsigned)a.n_steps) {
                s.n_good = 0;
                s.scale = s.scale < SCALE_MOST ? s.scale * 2 : s.scale;
            }
            s.is_spoilt = 0;
            *a.scale = s;
        }
    }
}
