/** Models, their versions and aliases. No file becomes a version that was not looked at. */
#include "api/model/model.h"

#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "api/data/blob_access.h"
#include "api/model/finds.h"
#include "control/alias.h"
#include "control/deploy.h"
#include "control/inspector.h"
#include "control/model_delete.h"
#include "control/uses.h"

#include "base/uuid.h"
#include "job/attempt.h"
#include "store/stmt.h"
#include "track/model_of_run.h"
#include "track/registry.h"

#include <stdlib.h>
#include <string.h>

#define INSPECT_WAIT_MS  150000 /* Longer than a look may take, with one before it. */
#define PREPROCESS_BYTES ((size_t)64 << 10)
#define LABELS_MAX       ((size_t)1 << 20)
#define GOLDEN_BYTES     ((uint64_t)16 << 20)

/* ---- how versions are told ------------------------------------------------------------------- */

static const char sql_aliases[] =
    "SELECT alias FROM model_aliases WHERE model = :model AND version = :version ORDER BY alias";
static const char sql_deployments[] =
    "SELECT v.deployment FROM deployment_versions v JOIN deployments d ON d.name = v.deployment"
    " WHERE v.model = :model AND v.version = :version AND"
    " (v.wanted_ppm > 0 OR v.live_ppm > 0 OR d.mirror = v.version) ORDER BY v.deployment";

static weir_status list_texts(struct api_call *call, struct weir_txn *txn, const char *sql,
                              const struct weir_model_version *version, char *const **out,
                              size_t *out_n, struct weir_error *err)
{
    char **texts;
    WEIR_TRY(weir_txn_query_texts(txn, sql,
                                  WEIR_BINDS(WEIR_BIND_TEXT("model", version->model),
                                             WEIR_BIND_INT("version", version->version)),
                                  call->arena, &texts, out_n, err));
    *out = texts;
    return WEIR_OK;
}

weir_status api_version_view(struct api_call *call, struct weir_txn *txn,
                             const struct weir_model_version *version, json_t **out,
                             struct weir_error *err)
{
    struct weir_tag *tags;
    struct api_version_more more = {0};
    WEIR_TRY(list_texts(call, txn, sql_aliases, version, &more.aliases, &more.n_aliases, err));
    WEIR_TRY(list_texts(call, txn, sql_deployments, version, &more.deployments, &more.n_deployments,
                        err));
    WEIR_TRY(weir_version_tags(txn, version->id, call->arena, &tags, &more.n_tags, err));
    more.tags = tags;
    *out = weir_record_to_json(&weir_model_version_resource, version);
    more.executor =
        json_string_value(json_object_get(json_object_get(*out, "signature"), "executor"));
    weir_view_add_to_json(api_version_more_view(), &more, *out);
    return WEIR_OK;
}

/* Large members of many versions are more than an answer may hold: the list's page ends before. */
static weir_status answer_versions(struct api_call *call, struct weir_txn *txn,
                                   const struct api_rows *rows, struct weir_error *err)
{
    const struct weir_model_version *versions = rows->items;
    json_t *items = json_array();
    for (size_t i = 0; i < rows->n; i++) {
        json_t *view;
        weir_status status = api_version_view(call, txn, &versions[i], &view, err);
        if (status != WEIR_OK) {
            json_decref(items);
            return status;
        }
        json_array_append_new(items, view);
    }
    api_answer_items(call, items, rows->next);
    return WEIR_OK;
}

weir_status api_model_versions(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_model model;
    WEIR_TRY(weir_model_get(txn, call->params[0], call->arena, &model, err));
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model.name),
                                               WEIR_FILTER_INT("deleted_ms", EQ, 0)),
                                  .order_by = "version", .is_descending = true, .limit = 1000};
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &of, &rows, err));
    return answer_versions(call, txn, &rows, err);
}

weir_status api_read_version(const char *text, int64_t *out, struct weir_error *err)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*end != '\0' || number < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "version \"%.20s\": expected a number from 1",
                              text);
    }
    *out = number;
    return WEIR_OK;
}

weir_status api_model_version_get(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_model_version version;
    int64_t number = 0;
    WEIR_TRY(api_read_version(call->params[1], &number, err));
    json_t *view;
    WEIR_TRY(weir_model_version_get(txn, call->params[0], number, call->arena, &version, err));
    WEIR_TRY(api_version_view(call, txn, &version, &view, err));
    api_answer(call, view);
    return WEIR_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

weir_status api_model_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_where(call, txn, &WEIR_FILTER_INT("deleted_ms", EQ, 0), err);
}

weir_status api_model_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    WEIR_TRY(control_model_delete(&control, txn, call->params[0], err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_model_version_delete(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct control control = api_control(call);
    int64_t number = 0;
    WEIR_TRY(api_read_version(call->params[1], &number, err));
    WEIR_TRY(control_model_version_delete(&control, txn, call->params[0], number, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- looking at files ------------------------------------------------------------------------ */

weir_status api_inspect(struct api_call *call, const struct inspect_question *question,
                        char **out_signature, struct weir_error *err)
{
    *out_signature = NULL;
    switch (inspector_look(call->api->inspector, question, call->arena, out_signature, err)) {
    case INSPECT_DONE:
        return WEIR_OK;
    case INSPECT_REFUSED:
        return err->status;
    default:
        break;
    }
    if (call->request->is_expired) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "the file of model \"%s\" is still being looked at: send the same "
                              "again",
                              question->name);
    }
    call->is_routine = true; /* nothing has happened yet */
    weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, INSPECT_WAIT_MS);
    return WEIR_OK;
}

/* ---- registering ----------------------------------------------------------------------------- */

/* A version on its way in. */
struct entry {
    struct api_call *call;
    struct weir_model_version version, stored;
    const char *project, *alias;
    const char *artifact;               /* Without a blob: where in the run its file is. */
    char *labels, *preprocess, *inputs; /* JSON; NULL: what the file says. */
    char *changes;                      /* Out: what it takes or gives otherwise; NULL: nothing. */
    bool is_there;                      /* Out: the same identifier was registered before. */
};

/* Members beside the record's: taken out, so that the record's reader does not find them. */
static weir_status take_extras(struct entry *entry, struct weir_error *err)
{
    struct api_call *call = entry->call;
    const char *project, *alias, *artifact;
    const json_t *labels = json_object_get(call->body, "labels");
    const json_t *preprocess = json_object_get(call->body, "preprocess");
    const json_t *inputs = json_object_get(call->body, "inputs");
    WEIR_TRY(api_body_text(call, "project", &project, err));
    WEIR_TRY(api_body_text(call, "alias", &alias, err));
    entry->project = weir_arena_strdup(call->arena, project);
    entry->alias = weir_arena_strdup(call->arena, alias);
    WEIR_TRY(api_body_text(call, "artifact", &artifact, err));
    entry->artifact = weir_arena_strdup(call->arena, artifact);
    if (labels != NULL && !json_is_null(labels) &&
        (!json_is_array(labels) || json_array_size(labels) > LABELS_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.labels: expected an array of texts");
    }
    if (preprocess != NULL && !json_is_null(preprocess) && !json_is_object(preprocess)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.preprocess: expected an object: {width, height, mean, std …}");
    }
    if (inputs != NULL && !json_is_null(inputs) && !json_is_object(inputs)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.inputs: expected an object: {\"x\": \"N,3,H,W\"}");
    }
    entry->inputs = json_is_object(inputs) ? weir_json_text(inputs, call->arena) : NULL;
    if (entry->inputs != NULL && strlen(entry->inputs) > PREPROCESS_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.inputs: at most %zu bytes", PREPROCESS_BYTES);
    }
    entry->labels = json_is_array(labels) ? weir_json_text(labels, call->arena) : NULL;
    entry->preprocess = json_is_object(preprocess) ? weir_json_text(preprocess, call->arena) : NULL;
    if (entry->preprocess != NULL && strlen(entry->preprocess) > PREPROCESS_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.preprocess: at most %zu bytes",
                              PREPROCESS_BYTES);
    }
    static const char *const names[] = {"labels", "preprocess", "inputs",
                                        "alias",  "project",    "artifact"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        (void)json_object_del(call->body, names[i]);
    }
    bool has_run = json_is_string(json_object_get(call->body, "run"));
    if ((has_run || entry->artifact != NULL) && json_object_get(call->body, "blob") == NULL) {
        json_object_set_new(call->body, "blob", json_string("")); /* find_file */
    }
    return WEIR_OK;
}

/* A task registers under the name that its job was given, and no other. */
static weir_status check_own_name(const struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_job job;
    if (call->attempt == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->attempt->job, call->arena, &job, err));
    json_t *spec = job.spec != NULL ? json_loads(job.spec, 0, NULL) : NULL;
    const char *name = json_string_value(json_object_get(spec, "model_name"));
    bool is_own = name != NULL && strcmp(name, call->params[0]) == 0;
    json_decref(spec);
    return is_own ? WEIR_OK
                  : weir_error_set(err, WEIR_ERR_DENIED,
                                   "this task's token may register models under its job's "
                                   "model_name only, not as \"%.60s\"",
                                   call->params[0]);
}

/* One that another project has sent is not there: nobody gets bytes by naming them. */
static weir_status find_blob(struct api_call *call, const char *sha256, uint64_t *out_bytes,
                             bool *out_is_there, struct weir_error *err)
{
    char *path;
    *out_is_there = false;
    if (sha256 != NULL && weir_blob_name_is_valid(sha256)) {
        WEIR_TRY(blob_is_callers(call, sha256, out_is_there, err));
    }
    *out_is_there = *out_is_there && weir_blob_path(call->api->blobs, sha256, call->arena, &path,
                                                    out_bytes, NULL) == WEIR_OK;
    return WEIR_OK;
}

static weir_status check_golden(struct api_call *call, const char *golden, struct weir_error *err)
{
    bool is_there;
    uint64_t bytes = 0;
    if (golden == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(find_blob(call, golden, &bytes, &is_there, err));
    if (!is_there) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "$.golden: upload the file first with PUT /api/v1/blobs/{sha256}");
    }
    return bytes <= GOLDEN_BYTES ? WEIR_OK
                                 : weir_error_set(err, WEIR_ERR_LIMIT,
                                                  "$.golden: at most %llu bytes of golden inputs",
                                                  (unsigned long long)GOLDEN_BYTES);
}

static weir_status check_entry(struct entry *entry, struct weir_error *err)
{
    struct api_call *call = entry->call;
    struct weir_model_version *version = &entry->version;
    bool is_there;
    uint64_t bytes = 0;
    if (!weir_model_name_is_valid(version->model)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "model \"%.60s\": not a name (no \"/\", no \":\", at most %d bytes)",
                              version->model, WEIR_MODEL_NAME_MAX_BYTES);
    }
    if (version->id == NULL || !weir_uuid_is_valid(version->id)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.id: expected a UUID made by the caller");
    }
    WEIR_TRY(find_blob(call, version->blob, &bytes, &is_there, err));
    if (!is_there) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "$.blob: upload the file first with PUT "
                              "/api/v1/blobs/{sha256}, or name the $.run that has it");
    }
    version->bytes = (int64_t)bytes;
    return check_golden(call, version->golden, err);
}

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct entry *entry = context;
    struct weir_model_version there;
    struct weir_error ignored;
    WEIR_TRY(check_own_name(entry->call, txn, err));
    entry->is_there = weir_txn_get(txn, &weir_model_version_resource, entry->version.id,
                                   entry->call->arena, &there, &ignored) == WEIR_OK;
    return WEIR_OK;
}

/* The version is of a run's own file, and says of itself what the run knows. */
static weir_status take_from_run(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct entry *entry = context;
    struct api_call *call = entry->call;
    struct weir_model_version *version = &entry->version;
    struct weir_artifact file;
    struct weir_run run;
    const char *why;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, version->run, call->arena, &run, err));
    WEIR_TRY(weir_model_of_run_find(txn, run.id, entry->artifact, call->arena, &file, &why, err));
    if (why != NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "run %s has no model to register: %s",
                              run.id, why);
    }
    version->blob = file.blob;
    return weir_model_of_run_describe(txn, &run, call->arena, version, err);
}

/* Without a blob, the file is an artifact of the run. */
static weir_status find_file(struct entry *entry, struct weir_error *err)
{
    struct api_call *call = entry->call;
    bool has_blob = entry->version.blob != NULL && entry->version.blob[0] != '\0';
    if (entry->artifact != NULL && (has_blob || entry->version.run == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.artifact: it is a path in the artifacts of $.run, in place of "
                              "$.blob");
    }
    return has_blob || entry->version.run == NULL ? WEIR_OK
                                                  : api_read(call, take_from_run, entry, err);
}

/* Its alias is a label: of whom registers only, none. A task's was looked at by its scope. */
static weir_status check_alias(struct entry *entry, struct weir_txn *txn, struct weir_error *err)
{
    struct api_call *call = entry->call;
    struct weir_model model;
    const struct weir_row_scope may = api_projects_with(call, WEIR_RIGHT_MODELS_LABEL);
    if (entry->alias == NULL || call->attempt != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_model_get(txn, entry->version.model, call->arena, &model, err));
    return weir_row_scope_sees(&may, model.project)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "$.alias: needs the right to label models in project %.63s",
                                model.project);
}

static weir_status register_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct entry *entry = context;
    struct api_call *call = entry->call;
    struct control control = api_control(call);
    json_array_clear(call->publish);
    WEIR_TRY(
        control_model_push(&control, txn, &entry->version, entry->project, &entry->stored, err));
    WEIR_TRY(control_version_changes(txn, entry->stored.model, 0, entry->stored.version,
                                     call->arena, &entry->changes, err));
    WEIR_TRY(check_alias(entry, txn, err));
    return entry->alias != NULL ? control_alias_set(&control, txn, entry->version.model,
                                                    entry->alias, entry->stored.version, err)
                                : WEIR_OK;
}

weir_status api_model_register(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct entry entry = {.call = call};
    (void)txn;
    WEIR_TRY(take_extras(&entry, err));
    WEIR_TRY(weir_record_from_json(&weir_model_version_resource, call->body, WEIR_RECORD_REPORT,
                                   call->arena, &entry.version, err));
    entry.version.model = weir_arena_strdup(call->arena, call->params[0]);
    entry.version.created_by = weir_arena_strdup(
        call->arena, call->attempt != NULL ? call->attempt->created_by : call->actor);
    entry.version.signature = NULL; /* the file says, and nobody else */
    entry.version.unservable = NULL;
    entry.version.stage = NULL;
    WEIR_TRY(weir_store_read(call->api->store, look_in, &entry, err));
    WEIR_TRY(find_file(&entry, err));
    WEIR_TRY(check_entry(&entry, err));
    if (!entry.is_there) {
        const struct inspect_question question = {.blob = entry.version.blob,
                                                  .name = entry.version.model,
                                                  .labels = entry.labels,
                                                  .preprocess = entry.preprocess,
                                                  .inputs = entry.inputs,
                                                  .golden = entry.version.golden};
        WEIR_TRY(api_inspect(call, &question, &entry.version.signature, err));
        if (entry.version.signature == NULL) {
            return WEIR_OK; /* it waits */
        }
    }
    WEIR_TRY(api_write(call, register_in, &entry, err));
    char *finds;
    struct weir_error is_none; /* Most models are no detectors. */
    if (api_finds(entry.stored.signature, NULL, call->arena, &finds, &is_none) != WEIR_OK) {
        finds = NULL;
    }
    API_ANSWER(call, api_model_version, .row = &entry.stored, .detector = finds,
               .changes = weir_json_string(entry.changes, "(not UTF-8)"));
    return WEIR_OK;
}

/* ---- aliases --------------------------------------------------------------------------------- */

weir_status api_alias_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_model model;
    WEIR_TRY(weir_model_get(txn, call->params[0], call->arena, &model, err));
    return api_list_of_path(call, txn, "model", err);
}

weir_status api_alias_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"version", NULL};
    struct control control = api_control(call);
    struct weir_model_alias alias;
    int64_t version;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_int(call, "version", 0, &version, err));
    if (version < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.version: expected a number from 1");
    }
    WEIR_TRY(control_alias_set(&control, txn, call->params[0], call->params[1], version, err));
    WEIR_TRY(weir_txn_get(txn, &weir_model_alias_resource,
                          weir_arena_printf(call->arena, "%s:%s", call->params[0], call->params[1]),
                          call->arena, &alias, err));
    api_answer_record(call, &weir_model_alias_resource, &alias);
    return WEIR_OK;
}

weir_status api_alias_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    if (!api_query_bool(call, "force")) {
        WEIR_TRY(control_check_alias_unused(&control, txn, call->params[0], call->params[1], err));
    }
    WEIR_TRY(control_alias_set(&control, txn, call->params[0], call->params[1], 0, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
