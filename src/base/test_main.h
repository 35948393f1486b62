/** What every Check program of the project ends with: run one suite, exit 0 if nothing failed. */
#ifndef WEIR_BASE_TEST_MAIN_H
#define WEIR_BASE_TEST_MAIN_H

#include <check.h>
#include <stdlib.h>

/**
 * How often a test tries the same law again: `n` times, or `n_sanitized` where a sanitizer makes
 * each try 3 to 20 times slower. It looks at the code on the way; how many random cases hold is
 * what the other builds say.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_TEST_TIMES(n, n_sanitized) (n_sanitized)
#else
#define WEIR_TEST_TIMES(n, n_sanitized) (n)
#endif

static inline int weir_test_run_as(Suite *suite, enum fork_status forks)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, forks);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/** Run `suite`; CK_FORK=no in the environment keeps the tests in this process. */
static inline int weir_test_run(Suite *suite)
{
    return weir_test_run_as(suite, CK_FORK_GETENV);
}

/** The same, always in this process: for tests that start processes of their own. */
static inline int weir_test_run_here(Suite *suite)
{
    return weir_test_run_as(suite, CK_NOFORK);
}

/** A suite of one case: set_up, a test, tear_down for each of them. Both may be NULL. */
static inline Suite *weir_test_suite_with(const char *name, SFun set_up, SFun tear_down,
                                          const TTest *const *tests, size_t n_tests)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < n_tests; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    return suite;
}

static inline Suite *weir_test_suite(const char *name, const TTest *const *tests, size_t n_tests)
{
    return weir_test_suite_with(name, NULL, NULL, tests, n_tests);
}

/** The whole of main: WEIR_TEST_MAIN_WITH(name, set_up, tear_down, tests …). */
#define WEIR_TEST_MAIN_WITH(name, set_up, tear_down, ...)                                          \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return weir_test_run(weir_test_suite_with((name), (set_up), (tear_down), tests,            \
                                                  sizeof tests / sizeof tests[0]));                \
    }

#define WEIR_TEST_MAIN(name, ...) WEIR_TEST_MAIN_WITH(name, NULL, NULL, __VA_ARGS__)

/** A test, or one that is run for _i from 0 to n_loops - 1: for each row of a table, or each seed.
 */
struct weir_test_loop {
    const TTest *test;
    int n_loops; /**< 0: not a loop. */
};

static inline Suite *weir_test_loops(const char *name, const struct weir_test_loop *loops,
                                     size_t n_loops)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < n_loops; i++) {
        tcase_add_loop_test(tcase, loops[i].test, 0, loops[i].n_loops > 0 ? loops[i].n_loops : 1);
    }
    suite_add_tcase(suite, tcase);
    return suite;
}

/** The whole of main: WEIR_TEST_LOOPS_MAIN(name, {a test, n}, {another} …). */
#define WEIR_TEST_LOOPS_MAIN(name, ...)                                                            \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct weir_test_loop loops[] = {__VA_ARGS__};                                       \
        return weir_test_run(weir_test_loops((name), loops, sizeof loops / sizeof loops[0]));      \
    }

#endif
