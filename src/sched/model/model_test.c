/*
 * Shares of single models: one small cluster per rule, the outcome written down by hand. Nodes of
 * four H100 come first, then nodes of four A100.
 */
#include "sched/test/test_cluster.h"

#include "sched/model/node_index.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdio.h>

#define H100 WEIR_SCHED_FIRST_MODEL

static const struct weir_sched_label h100_label = {"model", "H100"}, a100_label = {"model", "A100"};

static struct weir_sched_profile profile(const char *name)
{
    struct weir_sched_profile out;
    ck_assert_int_eq(weir_sched_profile_named(name, &out, NULL), WEIR_OK);
    return out;
}

static void build(struct test_cluster *cluster, int n_h100_nodes, int n_a100_nodes)
{
    test_cluster_init(cluster, n_h100_nodes + n_a100_nodes, 8, 64, 256);
    for (int i = 0; i < n_h100_nodes + n_a100_nodes; i++) {
        bool is_h100 = i < n_h100_nodes;
        struct weir_sched_node *node = &cluster->nodes[test_node(cluster, 4)];
        node->model = is_h100 ? "H100" : "A100";
        node->labels = is_h100 ? &h100_label : &a100_label;
        node->n_labels = 1;
    }
}

/** In devices. */
static void share_h100(struct test_cluster *cluster, int32_t queue, int quota, int weight,
                       int limit)
{
    struct weir_sched_model_share *share =
        WEIR_ARENA_ARRAY(&cluster->arena, 1, struct weir_sched_model_share);
    *share = (struct weir_sched_model_share){
        "H100", {quota < 0 ? -1 : quota * 1000, weight, limit < 0 ? -1 : limit * 1000}};
    cluster->queues[queue].models = share;
    cluster->queues[queue].n_models = 1;
}

/** A job that must run on H100, or on A100, or may run on either (NULL). */
static struct weir_sched_job *job_on(struct test_cluster *cluster, int32_t queue, int priority,
                                     int n_tasks, const struct weir_sched_label *label)
{
    struct weir_sched_job *job = test_job(cluster, queue, priority, n_tasks, 1);
    for (int t = job->first_task; t < job->first_task + n_tasks; t++) {
        cluster->tasks[t].selector = label;
        cluster->tasks[t].n_selector = label != NULL;
    }
    return job;
}

static void run_on(struct test_cluster *cluster, struct weir_sched_job *job, int32_t node)
{
    for (int t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        cluster->tasks[t].state = WEIR_SCHED_RUNNING;
        cluster->tasks[t].node = node;
    }
    job->started_ms = TEST_NOW_MS - 600000;
}

static int count(const struct test_cluster *cluster, const struct weir_sched_plan *plan,
                 enum weir_sched_action_kind kind, const char *model)
{
    int n = 0;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        n += action->kind == kind && strcmp(cluster->nodes[action->node].model, model) == 0;
    }
    return n;
}

static void expect_wait(const struct weir_sched_plan *plan, int32_t job,
                        enum weir_sched_wait_code code, int32_t queue, int need, int have)
{
    for (int32_t i = 0; i < plan->n_waits; i++) {
        const struct weir_sched_wait *wait = &plan->waits[i];
        if (wait->job == job) {
            ck_assert_str_eq(weir_sched_wait_name(wait->code), weir_sched_wait_name(code));
            ck_assert_int_eq(wait->object, queue);
            ck_assert_int_eq(wait->resource, H100);
            ck_assert_int_eq(wait->need, need * 1000);
            ck_assert_int_eq(wait->have, have * 1000);
            ck_assert_ptr_nonnull(strstr(wait->text, "H100"));
            return;
        }
    }
    ck_abort_msg("job %d does not wait", (int)job);
}

START_TEST(a_queue_gets_no_more_of_a_model_than_its_limit)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 1, 1);
    int32_t queue = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, queue, 2, 1, 3);
    for (int i = 0; i < 4; i++) {
        job_on(&cluster, queue, 50, 1, &h100_label);
    }
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "H100"), 3);
    ck_assert_int_eq(plan->n_waits, 1);
    expect_wait(plan, 3, WEIR_SCHED_WAIT_QUEUE_LIMIT, queue, 4, 3);
    ck_assert_str_eq(plan->waits[0].text, "Queue queue-0 would use 4 accelerators of model H100; "
                                          "its limit is 3 accelerators of model H100.");
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_limit_holds_for_all_queues_below_it)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 1, 1);
    int32_t above = test_queue(&cluster, -1, 8, 1, -1), leaves[2];
    share_h100(&cluster, above, 2, 1, 2);
    for (int i = 0; i < 2; i++) {
        leaves[i] = test_queue(&cluster, above, 4, 1, -1);
        job_on(&cluster, leaves[i], 50, 1, &h100_label);
        job_on(&cluster, leaves[i], 50, 1, &h100_label);
    }
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "H100"), 2);
    ck_assert_int_eq(plan->n_waits, 2);
    expect_wait(plan, plan->waits[0].job, WEIR_SCHED_WAIT_QUEUE_LIMIT, above, 3, 2);
    ck_assert_int_eq(plan->queues[above].allocated.of[H100], 2000);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(non_preemptible_work_stays_within_the_quota_of_the_model)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 1, 1);
    int32_t queue = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, queue, 1, 1, -1);
    job_on(&cluster, queue, 100, 1, &h100_label);
    job_on(&cluster, queue, 100, 1, &h100_label);
    job_on(&cluster, queue, 100, 1, NULL); /* May have an A100 instead. */
    job_on(&cluster, queue, 50, 1, &h100_label);
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "H100"), 2);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "A100"), 1);
    ck_assert_int_eq(plan->n_waits, 1);
    expect_wait(plan, 1, WEIR_SCHED_WAIT_QUEUE_QUOTA, queue, 2, 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(work_for_either_model_goes_to_the_one_that_is_left)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 2, 1);
    int32_t bounded = test_queue(&cluster, -1, 8, 1, -1),
            free_one = test_queue(&cluster, -1, 4, 1, -1);
    share_h100(&cluster, bounded, 2, 1, 2);
    for (int i = 0; i < 7; i++) { /* Two on H100, four on A100: one is too many. */
        job_on(&cluster, bounded, 50, 1, NULL);
    }
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "H100"), 2);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "A100"), 4);
    ck_assert_int_eq(plan->n_waits, 1);
    expect_wait(plan, plan->waits[0].job, WEIR_SCHED_WAIT_QUEUE_LIMIT, bounded, 3, 2);
    test_apply(&cluster, plan);
    weir_sched_plan_destroy(plan);

    int32_t gang = cluster.snapshot.n_jobs; /* That one failed is no reason for a twin to. */
    job_on(&cluster, free_one, 40, 6, NULL);
    plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "H100"), 6);
    ck_assert_int_eq(plan->n_waits, 1);
    ck_assert_int_ne(plan->waits[0].job, gang);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_gang_for_either_model_is_divided_at_the_limit)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 1, 1);
    int32_t queue = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, queue, 1, 1, 1);
    job_on(&cluster, queue, 50, 5, NULL);
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "H100"), 1);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "A100"), 4);
    weir_sched_plan_destroy(plan);
    cluster.snapshot.n_tasks++; /* The next one finds no place, and so none has one. */
    cluster.jobs[0].n_tasks++;
    cluster.tasks[5] = cluster.tasks[4];
    plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(plan->n_actions, 0);
    ck_assert_int_eq(plan->n_waits, 1);
    expect_wait(plan, 0, WEIR_SCHED_WAIT_QUEUE_LIMIT, queue, 2, 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(what_is_left_over_of_a_model_is_divided_by_weight)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 3, 1);
    int32_t light = test_queue(&cluster, -1, 4, 1, -1), heavy = test_queue(&cluster, -1, 4, 1, -1);
    int32_t none = test_queue(&cluster, -1, 4, 1, -1);
    share_h100(&cluster, light, 4, 1, -1);
    share_h100(&cluster, heavy, 4, 3, -1);
    for (int i = 0; i < 12; i++) {
        job_on(&cluster, light, 50, 1, &h100_label);
        job_on(&cluster, heavy, 50, 1, &h100_label);
    }
    job_on(&cluster, none, 50, 1, NULL);
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(plan->queues[light].requested.of[H100], 12000);
    ck_assert_int_eq(plan->queues[light].fair_share.of[H100], 5000); /* 4 and a quarter of 4. */
    ck_assert_int_eq(plan->queues[heavy].fair_share.of[H100], 7000);
    ck_assert_int_eq(plan->queues[none].requested.of[H100], 0); /* Whatever it may get. */
    ck_assert_int_eq(plan->queues[none].requested.of[WEIR_SCHED_ACCELERATOR], 1000);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_claim_within_quota_gets_devices_of_its_model_back)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 2, 2);
    int32_t owner = test_queue(&cluster, -1, 8, 1, -1), other = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, owner, 4, 1, -1);
    share_h100(&cluster, other, 4, 1, -1);
    for (int node = 0; node < 4; node++) { /* All sixteen devices, one by one. */
        for (int i = 0; i < 4; i++) {
            run_on(&cluster, job_on(&cluster, other, 50, 1, NULL), node);
        }
    }
    for (int i = 0; i < 6; i++) { /* Two beyond the quota. */
        job_on(&cluster, owner, 50, 1, &h100_label);
    }
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_EVICT, "H100"), 4);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_EVICT, "A100"), 0);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_PIPELINE, "H100"), 4);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** `owner` claims; `other` has more than it should in all, but of H100 only what it is guaranteed.
 */
static struct weir_sched_plan *claim(struct test_cluster *cluster, int quota_of_leaf,
                                     int quota_above, const struct weir_sched_label *label)
{
    struct weir_sched_profile kai = profile("kai");
    build(cluster, 1, 1);
    int32_t owner = test_queue(cluster, -1, 8, 1, -1), above = test_queue(cluster, -1, 0, 1, -1);
    int32_t other = test_queue(cluster, above, 0, 1, -1);
    if (quota_of_leaf >= 0) {
        share_h100(cluster, other, quota_of_leaf, 1, -1);
    }
    if (quota_above >= 0) {
        share_h100(cluster, above, quota_above, 1, -1);
    }
    for (int node = 0; node < 2; node++) {
        for (int i = 0; i < 4; i++) {
            run_on(cluster, job_on(cluster, other, 50, 1, NULL), node);
        }
    }
    for (int i = 0; i < 8; i++) {
        job_on(cluster, owner, 50, 1, label);
    }
    return test_plan(cluster, &kai);
}

static const struct {
    int quota_of_leaf, quota_above;
    const struct weir_sched_label *label;
    int n_h100, n_a100;
} claims[] = {
    {4, 4, NULL, 0, 4},   /* What is guaranteed stays, what is not goes. */
    {-1, 4, NULL, 0, 4},  /* Guaranteed to a queue above. */
    {4, -1, NULL, 0, 4},  /* Nobody above says otherwise. */
    {4, 0, NULL, 4, 4},   /* Somebody above does. */
    {-1, -1, NULL, 4, 4}, /* Only the accelerators in all count. */
    {4, 4, &h100_label, 0, 0}, {0, 0, &h100_label, 4, 0}, {-1, -1, &h100_label, 4, 0},
};

START_TEST(work_within_the_quota_of_its_model_is_not_reclaimed)
{
    struct test_cluster cluster;
    struct weir_sched_plan *plan =
        claim(&cluster, claims[_i].quota_of_leaf, claims[_i].quota_above, claims[_i].label);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_EVICT, "H100"), claims[_i].n_h100);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_EVICT, "A100"), claims[_i].n_a100);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(what_a_queue_has_of_a_model_costs_it_nothing_else)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 2, 0);
    int32_t owner = test_queue(&cluster, -1, 8, 1, -1), other = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, owner, 4, 1, -1);
    share_h100(&cluster, other, 0, 1, -1);
    struct weir_sched_job *fixed = job_on(&cluster, other, 100, 4, NULL);
    run_on(&cluster, fixed, 0); /* More than it is guaranteed, but nobody may take it. */
    struct weir_sched_job *cpu = test_job(&cluster, other, 50, 1, 0);
    cluster.tasks[cpu->first_task].demand.cpu_milli = 64000;
    run_on(&cluster, cpu, 1); /* In the way on the other node, and no H100. */
    job_on(&cluster, owner, 50, 1, &h100_label);
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(plan->n_actions, 0);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(who_is_within_the_quota_of_a_model_is_served_first)
{
    static char allocate[] = "allocate";
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    kai.actions = allocate; /* Or the other one would claim it back in the same cycle. */
    build(&cluster, 1, 1);
    int32_t older = test_queue(&cluster, -1, 4, 1, -1),
            younger = test_queue(&cluster, -1, 4, 1, -1);
    share_h100(&cluster, older, 1, 1, -1);
    share_h100(&cluster, younger, 2, 1, -1);
    run_on(&cluster, job_on(&cluster, older, 50, 3, &h100_label), 0);
    run_on(&cluster, job_on(&cluster, younger, 50, 3, &a100_label), 1);
    job_on(&cluster, older, 50, 1, &h100_label);
    struct weir_sched_job *within = job_on(&cluster, younger, 50, 1, &h100_label);
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(plan->n_actions, 1);
    ck_assert_int_eq(plan->actions[0].task, within->first_task);
    weir_sched_plan_destroy(plan);
    cluster.queues[older].n_models = cluster.queues[younger].n_models = 0;
    plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(plan->actions[0].task, within->first_task - 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(higher_priority_takes_the_queues_last_devices_of_a_model)
{
    struct test_cluster cluster;
    struct weir_sched_profile kai = profile("kai");
    build(&cluster, 2, 0); /* Half of it stays free: it is the limit that is in the way. */
    int32_t queue = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, queue, 4, 1, 4);
    for (int i = 0; i < 4; i++) {
        run_on(&cluster, job_on(&cluster, queue, 50, 1, &h100_label), 0);
    }
    job_on(&cluster, queue, 75, 1, &h100_label);
    struct weir_sched_plan *plan = test_plan(&cluster, &kai);
    ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_EVICT, "H100"), 1);
    ck_assert_int_eq(plan->queues[queue].allocated.of[H100], 4000);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_job_at_a_models_limit_is_told_when_its_queue_has_some_again)
{
    struct test_cluster cluster;
    struct weir_sched_profile rules = profile("default");
    build(&cluster, 1, 0);
    int32_t queue = test_queue(&cluster, -1, 4, 1, -1);
    share_h100(&cluster, queue, 2, 1, 2);
    for (int i = 0; i < 2; i++) {
        struct weir_sched_job *job = job_on(&cluster, queue, 50, 1, &h100_label);
        run_on(&cluster, job, 0);
        job->time_limit_ms = 600000 + (2 - i) * 60000; /* The second ends in a minute. */
    }
    job_on(&cluster, queue, 50, 1, &h100_label);
    struct weir_sched_plan *plan = test_plan(&cluster, &rules);
    ck_assert_int_eq(plan->n_actions, 0);
    expect_wait(plan, 2, WEIR_SCHED_WAIT_QUEUE_LIMIT, queue, 3, 2);
    ck_assert_int_eq(plan->waits[0].expected_start_ms, TEST_NOW_MS + 60000);
    ck_assert_int_eq(plan->waits[0].after_job, 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_start_that_is_foreseen_takes_its_part_of_the_model)
{
    struct test_cluster cluster;
    struct weir_sched_profile rules = profile("default");
    build(&cluster, 1, 1);
    int32_t queue = test_queue(&cluster, -1, 8, 1, -1), other = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, queue, 1, 1, 1);
    struct weir_sched_job *first = job_on(&cluster, queue, 50, 1, NULL);
    run_on(&cluster, first, 0);
    first->time_limit_ms = 660000; /* A minute more. */
    struct weir_sched_job *long_one = job_on(&cluster, other, 50, 4, &a100_label);
    run_on(&cluster, long_one, 1);
    long_one->time_limit_ms = 6000000;
    for (int i = 0; i < 2; i++) { /* Either of them could follow the first, but one at a time. */
        job_on(&cluster, queue, 50, 1, NULL)->time_limit_ms = 600000;
    }
    struct weir_sched_plan *plan = test_plan(&cluster, &rules);
    ck_assert_int_eq(plan->n_actions, 0);
    ck_assert_int_eq(plan->n_waits, 2);
    ck_assert_int_eq(plan->waits[0].expected_start_ms, TEST_NOW_MS + 60000);
    ck_assert_int_eq(plan->waits[1].expected_start_ms, TEST_NOW_MS + 660000);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_window_changes_the_share_of_one_model)
{
    struct test_cluster cluster;
    struct weir_sched_profile rules = profile("default");
    build(&cluster, 1, 1);
    int32_t queue = test_queue(&cluster, -1, 8, 1, -1);
    share_h100(&cluster, queue, 1, 1, 1);
    const struct weir_sched_model_share more = {"H100", {3000, 1, 3000}};
    struct weir_sched_timed_quota timed = {
        .days = 127, .until_minute = 1440, .models = &more, .n_models = 1};
    memcpy(timed.shares, cluster.queues[queue].shares, sizeof timed.shares);
    for (int i = 0; i < 4; i++) {
        job_on(&cluster, queue, 50, 1, &h100_label);
    }
    for (int n_timed_quotas = 0; n_timed_quotas < 2; n_timed_quotas++) {
        cluster.queues[queue].timed_quotas = &timed;
        cluster.queues[queue].n_timed_quotas = n_timed_quotas;
        struct weir_sched_plan *plan = test_plan(&cluster, &rules);
        ck_assert_int_eq(count(&cluster, plan, WEIR_SCHED_BIND, "H100"),
                         n_timed_quotas == 0 ? 1 : 3);
        weir_sched_plan_destroy(plan);
    }
    test_cluster_fini(&cluster);
}

END_TEST

/** Against a look at every node. */
START_TEST(a_walk_leaves_out_the_parts_that_are_closed)
{
    enum { N = 60, PARTS = 5 };

    struct weir_rng rng;
    struct node_index index;
    uint8_t parts[N];
    weir_rng_init(&rng, (uint64_t)_i, 29);
    for (int i = 0; i < N; i++) {
        parts[i] = (uint8_t)weir_rng_below(&rng, PARTS);
    }
    ck_assert_int_eq(node_index_init(&index, N, parts, PARTS), WEIR_OK);
    for (int i = 0; i < 4 * N; i++) {
        int32_t node = (int32_t)weir_rng_below(&rng, N);
        if (weir_rng_below(&rng, 3) == 0) {
            node_index_clear(&index, node);
        } else {
            node_index_set(&index, node, (int64_t)weir_rng_below(&rng, 20));
        }
        uint32_t open = (uint32_t)weir_rng_below(&rng, 1U << PARTS);
        int64_t from = (int64_t)weir_rng_below(&rng, 20);
        int32_t least = -1;
        for (int32_t n = 0; n < N; n++) {
            int64_t key = index.entries[n].key;
            bool is_there = index.entries[n].is_in && (open >> parts[n] & 1) != 0;
            bool is_least = is_there && (key > from || (key == from && n >= node));
            if (is_least && (least < 0 || key < index.entries[least].key)) {
                least = n;
            }
        }
        ck_assert_int_eq(node_index_at_least(&index, open, from, node), least);
    }
    node_index_fini(&index);
}

END_TEST

START_TEST(more_models_than_are_counted_are_refused)
{
    struct test_cluster cluster;
    struct weir_error err = {0};
    build(&cluster, 1, 0);
    int32_t first = test_queue(&cluster, -1, 4, 1, -1), second = test_queue(&cluster, -1, 4, 1, -1);
    struct weir_sched_model_share shares[WEIR_SCHED_MODELS_MAX + 1];
    for (int i = 0; i <= WEIR_SCHED_MODELS_MAX; i++) {
        shares[i] = (struct weir_sched_model_share){
            weir_arena_printf(&cluster.arena, "model-%d", i), {1000, 1, -1}};
    }
    cluster.queues[first].models = shares;
    cluster.queues[first].n_models = WEIR_SCHED_MODELS_MAX;
    cluster.queues[second].models = &shares[3];
    cluster.queues[second].n_models = 1;
    ck_assert_int_eq(weir_sched_snapshot_check(&cluster.snapshot, &err), WEIR_OK);
    cluster.queues[second].models = &shares[WEIR_SCHED_MODELS_MAX];
    ck_assert_int_eq(weir_sched_snapshot_check(&cluster.snapshot, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "queue-1"));
    shares[1].model = shares[0].model;
    ck_assert_int_eq(weir_sched_snapshot_check(&cluster.snapshot, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "twice"));
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("model", {a_queue_gets_no_more_of_a_model_than_its_limit, 0},
                     {a_limit_holds_for_all_queues_below_it, 0},
                     {non_preemptible_work_stays_within_the_quota_of_the_model, 0},
                     {work_for_either_model_goes_to_the_one_that_is_left, 0},
                     {a_gang_for_either_model_is_divided_at_the_limit, 0},
                     {what_is_left_over_of_a_model_is_divided_by_weight, 0},
                     {a_claim_within_quota_gets_devices_of_its_model_back, 0},
                     {work_within_the_quota_of_its_model_is_not_reclaimed,
                      (int)WEIR_ARRAY_LEN(claims)},
                     {what_a_queue_has_of_a_model_costs_it_nothing_else, 0},
                     {who_is_within_the_quota_of_a_model_is_served_first, 0},
                     {higher_priority_takes_the_queues_last_devices_of_a_model, 0},
                     {a_job_at_a_models_limit_is_told_when_its_queue_has_some_again, 0},
                     {a_start_that_is_foreseen_takes_its_part_of_the_model, 0},
                     {a_window_changes_the_share_of_one_model, 0},
                     {a_walk_leaves_out_the_parts_that_are_closed, 10},
                     {more_models_than_are_counted_are_refused, 0})
