/**
 * Windows: what a window of live features says, judged with the two before it. A signal has drifted if two of its last three
 * windows differ from the baseline, and both are of one model version. A window that is worth it leaves a health report.
 */
#ifndef WEIR_ION_WINDOW_H
#define WEIR_ION_WINDOW_H

#include "ion/decision.h"
#include "stats/feature.h"

/** Where a window was seen, and when. */
struct weir_window {
    const char *ion, *pipeline;
    int64_t version; /**< The version of the model. */
    int64_t time_ms;
};

/**
 * The report of what was found about one feature of a window, with a new identifier; it is not stored.
 *
 * @param out  Lies in the arena, or borrows from the window and the finding.
 * @param out_is_worth  A rate of nothing is not, unless a window before it says otherwise: then the last reports of a
 *                      signal are its last windows.
 */
weir_status weir_window_report(struct weir_txn *txn, const struct weir_window *window,
                               const struct weir_finding *finding, struct weir_arena *arena,
                               struct weir_health_report *out, bool *out_is_worth,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
