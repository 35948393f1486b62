/** A sweep and a cluster that exists in memory only: jobs that begin, measure, end and are stopped. Only
 *  tests include this (Check). */
#ifndef WEIR_SWEEP_SWEEP_FIXTURE_H
#define WEIR_SWEEP_SWEEP_FIXTURE_H

#include "base/rng.h"
#include "base/test_main.h"
#include "sweep/method.h"
#include "sweep/step.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/** What a trial has come to after so much work: `values` are its parameters. */
typedef double (*sweep_curve_fn)(const json_t *values, double resource, int64_t trial);

struct sweep_job {
    bool is_wanted, is_there, is_told_to_stop, is_told_to_wait, is_held, is_over;
    const char *state;
    int64_t n_done;            /**< Work, in whole steps. */
    int64_t n_seen;            /**< Of it, what has been observed. */
    int64_t n_made, n_stopped; /**< How often it was started and told to stop. */
    int64_t n_gone_on;         /**< How often it was let go on from a rung. */
    json_t *values;
};

struct sweep_world {
    struct weir_arena arena;
    struct weir_sweep_state state;
    struct sweep_job *jobs; /**< By number. */
    sweep_curve_fn curve;
    int64_t length; /**< Work after which a job ends by itself. */
    int64_t now_ms, work;
    struct weir_sweep_actions last;
};

static inline void world_apply(struct sweep_world *world, const struct weir_sweep_event *event)
{
    struct weir_error err = {0};
    world->last = (struct weir_sweep_actions){0};
    ck_assert_msg(weir_sweep_step(&world->state, event, world->now_ms, &world->arena, &world->last,
                                  &err) == WEIR_OK,
                  "%s", err.message);
    for (size_t i = 0; i < world->last.n; i++) {
        const struct weir_sweep_action *action = &world->last.items[i];
        struct sweep_job *job = &world->jobs[action->trial];
        if (action->type == WEIR_SWEEP_ACTION_START) {
            job->is_wanted = true;
        } else if (action->type == WEIR_SWEEP_ACTION_STOP) {
            job->is_told_to_stop = true;
            job->n_stopped++;
        } else if (action->type == WEIR_SWEEP_ACTION_HOLD) {
            job->is_told_to_wait = true;
        } else if (action->type == WEIR_SWEEP_ACTION_GO_ON) {
            job->is_told_to_wait = job->is_held = false;
            job->state = job->is_over ? job->state : "RUNNING";
            job->n_gone_on++;
        }
    }
}

static inline void world_open(struct sweep_world *world, const char *document, sweep_curve_fn curve,
                              int64_t length)
{
    struct weir_error err = {0};
    *world = (struct sweep_world){.curve = curve, .length = length, .now_ms = 1000};
    weir_arena_init(&world->arena, 0);
    json_error_t why;
    json_t *object = json_loads(document, 0, &why);
    ck_assert_msg(object != NULL, "%s in %s", why.text, document);
    ck_assert_msg(weir_sweep_begin(object, "ann", world->now_ms, &world->arena, &world->state,
                                   &err) == WEIR_OK,
                  "%s", err.message);
    json_decref(object);
    world->jobs =
        WEIR_ARENA_ARRAY(&world->arena, (size_t)world->state.doc.n_trials + 1, struct sweep_job);
    world_apply(world, &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_TICK});
}

static inline void world_close(struct sweep_world *world)
{
    for (int64_t i = 1; i <= world->state.doc.n_trials; i++) {
        json_decref(world->jobs[i].values);
    }
    weir_sweep_state_fini(&world->state);
    weir_arena_fini(&world->arena);
}

/* What the outbox does: the jobs that are wanted are made. */
static inline void world_start(struct sweep_world *world, int64_t number)
{
    struct sweep_job *job = &world->jobs[number];
    const struct weir_sweep_trial *row = &world->state.trials[number - 1].row;
    job->is_wanted = false;
    if (strcmp(row->state, "WANTED") != 0) {
        return;
    }
    job->is_there = true;
    job->n_made++;
    job->state = "RUNNING";
    job->values = json_loads(row->parameters, 0, NULL);
    char *id = weir_arena_printf(&world->arena, "job-%d", (int)number);
    world_apply(world,
                &(struct weir_sweep_event){
                    .type = WEIR_SWEEP_EVENT_STARTED, .trial = number, .job = id, .run = id});
}

/* Every job does one more step of work, or ends. */
static inline void world_work(struct sweep_world *world)
{
    for (int64_t i = 1; i <= (int64_t)world->state.n_trials; i++) {
        struct sweep_job *job = &world->jobs[i];
        if (!job->is_there || job->is_over) {
            continue;
        }
        if (job->is_told_to_stop) {
            job->is_over = true;
            job->state = "CANCELLED";
            continue;
        }
        if (job->is_told_to_wait) { /* one more step until it has heard of it, then no more */
            job->is_held = true;
            job->state = "PENDING";
        }
        if (job->is_held) {
            continue;
        }
        job->n_done++;
        world->work++;
        if (job->n_done == world->length) {
            job->is_over = true;
            job->state = "SUCCEEDED";
        }
    }
}

static inline struct weir_sweep_observation world_observe(struct sweep_world *world, int64_t number)
{
    struct sweep_job *job = &world->jobs[number];
    const struct weir_sweep_trial *row = &world->state.trials[number - 1].row;
    bool waits = strcmp(row->state, "PAUSING") == 0 || strcmp(row->state, "PAUSED") == 0;
    if (!weir_sweep_rungs_wait(&world->state.doc.rungs)) {
        job->n_seen = WEIR_MAX(job->n_seen, row->step);
    } else {
        job->n_seen = WEIR_MAX(row->step, (int64_t)0);
    }
    size_t n = waits && !job->is_over ? 0 : (size_t)(job->n_done - job->n_seen);
    struct weir_sweep_measure *measures =
        WEIR_ARENA_ARRAY(&world->arena, n + 1, struct weir_sweep_measure);
    for (size_t i = 0; i < n; i++) {
        int64_t step = job->n_seen + 1 + (int64_t)i;
        measures[i] = (struct weir_sweep_measure){step, (double)step,
                                                  world->curve(job->values, (double)step, number)};
    }
    job->n_seen += (int64_t)n;
    return (struct weir_sweep_observation){
        .trial = number,
        .job_state = job->state,
        .is_held = job->is_held,
        .has_begun = true,
        .measures = measures,
        .n_measures = n,
        .last_value = (double)NAN,
    };
}

/* Look at all open trials with a job. */
static inline void world_look(struct sweep_world *world)
{
    struct weir_sweep_observation *seen =
        WEIR_ARENA_ARRAY(&world->arena, world->state.n_trials + 1, struct weir_sweep_observation);
    size_t n = 0;
    for (int64_t i = 1; i <= (int64_t)world->state.n_trials; i++) {
        if (world->jobs[i].is_there && weir_sweep_trial_is_open(&world->state.trials[i - 1].row)) {
            seen[n++] = world_observe(world, i);
        }
    }
    world_apply(world, &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_TICK,
                                                  .observations = seen,
                                                  .n_observations = n});
}

static inline void world_start_all(struct sweep_world *world)
{
    for (int64_t i = 1; i <= world->state.doc.n_trials; i++) {
        if (world->jobs[i].is_wanted) {
            world_start(world, i);
        }
    }
}

/* A cluster that does what it should, until the sweep is over. */
static inline void world_run(struct sweep_world *world)
{
    for (int i = 0; i < 1000000 && !weir_sweep_is_over(&world->state.sweep); i++) {
        world_start_all(world);
        world_work(world);
        world_look(world);
    }
    ck_assert(weir_sweep_is_over(&world->state.sweep));
}

#endif
