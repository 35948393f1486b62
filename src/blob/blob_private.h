/** Inside the blobs: what storing and sweeping share. */
#ifndef WEIR_BLOB_BLOB_PRIVATE_H
#define WEIR_BLOB_BLOB_PRIVATE_H

#include "blob/blob.h"

#include <pthread.h>

#define BLOB_PATH_MAX_BYTES 4096

/** Longest folder name, so that every path below it fits. */
#define BLOB_DIR_MAX_BYTES (BLOB_PATH_MAX_BYTES - 128)

/** Immutable once open but for `lock`, so any thread may use it. */
struct weir_blobs {
    char dir[BLOB_DIR_MAX_BYTES];
    int lock_fd;
    /** Held while a blob is given its name or its time, and while a sweep takes one away. */
    pthread_mutex_t lock;
};

#endif
