#include "job/changes.h"

#include "store/live.h"
#include "store/stmt.h"

#include <string.h>

#define OVER "('SUCCEEDED', 'FAILED', 'CANCELLED')"
#define JOB_COLUMNS                                                                                \
    "j.id, j.name, j.project, j.kind, j.state, j.reason, j.expected_start_ms, j.due_ms,"           \
    " j.n_restarts, j.created_by, j.created_ms, j.started_ms, j.revision, j.is_service,"           \
    " j.ion, j.pipeline, j.finished_ms, j.priority, j.is_preemptible, j.time_limit_ms,"            \
    " j.min_tasks, j.placement, j.is_held, j.eviction, j.n_evictions, j.queued_ms,"                \
    " j.is_array, j.parallel, j.max_restarts, j.fence_ms, j.save_within_ms"
#define TASK_COLUMNS                                                                               \
    "t.id, t.rank, t.cpu_millis, t.memory_bytes, t.definition_bytes, t.node, t.state, "            \
    "t.exit_code,"                                                                                 \
    " t.signal, t.n_restarts, t.due_ms, t.started_ms, t.attempt, t.n_accelerators,"                \
    " t.accelerator_model, t.accelerator_milli, t.accelerator_memory_bytes, t.mig_profile,"        \
    " t.devices, t.desired, t.asked_ms, t.saved_ms"

/* By the index of what is open, in its order. */
static const char sql_open[] = "SELECT " JOB_COLUMNS ", " TASK_COLUMNS " FROM jobs j"
                               " LEFT JOIN tasks t ON t.job = j.id"
                               " WHERE j.state NOT IN " OVER " ORDER BY j.created_ms, j.id, t.rank";
static const char sql_changed[] = "SELECT " JOB_COLUMNS ", " TASK_COLUMNS " FROM jobs j"
                                  " LEFT JOIN tasks t ON t.job = j.id AND j.state NOT IN " OVER
                                  " WHERE j.revision > :after ORDER BY j.revision, t.rank";
/* From the end of the index of successes, which has all that is read. Without tasks: TASK_ID is NULL, and no column behind it is read. */
static const char sql_succeeded[] =
    "SELECT j.id, j.name, j.project, NULL, 'SUCCEEDED', NULL, 0, 0, 0, NULL, 0, j.started_ms,"
    " j.revision, 0, j.ion, j.pipeline, j.finished_ms, 0, 0, 0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, "
    "0, 0,"
    " NULL FROM jobs j WHERE j.state = 'SUCCEEDED'"
    " ORDER BY j.revision DESC LIMIT :limit";
static const char sql_newest[] = "SELECT max(revision) FROM jobs";
static const char sql_note_wait[] = "UPDATE jobs SET reason = :reason, expected_start_ms = :start"
                                    " WHERE id = :id AND revision = :revision";
#define NODE_COLUMNS                                                                               \
    "name, cpu_slots, memory_bytes, (is_draining <> 0 OR leaving IS NOT NULL), " WEIR_LIVE_NODE(   \
        "last_seen_ms") ", unhealthy, labels, taints, accelerators, left_ms, closed_from_ms, "     \
                        "closed_until_ms, cluster, allocation, ends_ms, leaving, device_milli"
/* Many nodes that were lent have left. */
static const char sql_nodes[] =
    "SELECT " NODE_COLUMNS " FROM nodes WHERE allocation IS NULL OR left_ms = 0 ORDER BY name";
static const char sql_node[] = "SELECT " NODE_COLUMNS " FROM nodes WHERE name = :name";

/* Columns of both statements, in the order of JOB_COLUMNS and TASK_COLUMNS. */
enum {
    JOB_ID,
    JOB_NAME,
    JOB_PROJECT,
    JOB_KIND,
    JOB_STATE,
    JOB_REASON,
    JOB_EXPECTED_START,
    JOB_DUE,
    JOB_N_RESTARTS,
    JOB_CREATED_BY,
    JOB_CREATED,
    JOB_STARTED,
    JOB_REVISION,
    JOB_IS_SERVICE,
    JOB_ION,
    JOB_PIPELINE,
    JOB_FINISHED,
    JOB_PRIORITY,
    JOB_IS_PREEMPTIBLE,
    JOB_TIME_LIMIT,
    JOB_MIN_TASKS,
    JOB_PLACEMENT,
    JOB_IS_HELD,
    JOB_EVICTION,
    JOB_N_EVICTIONS,
    JOB_QUEUED,
    JOB_IS_ARRAY,
    JOB_PARALLEL,
    JOB_MAX_RESTARTS,
    JOB_FENCE,
    JOB_SAVE_WITHIN,
    TASK_ID,
    TASK_RANK,
    TASK_CPU_MILLIS,
    TASK_MEMORY,
    TASK_DEFINITION_BYTES,
    TASK_NODE,
    TASK_STATE,
    TASK_EXIT_CODE,
    TASK_SIGNAL,
    TASK_N_RESTARTS,
    TASK_DUE,
    TASK_STARTED,
    TASK_ATTEMPT,
    TASK_N_ACCELERATORS,
    TASK_ACCELERATOR_MODEL,
    TASK_ACCELERATOR_MILLI,
    TASK_ACCELERATOR_MEMORY,
    TASK_MIG_PROFILE,
    TASK_DEVICES,
    TASK_DESIRED,
    TASK_ASKED,
    TASK_SAVED,
};

/* The job whose rows are read at the moment. */
struct reading {
    struct weir_arena arena; /* Of this job. */
    struct weir_job_state state;
    size_t cap;
    weir_job_seen_fn fn;
    void *context;
    int64_t newest; /* Revision. */
};

static void hand_over(struct reading *reading)
{
    if (reading->state.job.id != NULL) {
        reading->newest = WEIR_MAX(reading->newest, reading->state.job.revision);
        reading->fn(reading->context, &reading->state);
    }
}

static void begin_job(struct reading *reading, const struct weir_stmt *row)
{
    hand_over(reading);
    weir_arena_fini(&reading->arena);
    weir_arena_init(&reading->arena, 0);
    struct weir_arena *arena = &reading->arena;
    reading->cap = 0;
    reading->state = (struct weir_job_state){
        .job = {.id = weir_stmt_text(row, JOB_ID, arena),
                .name = weir_stmt_text(row, JOB_NAME, arena),
                .project = weir_stmt_text(row, JOB_PROJECT, arena),
                .kind = weir_stmt_text(row, JOB_KIND, arena),
                .state = weir_stmt_text(row, JOB_STATE, arena),
                .reason = weir_stmt_text(row, JOB_REASON, arena),
                .expected_start_ms = weir_stmt_int(row, JOB_EXPECTED_START),
                .due_ms = weir_stmt_int(row, JOB_DUE),
                .n_restarts = weir_stmt_int(row, JOB_N_RESTARTS),
                .created_by = weir_stmt_text(row, JOB_CREATED_BY, arena),
                .created_ms = weir_stmt_int(row, JOB_CREATED),
                .started_ms = weir_stmt_int(row, JOB_STARTED),
                .ion = weir_stmt_text(row, JOB_ION, arena),
                .pipeline = weir_stmt_text(row, JOB_PIPELINE, arena),
                .finished_ms = weir_stmt_int(row, JOB_FINISHED),
                .revision = weir_stmt_int(row, JOB_REVISION),
                .priority = weir_stmt_int(row, JOB_PRIORITY),
                .is_preemptible = weir_stmt_int(row, JOB_IS_PREEMPTIBLE) != 0,
                .time_limit_ms = weir_stmt_int(row, JOB_TIME_LIMIT),
                .min_tasks = weir_stmt_int(row, JOB_MIN_TASKS),
                .placement = weir_stmt_text(row, JOB_PLACEMENT, arena),
                .is_held = weir_stmt_int(row, JOB_IS_HELD) != 0,
                .eviction = weir_stmt_text(row, JOB_EVICTION, arena),
                .n_evictions = weir_stmt_int(row, JOB_N_EVICTIONS),
                .queued_ms = weir_stmt_int(row, JOB_QUEUED),
                .is_array = weir_stmt_int(row, JOB_IS_ARRAY) != 0,
                .parallel = weir_stmt_int(row, JOB_PARALLEL),
                .max_restarts = weir_stmt_int(row, JOB_MAX_RESTARTS),
                .fence_ms = weir_stmt_int(row, JOB_FENCE),
                .save_within_ms = weir_stmt_int(row, JOB_SAVE_WITHIN),
                .is_service = weir_stmt_int(row, JOB_IS_SERVICE) != 0}};
}

static void add_task(struct reading *reading, const struct weir_stmt *row)
{
    struct weir_job_state *state = &reading->state;
    struct weir_arena *arena = &reading->arena;
    if (state->n_tasks == reading->cap) {
        reading->cap = WEIR_MAX(2 * reading->cap, (size_t)4);
        struct weir_task *grown = WEIR_ARENA_ARRAY(arena, reading->cap, struct weir_task);
        if (state->n_tasks > 0) {
            memcpy(grown, state->tasks, state->n_tasks * sizeof *grown);
        }
        state->tasks = grown;
    }
    state->tasks[state->n_tasks++] = (struct weir_task){
        .id = weir_stmt_text(row, TASK_ID, arena),
        .rank = weir_stmt_int(row, TASK_RANK),
        .cpu_millis = weir_stmt_int(row, TASK_CPU_MILLIS),
        .memory_bytes = weir_stmt_int(row, TASK_MEMORY),
        .definition_bytes = weir_stmt_int(row, TASK_DEFINITION_BYTES),
        .node = weir_stmt_text(row, TASK_NODE, arena),
        .state = weir_stmt_text(row, TASK_STATE, arena),
        .exit_code = weir_stmt_int(row, TASK_EXIT_CODE),
        .signal = weir_stmt_int(row, TASK_SIGNAL),
        .n_restarts = weir_stmt_int(row, TASK_N_RESTARTS),
        .due_ms = weir_stmt_int(row, TASK_DUE),
        .started_ms = weir_stmt_int(row, TASK_STARTED),
        .attempt = weir_stmt_int(row, TASK_ATTEMPT),
        .n_accelerators = weir_stmt_int(row, TASK_N_ACCELERATORS),
        .accelerator_model = weir_stmt_text(row, TASK_ACCELERATOR_MODEL, arena),
        .accelerator_milli = weir_stmt_int(row, TASK_ACCELERATOR_MILLI),
        .accelerator_memory_bytes = weir_stmt_int(row, TASK_ACCELERATOR_MEMORY),
        .mig_profile = weir_stmt_text(row, TASK_MIG_PROFILE, arena),
        .devices = weir_stmt_text(row, TASK_DEVICES, arena),
        .desired = weir_stmt_text(row, TASK_DESIRED, arena),
        .asked_ms = weir_stmt_int(row, TASK_ASKED),
        .saved_ms = weir_stmt_int(row, TASK_SAVED),
    };
}

/* Rows of one job lie together; a new one begins where the revision or the id changes. */
static weir_status read_rows(struct reading *reading, struct weir_stmt *row, struct weir_error *err)
{
    bool has_row;
    struct weir_arena scratch;
    weir_arena_init(&scratch, 0);
    weir_status status;
    while ((status = weir_stmt_step(row, &has_row, err)) == WEIR_OK && has_row) {
        const struct weir_job *job = &reading->state.job;
        bool is_same = job->id != NULL && job->revision == weir_stmt_int(row, JOB_REVISION) &&
                       strcmp(job->id, weir_stmt_text(row, JOB_ID, &scratch)) == 0;
        weir_arena_fini(&scratch);
        if (!is_same) {
            begin_job(reading, row);
        }
        if (!weir_stmt_is_null(row, TASK_ID)) {
            add_task(reading, row);
        }
    }
    if (status == WEIR_OK) {
        hand_over(reading);
    }
    return status;
}

/* One number is bound: the revision after which, or how many; none if its name is NULL. */
static weir_status read_jobs(struct weir_txn *txn, const char *sql, struct weir_bind bind,
                             weir_job_seen_fn fn, void *context, int64_t *out_revision,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct reading reading = {.fn = fn, .context = context, .newest = bind.i64};
    WEIR_TRY(weir_stmt_open(txn, sql, &bind, bind.name != NULL, &row, err));
    weir_arena_init(&reading.arena, 0);
    weir_status status = read_rows(&reading, row, err);
    weir_arena_fini(&reading.arena);
    if (status == WEIR_OK) {
        *out_revision = reading.newest;
    }
    return status;
}

weir_status weir_job_each_open(struct weir_txn *txn, weir_job_seen_fn fn, void *context,
                               int64_t *out_revision, struct weir_error *err)
{
    int64_t newest, ignored;
    WEIR_TRY(weir_txn_query_int(txn, sql_newest, WEIR_NO_BINDS, 0, &newest, err));
    WEIR_TRY(read_jobs(txn, sql_open, (struct weir_bind){0}, fn, context, &ignored, err));
    *out_revision = newest;
    return WEIR_OK;
}

weir_status weir_job_each_changed(struct weir_txn *txn, int64_t after, weir_job_seen_fn fn,
                                  void *context, int64_t *out_revision, struct weir_error *err)
{
    return read_jobs(txn, sql_changed, WEIR_BIND_INT("after", after), fn, context, out_revision,
                     err);
}

weir_status weir_job_each_succeeded(struct weir_txn *txn, int64_t limit, weir_job_seen_fn fn,
                                    void *context, struct weir_error *err)
{
    int64_t ignored;
    return read_jobs(txn, sql_succeeded, WEIR_BIND_INT("limit", limit), fn, context, &ignored, err);
}

static struct weir_node node_of(const struct weir_stmt *row, struct weir_arena *arena)
{
    return (struct weir_node){.name = weir_stmt_text(row, 0, arena),
                              .cpu_slots = weir_stmt_int(row, 1),
                              .memory_bytes = weir_stmt_int(row, 2),
                              .is_draining = weir_stmt_int(row, 3) != 0,
                              .last_seen_ms = weir_stmt_int(row, 4),
                              .unhealthy = weir_stmt_text(row, 5, arena),
                              .labels = weir_stmt_text(row, 6, arena),
                              .taints = weir_stmt_text(row, 7, arena),
                              .accelerators = weir_stmt_text(row, 8, arena),
                              .left_ms = weir_stmt_int(row, 9),
                              .closed_from_ms = weir_stmt_int(row, 10),
                              .closed_until_ms = weir_stmt_int(row, 11),
                              .cluster = weir_stmt_text(row, 12, arena),
                              .allocation = weir_stmt_text(row, 13, arena),
                              .ends_ms = weir_stmt_int(row, 14),
                              .leaving = weir_stmt_text(row, 15, arena),
                              .device_milli = weir_stmt_int(row, 16)};
}

weir_status weir_node_each(struct weir_txn *txn, weir_node_seen_fn fn, void *context,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_arena arena;
    bool has_row;
    weir_status status;
    WEIR_TRY(weir_stmt_open(txn, sql_nodes, WEIR_NO_BINDS, &row, err));
    while ((status = weir_stmt_step(row, &has_row, err)) == WEIR_OK && has_row) {
        weir_arena_init(&arena, 0);
        struct weir_node node = node_of(row, &arena);
        fn(context, &node);
        weir_arena_fini(&arena);
    }
    return status;
}

weir_status weir_node_look(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                           struct weir_node *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_node, WEIR_BINDS(WEIR_BIND_TEXT("name", name)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (!has_row) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no node \"%.60s\"", name);
    }
    *out = node_of(row, arena);
    return WEIR_OK;
}

weir_status weir_node_is_news(struct weir_txn *txn, const struct weir_node *node, int64_t now_ms,
                              int64_t since_ms, bool *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(
        weir_stmt_open(txn, sql_node, WEIR_BINDS(WEIR_BIND_TEXT("name", node->name)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    const struct weir_node known = {.cpu_slots = has_row ? weir_stmt_int(row, 1) : 0,
                                    .memory_bytes = has_row ? weir_stmt_int(row, 2) : 0,
                                    .last_seen_ms = has_row ? weir_stmt_int(row, 4) : 0};
    bool was_healthy = has_row && weir_stmt_is_null(row, 5);
    bool was_leaving = has_row && !weir_stmt_is_null(row, 15);
    *out = !has_row || was_healthy != (node->unhealthy == NULL) ||
           was_leaving != (node->leaving != NULL) || known.cpu_slots != node->cpu_slots ||
           known.memory_bytes != node->memory_bytes ||
           !weir_node_takes_tasks(&known, now_ms, since_ms);
    return WEIR_OK;
}

weir_status weir_job_note_wait(struct weir_txn *txn, const char *id, int64_t revision,
                               const char *reason, int64_t expected_start_ms,
                               struct weir_error *err)
{
    return weir_txn_exec(txn, sql_note_wait,
                         WEIR_BINDS(WEIR_BIND_TEXT("id", id), WEIR_BIND_INT("revision", revision),
                                    WEIR_BIND_TEXT("reason", reason),
                                    WEIR_BIND_INT("start", expected_start_ms)),
                         NULL, err);
}
