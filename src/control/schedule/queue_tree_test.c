#include "control/queue_tree.h"
#include "control/schedule/queue_fixture.h"

static struct scheduler_fixture fixture;
static struct queue_tree tree;
static bool is_changed;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
    queue_tree_init(&tree);
    is_changed = false;
}

static void tear_down(void)
{
    queue_tree_fini(&tree);
    scheduler_fixture_fini(&fixture);
}

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return queue_tree_read(&tree, txn, &is_changed, err);
}

static bool read_again(void)
{
    is_changed = false;
    fixture_read(&fixture.store, read_in, NULL);
    return is_changed;
}

START_TEST(projects_without_a_queue_come_last_by_name_and_share_alike)
{
    (void)read_again();
    queue_tree_begin(&tree);
    queue_tree_add(&tree, "z");
    queue_tree_add(&tree, "a");
    queue_tree_add(&tree, "z");
    queue_tree_end(&tree);
    ck_assert_int_eq(tree.n_rows, 2);
    ck_assert_int_eq(queue_tree_find(&tree, "a"), 0);
    ck_assert_int_eq(queue_tree_find(&tree, "z"), 1);
    ck_assert_int_eq(queue_tree_find(&tree, "b"), WEIR_SCHED_NONE);
    ck_assert_int_eq(tree.rows[0].shares[WEIR_SCHED_CPU].weight, 1);
    ck_assert_int_eq(tree.rows[0].shares[WEIR_SCHED_CPU].quota, 0);
}

END_TEST

START_TEST(parents_come_before_their_children_and_a_change_is_noticed)
{
    ck_assert(read_again());
    ck_assert(!read_again());
    set_queue(&fixture, "leaf", "other", NULL, 2, "");
    set_queue(&fixture, "root", NULL, NULL, 4, ", \"limit\": 6");
    set_queue(&fixture, "leaf", "other", "root", 3, "");
    ck_assert(read_again());
    ck_assert(!read_again());
    ck_assert_int_eq(tree.n_set, 2);
    ck_assert_str_eq(tree.rows[0].name, "root");
    ck_assert_int_eq(tree.rows[0].shares[WEIR_SCHED_CPU].limit, 6000);
    ck_assert_str_eq(tree.rows[1].name, "leaf");
    ck_assert_int_eq(tree.rows[1].parent, 0);
    ck_assert_int_eq(tree.rows[1].shares[WEIR_SCHED_CPU].quota, 3000);
    for (int i = 0; i < 2; i++) {
        queue_tree_begin(&tree);
        queue_tree_add(&tree, "default");
        queue_tree_add(&tree, "other");
        queue_tree_end(&tree);
        ck_assert_int_eq(queue_tree_find(&tree, "other"), 1);
        ck_assert_int_eq(queue_tree_find(&tree, "default"), 2);
        ck_assert_int_eq(tree.n_rows, 3);
    }
}

END_TEST

static weir_status set_timed_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_queue queue = {
        .name = "q",
        .shares = "{\"models\": {\"H100\": {\"guarantee\": 2}}}",
        .times = "[{\"days\": [\"sat\"], \"from\": \"01:00\", \"until\": \"02:00\","
                 " \"shares\": {\"accelerators\": {\"limit\": 3}}}]",
        .min_run_ms = 7000};
    return weir_queue_set(txn, &queue, 1, err);
}

START_TEST(models_times_and_the_least_run_time_reach_the_planner)
{
    fixture_write(&fixture.store, set_timed_in, NULL);
    (void)read_again();
    ck_assert(tree.is_timed);
    const struct weir_sched_queue *row = &tree.rows[0];
    ck_assert_int_eq(row->reclaim_min_run_ms, 7000);
    ck_assert_int_eq(row->preempt_min_run_ms, 7000);
    ck_assert_int_eq(row->n_models, 1);
    ck_assert_str_eq(row->models[0].model, "H100");
    ck_assert_int_eq(row->models[0].share.quota, 2000);
    ck_assert_int_eq(row->n_timed_quotas, 1);
    ck_assert_int_eq(row->timed_quotas[0].days, 32);
    ck_assert_int_eq(row->timed_quotas[0].from_minute, 60);
    ck_assert_int_eq(row->timed_quotas[0].shares[WEIR_SCHED_ACCELERATOR].limit, 3000);
}

END_TEST

WEIR_TEST_MAIN_WITH("queue_tree", set_up, tear_down,
                    projects_without_a_queue_come_last_by_name_and_share_alike,
                    parents_come_before_their_children_and_a_change_is_noticed,
                    models_times_and_the_least_run_time_reach_the_planner)
