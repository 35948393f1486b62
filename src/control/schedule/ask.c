#include "control/ask.h"

#include "base/json.h"
#include "control/supply.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(struct ask *ask, const json_t *value)
{
    return weir_arena_strdup(&ask->arena, json_string_value(value));
}

static void read_selector(struct ask *ask, const json_t *selector)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)selector, key, value)
    {
        if (ask->n_labels < ASK_MARKS_MAX && json_is_string(value)) {
            ask->labels[ask->n_labels++] =
                (struct weir_sched_label){weir_arena_strdup(&ask->arena, key), text_of(ask, value)};
        }
    }
}

static void read_tolerations(struct ask *ask, const json_t *list)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *key = text_of(ask, json_object_get(item, "key"));
        bool is_ours = key != NULL && strncmp(key, "weir/", 5) == 0; /* which nobody steps round */
        if (key != NULL && !is_ours && ask->n_tolerations < ASK_MARKS_MAX) {
            ask->tolerations[ask->n_tolerations++] =
                (struct weir_sched_toleration){key, text_of(ask, json_object_get(item, "value"))};
        }
    }
}

static void read_clusters(struct ask *ask, const json_t *list)
{
    size_t n = json_array_size(list);
    ask->clusters = WEIR_ARENA_ARRAY(&ask->arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        const char *name = text_of(ask, json_array_get(list, i));
        if (name != NULL) {
            ask->clusters[ask->n_clusters++] = name;
        }
    }
}

/* Equal wants are equal texts. */
static const char *read_pod(struct ask *ask, const json_t *pod)
{
    char *text = pod != NULL ? json_dumps(pod, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    char *copy = weir_arena_strdup(&ask->arena, text);
    free(text);
    return copy;
}

struct ask *ask_read(const char *placement)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *object = placement != NULL ? json_loads(placement, 0, NULL) : NULL;
    if (object == NULL) {
        return NULL;
    }
    struct ask *ask = weir_xalloc(sizeof *ask);
    *ask = (struct ask){0};
    weir_arena_init(&ask->arena, 0);
    read_selector(ask, json_object_get(object, "node_selector"));
    read_tolerations(ask, json_object_get(object, "tolerations"));
    read_clusters(ask, json_object_get(object, "clusters"));
    const json_t *pod = json_object_get(object, "pod");
    ask->pod = read_pod(ask, pod);
    const json_t *after = json_object_get(object, "overflow_after_ms");
    ask->after_ms = json_is_integer(after) ? json_integer_value(after) : -1;
    const json_t *topology = json_object_get(object, "topology");
    ask->required = text_of(ask, json_object_get(topology, "required"));
    ask->preferred = text_of(ask, json_object_get(topology, "preferred"));
    return ask;
}

void ask_free(struct ask *ask)
{
    if (ask != NULL) {
        weir_arena_fini(&ask->arena);
        free(ask);
    }
}

void ask_devices(const struct weir_task *task, struct weir_sched_demand *demand)
{
    if (task->mig_profile == NULL) {
        demand->n_devices = (int32_t)task->n_accelerators;
        demand->device_milli = (int32_t)task->accelerator_milli;
        demand->device_memory_bytes = task->accelerator_memory_bytes;
    }
}

int32_t ask_labels(const struct ask *ask, const struct weir_task *task,
                   struct weir_sched_label *out)
{
    int32_t n = ask != NULL ? ask->n_labels : 0;
    if (n > 0) {
        memcpy(out, ask->labels, (size_t)n * sizeof *out);
    }
    if (task->n_accelerators > 0 && task->accelerator_model != NULL) {
        out[n++] = (struct weir_sched_label){SUPPLY_LABEL_MODEL, task->accelerator_model};
    }
    return n;
}

bool ask_tolerates(const struct ask *ask, const struct weir_sched_taint *taints, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        bool is_tolerated = false;
        for (int32_t k = 0; ask != NULL && k < ask->n_tolerations && !is_tolerated; k++) {
            const struct weir_sched_toleration *toleration = &ask->tolerations[k];
            is_tolerated =
                strcmp(toleration->key, taints[i].key) == 0 &&
                (toleration->value == NULL || strcmp(toleration->value, taints[i].value) == 0);
        }
        if (!is_tolerated) {
            return false;
        }
    }
    return true;
}
