/**
 * The step of a sweep: a pure function (state, event, time) → (state, actions). The same events in the
 * same order give the same state and the same actions.
 *
 * What it keeps to: at most `parallel` trials are under way, and never more than `trials` are made; a trial
 * is wanted once and ends once; its values at rungs are what its curve had there, however late
 * somebody looks; none is started, and none goes on from a rung, once the sweep is stopping or while it is
 * paused; the sweep is over when none is open.
 */
#ifndef WEIR_SWEEP_STEP_H
#define WEIR_SWEEP_STEP_H

#include "sweep/sweep.h"

/** A measurement of a trial's goal: how far it was, and what it had come to. */
struct weir_sweep_measure {
    int64_t step;
    double resource, value;
};

/** What is known of an open trial with a job. */
struct weir_sweep_observation {
    int64_t trial;
    const char *job_state;                     /**< NULL: the job is not there any more. */
    const char *job_reason;                    /**< NULL: none. */
    bool is_held;                              /**< The job waits until it is released. */
    bool has_begun;                            /**< Its tasks have run. */
    const struct weir_sweep_measure *measures; /**< Those behind row.step, by step. */
    size_t n_measures;
    double last_value; /**< Of the goal's metric, for programs that count no steps; NaN: none. */
};

enum weir_sweep_event_type {
    WEIR_SWEEP_EVENT_TICK,        /**< observations; also the first event of all. */
    WEIR_SWEEP_EVENT_STARTED,     /**< trial, job, run: it was made. */
    WEIR_SWEEP_EVENT_NOT_STARTED, /**< trial, note: it cannot be made. */
    WEIR_SWEEP_EVENT_STOP,        /**< note: somebody ends the sweep. */
    WEIR_SWEEP_EVENT_PAUSE,       /**< note: no trial is started until RESUME. */
    WEIR_SWEEP_EVENT_RESUME,
};

struct weir_sweep_event {
    enum weir_sweep_event_type type;
    const struct weir_sweep_observation *observations;
    size_t n_observations;
    int64_t trial;
    const char *job, *run, *note;
};

enum weir_sweep_action_type {
    WEIR_SWEEP_ACTION_START, /**< Make the trial's job. */
    WEIR_SWEEP_ACTION_STOP,  /**< Cancel the trial's job; `message` says why. */
    WEIR_SWEEP_ACTION_HOLD,  /**< Hold the trial's job at a rung; `message` says why. */
    WEIR_SWEEP_ACTION_GO_ON, /**< Release the trial's job. */
    WEIR_SWEEP_ACTION_EVENT, /**< For people: `kind` and `message`. */
};

struct weir_sweep_action {
    enum weir_sweep_action_type type;
    int64_t trial; /**< 0: the sweep itself. */
    const char *kind;
    char *message;
};

struct weir_sweep_actions {
    struct weir_sweep_action *items; /**< In the arena. */
    size_t n, cap;
};

/**
 * @param actions  Start with {0}.
 * @return CONFLICT: STOP for a sweep that is over, or stops already; PAUSE for one that does not run;
 *         RESUME for one that is not paused.
 */
weir_status weir_sweep_step(struct weir_sweep_state *state, const struct weir_sweep_event *event,
                            int64_t now_ms, struct weir_arena *arena,
                            struct weir_sweep_actions *actions,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** When a TICK without observations would change something: when its time is over; INT64_MAX: never. */
int64_t weir_sweep_next_tick_ms(const struct weir_sweep_state *state);

#endif
