/* What tasks use becomes metrics of their run, and of no other. */
#include "control/schedule/scheduler_fixture.h"
#include "control/task_use.h"

#include "base/test_main.h"
#include "track/track.h"

static struct scheduler_fixture fixture;

struct told {
    const char *node;
    const struct task_use *uses;
    size_t n;
};

static weir_status use_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct told *told = context;
    struct control control = {.arena = &fixture.store.arena, .now_ms = fixture.now_ms};
    return control_task_use(&control, txn, told->node, told->uses, told->n, err);
}

static void tell(const char *node, const struct task_use *uses, size_t n)
{
    struct told given = {node, uses, n};
    fixture_write(&fixture.store, use_in, &given);
}

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_metric *metrics;
    size_t n;
    char **out = context;
    *out = "";
    MUST(weir_metrics_list(txn, "r1", NULL, 0, 100, &fixture.store.arena, &metrics, &n, err));
    for (size_t i = 0; i < n; i++) {
        *out = weir_arena_printf(&fixture.store.arena, "%s%s@%lld=%g ", *out, metrics[i].key,
                                 (long long)metrics[i].step, metrics[i].value);
    }
    return WEIR_OK;
}

/** "KEY@STEP=VALUE " of all metrics of the run, by key and step. */
static const char *metrics(void)
{
    char *text;
    fixture_write(&fixture.store, read_in, &text);
    return text;
}

/* A job of so many tasks on node "a" works for run "r1", which began when it was made. */
static void begin(size_t n_tasks)
{
    scheduler_fixture_make(&fixture);
    heartbeat(&fixture, "a", 8);
    struct new_job job = {.kind = "command",
                          .project = "default",
                          .n_tasks = n_tasks,
                          .cpu_millis = 1000,
                          .created_ms = fixture.now_ms,
                          .id = "j",
                          .arena = &fixture.store.arena};
    fixture_write(&fixture.store, new_job_in, &job);
    ck_assert_int_eq(cycle(&fixture), (int32_t)n_tasks);
    execute(&fixture, "INSERT INTO runs (id, name, project, kind, status, job, dataset_version,"
                      " created_ms, finished_ms) VALUES ('r1', 'r1', 'default', 'command',"
                      " 'RUNNING', 'j', 0, 1000000, 0)");
    execute(&fixture, "UPDATE jobs SET run = 'r1' WHERE id = 'j'");
    fixture.now_ms += 5500;
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

START_TEST(the_step_is_the_second_of_the_run)
{
    begin(1);
    tell("a", &(struct task_use){"j-000", 1, 1.5, 4096}, 1);
    ck_assert_str_eq(metrics(), "system/cpu_cores@5=1.5 system/memory_bytes@5=4096 ");
}

END_TEST

START_TEST(tasks_of_a_gang_are_told_apart)
{
    begin(2);
    tell("a", (const struct task_use[]){{"j-000", 1, 1, 10}, {"j-001", 1, 2, 20}}, 2);
    ck_assert_str_eq(metrics(), "system/task_0/cpu_cores@5=1 system/task_0/memory_bytes@5=10 "
                                "system/task_1/cpu_cores@5=2 system/task_1/memory_bytes@5=20 ");
}

END_TEST

START_TEST(what_is_not_the_nodes_or_over_or_untracked_is_passed_over)
{
    begin(1);
    tell("b", &(struct task_use){"j-000", 1, 1, 10}, 1);
    tell("a", (const struct task_use[]){{"j-000", 2, 1, 10}, {"none", 1, 1, 10}}, 2);
    execute(&fixture, "UPDATE jobs SET run = NULL WHERE id = 'j'");
    tell("a", &(struct task_use){"j-000", 1, 1, 10}, 1);
    ck_assert_str_eq(metrics(), "");
}

END_TEST

START_TEST(devices_that_are_its_own_are_told_as_far_as_they_are_known)
{
    begin(1);
    execute(&fixture,
            "INSERT INTO devices (node, idx, id, name, kind, memory_bytes, parent, numa, state,"
            " utilisation_pct, memory_used_bytes, ecc_errors, used_milli, changed_ms,"
            " idle_since_ms)"
            " VALUES ('a', 0, 'g0', 'a/0', 'gpu', 100, -1, -1, 'ok', 87.5, 64, -1, 1000, 0, 0),"
            " ('a', 1, 'g1', 'a/1', 'gpu', 100, -1, -1, 'ok', NULL, -1, -1, 1000, 0, 0),"
            " ('a', 2, 'g2', 'a/2', 'gpu', 100, -1, -1, 'ok', 50, 32, -1, 500, 0, 0)");
    execute(&fixture, "INSERT INTO task_devices (task, attempt, node, idx, milli, memory_bytes)"
                      " VALUES ('j-000', 1, 'a', 0, 1000, 100), ('j-000', 1, 'a', 1, 1000, 100),"
                      " ('j-000', 1, 'a', 2, 500, 50)");
    tell("a", &(struct task_use){"j-000", 1, 0, 0}, 1);
    ck_assert_str_eq(metrics(), "system/cpu_cores@5=0 system/gpu_0_memory_bytes@5=64 "
                                "system/gpu_0_utilization_percent@5=87.5 "
                                "system/memory_bytes@5=0 ");
}

END_TEST

WEIR_TEST_MAIN_WITH("task_use", NULL, tear_down, the_step_is_the_second_of_the_run,
                    tasks_of_a_gang_are_told_apart,
                    what_is_not_the_nodes_or_over_or_untracked_is_passed_over,
                    devices_that_are_its_own_are_told_as_far_as_they_are_known)
