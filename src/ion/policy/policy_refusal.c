#include "ion/policy_refusal.h"

#include "base/macros.h"
#include "stats/excess.h"

#include <inttypes.h>
#include <math.h>

#define PPM     1000000.0
#define N_TESTS 2 /* by share, and by copies */

static bool is_sure(const struct weir_policy_refusal *refusal, int64_t k, int64_t k_rest,
                    double share)
{
    double rate =
        WEIR_POLICY_REFUSAL_RATE / (double)(WEIR_MAX(refusal->n_steps, (int64_t)1)) / N_TESTS;
    return k > 0 && k_rest >= 0 &&
           weir_excess_evidence((uint64_t)k, (uint64_t)k_rest, share) >= log(1 / rate);
}

static double part_of(int64_t k, int64_t n)
{
    return n > 0 ? (double)k / (double)n : 0;
}

/** Requests that name a version change what share it has: the larger of both says less. */
static double share_of(const struct weir_policy_refusal *refusal,
                       const struct weir_ion_figures *figures)
{
    double asked = (double)refusal->share_ppm / PPM;
    return WEIR_MAX(asked,
                    part_of(figures->n_requests, figures->n_requests + figures->live_requests));
}

static bool trips_by_share(const struct weir_policy_refusal *refusal,
                           const struct weir_ion_figures *figures)
{
    double excess = part_of(figures->n_unaccepted, figures->n_requests) -
                    part_of(figures->live_unaccepted, figures->live_requests);
    return excess > refusal->max_excess &&
           is_sure(refusal, figures->n_unaccepted, figures->live_unaccepted,
                   share_of(refusal, figures));
}

static bool trips_by_copies(const struct weir_policy_refusal *refusal,
                            const struct weir_ion_figures *figures)
{
    return part_of(figures->n_only - figures->live_only, figures->n_compared) >
               refusal->max_excess &&
           is_sure(refusal, figures->n_only, figures->live_only, 0.5);
}

const char *weir_policy_refusal_trips(const struct weir_policy_refusal *refusal,
                                      const struct weir_ion_figures *figures,
                                      struct weir_arena *arena)
{
    if (trips_by_share(refusal, figures)) {
        return weir_arena_printf(arena,
                                 "%s: it refused (4xx) %" PRId64 " of %" PRId64
                                 " requests, and the version that serves %" PRId64 " of %" PRId64
                                 ": surely more",
                                 refusal->policy, figures->n_unaccepted, figures->n_requests,
                                 figures->live_unaccepted, figures->live_requests);
    }
    if (trips_by_copies(refusal, figures)) {
        return weir_arena_printf(
            arena,
            "%s: of %" PRId64 " requests that both versions answered it alone "
            "refused (4xx) %" PRId64 ", and the version before alone %" PRId64 ": surely more",
            refusal->policy, figures->n_compared, figures->n_only, figures->live_only);
    }
    return NULL;
}

int64_t weir_policy_refusal_n_accepted(const struct weir_ion_figures *figures)
{
    return WEIR_MAX(figures->n_requests - figures->n_unaccepted, (int64_t)0);
}

int64_t weir_policy_refusal_n_compared(const struct weir_ion_figures *figures)
{
    return WEIR_MAX(figures->n_compared - figures->n_neither, (int64_t)0);
}
