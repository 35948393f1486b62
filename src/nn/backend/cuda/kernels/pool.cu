/* Pools. A thread makes w channels of one pixel. Backward passes gather, so that no two threads write
 * the same element and sums have a fixed order. */

/* A pixel of a picture of height × width, and the first of w channels there. */
struct pixel {
    int n, h, w, c;
};

INLINE struct pixel pixel_of(u64 i, int n_vectors, int width, int height, int w)
{
    struct pixel p;
    p.c = (int)(i % (u64)n_vectors) * w;
    i /= (u64)n_vectors;
    p.w = (int)(i % (u64)width);
    i /= (u64)width;
    p.h = (int)(i % (u64)height);
    p.n = (int)(i / (u64)height);
    return p;
}

INLINE u64 index_of(int n, int h, int w, int c, int height, int width, int n_channels)
{
    return (((u64)n * (u64)height + (u64)h) * (u64)width + (u64)w) * (u64)n_channels + (u64)c;
}

/* A kernel that calls at(&a, pixel, w) for each pixel of height × width pictures. */
#define PIXEL_KERNEL(name, type, at, height, width, w)                                             \
    KERNEL(name, type)                                                                             \
    {                                                                                              \
        EACH_THREAD                                                                                \
        {                                                                                          \
            u64 step = (u64)BLOCKS * BLOCK_THREADS;                                                \
            u64 n = (u64)a.n * (u64)a.height * (u64)a.width * (u64)(a.c / w);                      \
            for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {                  \
                at(&a, pixel_of(i, a.c / w, a.width, a.height, w), w);                             \
            }                                                                                      \
        }                                                                                          \
    }

#define POOL_KERNELS(name, at, height, width)                                                      \
    PIXEL_KERNEL(name, struct gpu_pool_args, at, height, width, VEC)                               \
    PIXEL_KERNEL(name##_1, struct gpu_pool_args, at, height, width, 1)

/* Positions of w maxima. */
struct ALIGNED positions {
    int at[VEC];
};

INLINE void load_positions(const int *from, u64 at, int w, struct positions *to)
{
    if (w == VEC) {
        *to = *(const struct positions *)(from + at);
    } else {
        to->at[0] = from[at];
    }
}

INLINE void store_positions(int *to, u64 at, int w, const struct positions *from)
{
    if (w == VEC) {
        *(struct positions *)(to + at) = *from;
    } else {
        to[at] = from->at[0];
    }
}

/* Windows of the output that hold row (or column) `at` of the input: first .. end. */
INLINE int first_window(int at, const struct gpu_pool_args *a)
{
    int beyond = at + a->pad - a->kernel + 1;
    return beyond > 0 ? (beyond + a->stride - 1) / a->stride : 0;
}

INLINE int end_window(int at, const struct gpu_pool_args *a, int n_windows)
{
    return smaller((at + a->pad) / a->stride + 1, n_windows);
}

/* The first of equals; NaN counts as the largest. */
INLINE void max_pool_forward_at(const struct gpu_pool_args *a, struct pixel p, int w)
{
    float best[VEC], x[VEC];
    struct positions at;
    int h0 = larger(p.h * a->stride - a->pad, 0), w0 = larger(p.w * a->stride - a->pad, 0);
    int h1 = smaller(p.h * a->stride - a->pad + a->kernel, a->h);
    int w1 = smaller(p.w * a->stride - a->pad + a->kernel, a->w);
    load(a->x, index_of(p.n, h0, w0, p.c, a->h, a->w, a->c), w, best);
    UNROLL
    for (int j = 0; j < w; j++) {
        at.at[j] = h0 * a->w + w0;
    }
    for (int y = h0; y < h1; y++) {
        for (int z = w0; z < w1; z++) {
            load(a->x, index_of(p.n, y, z, p.c, a->h, a->w, a->c), w, x);
            UNROLL
            for (int j = 0; j < w; j++) {
                if (x[j] > best[j] || x[j] != x[j]) {
                    best[j] = x[j];
                    at.at[j] = y * a->w + z;
                }
            }
        }
    }
    u64 to = index_of(p.n, p.h, p.w, p.c, a->out_h, a->out_w, a->c);
    store(a->out, to, w, best);
    if (a->argmax) {
        store_positions(a->argmax, to, w, &at);
    }
}

POOL_KERNELS(max_pool_forward, max_pool_forward_at, out_h, out_w)

INLINE void max_pool_backward_at(const struct gpu_pool_args *a, struct pixel p, int w)
{
    float sum[VEC] = {0}, dy[VEC];
    int own = p.h * a->w + p.w;
    int end_h = end_window(p.h, a, a->out_h), end_w = end_window(p.w, a, a->out_w);
    for (int y = first_window(p.h, a); y < end_h; y++) {
        for (int z = first_window(p.w, a); z < end_w; z++) {
            u64 from = index_of(p.n, y, z, p.c, a->out_h, a->out_w, a->c);
            struct positions at;
            load(a->dy, from, w, dy);
            load_positions(a->argmax, from, w, &at);
            UNROLL
            for (int j = 0; j < w; j++) {
                sum[j] += at.at[j] == own ? dy[j] : 0;
            }
        }
    }
    put(a->out, index_of(p.n, p.h, p.w, p.c, a->h, a->w, a->c), w, sum, a->adds);
}

POOL_KERNELS(max_pool_backward, max_pool_backward_at, h, w)

/* 1 over what the sum of a window is divided by, as op_pool_divisor. */
INLINE float share(const struct gpu_pool_args *a, int oh, int ow)
{
    int beyond = a->is_pad_excluded ? 0 : a->pad;
    int h = oh * a->stride - a->pad, w = ow * a->stride - a->pad;
    int n_h = smaller(h + a->kernel, a->h + beyond) - larger(h, -beyond);
    int n_w = smaller(w + a->kernel, a->w + beyond) - larger(w, -beyond);
    return 1 / ((float)n_h * (float)n_w);
}

INLINE void avg_pool_forward_at(const struct gpu_pool_args *a, struct pixel p, int w)
{
    float sum[VEC] = {0}, x[VEC];
    int h0 = larger(p.h * a->stride - a->pad, 0), w0 = larger(p.w * a->stride - a->pad, 0);
    int h1 = smaller(p.h * a->stride - a->pad + a->kernel, a->h);
    int w1 = smaller(p.w * a->stride - a->pad + a->kernel, a->w);
    for (int y = h0; y < h1; y++) {
        for (int z = w0; z < w1; z++) {
            load(a->x, index_of(p.n, y, z, p.c, a->h, a->w, a->c), w, x);
            UNROLL
            for (int j = 0; j < w; j++) {
                sum[j] += x[j];
            }
        }
    }
    float factor = share(a, p.h, p.w);
    UNROLL
    for (int j = 0; j < w; j++) {
        sum[j] *= factor;
    }
    store(a->out, index_of(p.n, p.h, p.w, p.c, a->out_h, a->out_w, a->c), w, sum);
}

POOL_KERNELS(avg_pool_forward, avg_pool_forward_at, out_h, out_w)

INLINE void avg_pool_backward_at(const struct gpu_pool_args *a, struct pixel p, int w)
{
    float sum[VEC] = {0}, dy[VEC];
    int end_h = end_window(p.h, a, a->out_h), end_w = end_window(p.w, a, a->out_w);
    for (int y = first_window(p.h, a); y < end_h; y++) {
        for (int z = first_window(p.w, a); z < end_w; z++) {
            float factor = share(a, y, z);
            load(a->dy, index_of(p.n, y, z, p.c, a->out_h, a->out_w, a->c), w, dy);
            UNROLL
            for (int j = 0; j < w; j++) {
                sum[j] += dy[j] * factor;
            }
        }
    }
    put(a->out, index_of(p.n, p.h, p.w, p.c, a->h, a->w, a->c), w, sum, a->adds);
}

POOL_KERNELS(avg_pool_backward, avg_pool_backward_at, h, w)

/* out_h and out_w are 1. */
INLINE void global_pool_forward_at(const struct gpu_pool_args *a, struct pixel p, int w)
{
    float sum[VEC] = {0}, x[VEC];
    for (int i = 0; i < a->h * a->w; i++) {
        load(a->x, ((u64)p.n * (u64)(a->h * a->w) + (u64)i) * (u64)a->c + (u64)p.c, w, x);
        UNROLL
        for (int j = 0; j < w; j++) {
            sum[j] += x[j];
        }
    }
    UNROLL
    for (int j = 0; j < w; j++) {
        sum[j] /= (float)(a->h * a->w);
    }
    store(a->out, (u64)p.n * (u64)a->c + (u64)p.c, w, sum);
}

POOL_KERNELS(global_pool_forward, global_pool_forward_at, out_h, out_w)

INLINE void global_pool_backward_at(const struct gpu_pool_args *a, struct pixel p, int w)
{
    float dy[VEC];
    load(a->dy, (u64)p.n * (u64)a->c + (u64)p.c, w, dy);
    UNROLL
    for (int j = 0; j < w; j++) {
        dy[j] /= (float)(a->h * a->w);
    }
    put(a->out, index_of(p.n, p.h, p.w, p.c, a->h, a->w, a->c), w, dy, a->adds);
}

POOL_KERNELS(global_pool_backward, global_pool_backward_at, h, w)
