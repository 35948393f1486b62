/** Forward: the links that a version came to, galleries, and how many decisions each made. */
#include "control/lineage/lineage_private.h"

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
static const char sql_galleries[] = "SELECT ion, document FROM ion_revisions"
                                    " WHERE instr(document, :quoted) > 0 ORDER BY ion";
static const char sql_revisions[] = "SELECT ion, document FROM ion_revisions WHERE ion = :ion";

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

static weir_status count_decisions(struct lineage *lineage, const struct counted *counted,
                                   const struct control_lineage_decisions **out,
                                   struct weir_error *err)
{
    struct control_lineage_decisions *counts =
        WEIR_ARENA_NEW(lineage->arena, struct control_lineage_decisions);
    struct weir_decision_total *totals;
    size_t n;
    int64_t since_ms;
    *out = counts;
    *counts = (struct control_lineage_decisions){.why = counted->why};
    if (counted->why != NULL) {
        counts->n_made = counts->n_kept = counts->n_tried = WEIR_INT_NONE;
        return WEIR_OK;
    }
    WEIR_TRY(weir_decisions_counted_since(lineage->txn, &since_ms, err));
    WEIR_TRY(weir_decision_totals(lineage->txn, counted->ion, counted->pipeline,
                                  counted->model_version, counted->gallery_version, lineage->arena,
                                  &totals, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_decision_total *total = &totals[i];
        note_total(lineage, total);
        counts->n_tried += total->is_sandbox ? total->n_made : 0;
        counts->n_made += total->is_sandbox ? 0 : total->n_made;
        counts->n_kept += total->n_kept;
        counts->first_ms = i == 0 ? total->first_ms : WEIR_MIN(counts->first_ms, total->first_ms);
        counts->last_ms = WEIR_MAX(counts->last_ms, total->last_ms);
    }
    counts->is_whole = since_ms == 0 || counted->since_ms >= since_ms;
    counts->why = counts->is_whole ? NULL
                                   : "Some may have been deleted before decisions were counted: "
                                     "there were at least so many.";
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

weir_status lineage_place_of(struct lineage *lineage, const struct weir_ion_candidate *candidate,
                             int64_t until_ms, struct lineage_place *out, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("candidate", EQ, candidate->id),
                                                  WEIR_FILTER_INT("time_ms", LE, until_ms)),
                                     .order_by = "time_ms", .limit = POLICIES_MAX};
    const char *to = strchr(candidate->link, ':');
    void *items;
    *out = (struct lineage_place){.row = *candidate,
                                  .pipeline = to != NULL ? to + 1 : candidate->link};
    WEIR_TRY(weir_txn_list(lineage->txn, &weir_policy_decision_resource, &query, lineage->arena,
                           &items, &out->n_policies, NULL, err));
    out->policies = items;
    out->are_policies_gone = out->n_policies == 0 && candidate->served_seq > 0;
    if (strncmp(out->pipeline, WEIR_ION_TO_DEPLOYMENT, strlen(WEIR_ION_TO_DEPLOYMENT)) == 0) {
        out->deployment = out->pipeline + strlen(WEIR_ION_TO_DEPLOYMENT);
        out->pipeline = NULL;
    }
    return WEIR_OK;
}

static weir_status add_counts(struct lineage *lineage, const struct weir_model_version *version,
                              struct lineage_place *place, struct weir_error *err)
{
    const struct weir_ion_candidate *candidate = &place->row;
    struct counted counted = {.ion = candidate->ion,
                              .pipeline = place->pipeline,
                              .model_version = candidate->version,
                              .gallery_version = -1,
                              .since_ms = version->created_ms};
    char **others;
    size_t n;
    if (place->pipeline == NULL) {
        return WEIR_OK; /* answers of deployments are not kept */
    }
    WEIR_TRY(weir_txn_query_texts(lineage->txn, sql_others,
                                  WEIR_BINDS(WEIR_BIND_TEXT("ion", candidate->ion),
                                             WEIR_BIND_TEXT("model", candidate->model),
                                             WEIR_BIND_TEXT("pipeline", place->pipeline),
                                             WEIR_BIND_INT("version", candidate->version)),
                                  lineage->arena, &others, &n, err));
    if (n > 0) {
        counted.why = weir_arena_printf(lineage->arena,
                                        "Version %" PRId64
                                        " of %s served there too, and a decision says the number "
                                        "alone.",
                                        candidate->version, joined(lineage, others, n));
    }
    return count_decisions(lineage, &counted, &place->decisions, err);
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
        struct lineage_place place;
        WEIR_TRY(lineage_place_of(lineage, candidate, INT64_MAX, &place, err));
        WEIR_TRY(add_counts(lineage, version, &place, err));
        *LINEAGE_ADD(lineage, places) = place;
    }
    return weir_arena_check(lineage->arena, "a lineage", err);
}

/* ---- galleries ------------------------------------------------------------------------------- */

const json_t *lineage_pipeline(const json_t *document, const char *name)
{
    const json_t *pipeline;
    size_t i;
    json_array_foreach(json_object_get(document, "pipelines"), i, pipeline)
    {
        const char *own = json_string_value(json_object_get(pipeline, "name"));
        if (own != NULL && strcmp(own, name) == 0) {
            return pipeline;
        }
    }
    return NULL;
}

const char *lineage_gallery_of(const json_t *pipeline)
{
    return json_string_value(json_object_get(json_object_get(pipeline, "gallery"), "dataset"));
}

struct gallery {
    const char *ion, *pipeline, *dataset;
};

/** Galleries in the order of their IONs, pipelines and datasets, each once. */
struct galleries {
    struct lineage *lineage;
    struct gallery items[GALLERIES_MAX];
    size_t n;
};

static int compare(const struct gallery *a, const struct gallery *b)
{
    int order = strcmp(a->ion, b->ion);
    order = order != 0 ? order : strcmp(a->pipeline, b->pipeline);
    return order != 0 ? order : strcmp(a->dataset, b->dataset);
}

static void keep_gallery(struct galleries *found, const struct gallery *gallery)
{
    struct weir_arena *arena = found->lineage->arena;
    size_t i = found->n;
    int order = 1;
    while (i > 0 && (order = compare(&found->items[i - 1], gallery)) > 0) {
        i--;
    }
    if (order == 0) {
        return;
    }
    if (found->n == GALLERIES_MAX) {
        found->lineage->is_cut = true;
        return;
    }
    memmove(&found->items[i + 1], &found->items[i], (found->n - i) * sizeof *gallery);
    found->items[i] = (struct gallery){weir_arena_strdup(arena, gallery->ion),
                                       weir_arena_strdup(arena, gallery->pipeline),
                                       weir_arena_strdup(arena, gallery->dataset)};
    found->n++;
}

/* The galleries of documents that are the dataset; or, with a pipeline, those of it that are not. */
static weir_status list_galleries(struct galleries *found, const char *ion, const char *pipeline,
                                  const char *dataset, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    const char *quoted = weir_arena_printf(found->lineage->arena, "\"%s\"", dataset);
    const struct weir_bind bind =
        ion != NULL ? WEIR_BIND_TEXT("ion", ion) : WEIR_BIND_TEXT("quoted", quoted);
    bool has_row;
    found->n = 0;
    WEIR_TRY(weir_stmt_open(found->lineage->txn, ion != NULL ? sql_revisions : sql_galleries, &bind,
                            1, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        WEIR_AUTO(weir_json_auto_free) json_t *document = weir_stmt_json(row, 1);
        const json_t *one;
        size_t i;
        json_array_foreach(json_object_get(document, "pipelines"), i, one)
        {
            struct gallery gallery = {weir_stmt_peek(row, 0, NULL),
                                      json_string_value(json_object_get(one, "name")),
                                      lineage_gallery_of(one)};
            if (gallery.pipeline != NULL && gallery.dataset != NULL &&
                (pipeline == NULL || strcmp(gallery.pipeline, pipeline) == 0) &&
                (strcmp(gallery.dataset, dataset) == 0) == (pipeline == NULL)) {
                keep_gallery(found, &gallery);
            }
        }
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status add_gallery(struct lineage *lineage, const struct gallery *gallery,
                               const struct weir_dataset_version *version, struct weir_error *err)
{
    struct counted counted = {.ion = gallery->ion,
                              .pipeline = gallery->pipeline,
                              .model_version = -1,
                              .gallery_version = version->version,
                              .since_ms = version->created_ms};
    struct galleries *others = WEIR_ARENA_NEW(lineage->arena, struct galleries);
    others->lineage = lineage;
    WEIR_TRY(list_galleries(others, gallery->ion, gallery->pipeline, version->dataset, err));
    if (others->n > 0) {
        char **names = WEIR_ARENA_ARRAY(lineage->arena, others->n, char *);
        for (size_t i = 0; i < others->n; i++) {
            names[i] = (char *)others->items[i].dataset;
        }
        counted.why = weir_arena_printf(lineage->arena,
                                        "%s was its gallery too, and a decision says the number of "
                                        "the version alone.",
                                        joined(lineage, names, others->n));
    }
    struct control_lineage_gallery found = {.ion = gallery->ion,
                                            .pipeline = gallery->pipeline,
                                            .dataset = version->dataset,
                                            .version = version->version};
    WEIR_TRY(count_decisions(lineage, &counted, &found.decisions, err));
    *LINEAGE_ADD(lineage, galleries) = found;
    return WEIR_OK;
}

weir_status lineage_add_galleries(struct lineage *lineage, const char *dataset, int64_t version,
                                  struct weir_error *err)
{
    struct galleries *found = WEIR_ARENA_NEW(lineage->arena, struct galleries);
    struct weir_dataset_version row;
    found->lineage = lineage;
    WEIR_TRY(weir_dataset_version_get(lineage->txn, dataset, version, lineage->arena, &row, err));
    WEIR_TRY(list_galleries(found, NULL, NULL, dataset, err));
    for (size_t i = 0; i < found->n; i++) {
        WEIR_TRY(add_gallery(lineage, &found->items[i], &row, err));
    }
    return WEIR_OK;
}
