#include "control/forget/forget_private.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/uuid.h"
#include "control/control.h"
#include "store/chain.h"
#include "store/stmt.h"
#include "store/table.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANIFEST_MAX_BYTES ((size_t)512 << 20)
#define VERSIONS_MAX       100000

/* ---- what there is --------------------------------------------------------------------------- */

static const char sql_folders[] =
    "SELECT name, path, is_uploaded FROM datasets WHERE :project = '' OR project = :project"
    " ORDER BY name";
static const char sql_versions[] =
    "SELECT v.dataset, v.blob, v.version FROM dataset_versions v JOIN datasets d ON"
    " d.name = v.dataset WHERE :project = '' OR d.project = :project ORDER BY v.dataset, v.version"
    " LIMIT :n";

static weir_status read_folders(struct forget_work *work, struct weir_txn *txn,
                                struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_folders,
                            WEIR_BINDS(WEIR_BIND_TEXT("project", work->record->project)), &stmt,
                            err));
    work->folders = WEIR_ARENA_ARRAY(work->arena, VERSIONS_MAX, struct forget_folder);
    while (work->n_folders < VERSIONS_MAX) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        work->folders[work->n_folders++] =
            (struct forget_folder){.dataset = weir_stmt_text(stmt, 0, work->arena),
                                   .path = weir_stmt_text(stmt, 1, work->arena),
                                   .is_uploaded = weir_stmt_int(stmt, 2) != 0};
    }
    return WEIR_OK;
}

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct forget_work *work = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    work->n_folders = work->n_versions = 0;
    WEIR_TRY(read_folders(work, txn, err));
    WEIR_TRY(weir_stmt_open(txn, sql_versions,
                            WEIR_BINDS(WEIR_BIND_TEXT("project", work->record->project),
                                       WEIR_BIND_INT("n", VERSIONS_MAX)),
                            &stmt, err));
    work->versions = WEIR_ARENA_ARRAY(work->arena, VERSIONS_MAX, struct forget_version);
    while (work->n_versions < VERSIONS_MAX) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        work->versions[work->n_versions++] =
            (struct forget_version){.dataset = weir_stmt_text(stmt, 0, work->arena),
                                    .blob = weir_stmt_text(stmt, 1, work->arena),
                                    .number = weir_stmt_int(stmt, 2)};
    }
    return WEIR_OK;
}

static void add_photo(struct forget_work *work, const char *digest, int64_t bytes)
{
    weir_arena_grow(work->arena, &work->photos, sizeof *work->photos, work->n_photos_known,
                    &work->cap_photos);
    struct forget_photo *photo = &work->photos[work->n_photos_known++];
    (void)snprintf(photo->digest, sizeof photo->digest, "%s", digest);
    photo->bytes = bytes;
}

/* A manifest that is gone has nothing to say. */
static weir_status read_manifest(struct forget_work *work, struct forget_version *version,
                                 struct weir_error *err)
{
    char *path;
    json_t *manifest, *file;
    size_t i;
    weir_status status =
        weir_blob_path(work->forget->blobs, version->blob, work->arena, &path, NULL, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK;
    }
    WEIR_TRY(status);
    WEIR_TRY(weir_json_load(path, MANIFEST_MAX_BYTES, &manifest, err));
    json_array_foreach(json_object_get(manifest, "files"), i, file)
    {
        const char *class = json_string_value(json_object_get(file, "class"));
        const char *digest = json_string_value(json_object_get(file, "sha256"));
        if (class != NULL && digest != NULL && strcmp(class, work->record->person) == 0) {
            version->n_files++;
            int64_t bytes = json_integer_value(json_object_get(file, "bytes"));
            version->bytes += bytes;
            add_photo(work, digest, bytes);
        }
    }
    json_decref(manifest);
    return WEIR_OK;
}

static int by_digest(const void *a, const void *b)
{
    return strcmp(((const struct forget_photo *)a)->digest,
                  ((const struct forget_photo *)b)->digest);
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

bool forget_is_photo(const struct forget_work *work, const char *digest)
{
    struct forget_photo wanted = {.bytes = 0};
    (void)snprintf(wanted.digest, sizeof wanted.digest, "%s", digest);
    return work->n_photos_known > 0 && bsearch(&wanted, work->photos, work->n_photos_known,
                                               sizeof *work->photos, by_digest) != NULL;
}

bool forget_has_size(const struct forget_work *work, int64_t bytes)
{
    return work->n_sizes > 0 &&
           bsearch(&bytes, work->sizes, work->n_sizes, sizeof *work->sizes, by_size) != NULL;
}

static void sort_photos(struct forget_work *work)
{
    size_t n = 0;
    if (work->n_photos_known == 0) {
        return;
    }
    qsort(work->photos, work->n_photos_known, sizeof *work->photos, by_digest);
    for (size_t i = 0; i < work->n_photos_known; i++) {
        if (n == 0 || by_digest(&work->photos[n - 1], &work->photos[i]) != 0) {
            work->photos[n++] = work->photos[i];
        }
    }
    work->n_photos_known = work->n_sizes = n;
    work->sizes = WEIR_ARENA_ARRAY(work->arena, n, int64_t);
    for (size_t i = 0; i < n; i++) {
        work->sizes[i] = work->photos[i].bytes;
    }
    qsort(work->sizes, n, sizeof *work->sizes, by_size);
}

void forget_step(const struct forget_work *work, const char *what)
{
    if (work->forget->step != NULL) {
        work->forget->step(work->forget->step_context, what);
    }
}

/* ---- datasets -------------------------------------------------------------------------------- */

static int64_t count_files(const char *path)
{
    int64_t n = 0;
    DIR *stream = opendir(path);
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
        n += entry->d_name[0] != '.';
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return n;
}

static weir_status remove_photos(struct forget_work *work, struct weir_error *err)
{
    for (size_t i = 0; i < work->n_folders; i++) {
        const struct forget_folder *folder = &work->folders[i];
        const char *path =
            weir_arena_printf(work->arena, "%s/%s", folder->path, work->record->person);
        if (!weir_path_is_dir(path)) {
            continue;
        }
        if (!folder->is_uploaded) {
            json_array_append_new(work->outside, json_string(path));
            continue;
        }
        work->n_photos += count_files(path);
        forget_step(work, "photos");
        WEIR_TRY(weir_dir_remove(path, err));
    }
    for (size_t i = 0; i < work->n_photos_known; i++) {
        struct weir_error gone;
        const char *digest = work->photos[i].digest;
        forget_step(work, "blob");
        work->n_blobs += weir_blob_exists(work->forget->blobs, digest);
        if (weir_blob_remove(work->forget->blobs, digest, &gone) == WEIR_ERR_IO) {
            return weir_error_set(err, WEIR_ERR_IO, "%s", gone.message);
        }
    }
    return WEIR_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static const char sql_tombstone[] =
    "INSERT INTO dataset_tombstones (id, forgotten, dataset, version, person, n_files, bytes,"
    " time_ms) VALUES (:id, :forgotten, :dataset, :version, :person, :n_files, :bytes, :time_ms)"
    " ON CONFLICT DO NOTHING";

static weir_status add_tombstones(struct forget_work *work, struct weir_txn *txn,
                                  struct weir_error *err)
{
    for (size_t i = 0; i < work->n_versions; i++) {
        const struct forget_version *version = &work->versions[i];
        char id[WEIR_UUID_BYTES];
        if (version->n_files == 0) {
            continue;
        }
        weir_uuid_make(id);
        WEIR_TRY(weir_txn_exec(txn, sql_tombstone,
                               WEIR_BINDS(WEIR_BIND_TEXT("id", id),
                                          WEIR_BIND_TEXT("forgotten", work->record->id),
                                          WEIR_BIND_TEXT("dataset", version->dataset),
                                          WEIR_BIND_INT("version", version->number),
                                          WEIR_BIND_TEXT("person", work->record->person),
                                          WEIR_BIND_INT("n_files", version->n_files),
                                          WEIR_BIND_INT("bytes", version->bytes),
                                          WEIR_BIND_INT("time_ms", work->forget->now_ms)),
                               NULL, err));
    }
    return WEIR_OK;
}

static char *summary_of(struct forget_work *work)
{
    json_t *datasets = json_array();
    const char *last = "";
    for (size_t i = 0; i < work->n_versions; i++) {
        if (work->versions[i].n_files > 0 && strcmp(last, work->versions[i].dataset) != 0) {
            last = work->versions[i].dataset;
            json_array_append_new(datasets, json_string(last));
        }
    }
    json_t *summary =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:O}", "photos", (json_int_t)work->n_photos,
                  "blobs", (json_int_t)work->n_blobs, "pictures", (json_int_t)work->n_pictures,
                  "embedding_files", (json_int_t)work->n_embeddings, "cached",
                  (json_int_t)work->n_cached, "feedback", (json_int_t)work->n_renamed, "snapshots",
                  (json_int_t)work->n_snapshots, "datasets", datasets, "outside", work->outside);
    char *text = weir_json_text(summary, work->arena);
    json_decref(summary);
    return text;
}

static weir_status finish_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct forget_work *work = context;
    struct weir_forgotten done = *work->record;
    done.state = "done";
    done.done_ms = work->forget->now_ms;
    done.summary = summary_of(work);
    WEIR_TRY(add_tombstones(work, txn, err));
    WEIR_TRY(weir_txn_update(txn, &weir_forgotten_resource, &done,
                             WEIR_FIELDS("state", "done_ms", "summary"), err));
    const struct weir_event event = {
        .time_ms = done.done_ms,
        .topic = WEIR_AUDIT_TOPIC,
        .kind = "person_forgotten",
        .subject = weir_arena_printf(work->arena, "person/%s", done.person),
        .actor = done.actor,
        .message = weir_arena_printf(work->arena,
                                     "Photos, pictures of decisions and embeddings of %s are "
                                     "deleted, at the word of %s.",
                                     done.person, done.actor),
        .data = done.summary};
    WEIR_TRY(weir_event_append(txn, &event, NULL, err));
    *work->out = done;
    return WEIR_OK;
}

static weir_status run(struct forget_work *work, struct weir_error *err)
{
    const struct forget *forget = work->forget;
    WEIR_TRY(weir_store_read(forget->store, read_in, work, err));
    for (size_t i = 0; i < work->n_versions; i++) {
        WEIR_TRY(read_manifest(work, &work->versions[i], err));
    }
    sort_photos(work);
    WEIR_TRY(remove_photos(work, err));
    WEIR_TRY(forget_copies(work, err));
    WEIR_TRY(forget_pictures(work, err));
    WEIR_TRY(forget_names(work, err));
    WEIR_TRY(forget_snapshots(work, err));
    forget_step(work, "end");
    return weir_store_write(forget->store, finish_in, work, err);
}

weir_status forget_run(const struct forget *forget, const struct weir_forgotten *record,
                       struct weir_arena *arena, struct weir_forgotten *out, struct weir_error *err)
{
    struct forget_work work = {.forget = forget, .record = record, .arena = arena, .out = out};
    work.outside = json_array();
    weir_status status = run(&work, err);
    json_decref(work.outside);
    return status;
}

/* ---- after a kill ---------------------------------------------------------------------------- */

struct resuming {
    struct weir_arena *arena;
    struct weir_forgotten *items;
    size_t n;
};

static weir_status running_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct resuming *resuming = context;
    void *items;
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("state", EQ, "running")),
                                     .limit = 1000};
    WEIR_TRY(weir_txn_list(txn, &weir_forgotten_resource, &query, resuming->arena, &items,
                           &resuming->n, NULL, err));
    resuming->items = items;
    return WEIR_OK;
}

void forget_resume(const struct forget *forget)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    struct resuming resuming = {.arena = &arena};
    weir_status status = weir_store_read(forget->store, running_in, &resuming, &err);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "forgetting_failed", WEIR_KV_STR("error", err.message));
    }
    for (size_t i = 0; i < resuming.n; i++) { /* one that fails holds up no other */
        struct weir_forgotten done;
        if (forget_run(forget, &resuming.items[i], &arena, &done, &err) != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "forgetting_failed", WEIR_KV_STR("id", resuming.items[i].id),
                     WEIR_KV_STR("error", err.message));
        }
    }
    weir_arena_fini(&arena);
}

/* ---- versions that are still to be made ------------------------------------------------------ */

static const char sql_unfrozen[] =
    "SELECT DISTINCT d.name FROM datasets d JOIN dataset_tombstones t ON t.dataset = d.name"
    " WHERE d.is_uploaded <> 0 AND t.version ="
    " (SELECT max(version) FROM dataset_versions WHERE dataset = d.name) ORDER BY d.name";

struct unfrozen {
    struct weir_arena *arena;
    char **names;
    size_t n;
};

static weir_status unfrozen_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct unfrozen *unfrozen = context;
    return weir_txn_query_texts(txn, sql_unfrozen, WEIR_NO_BINDS, unfrozen->arena, &unfrozen->names,
                                &unfrozen->n, err);
}

weir_status forget_unfrozen(struct weir_store *store, struct weir_arena *arena, char ***out,
                            size_t *out_n, struct weir_error *err)
{
    struct unfrozen unfrozen = {.arena = arena};
    WEIR_TRY(weir_store_read(store, unfrozen_in, &unfrozen, err));
    *out = unfrozen.names;
    *out_n = unfrozen.n;
    return WEIR_OK;
}
