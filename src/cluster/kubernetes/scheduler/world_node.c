#include "cluster/kubernetes/scheduler/world_node.h"

#include "base/grow.h"
#include "base/macros.h"

#include <string.h>

static bool has_text(const char *const *texts, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(texts[i], text) == 0) {
            return true;
        }
    }
    return false;
}

void world_nodes_init(struct world_nodes *nodes, const struct world_input *input,
                      struct weir_arena *arena)
{
    *nodes =
        (struct world_nodes){.nodes = input->nodes,
                             .n = input->n_nodes,
                             .uses = WEIR_ARENA_ARRAY(arena, input->n_nodes + 1, struct world_node),
                             .devices = WEIR_ARENA_ARRAY(arena, input->n_nodes + 1, const char *),
                             .volumes = input->volumes,
                             .arena = arena};
    for (size_t i = 0; i < nodes->n; i++) {
        const char *device = nodes->nodes[i]->device;
        if (device != NULL && !has_text(nodes->devices, nodes->n_devices, device)) {
            nodes->devices[nodes->n_devices++] = device;
        }
    }
}

int32_t world_nodes_find(const struct world_nodes *nodes, const char *name)
{
    size_t low = 0, high = name != NULL ? nodes->n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(nodes->nodes[middle]->name, name);
        if (order == 0) {
            return (int32_t)middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return -1;
}

const char *world_nodes_device(const struct world_nodes *nodes, const struct place_pod *pod)
{
    for (size_t i = 0; i < pod->n_amounts; i++) {
        if (has_text(nodes->devices, nodes->n_devices, pod->amounts[i].name)) {
            return pod->amounts[i].name;
        }
    }
    return NULL;
}

void world_nodes_ask_for(struct world_nodes *nodes, const char *name)
{
    if (!has_text(nodes->extras, nodes->n_extras, name)) {
        weir_arena_grow(nodes->arena, &nodes->extras, sizeof nodes->extras[0], nodes->n_extras,
                        &nodes->extras_cap);
        nodes->extras[nodes->n_extras++] = name;
    }
}

void world_nodes_ask(struct world_nodes *nodes, const struct place_pod *pod)
{
    const char *device = world_nodes_device(nodes, pod);
    for (size_t i = 0; i < pod->n_amounts; i++) {
        const char *name = pod->amounts[i].name;
        if (name != device) {
            world_nodes_ask_for(nodes, name);
        }
    }
}

void world_nodes_take(struct world_nodes *nodes, const struct place_pod *pod, int32_t node,
                      bool has_devices)
{
    struct world_node *use = &nodes->uses[node];
    const char *device = has_devices ? nodes->nodes[node]->device : NULL;
    use->cpu_milli += pod->cpu_milli;
    use->memory_bytes += pod->memory_bytes;
    use->n_pods++;
    use->n_devices += device != NULL ? place_amount_of(pod->amounts, pod->n_amounts, device) : 0;
    if (use->extras == NULL) {
        use->extras = WEIR_ARENA_ARRAY(nodes->arena, nodes->n_extras + 1, int64_t);
    }
    for (size_t i = 0; i < nodes->n_extras; i++) {
        use->extras[i] += place_amount_of(pod->amounts, pod->n_amounts, nodes->extras[i]);
    }
}

static const char *mask_key(const struct world_nodes *nodes, size_t i)
{
    return weir_arena_printf(nodes->arena, "weir.dev/fits-%zu", i);
}

const char *world_nodes_mask(struct world_nodes *nodes, const bool *allowed)
{
    size_t i = 0;
    while (i < nodes->n_masks && memcmp(nodes->masks[i], allowed, nodes->n) != 0) {
        i++;
    }
    if (i == nodes->n_masks) {
        bool *copy = WEIR_ARENA_ARRAY(nodes->arena, nodes->n + 1, bool);
        memcpy(copy, allowed, nodes->n);
        weir_arena_grow(nodes->arena, &nodes->masks, sizeof nodes->masks[0], nodes->n_masks,
                        &nodes->masks_cap);
        nodes->masks[nodes->n_masks++] = copy;
    }
    return mask_key(nodes, i);
}

/* ---- the rows --------------------------------------------------------------------------------- */

static int64_t left_of(int64_t has, int64_t taken)
{
    return WEIR_MAX(has - taken, (int64_t)0);
}

/* A node has one of each port. */
static void put_extras(const struct world_nodes *nodes, size_t i, struct weir_sched_node *row)
{
    const struct place_node *node = nodes->nodes[i];
    const int64_t *taken = nodes->uses[i].extras;
    struct weir_sched_extra *extras =
        WEIR_ARENA_ARRAY(nodes->arena, nodes->n_extras + 1, struct weir_sched_extra);
    for (size_t k = 0; k < nodes->n_extras; k++) {
        const char *name = nodes->extras[k];
        bool is_port = strncmp(name, PLACE_PORT, strlen(PLACE_PORT)) == 0;
        int64_t has = is_port ? 1 : place_amount_of(node->amounts, node->n_amounts, name);
        (void)volumes_pool_free(nodes->volumes, name, node, &has);
        extras[k] = (struct weir_sched_extra){.name = name,
                                              .count = left_of(has, taken != NULL ? taken[k] : 0)};
    }
    row->extras = extras;
    row->n_extras = (int32_t)nodes->n_extras;
}

static void put_labels(const struct world_nodes *nodes, size_t i, const char *const *masks,
                       struct weir_sched_node *row)
{
    struct select_labels has = nodes->nodes[i]->labels;
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(nodes->arena, (size_t)has.n + nodes->n_masks + 1, struct weir_sched_label);
    if (has.n > 0) {
        memcpy(labels, has.rows, (size_t)has.n * sizeof labels[0]);
    }
    for (size_t k = 0; k < nodes->n_masks; k++) {
        if (nodes->masks[k][i]) {
            labels[has.n++] = (struct weir_sched_label){masks[k], ""};
        }
    }
    row->labels = labels;
    row->n_labels = has.n;
}

/* The effect is part of the key: a toleration may be of one effect alone. */
static void put_taints(const struct world_nodes *nodes, size_t i, struct weir_sched_node *row)
{
    const struct place_node *node = nodes->nodes[i];
    struct weir_sched_taint *taints =
        WEIR_ARENA_ARRAY(nodes->arena, node->n_taints + 1, struct weir_sched_taint);
    for (size_t k = 0; k < node->n_taints; k++) {
        taints[k] = (struct weir_sched_taint){
            weir_arena_printf(nodes->arena, "%s:%s", node->taints[k].key, node->taints[k].effect),
            node->taints[k].value};
    }
    row->taints = taints;
    row->n_taints = (int32_t)node->n_taints;
}

/* What runs there stays there, though the node tells of less than it has. */
static int64_t devices_of(const struct place_node *node, const struct world_node *use)
{
    return WEIR_MIN(WEIR_MAX(left_of(node->n_devices, use->n_devices), use->own_devices),
                    (int64_t)WORLD_DEVICES_MAX);
}

const struct weir_sched_node *world_nodes_rows(struct world_nodes *nodes)
{
    struct weir_sched_node *rows =
        WEIR_ARENA_ARRAY(nodes->arena, nodes->n + 1, struct weir_sched_node);
    const char **masks = WEIR_ARENA_ARRAY(nodes->arena, nodes->n_masks + 1, const char *);
    for (size_t k = 0; k < nodes->n_masks; k++) {
        masks[k] = mask_key(nodes, k);
    }
    for (size_t i = 0; i < nodes->n; i++) {
        const struct place_node *node = nodes->nodes[i];
        const struct world_node *use = &nodes->uses[i];
        rows[i] =
            (struct weir_sched_node){.name = node->name,
                                     .model = node->model,
                                     .n_devices = (int32_t)devices_of(node, use),
                                     .n_tasks_max = (int32_t)WEIR_MIN(
                                         left_of(node->n_pods, use->n_pods), (int64_t)INT32_MAX),
                                     .cpu_milli = left_of(node->cpu_milli, use->cpu_milli),
                                     .memory_bytes = left_of(node->memory_bytes, use->memory_bytes),
                                     .is_cordoned = node->is_cordoned || !node->is_ready};
        put_extras(nodes, i, &rows[i]);
        put_labels(nodes, i, masks, &rows[i]);
        put_taints(nodes, i, &rows[i]);
    }
    return rows;
}
