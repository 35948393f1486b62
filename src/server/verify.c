#include "server/verify.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/json.h"
#include "blob/blob.h"
#include "blob/verify.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

#define PATH_BYTES         4096
#define MANIFEST_MAX_BYTES ((size_t)256 << 20)

struct verify_blob {
    unsigned char hash[WEIR_BLOB_HASH_BYTES];
    bool is_right, is_named, is_found;
};

/* What names a blob: its name, and whose it is, in words. */
static const char sql_named[] =
    "SELECT blob, 'version ' || version || ' of model ' || model FROM model_versions WHERE "
    "deleted_ms = 0"
    " UNION ALL SELECT golden, 'the golden inputs of version ' || version || ' of model ' || model"
    " FROM model_versions WHERE golden IS NOT NULL AND deleted_ms = 0"
    " UNION ALL SELECT blob, 'file ' || path || ' of run ' || run FROM run_artifacts"
    " UNION ALL SELECT blob, 'the list of files of version ' || version || ' of dataset ' || "
    "dataset"
    " FROM dataset_versions WHERE blob IS NOT NULL"
    " UNION ALL SELECT gallery_blob, 'the gallery of ' || ion || '/' || name FROM ion_pipelines"
    " WHERE gallery_blob IS NOT NULL"
    " UNION ALL SELECT impostors_blob, 'the impostors of ' || ion || '/' || name FROM ion_pipelines"
    " WHERE impostors_blob IS NOT NULL"
    " UNION ALL SELECT image, 'the picture of decision ' || id FROM decisions"
    " WHERE image IS NOT NULL AND pack = 0";

/* Of an uploaded dataset every file is a blob, but for those of people who were forgotten. */
static const char sql_lists[] =
    "SELECT v.blob, v.dataset, v.version FROM dataset_versions v JOIN datasets d ON d.name = "
    "v.dataset"
    " WHERE v.blob IS NOT NULL AND d.is_uploaded <> 0 AND NOT EXISTS (SELECT 1 FROM"
    " dataset_tombstones t WHERE t.dataset = v.dataset AND t.version = v.version)";

void verify_init(struct verify *verify, struct weir_arena *arena)
{
    *verify = (struct verify){.arena = arena};
    verify->findings = WEIR_ARENA_ARRAY(arena, VERIFY_FINDINGS_MAX, struct verify_finding);
}

void verify_fini(struct verify *verify)
{
    free(verify->blobs);
    verify->blobs = NULL;
}

weir_status verify_note(struct verify *verify, const char *sha256, int64_t bytes, bool is_right,
                        struct weir_error *err)
{
    if (weir_grow(&verify->blobs, sizeof *verify->blobs, verify->n_blobs, &verify->cap) !=
        WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to check %zu blobs",
                              verify->n_blobs + 1);
    }
    struct verify_blob *blob = &verify->blobs[verify->n_blobs];
    *blob = (struct verify_blob){.is_right = is_right};
    if (weir_blob_hash_read(sha256, blob->hash)) {
        verify->n_blobs++;
        verify->bytes += bytes;
        verify->is_sorted = false;
    }
    return WEIR_OK;
}

static weir_status note_read(void *context, const char *sha256, int64_t bytes, bool is_right,
                             struct weir_error *err)
{
    return verify_note(context, sha256, bytes, is_right, err);
}

weir_status verify_read_blobs(struct verify *verify, const char *state, struct weir_error *err)
{
    char dir[PATH_BYTES];
    (void)snprintf(dir, sizeof dir, "%s/blobs", state);
    return weir_blobs_verify(dir, note_read, verify, err);
}

/* ---- compared with records ------------------------------------------------------------------- */

static int by_hash(const void *a, const void *b)
{
    return memcmp(((const struct verify_blob *)a)->hash, ((const struct verify_blob *)b)->hash,
                  WEIR_BLOB_HASH_BYTES);
}

static struct verify_blob *find_blob(const struct verify *verify, const char *sha256)
{
    struct verify_blob key = {.is_right = false};
    (void)weir_blob_hash_read(sha256, key.hash);
    return verify->n_blobs == 0
               ? NULL
               : bsearch(&key, verify->blobs, verify->n_blobs, sizeof key, by_hash);
}

static void add(struct verify *verify, const char *sha256, const char *what, const char *file,
                bool is_missing)
{
    verify->n_damaged += !is_missing;
    verify->n_missing += is_missing;
    if (verify->n_findings < VERIFY_FINDINGS_MAX) {
        verify->findings[verify->n_findings++] = (struct verify_finding){
            .sha256 = weir_arena_strdup(verify->arena, sha256),
            .what = what != NULL ? weir_arena_strdup(verify->arena, what) : NULL,
            .file = file != NULL ? weir_arena_strdup(verify->arena, file) : NULL,
            .is_missing = is_missing};
    }
}

static bool is_missing_already(const struct verify *verify, const char *sha256)
{
    for (size_t i = 0; i < verify->n_findings; i++) {
        if (verify->findings[i].is_missing && strcmp(verify->findings[i].sha256, sha256) == 0) {
            return true;
        }
    }
    return false;
}

/* A record names it. What is no name of a blob (a model that lies elsewhere) is none of ours. */
static void name(struct verify *verify, const char *sha256, const char *what, const char *file)
{
    if (sha256 == NULL || !weir_blob_name_is_valid(sha256)) {
        return;
    }
    struct verify_blob *blob = find_blob(verify, sha256);
    if (blob == NULL && !is_missing_already(verify, sha256)) {
        add(verify, sha256, what, file, true);
    } else if (blob != NULL) {
        if (!blob->is_right && !blob->is_found) {
            add(verify, sha256, what, file, false);
            blob->is_found = true;
        }
        blob->is_named = true;
    }
}

struct comparing {
    struct verify *verify;
    const char *state;
};

/* The files that a whole list names. */
static void name_files(const struct comparing *comparing, const char *list, const char *dataset,
                       int64_t version)
{
    const struct verify_blob *blob = find_blob(comparing->verify, list);
    char path[PATH_BYTES];
    json_t *manifest, *file;
    size_t i;
    struct weir_error unread;
    (void)snprintf(path, sizeof path, "%s/blobs/%.2s/%s", comparing->state, list, list);
    if (blob == NULL || !blob->is_right ||
        weir_json_load(path, MANIFEST_MAX_BYTES, &manifest, &unread) != WEIR_OK) {
        return; /* has been found */
    }
    json_array_foreach(json_object_get(manifest, "files"), i, file)
    {
        const char *class = json_string_value(json_object_get(file, "class"));
        const char *own = json_string_value(json_object_get(file, "name"));
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        const char *below =
            weir_arena_printf(&arena, "%s/%s", class != NULL ? class : "", own != NULL ? own : "");
        name(comparing->verify, json_string_value(json_object_get(file, "sha256")),
             weir_arena_printf(&arena, "file %s of version %lld of dataset %s", below,
                               (long long)version, dataset),
             weir_arena_printf(&arena, "datasets/%s/%s", dataset, below));
        weir_arena_fini(&arena);
    }
    json_decref(manifest);
}

static weir_status compare_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct comparing *comparing = context;
    bool has_row;
    weir_status status;
    {
        WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
        WEIR_TRY(weir_stmt_open(txn, sql_named, WEIR_NO_BINDS, &row, err));
        while ((status = weir_stmt_step(row, &has_row, err)) == WEIR_OK && has_row) {
            name(comparing->verify, weir_stmt_peek(row, 0, NULL), weir_stmt_peek(row, 1, NULL),
                 NULL);
        }
        WEIR_TRY(status);
    }
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *list = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_lists, WEIR_NO_BINDS, &list, err));
    while ((status = weir_stmt_step(list, &has_row, err)) == WEIR_OK && has_row) {
        const char *blob = weir_stmt_peek(list, 0, NULL);
        if (weir_blob_name_is_valid(blob)) {
            name_files(comparing, blob, weir_stmt_peek(list, 1, NULL), weir_stmt_int(list, 2));
        }
    }
    return status;
}

weir_status verify_compare(struct verify *verify, const char *state, struct weir_error *err)
{
    char path[PATH_BYTES];
    struct comparing comparing = {verify, state};
    if (!verify->is_sorted && verify->n_blobs > 0) {
        qsort(verify->blobs, verify->n_blobs, sizeof *verify->blobs, by_hash);
    }
    verify->is_sorted = true;
    (void)snprintf(path, sizeof path, "%s/weir.db", state);
    WEIR_TRY(weir_store_look(path, compare_in, &comparing, err));
    for (size_t i = 0; i < verify->n_blobs; i++) {
        const struct verify_blob *blob = &verify->blobs[i];
        char sha256[WEIR_SHA256_TEXT_BYTES];
        verify->n_unnamed += !blob->is_named;
        if (!blob->is_right && !blob->is_found) {
            for (size_t j = 0; j < WEIR_BLOB_HASH_BYTES; j++) {
                (void)snprintf(sha256 + 2 * j, 3, "%02x", blob->hash[j]);
            }
            add(verify, sha256, NULL, NULL, false);
        }
    }
    return WEIR_OK;
}

/* ---- mended ---------------------------------------------------------------------------------- */

static bool mend_from(const struct verify_finding *finding, const char *blobs, const char *file)
{
    struct weir_error ignored; /* other bytes, or none: the next place may have them */
    return weir_path_exists(file) &&
           weir_blob_mend(blobs, finding->sha256, file, &ignored) == WEIR_OK;
}

static weir_status mend_one(struct verify *verify, struct verify_finding *finding,
                            const char *state, const char *from, struct weir_error *err)
{
    char blobs[PATH_BYTES], file[PATH_BYTES];
    static const char *const places[] = {"state/blobs", "blobs"};
    bool is_mended = false;
    (void)snprintf(blobs, sizeof blobs, "%s/blobs", state);
    for (size_t i = 0; from != NULL && i < WEIR_ARRAY_LEN(places) && !is_mended; i++) {
        (void)snprintf(file, sizeof file, "%s/%s/%.2s/%s", from, places[i], finding->sha256,
                       finding->sha256);
        is_mended = mend_from(finding, blobs, file);
    }
    if (!is_mended && finding->file != NULL) {
        (void)snprintf(file, sizeof file, "%s/%s", state, finding->file);
        is_mended = mend_from(finding, blobs, file);
    }
    if (is_mended) {
        finding->mended = VERIFY_MENDED;
        verify->n_mended++;
    } else if (!finding->is_missing) {
        WEIR_TRY(weir_blob_set_aside(blobs, finding->sha256, err));
        finding->mended = VERIFY_SET_ASIDE;
        verify->n_aside++;
    }
    return WEIR_OK;
}

weir_status verify_mend(struct verify *verify, const char *state, const char *from,
                        struct weir_error *err)
{
    for (size_t i = 0; i < verify->n_findings; i++) {
        WEIR_TRY(mend_one(verify, &verify->findings[i], state, from, err));
    }
    return WEIR_OK;
}

weir_status verify_status(const struct verify *verify, struct weir_error *err)
{
    const struct verify_finding *worst = NULL;
    for (size_t i = 0; i < verify->n_findings; i++) {
        const struct verify_finding *finding = &verify->findings[i];
        bool is_well = finding->mended == VERIFY_MENDED ||
                       (finding->mended == VERIFY_SET_ASIDE && finding->what == NULL);
        worst = worst == NULL && !is_well ? finding : worst;
    }
    if (worst == NULL) {
        return WEIR_OK;
    }
    return weir_error_set(
        err, WEIR_ERR_CORRUPT,
        "%lld blobs are damaged and %lld are missing, %lld were mended: %s (%.16s…) is %s: `weir "
        "store verify "
        "--mend --from BACKUP` takes good bytes from a backup or another state folder; else store "
        "the file again",
        (long long)verify->n_damaged, (long long)verify->n_missing, (long long)verify->n_mended,
        worst->what != NULL ? worst->what : "one that no record names", worst->sha256,
        worst->is_missing ? "missing" : "damaged");
}
