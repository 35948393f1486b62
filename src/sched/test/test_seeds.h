/** For property tests: how many random clusters they look at. */
#ifndef WEIR_SCHED_TEST_SEEDS_H
#define WEIR_SCHED_TEST_SEEDS_H

#include "base/test_main.h"

/** WEIR_SCHED_SEEDS of the environment, as the long run sets it; else `usual`, under a sanitizer a
 *  third of it. */
static inline int test_seeds(int usual)
{
    const char *wanted = getenv("WEIR_SCHED_SEEDS");
    return wanted != NULL ? (int)strtol(wanted, NULL, 10) : WEIR_TEST_TIMES(usual, usual / 3);
}

#endif
