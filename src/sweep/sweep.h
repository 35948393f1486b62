/**
 * Sweeps: many trials of one job, each with other parameters, to find those that do best.
 *
 * Three nouns. A *sweep* is a document (sweep/doc.h) and how far it is: its job with placeholders, the
 * *space* of its parameters (sweep/parameter.h), its goal (a metric of the trials' runs), how many
 * trials there may be, and the *method* that chooses them (sweep/method.h). A *trial* is a point of
 * the space, tried by a job of its own, whose run reports the metric. A *rung* (sweep/rungs.h) is an
 * amount of work at which trials are compared, and the worse ones stopped early.
 *
 * What happens is decided by a pure step (sweep/step.h). This header loads what a step needs and saves
 * what it decided, in the caller's transaction:
 *
 *     weir_sweep_load(txn, id, arena, &state, err);
 *     weir_sweep_step(&state, &event, now_ms, arena, &actions, err);
 *     weir_sweep_save(txn, &state, arena, err);
 *     weir_sweep_state_fini(&state);
 *
 * States of a sweep: RUNNING; PAUSED by somebody; STOPPING while jobs of its trials end; SUCCEEDED,
 * FAILED, CANCELLED.
 * States of a trial: WANTED until it has a job; RUNNING, also while that waits; PAUSING and then PAUSED
 * at a rung, its job held; STOPPING while it ends; SUCCEEDED, STOPPED (early: it did worse than others, or time was over), FAILED, CANCELLED.
 *
 * The identifiers of a trial's job and run are functions of the trial: what is started twice is the
 * same job.
 */
#ifndef WEIR_SWEEP_SWEEP_H
#define WEIR_SWEEP_SWEEP_H

#include "base/arena.h"
#include "base/record.h"
#include "base/uuid.h"
#include "store/store.h"
#include "sweep/doc.h"

struct weir_sweep {
    char *id;
    char *name;
    char *project;
    char *state;
    char *reason;   /**< Why it is stopping or over; NULL: it has all its trials. */
    char *ends_as;  /**< While STOPPING: the state to come. */
    char *document; /**< JSON, with what was not said filled in. */
    char *method;   /**< Name of its kind. */
    char *metric;
    int64_t n_trials; /**< That there are to be, at most. */
    int64_t n_made;   /**< Trials so far: their numbers are 1 to n_made. */
    int64_t n_open;   /**< Of them, those that are under way: neither over nor paused. */
    int64_t n_paused; /**< Those that wait at a rung. */
    int64_t n_succeeded, n_stopped, n_failed;
    int64_t best;      /**< Number of the best trial; 0: none has a value yet. */
    double best_value; /**< NaN: none. */
    double work;       /**< What its trials have used, in the unit of its rungs. */
    char *created_by;
    char *limited_to; /**< As that of jobs. */
    int64_t created_ms;
    int64_t paused_ms; /**< Since when; 0: it is not paused. */
    int64_t pauses_ms; /**< How long it was, before: its time limit does not count that. */
    int64_t ended_ms;  /**< 0: it is not over. */
};

struct weir_sweep_trial {
    char *id; /**< SWEEP:NUMBER */
    char *sweep;
    int64_t number; /**< From 1 on. */
    char *state;
    char *parameters; /**< JSON object. */
    char *point;      /**< JSON: its coordinates in the space. */
    char *job, *run;  /**< NULL: none yet. */
    char *ends_as;    /**< While STOPPING: the state to come. */
    char *reason;
    double value;    /**< Of the goal's metric, so far; NaN: none. */
    double resource; /**< How far it is, in the unit of rungs. */
    int64_t step;    /**< Of the last measurement that was looked at; -1: none. */
    char *rungs;     /**< JSON: its values at the rungs that it has reached. */
    int64_t created_ms, started_ms, ended_ms;
};

extern const struct weir_resource weir_sweep_resource;
extern const struct weir_resource weir_sweep_trial_resource;

/** A trial in memory: the record, and what its JSON says. */
struct weir_sweep_trial_state {
    struct weir_sweep_trial row;
    double *point; /**< n of the space. */
    double rung_values[WEIR_SWEEP_RUNGS_MAX];
    size_t n_rungs;
    bool is_new, is_changed; /**< Since it was loaded: the save writes it. */
};

/** What weir_sweep_load and weir_sweep_begin make; weir_sweep_state_fini frees what is not in the arena. */
struct weir_sweep_state {
    struct weir_sweep sweep;
    struct weir_sweep_doc doc;
    json_t *document;                      /**< That doc points into. */
    struct weir_sweep_trial_state *trials; /**< By number, from 1; room for sweep.n_trials. */
    size_t n_trials;
    bool is_new, is_changed;
};

/** @return NOT_FOUND; CORRUPT if its document is one that this program does not read; LIMIT. */
weir_status weir_sweep_load(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                            struct weir_sweep_state *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Write what has changed. */
weir_status weir_sweep_save(struct weir_txn *txn, struct weir_sweep_state *state,
                            struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** Also of {0}. */
void weir_sweep_state_fini(struct weir_sweep_state *state);

/** A new sweep in memory; its document is checked, and names its seed from then on: `document` is
 *  changed, and referred to. */
weir_status weir_sweep_begin(json_t *document, const char *created_by, int64_t now_ms,
                             struct weir_arena *arena, struct weir_sweep_state *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Identifiers of the sweeps that are not over, oldest first. */
weir_status weir_sweep_list_open(struct weir_txn *txn, struct weir_arena *arena, char ***out_ids,
                                 size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** Is this job that of a trial? */
weir_status weir_sweep_has_job(struct weir_txn *txn, const char *job, bool *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Forget a sweep that is over, with its trials; their jobs and runs stay. @return NOT_FOUND;
 *  CONFLICT if it is not over. */
weir_status weir_sweep_delete(struct weir_txn *txn, const char *id,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The identifier of a trial's "job" or "run". Pure. */
void weir_sweep_trial_id(const struct weir_sweep_trial *trial, const char *what,
                         char out[WEIR_UUID_BYTES]);

bool weir_sweep_is_over(const struct weir_sweep *sweep);
/** It is not over; a paused one is not either. */
bool weir_sweep_trial_is_open(const struct weir_sweep_trial *trial);
/** It is open, and not paused: it counts among those that run at the same time. */
bool weir_sweep_trial_is_under_way(const struct weir_sweep_trial *trial);

#endif
