#include "predict/calibrate.h"

#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

#define FEW_SCORES     20
#define ENOUGH_ABOVE   10
#define TAIL_FRACTION  0.1
#define TAIL_MIN_COUNT 10

/* The standard normal's quantile, by bisection of erfc: exact enough, and called once. */
static double normal_quantile(double p)
{
    double low = -10, high = 10;
    for (int i = 0; i < 80; i++) {
        double middle = (low + high) / 2;
        if (0.5 * erfc(-middle / sqrt(2)) < p) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

static double mean_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
    }
    return n > 0 ? sum / (double)n : NAN;
}

static double normal_estimate(const double *scores, size_t n, double rate)
{
    double mean = mean_of(scores, n), squares = 0;
    for (size_t i = 0; i < n; i++) {
        squares += (scores[i] - mean) * (scores[i] - mean);
    }
    /* One score says nothing about spread: 0.1 is what cosines of strangers usually have. */
    double deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0.1;
    return mean + normal_quantile(1 - rate) * deviation;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double calibrate_quantile(double *scores, size_t n, double rate)
{
    if (n == 0) {
        return NAN;
    }
    if (n < FEW_SCORES) {
        return normal_estimate(scores, n, rate);
    }
    if ((double)n * rate >= ENOUGH_ABOVE) {
        return weir_quantile(scores, n, 1 - rate);
    }
    qsort(scores, n, sizeof *scores, by_value);
    size_t n_tail = (size_t)((double)n * TAIL_FRACTION);
    n_tail = WEIR_MIN(WEIR_MAX(n_tail, (size_t)TAIL_MIN_COUNT), n - 1);
    double base = scores[n - 1 - n_tail];
    double mean_excess = mean_of(scores + n - n_tail, n_tail) - base;
    double in_tail = (double)n_tail / (double)n;
    return rate >= in_tail ? weir_quantile(scores, n, 1 - rate)
                           : base + mean_excess * log(in_tail / rate);
}

/* Strangers score higher than trained people against each other: see the header. */
static double guard_of(const struct calibration *found, double rate)
{
    double share = GUARD_SHARE + GUARD_PER_SIGMA * normal_quantile(1 - rate);
    share = fmin(fmax(share, 0), 1);
    return found->impostor_mean + share * (found->genuine_mean - found->impostor_mean);
}

static double combine(const struct calibration *found, double rate)
{
    double threshold = found->quantile;
    if (found->n_impostor == 0) {
        threshold = THRESHOLD_BLIND;
        if (found->n_genuine > 0) {
            threshold = fmax(threshold, found->genuine_mean / 2);
        }
    } else if (found->n_genuine > 0) {
        double guard = guard_of(found, rate);
        threshold = fmax(fmin(threshold, fmax(found->genuine_low, guard)), guard);
    }
    return fmin(fmax(threshold, THRESHOLD_FLOOR), THRESHOLD_CEILING);
}

weir_status calibrate(const struct templates *templates, double rate, struct calibration *out,
                      struct weir_error *err)
{
    if (!(rate > 0 && rate < 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "false_accept_rate: expected a number between 0 and 1");
    }
    size_t n_probes = WEIR_MIN(templates->n, (size_t)CALIBRATE_PROBES_MAX);
    double *impostors = malloc(2 * (n_probes + 1) * sizeof *impostors);
    if (impostors == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to calibrate the threshold");
    }
    double *genuine = impostors + n_probes + 1;
    struct calibration found = {
        .quantile = NAN, .genuine_mean = NAN, .impostor_mean = NAN, .genuine_low = NAN};
    for (size_t k = 0; k < n_probes; k++) {
        size_t i = k * templates->n / n_probes;
        const float *probe = templates->vectors + i * templates->dim;
        struct match other = match_best_other(templates, probe, templates->persons[i]);
        struct match same = match_best_same(templates, probe, templates->persons[i], i);
        if (other.person >= 0) {
            impostors[found.n_impostor++] = other.score;
        }
        if (same.person >= 0) {
            genuine[found.n_genuine++] = same.score;
        }
    }
    found.impostor_mean = mean_of(impostors, found.n_impostor);
    found.genuine_mean = mean_of(genuine, found.n_genuine);
    if (found.n_genuine > 0) {
        found.genuine_low = weir_quantile(genuine, found.n_genuine, GENUINE_REFUSED_MAX);
    }
    found.quantile = calibrate_quantile(impostors, found.n_impostor, rate);
    found.threshold = combine(&found, rate);
    free(impostors);
    *out = found;
    return WEIR_OK;
}
