#include "control/delete.h"

#include "control/uses.h"
#include "ion/ion.h"
#include "job/job.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

#define OVER "('SUCCEEDED', 'FAILED', 'CANCELLED')"

/** A query of who needs something: its texts are named, the first of them. */
struct use {
    const char *sql, *before, *after;
    bool gives_way; /* to --force */
};

/* The first text that a query gives; NULL: none. */
static weir_status first_of(struct control *control, struct weir_txn *txn, const char *sql,
                            const struct weir_bind *bind, char **out, struct weir_error *err)
{
    char **texts;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(txn, sql, bind, 1, control->arena, &texts, &n, err));
    *out = n > 0 ? texts[0] : NULL;
    return WEIR_OK;
}

/* Each query has the name as :name, or as :quoted, a text of JSON that begins so. */
static weir_status check_uses(struct control *control, struct weir_txn *txn, const char *what,
                              const char *name, const struct use *uses, size_t n,
                              struct weir_error *err)
{
    const struct weir_bind plain = WEIR_BIND_TEXT("name", name);
    const struct weir_bind quoted =
        WEIR_BIND_TEXT("quoted", weir_arena_printf(control->arena, "\"%s", name));
    for (size_t i = 0; i < n; i++) {
        char *user = NULL;
        bool is_quoted = strstr(uses[i].sql, ":quoted") != NULL;
        WEIR_TRY(first_of(control, txn, uses[i].sql, is_quoted ? &quoted : &plain, &user, err));
        if (user != NULL) {
            return weir_error_set(err, WEIR_ERR_CONFLICT, "%s is not deleted: %s%s%s", what,
                                  uses[i].before, user, uses[i].after);
        }
    }
    return WEIR_OK;
}

/* ---- datasets ----------------------------------------------------------------------------------- */

/* Of a specification the name is looked for as a text of its JSON: rather one too many than one too few. */
static const struct use dataset_uses[] = {
    {"SELECT name FROM jobs WHERE state NOT IN " OVER " AND instr(spec, :quoted) > 0", "job ",
     " names it and is not over: wait for it, or `weir job cancel` it, first", false},
    {"SELECT name FROM sweeps WHERE state IN ('RUNNING', 'PAUSED', 'STOPPING')"
     " AND instr(document, :quoted) > 0",
     "sweep ", " names it and is not over: `weir sweep stop` it first", false},
    {"SELECT CAST(count(*) AS TEXT) FROM dataset_tombstones WHERE dataset = :name GROUP BY dataset",
     "people were forgotten in it (", "), and what tells of that is kept", false},
    {"SELECT model || ' version ' || version FROM model_versions WHERE dataset = :name"
     " AND deleted_ms = 0 ORDER BY created_ms DESC",
     "", " was trained on it, and its lineage would end there: delete that first, or say --force",
     true},
};

struct naming {
    struct control *control;
    struct weir_txn *txn;
    const char *dataset;
};

static bool is_named(const char *own, const char *dataset)
{
    size_t len = strlen(dataset);
    return own != NULL && strncmp(own, dataset, len) == 0 && (own[len] == '\0' || own[len] == '@');
}

static weir_status check_document(void *context, const char *ion, const struct weir_ion_doc *doc,
                                  struct weir_error *err)
{
    const struct naming *naming = context;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        if (is_named(pipeline->dataset, naming->dataset) ||
            is_named(pipeline->output, naming->dataset) ||
            is_named(pipeline->gallery_dataset, naming->dataset) ||
            is_named(pipeline->impostors, naming->dataset)) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "dataset %s is not deleted: %s names it: change that, or `weir delete` it, first",
                naming->dataset,
                control_user_of(naming->control, naming->txn, &weir_ion_resource, ion));
        }
    }
    return WEIR_OK;
}

weir_status control_dataset_delete(struct control *control, struct weir_txn *txn, const char *name,
                                   bool is_forced, struct weir_dataset *out, struct weir_error *err)
{
    size_t n = WEIR_ARRAY_LEN(dataset_uses);
    const struct weir_bind bind = WEIR_BIND_TEXT("dataset", name);
    WEIR_TRY(weir_txn_get(txn, &weir_dataset_resource, name, control->arena, out, err));
    struct naming naming = {control, txn, name};
    WEIR_TRY(control_each_doc(control, txn, check_document, &naming, err));
    n -= is_forced && dataset_uses[n - 1].gives_way ? 1 : 0;
    WEIR_TRY(check_uses(control, txn, weir_arena_printf(control->arena, "dataset %s", name), name,
                        dataset_uses, n, err));
    WEIR_TRY(weir_txn_exec(txn, "DELETE FROM dataset_versions WHERE dataset = :dataset", &bind, 1,
                           NULL, err));
    WEIR_TRY(weir_txn_exec(txn, "DELETE FROM datasets WHERE name = :dataset", &bind, 1, NULL, err));
    control_publish(control, "datasets", json_pack("{s:s,s:b}", "name", name, "deleted", 1));
    return control_log(
        control, txn, "datasets", "dataset_deleted",
        weir_arena_printf(control->arena, "dataset/%s", name),
        weir_arena_printf(control->arena, "Dataset %s is deleted with its versions", name), err);
}

/* ---- jobs --------------------------------------------------------------------------------------- */

static const struct use job_uses[] = {
    {"SELECT ion || '/' || name FROM ion_pipelines WHERE job = :name", "pipeline ",
     " stands on it, and says by it how it is", false},
    {"SELECT deployment FROM deployment_replicas WHERE job = :name",
     "it is a replica of deployment ", "", false},
    {"SELECT name FROM services WHERE job = :name", "it is the last start of service ",
     ": `weir service delete` it first", false},
    {"SELECT v.model || ' version ' || v.version FROM runs r JOIN model_versions v ON v.run = r.id"
     " WHERE r.job = :name",
     "its run made ", ", whose lineage would end there", false},
    {"SELECT d.dataset || ' version ' || d.version FROM runs r JOIN dataset_versions d"
     " ON d.run = r.id WHERE r.job = :name",
     "its run made dataset ", ", whose lineage would end there", false},
};

weir_status control_job_check_unused(struct control *control, struct weir_txn *txn, const char *id,
                                     struct weir_error *err)
{
    struct weir_job job;
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, id, control->arena, &job, err));
    if (job.finished_ms == 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "job %s is %s: only one that is over is deleted; `weir job cancel` "
                              "ends it",
                              job.name, job.state);
    }
    WEIR_TRY(check_uses(control, txn, weir_arena_printf(control->arena, "job %s", job.name), id,
                        job_uses, WEIR_ARRAY_LEN(job_uses), err));
    control_publish(control, "jobs", json_pack("{s:s,s:b}", "id", id, "deleted", 1));
    return control_log(
        control, txn, "jobs", "job_deleted", weir_arena_printf(control->arena, "job/%s", id),
        weir_arena_printf(control->arena, "Job %s is deleted with its run", job.name), err);
}
