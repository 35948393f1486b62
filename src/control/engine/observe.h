/**
 * Observing for triggers: what those of an ION look at that its engine does not know (ion/trigger.h):
 * health windows, business figures, live accuracy, metrics of runs, alerts and models, read from the
 * store. A trigger of a pipeline that runs is not asked, so nothing is read for it.
 */
#ifndef WEIR_CONTROL_OBSERVE_H
#define WEIR_CONTROL_OBSERVE_H

#include "control/control.h"
#include "ion/ion.h"

/** Windows that are read at most, the newest, for one trigger. */
#define OBSERVE_WINDOWS_MAX 5000

/** Would one of them fire now? Reads only. */
weir_status control_observe_is_due(struct control *control, struct weir_txn *txn,
                                   const struct weir_ion_state *state, bool *out_is_due,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Time has passed for an ION: its step with what was observed in the same transaction. */
weir_status control_ion_tick(struct control *control, struct weir_txn *txn, const char *ion,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
