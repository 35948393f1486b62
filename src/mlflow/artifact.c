/**
 * Artifacts for MLflow's clients: lists, and the proxy of files that "mlflow-artifacts:" names.
 * There "EXPERIMENT/RUN/artifacts/PATH" is PATH of the run; uploads in parts are those of blob/parts.h.
 */
#include "mlflow/call.h"
#include "mlflow/source.h"

#include "base/uuid.h"
#include "blob/parts.h"
#include "track/artifact.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX        10000
#define ARTIFACTS_WORD  "artifacts"
#define DIGEST_MAX_TEXT (WEIR_SHA256_TEXT_BYTES + 2) /* with the quotes of an ETag */

/* A place among artifacts, and whose it is. */
struct place {
    const char *run;
    const char *path; /**< "": all of the run. */
    size_t n_hidden;  /**< Bytes before the paths that are told. */
};

static weir_status invalid_path(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "Invalid path");
}

/* The message begins with MLflow's own words. */
static weir_status check_path(const char *path, struct weir_error *err)
{
    return path[0] == '\0' ? WEIR_OK : weir_artifact_path_check(path, err);
}

/* "EXPERIMENT/RUN/artifacts" or more. The experiment is not looked at: a run is in one only. */
static weir_status read_place(const struct weir_mlflow_call *call, const char *text,
                              struct place *out, struct weir_error *err)
{
    WEIR_TRY(weir_artifact_path_check(text, err));
    const char *run = strchr(text, '/');
    const char *word = run != NULL ? strchr(run + 1, '/') : NULL;
    size_t len = strlen(ARTIFACTS_WORD);
    if (word == NULL || strncmp(word + 1, ARTIFACTS_WORD, len) != 0 ||
        (word[1 + len] != '\0' && word[1 + len] != '/')) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "No such artifact: '%.300s' (this server's artifacts are those of "
                              "runs: EXPERIMENT/RUN/artifacts/PATH)",
                              text);
    }
    out->run = weir_arena_memdup(call->arena, run + 1, (size_t)(word - run - 1));
    out->path = word[1 + len] == '/' ? word + 1 + len + 1 : "";
    return check_path(out->path, err); /* also by itself: "C:" is a drive at its beginning only */
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void put_entry(struct weir_buf *buf, const struct weir_artifact_entry *entry,
                      const struct place *place, bool is_whole)
{
    (void)weir_buf_append(buf, "{", 1);
    mlflow_put_member(buf, "path",
                      is_whole ? entry->path + place->n_hidden : base_name(entry->path));
    (void)weir_buf_puts(buf, entry->is_folder ? ",\"is_dir\":true" : ",\"is_dir\":false");
    if (!entry->is_folder) {
        (void)weir_buf_puts(buf, ",\"file_size\":");
        mlflow_put_int(buf, entry->bytes);
    }
    (void)weir_buf_append(buf, "}", 1);
}

/* The members of an object that has begun: "files", and "next_page_token" if there is more. */
static weir_status put_files(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_buf *buf, const struct place *place, bool is_whole,
                             struct weir_error *err)
{
    struct weir_artifact_entry *entries;
    const char *token;
    char *next;
    size_t n;
    WEIR_TRY(mlflow_text(call, "page_token", &token, err));
    WEIR_TRY(weir_artifact_list(txn, place->run, place->path, token, LIST_MAX, call->arena,
                                &entries, &n, &next, err));
    /* A file is no folder with one entry: who lists it is told of none. */
    bool is_file = n == 1 && !entries[0].is_folder && strcmp(entries[0].path, place->path) == 0;
    (void)weir_buf_puts(buf, "\"files\":[");
    for (size_t i = 0; i < n && !is_file; i++) {
        (void)weir_buf_puts(buf, i > 0 ? "," : "");
        put_entry(buf, &entries[i], place, is_whole);
    }
    (void)weir_buf_puts(buf, "]");
    mlflow_put_member(buf, "next_page_token", next);
    return WEIR_OK;
}

static void answer_object(struct weir_mlflow_call *call, weir_status status, struct weir_buf *buf)
{
    if (status == WEIR_OK) {
        (void)weir_buf_append(buf, "}", 1);
        mlflow_answer_buf(call, buf);
    } else {
        weir_buf_fini(buf);
    }
}

weir_status mlflow_artifact_list(struct weir_mlflow_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct mlflow_run run;
    struct weir_buf buf;
    struct place place = {0};
    WEIR_TRY(mlflow_run_id(call, &place.run, err));
    WEIR_TRY(mlflow_text(call, "path", &place.path, err));
    place.path = place.path != NULL ? place.path : "";
    WEIR_TRY(check_path(place.path, err));
    WEIR_TRY(mlflow_find_run(call, txn, place.run, &run, err));
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_append(&buf, "{", 1);
    mlflow_put_member(&buf, "root_uri",
                      run.record.artifact_root != NULL
                          ? run.record.artifact_root
                          : weir_arena_printf(call->arena,
                                              MLFLOW_ARTIFACTS "/%" PRId64 "/%s/artifacts",
                                              run.record.experiment, run.record.id));
    (void)weir_buf_append(&buf, ",", 1);
    weir_status status = put_files(call, txn, &buf, &place, true, err);
    answer_object(call, status, &buf);
    return status;
}

weir_status mlflow_answer_folder(struct weir_mlflow_call *call, struct weir_txn *txn,
                                 const struct mlflow_folder *folder, const char *path,
                                 struct weir_error *err)
{
    struct weir_buf buf;
    WEIR_TRY(check_path(path, err));
    const struct place place = {
        .run = folder->run,
        .path = path[0] != '\0' ? weir_arena_printf(call->arena, "%s/%s", folder->path, path)
                                : folder->path,
        .n_hidden = strlen(folder->path) + 1};
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_append(&buf, "{", 1);
    mlflow_put_member(&buf, "root_uri", folder->uri);
    (void)weir_buf_append(&buf, ",", 1);
    weir_status status = put_files(call, txn, &buf, &place, true, err);
    answer_object(call, status, &buf);
    return status;
}

weir_status mlflow_proxy_list(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct mlflow_run run;
    struct weir_buf buf;
    struct place place;
    const char *path;
    WEIR_TRY(mlflow_text(call, "path", &path, err));
    if (path == NULL || path[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Missing value for required parameter 'path': artifacts are those of "
                              "runs, EXPERIMENT/RUN/artifacts");
    }
    WEIR_TRY(read_place(call, path, &place, err));
    WEIR_TRY(mlflow_find_run(call, txn, place.run, &run, err));
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_append(&buf, "{", 1);
    weir_status status = put_files(call, txn, &buf, &place, false, err);
    answer_object(call, status, &buf);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static weir_status answer_file(struct weir_mlflow_call *call, struct weir_txn *txn,
                               const struct place *place, struct weir_error *err)
{
    struct mlflow_run run;
    struct weir_artifact artifact;
    char *file;
    WEIR_TRY(mlflow_find_run(call, txn, place->run, &run, err));
    weir_status status =
        weir_artifact_get(txn, place->run, place->path, call->arena, &artifact, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "No such artifact: '%.300s'", place->path);
    }
    WEIR_TRY(status);
    WEIR_TRY(weir_blob_path(call->blobs, artifact.blob, call->arena, &file, NULL, err));
    weir_http_response_file_part(call->response, call->request, "application/octet-stream", file,
                                 weir_arena_printf(call->arena, "\"%s\"", artifact.blob));
    weir_http_response_header(call->response, "Cache-Control", "private, no-cache");
    weir_http_response_header(call->response, "Content-Disposition", "attachment");
    return WEIR_OK;
}

weir_status mlflow_proxy_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct place place;
    WEIR_TRY(read_place(call, call->params[0], &place, err));
    return answer_file(call, txn, &place, err);
}

weir_status mlflow_artifact_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct place place = {0};
    WEIR_TRY(mlflow_run_id(call, &place.run, err));
    WEIR_TRY(mlflow_text_required(call, "path", &place.path, err));
    WEIR_TRY(check_path(place.path, err));
    return answer_file(call, txn, &place, err);
}

weir_status mlflow_answer_source_file(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      const char *source, const char *path, struct weir_error *err)
{
    struct mlflow_source from;
    bool is_here;
    WEIR_TRY(weir_artifact_path_check(path, err));
    WEIR_TRY(mlflow_source_find(call, txn, source, &from, &is_here, err));
    if (!is_here) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "The files of this model version are not on this server: %.300s",
                              source);
    }
    const struct place place = {
        .run = from.run,
        .path =
            from.path[0] != '\0' ? weir_arena_printf(call->arena, "%s/%s", from.path, path) : path};
    return answer_file(call, txn, &place, err);
}

/* ---- putting --------------------------------------------------------------------------------- */

/** A file on its way in. */
struct putting {
    struct weir_mlflow_call *call;
    struct weir_artifact artifact;
    const char *upload; /**< That it ends; NULL: none. */
};

/* The run that is written to: one that may be, also while it is deleted, as MLflow has it. */
static weir_status look_at_run(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct putting *putting = context;
    struct mlflow_run run;
    return mlflow_find_run_to_change(putting->call, txn, putting->artifact.run, true, &run, err);
}

static weir_status put_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct putting *putting = context;
    WEIR_TRY(look_at_run(txn, context, err));
    return putting->upload != NULL
               ? weir_artifact_upload_end(txn, putting->upload, &putting->artifact, err)
               : weir_artifact_put(txn, &putting->artifact, err);
}

static weir_status take_bytes(struct putting *putting, struct weir_error *err)
{
    const struct weir_http_request *request = putting->call->request;
    char *sha256 = weir_arena_alloc(putting->call->arena, WEIR_SHA256_TEXT_BYTES);
    if (request->body_file == NULL) {
        WEIR_TRY(weir_blob_put(putting->call->blobs, "", 0, NULL, sha256, err));
    } else {
        memcpy(sha256, request->body_file_sha256, WEIR_SHA256_TEXT_BYTES);
        WEIR_TRY(
            weir_blob_take_file(putting->call->blobs, request->body_file, sha256, sha256, err));
    }
    putting->artifact.blob = sha256;
    putting->artifact.bytes = (int64_t)request->body_file_bytes;
    return WEIR_OK;
}

static weir_status put_file(struct weir_mlflow_call *call, const struct place *place,
                            struct weir_error *err)
{
    struct putting putting = {.call = call,
                              .artifact = {.run = (char *)place->run,
                                           .path = (char *)place->path,
                                           .created_by = (char *)call->actor,
                                           .created_ms = call->now_ms}};
    if (place->path[0] == '\0') {
        return invalid_path(err);
    }
    WEIR_TRY(mlflow_read(call, look_at_run, &putting, err));
    WEIR_TRY(take_bytes(&putting, err));
    WEIR_TRY(mlflow_write(call, put_in, &putting, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_proxy_put(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct place place;
    (void)txn;
    WEIR_TRY(read_place(call, call->params[0], &place, err));
    return put_file(call, &place, err);
}

weir_status mlflow_artifact_upload(struct weir_mlflow_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    struct place place = {0};
    (void)txn;
    WEIR_TRY(mlflow_run_id(call, &place.run, err));
    WEIR_TRY(mlflow_text_required(call, "path", &place.path, err));
    WEIR_TRY(check_path(place.path, err));
    return put_file(call, &place, err);
}

weir_status mlflow_proxy_delete(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct place place;
    struct mlflow_run run;
    int64_t n;
    WEIR_TRY(read_place(call, call->params[0], &place, err));
    WEIR_TRY(mlflow_find_run_to_change(call, txn, place.run, true, &run, err));
    weir_status status = weir_artifact_delete(txn, place.run, place.path, &n, err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

/* ---- in parts -------------------------------------------------------------------------------- */

static const char *parts_dir(const struct weir_mlflow_call *call)
{
    return weir_arena_printf(call->arena, "%s/parts", call->state_dir);
}

/* The artifact that an upload makes: the file's name in the folder that the path names. */
static weir_status read_target(struct weir_mlflow_call *call, struct place *out,
                               struct weir_error *err)
{
    const char *file;
    struct place folder;
    WEIR_TRY(mlflow_text_required(call, "path", &file, err));
    WEIR_TRY(read_place(call, call->params[0], &folder, err));
    const char *name = base_name(file);
    out->run = folder.run;
    out->path =
        folder.path[0] != '\0' ? weir_arena_printf(call->arena, "%s/%s", folder.path, name) : name;
    return weir_artifact_path_check(out->path, err);
}

/* Where the client reaches this server: as it did for this request. */
static const char *own_address(const struct weir_mlflow_call *call)
{
    const char *host = weir_http_request_header(call->request, "Host");
    const char *proto = weir_http_request_header(call->request, "X-Forwarded-Proto");
    bool is_tls = call->request->is_tls || (proto != NULL && strcmp(proto, "https") == 0);
    const char *path = call->request->path;
    const char *mark = strstr(path, "/mlflow-artifacts/");
    return weir_arena_printf(call->arena, "%s://%s%.*s/mlflow-artifacts", is_tls ? "https" : "http",
                             host != NULL ? host : "localhost",
                             (int)(mark != NULL ? mark - path : 0), path);
}

/* Whoever sends the parts says who they are as they did here: clients add no credentials of their own. */
static json_t *part_credentials(const struct weir_mlflow_call *call, const char *id,
                                const char *run, int64_t number)
{
    const char *authorization = weir_http_request_header(call->request, "Authorization");
    json_t *headers = json_object();
    if (authorization != NULL) {
        json_object_set_new(headers, "Authorization", json_string(authorization));
    }
    return json_pack("{s:o,s:I,s:o}", "url",
                     json_sprintf("%s/mpu/part/%s/%s/%" PRId64, own_address(call), run, id, number),
                     "part_number", (json_int_t)number, "headers", headers);
}

weir_status mlflow_parts_begin(struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_error *err)
{
    struct place place;
    struct mlflow_run run;
    int64_t n_parts;
    char id[WEIR_UUID_BYTES];
    WEIR_TRY(read_target(call, &place, err));
    WEIR_TRY(mlflow_int(call, "num_parts", 1, &n_parts, err));
    if (n_parts < 1 || n_parts > WEIR_PARTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "num_parts: expected 1 to %d", WEIR_PARTS_MAX);
    }
    WEIR_TRY(mlflow_find_run_to_change(call, txn, place.run, true, &run, err));
    weir_uuid_make(id);
    const struct weir_artifact_upload upload = {.id = id,
                                                .run = (char *)place.run,
                                                .path = (char *)place.path,
                                                .n_parts = n_parts,
                                                .created_by = (char *)call->actor,
                                                .created_ms = call->now_ms};
    WEIR_TRY(weir_artifact_upload_begin(txn, &upload, call->now_ms, err));
    json_t *credentials = json_array();
    for (int64_t i = 1; i <= n_parts; i++) {
        json_array_append_new(credentials, part_credentials(call, id, place.run, i));
    }
    mlflow_answer(call, json_pack("{s:s,s:o}", "upload_id", id, "credentials", credentials));
    return WEIR_OK;
}

/** An upload that is looked for. */
struct found {
    struct weir_mlflow_call *call;
    const char *run, *id;
    struct weir_artifact_upload upload;
};

static weir_status find_upload(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct found *found = context;
    struct weir_mlflow_call *call = found->call;
    struct mlflow_run run;
    WEIR_TRY(mlflow_find_run_to_change(call, txn, found->run, true, &run, err));
    return weir_artifact_upload_get(txn, found->run, found->id, call->now_ms, call->arena,
                                    &found->upload, err);
}

/* "RUN/UPLOAD/NUMBER" */
static weir_status read_part(struct weir_mlflow_call *call, struct found *out, int64_t *out_number,
                             struct weir_error *err)
{
    const char *first = strchr(call->params[0], '/');
    const char *second = first != NULL ? strchr(first + 1, '/') : NULL;
    char *end = NULL;
    *out_number = second != NULL ? strtoll(second + 1, &end, 10) : 0;
    if (second == NULL || *end != '\0' || *out_number < 1) {
        return invalid_path(err);
    }
    out->run = weir_arena_memdup(call->arena, call->params[0], (size_t)(first - call->params[0]));
    out->id = weir_arena_memdup(call->arena, first + 1, (size_t)(second - first - 1));
    return WEIR_OK;
}

weir_status mlflow_parts_put(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct found found = {.call = call};
    const struct weir_http_request *request = call->request;
    int64_t number;
    (void)txn;
    WEIR_TRY(read_part(call, &found, &number, err));
    WEIR_TRY(mlflow_read(call, find_upload, &found, err));
    if (number > found.upload.n_parts || request->body_file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "part %" PRId64 ": this upload has the parts 1 to %" PRId64
                              ", none of them empty",
                              number, found.upload.n_parts);
    }
    WEIR_TRY(weir_part_take(parts_dir(call), found.upload.id, number, request->body_file,
                            request->body_file_bytes, request->body_file_sha256,
                            call->artifact_max_bytes, err));
    mlflow_answer_nothing(call);
    weir_http_response_header(call->response, "ETag",
                              weir_arena_printf(call->arena, "\"%s\"", request->body_file_sha256));
    return WEIR_OK;
}

static bool is_etag_of(const char *etag, const char *sha256)
{
    size_t len = strlen(etag);
    const char *begin = len > 1 && etag[0] == '"' ? etag + 1 : etag;
    return len <= DIGEST_MAX_TEXT && strncmp(begin, sha256, WEIR_SHA256_TEXT_BYTES - 1) == 0;
}

/* What the client says of its parts is what is there. */
static weir_status check_etags(struct weir_mlflow_call *call, const char *id,
                               struct weir_error *err)
{
    const json_t *given, *item;
    struct weir_part *parts;
    size_t n, i;
    WEIR_TRY(mlflow_array(call, "parts", &given, err));
    WEIR_TRY(weir_parts_list(parts_dir(call), id, call->arena, &parts, &n, err));
    json_array_foreach(given, i, item)
    {
        const char *etag = json_string_value(json_object_get(item, "etag"));
        int64_t number = 0;
        WEIR_TRY(mlflow_int_of(call->arena, json_object_get(item, "part_number"), "part_number",
                               &number, err));
        for (size_t k = 0; k < n && etag != NULL; k++) {
            if (parts[k].number == number && !is_etag_of(etag, parts[k].sha256)) {
                return weir_error_set(err, WEIR_ERR_INVALID,
                                      "part %" PRId64 " is not the one of that etag: send it again",
                                      number);
            }
        }
    }
    return WEIR_OK;
}

weir_status mlflow_parts_complete(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct found found = {.call = call};
    struct place place;
    char *sha256 = weir_arena_alloc(call->arena, WEIR_SHA256_TEXT_BYTES);
    uint64_t n_bytes;
    (void)txn;
    WEIR_TRY(read_target(call, &place, err));
    WEIR_TRY(mlflow_text_required(call, "upload_id", &found.id, err));
    found.run = place.run;
    WEIR_TRY(mlflow_read(call, find_upload, &found, err));
    WEIR_TRY(check_etags(call, found.id, err));
    WEIR_TRY(weir_parts_join(parts_dir(call), found.upload.id, found.upload.n_parts, call->blobs,
                             call->artifact_max_bytes, sha256, &n_bytes, err));
    struct putting putting = {.call = call,
                              .upload = found.upload.id,
                              .artifact = {.run = found.upload.run,
                                           .path = found.upload.path,
                                           .blob = sha256,
                                           .bytes = (int64_t)n_bytes,
                                           .created_by = (char *)call->actor,
                                           .created_ms = call->now_ms}};
    WEIR_TRY(mlflow_write(call, put_in, &putting, err));
    WEIR_TRY(weir_parts_remove(parts_dir(call), found.upload.id, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

static weir_status forget_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_artifact_upload_forget(txn, context, err);
}

weir_status mlflow_parts_abort(struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_error *err)
{
    struct found found = {.call = call};
    struct place place;
    (void)txn;
    WEIR_TRY(read_target(call, &place, err));
    WEIR_TRY(mlflow_text_required(call, "upload_id", &found.id, err));
    found.run = place.run;
    WEIR_TRY(mlflow_read(call, find_upload, &found, err));
    WEIR_TRY(mlflow_write(call, forget_in, found.upload.id, err));
    WEIR_TRY(weir_parts_remove(parts_dir(call), found.upload.id, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}
