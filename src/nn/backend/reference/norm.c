#include "kernels.h"

#include <math.h>

/* Calls `visit` for every element of one channel of the tile; `at` is its index. */
#define FOR_CHANNEL(op, tile, c, at)                                                               \
    for (int32_t n_ = 0; n_ < (tile)->n; n_++)                                                     \
        for (int32_t h_ = 0; h_ < (op)->in[0].h; h_++)                                             \
            for (int32_t w_ = 0, once_; w_ < (op)->in[0].w; w_++)                                  \
                for (size_t at = (once_ = 1, op_at((op), (op)->in[0], n_, (c), h_, w_)); once_;    \
                     once_ = 0)

/* Row of `saved`: C values. */
static real *saved(const struct op *op, int row)
{
    return op->saved + (size_t)row * (size_t)op->in[0].c;
}

static double n_per_channel(const struct op *op)
{
    return (double)op->batch * op->in[0].h * op->in[0].w;
}

/* Row of a slice: sums of x, then of x squared (forward); of g, then of g * xhat (backward). */
static double *partial_row(const struct op *op, int32_t i_slice)
{
    return op->partials + (size_t)i_slice * (size_t)op->n_partials;
}

static double sum_of_slices(const struct op *op, int32_t i_partial)
{
    double sum = 0;
    for (int32_t s = 0; s < op->n_slices; s++) {
        sum += partial_row(op, s)[i_partial];
    }
    return sum;
}

weir_status REF(batch_norm_sums)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_channels = op->in[0].c;
    double *row = partial_row(op, tile->i_slice);
    for (int32_t c = 0; c < n_channels; c++) {
        double sum = 0, squares = 0;
        FOR_CHANNEL(op, tile, c, at)
        {
            double x = tile->x[0][at];
            sum += x;
            squares += x * x;
        }
        row[c] = sum;
        row[n_channels + c] = squares;
    }
    return WEIR_OK;
}

weir_status REF(batch_norm_combine)(const struct op *op)
{
    int32_t n_channels = op->in[0].c;
    double count = n_per_channel(op);
    real *running_mean = op->params[OP_RUNNING_MEAN].value;
    real *running_var = op->params[OP_RUNNING_VAR].value;
    for (int32_t c = 0; c < n_channels; c++) {
        double mean = sum_of_slices(op, c) / count;
        double var = sum_of_slices(op, n_channels + c) / count - mean * mean;
        if (var < 0) {
            var = 0; /* rounding of a constant channel; NaN stays */
        }
        saved(op, BN_MEAN)[c] = (real)mean;
        saved(op, BN_INV_STD)[c] = (real)(1 / sqrt(var + op->eps));
        /* The running variance is the unbiased one, as PyTorch's. */
        double unbiased = count > 1 ? var * count / (count - 1) : var;
        running_mean[c] = (real)((1 - BATCH_NORM_MOMENTUM) * (double)running_mean[c] +
                                 BATCH_NORM_MOMENTUM * mean);
        running_var[c] = (real)((1 - BATCH_NORM_MOMENTUM) * (double)running_var[c] +
                                BATCH_NORM_MOMENTUM * unbiased);
    }
    return WEIR_OK;
}

/* What inference needs: y = scale * x + shift from the running statistics. */
weir_status REF(batch_norm_refresh)(const struct op *op, int32_t i_thread, void *scratch)
{
    (void)i_thread;
    (void)scratch;
    for (int32_t c = 0; c < op->in[0].c; c++) {
        double var = op->params[OP_RUNNING_VAR].value[c],
               mean = op->params[OP_RUNNING_MEAN].value[c];
        double scale = (double)op->params[OP_WEIGHT].value[c] / sqrt(var + op->eps);
        saved(op, BN_SCALE)[c] = (real)scale;
        saved(op, BN_SHIFT)[c] = (real)((double)op->params[OP_BIAS].value[c] - scale * mean);
    }
    return WEIR_OK;
}

weir_status REF(batch_norm_forward)(const struct op *op, const struct op_tile *tile)
{
    for (int32_t c = 0; c < op->in[0].c; c++) {
        double scale = saved(op, BN_SCALE)[c], shift = saved(op, BN_SHIFT)[c];
        if (tile->is_training) {
            scale = (double)op->params[OP_WEIGHT].value[c] * (double)saved(op, BN_INV_STD)[c];
            shift = (double)op->params[OP_BIAS].value[c] - scale * (double)saved(op, BN_MEAN)[c];
        }
        FOR_CHANNEL(op, tile, c, at)
        {
            tile->y[at] = (real)(scale * (double)tile->x[0][at] + shift);
        }
    }
    return WEIR_OK;
}

weir_status REF(batch_norm_backward_sums)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_channels = op->in[0].c;
    double *row = partial_row(op, tile->i_slice);
    for (int32_t c = 0; c < n_channels; c++) {
        double mean = saved(op, BN_MEAN)[c], inv_std = saved(op, BN_INV_STD)[c];
        double sum = 0, products = 0;
        FOR_CHANNEL(op, tile, c, at)
        {
            double g = tile->dy[at];
            sum += g;
            products += g * ((double)tile->x[0][at] - mean) * inv_std;
        }
        row[c] = sum;
        row[n_channels + c] = products;
    }
    return WEIR_OK;
}

weir_status REF(batch_norm_backward_combine)(const struct op *op)
{
    int32_t n_channels = op->in[0].c;
    for (int32_t c = 0; c < n_channels; c++) {
        double sum = sum_of_slices(op, c), products = sum_of_slices(op, n_channels + c);
        op->params[OP_BIAS].gradient[c] = (real)sum;
        op->params[OP_WEIGHT].gradient[c] = (real)products;
        saved(op, BN_MEAN_G)[c] = (real)(sum / n_per_channel(op));
        saved(op, BN_MEAN_GX)[c] = (real)(products / n_per_channel(op));
    }
    return WEIR_OK;
}

/* Ioffe & Szegedy 2015, the formula of section 3 with the sums over the batch as means. */
weir_status REF(batch_norm_backward)(const struct op *op, const struct op_tile *tile)
{
    if (!tile->dx[0]) {
        return WEIR_OK;
    }
    for (int32_t c = 0; c < op->in[0].c; c++) {
        double mean = saved(op, BN_MEAN)[c], inv_std = saved(op, BN_INV_STD)[c];
        double scale = (double)op->params[OP_WEIGHT].value[c] * inv_std;
        double mean_g = saved(op, BN_MEAN_G)[c], mean_gx = saved(op, BN_MEAN_GX)[c];
        FOR_CHANNEL(op, tile, c, at)
        {
            double xhat = ((double)tile->x[0][at] - mean) * inv_std;
            ref_put(tile, 0, at, scale * ((double)tile->dy[at] - mean_g - xhat * mean_gx));
        }
    }
    return WEIR_OK;
}

/* ---- L2 normalisation of a vector ------------------------------------------------------------ */

static double norm_of(const real *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * x[i];
    }
    return sqrt(sum);
}

weir_status REF(l2_normalise_forward)(const struct op *op, const struct op_tile *tile)
{
    size_t len = op_elems(op->in[0]);
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        const real *x = tile->x[0] + n * len;
        double norm = fmax(norm_of(x, len), L2_NORM_EPS);
        for (size_t i = 0; i < len; i++) {
            tile->y[n * len + i] = (real)((double)x[i] / norm);
        }
    }
    return WEIR_OK;
}

/* y = x/|x|: dx = (dy - y (y.dy)) / |x|. */
weir_status REF(l2_normalise_backward)(const struct op *op, const struct op_tile *tile)
{
    size_t len = op_elems(op->in[0]);
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        const real *x = tile->x[0] + n * len, *dy = tile->dy + n * len;
        double norm = fmax(norm_of(x, len), L2_NORM_EPS), dot = 0;
        for (size_t i = 0; i < len; i++) {
            dot += (double)x[i] / norm * (double)dy[i];
        }
        for (size_t i = 0; i < len; i++) {
            ref_put(tile, 0, n * len + i, ((double)dy[i] - (double)x[i] / norm * dot) / norm);
        }
    }
    return WEIR_OK;
}

/* ---- normalisation of each image by itself --------------------------------------------------- */

/* The same in any layout: every value of an image counts alike. */
static double mean_and_inv_std(const real *x, size_t n, double *out_inv_std)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
    }
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    *out_inv_std = 1 / sqrt(squares / (double)n + LAYER_NORM_EPS);
    return mean;
}

weir_status REF(layer_norm_forward)(const struct op *op, const struct op_tile *tile)
{
    size_t len = op_elems(op->in[0]);
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        const real *x = tile->x[0] + n * len;
        double inv_std, mean = mean_and_inv_std(x, len, &inv_std);
        for (size_t i = 0; i < len; i++) {
            tile->y[n * len + i] = (real)(((double)x[i] - mean) * inv_std);
        }
    }
    return WEIR_OK;
}

/* As batch norm's, with the means over the image: dx = (dy - mean dy - y * mean(dy * y)) / std. */
weir_status REF(layer_norm_backward)(const struct op *op, const struct op_tile *tile)
{
    size_t len = op_elems(op->in[0]);
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        const real *x = tile->x[0] + n * len, *dy = tile->dy + n * len;
        double inv_std, mean = mean_and_inv_std(x, len, &inv_std);
        double sum = 0, products = 0;
        for (size_t i = 0; i < len; i++) {
            sum += (double)dy[i];
            products += (double)dy[i] * ((double)x[i] - mean) * inv_std;
        }
        double mean_dy = sum / (double)len, mean_product = products / (double)len;
        for (size_t i = 0; i < len; i++) {
            double y = ((double)x[i] - mean) * inv_std;
            ref_put(tile, 0, n * len + i, inv_std * ((double)dy[i] - mean_dy - y * mean_product));
        }
    }
    return WEIR_OK;
}
