/** Datasets: files in, versions out. A version is a manifest of names and SHA-256 sums; the photos
 *  of an uploaded dataset are blobs too, so that a version can be had again after files change. */
#include "api/api_private.h"
#include "api/control.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_MAX_BYTES     128
#define MANIFEST_MAX_BYTES ((size_t)512 << 20)
#define SCAN_MAX_FILES     ((size_t)4 << 20)

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

weir_status api_dataset_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_dataset dataset = {.kind = "folder", .project = "default"};
    WEIR_TRY(weir_record_from_json(&weir_dataset_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &dataset, err));
    if (strcmp(dataset.kind, "folder") != 0 && strcmp(dataset.kind, "idx") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.kind: expected \"folder\" or \"idx\"");
    }
    dataset.is_uploaded = dataset.path == NULL;
    if (dataset.is_uploaded) {
        dataset.path =
            weir_arena_printf(call->arena, "%s/datasets/%s", call->api->state_dir, dataset.name);
        WEIR_TRY(weir_dir_make(dataset.path, 0700, err));
    } else if (dataset.path[0] != '/' || !weir_path_is_dir(dataset.path)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.path: %.200s is not a folder on the server (an absolute path is needed)",
            dataset.path);
    }
    dataset.created_by = weir_arena_strdup(call->arena, call->actor);
    dataset.created_ms = call->now_ms;
    WEIR_TRY(weir_txn_insert(txn, &weir_dataset_resource, &dataset, err));
    api_answer_record(call, &weir_dataset_resource, &dataset);
    return WEIR_OK;
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
    WEIR_TRY(weir_store_read(call->api->store, lookup_in, &lookup, err));
    if (!lookup.dataset.is_uploaded) {
        return weir_error_set(
            err, WEIR_ERR_CONFLICT,
            "dataset \"%s\" is the folder %s on the server: change its files there",
            lookup.dataset.name, lookup.dataset.path);
    }
    *out = lookup.dataset;
    return WEIR_OK;
}

/* The folder of the path's class in its uploaded dataset; class and file name are safe to join. */
static weir_status find_class_folder(struct api_call *call, struct weir_dataset *out,
                                     const char **out_folder, struct weir_error *err)
{
    WEIR_TRY(check_part(call->params[1], "class", err));
    WEIR_TRY(check_part(call->params[2], "file name", err));
    WEIR_TRY(find_uploaded(call, out, err));
    *out_folder = weir_arena_printf(call->arena, "%s/%s", out->path, call->params[1]);
    return WEIR_OK;
}

weir_status api_dataset_file_put(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    (void)txn;
    struct weir_dataset dataset;
    const char *folder;
    WEIR_TRY(find_class_folder(call, &dataset, &folder, err));
    if (call->request->body_len == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the body is empty: send the file's bytes");
    }
    WEIR_TRY(weir_dir_make(folder, 0700, err));
    char *path = weir_arena_printf(call->arena, "%s/%s", folder, call->params[2]);
    WEIR_TRY(weir_file_write_atomic(path, call->request->body, call->request->body_len, 0600, err));
    api_answer(call,
               json_pack("{s:s,s:s,s:s,s:I}", "dataset", dataset.name, "class", call->params[1],
                         "file", call->params[2], "bytes", (json_int_t)call->request->body_len));
    return WEIR_OK;
}

weir_status api_dataset_file_delete(struct api_call *call, struct weir_txn *txn,
                                    struct weir_error *err)
{
    (void)txn;
    struct weir_dataset dataset;
    const char *folder;
    WEIR_TRY(find_class_folder(call, &dataset, &folder, err));
    char *path = weir_arena_printf(call->arena, "%s/%s", folder, call->params[2]);
    if (unlink(path) != 0) {
        return weir_error_set_errno(err, errno, "cannot delete %s/%s", call->params[1],
                                    call->params[2]);
    }
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
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- scan ---------------------------------------------------------------------------------- */

struct scan {
    struct api_call *call;
    const struct weir_dataset *dataset;
    json_t *files;        /**< Manifest entries, in order of names. */
    struct weir_buf sums; /**< "<sha256>  <name>\n" per file, as sha256sum prints. */
    int64_t n_classes, bytes;
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static weir_status scan_file(struct scan *scan, const char *class_name, const char *file,
                             const char *path, struct weir_error *err)
{
    char sha[WEIR_SHA256_TEXT_BYTES];
    uint64_t size;
    if (json_array_size(scan->files) >= SCAN_MAX_FILES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "dataset \"%s\" has more than %zu files",
                              scan->dataset->name, SCAN_MAX_FILES);
    }
    if (scan->dataset->is_uploaded) {
        WEIR_TRY(weir_blob_put_file(scan->call->api->blobs, path, NULL, sha, &size, err));
    } else {
        WEIR_TRY(weir_file_sha256(path, sha, &size, err));
    }
    json_t *entry = json_pack("{s:s,s:s,s:s,s:I}", "class", class_name, "file", file, "sha256", sha,
                              "bytes", (json_int_t)size);
    if (entry == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "dataset \"%s\": the name of its file number %zu, or of that one's "
                              "folder, is not UTF-8: rename it",
                              scan->dataset->name, json_array_size(scan->files) + 1);
    }
    json_array_append_new(scan->files, entry);
    scan->bytes += (int64_t)size;
    return class_name[0] != '\0'
               ? weir_buf_printf(&scan->sums, "%s  %s/%s\n", sha, class_name, file)
               : weir_buf_printf(&scan->sums, "%s  %s\n", sha, file);
}

/* The files of one folder; sub-folders are classes at the first level only. */
static weir_status scan_folder(struct scan *scan, const char *folder, const char *class_name,
                               struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_visible, by_name);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "cannot list %s", folder);
    }
    weir_status status = WEIR_OK;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        char path[PATH_MAX]; /* not the arena: there may be millions */
        struct stat st;
        int len = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (status != WEIR_OK || len >= (int)sizeof path || stat(path, &st) != 0) {
            /* an earlier error, or it vanished meanwhile, or nobody can open it */
        } else if (S_ISREG(st.st_mode)) {
            status = scan_file(scan, class_name, name, path, err);
        } else if (S_ISDIR(st.st_mode) && class_name[0] == '\0') {
            scan->n_classes++;
            status = scan_folder(scan, path, name, err);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

struct version_add {
    struct api_call *call;
    const struct weir_dataset *dataset;
    struct weir_dataset_version version, stored;
};

static weir_status version_add_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct version_add *add = context;
    struct api_call *call = add->call;
    bool is_new;
    json_array_clear(call->publish);
    struct control control = api_control(call);
    WEIR_TRY(weir_dataset_add_version(txn, &add->version, call->now_ms, call->arena, &add->stored,
                                      &is_new, err));
    weir_status status = WEIR_OK;
    if (is_new) {
        status = control_log(&control, txn, "datasets", "dataset_version",
                             weir_arena_printf(call->arena, "dataset/%s", add->dataset->name),
                             weir_arena_printf(call->arena,
                                               "Dataset %s has version %lld: %lld files in "
                                               "%lld classes",
                                               add->dataset->name, (long long)add->stored.version,
                                               (long long)add->stored.n_files,
                                               (long long)add->stored.n_classes),
                             err);
        if (status == WEIR_OK) {
            status = control_dataset_changed(&control, txn, add->dataset, &add->stored, err);
        }
    }
    return status;
}

static weir_status scan_and_add(struct scan *scan, struct weir_error *err)
{
    struct api_call *call = scan->call;
    WEIR_TRY(scan_folder(scan, scan->dataset->path, "", err));
    WEIR_TRY(scan->sums.status);
    if (json_array_size(scan->files) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "dataset \"%s\" has no files yet: put some with "
                              "`weir dataset put`",
                              scan->dataset->name);
    }
    char digest[WEIR_SHA256_TEXT_BYTES], blob[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    weir_sha256(scan->sums.data, scan->sums.len, digest);
    json_t *manifest = json_pack("{s:s,s:O}", "dataset", scan->dataset->name, "files", scan->files);
    char *text = json_dumps(manifest, JSON_COMPACT);
    json_decref(manifest);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the manifest");
    }
    weir_status status = weir_blob_put(call->api->blobs, text, strlen(text), NULL, blob, err);
    free(text);
    WEIR_TRY(status);
    weir_uuid_make(id);
    struct version_add add = {.call = call,
                              .dataset = scan->dataset,
                              .version = {.id = id,
                                          .dataset = scan->dataset->name,
                                          .digest = digest,
                                          .blob = blob,
                                          .n_files = (int64_t)json_array_size(scan->files),
                                          .n_classes = scan->n_classes,
                                          .bytes = scan->bytes}};
    WEIR_TRY(weir_store_write(call->api->store, version_add_in, &add, err));
    api_answer_record(call, &weir_dataset_version_resource, &add.stored);
    return WEIR_OK;
}

weir_status api_dataset_version_create(struct api_call *call, struct weir_txn *txn,
                                       struct weir_error *err)
{
    (void)txn;
    struct dataset_lookup lookup = {.call = call};
    WEIR_TRY(weir_store_read(call->api->store, lookup_in, &lookup, err));
    struct scan scan = {.call = call, .dataset = &lookup.dataset, .files = json_array()};
    weir_buf_init(&scan.sums, MANIFEST_MAX_BYTES);
    weir_status status = scan_and_add(&scan, err);
    weir_buf_fini(&scan.sums);
    json_decref(scan.files);
    return status;
}

weir_status api_dataset_versions(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct weir_dataset dataset;
    WEIR_TRY(
        weir_txn_get(txn, &weir_dataset_resource, call->params[0], call->arena, &dataset, err));
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("dataset", EQ, dataset.name)),
                               .order_by = "version", .is_descending = true, .limit = 1000};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_dataset_version_resource, &query, call->arena, &items, &n,
                           NULL, err));
    api_answer_list(call, &weir_dataset_version_resource, items, n, NULL);
    return WEIR_OK;
}
