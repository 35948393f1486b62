/* The table of verdicts, written out; and that order and size of lists do not matter. */
#include "predict/decide.h"

#include "base/test_main.h"

#include <math.h>
#include <string.h>

struct row {
    double score;
    const char *name;
    bool is_allowed, is_denied;
    enum verdict fallback, wanted;
};

#define G VERDICT_GRANT
#define D VERDICT_DENY
#define U VERDICT_UNKNOWN

/* Threshold 0.5. */
// clang-format off
static const struct row rows[] = {
    {0.49, "ann", false, false, G, U}, {0.49, "ann", true,  false, G, U},
    {0.49, "ann", false, true,  G, U}, {0.49, "ann", true,  true,  D, U},
    {0.50, "ann", false, false, G, G}, {0.50, "ann", false, false, D, D},
    {0.50, "ann", false, false, U, U}, {0.90, "ann", true,  false, D, G},
    {0.90, "ann", true,  false, U, G}, {0.90, "ann", false, true,  G, D},
    {0.90, "ann", false, true,  U, D}, {0.90, "ann", true,  true,  G, D},
    {NAN,  "ann", true,  false, G, U}, {NAN,  NULL,  false, false, G, U},
    {0.90, NULL,  false, false, G, U},
};

// clang-format on

static const struct thresholds half = {.known = 0.5, .barred = 0.5};

START_TEST(the_verdict_follows_the_table)
{
    const struct row *row = &rows[_i];
    const char *allow[] = {"zoe", "bob", "ann", "eve"}, *deny[] = {"mal", "ann", "abe"};
    struct lists lists = {.allow = allow,
                          .n_allow = row->is_allowed ? 4 : 2,
                          .deny = deny,
                          .n_deny = row->is_denied ? 3 : 1,
                          .fallback = row->fallback};
    lists_sort(&lists);
    ck_assert_int_eq(decide(row->score, row->name, &half, &lists), row->wanted);
}

END_TEST

START_TEST(empty_lists_leave_everybody_to_the_default)
{
    struct lists lists = {.fallback = VERDICT_GRANT};
    lists_sort(&lists);
    ck_assert_int_eq(decide(1.0, "ann", &half, &lists), VERDICT_GRANT);
    ck_assert_str_eq(verdict_text(VERDICT_GRANT), "grant");
    ck_assert_str_eq(verdict_text(VERDICT_DENY), "deny");
    ck_assert_str_eq(verdict_text(VERDICT_UNKNOWN), "unknown");
    ck_assert_str_eq(verdict_text(VERDICT_ERROR), "error");
}

END_TEST

START_TEST(who_is_barred_is_recognised_by_a_threshold_of_its_own)
{
    const char *allow[] = {"ann"}, *deny[] = {"ann", "mal"};
    struct lists lists = {
        .allow = allow, .n_allow = 1, .deny = deny, .n_deny = 2, .fallback = VERDICT_GRANT};
    const struct thresholds lower = {.known = 0.8, .barred = 0.5};
    lists_sort(&lists);
    ck_assert_int_eq(decide(0.5, "mal", &lower, &lists), VERDICT_DENY);
    ck_assert_int_eq(decide(0.6, "ann", &lower, &lists), VERDICT_DENY);
    ck_assert_int_eq(decide(0.49, "mal", &lower, &lists), VERDICT_UNKNOWN);
    ck_assert_int_eq(decide(0.79, "bob", &lower, &lists), VERDICT_UNKNOWN);
    ck_assert_int_eq(decide(0.8, "bob", &lower, &lists), VERDICT_GRANT);
    ck_assert_int_eq(decide(0.6, NULL, &lower, &lists), VERDICT_UNKNOWN);
    ck_assert_int_eq(decide(NAN, "mal", &lower, &lists), VERDICT_UNKNOWN);
    ck_assert_double_eq(decide_threshold("mal", &lower, &lists), 0.5);
    ck_assert_double_eq(decide_threshold("bob", &lower, &lists), 0.8);
    ck_assert_double_eq(decide_threshold(NULL, &lower, &lists), 0.8);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("decide");
    TCase *tcase = tcase_create("decide");
    tcase_add_loop_test(tcase, the_verdict_follows_the_table, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tcase, who_is_barred_is_recognised_by_a_threshold_of_its_own);
    tcase_add_test(tcase, empty_lists_leave_everybody_to_the_default);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
