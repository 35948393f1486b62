/**
 * Artifacts: files that a run leaves, named by a path within the run, "model/data/weights.bin". Their
 * bytes are blobs; a row says which. Folders are what paths have in common: there is none without a
 * file in it, and no path is both a file and a folder.
 *
 *     WEIR_TRY(weir_artifact_path_check(path, err));           before anything else is done with it
 *     weir_blob_take_file(blobs, …);                           the bytes first, then the row
 *     WEIR_TRY(weir_artifact_put(txn, &artifact, err));
 *     WEIR_TRY(weir_artifact_list(txn, run, "model", NULL, 1000, arena, &entries, &n, &next, err));
 *
 * A path that is put again names the new bytes; the old ones go with the sweep of blobs that nothing
 * names. Rows go with their run.
 */
#ifndef WEIR_TRACK_ARTIFACT_H
#define WEIR_TRACK_ARTIFACT_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_ARTIFACT_PATH_MAX_BYTES    1024
#define WEIR_ARTIFACT_SEGMENT_MAX_BYTES 255

struct weir_artifact {
    char *run;
    char *path;
    char *blob; /**< SHA-256 of its bytes. */
    int64_t bytes;
    char *created_by;
    int64_t created_ms;
};

/** A file or a folder in a list. */
struct weir_artifact_entry {
    char *path;
    bool is_folder;
    int64_t bytes;      /**< Of a folder: 0. */
    char *blob;         /**< Of a folder: NULL. */
    int64_t created_ms; /**< Of a folder: 0. */
};

/** An artifact that comes in parts (blob/parts.h), until it is whole or too old. */
struct weir_artifact_upload {
    char *id;
    char *run;
    char *path;
    int64_t n_parts;
    char *created_by;
    int64_t created_ms;
};

/** Parts that came are kept so long after the upload began. */
#define WEIR_ARTIFACT_UPLOAD_KEEP_MS ((int64_t)7 * 24 * 3600 * 1000)

/** Of one run. */
#define WEIR_ARTIFACT_UPLOADS_MAX 100

extern const struct weir_resource weir_artifact_upload_resource;
extern const struct weir_resource weir_artifact_resource; /**< Table run_artifacts; no key field. */
extern const struct weir_resource weir_artifact_entry_resource; /**< What lists tell; no table. */

/**
 * May this be the path of an artifact? Relative, of segments that are not empty, "." or ".."; without
 * control characters, "\" and "#"; and so however often it is percent-decoded, since a reader may
 * do that. Pure; any text. @return INVALID ("Invalid path …"), LIMIT.
 */
weir_status weir_artifact_path_check(const char *path, struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND: no such run; CONFLICT: the path is a folder, or goes through a file. */
weir_status weir_artifact_put(struct weir_txn *txn, const struct weir_artifact *artifact,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND, also for a folder, which the message then says. */
weir_status weir_artifact_get(struct weir_txn *txn, const char *run, const char *path,
                              struct weir_arena *arena, struct weir_artifact *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What lies directly in a folder, in the order of bytes, where a folder counts with its "/". A folder that
 * is not there is empty; the path of a file gives that file alone.
 *
 * @param folder  "" or NULL: all of the run.
 * @param after   out_next of the page before; NULL: from the start.
 * @param limit   Entries at most.
 * @param out_next  The place to go on from; NULL: there is no more. May be NULL.
 * Cost: a look into the index for each entry, whatever the folders hold.
 */
weir_status weir_artifact_list(struct weir_txn *txn, const char *run, const char *folder,
                               const char *after, size_t limit, struct weir_arena *arena,
                               struct weir_artifact_entry **out, size_t *out_n, char **out_next,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** All files in a folder and in those below it, in the order of bytes: the first `limit`. The path of a
 *  file gives that file. */
weir_status weir_artifact_list_files(struct weir_txn *txn, const char *run, const char *folder,
                                     size_t limit, struct weir_arena *arena,
                                     struct weir_artifact **out, size_t *out_n,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Take away a file, or a folder with all below it. @return NOT_FOUND: there is neither. */
weir_status weir_artifact_delete(struct weir_txn *txn, const char *run, const char *path,
                                 int64_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Begin an upload in parts: all fields are read. Those of the run that are too old go.
 * @return NOT_FOUND: no such run; LIMIT: it has WEIR_ARTIFACT_UPLOADS_MAX already.
 */
weir_status weir_artifact_upload_begin(struct weir_txn *txn,
                                       const struct weir_artifact_upload *upload, int64_t now_ms,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** An upload of the run. @return NOT_FOUND, also if it is of another run, or too old. */
weir_status weir_artifact_upload_get(struct weir_txn *txn, const char *run, const char *id,
                                     int64_t now_ms, struct weir_arena *arena,
                                     struct weir_artifact_upload *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Give an upload up. @return NOT_FOUND. */
weir_status weir_artifact_upload_forget(struct weir_txn *txn, const char *id,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/** Name the whole bytes as the artifact, and forget the upload. @return As weir_artifact_put. */
weir_status weir_artifact_upload_end(struct weir_txn *txn, const char *id,
                                     const struct weir_artifact *artifact,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
