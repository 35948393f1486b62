/* Batch norm, bias, PReLU: values of each channel. Normalisation of single images. */

INLINE void load_channels(const float *from, int c, int w, float otherwise, float *to)
{
    for (int j = 0; j < w; j++) {
        to[j] = from ? from[c + j] : otherwise;
    }
}

/* ---- y = scale * x + shift, then add and ReLU ------------------------------------------------- */

INLINE struct channel_values affine_values(const struct gpu_rows_args *a, int c, int w)
{
    struct channel_values v;
    load_channels(a->scale, c, w, 1, v.p);
    load_channels(a->shift, c, w, 0, v.q);
    return v;
}

INLINE void affine_read(const struct gpu_rows_args *a, u64 at, int w, struct row_loads *to)
{
    load_raw(a->x, at, w, &to->x);
    if (a->residual) {
        load_raw(a->residual, at, w, &to->residual);
    }
}

INLINE void affine_at(const struct gpu_rows_args *a, const struct channel_values *v, u64 at, int w,
                      const struct row_loads *loads)
{
    float x[VEC], residual[VEC] = {0};
    expand(&loads->x, w, x);
    if (a->residual) {
        expand(&loads->residual, w, residual);
    }
    int signs = 0;
    UNROLL
    for (int j = 0; j < w; j++) {
        float y = v->p[j] * x[j] + v->q[j] + residual[j];
        signs |= y > 0 ? 1 << j : 0;
        x[j] = a->has_relu && y < 0 ? 0 : y;
    }
    store(a->out, at, w, x);
    if (a->signs) {
        a->signs[sign_byte(at, w)] = (unsigned char)signs;
    }
}

ROW_KERNEL(affine, affine_values, affine_read, affine_at, VEC)
ROW_KERNEL(affine_1, affine_values, affine_read, affine_at, 1)

/* ---- batch norm: forward ---------------------------------------------------------------------- */

INLINE void add_moments_of(const struct vec *loaded, const float *pivot, float *sums, int w)
{
    float x[VEC];
    expand(loaded, w, x);
    UNROLL
    for (int j = 0; j < w; j++) {
        float d = x[j] - pivot[j];
        sums[j] += d;
        sums[w + j] += d * d;
    }
}

/* Sums of x - pivot, and of its square. The pivot is near the mean, so the squares do not cancel. */
INLINE void add_moments(const struct gpu_rows_args *a, const struct rows *r, float *sums, int w)
{
    float pivot[SUM_VEC];
    load_channels(a->pivot, r->c, w, 0, pivot);
    EACH_ROWS(r, a)
    {
        struct vec loads[ROWS_AHEAD];
        UNROLL
        for (int i = 0; i < ROWS_AHEAD; i++) {
            if (HAS_ROW(r, a, i)) {
                load_raw(a->x, ROW_AT(i), w, &loads[i]);
            }
        }
        UNROLL
        for (int i = 0; i < ROWS_AHEAD; i++) {
            if (HAS_ROW(r, a, i)) {
                add_moments_of(&loads[i], pivot, sums, w);
            }
        }
    }
}

SUM_KERNEL(moments, add_moments, SUM_VEC)
SUM_KERNEL(moments_1, add_moments, 1)

/* Channels of a block that combines partial sums, and threads for each. */
#define COMBINE_CHANNELS 8
#define COMBINE_LANES    (BLOCK_THREADS / COMBINE_CHANNELS)

/* A thread's part of the partial sums of its channel. */
INLINE void add_partials(const struct gpu_combine_args *a, unsigned thread, unsigned block,
                         double *first, double *second)
{
    int c = (int)block * COMBINE_CHANNELS + (int)thread % COMBINE_CHANNELS;
    double sum = 0, products = 0;
    for (int i = (int)thread / COMBINE_CHANNELS; c < a->c && i < a->n_blocks; i += COMBINE_LANES) {
        sum += (double)a->partials[(u64)i * 2 * (u64)a->c + (u64)c];
        products += (double)a->partials[((u64)i * 2 + 1) * (u64)a->c + (u64)c];
    }
    first[thread] = sum;
    second[thread] = products;
}

INLINE double sum_lanes(const double *shared, unsigned thread)
{
    double sum = 0;
    for (unsigned lane = 0; lane < COMBINE_LANES; lane++) {
        sum += shared[lane * COMBINE_CHANNELS + thread];
    }
    return sum;
}

/* A kernel that ends sums: end(&a, c, sum, products) for each channel. */
#define COMBINE_KERNEL(name, end)                                                                  \
    KERNEL(name, struct gpu_combine_args)                                                          \
    {                                                                                              \
        SHARED double first[BLOCK_THREADS];                                                        \
        SHARED double second[BLOCK_THREADS];                                                       \
        EACH_THREAD                                                                                \
        {                                                                                          \
            add_partials(&a, THREAD, BLOCK, first, second);                                        \
        }                                                                                          \
        BARRIER                                                                                    \
        EACH_THREAD                                                                                \
        {                                                                                          \
            int c = (int)(BLOCK * COMBINE_CHANNELS + THREAD);                                      \
            if (THREAD < COMBINE_CHANNELS && c < a.c) {                                            \
                end(&a, c, sum_lanes(first, THREAD), sum_lanes(second, THREAD));                   \
            }                                                                                      \
        }                                                                                          \
    }

INLINE float *saved_row(const struct gpu_combine_args *a, int row)
{
    return a->saved + (u64)row * (u64)a->c;
}

/* The running variance is the unbiased one, as PyTorch's. */
INLINE void end_moments(const struct gpu_combine_args *a, int c, double sum, double squares)
{
    double offset = sum / a->n_rows, mean = (double)a->running_mean[c] + offset;
    double var = squares / a->n_rows - offset * offset;
    var = var < 0 ? 0 : var;
    double inv_std = 1 / sqrt(var + a->eps);
    double scale = (double)a->weight[c] * inv_std;
    saved_row(a, GPU_BN_MEAN)[c] = (float)mean;
    saved_row(a, GPU_BN_INV_STD)[c] = (float)inv_std;
    saved_row(a, GPU_BN_BATCH_SCALE)[c] = (float)scale;
    saved_row(a, GPU_BN_BATCH_SHIFT)[c] = (float)((double)a->bias[c] - scale * mean);
    double unbiased = a->n_rows > 1 ? var * a->n_rows / (a->n_rows - 1) : var;
    double keep = 1 - a->momentum;
    a->running_mean[c] = (float)(keep * (double)a->running_mean[c] + a->momentum * mean);
    a->running_var[c] = (float)(keep * (double)a->running_var[c] + a->momentum * unbiased);
}

COMBINE_KERNEL(norm_combine, end_moments)

/* What inference needs: y = scale * x + shift from the running statistics. */
KERNEL(norm_refresh, struct gpu_combine_args)
{
    EACH_THREAD
    {
        int c = (int)(BLOCK * BLOCK_THREADS + THREAD);
        if (c < a.c) {
            double scale = (double)a.weight[c] / sqrt((double)a.running_var[c] + a.eps);
            saved_row(&a, GPU_BN_SCALE)[c] = (float)scale;
            saved_row(&a, GPU_BN_SHIFT)[c] =
                (float)((double)a.bias[c] - scale * (double)a.running_mean[c]);
        }
    }
}

/* ---- batch norm: backward --------------------------------------------------------------------- */

INLINE void norm_backward_read(const struct gpu_rows_args *a, u64 at, int w, struct row_loads *to)
{
    load_raw(a->x, at, w, &to->x);
    load_raw(a->dy, at, w, &to->dy);
    to->signs = a->signs ? a->signs[sign_byte(at, w)] >> sign_shift(at, w) : 0;
}

/* The gradient in front of the ReLU: 0 where y was not positive. */
INLINE void expand_gradient(const struct gpu_rows_args *a, const struct row_loads *loads, int w,
                            float *g)
{
    expand(&loads->dy, w, g);
    UNROLL
    for (int j = 0; j < w; j++) {
        g[j] = a->signs == 0 || loads->signs >> j & 1 ? g[j] : 0;
    }
}

INLINE void add_norm_backward_of(const struct gpu_rows_args *a, const struct row_loads *loads,
                                 const float *mean, float *sums, int w)
{
    float x[VEC], g[VEC];
    expand(&loads->x, w, x);
    expand_gradient(a, loads, w, g);
    UNROLL
    for (int j = 0; j < w; j++) {
        sums[j] += g[j];
        sums[w + j] += g[j] * (x[j] - mean[j]);
    }
}

/* Sums of g, and of g times x minus its mean. */
INLINE void add_norm_backward(const struct gpu_rows_args *a, const struct rows *r, float *sums,
                              int w)
{
    float mean[SUM_VEC];
    load_channels(a->saved + (u64)GPU_BN_MEAN * (u64)a->c, r->c, w, 0, mean);
    EACH_ROWS(r, a)
    {
        struct row_loads loads[ROWS_AHEAD];
        UNROLL
        for (int i = 0; i < ROWS_AHEAD; i++) {
            if (HAS_ROW(r, a, i)) {
                norm_backward_read(a, ROW_AT(i), w, &loads[i]);
            }
        }
        UNROLL
        for (int i = 0; i < ROWS_AHEAD; i++) {
            if (HAS_ROW(r, a, i)) {
                add_norm_backward_of(a, &loads[i], mean, sums, w);
            }
        }
    }
}

SUM_KERNEL(norm_backward_sums, add_norm_backward, SUM_VEC)
SUM_KERNEL(norm_backward_sums_1, add_norm_backward, 1)

/* Ioffe and Szegedy 2015: dx = scale * (g - mean g - xhat * mean(g * xhat)), as factors of g, x and
 * 1. */
INLINE void end_norm_backward(const struct gpu_combine_args *a, int c, double sum, double products)
{
    double mean = (double)saved_row(a, GPU_BN_MEAN)[c];
    double inv_std = (double)saved_row(a, GPU_BN_INV_STD)[c];
    products *= inv_std;
    double mean_g = sum / a->n_rows, mean_gx = products / a->n_rows;
    double scale = (double)saved_row(a, GPU_BN_BATCH_SCALE)[c];
    a->bias_gradient[c] = (float)sum;
    a->weight_gradient[c] = (float)products;
    saved_row(a, GPU_BN_X_FACTOR)[c] = (float)(-scale * inv_std * mean_gx);
    saved_row(a, GPU_BN_DX_SHIFT)[c] = (float)(scale * (mean * inv_std * mean_gx - mean_g));
}

COMBINE_KERNEL(norm_backward_combine, end_norm_backward)

INLINE struct channel_values norm_backward_values(const struct gpu_rows_args *a, int c, int w)
{
    struct channel_values v;
    load_channels(a->saved + (u64)GPU_BN_BATCH_SCALE * (u64)a->c, c, w, 0, v.p);
    load_channels(a->saved + (u64)GPU_BN_X_FACTOR * (u64)a->c, c, w, 0, v.q);
    load_channels(a->saved + (u64)GPU_BN_DX_SHIFT * (u64)a->c, c, w, 0, v.r);
    return v;
}

/* Either result may lie where dy does. */
INLINE void norm_backward_at(const struct gpu_rows_args *a, const struct channel_values *v, u64 at,
                             int w, const struct row_loads *loads)
{
    float x[VEC], g[VEC];
    expand(&loads->x, w, x);
    expand_gradient(a, loads, w, g);
    if (a->out_residual) {
        put(a->out_residual, at, w, g, a->adds_residual);
    }
    if (a->out) {
        UNROLL
        for (int j = 0; j < w; j++) {
            g[j] = v->p[j] * g[j] + v->q[j] * x[j] + v->r[j];
        }
        put(a->out, at, w, g, a->adds);
    }
}

ROW_KERNEL(norm_backward, norm_backward_values, norm_backward_read, norm_backward_at, VEC)
ROW_KERNEL(norm_backward_1, norm_backward_values, norm_backward_read, norm_backward_at, 1)

/* ---- sums of columns: gradients of biases and slopes -------------------------------------------- */

INLINE void add_columns(const struct gpu_rows_args *a, const struct rows *r, float *sums, int w)
{
    EACH_ROWS(r, a)
    {
        struct vec loads[ROWS_AHEAD];
        float dy[VEC];
        UNROLL
        for (int i = 0; i < ROWS_AHEAD; i++) {
            if (HAS_ROW(r, a, i)) {
                load_raw(a->dy, ROW_AT(i), w, &loads[i]);
            }
        }
        UNROLL
        for (int i = 0; i < ROWS_AHEAD; i++) {
            if (HAS_ROW(r, a, i)) {
                expand(&loads[i], w, dy);
                UNROLL
                for (int j = 0; j < w; j++) {
                    sums[j] += dy[j];
                }
            }
        }
    }
}

SUM_KERNEL(column_sums, add_columns, SUM_VEC)
SUM_KERNEL(column_sums_1, add_columns, 1)

INLINE void end_columns(const struct gpu_combine_args *a, int c, double sum, double products)
{
    (void)products;
    a->bias_gradient[c] = (float)sum;
}

COMBINE_KERNEL(column_combine, end_columns)

INLINE void add_slopes(const struct gpu_rows_args *a, const struct rows *r, float *sums, int w)
{
    float x[VEC], dy[VEC];
    for (u64 row = r->row; row < a->n_rows; row += r->step) {
        u64 at = row * (u64)a->c + (u64)r->c;
        load(a->x, at, w, x);
        load(a->dy, at, w, dy);
        UNROLL
        for (int j = 0; j < w; j++) {
            sums[j] += x[j] < 0 ? dy[j] * x[j] : 0;
        }
    }
}

SUM_KERNEL(prelu_sums, add_slopes, 1)

INLINE struct channel_values prelu_values(const struct gpu_rows_args *a, int c, int w)
{
    struct channel_values v;
    load_channels(a->slope, c, w, 0, v.p);
    return v;
}

INLINE void prelu_forward_read(const struct gpu_rows_args *a, u64 at, int w, struct row_loads *to)
{
    load_raw(a->x, at, w, &to->x);
}

INLINE void prelu_backward_read(const struct gpu_rows_args *a, u64 at, int w, struct row_loads *to)
{
    load_raw(a->x, at, w, &to->x);
    load_raw(a->dy, at, w, &to->dy);
}

INLINE void prelu_forward_at(const struct gpu_rows_args *a, const struct channel_values *v, u64 at,
                             int w, const struct row_loads *loads)
{
    float x[VEC];
    expand(&loads->x, w, x);
    UNROLL
    for (int j = 0; j < w; j++) {
        x[j] = x[j] < 0 ? v->p[j] * x[j] : x[j];
    }
    store(a->out, at, w, x);
}

ROW_KERNEL(prelu_forward, prelu_values, prelu_forward_read, prelu_forward_at, 1)

INLINE void prelu_backward_at(const struct gpu_rows_args *a, const struct channel_values *v, u64 at,
                              int w, const struct row_loads *loads)
{
    float x[VEC], dy[VEC];
    expand(&loads->x, w, x);
    expand(&loads->dy, w, dy);
    UNROLL
    for (int j = 0; j < w; j++) {
        dy[j] = x[j] < 0 ? v->p[j] * dy[j] : dy[j];
    }
    put(a->out, at, w, dy, a->adds);
}

ROW_KERNEL(prelu_backward, prelu_values, prelu_backward_read, prelu_backward_at, 1)

/* ---- single images, in f32: a block each -------------------------------------------------------- */

/* Sums over the elements of a thread. */
INLINE double sum_of(const float *x, int n, unsigned thread)
{
    double sum = 0;
    for (int i = (int)thread; i < n; i += BLOCK_THREADS) {
        sum += (double)x[i];
    }
    return sum;
}

/* Of (x - mean) * (y - other). */
INLINE double products_of(const float *x, double mean, const float *y, double other, int n,
                          unsigned thread)
{
    double sum = 0;
    for (int i = (int)thread; i < n; i += BLOCK_THREADS) {
        sum += ((double)x[i] - mean) * ((double)y[i] - other);
    }
    return sum;
}

INLINE void put_f32(float *to, double value, int adds)
{
    *to = (float)(adds ? (double)*to + value : value);
}

#define L2_EPS    1e-12
#define LAYER_EPS 1e-5

KERNEL(l2_normalise_forward, struct gpu_vector_args)
{
    SHARED double squares[BLOCK_THREADS];
    const float *x = a.x + (u64)BLOCK * (u64)a.len;
    float *out = a.out + (u64)BLOCK * (u64)a.len;
    EACH_THREAD
    {
        squares[THREAD] = products_of(x, 0, x, 0, a.len, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        double norm = fmax(sqrt(sum_all(squares)), L2_EPS);
        for (int i = (int)THREAD; i < a.len; i += BLOCK_THREADS) {
            out[i] = (float)((double)x[i] / norm);
        }
    }
}

/* y = x/|x|: dx = (dy - y (y.dy)) / |x|. */
KERNEL(l2_normalise_backward, struct gpu_vector_args)
{
    SHARED double squares[BLOCK_THREADS];
    SHARED double products[BLOCK_THREADS];
    const float *x = a.x + (u64)BLOCK * (u64)a.len, *dy = a.dy + (u64)BLOCK * (u64)a.len;
    float *out = a.out + (u64)BLOCK * (u64)a.len;
    EACH_THREAD
    {
        squares[THREAD] = products_of(x, 0, x, 0, a.len, THREAD);
        products[THREAD] = products_of(x, 0, dy, 0, a.len, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        double norm = fmax(sqrt(sum_all(squares)), L2_EPS), dot = sum_all(products) / norm;
        for (int i = (int)THREAD; i < a.len; i += BLOCK_THREADS) {
            put_f32(&out[i], ((double)dy[i] - (double)x[i] / norm * dot) / norm, a.adds);
        }
    }
}

KERNEL(layer_norm_forward, struct gpu_vector_args)
{
    SHARED double sums[BLOCK_THREADS];
    SHARED double squares[BLOCK_THREADS];
    const float *x = a.x + (u64)BLOCK * (u64)a.len;
    float *out = a.out + (u64)BLOCK * (u64)a.len;
    EACH_THREAD
    {
        sums[THREAD] = sum_of(x, a.len, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        double mean = sum_all(sums) / a.len;
        squares[THREAD] = products_of(x, mean, x, mean, a.len, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        double mean = sum_all(sums) / a.len;
        double inv_std = 1 / sqrt(sum_all(squares) / a.len + LAYER_EPS);
        for (int i = (int)THREAD; i < a.len; i += BLOCK_THREADS) {
            out[i] = (float)(((double)x[i] - mean) * inv_std);
        }
    }
}

/* dx = (dy - mean dy - y * mean(dy * y)) / std. */
KERNEL(layer_norm_backward, struct gpu_vector_args)
{
    SHARED double sums[BLOCK_THREADS];
    SHARED double gradients[BLOCK_THREADS];
    SHARED double squares[BLOCK_THREADS];
    SHARED double products[BLOCK_THREADS];
    const float *x = a.x + (u64)BLOCK * (u64)a.len, *dy = a.dy + (u64)BLOCK * (u64)a.len;
    float *out = a.out + (u64)BLOCK * (u64)a.len;
    EACH_THREAD
    {
        sums[THREAD] = sum_of(x, a.len, THREAD);
        gradients[THREAD] = sum_of(dy, a.len, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        double mean = sum_all(sums) / a.len;
        squares[THREAD] = products_of(x, mean, x, mean, a.len, THREAD);
        products[THREAD] = products_of(x, mean, dy, 0, a.len, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        double mean = sum_all(sums) / a.len, mean_dy = sum_all(gradients) / a.len;
        double inv_std = 1 / sqrt(sum_all(squares) / a.len + LAYER_EPS);
        double mean_product = sum_all(products) * inv_std / a.len;
        for (int i = (int)THREAD; i < a.len; i += BLOCK_THREADS) {
            double y = ((double)x[i] - mean) * inv_std;
            put_f32(&out[i], inv_std * ((double)dy[i] - mean_dy - y * mean_product), a.adds);
        }
    }
}
