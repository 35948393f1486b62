#include "kernels.h"

#include <math.h>

/* log(sum(exp(scale * scores))), stable; NaN stays NaN. */
static double log_sum_exp(const real *scores, int32_t n, double scale)
{
    double largest = scale * (double)scores[0], sum = 0;
    for (int32_t i = 1; i < n; i++) {
        double s = scale * (double)scores[i];
        largest = s > largest || isnan(s) ? s : largest;
    }
    for (int32_t i = 0; i < n; i++) {
        sum += exp(scale * (double)scores[i] - largest);
    }
    return largest + log(sum);
}

/* What the logits are worth under a smoothed label: sum of q_k * logit_k. */
static double smoothed(const struct op *op, const real *logits, int32_t label)
{
    double sum = 0;
    for (int32_t i = 0; i < op->in[0].c; i++) {
        sum += (double)logits[i];
    }
    return (1 - op->smoothing) * (double)logits[label] + op->smoothing / op->in[0].c * sum;
}

/* The mean of -log p_k over the classes k, weighted by how much the label is k. */
weir_status REF(softmax_loss_forward)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_classes = op->in[0].c;
    *tile->loss = (struct op_loss){0, 0, 0};
    for (int32_t n = 0; n < tile->n; n++) {
        const real *logits = tile->x[0] + (size_t)n * (size_t)n_classes;
        int32_t label = tile->labels[n];
        if (label >= 0) {
            bool is_smooth = tile->is_training && op->smoothing > 0;
            tile->loss->loss += log_sum_exp(logits, n_classes, 1) -
                                (is_smooth ? smoothed(op, logits, label) : (double)logits[label]);
            tile->loss->n_correct += ref_argmax(logits, n_classes) == label;
            tile->loss->n_labelled++;
        }
    }
    return WEIR_OK;
}

/* d loss / d logit = (softmax - how much the label is this class) / labelled images. */
weir_status REF(softmax_loss_backward)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_classes = op->in[0].c;
    const double rest = op->smoothing / n_classes, most = 1 - op->smoothing;
    for (int32_t n = 0; tile->dx[0] && n < tile->n; n++) {
        const real *logits = tile->x[0] + (size_t)n * (size_t)n_classes;
        int32_t label = tile->labels[n];
        double log_sum = label >= 0 ? log_sum_exp(logits, n_classes, 1) : 0;
        for (int32_t i = 0; i < n_classes; i++) {
            double target = rest + (i == label ? most : 0);
            double g = label >= 0 ? exp((double)logits[i] - log_sum) - target : 0;
            ref_put(tile, 0, (size_t)n * (size_t)n_classes + (size_t)i, g * tile->inv_n_labelled);
        }
    }
    return WEIR_OK;
}

/* ---- additive angular margin -------------------------------------------------------------- */

/* Class weights over their norms, and the norms behind them. */
weir_status REF(margin_loss_refresh)(const struct op *op, int32_t i_thread, void *scratch)
{
    (void)i_thread;
    (void)scratch;
    size_t dim = (size_t)op->in[0].c, n_classes = (size_t)op->n_classes;
    for (size_t k = 0; k < n_classes; k++) {
        const real *w = op->params[OP_WEIGHT].value + k * dim;
        double squares = 0;
        for (size_t i = 0; i < dim; i++) {
            squares += (double)w[i] * (double)w[i];
        }
        double norm = fmax(sqrt(squares), L2_NORM_EPS);
        for (size_t i = 0; i < dim; i++) {
            op->saved[k * dim + i] = (real)((double)w[i] / norm);
        }
        op->saved[n_classes * dim + k] = (real)norm;
    }
    return WEIR_OK;
}

/*
 * cos(theta + margin) of c = cos(theta), and its derivative by c. Beyond theta = pi - margin the
 * cosine would rise again: there c - margin * sin(margin) goes on falling (as InsightFace does).
 */
static double with_margin(double c, double margin, double *out_slope)
{
    if (c <= cos(M_PI - margin)) {
        *out_slope = 1;
        return c - margin * sin(margin);
    }
    double sine = sqrt(fmax(1 - c * c, 1e-12));
    *out_slope = cos(margin) + c * sin(margin) / sine;
    return c * cos(margin) - sine * sin(margin);
}

/* One labelled image: cosines in `scores` become the loss's gradient by them. Returns the loss. */
static double margin_one(const struct op *op, real *scores, int32_t label, double inv_n_labelled)
{
    double slope, scale = op->scale;
    double target = with_margin(scores[label], op->margin, &slope);
    scores[label] = (real)target;
    double log_sum = log_sum_exp(scores, op->n_classes, scale);
    double loss = log_sum - scale * target;
    for (int32_t k = 0; k < op->n_classes; k++) {
        double p =
            k == label ? exp(scale * target - log_sum) : exp(scale * (double)scores[k] - log_sum);
        double g = scale * (p - (k == label)) * (k == label ? slope : 1);
        scores[k] = (real)(g * inv_n_labelled);
    }
    return loss;
}

weir_status REF(margin_loss_forward)(const struct op *op, const struct op_tile *tile)
{
    size_t dim = (size_t)op->in[0].c, n_classes = (size_t)op->n_classes;
    *tile->loss = (struct op_loss){0, 0, 0};
    for (int32_t n = 0; n < tile->n; n++) {
        real *scores = op->scores + (size_t)(tile->first + n) * n_classes;
        const real *x = tile->x[0] + (size_t)n * dim;
        for (size_t k = 0; k < n_classes; k++) {
            double dot = 0;
            for (size_t i = 0; i < dim; i++) {
                dot += (double)x[i] * (double)op->saved[k * dim + i];
            }
            scores[k] = (real)dot;
        }
        if (tile->labels[n] >= 0) {
            tile->loss->n_correct += ref_argmax(scores, op->n_classes) == tile->labels[n];
            tile->loss->n_labelled++;
            tile->loss->loss += margin_one(op, scores, tile->labels[n], tile->inv_n_labelled);
        } else {
            for (size_t k = 0; k < n_classes; k++) {
                scores[k] = 0;
            }
        }
    }
    return WEIR_OK;
}

weir_status REF(margin_loss_backward)(const struct op *op, const struct op_tile *tile)
{
    size_t dim = (size_t)op->in[0].c, n_classes = (size_t)op->n_classes;
    for (int32_t n = 0; tile->dx[0] && n < tile->n; n++) {
        const real *g = op->scores + (size_t)(tile->first + n) * n_classes;
        for (size_t i = 0; i < dim; i++) {
            double sum = 0;
            for (size_t k = 0; k < n_classes; k++) {
                sum += (double)g[k] * (double)op->saved[k * dim + i];
            }
            ref_put(tile, 0, (size_t)n * dim + i, sum);
        }
    }
    return WEIR_OK;
}

/* Through the normalisation of the class weights: dW = (d - w (w.d)) / |W|. */
weir_status REF(margin_loss_weight_gradient)(const struct op *op, const struct op_tile *tile)
{
    size_t dim = (size_t)op->in[0].c, n_classes = (size_t)op->n_classes;
    for (size_t k = 0; k < n_classes; k++) {
        const real *w = op->saved + k * dim;
        real *gradient = op->params[OP_WEIGHT].gradient + k * dim;
        double dot = 0;
        for (size_t i = 0; i < dim; i++) {
            double sum = 0;
            for (size_t n = 0; n < (size_t)tile->n; n++) {
                sum += (double)op->scores[n * n_classes + k] * (double)tile->x[0][n * dim + i];
            }
            gradient[i] = (real)sum;
            dot += sum * (double)w[i];
        }
        for (size_t i = 0; i < dim; i++) {
            gradient[i] = (real)(((double)gradient[i] - (double)w[i] * dot) /
                                 (double)op->saved[n_classes * dim + k]);
        }
    }
    return WEIR_OK;
}

/* ---- detection ------------------------------------------------------------------------------ */

/* log(1 + exp(x)), stable. */
static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* The loss that the logit x has against the target t, and its derivative by x. */
static double focal(double x, double t, double *out_slope)
{
    double p = 1 / (1 + exp(-x)), q = 1 - p;
    if (t >= 1) {
        double log_p = -softplus(-x);
        *out_slope = 2 * p * q * q * log_p - q * q * q;
        return -q * q * log_p;
    }
    double log_q = -softplus(x), far = (1 - t) * (1 - t);
    *out_slope = far * far * (p * p * p - 2 * p * p * q * log_q);
    return -far * far * p * p * log_q;
}

static double smooth_l1(double difference, double *out_slope)
{
    double size = fabs(difference);
    *out_slope = size < 1 ? difference : copysign(1, difference);
    return size < 1 ? difference * difference / 2 : size - 0.5;
}

/* Element i of one image; targets that are NaN leave it out. */
static double detect_one(const struct op *op, int32_t i, double x, double t, double *out_slope)
{
    *out_slope = 0;
    if (isnan(t)) {
        return 0;
    }
    if (i < op->in[0].c / op->n_values) {
        return focal(x, t, out_slope);
    }
    double loss = smooth_l1(x - t, out_slope);
    *out_slope *= (double)op->scale;
    return loss * (double)op->scale;
}

weir_status REF(detect_loss_forward)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_elems = op->in[0].c, n_scores = n_elems / op->n_values;
    *tile->loss = (struct op_loss){0, 0, 0};
    for (int32_t n = 0; n < tile->n; n++) {
        const real *x = tile->x[0] + (size_t)n * (size_t)n_elems;
        const float *targets = tile->targets + (size_t)n * (size_t)n_elems;
        bool is_right = true;
        double slope, loss = 0;
        for (int32_t i = 0; tile->labels[n] >= 0 && i < n_elems; i++) {
            loss += detect_one(op, i, (double)x[i], (double)targets[i], &slope);
            bool misses = targets[i] >= 1 && x[i] <= 0, invents = targets[i] == 0 && x[i] > 0;
            is_right = is_right && (i >= n_scores || (!misses && !invents));
        }
        if (tile->labels[n] >= 0) {
            tile->loss->loss += loss;
            tile->loss->n_correct += is_right;
            tile->loss->n_labelled++;
        }
    }
    return WEIR_OK;
}

weir_status REF(detect_loss_backward)(const struct op *op, const struct op_tile *tile)
{
    size_t n_elems = (size_t)op->in[0].c;
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        for (size_t i = 0; i < n_elems; i++) {
            size_t at = n * n_elems + i;
            double slope = 0;
            if (tile->labels[n] >= 0) {
                (void)detect_one(op, (int32_t)i, (double)tile->x[0][at], (double)tile->targets[at],
                                 &slope);
            }
            ref_put(tile, 0, at, slope * tile->inv_n_labelled);
        }
    }
    return WEIR_OK;
}
