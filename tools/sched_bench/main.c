/**
 * sched-bench [-p PROFILE] [-a ACTIONS] [-n CYCLES] [-N NODES] [SCENARIO…]: how long plans take, a
 * line of JSON for each scenario; all of them without a name. `bench/sched.py` makes a table of the
 * lines.
 *
 * What is timed is weir_sched_plan alone, the check of the snapshot included, in CPU time of one
 * core. `ms` is one plan, or p50 with p99 and the largest over the cycles of `live`. The digest
 * tells whether two builds make the same plans. `memory` says by how much a plan for `tasks` tasks
 * raises what the process had at most, its snapshot not counted: alone in its process, else what
 * came before has raised it already.
 */
#include "sched/test/test_digest.h"
#include "sched_bench/workload.h"

#include "base/macros.h"
#include "base/rss.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WARM_CYCLES 10

struct settings {
    const char *profile_name;
    struct weir_sched_profile profile;
    int n_cycles, n_nodes;
};

/** What a scenario measured. */
struct result {
    double ms, p99_ms, max_ms; /**< The latter two 0 if there was one plan. */
    int64_t n_decisions, n_tasks;
    int64_t plan_kib; /**< Of `memory`; 0 = not measured. */
    int32_t n_bound, n_pipelined, n_evicted, n_waits;
    enum weir_sched_wait_code wait; /**< Of the last job that waits. */
    uint64_t digest;
};

/** What this process has used of one core: neighbours on the machine do not count. */
static double cpu_ms(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/** Plan once, add what the plan holds to the result. @return The plan, for the caller to destroy.
 */
static struct weir_sched_plan *plan_timed(const struct test_cluster *cluster,
                                          const struct settings *settings, struct result *result,
                                          double *out_ms)
{
    double start_ms = cpu_ms();
    struct weir_sched_plan *plan = test_plan(cluster, &settings->profile);
    *out_ms = cpu_ms() - start_ms;
    if (plan == NULL) {
        fprintf(stderr, "sched-bench: no plan\n");
        exit(EXIT_FAILURE);
    }
    for (int32_t i = 0; i < plan->n_actions; i++) {
        enum weir_sched_action_kind kind = plan->actions[i].kind;
        result->n_bound += kind == WEIR_SCHED_BIND;
        result->n_pipelined += kind == WEIR_SCHED_PIPELINE;
        result->n_evicted += kind == WEIR_SCHED_EVICT || kind == WEIR_SCHED_REQUEST_CHECKPOINT;
    }
    result->n_waits = plan->n_waits;
    result->wait = plan->n_waits > 0 ? plan->waits[plan->n_waits - 1].code : WEIR_SCHED_WAIT_NONE;
    result->n_decisions += plan->n_decisions;
    result->digest = test_digest_plan(result->digest, plan);
    return plan;
}

/** The one plan that a scenario is about. */
static void plan_once(struct test_cluster *cluster, const struct settings *settings,
                      struct result *result)
{
    weir_sched_plan_destroy(plan_timed(cluster, settings, result, &result->ms));
}

/** Plan and carry out, unmeasured. */
static void run_to_rest(struct test_cluster *cluster, const struct settings *settings)
{
    struct result ignored = {0};
    double ms;
    struct weir_sched_plan *plan = plan_timed(cluster, settings, &ignored, &ms);
    test_apply(cluster, plan);
    weir_sched_plan_destroy(plan);
}

/** Nodes of eight devices and two queues; the first borrows all, to the second they are owed. */
static void make_cluster(struct test_cluster *cluster, int n_nodes, int n_jobs, int n_tasks)
{
    test_cluster_init(cluster, n_nodes, 3, n_jobs, n_tasks);
    for (int i = 0; i < n_nodes; i++) {
        test_node(cluster, 8);
    }
    int32_t root = test_queue(cluster, -1, -1, 1, -1);
    test_queue(cluster, root, 0, 1, -1);
    test_queue(cluster, root, n_nodes * 8, 1, -1);
}

static void add_jobs(struct test_cluster *cluster, int32_t queue, int n_jobs, int n_tasks,
                     int n_devices)
{
    for (int i = 0; i < n_jobs; i++) {
        test_job(cluster, queue, 50, n_tasks, n_devices);
    }
}

static void fill(const struct settings *settings, struct result *result)
{
    struct test_cluster cluster;
    make_cluster(&cluster, 500, 4000, 4000);
    add_jobs(&cluster, 1, 4000, 1, 1);
    plan_once(&cluster, settings, result);
    test_cluster_fini(&cluster);
}

/** 4000 jobs of one device run in a queue that is owed nothing; these come to the other. */
static void take_back(const struct settings *settings, struct result *result, int n_jobs,
                      int n_tasks, int n_devices)
{
    struct test_cluster cluster;
    make_cluster(&cluster, 500, 4000 + n_jobs, 4000 + n_jobs * n_tasks);
    add_jobs(&cluster, 1, 4000, 1, 1);
    run_to_rest(&cluster, settings);
    add_jobs(&cluster, 2, n_jobs, n_tasks, n_devices);
    plan_once(&cluster, settings, result);
    test_cluster_fini(&cluster);
}

static void reclaim_one(const struct settings *settings, struct result *result)
{
    take_back(settings, result, 1, 1, 1);
}

static void reclaim_4000(const struct settings *settings, struct result *result)
{
    take_back(settings, result, 4000, 1, 1);
}

static void reclaim_250(const struct settings *settings, struct result *result)
{
    take_back(settings, result, 1, 250, 8);
}

static void reclaim_500(const struct settings *settings, struct result *result)
{
    take_back(settings, result, 1, 500, 8);
}

static void reclaim_gangs(const struct settings *settings, struct result *result)
{
    take_back(settings, result, 50, 10, 8);
}

/** One and two jobs of one device a node, and gangs that need whole nodes. */
static void consolidate(const struct settings *settings, struct result *result)
{
    struct test_cluster cluster;
    make_cluster(&cluster, 500, 720 + 41, 720 + 410);
    static const int32_t devices[] = {0, 1};
    add_jobs(&cluster, 1, 720, 1, 1);
    for (int32_t t = 0; t < 720; t++) {
        cluster.tasks[t].state = WEIR_SCHED_RUNNING;
        cluster.tasks[t].node = t % 500;
        cluster.tasks[t].devices = &devices[t / 500];
    }
    add_jobs(&cluster, 1, 41, 10, 8);
    plan_once(&cluster, settings, result);
    test_cluster_fini(&cluster);
}

/** A gang that nothing can be taken from, because it is owed nothing more. */
static void refuse(const struct settings *settings, struct result *result)
{
    struct test_cluster cluster;
    make_cluster(&cluster, 500, 4001, 4010);
    add_jobs(&cluster, 1, 4000, 1, 1);
    run_to_rest(&cluster, settings);
    add_jobs(&cluster, 1, 1, 10, 8);
    plan_once(&cluster, settings, result);
    test_cluster_fini(&cluster);
}

/** 512 tasks in one zone of five, rather in one rack. */
static void topology(const struct settings *settings, struct result *result)
{
    static const char *const levels[] = {"zone", "rack"};
    const struct weir_sched_topology tree = {.name = "tree", .levels = levels, .n_levels = 2};
    const struct weir_sched_group group = {.name = "all",
                                           .parent = WEIR_SCHED_NONE,
                                           .min_member = WEIR_SCHED_UNLIMITED,
                                           .required_level = 0,
                                           .preferred_level = 1};
    struct test_cluster cluster;
    make_cluster(&cluster, 500, 1, 512);
    for (int i = 0; i < 500; i++) {
        struct weir_sched_label *labels =
            WEIR_ARENA_ARRAY(&cluster.arena, 2, struct weir_sched_label);
        labels[0] = (struct weir_sched_label){
            "zone", weir_arena_printf(&cluster.arena, "zone-%d", i / 100)};
        labels[1] =
            (struct weir_sched_label){"rack", weir_arena_printf(&cluster.arena, "rack-%d", i / 20)};
        cluster.nodes[i].labels = labels;
        cluster.nodes[i].n_labels = 2;
    }
    cluster.snapshot.topologies = &tree;
    cluster.snapshot.n_topologies = 1;
    struct weir_sched_job *job = test_job(&cluster, 1, 50, 512, 1);
    job->groups = &group;
    job->n_groups = 1;
    plan_once(&cluster, settings, result);
    test_cluster_fini(&cluster);
}

static void throughput(const struct settings *settings, struct result *result)
{
    struct test_cluster cluster;
    make_cluster(&cluster, 5000, 50000, 50000);
    add_jobs(&cluster, 1, 50000, 1, 1);
    for (int32_t t = 40000; t < 50000; t++) { /* All of them find a place. */
        cluster.tasks[t].demand.n_devices = cluster.tasks[t].demand.device_milli = 0;
    }
    plan_once(&cluster, settings, result);
    test_cluster_fini(&cluster);
}

/** The first plan of a cluster in which all wait, which places nearly all of them. */
static void memory(const struct settings *settings, struct result *result)
{
    struct workload state;
    const struct workload_size size = {.n_nodes = settings->n_nodes,
                                       .n_tasks = settings->n_nodes * 6,
                                       .n_waiting = WEIR_MAX(settings->n_nodes / 10, 1),
                                       .n_ends = WEIR_MAX(settings->n_nodes * 3 / 100, 1)};
    workload_init(&state, &size, 1);
    int64_t before_bytes = weir_peak_rss_bytes();
    plan_once(&state.cluster, settings, result);
    result->plan_kib = (weir_peak_rss_bytes() - before_bytes) / 1024;
    result->n_tasks = state.cluster.snapshot.n_tasks;
    workload_fini(&state);
}

static int by_value(const void *left, const void *right)
{
    double l = *(const double *)left, r = *(const double *)right;
    return l < r ? -1 : l > r;
}

static void workload(const struct settings *settings, struct result *result)
{
    struct workload state;
    const struct workload_size size = {.n_nodes = settings->n_nodes,
                                       .n_tasks = settings->n_nodes * 6,
                                       .n_waiting = WEIR_MAX(settings->n_nodes / 10, 1),
                                       .n_ends = WEIR_MAX(settings->n_nodes * 3 / 100, 1)};
    workload_init(&state, &size, 1);
    double *times = calloc((size_t)settings->n_cycles, sizeof *times);
    if (times == NULL) {
        exit(EXIT_FAILURE);
    }
    for (int i = -WARM_CYCLES; i < settings->n_cycles; i++) {
        double ms;
        *result = i == 0 ? (struct result){0} : *result;
        struct weir_sched_plan *plan = plan_timed(&state.cluster, settings, result, &ms);
        if (i >= 0) {
            times[i] = ms;
        }
        workload_step(&state, plan);
        weir_sched_plan_destroy(plan);
    }
    fprintf(stderr, "sched-bench: %d tasks run, %d jobs wait\n",
            (int)workload_count_running(&state), (int)result->n_waits);
    size_t n = (size_t)settings->n_cycles;
    qsort(times, n, sizeof *times, by_value);
    result->ms = times[n / 2];
    result->p99_ms = times[WEIR_MIN(n * 99 / 100, n - 1)];
    result->max_ms = times[n - 1];
    free(times);
    workload_fini(&state);
}

/** Small clusters of all kinds, for the digest; `cycles` of each of two ways to live. */
static void digest(const struct settings *settings, struct result *result)
{
    for (int seed = 0; seed < settings->n_cycles; seed++) {
        struct test_cluster cluster;
        struct weir_rng rng;
        weir_rng_init(&rng, (uint64_t)seed, 11);
        test_cluster_random(&cluster, &rng, 8);
        test_workload_random(&cluster, &rng);
        for (int round = 0; round < 20; round++) {
            double ms;
            struct weir_sched_plan *plan = plan_timed(&cluster, settings, result, &ms);
            result->ms += ms;
            test_workload_apply(&cluster, plan, &rng);
            weir_sched_plan_destroy(plan);
        }
        test_cluster_fini(&cluster);
    }
}

static const struct {
    const char *name;
    void (*run)(const struct settings *settings, struct result *result);
} scenarios[] = {
    {"fill", fill},
    {"reclaim-one", reclaim_one},
    {"reclaim-4000", reclaim_4000},
    {"reclaim-250x8", reclaim_250},
    {"reclaim-500x8", reclaim_500},
    {"reclaim-50x10x8", reclaim_gangs},
    {"consolidate", consolidate},
    {"refuse", refuse},
    {"topology", topology},
    {"throughput", throughput},
    {"live", workload},
    {"memory", memory},
    {"digest", digest},
};

static bool run_named(const struct settings *settings, const char *name)
{
    bool is_found = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(scenarios); i++) {
        if (name != NULL && strcmp(name, scenarios[i].name) != 0) {
            continue;
        }
        struct result result = {0};
        scenarios[i].run(settings, &result);
        printf("{\"scenario\": \"%s\", \"profile\": \"%s\", \"ms\": %.3f, \"p99_ms\": %.3f, "
               "\"max_ms\": %.3f, \"decisions\": %" PRId64 ", \"bound\": %d, \"pipelined\": %d, "
               "\"evicted\": %d, \"waiting\": %d, \"reason\": \"%s\", \"peak_kib\": %" PRId64 ", "
               "\"plan_kib\": %" PRId64 ", \"tasks\": %" PRId64 ", "
               "\"digest\": \"%016" PRIx64 "\"}\n",
               scenarios[i].name, settings->profile_name, result.ms, result.p99_ms, result.max_ms,
               result.n_decisions, (int)result.n_bound, (int)result.n_pipelined,
               (int)result.n_evicted, (int)result.n_waits, weir_sched_wait_name(result.wait),
               weir_peak_rss_bytes() / 1024, result.plan_kib, result.n_tasks, result.digest);
        (void)fflush(stdout);
        is_found = true;
    }
    return is_found;
}

static int usage_text(void)
{
    fprintf(stderr,
            "Usage: sched-bench [-p PROFILE] [-a ACTIONS] [-n CYCLES] [-N NODES] [SCENARIO]...\n"
            "Prints how long plans take, as lines of JSON. Scenarios:");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(scenarios); i++) {
        fprintf(stderr, " %s", scenarios[i].name);
    }
    fprintf(stderr, "\n");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct settings settings = {.profile_name = "default", .n_cycles = 120, .n_nodes = 10000};
    struct weir_error err = {0};
    char *actions = NULL;
    int option;
    while ((option = getopt(argc, argv, "p:a:n:N:")) != -1) {
        if (option == 'p') {
            settings.profile_name = optarg;
        } else if (option == 'a') {
            actions = optarg;
        } else if (option == 'n') {
            settings.n_cycles = (int)strtol(optarg, NULL, 10);
        } else if (option == 'N') {
            settings.n_nodes = (int)strtol(optarg, NULL, 10);
        } else {
            return usage_text();
        }
    }
    if (settings.n_cycles < 1 || settings.n_nodes < 1) {
        return usage_text();
    }
    if (weir_sched_profile_named(settings.profile_name, &settings.profile, &err) != WEIR_OK) {
        fprintf(stderr, "sched-bench: %s\n", err.message);
        return EXIT_FAILURE;
    }
    settings.profile.actions = actions != NULL ? actions : settings.profile.actions;
    bool are_found = true;
    for (int i = optind; i < argc; i++) {
        are_found = run_named(&settings, argv[i]) && are_found;
    }
    if (optind == argc) {
        run_named(&settings, NULL);
    }
    return are_found ? EXIT_SUCCESS : usage_text();
}
