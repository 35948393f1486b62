#include "cluster/kubernetes/scheduler/reservation.h"

#include "cluster/kubernetes/job.h"
#include "cluster/kubernetes/scheduler/part.h"

#include "base/hash.h"
#include "base/macros.h"
#include "kube/client.h"

#include <string.h>

#define NAME_PREFIX "weir-gpu-"
#define VARIABLE    "NVIDIA_VISIBLE_DEVICES="
#define GROUPS_MAX  4096
#define GRACE_S     1 /* its shell ends at SIGTERM */
#define DEVICE_MAX  128

static const char script[] = "trap 'exit 0' TERM\n"
                             "echo \"" VARIABLE "$NVIDIA_VISIBLE_DEVICES\"\n"
                             "while true; do sleep 86400 & wait $!; done\n";

/* ---- names ------------------------------------------------------------------------------------ */

static uint64_t number_of(const char *node)
{
    return weir_hash_text(WEIR_HASH_BEGIN, node);
}

const char *reservation_group(const char *node, int32_t n, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%016llx-%d", (unsigned long long)number_of(node), n);
}

/* Only what reservation_group writes is a name. */
int32_t reservation_number(const char *node, const char *group)
{
    char begin[24], whole[40];
    int len = snprintf(begin, sizeof begin, "%016llx-", (unsigned long long)number_of(node));
    if (strncmp(group, begin, (size_t)len) != 0) {
        return -1;
    }
    long n = strtol(group + len, NULL, 10);
    (void)snprintf(whole, sizeof whole, "%s%d", begin, (int)n);
    return n >= 0 && n < GROUPS_MAX && strcmp(whole, group) == 0 ? (int32_t)n : -1;
}

const char *reservation_name(const char *group, struct weir_arena *arena)
{
    return weir_arena_printf(arena, NAME_PREFIX "%s", group);
}

/* ---- its pod ---------------------------------------------------------------------------------- */

json_t *reservation_template(const struct kubernetes_options *options)
{
    json_t *spec = kubernetes_pod_base(options);
    json_object_update_new(
        spec, json_pack("{s:s,s:i,s:[{s:s}],s:[{s:s,s:s,s:[s,s,s],s:o}]}", "restartPolicy",
                        "Always", "terminationGracePeriodSeconds", GRACE_S, "tolerations",
                        "operator", "Exists", "containers", "name", RESERVATION_CONTAINER, "image",
                        kubernetes_weir_image(options), "command", "/bin/sh", "-c", script,
                        "securityContext", kubernetes_no_rights()));
    if (options->priority_class != NULL) {
        json_object_set_new(spec, "priorityClassName", json_string(options->priority_class));
    }
    return spec;
}

json_t *reservation_make(const json_t *common, const char *node, const char *device,
                         const char *group, struct weir_arena *arena)
{
    json_t *spec = json_deep_copy(common);
    json_t *amounts = json_pack(
        "{s:o,s:o,s:s}", "cpu", json_string(weir_arena_printf(arena, "%dm", RESERVATION_CPU_MILLI)),
        "memory",
        json_string(weir_arena_printf(arena, "%lld", (long long)RESERVATION_MEMORY_BYTES)), device,
        "1");
    json_object_set_new(spec, "nodeName", json_string(node));
    json_object_set_new(json_array_get(json_object_get(spec, "containers"), 0), "resources",
                        json_pack("{s:O,s:o}", "requests", amounts, "limits", amounts));
    return json_pack("{s:s,s:s,s:{s:s,s:{s:s,s:s,s:s}},s:o}", "apiVersion", "v1", "kind", "Pod",
                     "metadata", "name", reservation_name(group, arena), "labels",
                     "app.kubernetes.io/name", "weir", KUBERNETES_MANAGED_LABEL, KUBERNETES_MANAGER,
                     PART_GROUP, group, "spec", spec);
}

/* Why it does not run, in the words of the API. NULL: nobody says. */
static const char *trouble_of(const json_t *object, struct weir_arena *arena)
{
    const json_t *status = json_array_get(weir_kube_at(object, "status.containerStatuses"), 0),
                 *waiting = weir_kube_at(status, "state.waiting");
    const char *said = weir_kube_text_or(object, "status.message",
                                         weir_kube_text_or(object, "status.reason", NULL));
    said = said != NULL
               ? said
               : weir_kube_text_or(waiting, "message", weir_kube_text_or(waiting, "reason", NULL));
    return said != NULL ? weir_arena_printf(arena, "%.300s", said) : NULL;
}

void reservation_read(const json_t *object, struct place_pod *pod)
{
    const json_t *labels = weir_kube_at(object, "metadata.labels");
    const char *group = json_string_value(json_object_get(labels, PART_GROUP)),
               *manager = json_string_value(json_object_get(labels, KUBERNETES_MANAGED_LABEL));
    if (group == NULL || manager == NULL || strcmp(manager, KUBERNETES_MANAGER) != 0 ||
        pod->node == NULL || reservation_number(pod->node, group) < 0 ||
        strcmp(pod->name, reservation_name(group, &pod->held.arena)) != 0) {
        return;
    }
    pod->holder =
        (struct place_holder){.group = weir_arena_strdup(&pod->held.arena, group),
                              .trouble = trouble_of(object, &pod->held.arena),
                              .is_running = weir_kube_is(object, "status.phase", "Running")};
}

/* ---- what it printed -------------------------------------------------------------------------- */

static bool is_device(const char *text)
{
    static const char *const none[] = {"void", "none", "all"};
    size_t len = strlen(text);
    bool is =
        len > 0 && len <= DEVICE_MAX && strchr("-./:_", text[0]) == NULL &&
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-./:_") == len;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(none) && is; i++) {
        is = strcmp(text, none[i]) != 0;
    }
    return is;
}

const char *reservation_device(const char *printed, struct weir_arena *arena,
                               const char **out_wrong)
{
    const char *at = strstr(printed, VARIABLE);
    const char *end = at != NULL ? strpbrk(at, "\r\n") : NULL;
    if (end == NULL) {
        return NULL;
    }
    at += strlen(VARIABLE);
    char *text = weir_arena_memdup(arena, at, (size_t)(end - at));
    if (is_device(text)) {
        return text;
    }
    for (char *letter = text; *letter != '\0'; letter++) {
        *letter = *letter >= ' ' && *letter <= '~' ? *letter : '?';
    }
    *out_wrong = weir_arena_printf(
        arena,
        "its pod is not told which device it has (NVIDIA_VISIBLE_DEVICES=%.60s): the node needs "
        "NVIDIA's container runtime (option runtime_class, if it is not the usual one), and its "
        "device plugin the strategy \"envvar\"",
        text);
    return NULL;
}
