/**
 * No gang is starved by what others keep sending: on random clusters some queues always have small jobs
 * waiting, of any part of a CPU and of run times that nobody knows, and one sends gangs that fit the
 * empty cluster. Each gang starts within a bound of its being first in a queue that is not served; no
 * node ever has more than it can bear. The same streams without the reserve show what it costs, and
 * that a gang would wait for ever.
 */
#include "sched/sched.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "sched/test/test_cluster.h"
#include "sched/test/test_seeds.h"

#include <inttypes.h>
#include <stdio.h>

#define STEPS      400
#define STEP_MS    1000
#define RUN_MAX_MS 20000
#define RESERVE_MS 60000
#define JOBS       128
#define NODES      4
#define TASKS      24
#define WAITING    3 /* Small jobs of each stream. */

/* Once its turn has come, the gang waits for what runs then, and for nothing that starts later. */
#define BOUND_MS (RESERVE_MS + RUN_MAX_MS + 2 * STEP_MS)

struct live_job {
    int32_t queue, n_tasks;
    int64_t milli, created_ms, started_ms, run_ms;
    int32_t nodes[TASKS];
};

struct world {
    struct weir_rng rng;
    struct live_job jobs[JOBS];
    int32_t n_jobs, n_nodes, n_queues;
    int64_t room[NODES], now_ms, served_ms[5];
    int64_t longest_ms, used_ms, small_used_ms, n_gangs;
};

static int64_t between(struct world *world, int64_t low, int64_t high)
{
    return low + (int64_t)weir_rng_below(&world->rng, (uint64_t)(high - low + 1));
}

static struct live_job *add(struct world *world, int32_t queue)
{
    ck_assert_int_lt(world->n_jobs, JOBS);
    struct live_job *job = &world->jobs[world->n_jobs++];
    *job = (struct live_job){.queue = queue,
                             .n_tasks = 1,
                             .created_ms = world->now_ms,
                             .run_ms = between(world, STEP_MS, RUN_MAX_MS)};
    return job;
}

/* A gang that needs at least half of the empty cluster, and fits it. */
static void add_gang(struct world *world)
{
    int64_t n_most = 0, least = INT64_MAX;
    for (int32_t i = 0; i < world->n_nodes; i++) {
        least = WEIR_MIN(least, world->room[i]);
    }
    int64_t milli = between(world, least / 4, least);
    for (int32_t i = 0; i < world->n_nodes; i++) {
        n_most += world->room[i] / milli;
    }
    n_most = WEIR_MIN(n_most, TASKS);
    struct live_job *gang = add(world, 0);
    gang->milli = milli;
    gang->n_tasks = (int32_t)between(world, (n_most + 1) / 2, n_most);
}

static void refill(struct world *world)
{
    int n_waiting[5] = {0};
    bool has_gang = false;
    for (int32_t j = 0; j < world->n_jobs; j++) {
        n_waiting[world->jobs[j].queue] += world->jobs[j].started_ms == 0;
        has_gang = has_gang || world->jobs[j].queue == 0;
    }
    if (!has_gang) {
        add_gang(world);
    }
    for (int32_t q = 1; q < world->n_queues; q++) {
        for (int k = n_waiting[q]; k < WAITING; k++) {
            struct live_job *job = add(world, q);
            job->milli = between(world, 100, world->room[0] / 2);
        }
    }
}

static void end_some(struct world *world)
{
    int32_t n = 0;
    for (int32_t j = 0; j < world->n_jobs; j++) {
        struct live_job *job = &world->jobs[j];
        bool is_over = job->started_ms > 0 && world->now_ms - job->started_ms >= job->run_ms;
        if (is_over) {
            world->served_ms[job->queue] = world->now_ms;
            int64_t used_ms = job->milli * job->n_tasks * job->run_ms / 1000;
            world->used_ms += used_ms;
            world->small_used_ms += job->queue > 0 ? used_ms : 0;
        } else {
            world->jobs[n++] = *job;
        }
    }
    world->n_jobs = n;
}

static void fill(const struct world *world, struct test_cluster *cluster)
{
    test_cluster_init(cluster, NODES, 5, JOBS, JOBS * TASKS);
    cluster->snapshot.now_ms = world->now_ms;
    for (int32_t i = 0; i < world->n_nodes; i++) {
        cluster->nodes[test_node(cluster, 0)].cpu_milli = world->room[i];
    }
    for (int32_t q = 0; q < world->n_queues; q++) {
        struct weir_sched_queue *queue = &cluster->queues[test_queue(cluster, -1, 0, 1, -1)];
        queue->shares[WEIR_SCHED_CPU] = (struct weir_sched_share){0, 1, -1};
        queue->served_ms = world->served_ms[q];
    }
    for (int32_t j = 0; j < world->n_jobs; j++) {
        const struct live_job *given = &world->jobs[j];
        struct weir_sched_job *job = test_job(cluster, given->queue, 50, given->n_tasks, 0);
        job->created_ms = given->created_ms;
        job->started_ms = given->started_ms;
        for (int32_t t = 0; t < given->n_tasks; t++) {
            struct weir_sched_task *task = &cluster->tasks[job->first_task + t];
            task->demand = (struct weir_sched_demand){.cpu_milli = given->milli};
            if (given->started_ms > 0) {
                task->state = WEIR_SCHED_RUNNING;
                task->node = given->nodes[t];
            }
        }
    }
}

static void check_nodes(const struct world *world)
{
    int64_t used[NODES] = {0};
    for (int32_t j = 0; j < world->n_jobs; j++) {
        for (int32_t t = 0; t < world->jobs[j].n_tasks && world->jobs[j].started_ms > 0; t++) {
            used[world->jobs[j].nodes[t]] += world->jobs[j].milli;
        }
    }
    for (int32_t i = 0; i < world->n_nodes; i++) {
        ck_assert_int_le(used[i], world->room[i]);
    }
}

static void plan_once(struct world *world, const struct weir_sched_profile *profile)
{
    struct test_cluster cluster;
    fill(world, &cluster);
    struct weir_sched_plan *plan = test_plan(&cluster, profile);
    ck_assert_ptr_nonnull(plan);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        ck_assert_int_eq(action->kind, WEIR_SCHED_BIND);
        int32_t j = 0;
        while (action->task >= cluster.jobs[j].first_task + cluster.jobs[j].n_tasks) {
            j++;
        }
        struct live_job *job = &world->jobs[j];
        if (job->started_ms == 0 && job->queue == 0) {
            int64_t since = WEIR_MAX(job->created_ms, world->served_ms[0]);
            world->longest_ms = WEIR_MAX(world->longest_ms, world->now_ms - since);
            world->n_gangs++;
        }
        job->started_ms = world->served_ms[job->queue] = world->now_ms;
        job->nodes[action->task - cluster.jobs[j].first_task] = action->node;
    }
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
    check_nodes(world);
}

/* @return How long the gang has waited that waits; 0: none does. */
static int64_t waits_ms(const struct world *world)
{
    for (int32_t j = 0; j < world->n_jobs; j++) {
        const struct live_job *job = &world->jobs[j];
        if (job->queue == 0 && job->started_ms == 0) {
            return world->now_ms - WEIR_MAX(job->created_ms, world->served_ms[0]);
        }
    }
    return 0;
}

static void live(struct world *world, uint64_t seed, const struct weir_sched_profile *profile)
{
    *world = (struct world){.now_ms = TEST_NOW_MS};
    weir_rng_init(&world->rng, seed, 31);
    world->n_nodes = (int32_t)between(world, 1, NODES);
    world->n_queues = (int32_t)between(world, 2, 4);
    for (int32_t i = 0; i < world->n_nodes; i++) {
        world->room[i] = 500 * between(world, 4, 32);
    }
    for (int step = 0; step < STEPS; step++) {
        end_some(world);
        refill(world);
        plan_once(world, profile);
        world->longest_ms = WEIR_MAX(world->longest_ms, waits_ms(world));
        world->now_ms += STEP_MS;
    }
}

START_TEST(a_gang_starts_within_a_bound_beside_streams_of_small_jobs)
{
    struct world with, without;
    struct weir_sched_profile profile;
    struct weir_rng rng;
    uint64_t first = test_seed(&rng), n_seeds = (uint64_t)test_seeds(12);
    int64_t longest_ms = 0, worst_ms = 0, n = 0, n_without = 0;
    double used = 0, used_without = 0, small = 0, small_without = 0;
    for (uint64_t seed = first; seed < first + n_seeds; seed++) {
        ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
        profile.actions = "allocate"; /* As a server without queues. */
        live(&with, seed, &profile);
        ck_assert_msg(with.longest_ms <= BOUND_MS,
                      "seed %" PRIu64 ": a gang waits for %" PRId64 " ms", seed, with.longest_ms);
        profile.reserve_after_ms = 0;
        live(&without, seed, &profile);
        longest_ms = WEIR_MAX(longest_ms, with.longest_ms);
        worst_ms = WEIR_MAX(worst_ms, without.longest_ms);
        used += (double)with.used_ms;
        used_without += (double)without.used_ms;
        small += (double)with.small_used_ms;
        small_without += (double)without.small_used_ms;
        n += with.n_gangs;
        n_without += without.n_gangs;
    }
    printf("gangs wait for %.0f s at most, and %.0f s (of %d) without the reserve; %" PRId64
           " start, and %" PRId64 "; CPUs are used to %.1f %% of without, by others to %.1f %%\n",
           (double)longest_ms / 1000, (double)worst_ms / 1000, STEPS * STEP_MS / 1000, n, n_without,
           100 * used / used_without, 100 * small / small_without);
    ck_assert_int_gt(worst_ms, BOUND_MS); /* Else it proves nothing. */
    ck_assert_int_gt(n, n_without);
}

END_TEST

WEIR_TEST_MAIN("reserve", a_gang_starts_within_a_bound_beside_streams_of_small_jobs)
