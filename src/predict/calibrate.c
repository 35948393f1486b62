#include "predict/calibrate.h"

#include "stats/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define FEW_SCORES     20
#define ENOUGH_ABOVE   10
#define TAIL_FRACTION  0.05
#define TAIL_MIN_COUNT 10
/* Fewer would ask for scores that nobody has. Of seven to thirty strangers, real (ORL) and drawn, 8
 * gave 0.8 to 1.3 % where 1 % was asked; 3 gave 0.4 to 1.2 % and knew up to a fifth fewer people.
 */
#define TAIL_MIN_PEOPLE 8

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

const char *calibration_rule_text(enum calibration_rule rule)
{
    static const char *const texts[] = {"blind", "gallery", "strangers", "both"};
    return texts[rule];
}

/* ---- what strangers get ---------------------------------------------------------------------- */

/* One score says nothing about spread: 0.1 is what cosines of strangers usually have. */
static void fit_normal(const struct impostor *scores, size_t n, double *out_mean, double *out_sd)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += scores[i].score;
    }
    for (size_t i = 0; i < n; i++) {
        squares += (scores[i].score - sum / (double)n) * (scores[i].score - sum / (double)n);
    }
    *out_mean = sum / (double)n;
    *out_sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0.1;
}

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

/* Reorders. */
static size_t count_people(struct impostor *scores, size_t n)
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

/* Of sorted scores, between the two nearest. */
static double quantile_of(const struct impostor *sorted, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t i = (size_t)at;
    double next = sorted[WEIR_MIN(i + 1, n - 1)].score;
    return sorted[i].score + (at - (double)i) * (next - sorted[i].score);
}

/** What lies above `base`: this share of all, by `mean` on average, of so many people. */
struct tail {
    double base, mean, share, n_people;
};

/* Reorders what lies above the base. */
static struct tail fit_tail(struct impostor *sorted, size_t n)
{
    size_t n_tail = (size_t)((double)n * TAIL_FRACTION);
    n_tail = WEIR_MIN(WEIR_MAX(n_tail, (size_t)TAIL_MIN_COUNT), n - 1);
    struct tail tail = {.base = sorted[n - 1 - n_tail].score, .share = (double)n_tail / (double)n};
    for (size_t i = n - n_tail; i < n; i++) {
        tail.mean += (sorted[i].score - tail.base) / (double)n_tail;
    }
    tail.n_people = fmax((double)count_people(sorted + n - n_tail, n_tail), TAIL_MIN_PEOPLE);
    return tail;
}

double calibrate_quantile(struct impostor *scores, size_t n, double rate)
{
    if (n == 0) {
        return NAN;
    }
    if (n < FEW_SCORES) {
        double mean, deviation;
        fit_normal(scores, n, &mean, &deviation);
        return mean + normal_quantile(1 - rate) * deviation;
    }
    qsort(scores, n, sizeof *scores, by_score);
    double plain = quantile_of(scores, n, 1 - rate);
    size_t n_above = (size_t)((double)n * rate);
    if (count_people(scores + n - n_above, n_above) >= ENOUGH_ABOVE) {
        return plain;
    }
    qsort(scores, n, sizeof *scores, by_score);
    struct tail tail = fit_tail(scores, n);
    double m = tail.n_people;
    return rate >= tail.share ? plain
                              : tail.base + m * tail.mean * (pow(tail.share / rate, 1 / m) - 1);
}

double calibrate_rate(struct impostor *scores, size_t n, double threshold)
{
    if (n == 0) {
        return NAN;
    }
    if (n < FEW_SCORES) {
        double mean, deviation;
        fit_normal(scores, n, &mean, &deviation);
        return deviation > 0 ? 0.5 * erfc((threshold - mean) / deviation / sqrt(2))
                             : (double)(mean >= threshold);
    }
    qsort(scores, n, sizeof *scores, by_score);
    size_t n_above = 0;
    while (n_above < n && scores[n - 1 - n_above].score >= threshold) {
        n_above++;
    }
    if (count_people(scores + n - n_above, n_above) >= ENOUGH_ABOVE) {
        return (double)n_above / (double)n;
    }
    qsort(scores, n, sizeof *scores, by_score);
    struct tail tail = fit_tail(scores, n);
    double m = tail.n_people, excess = threshold - tail.base;
    if (excess <= 0 || tail.mean <= 0) {
        return (double)n_above / (double)n;
    }
    return tail.share * pow(1 + excess / (m * tail.mean), -m);
}

/* ---- the threshold --------------------------------------------------------------------------- */

/* Strangers score higher than trained people against each other: see the header. */
static double guard_of(const struct calibration *found, double rate)
{
    double share = GUARD_SHARE + GUARD_PER_SIGMA * normal_quantile(1 - rate);
    share = fmin(fmax(share, 0), 1);
    return found->impostor_mean + share * (found->genuine_mean - found->impostor_mean);
}

/* What the gallery gives by itself; `quantile` is that of its impostor scores. */
static double gallery_threshold(const struct calibration *found, double quantile, double rate)
{
    if (found->n_impostor == 0) {
        return found->n_genuine > 0 ? fmax(THRESHOLD_BLIND, found->genuine_mean / 2)
                                    : THRESHOLD_BLIND;
    }
    if (found->n_genuine == 0) {
        return quantile;
    }
    double guard = guard_of(found, rate);
    return fmax(fmin(quantile, fmax(found->genuine_low, guard)), guard);
}

static double clamped(double threshold)
{
    return fmin(fmax(threshold, THRESHOLD_FLOOR), THRESHOLD_CEILING);
}

/** Room for all scores of a calibration. */
struct scores {
    double *genuine;
    struct impostor *impostors, *strangers;
};

static void compare_gallery(const struct templates *templates, const struct scores *scores,
                            struct calibration *found)
{
    size_t n_probes = WEIR_MIN(templates->n, (size_t)CALIBRATE_PROBES_MAX);
    double sum = 0;
    for (size_t k = 0; k < n_probes; k++) {
        size_t i = k * templates->n / n_probes;
        const float *probe = templates->vectors + i * templates->dim;
        struct match other = match_best_other(templates, probe, templates->persons[i]);
        struct match same = match_best_same(templates, probe, templates->persons[i], i);
        if (other.person >= 0) {
            sum += other.score;
            scores->impostors[found->n_impostor++] =
                (struct impostor){other.score, templates->persons[i]};
        }
        if (same.person >= 0) {
            scores->genuine[found->n_genuine++] = same.score;
        }
    }
    if (found->n_impostor > 0) {
        found->impostor_mean = sum / (double)found->n_impostor;
    }
    if (found->n_genuine > 0) {
        found->genuine_mean = mean_of(scores->genuine, found->n_genuine);
        found->genuine_low = weir_quantile(scores->genuine, found->n_genuine, GENUINE_REFUSED_MAX);
    }
}

static void compare_strangers(const struct templates *templates, const struct templates *strangers,
                              const struct scores *scores, struct calibration *found)
{
    size_t n_probes = templates->n > 0 ? WEIR_MIN(strangers->n, (size_t)CALIBRATE_PROBES_MAX) : 0;
    for (size_t k = 0; k < n_probes; k++) {
        size_t i = k * strangers->n / n_probes;
        struct match best = match_best(templates, strangers->vectors + i * strangers->dim);
        scores->strangers[k] = (struct impostor){best.score, strangers->persons[i]};
    }
    found->n_strangers = n_probes;
    found->n_stranger_people = count_people(scores->strangers, n_probes);
}

static void set_threshold(const struct scores *scores, double rate, struct calibration *found)
{
    double quantile = calibrate_quantile(scores->impostors, found->n_impostor, rate);
    double by_gallery = gallery_threshold(found, quantile, rate);
    if (found->n_strangers > 0) {
        found->quantile = calibrate_quantile(scores->strangers, found->n_strangers, rate);
        bool is_few = found->n_strangers < FEW_SCORES;
        found->rule = is_few ? CALIBRATION_BOTH : CALIBRATION_STRANGERS;
        found->threshold = clamped(is_few ? fmax(found->quantile, by_gallery) : found->quantile);
        found->expected_rate =
            calibrate_rate(scores->strangers, found->n_strangers, found->threshold);
    } else {
        found->quantile = quantile;
        found->rule = found->n_impostor > 0 ? CALIBRATION_GALLERY : CALIBRATION_BLIND;
        found->threshold = clamped(by_gallery);
    }
    size_t n_refused = 0;
    for (size_t i = 0; i < found->n_genuine; i++) {
        n_refused += scores->genuine[i] < found->threshold;
    }
    if (found->n_genuine > 0) {
        found->refused_share = (double)n_refused / (double)found->n_genuine;
    }
}

weir_status calibrate(const struct templates *templates, const struct templates *strangers,
                      double rate, struct calibration *out, struct weir_error *err)
{
    if (!(rate > 0 && rate < 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "false_accept_rate: expected a number between 0 and 1");
    }
    struct scores scores;
    scores.genuine = malloc(CALIBRATE_PROBES_MAX * sizeof *scores.genuine);
    scores.impostors = malloc((size_t)2 * CALIBRATE_PROBES_MAX * sizeof *scores.impostors);
    scores.strangers = scores.impostors != NULL ? scores.impostors + CALIBRATE_PROBES_MAX : NULL;
    weir_status status = WEIR_OK;
    if (scores.genuine == NULL || scores.impostors == NULL) {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory to calibrate the threshold");
    } else {
        struct calibration found = {.quantile = NAN,
                                    .genuine_mean = NAN,
                                    .impostor_mean = NAN,
                                    .genuine_low = NAN,
                                    .refused_share = NAN,
                                    .expected_rate = NAN};
        compare_gallery(templates, &scores, &found);
        compare_strangers(templates, strangers, &scores, &found);
        set_threshold(&scores, rate, &found);
        *out = found;
    }
    free(scores.genuine);
    free(scores.impostors);
    return status;
}
