#include "ion/replica.h"

#include "ion/ion.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field replica_fields[] = {
    WEIR_FIELD(weir_ion_replica, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:PIPELINE:REPLICA"),
    WEIR_FIELD(weir_ion_replica, ion,             TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_ion_replica, pipeline,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Pipeline"),
    WEIR_FIELD(weir_ion_replica, replica,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "JOB-RANK"),
    WEIR_FIELD(weir_ion_replica, revision,        INT,  0, "", "Deployment that the state is about; 0: none yet"),
    WEIR_FIELD(weir_ion_replica, state,           TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "STARTING, APPLIED or FAILED"),
    WEIR_FIELD(weir_ion_replica, reason,          TEXT, WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it failed"),
    WEIR_FIELD(weir_ion_replica, served_revision, INT,  0, "", "Deployment that frames are decided by; 0: none"),
    WEIR_FIELD(weir_ion_replica, frames_taken,    INT,  WEIR_FIELD_COLUMN, "", "Frames taken since it started"),
    WEIR_FIELD(weir_ion_replica, frames_decided,  INT,  WEIR_FIELD_COLUMN, "", "Frames decided, durably"),
    WEIR_FIELD(weir_ion_replica, frames_waiting,  INT,  WEIR_FIELD_COLUMN, "", "Frames that wait at the source or before the model"),
    WEIR_FIELD(weir_ion_replica, last_frame_ms,   TIME, WEIR_FIELD_COLUMN, "ms", "When a frame was taken last"),
    WEIR_FIELD(weir_ion_replica, backlog_ms,      INT,  0, "ms", "Age of the oldest decision that is not passed on"),
    WEIR_FIELD(weir_ion_replica, backlog_reader,  TEXT, 0, "", "Who has not passed it on: server, or a sink"),
    WEIR_FIELD(weir_ion_replica, decisions_refused, INT, 0, "", "Decisions that the server or a sink refused; they are set aside on the replica's disk"),
    WEIR_FIELD(weir_ion_replica, frames_ignored,  INT,  0, "", "Given to its source now, and no frames: wrong names, or wrong places"),
    WEIR_FIELD(weir_ion_replica, why_ignored,     TEXT, 0, "", "What is wrong with the first of them"),
    WEIR_FIELD_SIZED(weir_ion_replica, source,   JSON, 0, 128 << 10, "", "Is its source connected, since when, and the last error: {connected, since, error}, of requests also url; of video also cameras: {NAME: {state, since, error, size, fps, health, …}}; null: it does not say"),
    WEIR_FIELD_SIZED(weir_ion_replica, consumers, JSON, 0, 64 << 10, "", "What takes its decisions, the server and each sink: [{name, connected, since, error, taken, refused}], counts since it started"),
    WEIR_FIELD_SIZED(weir_ion_replica, places,   JSON, 0, 128 << 10, "", "Where it counts things, and how many are there now: [{camera, place, n, entered, left, to_right, to_left, conditions}], counts since it started"),
    WEIR_FIELD(weir_ion_replica, time_ms,         TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it reported"),
};
// clang-format on

const struct weir_resource weir_ion_replica_resource =
    WEIR_RESOURCE("replica", "ion_replicas", weir_ion_replica, replica_fields);

#define OF_NO_JOB                                                                                  \
    "NOT EXISTS (SELECT 1 FROM ion_pipelines p WHERE p.ion = ion_replicas.ion"                     \
    " AND p.name = ion_replicas.pipeline AND"                                                      \
    " substr(ion_replicas.replica, 1, length(p.job) + 1) = p.job || '-')"

const struct weir_noun weir_noun_ion_replica = {
    "ion_replicas", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("replica-reports", "Last reports of replicas that are gone",
                        "The oldest go first; that of a replica of a pipeline's job stays.", 180,
                        {WEIR_DAYS(1), WEIR_MB(5)}, 600, 3, .time = "time_ms", .where = OF_NO_JOB)},
    .captured = WEIR_CAPTURED("replicas", 60, .resource = &weir_ion_replica_resource, .by = "ion",
                              .since_always = true)};

static const char sql_forget[] =
    "DELETE FROM ion_replicas WHERE ion = :ion AND pipeline = :pipeline"
    " AND substr(replica, 1, :len) <> :prefix";
static const char sql_same[] =
    "SELECT count(*) FROM ion_replicas WHERE id = :id AND revision = :revision AND state = :state"
    " AND coalesce(reason, '') = :reason AND served_revision = :served";
static const char sql_last_frame[] = "UPDATE ion_pipelines SET last_frame_ms = :time"
                                     " WHERE id = :id AND last_frame_ms < :time";

bool weir_ion_replica_is_of(const char *replica, const char *job)
{
    size_t len = job != NULL ? strlen(job) : 0;
    return len > 0 && strncmp(replica, job, len) == 0 && replica[len] == '-';
}

static weir_status check(const struct weir_ion_replica *report, const struct weir_ion_pipeline *row,
                         struct weir_error *err)
{
    if (weir_ion_service_of(row) == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "ion \"%s\" has no prediction pipeline \"%s\"", report->ion,
                              report->pipeline);
    }
    if (!weir_ion_replica_is_of(report->replica, row->job)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "replica %s is not of the job that pipeline \"%s\" runs",
                              report->replica, report->pipeline);
    }
    if (strcmp(report->state, WEIR_REPLICA_STARTING) != 0 &&
        strcmp(report->state, WEIR_REPLICA_APPLIED) != 0 &&
        strcmp(report->state, WEIR_REPLICA_FAILED) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.state: \"%.40s\" is not STARTING, APPLIED or FAILED",
                              report->state);
    }
    return WEIR_OK;
}

/** Replicas of earlier jobs say nothing about this one's deployment. */
static weir_status forget_others(struct weir_txn *txn, const struct weir_ion_replica *report,
                                 const char *job, struct weir_error *err)
{
    return weir_txn_exec(
        txn, sql_forget,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", report->ion), WEIR_BIND_TEXT("pipeline", report->pipeline),
                   WEIR_BIND_INT("len", (int64_t)strlen(job)), WEIR_BIND_TEXT("prefix", job)),
        NULL, err);
}

static weir_status store(struct weir_txn *txn, const struct weir_ion_replica *report,
                         const struct weir_ion_pipeline *row, bool *out_has_changed,
                         struct weir_error *err)
{
    int64_t n_same;
    WEIR_TRY(check(report, row, err));
    WEIR_TRY(forget_others(txn, report, row->job, err));
    WEIR_TRY(weir_txn_query_int(
        txn, sql_same,
        WEIR_BINDS(WEIR_BIND_TEXT("id", report->id), WEIR_BIND_INT("revision", report->revision),
                   WEIR_BIND_TEXT("state", report->state),
                   WEIR_BIND_TEXT("reason", report->reason != NULL ? report->reason : ""),
                   WEIR_BIND_INT("served", report->served_revision)),
        0, &n_same, err));
    WEIR_TRY(weir_txn_upsert(txn, &weir_ion_replica_resource, report, err));
    WEIR_TRY(weir_txn_exec(
        txn, sql_last_frame,
        WEIR_BINDS(WEIR_BIND_TEXT("id", row->id),
                   WEIR_BIND_INT("time", WEIR_MIN(report->last_frame_ms, report->time_ms))),
        NULL, err));
    *out_has_changed = n_same == 0;
    return WEIR_OK;
}

weir_status weir_ion_replica_store(struct weir_txn *txn, const struct weir_ion_replica *report,
                                   bool *out_has_changed, struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_ion_pipeline row;
    struct weir_ion_replica named = *report;
    weir_arena_init(&arena, 0);
    char *id = weir_arena_printf(&arena, "%s:%s", report->ion, report->pipeline);
    named.id = weir_arena_printf(&arena, "%s:%s", id, report->replica);
    weir_status status = weir_txn_get(txn, &weir_ion_pipeline_resource, id, &arena, &row, err);
    if (status == WEIR_OK) {
        status = store(txn, &named, &row, out_has_changed, err);
    }
    weir_arena_fini(&arena);
    return status;
}
