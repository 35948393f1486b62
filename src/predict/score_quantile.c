#include "predict/score_quantile.h"

#include "base/macros.h"
#include "base/rng.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

#define ENOUGH_PEOPLE  10
#define TAIL_FRACTION  0.05
#define TAIL_MIN_COUNT 10
#define SKEW_PEOPLE    10 /* what is believed of the skewness counts like so many people */

#define BOOTSTRAP_DRAWS 200
#define BOOTSTRAP_SEED  1
#define INTERVAL_TAIL   0.05

double score_normal_quantile(double p)
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

/** What all scores say, where they are of too few people for a tail. */
struct moments {
    double mean, deviation, skew, n_people;
};

static int by_score(const void *a, const void *b)
{
    double x = ((const struct impostor *)a)->score, y = ((const struct impostor *)b)->score;
    return (x > y) - (x < y);
}

static int by_person(const void *a, const void *b)
{
    int32_t x = ((const struct impostor *)a)->person, y = ((const struct impostor *)b)->person;
    return (x > y) - (x < y);
}

size_t score_count_people(struct impostor *scores, size_t n)
{
    size_t n_people = 0;
    if (n > 0) {
        qsort(scores, n, sizeof *scores, by_person);
    }
    for (size_t i = 0; i < n; i++) {
        n_people += i == 0 || scores[i].person != scores[i - 1].person;
    }
    return n_people;
}

/* Reorders. One score says nothing about spread: 0.1 is what cosines of impostors usually have. */
static struct moments fit_moments(struct impostor *scores, size_t n)
{
    struct moments fit = {.n_people = (double)score_count_people(scores, n), .deviation = 0.1};
    double squares = 0, cubes = 0;
    for (size_t i = 0; i < n; i++) {
        fit.mean += scores[i].score / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double away = scores[i].score - fit.mean;
        squares += away * away;
        cubes += away * away * away;
    }
    if (n > 1) {
        fit.deviation = sqrt(squares / (double)(n - 1));
    }
    double skew = squares > 0 ? cubes / (double)n / pow(squares / (double)n, 1.5) : 0;
    skew = fmin(fmax(skew, -1), 2); /* further the first term does not reach */
    fit.skew = (fit.n_people * skew + SKEW_PEOPLE * SKEW_OF_MAXIMA) / (fit.n_people + SKEW_PEOPLE);
    return fit;
}

/* In deviations from the mean. It grows with z above -1 for the skewness that is left. */
static double skewed_quantile(double skew, double p)
{
    double z = fmax(score_normal_quantile(p), -1);
    return z + (z * z - 1) * skew / 6;
}

static double moments_spread(const struct moments *fit)
{
    return fit->deviation * sqrt(1 + 1 / fit->n_people);
}

static double moments_quantile(const struct moments *fit, double rate)
{
    return fit->mean + moments_spread(fit) * skewed_quantile(fit->skew, 1 - rate);
}

/* The rate whose quantile it is, by bisection. */
static double moments_rate(const struct moments *fit, double threshold)
{
    double low = 1e-12, high = 1 - 1e-12;
    for (int i = 0; i < 80; i++) {
        double middle = sqrt(low * high);
        if (moments_quantile(fit, middle) > threshold) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

/* Of sorted scores, between the two nearest. */
static double quantile_of(const struct impostor *sorted, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t i = (size_t)at;
    double next = sorted[WEIR_MIN(i + 1, n - 1)].score;
    return sorted[i].score + (at - (double)i) * (next - sorted[i].score);
}

/** The largest scores, down to the first of the ENOUGH_PEOPLE-th person: n of them, from `score`
 *  on; 0 and -infinity if there are fewer people. */
struct top {
    size_t n;
    double score;
};

static struct top find_top(const struct impostor *sorted, size_t n)
{
    int32_t seen[ENOUGH_PEOPLE];
    size_t n_seen = 0;
    for (size_t i = n; i-- > 0;) {
        size_t k = 0;
        while (k < n_seen && seen[k] != sorted[i].person) {
            k++;
        }
        if (k == n_seen) {
            seen[n_seen++] = sorted[i].person;
        }
        if (n_seen == ENOUGH_PEOPLE) {
            return (struct top){n - i, sorted[i].score};
        }
    }
    return (struct top){0, -INFINITY};
}

/** Of the largest scores: what lies above `base`, this share of all, by `mean` on average, and of
 *  how many people. */
struct tail {
    double base, mean, share, n_people;
};

static size_t tail_count(size_t n)
{
    size_t n_tail = (size_t)((double)n * TAIL_FRACTION);
    return WEIR_MIN(WEIR_MAX(n_tail, (size_t)TAIL_MIN_COUNT), n - 1);
}

/* Reorders what lies above the base. */
static struct tail fit_tail(struct impostor *sorted, size_t n)
{
    size_t n_tail = tail_count(n);
    struct tail tail = {.base = sorted[n - 1 - n_tail].score, .share = (double)n_tail / (double)n};
    for (size_t i = n - n_tail; i < n; i++) {
        tail.mean += (sorted[i].score - tail.base) / (double)n_tail;
    }
    tail.n_people = (double)score_count_people(sorted + n - n_tail, n_tail);
    return tail;
}

static double tail_quantile(const struct tail *tail, double rate)
{
    double m = tail->n_people;
    return tail->base + m * tail->mean * (pow(tail->share / rate, 1 / m) - 1);
}

static double tail_rate(const struct tail *tail, double threshold)
{
    double m = tail->n_people, excess = fmax(threshold - tail->base, 0);
    return tail->mean > 0 ? tail->share * pow(1 + excess / (m * tail->mean), -m) : 0;
}

double score_quantile(struct impostor *scores, size_t n, double rate)
{
    if (n == 0) {
        return NAN;
    }
    struct moments fit = fit_moments(scores, n);
    if (n < SCORES_FEW) {
        return moments_quantile(&fit, rate);
    }
    qsort(scores, n, sizeof *scores, by_score);
    struct top top = find_top(scores, n);
    if (top.n > 0 && (double)n * rate >= (double)top.n) {
        return quantile_of(scores, n, 1 - rate);
    }
    if (top.n == 0 || tail_count(n) < top.n) {
        return fmax(moments_quantile(&fit, rate), top.score);
    }
    struct tail tail = fit_tail(scores, n);
    return fmax(tail_quantile(&tail, rate), top.score);
}

double score_rate(struct impostor *scores, size_t n, double threshold)
{
    if (n == 0) {
        return NAN;
    }
    struct moments fit = fit_moments(scores, n);
    if (n < SCORES_FEW) {
        return moments_rate(&fit, threshold);
    }
    qsort(scores, n, sizeof *scores, by_score);
    struct top top = find_top(scores, n);
    size_t n_above = 0;
    while (n_above < n && scores[n - 1 - n_above].score >= threshold) {
        n_above++;
    }
    if (top.n > 0 && n_above >= top.n) {
        return (double)n_above / (double)n;
    }
    if (top.n == 0 || tail_count(n) < top.n) {
        return moments_rate(&fit, threshold);
    }
    struct tail tail = fit_tail(scores, n);
    return tail_rate(&tail, threshold);
}

void score_interval(struct impostor *scores, size_t n, double rate, struct impostor *drawn,
                    double *out_low, double *out_high)
{
    double found[BOOTSTRAP_DRAWS];
    struct weir_rng rng;
    weir_rng_init(&rng, BOOTSTRAP_SEED, n);
    size_t n_people = score_count_people(scores, n); /* now in the order of people */
    for (size_t draw = 0; draw < BOOTSTRAP_DRAWS; draw++) {
        size_t n_drawn = 0;
        for (size_t k = 0; k < n_people; k++) {
            size_t at = (size_t)weir_rng_below(&rng, n);
            int32_t person = scores[at].person;
            while (at > 0 && scores[at - 1].person == person) {
                at--;
            }
            for (; at < n && scores[at].person == person && n_drawn < 2 * n; at++) {
                drawn[n_drawn++] = (struct impostor){scores[at].score, (int32_t)k};
            }
        }
        found[draw] = score_quantile(drawn, n_drawn, rate);
    }
    *out_low = weir_quantile(found, BOOTSTRAP_DRAWS, INTERVAL_TAIL);
    *out_high = weir_quantile(found, BOOTSTRAP_DRAWS, 1 - INTERVAL_TAIL);
}
