/** What every Check program of the project ends with: run one suite, exit 0 if nothing failed. */
#ifndef WEIR_BASE_TEST_MAIN_H
#define WEIR_BASE_TEST_MAIN_H

#include <check.h>
#include <stdlib.h>

/** Run `suite`; CK_FORK=no in the environment keeps the tests in this process. */
static inline int weir_test_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/** A suite of one case with these test functions (ended by NULL). */
static inline Suite *weir_test_suite(const char *name, const TTest *const *tests, size_t n_tests)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < n_tests; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    return suite;
}

#define WEIR_TEST_MAIN(name, ...)                                                                  \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return weir_test_run(weir_test_suite((name), tests, sizeof tests / sizeof tests[0]));      \
    }

#endif
