#include "sim/what_if.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum outcome {
    OUTCOME_STAYS,
    OUTCOME_STARTS,
    OUTCOME_GROWS,
    OUTCOME_STARTS_LATER,
    OUTCOME_WAITS,
    OUTCOME_EVICTED,
    OUTCOME_SHRINKS,
    OUTCOME_MOVES,
    N_OUTCOMES,
};

static const char *const outcome_names[N_OUTCOMES] = {
    "stays", "starts", "grows", "starts when room is free", "waits", "evicted", "shrinks", "moves",
};

/** What a plan does with a job. */
struct effect {
    enum outcome outcome;
    int32_t n_bound, n_pipelined, n_evicted, n_running, n_pending;
    char why[WEIR_SCHED_TEXT_BYTES];
};

static json_t *checked(json_t *value)
{
    if (value == NULL) {
        (void)fprintf(stderr, "weir: out of memory while comparing plans\n");
        abort();
    }
    return value;
}

void weir_sim_change_init(struct weir_sim_change *change)
{
    *change = (struct weir_sim_change){.accelerators = WEIR_SIM_KEEP,
                                       .priority = WEIR_SIM_KEEP,
                                       .quota_milli = WEIR_SIM_KEEP,
                                       .limit_milli = WEIR_SIM_KEEP,
                                       .weight = WEIR_SIM_KEEP};
}

/* ---- fates ----------------------------------------------------------------------------------- */

static int32_t min_of(const struct weir_sched_job *job)
{
    int32_t min = job->n_groups > 0 ? job->groups[0].min_member : job->min_member;
    return min < 0 ? job->n_tasks : min;
}

static enum outcome judge(const struct effect *effect, int32_t min)
{
    int32_t n_gone = effect->n_evicted, n_placed = effect->n_bound + effect->n_pipelined;
    if (n_gone > 0 && n_placed >= n_gone) {
        return OUTCOME_MOVES;
    }
    if (n_gone > 0) {
        return effect->n_running - n_gone >= min ? OUTCOME_SHRINKS : OUTCOME_EVICTED;
    }
    if (n_placed > 0 && effect->n_running >= min) {
        return OUTCOME_GROWS;
    }
    if (effect->n_pipelined > 0) {
        return OUTCOME_STARTS_LATER;
    }
    if (effect->n_bound > 0) {
        return OUTCOME_STARTS;
    }
    return effect->n_pending > 0 && effect->n_running < min ? OUTCOME_WAITS : OUTCOME_STAYS;
}

static const char *reason_text(enum weir_sched_evict_reason reason)
{
    switch (reason) {
    case WEIR_SCHED_EVICT_CONSOLIDATION:
        return "moved together with others";
    case WEIR_SCHED_EVICT_RECLAIM:
        return "reclaimed by another queue";
    case WEIR_SCHED_EVICT_PREEMPT:
        return "preempted by higher priority";
    case WEIR_SCHED_EVICT_STALE:
        return "its gang is below its minimum";
    case WEIR_SCHED_EVICT_AFTER_GRACE:
        return "was asked to leave, and has saved or had its time";
    case WEIR_SCHED_EVICT_TIME_LIMIT:
        return "runs for longer than its time limit";
    case WEIR_SCHED_EVICT_IDLE:
        return "its devices are idle for too long";
    case WEIR_SCHED_EVICT_NONE:
        break;
    }
    return "must leave";
}

static void tell_eviction(const struct weir_sched_snapshot *snapshot,
                          const struct weir_sched_action *action, const struct weir_sched_job *job,
                          bool names_all, struct effect *effect)
{
    bool is_named =
        action->by_job >= 0 && (names_all || snapshot->jobs[action->by_job].queue == job->queue);
    const char *by = is_named ? snapshot->jobs[action->by_job].name : NULL;
    effect->n_evicted++;
    (void)snprintf(effect->why, sizeof effect->why, "%s%s%s%.100s",
                   action->kind == WEIR_SCHED_REQUEST_CHECKPOINT ? "asked to save first: " : "",
                   reason_text(action->reason), by != NULL ? ", for " : "", by != NULL ? by : "");
}

static void count_actions(const struct weir_sched_snapshot *snapshot,
                          const struct weir_sched_plan *plan, const int32_t *job_of, bool names_all,
                          struct effect *effects)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        struct effect *effect = &effects[job_of[action->task]];
        if (action->kind != WEIR_SCHED_BIND && action->kind != WEIR_SCHED_PIPELINE) {
            tell_eviction(snapshot, action, &snapshot->jobs[job_of[action->task]], names_all,
                          effect);
            continue;
        }
        effect->n_bound += action->kind == WEIR_SCHED_BIND;
        effect->n_pipelined += action->kind == WEIR_SCHED_PIPELINE;
        if (effect->why[0] == '\0') {
            (void)snprintf(effect->why, sizeof effect->why, "on %.100s",
                           snapshot->nodes[action->node].name);
        }
    }
    for (int32_t i = 0; i < plan->n_waits; i++) {
        memcpy(effects[plan->waits[i].job].why, plan->waits[i].text, sizeof effects[0].why);
    }
}

static weir_status find_effects(const struct weir_sched_snapshot *snapshot,
                                const struct weir_sched_profile *profile, bool names_all,
                                struct weir_arena *arena, struct effect **out,
                                struct weir_sched_plan **out_plan, struct weir_error *err)
{
    struct weir_sched_plan *plan;
    WEIR_TRY(weir_sched_plan(snapshot, profile, &plan, err));
    struct effect *effects = WEIR_ARENA_ARRAY(arena, (size_t)snapshot->n_jobs + 1, struct effect);
    int32_t *job_of = WEIR_ARENA_ARRAY(arena, (size_t)snapshot->n_tasks + 1, int32_t);
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            job_of[t] = j;
            effects[j].n_running += snapshot->tasks[t].state == WEIR_SCHED_RUNNING;
            effects[j].n_pending += snapshot->tasks[t].state == WEIR_SCHED_PENDING;
        }
    }
    count_actions(snapshot, plan, job_of, names_all, effects);
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        effects[j].outcome = judge(&effects[j], min_of(&snapshot->jobs[j]));
    }
    *out = effects;
    *out_plan = plan;
    return WEIR_OK;
}

static json_t *counts_json(const struct effect *effects, int32_t n_jobs)
{
    int32_t counts[N_OUTCOMES] = {0};
    for (int32_t j = 0; j < n_jobs; j++) {
        counts[effects[j].outcome]++;
    }
    json_t *object = checked(json_object());
    for (int i = 0; i < N_OUTCOMES; i++) {
        (void)json_object_set_new(object, outcome_names[i], checked(json_integer(counts[i])));
    }
    return object;
}

static weir_status next_plan(const struct weir_sched_snapshot *snapshot,
                             const struct weir_sched_profile *profile, bool names_all, json_t **out,
                             struct weir_sched_plan **out_plan, struct weir_error *err)
{
    struct weir_arena arena;
    struct effect *effects;
    struct weir_sched_plan *plan = NULL;
    weir_arena_init(&arena, (size_t)4 << 30);
    weir_status status = find_effects(snapshot, profile, names_all, &arena, &effects, &plan, err);
    if (status == WEIR_OK) {
        json_t *jobs = checked(json_array());
        for (int32_t j = 0; j < snapshot->n_jobs; j++) {
            const struct weir_sched_job *job = &snapshot->jobs[j];
            (void)json_array_append_new(
                jobs, checked(json_pack("{s:s, s:s, s:s, s:s}", "job", job->name, "queue",
                                        snapshot->queues[job->queue].name, "outcome",
                                        outcome_names[effects[j].outcome], "why", effects[j].why)));
        }
        *out = checked(json_pack("{s:o, s:o}", "counts", counts_json(effects, snapshot->n_jobs),
                                 "jobs", jobs));
    }
    weir_arena_fini(&arena);
    if (status == WEIR_OK) {
        *out_plan = plan;
    }
    return status;
}

weir_status weir_sim_next(const struct weir_sched_snapshot *snapshot,
                          const struct weir_sched_profile *profile, json_t **out,
                          struct weir_error *err)
{
    struct weir_sched_plan *plan;
    WEIR_TRY(next_plan(snapshot, profile, true, out, &plan, err));
    weir_sched_plan_destroy(plan);
    return WEIR_OK;
}

weir_status weir_sim_next_plan(const struct weir_sched_snapshot *snapshot,
                               const struct weir_sched_profile *profile, json_t **out,
                               struct weir_sched_plan **out_plan, struct weir_error *err)
{
    return next_plan(snapshot, profile, false, out, out_plan, err);
}

/* ---- the change ------------------------------------------------------------------------------ */

static weir_status change_tasks(struct weir_sched_job *job, struct weir_sched_task *tasks,
                                const struct weir_sim_change *change, struct weir_error *err)
{
    int32_t n = 0;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        n += tasks[t].state != WEIR_SCHED_DONE;
    }
    if (n == 0 || change->accelerators < 1 || change->accelerators > (int64_t)4096 * n ||
        change->accelerators % n != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "accelerators: job \"%.80s\" has %d tasks to run: expected a number "
                              "that they can share evenly",
                              job->name, n);
    }
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        struct weir_sched_task *task = &tasks[t];
        if (task->state == WEIR_SCHED_DONE) {
            continue;
        }
        task->demand.n_devices = (int32_t)(change->accelerators / n);
        task->demand.device_milli = WEIR_SCHED_DEVICE;
        task->demand.device_memory_bytes = 0;
        task->state = WEIR_SCHED_PENDING;
        task->node = WEIR_SCHED_NONE;
        task->devices = NULL;
    }
    job->started_ms = job->stale_since_ms = 0;
    return WEIR_OK;
}

static weir_status change_job(struct weir_sched_snapshot *changed, struct weir_arena *arena,
                              const struct weir_sim_change *change, int32_t *out_job,
                              struct weir_error *err)
{
    int32_t j = 0;
    while (j < changed->n_jobs && strcmp(changed->jobs[j].name, change->job) != 0) {
        j++;
    }
    if (j == changed->n_jobs) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "the snapshot has no job \"%.80s\"",
                              change->job);
    }
    struct weir_sched_job *jobs =
        WEIR_ARENA_ARRAY(arena, (size_t)changed->n_jobs, struct weir_sched_job);
    struct weir_sched_task *tasks =
        WEIR_ARENA_ARRAY(arena, (size_t)changed->n_tasks, struct weir_sched_task);
    memcpy(jobs, changed->jobs, (size_t)changed->n_jobs * sizeof *jobs);
    memcpy(tasks, changed->tasks, (size_t)changed->n_tasks * sizeof *tasks);
    if (change->priority != WEIR_SIM_KEEP) {
        if (change->priority < INT32_MIN || change->priority > INT32_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "priority: out of range");
        }
        jobs[j].priority = (int32_t)change->priority;
    }
    if (change->accelerators != WEIR_SIM_KEEP) {
        WEIR_TRY(change_tasks(&jobs[j], tasks, change, err));
    }
    changed->jobs = jobs;
    changed->tasks = tasks;
    *out_job = j;
    return WEIR_OK;
}

static bool has_model(const struct weir_sched_snapshot *snapshot, const char *model)
{
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        if (snapshot->nodes[i].model != NULL && strcmp(snapshot->nodes[i].model, model) == 0) {
            return true;
        }
    }
    return false;
}

/** The queue's share of a model, to be changed; one that it has not is added. */
static struct weir_sched_share *share_of_model(struct weir_sched_queue *queue, const char *model,
                                               struct weir_arena *arena)
{
    size_t n = (size_t)queue->n_models;
    struct weir_sched_model_share *list =
        WEIR_ARENA_ARRAY(arena, n + 1, struct weir_sched_model_share);
    if (n > 0) {
        memcpy(list, queue->models, n * sizeof *list);
    }
    queue->models = list;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].model, model) == 0) {
            return &list[i].share;
        }
    }
    list[n] =
        (struct weir_sched_model_share){model, {WEIR_SCHED_UNLIMITED, 1, WEIR_SCHED_UNLIMITED}};
    queue->n_models++;
    return &list[n].share;
}

static weir_status change_queue(struct weir_sched_snapshot *changed, struct weir_arena *arena,
                                const struct weir_sim_change *change, struct weir_error *err)
{
    int32_t q = 0;
    while (q < changed->n_queues && strcmp(changed->queues[q].name, change->queue) != 0) {
        q++;
    }
    if (q == changed->n_queues) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "the snapshot has no queue \"%.80s\"",
                              change->queue);
    }
    struct weir_sched_queue *queues =
        WEIR_ARENA_ARRAY(arena, (size_t)changed->n_queues, struct weir_sched_queue);
    memcpy(queues, changed->queues, (size_t)changed->n_queues * sizeof *queues);
    struct weir_sched_share *share = &queues[q].shares[WEIR_SCHED_ACCELERATOR];
    if (change->model != NULL) {
        if (!has_model(changed, change->model)) {
            return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                  "the snapshot has no node of model \"%.80s\"", change->model);
        }
        share = share_of_model(&queues[q], change->model, arena);
    }
    share->quota = change->quota_milli != WEIR_SIM_KEEP ? change->quota_milli : share->quota;
    share->limit = change->limit_milli != WEIR_SIM_KEEP ? change->limit_milli : share->limit;
    share->weight = change->weight != WEIR_SIM_KEEP ? change->weight : share->weight;
    changed->queues = queues;
    return WEIR_OK;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static json_t *jobs_json(const struct weir_sched_snapshot *snapshot, const struct effect *before,
                         const struct effect *after, int32_t changed_job)
{
    json_t *list = checked(json_array());
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        bool waits = before[j].outcome == OUTCOME_WAITS || after[j].outcome == OUTCOME_WAITS;
        bool differs = before[j].outcome != after[j].outcome ||
                       (waits && strcmp(before[j].why, after[j].why) != 0);
        if (differs || j == changed_job) {
            (void)json_array_append_new(
                list, checked(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "job", job->name, "queue",
                                        snapshot->queues[job->queue].name, "before",
                                        outcome_names[before[j].outcome], "after",
                                        outcome_names[after[j].outcome], "why_before",
                                        before[j].why, "why_after", after[j].why)));
        }
    }
    return list;
}

/** One resource of a queue, if anything about it differs. */
static void add_share(json_t *list, const char *queue, const char *model,
                      const struct weir_sched_queue_share *before, int before_r,
                      const struct weir_sched_queue_share *after, int after_r)
{
    int64_t old_fair = before->fair_share.of[before_r], old_has = before->allocated.of[before_r];
    int64_t new_fair = after->fair_share.of[after_r], new_has = after->allocated.of[after_r];
    if (old_fair != new_fair || old_has != new_has) {
        (void)json_array_append_new(
            list,
            checked(json_pack("{s:s, s:s?, s:f, s:f, s:f, s:f}", "queue", queue, "model", model,
                              "fair_share_before", (double)old_fair / WEIR_SCHED_DEVICE,
                              "fair_share_after", (double)new_fair / WEIR_SCHED_DEVICE,
                              "allocated_before", (double)old_has / WEIR_SCHED_DEVICE,
                              "allocated_after", (double)new_has / WEIR_SCHED_DEVICE)));
    }
}

/** Of models those that both snapshots divide: what was not divided before was not counted. */
static json_t *queues_json(const struct weir_sched_snapshot *snapshot,
                           const struct weir_sched_snapshot *changed,
                           const struct weir_sched_plan *before,
                           const struct weir_sched_plan *after)
{
    const char *old_models[WEIR_SCHED_MODELS_MAX], *new_models[WEIR_SCHED_MODELS_MAX];
    int32_t n_old = weir_sched_models(snapshot, old_models);
    int32_t n_new = weir_sched_models(changed, new_models);
    json_t *list = checked(json_array());
    for (int32_t q = 0; q < snapshot->n_queues; q++) {
        const char *name = snapshot->queues[q].name;
        add_share(list, name, NULL, &before->queues[q], WEIR_SCHED_ACCELERATOR, &after->queues[q],
                  WEIR_SCHED_ACCELERATOR);
        for (int32_t n = 0; n < n_new; n++) {
            for (int32_t o = 0; o < n_old; o++) {
                if (strcmp(old_models[o], new_models[n]) == 0) {
                    add_share(list, name, new_models[n], &before->queues[q],
                              WEIR_SCHED_FIRST_MODEL + o, &after->queues[q],
                              WEIR_SCHED_FIRST_MODEL + n);
                }
            }
        }
    }
    return list;
}

static weir_status compare(const struct weir_sched_snapshot *snapshot,
                           const struct weir_sched_snapshot *changed,
                           const struct weir_sched_profile *profile, int32_t changed_job,
                           struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    struct weir_sched_plan *plan_before = NULL, *plan_after = NULL;
    struct effect *before, *after;
    WEIR_TRY(find_effects(snapshot, profile, true, arena, &before, &plan_before, err));
    weir_status status = find_effects(changed, profile, true, arena, &after, &plan_after, err);
    if (status == WEIR_OK) {
        *out = checked(json_pack("{s:o, s:o, s:o, s:o}", "before",
                                 counts_json(before, snapshot->n_jobs), "after",
                                 counts_json(after, snapshot->n_jobs), "jobs",
                                 jobs_json(snapshot, before, after, changed_job), "queues",
                                 queues_json(snapshot, changed, plan_before, plan_after)));
    }
    weir_sched_plan_destroy(plan_before);
    weir_sched_plan_destroy(plan_after);
    return status;
}

weir_status weir_sim_what_if(const struct weir_sched_snapshot *snapshot,
                             const struct weir_sched_profile *profile,
                             const struct weir_sim_change *change, json_t **out,
                             struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_sched_snapshot changed = *snapshot;
    int32_t changed_job = WEIR_SCHED_NONE;
    weir_status status = WEIR_OK;
    if (change->job == NULL && change->queue == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "nothing changes: name a job or a queue");
    }
    WEIR_TRY(weir_sched_snapshot_check(snapshot, err));
    weir_arena_init(&arena, (size_t)4 << 30);
    if (change->job != NULL) {
        status = change_job(&changed, &arena, change, &changed_job, err);
    }
    if (status == WEIR_OK && change->queue != NULL) {
        status = change_queue(&changed, &arena, change, err);
    }
    if (status == WEIR_OK) {
        status = compare(snapshot, &changed, profile, changed_job, &arena, out, err);
    }
    weir_arena_fini(&arena);
    return status;
}
