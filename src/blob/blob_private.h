/** Inside the blobs: what storing, checking and sweeping share. */
#ifndef WEIR_BLOB_BLOB_PRIVATE_H
#define WEIR_BLOB_BLOB_PRIVATE_H

#include "blob/blob.h"
#include "blob/damage.h"
#include <stdatomic.h>

#include <pthread.h>
#include <sys/stat.h>

#define BLOB_PATH_MAX_BYTES 4096

/** Longest folder name, so that every path below it fits. */
#define BLOB_DIR_MAX_BYTES (BLOB_PATH_MAX_BYTES - 128)

/** So many blobs whose bytes were seen to be right are remembered, each in the place that its name gives it. */
#define BLOBS_SEEN 4096

/** What a file was when its bytes were seen to be those of its name. */
struct blob_seen {
    unsigned char hash[WEIR_BLOB_HASH_BYTES];
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec written;
};

/** A blob that was met damaged or missing (blob/damage.h). */
struct blob_damage {
    char sha256[WEIR_SHA256_TEXT_BYTES];
    struct blob_seen file;   /**< What its file was then. */
    int64_t missing_mono_ms; /**< When it was wanted last and was not there; 0: it is damaged. */
};

/** Immutable once open but for what `lock` protects, so any thread may use it. */
struct weir_blobs {
    char dir[BLOB_DIR_MAX_BYTES];
    int lock_fd;
    atomic_int n_joins; /**< Uploads that are being joined from their parts. */
    /** Held while a blob is given its name or its time, and while a sweep takes one away; protects what follows. */
    pthread_mutex_t lock;
    struct blob_seen seen[BLOBS_SEEN];
    struct blob_damage damaged[WEIR_BLOBS_DAMAGE_MAX];
    size_t n_damaged;
};

/**
 * Are the file's bytes those of its name? Read at most once for each state of the file (inode, size, time of writing).
 * @return NOT_FOUND; CORRUPT, weir_blob_error_is_damage; IO.
 */
weir_status blob_check(struct weir_blobs *blobs, const char *sha256, const char *path,
                       struct stat *out_info, struct weir_error *err) WEIR_MUST_CHECK;

/** Is the file still what it was? */
bool blob_is_as_seen(const struct blob_seen *seen, const struct stat *info);

/** A blob was met damaged, its file being this; it is right again, or gone as it was to be. */
void blob_note_damaged(struct weir_blobs *blobs, const char *sha256, const struct blob_seen *file);
void blob_forget_damage(struct weir_blobs *blobs, const char *sha256);

/** Say that a blob's bytes have another sum. */
weir_status blob_error_damaged(const char *sha256, const char *actual, struct weir_error *err);

/** The bytes at `path` were seen to be right, and the file then got its name. */
void blob_note_right(struct weir_blobs *blobs, const char *sha256, const char *path);

#endif
