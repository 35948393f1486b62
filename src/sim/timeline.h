/**
 * The state of a replay: what each job has done, what ends when, and the metrics. A driver
 * (policy.h, cycle.h) decides which jobs run. Every change of a job goes through here: so work,
 * time and device time are accounted for in one place.
 *
 * Work is counted in milliseconds of one task. A job with r tasks running does r of it each
 * millisecond; it ends when duration × n_tasks is done.
 */
#ifndef WEIR_SIM_TIMELINE_H
#define WEIR_SIM_TIMELINE_H

#include "sim/metrics.h"

enum timeline_state {
    TIMELINE_FUTURE, /**< Not submitted yet: its time, or the end of the job it follows, is to come.
                    */
    TIMELINE_WAITING,
    TIMELINE_RUNNING,
    TIMELINE_DONE,
};

struct timeline_job {
    enum timeline_state state;
    int32_t queue;
    int32_t n_tasks, min_tasks, n_running;
    int32_t devices_per_task, devices_rest; /**< The first devices_rest tasks have one more. */
    int64_t milli, least_milli, held_milli; /**< Of all tasks; of so many as it runs with. */
    int32_t first_follower, next_follower;  /**< Jobs to be submitted after it; -1. */
    int64_t submit_ms;                      /**< While it follows another: not before. */
    int64_t left;                           /**< Work. */
    int64_t since_ms; /**< Works, with n_running tasks, since then; may be to come. */
    int64_t held_since_ms;
    int64_t queued_ms, started_ms;
    uint32_t version; /**< Counts changes, so that events that no longer hold are known. */
    struct weir_sim_job_result result;
};

/** A job in the future is submitted then, any other one ends. */
struct timeline_event {
    int64_t at_ms;
    int32_t job;
    uint32_t version;
};

struct timeline {
    const struct weir_sim_trace *trace;
    const struct weir_sim_options *options;
    struct weir_arena *arena;
    struct timeline_job *jobs;
    struct metrics metrics;
    int64_t now_ms;
    int64_t preempt_cost_ms, checkpoint_every_ms, resize_cost_ms;
    struct timeline_event *events; /**< A heap, the next one first. */
    int32_t n_events;
    size_t events_cap;
    int32_t i_next; /**< The next job to be submitted of those that follow none. */
    int32_t n_submitted, n_done, n_cut;
    int64_t n_evictions;
    double lost, overhead; /**< Device time, milli × ms. */
    double wasted_busy;    /**< Both, times how busy the devices were kept. */
};

/** What decides which jobs run. The timeline calls it back. */
struct timeline_driver {
    void *self;
    void (*arrive)(void *self, int32_t job);
    void (*leave)(void *self, int32_t job); /**< It is done and holds nothing any more. */
    /** Something may have changed. *out_wake_ms: ask again then at the latest; INT64_MAX: only
     * after the next event. */
    weir_status (*decide)(void *self, int64_t *out_wake_ms, struct weir_error *err);
};

/**
 * Begin a replay. `node_devices`: of the largest node; it decides into how many tasks a job is
 * split. INVALID as weir_sim_run. timeline_fini frees.
 */
weir_status timeline_init(struct timeline *timeline, const struct weir_sim_trace *trace,
                          const struct weir_sim_options *options, struct weir_arena *arena,
                          int32_t node_devices, struct weir_error *err) WEIR_MUST_CHECK;
void timeline_fini(struct timeline *timeline);

/** Whether something is still to come: a submission or the end of a job. */
bool timeline_has_more(const struct timeline *timeline);

/** Whether a job was submitted before another one. */
bool timeline_is_earlier(const struct timeline *timeline, int32_t left, int32_t right);

/** Devices of one task of a job. */
int32_t timeline_task_devices(const struct timeline *timeline, int32_t job, int32_t task);

/** Let a job have n_running tasks that hold `milli`, from n_running 0 up: it starts or grows. */
void timeline_grow(struct timeline *timeline, int32_t job, int32_t n_running, int64_t milli);

/** Take tasks from a job. The rest keeps its work if it is still enough to run. */
void timeline_evict(struct timeline *timeline, int32_t job, int32_t n_running, int64_t milli);

/** Device seconds that a job has held so far. */
double timeline_attained_s(const struct timeline *timeline, int32_t job);

/**
 * Play from event to event until nothing happens any more, or the options say to end. The driver's
 * error.
 */
weir_status timeline_run(struct timeline *timeline, const struct timeline_driver *driver,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
