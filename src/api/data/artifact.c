/** Files that runs leave: lists, bytes in and out, and uploads in parts. */

#include "track/artifact.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "blob/parts.h"
#include "store/table.h"

#include "base/uuid.h"

#include <stdlib.h>
#include <string.h>

static weir_status find_run(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct api_call *call = context;
    struct weir_run run;
    return weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err);
}

/* A path to look at: "" is all of the run. */
static weir_status check_folder(const char *path, struct weir_error *err)
{
    return path == NULL || path[0] == '\0' ? WEIR_OK : weir_artifact_path_check(path, err);
}

weir_status api_artifact_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_artifact_entry *entries;
    size_t n;
    char *next;
    const char *path = api_query_text(call, "path");
    WEIR_TRY(find_run(txn, call, err));
    WEIR_TRY(check_folder(path, err));
    WEIR_TRY(weir_artifact_list(txn, call->params[0], path, api_query_text(call, "cursor"),
                                (size_t)api_query_int(call, "limit"), call->arena, &entries, &n,
                                &next, err));
    api_answer_list(call, &weir_artifact_entry_resource, entries, n, next);
    return WEIR_OK;
}

weir_status api_artifact_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_artifact artifact;
    char *path;
    WEIR_TRY(find_run(txn, call, err));
    WEIR_TRY(weir_artifact_path_check(call->params[1], err));
    WEIR_TRY(weir_artifact_get(txn, call->params[0], call->params[1], call->arena, &artifact, err));
    WEIR_TRY(weir_blob_path(call->api->blobs, artifact.blob, call->arena, &path, NULL, err));
    weir_http_response_file_part(call->response, call->request, "application/octet-stream", path,
                                 weir_arena_printf(call->arena, "\"%s\"", artifact.blob));
    weir_http_response_header(call->response, "Cache-Control", "private, no-cache");
    return WEIR_OK;
}

/* ---- whole ----------------------------------------------------------------------------------- */

/* The request's bytes become a blob; none at all are an empty one. */
static weir_status take_bytes(struct api_call *call, struct weir_artifact *artifact,
                              struct weir_error *err)
{
    const struct weir_http_request *request = call->request;
    char *sha256 = weir_arena_alloc(call->arena, WEIR_SHA256_TEXT_BYTES);
    if (request->body_file == NULL) {
        WEIR_TRY(weir_blob_put(call->api->blobs, "", 0, NULL, sha256, err));
    } else {
        memcpy(sha256, request->body_file_sha256, WEIR_SHA256_TEXT_BYTES);
        WEIR_TRY(weir_blob_take_file(call->api->blobs, request->body_file, sha256, sha256, err));
    }
    artifact->blob = sha256;
    artifact->bytes = (int64_t)request->body_file_bytes;
    return WEIR_OK;
}

static weir_status put_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_artifact_put(txn, context, err);
}

static struct weir_artifact artifact_of(const struct api_call *call, const char *path)
{
    return (struct weir_artifact){.run = (char *)call->params[0],
                                  .path = (char *)path,
                                  .created_by = (char *)call->actor,
                                  .created_ms = call->now_ms};
}

weir_status api_artifact_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_artifact artifact = artifact_of(call, call->params[1]);
    (void)txn;
    WEIR_TRY(weir_artifact_path_check(artifact.path, err));
    WEIR_TRY(api_read(call, find_run, call, err));
    WEIR_TRY(take_bytes(call, &artifact, err));
    WEIR_TRY(api_write(call, put_in, &artifact, err));
    api_answer_record(call, &weir_artifact_resource, &artifact);
    return WEIR_OK;
}

weir_status api_artifact_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(find_run(txn, call, err));
    WEIR_TRY(weir_artifact_path_check(call->params[1], err));
    WEIR_TRY(weir_artifact_delete(txn, call->params[0], call->params[1], &n, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- in parts -------------------------------------------------------------------------------- */

static const char *parts_dir(const struct api_call *call)
{
    return weir_arena_printf(call->arena, "%s/parts", call->api->state_dir);
}

static weir_status upload_view(struct api_call *call, const struct weir_artifact_upload *upload,
                               struct api_upload *out, struct weir_error *err)
{
    struct weir_part *parts;
    *out = (struct api_upload){.row = upload};
    WEIR_TRY(weir_parts_list(parts_dir(call), upload->id, call->arena, &parts, &out->n_parts, err));
    struct api_upload_part *views =
        WEIR_ARENA_ARRAY(call->arena, out->n_parts, struct api_upload_part);
    for (size_t i = 0; i < out->n_parts; i++) {
        views[i] =
            (struct api_upload_part){parts[i].number, (int64_t)parts[i].bytes, parts[i].sha256};
    }
    out->parts = views;
    return WEIR_OK;
}

static weir_status answer_upload(struct api_call *call, const struct weir_artifact_upload *upload,
                                 struct weir_error *err)
{
    struct api_upload view;
    WEIR_TRY(upload_view(call, upload, &view, err));
    api_answer(call, weir_view_to_json(api_upload_view(), &view));
    return WEIR_OK;
}

/* The first of the run with this path that is not too old: whoever was cut off goes on with it. */
weir_status api_artifact_upload_list(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct api_rows rows;
    const int64_t since_ms = call->now_ms - WEIR_ARTIFACT_UPLOAD_KEEP_MS;
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("run", EQ, call->params[0]),
                                               WEIR_FILTER_INT("created_ms", GT, since_ms)),
                                  .limit = 1000};
    WEIR_TRY(find_run(txn, call, err));
    WEIR_TRY(api_rows_read(call, txn, &of, &rows, err));
    const struct weir_artifact_upload *uploads = rows.items;
    struct api_upload *views = WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_upload);
    for (size_t i = 0; i < rows.n; i++) {
        WEIR_TRY(upload_view(call, &uploads[i], &views[i], err));
    }
    api_answer_views(call, api_upload_view(), views, rows.n, rows.next);
    return WEIR_OK;
}

weir_status api_artifact_upload_begin(struct api_call *call, struct weir_txn *txn,
                                      struct weir_error *err)
{
    static const char *const fields[] = {"path", "n_parts", NULL};
    const char *path;
    char *id = weir_arena_alloc(call->arena, WEIR_UUID_BYTES);
    int64_t n_parts;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "path", &path, err));
    WEIR_TRY(api_body_int(call, "n_parts", 0, &n_parts, err));
    if (path == NULL || n_parts < 1 || n_parts > WEIR_PARTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected $.path and $.n_parts, a number from 1 to %d",
                              WEIR_PARTS_MAX);
    }
    WEIR_TRY(weir_artifact_path_check(path, err));
    WEIR_TRY(find_run(txn, call, err));
    weir_uuid_make(id);
    const struct weir_artifact_upload upload = {.id = id,
                                                .run = (char *)call->params[0],
                                                .path = (char *)path,
                                                .n_parts = n_parts,
                                                .created_by = (char *)call->actor,
                                                .created_ms = call->now_ms};
    WEIR_TRY(weir_artifact_upload_begin(txn, &upload, call->now_ms, err));
    return answer_upload(call, &upload, err);
}

/* An upload, found outside of the transaction that changes. */
struct found_upload {
    struct api_call *call;
    struct weir_artifact_upload upload;
};

static weir_status find_upload(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct found_upload *found = context;
    struct api_call *call = found->call;
    WEIR_TRY(find_run(txn, call, err));
    return weir_artifact_upload_get(txn, call->params[0], call->params[1], call->now_ms,
                                    call->arena, &found->upload, err);
}

weir_status api_artifact_upload_part(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct found_upload found = {.call = call};
    const struct weir_http_request *request = call->request;
    char *end;
    long long number = strtoll(call->params[2], &end, 10);
    (void)txn;
    WEIR_TRY(api_read(call, find_upload, &found, err));
    if (*end != '\0' || number < 1 || number > found.upload.n_parts) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "part \"%.20s\": this upload has the parts 1 to %lld",
                              call->params[2], (long long)found.upload.n_parts);
    }
    if (request->body_file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the body is empty: send the part's bytes");
    }
    WEIR_TRY(weir_part_take(parts_dir(call), found.upload.id, number, request->body_file,
                            request->body_file_bytes, request->body_file_sha256,
                            call->api->artifact_max_bytes, err));
    API_ANSWER(call, api_upload_part, .number = number, .bytes = (int64_t)request->body_file_bytes,
               .sha256 = request->body_file_sha256);
    return WEIR_OK;
}

struct ending {
    const char *id;
    struct weir_artifact artifact;
};

static weir_status end_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct ending *ending = context;
    return weir_artifact_upload_end(txn, ending->id, &ending->artifact, err);
}

/* The parts go once the row is durable. Killed before: the upload is as it was; killed after: its
 * folder is swept when it is old. */
weir_status api_artifact_upload_end(struct api_call *call, struct weir_txn *txn,
                                    struct weir_error *err)
{
    struct found_upload found = {.call = call};
    (void)txn;
    WEIR_TRY(api_read(call, find_upload, &found, err));
    struct ending ending = {found.upload.id, artifact_of(call, found.upload.path)};
    uint64_t n_bytes;
    char *sha256 = weir_arena_alloc(call->arena, WEIR_SHA256_TEXT_BYTES);
    WEIR_TRY(weir_parts_join(parts_dir(call), found.upload.id, found.upload.n_parts,
                             call->api->blobs, call->api->artifact_max_bytes, sha256, &n_bytes,
                             err));
    ending.artifact.blob = sha256;
    ending.artifact.bytes = (int64_t)n_bytes;
    WEIR_TRY(api_write(call, end_in, &ending, err));
    WEIR_TRY(weir_parts_remove(parts_dir(call), found.upload.id, err));
    api_answer_record(call, &weir_artifact_resource, &ending.artifact);
    return WEIR_OK;
}

static weir_status forget_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_delete(txn, &weir_artifact_upload_resource, context, err);
}

weir_status api_artifact_upload_delete(struct api_call *call, struct weir_txn *txn,
                                       struct weir_error *err)
{
    struct found_upload found = {.call = call};
    (void)txn;
    WEIR_TRY(api_read(call, find_upload, &found, err));
    WEIR_TRY(api_write(call, forget_in, found.upload.id, err));
    WEIR_TRY(weir_parts_remove(parts_dir(call), found.upload.id, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
