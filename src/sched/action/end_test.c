/*
 * Work that is asked to go, goes on its own account, or keeps a place: one small cluster each, the
 * outcome written down by hand.
 */
#include "sched/test/test_workload.h"

#include "base/macros.h"
#include "base/test_main.h"

/** Two queues of four devices each on a node of eight, all of them run by jobs of the second. */
static void build(struct test_cluster *cluster, int32_t *out_owner, int32_t *out_borrower)
{
    test_cluster_init(cluster, 2, 4, 8, 16);
    test_node(cluster, 8);
    *out_owner = test_queue(cluster, -1, 4, 1, -1);
    *out_borrower = test_queue(cluster, -1, 4, 1, -1);
}

START_TEST(work_is_asked_to_save_once_and_evicted_when_it_has)
{
    struct test_cluster cluster;
    int32_t owner, borrower;
    build(&cluster, &owner, &borrower);
    struct weir_sched_job *victim = test_running_job(&cluster, borrower, 0, 8, 0);
    victim->can_checkpoint = true;
    test_job(&cluster, owner, 50, 1, 4);
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 0, WEIR_SCHED_REQUEST_CHECKPOINT));
    ck_assert_ptr_null(test_action(plan, 0, WEIR_SCHED_EVICT));
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_PIPELINE));
    test_carry_out(&cluster, plan);
    weir_sched_plan_destroy(plan);

    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 0);
    weir_sched_plan_destroy(plan);

    victim->evict_acknowledged = true;
    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 1);
    ck_assert_int_eq(test_action(plan, 0, WEIR_SCHED_EVICT)->reason, WEIR_SCHED_EVICT_AFTER_GRACE);
    weir_sched_plan_destroy(plan);

    victim->evict_acknowledged = false;
    cluster.snapshot.now_ms += profile.evict_grace_ms;
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 0, WEIR_SCHED_EVICT));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(the_victim_with_a_fresh_checkpoint_goes_and_the_idle_one_before_it)
{
    struct test_cluster cluster;
    int32_t owner, borrower;
    build(&cluster, &owner, &borrower);
    test_running_job(&cluster, borrower, 0, 4, 0)->checkpoint_ms = TEST_NOW_MS - 1000;
    struct weir_sched_job *other = test_running_job(&cluster, borrower, 0, 4, 4);
    test_job(&cluster, owner, 50, 1, 4);
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 0, WEIR_SCHED_EVICT));
    ck_assert_ptr_null(test_action(plan, 1, WEIR_SCHED_EVICT));
    weir_sched_plan_destroy(plan);

    other->utilisation_pct = 1;
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_null(test_action(plan, 0, WEIR_SCHED_EVICT));
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_EVICT));
    weir_sched_plan_destroy(plan);

    other->utilisation_pct = -1; /* By the rules of kai the youngest goes. */
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_EVICT));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_job_over_its_time_limit_finishes_and_an_idle_one_is_taken_back)
{
    struct test_cluster cluster;
    int32_t owner, borrower;
    build(&cluster, &owner, &borrower);
    test_running_job(&cluster, borrower, 0, 2, 0)->time_limit_ms = 600000;
    test_running_job(&cluster, borrower, 0, 2, 2)->time_limit_ms = 600001;
    struct weir_sched_job *idle = test_running_job(&cluster, borrower, 0, 2, 4);
    struct weir_sched_profile profile = test_profile_default();
    idle->utilisation_pct = (int32_t)profile.idle_pct - 1;
    idle->idle_since_ms = TEST_NOW_MS - profile.idle_after_ms;
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 2);
    ck_assert_int_eq(test_action(plan, 0, WEIR_SCHED_EVICT)->reason, WEIR_SCHED_EVICT_TIME_LIMIT);
    ck_assert_int_eq(test_action(plan, 2, WEIR_SCHED_EVICT)->reason, WEIR_SCHED_EVICT_IDLE);
    weir_sched_plan_destroy(plan);

    idle->idle_since_ms += 1;
    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_promised_place_is_kept_from_an_older_job_and_bound_when_free)
{
    struct test_cluster cluster;
    int32_t owner, borrower;
    build(&cluster, &owner, &borrower);
    test_job(&cluster, owner, 50, 1, 8); /* Would come first. */
    test_job(&cluster, owner, 50, 1, 4);
    static const int32_t devices[] = {4, 5, 6, 7};
    struct weir_sched_task *task = &cluster.tasks[1];
    struct weir_sched_nomination nomination = {.node = 0, .devices = devices};
    test_node(&cluster, 4);
    task->state = WEIR_SCHED_RELEASING; /* It moves from the second node. */
    task->node = 1;
    task->nomination = &nomination;
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 0);
    weir_sched_plan_destroy(plan);

    task->state = WEIR_SCHED_PIPELINED;
    task->node = 0;
    task->devices = devices;
    task->nomination = NULL;
    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 1);
    ck_assert_int_eq(test_action(plan, 1, WEIR_SCHED_BIND)->devices[0], 4);
    weir_sched_plan_destroy(plan);

    cluster.nodes[0].is_cordoned = true; /* Cannot be kept: it goes where there is room. */
    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(test_action(plan, 1, WEIR_SCHED_BIND)->node, 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(the_user_who_has_less_goes_first_among_equals)
{
    struct test_cluster cluster;
    int32_t owner, borrower;
    build(&cluster, &owner, &borrower);
    test_running_job(&cluster, owner, 0, 4, 0)->user = "ann";
    test_job(&cluster, owner, 50, 1, 4)->user = "ann";
    test_job(&cluster, owner, 50, 1, 4)->user = "bea";
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 2, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    cluster.jobs[1].priority = 60; /* Not equal. */
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_MAIN("end", work_is_asked_to_save_once_and_evicted_when_it_has,
               the_victim_with_a_fresh_checkpoint_goes_and_the_idle_one_before_it,
               a_job_over_its_time_limit_finishes_and_an_idle_one_is_taken_back,
               a_promised_place_is_kept_from_an_older_job_and_bound_when_free,
               the_user_who_has_less_goes_first_among_equals)
