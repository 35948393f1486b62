#include "ion/decision.h"

#include "base/hash.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <stdlib.h>

// clang-format off
static const struct weir_field decision_fields[] = {
    WEIR_FIELD(weir_decision, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED, "", "Identifier, made by the replica"),
    WEIR_FIELD(weir_decision, seq,             INT,  WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_decision, ion,             TEXT, WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_decision, pipeline,        TEXT, 0, "", "Pipeline"),
    WEIR_FIELD(weir_decision, replica,         TEXT, 0, "", "Replica that decided"),
    WEIR_FIELD_SIZED(weir_decision, camera, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 256, "", "Camera"),
    WEIR_FIELD(weir_decision, frame,           INT,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Number of the frame; below 0: its source has none for it"),
    WEIR_FIELD_SIZED(weir_decision, key, TEXT, 0, 128, "", "What names the frame, if camera and number do not"),
    WEIR_FIELD(weir_decision, time_ms,         TIME, WEIR_FIELD_COLUMN | WEIR_FIELD_FIRST, "ms", "When"),
    WEIR_FIELD(weir_decision, verdict,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "grant, deny, unknown, error or label"),
    WEIR_FIELD_SIZED(weir_decision, person, TEXT, WEIR_FIELD_COLUMN, 256, "", "Who was recognised"),
    WEIR_FIELD_SIZED(weir_decision, label, TEXT, WEIR_FIELD_COLUMN, 256, "", "What a classifier or detector took it for; of a number in a place what it is"),
    WEIR_FIELD_SIZED(weir_decision, labels, JSON, 0, 16 << 10, "", "The likeliest labels, [{label, score}]; null unless asked for"),
    WEIR_FIELD(weir_decision, score,           F64,  WEIR_FIELD_COLUMN, "", "Similarity to the nearest person, or the likeliest label's probability"),
    WEIR_FIELD(weir_decision, threshold,       F64,  WEIR_FIELD_COLUMN, "", "Score that was needed"),
    WEIR_FIELD(weir_decision, model_version,   INT,  WEIR_FIELD_COLUMN, "", "Model version that decided"),
    WEIR_FIELD(weir_decision, gallery_version, INT,  0, "", "Gallery version"),
    WEIR_FIELD(weir_decision, list_revision,   INT,  0, "", "Revision of the lists"),
    WEIR_FIELD(weir_decision, latency_us,      INT,  WEIR_FIELD_COLUMN, "us", "From frame to decision"),
    WEIR_FIELD(weir_decision, durable_us,      INT,  0, "us", "From frame to decision on disk"),
    WEIR_FIELD(weir_decision, brightness,      F64,  0, "", "Mean brightness of the frame"),
    WEIR_FIELD_SIZED(weir_decision, box, JSON, 0, 1024, "", "Where it is in the picture, in pixels: {x, y, w, h, of: how many were found}; null: no detector looked, or it found nothing"),
    WEIR_FIELD_SIZED(weir_decision, quality, JSON, 0, 1024, "", "How good the face is to recognise: {width, sharpness, yaw, pitch, roll, brightness}, and refused: why it was not compared"),
    WEIR_FIELD_SIZED(weir_decision, passage, JSON, 0, 16 << 10, "", "The frames that it rests on: {id, first, last, n_frames, n_counted, n_named, refused: {why: n}, rule: {n, m, accept, deny, gone_ms} or null where things are counted, nearest: [{person, score}] of the best frame, frames: [{time_ms, score, person, counts, why, box, is_best, bytes, has_picture}]}; null: one"),
    WEIR_FIELD_SIZED(weir_decision, counted, JSON, 0, 1024, "", "What has happened in a place where things are counted: {place, what: entered, left, long, crossed, over, under or within, to: right or left, n: how many are there now}; null: it is about no place"),
    WEIR_FIELD_SIZED(weir_decision, error, TEXT, 0, 1024, "", "What went wrong"),
    WEIR_FIELD(weir_decision, is_sandbox,      BOOL, 0, "", "It was made in the sandbox: it had no effect"),
    WEIR_FIELD(weir_decision, image,           TEXT, 0, "", "SHA-256 of the face"),
    WEIR_FIELD(weir_decision, pack,            INT,  WEIR_FIELD_SECRET, "", "Pack that holds the face"),
    WEIR_FIELD(weir_decision, pack_offset,     INT,  WEIR_FIELD_SECRET, "bytes", "Where in it"),
    WEIR_FIELD(weir_decision, pack_bytes,      INT,  WEIR_FIELD_SECRET, "bytes", "Its length, with the film"),
    WEIR_FIELD(weir_decision, film_bytes,      INT,  WEIR_FIELD_SECRET, "bytes", "Length of the film behind it"),
};
static const struct weir_field health_report_fields[] = {
    WEIR_FIELD(weir_health_report, id,            TEXT, WEIR_FIELD_KEY, "", "Identifier, made by the replica"),
    WEIR_FIELD(weir_health_report, seq,           INT,  WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_health_report, ion,           TEXT, WEIR_FIELD_REQUIRED, "", "ION"),
    WEIR_FIELD(weir_health_report, pipeline,      TEXT, WEIR_FIELD_REQUIRED, "", "Pipeline"),
    WEIR_FIELD(weir_health_report, replica,       TEXT, 0, "", "Replica that measured"),
    WEIR_FIELD(weir_health_report, signal,        TEXT, WEIR_FIELD_REQUIRED, "", "What was compared with the training data: score, brightness"),
    WEIR_FIELD(weir_health_report, statistic,     TEXT, WEIR_FIELD_REQUIRED, "", "How: ks, chi2 …"),
    WEIR_FIELD(weir_health_report, value,         F64,  0, "", "Value of the statistic"),
    WEIR_FIELD(weir_health_report, p_value,       F64,  0, "", "Chance of it without drift"),
    WEIR_FIELD(weir_health_report, drifted,       BOOL, 0, "", "Taken as drift"),
    WEIR_FIELD(weir_health_report, n_samples,     INT,  0, "", "Samples in the window"),
    WEIR_FIELD(weir_health_report, model_version, INT,  0, "", "Model version that served"),
    WEIR_FIELD_SIZED(weir_health_report, detail, JSON, 0, 64 << 10, "", "Histograms and more"),
    WEIR_FIELD(weir_health_report, time_ms,       TIME, 0, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_decision_resource =
    WEIR_RESOURCE("decision", "decisions", weir_decision, decision_fields);
const struct weir_resource weir_health_report_resource =
    WEIR_RESOURCE("health report", "health_reports", weir_health_report, health_report_fields);

const struct weir_noun weir_noun_decision = {
    "decisions", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("decisions", "What replicas decided about frames, one row each",
                        "The oldest go first.", 10, {WEIR_DAYS(30), WEIR_MB(1200)}, 570, 21,
                        .is_of_project = true, .by = WEIR_ROWS_NUMBERED, .time = "time_ms")},
    .captured = WEIR_CAPTURED("decisions", 110, .resource = &weir_decision_resource, .by = "ion",
                              .time = "time_ms"),
    .forgets = WEIR_FORGETS(.key = "id", .frozen_rename = "person", .frozen_within = "passage",
                            .picture = "image")};

const struct weir_noun weir_noun_health_report = {
    "health_reports", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("health-reports", "What the replicas' monitors found",
                        "The oldest go first.", 80, {WEIR_DAYS(30), WEIR_MB(80)}, 1200, 7,
                        .is_of_project = true, .by = WEIR_ROWS_NUMBERED, .time = "time_ms")},
    .captured = WEIR_CAPTURED("health-reports", 100, .resource = &weir_health_report_resource,
                              .by = "ion", .time = "time_ms")};

#define OF_NUMBER " WHERE ion = :ion AND camera = :camera AND frame = :frame"
#define OF_FRAME  OF_NUMBER " AND key IS NOT DISTINCT FROM :key"

static const char sql_frame_of_key[] =
    "SELECT camera, frame FROM decisions WHERE ion = :ion AND key = :key";
static const char sql_key_of_number[] =
    "SELECT key, frame FROM decisions" OF_NUMBER " AND key IS NOT NULL";
static const char sql_is_taken[] = "SELECT count(*) FROM decisions" OF_NUMBER;
static const char sql_renumber[] =
    "UPDATE decisions SET frame = :frame WHERE ion = :ion AND key = :key";
static const char sql_has_frame[] = "SELECT count(*) FROM decisions" OF_FRAME;
static const char sql_tried_picture[] =
    "SELECT id, pack, pack_offset, pack_bytes FROM decisions" OF_FRAME
    " AND is_sandbox = 1 AND pack <> 0";
static const char sql_forget_picture[] =
    "UPDATE decisions SET image = NULL, pack = 0, pack_offset = 0, pack_bytes = 0 WHERE id = :id";
static const char sql_count_tried[] =
    "SELECT count(*) FROM decisions" OF_FRAME " AND is_sandbox = 1";
static const char sql_drop_tried[] =
    "DELETE FROM decisions" OF_FRAME " AND is_sandbox = 1 AND pack = 0";
static const char sql_has_report[] = "SELECT count(*) FROM health_reports WHERE id = :id";
static const char sql_drifts_elsewhere[] =
    "SELECT count(*) FROM ion_replicas r WHERE r.ion = :ion AND r.pipeline = :pipeline"
    " AND r.replica IS DISTINCT FROM :replica AND (SELECT drifted FROM health_reports h WHERE "
    "h.ion = :ion"
    " AND h.pipeline = :pipeline AND h.signal = :signal AND h.replica = r.replica"
    " ORDER BY h.seq DESC LIMIT 1) = 1";
/* Two texts each, because either index is the right one only for its own bound. */
#define SUMMED                                                                                     \
    "SELECT CASE verdict WHEN 'grant' THEN 0 WHEN 'deny' THEN 1 WHEN 'unknown' THEN 2 "            \
    "WHEN 'label' THEN 4 ELSE 3 END, latency_us, durable_us, time_ms, seq "                        \
    "FROM decisions WHERE ion = :ion"
#define COUNTED "SELECT count(*) FROM (SELECT 1 FROM decisions WHERE ion = :ion"
static const char sql_after_seq[] =
    SUMMED " AND seq > :from AND time_ms < :until ORDER BY seq DESC LIMIT :max";
static const char sql_since[] =
    SUMMED " AND time_ms >= :from AND time_ms < :until ORDER BY time_ms DESC LIMIT :max";
static const char sql_count_after_seq[] =
    COUNTED " AND seq > :from AND time_ms < :until LIMIT :max) AS these";
static const char sql_count_since[] =
    COUNTED " AND time_ms >= :from AND time_ms < :until LIMIT :max) AS these";
static const char sql_has_older[] = COUNTED " AND time_ms < :from LIMIT :max) AS these";

#define NUMBER_BINDS_OF(decision)                                                                  \
    WEIR_BIND_TEXT("ion", (decision)->ion), WEIR_BIND_TEXT("camera", (decision)->camera),          \
        WEIR_BIND_INT("frame", (decision)->frame)
#define NUMBER_BINDS(decision) WEIR_BINDS(NUMBER_BINDS_OF(decision))
#define FRAME_BINDS(decision)                                                                      \
    WEIR_BINDS(NUMBER_BINDS_OF(decision), WEIR_BIND_TEXT("key", (decision)->key))

/* Camera and number are in one row at most. A keyed decision gets a number that none of its camera has. */
static weir_status free_number(struct weir_txn *txn, struct weir_decision *decision,
                               struct weir_error *err)
{
    int64_t n_there;
    WEIR_TRY(weir_txn_query_int(txn, sql_is_taken, NUMBER_BINDS(decision), 0, &n_there, err));
    while (n_there > 0) {
        uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, decision->key);
        decision->frame = decision->frame >= 0           ? -1 - (int64_t)(hash >> 1)
                          : decision->frame == INT64_MIN ? -1
                                                         : decision->frame - 1;
        WEIR_TRY(weir_txn_query_int(txn, sql_is_taken, NUMBER_BINDS(decision), 0, &n_there, err));
    }
    return WEIR_OK;
}

/* The first column of the first row, in the arena; NULL: there is none. */
static weir_status find_row(struct weir_stmt *stmt, struct weir_arena *arena,
                            struct weir_decision *in_out, char **out_text, struct weir_error *err)
{
    bool is_there = false;
    *out_text = NULL;
    weir_status status = weir_stmt_step(stmt, &is_there, err);
    if (is_there) {
        *out_text = weir_stmt_text(stmt, 0, arena);
        in_out->frame = weir_stmt_int(stmt, 1);
    }
    weir_stmt_close(stmt);
    return status;
}

/* Give a keyed decision the camera and number of the row about its frame. */
static weir_status resolve_key(struct weir_txn *txn, struct weir_arena *arena,
                               struct weir_decision *decision, struct weir_error *err)
{
    struct weir_stmt *stmt;
    char *camera;
    if (decision->key == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_stmt_open(
        txn, sql_frame_of_key,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", decision->ion), WEIR_BIND_TEXT("key", decision->key)),
        &stmt, err));
    WEIR_TRY(find_row(stmt, arena, decision, &camera, err));
    decision->camera = camera != NULL ? camera : decision->camera;
    return WEIR_OK;
}

/* Before a row is added: a numbered frame has its number, whatever keyed one has it now. */
static weir_status take_number(struct weir_txn *txn, struct weir_arena *arena,
                               struct weir_decision *decision, struct weir_error *err)
{
    struct weir_stmt *stmt;
    struct weir_decision other = *decision;
    if (decision->key != NULL) {
        return free_number(txn, decision, err);
    }
    WEIR_TRY(weir_stmt_open(txn, sql_key_of_number, NUMBER_BINDS(decision), &stmt, err));
    WEIR_TRY(find_row(stmt, arena, &other, &other.key, err));
    if (other.key == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(free_number(txn, &other, err));
    return weir_txn_exec(txn, sql_renumber,
                         WEIR_BINDS(WEIR_BIND_INT("frame", other.frame),
                                    WEIR_BIND_TEXT("ion", other.ion),
                                    WEIR_BIND_TEXT("key", other.key)),
                         NULL, err);
}

/* At most one row has the frame. */
static weir_status find_replaced(struct weir_txn *txn, const struct weir_decision *decision,
                                 struct weir_arena *arena, struct weir_decision_picture *out,
                                 bool *out_is_there, struct weir_error *err)
{
    struct weir_stmt *stmt;
    WEIR_TRY(weir_stmt_open(txn, sql_tried_picture, FRAME_BINDS(decision), &stmt, err));
    weir_status status = weir_stmt_step(stmt, out_is_there, err);
    if (status == WEIR_OK && *out_is_there) {
        *out = (struct weir_decision_picture){.id = weir_stmt_text(stmt, 0, arena),
                                              .pack = weir_stmt_int(stmt, 1),
                                              .offset = weir_stmt_int(stmt, 2),
                                              .bytes = weir_stmt_int(stmt, 3)};
    }
    weir_stmt_close(stmt);
    return status;
}

weir_status weir_decisions_replaced(struct weir_txn *txn, const struct weir_decision *decisions,
                                    size_t n, struct weir_arena *arena,
                                    struct weir_decision_picture **out, size_t *out_n,
                                    struct weir_error *err)
{
    struct weir_decision_picture *pictures =
        WEIR_ARENA_ARRAY(arena, n + 1, struct weir_decision_picture);
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_there = false;
        struct weir_decision named = decisions[i];
        WEIR_TRY(resolve_key(txn, arena, &named, err));
        if (!named.is_sandbox) {
            WEIR_TRY(find_replaced(txn, &named, arena, &pictures[n_found], &is_there, err));
        }
        n_found += is_there;
    }
    *out = pictures;
    *out_n = n_found;
    return WEIR_OK;
}

/* A frame that was only tried, and has now been decided: what had an effect counts. */
static weir_status drop_tried(struct weir_txn *txn, const struct weir_decision *decision,
                              int64_t *out_n, struct weir_error *err)
{
    int64_t n_tried;
    WEIR_TRY(weir_txn_query_int(txn, sql_count_tried, FRAME_BINDS(decision), 0, &n_tried, err));
    WEIR_TRY(weir_txn_exec(txn, sql_drop_tried, FRAME_BINDS(decision), out_n, err));
    return *out_n == n_tried
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CONFLICT,
                                "frame %lld of %s was tried meanwhile: ship its decision again",
                                (long long)decision->frame, decision->camera);
}

static weir_status store_one(struct weir_txn *txn, const struct weir_decision *decision,
                             struct weir_arena *arena, size_t *n_stored, struct weir_error *err)
{
    int64_t n_there, n_dropped = 0;
    struct weir_decision numbered = *decision;
    WEIR_TRY(resolve_key(txn, arena, &numbered, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_has_frame, FRAME_BINDS(&numbered), 0, &n_there, err));
    if (n_there > 0 && !numbered.is_sandbox) {
        WEIR_TRY(drop_tried(txn, &numbered, &n_dropped, err));
    }
    if (n_there > n_dropped) {
        return WEIR_OK;
    }
    WEIR_TRY(take_number(txn, arena, &numbered, err));
    WEIR_TRY(weir_txn_next(txn, "decisions", &numbered.seq, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_decision_resource, &numbered, err));
    (*n_stored)++;
    return WEIR_OK;
}

weir_status weir_decisions_store(struct weir_txn *txn, const struct weir_decision *decisions,
                                 size_t n, const struct weir_decision_picture *erased,
                                 size_t n_erased, size_t *out_stored, struct weir_error *err)
{
    size_t n_stored = 0;
    struct weir_arena arena;
    for (size_t i = 0; i < n_erased; i++) {
        WEIR_TRY(weir_txn_exec(txn, sql_forget_picture,
                               WEIR_BINDS(WEIR_BIND_TEXT("id", erased[i].id)), NULL, err));
    }
    weir_arena_init(&arena, 0);
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        status = store_one(txn, &decisions[i], &arena, &n_stored, err);
    }
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    *out_stored = n_stored;
    return WEIR_OK;
}

weir_status weir_health_report_store(struct weir_txn *txn, const struct weir_health_report *report,
                                     struct weir_error *err)
{
    int64_t n_there;
    WEIR_TRY(weir_txn_query_int(txn, sql_has_report, WEIR_BINDS(WEIR_BIND_TEXT("id", report->id)),
                                0, &n_there, err));
    if (n_there > 0) {
        return WEIR_OK;
    }
    struct weir_health_report numbered = *report;
    WEIR_TRY(weir_txn_next(txn, "health_reports", &numbered.seq, err));
    return weir_txn_insert(txn, &weir_health_report_resource, &numbered, err);
}

weir_status weir_health_drifts_elsewhere(struct weir_txn *txn,
                                         const struct weir_health_report *report, bool *out,
                                         struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_query_int(txn, sql_drifts_elsewhere,
                                WEIR_BINDS(WEIR_BIND_TEXT("ion", report->ion),
                                           WEIR_BIND_TEXT("pipeline", report->pipeline),
                                           WEIR_BIND_TEXT("signal", report->signal),
                                           WEIR_BIND_TEXT("replica", report->replica)),
                                0, &n, err));
    *out = n > 0;
    return WEIR_OK;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nearest rank: the smallest value that at least `pct` percent of all do not exceed. */
static int64_t quantile(const int64_t *sorted, int64_t n, int64_t pct)
{
    return n == 0 ? -1 : sorted[WEIR_MAX((pct * n + 99) / 100 - 1, 0)];
}

/* The rows of a window, newest first: their verdicts counted, their times side by side. */
struct rows {
    int64_t n;
    int64_t by_verdict[5]; /**< grant, deny, unknown, error, label */
    int64_t *latency_us, *durable_us;
    int64_t oldest_ms, last_seq;
    const struct weir_decision_window *window;
    struct weir_decision_bucket *buckets; /**< Of the window. */
};

static void count_in_bucket(struct rows *rows, int64_t verdict, int64_t time_ms)
{
    const struct weir_decision_window *window = rows->window;
    int64_t span_ms = window->until_ms - window->since_ms;
    int64_t place = (time_ms - window->since_ms) * (int64_t)window->n_buckets / span_ms;
    struct weir_decision_bucket *bucket = &rows->buckets[place];
    int64_t *counts[] = {&bucket->n_grant, &bucket->n_deny, &bucket->n_unknown, &bucket->n_error,
                         &bucket->n_label};
    (*counts[verdict])++;
}

static weir_status read_rows(struct weir_stmt *stmt, int64_t max, struct rows *rows,
                             struct weir_error *err)
{
    bool has_row;
    weir_status status;
    while ((status = weir_stmt_step(stmt, &has_row, err)) == WEIR_OK && has_row && rows->n < max) {
        rows->by_verdict[weir_stmt_int(stmt, 0)]++;
        rows->latency_us[rows->n] = weir_stmt_int(stmt, 1);
        rows->durable_us[rows->n] = weir_stmt_int(stmt, 2);
        rows->oldest_ms = weir_stmt_int(stmt, 3);
        rows->last_seq = WEIR_MAX(rows->last_seq, weir_stmt_int(stmt, 4));
        rows->n++;
        if (rows->buckets != NULL) {
            count_in_bucket(rows, weir_stmt_int(stmt, 0), rows->oldest_ms);
        }
    }
    return status;
}

static void make_buckets(const struct weir_decision_window *window, struct weir_arena *arena,
                         struct rows *rows)
{
    rows->window = window;
    if (window->n_buckets == 0 || window->until_ms <= window->since_ms || window->since_ms <= 0) {
        return;
    }
    int64_t span_ms = window->until_ms - window->since_ms;
    rows->buckets = WEIR_ARENA_ARRAY(arena, window->n_buckets, struct weir_decision_bucket);
    for (size_t i = 0; i < window->n_buckets; i++) {
        rows->buckets[i] = (struct weir_decision_bucket){
            .from_ms = window->since_ms + span_ms * (int64_t)i / (int64_t)window->n_buckets};
    }
}

static weir_status load_rows(struct weir_txn *txn, const struct weir_decision_window *window,
                             struct weir_arena *arena, struct rows *rows, struct weir_error *err)
{
    bool is_timed = window->since_ms > 0;
    int64_t max;
    const struct weir_bind binds[] = {
        WEIR_BIND_TEXT("ion", window->ion),
        WEIR_BIND_INT("from", is_timed ? window->since_ms : window->after_seq),
        WEIR_BIND_INT("until", window->until_ms > 0 ? window->until_ms : INT64_MAX),
        WEIR_BIND_INT("max", WEIR_DECISION_SUMMARY_MAX)};
    WEIR_TRY(weir_txn_query_int(txn, is_timed ? sql_count_since : sql_count_after_seq, binds,
                                WEIR_ARRAY_LEN(binds), 0, &max, err));
    rows->latency_us = WEIR_ARENA_ARRAY(arena, (size_t)max + 1, int64_t);
    rows->durable_us = WEIR_ARENA_ARRAY(arena, (size_t)max + 1, int64_t);
    struct weir_stmt *stmt;
    WEIR_TRY(weir_stmt_open(txn, is_timed ? sql_since : sql_after_seq, binds, WEIR_ARRAY_LEN(binds),
                            &stmt, err));
    weir_status status = read_rows(stmt, max, rows, err);
    weir_stmt_close(stmt);
    qsort(rows->latency_us, (size_t)rows->n, sizeof(int64_t), compare_times);
    qsort(rows->durable_us, (size_t)rows->n, sizeof(int64_t), compare_times);
    return status;
}

/* From when on the counts are complete, see struct weir_decision_summary. */
static weir_status covered_from(struct weir_txn *txn, const struct weir_decision_window *window,
                                const struct rows *rows, int64_t *out, struct weir_error *err)
{
    int64_t n_older = 0;
    if (rows->n > 0 && rows->n < WEIR_DECISION_SUMMARY_MAX && window->since_ms > 0) {
        WEIR_TRY(weir_txn_query_int(txn, sql_has_older,
                                    WEIR_BINDS(WEIR_BIND_TEXT("ion", window->ion),
                                               WEIR_BIND_INT("from", window->since_ms),
                                               WEIR_BIND_INT("max", 1)),
                                    0, &n_older, err));
    }
    *out = n_older > 0 ? window->since_ms : rows->oldest_ms;
    return WEIR_OK;
}

weir_status weir_decisions_summary(struct weir_txn *txn, const struct weir_decision_window *window,
                                   struct weir_arena *arena, struct weir_decision_summary *out,
                                   struct weir_error *err)
{
    struct rows rows = {0};
    struct weir_decision_summary sum = {0};
    make_buckets(window, arena, &rows);
    WEIR_TRY(load_rows(txn, window, arena, &rows, err));
    WEIR_TRY(covered_from(txn, window, &rows, &sum.from_ms, err));
    sum.n = rows.n;
    sum.n_grant = rows.by_verdict[0];
    sum.n_deny = rows.by_verdict[1];
    sum.n_unknown = rows.by_verdict[2];
    sum.n_error = rows.by_verdict[3];
    sum.n_label = rows.by_verdict[4];
    sum.latency_p50_us = quantile(rows.latency_us, rows.n, 50);
    sum.latency_p90_us = quantile(rows.latency_us, rows.n, 90);
    sum.latency_p99_us = quantile(rows.latency_us, rows.n, 99);
    sum.latency_max_us = quantile(rows.latency_us, rows.n, 100);
    sum.durable_p99_us = quantile(rows.durable_us, rows.n, 99);
    sum.last_seq = rows.last_seq;
    sum.buckets = rows.buckets;
    *out = sum;
    return WEIR_OK;
}
