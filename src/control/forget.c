#include "control/forget.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "control/control.h"
#include "store/chain.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/comparison.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX_BYTES ((size_t)512 << 20)
#define VERSIONS_MAX       100000
#define PICTURES_PER_STEP  200
#define DEPTH_MAX          16 /* of folders of replicas */
#define HASHED_MAX_BYTES   ((off_t)64 << 20)
#define DIGEST_LEN         (WEIR_SHA256_TEXT_BYTES - 1)
#define EMBEDDINGS_MARK    "WEIREMB1"

struct version {
    char *dataset, *blob;
    int64_t number;
    int64_t n_files, bytes; /**< Of the person. */
};

struct folder {
    char *dataset, *path;
    bool is_uploaded;
};

struct work {
    const struct forget *forget;
    const struct weir_forgotten *record;
    struct weir_arena *arena;
    struct folder *folders;
    size_t n_folders;
    struct version *versions;
    size_t n_versions;
    char **digests; /**< Of the photos in versions; sorted. */
    size_t n_digests, cap_digests;
    int64_t n_photos, n_blobs, n_pictures, n_embeddings, n_cached;
    json_t *outside; /**< Folders that are not the server's. */
    struct weir_forgotten *out;
};

/* ---- what there is --------------------------------------------------------------------------- */

static const char sql_folders[] =
    "SELECT name, path, is_uploaded FROM datasets WHERE :project = '' OR project = :project"
    " ORDER BY name";
static const char sql_versions[] =
    "SELECT v.dataset, v.blob, v.version FROM dataset_versions v JOIN datasets d ON"
    " d.name = v.dataset WHERE :project = '' OR d.project = :project ORDER BY v.dataset, v.version"
    " LIMIT :n";

static weir_status read_folders(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_folders,
                            WEIR_BINDS(WEIR_BIND_TEXT("project", work->record->project)), &stmt,
                            err));
    work->folders = WEIR_ARENA_ARRAY(work->arena, VERSIONS_MAX, struct folder);
    while (work->n_folders < VERSIONS_MAX) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        work->folders[work->n_folders++] =
            (struct folder){.dataset = weir_stmt_text(stmt, 0, work->arena),
                            .path = weir_stmt_text(stmt, 1, work->arena),
                            .is_uploaded = weir_stmt_int(stmt, 2) != 0};
    }
    return WEIR_OK;
}

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct work *work = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    work->n_folders = work->n_versions = 0;
    WEIR_TRY(read_folders(work, txn, err));
    WEIR_TRY(weir_stmt_open(txn, sql_versions,
                            WEIR_BINDS(WEIR_BIND_TEXT("project", work->record->project),
                                       WEIR_BIND_INT("n", VERSIONS_MAX)),
                            &stmt, err));
    work->versions = WEIR_ARENA_ARRAY(work->arena, VERSIONS_MAX, struct version);
    while (work->n_versions < VERSIONS_MAX) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        work->versions[work->n_versions++] =
            (struct version){.dataset = weir_stmt_text(stmt, 0, work->arena),
                             .blob = weir_stmt_text(stmt, 1, work->arena),
                             .number = weir_stmt_int(stmt, 2)};
    }
    return WEIR_OK;
}

static void add_digest(struct work *work, const char *digest)
{
    if (work->n_digests == work->cap_digests) {
        work->cap_digests = work->cap_digests == 0 ? 256 : 2 * work->cap_digests;
        char **more = WEIR_ARENA_ARRAY(work->arena, work->cap_digests, char *);
        if (work->n_digests > 0) {
            memcpy(more, work->digests, work->n_digests * sizeof *more);
        }
        work->digests = more;
    }
    work->digests[work->n_digests++] = weir_arena_strdup(work->arena, digest);
}

/* A manifest that is gone has nothing to say. */
static weir_status read_manifest(struct work *work, struct version *version, struct weir_error *err)
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
            version->bytes += json_integer_value(json_object_get(file, "bytes"));
            add_digest(work, digest);
        }
    }
    json_decref(manifest);
    return WEIR_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_photo(const struct work *work, const char *digest)
{
    return work->n_digests > 0 &&
           bsearch(&digest, work->digests, work->n_digests, sizeof *work->digests, compare) != NULL;
}

static void sort_digests(struct work *work)
{
    size_t n = 0;
    if (work->n_digests == 0) {
        return;
    }
    qsort(work->digests, work->n_digests, sizeof *work->digests, compare);
    for (size_t i = 0; i < work->n_digests; i++) {
        if (n == 0 || strcmp(work->digests[n - 1], work->digests[i]) != 0) {
            work->digests[n++] = work->digests[i];
        }
    }
    work->n_digests = n;
}

/* ---- folders of replicas --------------------------------------------------------------------- */

/* Has the file an embedding of the person? Its form: predict/embedding_store.h. One that is not of this
 * form goes too: it is made anew from the photos that there are. */
static bool has_embedding(const struct work *work, const char *data, size_t len)
{
    uint32_t dim;
    const size_t header = 20, trailer = 4;
    if (len < header + trailer) {
        return false;
    }
    memcpy(&dim, data + 8, sizeof dim);
    size_t row = DIGEST_LEN + (size_t)dim * sizeof(float);
    if ((len - header - trailer) % row != 0) {
        return true;
    }
    for (size_t at = header; at + row <= len - trailer; at += row) {
        char digest[WEIR_SHA256_TEXT_BYTES];
        memcpy(digest, data + at, DIGEST_LEN);
        digest[DIGEST_LEN] = '\0';
        if (is_photo(work, digest)) {
            return true;
        }
    }
    return false;
}

static weir_status look_at_file(struct work *work, const char *path, off_t size,
                                struct weir_error *err)
{
    struct weir_arena arena;
    char digest[WEIR_SHA256_TEXT_BYTES], *data;
    size_t len;
    if (size == 0 || size > HASHED_MAX_BYTES) {
        return WEIR_OK; /* a model, or a log: neither photo nor embeddings */
    }
    weir_arena_init(&arena, 0);
    weir_status status = weir_file_read(path, (size_t)HASHED_MAX_BYTES, &arena, &data, &len, err);
    if (status == WEIR_OK) {
        weir_sha256(data, len, digest);
        bool is_embeddings = len >= sizeof EMBEDDINGS_MARK - 1 &&
                             memcmp(data, EMBEDDINGS_MARK, sizeof EMBEDDINGS_MARK - 1) == 0;
        bool is_cached = is_photo(work, digest);
        bool goes = is_cached || (is_embeddings && has_embedding(work, data, len));
        if (goes && unlink(path) != 0 && errno != ENOENT) {
            status = weir_error_set_errno(err, errno, "cannot remove %s", path);
        }
        work->n_cached += goes && is_cached;
        work->n_embeddings += goes && !is_cached;
    }
    weir_arena_fini(&arena);
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status; /* its replica removed it */
}

static weir_status look_at_folder(struct work *work, const char *path, int depth,
                                  struct weir_error *err)
{
    weir_status status = WEIR_OK;
    DIR *stream = opendir(path);
    if (stream == NULL) {
        return errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "reading %s", path);
    }
    for (struct dirent *entry; status == WEIR_OK && (entry = readdir(stream)) != NULL;) {
        struct stat st;
        const char *below = weir_arena_printf(work->arena, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            lstat(below, &st) != 0) {
            continue;
        }
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
            status = look_at_folder(work, below, depth + 1, err);
        } else if (S_ISREG(st.st_mode)) {
            status = look_at_file(work, below, st.st_size, err);
        }
    }
    (void)closedir(stream);
    return status;
}

/* The picture of a decision in the folders of replicas: replicas/REPLICA/images/ID.jpg. */
static void remove_image(struct work *work, const char *id)
{
    const char *replicas = weir_arena_printf(work->arena, "%s/replicas", work->forget->state_dir);
    DIR *stream = opendir(replicas);
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] != '.') {
            (void)unlink(
                weir_arena_printf(work->arena, "%s/%s/images/%s.jpg", replicas, entry->d_name, id));
        }
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
}

/* ---- pictures of decisions ------------------------------------------------------------------- */

#define DECISIONS                                                                                  \
    " FROM decisions WHERE person = :person AND image IS NOT NULL AND (:project = '' OR ion IN"    \
    " (SELECT name FROM ions WHERE project = :project))"
static const char sql_pictures[] =
    "SELECT id, image, pack, pack_offset, pack_bytes" DECISIONS " LIMIT :n";
static const char sql_unpicture[] =
    "UPDATE decisions SET image = NULL, pack = 0, pack_offset = 0, pack_bytes = 0 WHERE id = :id";

struct picture {
    char *id, *image;
    struct weir_pack_place place;
};

struct pictures {
    struct work *work;
    struct weir_arena *arena;
    struct picture items[PICTURES_PER_STEP];
    size_t n;
};

static weir_status find_pictures(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct pictures *pictures = context;
    const struct weir_forgotten *record = pictures->work->record;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    pictures->n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_pictures,
                            WEIR_BINDS(WEIR_BIND_TEXT("person", record->person),
                                       WEIR_BIND_TEXT("project", record->project),
                                       WEIR_BIND_INT("n", PICTURES_PER_STEP)),
                            &stmt, err));
    while (pictures->n < PICTURES_PER_STEP) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        pictures->items[pictures->n++] = (struct picture){
            .id = weir_stmt_text(stmt, 0, pictures->arena),
            .image = weir_stmt_text(stmt, 1, pictures->arena),
            .place = {weir_stmt_int(stmt, 2), weir_stmt_int(stmt, 3), weir_stmt_int(stmt, 4)}};
    }
    return WEIR_OK;
}

static weir_status unpicture_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct pictures *pictures = context;
    for (size_t i = 0; i < pictures->n; i++) {
        WEIR_TRY(weir_txn_exec(txn, sql_unpicture,
                               WEIR_BINDS(WEIR_BIND_TEXT("id", pictures->items[i].id)), NULL, err));
    }
    return WEIR_OK;
}

static weir_status erase_pictures(struct pictures *pictures, struct weir_error *err)
{
    const struct forget *forget = pictures->work->forget;
    WEIR_TRY(weir_store_read(forget->store, find_pictures, pictures, err));
    for (size_t i = 0; i < pictures->n; i++) {
        const struct picture *picture = &pictures->items[i];
        remove_image(pictures->work, picture->id);
        WEIR_TRY(picture->place.pack != 0
                     ? weir_packs_erase(forget->pictures, picture->id, &picture->place, err)
                     : weir_blob_remove(forget->blobs, picture->image, err));
    }
    pictures->work->n_pictures += (int64_t)pictures->n;
    return pictures->n > 0 ? weir_store_write(forget->store, unpicture_in, pictures, err) : WEIR_OK;
}

static weir_status remove_pictures(struct work *work, struct weir_error *err)
{
    struct pictures pictures = {.work = work};
    do {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        pictures.arena = &arena;
        weir_status status = erase_pictures(&pictures, err);
        weir_arena_fini(&arena);
        WEIR_TRY(status);
    } while (pictures.n == PICTURES_PER_STEP);
    return WEIR_OK;
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

static weir_status remove_photos(struct work *work, struct weir_error *err)
{
    for (size_t i = 0; i < work->n_folders; i++) {
        const struct folder *folder = &work->folders[i];
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
        WEIR_TRY(weir_dir_remove(path, err));
    }
    for (size_t i = 0; i < work->n_digests; i++) {
        struct weir_error gone;
        work->n_blobs += weir_blob_exists(work->forget->blobs, work->digests[i]);
        if (weir_blob_remove(work->forget->blobs, work->digests[i], &gone) == WEIR_ERR_IO) {
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

static weir_status add_tombstones(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    for (size_t i = 0; i < work->n_versions; i++) {
        const struct version *version = &work->versions[i];
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

static char *summary_of(struct work *work)
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
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:o,s:O}", "photos", (json_int_t)work->n_photos, "blobs",
                  (json_int_t)work->n_blobs, "pictures", (json_int_t)work->n_pictures,
                  "embedding_files", (json_int_t)work->n_embeddings, "cached",
                  (json_int_t)work->n_cached, "datasets", datasets, "outside", work->outside);
    char *text = weir_json_text(summary, work->arena);
    json_decref(summary);
    return text;
}

static weir_status finish_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct work *work = context;
    struct weir_forgotten done = *work->record;
    done.state = "done";
    done.done_ms = work->forget->now_ms;
    done.summary = summary_of(work);
    WEIR_TRY(add_tombstones(work, txn, err));
    WEIR_TRY(weir_disagreements_forget(txn, done.person, done.project, err));
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

static weir_status run(struct work *work, struct weir_error *err)
{
    const struct forget *forget = work->forget;
    const char *replicas = weir_arena_printf(work->arena, "%s/replicas", forget->state_dir);
    WEIR_TRY(weir_store_read(forget->store, read_in, work, err));
    for (size_t i = 0; i < work->n_versions; i++) {
        WEIR_TRY(read_manifest(work, &work->versions[i], err));
    }
    sort_digests(work);
    WEIR_TRY(remove_photos(work, err));
    WEIR_TRY(look_at_folder(work, replicas, 0, err));
    WEIR_TRY(remove_pictures(work, err));
    return weir_store_write(forget->store, finish_in, work, err);
}

weir_status forget_run(const struct forget *forget, const struct weir_forgotten *record,
                       struct weir_arena *arena, struct weir_forgotten *out, struct weir_error *err)
{
    struct work work = {.forget = forget, .record = record, .arena = arena, .out = out};
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
    for (size_t i = 0; i < resuming.n && status == WEIR_OK; i++) {
        struct weir_forgotten done;
        status = forget_run(forget, &resuming.items[i], &arena, &done, &err);
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "forgetting_failed", WEIR_KV_STR("error", err.message));
    }
    weir_arena_fini(&arena);
}
