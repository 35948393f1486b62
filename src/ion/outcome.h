/**
 * Outcome: what came of a request that a deployment answered, told later by whoever asked or by another
 * system: a success or none, or a number with a name. The truth about a classification is a success if it
 * is what the answer said; the server keeps no answers, so both are told.
 *
 * A request is named by the identifier in its answer's header Weir-Request, which says which version
 * answered and when, and which the caller of this has opened and found to be this server's
 * (gateway/receipt.h). It can be told about for WEIR_OUTCOME_DAYS; rows stay at least as long, so what
 * is told again replaces what was told, and is counted once.
 */
#ifndef WEIR_ION_OUTCOME_H
#define WEIR_ION_OUTCOME_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

/** Name of an outcome that is yes or no: its value is 1 or 0. */
#define WEIR_OUTCOME_SUCCESS "success"

#define WEIR_OUTCOME_DAYS   7
#define WEIR_OUTCOME_MAX_MS ((int64_t)WEIR_OUTCOME_DAYS * 24 * 3600 * 1000)

struct weir_outcome {
    char *id; /**< "REQUEST:NAME" */
    int64_t seq;
    char *request;
    char *deployment;
    int64_t version; /**< That answered. */
    char *name;
    double value;
    char *decided, *truth; /**< NULL: it was not told as a truth. */
    int64_t answered_ms;
    char *actor;
    int64_t time_ms;
};

extern const struct weir_resource weir_outcome_resource;

/**
 * Store what came of a request, and count it in the comparison that runs at its deployment (ion/arms.h).
 *
 * @param told  All but id and seq.
 * @return NOT_FOUND (no such deployment that the caller may see), CONFLICT (answered longer ago than
 *         WEIR_OUTCOME_DAYS), INVALID (a name or a value that is none, texts over 256 bytes or not plain).
 */
weir_status weir_outcome_store(struct weir_txn *txn, struct weir_outcome *told,
                               struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

#endif
