/** Blobs: bytes by their SHA-256, who has sent them, and folders of jobs' code. */

#include "api/data/blob.h"

#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/sender.h"
#include "api/core/views.h"
#include "api/data/blob_access.h"
#include "base/tree.h"
#include "blob/damage.h"
#include "job/code.h"
#include "job/former.h"
#include "store/table.h"

#include <string.h>

#define ASKED_MAX                10000
#define FORMER_PICTURE_MAX_BYTES (1 << 20)

/** Of no bytes: an empty file is a file, though its request has no body. */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/** Blobs that are asked about. */
struct asked {
    struct api_call *call;
    const char *project;
    const char **sha256;
    size_t n;
    bool *has_sent;
};

static weir_status find_project(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    struct weir_project project;
    if (weir_txn_get(txn, &weir_project_resource, asked->project, asked->call->arena, &project,
                     NULL) == WEIR_OK) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "there is no project \"%.60s\" in which you may send files; `weir get "
                          "projects` lists them",
                          asked->project);
}

static weir_status read_sent(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    WEIR_TRY(find_project(txn, context, err));
    return weir_code_has_sent(txn, asked->project, asked->sha256, asked->n, asked->has_sent, err);
}

/* The project that is named, or the only one; NULL: none. */
static const char *project_of(const struct api_call *call, const char *given)
{
    bool has_one = !call->rows.is_all && call->rows.n_projects == 1;
    return given != NULL ? given : has_one ? call->rows.projects[0] : NULL;
}

/* ---- which are missing -------------------------------------------------------------------------- */

static weir_status read_asked(struct api_call *call, struct asked *out, struct weir_error *err)
{
    static const char *const fields[] = {"project", "blobs", NULL};
    const json_t *list = json_object_get(call->body, "blobs"), *item;
    const char *given;
    size_t i;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "project", &given, err));
    *out = (struct asked){.call = call, .project = project_of(call, given)};
    if (out->project == NULL || !json_is_array(list) || json_array_size(list) > ASKED_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.project and $.blobs (at most %d of 64 lower-case hexadecimal "
                              "digits) are needed",
                              ASKED_MAX);
    }
    out->sha256 = WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, const char *);
    out->has_sent = WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, bool);
    json_array_foreach(list, i, item)
    {
        const char *sha256 = json_string_value(item);
        if (sha256 == NULL || !weir_blob_name_is_valid(sha256)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.blobs[%zu]: expected 64 lower-case hexadecimal digits", i);
        }
        out->sha256[out->n++] = sha256;
    }
    return WEIR_OK;
}

/* What another project has sent is missing here: nobody learns from the answer that it is there. */
weir_status api_blobs_missing(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct asked asked;
    (void)txn;
    WEIR_TRY(read_asked(call, &asked, err));
    WEIR_TRY(api_read(call, read_sent, &asked, err));
    char **missing = WEIR_ARENA_ARRAY(call->arena, asked.n + 1, char *);
    size_t n = 0;
    for (size_t i = 0; i < asked.n; i++) {
        if (!asked.has_sent[i] || !weir_blob_exists(call->api->blobs, asked.sha256[i])) {
            missing[n++] = (char *)asked.sha256[i];
        }
    }
    API_ANSWER(call, api_missing_blobs, .missing = missing, .n_missing = n);
    return WEIR_OK;
}

/* ---- storing ------------------------------------------------------------------------------------ */

/** A blob that is handed in. */
struct put {
    struct api_call *call;
    const char *project, *sha256;
    const struct weir_row_scope *senders; /**< The projects that send it. */
    bool is_code;
    struct weir_tree tree; /**< Of a folder. */
};

static weir_status note_put(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct put *put = context;
    int64_t now_ms = put->call->now_ms;
    for (size_t i = 0; i < put->senders->n_projects; i++) {
        WEIR_TRY(weir_code_sent(txn, put->senders->projects[i], put->sha256, now_ms, err));
    }
    return put->is_code ? weir_code_know(txn, put->project, put->sha256, (int64_t)put->tree.n,
                                         put->tree.n_bytes, now_ms, err)
                        : WEIR_OK;
}

static weir_status read_tree(struct put *put, struct weir_error *err)
{
    char *text;
    size_t len;
    const struct weir_http_request *request = put->call->request;
    if (put->project == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "as=code needs project=NAME");
    }
    WEIR_TRY(
        weir_file_read(request->body_file, WEIR_TREE_TEXT_MAX, put->call->arena, &text, &len, err));
    return weir_tree_parse(text, len, put->call->arena, &put->tree, err);
}

/* Each file of the folder must be one that the project has sent, of the size that the manifest says. */
static weir_status check_tree(const struct put *put, struct weir_error *err)
{
    struct api_call *call = put->call;
    const struct weir_tree *tree = &put->tree;
    struct asked asked = {.call = call,
                          .project = put->project,
                          .sha256 = WEIR_ARENA_ARRAY(call->arena, tree->n + 1, const char *),
                          .has_sent = WEIR_ARENA_ARRAY(call->arena, tree->n + 1, bool)};
    const struct weir_tree_entry **files =
        WEIR_ARENA_ARRAY(call->arena, tree->n + 1, const struct weir_tree_entry *);
    for (size_t i = 0; i < tree->n; i++) {
        if (tree->entries[i].kind != WEIR_TREE_LINK) {
            files[asked.n] = &tree->entries[i];
            asked.sha256[asked.n++] = tree->entries[i].sha256;
        }
    }
    WEIR_TRY(api_read(call, read_sent, &asked, err));
    for (size_t i = 0; i < asked.n; i++) {
        char *path;
        uint64_t bytes = 0;
        bool is_there = asked.has_sent[i] && weir_blob_exists(call->api->blobs, asked.sha256[i]) &&
                        weir_blob_path(call->api->blobs, asked.sha256[i], call->arena, &path,
                                       &bytes, NULL) == WEIR_OK;
        if (!is_there || bytes != (uint64_t)files[i]->bytes) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "project %s has not sent \"%.100s\" (%.64s) of %lld bytes: send "
                                  "what POST /api/v1/blobs/missing answers first",
                                  put->project, files[i]->path, files[i]->sha256,
                                  (long long)files[i]->bytes);
        }
    }
    return WEIR_OK;
}

static weir_status find_former_projects(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct put *put = context;
    struct weir_row_scope *scope = WEIR_ARENA_NEW(put->call->arena, struct weir_row_scope);
    char **projects;
    *scope = (struct weir_row_scope){0};
    WEIR_TRY(weir_former_projects(txn, put->call->arena, &projects, &scope->n_projects, err));
    scope->projects = (const char *const *)projects;
    put->senders = scope;
    return WEIR_OK;
}

/* Whose picture it is its decision says, which comes after it. */
static weir_status choose_former_senders(struct put *put, struct weir_error *err)
{
    if (put->call->request->body_file_bytes > FORMER_PICTURE_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "this token is for pictures of decisions, of at most %d bytes",
                              FORMER_PICTURE_MAX_BYTES);
    }
    return weir_store_read(put->call->api->store, find_former_projects, put, err);
}

/* The project that is named, a task's own; else all in which the caller may send. Who may in all of them
 * need not have sent what they name. */
static weir_status choose_senders(struct put *put, struct weir_error *err)
{
    struct api_call *call = put->call;
    if (call->former != NULL) {
        return choose_former_senders(put, err);
    }
    struct weir_row_scope *one = WEIR_ARENA_NEW(call->arena, struct weir_row_scope);
    const char **project = WEIR_ARENA_NEW(call->arena, const char *);
    *project = call->attempt != NULL ? call->attempt->project : put->project;
    *one = (struct weir_row_scope){.projects = project, .n_projects = 1};
    put->senders = *project != NULL ? one : &call->rows;
    bool is_servers =
        call->attempt != NULL && (call->attempt->ion != NULL || api_task_is_weirs(call));
    return call->attempt == NULL || is_servers
               ? WEIR_OK
               : api_sender_check(call, WEIR_RIGHT_BLOBS_WRITE, err);
}

static weir_status read_put(struct api_call *call, struct put *out, struct weir_error *err)
{
    const char *as = api_query_text(call, "as");
    const char *given = api_query_text(call, "project");
    bool is_code = as != NULL && strcmp(as, API_BLOB_AS_CODE) == 0;
    if ((given != NULL || is_code) && call->attempt != NULL) {
        return weir_error_set(err, WEIR_ERR_DENIED, "a task sends no code for jobs");
    }
    if (call->request->body_file == NULL && (is_code || strcmp(call->params[0], EMPTY) != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the body is empty: send the blob's bytes");
    }
    *out = (struct put){.call = call,
                        .project = call->attempt == NULL ? project_of(call, given) : NULL,
                        .sha256 = call->params[0],
                        .is_code = is_code};
    struct asked asked = {.call = call, .project = out->project};
    WEIR_TRY(given != NULL ? api_read(call, find_project, &asked, err) : WEIR_OK);
    return choose_senders(out, err);
}

weir_status api_blob_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    struct put put;
    const struct weir_http_request *request = call->request;
    WEIR_TRY(read_put(call, &put, err));
    if (put.is_code) {
        WEIR_TRY(read_tree(&put, err));
        WEIR_TRY(check_tree(&put, err));
    }
    char sha256[WEIR_SHA256_TEXT_BYTES] = EMPTY;
    if (request->body_file == NULL) {
        WEIR_TRY(weir_blob_put(call->api->blobs, "", 0, call->params[0], sha256, err));
    } else {
        WEIR_TRY(weir_blob_take_file(call->api->blobs, request->body_file,
                                     request->body_file_sha256, call->params[0], err));
        memcpy(sha256, request->body_file_sha256, sizeof sha256);
    }
    if (put.senders->n_projects > 0) {
        WEIR_TRY(api_write(call, note_put, &put, err));
    }
    API_ANSWER(call, api_stored_blob, .sha256 = sha256, .bytes = (int64_t)request->body_file_bytes);
    return WEIR_OK;
}

/* ---- fetching ----------------------------------------------------------------------------------- */

static weir_status not_there(const struct api_call *call, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no blob \"%s\"", call->params[0]);
}

/* That there is none is told as to who may not see it; that it should be there, to the server's keepers. */
static weir_status is_missing(struct api_call *call, struct weir_error *err)
{
    bool is_named;
    WEIR_TRY(blob_is_named(call, call->params[0], &is_named, err));
    if (is_named) {
        weir_blob_note_missing(call->api->blobs, call->params[0]);
    }
    return not_there(call, err);
}

/* What it was started for, a task must have. All else of its job's project is for Weir's own programs, and
 * for a person's as far as whom they work for may read it. */
static weir_status check_task(struct api_call *call, bool *out_is_there, struct weir_error *err)
{
    WEIR_TRY(blob_is_for_task(call, call->params[0], out_is_there, err));
    if (*out_is_there) {
        return WEIR_OK;
    }
    if (!api_task_is_weirs(call)) {
        WEIR_TRY(api_sender_check(call, WEIR_RIGHT_BLOBS_READ, err));
    }
    return blob_is_callers(call, call->params[0], out_is_there, err);
}

weir_status api_blob_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    char *path;
    bool is_there = false;
    if (!weir_blob_name_is_valid(call->params[0])) {
        return weir_blob_path(call->api->blobs, call->params[0], call->arena, &path, NULL, err);
    }
    WEIR_TRY(call->attempt != NULL ? check_task(call, &is_there, err)
                                   : blob_is_callers(call, call->params[0], &is_there, err));
    if (!is_there) {
        return not_there(call, err);
    }
    weir_status status =
        weir_blob_path(call->api->blobs, call->params[0], call->arena, &path, NULL, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return is_missing(call, err);
    }
    WEIR_TRY(status);
    weir_http_response_file(call->response, 200, "application/octet-stream", path);
    weir_http_response_header(call->response, "Cache-Control",
                              "private, max-age=31536000, immutable");
    return WEIR_OK;
}
