/**
 * Refusals of a trial: does a version that is tried refuse (4xx) what the version that serves accepts? What
 * the policies canary, ab and shadow look at beside their other guards. Pure.
 *
 * A caller's own mistakes are refused by both versions. So what counts is not how many requests a version
 * refuses, but how many more than the other one, in the same time. There are two ways to know:
 *
 * - *by share*: of all requests each goes to the version that is tried with the chance of its share. If both
 *   refuse alike, so does each refusal;
 * - *by copies*: both have answered the same requests (mirrors). If both refuse alike, a request that one
 *   alone refuses is refused by either with the chance 1/2. This is all there is where the version that
 *   is tried has all requests.
 *
 * Either is weir_excess_evidence (stats/excess.h): exact, and looked at with every tick. Each of the two
 * tests of each of the policy's steps has its part of WEIR_POLICY_REFUSAL_RATE, so that a version that
 * refuses no more than the other is sent back with this chance at most, over the whole trial. A few
 * refusals of a version where the other has none are enough.
 *
 * What is surely there can be too small to matter: the guard trips only if the difference of the shares
 * that are refused is above the policy's `max_refusal_excess`, too.
 *
 * Not held: callers who keep to one version (a key) and send nothing but mistakes; requests that name
 * their version count as if chance had sent them there.
 */
#ifndef WEIR_ION_POLICY_REFUSAL_H
#define WEIR_ION_POLICY_REFUSAL_H

#include "ion/policy_trial.h"

#define WEIR_POLICY_REFUSAL_RATE 0.001

/** What a policy asks of its versions. */
struct weir_policy_refusal {
    const char *policy; /**< Name. */
    double max_excess;  /**< Difference of the refused shares that may be; 1: no guard. */
    int64_t n_steps;    /**< That its trial has. */
    int64_t share_ppm;  /**< That the version has in this step; 0: copies only. */
};

/** Why the guard trips, in words that begin with the policy's name; NULL: it does not. */
const char *weir_policy_refusal_trips(const struct weir_policy_refusal *refusal,
                                      const struct weir_ion_figures *figures,
                                      struct weir_arena *arena);

/** Requests of the step that tell something about the version: all but those that it refused. */
int64_t weir_policy_refusal_n_accepted(const struct weir_ion_figures *figures);

/** Of those that both versions answered: all but those that neither accepted, which tell nothing either. */
int64_t weir_policy_refusal_n_compared(const struct weir_ion_figures *figures);

#endif
