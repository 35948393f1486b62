#include "cluster/kubernetes/report.h"

#include "kube/client.h"

#include <string.h>

/* What the pods come to. */
struct count {
    size_t n_alive, n_waiting, n_running, n_over, n_gone;
    int64_t n_wanted, stuck_since_ms;
    const struct kubernetes_pod *stuck; /* the first that does not start, and says why */
    const struct kubernetes_pod *worst; /* the failed one that says most */
};

/* Which ending of several pods is the allocation's: the greater one. */
static int weight(enum weir_allocation_ending ending)
{
    static const int weights[] = {
        [WEIR_ENDING_RELEASED] = 0, [WEIR_ENDING_CANCELLED] = 1, [WEIR_ENDING_FAILED] = 2,
        [WEIR_ENDING_TIME] = 3,     [WEIR_ENDING_PREEMPTED] = 4, [WEIR_ENDING_REFUSED] = 0};
    return weights[ending];
}

static void see(struct count *count, const struct kubernetes_pod *pod, bool is_gone)
{
    bool is_over = is_gone || pod->is_over;
    count->n_wanted = WEIR_MAX(count->n_wanted, pod->n_pods);
    count->n_alive += !is_over;
    count->n_over += !is_gone && pod->is_over;
    count->n_gone += is_gone;
    count->n_waiting += !is_over && pod->phase < KUBERNETES_POD_RUNNING;
    count->n_running += !is_over && pod->phase == KUBERNETES_POD_RUNNING;
    if (!is_over && pod->phase < KUBERNETES_POD_RUNNING &&
        (count->stuck == NULL || count->stuck->why == NULL)) {
        count->stuck = pod;
    }
    if (!is_over && pod->stuck_since_ms > 0 &&
        (count->stuck_since_ms == 0 || pod->stuck_since_ms < count->stuck_since_ms)) {
        count->stuck_since_ms = pod->stuck_since_ms;
    }
    bool has_failed = pod->phase == KUBERNETES_POD_FAILED || (is_gone && !pod->is_over) ||
                      pod->ending == WEIR_ENDING_PREEMPTED;
    if (has_failed &&
        (count->worst == NULL || weight(pod->ending) > weight(count->worst->ending))) {
        count->worst = pod;
    }
}

static struct count count_pods(const struct kubernetes_facts *facts)
{
    struct count count = {0};
    for (size_t i = 0; i < facts->n_pods; i++) {
        see(&count, facts->pods[i], facts->is_gone[i]);
    }
    return count;
}

bool kubernetes_needs_job(const struct kubernetes_facts *facts)
{
    const struct count count = count_pods(facts);
    bool is_whole = count.n_wanted > 0 && (int64_t)facts->n_pods >= count.n_wanted;
    return !is_whole || count.n_alive == 0;
}

static bool is_suspended(const json_t *job)
{
    return json_is_true(weir_kube_at(job, "spec.suspend"));
}

bool kubernetes_needs_event(const struct kubernetes_facts *facts)
{
    return facts->n_pods == 0 && facts->job != NULL &&
           weir_kube_holds(facts->job, "Failed") == NULL;
}

/* ---- one that runs, or waits ------------------------------------------------------------------ */

static void list_nodes(const struct kubernetes_facts *facts, struct weir_arena *arena,
                       struct weir_allocation_report *out)
{
    out->nodes = WEIR_ARENA_ARRAY(arena, facts->n_pods + 1, const char *);
    for (size_t i = 0; i < facts->n_pods; i++) {
        const struct kubernetes_pod *pod = facts->pods[i];
        if (!facts->is_gone[i] && !pod->is_over && pod->node != NULL) {
            out->nodes[out->n_nodes++] = weir_arena_strdup(arena, pod->node);
        }
        if (pod->ends_ms > 0 && (out->ends_ms == 0 || pod->ends_ms < out->ends_ms)) {
            out->ends_ms = pod->ends_ms;
        }
    }
}

static void report_alive(const struct kubernetes_facts *facts, const struct count *count,
                         struct weir_arena *arena, struct weir_allocation_report *out)
{
    const struct kubernetes_pod *speaker = count->worst != NULL ? count->worst : count->stuck;
    bool waits = (int64_t)(count->n_running + count->n_over + count->n_gone) < count->n_wanted;
    out->phase = waits ? WEIR_ALLOCATION_PENDING : WEIR_ALLOCATION_RUNNING;
    out->said = weir_arena_strdup(arena, speaker != NULL ? speaker->said : "Running");
    if (speaker != NULL && speaker->why != NULL) {
        out->why = count->n_wanted > 1 && waits
                       ? weir_arena_printf(arena, "%zu of %lld pods run; %s", count->n_running,
                                           (long long)count->n_wanted, speaker->why)
                       : weir_arena_strdup(arena, speaker->why);
    }
    if (!waits) {
        list_nodes(facts, arena, out);
    } else {
        out->stuck_since_ms = count->stuck_since_ms;
    }
}

static void report_waiting_job(const struct kubernetes_facts *facts, struct weir_arena *arena,
                               struct weir_allocation_report *out)
{
    static const char kueue_label[] = "kueue.x-k8s.io/queue-name";
    const char *queue = json_string_value(
        json_object_get(weir_kube_at(facts->job, "metadata.labels"), kueue_label));
    out->phase = WEIR_ALLOCATION_PENDING;
    out->said = is_suspended(facts->job) ? "Suspended" : "Pending";
    if (facts->event != NULL) {
        out->why = weir_arena_strdup(arena, facts->event);
    } else if (is_suspended(facts->job) && queue != NULL) {
        out->why = weir_arena_printf(arena, "Kueue has not admitted it yet: it waits in %s", queue);
    } else if (is_suspended(facts->job)) {
        out->why = "its Job is suspended";
    }
}

/* ---- one that has ended ---------------------------------------------------------------------- */

static void report_failed_job(const json_t *failed, struct weir_arena *arena,
                              struct weir_allocation_report *out)
{
    const char *reason = weir_kube_text(failed, "reason"),
               *message = weir_kube_text(failed, "message");
    out->said = weir_arena_strdup(arena, reason != NULL ? reason : "Failed");
    out->ending =
        strcmp(out->said, "DeadlineExceeded") == 0 ? WEIR_ENDING_TIME : WEIR_ENDING_FAILED;
    out->why = weir_arena_strdup(arena, message);
}

static void report_over(const struct kubernetes_facts *facts, const struct count *count,
                        struct weir_arena *arena, struct weir_allocation_report *out)
{
    const json_t *failed = weir_kube_holds(facts->job, "Failed");
    const struct kubernetes_pod *worst = count->worst;
    out->phase = WEIR_ALLOCATION_ENDED;
    out->ending = WEIR_ENDING_RELEASED;
    out->said = "Succeeded";
    if (worst != NULL && worst->phase == KUBERNETES_POD_FAILED) {
        out->ending = worst->ending;
        out->said = weir_arena_strdup(arena, worst->said);
        out->why = weir_arena_strdup(arena, worst->why);
    } else if (worst != NULL) { /* gone without an end of its own */
        bool is_taken = worst->ending == WEIR_ENDING_PREEMPTED;
        out->ending = is_taken ? WEIR_ENDING_PREEMPTED : WEIR_ENDING_CANCELLED;
        out->said = "Deleted";
        out->why = worst->why != NULL
                       ? weir_arena_strdup(arena, worst->why)
                       : weir_arena_printf(arena, "its pod %s was deleted", worst->name);
    } else if (failed != NULL) {
        report_failed_job(failed, arena, out);
    } else if (facts->job == NULL) {
        out->ending = WEIR_ENDING_CANCELLED;
        out->said = "Deleted";
        out->why = "its Job was deleted";
    }
}

/* A sentence as a part of others: without the point at its end. */
static const char *clause(const char *text, struct weir_arena *arena)
{
    size_t len = text != NULL ? strlen(text) : 0;
    while (len > 0 && strchr(". \n", text[len - 1]) != NULL) {
        len--;
    }
    return text != NULL ? weir_arena_memdup(arena, text, len) : NULL;
}

void kubernetes_report(const struct kubernetes_facts *facts, struct weir_arena *arena,
                       struct weir_allocation_report *out)
{
    const struct count count = count_pods(facts);
    const char *space = facts->n_pods > 0 ? facts->pods[0]->namespace_name
                                          : weir_kube_text(facts->job, "metadata.namespace");
    bool is_job_over = weir_kube_holds(facts->job, "Failed") != NULL ||
                       weir_kube_holds(facts->job, "Complete") != NULL;
    *out = (struct weir_allocation_report){.phase = WEIR_ALLOCATION_UNKNOWN};
    out->their_id = space != NULL ? weir_arena_printf(arena, "%s/%s", space, facts->tag) : NULL;
    bool are_pods_over =
        facts->n_pods > 0 &&
        (facts->job == NULL || (int64_t)(count.n_over + count.n_gone) >= count.n_wanted);
    if (count.n_alive > 0) {
        report_alive(facts, &count, arena, out);
    } else if (is_job_over || are_pods_over) {
        report_over(facts, &count, arena, out);
    } else if (facts->job != NULL) {
        report_waiting_job(facts, arena, out);
    }
    out->why = clause(out->why, arena);
}
