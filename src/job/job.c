#include "job/job.h"

#include "job/attempt.h"
#include "job/board.h"
#include "job/device.h"
#include "job/task_device.h"
#include "job/usage.h"

#include "base/hash.h"
#include "base/quantity.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

/* A heartbeat may have come since whoever asks looked at the clock: a round of the engine takes a while. */
#define HEARD_SINCE_MS 5000

#define TASK_TEXT_MAX_BYTES ((size_t)4 << 20)
#define PLACEMENT_MAX_BYTES ((size_t)16 << 10)

// clang-format off
static const struct weir_field node_fields[] = {
    WEIR_FIELD(weir_node, name,             TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Host name"),
    WEIR_FIELD(weir_node, cpu_slots,        INT,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "CPU slots for tasks"),
    WEIR_FIELD(weir_node, memory_bytes,     INT,  WEIR_FIELD_COLUMN, "bytes", "Memory"),
    WEIR_FIELD(weir_node, n_accelerators,   INT,  WEIR_FIELD_COLUMN, "", "Accelerators"),
    WEIR_FIELD(weir_node, disk_bytes,       INT,  0, "bytes", "Size of the disk that the agent's folder lies on; 0: not told"),
    WEIR_FIELD(weir_node, disk_free_bytes,  INT,  WEIR_FIELD_COLUMN, "bytes", "What of it is free"),
    WEIR_FIELD(weir_node, disk_id,          TEXT, 0, "", "Which disk it is: the same for nodes that share it"),
    WEIR_FIELD_SIZED(weir_node, inventory, JSON, 0, 256 << 10, "", "What the agent found"),
    WEIR_FIELD(weir_node, agent_version,    TEXT, 0, "", "Version of the agent"),
    WEIR_FIELD(weir_node, leaving,          TEXT, WEIR_FIELD_READ_ONLY, "", "Why it is about to go, as its agent says: what runs there moves on; null: it is not"),
    WEIR_FIELD(weir_node, unhealthy,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it takes no tasks though it reports"),
    WEIR_FIELD_SIZED(weir_node, labels, JSON, WEIR_FIELD_READ_ONLY, 16 << 10, "", "What people say of it, for selectors: {KEY: VALUE}"),
    WEIR_FIELD_SIZED(weir_node, taints, JSON, WEIR_FIELD_READ_ONLY, 16 << 10, "", "What a task must tolerate: [{key, value, effect}]"),
    WEIR_FIELD_SIZED(weir_node, accelerators, JSON, WEIR_FIELD_READ_ONLY | WEIR_FIELD_SECRET, 256 << 10, "", "What placement knows of its devices (job/device.h)"),
    WEIR_FIELD(weir_node, is_draining,      BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "Takes no new tasks"),
    WEIR_FIELD(weir_node, closed_from_ms,   TIME, WEIR_FIELD_READ_ONLY, "ms", "Maintenance: when it closes, or closed; null: no window"),
    WEIR_FIELD(weir_node, closed_until_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it opens again by itself; null: when somebody opens it"),
    WEIR_FIELD(weir_node, desired_revision, INT,  WEIR_FIELD_READ_ONLY, "", "Counts changes of what should run there"),
    WEIR_FIELD(weir_node, last_seen_ms,     TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "Last heartbeat"),
    WEIR_FIELD(weir_node, left_ms,          TIME, WEIR_FIELD_READ_ONLY, "ms", "When it left the cluster; null: it is part of it"),
    WEIR_FIELD(weir_node, cluster,          TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Cluster that supplied it; null: it joined by itself"),
    WEIR_FIELD(weir_node, allocation,       TEXT, WEIR_FIELD_READ_ONLY, "", "Allocation that it is of"),
    WEIR_FIELD(weir_node, device_milli,     INT,  WEIR_FIELD_READ_ONLY, "", "What of each of its accelerators it has, in thousandths; 0: all of it"),
    WEIR_FIELD(weir_node, ends_ms,          TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it ends at the latest, as its cluster says"),
    WEIR_FIELD(weir_node, created_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "First heartbeat"),
};
static const struct weir_field job_fields[] = {
    WEIR_FIELD(weir_job, id,           TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_job, name,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_job, project,      TEXT, WEIR_FIELD_NAME, "", "Project it belongs to"),
    WEIR_FIELD(weir_job, kind,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Kind of job: `weir explain job-kinds`"),
    WEIR_FIELD(weir_job, is_service,   BOOL, WEIR_FIELD_READ_ONLY, "", "Its tasks are placed and restarted one by one, for ever; else they start and end together"),
    WEIR_FIELD(weir_job, has_known_exits, BOOL, WEIR_FIELD_READ_ONLY, "", "Some of its exit statuses say that a second try ends the same way"),
    WEIR_FIELD_HIDING(weir_job, spec,  WEIR_FIELD_REQUIRED, WEIR_JOB_SECRETS, "", "What to run, by kind; secrets are shown as ***"),
    WEIR_FIELD(weir_job, state,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "PENDING, STARTING, RUNNING, RESTARTING, STOPPING, SUCCEEDED, FAILED or CANCELLED"),
    WEIR_FIELD(weir_job, reason,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it waits, restarts or failed"),
    WEIR_FIELD(weir_job, expected_start_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "While it waits: when it may start, if jobs end as expected"),
    WEIR_FIELD(weir_job, outcome,      TEXT, WEIR_FIELD_READ_ONLY, "", "While STOPPING: what it will be"),
    WEIR_FIELD(weir_job, is_held,      BOOL, WEIR_FIELD_READ_ONLY, "", "It gets no node until it is released"),
    WEIR_FIELD(weir_job, eviction,     TEXT, WEIR_FIELD_READ_ONLY, "", "While it waits again: for whom it was stopped"),
    WEIR_FIELD(weir_job, n_evictions,  INT,  WEIR_FIELD_READ_ONLY, "", "How often it was stopped for others; no restarts"),
    WEIR_FIELD(weir_job, queued_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when it waits again"),
    WEIR_FIELD(weir_job, attempt,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Start of the gang, 1 = first"),
    WEIR_FIELD(weir_job, max_restarts, INT,  0, "", "How often a failed gang starts again; after a loss of its node 3 times at least, and a node that is only cut off may still run the attempt before: fenced, in its specification, prevents that"),
    WEIR_FIELD(weir_job, priority,     INT,  WEIR_FIELD_READ_ONLY, "", "Within its queue: the higher goes first"),
    WEIR_FIELD(weir_job, is_preemptible, BOOL, WEIR_FIELD_READ_ONLY, "", "It may be stopped for others, and goes on later"),
    WEIR_FIELD(weir_job, time_limit_ms, INT, WEIR_FIELD_READ_ONLY, "ms", "Longest run, from its placement on; 0: none"),
    WEIR_FIELD(weir_job, save_within_ms, INT, WEIR_FIELD_READ_ONLY, "ms", "Before it is stopped for others it is asked to save, and may for so long; 0: it is not asked"),
    WEIR_FIELD(weir_job, min_tasks,    INT,  WEIR_FIELD_READ_ONLY, "", "It begins, and goes on, with so many tasks; 0: with all"),
    WEIR_FIELD(weir_job, fence_ms, INT, WEIR_FIELD_READ_ONLY, "ms", "Its tasks stop themselves on a node that does not reach the server, and are started elsewhere no earlier than after this; 0: they do not"),
    WEIR_FIELD(weir_job, is_array,     BOOL, WEIR_FIELD_READ_ONLY, "", "Its tasks are independent of each other: each is placed, tried again and ends on its own"),
    WEIR_FIELD(weir_job, parallel,     INT,  WEIR_FIELD_READ_ONLY, "", "Of an array: so many of its tasks run at once; 0: as many as there is room for"),
    WEIR_FIELD_SIZED(weir_job, placement, JSON, WEIR_FIELD_READ_ONLY, PLACEMENT_MAX_BYTES, "", "Which nodes it may have: {node_selector, tolerations, topology, clusters, overflow_after_ms, pod}"),
    WEIR_FIELD(weir_job, n_restarts,   INT,  WEIR_FIELD_READ_ONLY, "", "How often it has"),
    WEIR_FIELD(weir_job, due_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "When it restarts"),
    WEIR_FIELD(weir_job, ion,          TEXT, WEIR_FIELD_READ_ONLY, "", "ION it works for"),
    WEIR_FIELD(weir_job, pipeline,     TEXT, WEIR_FIELD_READ_ONLY, "", "Pipeline of that ION"),
    WEIR_FIELD(weir_job, training,     INT,  WEIR_FIELD_READ_ONLY, "", "Number of the training in that pipeline"),
    WEIR_FIELD(weir_job, run,          TEXT, WEIR_FIELD_READ_ONLY, "", "Tracked run"),
    WEIR_FIELD(weir_job, created_by,   TEXT, WEIR_FIELD_READ_ONLY, "", "Who submitted it"),
    WEIR_FIELD(weir_job, limited_to,   TEXT, WEIR_FIELD_READ_ONLY, "", "Role of the token that it was submitted with: its tasks may no more; absent: what who submitted it may"),
    WEIR_FIELD(weir_job, created_ms,   TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When"),
    WEIR_FIELD(weir_job, started_ms,   TIME, WEIR_FIELD_READ_ONLY, "ms", "When all its tasks ran for the first time"),
    WEIR_FIELD(weir_job, finished_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was over"),
    WEIR_FIELD(weir_job, revision,     INT,  WEIR_FIELD_READ_ONLY, "", "Counts changes of all jobs: greater than any before"),
};
static const struct weir_field task_fields[] = {
    WEIR_FIELD(weir_task, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_task, job,         TEXT, WEIR_FIELD_READ_ONLY, "", "Job"),
    WEIR_FIELD(weir_task, rank,        INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number in the gang, from 0"),
    WEIR_FIELD(weir_task, role,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "worker, parameter_server, replica, command, server or evaluator"),
    WEIR_FIELD(weir_task, cpu_millis,  INT,  WEIR_FIELD_READ_ONLY, "", "CPUs that are kept for it, in thousandths of one"),
    WEIR_FIELD(weir_task, cpu_slots,   INT,  WEIR_FIELD_READ_ONLY, "", "The same in whole CPUs, rounded up"),
    WEIR_FIELD(weir_task, memory_bytes, INT, WEIR_FIELD_READ_ONLY, "bytes", "Memory it may use, which is kept for it; 0: no limit"),
    WEIR_FIELD(weir_task, n_accelerators, INT, WEIR_FIELD_READ_ONLY, "", "Accelerators that it asks for, all on one node"),
    WEIR_FIELD(weir_task, accelerator_model, TEXT, WEIR_FIELD_READ_ONLY, "", "Their model; null: any"),
    WEIR_FIELD(weir_task, accelerator_milli, INT, WEIR_FIELD_READ_ONLY, "", "Share of each in thousandths; 0: by memory"),
    WEIR_FIELD(weir_task, accelerator_memory_bytes, INT, WEIR_FIELD_READ_ONLY, "bytes", "Memory of each; 0: by share"),
    WEIR_FIELD(weir_task, mig_profile, TEXT, WEIR_FIELD_READ_ONLY, "", "Each is a MIG slice of this profile; null: a device"),
    WEIR_FIELD(weir_task, node,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Where it runs"),
    WEIR_FIELD(weir_task, devices,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Indices of the devices that it has there: 0,3"),
    WEIR_FIELD(weir_task, attempt,     INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Start, 1 = first"),
    WEIR_FIELD(weir_task, state,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "WAITING, STARTING, RUNNING, STOPPING, EXITED or LOST"),
    WEIR_FIELD(weir_task, desired,     TEXT, WEIR_FIELD_READ_ONLY, "", "running or stopped"),
    WEIR_FIELD(weir_task, pid,         INT,  WEIR_FIELD_READ_ONLY, "", "Process on its node"),
    WEIR_FIELD(weir_task, exit_code,   INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "-1 = none"),
    WEIR_FIELD(weir_task, signal,      INT,  WEIR_FIELD_READ_ONLY, "", "Signal that killed it; 0 = none"),
    WEIR_FIELD(weir_task, message,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "How it ended, in words"),
    WEIR_FIELD(weir_task, n_restarts,  INT,  WEIR_FIELD_READ_ONLY, "", "Of a replica: since it last ran for 5 s"),
    WEIR_FIELD(weir_task, due_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "Of a waiting replica: not before"),
    WEIR_FIELD(weir_task, started_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When its attempt was placed"),
    WEIR_FIELD(weir_task, finished_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When its attempt ended"),
    WEIR_FIELD(weir_task, asked_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was asked to save what it has, before it is stopped for others"),
    WEIR_FIELD(weir_task, saved_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When it said that it has saved"),
    WEIR_FIELD(weir_task, definition_bytes, INT, WEIR_FIELD_READ_ONLY, "bytes", "Length of what its agent is told"),
    /* Last, so that task_state_resource can leave it out. */
    WEIR_FIELD_SIZED(weir_task, definition, JSON, WEIR_FIELD_READ_ONLY | WEIR_FIELD_SECRET, TASK_TEXT_MAX_BYTES, "", "For the agent: command, environment, files"),
};
// clang-format on

const struct weir_resource weir_node_resource =
    WEIR_RESOURCE("node", "nodes", weir_node, node_fields);
const struct weir_resource weir_job_resource = WEIR_RESOURCE("job", "jobs", weir_job, job_fields);
const struct weir_resource weir_task_resource =
    WEIR_RESOURCE("task", "tasks", weir_task, task_fields);

#define OVER WEIR_WORK_OVER_SQL

/* What belongs to the runs of a job that is over, a few rows at a time. */
#define OF_RUNS(table, column)                                                                     \
    "DELETE FROM " table " WHERE (run, " column ") IN (SELECT x.run, x." column                    \
    " FROM jobs j JOIN runs r ON r.job = j.id JOIN " table " x ON x.run = r.number"                \
    " WHERE j.id = :key AND j." OVER " LIMIT :n)"

/* Its index by name: that of states looks as good to the planner, and then all have to be sorted. */
const struct weir_noun weir_noun_job = {
    "jobs", .project = "project", WEIR_SUBJECT(job, id),
    .rules = {WEIR_RULE(
        "jobs", "Jobs that are over, their tasks and runs",
        "Those that ended longest ago go first; one that made a model or dataset version stays "
        "with its run.",
        150, {WEIR_DAYS(90), WEIR_MB(93)}, 6000, 12, .is_of_project = true,
        .from = "jobs /*+ INDEXED BY jobs_over */", .time = "finished_ms", .where = OVER,
        .may = "id NOT IN (SELECT job FROM ion_pipelines WHERE job IS NOT NULL) AND id NOT IN"
               " (SELECT r.job FROM runs r JOIN model_versions v ON v.run = r.id"
               " WHERE r.job IS NOT NULL) AND id NOT IN (SELECT r.job FROM runs r JOIN"
               " dataset_versions d ON d.run = r.id WHERE r.job IS NOT NULL)",
        .remove = {
            "DELETE FROM metrics WHERE (run, key, step, time_ms, value, is_nan) IN (SELECT m.run,"
            " m.key, m.step, m.time_ms, m.value, m.is_nan FROM jobs j JOIN runs r ON r.job = j.id"
            " JOIN metrics m ON m.run = r.number WHERE j.id = :key AND j." OVER " LIMIT :n)",
            OF_RUNS("latest_metrics", "key"),
            OF_RUNS("run_parameters", "key"),
            OF_RUNS("run_tags", "key"),
            OF_RUNS("run_inputs", "dataset"),
            "DELETE FROM runs WHERE id IN (SELECT r.id FROM runs r JOIN jobs j ON j.id = r.job"
            " WHERE j.id = :key AND j." OVER " LIMIT :n)",
            "DELETE FROM tasks WHERE id IN (SELECT t.id FROM tasks t JOIN jobs j ON j.id = t.job"
            " WHERE j.id = :key AND j." OVER " LIMIT :n)",
            "DELETE FROM jobs WHERE id = :key AND " OVER,
        })}};

/* The rows of machines stay; nodes that are lent are many, and each is a new one. */
const struct weir_noun weir_noun_node = {
    "nodes", WEIR_SUBJECT(node, name),
    .rules = {
        WEIR_RULE("lent-nodes", "Nodes that were lent by clusters, and have left",
                  "Those that left longest ago go first; one that a task of a job names stays "
                  "with the job.",
                  76, {WEIR_DAYS(1), WEIR_MB(2)}, 2500, 3, .time = "left_ms", .key = "name",
                  .where = "allocation IS NOT NULL AND left_ms > 0",
                  .may = "NOT EXISTS (SELECT 1 FROM tasks t WHERE t.node = nodes.name)")}};

/* What the state machine needs of a task: all but its definition. */
static const struct weir_resource task_state_resource = {
    .name = "task",
    .plural = "tasks",
    .size = sizeof(struct weir_task),
    .fields = task_fields,
    .n_fields = WEIR_ARRAY_LEN(task_fields) - 1,
};

#define TASKS_MAX 4096

/* The counter whose next value is the revision of the job that changes. */
#define JOB_REVISIONS "job_revisions"

static const char sql_open_jobs[] =
    "SELECT id FROM jobs WHERE state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
    " ORDER BY created_ms, id";
static const char sql_open_jobs_of[] =
    "SELECT id FROM jobs WHERE ion = :ion AND state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
    " ORDER BY created_ms, id";
static const char sql_abandon_job[] =
    "UPDATE jobs SET state = 'CANCELLED', outcome = NULL, reason = :reason, finished_ms = :now"
    ", revision = :revision"
    " WHERE id = :id AND state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')";
static const char sql_nodes_of[] =
    "SELECT DISTINCT node FROM tasks WHERE job = :id AND node IS NOT NULL ORDER BY node";
static const char sql_abandon_tasks[] =
    "UPDATE tasks SET state = 'LOST', desired = 'stopped', message = :reason, finished_ms = :now"
    " WHERE job = :id AND state NOT IN ('EXITED', 'LOST')";
static const char sql_wake[] =
    "UPDATE nodes SET desired_revision = desired_revision + 1 WHERE name = :name";

bool weir_node_is_lost(const struct weir_node *node, int64_t now_ms, int64_t since_ms,
                       int64_t timeout_ms)
{
    bool counts = node->last_seen_ms <= now_ms + HEARD_SINCE_MS;
    return now_ms - (counts ? WEIR_MAX(node->last_seen_ms, since_ms) : since_ms) >= timeout_ms;
}

bool weir_node_end_is_foreseen(const struct weir_node *node, int64_t now_ms)
{
    return node->leaving != NULL ||
           (node->allocation != NULL && node->ends_ms > 0 && now_ms >= node->ends_ms);
}

const char *weir_node_state(const struct weir_node *node, int64_t now_ms, int64_t since_ms)
{
    if (node->left_ms > 0) {
        return WEIR_NODE_LEFT;
    }
    if (weir_node_is_lost(node, now_ms, since_ms, weir_node_lost_ms())) {
        return weir_node_end_is_foreseen(node, now_ms) ? WEIR_NODE_LEFT : WEIR_NODE_LOST;
    }
    return weir_node_is_lost(node, now_ms, since_ms, weir_node_silent_ms()) ? WEIR_NODE_SILENT
                                                                            : WEIR_NODE_READY;
}

/* Since the server started, or the wall clock was set: else its heartbeat says nothing of now. */
static bool was_heard_of(const struct weir_node *node, int64_t now_ms, int64_t since_ms)
{
    return node->last_seen_ms >= since_ms && node->last_seen_ms <= now_ms + HEARD_SINCE_MS;
}

bool weir_node_takes_tasks(const struct weir_node *node, int64_t now_ms, int64_t since_ms)
{
    return node->left_ms == 0 && !node->is_draining && node->unhealthy == NULL &&
           node->leaving == NULL && was_heard_of(node, now_ms, since_ms) &&
           !weir_node_is_lost(node, now_ms, since_ms, weir_node_silent_ms());
}

static const char sql_labels[] = "SELECT labels FROM nodes WHERE name = :name";
static const char sql_set_labels[] = "UPDATE nodes SET labels = :labels WHERE name = :name";

weir_status weir_node_note_images(struct weir_txn *txn, const char *node, const json_t *inventory,
                                  struct weir_arena *arena, struct weir_error *err)
{
    char **texts;
    size_t n;
    const json_t *isolation = json_object_get(inventory, "isolation");
    const char *images = json_string_value(json_object_get(isolation, "images"));
    bool has_images = images != NULL && strcmp(images, WEIR_NODE_CRUN) == 0;
    WEIR_TRY(weir_txn_query_texts(txn, sql_labels, WEIR_BINDS(WEIR_BIND_TEXT("name", node)), arena,
                                  &texts, &n, err));
    WEIR_AUTO(weir_json_auto_free)
    json_t *labels = n > 0 && texts[0] != NULL ? json_loads(texts[0], 0, NULL) : NULL;
    labels = labels != NULL ? labels : json_object();
    if ((json_object_get(labels, WEIR_NODE_LABEL_IMAGES) != NULL) == has_images) {
        return WEIR_OK;
    }
    if (has_images) {
        json_object_set_new(labels, WEIR_NODE_LABEL_IMAGES, json_string(WEIR_NODE_CRUN));
    } else {
        (void)json_object_del(labels, WEIR_NODE_LABEL_IMAGES);
    }
    const char *text = json_object_size(labels) > 0 ? weir_json_text(labels, arena) : NULL;
    return weir_txn_exec(txn, sql_set_labels,
                         WEIR_BINDS(WEIR_BIND_TEXT("name", node), WEIR_BIND_TEXT("labels", text)),
                         NULL, err);
}

static const char sql_has_images[] =
    "SELECT CASE WHEN COUNT(*) = 0 OR SUM(CASE WHEN labels LIKE '%\"" WEIR_NODE_LABEL_IMAGES
    "\"%' THEN 1 ELSE 0 END) > 0 THEN 1 ELSE 0 END FROM nodes";

weir_status weir_nodes_have_images(struct weir_txn *txn, bool *out, struct weir_error *err)
{
    int64_t has_images = 0;
    WEIR_TRY(weir_txn_query_int(txn, sql_has_images, WEIR_NO_BINDS, 0, &has_images, err));
    *out = has_images != 0;
    return WEIR_OK;
}

static const char sql_is_leaving[] =
    "SELECT count(*) FROM nodes WHERE name = :name AND leaving IS NOT NULL";

weir_status weir_node_is_leaving(struct weir_txn *txn, const char *name, bool *out,
                                 struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_query_int(txn, sql_is_leaving, WEIR_BINDS(WEIR_BIND_TEXT("name", name)), 0,
                                &n, err));
    *out = n > 0;
    return WEIR_OK;
}

/* When it ends follows from what its agent says, which may say that it does not leave after all. */
static const char sql_ends[] =
    "UPDATE nodes SET ends_ms = :ends WHERE name = :name AND allocation IS NOT NULL AND"
    " (:ends > 0 OR leaving IS NOT NULL)";
static const char sql_lent[] =
    "UPDATE nodes SET ends_ms = CASE WHEN :ends > 0 THEN :ends ELSE coalesce((SELECT a.ends_ms FROM"
    " node_join_uses u JOIN node_joins j ON j.id = u.node_join JOIN allocations a ON"
    " a.id = j.allocation WHERE u.node = :name ORDER BY j.created_ms DESC LIMIT 1), 0) END,"
    " allocation = (SELECT j.allocation FROM node_join_uses u"
    " JOIN node_joins j ON j.id = u.node_join WHERE u.node = :name AND j.allocation IS NOT NULL"
    " ORDER BY j.created_ms DESC LIMIT 1), cluster = (SELECT a.cluster FROM node_join_uses u"
    " JOIN node_joins j ON j.id = u.node_join JOIN allocations a ON a.id = j.allocation"
    " WHERE u.node = :name ORDER BY j.created_ms DESC LIMIT 1), device_milli = coalesce((SELECT"
    " a.accelerator_milli FROM node_join_uses u JOIN node_joins j ON j.id = u.node_join"
    " JOIN allocations a ON a.id = j.allocation WHERE u.node = :name"
    " ORDER BY j.created_ms DESC LIMIT 1), 0), is_draining = coalesce((SELECT a.state ="
    " 'releasing' FROM node_join_uses u JOIN node_joins j ON j.id = u.node_join JOIN allocations a"
    " ON a.id = j.allocation WHERE u.node = :name ORDER BY j.created_ms DESC LIMIT 1), 0)"
    " WHERE name = :name"
    " AND EXISTS (SELECT 1 FROM node_join_uses u JOIN node_joins j ON j.id = u.node_join"
    " WHERE u.node = :name AND j.allocation IS NOT NULL)";

weir_status weir_node_heartbeat(struct weir_txn *txn, const struct weir_node *node, int64_t now_ms,
                                struct weir_error *err)
{
    struct weir_node seen = *node;
    seen.last_seen_ms = now_ms;
    seen.left_ms = 0;
    const struct weir_bind name = WEIR_BIND_TEXT("name", node->name);
    const struct weir_bind ends = WEIR_BIND_INT("ends", node->ends_ms);
    WEIR_TRY(weir_txn_exec(txn, sql_ends, WEIR_BINDS(name, ends), NULL, err));
    weir_status status =
        weir_txn_update(txn, &weir_node_resource, &seen,
                        WEIR_FIELDS("cpu_slots", "memory_bytes", "n_accelerators", "disk_bytes",
                                    "disk_free_bytes", "disk_id", "unhealthy", "inventory",
                                    "agent_version", "leaving", "last_seen_ms", "left_ms"),
                        err);
    if (status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    seen.is_draining = false;
    seen.closed_from_ms = seen.closed_until_ms = seen.ends_ms = seen.device_milli = 0;
    seen.labels = seen.taints = NULL;
    seen.desired_revision = 1;
    seen.created_ms = now_ms;
    WEIR_TRY(weir_txn_insert(txn, &weir_node_resource, &seen, err));
    return weir_txn_exec(txn, sql_lent, WEIR_BINDS(name, ends), NULL, err);
}

weir_status weir_node_leave(struct weir_txn *txn, const char *name, int64_t now_ms,
                            struct weir_error *err)
{
    const struct weir_node gone = {.name = (char *)name, .left_ms = now_ms};
    WEIR_TRY(weir_txn_update(txn, &weir_node_resource, &gone,
                             WEIR_FIELDS("left_ms", "leaving", "unhealthy"), err));
    WEIR_TRY(weir_devices_forget(txn, name, err));
    return weir_node_end_tokens(txn, name, err);
}

uint64_t weir_node_topic(const char *name)
{
    return WEIR_TOPIC_GENERAL << (1 +
                                  weir_hash_text(WEIR_HASH_BEGIN, name) % (WEIR_TOPIC_FREE - 1));
}

/* The one place that counts the revision up: whoever waits for it is woken by the mark. */
static weir_status wake_node(struct weir_txn *txn, const char *name, struct weir_error *err)
{
    weir_txn_mark(txn, weir_node_topic(name));
    return weir_txn_exec(txn, sql_wake, WEIR_BINDS(WEIR_BIND_TEXT("name", name)), NULL, err);
}

static weir_status wake_nodes_of(struct weir_txn *txn, const char *job, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    char **nodes;
    size_t n = 0;
    weir_arena_init(&arena, 0);
    WEIR_TRY(weir_txn_query_texts(txn, sql_nodes_of, WEIR_BINDS(WEIR_BIND_TEXT("id", job)), &arena,
                                  &nodes, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(wake_node(txn, nodes[i], err));
    }
    return WEIR_OK;
}

static weir_status append_event(struct weir_txn *txn, const struct weir_job *job, const char *actor,
                                const char *kind, const char *message, int64_t now_ms,
                                struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const struct weir_event event = {.time_ms = now_ms,
                                     .topic = "jobs",
                                     .kind = (char *)kind,
                                     .subject = weir_arena_printf(&arena, "job/%s", job->id),
                                     .actor = (char *)actor,
                                     .message = (char *)message};
    return weir_event_append(txn, &event, NULL, err);
}

static int64_t text_bytes(const char *text)
{
    return text != NULL ? (int64_t)strlen(text) : 0;
}

/* From now on it waits. */
static weir_status begin_account(struct weir_txn *txn, const struct weir_job *job,
                                 const struct weir_task *tasks, size_t n_tasks, int64_t now_ms,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct weir_job_state state = {.job = *job,
                                   .tasks = WEIR_ARENA_ARRAY(&arena, n_tasks + 1, struct weir_task),
                                   .n_tasks = n_tasks};
    for (size_t i = 0; i < n_tasks; i++) {
        state.tasks[i] = tasks[i];
        state.tasks[i].state = (char *)weir_task_phase_text(WEIR_TASK_WAITING);
        state.tasks[i].desired = "stopped";
        state.tasks[i].node = NULL;
        state.tasks[i].due_ms = 0;
    }
    return weir_usage_record(txn, &state, now_ms, err);
}

weir_status weir_job_create(struct weir_txn *txn, const struct weir_job *job,
                            const struct weir_task *tasks, size_t n_tasks, int64_t now_ms,
                            struct weir_error *err)
{
    struct weir_job created = *job;
    created.state = (char *)weir_job_phase_text(WEIR_JOB_PENDING);
    created.reason = created.outcome = NULL;
    created.attempt = created.n_restarts = created.due_ms = 0;
    created.created_ms = now_ms;
    created.started_ms = created.finished_ms = created.expected_start_ms = 0;
    created.is_held = false;
    created.eviction = NULL;
    created.n_evictions = created.queued_ms = 0;
    WEIR_TRY(weir_txn_next(txn, JOB_REVISIONS, &created.revision, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_job_resource, &created, err));
    for (size_t i = 0; i < n_tasks; i++) {
        const struct weir_task task = {.id = tasks[i].id,
                                       .job = created.id,
                                       .rank = tasks[i].rank,
                                       .role = tasks[i].role,
                                       .cpu_millis = tasks[i].cpu_millis,
                                       .cpu_slots = weir_cpus_whole(tasks[i].cpu_millis),
                                       .memory_bytes = tasks[i].memory_bytes,
                                       .n_accelerators = tasks[i].n_accelerators,
                                       .accelerator_model = tasks[i].accelerator_model,
                                       .accelerator_milli = tasks[i].accelerator_milli,
                                       .accelerator_memory_bytes =
                                           tasks[i].accelerator_memory_bytes,
                                       .mig_profile = tasks[i].mig_profile,
                                       .definition = tasks[i].definition,
                                       .definition_bytes = text_bytes(tasks[i].definition),
                                       .state = (char *)weir_task_phase_text(WEIR_TASK_WAITING),
                                       .desired = "stopped",
                                       .exit_code = -1};
        WEIR_TRY(weir_txn_insert(txn, &weir_task_resource, &task, err));
    }
    WEIR_TRY(begin_account(txn, &created, tasks, n_tasks, now_ms, err));
    char message[256];
    (void)snprintf(message, sizeof(message), "Job %.128s (%.16s, %zu tasks) was submitted.",
                   job->name, job->kind, n_tasks);
    return append_event(txn, &created, created.created_by, "job_submitted", message, now_ms, err);
}

static const char sql_started[] = "SELECT started_ms FROM jobs WHERE id = :id";

weir_status weir_job_started_ms(struct weir_txn *txn, const char *id, int64_t *out,
                                struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_started, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), 0, out, err);
}

static const char sql_over[] = "SELECT finished_ms > 0 FROM jobs WHERE id = :id";

weir_status weir_job_is_over(struct weir_txn *txn, const char *id, bool *out,
                             struct weir_error *err)
{
    int64_t is_over;
    WEIR_TRY(
        weir_txn_query_int(txn, sql_over, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), 1, &is_over, err));
    *out = is_over != 0;
    return WEIR_OK;
}

weir_status weir_job_load(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                          struct weir_job_state *out, struct weir_error *err)
{
    struct weir_job_state state;
    void *tasks;
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, id, arena, &state.job, err));
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("job", EQ, id)),
                                     .order_by = "rank", .limit = TASKS_MAX};
    WEIR_TRY(
        weir_txn_list(txn, &task_state_resource, &query, arena, &tasks, &state.n_tasks, NULL, err));
    state.tasks = tasks;
    struct weir_task *loaded = WEIR_ARENA_ARRAY(arena, state.n_tasks + 1, struct weir_task);
    if (state.n_tasks > 0) {
        memcpy(loaded, tasks, state.n_tasks * sizeof *loaded);
    }
    state.loaded = loaded;
    *out = state;
    return WEIR_OK;
}

weir_status weir_job_save(struct weir_txn *txn, struct weir_job_state *state,
                          const struct weir_job_actions *actions, int64_t now_ms,
                          struct weir_error *err)
{
    const char *actor = actions->actor != NULL ? actions->actor : "system";
    WEIR_TRY(weir_txn_next(txn, JOB_REVISIONS, &state->job.revision, err));
    WEIR_TRY(weir_txn_update(txn, &weir_job_resource, &state->job,
                             WEIR_FIELDS("state", "reason", "expected_start_ms", "outcome",
                                         "attempt", "n_restarts", "due_ms", "run", "started_ms",
                                         "finished_ms", "revision", "is_held", "eviction",
                                         "n_evictions", "queued_ms", "priority"),
                             err));
    for (size_t i = 0; i < state->n_tasks; i++) {
        if (state->loaded != NULL &&
            memcmp(&state->tasks[i], &state->loaded[i], sizeof state->tasks[i]) == 0) {
            continue; /* one task of a thousand has ended: the others' rows are as they were */
        }
        WEIR_TRY(
            weir_txn_update(txn, &weir_task_resource, &state->tasks[i],
                            WEIR_FIELDS("node", "devices", "attempt", "state", "desired", "pid",
                                        "exit_code", "signal", "message", "n_restarts", "due_ms",
                                        "started_ms", "finished_ms", "asked_ms", "saved_ms"),
                            err));
    }
    WEIR_TRY(weir_attempts_record(txn, state, now_ms, err));
    WEIR_TRY(weir_usage_record(txn, state, now_ms, err));
    WEIR_TRY(weir_task_devices_leave(txn, state, err));
    if (weir_job_phase_is_final(weir_job_phase_of(state))) {
        WEIR_TRY(weir_board_clear(txn, state->job.id, err));
    }
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_job_action *action = &actions->items[i];
        if (action->type == WEIR_JOB_ACTION_WAKE_NODE) {
            WEIR_TRY(wake_node(txn, action->node, err));
        } else if (action->type == WEIR_JOB_ACTION_EVENT) {
            WEIR_TRY(
                append_event(txn, &state->job, actor, action->kind, action->message, now_ms, err));
        }
    }
    return WEIR_OK;
}

weir_status weir_job_abandon(struct weir_txn *txn, const char *id, const char *reason,
                             const char *actor, int64_t now_ms, struct weir_error *err)
{
    int64_t n_changed, n_there, revision;
    WEIR_TRY(weir_txn_next(txn, JOB_REVISIONS, &revision, err));
    const struct weir_bind binds[] = {WEIR_BIND_TEXT("id", id), WEIR_BIND_TEXT("reason", reason),
                                      WEIR_BIND_INT("now", now_ms),
                                      WEIR_BIND_INT("revision", revision)};
    WEIR_TRY(weir_txn_exec(txn, sql_abandon_job, binds, WEIR_ARRAY_LEN(binds), &n_changed, err));
    if (n_changed == 0) {
        const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("id", EQ, id))};
        WEIR_TRY(weir_txn_count(txn, &weir_job_resource, &query, &n_there, err));
        return n_there == 0
                   ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no job \"%s\"", id)
                   : weir_error_set(err, WEIR_ERR_CONFLICT, "job \"%s\" is over already", id);
    }
    WEIR_TRY(wake_nodes_of(txn, id, err));
    WEIR_TRY(weir_txn_exec(txn, sql_abandon_tasks, binds, 3, NULL, err));
    WEIR_TRY(weir_board_clear(txn, id, err));
    WEIR_TRY(weir_usage_end(txn, id, now_ms, err));
    WEIR_TRY(weir_task_devices_abandon(txn, id, err));
    return append_event(txn, &(struct weir_job){.id = (char *)id}, actor, "job_cancelled", reason,
                        now_ms, err);
}

weir_status weir_job_list_open_of(struct weir_txn *txn, const char *ion, struct weir_arena *arena,
                                  char ***out_ids, size_t *out_n, struct weir_error *err)
{
    return weir_txn_query_texts(txn, sql_open_jobs_of, WEIR_BINDS(WEIR_BIND_TEXT("ion", ion)),
                                arena, out_ids, out_n, err);
}

weir_status weir_job_list_open(struct weir_txn *txn, struct weir_arena *arena, char ***out_ids,
                               size_t *out_n, struct weir_error *err)
{
    return weir_txn_query_texts(txn, sql_open_jobs, WEIR_NO_BINDS, arena, out_ids, out_n, err);
}

weir_status weir_task_list_on_node(struct weir_txn *txn, const char *node, struct weir_arena *arena,
                                   struct weir_task **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("node", EQ, node)),
                                     .condition = "state IN ('STARTING', 'RUNNING', 'STOPPING')",
                                     .limit = TASKS_MAX};
    void *items;
    WEIR_TRY(weir_txn_list(txn, &weir_task_resource, &query, arena, &items, out_n, NULL, err));
    *out = items;
    return WEIR_OK;
}
