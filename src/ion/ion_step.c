#include "ion/ion_step.h"

#include "ion/engine.h"

#include <string.h>

bool engine_is(const char *text, const char *state)
{
    return text != NULL && strcmp(text, state) == 0;
}

const char *engine_actor(const struct engine *engine)
{
    return engine->event->actor != NULL ? engine->event->actor : "system";
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

void engine_act(struct engine *engine, struct weir_ion_action action)
{
    struct weir_ion_actions *actions = engine->actions;
    if (actions->n == actions->cap) {
        size_t cap = actions->cap == 0 ? 8 : actions->cap * 2;
        struct weir_ion_action *grown =
            WEIR_ARENA_ARRAY(engine->arena, cap, struct weir_ion_action);
        if (actions->n > 0) {
            memcpy(grown, actions->items, actions->n * sizeof(*grown));
        }
        actions->items = grown;
        actions->cap = cap;
    }
    actions->items[actions->n++] = action;
}

void engine_tell(struct engine *engine, const char *kind, const char *message)
{
    engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_EVENT,
                                                .kind = kind,
                                                .message = message,
                                                .actor = engine_actor(engine)});
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
    bool has = pipeline != NULL && !engine_is(pipeline->type, "prediction");
    return has ? (struct weir_ion_runs *)&pipeline->runs : NULL;
}

struct weir_ion_service *weir_ion_service_of(const struct weir_ion_pipeline *pipeline)
{
    bool has = pipeline != NULL && engine_is(pipeline->type, "prediction");
    return has ? (struct weir_ion_service *)&pipeline->service : NULL;
}

struct weir_ion_pipeline *engine_pipeline(struct engine *engine, const char *name)
{
    struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(engine->state, name);
    return pipeline != NULL && !engine_is(pipeline->state, PIPELINE_REMOVED) ? pipeline : NULL;
}

struct weir_ion_pipeline *engine_add_pipeline(struct engine *engine,
                                              struct weir_ion_pipeline pipeline)
{
    struct weir_ion_state *state = engine->state;
    size_t i = 0;
    while (i < state->n_pipelines && strcmp(state->pipelines[i].id, pipeline.id) < 0) {
        i++;
    }
    state->pipelines = open_gap(engine->arena, (const char *)state->pipelines, state->n_pipelines,
                                sizeof(pipeline), i);
    state->n_pipelines++;
    state->pipelines[i] = pipeline;
    return &state->pipelines[i];
}

struct weir_ion_trigger *engine_add_trigger(struct engine *engine, struct weir_ion_trigger trigger)
{
    struct weir_ion_state *state = engine->state;
    size_t i = 0;
    while (i < state->n_triggers && strcmp(state->triggers[i].id, trigger.id) < 0) {
        i++;
    }
    state->triggers = open_gap(engine->arena, (const char *)state->triggers, state->n_triggers,
                               sizeof(trigger), i);
    state->n_triggers++;
    state->triggers[i] = trigger;
    return &state->triggers[i];
}

struct weir_ion_candidate *engine_add_candidate(struct engine *engine,
                                                struct weir_ion_candidate candidate)
{
    struct weir_ion_state *state = engine->state;
    size_t i = state->n_candidates;
    while (i > 0 && (state->candidates[i - 1].created_ms > candidate.created_ms ||
                     (state->candidates[i - 1].created_ms == candidate.created_ms &&
                      strcmp(state->candidates[i - 1].id, candidate.id) > 0))) {
        i--;
    }
    state->candidates = open_gap(engine->arena, (const char *)state->candidates,
                                 state->n_candidates, sizeof(candidate), i);
    state->n_candidates++;
    state->candidates[i] = candidate;
    return &state->candidates[i];
}

/** A new dataset version concerns trainings that read it and galleries made of it. */
static void on_dataset(struct engine *engine)
{
    const struct weir_ion_dataset *dataset = &engine->event->datasets[0];
    const struct weir_ion_doc *doc = &engine->state->doc;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = engine_pipeline(engine, doc->pipelines[i].name);
        if (pipeline == NULL) {
            continue;
        }
        if (engine_is(doc->pipelines[i].dataset, dataset->name)) {
            engine_see_dataset(engine, pipeline, dataset);
        }
        if (engine_is(doc->pipelines[i].gallery_dataset, dataset->name)) {
            engine_see_gallery(engine, pipeline, dataset);
        }
        if (engine_is(doc->pipelines[i].impostors, dataset->name)) {
            engine_see_impostors(engine, pipeline, dataset);
        }
    }
}

static bool is_asked_by_a_person(enum weir_ion_event_type type)
{
    return type == WEIR_ION_EVENT_DELETED || type == WEIR_ION_EVENT_TRIGGER ||
           type == WEIR_ION_EVENT_APPROVE || type == WEIR_ION_EVENT_REJECT ||
           type == WEIR_ION_EVENT_ROLLBACK || type == WEIR_ION_EVENT_SET ||
           type == WEIR_ION_EVENT_RUN || type == WEIR_ION_EVENT_PROMOTED ||
           type == WEIR_ION_EVENT_PAUSE || type == WEIR_ION_EVENT_RESUME;
}

static weir_status dispatch(struct engine *engine)
{
    switch (engine->event->type) {
    case WEIR_ION_EVENT_APPLIED:
        engine_on_applied(engine);
        break;
    case WEIR_ION_EVENT_DELETED:
        return engine_on_deleted(engine);
    case WEIR_ION_EVENT_MODEL:
        engine_on_model(engine);
        engine_measure_model(engine);
        break;
    case WEIR_ION_EVENT_DATASET:
        on_dataset(engine);
        break;
    case WEIR_ION_EVENT_TICK:
        engine_tick_triggers(engine);
        engine_tick_restarts(engine);
        engine_tick_policies(engine);
        break;
    case WEIR_ION_EVENT_TRIGGER:
        return engine_on_trigger(engine);
    case WEIR_ION_EVENT_RUN:
        return engine_on_run(engine);
    case WEIR_ION_EVENT_PROMOTED:
        return engine_on_promoted(engine);
    case WEIR_ION_EVENT_APPROVE:
    case WEIR_ION_EVENT_REJECT:
        return engine_on_review(engine);
    case WEIR_ION_EVENT_ROLLBACK:
        return engine_on_rollback(engine);
    case WEIR_ION_EVENT_SET:
        return engine_on_set(engine);
    case WEIR_ION_EVENT_PAUSE:
        return engine_on_pause(engine);
    case WEIR_ION_EVENT_RESUME:
        return engine_on_resume(engine);
    case WEIR_ION_EVENT_LISTS:
        engine_on_lists(engine);
        break;
    case WEIR_ION_EVENT_REPLICA:
        engine_on_replica(engine);
        break;
    case WEIR_ION_EVENT_STARTED:
        engine_on_started(engine);
        break;
    case WEIR_ION_EVENT_FINISHED:
    case WEIR_ION_EVENT_FAILED:
    case WEIR_ION_EVENT_CANCELLED:
        engine_on_ended(engine);
        break;
    case WEIR_ION_EVENT_MEASURING:
        engine_on_measuring(engine);
        break;
    case WEIR_ION_EVENT_FROZEN:
        engine_on_frozen(engine);
        break;
    }
    return WEIR_OK;
}

weir_status weir_ion_step(struct weir_ion_state *state, const struct weir_ion_event *event,
                          int64_t now_ms, struct weir_arena *arena,
                          struct weir_ion_actions *actions, struct weir_error *err)
{
    struct engine engine = {state, event, now_ms, arena, actions, err};
    const struct weir_ion_state before = *state;
    if (engine_is(state->ion.state, "DELETED") && event->type != WEIR_ION_EVENT_APPLIED) {
        if (is_asked_by_a_person(event->type)) {
            return weir_error_set(err, WEIR_ERR_CONFLICT, "ION \"%s\" is deleted: apply it again",
                                  state->ion.name);
        }
        return WEIR_OK;
    }
    engine_arm_triggers(&engine);
    const struct weir_ion_wanted *wanted = engine_wanted(&engine, &before.doc);
    const struct engine_jobs jobs = engine_evaluation_jobs(&engine);
    weir_status status = dispatch(&engine);
    if (status != WEIR_OK) {
        *state = before; /* Its rows are as they were: what was armed are copies. */
        return status;
    }
    engine_start_pending(&engine);
    engine_shift(&engine, &before.doc, wanted);
    engine_stop_evaluations(&engine, &jobs);
    return WEIR_OK;
}

int64_t weir_ion_next_tick_ms(const struct weir_ion_state *state, int64_t now_ms)
{
    if (!engine_is(state->ion.state, "ACTIVE")) {
        return INT64_MAX;
    }
    int64_t next_ms =
        WEIR_MIN(engine_triggers_tick_ms(state, now_ms), engine_policies_tick_ms(state));
    return WEIR_MIN(next_ms, engine_restarts_tick_ms(state, now_ms));
}
