#include "stats/drift.h"

#include "base/rng.h"
#include "stats/permutation.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Draws as extreme as the window after which the p-value is known well enough. */
#define N_EXTREME_ENOUGH 10

/** Draws after which a window that is far beyond all of them is not drawn for any more; where the work
 *  ends before, these are enough to ask. */
#define N_FIRST_DRAWS 256
#define N_LEAST_DRAWS 64

#define STEPS_OF_A_BIN 20 /* nine logarithms of factorials */

#define MAX_CATEGORIES (WEIR_HISTOGRAM_MAX_BINS + 1) /* the bins, and "missing" */

/** Everything about the pooled sample that all draws share. */
struct pool {
    uint32_t n_bins;       /**< Bins with a score. */
    uint32_t n_categories; /**< n_bins + 1: the last counts missing values. */
    uint64_t counts[MAX_CATEGORIES];
    double score[WEIR_HISTOGRAM_MAX_BINS]; /**< Bin centres, standardised over the pool. */
    double within;                         /**< Variance of a uniform value inside a bin. */
    double n_live, n_baseline;
    double sum, sum_squares, n_scored; /**< Of the scores, over the pool. */
    double log_variance_scale;         /**< Kurtosis − 1. */
    double degrees;                    /**< Occupied categories − 1. */
    double draw_work;                  /**< Steps of one draw. */
};

struct statistics {
    double location, spread, shape; /**< Each about standard normal under no drift. */
    double likelihood_ratio;        /**< G */
};

const char *weir_drift_kind_name(enum weir_drift_kind kind)
{
    static const char *const names[] = {"none", "location", "spread", "shape"};
    return (unsigned)kind < WEIR_ARRAY_LEN(names) ? names[kind] : "none";
}

/** Shift and scale the scores so that the pool has mean 0 and variance 1. */
static void standardise(struct pool *pool, double width)
{
    double n = 0, mean = 0, variance = 0;
    for (uint32_t i = 0; i < pool->n_bins; i++) {
        n += (double)pool->counts[i];
        mean += (double)pool->counts[i] * pool->score[i];
    }
    mean /= fmax(n, 1);
    for (uint32_t i = 0; i < pool->n_bins; i++) {
        double distance = pool->score[i] - mean;
        variance += (double)pool->counts[i] * distance * distance;
    }
    double deviation = sqrt(variance / fmax(n, 1));
    deviation = deviation > 0 ? deviation : width > 0 ? width : 1;
    double fourth = 0;
    pool->sum = pool->sum_squares = 0;
    for (uint32_t i = 0; i < pool->n_bins; i++) {
        double s = (pool->score[i] - mean) / deviation, c = (double)pool->counts[i];
        pool->score[i] = s;
        pool->sum += c * s;
        pool->sum_squares += c * s * s;
        fourth += c * s * s * s * s;
    }
    pool->n_scored = n;
    pool->within = width * width / 12 / (deviation * deviation);
    // Two-point distributions have kurtosis 1: keep away from a scale of 0.
    pool->log_variance_scale = fmax(0.1, fourth / fmax(n, 1) - 1);
}

static void make_pool(const struct weir_histogram *baseline, const struct weir_histogram *live,
                      struct pool *pool)
{
    memset(pool, 0, sizeof *pool);
    pool->n_bins = baseline->n_bins;
    pool->n_categories = baseline->n_bins + 1;
    pool->n_live = (double)(live->n + live->n_nan);
    pool->n_baseline = (double)(baseline->n + baseline->n_nan);
    double all = pool->n_live + pool->n_baseline;
    uint32_t n_occupied = 0;
    for (uint32_t i = 0; i < pool->n_categories; i++) {
        bool is_bin = i < pool->n_bins;
        pool->counts[i] =
            is_bin ? baseline->counts[i] + live->counts[i] : baseline->n_nan + live->n_nan;
        n_occupied += pool->counts[i] > 0;
        double share = (double)pool->counts[i] / all;
        pool->draw_work += pool->counts[i] == 0
                               ? 0
                               : STEPS_OF_A_BIN + 2 * sqrt(pool->n_live * share * (1 - share) *
                                                           pool->n_baseline / all);
    }
    pool->degrees = n_occupied > 0 ? n_occupied - 1.0 : 0;
    weir_histogram_centres(baseline, pool->score);
    double span =
        baseline->n_bins > 2
            ? (baseline->edges[baseline->n_bins - 2] - baseline->edges[0]) / (baseline->n_bins - 2)
            : 0;
    standardise(pool, span);
}

static double x_log_x(double x)
{
    return x > 0 ? x * log(x) : 0;
}

/** 2·Σ observed·ln(observed / expected) over both rows of the table. */
static double likelihood_ratio(const struct pool *pool, const uint64_t *live)
{
    double sum = 0, n = pool->n_live, m = pool->n_baseline;
    for (uint32_t i = 0; i < pool->n_categories; i++) {
        double both = (double)pool->counts[i], b = (double)live[i];
        sum += x_log_x(b) + x_log_x(both - b) - x_log_x(both);
    }
    return fmax(0, 2 * (sum - x_log_x(n) - x_log_x(m) + x_log_x(n + m)));
}

static struct statistics measure(const struct pool *pool, const uint64_t *live)
{
    struct statistics out = {0};
    double n = 0, sum = 0, squares = 0;
    for (uint32_t i = 0; i < pool->n_bins; i++) {
        double b = (double)live[i], s = pool->score[i];
        n += b;
        sum += b * s;
        squares += b * s * s;
    }
    double m = pool->n_scored - n;
    if (n >= 2 && m >= 2) {
        double live_mean = sum / n, base_mean = (pool->sum - sum) / m;
        double live_variance = squares / n - live_mean * live_mean;
        double base_variance = (pool->sum_squares - squares) / m - base_mean * base_mean;
        double evidence = 1 / n + 1 / m;
        // The pool's variance is 1: the variance of a difference of means is 1/n + 1/m.
        out.location = (live_mean - base_mean) / sqrt(evidence);
        out.spread = (log(fmax(0, live_variance) + pool->within) -
                      log(fmax(0, base_variance) + pool->within)) /
                     sqrt(pool->log_variance_scale * evidence);
    }
    out.likelihood_ratio = likelihood_ratio(pool, live);
    if (pool->degrees > 0) {
        // Wilson and Hilferty: the cube root of chi-square over its degrees is nearly normal.
        double v = 2 / (9 * pool->degrees);
        out.shape = (cbrt(out.likelihood_ratio / pool->degrees) - (1 - v)) / sqrt(v);
    }
    return out;
}

static double largest(const struct statistics *s)
{
    return fmax(fmax(fabs(s->location), fabs(s->spread)), s->shape);
}

/** The draws so far, none of which was as extreme as the window. */
struct draws {
    double n, sum, sum_squares, largest;
};

/* Is it beyond doubt that all further draws would be less extreme too? Taken for so where an
 * exponential tail, which is heavier than a normal one's, from the largest draw on and with the draws'
 * own deviation, leaves all of them a chance of 0.01. No proof: the deviation is estimated. */
static bool is_far_out(const struct draws *draws, double seen, uint64_t max_draws)
{
    double mean = draws->sum / draws->n;
    double deviation = sqrt(fmax(0, draws->sum_squares / draws->n - mean * mean));
    double tail = exp(-(seen - draws->largest) / fmax(deviation, 1e-3)) / draws->n;
    return tail < 0.01 / (double)max_draws;
}

/** Sequential Monte-Carlo p-value (Besag and Clifford, 1991), of the report's statistic. */
static void permute(const struct pool *pool, const struct weir_drift_config *config,
                    struct weir_drift_report *report)
{
    struct weir_rng rng;
    weir_rng_init(&rng, config->seed, report->i_window);
    uint64_t max_draws = (uint64_t)ceil(N_EXTREME_ENOUGH / config->false_alarm_rate);
    uint64_t counts[MAX_CATEGORIES], n_extreme = 0, n_draws = 0;
    struct draws draws = {.largest = -INFINITY};
    double seen = report->statistic;
    double tie = seen - 1e-9 * fmax(1, fabs(seen)); // equal tables must count as equal
    bool is_far = false;
    while (n_draws < max_draws && n_extreme < N_EXTREME_ENOUGH && !is_far && !report->is_cut) {
        permutation_draw(&rng, pool->counts, pool->n_categories, (uint64_t)pool->n_live, counts);
        struct statistics s = measure(pool, counts);
        double drawn = largest(&s);
        n_extreme += drawn >= tie;
        n_draws++;
        draws.n++;
        draws.sum += drawn;
        draws.sum_squares += drawn * drawn;
        draws.largest = fmax(draws.largest, drawn);
        report->work += pool->draw_work;
        report->is_cut = config->work_max > 0 && report->work >= config->work_max &&
                         n_draws < max_draws && n_extreme < N_EXTREME_ENOUGH;
        is_far = n_extreme == 0 &&
                 (n_draws == N_FIRST_DRAWS || (report->is_cut && n_draws >= N_LEAST_DRAWS)) &&
                 is_far_out(&draws, seen, max_draws);
    }
    report->is_cut = report->is_cut && !is_far;
    report->p_value = n_extreme == N_EXTREME_ENOUGH
                          ? N_EXTREME_ENOUGH / (double)n_draws
                          : (double)(n_extreme + 1) / (double)((is_far ? max_draws : n_draws) + 1);
}

/** Fill in the defaults. */
static weir_status complete(const struct weir_drift_config *config, struct weir_drift_config *out,
                            struct weir_error *err)
{
    *out = *config;
    out->false_alarm_rate = config->false_alarm_rate == 0 ? 0.001 : config->false_alarm_rate;
    out->min_effect = config->min_effect == 0 ? 0.1 : config->min_effect;
    out->window = config->window == 0 ? 200 : config->window;
    out->confirm_k = config->confirm_k == 0 ? 2 : config->confirm_k;
    out->confirm_n = config->confirm_n == 0 ? 3 : config->confirm_n;
    if (!(out->false_alarm_rate >= 1e-5 && out->false_alarm_rate <= 0.2)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "drift: false_alarm_rate is %g, expected 1e-5 to 0.2",
                              out->false_alarm_rate);
    }
    if (isnan(out->min_effect) || out->window < WEIR_DRIFT_MIN_VALUES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "drift: a window needs at least %d values",
                              WEIR_DRIFT_MIN_VALUES);
    }
    if (out->confirm_k > out->confirm_n || out->confirm_n > 32) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "drift: %u of %u windows is no rule; expected k <= n <= 32",
                              out->confirm_k, out->confirm_n);
    }
    return WEIR_OK;
}

static weir_status check_baseline(const struct weir_histogram *baseline, struct weir_error *err)
{
    if (baseline->n_bins < 2 || baseline->n_bins > WEIR_HISTOGRAM_MAX_BINS ||
        baseline->n < WEIR_DRIFT_MIN_VALUES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "drift: the baseline holds %llu values, at least %d are needed",
                              (unsigned long long)baseline->n, WEIR_DRIFT_MIN_VALUES);
    }
    return WEIR_OK;
}

/** The simplest name that explains most of what was seen. */
static enum weir_drift_kind kind_of(const struct statistics *s)
{
    double most = 0.8 * largest(s);
    if (fabs(s->location) >= most && fabs(s->location) >= fabs(s->spread)) {
        return WEIR_DRIFT_LOCATION;
    }
    return fabs(s->spread) >= most ? WEIR_DRIFT_SPREAD : WEIR_DRIFT_SHAPE;
}

/** The test with a complete configuration and checked histograms. */
static struct weir_drift_report test_window(const struct weir_histogram *baseline,
                                            const struct weir_histogram *live,
                                            const struct weir_drift_config *config,
                                            uint64_t i_window)
{
    struct pool pool;
    make_pool(baseline, live, &pool);
    uint64_t counts[MAX_CATEGORIES];
    memcpy(counts, live->counts, pool.n_bins * sizeof counts[0]);
    counts[pool.n_bins] = live->n_nan;
    struct statistics s = measure(&pool, counts);
    double evidence = pool.n_live * pool.n_baseline / (pool.n_live + pool.n_baseline);
    struct weir_drift_report report = {
        .i_window = i_window,
        .n_values = live->n + live->n_nan,
        .statistic = largest(&s),
        .effect = sqrt(fmax(0, s.likelihood_ratio - pool.degrees) / evidence),
        .baseline_mean = baseline->mean,
        .baseline_stddev = weir_histogram_stddev(baseline),
        .live_mean = live->mean,
        .live_stddev = weir_histogram_stddev(live),
        .p_value = 1,
    };
    if (pool.degrees > 0) {
        permute(&pool, config, &report);
    }
    report.is_drifted =
        report.p_value <= config->false_alarm_rate && report.effect >= config->min_effect;
    if (report.is_drifted) {
        report.kind = kind_of(&s);
    }
    return report;
}

weir_status weir_drift_test(const struct weir_histogram *baseline,
                            const struct weir_histogram *live,
                            const struct weir_drift_config *config, uint64_t i_window,
                            struct weir_drift_report *out, struct weir_error *err)
{
    struct weir_drift_config complete_config;
    WEIR_TRY(complete(config, &complete_config, err));
    WEIR_TRY(check_baseline(baseline, err));
    if (live->n_bins != baseline->n_bins ||
        memcmp(live->edges, baseline->edges, (live->n_bins - 1) * sizeof live->edges[0]) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "drift: live values are not counted with the baseline's bins");
    }
    if (live->n + live->n_nan < WEIR_DRIFT_MIN_VALUES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "drift: a window needs at least %d values",
                              WEIR_DRIFT_MIN_VALUES);
    }
    *out = test_window(baseline, live, &complete_config, i_window);
    return WEIR_OK;
}

weir_status weir_drift_init(struct weir_drift *drift, const struct weir_histogram *baseline,
                            const struct weir_drift_config *config, struct weir_error *err)
{
    struct weir_drift made = {0};
    WEIR_TRY(complete(config, &made.config, err));
    WEIR_TRY(check_baseline(baseline, err));
    made.baseline = *baseline;
    weir_histogram_init_like(&made.live, baseline);
    made.ended = made.live;
    *drift = made;
    return WEIR_OK;
}

bool weir_drift_add(struct weir_drift *drift, double value, struct weir_drift_report *out)
{
    weir_histogram_add(&drift->live, value);
    if (drift->live.n + drift->live.n_nan < drift->config.window) {
        return false;
    }
    *out = test_window(&drift->baseline, &drift->live, &drift->config, drift->n_windows);
    drift->n_windows++;
    drift->history = drift->history << 1 | out->is_drifted;
    uint32_t mask = UINT32_MAX >> (32 - drift->config.confirm_n);
    out->is_confirmed = out->is_drifted && (uint32_t)__builtin_popcount(drift->history & mask) >=
                                               drift->config.confirm_k;
    drift->ended = drift->live;
    weir_histogram_init_like(&drift->live, &drift->baseline);
    return true;
}

/** Sort indexes by their p-value (heap sort: no allocation, no state outside). */
static void sift_down(const double *p_values, size_t *order, size_t i, size_t n)
{
    for (size_t child = 2 * i + 1; child < n; i = child, child = 2 * i + 1) {
        if (child + 1 < n && p_values[order[child + 1]] > p_values[order[child]]) {
            child++;
        }
        if (p_values[order[child]] <= p_values[order[i]]) {
            return;
        }
        size_t kept = order[i];
        order[i] = order[child];
        order[child] = kept;
    }
}

size_t weir_drift_select(const double *p_values, size_t n, double q, size_t *order,
                         bool *out_rejected)
{
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
        out_rejected[i] = false;
    }
    for (size_t i = n / 2; i-- > 0;) {
        sift_down(p_values, order, i, n);
    }
    for (size_t left = n; left > 1; left--) {
        size_t kept = order[0];
        order[0] = order[left - 1];
        order[left - 1] = kept;
        sift_down(p_values, order, 0, left - 1);
    }
    size_t n_rejected = 0;
    for (size_t k = n; k > 0; k--) {
        if (p_values[order[k - 1]] <= q * (double)k / (double)n) {
            n_rejected = k;
            break;
        }
    }
    for (size_t k = 0; k < n_rejected; k++) {
        out_rejected[order[k]] = true;
    }
    return n_rejected;
}
