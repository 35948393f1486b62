#include "ion/decision.h"

#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field decision_fields[] = {
    WEIR_FIELD(weir_decision, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED, "", "Identifier, made by the replica"),
    WEIR_FIELD(weir_decision, seq,             INT,  WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_decision, ion,             TEXT, WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_decision, pipeline,        TEXT, 0, "", "Pipeline"),
    WEIR_FIELD(weir_decision, replica,         TEXT, 0, "", "Replica that decided"),
    WEIR_FIELD_SIZED(weir_decision, camera, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 256, "", "Camera"),
    WEIR_FIELD(weir_decision, frame,           INT,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Number of the frame"),
    WEIR_FIELD(weir_decision, time_ms,         TIME, WEIR_FIELD_COLUMN, "ms", "When"),
    WEIR_FIELD(weir_decision, verdict,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "grant, deny, unknown or error"),
    WEIR_FIELD_SIZED(weir_decision, person, TEXT, WEIR_FIELD_COLUMN, 256, "", "Who was recognised"),
    WEIR_FIELD(weir_decision, score,           F64,  WEIR_FIELD_COLUMN, "", "Similarity to the nearest person"),
    WEIR_FIELD(weir_decision, threshold,       F64,  0, "", "Similarity that was needed"),
    WEIR_FIELD(weir_decision, model_version,   INT,  WEIR_FIELD_COLUMN, "", "Model version that decided"),
    WEIR_FIELD(weir_decision, gallery_version, INT,  0, "", "Gallery version"),
    WEIR_FIELD(weir_decision, list_revision,   INT,  0, "", "Revision of the lists"),
    WEIR_FIELD(weir_decision, latency_us,      INT,  WEIR_FIELD_COLUMN, "us", "From frame to decision"),
    WEIR_FIELD(weir_decision, durable_us,      INT,  0, "us", "From frame to decision on disk"),
    WEIR_FIELD(weir_decision, brightness,      F64,  0, "", "Mean brightness of the frame"),
    WEIR_FIELD_SIZED(weir_decision, error, TEXT, 0, 1024, "", "What went wrong"),
    WEIR_FIELD(weir_decision, image,           TEXT, 0, "", "SHA-256 of the face"),
};
static const struct weir_field health_report_fields[] = {
    WEIR_FIELD(weir_health_report, id,            TEXT, WEIR_FIELD_KEY, "", "Identifier, made by the replica"),
    WEIR_FIELD(weir_health_report, seq,           INT,  WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_health_report, ion,           TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_health_report, pipeline,      TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Pipeline"),
    WEIR_FIELD(weir_health_report, replica,       TEXT, 0, "", "Replica that measured"),
    WEIR_FIELD(weir_health_report, signal,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "What was compared with the training data: score, brightness"),
    WEIR_FIELD(weir_health_report, statistic,     TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "How: ks, chi2 …"),
    WEIR_FIELD(weir_health_report, value,         F64,  WEIR_FIELD_COLUMN, "", "Value of the statistic"),
    WEIR_FIELD(weir_health_report, p_value,       F64,  WEIR_FIELD_COLUMN, "", "Chance of it without drift"),
    WEIR_FIELD(weir_health_report, drifted,       BOOL, WEIR_FIELD_COLUMN, "", "Taken as drift"),
    WEIR_FIELD(weir_health_report, n_samples,     INT,  WEIR_FIELD_COLUMN, "", "Samples in the window"),
    WEIR_FIELD(weir_health_report, model_version, INT,  0, "", "Model version that served"),
    WEIR_FIELD_SIZED(weir_health_report, detail, JSON, 0, 64 << 10, "", "Histograms and more"),
    WEIR_FIELD(weir_health_report, time_ms,       TIME, WEIR_FIELD_COLUMN, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_decision_resource =
    WEIR_RESOURCE("decision", "decisions", weir_decision, decision_fields);
const struct weir_resource weir_health_report_resource =
    WEIR_RESOURCE("health report", "health_reports", weir_health_report, health_report_fields);

static const char sql_has_frame[] =
    "SELECT count(*) FROM decisions WHERE ion = :ion AND camera = :camera AND frame = :frame";
static const char sql_has_report[] = "SELECT count(*) FROM health_reports WHERE id = :id";
static const char sql_last_seq[] =
    "SELECT max(seq) FROM decisions WHERE ion = :ion AND seq > :after";
static const char sql_verdicts[] =
    "SELECT count(*) FROM decisions WHERE ion = :ion AND seq > :after AND verdict = :verdict";
static const char sql_latency_rank[] = "SELECT latency_us FROM decisions WHERE ion = :ion AND"
                                       " seq > :after ORDER BY latency_us LIMIT 1 OFFSET :rank";
static const char sql_durable_rank[] = "SELECT durable_us FROM decisions WHERE ion = :ion AND"
                                       " seq > :after ORDER BY durable_us LIMIT 1 OFFSET :rank";

static weir_status store_one(struct weir_txn *txn, const struct weir_decision *decision,
                             size_t *n_stored, struct weir_error *err)
{
    int64_t n_there;
    WEIR_TRY(weir_txn_query_int(txn, sql_has_frame,
                                WEIR_BINDS(WEIR_BIND_TEXT("ion", decision->ion),
                                           WEIR_BIND_TEXT("camera", decision->camera),
                                           WEIR_BIND_INT("frame", decision->frame)),
                                0, &n_there, err));
    if (n_there > 0) {
        return WEIR_OK;
    }
    struct weir_decision numbered = *decision;
    WEIR_TRY(weir_txn_next(txn, "decisions", &numbered.seq, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_decision_resource, &numbered, err));
    (*n_stored)++;
    return WEIR_OK;
}

weir_status weir_decisions_store(struct weir_txn *txn, const struct weir_decision *decisions,
                                 size_t n, size_t *out_stored, struct weir_error *err)
{
    size_t n_stored = 0;
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(store_one(txn, &decisions[i], &n_stored, err));
    }
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

/** The ION and the part of its decisions that are summed up. */
struct range {
    struct weir_txn *txn;
    const char *ion;
    int64_t after;
    int64_t n;
};

static weir_status count_verdict(const struct range *range, const char *verdict, int64_t *out,
                                 struct weir_error *err)
{
    return weir_txn_query_int(range->txn, sql_verdicts,
                              WEIR_BINDS(WEIR_BIND_TEXT("ion", range->ion),
                                         WEIR_BIND_INT("after", range->after),
                                         WEIR_BIND_TEXT("verdict", verdict)),
                              0, out, err);
}

/** Nearest rank: the smallest value that at least `pct` percent of all do not exceed. */
static weir_status quantile(const struct range *range, const char *sql, int64_t pct, int64_t *out,
                            struct weir_error *err)
{
    int64_t rank = (pct * range->n + 99) / 100 - 1;
    return weir_txn_query_int(range->txn, sql,
                              WEIR_BINDS(WEIR_BIND_TEXT("ion", range->ion),
                                         WEIR_BIND_INT("after", range->after),
                                         WEIR_BIND_INT("rank", WEIR_MAX(rank, 0))),
                              -1, out, err);
}

weir_status weir_decisions_summary(struct weir_txn *txn, const char *ion, int64_t after_seq,
                                   struct weir_decision_summary *out, struct weir_error *err)
{
    struct weir_decision_summary sum = {0};
    struct range range = {txn, ion, after_seq, 0};
    WEIR_TRY(weir_txn_query_int(
        txn, sql_last_seq,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_INT("after", after_seq)), 0, &sum.last_seq,
        err));
    WEIR_TRY(count_verdict(&range, "grant", &sum.n_grant, err));
    WEIR_TRY(count_verdict(&range, "deny", &sum.n_deny, err));
    WEIR_TRY(count_verdict(&range, "unknown", &sum.n_unknown, err));
    WEIR_TRY(count_verdict(&range, "error", &sum.n_error, err));
    sum.n = range.n = sum.n_grant + sum.n_deny + sum.n_unknown + sum.n_error;
    WEIR_TRY(quantile(&range, sql_latency_rank, 50, &sum.latency_p50_us, err));
    WEIR_TRY(quantile(&range, sql_latency_rank, 90, &sum.latency_p90_us, err));
    WEIR_TRY(quantile(&range, sql_latency_rank, 99, &sum.latency_p99_us, err));
    WEIR_TRY(quantile(&range, sql_latency_rank, 100, &sum.latency_max_us, err));
    WEIR_TRY(quantile(&range, sql_durable_rank, 99, &sum.durable_p99_us, err));
    *out = sum;
    return WEIR_OK;
}
