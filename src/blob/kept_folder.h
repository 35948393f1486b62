/**
 * Kept folder: a folder of files here that programs elsewhere fill, by changes: files that are new or other, and
 * files that are gone. The bytes of a change come first, as parts in DIR.part, each named by its sender and
 * checked by its SHA-256; then the change is made at once. So a change that is cut off has changed nothing, and is
 * taken up again where it was: parts that came need not come again.
 *
 * Files take their places one after the other, in the order of the change, each by a rename, before others are
 * removed: in the order in which they were written elsewhere, a machine that goes down in between leaves what
 * the folder there has once been.
 *
 * Others may write in DIR, hostile ones too: no link in it is followed. Paths are relative; the caller has checked
 * that they have no part "..". Any thread; two changes at a time may each make some of theirs.
 */
#ifndef WEIR_BLOB_KEPT_FOLDER_H
#define WEIR_BLOB_KEPT_FOLDER_H

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define WEIR_KEPT_FILES_MAX 20000
#define WEIR_KEPT_DEPTH_MAX 64
#define WEIR_KEPT_PART_MAX  96 /* bytes of a part's name */

struct weir_kept_file {
    const char *path;
    int64_t bytes, changed_ns, number; /**< number: of the file itself, its inode. */
};

/** What lies in a folder; a folder that is not there is empty. */
struct weir_kept {
    struct weir_kept_file *files; /**< By path. */
    size_t n;
    char version[WEIR_SHA256_TEXT_BYTES]; /**< Other after any change. */
};

struct weir_kept_put {
    const char *path, *part;
};

struct weir_kept_change {
    const struct weir_kept_put *puts; /**< In the order in which they take their places. */
    size_t n_puts;
    const char *const *removed;
    size_t n_removed;
};

/** @return LIMIT for more than WEIR_KEPT_FILES_MAX files; IO, NOMEM. */
weir_status weir_kept_list(const char *dir, struct weir_arena *arena, struct weir_kept *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** A regular file of it, to be read; the caller closes it. @return NOT_FOUND. */
weir_status weir_kept_open(const char *dir, const char *path, int *out_fd,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take a file as a part: it is moved. The same part again replaces it.
 * @param name  At most WEIR_KEPT_PART_MAX of a-z 0-9 and "-".
 * @param file  On the same file system; NULL: a part without bytes.
 */
weir_status weir_kept_part(const char *dir, const char *name, const char *file,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make a change, if all its parts are there; durable when it returns.
 * @param out_missing  Parts that are not, in the arena; then nothing was done. Each part serves one path.
 */
weir_status weir_kept_change(const char *dir, const struct weir_kept_change *change,
                             struct weir_arena *arena, const char ***out_missing,
                             size_t *out_n_missing, struct weir_error *err) WEIR_MUST_CHECK;

#endif
