#include "ion/policy/policy_blocked.h"

#include "base/macros.h"

#include <inttypes.h>

#define PARTS 8 /* of the timeout */

/** Half of what would be there by the last part of the timeout that is over, were it even. */
static int64_t least(const struct weir_policy_awaited *awaited, int64_t span_ms)
{
    int64_t n_parts = PARTS * span_ms / (1000 * WEIR_MAX(awaited->timeout_s, (int64_t)1));
    return (int64_t)((double)awaited->wanted * (double)WEIR_MIN(n_parts, (int64_t)PARTS) /
                     (2 * PARTS));
}

const char *weir_policy_blocked(const struct weir_policy_trial *trial,
                                const struct weir_policy_awaited *awaited, int64_t now_ms,
                                struct weir_arena *arena)
{
    if (trial->step_ms > 0 && trial->begun_ms == 0) {
        return now_ms - trial->step_ms < WEIR_POLICY_BLOCKED_MS ? NULL
               : trial->is_ready ? "the deployment does not give it what was asked for yet"
                                 : "no replica has it loaded yet: `weir get deployments` says why";
    }
    int64_t span_ms = trial->begun_ms > 0 ? now_ms - trial->begun_ms : 0;
    if (span_ms < WEIR_MAX(1000 * awaited->hold_s, (int64_t)WEIR_POLICY_BLOCKED_MS)) {
        return NULL;
    }
    if (awaited->n == 0 && awaited->wanted > 0) {
        return weir_arena_printf(arena, "no %s %s so far", awaited->what,
                                 trial->figures.n_requests > 0 ? "are among what came"
                                                               : "have come");
    }
    return awaited->n < least(awaited, span_ms)
               ? weir_arena_printf(
                     arena, "%s come too slowly: %" PRId64 " are wanted before its time is over",
                     awaited->what, awaited->wanted)
               : NULL;
}
