/*
 * How long a cycle of the server's scheduler takes, from rows to bound rows: a store with many nodes
 * and running tasks (jobs of one task, which is the most rows), to which jobs are added that fit.
 *
 *     scheduler-bench [--nodes=10000] [--tasks=50000] [--slots=64] [--queues=0]
 *
 * Prints a line for the first reading, which a server makes once when it starts, and one for each of
 * some numbers of new jobs: reading, planning and writing in milliseconds, the median of five. With
 * queues the jobs are of so many projects, each guaranteed its part of all CPUs, and a line says p50
 * and p99 of a hundred cycles.
 *
 *     scheduler-bench --reclaim [--nodes=500] [--tasks=4000] [--slots=8]
 *
 * One project has all, and another, guaranteed half, asks for one CPU: from rows until somebody is
 * durably asked to leave, and once it has left until the job is durably bound.
 */
#include "base/clock.h"
#include "base/file.h"
#include "control/scheduler.h"
#include "job/queue.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMES    5
#define N_CYCLES 100 /* Of which a p99 is told. */

struct bench {
    int64_t n_nodes, n_tasks, n_slots, n_queues, n_made;
    bool is_reclaim;
    struct weir_store *store;
    struct scheduler *scheduler;
    int64_t now_ms;
    int64_t n_new; /* For the transaction that adds jobs. */
};

struct stage_ms {
    double read, plan, commit;
    double cpu; /* Of all of it, by all threads. */
};

static double mono_ms(void)
{
    return (double)weir_mono_ns() / 1e6;
}

static double cpu_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double whole_ms(const struct stage_ms *stage)
{
    return stage->read + stage->plan + stage->commit;
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
    char id[40], task[48], node[40], project[40] = "default";
    bool runs = strcmp(state, "RUNNING") == 0;
    int64_t n = ++bench->n_made;
    if (bench->n_queues > 0) {
        int64_t of = !bench->is_reclaim ? n % bench->n_queues : !runs;
        (void)snprintf(project, sizeof project, "project-%" PRId64, of);
    }
    (void)snprintf(id, sizeof id, "job-%08" PRId64, n);
    (void)snprintf(task, sizeof task, "%s-0", id);
    (void)snprintf(node, sizeof node, "node-%05" PRId64, n % bench->n_nodes);
    const struct weir_job job = {.id = id,
                                 .name = id,
                                 .project = project,
                                 .kind = "command",
                                 .is_preemptible = true,
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

/* Each is guaranteed the same part of all CPUs. */
static weir_status add_queue(struct bench *bench, struct weir_txn *txn, int64_t i,
                             struct weir_error *err)
{
    char name[40], shares[96];
    (void)snprintf(name, sizeof name, "project-%" PRId64, i);
    (void)snprintf(shares, sizeof shares, "{\"cpus\":{\"guarantee\":%" PRId64 "}}",
                   bench->n_nodes * bench->n_slots / bench->n_queues);
    const struct weir_queue queue = {
        .name = name, .project = name, .priority = 100, .shares = shares, .min_run_ms = -1};
    WEIR_TRY(
        weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = name}, err));
    return weir_queue_set(txn, &queue, bench->now_ms, err);
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct bench *bench = context;
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                             err));
    for (int64_t i = 0; i < bench->n_queues; i++) {
        WEIR_TRY(add_queue(bench, txn, i, err));
    }
    for (int64_t i = 0; i < bench->n_nodes; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "node-%05" PRId64, i);
        const struct weir_node node = {.name = name,
                                       .cpu_slots = bench->n_slots,
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
    double at = mono_ms(), cpu = cpu_ms();
    must(scheduler_read(bench->scheduler, bench->now_ms, bench->now_ms, &err), &err);
    stage.read = mono_ms() - at;
    at += stage.read;
    must(scheduler_plan(bench->scheduler, bench->now_ms, &err), &err);
    stage.plan = mono_ms() - at;
    at += stage.plan;
    (void)scheduler_commit(bench->scheduler, bench->now_ms, bench->now_ms);
    stage.commit = mono_ms() - at;
    stage.cpu = cpu_ms() - cpu;
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

static void add_jobs(struct bench *bench, int64_t n_new)
{
    struct weir_error err = {0};
    bench->n_new = n_new;
    must(weir_store_read(bench->store, newest_revision, bench, &err), &err);
    must(weir_store_write(bench->store, add_new, bench, &err), &err);
}

static void measure(struct bench *bench, int64_t n_new)
{
    struct stage_ms stages[TIMES];
    for (int i = 0; i < TIMES; i++) {
        add_jobs(bench, n_new);
        stages[i] = run_cycle(bench, n_new);
        (void)run_cycle(bench, 0); /* It sees what it has written itself. */
    }
    qsort(stages, TIMES, sizeof stages[0], compare_totals);
    const struct stage_ms *median = &stages[TIMES / 2];
    printf("%6" PRId64 " new jobs: read %7.1f  plan %7.1f  write %7.1f  together %7.1f ms\n", n_new,
           median->read, median->plan, median->commit,
           median->read + median->plan + median->commit);
}

static int compare_numbers(const void *left, const void *right)
{
    double x = *(const double *)left, y = *(const double *)right;
    return (x > y) - (x < y);
}

static void measure_cycles(struct bench *bench)
{
    double whole[N_CYCLES], cpu[N_CYCLES];
    for (int i = 0; i < N_CYCLES; i++) {
        add_jobs(bench, 10);
        struct stage_ms stage = run_cycle(bench, 10);
        whole[i] = whole_ms(&stage);
        cpu[i] = stage.cpu;
    }
    qsort(whole, N_CYCLES, sizeof whole[0], compare_numbers);
    qsort(cpu, N_CYCLES, sizeof cpu[0], compare_numbers);
    int p99 = N_CYCLES * 99 / 100 - 1;
    printf("%d cycles of 10 new jobs, %" PRId64 " queues: p50 %.1f ms, p99 %.1f ms; CPU time p50 "
           "%.1f ms, p99 %.1f ms\n",
           N_CYCLES, bench->n_queues, whole[N_CYCLES / 2], whole[p99], cpu[N_CYCLES / 2], cpu[p99]);
}

/* Whoever was asked to leave has left. */
static weir_status leave(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct bench *bench = context;
    bench->n_made++;
    WEIR_TRY(weir_txn_exec(txn,
                           "UPDATE tasks SET state = 'EXITED', desired = 'stopped' WHERE job IN"
                           " (SELECT id FROM jobs WHERE state = 'STOPPING')",
                           WEIR_NO_BINDS, NULL, err));
    WEIR_TRY(weir_txn_exec(txn,
                           "UPDATE jobs SET state = 'CANCELLED', revision = :value WHERE state ="
                           " 'STOPPING'",
                           WEIR_BINDS(WEIR_BIND_INT("value", bench->n_made)), NULL, err));
    return weir_txn_exec(txn, "UPDATE counters SET value = :value WHERE name = 'job_revisions'",
                         WEIR_BINDS(WEIR_BIND_INT("value", bench->n_made)), NULL, err);
}

static void measure_reclaim(struct bench *bench)
{
    struct weir_error err = {0};
    struct stage_ms first = run_cycle(bench, 0);
    printf("%" PRId64 " nodes, %" PRId64 " tasks; first reading %.0f ms\n", bench->n_nodes,
           bench->n_tasks, first.read);
    for (int i = 0; i < TIMES; i++) {
        add_jobs(bench, 1);
        struct stage_ms asked = run_cycle(bench, 0);
        if (scheduler_n_evicted(bench->scheduler) != 1) {
            (void)fprintf(stderr, "scheduler-bench: %d tasks were asked to leave\n",
                          scheduler_n_evicted(bench->scheduler));
            exit(1);
        }
        must(weir_store_read(bench->store, newest_revision, bench, &err), &err);
        must(weir_store_write(bench->store, leave, bench, &err), &err);
        struct stage_ms bound = run_cycle(bench, 1);
        printf("reclaim of 1: asked after %.1f ms, then bound after %.1f ms, together %.1f ms; "
               "CPU time %.1f + %.1f ms\n",
               whole_ms(&asked), whole_ms(&bound), whole_ms(&asked) + whole_ms(&bound), asked.cpu,
               bound.cpu);
    }
}

static void run(struct bench *bench)
{
    if (bench->is_reclaim) {
        measure_reclaim(bench);
        return;
    }
    static const int64_t numbers[] = {1, 10, 100, 1000};
    struct stage_ms first = run_cycle(bench, 0);
    printf("%" PRId64 " nodes, %" PRId64 " tasks; first reading %.0f ms\n", bench->n_nodes,
           bench->n_tasks, first.read);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        measure(bench, numbers[i]);
    }
    if (bench->n_queues > 0) {
        measure_cycles(bench);
    }
}

static bool read_number(const char *word, const char *name, int64_t *out)
{
    size_t len = strlen(name);
    bool is_it = strncmp(word, name, len) == 0 && word[len] == '=';
    *out = is_it ? strtoll(word + len + 1, NULL, 10) : *out;
    return is_it;
}

int main(int argc, char **argv)
{
    bool is_reclaim = argc > 1 && strcmp(argv[1], "--reclaim") == 0;
    struct bench bench = {.n_nodes = is_reclaim ? 500 : 10000,
                          .n_tasks = is_reclaim ? 4000 : 50000,
                          .n_slots = is_reclaim ? 8 : 64,
                          .n_queues = is_reclaim ? 2 : 0,
                          .is_reclaim = is_reclaim,
                          .now_ms = 1700000000000};
    struct weir_error err = {0};
    char dir[] = "/tmp/scheduler-bench-XXXXXX", path[96];
    for (int i = is_reclaim ? 2 : 1; i < argc; i++) {
        if (!read_number(argv[i], "--nodes", &bench.n_nodes) &&
            !read_number(argv[i], "--tasks", &bench.n_tasks) &&
            !read_number(argv[i], "--slots", &bench.n_slots) &&
            (is_reclaim || !read_number(argv[i], "--queues", &bench.n_queues))) {
            (void)fprintf(stderr, "Usage: scheduler-bench [--reclaim] [--nodes=N] [--tasks=N] "
                                  "[--slots=N] [--queues=N]\n");
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
