/* Convolutions element by element, for what no library plans (groups); and copies of weights. */

/* Row of the input (or column) that tap `tap` of output row `o` reads. */
INLINE int tap_at(int o, int tap, int stride, int pad, int dilation)
{
    return o * stride - pad + tap * dilation;
}

INLINE u64 weight_at(const struct gpu_direct_args *a, int k, int r, int s, int c)
{
    return (((u64)k * (u64)a->kernel_h + (u64)r) * (u64)a->kernel_w + (u64)s) *
               (u64)(a->c / a->groups) +
           (u64)c;
}

/* What one window gives for output channel k. */
INLINE float direct_dot(const struct gpu_direct_args *a, int n, int oh, int ow, int k)
{
    int c_group = a->c / a->groups, c0 = k / (a->k / a->groups) * c_group;
    float sum = 0;
    for (int r = 0; r < a->kernel_h; r++) {
        int h = tap_at(oh, r, a->stride, a->pad_h, a->dilation);
        for (int s = 0; h >= 0 && h < a->h && s < a->kernel_w; s++) {
            int w = tap_at(ow, s, a->stride, a->pad_w, a->dilation);
            for (int c = 0; w >= 0 && w < a->w && c < c_group; c++) {
                sum += to_f32(((const elem *)a->x)[index_of(n, h, w, c0 + c, a->h, a->w, a->c)]) *
                       to_f32(((const elem *)a->weights)[weight_at(a, k, r, s, c)]);
            }
        }
    }
    return sum;
}

KERNEL(direct_forward, struct gpu_direct_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS;
        u64 n = (u64)a.n * (u64)a.out_h * (u64)a.out_w * (u64)a.k;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            struct pixel p = pixel_of(i, a.k, a.out_w, a.out_h, 1);
            float sum = direct_dot(&a, p.n, p.h, p.w, p.c);
            store(a.out, i, 1, &sum);
        }
    }
}

/* The output row whose tap reads input row `at`; -1 if there is none. */
INLINE int output_at(int at, int tap, int stride, int pad, int dilation, int n_out)
{
    int o = at + pad - tap * dilation;
    return o >= 0 && o % stride == 0 && o / stride < n_out ? o / stride : -1;
}

INLINE float direct_scatter(const struct gpu_direct_args *a, int n, int h, int w, int c)
{
    int c_group = a->c / a->groups, k_group = a->k / a->groups, k0 = c / c_group * k_group;
    float sum = 0;
    for (int r = 0; r < a->kernel_h; r++) {
        int oh = output_at(h, r, a->stride, a->pad_h, a->dilation, a->out_h);
        for (int s = 0; oh >= 0 && s < a->kernel_w; s++) {
            int ow = output_at(w, s, a->stride, a->pad_w, a->dilation, a->out_w);
            for (int k = k0; ow >= 0 && k < k0 + k_group; k++) {
                u64 from = index_of(n, oh, ow, k, a->out_h, a->out_w, a->k);
                sum += to_f32(((const elem *)a->dy)[from]) *
                       to_f32(((const elem *)a->weights)[weight_at(a, k, r, s, c % c_group)]);
            }
        }
    }
    return sum;
}

KERNEL(direct_input_gradient, struct gpu_direct_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS;
        u64 n = (u64)a.n * (u64)a.h * (u64)a.w * (u64)a.c;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            struct pixel p = pixel_of(i, a.c, a.w, a.h, 1);
            float sum = direct_scatter(&a, p.n, p.h, p.w, p.c);
            put(a.out, i, 1, &sum, a.adds);
        }
    }
}

/* The part of a weight's gradient that a thread sums. */
INLINE double weight_part(const struct gpu_direct_args *a, int k, int c, int r, int s,
                          unsigned thread)
{
    int c0 = k / (a->k / a->groups) * (a->c / a->groups);
    double sum = 0;
    u64 n = (u64)a->n * (u64)a->out_h * (u64)a->out_w;
    for (u64 i = thread; i < n; i += BLOCK_THREADS) {
        struct pixel p = pixel_of(i, 1, a->out_w, a->out_h, 1);
        int h = tap_at(p.h, r, a->stride, a->pad_h, a->dilation);
        int w = tap_at(p.w, s, a->stride, a->pad_w, a->dilation);
        if (h >= 0 && h < a->h && w >= 0 && w < a->w) {
            float x = to_f32(((const elem *)a->x)[index_of(p.n, h, w, c0 + c, a->h, a->w, a->c)]);
            float dy = to_f32(((const elem *)a->dy)[i * (u64)a->k + (u64)k]);
            sum += (double)(x * dy);
        }
    }
    return sum;
}

/* A block makes each weight's gradient, in the slab's order: K, C / groups, R, S. */
KERNEL(direct_weight_gradient, struct gpu_direct_args)
{
    SHARED double sums[BLOCK_THREADS];
    int i = (int)BLOCK, s = i % a.kernel_w, r = i / a.kernel_w % a.kernel_h;
    int c = i / (a.kernel_w * a.kernel_h) % (a.c / a.groups);
    int k = i / (a.kernel_w * a.kernel_h) / (a.c / a.groups);
    EACH_THREAD
    {
        sums[THREAD] = weight_part(&a, k, c, r, s, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        if (THREAD == 0) {
            ((float *)a.out)[BLOCK] = (float)sum_all(sums);
        }
    }
}

/* ---- weights ---------------------------------------------------------------------------------- */

/* What the batch norm behind it multiplies output k by. */
INLINE double fold_scale(const struct gpu_pack_args *a, int k)
{
    return a->gamma ? (double)a->gamma[k] / sqrt((double)a->var[k] + a->eps) : 1;
}

INLINE void pack_bias(const struct gpu_pack_args *a, int k)
{
    double bias = k < a->k && a->bias ? (double)a->bias[k] : 0;
    if (k < a->k && a->gamma) {
        bias = (bias - (double)a->mean[k]) * fold_scale(a, k) + (double)a->beta[k];
    }
    if (a->out_bias) {
        a->out_bias[k] = (float)bias;
        ((elem *)a->out_bias_typed)[k] = from_f32((float)bias);
    }
}

/* A thread for each output and input channel: those beside it read and write beside it. */
KERNEL(pack_weights, struct gpu_pack_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n = (u64)a.packed_k * (u64)a.packed_c;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            int c = (int)(i % (u64)a.packed_c), k = (int)(i / (u64)a.packed_c);
            int is_there = k < a.k && c < a.c;
            double scale = is_there ? fold_scale(&a, k) : 0;
            const float *from = a.slab + ((u64)k * (u64)a.c + (u64)c) * (u64)a.rs;
            elem *to = (elem *)a.packed + (u64)k * (u64)a.rs * (u64)a.packed_c + (u64)c;
            for (int r = 0; r < a.rs; r++) {
                float value = is_there ? (float)((double)from[r] * scale) : 0;
                to[(u64)r * (u64)a.packed_c] = from_f32(value);
            }
            if (c == 0) {
                pack_bias(&a, k);
            }
        }
    }
}

KERNEL(unpack_gradient, struct gpu_pack_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n = (u64)a.k * (u64)a.c;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            u64 c = i % (u64)a.c, k = i / (u64)a.c;
            const elem *from =
                (const elem *)a.packed_gradient + k * (u64)a.rs * (u64)a.packed_c + c;
            for (int r = 0; r < a.rs; r++) {
                a.gradient[i * (u64)a.rs + (u64)r] = to_f32(from[(u64)r * (u64)a.packed_c]);
            }
        }
    }
}

/* ---- blocks of 2×2 pixels as pixels ------------------------------------------------------------- */

/* A block. The channels of its two rows are as they lie in the picture; beyond the picture, and behind
 * them, there are zeros. */
INLINE void pack_block(const struct gpu_block_args *a, u64 i)
{
    struct pixel p = pixel_of(i, 1, a->block_w, a->block_h, 1);
    int h = 2 * (p.h + a->first_h), w = 2 * (p.w + a->first_w);
    int row_channels = 2 * a->c, there = w >= 0 ? (a->w - w) * a->c : 0;
    const elem *picture = (const elem *)a->x + index_of(p.n, 0, 0, 0, a->h, a->w, a->c);
    for (int c = 0; c < a->packed_c; c += VEC) {
        float x[VEC];
        UNROLL
        for (int j = 0; j < VEC; j++) {
            int row = c + j >= row_channels, q = c + j - row * row_channels;
            int is_there = q < row_channels && q < there && h + row >= 0 && h + row < a->h;
            x[j] = is_there ? to_f32(picture[((u64)(h + row) * (u64)a->w + (u64)w) * (u64)a->c + (u64)q]) : 0;
        }
        store(a->out, i * (u64)a->packed_c + (u64)c, VEC, x);
    }
}

KERNEL(pack_blocks, struct gpu_block_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS;
        u64 n = (u64)a.n * (u64)a.block_h * (u64)a.block_w;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            pack_block(&a, i);
        }
    }
}

/* Channel q of a block: its row, column and channel of the picture. */
struct block_channel {
    int row, column, c;
};

INLINE struct block_channel block_channel_of(int q, int n_channels)
{
    struct block_channel b;
    b.row = q / n_channels / 2;
    b.column = q / n_channels % 2;
    b.c = q % n_channels;
    return b;
}

/* The true weight that element i of the blocks' stands for; -1: none, it is 0. */
INLINE long long true_weight(const struct gpu_block_args *a, u64 i)
{
    struct block_channel b = block_channel_of((int)(i % (u64)a->packed_c), a->c);
    i /= (u64)a->packed_c;
    int s = 2 * ((int)(i % (u64)a->block_kernel_w) + a->first_w) + b.column + a->pad_w;
    i /= (u64)a->block_kernel_w;
    int r = 2 * ((int)(i % (u64)a->block_kernel_h) + a->first_h) + b.row + a->pad_h;
    long long k = (long long)(i / (u64)a->block_kernel_h);
    if (b.row > 1 || r < 0 || r >= a->kernel_h || s < 0 || s >= a->kernel_w || k >= a->weights.k) {
        return -1;
    }
    return ((k * a->c + b.c) * a->kernel_h + r) * a->kernel_w + s;
}

INLINE u64 n_block_weights(const struct gpu_block_args *a)
{
    return (u64)a->weights.packed_k * (u64)a->block_kernel_h * (u64)a->block_kernel_w *
           (u64)a->packed_c;
}

KERNEL(pack_block_weights, struct gpu_block_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n = n_block_weights(&a);
        u64 n_of_k = n / (u64)a.weights.packed_k;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            long long from = true_weight(&a, i);
            int k = (int)(i / n_of_k);
            double value =
                from >= 0 ? (double)a.weights.slab[from] * fold_scale(&a.weights, k) : 0;
            ((elem *)a.weights.packed)[i] = from_f32((float)value);
            if (i % n_of_k == 0) {
                pack_bias(&a.weights, k);
            }
        }
    }
}

/* Each true weight is in one place of the blocks' weights. */
KERNEL(unpack_block_gradient, struct gpu_block_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n = n_block_weights(&a);
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            long long to = true_weight(&a, i);
            if (to >= 0) {
                a.weights.gradient[to] = to_f32(((const elem *)a.weights.packed_gradient)[i]);
            }
        }
    }
}
