#include "stats/histogram.h"

#include <math.h>
#include <string.h>

weir_status weir_histogram_init(struct weir_histogram *hist, const double *edges, size_t n_edges)
{
    if (n_edges < 1 || n_edges > WEIR_HISTOGRAM_MAX_BINS - 1) {
        return WEIR_ERR_INVALID;
    }
    for (size_t i = 0; i < n_edges; i++) {
        if (!isfinite(edges[i]) || (i > 0 && edges[i] <= edges[i - 1])) {
            return WEIR_ERR_INVALID;
        }
    }
    memset(hist, 0, sizeof *hist);
    memcpy(hist->edges, edges, n_edges * sizeof *edges);
    hist->n_bins = (uint32_t)n_edges + 1;
    hist->min = NAN;
    hist->max = NAN;
    return WEIR_OK;
}

weir_status weir_histogram_init_linear(struct weir_histogram *hist, double low, double high,
                                       uint32_t n_bins)
{
    if (n_bins < 3 || n_bins > WEIR_HISTOGRAM_MAX_BINS) {
        return WEIR_ERR_INVALID;
    }
    double edges[WEIR_HISTOGRAM_MAX_BINS - 1];
    uint32_t n_inside = n_bins - 2;
    for (uint32_t i = 0; i <= n_inside; i++) {
        edges[i] = low + (high - low) * i / n_inside;
    }
    return weir_histogram_init(hist, edges, n_inside + 1);
}

weir_status weir_histogram_init_normal(struct weir_histogram *hist, double mean, double sigma)
{
    if (!isfinite(mean) || !isfinite(sigma) || sigma < 0) {
        return WEIR_ERR_INVALID;
    }
    if (sigma == 0) {
        sigma = 0.05;
    }
    if (sigma < 1e-12 * fabs(mean)) {
        sigma = 0.05 * fabs(mean); // edges this close would be the same double
    }
    return weir_histogram_init_linear(hist, mean - 2 * sigma, mean + 2 * sigma,
                                      WEIR_HISTOGRAM_NORMAL_BINS);
}

void weir_histogram_init_like(struct weir_histogram *hist, const struct weir_histogram *like)
{
    uint32_t n_bins = like->n_bins;
    double edges[WEIR_HISTOGRAM_MAX_BINS - 1];
    memcpy(edges, like->edges, sizeof edges);
    memset(hist, 0, sizeof *hist);
    memcpy(hist->edges, edges, sizeof edges);
    hist->n_bins = n_bins;
    hist->min = NAN;
    hist->max = NAN;
}

weir_status weir_histogram_from_values(struct weir_histogram *hist, const double *values, size_t n)
{
    double mean = 0, m2 = 0;
    size_t n_finite = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            double delta = values[i] - mean;
            n_finite++;
            mean += delta / (double)n_finite;
            m2 += delta * (values[i] - mean);
        }
    }
    if (n_finite == 0) {
        return WEIR_ERR_INVALID;
    }
    struct weir_histogram made;
    WEIR_TRY(weir_histogram_init_normal(&made, mean, sqrt(m2 / (double)n_finite)));
    for (size_t i = 0; i < n; i++) {
        weir_histogram_add(&made, values[i]);
    }
    *hist = made;
    return WEIR_OK;
}

uint32_t weir_histogram_bin(const struct weir_histogram *hist, double value)
{
    uint32_t low = 0, high = hist->n_bins - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (value <= hist->edges[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void weir_histogram_add(struct weir_histogram *hist, double value)
{
    if (isnan(value)) {
        hist->n_nan++;
        return;
    }
    hist->counts[weir_histogram_bin(hist, value)]++;
    hist->n++;
    hist->min = hist->n == 1 || value < hist->min ? value : hist->min;
    hist->max = hist->n == 1 || value > hist->max ? value : hist->max;
    if (isinf(value)) {
        hist->n_infinite++;
        return;
    }
    double delta = value - hist->mean;
    hist->mean += delta / (double)(hist->n - hist->n_infinite);
    hist->m2 += delta * (value - hist->mean);
}

double weir_histogram_variance(const struct weir_histogram *hist)
{
    uint64_t n_finite = hist->n - hist->n_infinite;
    return n_finite < 2 ? 0 : hist->m2 / (double)(n_finite - 1);
}

double weir_histogram_stddev(const struct weir_histogram *hist)
{
    return sqrt(weir_histogram_variance(hist));
}

void weir_histogram_centres(const struct weir_histogram *hist, double *out)
{
    uint32_t n = hist->n_bins;
    double first = n > 2 ? hist->edges[1] - hist->edges[0] : 1;
    double last = n > 2 ? hist->edges[n - 2] - hist->edges[n - 3] : 1;
    out[0] = hist->edges[0] - first;
    out[n - 1] = hist->edges[n - 2] + last;
    for (uint32_t i = 1; i + 1 < n; i++) {
        out[i] = hist->edges[i - 1] + (hist->edges[i] - hist->edges[i - 1]) / 2;
    }
}
