#include "control/remake.h"

#include "base/grow.h"
#include "base/log.h"
#include "framework/framework.h"
#include "ion/ion.h"
#include "job/job.h"
#include "store/event.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/track.h"

#include <string.h>

#define SETTING "definitions" /* how new the definitions of all tasks are */
#define NEWEST  "2"           /* 1: with paths; 2: with folders */

/* The open jobs first, which are few: no past is looked through. */
static const char sql_open[] = "SELECT t.job, t.definition FROM jobs j CROSS JOIN tasks t"
                               " WHERE t.job = j.id"
                               " AND j.state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
                               " ORDER BY t.job";
static const char sql_remake[] =
    "UPDATE tasks SET definition = :definition, definition_bytes = :bytes, old_attempt = attempt"
    " WHERE id = :id";
static const char sql_replica[] =
    "SELECT t.id, t.job, t.attempt FROM tasks t JOIN jobs j ON j.id = t.job WHERE t.node = :node"
    " AND t.old_attempt > 0 AND t.old_attempt = t.attempt AND t.desired = 'running'"
    " AND t.state IN ('STARTING', 'RUNNING') AND j.is_service = 1 ORDER BY t.id LIMIT 1";

static void add_folder(struct control *control, struct weir_txn *txn, const char *name,
                       json_t *folders)
{
    struct weir_dataset dataset;
    if (name != NULL && weir_txn_get(txn, &weir_dataset_resource, name, control->arena, &dataset,
                                     NULL) == WEIR_OK) {
        json_object_set_new(folders, dataset.name, json_string(dataset.path));
    }
}

/* The folders that its tasks read beside what its specification names by path. */
static json_t *folders_of(struct control *control, struct weir_txn *txn, const struct weir_job *job,
                          const json_t *spec)
{
    json_t *folders = json_object();
    const json_t *names = json_object_get(spec, "datasets");
    for (size_t i = 0; i < json_array_size(names); i++) {
        add_folder(control, txn, json_string_value(json_array_get(names, i)), folders);
    }
    struct weir_ion_state state;
    struct weir_error ignored;
    const struct weir_ion_doc_pipeline *doc =
        job->ion != NULL && job->pipeline != NULL &&
                weir_ion_load(txn, job->ion, control->arena, &state, &ignored) == WEIR_OK
            ? weir_ion_doc_pipeline(&state.doc, job->pipeline)
            : NULL;
    if (doc != NULL) {
        add_folder(control, txn, doc->gallery_dataset, folders);
        add_folder(control, txn, doc->impostors, folders);
        add_folder(control, txn, doc->dataset, folders);
    }
    return folders;
}

static weir_status plan(struct control *control, struct weir_txn *txn, const struct weir_job *job,
                        struct weir_launch **out, size_t *out_n, struct weir_error *err)
{
    struct weir_job_request request;
    WEIR_AUTO(weir_json_auto_free) json_t *spec = NULL;
    WEIR_TRY(weir_json_parse(job->spec, strlen(job->spec), "$.spec", &spec, err));
    WEIR_AUTO(weir_json_auto_free) json_t *folders = folders_of(control, txn, job, spec);
    const struct weir_launch_job launch_job = {.id = job->id,
                                               .project = job->project,
                                               .kind = job->kind,
                                               .spec = spec,
                                               .datasets =
                                                   json_object_size(folders) > 0 ? folders : NULL,
                                               .shared_dir = control->state_dir,
                                               .shared_id = control_shared_id(control),
                                               .server_url = control->server_url,
                                               .secret = control_job_secret(control->arena),
                                               .max_restarts = job->max_restarts,
                                               .node_timeout_ms = weir_node_lost_ms()};
    WEIR_TRY(weir_framework_check(job->kind, spec, control->arena, err));
    return weir_framework_plan(&launch_job, control->arena, out, out_n, &request, err);
}

static const struct weir_launch *find_launch(const struct weir_launch *launches, size_t n,
                                             const struct weir_task *task)
{
    for (size_t i = 0; i < n; i++) {
        if (launches[i].rank == task->rank && strcmp(launches[i].role, task->role) == 0) {
            return &launches[i];
        }
    }
    return NULL;
}

static weir_status write_definitions(struct weir_txn *txn, const struct weir_job_state *state,
                                     const struct weir_launch *launches, size_t n,
                                     struct weir_error *err)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_launch *launch = find_launch(launches, n, &state->tasks[i]);
        if (launch != NULL) {
            WEIR_TRY(weir_txn_exec(
                txn, sql_remake,
                WEIR_BINDS(WEIR_BIND_TEXT("id", state->tasks[i].id),
                           WEIR_BIND_TEXT("definition", launch->definition),
                           WEIR_BIND_INT("bytes", (int64_t)strlen(launch->definition))),
                NULL, err));
        }
    }
    return WEIR_OK;
}

/* What cannot be planned stays as it is: its agent says why it does not begin. */
static weir_status remake(struct control *control, struct weir_txn *txn, const char *id,
                          struct weir_error *err)
{
    struct weir_job_state state;
    struct weir_launch *launches;
    struct weir_error why = {0};
    size_t n;
    struct weir_job job;
    weir_status status = weir_job_load(txn, id, control->arena, &state, &why);
    if (status == WEIR_OK) {
        status = weir_txn_get(txn, &weir_job_resource, id, control->arena, &job, &why);
    }
    if (status == WEIR_OK) {
        status = plan(control, txn, &job, &launches, &n, &why);
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "job_not_remade", WEIR_KV_STR("job", id),
                 WEIR_KV_STR("reason", why.message));
        return WEIR_OK;
    }
    WEIR_TRY(write_definitions(txn, &state, launches, n, err));
    return control_log(control, txn, "jobs", "job_remade",
                       weir_arena_printf(control->arena, "job/%s", id),
                       weir_arena_printf(control->arena,
                                         "Job %s, which an older version of Weir made, was made to "
                                         "fit this one.",
                                         job.name),
                       err);
}

static bool is_old(const struct weir_stmt *row)
{
    json_t *definition = weir_stmt_json(row, 1);
    bool is_old = json_object_get(definition, "paths") == NULL ||
                  json_object_get(definition, "folders") == NULL;
    json_decref(definition);
    return is_old;
}

/* The open jobs that have a task with an old definition. */
static weir_status list_old(struct weir_txn *txn, struct weir_arena *arena, char ***out,
                            size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    size_t cap = 0;
    bool has_row;
    *out = NULL;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_open, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        bool is_known = *out_n > 0 && strcmp((*out)[*out_n - 1], weir_stmt_peek(row, 0, NULL)) == 0;
        if (!is_known && is_old(row)) {
            weir_arena_grow(arena, out, sizeof **out, *out_n, &cap);
            (*out)[(*out_n)++] = weir_stmt_text(row, 0, arena);
        }
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

weir_status control_remake(struct control *control, struct weir_txn *txn, struct weir_error *err)
{
    char *how_new, **ids;
    size_t n;
    struct weir_error ignored;
    if (weir_setting_get(txn, SETTING, control->arena, &how_new, &ignored) == WEIR_OK &&
        strcmp(how_new, NEWEST) == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(list_old(txn, control->arena, &ids, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(remake(control, txn, ids[i], err));
    }
    return weir_setting_put(txn, SETTING, NEWEST, control->now_ms, err);
}

weir_status control_remake_is_due(struct weir_txn *txn, const char *node, bool *out,
                                  struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_replica, WEIR_BINDS(WEIR_BIND_TEXT("node", node)), &row, err));
    return weir_stmt_step(row, out, err);
}

weir_status control_remake_replica(struct control *control, struct weir_txn *txn, const char *node,
                                   struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_replica, WEIR_BINDS(WEIR_BIND_TEXT("node", node)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (!has_row) {
        return WEIR_OK;
    }
    const char *job = weir_stmt_text(row, 1, control->arena);
    const struct weir_job_event event = {.type = WEIR_JOB_EVENT_DEVICE_LOST, /* it moves */
                                         .task = weir_stmt_text(row, 0, control->arena),
                                         .attempt = weir_stmt_int(row, 2),
                                         .text = "its replica was begun by an older version"};
    return control_job_event(control, txn, job, &event, err);
}
