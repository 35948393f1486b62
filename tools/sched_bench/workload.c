#include "sched_bench/workload.h"

#include "base/macros.h"

#define GIB         ((int64_t)1 << 30)
#define HOUR_MS     ((int64_t)3600000)
#define N_MODELS    3
#define SHARE_OF(n) ((n)*WEIR_SCHED_DEVICE / 100)

static const char *const models[N_MODELS] = {"A100", "H100", "L40S"};
static const struct weir_sched_label model_labels[N_MODELS] = {
    {"model", "A100"}, {"model", "H100"}, {"model", "L40S"}};

/** What jobs ask for, how often of a hundred, and how many templates of each there are. */
static const struct {
    int32_t n_tasks, n_devices, share_pct, weight, n;
} families[] = {
    {1, 0, 0, 10, 8},    {1, 1, 10, 4, 4},  {1, 1, 25, 8, 6},  {1, 1, 50, 8, 6},
    {1, 1, 100, 50, 24}, {1, 2, 100, 8, 8}, {1, 4, 100, 4, 6}, {1, 8, 100, 4, 6},
    {4, 1, 100, 2, 4},   {8, 1, 100, 1, 4}, {2, 8, 100, 1, 4},
};

static void make_templates(struct workload *workload)
{
    int32_t n = 0;
    for (size_t f = 0; f < WEIR_ARRAY_LEN(families); f++) {
        for (int32_t i = 0; i < families[f].n; i++) {
            int32_t n_devices = families[f].n_devices, share = SHARE_OF(families[f].share_pct);
            int64_t n_cpus = 1 + (int64_t)weir_rng_below(&workload->rng, 8);
            workload->templates[n++] = (struct workload_template){
                .n_tasks = families[f].n_tasks,
                .n_devices = n_devices,
                .device_milli = n_devices > 0 ? share : 0,
                .cpu_milli = n_cpus * 1000 * WEIR_MAX(n_devices, 1),
                .memory_bytes = n_cpus * 4 * GIB * WEIR_MAX(n_devices, 1),
                .model = i % 2 == 0 ? -1 : i / 2 % N_MODELS};
        }
    }
}

static const struct workload_template *draw_template(struct workload *workload)
{
    int32_t at = (int32_t)weir_rng_below(&workload->rng, 100), n = 0;
    for (size_t f = 0; f < WEIR_ARRAY_LEN(families); f++) {
        if (at < families[f].weight) {
            n += (int32_t)weir_rng_below(&workload->rng, (uint64_t)families[f].n);
            break;
        }
        at -= families[f].weight;
        n += families[f].n;
    }
    return &workload->templates[n];
}

static void make_nodes(struct workload *workload)
{
    for (int32_t i = 0; i < workload->size.n_nodes; i++) {
        struct weir_sched_node *node = &workload->cluster.nodes[test_node(&workload->cluster, 8)];
        int32_t model = (int32_t)weir_rng_below(&workload->rng, 10);
        model = model < 5 ? 0 : model < 8 ? 1 : 2;
        node->model = models[model];
        node->device_memory_bytes = model == 2 ? 48 * GIB : 80 * GIB;
        node->cpu_milli = model == 1 ? 192000 : 128000;
        node->memory_bytes = model == 1 ? 2048 * GIB : 1024 * GIB;
        node->labels = &model_labels[model];
        node->n_labels = 1;
    }
}

/** Quotas of the teams differ and add up to the cluster. */
static void make_queues(struct workload *workload)
{
    int32_t n_leaves = 0,
            mean = workload->size.n_nodes * 8 / (WORKLOAD_DEPARTMENTS * WORKLOAD_TEAMS);
    for (int32_t d = 0; d < WORKLOAD_DEPARTMENTS; d++) {
        int32_t parent = test_queue(&workload->cluster, -1, mean * WORKLOAD_TEAMS, 1, -1);
        for (int32_t t = 0; t < WORKLOAD_TEAMS; t++) {
            int32_t quota = mean * (1 + 2 * t) / WORKLOAD_TEAMS;
            workload->leaves[n_leaves++] =
                test_queue(&workload->cluster, parent, quota, 1 + t % 2, -1);
        }
    }
}

static void add_job(struct workload *workload)
{
    static const char *const users[] = {"ann", "bea", "cem", "dan"};
    static const int priorities[] = {50, 50, 50, 75, 75, 100};
    struct test_cluster *cluster = &workload->cluster;
    struct weir_rng *rng = &workload->rng;
    const struct workload_template *of = draw_template(workload);
    struct weir_sched_job *job = test_job(
        cluster, workload->leaves[weir_rng_below(rng, WEIR_ARRAY_LEN(workload->leaves))],
        priorities[weir_rng_below(rng, WEIR_ARRAY_LEN(priorities))], of->n_tasks, of->n_devices);
    workload->n_made++;
    job->name = weir_arena_printf(&cluster->arena, "job-%08lld", (long long)workload->n_made);
    job->user = users[weir_rng_below(rng, WEIR_ARRAY_LEN(users))];
    job->created_ms = cluster->snapshot.now_ms - (int64_t)weir_rng_below(rng, TEST_STEP_MS);
    job->can_checkpoint = weir_rng_below(rng, 2) == 0;
    job->utilisation_pct = 10 + (int32_t)weir_rng_below(rng, 90);
    job->expected_run_ms =
        weir_rng_below(rng, 2) == 0 ? HOUR_MS + (int64_t)weir_rng_below(rng, 10 * HOUR_MS) : 0;
    job->time_limit_ms =
        weir_rng_below(rng, 4) == 0 ? 24 * HOUR_MS * (1 + (int64_t)weir_rng_below(rng, 3)) : 0;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        struct weir_sched_task *task = &cluster->tasks[t];
        task->name = weir_arena_printf(&cluster->arena, "%s-%d", job->name, t - job->first_task);
        task->demand = (struct weir_sched_demand){.cpu_milli = of->cpu_milli,
                                                  .memory_bytes = of->memory_bytes,
                                                  .n_devices = of->n_devices,
                                                  .device_milli = of->device_milli};
        if (of->model >= 0) {
            task->selector = &model_labels[of->model];
            task->n_selector = 1;
        }
    }
}

static bool has_room(const struct workload *workload)
{
    return workload->cluster.snapshot.n_jobs < workload->jobs_max &&
           workload->cluster.snapshot.n_tasks + 8 <= workload->tasks_max;
}

void workload_init(struct workload *workload, const struct workload_size *size, uint64_t seed)
{
    *workload = (struct workload){.size = *size};
    workload->tasks_max = 2 * size->n_tasks + 8 * size->n_waiting + 1000;
    workload->jobs_max = workload->tasks_max;
    weir_rng_init(&workload->rng, seed, 17);
    test_cluster_init(&workload->cluster, size->n_nodes,
                      WORKLOAD_DEPARTMENTS * (WORKLOAD_TEAMS + 1), workload->jobs_max,
                      workload->tasks_max);
    workload->cluster.arena.max_bytes = (size_t)8 << 30;
    make_templates(workload);
    make_nodes(workload);
    make_queues(workload);
    while (workload->cluster.snapshot.n_tasks < size->n_tasks && has_room(workload)) {
        add_job(workload);
    }
}

void workload_fini(struct workload *workload)
{
    test_cluster_fini(&workload->cluster);
}

static bool is_over(const struct workload *workload, const struct weir_sched_job *job)
{
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (workload->cluster.tasks[t].state != WEIR_SCHED_DONE) {
            return false;
        }
    }
    return true;
}

static bool is_waiting(const struct workload *workload, const struct weir_sched_job *job)
{
    return workload->cluster.tasks[job->first_task].state == WEIR_SCHED_PENDING;
}

/** Some of the jobs that run whole come to their end. */
static void end_some(struct workload *workload)
{
    struct test_cluster *cluster = &workload->cluster;
    uint64_t n_running = (uint64_t)WEIR_MAX(workload_count_running(workload), 1);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        bool runs = true;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            runs = runs && cluster->tasks[t].state == WEIR_SCHED_RUNNING;
        }
        bool is_done =
            runs && weir_rng_below(&workload->rng, n_running) < (uint64_t)workload->size.n_ends;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && is_done; t++) {
            cluster->tasks[t].state = WEIR_SCHED_DONE;
        }
    }
}

/** Forget what is over, so that a snapshot holds what a server would hand over. */
static int32_t compact(struct workload *workload)
{
    struct test_cluster *cluster = &workload->cluster;
    int32_t n_jobs = 0, n_tasks = 0, n_waiting = 0;
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job job = cluster->jobs[j];
        if (is_over(workload, &job)) {
            continue;
        }
        n_waiting += is_waiting(workload, &job);
        memmove(cluster->tasks + n_tasks, cluster->tasks + job.first_task,
                (size_t)job.n_tasks * sizeof *cluster->tasks);
        job.first_task = n_tasks;
        n_tasks += job.n_tasks;
        cluster->jobs[n_jobs++] = job;
    }
    cluster->snapshot.n_jobs = n_jobs;
    cluster->snapshot.n_tasks = n_tasks;
    return n_waiting;
}

void workload_step(struct workload *workload, const struct weir_sched_plan *plan)
{
    struct test_cluster *cluster = &workload->cluster;
    test_workload_apply(cluster, plan, &workload->rng);
    end_some(workload);
    for (int32_t n_waiting = compact(workload);
         n_waiting < workload->size.n_waiting && has_room(workload); n_waiting++) {
        add_job(workload);
    }
}

int32_t workload_count_running(const struct workload *workload)
{
    int32_t n = 0;
    for (int32_t t = 0; t < workload->cluster.snapshot.n_tasks; t++) {
        n += workload->cluster.tasks[t].state == WEIR_SCHED_RUNNING;
    }
    return n;
}
