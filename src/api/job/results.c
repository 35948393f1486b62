/** Results of jobs of the kind "batch": files in a folder of the job's own, written by its tasks. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "framework/framework.h"
#include "job/job.h"
#include "store/table.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_BYTES     64
#define MANIFEST_MAX_BYTES ((size_t)64 << 20)
#define MANIFEST_FILE      "manifest.json"

/* A job that has results; its folder, which need not be there. */
static weir_status find_folder(struct api_call *call, struct weir_txn *txn,
                               struct weir_job *out_job, char **out, struct weir_error *err)
{
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, out_job, err));
    const struct weir_job_ops *ops = weir_job_ops_of(out_job->kind);
    if (ops == NULL || !ops->pins_model) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "job %s is a %s: only jobs of the kind batch have results",
                              out_job->name, out_job->kind);
    }
    *out = weir_arena_printf(call->arena, "%s/results/%s", call->api->state_dir, out_job->id);
    return WEIR_OK;
}

static weir_status check_name(const char *name, struct weir_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    size_t len = strlen(name);
    return len > 0 && len <= NAME_MAX_BYTES && name[0] != '.' && strspn(name, letters) == len
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "results have names of at most %d of a-z 0-9 - and .",
                                NAME_MAX_BYTES);
}

/* ---- looking --------------------------------------------------------------------------------- */

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static weir_status list_files(const char *folder, struct weir_arena *arena,
                              struct api_result_file **out, size_t *out_n, struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_shown, alphasort);
    if (n < 0) {
        return errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "listing %s", folder);
    }
    struct api_result_file *files = WEIR_ARENA_ARRAY(arena, (size_t)n, struct api_result_file);
    for (int i = 0; i < n; i++) {
        struct stat facts;
        char *path = weir_arena_printf(arena, "%s/%s", folder, entries[i]->d_name);
        if (stat(path, &facts) == 0) {
            files[(*out_n)++] = (struct api_result_file){
                .name = weir_arena_strdup(arena, entries[i]->d_name), .bytes = facts.st_size};
        }
        free(entries[i]);
    }
    free(entries);
    *out = files;
    return WEIR_OK;
}

weir_status api_results_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job job;
    char *folder;
    struct api_result_file *files = NULL;
    size_t n_files = 0;
    json_t *manifest = NULL;
    /* A job of another kind has none. */
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &job, err));
    folder = weir_arena_printf(call->arena, "%s/results/%s", call->api->state_dir, job.id);
    WEIR_TRY(list_files(folder, call->arena, &files, &n_files, err));
    const char *path = weir_arena_printf(call->arena, "%s/" MANIFEST_FILE, folder);
    weir_status status = weir_json_load(path, MANIFEST_MAX_BYTES, &manifest, err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    WEIR_AUTO(weir_json_auto_free) json_t *spec = json_loads(job.spec, 0, NULL);
    API_ANSWER(call, api_results, .job = job.id, .state = job.state,
               .output = json_string_value(json_object_get(spec, "output")), .files = files,
               .n_files = n_files, .manifest = manifest);
    return WEIR_OK;
}

weir_status api_results_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job job;
    char *folder;
    WEIR_TRY(check_name(call->params[1], err));
    WEIR_TRY(find_folder(call, txn, &job, &folder, err));
    char *path = weir_arena_printf(call->arena, "%s/%s", folder, call->params[1]);
    if (!weir_path_exists(path)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "job %s has no result %s: `weir job results %s` lists them", job.name,
                              call->params[1], job.name);
    }
    weir_http_response_file(call->response, 200, "application/octet-stream", path);
    return WEIR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static weir_status sync_and_move(const char *from, const char *folder, const char *to,
                                 struct weir_error *err)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_moved = fd >= 0 && folder_fd >= 0 && fsync(fd) == 0 && rename(from, to) == 0 &&
                    fsync(folder_fd) == 0;
    int reason = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (folder_fd >= 0) {
        (void)close(folder_fd);
    }
    return is_moved ? WEIR_OK : weir_error_set_errno(err, reason, "cannot store %s", to);
}

/* Each file once: the tasks of an attempt that was given up make the same bytes. */
weir_status api_results_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job job;
    char *folder;
    WEIR_TRY(find_folder(call, txn, &job, &folder, err));
    if (call->attempt == NULL && call->identity.role != WEIR_ROLE_ADMIN) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "PUT %s: results are written by the job's own tasks",
                              call->route->pattern);
    }
    WEIR_TRY(check_name(call->params[1], err));
    char *path = weir_arena_printf(call->arena, "%s/%s", folder, call->params[1]);
    if (call->request->body_file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the body is empty: send the file's bytes");
    }
    if (!weir_path_exists(path)) {
        WEIR_TRY(weir_dir_make(folder, 0700, err));
        WEIR_TRY(sync_and_move(call->request->body_file, folder, path, err));
    }
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
