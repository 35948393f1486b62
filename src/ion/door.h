/**
 * Doors of IONs: where they are locked down by hand, which is a row each and comes to the replicas with the lists,
 * and how each stands, which its replica reports (ion/replica.h). What a door is, is in the document
 * (endpoint/door.h).
 */
#ifndef WEIR_ION_DOOR_H
#define WEIR_ION_DOOR_H

#include "base/arena.h"
#include "base/record.h"
#include "ion/ion_step.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/** A door of a document, with what is known of it. */
struct weir_ion_door {
    char *id; /**< "ION:NAME" */
    char *ion, *pipeline, *name, *kind;
    char *state;        /**< "unknown", "locked", "open", "jammed". */
    char *contact;      /**< "ok", "lost", or "unknown": no replica has said anything. */
    int64_t since_ms;   /**< When that began; 0: not known. */
    char *error;        /**< Why the contact was lost last. */
    char *locked_by;    /**< The user that locked it down; NULL: it is not. */
    int64_t locked_ms;  /**< When. */
    char *note;         /**< Why. */
    char *last;         /**< JSON: the last command, or what came in its place. */
    char *last_outcome; /**< Its outcome. */
    char *last_person;
    int64_t last_ms;
};

extern const struct weir_resource weir_ion_door_resource;
extern const struct weir_resource weir_ion_lock_down_resource;

/**
 * Lock a door down, or release it; counts the ION's list_revision up if that changed something. Follow with
 * WEIR_ION_EVENT_LISTS after loading the state.
 * @param lock_down  ion, door, note, actor and time are read; id is not.
 */
weir_status weir_ion_lock_down_set(struct weir_txn *txn, const struct weir_ion_lock_down *lock_down,
                                   bool is_locked, bool *out_changed,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The doors of an ION, in the order of its document; text in the arena, or the state's. */
void weir_ion_doors(const struct weir_ion_state *state, struct weir_arena *arena,
                    struct weir_ion_door **out, size_t *out_n);

#endif
