#include "cluster/kubernetes/scheduler/shares.h"

#include "base/grow.h"
#include "base/macros.h"
#include "cluster/kubernetes/scheduler/reservation.h"
#include "cluster/kubernetes/scheduler/world_node.h"
#include "sched/apply.h"

#include <string.h>

#define VENDOR "nvidia.com/"

/* A pod, and the group that it holds or has a part of. */
struct entry {
    int32_t node, number;
    const char *name;
    const struct world_pod *pod;
    bool holds, is_planned;
};

static bool is_held(const struct shares_group *group)
{
    return group->holder != NULL && !group->holder->is_over && group->holder->gone_ms == 0;
}

bool shares_can_divide(const struct place_node *node)
{
    return node->device != NULL && strncmp(node->device, VENDOR, strlen(VENDOR)) == 0;
}

/* ---- made ------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const struct entry *l = a, *r = b;
    return l->node != r->node ? (l->node > r->node) - (l->node < r->node)
                              : (l->number > r->number) - (l->number < r->number);
}

static int by_config(const void *a, const void *b)
{
    const struct shares_config *l = a, *r = b;
    int order = strcmp(l->space, r->space);
    return order != 0 ? order : strcmp(l->name, r->name);
}

/* @return Has it to do with a group of its node? */
static bool enter(const struct world_input *input, const struct world_nodes *nodes,
                  const struct world_pod *pod, struct entry *out)
{
    const struct place_holder *holder = &pod->pod->holder;
    bool holds = holder->group != NULL && strcmp(pod->pod->space, input->space) == 0;
    const char *name = holds ? holder->group : pod->group;
    int32_t node = world_nodes_find(nodes, pod->node);
    if (name == NULL || node < 0 || (!holds && pod->pod->is_over)) {
        return false;
    }
    int32_t number = reservation_number(input->nodes[node]->name, name);
    *out = (struct entry){.node = node, .number = number, .name = name, .pod = pod, .holds = holds};
    return number >= 0;
}

static void add_config(struct shares *shares, const struct place_pod *pod, const char *group,
                       int32_t node)
{
    if (pod->part.config == NULL) {
        return;
    }
    weir_arena_grow(shares->arena, &shares->configs, sizeof shares->configs[0], shares->n_configs,
                    &shares->configs_cap);
    shares->configs[shares->n_configs++] = (struct shares_config){.space = pod->space,
                                                                  .name = pod->part.config,
                                                                  .group = group,
                                                                  .node = node,
                                                                  .milli = pod->part.milli};
}

static struct shares_group *add_group(struct shares *shares, const char *name, int32_t node)
{
    weir_arena_grow(shares->arena, &shares->groups, sizeof shares->groups[0],
                    (size_t)shares->n_groups, &shares->groups_cap);
    struct shares_group *group = &shares->groups[shares->n_groups++];
    *group = (struct shares_group){.name = name, .node = node, .device = -1};
    return group;
}

static void count(struct shares *shares, struct shares_group *group, const struct entry *entry)
{
    const struct place_pod *pod = entry->pod->pod;
    if (entry->holds) {
        group->holder = pod;
        group->is_let_go = !is_held(group);
        return;
    }
    group->milli += pod->part.milli;
    group->lost_milli += entry->is_planned ? 0 : pod->part.milli;
    group->n_sharers++;
    group->n_bound += pod->node != NULL;
    group->n_planned += entry->is_planned;
    group->n_unsure += entry->pod->is_unsure;
    add_config(shares, pod, group->name, group->node);
}

/* What is divided among pods that are not planned alone is others'. */
static void number_devices(struct shares *shares)
{
    for (int32_t node = 0; node < shares->n_nodes; node++) {
        int32_t device = 0;
        for (int32_t i = shares->first[node]; i < shares->first[node + 1]; i++) {
            struct shares_group *group = &shares->groups[i];
            bool is_there = group->n_planned > 0 || group->lost_milli == 0;
            group->device = is_there ? device++ : -1;
        }
    }
}

void shares_make(const struct world_input *input, const struct world_nodes *nodes,
                 const bool *planned, struct weir_arena *arena, struct shares *out)
{
    struct entry *entries = WEIR_ARENA_ARRAY(arena, input->n_pods + 1, struct entry);
    size_t n = 0;
    *out = (struct shares){.arena = arena,
                           .nodes = input->nodes,
                           .n_nodes = (int32_t)input->n_nodes,
                           .first = WEIR_ARENA_ARRAY(arena, input->n_nodes + 2, int32_t)};
    for (size_t i = 0; i < input->n_pods; i++) {
        if (enter(input, nodes, &input->pods[i], &entries[n])) {
            entries[n++].is_planned = planned[i];
        }
    }
    qsort(entries, n, sizeof entries[0], by_number);
    struct shares_group *group = NULL;
    for (size_t i = 0; i < n; i++) {
        if (group == NULL || by_number(&entries[i - 1], &entries[i]) != 0) {
            group = add_group(out, entries[i].name, entries[i].node);
            out->first[entries[i].node + 1]++;
        }
        count(out, group, &entries[i]);
    }
    for (int32_t node = 0; node < out->n_nodes; node++) {
        out->first[node + 1] += out->first[node];
    }
    number_devices(out);
    if (out->n_configs > 0) {
        qsort(out->configs, out->n_configs, sizeof out->configs[0], by_config);
    }
    out->n_sorted = out->n_configs;
}

/* ---- looked at -------------------------------------------------------------------------------- */

/* The next group of a node after one; NULL: the first. What was given since the world was made comes after all nodes'. */
static struct shares_group *next_of(const struct shares *shares, int32_t node,
                                    const struct shares_group *after)
{
    int32_t i = after == NULL ? shares->first[node] : (int32_t)(after - shares->groups) + 1;
    i = i == shares->first[node + 1] ? shares->first[shares->n_nodes] : i;
    while (i < shares->n_groups && shares->groups[i].node != node) {
        i++;
    }
    return i < shares->n_groups ? &shares->groups[i] : NULL;
}

static struct shares_group *find_group(const struct shares *shares, int32_t node, const char *name)
{
    struct shares_group *group = next_of(shares, node, NULL);
    while (group != NULL && strcmp(group->name, name) != 0) {
        group = next_of(shares, node, group);
    }
    return group;
}

struct shares_group *shares_of(const struct shares *shares, const struct world_pod *pod,
                               int32_t node)
{
    return pod->group != NULL && node >= 0 ? find_group(shares, node, pod->group) : NULL;
}

bool shares_holds(const struct shares *shares, const struct place_pod *pod, int32_t node)
{
    const struct shares_group *group =
        pod->holder.group != NULL ? find_group(shares, node, pod->holder.group) : NULL;
    return group != NULL && group->holder == pod && group->device >= 0;
}

int32_t shares_n_devices(const struct shares *shares, int32_t node)
{
    int32_t n = 0;
    for (int32_t i = shares->first[node]; i < shares->first[node + 1]; i++) {
        n += shares->groups[i].device >= 0;
    }
    return n;
}

bool shares_is_unsure(const struct shares *shares, int32_t node)
{
    for (int32_t i = shares->first[node]; i < shares->first[node + 1]; i++) {
        const struct shares_group *group = &shares->groups[i];
        if (group->n_unsure > 0 || (group->n_bound > 0 && !is_held(group))) {
            return true;
        }
    }
    return false;
}

/* The group of a device of the node's row; NULL: none. */
static struct shares_group *find_device(const struct shares *shares, int32_t node, int32_t device)
{
    struct shares_group *group = next_of(shares, node, NULL);
    while (group != NULL && group->device != device) {
        group = next_of(shares, node, group);
    }
    return group;
}

/* What was given since the world was made comes after what is sorted. */
const struct shares_config *shares_config_of(const struct shares *shares,
                                             const struct place_pod *pod)
{
    const struct shares_config wanted = {.space = pod->space, .name = pod->part.config};
    if (wanted.name == NULL || shares->n_configs == 0) {
        return NULL;
    }
    const struct shares_config *found =
        bsearch(&wanted, shares->configs, shares->n_sorted, sizeof shares->configs[0], by_config);
    for (size_t i = shares->n_sorted; i < shares->n_configs && found == NULL; i++) {
        found = by_config(&wanted, &shares->configs[i]) == 0 ? &shares->configs[i] : NULL;
    }
    return found;
}

/* ---- given ------------------------------------------------------------------------------------ */

static struct shares_group *new_group(struct shares *shares, int32_t node, int32_t device)
{
    const char *name = NULL;
    for (int32_t n = 0; name == NULL; n++) {
        const char *next = reservation_group(shares->nodes[node]->name, n, shares->arena);
        name = find_group(shares, node, next) == NULL ? next : NULL;
    }
    struct shares_group *group = add_group(shares, name, node);
    group->device = device;
    return group;
}

const char *shares_wrong(const struct shares *shares, const struct place_pod *pod)
{
    const struct shares_config *config = shares_config_of(shares, pod);
    if (config == NULL) {
        return NULL;
    }
    const struct shares_group *group = find_group(shares, config->node, config->group);
    const char *why = config->milli != pod->part.milli ? "another part of it is said there"
                      : group->milli + pod->part.milli > WEIR_SCHED_DEVICE
                          ? "that one has no room for a further part"
                          : NULL;
    return why == NULL ? NULL
                       : weir_arena_printf(
                             shares->arena,
                             "The ConfigMap %s tells of an accelerator of node %.100s that "
                             "another pod has a part of, and %s: name a ConfigMap of its own.",
                             config->name, shares->nodes[config->node]->name, why);
}

static bool has_room(const struct shares_group *group, const struct place_pod *pod)
{
    return !group->is_let_go && group->device >= 0 &&
           group->milli + pod->part.milli <= WEIR_SCHED_DEVICE;
}

/* Devices of a node are alike: a new one is divided only if those that are have no room. */
static struct shares_group *fullest_of(const struct shares *shares, const struct place_pod *pod,
                                       int32_t node)
{
    struct shares_group *best = NULL, *group = NULL;
    while ((group = next_of(shares, node, group)) != NULL) {
        if (has_room(group, pod) && (best == NULL || group->milli > best->milli)) {
            best = group;
        }
    }
    return best;
}

/* By its ConfigMap, if that tells of one. */
static struct shares_group *group_for(struct shares *shares, const struct place_pod *pod,
                                      int32_t node, int32_t device)
{
    const struct shares_config *config = shares_config_of(shares, pod);
    if (config != NULL) {
        return config->node == node && config->milli == pod->part.milli
                   ? find_group(shares, node, config->group)
                   : NULL;
    }
    struct shares_group *group = fullest_of(shares, pod, node);
    group = group != NULL ? group : find_device(shares, node, device);
    return group != NULL ? group : new_group(shares, node, device);
}

/* @return SHARES_HOLD: it has it; else why it has not. */
static enum shares_answer give(struct shares *shares, const struct place_pod *pod, int32_t node,
                               int32_t device, const char **out_name)
{
    struct shares_group *group = group_for(shares, pod, node, device);
    if (group == NULL || !has_room(group, pod)) {
        return group != NULL && group->is_let_go ? SHARES_WAIT : SHARES_REFUSE;
    }
    group->milli += pod->part.milli;
    group->n_sharers++;
    add_config(shares, pod, group->name, node);
    *out_name = group->name;
    return SHARES_HOLD;
}

static void give_back(struct shares *shares, const struct place_pod *pod, int32_t node,
                      const char *group)
{
    struct shares_group *given = find_group(shares, node, group);
    given->milli -= pod->part.milli;
    given->n_sharers--;
}

static const struct place_pod *pod_of(const struct world *world,
                                      const struct weir_sched_action *action)
{
    return world->pod_of_task[action->task]->pod;
}

static enum shares_answer give_all(struct world *world, const struct weir_sched_part *part,
                                   const char **groups)
{
    enum shares_answer answer = SHARES_HOLD;
    int32_t n = 0;
    for (; n < part->n_actions && answer == SHARES_HOLD; n++) {
        const struct weir_sched_action *action = part->actions[n];
        const struct place_pod *pod = pod_of(world, action);
        if (pod->part.milli > 0) {
            answer = give(&world->shares, pod, action->node, action->devices[0], &groups[n]);
        }
    }
    for (int32_t i = 0; i < n && answer != SHARES_HOLD; i++) {
        if (groups[i] != NULL) {
            give_back(&world->shares, pod_of(world, part->actions[i]), part->actions[i]->node,
                      groups[i]);
        }
    }
    return answer;
}

/* What is held for nobody is let go. @return Is the device there at once? */
static bool take(struct shares *shares, int32_t node, int32_t device)
{
    struct shares_group *group = find_device(shares, node, device);
    if (group != NULL && group->n_sharers == 0) {
        group->is_let_go = true;
    }
    return group == NULL;
}

enum shares_answer shares_place(struct world *world, const struct weir_sched_part *part,
                                const char **out_groups)
{
    bool are_there = true, has_parts = false;
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct weir_sched_action *action = part->actions[i];
        bool is_part = pod_of(world, action)->part.milli > 0;
        has_parts = has_parts || is_part;
        are_there = are_there &&
                    (action->n_devices == 0 || !shares_is_unsure(&world->shares, action->node));
        for (int32_t k = 0; k < action->n_devices && !is_part; k++) {
            are_there = take(&world->shares, action->node, action->devices[k]) && are_there;
        }
    }
    if (!are_there || !has_parts) {
        return are_there ? SHARES_BIND : SHARES_WAIT;
    }
    return give_all(world, part, out_groups);
}
