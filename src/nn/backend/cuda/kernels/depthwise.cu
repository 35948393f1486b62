/*
 * Depthwise convolutions: as many groups as channels, each channel by itself, and whole vectors of them.
 * They move memory and compute little. Forward and backward: a thread makes a strip of pixels of a row,
 * for a vector of channels, so that it reads each weight once for all of them. Weights are R×S×C.
 */

#define STRIP 4

struct strip {
    int n, row, column, c;
};

/* In 32 bits, whose divisions are fast; the caller has looked that there are no more. */
INLINE struct strip strip_of(unsigned i, int n_channels, int width, int height)
{
    struct strip at;
    unsigned n_vectors = (unsigned)n_channels / VEC;
    unsigned n_strips = (unsigned)(width + STRIP - 1) / STRIP;
    at.c = (int)(i % n_vectors) * VEC;
    i /= n_vectors;
    at.column = (int)(i % n_strips) * STRIP;
    i /= n_strips;
    at.row = (int)(i % (unsigned)height);
    at.n = (int)(i / (unsigned)height);
    return at;
}

/* sum += x * w, a vector of channels; x is read at `from`. */
INLINE void add_products(const void *x, u64 from, const float *w, float *sum)
{
    float value[VEC];
    load(x, from, VEC, value);
    UNROLL
    for (int j = 0; j < VEC; j++) {
        sum[j] += value[j] * w[j];
    }
}

INLINE void depthwise_output(const struct gpu_direct_args *a, struct strip at)
{
    float sums[STRIP][VEC], w[VEC];
    UNROLL
    for (int j = 0; j < STRIP * VEC; j++) {
        sums[j / VEC][j % VEC] = a->bias ? a->bias[at.c + j % VEC] : 0;
    }
    for (int r = 0; r < a->kernel_h; r++) {
        int h = tap_at(at.row, r, a->stride, a->pad_h, a->dilation);
        for (int s = 0; h >= 0 && h < a->h && s < a->kernel_w; s++) {
            load(a->weights, (u64)((r * a->kernel_w + s) * a->c + at.c), VEC, w);
            UNROLL
            for (int t = 0; t < STRIP; t++) {
                int x = tap_at(at.column + t, s, a->stride, a->pad_w, a->dilation);
                if (x >= 0 && x < a->w && at.column + t < a->out_w) {
                    add_products(a->x, index_of(at.n, h, x, at.c, a->h, a->w, a->c), w, sums[t]);
                }
            }
        }
    }
    UNROLL
    for (int t = 0; t < STRIP; t++) {
        UNROLL
        for (int j = 0; j < VEC; j++) {
            sums[t][j] = a->has_relu && sums[t][j] < 0 ? 0 : sums[t][j];
        }
        if (at.column + t < a->out_w) {
            store(a->out, index_of(at.n, at.row, at.column + t, at.c, a->out_h, a->out_w, a->c), VEC,
                  sums[t]);
        }
    }
}

INLINE void depthwise_input(const struct gpu_direct_args *a, struct strip at)
{
    float sums[STRIP][VEC], w[VEC];
    UNROLL
    for (int j = 0; j < STRIP * VEC; j++) {
        sums[j / VEC][j % VEC] = 0;
    }
    for (int r = 0; r < a->kernel_h; r++) {
        int oh = output_at(at.row, r, a->stride, a->pad_h, a->dilation, a->out_h);
        for (int s = 0; oh >= 0 && s < a->kernel_w; s++) {
            load(a->weights, (u64)((r * a->kernel_w + s) * a->c + at.c), VEC, w);
            UNROLL
            for (int t = 0; t < STRIP; t++) {
                int ow = output_at(at.column + t, s, a->stride, a->pad_w, a->dilation, a->out_w);
                if (ow >= 0 && at.column + t < a->w) {
                    add_products(a->dy, index_of(at.n, oh, ow, at.c, a->out_h, a->out_w, a->c), w,
                                 sums[t]);
                }
            }
        }
    }
    UNROLL
    for (int t = 0; t < STRIP; t++) {
        if (at.column + t < a->w) {
            put(a->out, index_of(at.n, at.row, at.column + t, at.c, a->h, a->w, a->c), VEC, sums[t],
                a->adds);
        }
    }
}

#define STRIP_KERNEL(name, at, height, width)                                                      \
    KERNEL(name, struct gpu_direct_args)                                                           \
    {                                                                                              \
        EACH_THREAD                                                                                \
        {                                                                                          \
            u64 step = (u64)BLOCKS * BLOCK_THREADS;                                                \
            u64 n = (u64)a.n * (u64)a.height * (u64)((a.width + STRIP - 1) / STRIP) *              \
                    (u64)(a.c / VEC);                                                              \
            for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {                  \
                at(&a, strip_of((unsigned)i, a.c, a.width, a.height));                             \
            }                                                                                      \
        }                                                                                          \
    }

STRIP_KERNEL(depthwise_forward, depthwise_output, out_h, out_w)
STRIP_KERNEL(depthwise_input_gradient, depthwise_input, h, w)

/* ---- weight gradients ------------------------------------------------------------------------- */

/* Taps that a block sums at once: it reads dy once for all of them. */
#define TAPS 3

/* A thread's rows of dy, times what the taps from `first` on read, to TAPS * VEC sums. */
INLINE void add_taps(const struct gpu_direct_args *a, const struct rows *r, int first, float *sums)
{
    unsigned n = (unsigned)a->n * (unsigned)a->out_h * (unsigned)a->out_w;
    for (unsigned i = (unsigned)r->row; i < n; i += (unsigned)r->step) {
        int ow = (int)(i % (unsigned)a->out_w), oh = (int)(i / (unsigned)a->out_w);
        int image = oh / a->out_h;
        float dy[VEC];
        oh %= a->out_h;
        load(a->dy, (u64)i * (u64)a->c + (u64)r->c, VEC, dy);
        UNROLL
        for (int t = 0; t < TAPS; t++) {
            int h = tap_at(oh, (first + t) / a->kernel_w, a->stride, a->pad_h, a->dilation);
            int w = tap_at(ow, (first + t) % a->kernel_w, a->stride, a->pad_w, a->dilation);
            if (h >= 0 && h < a->h && w >= 0 && w < a->w) {
                add_products(a->x, index_of(image, h, w, r->c, a->h, a->w, a->c), dy,
                             &sums[t * VEC]);
            }
        }
    }
}

/* Partial sums of a block: block, tap, channel. BLOCK_Y is a group of channels, then one of taps. */
KERNEL(depthwise_weight_gradient, struct gpu_direct_args)
{
    SHARED float shared[TAPS * VEC * BLOCK_THREADS];
    unsigned n_groups = ((unsigned)a.c / VEC + ROW_COLUMNS - 1) / ROW_COLUMNS;
    int first = (int)(BLOCK_Y / n_groups) * TAPS, n_taps = a.kernel_h * a.kernel_w;
    EACH_THREAD
    {
        struct rows r = rows_of(a.c, VEC, THREAD, BLOCK, BLOCK_Y % n_groups, BLOCKS);
        float sums[TAPS * VEC] = {0};
        int n = TAPS * VEC * r.n_columns;
        if (!r.is_idle) {
            add_taps(&a, &r, first, sums);
        }
        UNROLL
        for (int j = 0; j < TAPS * VEC; j++) {
            if (r.lane < r.n_lanes) {
                shared[r.lane * n + (j / VEC * r.n_columns + r.column) * VEC + j % VEC] = sums[j];
            }
        }
    }
    BARRIER
    EACH_THREAD
    {
        struct rows r = rows_of(a.c, VEC, THREAD, BLOCK, BLOCK_Y % n_groups, BLOCKS);
        int n = r.n_columns * VEC;
        for (int i = (int)THREAD; i < TAPS * n; i += BLOCK_THREADS) {
            int c = (int)(BLOCK_Y % n_groups) * n + i % n, tap = first + i / n;
            float sum = 0;
            for (int lane = 0; lane < r.n_lanes; lane++) {
                sum += shared[lane * TAPS * n + i];
            }
            if (c < a.c && tap < n_taps) {
                a.partials[((u64)BLOCK * (u64)n_taps + (u64)tap) * (u64)a.c + (u64)c] = sum;
            }
        }
    }
}

/* The blocks' sums, in their order, to the slab's: channel, tap. A thread for each weight. */
KERNEL(depthwise_combine, struct gpu_direct_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n_taps = (u64)(a.kernel_h * a.kernel_w);
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n_taps * (u64)a.c; i += step) {
            u64 c = i % (u64)a.c, tap = i / (u64)a.c;
            double sum = 0;
            for (int block = 0; block < a.n_blocks; block++) {
                sum += (double)a.partials[((u64)block * n_taps + tap) * (u64)a.c + c];
            }
            ((float *)a.out)[c * n_taps + tap] = (float)sum;
        }
    }
}

/* A thread for each channel. */
KERNEL(pack_depthwise, struct gpu_pack_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS;
        for (u64 k = (u64)BLOCK * BLOCK_THREADS + THREAD; k < (u64)a.k; k += step) {
            double scale = fold_scale(&a, (int)k);
            for (int r = 0; r < a.rs; r++) {
                float value = (float)((double)a.slab[k * (u64)a.rs + (u64)r] * scale);
                ((elem *)a.packed)[(u64)r * (u64)a.k + k] = from_f32(value);
            }
            pack_bias(&a, (int)k);
        }
    }
}
