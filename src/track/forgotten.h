/**
 * People who were forgotten: whose photos were deleted, at whose word, and of which dataset versions they are
 * gone (tombstones). The names stay, so that it can be shown that it was done.
 */
#ifndef WEIR_TRACK_FORGOTTEN_H
#define WEIR_TRACK_FORGOTTEN_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

/** What stands where a forgotten person's name was, in what is still counted. */
#define WEIR_FORGOTTEN_NAME "(forgotten)"

struct weir_forgotten {
    char *id;
    char *person;
    char *project; /**< "": of all. */
    char *state;   /**< "running", "done" */
    char *actor;
    char *reason;  /**< Or NULL. */
    char *summary; /**< JSON: what went; NULL while it runs. */
    int64_t created_ms, done_ms;
};

struct weir_tombstone {
    char *id;
    char *forgotten; /**< Its id. */
    char *dataset;
    int64_t version;
    char *person;
    int64_t n_files, bytes;
    int64_t time_ms;
};

extern const struct weir_resource weir_forgotten_resource;
extern const struct weir_resource weir_tombstone_resource;

/** The tombstones of a dataset's version (0: of all), by version. */
weir_status weir_tombstones_list(struct weir_txn *txn, const char *dataset, int64_t version,
                                 struct weir_arena *arena, struct weir_tombstone **out,
                                 size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
