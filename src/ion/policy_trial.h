/**
 * Trial: a version among the requests of a deployment, before it serves. What the policies that try
 * versions (shadow, canary) look at beside weir_policy_inputs, and what they have in common. Pure.
 *
 * A trial has steps: of a canary its shares; a shadow has one. A step is *asked for* (step_ms), *in
 * effect* once the replicas have loaded the version and the shares are as asked for (begun_ms), and its
 * figures count what became of requests since then.
 */
#ifndef WEIR_ION_POLICY_TRIAL_H
#define WEIR_ION_POLICY_TRIAL_H

#include "ion/policy.h"

/** What became of requests. Counters; `server_ms` tells the servers apart that counted. */
struct weir_ion_figures {
    int64_t server_ms;                      /**< When the server that counted began. */
    int64_t n_requests;                     /**< That the candidate answered. */
    int64_t n_failed;                       /**< Of these: with a 5xx, or not at all. */
    int64_t n_slow;                         /**< Of these: slower than the policy's limit. */
    int64_t n_unaccepted;                   /**< Of these: with a 4xx. */
    int64_t live_requests, live_unaccepted; /**< Of the version that serves. */
    int64_t n_only,
        live_only;       /**< Of n_compared: answered with a 4xx by the candidate alone, and by
                                    the other version alone. */
    int64_t n_neither;   /**< Of n_compared: accepted by neither. */
    int64_t n_compared;  /**< Requests that another version answered, too, as a copy. */
    int64_t n_disagreed; /**< Of these: another answer. */
    int64_t compared_us; /**< Their time in all, of who answered. */
    int64_t copies_us;   /**< Their time in all, of the copies. */
    int64_t made,
        live_made; /**< Numbers of the counters of both: another one began at 0. Not kept. */
    /* What both versions answered: JSON of policy_drift.h; NULL: not known. */
    char *outputs;      /**< Of the candidate. */
    char *live_outputs; /**< Of the version that serves. */
    /* Of a base, and of what came since. */
    int64_t n_looks;       /**< How often outputs were compared since the candidate came here. */
    int64_t n_looks_since; /**< Of these: since the base was made. */
};

extern const struct weir_resource weir_ion_figures_resource;

struct weir_policy_trial {
    bool is_sandbox;       /**< The ION is a sandbox: no deployment is touched. */
    int64_t other_version; /**< That is being tried on the link; 0: none. */
    int64_t step;
    int64_t step_ms;                 /**< When it was asked for; 0: no step was. */
    int64_t begun_ms;                /**< When it came into effect; 0: it has not. */
    int64_t live_ppm;                /**< Share in effect now. */
    bool is_ready;                   /**< A replica has the candidate loaded. */
    char *problem;                   /**< Why a replica could not load it; NULL: none failed. */
    struct weir_ion_figures figures; /**< Since begun_ms; zeros before. */
};

extern const struct weir_resource weir_policy_trial_resource;

/** The trial of inputs; zeros if there is none. */
const struct weir_policy_trial *weir_policy_trial_of(const struct weir_policy_trial *trial);

/** What both say before a version is tried: nothing to compare with, or another one's turn; is
 *  `verdict` NULL, it can be tried. */
struct weir_policy_verdict weir_policy_trial_before(const char *policy,
                                                    const struct weir_policy_inputs *inputs,
                                                    const struct weir_policy_trial *trial,
                                                    struct weir_arena *arena);

/** What came between two looks; all of `now` if another server counted `base`, or base is NULL. The
 *  looks are those of `base`. */
struct weir_ion_figures weir_ion_figures_since(const struct weir_ion_figures *base,
                                               const struct weir_ion_figures *now,
                                               struct weir_arena *arena);

/** A base of these figures for the next step: the looks of the one before (NULL: none) count on. In the
 *  arena. */
const struct weir_ion_figures *weir_ion_figures_base(const struct weir_ion_figures *before,
                                                     const struct weir_ion_figures *now,
                                                     struct weir_arena *arena);

/** The same base (NULL: none) with one look more. */
const struct weir_ion_figures *weir_ion_figures_looked(const struct weir_ion_figures *base,
                                                       struct weir_arena *arena);

#endif
