/**
 * Forgetting a person: photos in uploaded datasets and their versions, the pictures of decisions about
 * them, and embeddings in the folders of replicas. Lists are changed with the record that says what is
 * to be done; the rest is files, done one after the other, and each step may be done again. A server
 * that is killed meanwhile goes on when it starts.
 *
 * A person is a class of a dataset's folder. What is not the server's stays: a dataset that is a folder
 * of somebody else is only told of. Weights that learned from the photos stay too: their lineage says so.
 *
 * Reads and removes files: call it outside of transactions.
 */
#ifndef WEIR_CONTROL_FORGET_H
#define WEIR_CONTROL_FORGET_H

#include "blob/blob.h"
#include "blob/pack.h"
#include "store/store.h"
#include "track/forgotten.h"

struct forget {
    struct weir_store *store; /**< All borrowed. */
    struct weir_blobs *blobs;
    struct weir_packs *pictures;
    const char *state_dir;
    int64_t now_ms;
};

/**
 * Do what a record with state "running" asks for, leave tombstones, and set it to "done".
 * @param out  The record as it is then; in the arena.
 * @return IO, CORRUPT (a manifest that cannot be read): what was done stays done, and the record "running".
 */
weir_status forget_run(const struct forget *forget, const struct weir_forgotten *record,
                       struct weir_arena *arena, struct weir_forgotten *out,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Go on with all that are "running"; a failure is logged. */
void forget_resume(const struct forget *forget);

#endif
