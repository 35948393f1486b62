#include "cluster/kubernetes/scheduler/part.h"

#include "base/amount.h"
#include "base/macros.h"
#include "cluster/kubernetes/job.h"
#include "kube/client.h"

#include <string.h>

#define NAME_MAX_LEN 253

static const char *note_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(weir_kube_at(object, "metadata.annotations"), key));
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= NAME_MAX_LEN && text[0] != '.' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len;
}

/* Does a container take its environment from this ConfigMap? */
static bool reads_config(const json_t *container, const char *config)
{
    size_t i;
    json_t *source;
    json_array_foreach(weir_kube_at(container, "envFrom"), i, source)
    {
        if (weir_kube_is(source, "configMapRef.name", config)) {
            return true;
        }
    }
    return false;
}

static bool is_read(const json_t *object, const char *config)
{
    size_t i;
    json_t *container;
    json_array_foreach(weir_kube_at(object, "spec.containers"), i, container)
    {
        if (reads_config(container, config)) {
            return true;
        }
    }
    return false;
}

static const char *wrong_config(const json_t *object, struct place_pod *pod)
{
    const char *config = pod->part.config;
    if (config == NULL || !is_name(config)) {
        return "A part of an accelerator (" PART_FRACTION ") needs the annotation " PART_CONFIG
               " with the name of a ConfigMap, which Weir writes, and from which a container of "
               "the pod reads its environment (envFrom: [{configMapRef: {name: NAME}}]).";
    }
    return is_read(object, config)
               ? NULL
               : weir_arena_printf(&pod->held.arena,
                                   "No container of the pod reads its environment from the "
                                   "ConfigMap \"%s\" that " PART_CONFIG " names: write envFrom: "
                                   "[{configMapRef: {name: %s}}] in the container that uses the "
                                   "accelerator.",
                                   config, config);
}

static const char *wrong_others(const json_t *object)
{
    static const struct {
        const char *key, *sentence;
    } others[] = {
        {"weir.dev/gpu-memory",
         "not supported: weir.dev/gpu-memory; a part of an accelerator is asked for "
         "by " PART_FRACTION},
        {"weir.dev/gpu-fraction-num-devices",
         "not supported: weir.dev/gpu-fraction-num-devices; a pod has a part of one accelerator"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        if (note_of(object, others[i].key) != NULL) {
            return others[i].sentence;
        }
    }
    return NULL;
}

static const char *wrong_part(const json_t *object, struct place_pod *pod)
{
    const char *wrong = wrong_others(object);
    if (wrong != NULL || note_of(object, PART_FRACTION) == NULL) {
        return wrong;
    }
    return pod->part.milli > 0 ? wrong_config(object, pod)
                               : PART_FRACTION
               ": more than 0 and less than 1 is expected, as \"0.5\", in "
               "thousandths; whole accelerators are asked for as resources.";
}

/* 0: it is none. */
static int64_t fraction_of(const char *text)
{
    int64_t milli = 0;
    return text != NULL && weir_amount_parse(text, &milli) && milli > 0 && milli < WEIR_SCHED_DEVICE
               ? milli
               : 0;
}

/* One that was bound with a part has it, whatever is written to it since. */
void part_read(const json_t *object, struct place_pod *pod)
{
    struct weir_arena *arena = &pod->held.arena;
    const char *group = pod->node != NULL ? note_of(object, PART_GROUP) : NULL;
    pod->part =
        (struct place_part){.milli = fraction_of(note_of(object, PART_FRACTION)),
                            .config = weir_arena_strdup(arena, note_of(object, PART_CONFIG)),
                            .group = weir_arena_strdup(arena, group),
                            .device = weir_arena_strdup(arena, note_of(object, PART_DEVICE))};
    if (group != NULL) {
        pod->part.milli = pod->part.milli > 0 ? pod->part.milli : WEIR_SCHED_DEVICE;
        return;
    }
    const char *wrong = wrong_part(object, pod);
    pod->asks_more = wrong != NULL ? wrong : pod->asks_more;
    pod->part.milli = wrong != NULL || pod->node != NULL ? 0 : pod->part.milli;
}

/* "0.5" */
static const char *text_of(int64_t milli, struct weir_arena *arena)
{
    char *text = weir_arena_printf(arena, "0.%03d", (int)milli);
    size_t len = strlen(text);
    while (text[len - 1] == '0') {
        text[--len] = '\0';
    }
    return text;
}

/* The container sees one device, which is its first. It goes away with its pods. */
json_t *part_config(const struct place_pod *pod, const char *device, struct weir_arena *arena)
{
    return json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s}]},s:{s:s,s:s,s:s}}", "apiVersion", "v1",
        "kind", "ConfigMap", "metadata", "name", pod->part.config, "namespace", pod->space,
        "labels", KUBERNETES_MANAGED_LABEL, KUBERNETES_MANAGER, "ownerReferences", "apiVersion",
        "v1", "kind", "Pod", "name", pod->name, "uid", pod->uid, "data", "NVIDIA_VISIBLE_DEVICES",
        device, "CUDA_VISIBLE_DEVICES", "0", "WEIR_GPU_FRACTION", text_of(pod->part.milli, arena));
}
