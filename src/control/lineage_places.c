/** Forward: the links that a version came to, galleries, and how many decisions each made. */
#include "control/lineage_private.h"

#include "base/grow.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

#define POLICIES_MAX  1000 /* of one candidate */
#define GALLERIES_MAX 200

/* Of the same pipeline, the same number of another model: a decision says the number alone. */
static const char sql_others[] =
    "SELECT DISTINCT model FROM ion_candidates WHERE ion = :ion AND version = :version AND"
    " model <> :model AND served_seq > 0 AND substr(link, instr(link, ':') + 1) = :pipeline"
    " ORDER BY model";
/* Documents of IONs that name the dataset, in any revision: a text search before any is taken apart. */
static const char sql_galleries[] =
    "SELECT DISTINCT r.ion, json_extract(p.value, '$.name') FROM ion_revisions r,"
    " json_each(r.document, '$.pipelines') p WHERE instr(r.document, :quoted) > 0"
    " AND json_extract(p.value, '$.gallery.dataset') = :dataset ORDER BY 1, 2 LIMIT :max";
static const char sql_other_galleries[] =
    "SELECT DISTINCT json_extract(p.value, '$.gallery.dataset') FROM ion_revisions r,"
    " json_each(r.document, '$.pipelines') p WHERE r.ion = :ion AND"
    " json_extract(p.value, '$.name') = :pipeline AND"
    " json_extract(p.value, '$.gallery.dataset') <> :dataset ORDER BY 1";

/* ---- decisions ------------------------------------------------------------------------------- */

/** Decisions that are to be counted. */
struct counted {
    const char *ion, *pipeline;
    int64_t model_version, gallery_version; /**< -1: of all. */
    int64_t since_ms; /**< No version that it was made with is older; 0: not known. */
    const char *why;  /**< Nobody knows which they are; NULL: they are known. */
};

static void note_total(struct lineage *lineage, const struct weir_decision_total *total)
{
    struct lineage_totals *totals = &lineage->totals;
    for (size_t i = 0; i < totals->n; i++) {
        const struct weir_decision_total *one = &totals->items[i];
        if (one->model_version == total->model_version &&
            one->gallery_version == total->gallery_version &&
            one->is_sandbox == total->is_sandbox && strcmp(one->ion, total->ion) == 0 &&
            strcmp(one->pipeline, total->pipeline) == 0) {
            return;
        }
    }
    weir_arena_grow(lineage->arena, &totals->items, sizeof *totals->items, totals->n, &totals->cap);
    totals->items[totals->n++] = *total;
}

static json_t *counts_view(int64_t n_made, int64_t n_kept, int64_t n_tried, int64_t first_ms,
                           int64_t last_ms)
{
    json_t *view = json_object();
    json_object_set_new(view, "n_made", json_integer(n_made));
    json_object_set_new(view, "n_kept", json_integer(n_kept));
    json_object_set_new(view, "n_tried", json_integer(n_tried));
    json_object_set_new(view, "first_ms", lineage_time(first_ms));
    json_object_set_new(view, "last_ms", lineage_time(last_ms));
    return view;
}

static json_t *unknown_counts(const char *why)
{
    static const char *const members[] = {"n_made", "n_kept", "n_tried", "first_ms", "last_ms"};
    json_t *view = json_object();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        json_object_set_new(view, members[i], json_null());
    }
    json_object_set_new(view, "is_whole", json_false());
    json_object_set_new(view, "why", json_string(why));
    return view;
}

static weir_status count_decisions(struct lineage *lineage, const struct counted *counted,
                                   json_t **out, struct weir_error *err)
{
    struct weir_decision_total *totals;
    size_t n;
    int64_t n_made = 0, n_kept = 0, n_tried = 0, first_ms = 0, last_ms = 0, since_ms;
    if (counted->why != NULL) {
        *out = unknown_counts(counted->why);
        return WEIR_OK;
    }
    WEIR_TRY(weir_decisions_counted_since(lineage->txn, &since_ms, err));
    WEIR_TRY(weir_decision_totals(lineage->txn, counted->ion, counted->pipeline,
                                  counted->model_version, counted->gallery_version, lineage->arena,
                                  &totals, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_decision_total *total = &totals[i];
        note_total(lineage, total);
        n_tried += total->is_sandbox ? total->n_made : 0;
        n_made += total->is_sandbox ? 0 : total->n_made;
        n_kept += total->n_kept;
        first_ms = i == 0 ? total->first_ms : WEIR_MIN(first_ms, total->first_ms);
        last_ms = WEIR_MAX(last_ms, total->last_ms);
    }
    bool is_whole = since_ms == 0 || counted->since_ms >= since_ms;
    *out = counts_view(n_made, n_kept, n_tried, first_ms, last_ms);
    json_object_set_new(*out, "is_whole", json_boolean(is_whole));
    json_object_set_new(*out, "why",
                        is_whole ? json_null()
                                 : json_string("Some may have been deleted before decisions were "
                                               "counted: there were at least so many."));
    return WEIR_OK;
}

/* Names after one another: "a, b". */
static char *joined(struct lineage *lineage, char *const *names, size_t n)
{
    char *text = weir_arena_strdup(lineage->arena, "");
    for (size_t i = 0; i < n; i++) {
        text = weir_arena_printf(lineage->arena, "%s%s%s", text, i > 0 ? ", " : "", names[i]);
    }
    return text;
}

/* ---- links ----------------------------------------------------------------------------------- */

weir_status lineage_place_view(struct lineage *lineage, const struct weir_ion_candidate *candidate,
                               int64_t until_ms, json_t **out, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("candidate", EQ, candidate->id),
                                                  WEIR_FILTER_INT("time_ms", LE, until_ms)),
                                     .order_by = "time_ms", .limit = POLICIES_MAX};
    const char *to = strchr(candidate->link, ':');
    const char *deployment = NULL, *pipeline = to != NULL ? to + 1 : candidate->link;
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(lineage->txn, &weir_policy_decision_resource, &query, lineage->arena,
                           &items, &n, NULL, err));
    if (strncmp(pipeline, WEIR_ION_TO_DEPLOYMENT, strlen(WEIR_ION_TO_DEPLOYMENT)) == 0) {
        deployment = pipeline + strlen(WEIR_ION_TO_DEPLOYMENT);
        pipeline = NULL;
    }
    json_t *view = json_object(), *policies = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(policies,
                              weir_record_to_json(&weir_policy_decision_resource,
                                                  (const struct weir_policy_decision *)items + i));
    }
    json_object_set_new(view, "candidate", lineage_text(candidate->id));
    json_object_set_new(view, "ion", lineage_text(candidate->ion));
    json_object_set_new(view, "link", lineage_text(candidate->link));
    json_object_set_new(view, "pipeline", lineage_text(pipeline));
    json_object_set_new(view, "deployment", lineage_text(deployment));
    json_object_set_new(view, "model", lineage_text(candidate->model));
    json_object_set_new(view, "version", json_integer(candidate->version));
    json_object_set_new(view, "state", lineage_text(candidate->state));
    json_object_set_new(view, "made_by", lineage_text(candidate->made_by));
    json_object_set_new(view, "served_ms", lineage_time(candidate->served_ms));
    json_object_set_new(view, "created_ms", lineage_time(candidate->created_ms));
    json_object_set_new(view, "policies", policies);
    json_object_set_new(view, "are_policies_gone",
                        json_boolean(n == 0 && candidate->served_seq > 0));
    *out = view;
    return WEIR_OK;
}

static weir_status add_counts(struct lineage *lineage, const struct weir_ion_candidate *candidate,
                              const struct weir_model_version *version, json_t *view,
                              struct weir_error *err)
{
    const char *pipeline = json_string_value(json_object_get(view, "pipeline"));
    struct counted counted = {.ion = candidate->ion,
                              .pipeline = pipeline,
                              .model_version = candidate->version,
                              .gallery_version = -1,
                              .since_ms = version->created_ms};
    json_t *counts;
    char **others;
    size_t n;
    if (pipeline == NULL) {
        json_object_set_new(view, "decisions", json_null());
        return WEIR_OK; /* answers of deployments are not kept */
    }
    WEIR_TRY(weir_txn_query_texts(lineage->txn, sql_others,
                                  WEIR_BINDS(WEIR_BIND_TEXT("ion", candidate->ion),
                                             WEIR_BIND_TEXT("model", candidate->model),
                                             WEIR_BIND_TEXT("pipeline", pipeline),
                                             WEIR_BIND_INT("version", candidate->version)),
                                  lineage->arena, &others, &n, err));
    if (n > 0) {
        counted.why = weir_arena_printf(lineage->arena,
                                        "Version %" PRId64
                                        " of %s served there too, and a decision says the number "
                                        "alone.",
                                        candidate->version, joined(lineage, others, n));
    }
    WEIR_TRY(count_decisions(lineage, &counted, &counts, err));
    json_object_set_new(view, "decisions", counts);
    return WEIR_OK;
}

weir_status lineage_add_places(struct lineage *lineage, const struct weir_model_version *version,
                               struct weir_error *err)
{
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("model_version", EQ, version->id)), .order_by = "created_ms",
        .limit = CONTROL_LINEAGE_MAX};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(lineage->txn, &weir_ion_candidate_resource, &query, lineage->arena,
                           &items, &n, NULL, err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_ion_candidate *candidate = (const struct weir_ion_candidate *)items + i;
        json_t *view;
        WEIR_TRY(lineage_place_view(lineage, candidate, INT64_MAX, &view, err));
        json_array_append_new(lineage->places, view);
        WEIR_TRY(add_counts(lineage, candidate, version, view, err));
    }
    return weir_arena_check(lineage->arena, "a lineage", err);
}

/* ---- galleries ------------------------------------------------------------------------------- */

struct gallery {
    char *ion, *pipeline;
};

static weir_status list_galleries(struct lineage *lineage, const char *dataset,
                                  struct gallery *galleries, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(
        lineage->txn, sql_galleries,
        WEIR_BINDS(WEIR_BIND_TEXT("dataset", dataset),
                   WEIR_BIND_TEXT("quoted", weir_arena_printf(lineage->arena, "\"%s\"", dataset)),
                   WEIR_BIND_INT("max", GALLERIES_MAX)),
        &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row || *out_n == GALLERIES_MAX) {
            lineage->is_cut = lineage->is_cut || has_row;
            return WEIR_OK;
        }
        galleries[(*out_n)++] = (struct gallery){weir_stmt_text(stmt, 0, lineage->arena),
                                                 weir_stmt_text(stmt, 1, lineage->arena)};
    }
}

static weir_status add_gallery(struct lineage *lineage, const struct gallery *gallery,
                               const struct weir_dataset_version *version, struct weir_error *err)
{
    struct counted counted = {.ion = gallery->ion,
                              .pipeline = gallery->pipeline,
                              .model_version = -1,
                              .gallery_version = version->version,
                              .since_ms = version->created_ms};
    char **others;
    size_t n;
    json_t *counts;
    WEIR_TRY(weir_txn_query_texts(lineage->txn, sql_other_galleries,
                                  WEIR_BINDS(WEIR_BIND_TEXT("ion", gallery->ion),
                                             WEIR_BIND_TEXT("pipeline", gallery->pipeline),
                                             WEIR_BIND_TEXT("dataset", version->dataset)),
                                  lineage->arena, &others, &n, err));
    if (n > 0) {
        counted.why = weir_arena_printf(lineage->arena,
                                        "%s was its gallery too, and a decision says the number of "
                                        "the version alone.",
                                        joined(lineage, others, n));
    }
    WEIR_TRY(count_decisions(lineage, &counted, &counts, err));
    json_t *view = json_object();
    json_object_set_new(view, "ion", lineage_text(gallery->ion));
    json_object_set_new(view, "pipeline", lineage_text(gallery->pipeline));
    json_object_set_new(view, "dataset", lineage_text(version->dataset));
    json_object_set_new(view, "version", json_integer(version->version));
    json_object_set_new(view, "decisions", counts);
    json_array_append_new(lineage->galleries, view);
    return WEIR_OK;
}

weir_status lineage_add_galleries(struct lineage *lineage, const char *dataset, int64_t version,
                                  struct weir_error *err)
{
    struct gallery *galleries = WEIR_ARENA_ARRAY(lineage->arena, GALLERIES_MAX, struct gallery);
    struct weir_dataset_version row;
    size_t n;
    WEIR_TRY(weir_dataset_version_get(lineage->txn, dataset, version, lineage->arena, &row, err));
    WEIR_TRY(list_galleries(lineage, dataset, galleries, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(add_gallery(lineage, &galleries[i], &row, err));
    }
    return WEIR_OK;
}
