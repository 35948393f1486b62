#include "sim/engine.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_before(const struct engine_event *left, const struct engine_event *right)
{
    return left->at_ms != right->at_ms ? left->at_ms < right->at_ms : left->job < right->job;
}

static void push_event(struct engine *engine, struct engine_event event)
{
    weir_xgrow(&engine->events, sizeof *engine->events, (size_t)engine->n_events,
               &engine->events_cap);
    int32_t at = engine->n_events++;
    for (; at > 0 && is_before(&event, &engine->events[(at - 1) / 2]); at = (at - 1) / 2) {
        engine->events[at] = engine->events[(at - 1) / 2];
    }
    engine->events[at] = event;
}

static void pop_event(struct engine *engine)
{
    struct engine_event last = engine->events[--engine->n_events];
    int32_t at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= engine->n_events) {
            break;
        }
        if (child + 1 < engine->n_events &&
            is_before(&engine->events[child + 1], &engine->events[child])) {
            child++;
        }
        if (!is_before(&engine->events[child], &last)) {
            break;
        }
        engine->events[at] = engine->events[child];
        at = child;
    }
    engine->events[at] = last;
}

/** Events of jobs that changed since do not hold any more. */
static void drop_stale_events(struct engine *engine)
{
    while (engine->n_events > 0 &&
           engine->jobs[engine->events[0].job].version != engine->events[0].version) {
        pop_event(engine);
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool is_working(const struct engine_job *job)
{
    return job->n_running >= job->min_tasks;
}

/** Bring a running job's accounts up to now. `is_lost`: what no checkpoint holds is undone. */
static void settle(struct engine *engine, struct engine_job *job, bool is_lost)
{
    int64_t now = engine->now_ms;
    if (is_working(job) && job->state == ENGINE_RUNNING) {
        int64_t held_ms = now - job->held_since_ms;
        int64_t worked_ms = WEIR_MAX(0, now - job->since_ms);
        int64_t paused_ms = held_ms - worked_ms;
        int64_t every = engine->checkpoint_every_ms;
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

static void expect_end(struct engine *engine, int32_t index)
{
    struct engine_job *job = &engine->jobs[index];
    job->version++;
    if (is_working(job) && job->n_running > 0) {
        int64_t needs_ms = (job->left + job->n_running - 1) / job->n_running;
        int64_t limit_ms = engine->trace->jobs[index].time_limit_ms;
        int64_t end_ms = job->since_ms + needs_ms;
        if (limit_ms > 0) {
            end_ms = WEIR_MIN(end_ms, job->started_ms + limit_ms);
        }
        push_event(engine, (struct engine_event){end_ms, index, job->version});
    }
}

static void hold(struct engine *engine, int32_t index, int64_t milli)
{
    struct engine_job *job = &engine->jobs[index];
    metrics_hold(&engine->metrics, job->queue, milli - job->held_milli,
                 engine->trace->jobs[index].busy_pct);
    job->held_milli = milli;
}

int32_t engine_task_devices(const struct engine *engine, int32_t index, int32_t task)
{
    const struct engine_job *job = &engine->jobs[index];
    return job->devices_per_task + (task < job->devices_rest);
}

void engine_grow(struct engine *engine, int32_t index, int32_t n_running, int64_t milli)
{
    struct engine_job *job = &engine->jobs[index];
    bool was_waiting = job->state == ENGINE_WAITING, was_working = is_working(job);
    settle(engine, job, false);
    job->n_running = n_running;
    hold(engine, index, milli);
    if (was_waiting && is_working(job)) {
        job->state = ENGINE_RUNNING;
        metrics_wait_end(&engine->metrics, index);
        engine->metrics.n_running++;
        job->started_ms = engine->now_ms;
        job->since_ms =
            engine->now_ms + (job->result.n_evictions > 0 ? engine->preempt_cost_ms : 0);
        if (job->result.first_start_ms == WEIR_SIM_UNKNOWN) {
            job->result.first_start_ms = engine->now_ms;
        }
    } else if (was_working) {
        job->since_ms = WEIR_MAX(job->since_ms, engine->now_ms + engine->resize_cost_ms);
    }
    expect_end(engine, index);
}

void engine_evict(struct engine *engine, int32_t index, int32_t n_running, int64_t milli)
{
    struct engine_job *job = &engine->jobs[index];
    bool stops = n_running < job->min_tasks;
    settle(engine, job, stops);
    job->n_running = n_running;
    hold(engine, index, milli);
    if (stops && job->state == ENGINE_RUNNING) {
        job->state = ENGINE_WAITING;
        metrics_wait(&engine->metrics, index, job->queue, job->milli, job->least_milli);
        engine->metrics.n_running--;
        job->queued_ms = engine->now_ms;
        job->started_ms = 0;
        job->result.n_evictions++;
        engine->n_evictions++;
    } else if (!stops) {
        job->since_ms = WEIR_MAX(job->since_ms, engine->now_ms + engine->resize_cost_ms);
    }
    expect_end(engine, index);
}

double engine_attained_s(const struct engine *engine, int32_t index)
{
    const struct engine_job *job = &engine->jobs[index];
    double ran_ms = (double)job->result.ran_ms;
    if (job->state == ENGINE_RUNNING) {
        ran_ms += (double)(engine->now_ms - job->held_since_ms);
    }
    return ran_ms * (double)job->milli / 1e6;
}

int64_t engine_waited_ms(const struct engine *engine, int32_t index)
{
    const struct engine_job *job = &engine->jobs[index];
    int64_t running_ms = job->state == ENGINE_RUNNING ? engine->now_ms - job->held_since_ms : 0;
    return engine->now_ms - job->submit_ms - job->result.ran_ms - running_ms;
}

/** Lost work and restarts of a job whose account is settled for the last time. */
static void add_waste(struct engine *engine, int32_t index)
{
    const struct weir_sim_job_result *result = &engine->jobs[index].result;
    double lost = (double)result->lost_milli_ms, overhead = (double)result->overhead_milli_ms;
    engine->lost += lost;
    engine->overhead += overhead;
    engine->wasted_busy += (lost + overhead) * engine->trace->jobs[index].busy_pct / 100;
}

static void call_followers(struct engine *engine, int32_t index)
{
    for (int32_t f = engine->jobs[index].first_follower; f >= 0;
         f = engine->jobs[f].next_follower) {
        int64_t at_ms = engine->now_ms + engine->trace->jobs[f].think_ms;
        at_ms = WEIR_MAX(at_ms, engine->jobs[f].submit_ms);
        push_event(engine, (struct engine_event){at_ms, f, engine->jobs[f].version});
    }
}

static void finish(struct engine *engine, int32_t index)
{
    struct engine_job *job = &engine->jobs[index];
    settle(engine, job, false);
    hold(engine, index, 0);
    engine->metrics.n_running--;
    engine->n_cut += job->left > 0;
    job->state = ENGINE_DONE;
    job->n_running = 0;
    job->version++;
    job->result.end_ms = engine->now_ms;
    engine->n_done++;
    add_waste(engine, index);
    call_followers(engine, index);
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
static void split(struct engine_job *job, const struct weir_sim_job *given, int32_t node_devices)
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

static void follow(struct engine *engine, int32_t index)
{
    int32_t after = engine->trace->jobs[index].after;
    if (after >= 0) {
        engine->jobs[index].next_follower = engine->jobs[after].first_follower;
        engine->jobs[after].first_follower = index;
    }
}

weir_status engine_init(struct engine *engine, const struct weir_sim_trace *trace,
                        const struct weir_sim_options *options, struct weir_arena *arena,
                        int32_t node_devices, struct weir_error *err)
{
    *engine = (struct engine){
        .trace = trace,
        .options = options,
        .arena = arena,
        .preempt_cost_ms = (int64_t)(options->preempt_cost_s * 1000),
        .checkpoint_every_ms = (int64_t)(options->checkpoint_every_s * 1000),
        .resize_cost_ms = (int64_t)(options->resize_cost_s * 1000),
    };
    engine->jobs = WEIR_ARENA_ARRAY(arena, (size_t)trace->n_jobs, struct engine_job);
    int64_t start_ms = trace->n_jobs > 0 ? trace->jobs[0].submit_ms : 0;
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        const struct weir_sim_job *given = &trace->jobs[j];
        struct engine_job *job = &engine->jobs[j];
        WEIR_TRY(check_job(given, err));
        split(job, given, node_devices);
        job->first_follower = job->next_follower = -1;
        follow(engine, j); /* whom it follows has a smaller index */
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

void engine_fini(struct engine *engine)
{
    free(engine->events);
}

bool engine_is_earlier(const struct engine *engine, int32_t left, int32_t right)
{
    int64_t a = engine->jobs[left].submit_ms, b = engine->jobs[right].submit_ms;
    return a != b ? a < b : left < right;
}

bool engine_has_more(const struct engine *engine)
{
    return engine->i_next < engine->trace->n_jobs || engine->n_events > 0;
}

static void submit(struct engine *engine, int32_t index, const struct engine_driver *driver)
{
    struct engine_job *job = &engine->jobs[index];
    job->state = ENGINE_WAITING;
    job->submit_ms = job->queued_ms = job->result.submit_ms = engine->now_ms;
    engine->n_submitted++;
    metrics_arrive(&engine->metrics);
    metrics_wait(&engine->metrics, index, job->queue, job->milli, job->least_milli);
    driver->arrive(driver->self, index);
}

static void pass_over_followers(struct engine *engine)
{
    const struct weir_sim_trace *trace = engine->trace;
    while (engine->i_next < trace->n_jobs && trace->jobs[engine->i_next].after >= 0) {
        engine->i_next++;
    }
}

static void take_events(struct engine *engine, const struct engine_driver *driver)
{
    drop_stale_events(engine);
    while (engine->n_events > 0 && engine->events[0].at_ms <= engine->now_ms) {
        int32_t job = engine->events[0].job;
        pop_event(engine);
        if (engine->jobs[job].state == ENGINE_FUTURE) {
            submit(engine, job, driver);
        } else {
            finish(engine, job);
            driver->leave(driver->self, job);
        }
        drop_stale_events(engine);
    }
    while (engine->i_next < engine->trace->n_jobs &&
           engine->jobs[engine->i_next].submit_ms <= engine->now_ms) {
        submit(engine, engine->i_next++, driver);
        pass_over_followers(engine);
    }
}

/** What jobs have done that are not at their end. */
static void close_accounts(struct engine *engine)
{
    metrics_finish(&engine->metrics);
    for (int32_t j = 0; j < engine->trace->n_jobs; j++) {
        struct engine_job *job = &engine->jobs[j];
        if (job->state == ENGINE_WAITING || job->state == ENGINE_RUNNING) {
            settle(engine, job, false);
            add_waste(engine, j);
        }
    }
}

static void report_progress(const struct engine *engine, int32_t *next)
{
    const struct weir_sim_options *options = engine->options;
    if (options->progress != NULL && engine->n_done >= *next) {
        options->progress(options->progress_context, engine->n_done, engine->trace->n_jobs,
                          engine->now_ms);
        *next = engine->n_done + WEIR_MAX(1, engine->trace->n_jobs / 100);
    }
}

weir_status engine_run(struct engine *engine, const struct engine_driver *driver,
                       struct weir_error *err)
{
    int64_t wake_ms = INT64_MAX, until_ms = (int64_t)(engine->options->until_s * 1000);
    int32_t next_progress = 0;
    for (;;) {
        int64_t at_ms = wake_ms;
        drop_stale_events(engine);
        if (engine->n_events > 0) {
            at_ms = WEIR_MIN(at_ms, engine->events[0].at_ms);
        }
        if (engine->i_next < engine->trace->n_jobs) {
            at_ms = WEIR_MIN(at_ms, engine->jobs[engine->i_next].submit_ms);
        }
        bool is_end = at_ms == INT64_MAX;
        if (until_ms > 0 && at_ms >= until_ms) {
            is_end = true;
            metrics_advance(&engine->metrics, until_ms);
            engine->now_ms = until_ms;
        }
        if (is_end) {
            close_accounts(engine);
            return WEIR_OK;
        }
        metrics_advance(&engine->metrics, at_ms);
        engine->now_ms = at_ms;
        take_events(engine, driver);
        WEIR_TRY(driver->decide(driver->self, &wake_ms, err));
        report_progress(engine, &next_progress);
    }
}
