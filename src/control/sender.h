/**
 * Sender: who stands behind a job. Of a job of its own it is who submitted it, of a sweep's trial who made the
 * sweep, of what an ION starts who applied its document last, of a deployment's replica who made the deployment;
 * each with at most the role of the token that they did it with, and with what they may now.
 */
#ifndef WEIR_CONTROL_SENDER_H
#define WEIR_CONTROL_SENDER_H

#include "store/identity.h"

/** What of a job says whose it is. */
struct control_sender_of {
    const char *job, *kind;
    const char *ion; /**< NULL: of none. */
    const char *created_by, *limited_to;
};

/**
 * @param out_name  NULL: nobody is known.
 * @param out       Empty, without rights, if the sender is disabled, gone, or limited to nothing.
 */
weir_status control_sender_find(struct weir_txn *txn, const struct control_sender_of *of,
                                struct weir_arena *arena, const char **out_name,
                                struct weir_identity *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
