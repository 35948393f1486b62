#include "base/amount.h"
#include "cluster/kubernetes/node.h"
#include "cluster/kubernetes/scheduler/place.h"
#include "kube/client.h"

#include <string.h>

#define NODE_NAME_FIELD "metadata.name"

static int64_t milli_of(const json_t *value)
{
    int64_t milli = 0;
    return json_is_string(value) && weir_amount_parse(json_string_value(value), &milli) ? milli : 0;
}

static void read_amounts(const struct kubernetes_options *options, const json_t *amounts,
                         struct place_node *node)
{
    const char *resource;
    json_t *value;
    node->amounts =
        WEIR_ARENA_ARRAY(&node->held.arena, json_object_size(amounts) + 1, struct place_amount);
    node->cpu_milli = milli_of(json_object_get(amounts, "cpu"));
    node->memory_bytes = milli_of(json_object_get(amounts, "memory")) / 1000;
    node->n_pods = milli_of(json_object_get(amounts, "pods")) / 1000;
    json_object_foreach((json_t *)(uintptr_t)amounts, resource, value)
    {
        int64_t count = milli_of(value) / 1000;
        bool is_other = strcmp(resource, "cpu") != 0 && strcmp(resource, "memory") != 0 &&
                        strcmp(resource, "pods") != 0;
        if (is_other) {
            node->amounts[node->n_amounts++] =
                (struct place_amount){weir_arena_strdup(&node->held.arena, resource), count};
        }
        if (is_other && kubernetes_is_device(options, resource) && count > node->n_devices) {
            node->n_devices = count;
            node->device = node->amounts[node->n_amounts - 1].name;
        }
    }
}

/* The row that a taint gets: PreferNoSchedule keeps nobody away. NULL: it is none. */
static struct place_taint *row_for(const json_t *taint, struct place_node *node)
{
    bool has_key = !weir_kube_is(taint, "key", "");
    if (has_key && (weir_kube_is(taint, "effect", "NoSchedule") ||
                    weir_kube_is(taint, "effect", "NoExecute"))) {
        return &node->taints[node->n_taints++];
    }
    return has_key && weir_kube_is(taint, "effect", "PreferNoSchedule")
               ? &node->mild_taints[node->n_mild_taints++]
               : NULL;
}

static void read_taints(const json_t *taints, struct place_node *node)
{
    struct weir_arena *arena = &node->held.arena;
    size_t i;
    json_t *one;
    node->taints = WEIR_ARENA_ARRAY(arena, json_array_size(taints) + 1, struct place_taint);
    node->mild_taints = WEIR_ARENA_ARRAY(arena, json_array_size(taints) + 1, struct place_taint);
    json_array_foreach(taints, i, one)
    {
        struct place_taint *row = row_for(one, node);
        if (row != NULL) {
            *row =
                (struct place_taint){weir_arena_strdup(arena, weir_kube_text(one, "key")),
                                     weir_arena_strdup(arena, weir_kube_text_or(one, "value", "")),
                                     weir_arena_strdup(arena, weir_kube_text(one, "effect"))};
        }
    }
}

/* With its name as a label, and its accelerators' resource, so that pods ask for it as for any other. */
static struct select_labels labels_of(const json_t *object, struct place_node *node)
{
    struct weir_arena *arena = &node->held.arena;
    struct select_labels said = select_labels_read(object, arena);
    struct weir_sched_label *rows =
        WEIR_ARENA_ARRAY(arena, (size_t)said.n + 2, struct weir_sched_label);
    for (int32_t i = 0; i < said.n; i++) {
        rows[i] = said.rows[i];
    }
    rows[said.n++] = (struct weir_sched_label){NODE_NAME_FIELD, node->name};
    if (node->device != NULL) {
        rows[said.n++] = (struct weir_sched_label){node->device, ""};
    }
    return (struct select_labels){.rows = rows, .n = said.n};
}

struct place_node *place_node_read(const struct kubernetes_options *options, const json_t *object)
{
    const char *name = weir_kube_text(object, "metadata.name");
    const json_t *labels = weir_kube_at(object, "metadata.labels");
    if (name == NULL) {
        return NULL;
    }
    struct place_node *node = weir_xalloc(sizeof *node);
    *node = (struct place_node){.held = {.n_holders = 1}};
    weir_arena_init(&node->held.arena, 0);
    node->name = weir_arena_strdup(&node->held.arena, name);
    read_amounts(options, weir_kube_at(object, "status.allocatable"), node);
    read_taints(weir_kube_at(object, "spec.taints"), node);
    node->labels = labels_of(labels, node);
    if (node->device != NULL) {
        node->model = weir_arena_strdup(
            &node->held.arena, kubernetes_node_model(labels, node->device, &node->held.arena));
    }
    node->is_cordoned = json_is_true(weir_kube_at(object, "spec.unschedulable"));
    node->is_ready = weir_kube_holds(object, "Ready") != NULL;
    return node;
}
