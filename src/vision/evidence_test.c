/* Strangers are admitted as seldom as is said, known people are decided, and a plain count agrees. */
#include "vision/evidence.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

#define SEED       46
#define ALIKE      0.8 /* Of scores 100 ms apart: their correlation. */
#define PASSAGE_MS 4000

/* Scores of one passage, in deviations of strangers' scores; the same person's lie `apart` higher. */
struct scores {
    struct weir_rng *rng;
    double kept, now;
};

static double next_score(struct scores *scores)
{
    scores->now = scores->kept * scores->now +
                  sqrt(1 - scores->kept * scores->kept) * weir_rng_normal(scores->rng);
    return scores->now;
}

/* One passage. @return When the person was decided, in ms; -1: not. */
static int64_t pass(struct weir_rng *rng, double fps, double apart, bool is_stranger)
{
    struct scores scores = {rng, pow(ALIKE, 10 / fps), weir_rng_normal(rng)};
    struct weir_evidence evidence;
    weir_evidence_init(&evidence);
    for (double t = 0; t < PASSAGE_MS; t += 1000 / fps) {
        double x = next_score(&scores) + (is_stranger ? 0 : apart);
        struct weir_look_at look = {.time_ms = (int64_t)t,
                                    .person = 7,
                                    .score = (float)x,
                                    .threshold = (float)apart / 2,
                                    .likelihood = (float)(apart * (x - apart / 2))};
        if (weir_evidence_add(&evidence, &weir_evidence_usual, &look)) {
            ck_assert_int_eq(evidence.person, 7);
            return (int64_t)t;
        }
    }
    return -1;
}

START_TEST(strangers_are_admitted_less_often_than_is_borne)
{
    const int n = WEIR_TEST_TIMES(20000, 1000);
    const double rates[] = {5, 10, 25};
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 1);
    int n_admitted = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rates); i++) {
        for (int k = 0; k < n; k++) {
            n_admitted += pass(&rng, rates[i], 3.5, true) >= 0;
        }
    }
    printf("seed %d: %d of %d strangers admitted; borne: %g\n", SEED, n_admitted, 3 * n,
           3 * n * (double)weir_evidence_usual.accept);
    ck_assert_int_le(n_admitted, WEIR_MAX(1, (int)(3 * n * weir_evidence_usual.accept)));
}

END_TEST

START_TEST(known_people_are_decided_as_soon_at_any_frame_rate)
{
    const int n = WEIR_TEST_TIMES(3000, 300);
    const double rates[] = {5, 10, 25};
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 2);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rates); i++) {
        int n_known = 0;
        double sum_ms = 0;
        for (int k = 0; k < n; k++) {
            int64_t ms = pass(&rng, rates[i], 3.5, false);
            n_known += ms >= 0;
            sum_ms += ms >= 0 ? (double)ms : 0;
        }
        printf("seed %d, %g frames/s: %d of %d known, after %.0f ms\n", SEED, rates[i], n_known, n,
               sum_ms / n_known);
        ck_assert_int_ge(n_known, n * 98 / 100);
        ck_assert(sum_ms / n_known > 1100 && sum_ms / n_known < 1500);
    }
}

END_TEST

/* ---- a plain count: all looks are kept, and all is counted again at each ---- */

#define N_PEOPLE 4
#define N_LOOKS  40

struct plain {
    enum weir_evidence_state state;
    int person, n_named;
    double sum;
    bool is_close; /* To a bound: numbers of less precision may decide otherwise. */
};

static double bounded(double value, double low, double high)
{
    return fmin(fmax(value, low), high);
}

static double plain_likelihood(const struct weir_look_at *look)
{
    if (look->person < 0) {
        return -3;
    }
    double by_score =
        1.5 + 15 * ((double)look->score - (double)look->threshold) / (1 - (double)look->threshold);
    return bounded(isnan(look->likelihood) ? by_score : (double)look->likelihood, -3, 3);
}

/* Of the independent frames up to look i, the last m: how many name the person? */
static int plain_named(const struct weir_evidence_options *options,
                       const struct weir_look_at *looks, int n, int person)
{
    int starts[N_LOOKS], n_frames = 0, n_named = 0;
    for (int i = 0; i < n; i++) {
        if (i == 0 ||
            looks[i].time_ms - looks[starts[n_frames - 1]].time_ms >= options->independent_ms) {
            starts[n_frames++] = i;
        }
    }
    for (int f = n_frames - 1; f >= 0 && f >= n_frames - options->m; f--) {
        int best = -1;
        for (int i = starts[f]; i < (f + 1 < n_frames ? starts[f + 1] : n); i++) {
            double score = looks[i].person < 0 ? -1e9 : (double)looks[i].score;
            double best_score = best < 0                 ? -2e9
                                : looks[best].person < 0 ? -1e9
                                                         : (double)looks[best].score;
            best = score > best_score ? i : best;
        }
        n_named += looks[best].person == person && looks[best].score >= looks[best].threshold;
    }
    return n_named;
}

static struct plain plain_decide(const struct weir_evidence_options *options,
                                 const struct weir_look_at *looks, int n)
{
    double accept = (double)options->accept, deny = (double)options->deny;
    double high = log((1 - deny) / accept), low = log(deny / (1 - accept));
    double sums[N_PEOPLE + 1] = {0}; /* The last: of anybody. */
    struct plain plain = {.person = -1};
    for (int i = 0; i < n; i++) {
        double ms = i == 0 ? 0 : (double)(looks[i].time_ms - looks[i - 1].time_ms);
        double weight = i == 0 ? 1
                               : bounded(ms / (double)options->independent_ms,
                                         (double)options->least_weight, 1);
        double likelihood = plain_likelihood(&looks[i]) * weight;
        plain.person = -1;
        for (int p = 0; p <= N_PEOPLE; p++) {
            sums[p] += p == looks[i].person ? likelihood : -fabs(likelihood);
            sums[p] = bounded(sums[p], low, high);
            plain.is_close |= fabs(sums[p] - high) < 1e-3 && sums[p] < high;
            plain.is_close |= p < N_PEOPLE && p == looks[i].person && fabs(sums[p]) < 1e-3;
        }
        plain.sum = sums[N_PEOPLE];
        for (int p = 0; p < N_PEOPLE; p++) {
            plain.is_close |=
                plain.person >= 0 && fabs(sums[p] - plain.sum) < 1e-3 && sums[p] > sums[N_PEOPLE];
            if (sums[p] > plain.sum + 1e-6) {
                plain.person = p;
                plain.sum = sums[p];
            }
        }
        int person = plain.person;
        plain.n_named = person < 0 ? 0 : plain_named(options, looks, i + 1, person);
        bool is_sure = plain.sum >= high && plain.n_named >= options->n;
        bool is_stopped = person == 0 && plain.sum > 0 &&
                          plain.n_named >= WEIR_MIN(options->n_barred, options->m);
        if (person >= 0 && person == looks[i].person && (is_sure || is_stopped)) {
            plain.state = WEIR_EVIDENCE_KNOWN;
            return plain;
        }
    }
    return plain;
}

static void make_look(struct weir_rng *rng, int likely, int64_t *time_ms, struct weir_look_at *look)
{
    *time_ms += (int64_t)weir_rng_below(rng, 700);
    int person = weir_rng_below(rng, 4) > 0 ? likely : (int)weir_rng_below(rng, N_PEOPLE + 1) - 1;
    bool has_likelihood = weir_rng_below(rng, 2) == 0;
    *look = (struct weir_look_at){
        .time_ms = *time_ms,
        .person = person,
        .score = 0.2F + 0.6F * weir_rng_f32(rng),
        .threshold = 0.35F,
        .likelihood = has_likelihood ? (float)(2 + 2 * weir_rng_normal(rng)) : NAN,
        .is_barred = person == 0,
    };
}

START_TEST(a_plain_count_of_all_looks_agrees)
{
    struct weir_evidence_options options = weir_evidence_usual;
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 3);
    int n_known = 0, n_barred = 0, n_compared = 0;
    for (int k = 0; k < WEIR_TEST_TIMES(2000, 200); k++) {
        options.n = 1 + (int32_t)weir_rng_below(&rng, 4);
        options.m = options.n + (int32_t)weir_rng_below(&rng, 4);
        options.n_barred = 1 + (int32_t)weir_rng_below(&rng, 2);
        struct weir_look_at looks[N_LOOKS];
        struct weir_evidence evidence;
        weir_evidence_init(&evidence);
        int likely = (int)weir_rng_below(&rng, N_PEOPLE);
        int64_t time_ms = (int64_t)weir_rng_u32(&rng);
        for (int i = 0; i < N_LOOKS && evidence.state == WEIR_EVIDENCE_OPEN; i++) {
            make_look(&rng, likely, &time_ms, &looks[i]);
            bool is_new = weir_evidence_add(&evidence, &options, &looks[i]);
            ck_assert(is_new == (evidence.state != WEIR_EVIDENCE_OPEN));
            struct plain plain = plain_decide(&options, looks, i + 1);
            if (plain.is_close) {
                break;
            }
            n_compared++;
            ck_assert_msg(
                evidence.state == plain.state && evidence.person == plain.person &&
                    evidence.n_named == plain.n_named &&
                    fabs((double)evidence.sum - plain.sum) < 1e-3,
                "seed %d, case %d, look %d: person %d, %d named, sum %g; plain %d, %d, %g", SEED, k,
                i, evidence.person, evidence.n_named, (double)evidence.sum, plain.person,
                plain.n_named, plain.sum);
        }
        n_known += evidence.state == WEIR_EVIDENCE_KNOWN && !evidence.is_barred;
        n_barred += evidence.state == WEIR_EVIDENCE_KNOWN && evidence.is_barred;
    }
    printf("seed %d: %d looks compared, %d known, %d barred\n", SEED, n_compared, n_known,
           n_barred);
    ck_assert(n_known > 50 && n_barred > 20);
}

END_TEST

START_TEST(what_is_decided_stays_so)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 4);
    for (int k = 0; k < 300; k++) {
        struct weir_evidence evidence;
        weir_evidence_init(&evidence);
        int64_t time_ms = 0;
        struct weir_look_at look;
        for (int i = 0; i < 30; i++) {
            make_look(&rng, 2, &time_ms, &look);
            (void)weir_evidence_add(&evidence, &weir_evidence_usual, &look);
        }
        weir_evidence_end(&evidence);
        ck_assert_int_ne(evidence.state, WEIR_EVIDENCE_OPEN);
        ck_assert_int_eq(evidence.person < 0, evidence.state == WEIR_EVIDENCE_UNKNOWN);
        struct weir_evidence before = evidence;
        for (int i = 0; i < 30; i++) {
            make_look(&rng, 1, &time_ms, &look);
            ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
        }
        weir_evidence_end(&evidence);
        ck_assert(evidence.state == before.state && evidence.person == before.person &&
                  evidence.is_barred == before.is_barred && evidence.sum == before.sum);
    }
}

END_TEST

START_TEST(a_barred_person_is_decided_by_one_good_frame)
{
    struct weir_evidence evidence;
    struct weir_look_at look = {
        .person = 3, .score = 0.6F, .threshold = 0.4F, .likelihood = NAN, .is_barred = true};
    weir_evidence_init(&evidence);
    ck_assert(weir_evidence_add(&evidence, &weir_evidence_usual, &look));
    ck_assert(evidence.is_barred && evidence.person == 3);
    weir_evidence_init(&evidence);
    look.is_barred = false;
    ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
    look.is_barred = true;
    look.score = 0.3F; /* It does not name the person. */
    weir_evidence_init(&evidence);
    ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
}

END_TEST

START_TEST(somebody_unknown_at_first_can_still_be_known)
{
    struct weir_evidence evidence;
    weir_evidence_init(&evidence);
    struct weir_look_at look = {.person = -1, .score = NAN, .threshold = NAN, .likelihood = NAN};
    for (int i = 0; i < 20; i++, look.time_ms += 500) {
        ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
    }
    ck_assert(evidence.seems_unknown && evidence.person == -1 && evidence.n_counted == 20);
    look = (struct weir_look_at){look.time_ms, 5, 0.7F, 0.4F, NAN, false};
    int n = 0;
    while (!weir_evidence_add(&evidence, &weir_evidence_usual, &look)) {
        look.time_ms += 500;
        ck_assert_int_lt(++n, 6);
        ck_assert(!evidence.seems_unknown && evidence.person == 5);
    }
}

END_TEST

START_TEST(no_number_is_no_evidence)
{
    const float odd[] = {NAN, INFINITY, -INFINITY};
    struct weir_evidence evidence;
    weir_evidence_init(&evidence);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(odd); i++) {
        struct weir_look_at look = {0, 1, odd[i], 0.4F, 3, false};
        ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
        look = (struct weir_look_at){0, 1, 0.9F, odd[i], 3, false};
        ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
    }
    ck_assert(evidence.n_counted == 0 && evidence.sum == 0);
    struct weir_look_at look = {INT64_MIN, 1, 0.9F, 0.4F, INFINITY, false};
    ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
    ck_assert_float_eq(evidence.sum, 3); /* No more than any good frame. */
    look.time_ms = INT64_MAX;
    look.likelihood = -INFINITY;
    ck_assert(!weir_evidence_add(&evidence, &weir_evidence_usual, &look));
    ck_assert_float_eq(evidence.sum, 0);
    struct weir_evidence_options none = {.accept = NAN, .deny = NAN, .least_weight = NAN};
    weir_evidence_init(&evidence);
    look.likelihood = 3;
    for (int i = 0; i < 20; i++) {
        (void)weir_evidence_add(&evidence, &none, &look);
        ck_assert(isfinite(evidence.sum));
    }
}

END_TEST

WEIR_TEST_MAIN("evidence", strangers_are_admitted_less_often_than_is_borne,
               known_people_are_decided_as_soon_at_any_frame_rate,
               a_plain_count_of_all_looks_agrees, what_is_decided_stays_so,
               a_barred_person_is_decided_by_one_good_frame,
               somebody_unknown_at_first_can_still_be_known, no_number_is_no_evidence)
