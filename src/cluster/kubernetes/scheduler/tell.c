#include "cluster/kubernetes/scheduler/tell.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/rng.h"

#include <string.h>

#define MESSAGE_MAX 1024 /* an event has so many bytes at the most */

/* Kubernetes keeps seconds. In the arena. */
static const char *time_now(struct weir_arena *arena)
{
    char text[WEIR_TIME_TEXT_BYTES];
    weir_time_format(weir_time_ms(), text);
    return weir_arena_printf(arena, "%.*sZ", (int)strcspn(text, ".Z"), text);
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

/* @param nominated  NULL: nowhere. */
static bool say(struct carry_out *carry, const struct place_pod *pod, const char *sentence,
                const char *nominated)
{
    const char *now = time_now(carry->arena);
    const struct calls_one one = {
        .kind = CALLS_SAY,
        .uid = pod->uid,
        .method = "PATCH",
        .content_type = "application/strategic-merge-patch+json",
        .path = weir_arena_printf(carry->arena, "/api/v1/namespaces/%s/pods/%s/status", pod->space,
                                  pod->name),
        .body = json_pack("{s:{s:s},s:{s:[{s:s,s:s,s:s,s:s,s:s}],s:s?}}", "metadata", "uid",
                          pod->uid, "status", "conditions", "type", "PodScheduled", "status",
                          "False", "reason", "Unschedulable", "message", sentence,
                          "lastTransitionTime", now, "nominatedNodeName", nominated)};
    return calls_ask(carry->calls, &one);
}

void tell_waiting(struct carry_out *carry, const struct place_pod *pod, struct memory_item *item,
                  const char *sentence)
{
    bool has_place = item->nominated != NULL && item->nominated[0] != '\0';
    const char *nominated = has_place ? item->nominated : NULL;
    const char *said = item->said != NULL ? item->said : pod->said;
    bool is_other_place = !is_same(nominated, pod->nominated);
    bool is_due = item->said_ms == 0 || carry->now_ms - item->said_ms >= CARRY_OUT_SAID_MS;
    if ((!is_same(said, sentence) || is_other_place) && is_due &&
        say(carry, pod, sentence, nominated)) {
        memory_set(&item->said, sentence);
        item->said_ms = carry->now_ms;
    }
    if (item->event_ms == 0 || carry->now_ms - item->event_ms >= CARRY_OUT_EVENT_MS) {
        item->event_ms = carry->now_ms;
        tell_event(carry, pod, "Warning", "FailedScheduling", sentence);
    }
}

void tell_event(struct carry_out *carry, const struct place_pod *pod, const char *type,
                const char *reason, const char *message)
{
    uint64_t number;
    weir_random_bytes(&number, sizeof number);
    const char *now = time_now(carry->arena);
    const struct calls_one one = {
        .kind = CALLS_EVENT,
        .uid = pod->uid,
        .method = "POST",
        .path = weir_arena_printf(carry->arena, "/api/v1/namespaces/%s/events", pod->space),
        .body = json_pack(
            "{s:s,s:s,s:{s:s,s:s},s:{s:s,s:s,s:s,s:s,s:s},s:s,s:s,s:s,s:s,s:s,s:i,s:{s:s},s:s}",
            "apiVersion", "v1", "kind", "Event", "metadata", "name",
            weir_arena_printf(carry->arena, "%.200s.%016llx", pod->name,
                              (unsigned long long)number),
            "namespace", pod->space, "involvedObject", "apiVersion", "v1", "kind", "Pod", "name",
            pod->name, "namespace", pod->space, "uid", pod->uid, "type", type, "reason", reason,
            "message", weir_arena_printf(carry->arena, "%.*s", MESSAGE_MAX, message),
            "firstTimestamp", now, "lastTimestamp", now, "count", 1, "source", "component",
            PLACE_SCHEDULER, "reportingComponent", PLACE_SCHEDULER)};
    (void)calls_ask(carry->calls, &one);
}
