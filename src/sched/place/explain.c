#include "sched/place/explain.h"

#include "base/macros.h"
#include "sched/forecast/run_time.h"
#include "sched/place/fits.h"
#include "sched/place/zones.h"
#include "sched/share/shares.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const wait_names[] = {
    [WEIR_SCHED_WAIT_NONE] = "none",
    [WEIR_SCHED_WAIT_ROOM_COMING] = "room_coming",
    [WEIR_SCHED_WAIT_QUEUE_LIMIT] = "queue_limit",
    [WEIR_SCHED_WAIT_QUEUE_QUOTA] = "queue_quota",
    [WEIR_SCHED_WAIT_GANG] = "gang",
    [WEIR_SCHED_WAIT_NO_NODE] = "no_node",
    [WEIR_SCHED_WAIT_TOO_LARGE] = "too_large",
    [WEIR_SCHED_WAIT_ZONES] = "zones",
    [WEIR_SCHED_WAIT_FULL] = "full",
    [WEIR_SCHED_WAIT_TOPOLOGY] = "topology",
    [WEIR_SCHED_WAIT_MEMBERS] = "members",
    [WEIR_SCHED_WAIT_RESERVED] = "reserved",
    [WEIR_SCHED_WAIT_CLOSING] = "closing",
    [WEIR_SCHED_WAIT_NODE_RESERVED] = "node_reserved",
};

const char *weir_sched_wait_name(enum weir_sched_wait_code code)
{
    return code >= 0 && code < WEIR_SCHED_N_WAIT_CODES ? wait_names[code] : "unknown";
}

struct room {
    int64_t of[WEIR_SCHED_N_RESOURCES];
};

/** What the task needs of one node, and what the node has free in the future. */
static void measure_need(const struct cluster *cluster, int32_t task, int32_t at, struct room *out)
{
    bool has_devices = cluster_demand(cluster, task)->n_devices > 0;
    struct task_charge need = cluster_charge(cluster, task, has_devices ? at : -1);
    *out = (struct room){{need.accelerators, need.cpu_milli, need.memory_bytes}};
}

static void measure_free(const struct cluster *cluster, int32_t task, int32_t at, struct room *out)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    const struct node_state *node = &cluster->nodes[at];
    bool is_whole = demand->device_milli == WEIR_SCHED_DEVICE;
    int64_t free_milli = is_whole ? (int64_t)node->whole_future * WEIR_SCHED_DEVICE : 0;
    if (!is_whole && demand->n_devices > 0) {
        int32_t room = 0; /* The best hole of one device. */
        for (int32_t d = 0; d < given->n_devices && node->room_milli > 0; d++) {
            room = WEIR_MAX(room, cluster->devices[node->first_device + d].room_milli);
        }
        free_milli = (int64_t)room * demand->n_devices;
    }
    *out = (struct room){{free_milli, given->cpu_milli - node->cpu_future,
                          given->memory_bytes - node->memory_future}};
}

/** The same with what is only held for jobs before it: what nobody uses. */
static void measure_unused(const struct cluster *cluster, int32_t task, int32_t at,
                           struct room *out)
{
    measure_free(cluster, task, at, out);
    out->of[WEIR_SCHED_CPU] += cluster->node_holds[at].cpu;
    out->of[WEIR_SCHED_MEMORY] += cluster->node_holds[at].memory;
}

static void raise(struct room *most, const struct room *amount)
{
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        most->of[r] = WEIR_MAX(most->of[r], amount->of[r]);
    }
}

static bool is_enough(const struct room *need, const struct room *have)
{
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        if (need->of[r] > have->of[r]) {
            return false;
        }
    }
    return true;
}

/** The resource that is short of `have` on every node, or of which the least is left. */
static int scarcest(const struct room *need, const struct room *have)
{
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        if (need->of[r] > have->of[r]) {
            return r;
        }
    }
    return need->of[WEIR_SCHED_ACCELERATOR] > 0 ? WEIR_SCHED_ACCELERATOR : WEIR_SCHED_CPU;
}

bool explain_share(const struct cluster *cluster, int32_t task, struct weir_sched_wait *wait)
{
    int32_t queue = cluster->snapshot->jobs[cluster->tasks[task].job].queue;
    if (cluster->queues[queue].bounds_model < 0 &&
        !demand_is_by_memory(cluster_demand(cluster, task))) {
        return false;
    }
    for (int32_t i = 0; i < cluster->snapshot->n_nodes; i++) {
        struct room need, free_here;
        measure_need(cluster, task, i, &need);
        measure_free(cluster, task, i, &free_here);
        if (is_enough(&need, &free_here) && fits_ever(cluster, task, i) &&
            !shares_admit_at(cluster, task, i, wait)) {
            return true;
        }
    }
    return false;
}

/** No node allows the task: what it needs on the last, and the most that any has in all. */
static void measure_all(const struct cluster *cluster, int32_t task, struct room *out_need,
                        struct room *out_most)
{
    for (int32_t i = 0; i < cluster->snapshot->n_nodes; i++) {
        const struct weir_sched_node *given = &cluster->snapshot->nodes[i];
        struct room whole = {{given->n_devices * weir_sched_device_milli(given), given->cpu_milli,
                              given->memory_bytes}};
        measure_need(cluster, task, i, out_need);
        raise(out_most, &whole);
    }
}

/** Whether it is the NUMA zones that keep a task from nodes: from some that it would fit but for
 *  them, if it fits none (!is_any), else from all that have enough of everything. */
static bool are_zones_to_blame(const struct cluster *cluster, int32_t task, bool is_any)
{
    bool are_to_blame = false;
    for (int32_t i = 0; zones_concern(cluster, task) && i < cluster->snapshot->n_nodes; i++) {
        struct room need, free_here;
        measure_need(cluster, task, i, &need);
        measure_free(cluster, task, i, &free_here);
        if (!is_any) {
            are_to_blame = are_to_blame || fits_but_for_zones(cluster, task, i);
        } else if (is_enough(&need, &free_here) && fits_ever(cluster, task, i)) {
            if (zones_fit_future(cluster, task, i)) {
                return false;
            }
            are_to_blame = true;
        }
    }
    return are_to_blame;
}

/** The node on which the task could start but for the time: one with room for it, else, if it fits no
 *  other (!is_any), the first. WEIR_SCHED_NONE: there is none. */
static int32_t find_barred(const struct cluster *cluster, int32_t task, bool is_any)
{
    int32_t found = WEIR_SCHED_NONE;
    bool has_bars = cluster->times.has_closings || cluster->times.reserved != NULL;
    for (int32_t i = 0; has_bars && i < cluster->snapshot->n_nodes; i++) {
        struct room need, free_here;
        if (!fits_but_for_time(cluster, task, i)) {
            continue;
        }
        measure_need(cluster, task, i, &need);
        measure_free(cluster, task, i, &free_here);
        if (is_enough(&need, &free_here)) {
            return i;
        }
        found = found < 0 && !is_any ? i : found;
    }
    return found;
}

static struct shape_reason reason_of_bar(const struct cluster *cluster, int32_t task, int32_t node,
                                         bool is_any)
{
    int64_t from_ms, until_ms;
    int32_t job = cluster->tasks[task].job;
    bool is_closing = run_time_bar(cluster, job, node, &from_ms, &until_ms) == RUN_TIME_CLOSED;
    return (struct shape_reason){.is_known = true,
                                 .code = is_closing ? WEIR_SCHED_WAIT_CLOSING
                                                    : WEIR_SCHED_WAIT_NODE_RESERVED,
                                 .need = is_any,
                                 .have = from_ms,
                                 .queue = node};
}

static struct shape_reason find_reason(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    struct room need = {{0}}, most = {{0}};
    struct weir_sched_wait share;
    bool is_any = false;
    if (explain_share(cluster, task, &share)) {
        return (struct shape_reason){.is_known = true,
                                     .code = share.code,
                                     .resource = share.resource,
                                     .need = share.need,
                                     .have = share.have,
                                     .queue = share.object};
    }
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        struct room free_here;
        measure_free(cluster, task, i, &free_here);
        if ((is_any && is_enough(&free_here, &most)) || !fits_ever(cluster, task, i)) {
            continue; /* It has not more of anything. */
        }
        if (!is_any) {
            measure_need(cluster, task, i, &need);
        }
        raise(&most, &free_here);
        is_any = true;
    }
    int32_t barred = find_barred(cluster, task, is_any);
    if (barred >= 0) {
        return reason_of_bar(cluster, task, barred, is_any);
    }
    if (are_zones_to_blame(cluster, task, is_any)) {
        return (struct shape_reason){.is_known = true,
                                     .code = WEIR_SCHED_WAIT_ZONES,
                                     .have = is_any,
                                     .queue = WEIR_SCHED_NONE};
    }
    if (!is_any) {
        measure_all(cluster, task, &need, &most);
    }
    int r = scarcest(&need, &most);
    struct shape_reason reason = {.is_known = true,
                                  .queue = WEIR_SCHED_NONE,
                                  .resource = (enum weir_sched_resource)r,
                                  .need = need.of[r],
                                  .have = most.of[r]};
    bool is_too_large = !is_any && need.of[r] > most.of[r];
    reason.code = is_any         ? WEIR_SCHED_WAIT_FULL
                  : is_too_large ? WEIR_SCHED_WAIT_TOO_LARGE
                                 : WEIR_SCHED_WAIT_NO_NODE;
    return reason;
}

/** How many tasks like this one there would be room for, were nothing held for others. */
static int32_t count_room(const struct cluster *cluster, int32_t task, int32_t n_tasks)
{
    int64_t n = 0;
    for (int32_t i = 0; i < cluster->snapshot->n_nodes && n < n_tasks; i++) {
        struct room need, unused;
        int64_t n_here = fits_ever(cluster, task, i) ? n_tasks : 0;
        measure_need(cluster, task, i, &need);
        measure_unused(cluster, task, i, &unused);
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            n_here = need.of[r] > 0 ? WEIR_MIN(n_here, unused.of[r] / need.of[r]) : n_here;
        }
        n += WEIR_MAX(n_here, (int64_t)0);
    }
    return (int32_t)WEIR_MIN(n, (int64_t)n_tasks);
}

/** The most of the resource that is unused on a node that could hold the task. */
static int64_t most_unused(const struct cluster *cluster, int32_t task, int r)
{
    int64_t most = 0;
    for (int32_t i = 0; i < cluster->snapshot->n_nodes; i++) {
        struct room unused;
        measure_unused(cluster, task, i, &unused);
        most = fits_ever(cluster, task, i) ? WEIR_MAX(most, unused.of[r]) : most;
    }
    return most;
}

void explain_no_place(const struct cluster *cluster, int32_t job, int32_t task, int32_t n_tasks,
                      int32_t n_placed, bool is_bound_to_domain, struct weir_sched_wait *wait)
{
    if (is_bound_to_domain) {
        wait->code = WEIR_SCHED_WAIT_TOPOLOGY;
        wait->need = n_tasks;
        wait->have = n_placed;
        wait->object = 0;
        return;
    }
    if (task < 0) {
        return;
    }
    struct shape_reason *known = &cluster->shapes.reasons[cluster->tasks[task].shape];
    if (!known->is_known) {
        *known = find_reason(cluster, task);
    }
    wait->job = job;
    wait->code = known->code;
    wait->resource = known->resource;
    wait->need = known->need;
    wait->have = known->have;
    bool is_task = known->code == WEIR_SCHED_WAIT_NO_NODE || known->code == WEIR_SCHED_WAIT_ZONES;
    wait->object = is_task ? task : known->queue;
    if (known->code != WEIR_SCHED_WAIT_FULL) {
        return;
    }
    /* Of a gang it is the number that lacks, if there is room for one at all. */
    int32_t n_room =
        n_tasks > 1 ? WEIR_MAX(n_placed, count_room(cluster, task, n_tasks)) : n_placed;
    if (n_room > 0 && n_room < n_tasks) {
        wait->code = WEIR_SCHED_WAIT_GANG;
        wait->need = n_tasks;
        wait->have = n_room;
        wait->object = task;
    } else {
        wait->have = most_unused(cluster, task, (int)known->resource);
    }
}

#define AMOUNT_BYTES 96

static const char *amount_text(const struct cluster *cluster, int r, int64_t value,
                               char out[AMOUNT_BYTES])
{
    static const char *const units[] = {"accelerators", "CPUs", "GiB of memory"};
    static const char *const ones[] = {"accelerator", "CPU", "GiB of memory"};
    bool is_model = r >= WEIR_SCHED_FIRST_MODEL;
    const char *unit = (value == 1000 ? ones : units)[is_model ? WEIR_SCHED_ACCELERATOR : r];
    const char *model = is_model ? cluster->capacity.models[r - WEIR_SCHED_FIRST_MODEL] : "";
    const char *of = is_model ? " of model " : "";
    if (value < 0) {
        return "no limit";
    }
    if (r == WEIR_SCHED_MEMORY) {
        int64_t tenths = value / ((1LL << 30) / 10);
        snprintf(out, AMOUNT_BYTES, "%" PRId64 ".%" PRId64 " %s", tenths / 10, tenths % 10, unit);
    } else if (value % 1000 == 0) {
        snprintf(out, AMOUNT_BYTES, "%" PRId64 " %s%s%.40s", value / 1000, unit, of, model);
    } else {
        int64_t part = value % 1000;
        int n_digits = part % 100 == 0 ? 1 : part % 10 == 0 ? 2 : 3;
        part /= n_digits == 1 ? 100 : n_digits == 2 ? 10 : 1;
        snprintf(out, AMOUNT_BYTES, "%" PRId64 ".%0*" PRId64 " %s%s%.40s", value / 1000, n_digits,
                 part, unit, of, model);
    }
    return out;
}

#define JOB_BYTES 80

/* Those who read what a job waits for see the jobs of its queue, and perhaps of no other. */
static void name_job(const struct weir_sched_snapshot *snapshot, int32_t reader, int32_t job,
                     char out[JOB_BYTES])
{
    if (snapshot->jobs[job].queue == snapshot->jobs[reader].queue) {
        snprintf(out, JOB_BYTES, "job %.60s", snapshot->jobs[job].name);
    } else {
        snprintf(out, JOB_BYTES, "a job of another queue");
    }
}

#define TIME_BYTES 40

/** In UTC; with the date if that is not today's. "" if it is past what a calendar has. */
static const char *time_text(int64_t now_ms, int64_t at_ms, char out[TIME_BYTES])
{
    const int64_t day_ms = 86400000;
    time_t at_s = (time_t)(at_ms / 1000);
    struct tm tm;
    bool is_today = now_ms / day_ms == at_ms / day_ms;
    if (gmtime_r(&at_s, &tm) == NULL ||
        strftime(out, TIME_BYTES, is_today ? "%H:%M" : "%Y-%m-%d %H:%M", &tm) == 0) {
        out[0] = '\0';
    }
    return out;
}

/** "Node n1 closes at 18:00 UTC until 20:00 UTC, and the job would not end before." */
static void explain_bar(const struct cluster *cluster, struct weir_sched_wait *wait)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    int64_t from_ms = 0, until_ms = 0, now_ms = snapshot->now_ms;
    int32_t node = (int32_t)wait->object;
    bool is_closing =
        run_time_bar(cluster, wait->job, node, &from_ms, &until_ms) == RUN_TIME_CLOSED;
    bool has_limit = run_time_bound_ms(&snapshot->jobs[wait->job]) > 0;
    char from[TIME_BYTES], until[TIME_BYTES], end[TIME_BYTES + 16] = "";
    time_text(now_ms, from_ms, from);
    if (until_ms < WEIR_SCHED_AMOUNT_MAX && time_text(now_ms, until_ms, until)[0] != '\0') {
        snprintf(end, sizeof end, " until %s UTC", until);
    }
    const char *is = is_closing ? "closed" : "reserved for others";
    const char *will = is_closing ? "closes at" : "is reserved for others from";
    if (from_ms <= now_ms) {
        snprintf(wait->text, sizeof wait->text, "Node %.60s is %s%s.", snapshot->nodes[node].name,
                 is, end);
    } else {
        snprintf(wait->text, sizeof wait->text, "Node %.60s %s %s UTC%s, and the job %s.",
                 snapshot->nodes[node].name, will, from, end,
                 has_limit ? "would not end before" : "has no time limit");
    }
    if (wait->need == 0 && wait->expected_start_ms == 0 && until_ms < WEIR_SCHED_AMOUNT_MAX) {
        wait->expected_start_ms = until_ms; /* No other node would do: then this one does. */
    }
}

static void explain_why(const struct cluster *cluster, struct weir_sched_wait *wait)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    char need_text[AMOUNT_BYTES], have_text[AMOUNT_BYTES], job[JOB_BYTES];
    const char *need = amount_text(cluster, (int)wait->resource, wait->need, need_text);
    const char *have = amount_text(cluster, (int)wait->resource, wait->have, have_text);
    const char *name = "";
    char *out = wait->text;
    size_t size = sizeof wait->text;
    switch (wait->code) {
    case WEIR_SCHED_WAIT_ROOM_COMING:
        name = snapshot->nodes[wait->object].name;
        snprintf(out, size, "Has a place on node %.60s and waits for what is leaving it.", name);
        break;
    case WEIR_SCHED_WAIT_QUEUE_LIMIT:
        name = snapshot->queues[wait->object].name;
        snprintf(out, size, "Queue %.60s would use %s; its limit is %s.", name, need, have);
        break;
    case WEIR_SCHED_WAIT_QUEUE_QUOTA:
        name = snapshot->queues[wait->object].name;
        snprintf(out, size,
                 "Non-preemptible work of queue %.60s would use %s; it may not borrow beyond its "
                 "quota of %s.",
                 name, need, have);
        break;
    case WEIR_SCHED_WAIT_GANG:
        snprintf(out, size,
                 "Its %" PRId64 " tasks start together or not at all: there is room for %" PRId64
                 ".",
                 wait->need, wait->have);
        break;
    case WEIR_SCHED_WAIT_NO_NODE:
        name = snapshot->tasks[wait->object].name;
        snprintf(out, size, "No node has the labels, taints and kinds that task %.60s asks for.",
                 name);
        break;
    case WEIR_SCHED_WAIT_TOO_LARGE:
        snprintf(out, size, "A task needs %s on one node; the largest node has %s.", need, have);
        break;
    case WEIR_SCHED_WAIT_FULL:
        snprintf(
            out, size,
            wait->have < wait->need
                ? "A task needs %s on one node; the most that is free on one is %s."
                : "A task needs %s on one node; what is free on one, %s, is kept for jobs before "
                  "it, or something else lacks there.",
            need, have);
        break;
    case WEIR_SCHED_WAIT_ZONES:
        name = snapshot->tasks[wait->object].name;
        snprintf(out, size,
                 wait->have > 0 ? "The NUMA zones of nodes that have enough for task %.60s are too "
                                  "full to hold it as their policy wants."
                                : "No node could hold task %.60s in its NUMA zones as its policy "
                                  "wants, even if it were empty.",
                 name);
        break;
    case WEIR_SCHED_WAIT_TOPOLOGY:
        snprintf(out, size, "No domain has room for all %" PRId64 " tasks that must lie together.",
                 wait->need);
        break;
    case WEIR_SCHED_WAIT_MEMBERS:
        snprintf(out, size,
                 "Its minimum is %" PRId64 " tasks; %" PRId64 " of them exist or may start.",
                 wait->need, wait->have);
        break;
    case WEIR_SCHED_WAIT_RESERVED:
        name_job(snapshot, wait->job, (int32_t)wait->object, job);
        snprintf(out, size, "What is free is kept for jobs before it, first for %s.", job);
        break;
    case WEIR_SCHED_WAIT_CLOSING:
    case WEIR_SCHED_WAIT_NODE_RESERVED:
        explain_bar(cluster, wait);
        break;
    case WEIR_SCHED_WAIT_NONE:
    case WEIR_SCHED_N_WAIT_CODES:
        out[0] = '\0';
        break;
    }
}

static void explain_when(const struct cluster *cluster, struct weir_sched_wait *wait)
{
    char when[TIME_BYTES], after[JOB_BYTES + 16] = "", job[JOB_BYTES];
    if (time_text(cluster->snapshot->now_ms, wait->expected_start_ms, when)[0] == '\0') {
        return;
    }
    if (wait->after_job >= 0) {
        name_job(cluster->snapshot, wait->job, wait->after_job, job);
        snprintf(after, sizeof after, " when %s ends", job);
    }
    size_t len = strlen(wait->text);
    snprintf(wait->text + len, sizeof wait->text - len, " Would fit%s, about %s UTC.", after, when);
}

void explain_text(const struct cluster *cluster, struct weir_sched_wait *wait)
{
    bool is_forecast = wait->expected_start_ms > 0;
    explain_why(cluster, wait); /* May know when: at the end of a window, which it says. */
    wait->why_bytes = (int32_t)strlen(wait->text);
    if (is_forecast) {
        explain_when(cluster, wait);
    } else {
        wait->after_job = WEIR_SCHED_NONE;
    }
}
