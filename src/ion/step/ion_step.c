#include "ion/ion_step.h"

#include "ion/step/engine.h"

#include <string.h>

bool step_is(const char *text, const char *state)
{
    return text != NULL && strcmp(text, state) == 0;
}

const char *step_actor(const struct ion_step *step)
{
    return step->event->actor != NULL ? step->event->actor : "system";
}

/**
 * A copy of an arena array with a gap at i_gap: additions are rare and arrays short. Arrays are
 * kept in the order in which the store gives them, so that a loaded state steps as one that stayed.
 */
static void *open_gap(struct weir_arena *arena, const char *items, size_t n, size_t size,
                      size_t i_gap)
{
    char *grown = weir_arena_calloc(arena, n + 1, size);
    if (n > 0) {
        memcpy(grown, items, i_gap * size);
        memcpy(grown + (i_gap + 1) * size, items + i_gap * size, (n - i_gap) * size);
    }
    return grown;
}

void step_act(struct ion_step *step, struct weir_ion_action action)
{
    struct weir_ion_actions *actions = step->actions;
    if (actions->n == actions->cap) {
        size_t cap = actions->cap == 0 ? 8 : actions->cap * 2;
        struct weir_ion_action *grown = WEIR_ARENA_ARRAY(step->arena, cap, struct weir_ion_action);
        if (actions->n > 0) {
            memcpy(grown, actions->items, actions->n * sizeof(*grown));
        }
        actions->items = grown;
        actions->cap = cap;
    }
    actions->items[actions->n++] = action;
}

char *step_text(const struct ion_step *step, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir_arena_vprintf(step->arena, format, args);
    va_end(args);
    return text;
}

void step_vtell(struct ion_step *step, const char *kind, const char *format, va_list args)
{
    step_act(step,
             (struct weir_ion_action){.type = WEIR_ION_ACTION_EVENT,
                                      .kind = kind,
                                      .message = weir_arena_vprintf(step->arena, format, args),
                                      .actor = step_actor(step)});
}

void step_tell(struct ion_step *step, const char *kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    step_vtell(step, kind, format, args);
    va_end(args);
}

void step_resolve(struct ion_step *step, const char *key)
{
    step_act(step, (struct weir_ion_action){.type = WEIR_ION_ACTION_RESOLVE, .key = key});
}

struct weir_ion_pipeline *weir_ion_pipeline_of(const struct weir_ion_state *state, const char *name)
{
    for (size_t i = 0; name != NULL && i < state->n_pipelines; i++) {
        if (strcmp(state->pipelines[i].name, name) == 0) {
            return &state->pipelines[i];
        }
    }
    return NULL;
}

struct weir_ion_runs *weir_ion_runs_of(const struct weir_ion_pipeline *pipeline)
{
    bool has = pipeline != NULL && !step_is(pipeline->type, "prediction");
    return has ? (struct weir_ion_runs *)&pipeline->runs : NULL;
}

struct weir_ion_service *weir_ion_service_of(const struct weir_ion_pipeline *pipeline)
{
    bool has = pipeline != NULL && step_is(pipeline->type, "prediction");
    return has ? (struct weir_ion_service *)&pipeline->service : NULL;
}

struct weir_ion_pipeline *step_pipeline(struct ion_step *step, const char *name)
{
    struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(step->state, name);
    return pipeline != NULL && !step_is(pipeline->state, PIPELINE_REMOVED) ? pipeline : NULL;
}

struct weir_ion_pipeline *step_add_pipeline(struct ion_step *step,
                                            struct weir_ion_pipeline pipeline)
{
    struct weir_ion_state *state = step->state;
    size_t i = 0;
    while (i < state->n_pipelines && strcmp(state->pipelines[i].id, pipeline.id) < 0) {
        i++;
    }
    state->pipelines = open_gap(step->arena, (const char *)state->pipelines, state->n_pipelines,
                                sizeof(pipeline), i);
    state->n_pipelines++;
    state->pipelines[i] = pipeline;
    return &state->pipelines[i];
}

struct weir_ion_trigger *step_add_trigger(struct ion_step *step, struct weir_ion_trigger trigger)
{
    struct weir_ion_state *state = step->state;
    size_t i = 0;
    while (i < state->n_triggers && strcmp(state->triggers[i].id, trigger.id) < 0) {
        i++;
    }
    state->triggers =
        open_gap(step->arena, (const char *)state->triggers, state->n_triggers, sizeof(trigger), i);
    state->n_triggers++;
    state->triggers[i] = trigger;
    return &state->triggers[i];
}

struct weir_ion_candidate *step_add_candidate(struct ion_step *step,
                                              struct weir_ion_candidate candidate)
{
    struct weir_ion_state *state = step->state;
    size_t i = state->n_candidates;
    while (i > 0 && (state->candidates[i - 1].created_ms > candidate.created_ms ||
                     (state->candidates[i - 1].created_ms == candidate.created_ms &&
                      strcmp(state->candidates[i - 1].id, candidate.id) > 0))) {
        i--;
    }
    state->candidates = open_gap(step->arena, (const char *)state->candidates, state->n_candidates,
                                 sizeof(candidate), i);
    state->n_candidates++;
    state->candidates[i] = candidate;
    return &state->candidates[i];
}

/** A new dataset version concerns trainings that read it and galleries made of it. */
static void on_dataset(struct ion_step *step)
{
    const struct weir_ion_dataset *dataset = &step->event->datasets[0];
    const struct weir_ion_doc *doc = &step->state->doc;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = step_pipeline(step, doc->pipelines[i].name);
        if (pipeline == NULL) {
            continue;
        }
        if (step_is(doc->pipelines[i].dataset, dataset->name)) {
            step_see_dataset(step, pipeline, dataset);
        }
        if (step_is(doc->pipelines[i].gallery_dataset, dataset->name)) {
            step_see_gallery(step, pipeline, dataset);
        }
        if (step_is(doc->pipelines[i].impostors, dataset->name)) {
            step_see_impostors(step, pipeline, dataset);
        }
    }
}

/** Pipelines that find with what comes: what an alias names now, or a version that is newer. */
static void see_detectors(struct ion_step *step)
{
    const struct weir_ion_event *event = step->event;
    const struct weir_ion_doc *doc = &step->state->doc;
    const struct weir_ion_model *model = &event->models[0];
    const char *alias = event->aliases != NULL ? event->aliases[0] : NULL;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = step_pipeline(step, doc->pipelines[i].name);
        if (pipeline != NULL && weir_ion_doc_detects_by(&doc->pipelines[i], model->name, alias) &&
            (alias != NULL || model->version > weir_ion_service_of(pipeline)->detector.version)) {
            step_see_detector(step, pipeline, model);
        }
    }
}

static void on_model(struct ion_step *step)
{
    step_on_model(step);
    step_measure_model(step);
    see_detectors(step);
}

static void on_tick(struct ion_step *step)
{
    step_tick_triggers(step);
    step_tick_restarts(step);
    step_tick_policies(step);
}

/** What an event leads to. A person asks for some, and is told why not if the ION is deleted. */
static const struct {
    void (*on)(struct ion_step *step);         /**< What cannot be refused; */
    weir_status (*ask)(struct ion_step *step); /**< or what can. */
    bool is_asked;
} handlers[] = {
    [WEIR_ION_EVENT_APPLIED] = {.on = step_on_applied},
    [WEIR_ION_EVENT_DELETED] = {.ask = step_on_deleted, .is_asked = true},
    [WEIR_ION_EVENT_MODEL] = {.on = on_model},
    [WEIR_ION_EVENT_DATASET] = {.on = on_dataset},
    [WEIR_ION_EVENT_TICK] = {.on = on_tick},
    [WEIR_ION_EVENT_TRIGGER] = {.ask = step_on_trigger, .is_asked = true},
    [WEIR_ION_EVENT_RUN] = {.ask = step_on_run, .is_asked = true},
    [WEIR_ION_EVENT_PROMOTED] = {.ask = step_on_promoted, .is_asked = true},
    [WEIR_ION_EVENT_APPROVE] = {.ask = step_on_review, .is_asked = true},
    [WEIR_ION_EVENT_REJECT] = {.ask = step_on_review, .is_asked = true},
    [WEIR_ION_EVENT_ROLLBACK] = {.ask = step_on_rollback, .is_asked = true},
    [WEIR_ION_EVENT_SET] = {.ask = step_on_set, .is_asked = true},
    [WEIR_ION_EVENT_PAUSE] = {.ask = step_on_pause, .is_asked = true},
    [WEIR_ION_EVENT_RESUME] = {.ask = step_on_resume, .is_asked = true},
    [WEIR_ION_EVENT_LISTS] = {.on = step_on_lists},
    [WEIR_ION_EVENT_REPLICA] = {.on = step_on_replica},
    [WEIR_ION_EVENT_STARTED] = {.on = step_on_started},
    [WEIR_ION_EVENT_FINISHED] = {.on = step_on_ended},
    [WEIR_ION_EVENT_FAILED] = {.on = step_on_ended},
    [WEIR_ION_EVENT_CANCELLED] = {.on = step_on_ended},
    [WEIR_ION_EVENT_MEASURING] = {.on = step_on_measuring},
    [WEIR_ION_EVENT_FROZEN] = {.on = step_on_frozen},
};

static weir_status dispatch(struct ion_step *step)
{
    if (handlers[step->event->type].ask != NULL) {
        return handlers[step->event->type].ask(step);
    }
    handlers[step->event->type].on(step);
    return WEIR_OK;
}

weir_status weir_ion_step(struct weir_ion_state *state, const struct weir_ion_event *event,
                          int64_t now_ms, struct weir_arena *arena,
                          struct weir_ion_actions *actions, struct weir_error *err)
{
    struct ion_step step = {state, event, now_ms, arena, actions, err};
    const struct weir_ion_state before = *state;
    if (step_is(state->ion.state, "DELETED") && event->type != WEIR_ION_EVENT_APPLIED) {
        if (handlers[event->type].is_asked) {
            return weir_error_set(err, WEIR_ERR_CONFLICT, "ION \"%s\" is deleted: apply it again",
                                  state->ion.name);
        }
        return WEIR_OK;
    }
    step_arm_triggers(&step);
    const struct weir_ion_wanted *wanted = step_wanted(&step, &before.doc);
    const struct step_jobs jobs = step_evaluation_jobs(&step);
    weir_status status = dispatch(&step);
    if (status != WEIR_OK) {
        *state = before; /* Its rows are as they were: what was armed are copies. */
        return status;
    }
    step_start_pending(&step);
    step_shift(&step, &before.doc, wanted);
    step_stop_evaluations(&step, &jobs);
    return WEIR_OK;
}

int64_t weir_ion_next_tick_ms(const struct weir_ion_state *state, int64_t now_ms)
{
    if (!step_is(state->ion.state, "ACTIVE")) {
        return INT64_MAX;
    }
    int64_t next_ms = WEIR_MIN(step_triggers_tick_ms(state, now_ms), step_policies_tick_ms(state));
    return WEIR_MIN(next_ms, step_restarts_tick_ms(state, now_ms));
}
