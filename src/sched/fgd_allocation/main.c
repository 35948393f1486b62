/**
 * fgd-allocation DIR: how much of a cluster a placement rule gets allocated, beside what the
 * authors of FGD measured for theirs (Weng et al., ATC'23, figure 9 and its variants).
 *
 * The cluster is the GPU nodes of Alibaba's trace of 2023. Tasks are a trace's list, and more drawn
 * from it with replacement, or fewer, until they ask for 130 % of the devices; shuffled; placed one
 * by one; none leaves; those that do not fit are dropped. The number is what is allocated when
 * tasks for 100 % and for 130 % have come, in percent of all devices, mean of the seeds. As in the
 * authors' table it is the mean over the arrivals that round to the percent.
 *
 * All of a seed's tasks are one snapshot and one plan: each is a job of its own in one queue
 * without limits, and the plan's order is the order of arrival.
 */
#include "sched/fgd_allocation/openb.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/rng.h"
#include "sched/sched.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES_FILE    "alibaba-gpu-v2023/openb_node_list_gpu_node.csv"
#define TASKS_FILE    "alibaba-gpu-v2023/openb_pod_list_%s.csv"
#define EXPECTED_FILE "fgd-expected/analysis_allo_discrete.csv"
#define FIRST_SEED    42
#define LOAD_PCT      130
#define EXIT_NO_FILE  77

static const char *const traces[] = {
    "default",   "cpu050",    "cpu100",    "cpu250",     "gpushare40", "gpushare60", "gpushare80",
    "gpuspec10", "gpuspec25", "gpuspec33", "multigpu20", "multigpu30", "multigpu50",
};

struct settings {
    const char *folder;
    const char *only;      /**< A trace's name; NULL: all. */
    const char *placement; /**< Of tasks with devices and without. */
    int n_seeds;
};

/** One trace on the cluster, and the snapshot made of it. */
struct trial {
    const struct openb_nodes *nodes;
    const struct openb_tasks *tasks;
    struct weir_arena *arena;
    struct weir_sched_node *snapshot_nodes;
    uint32_t *drawn; /**< Of tasks, in order of arrival. */
    int32_t n_drawn, n_drawn_max;
};

struct outcome {
    double at_100, at_130;
    double ms, decisions;
};

static int64_t milli_of(const struct openb_task *task)
{
    return (int64_t)task->n_devices * task->device_milli;
}

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, len) == 0 && (at[len] == '|' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

/** A node carries as a label each set of models, as tasks write it, that its model is in. */
static void make_labels(struct trial *trial, struct weir_sched_node *node)
{
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(trial->arena, (size_t)trial->tasks->n, struct weir_sched_label);
    node->labels = labels;
    for (int32_t t = 0; t < trial->tasks->n; t++) {
        const char *models = trial->tasks->all[t].models;
        bool is_new = models[0] != '\0' && has_word(models, node->model);
        for (int32_t i = 0; i < node->n_labels && is_new; i++) {
            is_new = strcmp(labels[i].key, models) != 0;
        }
        if (is_new) {
            labels[node->n_labels++] = (struct weir_sched_label){models, "yes"};
        }
    }
}

static void make_nodes(struct trial *trial)
{
    trial->snapshot_nodes =
        WEIR_ARENA_ARRAY(trial->arena, (size_t)trial->nodes->n, struct weir_sched_node);
    for (int32_t i = 0; i < trial->nodes->n; i++) {
        const struct openb_node *from = &trial->nodes->all[i];
        struct weir_sched_node *node = &trial->snapshot_nodes[i];
        *node = (struct weir_sched_node){.name = from->name,
                                         .model = from->model,
                                         .n_devices = from->n_devices,
                                         .n_tasks_max = WEIR_SCHED_UNLIMITED,
                                         .cpu_milli = from->cpu_milli,
                                         .memory_bytes = from->memory_bytes};
        bool is_found = false;
        for (int32_t j = 0; j < i && !is_found; j++) {
            if (strcmp(trial->snapshot_nodes[j].model, node->model) == 0) {
                node->labels = trial->snapshot_nodes[j].labels;
                node->n_labels = trial->snapshot_nodes[j].n_labels;
                is_found = true;
            }
        }
        if (!is_found) {
            make_labels(trial, node);
        }
    }
}

/** The list, then more drawn with replacement or fewer, shuffled. */
static void draw(struct trial *trial, int seed)
{
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)seed, 0);
    const struct openb_tasks *tasks = trial->tasks;
    int64_t wanted = trial->nodes->milli * LOAD_PCT / 100, milli = 0;
    trial->n_drawn = 0;
    for (int32_t i = 0; i < tasks->n; i++) {
        trial->drawn[trial->n_drawn++] = (uint32_t)i;
        milli += milli_of(&tasks->all[i]);
    }
    weir_rng_shuffle_u32(&rng, trial->drawn, (size_t)trial->n_drawn);
    while (milli > wanted) {
        milli -= milli_of(&tasks->all[trial->drawn[--trial->n_drawn]]);
    }
    while (trial->n_drawn < trial->n_drawn_max) {
        uint32_t next = (uint32_t)weir_rng_below(&rng, (uint64_t)tasks->n);
        milli += milli_of(&tasks->all[next]);
        if (milli > wanted) {
            break;
        }
        trial->drawn[trial->n_drawn++] = next;
    }
    weir_rng_shuffle_u32(&rng, trial->drawn, (size_t)trial->n_drawn);
}

static void make_task(const struct openb_task *from, struct weir_arena *arena,
                      struct weir_sched_task *task)
{
    *task = (struct weir_sched_task){.name = from->name,
                                     .node = WEIR_SCHED_NONE,
                                     .demand = {.cpu_milli = from->cpu_milli,
                                                .memory_bytes = from->memory_bytes,
                                                .n_devices = from->n_devices,
                                                .device_milli = from->device_milli}};
    if (from->n_devices > 0 && from->models[0] != '\0') {
        struct weir_sched_label *selector = WEIR_ARENA_NEW(arena, struct weir_sched_label);
        selector->key = from->models;
        task->selector = selector;
        task->n_selector = 1;
    }
}

static void make_snapshot(struct trial *trial, struct weir_arena *arena,
                          struct weir_sched_snapshot *out)
{
    struct weir_sched_queue *queue = WEIR_ARENA_NEW(arena, struct weir_sched_queue);
    size_t n = (size_t)trial->n_drawn;
    struct weir_sched_job *jobs = WEIR_ARENA_ARRAY(arena, n, struct weir_sched_job);
    struct weir_sched_task *tasks = WEIR_ARENA_ARRAY(arena, n, struct weir_sched_task);
    *queue = (struct weir_sched_queue){.name = "all",
                                       .parent = WEIR_SCHED_NONE,
                                       .priority = 100,
                                       .preempt_min_run_ms = -1,
                                       .reclaim_min_run_ms = -1};
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        queue->shares[r] = (struct weir_sched_share){WEIR_SCHED_UNLIMITED, 1, WEIR_SCHED_UNLIMITED};
    }
    for (int32_t i = 0; i < trial->n_drawn; i++) {
        make_task(&trial->tasks->all[trial->drawn[i]], arena, &tasks[i]);
        jobs[i] = (struct weir_sched_job){.name = tasks[i].name,
                                          .priority = 50,
                                          .first_task = i,
                                          .n_tasks = 1,
                                          .min_member = 1,
                                          .created_ms = i + 1,
                                          .queued_ms = i + 1,
                                          .stale_grace_ms = -1,
                                          .utilisation_pct = -1};
    }
    *out = (struct weir_sched_snapshot){.now_ms = trial->n_drawn + 1,
                                        .nodes = trial->snapshot_nodes,
                                        .n_nodes = trial->nodes->n,
                                        .queues = queue,
                                        .n_queues = 1,
                                        .jobs = jobs,
                                        .n_jobs = trial->n_drawn,
                                        .tasks = tasks,
                                        .n_tasks = trial->n_drawn};
}

/** Go through the arrivals and take the mean allocation where the load rounds to the percents. */
static void measure(const struct trial *trial, const bool *is_placed, struct outcome *out)
{
    double sums[2] = {0, 0};
    int counts[2] = {0, 0};
    int64_t arrived = 0, allocated = 0, all = trial->nodes->milli;
    for (int32_t i = 0; i < trial->n_drawn; i++) {
        int64_t milli = milli_of(&trial->tasks->all[trial->drawn[i]]);
        arrived += milli;
        allocated += is_placed[i] ? milli : 0;
        int64_t pct = (200 * arrived + all) / (2 * all);
        int which = pct == LOAD_PCT;
        if (pct == 100 || pct == LOAD_PCT) {
            sums[which] += (double)allocated / (double)all * 100;
            counts[which]++;
        }
    }
    out->at_100 += counts[0] > 0 ? sums[0] / counts[0] : 0;
    out->at_130 += counts[1] > 0 ? sums[1] / counts[1] : 0;
}

static weir_status run_seed(struct trial *trial, const struct weir_sched_profile *profile, int seed,
                            struct outcome *out, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct weir_sched_snapshot snapshot;
    struct weir_sched_plan *plan = NULL;
    draw(trial, seed);
    make_snapshot(trial, &arena, &snapshot);
    uint64_t start_ns = weir_mono_ns();
    weir_status status = weir_sched_plan(&snapshot, profile, &plan, err);
    out->ms += (double)(weir_mono_ns() - start_ns) / 1e6;
    if (status == WEIR_OK) {
        bool *is_placed = WEIR_ARENA_ARRAY(&arena, (size_t)trial->n_drawn, bool);
        for (int32_t i = 0; i < plan->n_actions; i++) {
            is_placed[plan->actions[i].task] = plan->actions[i].kind == WEIR_SCHED_BIND;
        }
        measure(trial, is_placed, out);
        out->decisions += (double)trial->n_drawn;
    }
    weir_sched_plan_destroy(plan);
    weir_arena_fini(&arena);
    return status;
}

static weir_status run_trace(const struct settings *settings, const char *name,
                             const struct openb_nodes *nodes,
                             const struct weir_sched_profile *profile, struct outcome *out,
                             struct openb_expected *expected, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct openb_tasks tasks;
    *out = (struct outcome){0};
    const char *file = weir_arena_printf(&arena, "%s/" TASKS_FILE, settings->folder, name);
    const char *table = weir_arena_printf(&arena, "%s/" EXPECTED_FILE, settings->folder);
    const char *trace = weir_arena_printf(&arena, "openb_pod_list_%s", name);
    weir_status status = openb_read_expected(table, trace, &arena, expected, err);
    if (status == WEIR_OK) {
        status = openb_read_tasks(file, &arena, &tasks, err);
    }
    if (status == WEIR_OK) {
        struct trial trial = {
            .nodes = nodes, .tasks = &tasks, .arena = &arena, .n_drawn_max = 4 * tasks.n};
        trial.drawn = WEIR_ARENA_ARRAY(&arena, (size_t)trial.n_drawn_max, uint32_t);
        make_nodes(&trial);
        for (int i = 0; i < settings->n_seeds && status == WEIR_OK; i++) {
            status = run_seed(&trial, profile, FIRST_SEED + i, out, err);
        }
    }
    out->at_100 /= settings->n_seeds;
    out->at_130 /= settings->n_seeds;
    weir_arena_fini(&arena);
    return status;
}

static weir_status run_all(const struct settings *settings, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct openb_nodes nodes;
    struct weir_sched_profile profile;
    char placement[16], actions[] = "allocate";
    snprintf(placement, sizeof placement, "%s", settings->placement);
    weir_status status = openb_read_nodes(
        weir_arena_printf(&arena, "%s/" NODES_FILE, settings->folder), &arena, &nodes, err);
    if (status == WEIR_OK) {
        status = weir_sched_profile_named("default", &profile, err);
        profile.placement = profile.placement_cpu = placement;
        profile.actions = actions;
    }
    printf("%-12s %7s %7s %7s  %7s %7s %7s %12s\n", "trace", "ours", "theirs", "at 100%", "ours",
           "theirs", "at 130%", "us/decision");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(traces) && status == WEIR_OK; i++) {
        struct outcome ours;
        struct openb_expected theirs;
        if (settings->only != NULL && strcmp(settings->only, traces[i]) != 0) {
            continue;
        }
        status = run_trace(settings, traces[i], &nodes, &profile, &ours, &theirs, err);
        if (status == WEIR_OK) {
            printf("%-12s %7.2f %7.2f %+7.2f  %7.2f %7.2f %+7.2f %12.1f\n", traces[i], ours.at_100,
                   theirs.at_100, ours.at_100 - theirs.at_100, ours.at_130, theirs.at_130,
                   ours.at_130 - theirs.at_130, ours.ms * 1000 / ours.decisions);
            (void)fflush(stdout);
        }
    }
    weir_arena_fini(&arena);
    return status;
}

static int usage(void)
{
    fprintf(stderr, "Usage: fgd-allocation [-p RULE] [-t TRACE] [-n SEEDS] DIR\n"
                    "Places the traces under DIR by a rule (fgd) and prints what was allocated,\n"
                    "beside what the authors of FGD measured.\n");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct settings settings = {.placement = "fgd", .n_seeds = 10};
    int option;
    while ((option = getopt(argc, argv, "p:t:n:")) != -1) {
        if (option == 'p') {
            settings.placement = optarg;
        } else if (option == 't') {
            settings.only = optarg;
        } else if (option == 'n') {
            settings.n_seeds = (int)strtol(optarg, NULL, 10);
        } else {
            return usage();
        }
    }
    if (optind + 1 != argc || settings.n_seeds < 1) {
        return usage();
    }
    settings.folder = argv[optind];
    if (access(settings.folder, R_OK) != 0) {
        fprintf(stderr, "fgd-allocation: %s cannot be read\n", settings.folder);
        return EXIT_NO_FILE;
    }
    struct weir_error err = {0};
    weir_status status = run_all(&settings, &err);
    if (status != WEIR_OK) {
        fprintf(stderr, "fgd-allocation: %s\n", err.message);
        return weir_status_exit(status);
    }
    return EXIT_SUCCESS;
}
