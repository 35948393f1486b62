/**
 * Blocked: a policy that tries versions cannot judge one, as far as can be seen so far. What the policies
 * canary, ab and shadow say at once, so that nobody has to wait for their timeout to learn it. Pure.
 *
 * A reason is the same text for as long as it holds, without numbers that change: who sees another one
 * records it, and an alert ends with it. Each is said after WEIR_POLICY_BLOCKED_MS at the earliest, and
 * of requests that come too slowly at most eight times in a trial's step: at each eighth of its timeout,
 * if less than half of what should be there by then is.
 */
#ifndef WEIR_ION_POLICY_BLOCKED_H
#define WEIR_ION_POLICY_BLOCKED_H

#include "ion/policy_trial.h"

#define WEIR_POLICY_BLOCKED_MS 60000
#define WEIR_POLICY_BLOCKED_N  20 /**< Answers of which something should have been seen. */

/** What a step waits for. */
struct weir_policy_awaited {
    const char *what;  /**< "requests that it accepted" */
    int64_t n, wanted; /**< How many there are, and must be. */
    int64_t hold_s, timeout_s;
};

/** Nothing comes, or too slowly, or what was asked for is not in effect; NULL: all is well so far. */
const char *weir_policy_blocked(const struct weir_policy_trial *trial,
                                const struct weir_policy_awaited *awaited, int64_t now_ms,
                                struct weir_arena *arena);

#endif
