/**
 * The simulator: what would a scheduler have done with this work on that cluster?
 *
 * A *trace* is what people asked for: jobs with a time of submission, a run time and what they
 * need. This header reads traces. A *cluster* is what
 * there is: nodes and queues (cluster_file.h). A *replay* plays the trace on the cluster under a
 * profile of the scheduler, from event to event, and gives a *report* (replay.h). Beside replays
 * there is "what if" on one snapshot (what_if.h), and the fill experiment, by which placement rules
 * are compared (fill.h).
 *
 *     struct weir_sim_trace trace;
 *     WEIR_TRY(weir_sim_trace_load("jobs.csv", &weir_sim_csv, &trace, err));
 *     struct weir_sim_cluster cluster;
 *     WEIR_TRY(weir_sim_cluster_load("cluster.yaml", &cluster, err));
 *     WEIR_TRY(weir_sim_run(&trace, &cluster, &options, &report, err));
 *
 * Nothing here asks the system's clock: the same input gives the same report. All of it belongs to
 * programs: when memory is out they abort, as base/arena.h does. Units: times in milliseconds,
 * devices in thousandths, CPU in milli-cores, memory in bytes, as the scheduler has them.
 *
 * Threads: all functions are re-entrant.
 */
#ifndef WEIR_SIM_TRACE_H
#define WEIR_SIM_TRACE_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_SIM_UNKNOWN  (-1)
#define WEIR_SIM_TIME_MAX ((int64_t)1 << 45) /**< Longest run or span of a trace: 1100 years. */
#define WEIR_SIM_JOBS_MAX ((int32_t)1 << 23)

/** One job. Texts live in the trace; equal texts of queue, user and model are one pointer. */
struct weir_sim_job {
    const char *name;
    const char *queue;   /**< Project, virtual cluster; "default" if the trace has none. */
    const char *user;    /**< NULL = unknown. */
    const char *model;   /**< Models it may run on, "V100|P100"; NULL = any. */
    int64_t submit_ms;   /**< With `after`: not before, and not before that one's. */
    int32_t after;       /**< Index of a job before it: submitted when that has ended; -1: none. */
    int64_t think_ms;    /**< And so long after it. */
    int64_t duration_ms; /**< With all its tasks; WEIR_SIM_UNKNOWN: the trace does not say. */
    int32_t n_tasks;     /**< 0: what follows is of the whole job, which takes as few tasks as the
                          * cluster's nodes allow. Else it is of each task. */
    int32_t min_tasks;   /**< Runs, slower, from so many tasks on; 0: all. */
    int32_t n_devices;
    int32_t device_milli; /**< Of each device, 1…1000. */
    int64_t cpu_milli, memory_bytes;
    int64_t time_limit_ms; /**< What its owner allowed it; 0 = none. */
    int32_t priority;
    int32_t busy_pct; /**< How busy it keeps its devices; 100 where the trace does not say. */
    bool is_preemptible;
    int32_t file_order; /**< Place in the file, from 0. */
};

/** Jobs by time of submission; those of one time are in the order of the file. */
struct weir_sim_trace {
    struct weir_sim_job *jobs;
    int32_t n_jobs;
    int32_t n_left_out; /**< Rows that tell of no work: nothing asked for, or never started. */
    size_t jobs_cap;
    struct trace_texts *texts; /**< What has been kept so far, while the trace is read. */
    struct weir_arena arena;
};

/** A form that traces come in. */
struct weir_sim_format {
    const char *name;
    const char *doc;                /**< Which file, in a few words. */
    const struct import_form *form; /**< How a row of CSV is read; NULL: by import. */
    weir_status (*import)(const char *text, size_t len, const char *what,
                          struct weir_sim_trace *trace, struct weir_error *err);
};

/** Weir's own CSV: columns by name (docs/reference/simulator.md). Others are in
 *  tools/trace_convert. */
extern const struct weir_sim_format weir_sim_csv;

/**
 * Read a trace from memory.
 *
 * @param what  Names the source in errors.
 * @param out   weir_sim_trace_fini frees it. Undefined on error.
 * @return INVALID: source, line, column, what was
 *         expected; LIMIT: more than WEIR_SIM_JOBS_MAX jobs.
 *
 * Cost: linear in the text.
 */
weir_status weir_sim_trace_parse(const char *text, size_t len, const char *what,
                                 const struct weir_sim_format *format, struct weir_sim_trace *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The same from a file of at most 4 GiB. */
weir_status weir_sim_trace_load(const char *path, const struct weir_sim_format *format,
                                struct weir_sim_trace *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Free a trace. NULL and a zeroed trace are accepted. */
void weir_sim_trace_fini(struct weir_sim_trace *trace);

#endif
