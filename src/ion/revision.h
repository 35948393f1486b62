/**
 * Revisions: every document that an ION was applied with, as it was stored.
 *
 * The row of a revision is written with the ION (weir_ion_save) and never changed.
 */
#ifndef WEIR_ION_REVISION_H
#define WEIR_ION_REVISION_H

#include "base/record.h"
#include "ion/ion_step.h"
#include "store/store.h"

struct weir_ion_revision {
    char *id; /**< "ION:NUMBER" */
    char *ion;
    int64_t revision;
    char *document;   /**< JSON. */
    char *actor;      /**< Who applied it. */
    char *limited_to; /**< Role of the token that it was applied with; NULL: none limits it. */
    int64_t time_ms;
};

extern const struct weir_resource weir_ion_revision_resource;

/** Keep the ION's document as its revision, if that has no row yet. */
weir_status weir_ion_revision_keep(struct weir_txn *txn, const struct weir_ion_state *state,
                                   const struct weir_ion_actions *actions, int64_t now_ms,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Note the role of the token that the newest revision was applied with. */
weir_status weir_ion_revision_limit(struct weir_txn *txn, const char *ion, int64_t revision,
                                    const char *limited_to, struct weir_error *err) WEIR_MUST_CHECK;

#endif
