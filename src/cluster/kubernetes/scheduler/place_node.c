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

/* PreferNoSchedule keeps nobody away; what says that a node is cordoned is told apart. */
static bool keeps_away(const json_t *taint)
{
    const char *effect = weir_kube_text(taint, "effect"), *key = weir_kube_text(taint, "key");
    return effect != NULL && key != NULL && key[0] != '\0' &&
           (strcmp(effect, "NoSchedule") == 0 || strcmp(effect, "NoExecute") == 0);
}

static void read_taints(const json_t *taints, struct place_node *node)
{
    struct weir_arena *arena = &node->held.arena;
    size_t i;
    json_t *one;
    node->taints = WEIR_ARENA_ARRAY(arena, json_array_size(taints) + 1, struct place_taint);
    json_array_foreach(taints, i, one)
    {
        const char *value = weir_kube_text(one, "value");
        if (keeps_away(one)) {
            node->taints[node->n_taints++] =
                (struct place_taint){weir_arena_strdup(arena, weir_kube_text(one, "key")),
                                     weir_arena_strdup(arena, value != NULL ? value : ""),
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
