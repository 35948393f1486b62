/**
 * Replica: what a process of a prediction pipeline reports of itself, when something changes and
 * every few seconds. The last report of each is kept; those of earlier jobs are forgotten with the
 * first report of a later one.
 */
#ifndef WEIR_ION_REPLICA_H
#define WEIR_ION_REPLICA_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_ion_replica {
    char *id; /**< "ION:PIPELINE:REPLICA" */
    char *ion;
    char *pipeline;
    char *replica;             /**< "JOB-RANK" */
    int64_t revision;          /**< Deployment that `state` is about; 0: it has been given none. */
    char *state;               /**< WEIR_REPLICA_STARTING, _APPLIED or _FAILED. */
    char *reason;              /**< Of FAILED: a sentence. */
    int64_t served_revision;   /**< Deployment that frames are decided by; 0: none. */
    int64_t frames_taken;      /**< Since it started, as all counts. */
    int64_t frames_decided;    /**< Durably. */
    int64_t frames_waiting;    /**< At the source or before the model. */
    int64_t last_frame_ms;     /**< When a frame was taken last; 0: none since it started. */
    int64_t backlog_ms;        /**< Age of the oldest decision that is not passed on; 0: none. */
    char *backlog_reader;      /**< Who has not passed it on: "server", "sink-…". */
    int64_t decisions_refused; /**< Set aside on its disk: the server or a sink refused them. */
    int64_t
        frames_ignored; /**< Given to its source now, and no frames: wrong names, wrong places. */
    char *why_ignored;  /**< What is wrong with the first of them: a sentence. */
    /** JSON: is its source connected, since when, and the last error: {"connected", "since", "error"}. */
    char *source;
    /** JSON: what takes its decisions, [{"name", "connected", "since", "error", …}]. */
    char *consumers;
    /** JSON: where it counts things, [{"camera", "place", "n", "conditions": […], …}]. */
    char *places;
    int64_t time_ms; /**< When it reported. */
};

/** Replicas report every 5 s: one that has not for so long is silent. */
#define WEIR_REPLICA_SILENT_MS 15000

#define WEIR_REPLICA_STARTING "STARTING"
#define WEIR_REPLICA_APPLIED  "APPLIED"
#define WEIR_REPLICA_FAILED   "FAILED"

extern const struct weir_resource weir_ion_replica_resource;

/** Is the replica one of this job? NULL is no job. */
bool weir_ion_replica_is_of(const char *replica, const char *job);

/**
 * Keep a report. ion, pipeline and replica name it; id is not read.
 *
 * @param[out] out_has_changed  It says something else about the deployment than the one before:
 *                              follow with WEIR_ION_EVENT_REPLICA after loading the ION.
 * @return NOT_FOUND if the ION has no such prediction pipeline; CONFLICT if the replica is of a job
 *         that the pipeline does not run (any more); INVALID for another state.
 */
weir_status weir_ion_replica_store(struct weir_txn *txn, const struct weir_ion_replica *report,
                                   bool *out_has_changed, struct weir_error *err) WEIR_MUST_CHECK;

#endif
