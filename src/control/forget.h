/**
 * Forgetting a person: photos in uploaded datasets and their versions, copies of these and embeddings in the
 * folders that tasks write into, the pictures of decisions if they or their feedback say the person, and the
 * name in feedback and in the rows of snapshots. Lists are changed with the record that says what is
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
    /** Called before each change of a file or the store, with its kind; NULL: not. For tests, which end the
     *  process there. */
    void (*step)(void *context, const char *what);
    void *step_context;
};

/**
 * Do what a record with state "running" asks for, leave tombstones, and set it to "done".
 * @param out  The record as it is then; in the arena.
 * @return IO, CORRUPT (a manifest that cannot be read): what was done stays done, and the record "running".
 */
weir_status forget_run(const struct forget *forget, const struct weir_forgotten *record,
                       struct weir_arena *arena, struct weir_forgotten *out,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Go on with all that are "running"; one that fails is logged, and tried again with the next start. */
void forget_resume(const struct forget *forget);

/** Uploaded datasets that have a tombstone in their newest version: one without the photos is still to be frozen. */
weir_status forget_unfrozen(struct weir_store *store, struct weir_arena *arena, char ***out,
                            size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
