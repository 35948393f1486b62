/**
 * Sender: the person behind a job. That is the one who submitted a job of its own, made the sweep of a trial,
 * applied last the document of an ION that starts it, or made the deployment of a replica;
 * each with at most the role of the token that they did it with, and with what they may now.
 */
#ifndef WEIR_CONTROL_SENDER_H
#define WEIR_CONTROL_SENDER_H

#include "store/identity.h"

/** What a job says of its sender. */
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
