#include "ion/feedback.h"

#include "base/clock.h"
#include "ion/decision.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

// clang-format off
static const struct weir_field feedback_fields[] = {
    WEIR_FIELD(weir_feedback, decision,      TEXT, WEIR_FIELD_KEY | WEIR_FIELD_COLUMN, "", "Identifier of the decision"),
    WEIR_FIELD(weir_feedback, seq,           INT,  WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_feedback, ion,           TEXT, WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_feedback, pipeline,      TEXT, 0, "", "Pipeline"),
    WEIR_FIELD(weir_feedback, camera,        TEXT, WEIR_FIELD_COLUMN, "", "Camera"),
    WEIR_FIELD(weir_feedback, model_version, INT,  WEIR_FIELD_COLUMN, "", "Model version that decided"),
    WEIR_FIELD_SIZED(weir_feedback, decided, TEXT, WEIR_FIELD_COLUMN, 256, "", "What it said: a person, a label, or unknown"),
    WEIR_FIELD_SIZED(weir_feedback, truth, TEXT, WEIR_FIELD_COLUMN, 256, "", "What it should have said"),
    WEIR_FIELD(weir_feedback, is_right,      BOOL, WEIR_FIELD_COLUMN, "", "They are the same"),
    WEIR_FIELD(weir_feedback, score,         F64,  0, "", "Score of the decision"),
    WEIR_FIELD(weir_feedback, decided_ms,    TIME, 0, "ms", "When it was decided"),
    WEIR_FIELD(weir_feedback, actor,         TEXT, WEIR_FIELD_COLUMN, "", "Who told the truth"),
    WEIR_FIELD(weir_feedback, time_ms,       TIME, WEIR_FIELD_COLUMN, "ms", "When it was told"),
};
// clang-format on

const struct weir_resource weir_feedback_resource =
    WEIR_RESOURCE("feedback", "feedback", weir_feedback, feedback_fields);

const struct weir_noun weir_noun_feedback = {
    "feedback", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("feedback", "What decisions turned out to be", "The oldest go first.", 100,
                        {WEIR_DAYS(365), WEIR_MB(30)}, 400, 5, .is_of_project = true,
                        .by = WEIR_ROWS_NUMBERED, .time = "time_ms")},
    .captured = WEIR_CAPTURED("feedback", 120, .resource = &weir_feedback_resource, .by = "ion",
                              .time = "decided_ms"),
    .forgets = WEIR_FORGETS(.key = "decision", .renamed = {"truth", "decided"})};

bool weir_feedback_is_plain(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        bool is_c1 = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0; /* U+0080 to U+009F */
        if (*c < 0x20 || *c == 0x7F || is_c1) {
            return false;
        }
    }
    return *text != '\0' && strlen(text) <= WEIR_FEEDBACK_TRUTH_MAX_BYTES;
}

static char *said_by(const struct weir_decision *decision, struct weir_arena *arena)
{
    const char *said = NULL;
    if (strcmp(decision->verdict, "label") == 0) {
        said = decision->label;
    } else if (strcmp(decision->verdict, "unknown") != 0) {
        said = decision->person;
    }
    return said != NULL ? (char *)said : weir_arena_strdup(arena, WEIR_FEEDBACK_UNKNOWN);
}

weir_status weir_feedback_store(struct weir_txn *txn, const char *decision_id, const char *truth,
                                const char *actor, int64_t now_ms, struct weir_arena *arena,
                                struct weir_feedback *out, struct weir_error *err)
{
    struct weir_decision decision;
    if (truth == NULL || !weir_feedback_is_plain(truth)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.truth: expected a person, a label or \"" WEIR_FEEDBACK_UNKNOWN
                              "\", at most %d bytes without control characters",
                              WEIR_FEEDBACK_TRUTH_MAX_BYTES);
    }
    WEIR_TRY(weir_txn_get(txn, &weir_decision_resource, decision_id, arena, &decision, err));
    if (strcmp(decision.verdict, "error") == 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "decision %s is an error: nothing was decided that could be right",
                              decision.id);
    }
    struct weir_feedback row = {
        .decision = decision.id,
        .ion = decision.ion,
        .pipeline = decision.pipeline,
        .camera = decision.camera,
        .model_version = decision.model_version,
        .decided = said_by(&decision, arena),
        .truth = weir_arena_strdup(arena, truth),
        .score = decision.score,
        .decided_ms = decision.time_ms,
        .actor = weir_arena_strdup(arena, actor),
        .time_ms = now_ms,
    };
    row.is_right = strcmp(row.decided, row.truth) == 0;
    WEIR_TRY(weir_txn_next(txn, "feedback", &row.seq, err));
    WEIR_TRY(weir_txn_upsert(txn, &weir_feedback_resource, &row, err));
    *out = row;
    return WEIR_OK;
}

/* ---- accuracy -------------------------------------------------------------------------------- */

#define OF_ION                                                                                     \
    " FROM feedback WHERE ion = :ion AND decided_ms >= :since AND "                                \
    "(pipeline = :pipeline OR :pipeline IS NULL)"
#define COUNTS                                                                                     \
    " count(*), coalesce(sum(is_right), 0),"                                                       \
    " coalesce(sum(is_right = 0 AND decided <> '" WEIR_FEEDBACK_UNKNOWN "'), 0),"                  \
    " coalesce(sum(is_right = 0 AND decided = '" WEIR_FEEDBACK_UNKNOWN "'), 0)"
#define N_COUNTS 4

static const char sql_accuracy[] = "SELECT" COUNTS OF_ION;

#define GROUPED(column)                                                                            \
    "SELECT" COUNTS ", " column " AS place" OF_ION                                                 \
    " GROUP BY place ORDER BY count(*) - sum(is_right) DESC, count(*) DESC, place LIMIT :max"

const char *const weir_feedback_groupings[] = {"camera",   "truth", "decided", "model_version",
                                               "pipeline", "day",   NULL};
static const char *const sql_groups[] = {
    GROUPED("camera"),   GROUPED("truth"),
    GROUPED("decided"),  GROUPED("CAST(model_version AS TEXT)"),
    GROUPED("pipeline"), GROUPED("CAST(decided_ms / 86400000 AS TEXT)"),
};

struct weir_accuracy weir_accuracy_of(int64_t n, int64_t n_right)
{
    struct weir_accuracy out = {.n = n, .n_right = n_right, .accuracy = NAN, .low = 0, .high = 1};
    if (n <= 0) {
        return out;
    }
    const double z = 1.959963984540054; /* 97.5 % of the normal distribution */
    double size = (double)n, p = (double)n_right / size, z2 = z * z / size;
    double middle = (p + z2 / 2) / (1 + z2);
    double half = z / (1 + z2) * sqrt(p * (1 - p) / size + z2 / (4 * size));
    out.accuracy = p;
    out.low = WEIR_MAX(middle - half, 0.0);
    out.high = WEIR_MIN(middle + half, 1.0);
    return out;
}

/* The first columns of a row of COUNTS. */
static struct weir_accuracy accuracy_in(const struct weir_stmt *row)
{
    struct weir_accuracy out = weir_accuracy_of(weir_stmt_int(row, 0), weir_stmt_int(row, 1));
    out.n_taken = weir_stmt_int(row, 2);
    out.n_missed = weir_stmt_int(row, 3);
    return out;
}

weir_status weir_feedback_accuracy(struct weir_txn *txn, const char *ion, const char *pipeline,
                                   int64_t since_ms, struct weir_accuracy *out,
                                   struct weir_error *err)
{
    struct weir_stmt *stmt;
    bool has_row;
    WEIR_TRY(
        weir_stmt_open(txn, sql_accuracy,
                       WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_TEXT("pipeline", pipeline),
                                  WEIR_BIND_INT("since", since_ms)),
                       &stmt, err));
    weir_status status = weir_stmt_step(stmt, &has_row, err);
    if (status == WEIR_OK) {
        *out = has_row ? accuracy_in(stmt) : weir_accuracy_of(0, 0);
    }
    weir_stmt_close(stmt);
    return status;
}

static weir_status find_grouping(const char *by, const char **out_sql, struct weir_error *err)
{
    for (size_t i = 0; weir_feedback_groupings[i] != NULL; i++) {
        if (strcmp(weir_feedback_groupings[i], by) == 0) {
            *out_sql = sql_groups[i];
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "errors are not grouped by \"%.40s\"; by camera, truth, decided, "
                          "model_version, pipeline or day they are",
                          by);
}

/* What a group is called: a day is counted from 1970 on. */
static char *group_name(const struct weir_stmt *row, const char *by, struct weir_arena *arena)
{
    char day[WEIR_TIME_TEXT_BYTES];
    if (strcmp(by, "day") != 0) {
        return weir_stmt_text(row, N_COUNTS, arena);
    }
    weir_time_format(weir_stmt_int(row, N_COUNTS) * 86400000, day);
    day[strlen("2026-01-01")] = '\0';
    return weir_arena_strdup(arena, day);
}

weir_status weir_feedback_groups(struct weir_txn *txn, const char *ion, const char *pipeline,
                                 int64_t since_ms, const char *by, struct weir_arena *arena,
                                 struct weir_accuracy_group **out, size_t *out_n,
                                 struct weir_error *err)
{
    const char *sql = NULL;
    struct weir_stmt *stmt;
    bool has_row;
    size_t n = 0;
    weir_status status;
    WEIR_TRY(find_grouping(by, &sql, err));
    WEIR_TRY(
        weir_stmt_open(txn, sql,
                       WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_TEXT("pipeline", pipeline),
                                  WEIR_BIND_INT("since", since_ms),
                                  WEIR_BIND_INT("max", WEIR_ACCURACY_GROUPS_MAX)),
                       &stmt, err));
    struct weir_accuracy_group *groups =
        WEIR_ARENA_ARRAY(arena, WEIR_ACCURACY_GROUPS_MAX, struct weir_accuracy_group);
    while ((status = weir_stmt_step(stmt, &has_row, err)) == WEIR_OK && has_row &&
           n < WEIR_ACCURACY_GROUPS_MAX) {
        groups[n++] = (struct weir_accuracy_group){.name = group_name(stmt, by, arena),
                                                   .accuracy = accuracy_in(stmt)};
    }
    weir_stmt_close(stmt);
    *out = groups;
    *out_n = n;
    return status;
}
