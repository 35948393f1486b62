#include "capture/snapshot.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/uuid.h"
#include "blob/blob.h"
#include "capture/rows.h"
#include "store/stmt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)256 << 10)

// clang-format off: a table
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_snapshot, name, TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN,
               "", "Unique name"),
    WEIR_FIELD(weir_snapshot, id, TEXT, WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_snapshot, ion, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "ION that it is of; of an imported one it need not be here"),
    WEIR_FIELD(weir_snapshot, project, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "Project whose it is"),
    WEIR_FIELD(weir_snapshot, from_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms",
               "Begin of the span"),
    WEIR_FIELD(weir_snapshot, to_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms",
               "End of the span"),
    WEIR_FIELD(weir_snapshot, revision, INT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "Revision of the ION's document when it was taken"),
    WEIR_FIELD(weir_snapshot, n_rows, INT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "Records in it"),
    WEIR_FIELD(weir_snapshot, has_models, BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "The models themselves are in it"),
    WEIR_FIELD(weir_snapshot, is_imported, BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "It came as a file"),
    WEIR_FIELD(weir_snapshot, bytes, INT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "bytes",
               "Size of its file"),
    WEIR_FIELD(weir_snapshot, models, JSON, WEIR_FIELD_READ_ONLY, "",
               "Model versions that it refers to; the blobs of these are kept"),
    WEIR_FIELD(weir_snapshot, created_by, TEXT, WEIR_FIELD_READ_ONLY, "",
               "Who took or imported it"),
    WEIR_FIELD(weir_snapshot, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms",
               "When"),
    WEIR_FIELD(weir_snapshot, changed_ms, TIME, WEIR_FIELD_READ_ONLY, "ms",
               "When forgetting a person changed its rows and sums"),
};
// clang-format on

const struct weir_resource weir_snapshot_resource =
    WEIR_RESOURCE("snapshot", "snapshots", weir_snapshot, fields);

static const char sql_is_named[] = "SELECT count(*) FROM snapshots WHERE id = :id";

char *weir_snapshot_path(const struct weir_capture *capture, const char *id,
                         struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/snapshots/%s.tar", capture->state_dir, id);
}

void weir_snapshot_discard(const struct weir_capture *capture, const char *id)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    (void)unlink(weir_snapshot_path(capture, id, &arena));
    weir_arena_fini(&arena);
}

/* ---- import ---------------------------------------------------------------------------------- */

struct importing {
    const struct weir_capture *capture;
    struct weir_snapshot_file *file;
    struct weir_arena *arena;
    struct weir_snapshot made;
};

static const char *text_of(const json_t *manifest, const char *key)
{
    const char *text = json_string_value(json_object_get(manifest, key));
    return text != NULL ? text : "";
}

static weir_status read_header(struct importing *importing, const char *name,
                               struct weir_error *err)
{
    const json_t *manifest = weir_snapshot_manifest(importing->file);
    struct weir_snapshot *made = &importing->made;
    const json_t *models = json_object_get(manifest, "models");
    made->name =
        weir_arena_strdup(importing->arena, name != NULL ? name : text_of(manifest, "name"));
    made->ion = weir_arena_strdup(importing->arena, text_of(manifest, "ion"));
    made->revision = json_integer_value(json_object_get(manifest, "revision"));
    made->has_models = json_is_true(json_object_get(manifest, "has_models"));
    if (!weir_name_is_valid(made->name) || !weir_name_is_valid(made->ion)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.80s\" of ION \"%.80s\" is no name of a snapshot", made->name,
                              made->ion);
    }
    if (weir_time_parse(text_of(manifest, "from"), &made->from_ms) != WEIR_OK ||
        weir_time_parse(text_of(manifest, "to"), &made->to_ms) != WEIR_OK ||
        made->from_ms > made->to_ms) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "manifest.json: $.from and $.to: expected two times, in their order");
    }
    if (!json_is_array(models) || json_array_size(models) > WEIR_SNAPSHOT_MODELS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "manifest.json: $.models: expected a list of at most %d",
                              WEIR_SNAPSHOT_MODELS_MAX);
    }
    made->models = weir_json_text(models, importing->arena);
    return WEIR_OK;
}

static weir_status count_row(void *context, const void *record, struct weir_error *err)
{
    struct importing *importing = context;
    (void)record;
    return ++importing->made.n_rows <= WEIR_SNAPSHOT_ROWS_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "the snapshot holds more than %d records",
                                WEIR_SNAPSHOT_ROWS_MAX);
}

static weir_status copy_model(struct weir_blob_writer *writer, int fd, uint64_t offset,
                              uint64_t bytes, struct weir_error *err)
{
    char *chunk = weir_xalloc(COPY_BYTES);
    weir_status status = WEIR_OK;
    while (bytes > 0 && status == WEIR_OK) {
        ssize_t n = pread(fd, chunk, (size_t)WEIR_MIN(bytes, COPY_BYTES), (off_t)offset);
        if (n <= 0) {
            status = weir_error_set_errno(err, n < 0 ? errno : EIO, "reading the snapshot");
            break;
        }
        status = weir_blob_writer_write(writer, chunk, (size_t)n, err);
        offset += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    free(chunk);
    return status;
}

/* A model that is in the file becomes a blob, if its bytes are what its name says. */
static weir_status keep_model(struct importing *importing, const char *blob, struct weir_error *err)
{
    struct weir_blob_writer *writer;
    char sha256[WEIR_SHA256_TEXT_BYTES];
    uint64_t offset, bytes;
    int fd;
    if (!weir_blob_name_is_valid(blob)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "manifest.json: $.models: \"%.80s\" is no SHA-256", blob);
    }
    if (weir_blob_exists(importing->capture->blobs, blob) ||
        !weir_snapshot_model(importing->file, blob, &fd, &offset, &bytes)) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_blob_writer_open(importing->capture->blobs, bytes, &writer, err));
    weir_status status = copy_model(writer, fd, offset, bytes, err);
    if (status != WEIR_OK) {
        weir_blob_writer_abort(writer);
        return status;
    }
    return weir_blob_writer_finish(writer, blob, sha256, NULL, err);
}

static weir_status look_and_keep(struct importing *importing, struct weir_error *err)
{
    size_t i;
    json_t *model;
    WEIR_TRY(weir_snapshot_verify(importing->file, err));
    const struct weir_noun *table;
    for (size_t k = 0; (table = weir_captured_at(k)) != NULL; k++) {
        WEIR_TRY(weir_snapshot_rows(importing->file, table, count_row, importing, err));
    }
    json_array_foreach(json_object_get(weir_snapshot_manifest(importing->file), "models"), i, model)
    {
        WEIR_TRY(keep_model(importing, text_of(model, "blob"), err));
    }
    return WEIR_OK;
}

/* Uploads lie in the state folder too: a rename moves them. */
static weir_status move_in(const struct weir_capture *capture, const char *path, const char *id,
                           struct weir_arena *arena, struct weir_error *err)
{
    const char *folder = weir_arena_printf(arena, "%s/snapshots", capture->state_dir);
    WEIR_TRY(weir_dir_make(folder, 0700, err));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *place = weir_snapshot_path(capture, id, arena);
    bool is_there = fd >= 0 && folder_fd >= 0 && fsync(fd) == 0 && rename(path, place) == 0;
    bool is_moved = is_there && fsync(folder_fd) == 0;
    int reason = errno;
    if (is_there && !is_moved) {
        (void)rename(place, path);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (folder_fd >= 0) {
        (void)close(folder_fd);
    }
    return is_moved ? WEIR_OK : weir_error_set_errno(err, reason, "cannot keep the snapshot");
}

weir_status weir_snapshot_import(const struct weir_capture *capture, const char *path,
                                 const char *name, const char *project, const char *actor,
                                 int64_t now_ms, struct weir_arena *arena,
                                 struct weir_snapshot *out, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    struct stat facts;
    struct importing importing = {.capture = capture, .arena = arena};
    weir_uuid_make(id);
    importing.made = (struct weir_snapshot){.id = weir_arena_strdup(arena, id),
                                            .project = weir_arena_strdup(arena, project),
                                            .is_imported = true,
                                            .created_by = weir_arena_strdup(arena, actor),
                                            .created_ms = now_ms};
    WEIR_TRY(weir_snapshot_open(path, arena, &importing.file, err));
    weir_status status = read_header(&importing, name, err);
    status = status == WEIR_OK ? look_and_keep(&importing, err) : status;
    weir_snapshot_close(importing.file);
    WEIR_TRY(status);
    if (stat(path, &facts) != 0) {
        return weir_error_set_errno(err, errno, "the snapshot's file");
    }
    importing.made.bytes = (int64_t)facts.st_size;
    WEIR_TRY(move_in(capture, path, id, arena, err));
    *out = importing.made;
    return WEIR_OK;
}

/* ---- what was left half done ----------------------------------------------------------------- */

struct asking {
    const char *id;
    int64_t n;
};

static weir_status ask(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asking *asking = context;
    return weir_txn_query_int(txn, sql_is_named, WEIR_BINDS(WEIR_BIND_TEXT("id", asking->id)), 0,
                              &asking->n, err);
}

/* "ID.tar" with a row stays; all else goes. */
static weir_status sweep_one(struct weir_store *store, const char *folder, const char *name,
                             struct weir_arena *arena, struct weir_error *err)
{
    struct asking asking = {.n = 0};
    size_t len = strlen(name);
    if (len > 4 && strcmp(name + len - 4, ".tar") == 0) {
        asking.id = weir_arena_memdup(arena, name, len - 4);
        WEIR_TRY(weir_store_read(store, ask, &asking, err));
    }
    if (asking.n == 0) {
        (void)unlink(weir_arena_printf(arena, "%s/%s", folder, name));
    }
    return WEIR_OK;
}

weir_status weir_snapshots_sweep(struct weir_store *store, const struct weir_capture *capture,
                                 struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *folder = weir_arena_printf(&arena, "%s/snapshots", capture->state_dir);
    DIR *dir = opendir(folder);
    weir_status status = WEIR_OK;
    if (dir == NULL && errno != ENOENT) {
        status = weir_error_set_errno(err, errno, "cannot read %s", folder);
    }
    for (struct dirent *entry;
         dir != NULL && status == WEIR_OK && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') {
            status = sweep_one(store, folder, entry->d_name, &arena, err);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    weir_arena_fini(&arena);
    return status;
}
