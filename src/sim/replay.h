/**
 * Replay: play a trace on a cluster, from event to event, and measure.
 *
 * At each arrival and completion, but no more often than once per `cycle`, the scheduler is asked
 * (weir_sched_plan on a snapshot of what waits and runs), and its plan is carried out at once. An
 * evicted job loses its work since its last checkpoint, and its restart costs `preempt-cost` on its
 * devices. An elastic job runs with min_tasks to n_tasks tasks, slower in proportion. It pauses for
 * `resize-cost` when its size changes, and loses nothing.
 *
 * A job that follows another one (`after`) is submitted `think_ms` after that one's end.
 *
 * Beside the scheduler's profiles there are plain policies to compare with. They count devices
 * only: no nodes, no placement; and, but for the last, no queues.
 *
 *     fifo        in order of arrival; the first that does not fit blocks all behind it
 *     fifo-skip   in order of arrival; what does not fit is passed over
 *     sjf         shortest first, by run times that no scheduler knows; passing over
 *     las         two-dimensional least attained service: those below `las-threshold` device
 *                 seconds first, then by arrival; passing over, evicting
 *     static      each queue has its quota for itself and nothing else; in it as fifo
 *
 * Times in a report are from the first submission on.
 */
#ifndef WEIR_SIM_REPLAY_H
#define WEIR_SIM_REPLAY_H

#include "base/options.h"
#include "sched/sched.h"
#include "sim/cluster_file.h"
#include "sim/trace.h"

/** How much of a run is done; called about once per percent of the trace's jobs. */
typedef void (*weir_sim_progress_fn)(void *context, int32_t n_done, int32_t n_jobs, int64_t now_ms);

struct weir_sim_options {
    char *profile;     /**< "default", "kai" or a plain policy. */
    bool is_one_queue; /**< All jobs are in one queue, "all", whatever the trace says. */
    char *quota; /**< Of queues that the cluster does not list: "none", "equal" or "demand". */
    double cycle_s, recheck_s, preempt_cost_s, checkpoint_every_s, resize_cost_s, min_run_s;
    double las_threshold_s, until_s;
    bool is_duration_known;                 /**< Tell the scheduler how long jobs run. */
    const struct weir_sched_profile *sched; /**< NULL: the profile as it is named. */
    weir_sim_progress_fn progress;          /**< NULL: none. */
    void *progress_context;
    uint64_t (*mono_ns)(void); /**< To measure cycles with; NULL: they are not. */
};

/** The table of the options, for flags and manuals. */
const struct weir_option *weir_sim_options(size_t *out_n);

/** The table's defaults. */
void weir_sim_options_init(struct weir_sim_options *options);

/**
 * Take options as people write them: "name=value", one on each line, of the table above or of the
 * scheduler's profile (weir_sched_profile_options).
 *
 * @param options  NULL: only the scheduler's are taken.
 * @return INVALID naming the option and what was expected. Texts live in the arena.
 */
weir_status weir_sim_options_set(const char *lines, struct weir_arena *arena,
                                 struct weir_sim_options *options, struct weir_sched_profile *sched,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Whether a profile is a plain policy, of which the scheduler knows nothing. */
bool weir_sim_is_policy(const char *profile);

/**
 * The scheduler's profile of a name; "default" for a plain policy. NOT_FOUND, naming all profiles
 * and policies.
 */
weir_status weir_sim_profile_named(const char *name, struct weir_sched_profile *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** What became of a job. */
struct weir_sim_job_result {
    int64_t submit_ms;
    int64_t first_start_ms, end_ms;           /**< WEIR_SIM_UNKNOWN: not in this replay. */
    int64_t ran_ms;                           /**< With its minimum running, restarts included. */
    int64_t lost_milli_ms, overhead_milli_ms; /**< Device time; in thousandths of a device × ms. */
    int32_t n_evictions;
    int32_t n_devices_milli; /**< Of all its tasks. */
    int32_t queue;           /**< In report.queues. */
};

/** A spread of times, in seconds. */
struct weir_sim_spread {
    double mean, p50, p90, p99, max;
};

/**
 * Jobs of a size. `to_start` is the time to the first start. `waiting` is all time without the
 * minimum running. `slowdown` is completion divided by run time; 1 is best. It counts all jobs that
 * were submitted. For a job that is not finished when the replay ends, its run time and what it has
 * waited so far count: the least it can become.
 */
struct weir_sim_class {
    const char *name;
    int32_t n_jobs, n_finished;
    double device_hours; /**< Asked for. */
    struct weir_sim_spread completion, to_start, waiting, slowdown;
};

struct weir_sim_queue {
    const char *name;
    double quota; /**< Devices. */
    int32_t n_jobs, n_finished, n_evictions;
    double device_hours;   /**< Held. */
    double served;         /**< Held, of its fair share or what it asked for if that is less. */
    double guarantee_kept; /**< Held, of its quota or what it asked for if that is less. */
    /** Longest that a job waited, without a break, while it would have fitted into what the queue
     *  held less than its quota, an elastic job with its minimum. */
    double longest_below_s;
    /** The same, while so much could be had: free, and for who needs whole devices not in parts of
     *  them, or held by queues beyond their quotas. The rest no reclaim can shorten. */
    double longest_unreclaimed_s;
    struct weir_sim_spread completion, waiting;
};

#define WEIR_SIM_SAMPLES 512

/** Means over a span of time, for plots. */
struct weir_sim_sample {
    int64_t from_ms;
    double allocated, running, waiting, waiting_devices; /**< Devices, jobs, jobs, devices. */
};

struct weir_sim_report {
    const char *profile;
    int32_t n_nodes, n_jobs, n_submitted, n_finished;
    int32_t n_running, n_never; /**< At the end: still run; still wait. */
    int32_t n_cut;              /**< Of the finished: ended by their time limit. */
    const char *never_reason;   /**< Of the first of them; NULL if there is none. */
    double n_devices;
    int64_t span_ms, arrivals_ms; /**< To the last event; to the last submission. */
    double allocation_pct;        /**< Of device time until the last submission. */
    double allocation_all_pct;    /**< Of device time until the last event. */
    double utilisation_pct; /**< Until the last event: held, without lost and restart time, each
                             * times how busy the job keeps its devices. */
    double jain;            /**< Of `served` over queues that asked for anything; 1 is equal. */
    int64_t n_evictions;
    double lost_device_hours, overhead_device_hours, held_device_hours;
    int64_t n_cycles, n_decisions;
    double cycle_mean_ms, cycle_p99_ms, cycle_max_ms; /**< 0 if not measured. */
    struct weir_sim_class *classes;                   /**< "all" first. */
    int32_t n_classes;
    struct weir_sim_queue *queues;
    int32_t n_queues;
    struct weir_sim_sample samples[WEIR_SIM_SAMPLES];
    int32_t n_samples;
    struct weir_sim_job_result *jobs; /**< As in the trace. */
    struct weir_arena arena;
};

/**
 * Play a trace on a cluster.
 *
 * @param out  On success a report that weir_sim_report_fini frees. Unchanged on error.
 * @return INVALID: a job without run time, an option out of range, a job in a queue that has
 *         children; NOT_FOUND: no such profile; what the scheduler refuses.
 *
 * Cost: a cycle costs what weir_sched_plan costs on the jobs that wait and run; finished jobs are
 * not looked at again. A plain policy costs O(log jobs) an event, las O(devices).
 */
weir_status weir_sim_run(const struct weir_sim_trace *trace, const struct weir_sim_cluster *cluster,
                         const struct weir_sim_options *options, struct weir_sim_report *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

void weir_sim_report_fini(struct weir_sim_report *report);

#endif
