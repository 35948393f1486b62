/* Versions that refuse or fail requests, told while they do; with figures and a clock that the test makes up. */
#include "control/refusals.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;
static struct refusals refusals;
static struct weir_ion_figures counted[3]; /* by version */
static int64_t mono_ms;

static bool figures_of(void *context, const char *deployment, int64_t version, int64_t live,
                       int64_t mirror, int64_t slow_us, struct weir_arena *texts,
                       struct weir_ion_figures *out)
{
    (void)context;
    (void)mirror;
    (void)slow_us;
    (void)texts;
    *out = counted[version];
    out->live_requests = live > 0 ? counted[live].n_requests : 0;
    out->live_unaccepted = live > 0 ? counted[live].n_unaccepted : 0;
    return strcmp(deployment, "d") == 0;
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    memset(counted, 0, sizeof counted);
    refusals = (struct refusals){0};
    mono_ms = 1000000;
}

static void tear_down(void)
{
    refusals_fini(&refusals);
    weir_arena_fini(&arena);
}

/* What is told now of a deployment whose version 1 has this share, and version 2 the rest. */
static const char *look(int64_t ppm)
{
    struct weir_deploy_version versions[] = {{.row = {.version = 1, .live_ppm = ppm}},
                                             {.row = {.version = 2, .live_ppm = 1000000 - ppm}}};
    struct weir_deploy_state state = {
        .deployment = {.name = "d"}, .versions = versions, .n_versions = 2};
    const struct weir_watch_seen seen = {.deployments = &state, .n_deployments = 1};
    const struct control_figures figures = {.fn = figures_of};
    struct weir_watch_findings findings = {0};
    refusals_look(&refusals, &figures, &seen, mono_ms, &arena, &findings);
    mono_ms += 2000;
    ck_assert_uint_le(findings.n, 1);
    return findings.n > 0 ? findings.items[0].message : "";
}

START_TEST(a_version_that_refuses_what_the_other_takes_is_told_while_it_does)
{
    counted[1] = (struct weir_ion_figures){.n_requests = 5000, .n_unaccepted = 5000};
    ck_assert_str_eq(look(900000), ""); /* of before */
    counted[1].n_requests += 90;
    counted[2] = (struct weir_ion_figures){.n_requests = 10, .n_unaccepted = 7};
    ck_assert_ptr_nonnull(strstr(look(900000), "Version 2 of deployment d refuses (4xx) requests "
                                               "that the other version takes"));
    ck_assert_ptr_nonnull(strstr(look(900000), "Version 2"));
    ck_assert_str_eq(look(1000000), ""); /* it has no share any more */
    mono_ms += 2 * REFUSALS_WINDOW_MS;
    (void)look(900000);
    mono_ms += 2 * REFUSALS_WINDOW_MS;
    (void)look(900000);
    ck_assert_str_eq(look(900000), ""); /* it was long ago */
}

END_TEST

START_TEST(mistakes_of_callers_and_few_requests_tell_nothing)
{
    (void)look(500000);
    counted[1] = counted[2] =
        (struct weir_ion_figures){.n_requests = 500, .n_unaccepted = 450, .n_failed = 20};
    ck_assert_str_eq(look(500000), "");
    refusals_fini(&refusals);
    counted[1] = (struct weir_ion_figures){0};
    (void)look(1000000);
    counted[1] = (struct weir_ion_figures){.n_requests = 19, .n_failed = 19};
    ck_assert_str_eq(look(1000000), "");
}

END_TEST

START_TEST(a_version_alone_is_told_if_it_refuses_or_fails_most)
{
    (void)look(1000000);
    counted[1] = (struct weir_ion_figures){.n_requests = 100, .n_unaccepted = 55};
    ck_assert_str_eq(look(1000000), "");
    counted[1].n_unaccepted = 70;
    ck_assert_ptr_nonnull(strstr(look(1000000), "refuses (4xx) most of its requests"));
    counted[1] = (struct weir_ion_figures){.n_requests = 100, .n_failed = 25};
    ck_assert_ptr_nonnull(strstr(look(1000000), "fails (5xx, or no answer)"));
}

END_TEST

START_TEST(requests_of_before_it_was_the_other_one_do_not_count)
{
    counted[2] = (struct weir_ion_figures){.n_requests = 5000};
    (void)look(1000000);
    counted[1] = (struct weir_ion_figures){.n_requests = 100, .n_unaccepted = 30};
    ck_assert_str_eq(look(500000), ""); /* mistakes of callers: version 2 was not asked since */
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("refusals");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_version_that_refuses_what_the_other_takes_is_told_while_it_does);
    tcase_add_test(tcase, mistakes_of_callers_and_few_requests_tell_nothing);
    tcase_add_test(tcase, a_version_alone_is_told_if_it_refuses_or_fails_most);
    tcase_add_test(tcase, requests_of_before_it_was_the_other_one_do_not_count);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
