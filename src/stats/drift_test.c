/*
 * The two promises are measured: silence at the stated rate when nothing drifted, and the power
 * table of the specification (shift cases by window size). Other oracles: scipy's likelihood ratio,
 * and a p-value made by enumerating every table.
 */
#include "stats/drift.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "stats/distance.h"

#include <math.h>
#include <stdio.h>

typedef double (*draw_fn)(struct weir_rng *rng);

static double normal(struct weir_rng *rng)
{
    return weir_rng_normal(rng);
}

static double shifted(struct weir_rng *rng)
{
    return 0.5 + weir_rng_normal(rng);
}

static double narrow(struct weir_rng *rng)
{
    return 0.5 * weir_rng_normal(rng);
}

static double collapsed(struct weir_rng *rng)
{
    return 0.2 * weir_rng_normal(rng);
}

static double constant(struct weir_rng *rng)
{
    (void)rng;
    return 0.1;
}

static double wide(struct weir_rng *rng)
{
    return 2 * weir_rng_normal(rng);
}

static double bimodal(struct weir_rng *rng)
{
    return (weir_rng_f64(rng) < 0.5 ? 1.2 : -1.2) + 0.4 * weir_rng_normal(rng);
}

static double often_missing(struct weir_rng *rng)
{
    return weir_rng_f64(rng) < 0.25 ? NAN : weir_rng_normal(rng);
}

static double skewed(struct weir_rng *rng) // exponential: a heavy side
{
    return -log(1 - weir_rng_f64(rng));
}

static double scores(struct weir_rng *rng) // a mixture as face scores have, cut at 1
{
    double x = weir_rng_f64(rng) < 0.7 ? 0.8 + 0.1 * weir_rng_normal(rng)
                                       : 0.3 + 0.15 * weir_rng_normal(rng);
    return fmin(x, 1);
}

static double coin(struct weir_rng *rng)
{
    return weir_rng_f64(rng) < 0.1 ? 1 : 0;
}

static struct weir_histogram make_baseline(draw_fn draw, size_t n, struct weir_rng *rng)
{
    static double values[50000];
    for (size_t i = 0; i < n; i++) {
        values[i] = draw(rng);
    }
    struct weir_histogram hist;
    ck_assert_int_eq(weir_histogram_from_values(&hist, values, n), WEIR_OK);
    return hist;
}

static struct weir_histogram make_live(const struct weir_histogram *baseline, draw_fn draw,
                                       size_t n, struct weir_rng *rng)
{
    struct weir_histogram live;
    weir_histogram_init_like(&live, baseline);
    for (size_t i = 0; i < n; i++) {
        weir_histogram_add(&live, draw(rng));
    }
    return live;
}

/** Share of windows that differ; a new baseline for every window. */
static double measure_rate(draw_fn trained, draw_fn live_draw, size_t n_baseline, size_t n_live,
                           unsigned n_trials, const struct weir_drift_config *config, uint64_t seed)
{
    unsigned n_drifted = 0;
    for (unsigned i = 0; i < n_trials; i++) {
        struct weir_rng rng;
        weir_rng_init(&rng, seed, i);
        struct weir_histogram baseline = make_baseline(trained, n_baseline, &rng);
        struct weir_histogram live = make_live(&baseline, live_draw, n_live, &rng);
        struct weir_drift_report report;
        ck_assert_int_eq(weir_drift_test(&baseline, &live, config, i, &report, NULL), WEIR_OK);
        n_drifted += report.is_drifted;
    }
    return (double)n_drifted / n_trials;
}

START_TEST(same_distribution_stays_silent_at_the_stated_rate)
{
    static const struct {
        const char *name;
        draw_fn draw;
        size_t n_baseline, n_live;
    } cases[] = {
        {"normal", normal, 1000, 50},
        {"normal", normal, 300, 200},
        {"normal", normal, 60, 500},
        {"skewed", skewed, 500, 50},
        {"skewed", skewed, 200, 200},
        {"scores", scores, 400, 100},
        {"coin", coin, 300, 50},
        {"normal", normal, 20, 20},
        {"missing", often_missing, 300, 60},
    };
    // No floor of effect: the test alone has to keep the rate.
    struct weir_drift_config config = {.false_alarm_rate = 0.02, .min_effect = -1};

    enum { TRIALS = WEIR_TEST_TIMES(1200, 300) };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double rate = measure_rate(cases[i].draw, cases[i].draw, cases[i].n_baseline,
                                   cases[i].n_live, TRIALS, &config, 100 + i);
        printf("false alarms, seed %zu: %-8s m %4zu n %3zu: %.4f of 0.02\n", 100 + i, cases[i].name,
               cases[i].n_baseline, cases[i].n_live, rate);
        double deviation = sqrt(0.02 * 0.98 / TRIALS);
        ck_assert_double_le(rate, 0.02 + 4 * deviation);
    }
}

END_TEST

START_TEST(the_default_rate_of_one_in_a_thousand_holds)
{
    enum { TRIALS = WEIR_TEST_TIMES(5000, 1000) };

    double rate = measure_rate(normal, normal, 300, 50, TRIALS, &(struct weir_drift_config){0}, 42);
    printf("false alarms at default, seed 42: %.5f of 0.001\n", rate);
    ck_assert_double_le(rate, 0.001 + 4 * sqrt(0.001 / TRIALS));
}

END_TEST

START_TEST(every_shift_of_the_specification_is_found)
{
    static const struct {
        const char *name;
        draw_fn draw;
        size_t n_live;
        double power;
    } cases[] = {
        {"mean +0.5 s", shifted, 200, 0.95},  {"std x0.5", narrow, 50, 0.99},
        {"std x0.2", collapsed, 50, 0.99},    {"constant", constant, 50, 0.99},
        {"std x2", wide, 100, 0.99},          {"bimodal", bimodal, 100, 0.99},
        {"missing", often_missing, 50, 0.99},
    };

    enum { TRIALS = 30 };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double rate = measure_rate(normal, cases[i].draw, 5000, cases[i].n_live, TRIALS,
                                   &(struct weir_drift_config){0}, 200 + i);
        printf("found, seed %zu: %-12s n %3zu: %.3f\n", 200 + i, cases[i].name, cases[i].n_live,
               rate);
        // 30 trials cannot prove 0.99: allow two misses.
        ck_assert_double_ge(rate, cases[i].power - 0.09);
    }
}

END_TEST

START_TEST(collapse_that_similarity_calls_perfect_is_found)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 0);
    struct weir_histogram baseline = make_baseline(normal, 20000, &rng);
    struct weir_histogram live = make_live(&baseline, constant, 1000, &rng);
    ck_assert_double_eq(weir_distance_mcenter(&baseline, &live), 1.0);
    struct weir_drift_report report;
    ck_assert_int_eq(
        weir_drift_test(&baseline, &live, &(struct weir_drift_config){0}, 0, &report, NULL),
        WEIR_OK);
    ck_assert(report.is_drifted);
    ck_assert_str_eq(weir_drift_kind_name(report.kind), "spread");
}

END_TEST

START_TEST(the_kind_names_what_changed)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 2, 0);
    struct weir_histogram baseline = make_baseline(normal, 5000, &rng);

    static const struct {
        draw_fn draw;
        enum weir_drift_kind kind;
    } cases[] = {{shifted, WEIR_DRIFT_LOCATION},
                 {wide, WEIR_DRIFT_SPREAD},
                 {narrow, WEIR_DRIFT_SPREAD},
                 {often_missing, WEIR_DRIFT_SHAPE},
                 {normal, WEIR_DRIFT_NONE}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_histogram live = make_live(&baseline, cases[i].draw, 400, &rng);
        struct weir_drift_report report;
        ck_assert_int_eq(
            weir_drift_test(&baseline, &live, &(struct weir_drift_config){0}, i, &report, NULL),
            WEIR_OK);
        ck_assert_int_eq(report.kind, cases[i].kind);
    }
}

END_TEST

static struct weir_histogram with_counts(const uint64_t *counts, uint32_t n_bins)
{
    struct weir_histogram hist;
    ck_assert_int_eq(weir_histogram_init_linear(&hist, 0, n_bins - 2, n_bins), WEIR_OK);
    for (uint32_t i = 0; i < n_bins; i++) {
        hist.counts[i] = counts[i];
        hist.n += counts[i];
    }
    return hist;
}

START_TEST(the_effect_is_scipys_likelihood_ratio_without_its_bias)
{
    // scipy.stats.chi2_contingency(…, lambda_="log-likelihood"): G = 43.501536686994704, 8 degrees.
    struct weir_histogram p = with_counts((uint64_t[]){5, 12, 30, 80, 120, 90, 40, 13, 6}, 9);
    struct weir_histogram q = with_counts((uint64_t[]){1, 3, 10, 20, 25, 40, 30, 22, 0}, 9);
    struct weir_drift_report report;
    ck_assert_int_eq(weir_drift_test(&p, &q, &(struct weir_drift_config){0}, 0, &report, NULL),
                     WEIR_OK);
    ck_assert_double_eq_tol(report.effect, 0.5698770566118513, 1e-10);
}

END_TEST

static double log_factorial(unsigned n)
{
    return lgamma(n + 1.0);
}

static double statistic_of(const uint64_t *pooled, const uint64_t *live, double *out_p)
{
    struct weir_histogram a =
        with_counts((uint64_t[]){pooled[0] - live[0], pooled[1] - live[1], pooled[2] - live[2]}, 3);
    struct weir_histogram b = with_counts(live, 3);
    struct weir_drift_report report;
    struct weir_drift_config config = {.false_alarm_rate = 0.001};
    ck_assert_int_eq(weir_drift_test(&a, &b, &config, 5, &report, NULL), WEIR_OK);
    *out_p = report.p_value;
    return report.statistic;
}

START_TEST(the_p_value_is_the_share_of_all_tables_that_are_as_extreme)
{
    static const uint64_t pooled[] = {20, 30, 15}, seen[] = {9, 6, 10};

    enum { N_LIVE = 25 };

    double seen_p, exact = 0, total = 0;
    double seen_statistic = statistic_of(pooled, seen, &seen_p);
    for (uint64_t i = 0; i <= pooled[0]; i++) {
        for (uint64_t j = 0; j <= pooled[1] && i + j <= N_LIVE; j++) {
            uint64_t table[] = {i, j, N_LIVE - i - j};
            if (table[2] > pooled[2]) {
                continue;
            }
            double log_p = log_factorial(N_LIVE) + log_factorial(65 - N_LIVE) - log_factorial(65);
            for (int k = 0; k < 3; k++) {
                log_p += log_factorial((unsigned)pooled[k]) - log_factorial((unsigned)table[k]) -
                         log_factorial((unsigned)(pooled[k] - table[k]));
            }
            double p;
            total += exp(log_p);
            if (statistic_of(pooled, table, &p) >= seen_statistic - 1e-9) {
                exact += exp(log_p);
            }
        }
    }
    ck_assert_double_eq_tol(total, 1, 1e-9);
    printf("p %.4f by draws, %.4f by enumeration\n", seen_p, exact);
    ck_assert_double_le(fabs(log(seen_p / exact)), 1.2); // 10 extreme draws: deviation of ln p 0.32
}

END_TEST

START_TEST(a_trifle_in_a_huge_window_is_no_alarm)
{
    struct weir_histogram baseline, live;
    ck_assert_int_eq(weir_histogram_init_linear(&baseline, 0, 8, 10), WEIR_OK);
    weir_histogram_init_like(&live, &baseline);
    for (uint32_t i = 0; i < 10; i++) {
        baseline.counts[i] = 1000000;
        live.counts[i] = i < 5 ? 101000 : 99000; // one percent
        baseline.n += baseline.counts[i];
        live.n += live.counts[i];
    }
    struct weir_drift_report report;
    ck_assert_int_eq(weir_drift_test(&baseline, &live,
                                     &(struct weir_drift_config){.false_alarm_rate = 0.05}, 0,
                                     &report, NULL),
                     WEIR_OK);
    ck_assert_double_le(report.p_value, 0.05);
    ck_assert_double_eq_tol(report.effect, 0.01, 0.003);
    ck_assert(!report.is_drifted);
    ck_assert_int_eq(
        weir_drift_test(&baseline, &live,
                        &(struct weir_drift_config){.false_alarm_rate = 0.05, .min_effect = 0.005},
                        0, &report, NULL),
        WEIR_OK);
    ck_assert(report.is_drifted);
}

END_TEST

START_TEST(an_alarm_needs_k_of_the_last_n_windows)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 8, 0);
    struct weir_histogram baseline = make_baseline(normal, 2000, &rng);
    struct weir_drift drift;
    struct weir_drift_config config = {.window = 60, .confirm_k = 2, .confirm_n = 3};
    ck_assert_int_eq(weir_drift_init(&drift, &baseline, &config, NULL), WEIR_OK);
    // d = drifted window, . = usual one, * = drifted and confirmed
    const char *pattern = "..d..d.*..d*.*";
    for (uint64_t i = 0; pattern[i] != '\0'; i++) {
        struct weir_drift_report report = {0};
        for (int k = 0; k < 60; k++) {
            double value = pattern[i] == '.' ? normal(&rng) : collapsed(&rng);
            ck_assert_int_eq(weir_drift_add(&drift, value, &report), k == 59);
        }
        ck_assert_uint_eq(report.i_window, i);
        ck_assert_uint_eq(report.n_values, 60);
        ck_assert_msg(report.is_drifted == (pattern[i] != '.'), "window %llu",
                      (unsigned long long)i);
        ck_assert_msg(report.is_confirmed == (pattern[i] == '*'), "window %llu",
                      (unsigned long long)i);
    }
}

END_TEST

START_TEST(the_same_input_gives_the_same_report)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 12, 0);
    struct weir_histogram baseline = make_baseline(normal, 500, &rng);
    struct weir_histogram live = make_live(&baseline, normal, 100, &rng);
    struct weir_drift_report a, b;
    struct weir_drift_config config = {.seed = 3};
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    ck_assert_int_eq(weir_drift_test(&baseline, &live, &config, 1, &a, NULL), WEIR_OK);
    ck_assert_int_eq(weir_drift_test(&baseline, &live, &config, 1, &b, NULL), WEIR_OK);
    ck_assert_double_eq(a.p_value, b.p_value);
    ck_assert_double_eq(a.statistic, b.statistic);
}

END_TEST

START_TEST(a_constant_baseline_accepts_the_constant_and_notices_a_change)
{
    double values[100];
    for (int i = 0; i < 100; i++) {
        values[i] = 0.1;
    }
    struct weir_histogram baseline, live;
    struct weir_rng rng;
    weir_rng_init(&rng, 13, 0);
    ck_assert_int_eq(weir_histogram_from_values(&baseline, values, 100), WEIR_OK);
    live = make_live(&baseline, constant, 50, &rng);
    struct weir_drift_report report;
    struct weir_drift_config config = {0};
    ck_assert_int_eq(weir_drift_test(&baseline, &live, &config, 0, &report, NULL), WEIR_OK);
    ck_assert_double_eq(report.p_value, 1);
    live = make_live(&baseline, wide, 50, &rng);
    ck_assert_int_eq(weir_drift_test(&baseline, &live, &config, 0, &report, NULL), WEIR_OK);
    ck_assert(report.is_drifted);
}

END_TEST

START_TEST(unusable_questions_are_refused_with_a_sentence)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 14, 0);
    struct weir_histogram good = make_baseline(normal, 100, &rng), small, other = good;
    weir_histogram_init_like(&small, &good);
    other.edges[0] -= 1;
    struct weir_drift_report report;
    struct weir_drift drift;
    struct weir_error err = {0};
    struct weir_drift_config usual = {0};
    ck_assert_int_eq(weir_drift_test(&small, &good, &usual, 0, &report, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_drift_test(&good, &small, &usual, 0, &report, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_drift_test(&good, &other, &usual, 0, &report, &err), WEIR_ERR_INVALID);
    static const struct weir_drift_config bad[] = {{.false_alarm_rate = 0.5},
                                                   {.false_alarm_rate = NAN},
                                                   {.window = 5},
                                                   {.min_effect = NAN},
                                                   {.confirm_k = 4, .confirm_n = 3},
                                                   {.confirm_k = 4, .confirm_n = 40}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err.message[0] = '\0';
        ck_assert_int_eq(weir_drift_init(&drift, &good, &bad[i], &err), WEIR_ERR_INVALID);
        ck_assert_uint_gt(strlen(err.message), 10);
    }
}

END_TEST

START_TEST(benjamini_hochberg_selects_as_in_the_1995_paper)
{
    // Benjamini and Hochberg (1995), section 3.2: 15 p-values, four are selected at q = 0.05.
    static const double paper[] = {0.0459, 0.0001, 0.3240, 0.0004, 0.0201, 0.0019, 0.0095, 1.000,
                                   0.0278, 0.0298, 0.0344, 0.4262, 0.5719, 0.6528, 0.7590};
    size_t order[15];
    bool selected[15];
    ck_assert_uint_eq(weir_drift_select(paper, 15, 0.05, order, selected), 4);
    for (size_t i = 0; i < 15; i++) {
        ck_assert_int_eq(selected[i], paper[i] <= 0.0095);
    }
    ck_assert_uint_eq(weir_drift_select(paper, 0, 0.05, order, selected), 0);
}

END_TEST

WEIR_TEST_MAIN("drift", same_distribution_stays_silent_at_the_stated_rate,
               the_default_rate_of_one_in_a_thousand_holds,
               every_shift_of_the_specification_is_found,
               collapse_that_similarity_calls_perfect_is_found, the_kind_names_what_changed,
               the_effect_is_scipys_likelihood_ratio_without_its_bias,
               the_p_value_is_the_share_of_all_tables_that_are_as_extreme,
               a_trifle_in_a_huge_window_is_no_alarm, an_alarm_needs_k_of_the_last_n_windows,
               the_same_input_gives_the_same_report,
               a_constant_baseline_accepts_the_constant_and_notices_a_change,
               unusable_questions_are_refused_with_a_sentence,
               benjamini_hochberg_selects_as_in_the_1995_paper)
