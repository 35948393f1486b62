/* Shares by the clock: against moments whose weekday a calendar tells, and in a whole plan. */
#include "sched/share/timed_quota.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "sched/test/test_cluster.h"

/** 2024-01-01 was a Monday. */
#define MONDAY_MS ((int64_t)1704067200000)
#define HOUR_MS   ((int64_t)3600000)

static const struct {
    struct weir_sched_timed_quota timed;
    int64_t hours; /**< After Monday's midnight UTC. */
    bool holds;
} moments[] = {
    {{.days = 1, .from_minute = 480, .until_minute = 1080}, 8, true},
    {{.days = 1, .from_minute = 480, .until_minute = 1080}, 18, false},
    {{.days = 1, .from_minute = 480, .until_minute = 1080}, 32, false},
    {{.days = 2, .from_minute = 480, .until_minute = 1080}, 32, true},
    {{.days = 1, .from_minute = 480, .until_minute = 1080}, 7, false},
    {{.days = 64, .from_minute = 0, .until_minute = 1440}, -1, true},  /* Sunday before. */
    {{.days = 64, .from_minute = 1320, .until_minute = 360}, 5, true}, /* Began on Sunday. */
    {{.days = 64, .from_minute = 1320, .until_minute = 360}, 6, false},
    {{.days = 1, .from_minute = 1320, .until_minute = 360}, 5, false},
    {{.days = 0, .from_minute = 0, .until_minute = 1440}, 5, false},
};

START_TEST(a_window_holds_by_day_and_minute)
{
    ck_assert_int_eq(timed_quota_holds(&moments[_i].timed, MONDAY_MS + moments[_i].hours * HOUR_MS),
                     moments[_i].holds);
}

END_TEST

START_TEST(a_limit_holds_in_its_hours_only_and_not_for_kai)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 1, 1, 4);
    test_node(&cluster, 8);
    int32_t queue = test_queue(&cluster, -1, 8, 1, -1);
    test_job(&cluster, queue, 50, 1, 4);
    struct weir_sched_timed_quota timed = {.days = 127, .from_minute = 480, .until_minute = 1080};
    memcpy(timed.shares, cluster.queues[queue].shares, sizeof timed.shares);
    timed.shares[WEIR_SCHED_ACCELERATOR].limit = 2000;
    cluster.queues[queue].timed_quotas = &timed;
    cluster.queues[queue].n_timed_quotas = 1;

    static const struct {
        const char *profile;
        int64_t hours;
        int32_t n_binds;
    } cases[] = {{"default", 9, 0}, {"default", 20, 1}, {"kai", 9, 1}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_sched_profile profile;
        ck_assert_int_eq(weir_sched_profile_named(cases[i].profile, &profile, NULL), WEIR_OK);
        cluster.snapshot.now_ms = MONDAY_MS + cases[i].hours * HOUR_MS;
        struct weir_sched_plan *plan = test_plan(&cluster, &profile);
        ck_assert_int_eq(plan->n_actions, cases[i].n_binds);
        weir_sched_plan_destroy(plan);
    }
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("timed_quota",
                     {a_window_holds_by_day_and_minute, (int)WEIR_ARRAY_LEN(moments)},
                     {a_limit_holds_in_its_hours_only_and_not_for_kai, 0})
