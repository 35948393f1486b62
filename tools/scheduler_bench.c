/*
 * How long a cycle of the server's scheduler takes, from rows to bound rows: a store with many nodes
 * and running tasks (jobs of one task, which is the most rows), to which jobs are added that fit.
 *
 *     scheduler-bench [--nodes=10000] [--tasks=50000]
 *
 * Prints a line for the first reading, which a server makes once when it starts, and one for each of
 * some numbers of new jobs: reading, planning and writing in milliseconds, the median of five.
 */
#include "base/clock.h"
#include "base/file.h"
#include "control/scheduler.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_SLOTS 64
#define TIMES      5

struct bench {
    int64_t n_nodes, n_tasks, n_made;
    struct weir_store *store;
    struct scheduler *scheduler;
    int64_t now_ms;
    int64_t n_new; /* For the transaction that adds jobs. */
};

struct stage_ms {
    double read, plan, commit;
};

static double mono_ms(void)
{
    return (double)weir_mono_ns() / 1e6;
}

static void must(weir_status status, const struct weir_error *err)
{
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "scheduler-bench: %s\n", err->message);
        exit(1);
    }
}

static weir_status add_job(struct bench *bench, struct weir_txn *txn, const char *state,
                           struct weir_error *err)
{
    char id[40], task[48], node[40];
    bool runs = strcmp(state, "RUNNING") == 0;
    int64_t n = ++bench->n_made;
    (void)snprintf(id, sizeof id, "job-%08" PRId64, n);
    (void)snprintf(task, sizeof task, "%s-0", id);
    (void)snprintf(node, sizeof node, "node-%05" PRId64, n % bench->n_nodes);
    const struct weir_job job = {.id = id,
                                 .name = id,
                                 .project = "default",
                                 .kind = "command",
                                 .spec = "{\"argv\":[\"sleep\",\"1000\"]}",
                                 .state = (char *)state,
                                 .attempt = runs,
                                 .created_by = "ann",
                                 .created_ms = bench->now_ms - 1000,
                                 .started_ms = runs ? bench->now_ms : 0,
                                 .revision = n};
    const struct weir_task row = {.id = task,
                                  .job = id,
                                  .role = "command",
                                  .cpu_slots = 1,
                                  .memory_bytes = (int64_t)1 << 30,
                                  .definition = "{\"argv\":[\"sleep\",\"1000\"],\"env\":{}}",
                                  .definition_bytes = 36,
                                  .node = runs ? node : NULL,
                                  .attempt = runs,
                                  .state = runs ? "RUNNING" : "WAITING",
                                  .desired = runs ? "running" : "stopped",
                                  .exit_code = -1,
                                  .started_ms = runs ? bench->now_ms : 0};
    WEIR_TRY(weir_txn_insert(txn, &weir_job_resource, &job, err));
    return weir_txn_insert(txn, &weir_task_resource, &row, err);
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct bench *bench = context;
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                             err));
    for (int64_t i = 0; i < bench->n_nodes; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "node-%05" PRId64, i);
        const struct weir_node node = {.name = name,
                                       .cpu_slots = NODE_SLOTS,
                                       .memory_bytes = (int64_t)256 << 30,
                                       .inventory = "{\"cpu_model\":\"measured\"}"};
        WEIR_TRY(weir_node_heartbeat(txn, &node, bench->now_ms, err));
    }
    for (int64_t i = 0; i < bench->n_tasks; i++) {
        WEIR_TRY(add_job(bench, txn, "RUNNING", err));
    }
    return WEIR_OK;
}

static weir_status add_new(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct bench *bench = context;
    for (int64_t i = 0; i < bench->n_new; i++) {
        WEIR_TRY(add_job(bench, txn, "PENDING", err));
    }
    /* The next revision is that of the last job. */
    return weir_txn_exec(txn,
                         "INSERT INTO counters (name, value) VALUES ('job_revisions', :value)"
                         " ON CONFLICT (name) DO UPDATE SET value = max(counters.value, :value)",
                         WEIR_BINDS(WEIR_BIND_INT("value", bench->n_made)), NULL, err);
}

static weir_status newest_revision(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct bench *bench = context;
    return weir_txn_query_int(txn, "SELECT max(revision) FROM jobs", WEIR_NO_BINDS, 0,
                              &bench->n_made, err);
}

static struct stage_ms run_cycle(struct bench *bench, int64_t n_expected)
{
    struct weir_error err = {0};
    struct stage_ms stage;
    double at = mono_ms();
    must(scheduler_read(bench->scheduler, bench->now_ms, bench->now_ms, &err), &err);
    stage.read = mono_ms() - at;
    at += stage.read;
    must(scheduler_plan(bench->scheduler, bench->now_ms, &err), &err);
    stage.plan = mono_ms() - at;
    at += stage.plan;
    (void)scheduler_commit(bench->scheduler, bench->now_ms, bench->now_ms);
    stage.commit = mono_ms() - at;
    if (scheduler_n_bound(bench->scheduler) != n_expected) {
        (void)fprintf(stderr, "scheduler-bench: %d of %" PRId64 " jobs were bound\n",
                      scheduler_n_bound(bench->scheduler), n_expected);
        exit(1);
    }
    return stage;
}

static int compare_totals(const void *left, const void *right)
{
    const struct stage_ms *a = left, *b = right;
    double x = a->read + a->plan + a->commit, y = b->read + b->plan + b->commit;
    return (x > y) - (x < y);
}

static void measure(struct bench *bench, int64_t n_new)
{
    struct weir_error err = {0};
    struct stage_ms stages[TIMES];
    for (int i = 0; i < TIMES; i++) {
        bench->n_new = n_new;
        must(weir_store_read(bench->store, newest_revision, bench, &err), &err);
        must(weir_store_write(bench->store, add_new, bench, &err), &err);
        stages[i] = run_cycle(bench, n_new);
        (void)run_cycle(bench, 0); /* It sees what it has written itself. */
    }
    qsort(stages, TIMES, sizeof stages[0], compare_totals);
    const struct stage_ms *median = &stages[TIMES / 2];
    printf("%6" PRId64 " new jobs: read %7.1f  plan %7.1f  write %7.1f  together %7.1f ms\n", n_new,
           median->read, median->plan, median->commit,
           median->read + median->plan + median->commit);
}

static void run(struct bench *bench)
{
    static const int64_t numbers[] = {1, 10, 100, 1000};
    struct stage_ms first = run_cycle(bench, 0);
    printf("%" PRId64 " nodes, %" PRId64 " tasks; first reading %.0f ms\n", bench->n_nodes,
           bench->n_tasks, first.read);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        measure(bench, numbers[i]);
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.n_nodes = 10000, .n_tasks = 50000, .now_ms = 1700000000000};
    struct weir_error err = {0};
    char dir[] = "/tmp/scheduler-bench-XXXXXX", path[96];
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--nodes=", 8) == 0) {
            bench.n_nodes = strtoll(argv[i] + 8, NULL, 10);
        } else if (strncmp(argv[i], "--tasks=", 8) == 0) {
            bench.n_tasks = strtoll(argv[i] + 8, NULL, 10);
        } else {
            (void)fprintf(stderr, "Usage: scheduler-bench [--nodes=N] [--tasks=N]\n");
            return 3;
        }
    }
    if (mkdtemp(dir) == NULL) {
        perror("scheduler-bench");
        return 1;
    }
    (void)snprintf(path, sizeof path, "%s/weir.db", dir);
    const struct weir_store_config config = {.path = path};
    must(weir_store_open(&config, &bench.store, &err), &err);
    must(weir_store_write(bench.store, populate, &bench, &err), &err);
    const struct scheduler_config scheduler = {.store = bench.store};
    bench.scheduler = scheduler_create(&scheduler);
    run(&bench);
    scheduler_destroy(bench.scheduler);
    weir_store_close(bench.store);
    must(weir_dir_remove(dir, &err), &err);
    return 0;
}
