/* Trying an ION: trainings that run now, several times over, and the way into production. */
#include "ion/engine.h"

#include <inttypes.h>

void engine_choose_mode(struct engine *engine)
{
    struct weir_ion *ion = &engine->state->ion;
    const char *wanted = engine->event->mode;
    bool is_new = ion->mode == NULL || ion->state == NULL || !engine_is(ion->state, "ACTIVE");
    if (is_new) {
        ion->mode = weir_arena_strdup(engine->arena, wanted != NULL ? wanted : WEIR_ION_PRODUCTION);
    }
}

/* ---- run ------------------------------------------------------------------------------------- */

static char *cause_of(struct engine *engine, int64_t n_left)
{
    return weir_arena_printf(engine->arena, "by hand (%s), %" PRId64 " more after it",
                             engine_actor(engine), n_left);
}

/** A training that is there; who caused the event wants it to run `times` times. Those that an earlier
 *  wish has left follow, too. *out_told: whether it may. */
static void run_one(struct engine *engine, struct weir_ion_pipeline *pipeline, bool is_done,
                    struct weir_trigger_verdict *out_told)
{
    struct weir_trigger_inputs inputs;
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    int64_t times = engine->event->times;
    struct weir_ion_trigger *row = engine_ask_by_hand(engine, pipeline, &inputs, out_told);
    if (row == NULL) {
        *out_told = (struct weir_trigger_verdict){.reason = "it has no manual trigger"};
    } else if (out_told->fires && is_done) {
        runs->runs_left = WEIR_MIN(runs->runs_left + times - 1, (int64_t)WEIR_ION_RUNS_MAX);
        pipeline->updated_ms = engine->now_ms;
        engine_fire(engine, row, pipeline, &inputs, out_told->reason, cause_of(engine, times - 1));
    }
}

/** Those of the trainings that may, run, or only would. @return How many; 0: *out_why says why one may
 *  not. */
static size_t run_all(struct engine *engine, bool is_done, const char **out_why)
{
    size_t n = 0;
    *out_why = "it has no training";
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        struct weir_trigger_verdict told = {0};
        if (engine_is(pipeline->type, "training") &&
            !engine_is(pipeline->state, PIPELINE_REMOVED)) {
            run_one(engine, pipeline, is_done, &told);
            *out_why = told.fires ? *out_why : told.reason;
            n += told.fires;
        }
    }
    return n;
}

weir_status engine_on_run(struct engine *engine)
{
    int64_t times = engine->event->times;
    const char *why;
    if (times < 1 || times > WEIR_ION_RUNS_MAX) {
        return weir_error_set(engine->err, WEIR_ERR_INVALID,
                              "a training may be run 1 to %d times at once", WEIR_ION_RUNS_MAX);
    }
    if (run_all(engine, false, &why) == 0) {
        return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                              "ION \"%s\" has no training that may be started by hand: %s",
                              engine->state->ion.name, why);
    }
    (void)run_all(engine, true, &why);
    return WEIR_OK;
}

void engine_run_again(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (runs->runs_left <= 0) {
        return;
    }
    if (engine->event->type != WEIR_ION_EVENT_FINISHED &&
        engine->event->type != WEIR_ION_EVENT_RESUME) {
        runs->runs_left = 0; /* what failed would fail again; what a person ended is ended */
        return;
    }
    if (pipeline->paused_by != NULL) {
        return; /* the row goes on when it is resumed */
    }
    char *by = runs->cause_by;
    runs->runs_left--;
    engine_trigger(engine, pipeline,
                   weir_arena_printf(engine->arena, "by hand (%s), %" PRId64 " more after it",
                                     by != NULL ? by : "nobody known", runs->runs_left));
    if (runs->pending_cause != NULL) {
        runs->pending_by = by; /* it waits for the other end of a data link */
    } else {
        runs->cause_by = by;
    }
}

/* ---- promote --------------------------------------------------------------------------------- */

weir_status engine_on_promoted(struct engine *engine)
{
    struct weir_ion *ion = &engine->state->ion;
    if (!engine_is(ion->mode, WEIR_ION_SANDBOX)) {
        return weir_error_set(engine->err, WEIR_ERR_CONFLICT, "ION \"%s\" is in production already",
                              ion->name);
    }
    ion->mode = WEIR_ION_PRODUCTION;
    ion->updated_ms = engine->now_ms;
    engine_tell(engine, "ion_promoted",
                weir_arena_printf(engine->arena,
                                  "ION %s goes on in production, as revision %" PRId64
                                  ", which was tried in the sandbox.",
                                  ion->name, ion->revision));
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        /* Its replicas begin anew: sinks and source are the document's from now on. */
        if (weir_ion_service_of(pipeline) != NULL && pipeline->job != NULL &&
            !engine_is(pipeline->state, PIPELINE_REMOVED)) {
            engine_restart_replicas(engine, pipeline);
        }
    }
    return WEIR_OK;
}
