/** Datasets: files in, versions out. A version is a manifest of names and SHA-256 sums; the photos
 *  of an uploaded dataset are blobs too, so that a version can be had again after files change. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "control/control.h"
#include "control/dataset_scan.h"
#include "control/freeze.h"
#include "store/identity.h"
#include "store/table.h"

#include "base/file.h"
#include "track/forgotten.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_MAX_BYTES 128

/* One part of a file's path: no separator, not hidden, printable. */
static weir_status check_part(const char *part, const char *what, struct weir_error *err)
{
    size_t len = strlen(part);
    if (len == 0 || len > PART_MAX_BYTES || part[0] == '.') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s \"%.40s\": expected 1 to %d bytes that do not begin with \".\"",
                              what, part, PART_MAX_BYTES);
    }
    for (const char *p = part; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == '/' || *p == '\\' || *p == 0x7f) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: \"/\", \"\\\" and control characters are "
                                  "not allowed",
                                  what);
        }
    }
    return WEIR_OK;
}

static weir_status tell(struct api_call *call, struct weir_txn *txn, const char *kind,
                        const char *message, struct weir_error *err)
{
    struct control control = api_control(call);
    const char *name = call->params[0] != NULL
                           ? call->params[0]
                           : json_string_value(json_object_get(call->body, "name"));
    return control_log(&control, txn, "datasets", kind,
                       weir_arena_printf(call->arena, "dataset/%s", name), message, err);
}

weir_status api_dataset_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_dataset dataset = {.kind = "folder", .project = "default"};
    WEIR_TRY(weir_record_from_json(&weir_dataset_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &dataset, err));
    if (strcmp(dataset.kind, "folder") != 0 && strcmp(dataset.kind, "idx") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.kind: expected \"folder\" or \"idx\"");
    }
    struct weir_project project;
    if (weir_row_scope_sees(&call->rows, dataset.project) &&
        weir_txn_get(txn, &weir_project_resource, dataset.project, call->arena, &project, NULL) !=
            WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no project \"%.63s\"",
                              dataset.project);
    }
    dataset.is_uploaded = dataset.path == NULL;
    if (!dataset.is_uploaded && !call->rows.is_all) {
        return weir_error_set(
            err, WEIR_ERR_DENIED,
            "folders of the server are for roles of the platform: upload the files");
    }
    if (dataset.is_uploaded) {
        dataset.path =
            weir_arena_printf(call->arena, "%s/datasets/%s", call->api->state_dir, dataset.name);
        WEIR_TRY(weir_dir_make(dataset.path, 0700, err));
    } else {
        char *real;
        WEIR_TRY(dataset_scan_resolve(dataset.path, call->api->state_dir, &real, err));
        dataset.path = weir_arena_strdup(call->arena, real);
        free(real);
    }
    dataset.created_by = weir_arena_strdup(call->arena, call->actor);
    dataset.created_ms = call->now_ms;
    WEIR_TRY(weir_txn_insert(txn, &weir_dataset_resource, &dataset, err));
    WEIR_TRY(tell(call, txn, "dataset_created",
                  weir_arena_printf(call->arena, "Dataset %s was made in project %s: %s.",
                                    dataset.name, dataset.project,
                                    dataset.is_uploaded ? "empty, for uploads" : dataset.path),
                  err));
    api_answer_record(call, &weir_dataset_resource, &dataset);
    return WEIR_OK;
}

/* A change of files has no transaction of its own. */
struct told {
    struct api_call *call;
    const char *kind, *message;
};

static weir_status tell_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct told *told = context;
    return tell(told->call, txn, told->kind, told->message, err);
}

static weir_status tell_file(struct api_call *call, const char *kind, const char *verb,
                             struct weir_error *err)
{
    bool is_class = call->params[2] == NULL;
    struct told told = {
        call, kind,
        is_class ? weir_arena_printf(call->arena, "Class %s of dataset %s was %s with its files.",
                                     call->params[1], call->params[0], verb)
                 : weir_arena_printf(call->arena, "File %s/%s of dataset %s was %s.",
                                     call->params[1], call->params[2], call->params[0], verb)};
    return api_write(call, tell_in, &told, err);
}

struct dataset_lookup {
    struct api_call *call;
    struct weir_dataset dataset;
};

static weir_status lookup_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct dataset_lookup *lookup = context;
    return weir_txn_get(txn, &weir_dataset_resource, lookup->call->params[0], lookup->call->arena,
                        &lookup->dataset, err);
}

static weir_status find_uploaded(struct api_call *call, struct weir_dataset *out,
                                 struct weir_error *err)
{
    struct dataset_lookup lookup = {.call = call};
    WEIR_TRY(api_read(call, lookup_in, &lookup, err));
    if (!lookup.dataset.is_uploaded) {
        return weir_error_set(
            err, WEIR_ERR_CONFLICT,
            "dataset \"%s\" is the folder %s on the server: change its files there",
            lookup.dataset.name, lookup.dataset.path);
    }
    *out = lookup.dataset;
    return WEIR_OK;
}

/* Open the folder of the path's class in its uploaded dataset; no part of the way is a link. */
static weir_status open_class(struct api_call *call, bool is_made, int *out_fd,
                              struct weir_error *err)
{
    struct weir_dataset dataset;
    int fd;
    WEIR_TRY(check_part(call->params[1], "class", err));
    WEIR_TRY(check_part(call->params[2], "file name", err));
    WEIR_TRY(find_uploaded(call, &dataset, err));
    char *datasets = weir_arena_printf(call->arena, "%s/datasets", call->api->state_dir);
    int datasets_fd = open(datasets, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (datasets_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", datasets);
    }
    weir_status status = dataset_scan_open_folder(datasets_fd, dataset.name, &fd, err);
    (void)close(datasets_fd);
    WEIR_TRY(status);
    if (is_made && mkdirat(fd, call->params[1], 0700) != 0 && errno != EEXIST) {
        status = weir_error_set_errno(err, errno, "cannot make the class %s", call->params[1]);
    }
    if (status == WEIR_OK) {
        status = dataset_scan_open_folder(fd, call->params[1], out_fd, err);
    }
    (void)close(fd);
    return status;
}

/* Move the upload to its place: what has the name now, also a link, makes room for it. */
static weir_status move_upload(struct api_call *call, int class_fd, struct weir_error *err)
{
    int fd = open(call->request->body_file, O_RDONLY | O_CLOEXEC);
    bool is_moved = fd >= 0 && fsync(fd) == 0 &&
                    renameat(AT_FDCWD, call->request->body_file, class_fd, call->params[2]) == 0 &&
                    fsync(class_fd) == 0;
    int reason = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_moved ? WEIR_OK
                    : weir_error_set_errno(err, reason, "cannot store %s/%s", call->params[1],
                                           call->params[2]);
}

weir_status api_dataset_file_put(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    (void)txn;
    int fd;
    if (call->request->body_file == NULL || call->request->body_file_bytes == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%.128s/%.128s: the body is empty: send the file's bytes",
                              call->params[1], call->params[2]);
    }
    WEIR_TRY(open_class(call, true, &fd, err));
    weir_status status = move_upload(call, fd, err);
    (void)close(fd);
    WEIR_TRY(status);
    WEIR_TRY(tell_file(call, "dataset_file_put", "put there", err));
    API_ANSWER(call, api_stored_file, .dataset = call->params[0], .of_class = call->params[1],
               .file = call->params[2], .bytes = (int64_t)call->request->body_file_bytes);
    return WEIR_OK;
}

weir_status api_dataset_file_delete(struct api_call *call, struct weir_txn *txn,
                                    struct weir_error *err)
{
    (void)txn;
    int fd;
    WEIR_TRY(open_class(call, false, &fd, err));
    int reason = unlinkat(fd, call->params[2], 0) != 0 ? errno : 0;
    (void)close(fd);
    if (reason != 0) {
        return weir_error_set_errno(err, reason, "cannot delete %s/%s", call->params[1],
                                    call->params[2]);
    }
    WEIR_TRY(tell_file(call, "dataset_file_deleted", "deleted", err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_dataset_class_delete(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    (void)txn;
    struct weir_dataset dataset;
    WEIR_TRY(check_part(call->params[1], "class", err));
    WEIR_TRY(find_uploaded(call, &dataset, err));
    char *path = weir_arena_printf(call->arena, "%s/%s", dataset.path, call->params[1]);
    if (!weir_path_is_dir(path)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "dataset \"%s\" has no class \"%s\"",
                              dataset.name, call->params[1]);
    }
    WEIR_TRY(weir_dir_remove(path, err));
    WEIR_TRY(tell_file(call, "dataset_class_deleted", "deleted", err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- versions ------------------------------------------------------------------------------ */

/* The answer to who asked for a version: the version, with what seems damaged; or how far it is. */
static weir_status answer_freeze(struct api_call *call, json_t *view, enum freeze_state state,
                                 const struct weir_error *why, struct weir_error *err)
{
    if (state == FREEZE_FAILED) {
        json_decref(view);
        return weir_error_set(err, why->status, "%s", why->message);
    }
    if (state == FREEZE_RUNNING) {
        weir_http_response_json(call->response, 202, view);
        return WEIR_OK;
    }
    json_t *version = json_incref(json_object_get(view, "version"));
    json_object_set(version, "n_damaged", json_object_get(view, "n_damaged"));
    json_object_set(version, "n_other", json_object_get(view, "n_other"));
    json_object_set(version, "damaged", json_object_get(view, "damaged"));
    json_decref(view);
    api_answer(call, version);
    return WEIR_OK;
}

weir_status api_dataset_version_create(struct api_call *call, struct weir_txn *txn,
                                       struct weir_error *err)
{
    (void)txn;
    enum freeze_state state;
    struct weir_error why = {0};
    uint64_t *number = call->request->state; /* of this request's freeze, since its first turn */
    int64_t wait_s = api_query_int(call, "wait_s");
    call->is_act = call->is_act && number == NULL;
    if (number == NULL) {
        struct dataset_lookup lookup = {.call = call};
        WEIR_TRY(api_read(call, lookup_in, &lookup, err));
        WEIR_TRY(api_act_first(call, err)); /* it goes on, whoever waits */
        number = WEIR_ARENA_NEW(call->request->arena, uint64_t);
        WEIR_TRY(
            freezer_start(call->api->freezer, &lookup.dataset, call->actor, NULL, number, err));
        call->request->state = number;
    }
    json_t *view = freezer_look(call->api->freezer, call->params[0], *number, &state, &why);
    if (view == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "this freeze of \"%s\" is forgotten: list "
                              "the dataset's versions",
                              call->params[0]);
    }
    if (state == FREEZE_RUNNING && wait_s > 0 && !call->request->is_expired) {
        json_decref(view);
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    return answer_freeze(call, view, state, &why, err);
}

weir_status api_dataset_freeze_get(struct api_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    (void)txn;
    enum freeze_state state;
    int64_t wait_s = api_query_int(call, "wait_s");
    json_t *view = freezer_look(call->api->freezer, call->params[0], 0, &state, NULL);
    if (view == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "dataset \"%.64s\" was not frozen since the server started",
                              call->params[0]);
    }
    if (state == FREEZE_RUNNING && wait_s > 0 && !call->request->is_expired) {
        json_decref(view);
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    api_answer(call, view);
    return WEIR_OK;
}

/* With what was deleted of them: "tombstones". */
static weir_status answer_versions(struct api_call *call, struct weir_txn *txn,
                                   const struct api_rows *rows, struct weir_error *err)
{
    const struct weir_dataset_version *versions = rows->items;
    size_t n = rows->n;
    struct api_dataset_version *views =
        WEIR_ARENA_ARRAY(call->arena, n, struct api_dataset_version);
    struct api_forgotten_of *forgotten = WEIR_ARENA_ARRAY(call->arena, n, struct api_forgotten_of);
    for (size_t i = 0; i < n; i++) {
        struct weir_tombstone *tombstones;
        WEIR_TRY(weir_tombstones_list(txn, versions[i].dataset, versions[i].version, call->arena,
                                      &tombstones, &forgotten[i].n_tombstones, err));
        forgotten[i].tombstones = tombstones;
        for (size_t k = 0; k < forgotten[i].n_tombstones; k++) {
            forgotten[i].n_forgotten += tombstones[k].n_files;
        }
        views[i] = (struct api_dataset_version){.row = &versions[i], .forgotten = &forgotten[i]};
    }
    api_answer_views(call, api_dataset_version_view(), views, n, rows->next);
    return WEIR_OK;
}

weir_status api_dataset_versions(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct weir_dataset dataset;
    WEIR_TRY(
        weir_txn_get(txn, &weir_dataset_resource, call->params[0], call->arena, &dataset, err));
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("dataset", EQ, dataset.name)),
                                  .order_by = "version", .is_descending = true, .limit = 1000};
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &of, &rows, err));
    return answer_versions(call, txn, &rows, err);
}
