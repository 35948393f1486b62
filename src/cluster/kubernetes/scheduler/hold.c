#include "cluster/kubernetes/scheduler/hold.h"

#include "cluster/kubernetes/scheduler/part.h"
#include "cluster/kubernetes/scheduler/reservation.h"
#include "cluster/kubernetes/scheduler/tell.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/macros.h"

#include <string.h>

#define REPORT_EACH_MS  500 /* a pod that has started may not have printed yet */
#define RELEASE_EACH_MS ((int64_t)5000)

enum shares_answer hold_place(struct carry_out *carry, const struct weir_sched_part *part)
{
    const char **groups = WEIR_ARENA_ARRAY(carry->arena, (size_t)part->n_actions + 1, const char *);
    enum shares_answer answer = shares_place(carry->world, part, groups);
    for (int32_t i = 0; i < part->n_actions && answer == SHARES_HOLD; i++) {
        const struct weir_sched_action *action = part->actions[i];
        struct memory_item *item =
            memory_of(carry->memory, carry->world->pod_of_task[action->task]->pod->uid);
        memory_set(&item->node, carry->world->snapshot.nodes[action->node].name);
        memory_set(&item->group, groups[i]);
        memory_set(&item->nominated, "");
        item->node_until_ms = INT64_MAX;
        item->is_held = true;
        item->held_ms = carry->now_ms;
    }
    return answer;
}

/* ---- devices that are divided ----------------------------------------------------------------- */

static const char *key_of(const char *group, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "group %s", group);
}

/* NULL: it is none of these devices. */
static const struct memory_item *find_item(struct carry_out *carry, const char *group)
{
    const struct memory_item *item = memory_find(carry->memory, key_of(group, carry->arena));
    return item != NULL && item->seen == carry->cycle ? item : NULL;
}

static const char *path_of(struct carry_out *carry, const char *more)
{
    return weir_arena_printf(carry->arena, "/api/v1/namespaces/%s/pods%s", carry->input->space,
                             more);
}

/* One thing at a time is asked for. The body is taken. */
static void ask(struct carry_out *carry, struct memory_item *item, struct calls_one one)
{
    if (item->asked_until_ms > carry->now_ms) {
        json_decref(one.body);
        return;
    }
    one.uid = item->key;
    one.about = item->holder;
    if (calls_ask(carry->calls, &one)) {
        item->asked_until_ms = INT64_MAX;
    }
}

static void reserve(struct carry_out *carry, const struct shares_group *group,
                    struct memory_item *item)
{
    const struct place_node *node = carry->input->nodes[group->node];
    if (!shares_can_divide(node) || item->retry_ms > carry->now_ms) {
        return;
    }
    ask(carry, item,
        (struct calls_one){.kind = CALLS_RESERVE,
                           .method = "POST",
                           .path = path_of(carry, ""),
                           .body = reservation_make(carry->reservation, node->name, node->device,
                                                    group->name, carry->arena)});
}

/* Nobody is bound with a part of it from now on. */
static void let_go(struct carry_out *carry, const struct shares_group *group,
                   struct memory_item *item)
{
    memory_set(&item->device, NULL);
    ask(carry, item,
        (struct calls_one){
            .kind = CALLS_RELEASE,
            .method = "DELETE",
            .path = path_of(carry, weir_arena_printf(carry->arena, "/%s", group->holder->name)),
            .body = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
                              "preconditions", "uid", group->holder->uid)});
}

static void read_report(struct carry_out *carry, const struct shares_group *group,
                        struct memory_item *item)
{
    ask(carry, item,
        (struct calls_one){
            .kind = CALLS_REPORT,
            .method = "GET",
            .path = path_of(carry, weir_arena_printf(carry->arena, "/%s/log", group->holder->name)),
            .query =
                weir_arena_printf(carry->arena, "container=" RESERVATION_CONTAINER "&limitBytes=%d",
                                  RESERVATION_PRINTED_MAX)});
}

/* A pod that was made meanwhile has told nothing yet. */
static void meet(const struct place_pod *holder, struct memory_item *item)
{
    const char *uid = holder != NULL ? holder->uid : "",
               *before = item->holder != NULL ? item->holder : "";
    if (strcmp(uid, before) != 0) {
        memory_set(&item->holder, holder != NULL ? uid : NULL);
        memory_set(&item->device, NULL);
        item->asked_until_ms = item->idle_ms = 0;
    }
    if (holder == NULL || holder->is_over || holder->gone_ms > 0) {
        memory_set(&item->device, NULL);
    }
    memory_set(&item->said, holder != NULL ? holder->holder.trouble : NULL);
}

/* It failed: another is made later. */
static void give_up(struct carry_out *carry, const struct shares_group *group,
                    struct memory_item *item)
{
    const struct place_pod *holder = group->holder;
    if (item->asked_until_ms > carry->now_ms) {
        return;
    }
    memory_trouble(item,
                   weir_arena_printf(
                       carry->arena,
                       "The pod %s, which is to hold an accelerator of node %s for it, failed: %s",
                       holder->key, holder->node,
                       item->said != NULL ? item->said : "no reason is told"),
                   carry->now_ms);
    let_go(carry, group, item);
}

static void tend_holder(struct carry_out *carry, const struct shares_group *group,
                        struct memory_item *item)
{
    const struct place_holder *holder = &group->holder->holder;
    item->idle_ms = group->n_sharers > 0 ? 0 : item->idle_ms > 0 ? item->idle_ms : carry->now_ms;
    bool is_idle = item->idle_ms > 0 && carry->now_ms - item->idle_ms >= HOLD_IDLE_MS;
    if (group->holder->is_over) {
        give_up(carry, group, item);
    } else if (group->is_let_go || is_idle) {
        let_go(carry, group, item);
    } else if (holder->is_running && item->device == NULL && item->retry_ms <= carry->now_ms) {
        read_report(carry, group, item);
    }
}

static void tend_group(struct carry_out *carry, const struct shares_group *group)
{
    struct memory_item *item = memory_of(carry->memory, key_of(group->name, carry->arena));
    item->seen = carry->cycle;
    meet(group->holder, item);
    if (group->holder == NULL && group->n_sharers > 0) {
        reserve(carry, group, item);
    } else if (group->holder != NULL && group->holder->gone_ms == 0) {
        tend_holder(carry, group, item);
    }
}

/* ---- pods that wait for their devices --------------------------------------------------------- */

enum held_state {
    HELD_READY,
    HELD_WAITS,
    HELD_FAILED,
};

struct held {
    const struct place_pod *pod;
    struct memory_item *item;
    const char *sentence; /* why it waits, or has failed */
    enum held_state state;
};

static const char *team_of(const struct place_pod *pod)
{
    return pod->gang != NULL ? pod->gang : pod->key;
}

static int by_team(const void *a, const void *b)
{
    const struct held *l = a, *r = b;
    int order = strcmp(team_of(l->pod), team_of(r->pod));
    return order != 0 ? order : strcmp(l->pod->key, r->pod->key);
}

static bool is_node_unsure(const struct carry_out *carry, const char *node)
{
    const struct shares *shares = &carry->world->shares;
    for (int32_t i = 0; i < shares->n_groups; i++) {
        int32_t at = shares->groups[i].node;
        if (strcmp(carry->input->nodes[at]->name, node) == 0) {
            return shares_is_unsure(shares, at);
        }
    }
    return false;
}

/* @return The sentence, or NULL; *out is set. */
static const char *look_at(struct carry_out *carry, const struct memory_item *item,
                           enum held_state *out)
{
    bool is_late = carry->now_ms - item->held_ms >= HOLD_START_MS;
    *out = HELD_READY;
    if (is_node_unsure(carry, item->node)) {
        *out = is_late ? HELD_FAILED : HELD_WAITS;
        return weir_arena_printf(carry->arena,
                                 "An accelerator of node %s that pods have parts of is not known "
                                 "to be held for them: no other of its accelerators is given.",
                                 item->node);
    }
    if (item->group == NULL) {
        return NULL;
    }
    const struct memory_item *group = find_item(carry, item->group);
    if (group == NULL) {
        *out = HELD_FAILED;
        return weir_arena_printf(carry->arena, "Node %s, which it was to have, is gone.",
                                 item->node);
    }
    if (group->device != NULL) {
        return NULL;
    }
    *out = is_late ? HELD_FAILED : HELD_WAITS;
    if (group->trouble != NULL && group->retry_ms > carry->now_ms) {
        *out = HELD_FAILED;
        return weir_arena_strdup(carry->arena, group->trouble);
    }
    return weir_arena_printf(
        carry->arena, "The pod %s/%s, which is to hold an accelerator of node %s for it, %s: %s",
        carry->input->space, reservation_name(item->group, carry->arena), item->node,
        *out == HELD_FAILED ? "has not told of one in a minute" : "has not told of one yet",
        group->said != NULL     ? group->said
        : group->holder != NULL ? "its node has not begun with it"
                                : "it is not there yet");
}

static size_t find_held(struct carry_out *carry, struct held *out)
{
    size_t n = 0;
    for (size_t i = 0; i < carry->input->n_pods; i++) {
        const struct place_pod *pod = carry->input->pods[i].pod;
        bool may_be = pod->is_ours && !pod->is_over && pod->node == NULL;
        struct memory_item *item = may_be ? memory_find(carry->memory, pod->uid) : NULL;
        if (item != NULL && item->is_held) {
            out[n] = (struct held){.pod = pod, .item = item};
            out[n].sentence = look_at(carry, item, &out[n].state);
            n++;
        }
    }
    if (n > 0) {
        qsort(out, n, sizeof out[0], by_team);
    }
    return n;
}

static void bind(struct carry_out *carry, const struct held *held)
{
    const char *node = weir_arena_strdup(carry->arena, held->item->node);
    if (held->item->group == NULL) {
        carry_out_bind(carry, held->pod, node, NULL);
        return;
    }
    const struct carry_out_part part = {.group = held->item->group,
                                        .device = find_item(carry, held->item->group)->device};
    carry_out_bind(carry, held->pod, node, &part);
}

static void release(struct carry_out *carry, const struct held *held, const char *sentence)
{
    memory_let_go(held->item);
    memory_trouble(held->item, sentence, carry->now_ms);
    tell_waiting(carry, held->pod, held->item, sentence);
}

/* One pod, or what of a gang is held: all or nothing. */
static void tend_team(struct carry_out *carry, const struct held *team, size_t n)
{
    const struct held *worst = &team[0];
    for (size_t i = 1; i < n; i++) {
        worst = team[i].state > worst->state ? &team[i] : worst;
    }
    for (size_t i = 0; i < n; i++) {
        bool is_long = carry->now_ms - team[i].item->held_ms >= HOLD_TOLD_MS;
        if (worst->state == HELD_READY) {
            bind(carry, &team[i]);
        } else if (worst->state == HELD_FAILED) {
            release(carry, &team[i], worst->sentence);
        } else if (is_long) {
            tell_waiting(carry, team[i].pod, team[i].item, worst->sentence);
        }
    }
}

static void tend_held(struct carry_out *carry)
{
    struct held *held = WEIR_ARENA_ARRAY(carry->arena, carry->input->n_pods + 1, struct held);
    size_t n = find_held(carry, held), first = 0;
    for (size_t i = 1; i <= n; i++) {
        if (i == n || strcmp(team_of(held[first].pod), team_of(held[i].pod)) != 0) {
            tend_team(carry, &held[first], i - first);
            first = i;
        }
    }
}

/* ---- pods that lost their device -------------------------------------------------------------- */

/* The device that is held for a pod's group; NULL: it has no group, or nothing is known. */
static const char *device_for(const struct memory *memory, const struct place_pod *pod,
                              struct weir_arena *arena)
{
    const struct memory_item *group = pod->node != NULL && pod->part.group != NULL
                                          ? memory_find(memory, key_of(pod->part.group, arena))
                                          : NULL;
    return group != NULL ? group->device : NULL;
}

static bool is_of(const struct place_pod *pod, const char *device)
{
    return pod->part.device != NULL && strcmp(pod->part.device, device) == 0;
}

bool hold_is_sure(const struct memory *memory, const struct place_pod *pod,
                  struct weir_arena *arena)
{
    const char *device = device_for(memory, pod, arena);
    return pod->node == NULL || pod->part.group == NULL || (device != NULL && is_of(pod, device));
}

/* What held its device was taken away, and holds another one now. */
static void end_strays(struct carry_out *carry)
{
    for (size_t i = 0; i < carry->input->n_pods; i++) {
        const struct place_pod *pod = carry->input->pods[i].pod;
        const char *device =
            carry->input->pods[i].is_unsure ? device_for(carry->memory, pod, carry->arena) : NULL;
        if (device != NULL && !is_of(pod, device) && !carry->input->pods[i].is_leaving) {
            carry_out_evict(carry, pod,
                            "What held its accelerator for it was taken away, and another may have "
                            "the accelerator now.");
        }
    }
}

void hold_tend(struct carry_out *carry)
{
    for (int32_t i = 0; i < carry->world->shares.n_groups; i++) {
        tend_group(carry, &carry->world->shares.groups[i]);
    }
    tend_held(carry);
    end_strays(carry);
}

/* ---- answers ---------------------------------------------------------------------------------- */

void hold_trouble(struct memory_item *item, const char *what, weir_status status,
                  const struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    memory_trouble(item,
                   weir_arena_printf(&arena, "%s: %s%s", what, err->message,
                                     status == WEIR_ERR_DENIED
                                         ? " (`weir cluster manifest` prints roles that may)"
                                         : ""),
                   weir_mono_ms());
}

static bool report_done(struct memory_item *item, const struct calls_one *one, weir_status status,
                        const struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const char *printed = json_string_value(one->answer), *wrong = NULL;
    weir_arena_init(&arena, 0);
    const char *device = printed != NULL ? reservation_device(printed, &arena, &wrong) : NULL;
    if (status == WEIR_ERR_DENIED) {
        hold_trouble(item, "What the pod that holds its accelerator printed cannot be read", status,
                     err);
    } else if (wrong != NULL) {
        memory_trouble(item, weir_arena_printf(&arena, "No part of an accelerator: %s.", wrong),
                       weir_mono_ms());
    } else if (device != NULL) {
        memory_set(&item->device, device);
        memory_set(&item->trouble, NULL);
        item->n_troubles = item->retry_ms = 0;
    }
    item->asked_until_ms = weir_mono_ms() + REPORT_EACH_MS;
    return status == WEIR_ERR_DENIED || wrong != NULL || device != NULL;
}

/* What is there already was made before an answer was lost. Until the mirror tells of it, nothing is asked again. */
bool hold_done(struct memory_item *item, const struct calls_one *one, weir_status status,
               const struct weir_kube_refusal *refusal, const struct weir_error *err)
{
    const char *about = one->about != NULL ? one->about : "",
               *holder = item->holder != NULL ? item->holder : "";
    if (strcmp(about, holder) != 0) {
        return false;
    }
    if (one->kind == CALLS_REPORT) {
        return report_done(item, one, status, err);
    }
    bool may_be_done =
        status == WEIR_OK || refusal->code == 0 || refusal->code == 409 || refusal->code >= 500;
    item->asked_until_ms = weir_mono_ms() + (may_be_done                  ? MEMORY_UNASKED_MS
                                             : one->kind == CALLS_RELEASE ? RELEASE_EACH_MS
                                                                          : 0);
    if (one->kind == CALLS_RESERVE && !may_be_done) {
        hold_trouble(item, "An accelerator cannot be held for it", status, err);
        return true;
    }
    return false;
}
