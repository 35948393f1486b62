/**
 * Rollouts: the links of IONs that end in a deployment. What such a link wants of its deployment
 * (weir_ion_wanted_of) becomes shares and a mirror; how a version does that is being tried there is
 * gathered for the policies that watch it. Each function runs in the caller's transaction.
 */
#ifndef WEIR_CONTROL_ROLLOUT_H
#define WEIR_CONTROL_ROLLOUT_H

#include "control/control.h"
#include "deploy/step.h"

/** While a version is tried its figures are looked at this often: a guard that trips is noticed so
 *  soon. */
#define CONTROL_ROLLOUT_LOOK_MS 200

/**
 * What became of the requests of a deployment so far; false: not known.
 *
 * @param version  Of which n_requests, n_failed and n_slow (above slow_us; 0: none is) are.
 * @param live     Of which live_outputs are; 0: none serves.
 * @param mirror   Of which the rest is; 0: none.
 * @param arena    Of texts.
 */
typedef bool (*control_figures_fn)(void *context, const char *deployment, int64_t version,
                                   int64_t live, int64_t mirror, int64_t slow_us,
                                   struct weir_arena *arena, struct weir_ion_figures *out);

struct control_figures {
    control_figures_fn fn; /**< NULL: nothing is known of requests. */
    void *context;
};

/** How those candidates of the ION do that are watched: `traffic` of a TICK, in the control's arena. */
weir_status control_rollout_gather(struct control *control, struct weir_txn *txn,
                                   const struct weir_ion_state *state, struct weir_ion_event *tick,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * When must the ION have its next TICK, as far as versions are tried? Reads only; `state` is used up.
 *
 * @param next_ms  In: when something else makes it due. Out: not later; control->now_ms if a policy
 *                 would say something new now, and else at most CONTROL_ROLLOUT_LOOK_MS from now.
 */
weir_status control_rollout_look(struct control *control, struct weir_txn *txn,
                                 struct weir_ion_state *state, int64_t *next_ms,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Was what a link of the ION wants of its deployment refused, when it was asked for last? Reads only. */
weir_status control_rollout_is_refused(struct control *control, struct weir_txn *txn,
                                       const struct weir_ion_state *state, bool *out,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** Ask for what was refused once more, by way of the outbox. */
weir_status control_rollout_again(struct control *control, struct weir_txn *txn, const char *ion,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Carry out "shift_deployment": let the deployment of the link be as the link wants it now; make it if
 * it is not there. Where it cannot (it serves another model, or is another project's) an alert says
 * so, and control_rollout_is_refused, until it can. What a link that is gone gave to a trial goes back.
 *
 * @param payload  {ion, pipeline: the link}; of a link that is gone also {deployment, model, serving,
 *                 trial}.
 * @return LIMIT: more versions are loaded than can be; those that go will have gone in seconds.
 */
weir_status control_rollout_shift(struct control *control, struct weir_txn *txn,
                                  const json_t *payload, struct weir_error *err) WEIR_MUST_CHECK;

#endif
