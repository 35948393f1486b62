#include "sched/apply.h"

#include "base/macros.h"
#include "sched/test/test_workload.h"

/* Three jobs of two tasks each: 0 and 1, 2 and 3, 4 and 5. */
static struct test_cluster cluster;
static struct weir_sched_action actions[8];
static struct weir_sched_wait waits[1];
static struct weir_sched_plan plan;

static char told[512]; /* What the executor below heard, in order. */
static int32_t fails_at;

static void set_up(void)
{
    test_cluster_init(&cluster, 2, 1, 3, 6);
    test_node(&cluster, 8);
    test_node(&cluster, 8);
    test_queue(&cluster, -1, -1, 1, -1);
    for (int j = 0; j < 3; j++) {
        test_job(&cluster, 0, 50, 2, 1);
    }
    waits[0] = (struct weir_sched_wait){.job = 1, .code = WEIR_SCHED_WAIT_FULL};
    plan = (struct weir_sched_plan){.actions = actions};
    told[0] = '\0';
    fails_at = -1;
}

static void tear_down(void)
{
    test_cluster_fini(&cluster);
}

static void add(enum weir_sched_action_kind kind, int32_t task)
{
    actions[plan.n_actions++] = (struct weir_sched_action){.kind = kind, .task = task, .node = 1};
}

static void tell(const char *verb, const struct weir_sched_part *part)
{
    size_t len = strlen(told);
    len += (size_t)snprintf(told + len, sizeof told - len, "%s %d:", verb, part->job);
    for (int32_t i = 0; i < part->n_actions; i++) {
        len += (size_t)snprintf(told + len, sizeof told - len, " %d", part->actions[i]->task);
    }
    (void)snprintf(told + len, sizeof told - len, "; ");
}

static weir_status evict(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    (void)context;
    (void)err;
    tell("evict", part);
    return WEIR_OK;
}

static weir_status place(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    (void)context;
    if (part->job == fails_at) {
        return weir_error_set(err, WEIR_ERR_IO, "job %d", part->job);
    }
    tell(weir_sched_part_is_bound(part) ? "bind" : "nominate", part);
    return WEIR_OK;
}

static weir_status wait(void *context, const struct weir_sched_wait *why, struct weir_error *err)
{
    (void)context;
    (void)err;
    size_t len = strlen(told);
    (void)snprintf(told + len, sizeof told - len, "wait %d; ", why->job);
    return WEIR_OK;
}

static const struct weir_sched_executor listener = {evict, place, wait, NULL};

START_TEST(a_job_is_handed_out_whole_and_evictions_come_first)
{
    struct weir_error err;
    add(WEIR_SCHED_BIND, 4);
    add(WEIR_SCHED_EVICT, 1);
    add(WEIR_SCHED_PIPELINE, 2);
    add(WEIR_SCHED_REQUEST_CHECKPOINT, 0);
    add(WEIR_SCHED_BIND, 5);
    add(WEIR_SCHED_BIND, 3);
    plan.waits = waits;
    plan.n_waits = 1;
    ck_assert_int_eq(weir_sched_apply(&cluster.snapshot, &plan, &listener, &err), WEIR_OK);
    ck_assert_str_eq(told, "evict 0: 1 0; bind 2: 4 5; nominate 1: 2 3; wait 1; ");
}

END_TEST

START_TEST(an_error_finishes_it_and_is_returned)
{
    struct weir_error err;
    add(WEIR_SCHED_BIND, 0);
    add(WEIR_SCHED_BIND, 2);
    add(WEIR_SCHED_BIND, 4);
    fails_at = 1;
    ck_assert_int_eq(weir_sched_apply(&cluster.snapshot, &plan, &listener, &err), WEIR_ERR_IO);
    ck_assert_str_eq(told, "bind 0: 0; ");
    ck_assert_str_eq(err.message, "job 1");
}

END_TEST

START_TEST(what_an_executor_cannot_do_is_refused_before_anything_is_done)
{
    struct weir_error err;
    struct weir_sched_executor binder = {.place = place};
    add(WEIR_SCHED_BIND, 0);
    add(WEIR_SCHED_EVICT, 2);
    ck_assert_int_eq(weir_sched_apply(&cluster.snapshot, &plan, &binder, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_str_eq(told, "");
}

END_TEST

START_TEST(a_plan_of_nothing_hands_out_nothing)
{
    struct weir_error err;
    struct weir_sched_executor nobody = {0};
    ck_assert_int_eq(weir_sched_apply(&cluster.snapshot, &plan, &nobody, &err), WEIR_OK);
}

END_TEST

START_TEST(rows_change_as_a_cluster_would)
{
    struct weir_error err;
    int32_t devices[] = {5};
    const struct weir_sched_rows rows = {&cluster.snapshot, cluster.jobs, cluster.tasks,
                                         &cluster.arena};
    cluster.tasks[0].state = cluster.tasks[1].state = WEIR_SCHED_RUNNING;
    cluster.tasks[0].node = cluster.tasks[1].node = 0;
    add(WEIR_SCHED_REQUEST_CHECKPOINT, 0);
    add(WEIR_SCHED_EVICT, 1);
    actions[1].reason = WEIR_SCHED_EVICT_IDLE;
    add(WEIR_SCHED_PIPELINE, 0);
    add(WEIR_SCHED_BIND, 2);
    actions[3].devices = devices;
    actions[3].n_devices = 1;
    add(WEIR_SCHED_PIPELINE, 4);
    ck_assert_int_eq(weir_sched_apply_to_rows(&rows, &plan, &err), WEIR_OK);
    devices[0] = 0; /* The plan's memory is not the rows'. */

    ck_assert(cluster.tasks[0].is_leaving);
    ck_assert_int_eq(cluster.tasks[0].state, WEIR_SCHED_RUNNING);
    ck_assert_int_eq(cluster.tasks[0].node, 0);
    ck_assert_int_eq(cluster.tasks[0].nomination->node, 1);
    ck_assert_int_eq(cluster.jobs[0].checkpoint_requested_ms, TEST_NOW_MS);
    ck_assert_int_eq(cluster.tasks[1].state, WEIR_SCHED_DONE);
    ck_assert_int_eq(cluster.tasks[2].state, WEIR_SCHED_RUNNING);
    ck_assert_int_eq(cluster.tasks[2].node, 1);
    ck_assert_int_eq(cluster.tasks[2].devices[0], 5);
    ck_assert_int_eq(cluster.jobs[1].started_ms, TEST_NOW_MS);
    ck_assert_int_eq(cluster.tasks[4].state, WEIR_SCHED_PIPELINED);
    ck_assert_int_eq(cluster.jobs[2].started_ms, 0);
    ck_assert_int_eq(cluster.tasks[5].state, WEIR_SCHED_PENDING);
}

END_TEST

WEIR_TEST_MAIN_WITH("apply", set_up, tear_down, a_job_is_handed_out_whole_and_evictions_come_first,
                    an_error_finishes_it_and_is_returned,
                    what_an_executor_cannot_do_is_refused_before_anything_is_done,
                    a_plan_of_nothing_hands_out_nothing, rows_change_as_a_cluster_would)
