#include "control/lineage_private.h"

#include "ion/revision.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- a decision ------------------------------------------------------------------------------ */

/* Candidates with this number that served the pipeline; the one that was chosen last before the decision
 * first, then the one that served last. */
static const char sql_candidates[] =
    "SELECT c.id, c.model FROM ion_candidates c WHERE c.ion = :ion AND c.version = :version"
    " AND c.served_seq > 0 AND substr(c.link, instr(c.link, ':') + 1) = :pipeline"
    " ORDER BY coalesce((SELECT max(p.time_ms) FROM policy_decisions p WHERE p.candidate = c.id"
    " AND p.verdict IN ('promote', 'set', 'rollback') AND p.time_ms <= :time), -1) DESC,"
    " c.served_seq DESC";
static const char sql_revision[] =
    "SELECT r.revision, r.actor, r.time_ms, (SELECT json_extract(p.value, '$.gallery.dataset') FROM"
    " json_each(r.document, '$.pipelines') p WHERE json_extract(p.value, '$.name') = :pipeline)"
    " FROM ion_revisions r WHERE r.ion = :ion AND r.time_ms <= :time ORDER BY r.revision DESC"
    " LIMIT 1";
/* The names of people who were forgotten stay, so that it can be shown that it was done. Who had it done,
 * and why, is for those who may see that. */
static const char sql_forgotten[] =
    "SELECT id FROM forgotten_people WHERE person = :person"
    " AND project IN ('', (SELECT project FROM ions WHERE name = :ion))"
    " ORDER BY created_ms DESC LIMIT 1";
static const char sql_when[] = "SELECT created_ms FROM forgotten_people WHERE id = :id";
static const char sql_why[] = "SELECT actor, reason FROM forgotten_people WHERE id = :id";

/** A decision's way back. */
struct way {
    struct lineage *lineage;
    const struct weir_decision *decision;
    json_t *out;
};

/* The revision that held at that time, and the gallery that it names. */
static weir_status add_revision(struct way *way, struct weir_error *err)
{
    const struct weir_decision *decision = way->decision;
    struct lineage *lineage = way->lineage;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    json_t *revision = json_null(), *gallery = json_null();
    bool has_row;
    WEIR_TRY(weir_stmt_open(lineage->txn, sql_revision,
                            WEIR_BINDS(WEIR_BIND_TEXT("ion", decision->ion),
                                       WEIR_BIND_TEXT("pipeline", decision->pipeline),
                                       WEIR_BIND_INT("time", decision->time_ms)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (has_row) {
        const char *dataset = weir_stmt_text(stmt, 3, lineage->arena);
        revision = json_object();
        json_object_set_new(revision, "revision", json_integer(weir_stmt_int(stmt, 0)));
        json_object_set_new(revision, "actor", lineage_text(weir_stmt_peek(stmt, 1, NULL)));
        json_object_set_new(revision, "time_ms", lineage_time(weir_stmt_int(stmt, 2)));
        if (decision->gallery_version > 0 && dataset != NULL) {
            gallery = json_object();
            json_object_set_new(gallery, "dataset", lineage_text(dataset));
            json_object_set_new(gallery, "version", json_integer(decision->gallery_version));
            (void)lineage_add(lineage, &lineage->dataset_names, dataset, decision->gallery_version);
        }
    } else {
        lineage_say(lineage, weir_arena_printf(lineage->arena,
                                               "No revision of ION %s is as old as the decision: "
                                               "what was applied then is not known.",
                                               decision->ion));
    }
    json_object_set_new(way->out, "revision", revision);
    json_object_set_new(way->out, "gallery", gallery);
    return WEIR_OK;
}

static weir_status find_candidate(struct way *way, char **out_id, bool *out_certain,
                                  struct weir_error *err)
{
    const struct weir_decision *decision = way->decision;
    struct lineage *lineage = way->lineage;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    char *model = NULL;
    *out_id = NULL;
    *out_certain = true;
    WEIR_TRY(weir_stmt_open(lineage->txn, sql_candidates,
                            WEIR_BINDS(WEIR_BIND_TEXT("ion", decision->ion),
                                       WEIR_BIND_TEXT("pipeline", decision->pipeline),
                                       WEIR_BIND_INT("version", decision->model_version),
                                       WEIR_BIND_INT("time", decision->time_ms)),
                            &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        char *id = weir_stmt_text(stmt, 0, lineage->arena);
        char *its = weir_stmt_text(stmt, 1, lineage->arena);
        if (*out_id == NULL) {
            *out_id = id;
            model = its;
        }
        *out_certain = *out_certain && strcmp(model, its) == 0;
    }
}

/* The version, and its run and data, which are followed. */
static weir_status add_version(struct lineage *lineage, const struct weir_model_version *version,
                               json_t *out, struct weir_error *err)
{
    json_object_set_new(out, "version", lineage_version_view(version));
    if (version->run != NULL) {
        (void)lineage_add(lineage, &lineage->run_names, version->run, 0);
    } else {
        lineage_say(lineage,
                    weir_arena_printf(lineage->arena,
                                      "%s version %" PRId64 " was registered as a file: no run of "
                                      "this server made it.",
                                      version->model, version->version));
    }
    if (version->dataset != NULL && version->dataset_version > 0) {
        (void)lineage_add(lineage, &lineage->dataset_names, version->dataset,
                          version->dataset_version);
    }
    return weir_arena_check(lineage->arena, "a lineage", err);
}

static weir_status add_candidate(struct way *way, const char *id, json_t **out_place,
                                 struct weir_error *err)
{
    struct lineage *lineage = way->lineage;
    struct weir_ion_candidate candidate;
    struct weir_model_version version;
    bool is_there;
    WEIR_TRY(weir_txn_get(lineage->txn, &weir_ion_candidate_resource, id, lineage->arena,
                          &candidate, err));
    WEIR_TRY(lineage_place_view(lineage, &candidate, way->decision->time_ms, out_place, err));
    json_object_set_new(*out_place, "decisions", json_null());
    WEIR_TRY(lineage_find_version(lineage, candidate.model_version, &version, &is_there, err));
    if (!is_there) {
        lineage_say(lineage,
                    weir_arena_printf(lineage->arena, "%s version %" PRId64 " is not there.",
                                      candidate.model, candidate.version));
        return WEIR_OK;
    }
    return add_version(lineage, &version, way->out, err);
}

/* By what it was let through, and what that is. */
static weir_status add_served(struct way *way, struct weir_error *err)
{
    const struct weir_decision *decision = way->decision;
    struct lineage *lineage = way->lineage;
    char *id;
    bool is_certain;
    json_t *place = json_null();
    json_object_set_new(way->out, "version", json_null());
    WEIR_TRY(find_candidate(way, &id, &is_certain, err));
    if (id != NULL) {
        WEIR_TRY(add_candidate(way, id, &place, err));
    } else {
        lineage_say(lineage, decision->model_version == 0
                                 ? "The decision names no model version."
                                 : weir_arena_printf(
                                       lineage->arena,
                                       "No version %" PRId64 " is known to have served "
                                       "pipeline %s of ION %s.",
                                       decision->model_version, decision->pipeline, decision->ion));
    }
    if (!is_certain) {
        lineage_say(lineage,
                    "Several models served there with this number, and a decision says the "
                    "number alone: this is the one that was chosen last before it.");
    }
    json_object_set_new(way->out, "place", place);
    json_object_set_new(way->out, "is_certain", json_boolean(id != NULL && is_certain));
    return WEIR_OK;
}

static weir_status add_person(struct way *way, struct weir_error *err)
{
    struct weir_txn *txn = way->lineage->txn;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *why = NULL;
    bool is_told;
    int64_t time_ms;
    char **ids;
    size_t n;
    WEIR_TRY(weir_txn_query_texts_of_all(txn, sql_forgotten,
                                         WEIR_BINDS(WEIR_BIND_TEXT("person", way->decision->person),
                                                    WEIR_BIND_TEXT("ion", way->decision->ion)),
                                         way->lineage->arena, &ids, &n, err));
    if (n == 0) {
        json_object_set_new(way->out, "forgotten", json_null());
        return WEIR_OK;
    }
    const struct weir_bind id = WEIR_BIND_TEXT("id", ids[0]);
    WEIR_TRY(weir_txn_query_int_of_all(txn, sql_when, &id, 1, 0, &time_ms, err));
    WEIR_TRY(weir_stmt_open(txn, sql_why, &id, 1, &why, err));
    WEIR_TRY(weir_stmt_step(why, &is_told, err));
    json_t *view = json_object();
    json_object_set_new(view, "person", lineage_text(way->decision->person));
    json_object_set_new(view, "n_files", json_null());
    json_object_set_new(view, "actor", lineage_text(is_told ? weir_stmt_peek(why, 0, NULL) : NULL));
    json_object_set_new(view, "reason",
                        lineage_text(is_told ? weir_stmt_peek(why, 1, NULL) : NULL));
    json_object_set_new(view, "time_ms", lineage_time(time_ms));
    json_object_set_new(way->out, "forgotten", view);
    return WEIR_OK;
}

/* What every lineage ends with; the arrays are shared. */
static void finish(struct lineage *lineage, json_t *out)
{
    json_object_set(out, "runs", lineage->runs);
    json_object_set(out, "datasets", lineage->datasets);
    json_object_set(out, "unknown", lineage->unknown);
    json_object_set_new(out, "is_cut", json_boolean(lineage->is_cut));
}

weir_status control_lineage_decision(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                                     json_t **out, struct weir_error *err)
{
    WEIR_AUTO(lineage_auto_fini) struct lineage lineage;
    WEIR_AUTO(weir_json_auto_free) json_t *view = json_object();
    struct weir_decision decision;
    lineage_init(&lineage, txn, arena);
    WEIR_TRY(weir_txn_get(txn, &weir_decision_resource, id, arena, &decision, err));
    struct way way = {&lineage, &decision, view};
    json_object_set_new(view, "decision", weir_record_to_json(&weir_decision_resource, &decision));
    WEIR_TRY(add_person(&way, err));
    WEIR_TRY(add_served(&way, err));
    WEIR_TRY(add_revision(&way, err));
    WEIR_TRY(lineage_go_back(&lineage, err));
    finish(&lineage, view);
    *out = json_incref(view);
    return WEIR_OK;
}

/* ---- a model version ------------------------------------------------------------------------- */

weir_status lineage_version_row(struct lineage *lineage, const char *model, int64_t version,
                                struct weir_model_version *out, struct weir_error *err)
{
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model), WEIR_FILTER_INT("version", EQ, version)),
        .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(lineage->txn, &weir_model_version_resource, &query, lineage->arena,
                           &items, &n, NULL, err));
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "model \"%.60s\" has no version %" PRId64,
                              model, version);
    }
    *out = *(const struct weir_model_version *)items;
    return WEIR_OK;
}

static const char sql_deployments[] =
    "SELECT deployment FROM deployment_versions WHERE model = :model AND version = :version"
    " AND (wanted_ppm > 0 OR live_ppm > 0) ORDER BY deployment";

static weir_status add_deployments(struct lineage *lineage,
                                   const struct weir_model_version *version, json_t *out,
                                   struct weir_error *err)
{
    char **names;
    size_t n;
    json_t *list = json_array();
    json_object_set_new(out, "deployments", list);
    WEIR_TRY(weir_txn_query_texts(lineage->txn, sql_deployments,
                                  WEIR_BINDS(WEIR_BIND_TEXT("model", version->model),
                                             WEIR_BIND_INT("version", version->version)),
                                  lineage->arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, lineage_text(names[i]));
    }
    return WEIR_OK;
}

weir_status control_lineage_version(struct weir_txn *txn, const char *model, int64_t version,
                                    struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    WEIR_AUTO(lineage_auto_fini) struct lineage lineage;
    WEIR_AUTO(weir_json_auto_free) json_t *view = json_object();
    struct weir_model_version row;
    lineage_init(&lineage, txn, arena);
    WEIR_TRY(lineage_version_row(&lineage, model, version, &row, err));
    WEIR_TRY(add_version(&lineage, &row, view, err));
    WEIR_TRY(lineage_go_back(&lineage, err));
    WEIR_TRY(lineage_add_places(&lineage, &row, err));
    WEIR_TRY(add_deployments(&lineage, &row, view, err));
    json_object_set(view, "places", lineage.places);
    finish(&lineage, view);
    *out = json_incref(view);
    return WEIR_OK;
}

/* ---- a dataset version ----------------------------------------------------------------------- */

/* Back from it: what made it, and what that read. */
static weir_status add_origin(struct weir_txn *txn, const char *dataset, int64_t version,
                              struct weir_arena *arena, json_t *out, struct weir_error *err)
{
    WEIR_AUTO(lineage_auto_fini) struct lineage lineage;
    lineage_init(&lineage, txn, arena);
    (void)lineage_add(&lineage, &lineage.dataset_names, dataset, version);
    WEIR_TRY(lineage_go_back(&lineage, err));
    json_object_set(out, "dataset", json_array_get(lineage.datasets, 0));
    finish(&lineage, out);
    return WEIR_OK;
}

/* As they are named; what made them, or went into them beside this, is not followed. */
static weir_status add_reached(struct lineage *lineage, json_t *out, struct weir_error *err)
{
    json_t *runs = json_array(), *made = json_array();
    json_object_set_new(out, "read_by", runs);
    json_object_set_new(out, "made", made);
    for (size_t i = 0; i < lineage->run_names.n; i++) {
        struct weir_run run;
        WEIR_TRY(weir_txn_get(lineage->txn, &weir_run_resource, lineage->run_names.items[i].name,
                              lineage->arena, &run, err));
        json_t *view = json_object();
        json_object_set_new(view, "id", lineage_text(run.id));
        json_object_set_new(view, "name", lineage_text(run.name));
        json_object_set_new(view, "kind", lineage_text(run.kind));
        json_object_set_new(view, "status", lineage_text(run.status));
        json_object_set_new(view, "created_by", lineage_text(run.created_by));
        json_object_set_new(view, "created_ms", lineage_time(run.created_ms));
        json_array_append_new(runs, view);
    }
    for (size_t i = 1; i < lineage->dataset_names.n; i++) {
        json_t *view = json_object();
        json_object_set_new(view, "dataset", lineage_text(lineage->dataset_names.items[i].name));
        json_object_set_new(view, "version", json_integer(lineage->dataset_names.items[i].version));
        json_array_append_new(made, view);
    }
    return WEIR_OK;
}

weir_status control_lineage_dataset(struct weir_txn *txn, const char *dataset, int64_t version,
                                    struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    WEIR_AUTO(lineage_auto_fini) struct lineage lineage;
    WEIR_AUTO(weir_json_auto_free) json_t *view = json_object();
    struct weir_dataset_version row;
    lineage_init(&lineage, txn, arena);
    WEIR_TRY(weir_dataset_version_get(txn, dataset, version, arena, &row, err));
    WEIR_TRY(add_origin(txn, dataset, version, arena, view, err));
    WEIR_TRY(lineage_go_forward(&lineage, dataset, version, err));
    WEIR_TRY(add_reached(&lineage, view, err));
    json_object_set(view, "versions", lineage.versions);
    json_object_set(view, "places", lineage.places);
    json_object_set(view, "galleries", lineage.galleries);
    if (lineage.is_cut) {
        json_object_set_new(view, "is_cut", json_true());
    }
    *out = json_incref(view);
    return WEIR_OK;
}
