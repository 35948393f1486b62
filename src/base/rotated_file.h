/**
 * A file of lines that several processes append to, within a bound: before it would grow past
 * max_bytes it becomes PATH.1, what was PATH.1 becomes PATH.2, and so on; the last of n_kept older
 * files goes. Every writer holds an exclusive lock on the file while it writes or renames; one that
 * got the lock of a file that has been renamed meanwhile opens the new one.
 */
#ifndef WEIR_BASE_ROTATED_FILE_H
#define WEIR_BASE_ROTATED_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define ROTATED_PATH_BYTES 4352

struct rotated_file {
    const char *path;
    int64_t max_bytes; /**< A single write may be larger. */
    int64_t n_kept;    /**< Older files: 0 and more. */
};

/**
 * Open and lock the file; made if missing. A last line without its end is cut off.
 * @param out_size  Its length; -1 for a pipe or a terminal, which is never renamed.
 */
weir_status rotated_file_open(const struct rotated_file *file, int *out_fd, int64_t *out_size,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Must a new file be begun before n_bytes more are written? */
bool rotated_file_is_full(const struct rotated_file *file, int64_t size, int64_t n_bytes);

/** Rename the files, while the newest is open and locked. A crash in between leaves a gap in the
 *  numbers and loses nothing but the oldest file. On error the newest may go on as it is. */
weir_status rotated_file_shift(const struct rotated_file *file,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** PATH.i. Returns out. */
const char *rotated_file_older(const struct rotated_file *file, int64_t i,
                               char out[ROTATED_PATH_BYTES]);

#endif
