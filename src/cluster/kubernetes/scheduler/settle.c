#include "cluster/kubernetes/scheduler/settle.h"

#include "cluster/kubernetes/scheduler/tell.h"

#include "base/clock.h"
#include "base/macros.h"

#include <string.h>

#define SELECTED_NODE "volume.kubernetes.io/selected-node"
#define BOUND_BY      "pv.kubernetes.io/bound-by-controller"

/* Items of claims have as node the node that was asked for, items of volumes the claim. */
static const char *claim_item(struct weir_arena *arena, const char *key)
{
    return weir_arena_printf(arena, "claim %s", key);
}

static const char *volume_item(struct weir_arena *arena, const char *name)
{
    return weir_arena_printf(arena, "volume %s", name);
}

/* ---- what was asked for ----------------------------------------------------------------------- */

/* @param is_told  The API server says so by now. @return In the arena; NULL: nothing stands. */
static const char *recall(struct memory *memory, const char *key, bool is_told, int64_t cycle,
                          int64_t now_ms, struct weir_arena *arena)
{
    struct memory_item *item = memory_find(memory, key);
    if (item == NULL) {
        return NULL;
    }
    if (is_told || item->node_until_ms < now_ms) {
        memory_set(&item->node, NULL);
    }
    item->seen = cycle;
    return weir_arena_strdup(arena, item->node);
}

static const char *recall_refused(struct memory *memory, const char *key, int64_t now_ms,
                                  struct weir_arena *arena)
{
    struct memory_item *item = memory_find(memory, key);
    if (item != NULL && item->refused_until_ms < now_ms) {
        memory_set(&item->refused, NULL);
    }
    return item != NULL ? weir_arena_strdup(arena, item->refused) : NULL;
}

/* The driver has taken the note of the node away: it can make none there. */
static void note_refused(struct carry_out *carry, const struct volume_claim *claim,
                         const char *node)
{
    struct memory_item *item = memory_of(carry->memory, claim_item(carry->arena, claim->key));
    memory_set(&item->refused, weir_arena_printf(carry->arena, "%s%s ",
                                                 item->refused != NULL ? item->refused : "", node));
    item->refused_until_ms = carry->now_ms + SETTLE_REFUSED_MS;
}

void settle_recall(struct memory *memory, int64_t cycle, int64_t now_ms, struct volumes *volumes)
{
    struct weir_arena *arena = volumes->arena;
    volumes_index(volumes);
    for (size_t i = 0; i < volumes->n_claims; i++) {
        const struct volume_claim *claim = volumes->claims[i];
        bool is_told = claim->is_bound || claim->selected_node != NULL;
        const char *item = claim_item(arena, claim->key);
        volumes->assumed.nodes[i] = recall(memory, item, is_told, cycle, now_ms, arena);
        volumes->assumed.refused[i] = recall_refused(memory, item, now_ms, arena);
    }
    for (size_t i = 0; i < volumes->n_volumes; i++) {
        const struct volume *volume = volumes->volumes[i];
        const char *claim = recall(memory, volume_item(arena, volume->name), !volume->is_free,
                                   cycle, now_ms, arena);
        int64_t at = volumes_find_claim(volumes, claim);
        volumes->assumed.claims[i] = claim;
        if (at >= 0) {
            volumes->assumed.volume_of[at] = (int64_t)i;
        }
    }
}

/* ---- asking ----------------------------------------------------------------------------------- */

static const struct place_pod *pod_of(const struct carry_out *carry,
                                      const struct weir_sched_action *action)
{
    return carry->world->pod_of_task[action->task]->pod;
}

static bool choose(struct carry_out *carry, const struct weir_sched_action *action)
{
    const struct volumes *volumes = carry->input->volumes;
    const struct place_pod *pod = pod_of(carry, action);
    const struct place_node *node = carry->input->nodes[action->node];
    struct carry_out_choices *chosen = &carry->choices[action->task];
    chosen->rows = WEIR_ARENA_ARRAY(carry->arena, pod->n_claims + 1, struct volumes_choice);
    bool can = volumes_choose(volumes, pod, node, pod->gang != NULL, chosen->rows, &chosen->n);
    if (can) {
        volumes_assume(volumes, pod, node->name, chosen->rows, chosen->n);
    }
    return can;
}

void settle_take_back(struct carry_out *carry)
{
    if (carry->are_kept) {
        volumes_go_back(carry->input->volumes, &carry->kept);
    }
}

bool settle_fits(struct carry_out *carry, const struct weir_sched_part *part)
{
    bool fits = true;
    carry->are_kept = false;
    for (int32_t i = 0; i < part->n_actions && fits; i++) {
        if (pod_of(carry, part->actions[i])->n_claims == 0) {
            continue;
        }
        if (!carry->are_kept) {
            carry->kept = volumes_keep(carry->input->volumes);
            carry->are_kept = true;
        }
        fits = choose(carry, part->actions[i]);
    }
    if (!fits) {
        settle_take_back(carry);
    }
    return fits;
}

/* The volume is made for the claim on the node: its driver sees the note. */
static struct calls_one select_node(struct carry_out *carry, const struct volume_claim *claim,
                                    const char *node)
{
    return (struct calls_one){
        .path = weir_arena_printf(carry->arena, "/api/v1/namespaces/%s/persistentvolumeclaims/%s",
                                  claim->space, claim->name),
        .about = claim_item(carry->arena, claim->key),
        .body = json_pack("{s:{s:s?,s:{s:s}}}", "metadata", "resourceVersion", claim->version,
                          "annotations", SELECTED_NODE, node)};
}

/* The volume says which claim it is for: the rest is done by Kubernetes. */
static struct calls_one give_volume(struct carry_out *carry, const struct volume_claim *claim,
                                    const struct volume *volume)
{
    return (struct calls_one){
        .path = weir_arena_printf(carry->arena, "/api/v1/persistentvolumes/%s", volume->name),
        .about = volume_item(carry->arena, volume->name),
        .body = json_pack("{s:{s:s?,s:{s:s}},s:{s:{s:s,s:s,s:s,s:s,s:s?,s:s?}}}", "metadata",
                          "resourceVersion", volume->version, "annotations", BOUND_BY, "yes",
                          "spec", "claimRef", "apiVersion", "v1", "kind", "PersistentVolumeClaim",
                          "namespace", claim->space, "name", claim->name, "uid", claim->uid,
                          "resourceVersion", claim->version)};
}

static void ask_one(struct carry_out *carry, const struct place_pod *pod, const char *node,
                    const struct volumes_choice *choice)
{
    const struct volumes *volumes = carry->input->volumes;
    const struct volume_claim *claim = volumes->claims[choice->claim];
    struct calls_one one = choice->volume < 0
                               ? select_node(carry, claim, node)
                               : give_volume(carry, claim, volumes->volumes[choice->volume]);
    struct memory_item *assumed = memory_of(carry->memory, one.about);
    one.kind = CALLS_CLAIM;
    one.uid = pod->uid;
    one.method = "PATCH";
    one.content_type = "application/merge-patch+json";
    if (calls_ask(carry->calls, &one)) {
        memory_set(&assumed->node, choice->volume < 0 ? node : claim->key);
        assumed->node_until_ms = carry->now_ms + MEMORY_UNASKED_MS;
        assumed->seen = memory_of(carry->memory, pod->uid)->seen;
    } else {
        memory_of(carry->memory, pod->uid)->has_lost_claim = true;
    }
}

/* Its place is kept until then. */
static void keep_place(struct carry_out *carry, const struct place_pod *pod, const char *node)
{
    struct memory_item *item = memory_of(carry->memory, pod->uid);
    memory_set(&item->node, node);
    item->node_until_ms = carry->now_ms + SETTLE_MS;
    item->awaits_claims = true;
    item->n_refused = 0;
}

bool settle_ask(struct carry_out *carry, const struct weir_sched_part *part)
{
    bool waits = false, has_parts = false;
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct place_pod *pod = pod_of(carry, part->actions[i]);
        waits = waits || (pod->n_claims > 0 && volumes_unbound(carry->input->volumes, pod) != NULL);
        has_parts = has_parts || pod->part.milli > 0;
    }
    for (int32_t i = 0; i < part->n_actions && waits; i++) {
        const struct weir_sched_action *action = part->actions[i];
        const struct place_pod *pod = pod_of(carry, action);
        const struct carry_out_choices *chosen = &carry->choices[action->task];
        const char *node = carry->input->nodes[action->node]->name;
        if (has_parts) { /* its claims bring it back to the node */
            tell_waiting(carry, pod, memory_of(carry->memory, pod->uid),
                         "It waits for the volumes of its claims, or of its gang, to be bound.");
        } else {
            keep_place(carry, pod, node);
        }
        for (size_t k = 0; k < chosen->n; k++) {
            ask_one(carry, pod, node, &chosen->rows[k]);
        }
    }
    return waits;
}

/* ---- waiting ---------------------------------------------------------------------------------- */

/* The worst of a gang counts for all of it. */
enum state {
    IS_BOUND,
    WAITS,
    HAS_FAILED,
};

struct waiting {
    const struct place_pod *pod;
    struct memory_item *item;
    enum state state;
};

/* A choice that has to be made again was lost. */
static enum state state_of(struct carry_out *carry, const struct place_pod *pod, const char *name)
{
    const struct volumes *volumes = carry->input->volumes;
    struct volumes_choice *choices =
        WEIR_ARENA_ARRAY(carry->arena, pod->n_claims + 1, struct volumes_choice);
    const struct place_node *node = NULL;
    size_t n = 0;
    if (pod->n_claims == 0) {
        return IS_BOUND;
    }
    for (size_t i = 0; i < carry->input->n_nodes && node == NULL; i++) {
        node = strcmp(carry->input->nodes[i]->name, name) == 0 ? carry->input->nodes[i] : NULL;
    }
    if (volumes->why != NULL) {
        return WAITS;
    }
    bool can_be =
        node != NULL && volumes_choose(volumes, pod, node, pod->gang != NULL, choices, &n);
    for (size_t i = 0; i < n && can_be; i++) {
        if (choices[i].volume < 0) {
            note_refused(carry, volumes->claims[choices[i].claim], node->name);
        }
    }
    if (!can_be || n > 0) {
        return HAS_FAILED;
    }
    return volumes_unbound(volumes, pod) != NULL ? WAITS : IS_BOUND;
}

static enum state state_of_gang(const struct waiting *all, size_t n, const struct waiting *one)
{
    enum state worst = one->state;
    for (size_t i = 0; one->pod->gang != NULL && i < n; i++) {
        bool is_of = all[i].pod->gang != NULL && strcmp(all[i].pod->gang, one->pod->gang) == 0;
        worst = is_of ? WEIR_MAX(worst, all[i].state) : worst;
    }
    return worst;
}

void settle_give_up(struct memory_item *item)
{
    memory_let_go(item);
    item->awaits_claims = item->has_lost_claim = false;
}

static void say_waits(struct carry_out *carry, const struct waiting *one)
{
    const struct volume_claim *claim = volumes_unbound(carry->input->volumes, one->pod);
    tell_waiting(carry, one->pod, one->item,
                 claim != NULL
                     ? weir_arena_printf(carry->arena,
                                         "It waits for PersistentVolumeClaim %.200s to be bound "
                                         "for node %.200s.",
                                         claim->key, one->item->node)
                     : "It waits for the volumes of its gang.");
}

static void settle_one(struct carry_out *carry, const struct waiting *all, size_t n,
                       const struct waiting *one)
{
    const char *node = weir_arena_strdup(carry->arena, one->item->node);
    switch (state_of_gang(all, n, one)) {
    case IS_BOUND:
        carry_out_bind(carry, one->pod, node, NULL);
        break;
    case WAITS:
        say_waits(carry, one);
        break;
    case HAS_FAILED:
        settle_give_up(one->item);
        break;
    }
}

void settle_waiting(struct carry_out *carry)
{
    const struct world_input *input = carry->input;
    struct waiting *all = WEIR_ARENA_ARRAY(carry->arena, input->n_pods + 1, struct waiting);
    size_t n = 0;
    for (size_t i = 0; i < input->n_pods && input->volumes != NULL; i++) {
        const struct place_pod *pod = input->pods[i].pod;
        struct memory_item *item =
            input->pods[i].awaits_claims ? memory_find(carry->memory, pod->uid) : NULL;
        if (item != NULL && item->awaits_claims && item->node != NULL) {
            enum state state = item->has_lost_claim ? HAS_FAILED : state_of(carry, pod, item->node);
            all[n++] = (struct waiting){pod, item, state};
        }
    }
    for (size_t i = 0; i < n; i++) {
        settle_one(carry, all, n, &all[i]);
    }
}

/* ---- answers ---------------------------------------------------------------------------------- */

bool settle_done(struct memory *memory, struct memory_item *item, const struct calls_one *one,
                 weir_status status, const struct weir_error *err)
{
    struct memory_item *assumed = memory_find(memory, one->about);
    bool is_done = status == WEIR_OK;
    if (assumed != NULL && is_done) {
        assumed->node_until_ms = weir_mono_ms() + SETTLE_TOLD_MS;
    } else if (assumed != NULL) {
        memory_set(&assumed->node, NULL);
    }
    if (is_done) {
        item->n_troubles = 0;
        return false;
    }
    item->has_lost_claim = item->awaits_claims;
    memory_trouble(item,
                   status == WEIR_ERR_CONFLICT
                       ? "Its claims, or volumes for them, have changed meanwhile."
                       : err->message,
                   weir_mono_ms());
    return true;
}
