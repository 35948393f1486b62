/**
 * Triggers of an ION as they stand, and firings: each time that one made a pipeline run, with what it
 * looked at (ion/trigger.h). The firing's row and the run that it starts are written in one
 * transaction. Of an ION the newest WEIR_FIRINGS_KEPT are kept.
 */
#ifndef WEIR_ION_FIRING_H
#define WEIR_ION_FIRING_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_FIRINGS_KEPT 1000

/** A trigger of a document's pipeline, and what the engine remembers of it. */
struct weir_ion_trigger {
    char *id; /**< "ION:PIPELINE:PLACE", the place with two digits. */
    char *ion;
    char *pipeline;
    int64_t position; /**< In the pipeline's list, from 0. */
    char *kind;
    char *text;       /**< JSON: {"kind": NAME, OPTION: VALUE}. */
    char *state;      /**< "ARMED", "REMOVED" */
    int64_t armed_ms; /**< Since when the document has it. */
    int64_t next_ms;  /**< Of a schedule: its time; 0: none. */
    /* Of the pipeline's dataset: the newest version, and the one that the last run began with. */
    int64_t version, n_files, n_bytes, n_rows;
    int64_t used_version, used_files, used_bytes, used_rows;
    int64_t n_fired, fired_ms;
    char *reason; /**< Of the last firing; NULL: it has not fired. */
    int64_t updated_ms;
};

struct weir_trigger_firing {
    char *id; /**< "ION:NUMBER" */
    char *ion;
    int64_t number;
    char *pipeline;
    int64_t position;
    char *kind;
    int64_t training; /**< Number of the run that it starts, or that covers it. */
    char *inputs;     /**< JSON: what it looked at (struct weir_trigger_inputs). */
    char *reason;
    char *actor; /**< Who started it by hand, or "trigger". */
    int64_t time_ms;
};

extern const struct weir_resource weir_ion_trigger_resource;
extern const struct weir_resource weir_trigger_firing_resource;

/** Store a firing; the oldest beyond WEIR_FIRINGS_KEPT goes. */
weir_status weir_firing_store(struct weir_txn *txn, const struct weir_trigger_firing *firing,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The newest firings of an ION, newest first. @param pipeline  NULL: of all. */
weir_status weir_firings_list(struct weir_txn *txn, const char *ion, const char *pipeline,
                              size_t limit, struct weir_arena *arena,
                              struct weir_trigger_firing **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
