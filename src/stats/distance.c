#include "stats/distance.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

struct pair {
    uint32_t n_bins;
    double p[WEIR_HISTOGRAM_MAX_BINS], q[WEIR_HISTOGRAM_MAX_BINS];
};

static bool normalise(const struct weir_histogram *p, const struct weir_histogram *q,
                      struct pair *out)
{
    if (p->n_bins != q->n_bins || p->n == 0 || q->n == 0 ||
        memcmp(p->edges, q->edges, (p->n_bins - 1) * sizeof p->edges[0]) != 0) {
        return false;
    }
    out->n_bins = p->n_bins;
    for (uint32_t i = 0; i < p->n_bins; i++) {
        out->p[i] = (double)p->counts[i] / (double)p->n;
        out->q[i] = (double)q->counts[i] / (double)q->n;
    }
    return true;
}

double weir_distance_psi(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    if (!normalise(p, q, &pair)) {
        return NAN;
    }
    double sum = 0;
    for (uint32_t i = 0; i < pair.n_bins; i++) {
        double a = fmax(pair.p[i], 1e-4), b = fmax(pair.q[i], 1e-4);
        sum += (b - a) * log(b / a);
    }
    return sum;
}

static double divergence_bits(double a, double middle)
{
    return a > 0 ? a * log2(a / middle) : 0;
}

double weir_distance_js(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    if (!normalise(p, q, &pair)) {
        return NAN;
    }
    double sum = 0;
    for (uint32_t i = 0; i < pair.n_bins; i++) {
        double middle = (pair.p[i] + pair.q[i]) / 2;
        sum += (divergence_bits(pair.p[i], middle) + divergence_bits(pair.q[i], middle)) / 2;
    }
    return sqrt(fmax(0, sum));
}

double weir_distance_ks(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    if (!normalise(p, q, &pair)) {
        return NAN;
    }
    double difference = 0, largest = 0;
    for (uint32_t i = 0; i < pair.n_bins; i++) {
        difference += pair.p[i] - pair.q[i];
        largest = fmax(largest, fabs(difference));
    }
    return largest;
}

double weir_distance_rmse(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    if (!normalise(p, q, &pair)) {
        return NAN;
    }
    double sum = 0;
    for (uint32_t i = 0; i < pair.n_bins; i++) {
        sum += (pair.p[i] - pair.q[i]) * (pair.p[i] - pair.q[i]);
    }
    return sqrt(sum);
}

double weir_distance_hellinger(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    if (!normalise(p, q, &pair)) {
        return NAN;
    }
    double sum = 0;
    for (uint32_t i = 0; i < pair.n_bins; i++) {
        double difference = sqrt(pair.p[i]) - sqrt(pair.q[i]);
        sum += difference * difference;
    }
    return sqrt(sum / 2);
}

double weir_distance_mcenter(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    if (!normalise(p, q, &pair)) {
        return NAN;
    }
    double pq = 0, pp = 0;
    for (uint32_t i = 0; i < pair.n_bins; i++) {
        pq += pair.p[i] * pair.q[i];
        pp += pair.p[i] * pair.p[i];
    }
    return fmin(1, pq / pp);
}
