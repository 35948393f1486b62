/* Memory that runs out: every allocation of a plan fails in turn and comes back as NOMEM. */
#include "sched/test/test_cluster.h"

#include "base/test_alloc.h"
#include "base/test_main.h"

START_TEST(every_failed_allocation_of_a_plan_is_reported)
{
    struct test_cluster cluster;
    struct weir_rng rng;
    static char fgd[] = "fgd";
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    long n_failed = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        if (seed == 5) {
            ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
            profile.placement = profile.placement_cpu = fgd;
        }
        weir_rng_init(&rng, seed, 0);
        test_cluster_random(&cluster, &rng, 6);
        struct weir_sched_plan *first = test_plan(&cluster, &profile);
        ck_assert_ptr_nonnull(first);
        test_apply(&cluster, first); /* So that there is somebody to evict. */
        weir_sched_plan_destroy(first);
        int32_t n = cluster.snapshot.n_jobs;
        for (int32_t j = 0; j < n / 2; j++) {
            cluster.jobs[j].priority = cluster.jobs[j].priority == 50 ? 49 : 120;
        }
        bool was_hit = true;
        for (long at = 0; was_hit; at++, n_failed++) {
            struct weir_sched_plan *plan = NULL;
            test_alloc_fail(at);
            weir_status status = weir_sched_plan(&cluster.snapshot, &profile, &plan, NULL);
            was_hit = test_alloc_end();
            ck_assert_int_eq(status, was_hit ? WEIR_ERR_NOMEM : WEIR_OK);
            ck_assert((plan == NULL) == was_hit);
            weir_sched_plan_destroy(plan);
        }
        test_cluster_fini(&cluster);
    }
    ck_assert_int_gt(n_failed, 100);
}

END_TEST

WEIR_TEST_MAIN("alloc", every_failed_allocation_of_a_plan_is_reported)
