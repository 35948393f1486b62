/**
 * Sweeps (sweep/sweep.h): made, stopped, and their trials' jobs made and stopped. Each function runs in the
 * caller's transaction; what is decided goes through the outbox ("start_trial", "stop_trial", "hold_trial", "go_on_trial").
 *
 * A trial's job waits in the queue of the sweep's project, in the name of the user who made the sweep. Its run is in the
 * experiment of the sweep's name, with what it tries as parameters. Where the kind of job has an
 * environment, its program finds them there too: WEIR_PARAM_NAME, in capitals, and WEIR_SWEEP and
 * WEIR_TRIAL.
 */
#ifndef WEIR_CONTROL_SWEEP_H
#define WEIR_CONTROL_SWEEP_H

#include "control/control.h"
#include "sweep/step.h"

/**
 * Make a sweep, and want its first trials.
 * @param document  Checked with the specification of the first trial's job; it is changed.
 * @param out  In the control's arena.
 * @return INVALID, LIMIT, UNSUPPORTED with the place of what is wrong.
 */
weir_status control_sweep_create(struct control *control, struct weir_txn *txn, json_t *document,
                                 struct weir_sweep *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Apply an event to a sweep. @return NOT_FOUND; as weir_sweep_step. */
weir_status control_sweep_event(struct control *control, struct weir_txn *txn, const char *id,
                                const struct weir_sweep_event *event,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The same to one that is loaded. */
weir_status control_sweep_apply(struct control *control, struct weir_txn *txn,
                                struct weir_sweep_state *state,
                                const struct weir_sweep_event *event,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Carry out an action of the outbox that control_sweep_is_action names. */
bool control_sweep_is_action(const char *kind);
weir_status control_sweep_execute(struct control *control, struct weir_txn *txn, const char *kind,
                                  const json_t *payload, struct weir_error *err) WEIR_MUST_CHECK;

/** How the open trials of a sweep go: a TICK, in the control's arena.
 *  @param out_is_news  It would change something. */
weir_status control_sweep_observe(struct control *control, struct weir_txn *txn,
                                  const struct weir_sweep_state *state,
                                  struct weir_sweep_event *out, bool *out_is_news,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
