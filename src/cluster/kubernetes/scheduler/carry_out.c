#include "cluster/kubernetes/scheduler/carry_out.h"

#include "cluster/kubernetes/scheduler/config_map.h"
#include "cluster/kubernetes/scheduler/hold.h"
#include "cluster/kubernetes/scheduler/part.h"
#include "cluster/kubernetes/scheduler/settle.h"
#include "cluster/kubernetes/scheduler/tell.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/macros.h"
#include "sched/apply.h"

#include <string.h>

static const char *path_of(const struct carry_out *carry, const struct place_pod *pod,
                           const char *what)
{
    return weir_arena_printf(carry->arena, "/api/v1/namespaces/%s/pods/%s/%s", pod->space,
                             pod->name, what);
}

static const struct place_pod *pod_of(const struct carry_out *carry,
                                      const struct weir_sched_action *action)
{
    return carry->world->pod_of_task[action->task]->pod;
}

static const char *node_of(const struct carry_out *carry, const struct weir_sched_action *action)
{
    return carry->world->snapshot.nodes[action->node].name;
}

/* ---- eviction --------------------------------------------------------------------------------- */

static const char *why_evicted(const struct carry_out *carry,
                               const struct weir_sched_action *action)
{
    const struct weir_sched_snapshot *snapshot = &carry->world->snapshot;
    const struct weir_sched_job *by = action->by_job >= 0 ? &snapshot->jobs[action->by_job] : NULL;
    if (action->reason == WEIR_SCHED_EVICT_STALE) {
        return "A part of its gang alone runs for too long.";
    }
    return by == NULL ? "Evicted by Weir."
           : action->reason == WEIR_SCHED_EVICT_RECLAIM
               ? weir_arena_printf(carry->arena, "What it borrowed goes back to queue %.100s.",
                                   snapshot->queues[by->queue].name)
               : weir_arena_printf(carry->arena, "Preempted by %.200s, whose priority is higher.",
                                   by->name);
}

void carry_out_evict(struct carry_out *carry, const struct place_pod *pod, const char *why)
{
    struct memory_item *item = memory_of(carry->memory, pod->uid);
    if (item->leaves_until_ms > 0 || item->spared_until_ms > carry->now_ms) {
        return;
    }
    const struct calls_one one = {
        .kind = CALLS_EVICT,
        .uid = pod->uid,
        .method = "POST",
        .path = path_of(carry, pod, "eviction"),
        .body = json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:{s:s}}}", "apiVersion", "policy/v1", "kind",
                          "Eviction", "metadata", "name", pod->name, "namespace", pod->space,
                          "deleteOptions", "preconditions", "uid", pod->uid)};
    if (calls_ask(carry->calls, &one)) {
        item->leaves_until_ms = INT64_MAX;
        tell_event(carry, pod, "Normal", "Preempted", why);
    }
}

/* What is not bound yet has only to lose its place. */
static weir_status evict(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    struct carry_out *carry = context;
    (void)err;
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct weir_sched_action *action = part->actions[i];
        const struct place_pod *pod = pod_of(carry, action);
        struct memory_item *item = memory_of(carry->memory, pod->uid);
        if (action->kind != WEIR_SCHED_EVICT) {
            continue;
        }
        if (item->is_held) {
            memory_let_go(item);
        } else if (item->awaits_claims) { /* it has not started */
            settle_give_up(item);
        } else {
            carry_out_evict(carry, pod, why_evicted(carry, action));
        }
    }
    return WEIR_OK;
}

/* ---- binding ---------------------------------------------------------------------------------- */

/* What a binding says of a pod beside its node is written in the same step. */
static json_t *binding_of(const struct place_pod *pod, const char *node,
                          const struct carry_out_part *part)
{
    return json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:s,s:o*},s:{s:s,s:s,s:s}}", "apiVersion", "v1", "kind", "Binding",
        "metadata", "name", pod->name, "namespace", pod->space, "uid", pod->uid, "annotations",
        part == NULL ? NULL
                     : json_pack("{s:s,s:s}", PART_GROUP, part->group, PART_DEVICE, part->device),
        "target", "apiVersion", "v1", "kind", "Node", "name", node);
}

void carry_out_bind(struct carry_out *carry, const struct place_pod *pod, const char *node,
                    const struct carry_out_part *part)
{
    struct memory_item *item = memory_of(carry->memory, pod->uid);
    const struct calls_one one = {
        .kind = CALLS_BIND,
        .uid = pod->uid,
        .method = "POST",
        .path = path_of(carry, pod, "binding"),
        .body = binding_of(pod, node, part),
        .before = part != NULL ? config_map_write : NULL,
        .with = part != NULL ? part_config(pod, part->device, carry->arena) : NULL};
    if (calls_ask(carry->calls, &one)) {
        memory_set(&item->node, node);
        item->node_until_ms = INT64_MAX;
        item->is_held = false;
        item->n_refused = 0;
        item->awaits_claims = false;
        memory_set(&item->nominated, "");
        tell_event(carry, pod, "Normal", "Scheduled",
                   weir_arena_printf(carry->arena, "Assigned %s to %s by queue %s", pod->key, node,
                                     pod->queue));
    }
}

/* May all of them lie where the plan has them, one after another? If so they do. */
static bool lie_well(struct carry_out *carry, const struct weir_sched_part *part)
{
    struct neighbours *neighbours = &carry->world->neighbours;
    const size_t n = neighbours->n, n_guarded = neighbours->n_guarded;
    bool are_well = true;
    for (int32_t i = 0; i < part->n_actions && are_well; i++) {
        const struct place_pod *pod = pod_of(carry, part->actions[i]);
        int32_t node = part->actions[i]->node;
        if (neighbours_matter(neighbours, pod)) {
            bool *allowed = WEIR_ARENA_ARRAY(carry->arena, (size_t)neighbours->n_nodes + 1, bool);
            memset(allowed, 1, (size_t)neighbours->n_nodes);
            neighbours_allow(neighbours, pod, true, allowed);
            are_well = allowed[node];
        }
        neighbours_add(neighbours, pod, node, true);
    }
    if (!are_well) {
        neighbours->n = n;
        neighbours->n_guarded = n_guarded;
    }
    return are_well;
}

/* By what lies there then the next cycle does better; if not, it is said. */
static void refuse(struct carry_out *carry, const struct weir_sched_part *part, const char *why)
{
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct place_pod *pod = pod_of(carry, part->actions[i]);
        struct memory_item *item = memory_of(carry->memory, pod->uid);
        if (++item->n_refused >= CARRY_OUT_REFUSALS) {
            tell_waiting(carry, pod, item, why);
        }
    }
}

static const char *const refusals[] = {
    [SHARES_BIND] = NULL,
    [SHARES_HOLD] = NULL,
    [SHARES_WAIT] = "The accelerators that it is to have are not free yet: what holds them for "
                    "parts of them lets go first, or is not known to hold them all.",
    [SHARES_REFUSE] = "The accelerators that ConfigMaps of it, or of its gang, tell of have no "
                      "room for all that read them.",
};

/* May it be carried out by what lies where by now? Then it counts as if it were. */
static bool fits(struct carry_out *carry, const struct weir_sched_part *part)
{
    if (!settle_fits(carry, part)) {
        refuse(carry, part,
               "Others get the volumes that its claims, or those of its gang, could have had.");
        return false;
    }
    if (!lie_well(carry, part)) {
        settle_take_back(carry);
        refuse(carry, part,
               "The places that are free for it, or for its gang, lie beside others, or apart, "
               "than its affinity or spread constraints allow.");
        return false;
    }
    return true;
}

/* What is not whole yet keeps its places. */
static weir_status place(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    struct carry_out *carry = context;
    (void)err;
    bool is_bound = weir_sched_part_is_bound(part);
    if (is_bound && !fits(carry, part)) {
        return WEIR_OK;
    }
    if (is_bound && settle_ask(carry, part)) {
        return WEIR_OK;
    }
    enum shares_answer answer = is_bound ? hold_place(carry, part) : SHARES_WAIT;
    if (is_bound && refusals[answer] != NULL) {
        refuse(carry, part, refusals[answer]);
    }
    for (int32_t i = 0; i < part->n_actions && answer != SHARES_HOLD; i++) {
        const struct place_pod *pod = pod_of(carry, part->actions[i]);
        const char *node = node_of(carry, part->actions[i]);
        if (answer == SHARES_BIND) {
            carry_out_bind(carry, pod, node, NULL);
        } else if (carry->world->pod_of_task[part->actions[i]->task]->node == NULL) {
            memory_set(&memory_of(carry->memory, pod->uid)->nominated, node);
            carry->nominated[part->actions[i]->task] = true;
        }
    }
    return WEIR_OK;
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static weir_status wait(void *context, const struct weir_sched_wait *wait, struct weir_error *err)
{
    struct carry_out *carry = context;
    (void)err;
    carry->waits[wait->job] = wait;
    return WEIR_OK;
}

static const char *sentence_of(const struct carry_out *carry, const struct weir_sched_wait *wait)
{
    bool could_be_freed = wait->code == WEIR_SCHED_WAIT_FULL ||
                          wait->code == WEIR_SCHED_WAIT_GANG ||
                          wait->code == WEIR_SCHED_WAIT_TOPOLOGY;
    return weir_arena_printf(carry->arena, "%.*s%s", (int)wait->why_bytes, wait->text,
                             could_be_freed && carry->are_some_spared
                                 ? " Pods that a PodDisruptionBudget protects are not evicted."
                                 : "");
}

/* Is it a task that has been neither bound nor told where? */
static bool is_waiting(const struct carry_out *carry, int32_t task)
{
    const struct world_pod *pod = carry->world->pod_of_task[task];
    const struct memory_item *item = memory_find(carry->memory, pod->pod->uid);
    return pod->node == NULL && (item == NULL || item->node == NULL);
}

/* No task keeps a place that the plan does not give it. */
static void say_of_job(struct carry_out *carry, int32_t j)
{
    const struct weir_sched_job *job = &carry->world->snapshot.jobs[j];
    const struct weir_sched_wait *wait_of = carry->waits[j];
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        const struct place_pod *pod = carry->world->pod_of_task[t]->pod;
        if (!is_waiting(carry, t)) {
            continue;
        }
        struct memory_item *item = memory_of(carry->memory, pod->uid);
        if (!carry->nominated[t]) {
            memory_set(&item->nominated, "");
        }
        if (wait_of != NULL) {
            tell_waiting(carry, pod, item, sentence_of(carry, wait_of));
        }
    }
}

static void say_all(struct carry_out *carry)
{
    for (int32_t j = 0; j < carry->world->snapshot.n_jobs; j++) {
        say_of_job(carry, j);
    }
    for (size_t i = 0; i < carry->input->n_pods; i++) {
        const struct place_pod *pod = carry->input->pods[i].pod;
        if (carry->world->why[i] != NULL) {
            tell_waiting(carry, pod, memory_of(carry->memory, pod->uid), carry->world->why[i]);
        }
    }
}

weir_status carry_out(struct carry_out *carry, const struct weir_sched_plan *plan,
                      struct weir_error *err)
{
    const struct weir_sched_snapshot *snapshot = &carry->world->snapshot;
    const struct weir_sched_executor executor = {
        .evict = evict, .place = place, .wait = wait, .context = carry};
    carry->waits = WEIR_ARENA_ARRAY(carry->arena, (size_t)snapshot->n_jobs + 1,
                                    const struct weir_sched_wait *);
    carry->nominated = WEIR_ARENA_ARRAY(carry->arena, (size_t)snapshot->n_tasks + 1, bool);
    carry->choices =
        WEIR_ARENA_ARRAY(carry->arena, (size_t)snapshot->n_tasks + 1, struct carry_out_choices);
    carry->now_ms = weir_mono_ms();
    WEIR_TRY(weir_sched_apply(snapshot, plan, &executor, err));
    hold_tend(carry);
    settle_waiting(carry);
    say_all(carry);
    return WEIR_OK;
}

/* ---- answers ---------------------------------------------------------------------------------- */

/* Nobody knows whether it was done when no answer came; "already assigned" says that it was, or that another was faster:
 * the mirror will tell. All else was not done. */
static bool bind_done(struct memory_item *item, const struct calls_one *one, weir_status status,
                      const struct weir_kube_refusal *refusal, const struct weir_error *err)
{
    if (one->has_failed_before) {
        memory_let_go(item);
        hold_trouble(item, "The ConfigMap for its part of an accelerator cannot be written", status,
                     err);
        return true;
    }
    bool may_be_bound = status == WEIR_OK || refusal->code == 0 || refusal->code >= 500 ||
                        strstr(err->message, "already assigned") != NULL;
    if (may_be_bound) {
        item->node_until_ms = weir_mono_ms() + MEMORY_UNASKED_MS;
    } else {
        memory_let_go(item);
    }
    return !may_be_bound;
}

static bool evict_done(struct memory_item *item, weir_status status,
                       const struct weir_kube_refusal *refusal)
{
    bool may_leave = status == WEIR_OK || refusal->code == 0 || refusal->code == 404;
    item->leaves_until_ms = may_leave ? weir_mono_ms() + MEMORY_UNASKED_MS : 0;
    item->spared_until_ms = may_leave ? 0 : weir_mono_ms() + CARRY_OUT_SPARE_MS;
    return !may_leave;
}

bool carry_out_done(struct memory *memory, const struct calls_one *one, weir_status status,
                    const struct weir_kube_refusal *refusal, const struct weir_error *err)
{
    static const char *const names[] = {
        "pod_not_bound",       "claim_not_bound",     "pod_not_evicted", "device_not_reserved",
        "device_not_released", "device_not_reported", "pod_not_told",    "event_not_told"};
    struct memory_item *item = memory_find(memory, one->uid);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_INFO, names[one->kind], WEIR_KV_STR("path", one->path),
                 WEIR_KV_STR("error", err->message));
    }
    if (item == NULL) {
        return false;
    }
    if (one->kind == CALLS_BIND) {
        return bind_done(item, one, status, refusal, err);
    }
    if (one->kind == CALLS_CLAIM) {
        return settle_done(memory, item, one, status, err);
    }
    if (one->kind == CALLS_EVICT) {
        return evict_done(item, status, refusal);
    }
    if (one->kind == CALLS_RESERVE || one->kind == CALLS_RELEASE || one->kind == CALLS_REPORT) {
        return hold_done(item, one, status, refusal, err);
    }
    if (one->kind == CALLS_SAY && status != WEIR_OK) {
        memory_set(&item->said, NULL);
    }
    return false;
}
