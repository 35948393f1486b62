/**
 * Files: whole reads with a limit, and writes that a crash leaves before or after, never between.
 * Errors name the path.
 */
#ifndef WEIR_BASE_FILE_H
#define WEIR_BASE_FILE_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Read a whole regular file. The bytes (with a NUL behind them) live in `arena`.
 * @return NOT_FOUND, DENIED, LIMIT if it holds more than max_bytes, IO.
 */
weir_status weir_file_read(const char *path, size_t max_bytes, struct weir_arena *arena,
                           char **out_data, size_t *out_len,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The same into memory of the caller: takes none itself, for libraries that must not abort. No NUL
 * is added. LIMIT if the file holds more than `size` bytes.
 */
weir_status weir_file_read_into(const char *path, void *out, size_t size, size_t *out_len,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Replace a file atomically and durably: temporary file beside it, fsync, rename, fsync of the
 * folder. On error the old file is untouched and no temporary file is left.
 */
weir_status weir_file_write_atomic(const char *path, const void *data, size_t len, unsigned mode,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The same, without waiting for the disk: a reader sees the old file or the new one, also after
 * a kill at any time. Only when the machine itself goes down soon after may it be empty, or gone: for
 * what means nothing then, or is made again.
 */
weir_status weir_file_replace(const char *path, const void *data, size_t len, unsigned mode,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make a file again, neither atomically nor durably: for what can be made again, or is renamed when
 * it is whole. On error no file is left.
 */
weir_status weir_file_write(const char *path, const void *data, size_t len, unsigned mode,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Write all bytes to fd (retrying short writes and EINTR). */
weir_status weir_fd_write_all(int fd, const void *data, size_t len,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Wait until the names in a folder are on the disk, and the removal of others. */
weir_status weir_dir_sync(const char *path, struct weir_error *err) WEIR_MUST_CHECK;

/** mkdir -p. */
weir_status weir_dir_make(const char *path, unsigned mode, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make a new empty folder (mode 0700) in $TMPDIR, or in /tmp where that is not set or empty. `name`
 * becomes part of its name. The caller removes it (weir_dir_remove).
 * @return LIMIT if the path is longer than `out`; errors of the folder it is to be in.
 */
#define WEIR_DIR_TEMPORARY_BYTES 256
weir_status weir_dir_make_temporary(const char *name, char out[WEIR_DIR_TEMPORARY_BYTES],
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** rm -r without following links; a missing path is OK. */
weir_status weir_dir_remove(const char *path, struct weir_error *err) WEIR_MUST_CHECK;

/** The same for the entry `name` of the open folder `dir_fd`; of a file too. */
weir_status weir_dir_remove_at(int dir_fd, const char *name,
                               struct weir_error *err) WEIR_MUST_CHECK;

bool weir_path_exists(const char *path);
bool weir_path_is_dir(const char *path);

/**
 * Which disk `path` lies on: the same text for two paths exactly if they lie on the same file
 * system of the same running machine. Empty if that cannot be told.
 */
#define WEIR_DISK_ID_BYTES 72
const char *weir_disk_id(const char *path, char out[WEIR_DISK_ID_BYTES]);

/** Make, write and remove a small file in the folder. @return 0, or errno of why not. */
int weir_dir_probe(const char *folder);

/** Size of the disk that `path` lies on, and what of it an ordinary user may still fill. */
weir_status weir_disk_space(const char *path, int64_t *out_total_bytes, int64_t *out_free_bytes,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take an exclusive lock on `path` (created if missing), held until the descriptor is closed.
 * @return CONFLICT if another process holds it.
 */
weir_status weir_file_lock(const char *path, int *out_fd, struct weir_error *err) WEIR_MUST_CHECK;

/** The same, waiting up to 2 s for it: a process that was killed while it started a program leaves its locks to that
 *  program's process until its exec. */
weir_status weir_file_lock_after(const char *path, int *out_fd,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** SHA-256 of a file's bytes as 64 hexadecimal digits and a NUL. */
#define WEIR_SHA256_TEXT_BYTES 65
weir_status weir_file_sha256(const char *path, char out[WEIR_SHA256_TEXT_BYTES],
                             uint64_t *out_bytes, struct weir_error *err) WEIR_MUST_CHECK;

/** SHA-256 of bytes in memory. */
void weir_sha256(const void *data, size_t len, char out[WEIR_SHA256_TEXT_BYTES]);

#endif
