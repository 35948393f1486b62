#include "control/lineage/lineage_private.h"

#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"

#include "base/view_table.h"

#include "control/lineage_views.def"

#include "base/view_end.h"

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
    "SELECT revision, actor, time_ms, document FROM ion_revisions WHERE ion = :ion"
    " AND time_ms <= :time ORDER BY revision DESC LIMIT 1";
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
    struct control_decision_lineage *out;
};

/* The revision that held at that time, and the gallery that it names. */
static weir_status add_revision(struct way *way, struct weir_error *err)
{
    const struct weir_decision *decision = way->decision;
    struct lineage *lineage = way->lineage;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(
        lineage->txn, sql_revision,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", decision->ion), WEIR_BIND_INT("time", decision->time_ms)),
        &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (!has_row) {
        lineage_say(lineage, weir_arena_printf(lineage->arena,
                                               "No revision of ION %s is as old as the decision: "
                                               "what was applied then is not known.",
                                               decision->ion));
        return WEIR_OK;
    }
    struct control_lineage_revision *revision =
        WEIR_ARENA_NEW(lineage->arena, struct control_lineage_revision);
    *revision = (struct control_lineage_revision){
        weir_stmt_int(stmt, 0), weir_stmt_text(stmt, 1, lineage->arena), weir_stmt_int(stmt, 2)};
    way->out->revision = revision;
    WEIR_AUTO(weir_json_auto_free) json_t *document = weir_stmt_json(stmt, 3);
    const char *dataset = weir_arena_strdup(
        lineage->arena, lineage_gallery_of(lineage_pipeline(document, decision->pipeline)));
    if (decision->gallery_version > 0 && dataset != NULL) {
        struct lineage_name *gallery = WEIR_ARENA_NEW(lineage->arena, struct lineage_name);
        *gallery = (struct lineage_name){dataset, decision->gallery_version};
        way->out->gallery = gallery;
        (void)lineage_add(lineage, &lineage->dataset_names, dataset, decision->gallery_version);
    }
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

/* The version's run and data, which are followed. */
static weir_status add_version(struct lineage *lineage, const struct weir_model_version *version,
                               struct weir_error *err)
{
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

static weir_status add_candidate(struct way *way, const char *id, struct weir_error *err)
{
    struct lineage *lineage = way->lineage;
    struct weir_ion_candidate candidate;
    struct weir_model_version *version = WEIR_ARENA_NEW(lineage->arena, struct weir_model_version);
    struct lineage_place *place = WEIR_ARENA_NEW(lineage->arena, struct lineage_place);
    bool is_there;
    WEIR_TRY(weir_txn_get(lineage->txn, &weir_ion_candidate_resource, id, lineage->arena,
                          &candidate, err));
    WEIR_TRY(lineage_place_of(lineage, &candidate, way->decision->time_ms, place, err));
    way->out->place = place;
    WEIR_TRY(lineage_find_version(lineage, candidate.model_version, version, &is_there, err));
    if (!is_there) {
        lineage_say(lineage,
                    weir_arena_printf(lineage->arena, "%s version %" PRId64 " is not there.",
                                      candidate.model, candidate.version));
        return WEIR_OK;
    }
    way->out->version = version;
    return add_version(lineage, version, err);
}

/* By what it was let through, and what that is. */
static weir_status add_served(struct way *way, struct weir_error *err)
{
    const struct weir_decision *decision = way->decision;
    struct lineage *lineage = way->lineage;
    char *id;
    bool is_certain;
    WEIR_TRY(find_candidate(way, &id, &is_certain, err));
    if (id != NULL) {
        WEIR_TRY(add_candidate(way, id, err));
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
    way->out->is_certain = id != NULL && is_certain;
    return WEIR_OK;
}

static weir_status add_detector(struct way *way, struct weir_error *err)
{
    const struct weir_model_version *detector;
    WEIR_TRY(lineage_detector_of(way->lineage, way->decision, &detector, err));
    way->out->detector = detector;
    return detector != NULL ? add_version(way->lineage, detector, err) : WEIR_OK;
}

static weir_status add_person(struct way *way, struct weir_error *err)
{
    struct weir_txn *txn = way->lineage->txn;
    struct weir_arena *arena = way->lineage->arena;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *why = NULL;
    bool is_told;
    int64_t time_ms;
    char **ids;
    size_t n;
    WEIR_TRY(weir_txn_query_texts_of_all(txn, sql_forgotten,
                                         WEIR_BINDS(WEIR_BIND_TEXT("person", way->decision->person),
                                                    WEIR_BIND_TEXT("ion", way->decision->ion)),
                                         arena, &ids, &n, err));
    if (n == 0) {
        return WEIR_OK;
    }
    const struct weir_bind id = WEIR_BIND_TEXT("id", ids[0]);
    WEIR_TRY(weir_txn_query_int_of_all(txn, sql_when, &id, 1, 0, &time_ms, err));
    WEIR_TRY(weir_stmt_open(txn, sql_why, &id, 1, &why, err));
    WEIR_TRY(weir_stmt_step(why, &is_told, err));
    struct control_lineage_forgotten *forgotten =
        WEIR_ARENA_NEW(arena, struct control_lineage_forgotten);
    *forgotten =
        (struct control_lineage_forgotten){.person = way->decision->person,
                                           .n_files = WEIR_INT_NONE,
                                           .actor = is_told ? weir_stmt_text(why, 0, arena) : NULL,
                                           .reason = is_told ? weir_stmt_text(why, 1, arena) : NULL,
                                           .time_ms = time_ms};
    way->out->forgotten = forgotten;
    return WEIR_OK;
}

/* What every lineage has. */
static struct control_lineage_found found_by(const struct lineage *lineage)
{
    return (struct control_lineage_found){.runs = lineage->runs,
                                          .n_runs = lineage->n_runs,
                                          .datasets = lineage->datasets,
                                          .n_datasets = lineage->n_datasets,
                                          .unknown = lineage->unknown,
                                          .n_unknown = lineage->n_unknown,
                                          .is_cut = lineage->is_cut};
}

weir_status control_lineage_decision(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                                     json_t **out, struct weir_error *err)
{
    struct lineage lineage = {.txn = txn, .arena = arena};
    struct weir_decision decision;
    struct control_decision_lineage found = {.decision = &decision};
    WEIR_TRY(weir_txn_get(txn, &weir_decision_resource, id, arena, &decision, err));
    struct way way = {&lineage, &decision, &found};
    WEIR_TRY(add_person(&way, err));
    WEIR_TRY(add_served(&way, err));
    WEIR_TRY(add_detector(&way, err));
    WEIR_TRY(add_revision(&way, err));
    WEIR_TRY(lineage_go_back(&lineage, err));
    found.found = found_by(&lineage);
    *out = weir_view_to_json(control_decision_lineage_view(), &found);
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
    lineage_take_version(items, out);
    return WEIR_OK;
}

static const char sql_deployments[] =
    "SELECT deployment FROM deployment_versions WHERE model = :model AND version = :version"
    " AND (wanted_ppm > 0 OR live_ppm > 0) ORDER BY deployment";

weir_status control_lineage_version(struct weir_txn *txn, const char *model, int64_t version,
                                    struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    struct lineage lineage = {.txn = txn, .arena = arena};
    struct weir_model_version row;
    struct control_lineage_finder *finders;
    char **deployments;
    size_t n, n_finders;
    WEIR_TRY(lineage_version_row(&lineage, model, version, &row, err));
    WEIR_TRY(add_version(&lineage, &row, err));
    WEIR_TRY(lineage_go_back(&lineage, err));
    WEIR_TRY(lineage_add_places(&lineage, &row, err));
    WEIR_TRY(weir_txn_query_texts(
        txn, sql_deployments,
        WEIR_BINDS(WEIR_BIND_TEXT("model", row.model), WEIR_BIND_INT("version", row.version)),
        arena, &deployments, &n, err));
    WEIR_TRY(lineage_finders(&lineage, &row, &finders, &n_finders, err));
    *out =
        WEIR_VIEW_JSON(control_version_lineage, .version = &row, .deployments = deployments,
                       .n_deployments = n, .places = lineage.places, .n_places = lineage.n_places,
                       .finders = finders, .n_finders = n_finders, .found = found_by(&lineage));
    return WEIR_OK;
}

/* ---- a dataset version ----------------------------------------------------------------------- */

weir_status control_lineage_dataset(struct weir_txn *txn, const char *dataset, int64_t version,
                                    struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    struct lineage back = {.txn = txn, .arena = arena}, reached = {.txn = txn, .arena = arena};
    struct weir_dataset_version row;
    WEIR_TRY(weir_dataset_version_get(txn, dataset, version, arena, &row, err));
    (void)lineage_add(&back, &back.dataset_names, dataset, version);
    WEIR_TRY(lineage_go_back(&back, err));
    WEIR_TRY(lineage_go_forward(&reached, dataset, version, err));
    /* As they are named: what made them, or went into them beside this, is not followed. */
    struct weir_run *readers = WEIR_ARENA_ARRAY(arena, reached.run_names.n, struct weir_run);
    for (size_t i = 0; i < reached.run_names.n; i++) {
        WEIR_TRY(weir_txn_get(txn, &weir_run_resource, reached.run_names.items[i].name, arena,
                              &readers[i], err));
    }
    back.is_cut = back.is_cut || reached.is_cut;
    *out = WEIR_VIEW_JSON(control_dataset_lineage, .dataset = back.datasets,
                          .found = found_by(&back), .read_by = readers,
                          .n_read_by = reached.run_names.n, .made = reached.dataset_names.items + 1,
                          .n_made = reached.dataset_names.n - 1, .versions = reached.versions,
                          .n_versions = reached.n_versions, .places = reached.places,
                          .n_places = reached.n_places, .galleries = reached.galleries,
                          .n_galleries = reached.n_galleries);
    return WEIR_OK;
}
