#include "sweep/step.h"

#include "base/grow.h"
#include "sweep/method.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct stepping {
    struct weir_sweep_state *state;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_sweep_actions *actions;
};

static void act(struct stepping *step, struct weir_sweep_action action)
{
    struct weir_sweep_actions *actions = step->actions;
    weir_arena_grow(step->arena, &actions->items, sizeof *actions->items, actions->n,
                    &actions->cap);
    actions->items[actions->n++] = action;
}

static bool is_state(const char *state, const char *text)
{
    return state != NULL && strcmp(state, text) == 0;
}

static void set_state(struct stepping *step, struct weir_sweep_trial_state *trial,
                      const char *state, const char *reason)
{
    trial->row.state = weir_arena_strdup(step->arena, state);
    trial->row.reason = weir_arena_strdup(step->arena, reason);
    trial->is_changed = true;
}

/* ---- the end of a trial ---------------------------------------------------------------------- */

static void end_trial(struct stepping *step, struct weir_sweep_trial_state *trial,
                      const char *state, const char *reason)
{
    set_state(step, trial, state, reason);
    trial->row.ends_as = NULL;
    trial->row.ended_ms = step->now_ms;
}

/* Its job is told to end; what it then was is known already. */
static void stop_trial(struct stepping *step, struct weir_sweep_trial_state *trial,
                       const char *ends_as, const char *reason)
{
    if (is_state(trial->row.state, "WANTED")) {
        end_trial(step, trial, ends_as, reason); /* there is no job, and there will be none */
        return;
    }
    set_state(step, trial, "STOPPING", reason);
    trial->row.ends_as = weir_arena_strdup(step->arena, ends_as);
    act(step, (struct weir_sweep_action){.type = WEIR_SWEEP_ACTION_STOP,
                                         .trial = trial->row.number,
                                         .message = trial->row.reason});
}

/* Its job waits at the rung until it is among the best. */
static void pause_trial(struct stepping *step, struct weir_sweep_trial_state *trial,
                        const char *reason)
{
    set_state(step, trial, "PAUSING", reason);
    act(step, (struct weir_sweep_action){.type = WEIR_SWEEP_ACTION_HOLD,
                                         .trial = trial->row.number,
                                         .message = trial->row.reason});
}

/* Its job is over, or gone. */
static void note_job_end(struct stepping *step, struct weir_sweep_trial_state *trial,
                         const struct weir_sweep_observation *seen)
{
    bool is_good = is_state(seen->job_state, "SUCCEEDED");
    const struct weir_sweep_doc *doc = &step->state->doc;
    bool was_stopped = is_state(trial->row.state, "STOPPING");
    if (is_good && !was_stopped && !isnan(seen->last_value) &&
        (!doc->takes_best ||
         weir_sweep_is_better(seen->last_value, trial->row.value, doc->maximizes))) {
        trial->row.value = seen->last_value;
    }
    if (was_stopped) {
        end_trial(step, trial, trial->row.ends_as, trial->row.reason);
    } else if (is_good && isnan(trial->row.value)) {
        end_trial(
            step, trial, "FAILED",
            weir_arena_printf(step->arena, "its job ended without metric \"%.80s\"", doc->metric));
    } else if (is_good) {
        end_trial(step, trial, "SUCCEEDED", NULL);
    } else if (is_state(seen->job_state, "CANCELLED")) {
        end_trial(step, trial, "CANCELLED", seen->job_reason);
    } else {
        end_trial(step, trial, "FAILED",
                  seen->job_state == NULL    ? "its job is not there any more"
                  : seen->job_reason != NULL ? seen->job_reason
                                             : "its job failed");
    }
}

/* ---- measurements and rungs ------------------------------------------------------------------ */

/* Of the trials that have come to rung k, by number. @return How many; *out_own: the trial's place. */
static size_t values_at(const struct weir_sweep_state *state, size_t k,
                        const struct weir_sweep_trial_state *own, double *values, size_t *out_own)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_trials; i++) {
        if (state->trials[i].n_rungs > k) {
            *out_own = &state->trials[i] == own ? n : *out_own;
            values[n++] = state->trials[i].rung_values[k];
        }
    }
    return n;
}

static void judge(struct stepping *step, struct weir_sweep_trial_state *trial, size_t k)
{
    const struct weir_sweep_state *state = step->state;
    const struct weir_sweep_rungs *rungs = &state->doc.rungs;
    double *values = WEIR_ARENA_ARRAY(step->arena, state->n_trials, double);
    size_t own = 0, rank, n = values_at(state, k, trial, values, &own);
    bool goes_on = weir_sweep_rungs_goes_on(rungs, values, n, own, state->doc.maximizes, &rank);
    if (goes_on || !is_state(trial->row.state, "RUNNING")) {
        return;
    }
    char *reason = weir_arena_printf(step->arena, "number %zu of %zu at %s %g", rank, n,
                                     rungs->resource, weir_sweep_rungs_level(rungs, k));
    if (weir_sweep_rungs_wait(rungs)) {
        pause_trial(step, trial, reason);
    } else {
        stop_trial(step, trial, "STOPPED", reason);
    }
}

static void stop_with_all(struct stepping *step, struct weir_sweep_trial_state *trial)
{
    const struct weir_sweep_rungs *rungs = &step->state->doc.rungs;
    stop_trial(step, trial, "SUCCEEDED",
               weir_arena_printf(step->arena, "it has come to %s %g", rungs->resource,
                                 rungs->max_resource));
}

/* A job that ends by itself where its work does is left alone: it may have a model to register yet. */
static void take_measure(struct stepping *step, struct weir_sweep_trial_state *trial,
                         const struct weir_sweep_measure *measure)
{
    const struct weir_sweep_doc *doc = &step->state->doc;
    struct weir_sweep_trial *row = &trial->row;
    double most = doc->rungs.max_resource > 0 ? doc->rungs.max_resource : INFINITY;
    bool has_all = row->resource >= most;
    row->step = measure->step;
    row->resource = fmax(row->resource, measure->resource);
    trial->is_changed = true;
    if (has_all && row->resource > most) {
        stop_with_all(step, trial);
        return;
    }
    if (!doc->takes_best || weir_sweep_is_better(measure->value, row->value, doc->maximizes)) {
        row->value = measure->value;
    }
    while (row->resource >= weir_sweep_rungs_level(&doc->rungs, trial->n_rungs) &&
           !is_state(row->state, "PAUSING")) {
        trial->rung_values[trial->n_rungs++] = row->value;
        judge(step, trial, trial->n_rungs - 1);
    }
    if (row->resource > most && is_state(row->state, "RUNNING")) {
        stop_with_all(step, trial);
    }
}

/* What it came to once it was to stop is work that was done, and nothing else: its value is as if it had
 * stopped at once, whenever somebody looks. What it came to once it was to pause counts when it goes on. */
static void take_measures(struct stepping *step, struct weir_sweep_trial_state *trial,
                          const struct weir_sweep_observation *seen)
{
    struct weir_sweep_trial *row = &trial->row;
    for (size_t i = 0; i < seen->n_measures; i++) {
        const struct weir_sweep_measure *measure = &seen->measures[i];
        if (measure->step > row->step && is_state(row->state, "RUNNING")) {
            take_measure(step, trial, measure);
        } else if (measure->step > row->step && is_state(row->state, "STOPPING")) {
            row->step = measure->step;
            row->resource = fmax(row->resource, measure->resource);
            trial->is_changed = true;
        }
    }
}

static void observe(struct stepping *step, const struct weir_sweep_observation *seen)
{
    struct weir_sweep_state *state = step->state;
    if (seen->trial < 1 || seen->trial > (int64_t)state->n_trials) {
        return;
    }
    struct weir_sweep_trial_state *trial = &state->trials[seen->trial - 1];
    if (!weir_sweep_trial_is_open(&trial->row) || is_state(trial->row.state, "WANTED")) {
        return;
    }
    if (seen->has_begun && trial->row.started_ms == 0) {
        trial->row.started_ms = step->now_ms;
        trial->is_changed = true;
    }
    if (is_state(trial->row.state, "PAUSING") && seen->is_held &&
        is_state(seen->job_state, "PENDING")) {
        set_state(step, trial, "PAUSED", trial->row.reason);
    } else if (is_state(trial->row.state, "PAUSED") && !seen->is_held) {
        set_state(step, trial, "RUNNING", NULL); /* somebody has released its job */
    }
    take_measures(step, trial, seen);
    if (seen->job_state == NULL || is_state(seen->job_state, "SUCCEEDED") ||
        is_state(seen->job_state, "FAILED") || is_state(seen->job_state, "CANCELLED")) {
        note_job_end(step, trial, seen);
    }
}

/* ---- promotion ------------------------------------------------------------------------------- */

/* The best one of those that wait at rung k, with its place there; NULL: none waits. */
static struct weir_sweep_trial_state *best_waiting_at(struct stepping *step, size_t k,
                                                      size_t *out_rank, size_t *out_n)
{
    struct weir_sweep_state *state = step->state;
    struct weir_sweep_trial_state *best = NULL;
    double *values = WEIR_ARENA_ARRAY(step->arena, state->n_trials + 1, double);
    for (size_t i = 0; i < state->n_trials; i++) {
        struct weir_sweep_trial_state *trial = &state->trials[i];
        size_t own = 0;
        if (!is_state(trial->row.state, "PAUSED") || trial->n_rungs != k + 1) {
            continue;
        }
        *out_n = values_at(state, k, trial, values, &own);
        size_t rank = weir_sweep_rungs_rank(values, *out_n, own, state->doc.maximizes);
        if (best == NULL || rank < *out_rank) {
            best = trial;
            *out_rank = rank;
        }
    }
    return best;
}

/* The one to go on: of the highest rung that has one among its best 1/eta. When nothing else can come any
 * more, the best one of the highest rung that one waits at does, unless others have gone on from there:
 * few trials would else all end at a rung. NULL: none. */
static struct weir_sweep_trial_state *find_promotion(struct stepping *step)
{
    const struct weir_sweep_state *state = step->state;
    size_t eta = (size_t)state->doc.rungs.eta, n_most = 0, n = 0, rank = 0;
    bool is_last = state->sweep.n_open == 0 && (int64_t)state->n_trials >= state->doc.n_trials;
    struct weir_sweep_trial_state *last = NULL;
    for (size_t i = 0; i < state->n_trials; i++) {
        n_most = WEIR_MAX(n_most, state->trials[i].n_rungs);
    }
    for (size_t k = n_most; k-- > 0;) {
        struct weir_sweep_trial_state *best = best_waiting_at(step, k, &rank, &n);
        if (best != NULL && rank <= n / eta) {
            return best;
        }
        last = last == NULL && is_last && rank == 1 && k + 1 == n_most ? best : last;
    }
    return last;
}

static void promote(struct stepping *step, struct weir_sweep_trial_state *trial)
{
    set_state(step, trial, "RUNNING", NULL);
    act(step,
        (struct weir_sweep_action){.type = WEIR_SWEEP_ACTION_GO_ON, .trial = trial->row.number});
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static void end_pause(struct stepping *step)
{
    struct weir_sweep *sweep = &step->state->sweep;
    sweep->pauses_ms += WEIR_MAX(step->now_ms - sweep->paused_ms, (int64_t)0);
    sweep->paused_ms = 0;
    sweep->reason = NULL;
    sweep->state = weir_arena_strdup(step->arena, "RUNNING");
    step->state->is_changed = true;
}

static void begin_pause(struct stepping *step, const char *reason)
{
    struct weir_sweep *sweep = &step->state->sweep;
    sweep->state = weir_arena_strdup(step->arena, "PAUSED");
    sweep->reason = weir_arena_strdup(step->arena, reason);
    sweep->paused_ms = step->now_ms;
    step->state->is_changed = true;
}

static void begin_stopping(struct stepping *step, const char *ends_as, const char *trials_end_as,
                           const char *reason)
{
    struct weir_sweep_state *state = step->state;
    if (state->sweep.paused_ms != 0) {
        end_pause(step);
    }
    state->sweep.state = weir_arena_strdup(step->arena, "STOPPING");
    state->sweep.ends_as = weir_arena_strdup(step->arena, ends_as);
    state->sweep.reason = weir_arena_strdup(step->arena, reason);
    state->is_changed = true;
    for (size_t i = 0; i < state->n_trials; i++) {
        struct weir_sweep_trial_state *trial = &state->trials[i];
        if (weir_sweep_trial_is_open(&trial->row) && !is_state(trial->row.state, "STOPPING")) {
            stop_trial(step, trial, trials_end_as, reason);
        }
    }
}

/* Counts are never kept by hand: they are what the trials say. */
static void count(struct weir_sweep_state *state)
{
    struct weir_sweep *sweep = &state->sweep;
    struct weir_sweep before = *sweep;
    sweep->n_open = sweep->n_paused = 0;
    sweep->n_succeeded = sweep->n_stopped = sweep->n_failed = sweep->best = 0;
    sweep->best_value = NAN;
    sweep->work = 0;
    sweep->n_made = (int64_t)state->n_trials;
    for (size_t i = 0; i < state->n_trials; i++) {
        const struct weir_sweep_trial *row = &state->trials[i].row;
        sweep->n_open += weir_sweep_trial_is_under_way(row);
        sweep->n_paused += is_state(row->state, "PAUSED");
        sweep->n_succeeded += is_state(row->state, "SUCCEEDED");
        sweep->n_stopped += is_state(row->state, "STOPPED");
        sweep->n_failed += is_state(row->state, "FAILED");
        sweep->work += row->resource;
        if (!is_state(row->state, "FAILED") &&
            weir_sweep_is_better(row->value, sweep->best_value, state->doc.maximizes)) {
            sweep->best = row->number;
            sweep->best_value = row->value;
        }
    }
    bool is_same = before.n_open == sweep->n_open && before.n_paused == sweep->n_paused &&
                   before.n_made == sweep->n_made && before.n_succeeded == sweep->n_succeeded &&
                   before.n_stopped == sweep->n_stopped && before.n_failed == sweep->n_failed &&
                   before.best == sweep->best && before.work == sweep->work &&
                   (before.best_value == sweep->best_value ||
                    (isnan(before.best_value) && isnan(sweep->best_value)));
    state->is_changed = state->is_changed || !is_same;
}

static void make_trial(struct stepping *step)
{
    struct weir_sweep_state *state = step->state;
    struct weir_sweep_trial_state *trial = &state->trials[state->n_trials];
    *trial = (struct weir_sweep_trial_state){
        .point = WEIR_ARENA_ARRAY(step->arena, state->doc.space.n, double), .is_new = true};
    weir_sweep_method_ops_of(&state->doc)->propose(state, step->arena, trial->point);
    WEIR_AUTO(weir_json_auto_free)
    json_t *values = weir_sweep_space_values(&state->doc.space, trial->point);
    int64_t number = (int64_t)state->n_trials + 1;
    trial->row = (struct weir_sweep_trial){
        .id = weir_arena_printf(step->arena, "%s:%" PRId64, state->sweep.id, number),
        .sweep = state->sweep.id,
        .number = number,
        .state = weir_arena_strdup(step->arena, "WANTED"),
        .parameters = weir_json_text(values, step->arena),
        .value = NAN,
        .step = -1,
        .created_ms = step->now_ms,
    };
    state->n_trials++;
    act(step, (struct weir_sweep_action){.type = WEIR_SWEEP_ACTION_START, .trial = number});
}

/* All trials are made, none is under way and none is to go on: those that wait have lost. */
static void stop_waiting(struct stepping *step)
{
    for (size_t i = 0; i < step->state->n_trials; i++) {
        struct weir_sweep_trial_state *trial = &step->state->trials[i];
        if (is_state(trial->row.state, "PAUSED")) {
            stop_trial(step, trial, "STOPPED", trial->row.reason);
        }
    }
}

static void fill_up(struct stepping *step)
{
    struct weir_sweep_state *state = step->state;
    while (is_state(state->sweep.state, "RUNNING") && state->sweep.n_open < state->doc.n_parallel) {
        struct weir_sweep_trial_state *promoted =
            state->sweep.n_paused > 0 ? find_promotion(step) : NULL;
        if (promoted != NULL) {
            promote(step, promoted);
        } else if ((int64_t)state->n_trials < state->doc.n_trials) {
            make_trial(step);
        } else {
            break;
        }
        count(state);
    }
    if (is_state(state->sweep.state, "RUNNING") && state->sweep.n_open == 0) {
        stop_waiting(step);
        count(state);
    }
}

static void end_sweep(struct stepping *step)
{
    struct weir_sweep_state *state = step->state;
    struct weir_sweep *sweep = &state->sweep;
    bool is_stopping = is_state(sweep->state, "STOPPING");
    bool has_more = sweep->n_made < state->doc.n_trials || sweep->n_paused > 0;
    if (sweep->n_open > 0 || (!is_stopping && has_more)) {
        return;
    }
    if (sweep->paused_ms != 0) {
        end_pause(step); /* its last trial has ended */
    }
    const char *end = is_stopping ? sweep->ends_as : sweep->best > 0 ? "SUCCEEDED" : "FAILED";
    if (!is_stopping && sweep->best == 0) {
        sweep->reason = weir_arena_strdup(step->arena, "no trial has come to a value");
    }
    sweep->state = weir_arena_strdup(step->arena, end);
    sweep->ends_as = NULL;
    sweep->ended_ms = step->now_ms;
    state->is_changed = true;
    char *best = sweep->best > 0
                     ? weir_arena_printf(step->arena, "best is trial %" PRId64 " with %s %g",
                                         sweep->best, state->doc.metric, sweep->best_value)
                     : weir_arena_strdup(step->arena, "no trial has a value");
    act(step, (struct weir_sweep_action){
                  .type = WEIR_SWEEP_ACTION_EVENT,
                  .kind = is_state(end, "FAILED") ? "sweep_failed" : "sweep_ended",
                  .message = weir_arena_printf(
                      step->arena, "Sweep %s has ended as %s after %" PRId64 " trials: %s%s%s.",
                      sweep->name, end, sweep->n_made, best, sweep->reason != NULL ? "; " : "",
                      sweep->reason != NULL ? sweep->reason : "")});
}

static void note_started(struct stepping *step, const struct weir_sweep_event *event)
{
    struct weir_sweep_state *state = step->state;
    if (event->trial < 1 || event->trial > (int64_t)state->n_trials) {
        return;
    }
    struct weir_sweep_trial_state *trial = &state->trials[event->trial - 1];
    if (!is_state(trial->row.state, "WANTED")) {
        return;
    }
    if (event->type == WEIR_SWEEP_EVENT_NOT_STARTED) {
        end_trial(step, trial, "FAILED", event->note);
        return;
    }
    set_state(step, trial, "RUNNING", NULL);
    trial->row.job = weir_arena_strdup(step->arena, event->job);
    trial->row.run = weir_arena_strdup(step->arena, event->run);
}

/* What ends it by itself. */
static void look_at_bounds(struct stepping *step)
{
    const struct weir_sweep_state *state = step->state;
    if (is_state(state->sweep.state, "STOPPING")) {
        return;
    }
    if (state->sweep.n_failed >= state->doc.max_failures) {
        begin_stopping(step, "FAILED", "CANCELLED",
                       weir_arena_printf(step->arena,
                                         "%" PRId64 " trials have failed (max_failures)",
                                         state->sweep.n_failed));
    } else if (step->now_ms >= weir_sweep_next_tick_ms(state)) {
        begin_stopping(step, "SUCCEEDED", "STOPPED", "its time is over (time_s)");
    }
}

weir_status weir_sweep_step(struct weir_sweep_state *state, const struct weir_sweep_event *event,
                            int64_t now_ms, struct weir_arena *arena,
                            struct weir_sweep_actions *actions, struct weir_error *err)
{
    struct stepping step = {state, now_ms, arena, actions};
    bool is_running = is_state(state->sweep.state, "RUNNING");
    bool is_paused = is_state(state->sweep.state, "PAUSED");
    if ((event->type == WEIR_SWEEP_EVENT_STOP && !is_running && !is_paused) ||
        (event->type == WEIR_SWEEP_EVENT_PAUSE && !is_running) ||
        (event->type == WEIR_SWEEP_EVENT_RESUME && !is_paused)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "sweep %s is %s", state->sweep.name,
                              state->sweep.state);
    }
    if (weir_sweep_is_over(&state->sweep)) {
        return WEIR_OK;
    }
    switch (event->type) {
    case WEIR_SWEEP_EVENT_TICK:
        for (size_t i = 0; i < event->n_observations; i++) {
            observe(&step, &event->observations[i]);
        }
        break;
    case WEIR_SWEEP_EVENT_STARTED:
    case WEIR_SWEEP_EVENT_NOT_STARTED:
        note_started(&step, event);
        break;
    case WEIR_SWEEP_EVENT_PAUSE:
        begin_pause(&step, event->note);
        break;
    case WEIR_SWEEP_EVENT_RESUME:
        end_pause(&step);
        break;
    case WEIR_SWEEP_EVENT_STOP:
        begin_stopping(&step, "CANCELLED", "CANCELLED", event->note);
        break;
    }
    count(state);
    look_at_bounds(&step);
    count(state);
    fill_up(&step);
    end_sweep(&step);
    return WEIR_OK;
}

int64_t weir_sweep_next_tick_ms(const struct weir_sweep_state *state)
{
    bool has_limit = state->doc.time_s > 0 && is_state(state->sweep.state, "RUNNING");
    return has_limit ? state->sweep.created_ms + state->sweep.pauses_ms + state->doc.time_s * 1000
                     : INT64_MAX;
}
