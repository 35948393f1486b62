/*
 * What must hold whatever the cluster says of itself: clusters with windows, sub-groups, topology,
 * reservations, maintenance, taints, MIG, shares by memory, minimal run times and delays live
 * through rounds of plans. Everything is summed up here from the actions alone, by rules written
 * down a second time. Seeds are the numbers of the cases.
 */
#include "sched/test/test_full.h"
#include "sched/test/test_outcome.h"
#include "sched/test/test_seeds.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdio.h>
#include <time.h>

#define ROUNDS_MAX 240
#define QUEUES_MAX 16

static int seeds(void)
{
    return test_seeds(150);
}

static bool is_by_memory(const struct weir_sched_demand *demand)
{
    return demand->n_devices > 0 && demand->device_milli == 0;
}

/** Bytes of each device that a task takes. */
static int64_t device_bytes(const struct weir_sched_demand *demand,
                            const struct weir_sched_node *node)
{
    return is_by_memory(demand) ? demand->device_memory_bytes
                                : node->device_memory_bytes / 1000 * demand->device_milli;
}

/** Of a queue's accelerators; MIG devices count an eighth. */
static int64_t charge_of(const struct test_cluster *cluster, int32_t t, int32_t node)
{
    const struct weir_sched_demand *demand = &cluster->tasks[t].demand;
    int64_t each = demand->device_milli, sum = 0;
    if (is_by_memory(demand)) {
        int64_t memory = cluster->nodes[node].device_memory_bytes;
        each = (demand->device_memory_bytes * 1000 + memory - 1) / memory;
        each = WEIR_MIN(each, 1000);
    }
    bool are_known = false;
    for (int32_t n = 0; n < cluster->snapshot.n_nodes; n++) {
        are_known = are_known || cluster->nodes[n].n_extras > 0;
    }
    for (int32_t e = 0; e < demand->n_extras && are_known; e++) {
        sum += demand->extras[e].count * full_extra.device_milli;
    }
    return sum + demand->n_devices * each;
}

/** What is taken of a node, now or in the future. */
struct use {
    int64_t cpu, memory, extras, n_tasks, devices[16];
};

/** Whole devices of a task whose zones are known lie in these. */
static void check_devices_in_zones(const struct weir_sched_node *node,
                                   const struct weir_sched_demand *demand, const int32_t *devices,
                                   uint32_t zones)
{
    bool is_whole = demand->n_devices > 0 && demand->device_milli == 1000;
    for (int32_t i = 0; is_whole && demand->numa_aligned && zones != 0 && i < demand->n_devices;
         i++) {
        int32_t zone = devices[i] < node->zones[0].n_devices ? 0 : 1;
        ck_assert((zones >> zone & 1) != 0);
    }
}

/** No set of zones holds more than it has of those who lie in no others. */
static void check_zones(const struct test_cluster *cluster, const struct outcome *outcomes,
                        int32_t n, bool is_now)
{
    const struct weir_sched_node *node = &cluster->nodes[n];
    for (int32_t t = 0; t < cluster->snapshot.n_tasks && node->n_zones > 0; t++) {
        if ((is_now ? outcomes[t].now : outcomes[t].future) == n) {
            check_devices_in_zones(node, &cluster->tasks[t].demand,
                                   is_now ? outcomes[t].now_devices : outcomes[t].future_devices,
                                   is_now ? outcomes[t].now_zones : outcomes[t].future_zones);
        }
    }
    for (uint32_t set = 1; set < 1U << node->n_zones; set++) {
        int64_t size = 0, used = 0;
        for (int32_t z = 0; z < node->n_zones; z++) {
            size += (set >> z & 1) != 0 ? node->zones[z].cpu_milli : 0;
        }
        for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
            uint32_t zones = is_now ? outcomes[t].now_zones : outcomes[t].future_zones;
            bool is_there = (is_now ? outcomes[t].now : outcomes[t].future) == n;
            used += is_there && zones != 0 && (zones & ~set) == 0
                        ? cluster->tasks[t].demand.cpu_milli
                        : 0;
        }
        ck_assert_int_le(used, size);
    }
}

static void check_node(const struct test_cluster *cluster, const struct outcome *outcomes,
                       int32_t n, bool is_now)
{
    const struct weir_sched_node *node = &cluster->nodes[n];
    struct use use = {0};
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        const struct weir_sched_demand *demand = &cluster->tasks[t].demand;
        const int32_t *devices = is_now ? outcomes[t].now_devices : outcomes[t].future_devices;
        if ((is_now ? outcomes[t].now : outcomes[t].future) != n) {
            continue;
        }
        use.cpu += demand->cpu_milli;
        use.memory += demand->memory_bytes;
        use.extras += demand->n_extras > 0 ? demand->extras[0].count : 0;
        use.n_tasks++;
        for (int32_t i = 0; i < demand->n_devices; i++) {
            use.devices[devices[i]] += device_bytes(demand, node);
        }
    }
    ck_assert_int_le(use.cpu, node->cpu_milli);
    ck_assert_int_le(use.memory, node->memory_bytes);
    ck_assert_int_le(use.extras, node->n_extras > 0 ? node->extras[0].count : 0);
    ck_assert(node->n_tasks_max < 0 || use.n_tasks <= node->n_tasks_max);
    for (int32_t d = 0; d < node->n_devices; d++) {
        ck_assert_int_le(use.devices[d],
                         (node->device_memory_bytes * weir_sched_device_milli(node) + 999) / 1000);
    }
}

static int64_t run_of(const struct weir_sched_job *job)
{
    return job->time_limit_ms > 0 ? job->time_limit_ms : job->expected_run_ms;
}

static bool is_in_queue(const struct test_cluster *cluster, int32_t queue, int32_t top)
{
    while (queue >= 0 && queue != top) {
        queue = cluster->queues[queue].parent;
    }
    return queue >= 0;
}

/** Whether neither maintenance nor a reservation keeps the job from starting there now. */
static bool may_start(const struct test_cluster *cluster, int32_t j, int32_t n)
{
    const struct weir_sched_node *node = &cluster->nodes[n];
    int64_t now = cluster->snapshot.now_ms, run = run_of(&cluster->jobs[j]);
    bool is_free = node->closed_until_ms <= now || node->closed_from_ms >= now + WEIR_MAX(run, 1);
    for (int32_t r = 0; r < cluster->snapshot.n_reservations; r++) {
        const struct weir_sched_reservation *reserved = &cluster->snapshot.reservations[r];
        bool is_its = reserved->job >= 0
                          ? reserved->job == j
                          : is_in_queue(cluster, cluster->jobs[j].queue, reserved->queue);
        bool meets = reserved->nodes[0] == n && reserved->until_ms > now &&
                     (run <= 0 || now + run > reserved->from_ms);
        is_free = is_free && (is_its || !meets);
    }
    return is_free;
}

/** Whoever is given a node may be there, and who starts may start. */
static void check_place(const struct test_cluster *cluster, const struct weir_sched_action *action,
                        int32_t j)
{
    const struct weir_sched_node *node = &cluster->nodes[action->node];
    const struct weir_sched_task *task = &cluster->tasks[action->task];
    bool is_share = task->demand.n_devices > 0 && task->demand.device_milli != 1000;
    ck_assert(!node->is_cordoned);
    ck_assert(node->n_taints == 0 || task->n_tolerations > 0);
    ck_assert(task->n_selector == 0 || node->n_labels == 3);
    ck_assert(!node->is_whole_only || !is_share);
    if (action->kind != WEIR_SCHED_BIND) {
        return;
    }
    ck_assert(may_start(cluster, j, action->node));
}

/** The share that holds, by the calendar of the C library. */
static const struct weir_sched_share *share_now(const struct test_cluster *cluster, int32_t q)
{
    const struct weir_sched_queue *queue = &cluster->queues[q];
    time_t now = (time_t)(cluster->snapshot.now_ms / 1000);
    struct tm tm;
    ck_assert_ptr_nonnull(gmtime_r(&now, &tm));
    int minute = tm.tm_hour * 60 + tm.tm_min, today = (tm.tm_wday + 6) % 7;
    if (queue->n_timed_quotas > 0) {
        const struct weir_sched_timed_quota *timed = &queue->timed_quotas[0];
        bool is_today = (timed->days >> today & 1) != 0;
        bool was_yesterday = (timed->days >> (today + 6) % 7 & 1) != 0;
        bool is_overnight = timed->until_minute <= timed->from_minute;
        bool has_begun = is_today && minute >= timed->from_minute;
        bool holds = is_overnight ? has_begun || (was_yesterday && minute < timed->until_minute)
                                  : has_begun && minute < timed->until_minute;
        if (holds) {
            return &timed->shares[WEIR_SCHED_ACCELERATOR];
        }
    }
    return &queue->shares[WEIR_SCHED_ACCELERATOR];
}

struct account {
    int64_t all, fixed, before; /**< Before: with what the plan evicts as well. */
    bool grows, grows_fixed;    /**< Something came that was not there. */
};

static void count_job(const struct test_cluster *cluster, const struct outcome *outcomes, int32_t j,
                      struct account *accounts)
{
    const struct weir_sched_job *job = &cluster->jobs[j];
    bool is_fixed = job->preemptibility == WEIR_SCHED_NON_PREEMPTIBLE;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        int32_t future = outcomes[t].future, now = outcomes[t].now;
        bool is_new = outcomes[t].is_placed && !outcomes[t].is_evicted && !outcomes[t].was_going &&
                      !weir_sched_task_has_node(cluster->tasks[t].state);
        for (int32_t q = job->queue; q >= 0; q = cluster->queues[q].parent) {
            int64_t charge = future >= 0 ? charge_of(cluster, t, future) : 0;
            accounts[q].all += charge;
            accounts[q].fixed += is_fixed ? charge : 0;
            accounts[q].before += future >= 0 ? charge : now >= 0 ? charge_of(cluster, t, now) : 0;
            accounts[q].grows = accounts[q].grows || (is_new && charge > 0);
            accounts[q].grows_fixed = accounts[q].grows_fixed || (is_new && is_fixed && charge > 0);
        }
    }
}

/** What the plan placed and then gave to others shows only by its reason for waiting. Its queue had
 *  it when others took from the queue. */
static void count_displaced(const struct test_cluster *cluster, const struct weir_sched_plan *plan,
                            int32_t j, struct account *accounts)
{
    const struct weir_sched_job *job = &cluster->jobs[j];
    bool is_displaced = false;
    for (int32_t i = 0; i < plan->n_waits; i++) {
        is_displaced = is_displaced ||
                       (plan->waits[i].job == j && plan->waits[i].code == WEIR_SCHED_WAIT_RESERVED);
    }
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && is_displaced; t++) {
        for (int32_t q = job->queue; q >= 0; q = cluster->queues[q].parent) {
            accounts[q].before += charge_of(cluster, t, 0);
        }
    }
}

static void check_queues(const struct test_cluster *cluster, const struct weir_sched_plan *plan,
                         const struct account *accounts)
{
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        const struct weir_sched_share *share = share_now(cluster, q);
        ck_assert_int_eq(accounts[q].all, plan->queues[q].allocated.of[WEIR_SCHED_ACCELERATOR]);
        ck_assert(share->limit < 0 || !accounts[q].grows || accounts[q].all <= share->limit);
        ck_assert(share->quota < 0 || !accounts[q].grows_fixed ||
                  accounts[q].fixed <= share->quota);
    }
}

/** Of a group, how many members have a place, or of an inner one how many are satisfied. */
static bool is_satisfied(const struct test_cluster *cluster, const struct weir_sched_job *job,
                         const bool *has_place, int32_t g)
{
    int32_t n = 0, n_all = 0;
    bool is_leaf = true;
    for (int32_t c = 1; c < job->n_groups; c++) {
        if (job->groups[c].parent == g) {
            n += is_satisfied(cluster, job, has_place, c);
            n_all++;
            is_leaf = false;
        }
    }
    for (int32_t t = 0; t < job->n_tasks && is_leaf; t++) {
        bool is_in = job->n_groups == 0 || cluster->tasks[job->first_task + t].group == g;
        n += is_in && has_place[job->first_task + t];
        n_all += is_in;
    }
    int32_t min = job->n_groups == 0 ? job->min_member : job->groups[g].min_member;
    return n >= (min < 0 ? n_all : min);
}

/** A gang is whole or not at all, and whole again in each of its sub-groups. */
static void check_gang(const struct test_cluster *cluster, const struct outcome *outcomes,
                       int32_t j)
{
    const struct weir_sched_job *job = &cluster->jobs[j];
    bool was[TEST_MAX / 100] = {false}, is[TEST_MAX / 100] = {false}, is_any = false;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        was[t] = weir_sched_task_has_node(cluster->tasks[t].state) &&
                 (!outcomes[t].was_going || cluster->tasks[t].nomination != NULL);
        is[t] = outcomes[t].future >= 0;
        is_any = is_any || is[t];
    }
    if (is_any && is_satisfied(cluster, job, was, 0)) {
        ck_assert(is_satisfied(cluster, job, is, 0));
    }
    bool starts = false;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        starts = starts || (is[t] && !was[t]);
    }
    ck_assert(!starts || is_satisfied(cluster, job, is, 0));
}

/** What must lie together does: the labels down to the required level are the same. */
static void check_topology(const struct test_cluster *cluster, const struct outcome *outcomes,
                           int32_t j)
{
    const struct weir_sched_job *job = &cluster->jobs[j];
    for (int32_t g = 0; g < job->n_groups; g++) {
        int32_t level = job->groups[g].topology < 0 ? -1 : job->groups[g].required_level,
                first = -1;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && level >= 0; t++) {
            bool is_in = g == 0 || cluster->tasks[t].group == g;
            if (!is_in || outcomes[t].future < 0) {
                continue;
            }
            first = first < 0 ? outcomes[t].future : first;
            for (int32_t l = 0; l <= level; l++) {
                ck_assert_str_eq(cluster->nodes[first].labels[l].value,
                                 cluster->nodes[outcomes[t].future].labels[l].value);
            }
        }
    }
}

static int32_t depth_of(const struct test_cluster *cluster, int32_t q)
{
    return cluster->queues[q].parent < 0 ? 0 : 1 + depth_of(cluster, cluster->queues[q].parent);
}

/** How long the victim's job runs before it may be taken from for `by`: what is stated nearest, for
 *  reclaim from below the common ancestor up. */
static int64_t min_run_of(const struct test_cluster *cluster, int32_t victim, int32_t by,
                          bool is_reclaim)
{
    int32_t q = cluster->jobs[victim].queue;
    while (is_reclaim && depth_of(cluster, q) > 0 &&
           !is_in_queue(cluster, cluster->jobs[by].queue, cluster->queues[q].parent)) {
        q = cluster->queues[q].parent;
    }
    for (; q >= 0; q = cluster->queues[q].parent) {
        int64_t stated = is_reclaim ? cluster->queues[q].reclaim_min_run_ms
                                    : cluster->queues[q].preempt_min_run_ms;
        if (stated >= 0) {
            return stated;
        }
    }
    return 0;
}

/** Who evicts for others may, and whom it takes may be taken. */
static void check_eviction(const struct test_cluster *cluster, const struct outcome *outcomes,
                           const struct weir_sched_action *action, int32_t j,
                           const struct account *accounts)
{
    const struct weir_sched_job *job = &cluster->jobs[j], *by = &cluster->jobs[action->by_job];
    int64_t now = cluster->snapshot.now_ms;
    int64_t since = by->queued_ms > 0 ? by->queued_ms : by->created_ms;
    bool stays[TEST_MAX / 100] = {false};
    ck_assert_int_ne(job->preemptibility, WEIR_SCHED_NON_PREEMPTIBLE);
    ck_assert_int_ge(now - since, by->preemption_delay_ms);
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        stays[t] = !outcomes[t].is_evicted && !outcomes[t].was_going &&
                   cluster->tasks[t].state == WEIR_SCHED_RUNNING;
    }
    bool is_reclaim = action->reason == WEIR_SCHED_EVICT_RECLAIM;
    bool is_other = is_reclaim || action->reason == WEIR_SCHED_EVICT_PREEMPT;
    bool is_young = job->started_ms > 0 &&
                    now - job->started_ms < min_run_of(cluster, j, action->by_job, is_reclaim);
    bool keeps_minimum = job->preemptibility == WEIR_SCHED_SEMI_PREEMPTIBLE;
    if ((is_other && is_young) || keeps_minimum) {
        ck_assert(is_satisfied(cluster, job, stays, 0));
    }
    bool is_over = false;
    for (int32_t q = job->queue; q >= 0; q = cluster->queues[q].parent) {
        int64_t quota = share_now(cluster, q)->quota;
        is_over = is_over || (quota >= 0 && accounts[q].before > quota);
    }
    ck_assert(!is_reclaim || outcomes[action->task].is_placed || is_over);
}

static void check_plan(struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    const struct outcome *outcomes = outcomes_of(cluster, plan);
    struct account accounts[QUEUES_MAX] = {{0}};
    int32_t *jobs =
        WEIR_ARENA_ARRAY(&cluster->arena, (size_t)cluster->snapshot.n_tasks + 1, int32_t);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        for (int32_t t = 0; t < cluster->jobs[j].n_tasks; t++) {
            jobs[cluster->jobs[j].first_task + t] = j;
        }
        count_job(cluster, outcomes, j, accounts);
        count_displaced(cluster, plan, j, accounts);
        check_gang(cluster, outcomes, j);
        check_topology(cluster, outcomes, j);
    }
    for (int32_t n = 0; n < cluster->snapshot.n_nodes; n++) {
        check_node(cluster, outcomes, n, true);
        check_node(cluster, outcomes, n, false);
        check_zones(cluster, outcomes, n, true);
        check_zones(cluster, outcomes, n, false);
    }
    check_queues(cluster, plan, accounts);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        bool is_out =
            action->kind == WEIR_SCHED_EVICT || action->kind == WEIR_SCHED_REQUEST_CHECKPOINT;
        if (!is_out) {
            check_place(cluster, action, jobs[action->task]);
        } else if (action->by_job >= 0 && !outcomes[action->task].was_going) {
            check_eviction(cluster, outcomes, action, jobs[action->task], accounts);
        }
    }
}

/** Take a promise back that an earlier plan gave. */
static bool forget(struct weir_sched_task *task)
{
    bool was_nominated = task->nomination != NULL || task->state == WEIR_SCHED_PIPELINED;
    task->nomination = NULL;
    if (task->state == WEIR_SCHED_PIPELINED) {
        task->state = WEIR_SCHED_PENDING;
        task->node = WEIR_SCHED_NONE;
        task->devices = NULL;
    }
    return was_nominated;
}

/**
 * Whether the plan says of a job that it waits for something else than what was nominated for it.
 */
static bool has_no_nomination(const struct weir_sched_plan *plan, int32_t j)
{
    for (int32_t i = 0; i < plan->n_waits; i++) {
        if (plan->waits[i].job == j) {
            return plan->waits[i].code != WEIR_SCHED_WAIT_ROOM_COMING;
        }
    }
    return false;
}

/** Forget nominations of nodes where a job, had it to start now, could no longer, or which the
 *  plan has dropped: with them those of a gang that is not whole without. */
static void forget_void_nominations(struct test_cluster *cluster,
                                    const struct weir_sched_plan *plan)
{
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        bool has_place[TEST_MAX / 100] = {false}, is_any_void = false,
                                  is_all = has_no_nomination(plan, j);
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            struct weir_sched_task *task = &cluster->tasks[t];
            int32_t to = task->nomination != NULL              ? task->nomination->node
                         : task->state == WEIR_SCHED_PIPELINED ? task->node
                                                               : -1;
            bool is_reserved = to >= 0 && !is_all && may_start(cluster, j, to);
            is_any_void = (!is_reserved && forget(task)) || is_any_void;
            has_place[t] = task->nomination != NULL || task->state == WEIR_SCHED_PIPELINED ||
                           (task->state == WEIR_SCHED_RUNNING && !task->is_leaving);
        }
        bool is_broken = is_any_void && !is_satisfied(cluster, job, has_place, 0);
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && is_broken; t++) {
            forget(&cluster->tasks[t]);
        }
    }
}

/** Check a plan against the cluster without what of earlier plans cannot be kept. */
static void check_what_stands(struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    size_t size = (size_t)cluster->snapshot.n_tasks * sizeof *cluster->tasks;
    void *as_it_was = weir_arena_memdup(&cluster->arena, cluster->tasks, size);
    forget_void_nominations(cluster, plan);
    check_plan(cluster, plan);
    memcpy(cluster->tasks, as_it_was, size);
}

static int play_until_rest(struct test_cluster *cluster, const struct weir_sched_profile *profile,
                           struct weir_rng *rng)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct weir_sched_plan *plan = test_plan_twice(cluster, profile);
        check_what_stands(cluster, plan);
        for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) { /* As whoever keeps them must. */
            for (int32_t t = 0; t < cluster->jobs[j].n_tasks && has_no_nomination(plan, j); t++) {
                forget(&cluster->tasks[cluster->jobs[j].first_task + t]);
            }
        }
        bool is_still = plan->n_actions == 0 && !test_workload_moves(cluster);
        test_workload_apply(cluster, plan, rng);
        weir_sched_plan_destroy(plan);
        if (is_still) {
            return round;
        }
    }
    return ROUNDS_MAX;
}

START_TEST(a_full_feature_cluster_obeys_every_invariant_and_comes_to_rest)
{
    struct weir_sched_profile profile;
    struct test_cluster cluster;
    struct weir_rng rng;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
    weir_rng_init(&rng, (uint64_t)_i, 29);
    test_cluster_random(&cluster, &rng, 8);
    test_workload_random(&cluster, &rng);
    test_full_random(&cluster, &rng);
    test_full_parts(&cluster, &rng);
    int rounds = play_until_rest(&cluster, &profile, &rng);
    if (rounds == ROUNDS_MAX) {
        printf("seed %d does not come to rest\n", _i);
    }
    ck_assert_int_lt(rounds, ROUNDS_MAX);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("rich",
                     {a_full_feature_cluster_obeys_every_invariant_and_comes_to_rest, seeds()})
