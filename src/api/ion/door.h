/** Doors, for those who take decisions in. */
#ifndef WEIR_API_ION_DOOR_H
#define WEIR_API_ION_DOOR_H

#include "ion/decision.h"

/** Nobody is called for what a replica decided longer ago, and ships only now. */
#define API_BARRED_RECENT_MS ((int64_t)10 * 60 * 1000)

/**
 * Raise an alert for each barred person whom these decisions deny: one for a person and a camera, as long
 * as it is not over.
 * @param out_n_new  Alerts that somebody has to be told of now.
 */
weir_status api_barred_raise(struct weir_txn *txn, const struct weir_decision *decisions, size_t n,
                             int64_t now_ms, size_t *out_n_new,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
