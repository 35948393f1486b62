/** What the laws of the scheduler have in common: chance from one seed, and a plan that is carried out in memory. */
#ifndef WEIR_CLUSTER_KUBERNETES_LAW_FIXTURE_H
#define WEIR_CLUSTER_KUBERNETES_LAW_FIXTURE_H

#include "cluster/kubernetes/scheduler/world.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "sched/apply.h"
#include "sched/sched.h"

static struct weir_rng law_rng;

static inline int below(int n)
{
    return (int)weir_rng_below(&law_rng, (uint64_t)n);
}

static inline bool chance(int pct)
{
    return below(100) < pct;
}

/** Plan a world as the scheduler does, but for gangs that went stale; the executor gets what comes of it. */
static inline void law_plan(const struct world *world, const struct weir_sched_executor *executor)
{
    struct weir_sched_profile profile;
    struct weir_sched_plan *plan;
    struct weir_error err;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, &err), WEIR_OK);
    profile.actions = (char *)(uintptr_t) "allocate,reclaim,preempt";
    profile.move_victims = false;
    ck_assert_msg(weir_sched_plan(&world->snapshot, &profile, &plan, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_int_eq(weir_sched_apply(&world->snapshot, plan, executor, &err), WEIR_OK);
    weir_sched_plan_destroy(plan);
}

#endif
