/** What backup and restore share: the folder that is being made, and copying a file. */
#ifndef WEIR_SERVER_BACKUP_PRIVATE_H
#define WEIR_SERVER_BACKUP_PRIVATE_H

#include "server/backup.h"

#include <sys/types.h>

#define BACKUP_FORMAT     1
#define BACKUP_PATH_BYTES 4096

/** A folder under way: FOLDER.partial, locked. */
struct partial {
    char target[BACKUP_PATH_BYTES]; /**< What it is to be; absolute. */
    char dir[BACKUP_PATH_BYTES];
    int lock_fd;
};

/** Make it; what a killed one left is removed. `target` may be an empty folder if may_be_empty. */
weir_status partial_begin(const char *target, bool may_be_empty, struct partial *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Everything to disk, then rename. */
weir_status partial_finish(struct partial *partial, struct weir_error *err) WEIR_MUST_CHECK;

/** Remove it. */
void partial_abandon(struct partial *partial);

/** Note a file of a state folder, by its path there and its sum, if it is a blob. */
weir_status backup_note_blob(struct verify *verify, const char *path, int64_t bytes,
                             const char *sha256, struct weir_error *err) WEIR_MUST_CHECK;

/** Copy what `from` holds now into the new file `to`; `mode` is the original's. */
weir_status backup_copy_file(int from, const char *to, mode_t mode, int64_t *out_bytes,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** a/b in a caller's buffer. @return LIMIT if it is too long. */
weir_status backup_path(char out[BACKUP_PATH_BYTES], const char *a, const char *b,
                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
