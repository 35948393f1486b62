/* Rollouts played with random shares of refusals: how often a version that refuses no more than the one that
 * serves is sent back, and how often one that does is promoted. */
#include "ion/ion_step.h"
#include "ion/policy_refusal.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEED        45
#define N_REQUESTS  200 /* a tick, of a second */
#define N_TICKS_MAX 800
#define N_PLAYS     WEIR_TEST_TIMES(100, 10)

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

/** How two versions take requests. A caller's mistake is refused by both. */
struct versions {
    double mistakes;              /* share of requests */
    double refused, live_refused; /* of the others */
};

struct rollout {
    struct weir_policy policy;
    struct weir_policy_trial trial;
    int64_t share_ppm, now_ms;
    bool is_mirrored;
    int64_t n_refused; /* callers whom the new version refused, and the other would not have */
};

static bool chance(struct weir_rng *rng, double p)
{
    return weir_rng_f64(rng) < p;
}

/** One request, as the gateway would count it. With all requests at the new version the former one gets copies. */
static void ask(struct rollout *play, struct weir_rng *rng, const struct versions *versions)
{
    struct weir_ion_figures *figures = &play->trial.figures;
    bool is_mistake = chance(rng, versions->mistakes);
    bool refuses = is_mistake || chance(rng, versions->refused);
    bool live_refuses = is_mistake || chance(rng, versions->live_refused);
    bool is_new = chance(rng, (double)play->share_ppm / 1e6);
    if (is_new) {
        figures->n_requests++;
        figures->n_unaccepted += refuses;
        play->n_refused += refuses && !live_refuses;
    } else {
        figures->live_requests++;
        figures->live_unaccepted += live_refuses;
    }
    if (play->is_mirrored || play->share_ppm == 1000000) {
        figures->n_compared++;
        figures->n_only += refuses && !live_refuses;
        figures->live_only += live_refuses && !refuses;
        figures->n_neither += live_refuses && refuses;
        figures->n_disagreed += live_refuses != refuses;
    }
}

/** Ask the policy, and do as it says. @return Its verdict. */
static const char *decide(struct rollout *play)
{
    struct weir_policy_inputs inputs = {.policy = play->policy.text,
                                        .now_ms = play->now_ms,
                                        .candidate_version = 2,
                                        .newest_other_version = 1,
                                        .serving_version = 1,
                                        .candidate_state = "CANARY",
                                        .trial = &play->trial};
    struct weir_policy_verdict told = weir_policy_decide(&play->policy, &inputs, &arena);
    bool is_next = play->trial.step_ms == 0 || told.step != play->trial.step;
    if (strcmp(told.verdict, WEIR_VERDICT_WAIT) != 0) {
        return told.verdict;
    }
    if (is_next) {
        play->trial = (struct weir_policy_trial){.step = told.step, .step_ms = play->now_ms};
        play->share_ppm = told.share_ppm;
        play->is_mirrored = told.is_mirrored;
    } else if (told.is_begun) {
        play->trial.begun_ms = play->now_ms;
    }
    play->trial.live_ppm = play->share_ppm;
    play->trial.is_ready = true;
    return told.verdict;
}

/** @return The verdict that ended it. */
static const char *play_out(struct rollout *play, const char *policy, struct weir_rng *rng,
                            const struct versions *versions)
{
    struct weir_policy_chain chain;
    struct weir_error err;
    json_t *json = json_loads(policy, 0, NULL);
    ck_assert(json != NULL && weir_policy_chain_read(json, "$", &arena, &chain, &err) == WEIR_OK);
    json_decref(json);
    *play = (struct rollout){.policy = chain.items[0], .now_ms = 1000000};
    const char *verdict = WEIR_VERDICT_WAIT;
    for (int i = 0; i < N_TICKS_MAX && strcmp(verdict, WEIR_VERDICT_WAIT) == 0; i++) {
        verdict = decide(play);
        for (int k = 0; k < N_REQUESTS && play->trial.begun_ms > 0; k++) {
            ask(play, rng, versions);
        }
        play->now_ms += 1000;
    }
    return verdict;
}

#define CANARY "{\"kind\":\"canary\",\"steps\":[1,10,50,100],\"hold_s\":5}"
#define WHOLE  "{\"kind\":\"canary\",\"steps\":[100],\"hold_s\":5}"

static const struct {
    const char *name, *policy;
    struct versions versions;
    int most_back, most_promoted; /* of all */
    double refused_max;           /* callers, on average */
} plays[] = {
    {"both alike, no refusals", CANARY, {0, 0, 0}, 0, 120, 0},
    {"both alike, few mistakes", CANARY, {0.01, 0, 0}, 2, 120, 0},
    {"both alike, a third mistakes", CANARY, {0.3, 0, 0}, 2, 120, 0},
    {"both refuse a tenth of their own", CANARY, {0.1, 0.1, 0.1}, 2, 120, 1e9},
    {"the new one refuses less", CANARY, {0.1, 0, 0.2}, 2, 120, 0},
    {"signature changed: all refused", CANARY, {0, 1, 0}, 120, 0, 20},
    {"two thirds refused", CANARY, {0, 0.67, 0}, 120, 0, 20},
    {"a tenth refused", CANARY, {0, 0.1, 0}, 120, 0, 20},
    {"a tenth refused, and mistakes", CANARY, {0.1, 0.1, 0}, 120, 0, 300},
    {"a twentieth, and many mistakes", CANARY, {0.3, 0.05, 0}, 120, 0, 200},
    {"all at once", WHOLE, {0.1, 0.67, 0}, 120, 0, 500},
    {"all at once, a tenth", WHOLE, {0.1, 0.1, 0}, 120, 0, 250},
    {"all at once, alike", WHOLE, {0.3, 0.05, 0.05}, 2, 120, 1e9},
};

START_TEST(rollouts_end_as_their_refusals_ask_for)
{
    int n_back = 0, n_promoted = 0;
    double n_refused = 0;
    for (int i = 0; i < N_PLAYS; i++) {
        struct rollout play;
        struct weir_rng rng;
        weir_rng_init(&rng, SEED + (uint64_t)_i, (uint64_t)i);
        const char *verdict = play_out(&play, plays[_i].policy, &rng, &plays[_i].versions);
        n_back += strcmp(verdict, WEIR_VERDICT_ROLLBACK) == 0;
        n_promoted += strcmp(verdict, WEIR_VERDICT_PASS) == 0;
        n_refused += (double)play.n_refused / N_PLAYS;
        weir_arena_fini(&arena);
        weir_arena_init(&arena, 0);
    }
    printf(
        "%s: seed %d: of %d rollouts %d rolled back, %d promoted; %.1f callers refused in vain\n",
        plays[_i].name, SEED + _i, N_PLAYS, n_back, n_promoted, n_refused);
    ck_assert_int_eq(n_back + n_promoted, N_PLAYS);
    ck_assert_int_le(n_back, plays[_i].most_back);
    ck_assert_int_le(n_promoted, plays[_i].most_promoted);
    ck_assert_double_le(n_refused, plays[_i].refused_max);
}

END_TEST

START_TEST(requests_that_all_refuse_promote_nothing)
{
    struct rollout play;
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 0);
    const struct versions none = {1, 0, 0};
    ck_assert_str_eq(play_out(&play, CANARY, &rng, &none), WEIR_VERDICT_WAIT);
    ck_assert_int_eq(play.trial.step, 0);
}

END_TEST

START_TEST(a_guard_that_is_off_lets_all_refusals_pass)
{
    struct weir_ion_figures figures = {
        .n_requests = 1000, .n_unaccepted = 1000, .live_requests = 1000};
    struct weir_policy_refusal refusal = {"canary", 0.01, 1, 500000};
    ck_assert_ptr_nonnull(weir_policy_refusal_trips(&refusal, &figures, &arena));
    refusal.max_excess = 1;
    ck_assert_ptr_null(weir_policy_refusal_trips(&refusal, &figures, &arena));
    /* Surely more, and by less than matters. */
    figures = (struct weir_ion_figures){
        .n_requests = 100000, .n_unaccepted = 900, .live_requests = 100000};
    refusal.max_excess = 0.01;
    ck_assert_ptr_null(weir_policy_refusal_trips(&refusal, &figures, &arena));
    refusal.max_excess = 0;
    ck_assert_ptr_nonnull(weir_policy_refusal_trips(&refusal, &figures, &arena));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("policy_refusal");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, rollouts_end_as_their_refusals_ask_for, 0, WEIR_ARRAY_LEN(plays));
    tcase_add_test(tcase, requests_that_all_refuse_promote_nothing);
    tcase_add_test(tcase, a_guard_that_is_off_lets_all_refusals_pass);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
