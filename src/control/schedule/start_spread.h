/**
 * Start spread: between when and when a job may start that waits until others end, by how long the like of
 * those ran.
 *
 * It starts at the latest when all have ended that are expected to end by its expected start, and at the earliest
 * when the first of all ends. For each of them the runs count that were longer than it has run so far: its own end is
 * then as likely before the first of theirs as between any two of them or after the last. So of starts told by n
 * runs at least (n - 1) of (n + 1) lie in the interval, whatever the lengths are distributed like, as long as jobs end
 * well and nothing goes before the one that waits. Pure.
 */
#ifndef WEIR_CONTROL_START_SPREAD_H
#define WEIR_CONTROL_START_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A job that runs and may end. */
struct start_spread_job {
    int64_t started_ms, expected_end_ms;
    int64_t limit_ms;          /**< It ends then at the latest; 0: it has no limit. */
    int64_t least_ms, most_ms; /**< Among the runs that were longer than it has run so far. */
    int32_t n_runs;            /**< How many those are. */
};

struct start_spread {
    int64_t earliest_ms, latest_ms; /**< Never before now; the expected start lies between them. */
    int32_t n_runs;
};

/**
 * @param expected_ms  When it is expected to start.
 * @return False: of a job that must end first nothing is known, so nothing can be told.
 */
bool start_spread_tell(const struct start_spread_job *jobs, size_t n, int64_t now_ms,
                       int64_t expected_ms, struct start_spread *out);

#endif
