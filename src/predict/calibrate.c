#include "predict/calibrate.h"

#include "base/macros.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

/* Cosines against single people, counted in steps of 1/2048. */
#define PAIR_BINS 4096

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
    static const char *const texts[] = {"blind", "gallery", "impostors", "both"};
    return texts[rule];
}

/* ---- the threshold --------------------------------------------------------------------------- */

/* Impostors score higher than trained people against each other: see the header. */
static double guard_of(const struct calibration *found, double rate)
{
    double share = GUARD_SHARE + GUARD_PER_SIGMA * score_normal_quantile(1 - rate);
    share = fmin(fmax(share, 0), 1);
    return found->between_mean + share * (found->genuine_mean - found->between_mean);
}

/* What the gallery gives by itself; `quantile` is that of its impostor scores. */
static double gallery_threshold(const struct calibration *found, double quantile, double rate)
{
    if (found->n_between == 0) {
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

/** Scores of photos against single people, by value. */
struct pairs {
    size_t counts[PAIR_BINS], n;
};

/** Room for all scores of a calibration. */
struct scores {
    double *genuine;
    struct impostor *others, *impostors, *drawn;
    struct pairs pairs;
    float *by_person; /**< Of one photo. */
    size_t n_persons;
};

static void count_pair(struct pairs *pairs, double score)
{
    double bin = (score + 1) / 2 * PAIR_BINS;
    pairs->counts[(size_t)fmin(fmax(bin, 0), PAIR_BINS - 1)]++;
    pairs->n++;
}

/* The lowest score (rounded up to a bin) that at most this share of the pairs reaches. */
static double pairs_quantile(const struct pairs *pairs, double rate)
{
    size_t above = 0, bin = PAIR_BINS;
    double most = rate * (double)pairs->n;
    while (bin > 0 && (double)(above + pairs->counts[bin - 1]) <= most) {
        above += pairs->counts[--bin];
    }
    return 2 * (double)bin / PAIR_BINS - 1;
}

/* Count a photo's scores against everybody but `own`. @return The best of these. */
static struct match compare_with_all(const struct templates *templates, const float *probe,
                                     int32_t own, struct scores *scores)
{
    struct match best = {.person = -1, .score = NAN};
    match_each(templates, probe, scores->n_persons, scores->by_person);
    for (size_t p = 0; p < scores->n_persons; p++) {
        double score = scores->by_person[p];
        if ((int32_t)p == own || !isfinite(score)) {
            continue;
        }
        count_pair(&scores->pairs, score);
        if (best.person < 0 || score > best.score) {
            best = (struct match){.person = (int32_t)p, .score = score};
        }
    }
    return best;
}

static void compare_gallery(const struct templates *templates, struct scores *scores,
                            struct calibration *found)
{
    size_t n_probes = WEIR_MIN(templates->n, (size_t)CALIBRATE_PROBES_MAX);
    double sum = 0;
    for (size_t k = 0; k < n_probes; k++) {
        size_t i = k * templates->n / n_probes;
        const float *probe = templates->vectors + i * templates->dim;
        struct match other = compare_with_all(templates, probe, templates->persons[i], scores);
        struct match same = match_best_same(templates, probe, templates->persons[i], i);
        if (other.person >= 0) {
            sum += other.score;
            scores->others[found->n_between++] =
                (struct impostor){other.score, templates->persons[i]};
        }
        if (same.person >= 0) {
            scores->genuine[found->n_genuine++] = same.score;
        }
    }
    if (found->n_between > 0) {
        found->between_mean = sum / (double)found->n_between;
    }
    if (found->n_genuine > 0) {
        found->genuine_mean = mean_of(scores->genuine, found->n_genuine);
        found->genuine_low = weir_quantile(scores->genuine, found->n_genuine, GENUINE_REFUSED_MAX);
    }
}

static void compare_impostors(const struct templates *templates, const struct templates *impostors,
                              struct scores *scores, struct calibration *found)
{
    size_t n_probes = templates->n > 0 ? WEIR_MIN(impostors->n, (size_t)CALIBRATE_PROBES_MAX) : 0;
    if (n_probes > 0) {
        scores->pairs = (struct pairs){.n = 0}; /* what the gallery's own people get is no matter */
    }
    for (size_t k = 0; k < n_probes; k++) {
        size_t i = k * impostors->n / n_probes;
        const float *probe = impostors->vectors + i * impostors->dim;
        struct match best = compare_with_all(templates, probe, -1, scores);
        scores->impostors[k] = (struct impostor){best.score, impostors->persons[i]};
    }
    found->n_impostors = n_probes;
    found->n_impostor_people = score_count_people(scores->impostors, n_probes);
}

/* Of the deny list: by what single people of the gallery are taken for. */
static void set_deny_threshold(const struct scores *scores, double rate, struct calibration *found)
{
    found->deny_threshold = found->threshold;
    if (scores->pairs.n == 0) {
        return;
    }
    double quantile = pairs_quantile(&scores->pairs, rate);
    if (found->n_impostors == 0) {
        quantile = (quantile + found->threshold) / 2;
    }
    found->deny_threshold = fmin(clamped(quantile), found->threshold);
}

static void set_refused_share(const struct scores *scores, struct calibration *found)
{
    size_t n_refused = 0;
    for (size_t i = 0; i < found->n_genuine; i++) {
        n_refused += scores->genuine[i] < found->threshold;
    }
    if (found->n_genuine > 0) {
        found->refused_share = (double)n_refused / (double)found->n_genuine;
    }
}

static void set_threshold(const struct scores *scores, double rate, struct calibration *found)
{
    double quantile = score_quantile(scores->others, found->n_between, rate);
    double by_gallery = gallery_threshold(found, quantile, rate);
    size_t n = found->n_impostors;
    if (n == 0) {
        found->quantile = quantile;
        found->rule = found->n_between > 0 ? CALIBRATION_GALLERY : CALIBRATION_BLIND;
        found->threshold = clamped(by_gallery);
        return;
    }
    double least = n < SCORES_FEW ? by_gallery : THRESHOLD_FLOOR, low, high;
    found->quantile = score_quantile(scores->impostors, n, rate);
    found->rule = n < SCORES_FEW ? CALIBRATION_BOTH : CALIBRATION_IMPOSTORS;
    found->threshold = clamped(fmax(found->quantile, least));
    found->expected_rate = score_rate(scores->impostors, n, found->threshold);
    score_interval(scores->impostors, n, rate, scores->drawn, &low, &high);
    found->threshold_low = clamped(fmax(low, least));
    found->threshold_high = clamped(fmax(high, least));
}

static weir_status check_rate(const char *name, double rate, struct weir_error *err)
{
    return rate > 0 && rate < 1 ? WEIR_OK
                                : weir_error_set(err, WEIR_ERR_INVALID,
                                                 "%s: expected a number between 0 and 1", name);
}

static size_t count_persons(const struct templates *templates)
{
    int32_t last = -1;
    for (size_t i = 0; i < templates->n; i++) {
        last = WEIR_MAX(last, templates->persons[i]);
    }
    return (size_t)(last + 1);
}

/* NULL if memory is out. */
static struct scores *scores_create(size_t n_persons)
{
    struct scores *scores = calloc(1, sizeof *scores);
    if (scores == NULL) {
        return NULL;
    }
    scores->n_persons = n_persons;
    scores->by_person = malloc((n_persons + 1) * sizeof *scores->by_person);
    scores->genuine = malloc(CALIBRATE_PROBES_MAX * sizeof *scores->genuine);
    scores->others = malloc((size_t)4 * CALIBRATE_PROBES_MAX * sizeof *scores->others);
    if (scores->others != NULL) {
        scores->impostors = scores->others + CALIBRATE_PROBES_MAX;
        scores->drawn = scores->impostors + CALIBRATE_PROBES_MAX;
    }
    return scores;
}

static void scores_destroy(struct scores *scores)
{
    if (scores != NULL) {
        free(scores->by_person);
        free(scores->genuine);
        free(scores->others);
    }
    free(scores);
}

weir_status calibrate(const struct templates *templates, const struct templates *impostors,
                      const struct calibration_rates *rates, struct calibration *out,
                      struct weir_error *err)
{
    WEIR_TRY(check_rate("false_accept_rate", rates->accept, err));
    WEIR_TRY(check_rate("false_deny_rate", rates->deny, err));
    struct scores *scores = scores_create(count_persons(templates));
    if (scores == NULL || scores->by_person == NULL || scores->genuine == NULL ||
        scores->others == NULL) {
        scores_destroy(scores);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to calibrate the threshold");
    }
    struct calibration found = {.quantile = NAN,
                                .threshold_low = NAN,
                                .threshold_high = NAN,
                                .genuine_mean = NAN,
                                .between_mean = NAN,
                                .genuine_low = NAN,
                                .refused_share = NAN,
                                .expected_rate = NAN};
    compare_gallery(templates, scores, &found);
    compare_impostors(templates, impostors, scores, &found);
    set_threshold(scores, rates->accept, &found);
    set_deny_threshold(scores, rates->deny, &found);
    set_refused_share(scores, &found);
    scores_destroy(scores);
    *out = found;
    return WEIR_OK;
}
