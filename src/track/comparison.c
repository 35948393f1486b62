#include "track/comparison.h"

#include "store/stmt.h"
#include "store/table.h"
#include "track/track.h"

#include <string.h>

#define FOUND_MAX 100 /* comparisons of one version that are looked at */

// clang-format off
static const struct weir_field comparison_fields[] = {
    WEIR_FIELD(weir_comparison, run,               TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Run that measured"),
    WEIR_FIELD(weir_comparison, model,             TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Model that was measured"),
    WEIR_FIELD(weir_comparison, version,           INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Its version"),
    WEIR_FIELD(weir_comparison, live_model,        TEXT, WEIR_FIELD_READ_ONLY, "", "Model that it was compared with"),
    WEIR_FIELD(weir_comparison, live_version,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Its version"),
    WEIR_FIELD(weir_comparison, dataset,           TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Dataset with the pictures"),
    WEIR_FIELD(weir_comparison, dataset_version,   INT,  WEIR_FIELD_READ_ONLY, "", "Its version"),
    WEIR_FIELD(weir_comparison, n_samples,         INT,  WEIR_FIELD_COLUMN, "", "Pictures that both were asked"),
    WEIR_FIELD(weir_comparison, n_errors,          INT,  0, "", "Pictures that cannot be read"),
    WEIR_FIELD(weir_comparison, accuracy,          F64,  0, "", "Share on which the version is right"),
    WEIR_FIELD(weir_comparison, live_accuracy,     F64,  0, "", "Share on which the other is right"),
    WEIR_FIELD(weir_comparison, p_value,           F64,  0, "", "Of the exact McNemar test, two-sided"),
    WEIR_FIELD(weir_comparison, better,            INT,  0, "", "1: the version is better, -1: it is worse, 0: nobody can say"),
    WEIR_FIELD(weir_comparison, n_live_right,      INT,  0, "", "Pictures on which the live model alone is right"),
    WEIR_FIELD(weir_comparison, n_candidate_right, INT,  0, "", "Pictures on which the version alone is right"),
    WEIR_FIELD(weir_comparison, n_both_wrong,      INT,  0, "", "Pictures on which both are wrong, with different answers"),
    WEIR_FIELD(weir_comparison, n_kept,            INT,  WEIR_FIELD_READ_ONLY, "", "Of those three, how many the sample has"),
    WEIR_FIELD(weir_comparison, confusions,        JSON, 0, "", "The most frequent wrong answers: [{label, answer, n, live_n}]"),
    WEIR_FIELD(weir_comparison, time_ms,           TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was measured"),
};
static const struct weir_field disagreement_fields[] = {
    WEIR_FIELD(weir_disagreement, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_disagreement, run,         TEXT, WEIR_FIELD_READ_ONLY, "", "Run that measured"),
    WEIR_FIELD(weir_disagreement, place,       INT,  WEIR_FIELD_READ_ONLY, "", "Place in the sample, from 0"),
    WEIR_FIELD(weir_disagreement, kind,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "live-right, candidate-right or both-wrong"),
    WEIR_FIELD(weir_disagreement, file,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "CLASS/FILE of the dataset version"),
    WEIR_FIELD(weir_disagreement, sha256,      TEXT, 0, "", "SHA-256 of the picture; of an uploaded dataset GET /blobs has it"),
    WEIR_FIELD(weir_disagreement, label,       TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "What it is"),
    WEIR_FIELD(weir_disagreement, answer,      TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "What the version says"),
    WEIR_FIELD(weir_disagreement, score,       F64,  WEIR_FIELD_COLUMN, "", "Probability that it gives to that"),
    WEIR_FIELD(weir_disagreement, live_answer, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "What the live model says"),
    WEIR_FIELD(weir_disagreement, live_score,  F64,  WEIR_FIELD_COLUMN, "", "Probability that it gives to that"),
};
// clang-format on

const struct weir_resource weir_comparison_resource =
    WEIR_RESOURCE("comparison", "comparisons", weir_comparison, comparison_fields);
const struct weir_resource weir_disagreement_resource =
    WEIR_RESOURCE("disagreement", "disagreements", weir_disagreement, disagreement_fields);

static const char sql_drop_rows[] = "DELETE FROM disagreements WHERE run = :run";

static bool is_kind(const char *kind)
{
    return strcmp(kind, WEIR_DISAGREEMENT_LIVE_RIGHT) == 0 ||
           strcmp(kind, WEIR_DISAGREEMENT_CANDIDATE_RIGHT) == 0 ||
           strcmp(kind, WEIR_DISAGREEMENT_BOTH_WRONG) == 0;
}

/* The kind that follows from the answers; NULL: they do not differ. */
static const char *kind_of(const struct weir_disagreement *row)
{
    if (strcmp(row->answer, row->live_answer) == 0) {
        return NULL;
    }
    if (strcmp(row->live_answer, row->label) == 0) {
        return WEIR_DISAGREEMENT_LIVE_RIGHT;
    }
    return strcmp(row->answer, row->label) == 0 ? WEIR_DISAGREEMENT_CANDIDATE_RIGHT
                                                : WEIR_DISAGREEMENT_BOTH_WRONG;
}

static weir_status check_rows(const struct weir_disagreement *rows, size_t n,
                              struct weir_error *err)
{
    if (n > WEIR_DISAGREEMENTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.disagreements: expected at most %d",
                              WEIR_DISAGREEMENTS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        const char *kind = kind_of(&rows[i]);
        if (kind == NULL || strcmp(kind, rows[i].kind) != 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.disagreements[%zu].kind: by label and answers %s is expected",
                                  i, kind != NULL ? kind : "no disagreement");
        }
    }
    return WEIR_OK;
}

weir_status weir_comparison_put(struct weir_txn *txn, const struct weir_comparison *comparison,
                                struct weir_disagreement *rows, size_t n, struct weir_arena *arena,
                                struct weir_error *err)
{
    struct weir_run run;
    struct weir_comparison kept = *comparison;
    kept.n_kept = (int64_t)n;
    WEIR_TRY(check_rows(rows, n, err));
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, kept.run, arena, &run, err));
    WEIR_TRY(
        weir_txn_exec(txn, sql_drop_rows, WEIR_BINDS(WEIR_BIND_TEXT("run", kept.run)), NULL, err));
    WEIR_TRY(weir_txn_upsert(txn, &weir_comparison_resource, &kept, err));
    for (size_t i = 0; i < n; i++) {
        rows[i].id = weir_arena_printf(arena, "%s/%04zu", kept.run, i);
        rows[i].run = kept.run;
        rows[i].place = (int64_t)i;
        WEIR_TRY(weir_txn_insert(txn, &weir_disagreement_resource, &rows[i], err));
    }
    return WEIR_OK;
}

weir_status weir_comparison_find(struct weir_txn *txn, const char *model, int64_t version,
                                 const char *live_model, int64_t live_version,
                                 struct weir_arena *arena, struct weir_comparison *out,
                                 struct weir_error *err)
{
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model), WEIR_FILTER_INT("version", EQ, version)),
        .order_by = "time_ms", .is_descending = true, .limit = FOUND_MAX};
    void *items;
    size_t n, best = 0;
    WEIR_TRY(weir_txn_list(txn, &weir_comparison_resource, &query, arena, &items, &n, NULL, err));
    const struct weir_comparison *found = items;
    for (size_t i = n; live_model != NULL && i > 0; i--) {
        bool is_live = strcmp(found[i - 1].live_model, live_model) == 0 &&
                       found[i - 1].live_version == live_version;
        best = is_live ? i - 1 : best;
    }
    if (n == 0) {
        return WEIR_ERR_NOT_FOUND;
    }
    *out = found[best];
    return WEIR_OK;
}

weir_status weir_disagreements_list(struct weir_txn *txn, const char *run, const char *kind,
                                    size_t limit, const char *cursor, struct weir_arena *arena,
                                    struct weir_disagreement **out, size_t *out_n, char **out_next,
                                    struct weir_error *err)
{
    const struct weir_filter filters[] = {WEIR_FILTER_TEXT("run", EQ, run),
                                          WEIR_FILTER_TEXT("kind", EQ, kind)};
    const struct weir_query query = {.filters = filters,
                                     .n_filters = kind != NULL ? 2 : 1,
                                     .order_by = "place",
                                     .cursor = cursor,
                                     .limit = limit};
    void *items;
    if (kind != NULL && !is_kind(kind)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter kind: expected live-right, candidate-right or "
                              "both-wrong, got \"%.40s\"",
                              kind);
    }
    WEIR_TRY(weir_txn_list(txn, &weir_disagreement_resource, &query, arena, &items, out_n, out_next,
                           err));
    *out = items;
    return WEIR_OK;
}
