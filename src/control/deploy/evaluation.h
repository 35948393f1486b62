/**
 * Evaluations: what policies want to be measured becomes jobs of kind `measure`, and what came of them
 * is gathered for those policies. Each function runs in the caller's transaction.
 */
#ifndef WEIR_CONTROL_EVALUATION_H
#define WEIR_CONTROL_EVALUATION_H

#include "control/control.h"

/** How the measurements of the ION's candidates go: `measured` of a TICK, in the control's arena. */
weir_status control_evaluation_gather(struct control *control, struct weir_txn *txn,
                                      const struct weir_ion_state *state,
                                      struct weir_ion_event *tick,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Carry out "start_evaluation": a job that measures the candidate on its policy's dataset, beside the
 * version that serves. Where it cannot be made, the candidate learns why. WEIR_OK if nobody waits for
 * it any more.
 *
 * @param candidate  Identifier.
 * @param number     Of its measurement.
 */
weir_status control_evaluation_start(struct control *control, struct weir_txn *txn,
                                     struct weir_ion_state *state, const char *candidate,
                                     int64_t number, struct weir_error *err) WEIR_MUST_CHECK;

#endif
