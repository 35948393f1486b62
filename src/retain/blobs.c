/** Blobs that nothing names: mark all that records and manifests name, sweep the rest. */
#include "retain/retain_private.h"

#include "base/grow.h"
#include "base/log.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

#define MANIFEST_MAX_BYTES ((size_t)256 << 20)
#define HEX_DIGITS         "0123456789abcdef"

/** However short the policy's time is: who has stored a blob may still be about to name it. */
#define GRACE_MS ((int64_t)3600000)

/**
 * Where a record may name a blob. Text is searched for anything that looks like a SHA-256, so a
 * specification or a document need not be understood, and a name too many only keeps a blob.
 */
static const char *const sql_texts[] = {
    "SELECT blob FROM model_versions WHERE deleted_ms = 0",
    "SELECT golden FROM model_versions WHERE golden IS NOT NULL AND deleted_ms = 0",
    "SELECT blob FROM run_artifacts",
    "SELECT parameters FROM model_versions WHERE deleted_ms = 0",
    "SELECT blob FROM ion_candidates",
    "SELECT deployment FROM ion_pipelines",
    "SELECT gallery_blob FROM ion_pipelines",
    "SELECT impostors_blob FROM ion_pipelines",
    "SELECT document FROM ions",
    "SELECT spec FROM jobs",
    "SELECT definition FROM tasks",
    "SELECT parameters FROM runs",
    "SELECT summary FROM runs",
    "SELECT models FROM snapshots",
    "SELECT value FROM settings",
    "SELECT payload FROM outbox WHERE state = 'pending'",
    "SELECT image FROM decisions WHERE image IS NOT NULL AND pack = 0",
};

static const char sql_manifests[] =
    "SELECT DISTINCT blob FROM dataset_versions WHERE blob IS NOT NULL";

/** Folders of jobs' code that were handed in or brought along long ago; those that are known at all. */
static const char sql_old_code[] =
    "SELECT DISTINCT sha256 FROM code_manifests WHERE time_ms < :before";
static const char sql_forget_code[] =
    "DELETE FROM code_manifests WHERE sha256 = :sha256 AND time_ms < :before";
static const char sql_code[] = "SELECT DISTINCT sha256 FROM code_manifests";

/** A day more than what is handed in, but not yet brought along, needs. */
#define CODE_KEPT_MS ((int64_t)2 * 24 * 3600000)

/** A growing array of hashes; sorted once it is whole. */
struct marks {
    unsigned char (*hashes)[WEIR_BLOB_HASH_BYTES];
    size_t n, cap;
    char **manifests; /**< Names of the manifests, in the look's arena. */
    size_t n_manifests;
    struct weir_arena *arena;
};

static weir_status mark(struct marks *marks, const unsigned char hash[WEIR_BLOB_HASH_BYTES],
                        struct weir_error *err)
{
    if (weir_grow(&marks->hashes, sizeof *marks->hashes, marks->n, &marks->cap) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to mark %zu blobs", marks->n + 1);
    }
    memcpy(marks->hashes[marks->n++], hash, WEIR_BLOB_HASH_BYTES);
    return WEIR_OK;
}

/* Whatever looks like a SHA-256 in a text: a run of exactly 64 lower-case digits. */
static weir_status mark_text(struct marks *marks, const char *text, struct weir_error *err)
{
    unsigned char hash[WEIR_BLOB_HASH_BYTES];
    while (*(text += strcspn(text, HEX_DIGITS)) != '\0') {
        size_t len = strspn(text, HEX_DIGITS);
        if (len == (size_t)2 * WEIR_BLOB_HASH_BYTES && weir_blob_hash_read(text, hash)) {
            WEIR_TRY(mark(marks, hash, err));
        }
        text += len;
    }
    return WEIR_OK;
}

static weir_status mark_column(struct weir_txn *txn, const char *sql, struct marks *marks,
                               struct weir_error *err)
{
    struct weir_stmt *stmt WEIR_AUTO(weir_stmt_auto_close) = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql, WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        struct weir_arena row;
        weir_arena_init(&row, 0);
        const char *text = weir_stmt_text(stmt, 0, &row);
        weir_status status = text != NULL ? mark_text(marks, text, err) : WEIR_OK;
        weir_arena_fini(&row);
        WEIR_TRY(status);
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status mark_records(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct marks *marks = context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sql_texts); i++) {
        WEIR_TRY(mark_column(txn, sql_texts[i], marks, err));
    }
    return weir_txn_query_texts(txn, sql_manifests, WEIR_NO_BINDS, marks->arena, &marks->manifests,
                                &marks->n_manifests, err);
}

/* One that cannot be read may name anything: then nothing is swept. */
static weir_status mark_manifest(const struct retain_look *look, const char *name,
                                 struct marks *marks, struct weir_error *err)
{
    struct weir_arena arena;
    char *text;
    size_t len;
    weir_arena_init(&arena, MANIFEST_MAX_BYTES + (1 << 20));
    weir_status status = weir_blob_read(look->retainer->config.blobs, name, MANIFEST_MAX_BYTES,
                                        &arena, &text, &len, err);
    if (status == WEIR_OK) {
        status = mark_text(marks, text, err);
    } else {
        status = weir_error_prefix(err, "a manifest cannot be read, so no blob is removed: ");
    }
    weir_arena_fini(&arena);
    return status == WEIR_OK ? mark_text(marks, name, err) : status;
}

static void sort(struct marks *marks);
static bool is_marked(void *context, const unsigned char hash[WEIR_BLOB_HASH_BYTES]);

struct forgetting {
    const struct retain_look *look;
    struct marks *marks;
    int64_t before_ms;
    const char *sha256;
};

static weir_status read_old_code(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct forgetting *f = context;
    return weir_txn_query_texts(txn, sql_old_code,
                                WEIR_BINDS(WEIR_BIND_INT("before", f->before_ms)), f->look->arena,
                                &f->marks->manifests, &f->marks->n_manifests, err);
}

static weir_status forget_one(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct forgetting *f = context;
    return weir_txn_exec(
        txn, sql_forget_code,
        WEIR_BINDS(WEIR_BIND_TEXT("sha256", f->sha256), WEIR_BIND_INT("before", f->before_ms)),
        NULL, err);
}

static weir_status read_code(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct marks *marks = context;
    return weir_txn_query_texts(txn, sql_code, WEIR_NO_BINDS, marks->arena, &marks->manifests,
                                &marks->n_manifests, err);
}

/* A folder of code that no record names is forgotten once it is old; all others keep their files. A job
 * that brings one along meanwhile makes it young, or finds it forgotten and is refused: so none is made
 * whose files are swept. */
static weir_status mark_code(const struct retain_look *look, bool is_dry, struct marks *marks,
                             struct weir_error *err)
{
    struct weir_store *store = look->retainer->config.store;
    struct forgetting f = {.look = look, .marks = marks, .before_ms = look->now_ms - CODE_KEPT_MS};
    if (!is_dry) {
        WEIR_TRY(weir_store_read(store, read_old_code, &f, err));
        for (size_t i = 0; i < marks->n_manifests; i++) {
            unsigned char hash[WEIR_BLOB_HASH_BYTES];
            f.sha256 = marks->manifests[i];
            if (!weir_blob_hash_read(f.sha256, hash) || !is_marked(marks, hash)) {
                WEIR_TRY(weir_store_write(store, forget_one, &f, err));
            }
        }
    }
    WEIR_TRY(weir_store_read(store, read_code, marks, err));
    for (size_t i = 0; i < marks->n_manifests; i++) {
        WEIR_TRY(mark_manifest(look, marks->manifests[i], marks, err));
    }
    sort(marks);
    return WEIR_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, WEIR_BLOB_HASH_BYTES);
}

static void sort(struct marks *marks)
{
    if (marks->n > 0) {
        qsort(marks->hashes, marks->n, sizeof *marks->hashes, by_bytes);
    }
}

static weir_status mark_all(const struct retain_look *look, struct marks *marks,
                            struct weir_error *err)
{
    marks->arena = look->arena;
    WEIR_TRY(weir_store_read(look->retainer->config.store, mark_records, marks, err));
    for (size_t i = 0; i < marks->n_manifests; i++) {
        WEIR_TRY(mark_manifest(look, marks->manifests[i], marks, err));
    }
    sort(marks);
    return WEIR_OK;
}

static bool is_marked(void *context, const unsigned char hash[WEIR_BLOB_HASH_BYTES])
{
    const struct marks *marks = context;
    return marks->n > 0 &&
           bsearch(hash, marks->hashes, marks->n, sizeof *marks->hashes, by_bytes) != NULL;
}

/* Whatever a record comes to name after the marking was stored or asked for after it: its time is
 * then too new for the sweep. */
static weir_status mark_and_sweep(const struct retain_look *look, bool is_dry,
                                  struct weir_blobs_count *out, struct weir_error *err)
{
    struct marks marks = {0};
    int64_t before_ms = look->limit.keep_ms < 0
                            ? INT64_MIN
                            : look->now_ms - WEIR_MAX(look->limit.keep_ms, GRACE_MS);
    weir_status status = mark_all(look, &marks, err);
    if (status == WEIR_OK) {
        status = mark_code(look, is_dry, &marks, err);
    }
    if (status == WEIR_OK) {
        status = weir_blobs_sweep(look->retainer->config.blobs, is_marked, &marks, before_ms,
                                  is_dry, out, err);
    }
    free(marks.hashes);
    return status;
}

static weir_status sweep_blobs(const struct retain_look *look, struct weir_error *err)
{
    struct weir_blobs_count count;
    WEIR_TRY(mark_and_sweep(look, false, &count, err));
    if (count.n_swept > 0) {
        weir_log(WEIR_LOG_INFO, "retention_removed", WEIR_KV_STR("kind", "blobs"),
                 WEIR_KV_INT("n", count.n_swept), WEIR_KV_INT("bytes", count.bytes_swept));
    }
    return WEIR_OK;
}

static weir_status measure_blobs(const struct retain_look *look, struct retain_size *out,
                                 struct weir_error *err)
{
    struct weir_blobs_count count;
    WEIR_TRY(mark_and_sweep(look, true, &count, err));
    *out = (struct retain_size){.n = count.n,
                                .bytes = count.bytes,
                                .oldest_ms = count.oldest_ms,
                                .n_needed = count.n_named,
                                .n_going = count.n_swept};
    return WEIR_OK;
}

const struct weir_retain_rule retain_blobs_rule = {
    "blobs", "Models, photos of dataset versions, manifests",
    "What no record names, once nobody has stored or asked for it that long.", 330,
    .limit = {WEIR_DAYS(1), WEIR_RETAIN_ANY}};

const struct retain_ops retain_blobs_ops = {sweep_blobs, measure_blobs, NULL,
                                            60 * RETAIN_MINUTE_MS};
