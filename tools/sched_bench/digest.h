/** For measurements: a number that differs if plans differ, but for how they were found. */
#ifndef SCHED_BENCH_DIGEST_H
#define SCHED_BENCH_DIGEST_H

#include "sched/sched.h"

/** Mix a plan's actions, waits and shares into a digest; n_decisions does not count. */
uint64_t digest_plan(uint64_t digest, const struct weir_sched_plan *plan);

#endif
