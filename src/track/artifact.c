#include "track/artifact.h"

#include "base/grow.h"
#include "store/stmt.h"

#include <string.h>

// clang-format off
static const struct weir_field artifact_fields[] = {
    WEIR_FIELD(weir_artifact, run,        TEXT, WEIR_FIELD_READ_ONLY, "", "Run"),
    WEIR_FIELD(weir_artifact, path,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Path within the run"),
    WEIR_FIELD(weir_artifact, blob,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "SHA-256 of its bytes"),
    WEIR_FIELD(weir_artifact, bytes,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "bytes", "Size"),
    WEIR_FIELD(weir_artifact, created_by, TEXT, WEIR_FIELD_READ_ONLY, "", "Who put it there"),
    WEIR_FIELD(weir_artifact, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When"),
};
static const struct weir_field entry_fields[] = {
    WEIR_FIELD(weir_artifact_entry, path,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Path within the run"),
    WEIR_FIELD(weir_artifact_entry, is_folder,  BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Is it a folder?"),
    WEIR_FIELD(weir_artifact_entry, bytes,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "bytes", "Size; 0 of a folder"),
    WEIR_FIELD(weir_artifact_entry, blob,       TEXT, WEIR_FIELD_READ_ONLY, "", "SHA-256 of its bytes; null of a folder"),
    WEIR_FIELD(weir_artifact_entry, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was put there; null of a folder"),
};
// clang-format on

const struct weir_resource weir_artifact_resource =
    WEIR_RESOURCE("artifact", "run_artifacts", weir_artifact, artifact_fields);
const struct weir_resource weir_artifact_entry_resource =
    WEIR_RESOURCE("artifact", "artifacts", weir_artifact_entry, entry_fields);

static const char sql_put[] =
    "INSERT INTO run_artifacts (run, path, blob, bytes, created_by, created_ms)"
    " VALUES (:run, :path, :blob, :bytes, :by, :now) ON CONFLICT (run, path) DO UPDATE SET"
    " blob = excluded.blob, bytes = excluded.bytes, created_by = excluded.created_by,"
    " created_ms = excluded.created_ms";
static const char sql_one[] = "SELECT path, blob, bytes, created_by, created_ms FROM run_artifacts"
                              " WHERE run = :run AND path = :path";
static const char sql_range[] =
    "SELECT path, blob, bytes, created_by, created_ms FROM run_artifacts WHERE run = :run AND"
    " path >= :from AND path < :end ORDER BY path LIMIT :limit";
static const char sql_has[] =
    "SELECT 1 FROM run_artifacts WHERE run = :run AND path >= :from AND path < :end LIMIT 1";
static const char sql_is_file[] =
    "SELECT 1 FROM run_artifacts WHERE run = :run AND path = :path LIMIT 1";
static const char sql_remove[] =
    "DELETE FROM run_artifacts WHERE run = :run AND path >= :from AND path < :end";
static const char sql_remove_one[] = "DELETE FROM run_artifacts WHERE run = :run AND path = :path";

/** Behind every path of UTF-8. */
#define END_OF_ALL "\xff"

/** Paths from `from` on and before `end`: what lies below a folder. */
struct range {
    const char *from, *end;
    size_t n_prefix; /**< Bytes of the folder and its "/". */
};

/* "0" is the byte behind "/". */
static struct range range_of(const char *folder, struct weir_arena *arena)
{
    if (folder == NULL || folder[0] == '\0') {
        return (struct range){"", END_OF_ALL, 0};
    }
    return (struct range){weir_arena_printf(arena, "%s/", folder),
                          weir_arena_printf(arena, "%s0", folder), strlen(folder) + 1};
}

static weir_status has_below(struct weir_txn *txn, const char *run, const struct range *range,
                             bool *out, struct weir_error *err)
{
    int64_t has;
    WEIR_TRY(weir_txn_query_int(txn, sql_has,
                                WEIR_BINDS(WEIR_BIND_TEXT("run", run),
                                           WEIR_BIND_TEXT("from", range->from),
                                           WEIR_BIND_TEXT("end", range->end)),
                                0, &has, err));
    *out = has != 0;
    return WEIR_OK;
}

/* ---- one ------------------------------------------------------------------------------------- */

/* No folder on the way is a file. */
static weir_status check_folders(struct weir_txn *txn, const struct weir_artifact *artifact,
                                 struct weir_arena *arena, struct weir_error *err)
{
    for (const char *slash = strchr(artifact->path, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        int64_t is_file;
        char *folder = weir_arena_memdup(arena, artifact->path, (size_t)(slash - artifact->path));
        WEIR_TRY(weir_txn_query_int(
            txn, sql_is_file,
            WEIR_BINDS(WEIR_BIND_TEXT("run", artifact->run), WEIR_BIND_TEXT("path", folder)), 0,
            &is_file, err));
        if (is_file != 0) {
            return weir_error_set(err, WEIR_ERR_CONFLICT,
                                  "artifact \"%.200s\": \"%.200s\" is a file, no folder",
                                  artifact->path, folder);
        }
    }
    return WEIR_OK;
}

static weir_status check_place(struct weir_txn *txn, const struct weir_artifact *artifact,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    bool is_folder = false;
    weir_arena_init(&arena, 0);
    const struct range below = range_of(artifact->path, &arena);
    WEIR_TRY(check_folders(txn, artifact, &arena, err));
    WEIR_TRY(has_below(txn, artifact->run, &below, &is_folder, err));
    if (is_folder) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "artifact \"%.200s\" is a folder: delete it first, or take "
                              "another path",
                              artifact->path);
    }
    return WEIR_OK;
}

weir_status weir_artifact_put(struct weir_txn *txn, const struct weir_artifact *artifact,
                              struct weir_error *err)
{
    WEIR_TRY(check_place(txn, artifact, err));
    weir_status status = weir_txn_exec(
        txn, sql_put,
        WEIR_BINDS(WEIR_BIND_TEXT("run", artifact->run), WEIR_BIND_TEXT("path", artifact->path),
                   WEIR_BIND_TEXT("blob", artifact->blob), WEIR_BIND_INT("bytes", artifact->bytes),
                   WEIR_BIND_TEXT("by", artifact->created_by),
                   WEIR_BIND_INT("now", artifact->created_ms)),
        NULL, err);
    return status == WEIR_ERR_CONFLICT
               ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "Run '%s' not found", artifact->run)
               : status;
}

static struct weir_artifact read_row(const struct weir_stmt *stmt, char *run,
                                     struct weir_arena *arena)
{
    return (struct weir_artifact){.run = run,
                                  .path = weir_stmt_text(stmt, 0, arena),
                                  .blob = weir_stmt_text(stmt, 1, arena),
                                  .bytes = weir_stmt_int(stmt, 2),
                                  .created_by = weir_stmt_text(stmt, 3, arena),
                                  .created_ms = weir_stmt_int(stmt, 4)};
}

/* The file of that very path. */
static weir_status find_one(struct weir_txn *txn, const char *run, const char *path,
                            struct weir_arena *arena, struct weir_artifact *out, bool *out_is_there,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_one,
                            WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("path", path)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, out_is_there, err));
    if (*out_is_there) {
        *out = read_row(stmt, weir_arena_strdup(arena, run), arena);
    }
    return WEIR_OK;
}

weir_status weir_artifact_get(struct weir_txn *txn, const char *run, const char *path,
                              struct weir_arena *arena, struct weir_artifact *out,
                              struct weir_error *err)
{
    bool is_there, is_folder;
    const struct range below = range_of(path, arena);
    WEIR_TRY(find_one(txn, run, path, arena, out, &is_there, err));
    if (is_there) {
        return WEIR_OK;
    }
    WEIR_TRY(has_below(txn, run, &below, &is_folder, err));
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          is_folder ? "artifact \"%.200s\" of run %s is a folder"
                                    : "there is no artifact \"%.200s\" of run %s",
                          path, run);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/** A list being made. */
struct listing {
    struct weir_arena *arena;
    struct weir_artifact_entry *entries;
    size_t n, cap, limit;
};

static void add_entry(struct listing *listing, const struct weir_artifact_entry *entry)
{
    weir_arena_grow(listing->arena, &listing->entries, sizeof *listing->entries, listing->n,
                    &listing->cap);
    listing->entries[listing->n++] = *entry;
}

/* The entry of the folder that a row below it is, or is in; *out_next: where the one behind begins. */
static struct weir_artifact_entry entry_of(const struct weir_artifact *row, size_t n_prefix,
                                           struct weir_arena *arena, char **out_next)
{
    const char *slash = strchr(row->path + n_prefix, '/');
    if (slash == NULL) {
        /* The least text that is greater: no path has a control character. */
        *out_next = weir_arena_printf(arena, "%s\001", row->path);
        return (struct weir_artifact_entry){.path = row->path,
                                            .bytes = row->bytes,
                                            .blob = row->blob,
                                            .created_ms = row->created_ms};
    }
    char *folder = weir_arena_memdup(arena, row->path, (size_t)(slash - row->path));
    *out_next = weir_arena_printf(arena, "%s0", folder);
    return (struct weir_artifact_entry){.path = folder, .is_folder = true};
}

/* The entries of a folder, each found by a look behind the one before. *out_next: NULL at the end. */
static weir_status list_range(struct weir_txn *txn, const char *run, const struct range *range,
                              const char *from, struct listing *listing, char **out_next,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    char *next = weir_arena_strdup(listing->arena, from);
    WEIR_TRY(weir_stmt_open(txn, sql_range, WEIR_NO_BINDS, &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_rebind(
            stmt,
            WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("from", next),
                       WEIR_BIND_TEXT("end", range->end), WEIR_BIND_INT("limit", 1)),
            err));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row || listing->n == listing->limit) {
            *out_next = has_row ? next : NULL;
            return WEIR_OK;
        }
        const struct weir_artifact row = read_row(stmt, NULL, listing->arena);
        const struct weir_artifact_entry entry =
            entry_of(&row, range->n_prefix, listing->arena, &next);
        add_entry(listing, &entry);
        WEIR_TRY(weir_arena_check(listing->arena, "artifacts", err));
    }
}

weir_status weir_artifact_list(struct weir_txn *txn, const char *run, const char *folder,
                               const char *after, size_t limit, struct weir_arena *arena,
                               struct weir_artifact_entry **out, size_t *out_n, char **out_next,
                               struct weir_error *err)
{
    struct listing listing = {.arena = arena, .limit = limit};
    struct weir_artifact file;
    bool is_file = false;
    char *next = NULL;
    const struct range range = range_of(folder, arena);
    if (range.n_prefix > 0) {
        WEIR_TRY(find_one(txn, run, folder, arena, &file, &is_file, err));
    }
    if (is_file) {
        const struct weir_artifact_entry entry = {.path = file.path,
                                                  .bytes = file.bytes,
                                                  .blob = file.blob,
                                                  .created_ms = file.created_ms};
        add_entry(&listing, &entry);
    } else {
        const char *from = after != NULL && strcmp(after, range.from) > 0 ? after : range.from;
        WEIR_TRY(list_range(txn, run, &range, from, &listing, &next, err));
    }
    *out = listing.entries;
    *out_n = listing.n;
    if (out_next != NULL) {
        *out_next = next;
    }
    return WEIR_OK;
}

weir_status weir_artifact_list_files(struct weir_txn *txn, const char *run, const char *folder,
                                     size_t limit, struct weir_arena *arena,
                                     struct weir_artifact **out, size_t *out_n,
                                     struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_artifact *files = WEIR_ARENA_ARRAY(arena, limit + 1, struct weir_artifact);
    size_t n = 0;
    bool has_row = false;
    const struct range range = range_of(folder, arena);
    char *run_copy = weir_arena_strdup(arena, run);
    if (range.n_prefix > 0) {
        WEIR_TRY(find_one(txn, run, folder, arena, &files[0], &has_row, err));
        n = has_row ? 1 : 0;
    }
    WEIR_TRY(weir_stmt_open(
        txn, sql_range,
        WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("from", range.from),
                   WEIR_BIND_TEXT("end", range.end), WEIR_BIND_INT("limit", (int64_t)limit)),
        &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row && n < limit) {
        files[n++] = read_row(stmt, run_copy, arena);
        WEIR_TRY(weir_arena_check(arena, "artifacts", err));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    *out = files;
    *out_n = n;
    return WEIR_OK;
}

/* ---- taking away ----------------------------------------------------------------------------- */

weir_status weir_artifact_delete(struct weir_txn *txn, const char *run, const char *path,
                                 int64_t *out_n, struct weir_error *err)
{
    struct weir_arena arena;
    int64_t n_files = 0, n_below = 0;
    weir_arena_init(&arena, 0);
    const struct range below = range_of(path, &arena);
    weir_status status = weir_txn_exec(
        txn, sql_remove_one, WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("path", path)),
        &n_files, err);
    if (status == WEIR_OK && n_files == 0) {
        status =
            weir_txn_exec(txn, sql_remove,
                          WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("from", below.from),
                                     WEIR_BIND_TEXT("end", below.end)),
                          &n_below, err);
    }
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    *out_n = n_files + n_below;
    return *out_n > 0 ? WEIR_OK
                      : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                       "there is no artifact \"%.200s\" of run %s", path, run);
}
