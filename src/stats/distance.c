#include "stats/distance.h"

#include "base/macros.h"
#include "stats/permutation.h"

#include <math.h>
#include <stdlib.h>
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

double weir_distance_wasserstein(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    double deviation = weir_histogram_stddev(p);
    if (!normalise(p, q, &pair) || !(deviation > 0)) {
        return NAN;
    }
    double centre[WEIR_HISTOGRAM_MAX_BINS], difference = 0, sum = 0;
    weir_histogram_centres(p, centre);
    for (uint32_t i = 0; i + 1 < pair.n_bins; i++) {
        difference += pair.p[i] - pair.q[i];
        sum += fabs(difference) * (centre[i + 1] - centre[i]);
    }
    return sum / deviation;
}

double weir_distance_chi2(const struct weir_histogram *p, const struct weir_histogram *q)
{
    struct pair pair;
    if (!normalise(p, q, &pair)) {
        return NAN;
    }
    double n = (double)q->n, m = (double)p->n, sum = 0;
    for (uint32_t i = 0; i < pair.n_bins; i++) {
        double both = (double)p->counts[i] + (double)q->counts[i];
        if (both > 0) {
            double expected_q = both * n / (n + m), expected_p = both * m / (n + m);
            double off = (double)q->counts[i] - expected_q;
            sum += off * off * (1 / expected_q + 1 / expected_p);
        }
    }
    return sum;
}

// clang-format off: a table
const struct weir_distance weir_distances[] = {
    {"ks", false, weir_distance_ks},
    {"chi2", false, weir_distance_chi2},
    {"psi", false, weir_distance_psi},
    {"js", false, weir_distance_js},
    {"wasserstein", false, weir_distance_wasserstein},
    {"hellinger", false, weir_distance_hellinger},
    {"mcenter", true, weir_distance_mcenter},
};
// clang-format on
const size_t weir_n_distances = WEIR_ARRAY_LEN(weir_distances);

#define DRAWS_MAX 100000

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double weir_distance_limit(const struct weir_distance *distance,
                           const struct weir_histogram *baseline, const struct weir_histogram *live,
                           double rate, uint64_t seed)
{
    struct weir_rng rng;
    struct weir_histogram p = *baseline, q = *live;
    uint64_t pooled[WEIR_HISTOGRAM_MAX_BINS];
    double first = distance->of(baseline, live);
    if (isnan(first) || !(rate >= 0.0001 && rate <= 0.5)) {
        return NAN;
    }
    size_t n_draws = (size_t)WEIR_MIN(ceil(10 / rate), (double)DRAWS_MAX);
    double *found = calloc(n_draws, sizeof *found);
    if (found == NULL) {
        return NAN;
    }
    for (uint32_t i = 0; i < p.n_bins; i++) {
        pooled[i] = baseline->counts[i] + live->counts[i];
    }
    weir_rng_init(&rng, seed, 0);
    for (size_t k = 0; k < n_draws; k++) {
        permutation_draw(&rng, pooled, p.n_bins, live->n, q.counts);
        for (uint32_t i = 0; i < p.n_bins; i++) {
            p.counts[i] = pooled[i] - q.counts[i];
        }
        double value = distance->of(&p, &q);
        found[k] = distance->is_similarity ? -value : value;
    }
    qsort(found, n_draws, sizeof *found, compare_doubles);
    size_t i_limit = (size_t)ceil((double)n_draws * (1 - rate));
    double limit = found[WEIR_MIN(i_limit, n_draws - 1)];
    free(found);
    return distance->is_similarity ? -limit : limit;
}
