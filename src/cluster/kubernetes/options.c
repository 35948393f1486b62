#include "cluster/kubernetes/options.h"

#include "cluster/kubernetes/template.h"

#include "base/macros.h"
#include "base/quantity.h"
#include "base/volume.h"

#include <string.h>

#define TIME_MAX_MS  ((int64_t)366 * 24 * 3600 * 1000)
#define GRACE_MS     60000
#define GRACE_MAX_MS 3600000
#define VOLUMES_MAX  32
#define NAME_MAX_LEN 253

struct kubernetes_payer kubernetes_options_payer(const struct kubernetes_options *options,
                                                 const char *queue)
{
    const json_t *own = queue != NULL ? json_object_get(options->queues, queue) : NULL;
    const char *space = json_string_value(json_object_get(own, "namespace"));
    const char *kueue = json_string_value(json_object_get(own, "kueue_queue"));
    const char *priority = json_string_value(json_object_get(own, "priority_class"));
    const char *image = json_string_value(json_object_get(own, "pod_image"));
    return (struct kubernetes_payer){
        .namespace_name = space != NULL ? space : options->namespace_name,
        .kueue_queue = kueue != NULL ? kueue : options->kueue_queue,
        .priority_class = priority != NULL ? priority : options->priority_class,
        .pod_image = image != NULL ? image : options->pod_image};
}

static int64_t span_ms(const char *text, int64_t otherwise)
{
    int64_t ms;
    return text != NULL && weir_span_parse(text, &ms) ? ms : otherwise;
}

int64_t kubernetes_options_time_ms(const struct kubernetes_options *options)
{
    return span_ms(options->time, 0);
}

int64_t kubernetes_options_grace_ms(const struct kubernetes_options *options)
{
    return span_ms(options->grace, GRACE_MS);
}

bool kubernetes_is_scheduled_by(const struct kubernetes_options *options, const char *who)
{
    return strcmp(options->scheduler != NULL ? options->scheduler : KUBERNETES_BY_CLUSTER, who) ==
           0;
}

bool kubernetes_is_device(const struct kubernetes_options *options, const char *resource)
{
    size_t len = strlen(resource);
    return options->device != NULL ? strcmp(resource, options->device) == 0
                                   : len > 4 && strcmp(resource + len - 4, "/gpu") == 0;
}

/* ---- what is wrong with them ----------------------------------------------------------------- */

/* A name of an object's: small letters, digits, "-" and "."; it ends in neither. */
static bool is_name(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= NAME_MAX_LEN &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len &&
           strchr("-.", text[0]) == NULL && strchr("-.", text[len - 1]) == NULL;
}

static const char *wrong_name(const char *option, const char *value, struct weir_arena *arena)
{
    return value == NULL || is_name(value)
               ? NULL
               : weir_arena_printf(arena,
                                   "%s: \"%.80s\" is no name of Kubernetes: small letters, digits, "
                                   "\"-\" and \".\" are expected",
                                   option, value);
}

static const char *wrong_names(const struct kubernetes_options *options, struct weir_arena *arena)
{
    const struct {
        const char *option, *value;
    } names[] = {{"namespace", options->namespace_name},
                 {"kueue_queue", options->kueue_queue},
                 {"priority_class", options->priority_class},
                 {"runtime_class", options->runtime_class},
                 {"service_account", options->service_account}};

    const char *wrong = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names) && wrong == NULL; i++) {
        wrong = wrong_name(names[i].option, names[i].value, arena);
    }
    return wrong;
}

static const char *wrong_spans(const struct kubernetes_options *options, struct weir_arena *arena)
{
    const struct {
        const char *option, *value, *example;
        int64_t most_ms;
    } spans[] = {{"time", options->time, "8h", TIME_MAX_MS},
                 {"grace", options->grace, "90s", GRACE_MAX_MS}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(spans); i++) {
        int64_t ms = span_ms(spans[i].value, -1);
        if (spans[i].value != NULL && (ms < 1000 || ms > spans[i].most_ms)) {
            return weir_arena_printf(arena,
                                     "%s: in place of \"%.40s\" a time of 1s to %s is expected, "
                                     "as \"%s\"",
                                     spans[i].option, spans[i].value, i == 0 ? "366d" : "1h",
                                     spans[i].example);
        }
    }
    return NULL;
}

static const char *wrong_scheduler(const struct kubernetes_options *options,
                                   struct weir_arena *arena)
{
    static const char *const known[] = {KUBERNETES_BY_CLUSTER, KUBERNETES_BY_KUEUE,
                                        KUBERNETES_BY_WEIR};
    bool is_known = options->scheduler == NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        is_known = is_known || kubernetes_is_scheduled_by(options, known[i]);
    }
    if (!is_known) {
        return weir_arena_printf(arena,
                                 "scheduler: \"%.40s\" is none: cluster, kueue or weir is expected",
                                 options->scheduler);
    }
    return kubernetes_is_scheduled_by(options, KUBERNETES_BY_KUEUE) &&
                   options->kueue_queue == NULL && json_object_size(options->queues) == 0
               ? "kueue_queue: with scheduler=kueue the name of a LocalQueue is expected"
               : NULL;
}

static const char *wrong_payer(const char *queue, json_t *payer, struct weir_arena *arena)
{
    static const struct {
        const char *name;
        bool is_name;
    } members[] = {
        {"namespace", true}, {"kueue_queue", true}, {"priority_class", true}, {"pod_image", false}};

    const char *member;
    json_t *value;
    if (!json_is_object(payer) || json_object_size(payer) == 0) {
        return weir_arena_printf(arena,
                                 "queues.%.60s: an object with \"namespace\", \"kueue_queue\", "
                                 "\"priority_class\" or \"pod_image\" is expected",
                                 queue);
    }
    json_object_foreach(payer, member, value)
    {
        const char *text = json_string_value(value), *expected = NULL;
        size_t i = 0;
        while (i < WEIR_ARRAY_LEN(members) && strcmp(member, members[i].name) != 0) {
            i++;
        }
        if (i == WEIR_ARRAY_LEN(members)) {
            expected = "it has namespace, kueue_queue, priority_class and pod_image alone";
        } else if (text == NULL || text[0] == '\0' || (members[i].is_name && !is_name(text))) {
            expected = members[i].is_name ? "a name of Kubernetes is expected"
                                          : "the name of an image is expected";
        }
        if (expected != NULL) {
            return weir_arena_printf(arena, "queues.%.60s.%.40s: %s", queue, member, expected);
        }
    }
    return NULL;
}

static const char *wrong_queues(const struct kubernetes_options *options, struct weir_arena *arena)
{
    const char *queue, *wrong = NULL;
    json_t *payer;
    if (options->queues != NULL && !json_is_object(options->queues)) {
        return "queues: an object is expected, as {\"vision\": {\"namespace\": \"team-vision\"}}";
    }
    json_object_foreach((json_t *)(uintptr_t)options->queues, queue, payer)
    {
        wrong = wrong != NULL ? wrong : wrong_payer(queue, payer, arena);
    }
    return wrong;
}

static const char *wrong_volumes(const struct kubernetes_options *options, struct weir_arena *arena)
{
    const char *wrong = NULL;
    struct weir_volume read;
    size_t i;
    json_t *volume;
    if (options->volumes != NULL &&
        (!json_is_array(options->volumes) || json_array_size(options->volumes) > VOLUMES_MAX)) {
        return "volumes: a list of at most 32 is expected";
    }
    json_array_foreach(options->volumes, i, volume)
    {
        const char *expected = weir_volume_read(volume, &read);
        if (expected != NULL && wrong == NULL) {
            wrong = weir_arena_printf(arena, "volumes[%zu]: %s", i, expected);
        }
    }
    return wrong;
}

static const char *wrong_tolerations(const struct kubernetes_options *options,
                                     struct weir_arena *arena)
{
    size_t i;
    json_t *one;
    if (options->tolerations != NULL && !json_is_array(options->tolerations)) {
        return "tolerations: a list is expected, as Kubernetes has it: [{\"key\": \"gpu\", "
               "\"operator\": \"Exists\"}]";
    }
    json_array_foreach(options->tolerations, i, one)
    {
        if (!json_is_object(one)) {
            return weir_arena_printf(arena, "tolerations[%zu]: an object is expected", i);
        }
    }
    return NULL;
}

const char *kubernetes_options_wrong(const struct kubernetes_options *options,
                                     struct weir_arena *arena)
{
    static const char *(*const checks[])(const struct kubernetes_options *,
                                         struct weir_arena *) = {wrong_scheduler,
                                                                 wrong_names,
                                                                 wrong_spans,
                                                                 wrong_queues,
                                                                 wrong_volumes,
                                                                 wrong_tolerations,
                                                                 kubernetes_template_options_wrong};
    const char *wrong = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(checks) && wrong == NULL; i++) {
        wrong = checks[i](options, arena);
    }
    return wrong;
}
