#include "sched_bench/live.h"

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

static void make_templates(struct live *live)
{
    int32_t n = 0;
    for (size_t f = 0; f < WEIR_ARRAY_LEN(families); f++) {
        for (int32_t i = 0; i < families[f].n; i++) {
            int32_t n_devices = families[f].n_devices, share = SHARE_OF(families[f].share_pct);
            int64_t n_cpus = 1 + (int64_t)weir_rng_below(&live->rng, 8);
            live->templates[n++] =
                (struct live_template){.n_tasks = families[f].n_tasks,
                                       .n_devices = n_devices,
                                       .device_milli = n_devices > 0 ? share : 0,
                                       .cpu_milli = n_cpus * 1000 * WEIR_MAX(n_devices, 1),
                                       .memory_bytes = n_cpus * 4 * GIB * WEIR_MAX(n_devices, 1),
                                       .model = i % 2 == 0 ? -1 : i / 2 % N_MODELS};
        }
    }
}

static const struct live_template *draw_template(struct live *live)
{
    int32_t at = (int32_t)weir_rng_below(&live->rng, 100), n = 0;
    for (size_t f = 0; f < WEIR_ARRAY_LEN(families); f++) {
        if (at < families[f].weight) {
            n += (int32_t)weir_rng_below(&live->rng, (uint64_t)families[f].n);
            break;
        }
        at -= families[f].weight;
        n += families[f].n;
    }
    return &live->templates[n];
}

static void make_nodes(struct live *live)
{
    for (int32_t i = 0; i < live->size.n_nodes; i++) {
        struct weir_sched_node *node = &live->cluster.nodes[test_node(&live->cluster, 8)];
        int32_t model = (int32_t)weir_rng_below(&live->rng, 10);
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
static void make_queues(struct live *live)
{
    int32_t n_leaves = 0, mean = live->size.n_nodes * 8 / (LIVE_DEPARTMENTS * LIVE_TEAMS);
    for (int32_t d = 0; d < LIVE_DEPARTMENTS; d++) {
        int32_t parent = test_queue(&live->cluster, -1, mean * LIVE_TEAMS, 1, -1);
        for (int32_t t = 0; t < LIVE_TEAMS; t++) {
            int32_t quota = mean * (1 + 2 * t) / LIVE_TEAMS;
            live->leaves[n_leaves++] = test_queue(&live->cluster, parent, quota, 1 + t % 2, -1);
        }
    }
}

static void add_job(struct live *live)
{
    static const char *const users[] = {"ann", "bea", "cem", "dan"};
    static const int priorities[] = {50, 50, 50, 75, 75, 100};
    struct test_cluster *cluster = &live->cluster;
    struct weir_rng *rng = &live->rng;
    const struct live_template *of = draw_template(live);
    struct weir_sched_job *job = test_job(
        cluster, live->leaves[weir_rng_below(rng, WEIR_ARRAY_LEN(live->leaves))],
        priorities[weir_rng_below(rng, WEIR_ARRAY_LEN(priorities))], of->n_tasks, of->n_devices);
    live->n_made++;
    job->name = weir_arena_printf(&cluster->arena, "job-%08lld", (long long)live->n_made);
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

static bool has_room(const struct live *live)
{
    return live->cluster.snapshot.n_jobs < live->jobs_max &&
           live->cluster.snapshot.n_tasks + 8 <= live->tasks_max;
}

void live_init(struct live *live, const struct live_size *size, uint64_t seed)
{
    *live = (struct live){.size = *size};
    live->tasks_max = 2 * size->n_tasks + 8 * size->n_waiting + 1000;
    live->jobs_max = live->tasks_max;
    weir_rng_init(&live->rng, seed, 17);
    test_cluster_init(&live->cluster, size->n_nodes, LIVE_DEPARTMENTS * (LIVE_TEAMS + 1),
                      live->jobs_max, live->tasks_max);
    live->cluster.arena.max_bytes = (size_t)8 << 30;
    make_templates(live);
    make_nodes(live);
    make_queues(live);
    while (live->cluster.snapshot.n_tasks < size->n_tasks && has_room(live)) {
        add_job(live);
    }
}

void live_fini(struct live *live)
{
    test_cluster_fini(&live->cluster);
}

static bool is_over(const struct live *live, const struct weir_sched_job *job)
{
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (live->cluster.tasks[t].state != WEIR_SCHED_DONE) {
            return false;
        }
    }
    return true;
}

static bool is_waiting(const struct live *live, const struct weir_sched_job *job)
{
    return live->cluster.tasks[job->first_task].state == WEIR_SCHED_PENDING;
}

/** Some of the jobs that run whole come to their end. */
static void end_some(struct live *live)
{
    struct test_cluster *cluster = &live->cluster;
    uint64_t n_running = (uint64_t)WEIR_MAX(live_count_running(live), 1);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        bool runs = true;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            runs = runs && cluster->tasks[t].state == WEIR_SCHED_RUNNING;
        }
        bool ends = runs && weir_rng_below(&live->rng, n_running) < (uint64_t)live->size.n_ends;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && ends; t++) {
            cluster->tasks[t].state = WEIR_SCHED_DONE;
        }
    }
}

/** Forget what is over, so that a snapshot holds what a server would hand over. */
static int32_t compact(struct live *live)
{
    struct test_cluster *cluster = &live->cluster;
    int32_t n_jobs = 0, n_tasks = 0, n_waiting = 0;
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job job = cluster->jobs[j];
        if (is_over(live, &job)) {
            continue;
        }
        n_waiting += is_waiting(live, &job);
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

void live_step(struct live *live, const struct weir_sched_plan *plan)
{
    struct test_cluster *cluster = &live->cluster;
    test_live_apply(cluster, plan, &live->rng);
    end_some(live);
    for (int32_t n_waiting = compact(live); n_waiting < live->size.n_waiting && has_room(live);
         n_waiting++) {
        add_job(live);
    }
}

int32_t live_count_running(const struct live *live)
{
    int32_t n = 0;
    for (int32_t t = 0; t < live->cluster.snapshot.n_tasks; t++) {
        n += live->cluster.tasks[t].state == WEIR_SCHED_RUNNING;
    }
    return n;
}
