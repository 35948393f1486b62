#include "cluster/kubernetes/pod.h"

#include "base/amount.h"
#include "cluster/kubernetes/block.h"
#include "kube/client.h"

#include <string.h>

#define KILLED_BY_KERNEL "OOMKilled"
#define SIGNALLED        128 /* above it an exit status says by which signal */

/* ---- what it asks for ------------------------------------------------------------------------ */

static int64_t request(const json_t *container, const char *resource)
{
    int64_t milli = 0;
    const char *text =
        json_string_value(json_object_get(weir_kube_at(container, "resources.requests"), resource));
    return text != NULL && weir_amount_parse(text, &milli) ? milli : 0;
}

int64_t kubernetes_pod_requests(const json_t *pod, const char *resource)
{
    int64_t together = 0, before = 0, on_top = 0;
    const char *overhead =
        json_string_value(json_object_get(weir_kube_at(pod, "spec.overhead"), resource));
    size_t i;
    json_t *one;
    json_array_foreach(weir_kube_at(pod, "spec.containers"), i, one)
    {
        together += request(one, resource);
    }
    json_array_foreach(weir_kube_at(pod, "spec.initContainers"), i, one)
    {
        if (weir_kube_is(one, "restartPolicy", "Always")) { /* it goes on beside them */
            together += request(one, resource);
        } else {
            before = WEIR_MAX(before, request(one, resource));
        }
    }
    if (overhead != NULL) {
        (void)weir_amount_parse(overhead, &on_top);
    }
    return WEIR_MAX(together, before) + on_top;
}

/* ---- how it is ------------------------------------------------------------------------------- */

/* The state of the first container that says something, of those that come first to those that come last. */
static const json_t *container_state(const json_t *pod, const char *state)
{
    static const char *const lists[] = {"status.initContainerStatuses", "status.containerStatuses"};
    for (size_t k = 0; k < WEIR_ARRAY_LEN(lists); k++) {
        size_t i;
        json_t *one;
        json_array_foreach(weir_kube_at(pod, lists[k]), i, one)
        {
            const json_t *has = json_object_get(json_object_get(one, "state"), state);
            bool is_good = strcmp(state, "terminated") == 0 &&
                           json_integer_value(json_object_get(has, "exitCode")) == 0;
            if (has != NULL && !is_good) {
                return has;
            }
        }
    }
    return NULL;
}

static enum kubernetes_pod_phase phase_of(const json_t *pod)
{
    const char *phase = weir_kube_text_or(pod, "status.phase", "Pending");
    if (strcmp(phase, "Succeeded") == 0) {
        return KUBERNETES_POD_SUCCEEDED;
    }
    if (strcmp(phase, "Failed") == 0) {
        return KUBERNETES_POD_FAILED;
    }
    if (strcmp(phase, "Running") == 0) {
        return KUBERNETES_POD_RUNNING;
    }
    return weir_kube_text(pod, "spec.nodeName") != NULL ? KUBERNETES_POD_STARTING
                                                        : KUBERNETES_POD_WAITING;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

/* How an allocation ended if its pod had to go. */
static enum weir_allocation_ending disruption(const json_t *pod)
{
    static const struct {
        const char *reason;
        enum weir_allocation_ending ending;
    } known[] = {{"PreemptionByScheduler", WEIR_ENDING_PREEMPTED},
                 {"PreemptionByKubeScheduler", WEIR_ENDING_PREEMPTED},
                 {"EvictionByEvictionAPI", WEIR_ENDING_PREEMPTED}};

    const char *reason = weir_kube_text_or(weir_kube_holds(pod, "DisruptionTarget"), "reason", "");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        if (strcmp(reason, known[i].reason) == 0) {
            return known[i].ending;
        }
    }
    return WEIR_ENDING_FAILED;
}

static enum weir_allocation_ending ending_of(const json_t *pod)
{
    if (weir_kube_holds(pod, "DisruptionTarget") != NULL) {
        return disruption(pod);
    }
    if (weir_kube_is(pod, "status.reason", "DeadlineExceeded")) {
        return WEIR_ENDING_TIME;
    }
    /* An agent that was told to end, and fails then, was deleted. */
    bool is_told = weir_kube_text(pod, "metadata.deletionTimestamp") != NULL;
    const json_t *over = container_state(pod, "terminated");
    bool is_oom = weir_kube_is(over, "reason", KILLED_BY_KERNEL);
    return is_told && !is_oom ? WEIR_ENDING_CANCELLED : WEIR_ENDING_FAILED;
}

/* The last line of what a container printed. */
static const char *last_line(const char *text, struct weir_arena *arena)
{
    size_t len = strlen(text);
    while (len > 0 && strchr("\r\n", text[len - 1]) != NULL) {
        len--;
    }
    size_t begin = len;
    while (begin > 0 && text[begin - 1] != '\n') {
        begin--;
    }
    return weir_arena_printf(arena, "%.*s", (int)WEIR_MIN(len - begin, (size_t)300), text + begin);
}

static const char *why_ended(const json_t *pod, const json_t *over, struct weir_arena *arena)
{
    const char *message = weir_kube_text(pod, "status.message");
    if (message != NULL && message[0] != '\0') {
        return message;
    }
    if (over == NULL) {
        return weir_kube_text_or(pod, "status.reason", NULL);
    }
    if (weir_kube_is(over, "reason", KILLED_BY_KERNEL)) {
        return weir_arena_printf(arena, "it used more memory than it asked for (%s)",
                                 KILLED_BY_KERNEL);
    }
    if (ending_of(pod) == WEIR_ENDING_CANCELLED) {
        return weir_arena_printf(arena, "its pod %s was deleted",
                                 weir_kube_text_or(pod, "metadata.name", ""));
    }
    const char *printed = weir_kube_text_or(over, "message", "");
    json_int_t status = json_integer_value(json_object_get(over, "exitCode"));
    if (status > SIGNALLED) {
        return weir_arena_printf(arena, "its agent was killed by signal %lld",
                                 (long long)(status - SIGNALLED));
    }
    return weir_arena_printf(arena, "its agent ended with exit status %lld%s%s", (long long)status,
                             printed[0] != '\0' ? ": " : "", last_line(printed, arena));
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* The word and the sentence of one that has not started. */
static void say_waiting(const json_t *pod, struct kubernetes_pod *out, struct weir_arena *arena)
{
    const json_t *scheduled = weir_kube_condition(pod, "PodScheduled");
    const json_t *waiting = container_state(pod, "waiting");
    if (out->phase == KUBERNETES_POD_WAITING) {
        out->said = weir_kube_text_or(scheduled, "reason", "Pending");
        out->why = weir_kube_text_or(scheduled, "message", NULL);
        return;
    }
    out->said = weir_kube_text_or(waiting, "reason", "Pending");
    const char *message = weir_kube_text_or(waiting, "message", NULL);
    bool is_usual =
        strcmp(out->said, "ContainerCreating") == 0 || strcmp(out->said, "PodInitializing") == 0;
    if (!is_usual && waiting != NULL) {
        out->stuck_since_ms = weir_kube_time_ms(weir_kube_text(pod, "status.startTime"));
    }
    if (message != NULL) {
        out->why = weir_arena_printf(arena, "%.400s", message);
    } else if (!is_usual && waiting != NULL) {
        out->why = out->said;
    } else {
        out->why = weir_arena_printf(arena, "the node %s starts it", out->node);
    }
}

static void say(const json_t *pod, struct kubernetes_pod *out, struct weir_arena *arena)
{
    const json_t *over = container_state(pod, "terminated");
    const json_t *disrupted = weir_kube_holds(pod, "DisruptionTarget");
    if (out->phase < KUBERNETES_POD_RUNNING) {
        say_waiting(pod, out, arena);
        return;
    }
    out->said = weir_kube_text_or(pod, "status.phase", "Running");
    if (out->phase == KUBERNETES_POD_FAILED) {
        out->ending = ending_of(pod);
        out->said =
            weir_kube_text_or(pod, "status.reason", weir_kube_text_or(over, "reason", "Failed"));
        out->why = why_ended(pod, over, arena);
    }
    if (disrupted != NULL) {
        out->why = weir_kube_text_or(disrupted, "message", out->why);
        out->ending = disruption(pod);
    }
}

static int64_t ends_of(const json_t *pod)
{
    int64_t seconds = json_integer_value(weir_kube_at(pod, "spec.activeDeadlineSeconds"));
    int64_t started_ms = weir_kube_time_ms(weir_kube_text(pod, "status.startTime"));
    return seconds > 0 && started_ms > 0 ? started_ms + seconds * 1000 : 0;
}

static bool is_of_node(const json_t *pod)
{
    size_t i;
    json_t *owner;
    json_array_foreach(weir_kube_at(pod, "metadata.ownerReferences"), i, owner)
    {
        if (weir_kube_is(owner, "kind", "DaemonSet") || weir_kube_is(owner, "kind", "Node")) {
            return true;
        }
    }
    return false;
}

static int64_t number_label(const json_t *labels, const char *label)
{
    const char *text = json_string_value(json_object_get(labels, label));
    int64_t milli = 0;
    return text != NULL && weir_amount_parse(text, &milli) ? milli / 1000 : 0;
}

struct kubernetes_pod *kubernetes_pod_read(const json_t *pod)
{
    static const size_t texts[] = {offsetof(struct kubernetes_pod, allocation),
                                   offsetof(struct kubernetes_pod, node),
                                   offsetof(struct kubernetes_pod, name),
                                   offsetof(struct kubernetes_pod, namespace_name),
                                   offsetof(struct kubernetes_pod, said),
                                   offsetof(struct kubernetes_pod, why)};
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const json_t *labels = weir_kube_at(pod, "metadata.labels");
    struct kubernetes_pod read = {
        .allocation = json_string_value(json_object_get(labels, KUBERNETES_ALLOCATION_LABEL)),
        .node = weir_kube_text(pod, "spec.nodeName"),
        .phase = phase_of(pod),
        .is_of_node = is_of_node(pod),
        .cpu_milli = kubernetes_pod_requests(pod, "cpu"),
        .memory_bytes = kubernetes_pod_requests(pod, "memory") / 1000};
    weir_arena_init(&arena, 0);
    read.is_over = read.phase >= KUBERNETES_POD_SUCCEEDED;
    if (read.allocation != NULL) {
        read.name = weir_kube_text(pod, "metadata.name");
        read.namespace_name = weir_kube_text(pod, "metadata.namespace");
        read.n_pods = number_label(labels, KUBERNETES_NODES_LABEL);
        read.ends_ms = ends_of(pod);
        read.is_leaving = weir_kube_text(pod, "metadata.deletionTimestamp") != NULL;
        say(pod, &read, &arena);
    }
    return kubernetes_block(&read, sizeof read, texts, WEIR_ARRAY_LEN(texts));
}
