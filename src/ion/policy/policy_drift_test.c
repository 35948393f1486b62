/* The guard on drift: how often it trips where nothing differs, and how soon where something does. */
#include "ion/policy_drift.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BINS      WEIR_POLICY_OUTPUT_BINS
#define N_CLASSES 10
#define N_STEPS   4
#define WINDOW    200
#define N_LOOKS   4 /* that are simulated, of 8: up to 1600 answers */

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

struct counts {
    int64_t classes[BINS], scores[BINS];
};

/* One answer; with the chance `shift` it is class 3, with a low margin. */
static void answer(struct weir_rng *rng, struct counts *counts, double shift)
{
    bool is_shifted = weir_rng_below(rng, 1000000) < shift * 1000000;
    uint32_t class = is_shifted ? 3 : weir_rng_below(rng, N_CLASSES);
    uint32_t score =
        is_shifted ? weir_rng_below(rng, 4) : weir_rng_below(rng, 20) + weir_rng_below(rng, 20);
    counts->classes[class]++;
    counts->scores[score]++;
}

/* A step: the candidate has a tenth of the requests. @return At how many answers it tripped; 0: never. */
static int64_t play_step(struct weir_rng *rng, double shift, double rate, int64_t *n_looks)
{
    struct counts live = {0}, candidate = {0};
    int64_t n = 0;
    for (int64_t k = 0; k < N_LOOKS; k++) {
        struct weir_policy_drift found;
        for (; n < weir_policy_look_at(WINDOW, k); n++) {
            answer(rng, &candidate, shift);
            for (int i = 0; i < 9; i++) {
                answer(rng, &live, 0);
            }
        }
        ck_assert(weir_policy_drift_test(
            weir_policy_outputs_text(live.classes, live.scores, &arena),
            weir_policy_outputs_text(candidate.classes, candidate.scores, &arena), rate,
            (*n_looks)++, &found));
        ck_assert_int_eq(found.n, n);
        ck_assert_int_eq(found.live_n, 9 * n);
        if (found.is_drifted) {
            return n;
        }
    }
    return 0;
}

static double rate_of(double all)
{
    return all / (N_STEPS * WEIR_POLICY_LOOKS_MAX * 2);
}

/* Of many canaries that answer as what serves, at most the share trips that was asked for. */
START_TEST(where_nothing_differs_it_trips_at_most_at_the_rate)
{
    const uint64_t seed = 2024;
    const double rate = 0.2;
    struct weir_rng rng;
    int n_tripped = 0, n_canaries = 40;
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < n_canaries; i++) {
        int64_t n_looks = 0, at = 0;
        for (int step = 0; step < N_STEPS && at == 0; step++) {
            at = play_step(&rng, 0, rate_of(rate), &n_looks);
        }
        n_tripped += at > 0;
    }
    printf("seed %llu: %d of %d canaries tripped at a rate of %g\n", (unsigned long long)seed,
           n_tripped, n_canaries, rate);
    /* Were the true rate above what was asked for, more than the mean would be seen; so that the test
     * itself does not fail by chance, three deviations more. */
    double mean = rate * n_canaries;
    ck_assert_double_le(n_tripped, mean + 3 * sqrt(mean * (1 - rate)));
}

END_TEST

START_TEST(a_shifted_model_trips_within_the_stated_number_of_answers)
{
    static const struct {
        double shift;
        int64_t within;
    } cases[] = {{0.2, 400}, {0.1, 1600}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct weir_rng rng;
            int64_t n_looks = 0;
            weir_rng_init(&rng, seed, 0);
            int64_t at = play_step(&rng, cases[i].shift, rate_of(0.01), &n_looks);
            ck_assert_msg(at > 0 && at <= cases[i].within, "shift %g, seed %llu: at %lld",
                          cases[i].shift, (unsigned long long)seed, (long long)at);
        }
    }
}

END_TEST

START_TEST(the_same_counts_give_the_same_answer)
{
    struct weir_rng rng;
    struct counts live = {0}, candidate = {0};
    struct weir_policy_drift a, b;
    weir_rng_init(&rng, 5, 0);
    for (int i = 0; i < 300; i++) {
        answer(&rng, &live, 0);
        answer(&rng, &candidate, 0.03);
    }
    char *p = weir_policy_outputs_text(live.classes, live.scores, &arena),
         *q = weir_policy_outputs_text(candidate.classes, candidate.scores, &arena);
    ck_assert(weir_policy_drift_test(p, q, 0.001, 3, &a));
    ck_assert(weir_policy_drift_test(p, q, 0.001, 3, &b));
    ck_assert_double_eq(a.p_value, b.p_value);
    ck_assert_str_eq(a.what, b.what);
    ck_assert_int_eq(a.n, 300);
}

END_TEST

START_TEST(counters_that_went_back_count_anew_and_nonsense_counts_nothing)
{
    static const char base[] = "{\"classes\":[3,1],\"scores\":[4]}";
    ck_assert_str_eq(
        weir_policy_outputs_since(base, "{\"classes\":[5,1,2],\"scores\":[4,4]}", &arena),
        "{\"classes\":[2,0,2],\"scores\":[0,4]}");
    ck_assert_str_eq(weir_policy_outputs_since(base, "{\"classes\":[2],\"scores\":[2]}", &arena),
                     "{\"classes\":[2],\"scores\":[2]}");
    ck_assert_str_eq(weir_policy_outputs_since(NULL, base, &arena), base);
    ck_assert_ptr_null(weir_policy_outputs_since(base, NULL, &arena));
    static const char *const wrong[] = {NULL,
                                        "",
                                        "[]",
                                        "{}",
                                        "{\"classes\":[-1],\"scores\":[]}",
                                        "{\"classes\":[1.5],\"scores\":[]}",
                                        "{\"classes\":[9223372036854775807],\"scores\":[]}",
                                        "{\"classes\":{},\"scores\":[]}"};
    struct weir_policy_drift found;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_policy_outputs_n(wrong[i]), 0);
        ck_assert(!weir_policy_drift_test(wrong[i], base, 0.01, 0, &found));
        ck_assert(!weir_policy_drift_test(base, wrong[i], 0.01, 0, &found));
    }
    ck_assert(!weir_policy_drift_test(base, base, 0.01, 0, &found)); /* too few */
}

END_TEST

START_TEST(looks_double_and_end)
{
    ck_assert_int_eq(weir_policy_look_at(200, 0), 200);
    ck_assert_int_eq(weir_policy_look_at(200, 7), 25600);
    ck_assert_int_eq(weir_policy_look_at(200, 8), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("policy_drift");
    TCase *tcase = tcase_create("policy_drift");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, where_nothing_differs_it_trips_at_most_at_the_rate);
    tcase_add_test(tcase, a_shifted_model_trips_within_the_stated_number_of_answers);
    tcase_add_test(tcase, the_same_counts_give_the_same_answer);
    tcase_add_test(tcase, counters_that_went_back_count_anew_and_nonsense_counts_nothing);
    tcase_add_test(tcase, looks_double_and_end);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
