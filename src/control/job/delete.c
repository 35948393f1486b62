#include "control/delete.h"

#include "control/uses.h"
#include "deploy/deploy.h"
#include "ion/ion.h"
#include "job/job.h"
#include "job/service.h"
#include "store/noun.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"
#include "sweep/sweep.h"

#include <string.h>

#define OVER "('SUCCEEDED', 'FAILED', 'CANCELLED')"

/** Does a document name it, by its name or its folder? */
typedef bool (*names_fn)(const json_t *document, const char *name, const char *path);

/**
 * A query of who needs something. Each row is a key of `noun`, and behind a line break what is said of it; of
 * what the caller does not see the noun alone is said. Without a noun a row is said as it is.
 */
struct use {
    const struct weir_resource *noun;
    const char *sql, *before, *after;
    bool gives_way; /* to --force */
    names_fn names; /* Looks at the second column, a document; NULL: each row counts. */
};

static const char *user_of(struct control *control, struct weir_txn *txn,
                           const struct weir_resource *noun, char *row)
{
    struct weir_error hidden;
    char *text = strchr(row, '\n');
    if (noun == NULL || text == NULL) {
        return row;
    }
    *text++ = '\0';
    void *record = weir_arena_alloc(control->arena, noun->size);
    return weir_txn_get(txn, noun, row, control->arena, record, &hidden) == WEIR_OK
               ? text
               : weir_arena_printf(control->arena, "a %s of another project", noun->name);
}

/** A search for what needs a thing of this name, and of this folder if it has one. */
struct need {
    const struct use *use;
    const char *name, *path;
    struct weir_arena *arena;
    char *row; /**< The first; NULL: nobody. */
};

/* As the server. */
static weir_status find_user(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct need *need = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, need->use->sql, WEIR_BINDS(WEIR_BIND_TEXT("name", need->name)),
                            &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row && need->row == NULL) {
        json_t *document = need->use->names != NULL ? weir_stmt_json(row, 1) : NULL;
        if (need->use->names == NULL || need->use->names(document, need->name, need->path)) {
            need->row = weir_stmt_text(row, 0, need->arena);
        }
        json_decref(document);
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status check_uses(struct control *control, struct weir_txn *txn, const char *what,
                              struct need need, const struct use *uses, size_t n,
                              struct weir_error *err)
{
    need.arena = control->arena;
    for (size_t i = 0; i < n; i++) {
        need.use = &uses[i];
        WEIR_TRY(weir_txn_as(txn, NULL, find_user, &need, err));
        if (need.row != NULL) {
            return weir_error_set(err, WEIR_ERR_CONFLICT, "%s is not deleted: %s%s%s", what,
                                  uses[i].before, user_of(control, txn, uses[i].noun, need.row),
                                  uses[i].after);
        }
    }
    return WEIR_OK;
}

/* What many hands have worked on goes by whose it is, or who may throw away what a project has made. */
static weir_status check_owner(const struct control_deleter *by, const char *what,
                               const char *owner, const char *project, struct weir_error *err)
{
    if ((owner != NULL && strcmp(owner, by->actor) == 0) ||
        weir_identity_may(by->identity, WEIR_RIGHT_MODELS_DELETE, project)) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "%s is not deleted: it is %s's; they may delete it, and who has the "
                          "right to delete models in project %s",
                          what, owner != NULL ? owner : "nobody", project);
}

/* ---- datasets ----------------------------------------------------------------------------------- */

static bool is_named(const char *own, const char *dataset)
{
    size_t len = dataset != NULL ? strlen(dataset) : 0;
    return own != NULL && len > 0 && strncmp(own, dataset, len) == 0 &&
           (own[len] == '\0' || own[len] == '@');
}

/* Of parameters and options. */
static bool names(const json_t *value, const char *dataset)
{
    static const char *const members[] = {"dataset", "validation", "backgrounds", "datasets"};
    bool is_found = false;
    const json_t *one;
    size_t i;
    for (size_t k = 0; k < WEIR_ARRAY_LEN(members) && !is_found; k++) {
        const json_t *member = json_object_get(value, members[k]);
        is_found = is_named(json_string_value(member), dataset);
        json_array_foreach(member, i, one)
        {
            is_found = is_found || is_named(json_string_value(one), dataset);
        }
    }
    return is_found;
}

/* What is named for validation has become its folder. */
static bool job_names(const json_t *spec, const char *name, const char *path)
{
    return names(spec, name) || names(spec, path);
}

/* At any depth, beneath a member that says dataset or validation. */
static bool names_within(const json_t *json, bool is_within, const char *name, const char *path)
{
    const char *key, *own = json_string_value(json);
    json_t *member;
    size_t i;
    bool is_found = is_within && (is_named(own, name) || is_named(own, path));
    json_object_foreach((json_t *)json, key, member)
    {
        is_found = is_found || names_within(member,
                                            is_within || strncmp(key, "dataset", 7) == 0 ||
                                                strncmp(key, "validation", 10) == 0 ||
                                                strncmp(key, "backgrounds", 11) == 0,
                                            name, path);
    }
    json_array_foreach(json, i, member)
    {
        is_found = is_found || names_within(member, is_within, name, path);
    }
    return is_found;
}

static bool sweep_names(const json_t *document, const char *name, const char *path)
{
    return names_within(document, false, name, path);
}

// clang-format off
static const struct use dataset_uses[] = {
    {&weir_job_resource,
     "SELECT id || '\njob ' || name, spec FROM jobs WHERE state NOT IN " OVER
     " AND (instr(spec, :name) > 0 OR"
     " instr(spec, (SELECT path FROM datasets WHERE name = :name)) > 0)",
     "", " names it and is not over: wait for it, or `weir job cancel` it, first", false, job_names},
    {&weir_sweep_resource,
     "SELECT id || '\nsweep ' || name, document FROM sweeps"
     " WHERE state IN ('RUNNING', 'PAUSED', 'STOPPING') AND instr(document, :name) > 0",
     "", " names it and is not over: `weir sweep stop` it first", false, sweep_names},
    {NULL,
     "SELECT CAST(count(*) AS TEXT) FROM dataset_tombstones WHERE dataset = :name GROUP BY dataset",
     "people were forgotten in it (", "), and what tells of that is kept", false, NULL},
    {&weir_model_resource,
     "SELECT model || '\n' || model || ' version ' || version FROM model_versions"
     " WHERE (dataset = :name OR run IN (SELECT r.id FROM dataset_versions v CROSS JOIN"
     " input_datasets d CROSS JOIN run_inputs i CROSS JOIN runs r WHERE v.dataset = :name"
     " AND d.source_type = 'weir' AND d.source = v.dataset || '@v' || v.version"
     " AND i.dataset = d.id AND i.context = 'backgrounds' AND r.number = i.run))"
     " AND deleted_ms = 0 ORDER BY created_ms DESC",
     "", " was trained on it, and its lineage would end there: delete that first, or say --force",
     true, NULL},
};

// clang-format on

struct naming {
    struct control *control;
    struct weir_txn *txn;
    const char *dataset;
};

static bool text_names(const char *text, const char *dataset)
{
    json_t *value = text != NULL ? json_loads(text, 0, NULL) : NULL;
    bool is_found = names(value, dataset);
    json_decref(value);
    return is_found;
}

static bool pipeline_names(const struct weir_ion_doc_pipeline *pipeline, const char *dataset)
{
    return is_named(pipeline->dataset, dataset) || is_named(pipeline->output, dataset) ||
           is_named(pipeline->gallery_dataset, dataset) || is_named(pipeline->impostors, dataset) ||
           text_names(pipeline->parameters, dataset);
}

static bool document_names(const struct weir_ion_doc *doc, const char *dataset)
{
    bool is_found = false;
    for (size_t i = 0; i < doc->n_pipelines && !is_found; i++) {
        is_found = pipeline_names(&doc->pipelines[i], dataset);
    }
    for (size_t i = 0; i < doc->n_links && !is_found; i++) {
        for (size_t k = 0; k < doc->links[i].policies.n && !is_found; k++) {
            is_found = text_names(doc->links[i].policies.items[k].text, dataset);
        }
    }
    return is_found;
}

static weir_status check_document(void *context, const char *ion, const struct weir_ion_doc *doc,
                                  struct weir_error *err)
{
    const struct naming *naming = context;
    return !document_names(doc, naming->dataset)
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_CONFLICT,
                     "dataset %s is not deleted: %s names it: change that, or `weir delete` it, "
                     "first",
                     naming->dataset,
                     control_user_of(naming->control, naming->txn, &weir_ion_resource, ion));
}

weir_status control_dataset_delete(struct control *control, struct weir_txn *txn, const char *name,
                                   const struct control_deleter *by, struct weir_dataset *out,
                                   struct weir_error *err)
{
    size_t n = WEIR_ARRAY_LEN(dataset_uses);
    const char *what = weir_arena_printf(control->arena, "dataset %s", name);
    const struct weir_bind bind = WEIR_BIND_TEXT("dataset", name);
    WEIR_TRY(weir_txn_get(txn, &weir_dataset_resource, name, control->arena, out, err));
    WEIR_TRY(check_owner(by, what, out->created_by, out->project, err));
    const struct need need = {.name = name, .path = out->path};
    struct naming naming = {control, txn, name};
    WEIR_TRY(control_each_doc(control, txn, check_document, &naming, err));
    n -= by->is_forced && dataset_uses[n - 1].gives_way ? 1 : 0;
    WEIR_TRY(check_uses(control, txn, what, need, dataset_uses, n, err));
    /* While its row is there, which says whose the event is. */
    WEIR_TRY(control_log(
        control, txn, "datasets", "dataset_deleted",
        weir_arena_printf(control->arena, "dataset/%s", name),
        weir_arena_printf(control->arena, "Dataset %s is deleted with its versions", name), err));
    WEIR_TRY(weir_txn_exec(txn, "DELETE FROM dataset_versions WHERE dataset = :dataset", &bind, 1,
                           NULL, err));
    WEIR_TRY(weir_txn_exec(txn, "DELETE FROM datasets WHERE name = :dataset", &bind, 1, NULL, err));
    control_publish(control, "datasets", json_pack("{s:s,s:b}", "name", name, "deleted", 1));
    return WEIR_OK;
}

/* ---- jobs --------------------------------------------------------------------------------------- */

/* By the job itself, then by what its runs have left. */
// clang-format off
static const struct use job_uses[] = {
    {&weir_ion_resource,
     "SELECT ion || '\npipeline ' || ion || '/' || name FROM ion_pipelines WHERE job = :name",
     "", " stands on it, and says by it how it is", false, NULL},
    {&weir_ion_resource,
     "SELECT ion || '\nION ' || ion FROM ion_candidates"
     " WHERE instr(evaluation, :name) > 0 AND " WEIR_CANDIDATE_IN_USE_SQL,
     "", " decides by what it measures", false, NULL},
    {&weir_deployment_resource,
     "SELECT deployment || '\ndeployment ' || deployment FROM deployment_replicas"
     " WHERE job = :name",
     "it is a replica of ", "", false, NULL},
    {&weir_service_resource,
     "SELECT id || '\nservice ' || name FROM services WHERE job = :name",
     "it is the last start of ", ": `weir delete service` it first", false, NULL},
    {&weir_sweep_resource,
     "SELECT s.id || '\ntrial ' || t.number || ' of sweep ' || s.name FROM sweep_trials t"
     " JOIN sweeps s ON s.id = t.sweep WHERE t.job = :name",
     "it is ", ", which would show nothing of it: `weir delete sweep` that first", false, NULL},
    {&weir_job_resource,
     "SELECT id || '\njob ' || name FROM jobs WHERE state NOT IN " OVER
     " AND (instr(spec, :name) > 0 OR EXISTS"
     " (SELECT 1 FROM runs r WHERE r.job = :name AND instr(spec, r.id) > 0))",
     "", " names it, or its run, and is not over: wait for it, or `weir job cancel` it, first", false, NULL},
    {&weir_model_resource,
     "SELECT v.model || '\n' || v.model || ' version ' || v.version FROM runs r"
     " JOIN model_versions v ON v.run = r.id WHERE r.job = :name UNION ALL"
     " SELECT v.model || '\n' || v.model || ' version ' || v.version FROM runs r"
     " JOIN model_versions v ON v.source_run = r.id JOIN models m ON m.name = v.model"
     " WHERE r.job = :name AND m.project = r.project",
     "its run made ", ", whose lineage would end there", false, NULL},
    {&weir_dataset_resource,
     "SELECT d.dataset || '\ndataset ' || d.dataset || ' version ' || d.version FROM runs r"
     " JOIN dataset_versions d ON d.run = r.id WHERE r.job = :name",
     "its run made ", ", whose lineage would end there", false, NULL},
    {&weir_run_resource,
     "SELECT o.id || '\nrun ' || o.name FROM runs r JOIN logged_models m ON m.run = r.id"
     " JOIN run_logged_models u ON u.model = m.id AND u.run <> r.id JOIN runs o ON o.id = u.run"
     " WHERE r.job = :name",
     "a model that its run logged is used by ", ", whose lineage would end there", false, NULL},
};

// clang-format on

weir_status control_job_check_unused(struct control *control, struct weir_txn *txn, const char *id,
                                     const struct control_deleter *by, struct weir_error *err)
{
    struct weir_job job;
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, id, control->arena, &job, err));
    const char *what = weir_arena_printf(control->arena, "job %s", job.name);
    WEIR_TRY(check_owner(by, what, job.created_by, job.project, err));
    if (job.finished_ms == 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "job %s is %s: only one that is over is deleted; `weir job cancel` "
                              "ends it",
                              job.name, job.state);
    }
    WEIR_TRY(check_uses(control, txn, what, (struct need){.name = id}, job_uses,
                        WEIR_ARRAY_LEN(job_uses), err));
    control_publish(control, "jobs", json_pack("{s:s,s:b}", "id", id, "deleted", 1));
    return control_log(
        control, txn, "jobs", "job_deleted", weir_arena_printf(control->arena, "job/%s", id),
        weir_arena_printf(control->arena, "Job %s is deleted with its run", job.name), err);
}
