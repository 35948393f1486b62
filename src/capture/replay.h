/**
 * Replay: what would have been decided? Policies of another revision, and detectors with other
 * thresholds, over the records of a snapshot. Pure: the same file and rules give the same answer, byte
 * for byte.
 *
 * Policies. Each policy decision of the span is made again from its own inputs, as they were written
 * then (weir_policy_replay): without a document by the policy that made it, which must give the same
 * verdict and rule; with one by the policy of the same kind in the chain of the same link. Then each
 * candidate goes through the new chain: what a policy said of it last counts, and one that was never
 * asked is asked with what was known when the last one was. What people decided by hand stays.
 *
 * Drift. The scores and brightness of the span's decisions go through the detector (stats/drift.h),
 * each against the baseline of the model version that decided, with the thresholds of the rules; the
 * first alarm is compared with the first that was reported then. A replica's windows began before the
 * span where the span does not begin with it, so windows need not be the same as then.
 */
#ifndef WEIR_CAPTURE_REPLAY_H
#define WEIR_CAPTURE_REPLAY_H

#include "base/json.h"
#include "capture/rows.h"
#include "ion/ion_doc.h"
#include "stats/drift.h"

#include "base/view_struct.h"

#include "capture/replay_views.def"

#include "base/view_end.h"

struct weir_replay_rules {
    const struct weir_ion_doc *doc; /**< NULL: the policies that decided then. */
    struct weir_drift_config drift; /**< 0: as in service. */
    int64_t interval_ms;            /**< One value per camera and so long; 0: 1000. */
};

/** Windows of one signal that are told. */
#define WEIR_REPLAY_WINDOWS_MAX 1000

/**
 * A new JSON object: the view replay_answer of capture/replay_views.def.
 * @return CORRUPT; INVALID: thresholds that the detector does not take.
 */
weir_status weir_snapshot_replay(const struct weir_snapshot_file *file,
                                 const struct weir_replay_rules *rules, struct weir_arena *arena,
                                 json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/* replay_drift.c */

/** Its "drift"; *out_differs if an alarm would have been another. */
weir_status replay_drift(const struct weir_snapshot_file *file,
                         const struct weir_replay_rules *rules, struct weir_arena *arena,
                         json_t **out, bool *out_differs, struct weir_error *err) WEIR_MUST_CHECK;

#endif
