#include "ion/claim.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "ion/decision.h"
#include "ion/ion_fixture.h"
#include "store/store_fixture.h"

#include <math.h>
#include <string.h>

#define DAY_MS ((int64_t)86400000)
#define NOW    (20000 * DAY_MS + DAY_MS / 2)

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_make(&fixture, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static struct weir_threshold by_impostors(void)
{
    struct weir_threshold threshold = weir_threshold_unknown;
    threshold.rule = (char *)"impostors";
    threshold.threshold = 0.6;
    threshold.scores = 450;
    threshold.people = 150;
    threshold.gallery_people = 60;
    threshold.gallery_version = 7;
    threshold.expected_rate = 0.01;
    return threshold;
}

static const struct weir_claim *figure_of(const char *name,
                                          const struct weir_claim figures[WEIR_CLAIMS])
{
    for (size_t i = 0; i < WEIR_CLAIMS; i++) {
        ck_assert_ptr_nonnull(figures[i].rests_on);
        if (strcmp(figures[i].name, name) == 0) {
            return &figures[i];
        }
    }
    ck_abort_msg("no figure %s", name);
}

START_TEST(a_rate_is_never_taken_as_lower_than_can_be_claimed)
{
    struct weir_claim figures[WEIR_CLAIMS];
    struct weir_threshold threshold = by_impostors();
    const struct weir_unknown unknown = {.n = 1400, .days = 7};
    weir_claims_of(&threshold, &unknown, &fixture.arena, figures);
    ck_assert_double_eq(figure_of("gallery_people", figures)->value, 60);
    ck_assert_double_eq(figure_of("impostor_searches", figures)->value, 450);
    ck_assert_double_eq_tol(figure_of("claimable_rate", figures)->value, 0.02, 1e-12);
    ck_assert_double_eq(figure_of("unknown_a_day", figures)->value, 200);
    const struct weir_claim *admits = figure_of("false_admits_a_day", figures);
    ck_assert_double_eq_tol(admits->value, 4, 1e-9); /* 200 at 2 %, not at 1 % */
    ck_assert_ptr_nonnull(strstr(admits->rests_on, "as measured it were 2 a day"));
    ck_assert_ptr_nonnull(strstr(admits->rests_on, "no liveness is claimed"));
    threshold.expected_rate = 0.05;
    weir_claims_of(&threshold, &unknown, &fixture.arena, figures);
    ck_assert_double_eq_tol(figure_of("false_admits_a_day", figures)->value, 10, 1e-9);
}

END_TEST

START_TEST(without_impostors_or_decisions_nothing_is_made_up)
{
    struct weir_claim figures[WEIR_CLAIMS];
    struct weir_threshold threshold = by_impostors();
    const struct weir_unknown none = {.days = NAN}, some = {.n = 7, .days = 7};
    weir_claims_of(&threshold, &none, &fixture.arena, figures);
    ck_assert(isnan(figure_of("unknown_a_day", figures)->value));
    ck_assert(isnan(figure_of("false_admits_a_day", figures)->value));
    threshold.rule = (char *)"gallery"; /* its scores are of people who are enrolled */
    threshold.expected_rate = NAN;
    threshold.gallery_people = 0;
    weir_claims_of(&threshold, &some, &fixture.arena, figures);
    ck_assert(isnan(figure_of("gallery_people", figures)->value));
    ck_assert_double_eq(figure_of("impostor_searches", figures)->value, 0);
    ck_assert_double_eq(figure_of("claimable_rate", figures)->value, 1);
    ck_assert(isnan(figure_of("measured_rate", figures)->value));
    ck_assert_double_eq(figure_of("unknown_a_day", figures)->value, 1);
    ck_assert(isnan(figure_of("false_admits_a_day", figures)->value));
}

END_TEST

/* Decisions of twelve days, some of the future, counted one by one beside. */
static weir_status count_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const verdicts[] = {"grant", "deny", "unknown", "unknown", "error"};
    struct weir_unknown found;
    struct weir_rng rng;
    int64_t expected = 0, first_ms = INT64_MAX, first_day = NOW / DAY_MS - 6;
    size_t n_stored;
    (void)context;
    (void)test_seed(&rng);
    MUST(weir_unknown_count(txn, "x", "p", NOW, &found, err));
    REQUIRE(found.n == 0 && isnan(found.days));
    for (int i = 0; i < 300; i++) {
        struct weir_decision one = {.id = weir_arena_printf(&fixture.arena, "d%d", i),
                                    .ion = (char *)"x",
                                    .pipeline = (char *)(weir_rng_below(&rng, 4) == 0 ? "q" : "p"),
                                    .camera = (char *)"door",
                                    .frame = i,
                                    .time_ms = NOW - 11 * DAY_MS +
                                               (int64_t)weir_rng_below(&rng, 13 * (uint64_t)DAY_MS),
                                    .verdict = (char *)verdicts[weir_rng_below(&rng, 5)],
                                    .is_sandbox = weir_rng_below(&rng, 6) == 0};
        MUST(weir_decisions_store(txn, &one, 1, NULL, 0, &n_stored, err));
        MUST(weir_decisions_store(txn, &one, 1, NULL, 0, &n_stored, err)); /* again: no effect */
        if (strcmp(one.pipeline, "p") == 0 && !one.is_sandbox) {
            int64_t day = one.time_ms / DAY_MS;
            first_ms = WEIR_MIN(first_ms, one.time_ms);
            expected += day >= first_day && day <= NOW / DAY_MS && one.verdict[0] == 'u';
        }
    }
    MUST(weir_txn_exec(txn, "DELETE FROM decisions WHERE frame % 2 = 0", WEIR_NO_BINDS, NULL, err));
    MUST(weir_unknown_count(txn, "x", "p", NOW, &found, err));
    ck_assert_int_eq(found.n, expected); /* also of those that retention has deleted */
    int64_t since_ms = NOW - WEIR_MAX(first_ms, first_day * DAY_MS);
    double days = (double)since_ms / (double)DAY_MS;
    ck_assert_double_eq_tol(found.days, days, 1e-9);
    return WEIR_OK;
}

START_TEST(the_unknown_are_the_decisions_of_the_last_days_that_knew_nobody)
{
    fixture_write(&fixture, count_in, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("claims", set_up, tear_down, a_rate_is_never_taken_as_lower_than_can_be_claimed,
                    without_impostors_or_decisions_nothing_is_made_up,
                    the_unknown_are_the_decisions_of_the_last_days_that_knew_nobody)
