/** Model versions: Weir's, as MLflow's clients see them. */
#include "mlflow/registry.h"

#include "base/uuid.h"
#include "control/inspector.h"
#include "control/model_delete.h"
#include "track/model_of_run.h"

#include <inttypes.h>
#include <string.h>

#define COPIES_MAX 8 /* of copies of versions */
#define SOURCE_MAX 4000

#define VERSIONS_TAG "mlflow.modelVersions" /* of a logged model */

/* ---- telling --------------------------------------------------------------------------------- */

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL && text[0] != '\0' ? text : otherwise;
}

weir_status mlflow_put_version(struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_buf *buf, const struct weir_model_version *version,
                               struct weir_error *err)
{
    struct weir_model_alias *aliases;
    struct weir_tag *tags;
    size_t n;
    (void)weir_buf_append(buf, "{", 1);
    mlflow_put_member(buf, "name", version->model);
    (void)weir_buf_printf(buf, ",\"version\":\"%" PRId64 "\"", version->version);
    mlflow_put_times(buf, version->created_ms, version->updated_ms);
    mlflow_put_member(buf, "user_id", version->created_by);
    mlflow_put_member(buf, "current_stage", version->stage);
    mlflow_put_member(buf, "description", text_or(version->description, ""));
    mlflow_put_member(buf, "source", text_or(version->source, "weir:uploaded"));
    mlflow_put_member(buf, "model_id",
                      mlflow_source_logged_model(text_or(version->source, ""), call->arena));
    mlflow_put_member(buf, "run_id", text_or(version->source_run, text_or(version->run, NULL)));
    mlflow_put_member(buf, "run_link", text_or(version->run_link, NULL));
    mlflow_put_member(buf, "status", "READY");
    mlflow_put_member(buf, "status_message", version->unservable);
    WEIR_TRY(weir_version_tags(txn, version->id, call->arena, &tags, &n, err));
    mlflow_put_pairs(buf, ",\"tags\":", tags, n);
    WEIR_TRY(mlflow_list_aliases(call, txn, version->model, &aliases, &n, err));
    (void)weir_buf_puts(buf, ",\"aliases\":[");
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        if (aliases[i].version == version->version) {
            (void)weir_buf_puts(buf, is_first ? "" : ",");
            mlflow_put_text(buf, aliases[i].alias);
            is_first = false;
        }
    }
    (void)weir_buf_puts(buf, "]}");
    return WEIR_OK;
}

weir_status mlflow_answer_version(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  const struct weir_model_version *version, struct weir_error *err)
{
    struct weir_buf buf;
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"model_version\":");
    weir_status status = mlflow_put_version(call, txn, &buf, version, err);
    return mlflow_answer_made(call, status, &buf);
}

/* ---- finding --------------------------------------------------------------------------------- */

static weir_status find_version(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                const char *name, int64_t number, struct weir_model_version *out,
                                struct weir_error *err)
{
    struct weir_model model;
    struct weir_error missing;
    weir_status status = mlflow_find_model(call, txn, name, &model, &missing);
    if (status == WEIR_OK) {
        status = weir_model_version_get(txn, name, number, call->arena, out, &missing);
    }
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status,
                              "Model Version (name=%.256s, version=%" PRId64 ") not found", name,
                              number);
    }
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s", missing.message);
}

weir_status mlflow_named_version(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                 struct weir_model_version *out, struct weir_error *err)
{
    const char *name, *text = NULL;
    int64_t number;
    WEIR_TRY(mlflow_text_required(call, "name", &name, err));
    if (!mlflow_has(call, "version")) {
        return mlflow_missing("version", err);
    }
    struct weir_error wrong;
    if (mlflow_int(call, "version", 0, &number, &wrong) != WEIR_OK || number < 1) {
        weir_status status = mlflow_text(call, "version", &text, &wrong);
        (void)status; /* a number has no text */
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Model version must be an integer, got '%.60s'",
                              text != NULL ? text : "");
    }
    return find_version(call, txn, name, number, out, err);
}

/* ---- registering ----------------------------------------------------------------------------- */

/** A version on its way in. */
struct entry {
    struct weir_mlflow_call *call;
    struct weir_model_version version;
    const char *logged_model; /**< That it was made of; NULL: the caller names none. */
    struct weir_tag *tags;
    size_t n_tags;
    bool is_copy; /**< Of a version that was looked at already. */
};

/* The file under the source that Weir can bring into service. */
static weir_status find_file(struct entry *entry, struct weir_txn *txn,
                             const struct mlflow_source *from, struct weir_error *err)
{
    struct weir_artifact file;
    const char *why;
    WEIR_TRY(
        weir_model_of_run_find(txn, from->run, from->path, entry->call->arena, &file, &why, err));
    if (why == NULL) {
        entry->version.blob = file.blob;
        entry->version.bytes = file.bytes;
    }
    entry->version.unservable = (char *)why;
    return WEIR_OK;
}

/* Its run, if it is one of this server that the caller sees. What a client says otherwise is noted as it is. */
static weir_status take_run(struct entry *entry, struct weir_txn *txn, const char *id,
                            struct weir_error *err)
{
    struct mlflow_run run;
    struct weir_error unknown;
    struct weir_mlflow_call *call = entry->call;
    if (id == NULL || id[0] == '\0' || mlflow_find_run(call, txn, id, &run, &unknown) != WEIR_OK) {
        return WEIR_OK;
    }
    if (call->job != NULL) { /* a task registers what its own job made */
        WEIR_TRY(mlflow_find_run_to_change(call, txn, id, true, &run, err));
    }
    return weir_model_of_run_describe(txn, &run.record, call->arena, &entry->version, err);
}

/* A copy has the file of the version that it is one of. */
static weir_status take_copy(struct entry *entry, struct weir_txn *txn, const char *name,
                             int64_t number, struct weir_error *err)
{
    struct weir_model_version from;
    WEIR_TRY(find_version(entry->call, txn, name, number, &from, err));
    struct weir_model_version *version = &entry->version;
    version->blob = from.blob;
    version->bytes = from.bytes;
    version->signature = from.signature;
    version->golden = from.golden;
    version->metrics = from.metrics;
    version->unservable = from.unservable;
    entry->is_copy = true;
    return WEIR_OK;
}

/* Of a task that registers what its own job's runs hold, and nothing else. */
static weir_status check_own_source(const struct weir_mlflow_call *call, struct weir_error *err)
{
    return call->own_model == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "this task's token registers files of its own job's runs only");
}

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct entry *entry = context;
    struct weir_mlflow_call *call = entry->call;
    struct weir_model_version *version = &entry->version;
    struct weir_model model;
    struct mlflow_source from;
    const char *copied;
    int64_t number;
    WEIR_TRY(mlflow_find_model(call, txn, version->model, &model, err));
    WEIR_TRY(mlflow_check_own_model(call, version->model, err));
    if (mlflow_source_is_model(version->source, call->arena, &copied, &number)) {
        WEIR_TRY(check_own_source(call, err));
        WEIR_TRY(take_copy(entry, txn, copied, number, err));
        return take_run(entry, txn, version->source_run, err);
    }
    bool is_here;
    WEIR_TRY(mlflow_source_find(call, txn, version->source, &from, &is_here, err));
    if (!is_here) {
        WEIR_TRY(check_own_source(call, err));
        version->unservable = "its files are not on this server";
        return take_run(entry, txn, version->source_run, err);
    }
    struct mlflow_run run;
    struct weir_error unknown;
    if (mlflow_find_run(call, txn, from.run, &run, &unknown) != WEIR_OK) {
        version->unservable = "the run that it is said to come from is not on this server";
        return take_run(entry, txn, version->source_run, err);
    }
    if (call->own_model != NULL) {
        WEIR_TRY(mlflow_find_run_to_change(call, txn, from.run, true, &run, err));
    }
    WEIR_TRY(take_run(entry, txn, text_or(version->source_run, from.run), err));
    return find_file(entry, txn, &from, err);
}

static weir_status read_entry(struct entry *entry, struct weir_error *err)
{
    struct weir_mlflow_call *call = entry->call;
    struct weir_model_version *version = &entry->version;
    const char *name, *source, *run, *link, *description;
    char *id = weir_arena_alloc(call->arena, WEIR_UUID_BYTES);
    WEIR_TRY(mlflow_text_required(call, "name", &name, err));
    WEIR_TRY(mlflow_text_required(call, "source", &source, err));
    WEIR_TRY(mlflow_text(call, "run_id", &run, err));
    WEIR_TRY(mlflow_text(call, "run_link", &link, err));
    WEIR_TRY(mlflow_text(call, "description", &description, err));
    WEIR_TRY(mlflow_text(call, "model_id", &entry->logged_model, err));
    WEIR_TRY(mlflow_tags(call, "tags", &entry->tags, &entry->n_tags, err));
    WEIR_TRY(mlflow_check_length("source", source, SOURCE_MAX, err));
    WEIR_TRY(mlflow_source_check(source, err));
    weir_uuid_make(id);
    *version = (struct weir_model_version){.id = id,
                                           .model = (char *)name,
                                           .blob = "",
                                           .source = (char *)source,
                                           .source_run = (char *)run,
                                           .run_link = (char *)link,
                                           .description = (char *)description,
                                           .created_by = (char *)call->actor};
    return WEIR_OK;
}

/* The logged model lists its versions in a tag, as MLflow's own server has it list them. */
static weir_status note_version(struct entry *entry, struct weir_txn *txn,
                                const struct weir_model_version *version, struct weir_error *err)
{
    const struct weir_mlflow_call *call = entry->call;
    struct weir_logged_model model;
    struct mlflow_run run;
    struct weir_tag *tags;
    size_t n;
    WEIR_AUTO(weir_json_auto_free)
    json_t *versions = NULL;
    WEIR_TRY(mlflow_find_logged_model(call, txn, entry->logged_model, &model, err));
    WEIR_TRY(mlflow_find_run_to_change(call, txn, model.run, true, &run, err));
    WEIR_TRY(weir_logged_model_tags(txn, model.id, call->arena, &tags, &n, err));
    for (size_t i = 0; i < n && versions == NULL; i++) {
        bool is_it = strcmp(tags[i].key, VERSIONS_TAG) == 0;
        versions = is_it ? json_loads(tags[i].value, 0, NULL) : NULL;
    }
    versions = json_is_array(versions) ? versions : json_array();
    json_array_append_new(versions,
                          json_pack("{s:s,s:s}", "name", version->model, "version",
                                    weir_arena_printf(call->arena, "%" PRId64, version->version)));
    const struct weir_tag tag = {VERSIONS_TAG, weir_json_text(versions, call->arena)};
    return weir_logged_model_tags_put(txn, model.id, &tag, 1, err);
}

static weir_status register_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct entry *entry = context;
    struct control control = mlflow_control(entry->call);
    struct weir_model_version stored;
    json_array_clear(entry->call->publish);
    WEIR_TRY(control_model_push(&control, txn, &entry->version, NULL, &stored, err));
    for (size_t i = 0; i < entry->n_tags; i++) {
        WEIR_TRY(weir_version_tag(txn, stored.id, &entry->tags[i], err));
    }
    if (entry->logged_model != NULL && entry->logged_model[0] != '\0') {
        WEIR_TRY(note_version(entry, txn, &stored, err));
    }
    return mlflow_answer_version(entry->call, txn, &stored, err);
}

/* The file is looked at, as any that becomes a version. One that cannot be served is a version all the
 * same: a registry has those. *out_waits: it is still looked at. */
static weir_status look_at_file(struct entry *entry, bool *out_waits, struct weir_error *err)
{
    struct weir_mlflow_call *call = entry->call;
    struct weir_model_version *version = &entry->version;
    struct weir_error reason = {0};
    *out_waits = false;
    if (version->blob[0] == '\0' || entry->is_copy) {
        return WEIR_OK;
    }
    const struct inspect_question question = {.blob = version->blob, .name = version->model};
    weir_status status = call->ops->inspect(call->owner, &question, &version->signature, &reason);
    if (status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_IO || status == WEIR_ERR_NOSPACE) {
        return weir_error_set(err, status, "%s", reason.message);
    }
    if (status != WEIR_OK) {
        version->blob = "";
        version->bytes = 0;
        version->unservable = weir_arena_strdup(call->arena, reason.message);
    }
    *out_waits = status == WEIR_OK && version->signature == NULL;
    return WEIR_OK;
}

weir_status mlflow_version_create(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct entry entry = {.call = call};
    bool waits;
    (void)txn;
    WEIR_TRY(read_entry(&entry, err));
    WEIR_TRY(mlflow_read(call, look_in, &entry, err));
    WEIR_TRY(look_at_file(&entry, &waits, err));
    return waits ? WEIR_OK : mlflow_write(call, register_in, &entry, err);
}

/* ---- the others ------------------------------------------------------------------------------ */

weir_status mlflow_version_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_error *err)
{
    struct weir_model_version version;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    return mlflow_answer_version(call, txn, &version, err);
}

weir_status mlflow_version_update(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_model_version version;
    const char *description;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(mlflow_text(call, "description", &description, err));
    WEIR_TRY(weir_version_describe(txn, &version, description, call->now_ms, err));
    return mlflow_answer_version(call, txn, &version, err);
}

weir_status mlflow_version_set_stage(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct weir_model_version version;
    const char *text;
    bool archives;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(mlflow_text_required(call, "stage", &text, err));
    WEIR_TRY(mlflow_bool(call, "archive_existing_versions", false, &archives, err));
    const char *stage = weir_stage_of(text);
    if (stage == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Invalid Model Version stage: %.100s. Value must be one of None, "
                              "Staging, Production, Archived.",
                              text);
    }
    bool is_active =
        strcmp(stage, WEIR_STAGE_STAGING) == 0 || strcmp(stage, WEIR_STAGE_PRODUCTION) == 0;
    if (archives && !is_active) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Model version transition cannot archive existing model versions "
                              "because '%s' is not an Active stage. Valid stages are Staging, "
                              "Production",
                              stage);
    }
    WEIR_TRY(weir_version_set_stage(txn, &version, stage, archives, call->now_ms, err));
    return mlflow_answer_version(call, txn, &version, err);
}

weir_status mlflow_version_delete(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct control control = mlflow_control(call);
    struct weir_model_version version;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(mlflow_drop_aliases(call, txn, version.model, version.version, err));
    WEIR_TRY(control_model_version_delete(&control, txn, version.model, version.version, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

/* Where the files are: a copy's are those of what it is a copy of. */
static weir_status find_storage(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_model_version *version, const char **out,
                                struct weir_error *err)
{
    const char *name;
    int64_t number;
    for (int i = 0; i < COPIES_MAX && version->source != NULL &&
                    mlflow_source_is_model(version->source, call->arena, &name, &number);
         i++) {
        WEIR_TRY(find_version(call, txn, name, number, version, err));
    }
    *out = text_or(version->source, "");
    return (*out)[0] != '\0'
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "version %" PRId64 " of %s was uploaded as one file: `weir model "
                                "export %s:%" PRId64 "` fetches it",
                                version->version, version->model, version->model, version->version);
}

weir_status mlflow_version_download_uri(struct weir_mlflow_call *call, struct weir_txn *txn,
                                        struct weir_error *err)
{
    struct weir_model_version version;
    const char *source;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(find_storage(call, txn, &version, &source, err));
    const char *id;
    if (mlflow_source_is_logged_model(source, &id)) {
        struct weir_logged_model model;
        struct mlflow_run run;
        WEIR_TRY(weir_logged_model_get(txn, id, call->arena, &model, err));
        WEIR_TRY(mlflow_find_run(call, txn, model.run, &run, err));
        source = mlflow_logged_model_uri(call, &run.record, model.id);
    }
    mlflow_answer(call, json_pack("{s:s}", "artifact_uri", source));
    return WEIR_OK;
}

weir_status mlflow_version_artifact(struct weir_mlflow_call *call, struct weir_txn *txn,
                                    struct weir_error *err)
{
    struct weir_model_version version;
    const char *source, *path;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(mlflow_text_required(call, "path", &path, err));
    WEIR_TRY(find_storage(call, txn, &version, &source, err));
    return mlflow_answer_source_file(call, txn, source, path, err);
}

weir_status mlflow_version_set_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    struct weir_model_version version;
    struct weir_tag tag;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(mlflow_read_tag(call, &tag, err));
    WEIR_TRY(weir_version_tag(txn, version.id, &tag, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_version_delete_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      struct weir_error *err)
{
    struct weir_model_version version;
    struct weir_tag tag;
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(mlflow_read_tag(call, &tag, err));
    WEIR_TRY(weir_version_untag(txn, version.id, tag.key, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_latest_versions(struct weir_mlflow_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    struct weir_model model;
    const char **stages;
    size_t n_stages, n_put = 0;
    struct weir_buf buf;
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    WEIR_TRY(mlflow_texts(call, "stages", &stages, &n_stages, err));
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"model_versions\":[");
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < WEIR_MAX(n_stages, (size_t)1) && status == WEIR_OK; i++) {
        struct weir_model_version *versions;
        size_t n = 0;
        const char *stage = n_stages > 0 ? weir_stage_of(stages[i]) : NULL;
        if (n_stages > 0 && stage == NULL) {
            status = weir_error_set(err, WEIR_ERR_INVALID,
                                    "Invalid Model Version stage: %.100s. Value must be one of "
                                    "None, Staging, Production, Archived.",
                                    stages[i]);
            break;
        }
        status = weir_model_latest(txn, model.name, stage, call->arena, &versions, &n, err);
        for (size_t k = 0; k < n && status == WEIR_OK; k++) {
            (void)weir_buf_puts(&buf, n_put++ > 0 ? "," : "");
            status = mlflow_put_version(call, txn, &buf, &versions[k], err);
        }
    }
    (void)weir_buf_puts(&buf, "]");
    return mlflow_answer_made(call, status, &buf);
}
