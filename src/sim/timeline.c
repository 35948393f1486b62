#include "sim/timeline.h"
#include "base/grow.h"

#include <stdlib.h>

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_before(const struct timeline_event *left, const struct timeline_event *right)
{
    return left->at_ms != right->at_ms ? left->at_ms < right->at_ms : left->job < right->job;
}

static void push_event(struct timeline *timeline, struct timeline_event event)
{
    weir_xgrow(&timeline->events, sizeof *timeline->events, (size_t)timeline->n_events,
               &timeline->events_cap);
    int32_t at = timeline->n_events++;
    for (; at > 0 && is_before(&event, &timeline->events[(at - 1) / 2]); at = (at - 1) / 2) {
        timeline->events[at] = timeline->events[(at - 1) / 2];
    }
    timeline->events[at] = event;
}

static void pop_event(struct timeline *timeline)
{
    struct timeline_event last = timeline->events[--timeline->n_events];
    int32_t at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= timeline->n_events) {
            break;
        }
        if (child + 1 < timeline->n_events &&
            is_before(&timeline->events[child + 1], &timeline->events[child])) {
            child++;
        }
        if (!is_before(&timeline->events[child], &last)) {
            break;
        }
        timeline->events[at] = timeline->events[child];
        at = child;
    }
    timeline->events[at] = last;
}

/** Events of jobs that changed since do not hold any more. */
static void drop_stale_events(struct timeline *timeline)
{
    while (timeline->n_events > 0 &&
           timeline->jobs[timeline->events[0].job].version != timeline->events[0].version) {
        pop_event(timeline);
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool is_working(const struct timeline_job *job)
{
    return job->n_running >= job->min_tasks;
}

/** Bring a running job's accounts up to now. `is_lost`: what no checkpoint holds is undone. */
static void settle(struct timeline *timeline, struct timeline_job *job, bool is_lost)
{
    int64_t now = timeline->now_ms;
    if (is_working(job) && job->state == TIMELINE_RUNNING) {
        int64_t held_ms = now - job->held_since_ms;
        int64_t worked_ms = WEIR_MAX(0, now - job->since_ms);
        int64_t paused_ms = held_ms - worked_ms;
        int64_t every = timeline->checkpoint_every_ms;
        int64_t undone_ms = !is_lost ? 0 : every > 0 ? worked_ms % every : worked_ms;
        job->left -= (worked_ms - undone_ms) * job->n_running;
        job->left = WEIR_MAX(job->left, 0);
        job->result.ran_ms += held_ms;
        job->result.lost_milli_ms += undone_ms * job->held_milli;
        job->result.overhead_milli_ms += paused_ms * job->held_milli;
    } else {
        job->result.overhead_milli_ms += (now - job->held_since_ms) * job->held_milli;
    }
    job->held_since_ms = now;
    job->since_ms = WEIR_MAX(job->since_ms, now);
}

static void expect_end(struct timeline *timeline, int32_t index)
{
    struct timeline_job *job = &timeline->jobs[index];
    job->version++;
    if (is_working(job) && job->n_running > 0) {
        int64_t needs_ms = (job->left + job->n_running - 1) / job->n_running;
        int64_t limit_ms = timeline->trace->jobs[index].time_limit_ms;
        int64_t end_ms = job->since_ms + needs_ms;
        if (limit_ms > 0) {
            end_ms = WEIR_MIN(end_ms, job->started_ms + limit_ms);
        }
        push_event(timeline, (struct timeline_event){end_ms, index, job->version});
    }
}

static void hold(struct timeline *timeline, int32_t index, int64_t milli)
{
    struct timeline_job *job = &timeline->jobs[index];
    metrics_hold(&timeline->metrics, job->queue, milli - job->held_milli,
                 timeline->trace->jobs[index].busy_pct);
    job->held_milli = milli;
}

int32_t timeline_task_devices(const struct timeline *timeline, int32_t index, int32_t task)
{
    const struct timeline_job *job = &timeline->jobs[index];
    return job->devices_per_task + (task < job->devices_rest);
}

void timeline_grow(struct timeline *timeline, int32_t index, int32_t n_running, int64_t milli)
{
    struct timeline_job *job = &timeline->jobs[index];
    bool was_waiting = job->state == TIMELINE_WAITING, was_working = is_working(job);
    settle(timeline, job, false);
    job->n_running = n_running;
    hold(timeline, index, milli);
    if (was_waiting && is_working(job)) {
        job->state = TIMELINE_RUNNING;
        metrics_wait_end(&timeline->metrics, index);
        timeline->metrics.n_running++;
        job->started_ms = timeline->now_ms;
        job->since_ms =
            timeline->now_ms + (job->result.n_evictions > 0 ? timeline->preempt_cost_ms : 0);
        if (job->result.first_start_ms == WEIR_SIM_UNKNOWN) {
            job->result.first_start_ms = timeline->now_ms;
        }
    } else if (was_working) {
        job->since_ms = WEIR_MAX(job->since_ms, timeline->now_ms + timeline->resize_cost_ms);
    }
    expect_end(timeline, index);
}

void timeline_evict(struct timeline *timeline, int32_t index, int32_t n_running, int64_t milli)
{
    struct timeline_job *job = &timeline->jobs[index];
    bool stops = n_running < job->min_tasks;
    settle(timeline, job, stops);
    job->n_running = n_running;
    hold(timeline, index, milli);
    if (stops && job->state == TIMELINE_RUNNING) {
        job->state = TIMELINE_WAITING;
        metrics_wait(&timeline->metrics, index, job->queue, job->milli, job->least_milli);
        timeline->metrics.n_running--;
        job->queued_ms = timeline->now_ms;
        job->started_ms = 0;
        job->result.n_evictions++;
        timeline->n_evictions++;
    } else if (!stops) {
        job->since_ms = WEIR_MAX(job->since_ms, timeline->now_ms + timeline->resize_cost_ms);
    }
    expect_end(timeline, index);
}

double timeline_attained_s(const struct timeline *timeline, int32_t index)
{
    const struct timeline_job *job = &timeline->jobs[index];
    double ran_ms = (double)job->result.ran_ms;
    if (job->state == TIMELINE_RUNNING) {
        ran_ms += (double)(timeline->now_ms - job->held_since_ms);
    }
    return ran_ms * (double)job->milli / 1e6;
}

/** Lost work and restarts of a job whose account is settled for the last time. */
static void add_waste(struct timeline *timeline, int32_t index)
{
    const struct weir_sim_job_result *result = &timeline->jobs[index].result;
    double lost = (double)result->lost_milli_ms, overhead = (double)result->overhead_milli_ms;
    timeline->lost += lost;
    timeline->overhead += overhead;
    timeline->wasted_busy += (lost + overhead) * timeline->trace->jobs[index].busy_pct / 100;
}

static void call_followers(struct timeline *timeline, int32_t index)
{
    for (int32_t f = timeline->jobs[index].first_follower; f >= 0;
         f = timeline->jobs[f].next_follower) {
        int64_t at_ms = timeline->now_ms + timeline->trace->jobs[f].think_ms;
        at_ms = WEIR_MAX(at_ms, timeline->jobs[f].submit_ms);
        push_event(timeline, (struct timeline_event){at_ms, f, timeline->jobs[f].version});
    }
}

static void finish(struct timeline *timeline, int32_t index)
{
    struct timeline_job *job = &timeline->jobs[index];
    settle(timeline, job, false);
    hold(timeline, index, 0);
    timeline->metrics.n_running--;
    timeline->n_cut += job->left > 0;
    job->state = TIMELINE_DONE;
    job->n_running = 0;
    job->version++;
    job->result.end_ms = timeline->now_ms;
    timeline->n_done++;
    add_waste(timeline, index);
    call_followers(timeline, index);
}

/* ---- the run --------------------------------------------------------------------------------- */

static weir_status check_job(const struct weir_sim_job *job, struct weir_error *err)
{
    if (job->duration_ms == WEIR_SIM_UNKNOWN) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "job \"%.80s\" has no run time: a replay needs a duration for each "
                              "job; add it to the trace",
                              job->name);
    }
    return WEIR_OK;
}

/** How a job that is given as a whole falls into tasks. */
static void split(struct timeline_job *job, const struct weir_sim_job *given, int32_t node_devices)
{
    job->n_tasks = given->n_tasks;
    job->devices_per_task = given->n_devices;
    if (given->n_tasks == 0) {
        int32_t largest = WEIR_MAX(1, node_devices);
        job->n_tasks = WEIR_MAX(1, (given->n_devices + largest - 1) / largest);
        job->devices_per_task = given->n_devices / job->n_tasks;
        job->devices_rest = given->n_devices % job->n_tasks;
    }
    job->min_tasks = given->min_tasks > 0 ? given->min_tasks : job->n_tasks;
    int64_t n_devices = (int64_t)job->devices_per_task * job->n_tasks + job->devices_rest;
    job->milli = n_devices * given->device_milli;
    int64_t n_least = (int64_t)job->devices_per_task * job->min_tasks +
                      WEIR_MIN(job->devices_rest, job->min_tasks);
    job->least_milli = n_least * given->device_milli;
}

static void follow(struct timeline *timeline, int32_t index)
{
    int32_t after = timeline->trace->jobs[index].after;
    if (after >= 0) {
        timeline->jobs[index].next_follower = timeline->jobs[after].first_follower;
        timeline->jobs[after].first_follower = index;
    }
}

weir_status timeline_init(struct timeline *timeline, const struct weir_sim_trace *trace,
                          const struct weir_sim_options *options, struct weir_arena *arena,
                          int32_t node_devices, struct weir_error *err)
{
    *timeline = (struct timeline){
        .trace = trace,
        .options = options,
        .arena = arena,
        .preempt_cost_ms = (int64_t)(options->preempt_cost_s * 1000),
        .checkpoint_every_ms = (int64_t)(options->checkpoint_every_s * 1000),
        .resize_cost_ms = (int64_t)(options->resize_cost_s * 1000),
    };
    timeline->jobs = WEIR_ARENA_ARRAY(arena, (size_t)trace->n_jobs, struct timeline_job);
    int64_t start_ms = trace->n_jobs > 0 ? trace->jobs[0].submit_ms : 0;
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        const struct weir_sim_job *given = &trace->jobs[j];
        struct timeline_job *job = &timeline->jobs[j];
        WEIR_TRY(check_job(given, err));
        split(job, given, node_devices);
        job->first_follower = job->next_follower = -1;
        follow(timeline, j); /* whom it follows has a smaller index */
        job->submit_ms = given->submit_ms - start_ms;
        job->queued_ms = job->result.submit_ms = job->submit_ms;
        if (given->duration_ms > INT64_MAX / 4 / WEIR_MAX(job->n_tasks, 1) ||
            job->milli > (int64_t)1 << 40) {
            return weir_error_set(err, WEIR_ERR_INVALID, "job \"%.80s\" is too large", given->name);
        }
        job->left = given->duration_ms * job->n_tasks;
        job->result.first_start_ms = job->result.end_ms = WEIR_SIM_UNKNOWN;
        job->result.n_devices_milli = (int32_t)WEIR_MIN(job->milli, INT32_MAX);
    }
    return WEIR_OK;
}

void timeline_fini(struct timeline *timeline)
{
    free(timeline->events);
}

bool timeline_is_earlier(const struct timeline *timeline, int32_t left, int32_t right)
{
    int64_t a = timeline->jobs[left].submit_ms, b = timeline->jobs[right].submit_ms;
    return a != b ? a < b : left < right;
}

bool timeline_has_more(const struct timeline *timeline)
{
    return timeline->i_next < timeline->trace->n_jobs || timeline->n_events > 0;
}

static void submit(struct timeline *timeline, int32_t index, const struct timeline_driver *driver)
{
    struct timeline_job *job = &timeline->jobs[index];
    job->state = TIMELINE_WAITING;
    job->submit_ms = job->queued_ms = job->result.submit_ms = timeline->now_ms;
    timeline->n_submitted++;
    metrics_arrive(&timeline->metrics);
    metrics_wait(&timeline->metrics, index, job->queue, job->milli, job->least_milli);
    driver->arrive(driver->self, index);
}

static void pass_over_followers(struct timeline *timeline)
{
    const struct weir_sim_trace *trace = timeline->trace;
    while (timeline->i_next < trace->n_jobs && trace->jobs[timeline->i_next].after >= 0) {
        timeline->i_next++;
    }
}

static void take_events(struct timeline *timeline, const struct timeline_driver *driver)
{
    drop_stale_events(timeline);
    while (timeline->n_events > 0 && timeline->events[0].at_ms <= timeline->now_ms) {
        int32_t job = timeline->events[0].job;
        pop_event(timeline);
        if (timeline->jobs[job].state == TIMELINE_FUTURE) {
            submit(timeline, job, driver);
        } else {
            finish(timeline, job);
            driver->leave(driver->self, job);
        }
        drop_stale_events(timeline);
    }
    while (timeline->i_next < timeline->trace->n_jobs &&
           timeline->jobs[timeline->i_next].submit_ms <= timeline->now_ms) {
        submit(timeline, timeline->i_next++, driver);
        pass_over_followers(timeline);
    }
}

/** What jobs have done that are not at their end. */
static void close_accounts(struct timeline *timeline)
{
    metrics_finish(&timeline->metrics);
    for (int32_t j = 0; j < timeline->trace->n_jobs; j++) {
        struct timeline_job *job = &timeline->jobs[j];
        if (job->state == TIMELINE_WAITING || job->state == TIMELINE_RUNNING) {
            settle(timeline, job, false);
            add_waste(timeline, j);
        }
    }
}

static void report_progress(const struct timeline *timeline, int32_t *next)
{
    const struct weir_sim_options *options = timeline->options;
    if (options->progress != NULL && timeline->n_done >= *next) {
        options->progress(options->progress_context, timeline->n_done, timeline->trace->n_jobs,
                          timeline->now_ms);
        *next = timeline->n_done + WEIR_MAX(1, timeline->trace->n_jobs / 100);
    }
}

weir_status timeline_run(struct timeline *timeline, const struct timeline_driver *driver,
                         struct weir_error *err)
{
    int64_t wake_ms = INT64_MAX, until_ms = (int64_t)(timeline->options->until_s * 1000);
    int32_t next_progress = 0;
    for (;;) {
        int64_t at_ms = wake_ms;
        drop_stale_events(timeline);
        if (timeline->n_events > 0) {
            at_ms = WEIR_MIN(at_ms, timeline->events[0].at_ms);
        }
        if (timeline->i_next < timeline->trace->n_jobs) {
            at_ms = WEIR_MIN(at_ms, timeline->jobs[timeline->i_next].submit_ms);
        }
        bool is_end = at_ms == INT64_MAX;
        if (until_ms > 0 && at_ms >= until_ms) {
            is_end = true;
            metrics_advance(&timeline->metrics, until_ms);
            timeline->now_ms = until_ms;
        }
        if (is_end) {
            close_accounts(timeline);
            return WEIR_OK;
        }
        metrics_advance(&timeline->metrics, at_ms);
        timeline->now_ms = at_ms;
        take_events(timeline, driver);
        WEIR_TRY(driver->decide(driver->self, &wake_ms, err));
        report_progress(timeline, &next_progress);
    }
}
