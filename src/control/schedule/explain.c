#include "control/schedule/explain.h"

#include "job/elastic.h"

#include <ctype.h>
#include <string.h>

struct explaining {
    const struct snapshot *snapshot;
    const struct snapshot_job *job;
    const struct weir_sched_wait *wait;
    struct weir_arena *arena;
};

/* All nodes that would be large enough take no tasks. */
static const char *tell_closed_nodes(const struct explaining *explaining)
{
    const struct snapshot *snapshot = explaining->snapshot;
    int32_t n_draining = 0, n_full = 0, n_away = 0, n_closed = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &snapshot->nodes[i];
        bool is_full = node->text_bytes >= SNAPSHOT_NODE_TEXT_MAX_BYTES;
        n_draining += node->facts.is_draining;
        n_closed += !node->facts.is_draining && node->is_closed;
        n_away += !node->facts.is_draining && !node->is_closed && !node->takes_tasks;
        n_full += node->takes_tasks && is_full;
    }
    return weir_arena_printf(
        explaining->arena,
        "no node that is large enough takes tasks now: of %d nodes %d are draining, %d silent, "
        "lost or not heard of since the server started, %d unhealthy, %d have no room "
        "for more tasks' files",
        snapshot->n_nodes, n_draining, n_away, n_closed, n_full);
}

/* A sentence as reasons are written: they follow "JOB is PENDING: ". */
static const char *as_reason(const struct explaining *explaining, const char *sentence)
{
    char *reason = weir_arena_strdup(explaining->arena, sentence);
    size_t len = strlen(reason);
    if (len > 0 && reason[len - 1] == '.') {
        reason[len - 1] = '\0';
    }
    reason[0] = (char)tolower((unsigned char)reason[0]);
    return reason;
}

/* How many tasks have to fit says nothing of how large they are. */
static const char *tell_gang(const struct explaining *explaining)
{
    const struct snapshot_job *job = explaining->job;
    int64_t most = 0;
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        most = WEIR_MAX(most, job->state.tasks[i].cpu_millis);
    }
    return weir_arena_printf(explaining->arena, "%s. Each needs up to %g CPU%s on one node",
                             as_reason(explaining, explaining->wait->text), (double)most / 1000,
                             most == 1000 ? "" : "s");
}

/* A gang for none of whose tasks there is room: what lacks, and that all of them have to find it. */
static const char *tell_whole(const struct explaining *explaining, const char *why)
{
    const struct weir_job_state *state = &explaining->job->state;
    bool is_gang =
        state->n_tasks > 1 && !weir_job_has_independent_tasks(state) && !weir_job_is_elastic(state);
    return explaining->wait->code == WEIR_SCHED_WAIT_FULL && is_gang
               ? weir_arena_printf(explaining->arena,
                                   "its %zu tasks start together or not at all, and there is room "
                                   "for none: %s",
                                   state->n_tasks, why)
               : why;
}

/* ---- nodes that a job may have ---------------------------------------------------------------- */

static const char *list_labels(const struct explaining *explaining,
                               const struct weir_sched_label *labels, int32_t n)
{
    const char *text = "";
    for (int32_t i = 0; i < n; i++) {
        text = weir_arena_printf(explaining->arena, "%s%s%s=%s", text, i > 0 ? ", " : "",
                                 labels[i].key, labels[i].value);
    }
    return text;
}

static bool asks_for_images(const struct ask *ask)
{
    for (int32_t i = 0; i < ask->n_labels; i++) {
        if (strcmp(ask->labels[i].key, WEIR_NODE_LABEL_IMAGES) == 0) {
            return true;
        }
    }
    return false;
}

/* Clusters of which it may have nodes, and none is here; NULL: one is, or it may run anywhere. */
static const char *tell_clusters(const struct explaining *explaining)
{
    const struct snapshot *snapshot = explaining->snapshot;
    const struct snapshot_job *job = explaining->job;
    struct offers_where where = offers_where(
        &snapshot->queues, job->ask, queue_tree_find(&snapshot->queues, job->state.job.project));
    const char *names = "";
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const char *cluster = snapshot->nodes[i].supply->cluster;
        if (snapshot->nodes[i].facts.left_ms == 0 &&
            offers_rank(&where, cluster != NULL ? cluster : WEIR_CLUSTER_OWN) >= 0) {
            return NULL;
        }
    }
    for (size_t i = 0; i < where.n; i++) {
        names = weir_arena_printf(explaining->arena, "%s%s%s", names, i > 0 ? ", " : "",
                                  where.names[i]);
    }
    return where.names == NULL
               ? NULL
               : weir_arena_printf(explaining->arena,
                                   "no node is here of the clusters that it may run on: %s", names);
}

/* It wants pods of its own, and no node is such a one; NULL: one is, or it wants none. */
static const char *tell_pods(const struct explaining *explaining)
{
    const struct snapshot *snapshot = explaining->snapshot;
    const struct ask *ask = explaining->job->ask;
    bool is_any = ask == NULL || ask->pod == NULL;
    for (int32_t i = 0; i < snapshot->n_nodes && !is_any; i++) {
        const struct weir_allocation *of =
            offers_allocation(&snapshot->offers, snapshot->nodes[i].supply->allocation);
        is_any = of != NULL && of->pod != NULL && strcmp(of->pod, ask->pod) == 0;
    }
    return is_any ? NULL
                  : weir_arena_printf(explaining->arena, "no node is a pod as it wants one, %.400s",
                                      ask->pod);
}

/* What its selector or a taint rules out; NULL: some node is left. */
static const char *tell_marks(const struct explaining *explaining)
{
    const struct ask *ask = explaining->job->ask;
    const struct snapshot *snapshot = explaining->snapshot;
    const struct supply *tainted = NULL;
    int32_t n_labels = ask != NULL ? ask->n_labels : 0, n_alike = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct supply *supply = snapshot->nodes[i].supply;
        if (n_labels > 0 && !supply_has_labels(supply, ask->labels, n_labels)) {
            continue;
        }
        n_alike++;
        if (ask_tolerates(ask, supply->taints, supply->n_taints)) {
            return NULL;
        }
        tainted = supply;
    }
    if (n_alike == 0 && asks_for_images(ask)) {
        return "no node with the labels that it asks for starts images: install crun on one "
               "(apt-get install crun)";
    }
    if (n_alike == 0) {
        return weir_arena_printf(explaining->arena,
                                 "no node has the labels that it asks for: %s. `weir node label` "
                                 "gives a node labels",
                                 list_labels(explaining, ask->labels, n_labels));
    }
    return weir_arena_printf(explaining->arena,
                             "each node that it may have has a taint that it does not tolerate, as "
                             "%s=%s",
                             tainted->taints[0].key, tainted->taints[0].value);
}

/* ---- devices ---------------------------------------------------------------------------------- */

static const struct weir_task *first_that_waits(const struct snapshot_job *job)
{
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        if (job->phases[i] == WEIR_TASK_WAITING && job->state.tasks[i].n_accelerators > 0) {
            return &job->state.tasks[i];
        }
    }
    return NULL;
}

/* "2 × H100", "1 × accelerator (0.5 of each)", "3 × MIG slice 1g.10gb" */
static const char *name_asked(const struct explaining *explaining, const struct weir_task *task)
{
    struct weir_arena *arena = explaining->arena;
    const char *what = task->mig_profile != NULL
                           ? weir_arena_printf(arena, "MIG slice %s", task->mig_profile)
                       : task->accelerator_model != NULL ? task->accelerator_model
                                                         : "accelerator";
    const char *part = "";
    if (task->accelerator_milli == 0) {
        part = weir_arena_printf(arena, " (%.1f GiB of each)",
                                 (double)task->accelerator_memory_bytes / (1 << 30));
    } else if (task->accelerator_milli < WEIR_SCHED_DEVICE) {
        part = weir_arena_printf(arena, " (%g of each)", (double)task->accelerator_milli / 1000);
    }
    return weir_arena_printf(arena, "%lld × %s%s", (long long)task->n_accelerators, what, part);
}

static bool is_asked(const struct supply_device *device, const struct weir_task *task)
{
    if (!supply_device_is_fit(device)) {
        return false;
    }
    if (task->mig_profile != NULL) {
        return strcmp(device->profile, task->mig_profile) == 0;
    }
    return device->slot >= 0 &&
           (task->accelerator_model == NULL || strcmp(task->accelerator_model, device->model) == 0);
}

/* The node with the most free devices of those that are asked for, and the one with the most. */
struct best {
    const struct snapshot_node *free_on, *largest;
    int64_t n_free, n_largest;
};

static void look_at_node(struct best *best, const struct snapshot_node *node,
                         const struct weir_task *task)
{
    int64_t n = 0, n_free = 0;
    for (int32_t i = 0; i < node->supply->n_devices; i++) {
        const struct supply_device *device = &node->supply->devices[i];
        if (is_asked(device, task)) {
            int64_t milli = supply_milli_of(task, device);
            int64_t most = device->slot >= 0 ? node->supply->device_milli : WEIR_SCHED_DEVICE;
            n += milli <= most;
            n_free += device->held_milli + milli <= most;
        }
    }
    if (n > best->n_largest) {
        best->largest = node;
        best->n_largest = n;
    }
    if (node->takes_tasks && n > 0 && (best->free_on == NULL || n_free > best->n_free)) {
        best->free_on = node;
        best->n_free = n_free;
    }
}

static const char *tell_devices(const struct explaining *explaining, const struct weir_task *task)
{
    const struct snapshot *snapshot = explaining->snapshot;
    const struct ask *ask = explaining->job->ask;
    const char *asked = name_asked(explaining, task);
    struct best best = {0};
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct supply *supply = snapshot->nodes[i].supply;
        if ((ask == NULL || supply_has_labels(supply, ask->labels, ask->n_labels)) &&
            ask_tolerates(ask, supply->taints, supply->n_taints)) {
            look_at_node(&best, &snapshot->nodes[i], task);
        }
    }
    if (best.largest == NULL) {
        return weir_arena_printf(explaining->arena,
                                 "needs %s, and no node that it may have has any: `weir get "
                                 "devices` lists what there is",
                                 asked);
    }
    if (best.n_largest < task->n_accelerators) {
        return weir_arena_printf(explaining->arena,
                                 "needs %s on one node, and the node with the most, %s, has %lld",
                                 asked, best.largest->facts.name, (long long)best.n_largest);
    }
    if (best.free_on == NULL || best.n_free >= task->n_accelerators) {
        return NULL; /* something else lacks */
    }
    return weir_arena_printf(explaining->arena, "waits for %s on one node: %lld free on node %s",
                             asked, (long long)best.n_free, best.free_on->facts.name);
}

/* The resource of a model is one of devices too. */
static bool may_lack_devices(const struct weir_sched_wait *wait)
{
    bool is_of_devices =
        wait->resource == WEIR_SCHED_ACCELERATOR || wait->resource >= WEIR_SCHED_FIRST_MODEL;
    return wait->code == WEIR_SCHED_WAIT_GANG || wait->code == WEIR_SCHED_WAIT_NO_NODE ||
           ((wait->code == WEIR_SCHED_WAIT_FULL || wait->code == WEIR_SCHED_WAIT_TOO_LARGE) &&
            is_of_devices);
}

/* A node is reserved later on: what lets the job start there. */
static const char *tell_reserved(const struct explaining *explaining)
{
    const char *why = as_reason(explaining, explaining->wait->text);
    return explaining->wait->have <= explaining->snapshot->rows.now_ms
               ? why
               : weir_arena_printf(explaining->arena,
                                   "%s. With a time limit that ends before (`weir job run "
                                   "--time-limit TIME`) it may start there",
                                   why);
}

static const char *tell_why(const struct explaining *explaining)
{
    const struct snapshot *snapshot = explaining->snapshot;
    const struct weir_sched_wait *wait = explaining->wait;
    const struct weir_task *asks = first_that_waits(explaining->job);
    const char *text = NULL;
    if (snapshot->n_nodes == 0) {
        return snapshot->offers.n_clusters > 0 ? "no node is there" : "no node has registered yet";
    }
    if (wait->code == WEIR_SCHED_WAIT_NO_NODE) {
        text = tell_pods(explaining);
        text = text != NULL ? text : tell_clusters(explaining);
        text = text != NULL ? text : tell_marks(explaining);
    }
    if (text == NULL && asks != NULL && may_lack_devices(wait)) {
        text = tell_devices(explaining, asks);
    }
    if (text != NULL) {
        return text;
    }
    if (wait->code == WEIR_SCHED_WAIT_GANG) {
        return tell_gang(explaining);
    }
    if (wait->code == WEIR_SCHED_WAIT_NODE_RESERVED &&
        explaining->job->state.job.time_limit_ms == 0) {
        return tell_reserved(explaining);
    }
    return wait->code == WEIR_SCHED_WAIT_NO_NODE
               ? tell_closed_nodes(explaining)
               : tell_whole(explaining, as_reason(explaining, wait->text));
}

const char *explain_wait(const struct snapshot *snapshot, const struct snapshot_job *job,
                         const struct weir_sched_wait *wait, struct weir_arena *arena)
{
    const struct explaining explaining = {snapshot, job, wait, arena};
    const char *why = tell_why(&explaining);
    return wait->is_kept
               ? weir_arena_printf(
                     arena, "%s; it has waited for long, and what gets free is kept for it", why)
               : why;
}
