/* Trying an ION: trainings that run now, several times over, and the way into production. */
#include "ion/step/engine.h"

#include <inttypes.h>

void step_choose_mode(struct ion_step *step)
{
    struct weir_ion *ion = &step->state->ion;
    const char *wanted = step->event->mode;
    bool is_new = ion->mode == NULL || ion->state == NULL || !step_is(ion->state, "ACTIVE");
    if (is_new) {
        ion->mode = weir_arena_strdup(step->arena, wanted != NULL ? wanted : WEIR_ION_PRODUCTION);
    }
}

/* ---- run ------------------------------------------------------------------------------------- */

static char *cause_of(struct ion_step *step, int64_t n_left)
{
    return step_text(step, "by hand (%s), %" PRId64 " more after it", step_actor(step), n_left);
}

/** A training that is there; who caused the event wants it to run `times` times. Those that an earlier
 *  wish has left follow, too. *out_told: whether it may. */
static void run_one(struct ion_step *step, struct weir_ion_pipeline *pipeline, bool is_done,
                    struct weir_trigger_verdict *out_told)
{
    struct weir_trigger_inputs inputs;
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    int64_t times = step->event->times;
    struct weir_ion_trigger *row = step_ask_by_hand(step, pipeline, &inputs, out_told);
    if (row == NULL) {
        *out_told = (struct weir_trigger_verdict){.reason = "it has no manual trigger"};
    } else if (out_told->fires && is_done) {
        runs->runs_left = WEIR_MIN(runs->runs_left + times - 1, (int64_t)WEIR_ION_RUNS_MAX);
        pipeline->updated_ms = step->now_ms;
        step_fire(step, row, pipeline, &inputs, out_told->reason, cause_of(step, times - 1));
    }
}

/** Those of the trainings that may, run, or only would. @return How many; 0: *out_why says why one may
 *  not. */
static size_t run_all(struct ion_step *step, bool is_done, const char **out_why)
{
    size_t n = 0;
    *out_why = "it has no training";
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        struct weir_trigger_verdict told = {0};
        if (step_is(pipeline->type, "training") && !step_is(pipeline->state, PIPELINE_REMOVED)) {
            run_one(step, pipeline, is_done, &told);
            *out_why = told.fires ? *out_why : told.reason;
            n += told.fires;
        }
    }
    return n;
}

weir_status step_on_run(struct ion_step *step)
{
    int64_t times = step->event->times;
    const char *why;
    if (times < 1 || times > WEIR_ION_RUNS_MAX) {
        return weir_error_set(step->err, WEIR_ERR_INVALID,
                              "a training may be run 1 to %d times at once", WEIR_ION_RUNS_MAX);
    }
    if (run_all(step, false, &why) == 0) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                              "ION \"%s\" has no training that may be started by hand: %s",
                              step->state->ion.name, why);
    }
    (void)run_all(step, true, &why);
    return WEIR_OK;
}

void step_run_again(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (runs->runs_left <= 0) {
        return;
    }
    if (step->event->type != WEIR_ION_EVENT_FINISHED &&
        step->event->type != WEIR_ION_EVENT_RESUME) {
        runs->runs_left = 0; /* what failed would fail again; what a person ended is ended */
        return;
    }
    if (pipeline->paused_by != NULL) {
        return; /* the row goes on when it is resumed */
    }
    char *by = runs->cause_by;
    runs->runs_left--;
    step_trigger(step, pipeline,
                 step_text(step, "by hand (%s), %" PRId64 " more after it",
                           by != NULL ? by : "nobody known", runs->runs_left));
    if (runs->pending_cause != NULL) {
        runs->pending_by = by; /* it waits for the other end of a data link */
    } else {
        runs->cause_by = by;
    }
}

/* ---- promote --------------------------------------------------------------------------------- */

weir_status step_on_promoted(struct ion_step *step)
{
    struct weir_ion *ion = &step->state->ion;
    if (!step_is(ion->mode, WEIR_ION_SANDBOX)) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT, "ION \"%s\" is in production already",
                              ion->name);
    }
    ion->mode = WEIR_ION_PRODUCTION;
    ion->updated_ms = step->now_ms;
    step_tell(step, "ion_promoted",
              "ION %s goes on in production, as revision %" PRId64
              ", which was tried in the sandbox.",
              ion->name, ion->revision);
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        /* Its replicas begin anew: sinks and source are the document's from now on. */
        if (weir_ion_service_of(pipeline) != NULL && pipeline->job != NULL &&
            !step_is(pipeline->state, PIPELINE_REMOVED)) {
            step_restart_replicas(step, pipeline);
        }
    }
    return WEIR_OK;
}
