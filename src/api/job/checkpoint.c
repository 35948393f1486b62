/** Checkpoints of jobs with tasks on nodes that do not see the server's disk: their agents bring them here,
 *  into the job's folder of checkpoints, and fetch them on the node where the job goes on. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "blob/kept_folder.h"
#include "job/job.h"
#include "store/table.h"
#include "track/artifact.h"

#include <string.h>

/* A task's own job is there. */
static weir_status find_folder(struct api_call *call, struct weir_txn *txn, const char **out,
                               struct weir_error *err)
{
    struct weir_job job;
    if (call->attempt == NULL) {
        WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &job, err));
    }
    *out =
        weir_arena_printf(call->arena, "%s/checkpoints/%s", call->api->state_dir, call->params[0]);
    return WEIR_OK;
}

static weir_status find_own_folder(struct api_call *call, struct weir_txn *txn, const char **out,
                                   struct weir_error *err)
{
    WEIR_TRY(find_folder(call, txn, out, err));
    return call->attempt != NULL || call->identity.role == WEIR_ROLE_ADMIN
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "checkpoints are written by the job's own tasks");
}

weir_status api_checkpoint_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *folder;
    struct weir_kept kept;
    WEIR_TRY(find_folder(call, txn, &folder, err));
    WEIR_TRY(weir_kept_list(folder, call->arena, &kept, err));
    struct api_checkpoint_file *files =
        WEIR_ARENA_ARRAY(call->arena, kept.n, struct api_checkpoint_file);
    for (size_t i = 0; i < kept.n; i++) {
        files[i] =
            (struct api_checkpoint_file){.path = kept.files[i].path, .bytes = kept.files[i].bytes};
    }
    API_ANSWER(call, api_checkpoint, .files = files, .n_files = kept.n, .version = kept.version);
    return WEIR_OK;
}

weir_status api_checkpoint_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *folder;
    int fd;
    WEIR_TRY(weir_artifact_path_check(call->params[1], err));
    WEIR_TRY(find_folder(call, txn, &folder, err));
    WEIR_TRY(weir_kept_open(folder, call->params[1], &fd, err));
    weir_http_response_fd(call->response, 200, "application/octet-stream", fd);
    return WEIR_OK;
}

weir_status api_checkpoint_part(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *folder, *part = call->params[1];
    const struct weir_http_request *request = call->request;
    char sha256[WEIR_SHA256_TEXT_BYTES];
    WEIR_TRY(find_own_folder(call, txn, &folder, err));
    if (request->body_file != NULL) {
        memcpy(sha256, request->body_file_sha256, sizeof sha256);
    } else {
        weir_sha256("", 0, sha256);
    }
    size_t len = strlen(sha256);
    if (strncmp(part, sha256, len) != 0 || part[len] != '-') {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "these bytes have the SHA-256 %s, and the part is called %.*s: they "
                              "changed on the way, or while they were read",
                              sha256, WEIR_KEPT_PART_MAX, part);
    }
    WEIR_TRY(weir_kept_part(folder, part, request->body_file, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

static weir_status read_puts(struct api_call *call, struct weir_kept_change *change,
                             struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "put");
    size_t n = json_array_size(list);
    struct weir_kept_put *puts = WEIR_ARENA_ARRAY(call->arena, n, struct weir_kept_put);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        puts[i] = (struct weir_kept_put){json_string_value(json_object_get(item, "path")),
                                         json_string_value(json_object_get(item, "part"))};
        if (puts[i].path == NULL || puts[i].part == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.put[%zu]: expected {\"path\", \"part\"}", i);
        }
        WEIR_TRY(weir_artifact_path_check(puts[i].path, err));
    }
    change->puts = puts;
    change->n_puts = n;
    return WEIR_OK;
}

static weir_status read_removed(struct api_call *call, struct weir_kept_change *change,
                                struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "remove");
    size_t n = json_array_size(list);
    const char **paths = WEIR_ARENA_ARRAY(call->arena, n, const char *);
    for (size_t i = 0; i < n; i++) {
        paths[i] = json_string_value(json_array_get(list, i));
        if (paths[i] == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.remove[%zu]: expected a path", i);
        }
        WEIR_TRY(weir_artifact_path_check(paths[i], err));
    }
    change->removed = paths;
    change->n_removed = n;
    return WEIR_OK;
}

static weir_status read_change(struct api_call *call, struct weir_kept_change *change,
                               struct weir_error *err)
{
    static const char *const fields[] = {"put", "remove", NULL};
    WEIR_TRY(api_body_only(call, fields, err));
    for (size_t i = 0; fields[i] != NULL; i++) {
        const json_t *list = json_object_get(call->body, fields[i]);
        if (!json_is_array(list) || json_array_size(list) > WEIR_KEPT_FILES_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a list of at most %d",
                                  fields[i], WEIR_KEPT_FILES_MAX);
        }
    }
    WEIR_TRY(read_puts(call, change, err));
    return read_removed(call, change, err);
}

weir_status api_checkpoint_change(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    const char *folder, **missing;
    size_t n_missing;
    struct weir_kept_change change;
    struct weir_kept kept;
    WEIR_TRY(find_own_folder(call, txn, &folder, err));
    WEIR_TRY(read_change(call, &change, err));
    WEIR_TRY(weir_kept_change(folder, &change, call->arena, &missing, &n_missing, err));
    WEIR_TRY(weir_kept_list(folder, call->arena, &kept, err));
    API_ANSWER(call, api_checkpoint_changed, .missing = (char *const *)missing,
               .n_missing = n_missing, .version = kept.version);
    return WEIR_OK;
}
