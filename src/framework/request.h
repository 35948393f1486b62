/**
 * Request: what a job of any kind asks for beside its program: accelerators, CPUs and memory of each
 * task, its priority, whether it may be stopped for others, how long it may run, and which nodes it
 * may have. The members stand in its specification beside the kind's own; weir_job_common_options is
 * the table of them, weir_resource_options that of "resources".
 *
 *     resources: {accelerators: 2, accelerator_model: H100, cpus: 7.5, memory: 64GiB}
 *     priority: 80
 *     preemptible: false
 *     time_limit: 12h
 *     fenced: true
 *     hold_on_failure: 30m
 *     save_signal: USR1
 *     save_within: 2m
 *     node_selector: {zone: a}
 *     tolerations: [{key: team, value: vision}]
 *     topology: {required: zone, preferred: rack}
 *     clusters: [local, hpc]
 *     overflow_after: 10m
 *
 * A number of tasks within which a job runs, tasks: {min, max}, is an option of the kind "command".
 */
#ifndef WEIR_FRAMEWORK_REQUEST_H
#define WEIR_FRAMEWORK_REQUEST_H

#include "base/arena.h"
#include "base/json.h"
#include "base/options.h"
#include "base/status.h"

#define WEIR_REQUEST_ACCELERATORS_MAX 64
#define WEIR_REQUEST_PRIORITY_MAX     1000
#define WEIR_REQUEST_MARKS_MAX        16 /**< Labels and tolerations of a job. */
#define WEIR_REQUEST_CLUSTERS_MAX     64
#define WEIR_REQUEST_MEMORY_LEAST     ((int64_t)1 << 20) /**< Less is a size without its unit. */

/** Priorities of those who say none. A replica is waited for at a door, a training is not. */
#define WEIR_REQUEST_PRIORITY_SERVICE 125
#define WEIR_REQUEST_PRIORITY_JOB     50

/** Accelerators of one task. */
struct weir_accelerators {
    int64_t n;
    int64_t milli;           /**< Of each, in thousandths; 0: by memory. */
    int64_t memory_bytes;    /**< Of each; 0: by share. */
    const char *model;       /**< NULL: any. */
    const char *mig_profile; /**< NULL: devices, not slices. */
};

/** Text lies in the arena it was read into. */
struct weir_job_request {
    struct weir_accelerators accelerators;
    int64_t cpu_millis;   /**< Thousandths of a CPU of each task; less than 0: as its kind says. */
    int64_t memory_bytes; /**< Of each task; 0: as its kind says. */
    int64_t priority;
    bool is_preemptible;
    bool is_fenced;        /**< It never runs twice at a time. */
    int64_t time_limit_ms; /**< 0: none. */
    int64_t hold_ms; /**< The place of a task that failed is kept for so long; 0: not at all. */
    const char *save_signal; /**< Name of what its tasks get to save, before they are stopped for
                                   others: "USR1"; NULL: they are not asked. */
    int64_t save_within_ms;  /**< How long they then may; 0: they are not asked. */
    int64_t min_tasks;       /**< 0: all. */
    bool is_array;           /**< Its tasks are independent of each other. */
    int64_t parallel;        /**< Then so many at once; 0: all. */
    /** JSON {"node_selector", "tolerations", "topology", "clusters", "overflow_after_ms", "pod"}; NULL: none. */
    char *placement;
};

/** Options of every kind of job, and of its "resources". */
#define WEIR_JOB_N_COMMON_OPTIONS 13
#define WEIR_JOB_N_RESOURCES      7
extern const struct weir_option weir_job_common_options[WEIR_JOB_N_COMMON_OPTIONS];
extern const struct weir_option weir_resource_options[WEIR_JOB_N_RESOURCES];

/** How long a job may save that says no time, and the longest. */
#define WEIR_REQUEST_SAVE_MS      60000
#define WEIR_REQUEST_SAVE_MOST_MS ((int64_t)3600 * 1000)

/**
 * Read and check what a specification asks for.
 * @param is_service  Of its kind: it has another priority, no time limit, and is not asked to save.
 * @param save_signal  Its kind's; NULL: its programs know none.
 * @return INVALID or UNSUPPORTED with the place, as "$.spec.resources.memory: …".
 */
weir_status weir_job_request_read(const json_t *spec, bool is_service, const char *save_signal,
                                  struct weir_arena *arena, struct weir_job_request *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** A copy of the specification without what is read here; a new reference. */
json_t *weir_job_request_strip(const json_t *spec);

#endif
