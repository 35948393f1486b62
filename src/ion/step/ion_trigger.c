#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

#define SCHEDULE_SLACK_MS 60000

#define TRIGGER_ARMED   "ARMED"
#define TRIGGER_REMOVED "REMOVED"

/** Whom a firing's row names if no person asked. */
#define ACTOR_TRIGGER "trigger"

static char *id_of(struct weir_arena *arena, const char *ion, const char *pipeline, size_t position)
{
    return weir_arena_printf(arena, "%s:%s:%02zu", ion, pipeline, position);
}

static struct weir_ion_trigger *find_row(const struct weir_ion_state *state, const char *id)
{
    for (size_t i = 0; i < state->n_triggers; i++) {
        if (strcmp(state->triggers[i].id, id) == 0) {
            return &state->triggers[i];
        }
    }
    return NULL;
}

const struct weir_trigger *weir_ion_trigger_of(const struct weir_ion_state *state,
                                               const struct weir_ion_trigger *trigger)
{
    const struct weir_ion_doc_pipeline *doc = weir_ion_doc_pipeline(&state->doc, trigger->pipeline);
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(state, trigger->pipeline);
    size_t position = (size_t)trigger->position;
    bool is_there = doc != NULL && pipeline != NULL && position < doc->triggers.n &&
                    !step_is(pipeline->state, PIPELINE_REMOVED) &&
                    step_is(trigger->state, TRIGGER_ARMED) &&
                    strcmp(doc->triggers.items[position].text, trigger->text) == 0;
    return is_there ? &doc->triggers.items[position] : NULL;
}

struct weir_trigger_inputs weir_ion_trigger_inputs(const struct weir_ion_state *state,
                                                   const struct weir_ion_trigger *trigger,
                                                   int64_t now_ms)
{
    const struct weir_ion_doc_pipeline *doc = weir_ion_doc_pipeline(&state->doc, trigger->pipeline);
    const struct weir_ion_runs *runs =
        weir_ion_runs_of(weir_ion_pipeline_of(state, trigger->pipeline));
    return (struct weir_trigger_inputs){
        .trigger = trigger->text,
        .now_ms = now_ms,
        .armed_ms = trigger->armed_ms,
        .started_ms = runs != NULL ? runs->started_ms : 0,
        .next_ms = trigger->next_ms,
        .dataset = doc != NULL ? doc->dataset : NULL,
        .version = trigger->version,
        .n_files = trigger->n_files,
        .n_bytes = trigger->n_bytes,
        .n_rows = trigger->n_rows,
        .used_version = trigger->used_version,
        .used_files = trigger->used_files,
        .used_bytes = trigger->used_bytes,
        .used_rows = trigger->used_rows,
    };
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** The next time of a schedule after a time; 0: none. */
static int64_t next_of(const struct weir_trigger *trigger, int64_t after_ms)
{
    const char *text = weir_trigger_cron(trigger);
    struct weir_cron cron;
    int64_t next_ms;
    bool fires = text != NULL && weir_cron_parse(text, &cron, NULL) == WEIR_OK &&
                 weir_cron_next(&cron, after_ms, &next_ms) == WEIR_OK;
    return fires ? next_ms : 0;
}

/** What people are shown of the schedules: the nearest time. */
static void show_next(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    int64_t nearest_ms = 0;
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        const struct weir_ion_trigger *row = &step->state->triggers[i];
        bool is_mine = step_is(row->state, TRIGGER_ARMED) && row->next_ms > 0 &&
                       strcmp(row->pipeline, pipeline->name) == 0;
        if (is_mine && (nearest_ms == 0 || row->next_ms < nearest_ms)) {
            nearest_ms = row->next_ms;
        }
    }
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (runs->next_fire_ms != nearest_ms) {
        runs->next_fire_ms = nearest_ms;
        pipeline->updated_ms = step->now_ms;
    }
}

static bool has_rows(const struct weir_ion_state *state, const char *pipeline)
{
    for (size_t i = 0; i < state->n_triggers; i++) {
        if (strcmp(state->triggers[i].pipeline, pipeline) == 0) {
            return true;
        }
    }
    return false;
}

/** A pipeline that was made before triggers had rows knows what they would: the dataset's version, and
 *  when its schedule fires, which may have passed while the server was down. */
static struct weir_ion_trigger armed(struct ion_step *step,
                                     const struct weir_ion_pipeline *pipeline, size_t position,
                                     const struct weir_trigger *trigger)
{
    const struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    bool is_older = weir_trigger_cron(trigger) != NULL && runs->next_fire_ms > 0 &&
                    !has_rows(step->state, pipeline->name);
    return (struct weir_ion_trigger){
        .id = id_of(step->arena, step->state->ion.name, pipeline->name, position),
        .ion = step->state->ion.name,
        .pipeline = pipeline->name,
        .position = (int64_t)position,
        .kind = (char *)trigger->kind->name,
        .text = trigger->text,
        .state = TRIGGER_ARMED,
        .armed_ms = step->now_ms,
        .next_ms = is_older ? runs->next_fire_ms : next_of(trigger, step->now_ms),
        .version = runs->dataset_version,
        .used_version = runs->dataset_version,
        .updated_ms = step->now_ms,
    };
}

/** A trigger with the same text that stands at another place keeps what it knows. */
static void take_over(const struct weir_ion_state *state, struct weir_ion_trigger *row)
{
    for (size_t i = 0; i < state->n_triggers; i++) {
        const struct weir_ion_trigger *old = &state->triggers[i];
        if (strcmp(old->pipeline, row->pipeline) == 0 && strcmp(old->text, row->text) == 0 &&
            old->state != NULL && step_is(old->state, TRIGGER_ARMED)) {
            struct weir_ion_trigger kept = *old;
            kept.id = row->id;
            kept.position = row->position;
            kept.updated_ms = row->updated_ms;
            *row = kept;
            return;
        }
    }
}

/** The rows of a pipeline's triggers, all of them; beforehand it is known that they differ. */
static void arm_pipeline(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                         const struct weir_ion_doc_pipeline *doc)
{
    struct weir_ion_trigger rows[WEIR_TRIGGERS_MAX + 1];
    for (size_t i = 0; i < doc->triggers.n; i++) {
        rows[i] = armed(step, pipeline, i, &doc->triggers.items[i]);
        take_over(step->state, &rows[i]);
    }
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        struct weir_ion_trigger *row = &step->state->triggers[i];
        if (strcmp(row->pipeline, pipeline->name) == 0 && step_is(row->state, TRIGGER_ARMED)) {
            row->state = TRIGGER_REMOVED;
            row->updated_ms = step->now_ms;
        }
    }
    for (size_t i = 0; i < doc->triggers.n; i++) {
        struct weir_ion_trigger *row = find_row(step->state, rows[i].id);
        if (row != NULL) {
            *row = rows[i];
        } else {
            (void)step_add_trigger(step, rows[i]);
        }
    }
    show_next(step, pipeline);
}

/** Are the rows what the document says? */
static bool is_armed(const struct weir_ion_state *state, const struct weir_ion_doc_pipeline *doc)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_triggers; i++) {
        const struct weir_ion_trigger *row = &state->triggers[i];
        if (strcmp(row->pipeline, doc->name) == 0 && step_is(row->state, TRIGGER_ARMED)) {
            if (weir_ion_trigger_of(state, row) == NULL) {
                return false;
            }
            n++;
        }
    }
    return n == doc->triggers.n;
}

/** Of a pipeline that is there and can be started. */
static const struct weir_ion_doc_pipeline *doc_of(const struct weir_ion_state *state,
                                                  const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc_pipeline *doc = weir_ion_doc_pipeline(&state->doc, pipeline->name);
    bool runs = doc != NULL && doc->type != WEIR_PIPELINE_PREDICTION &&
                !step_is(pipeline->state, PIPELINE_REMOVED);
    return runs ? doc : NULL;
}

/** Does a row differ from what the document says? */
static bool is_out_of_line(const struct weir_ion_state *state)
{
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *doc = doc_of(state, &state->pipelines[i]);
        if (doc != NULL && !is_armed(state, doc)) {
            return true;
        }
    }
    for (size_t i = 0; i < state->n_triggers; i++) {
        if (step_is(state->triggers[i].state, TRIGGER_ARMED) &&
            weir_ion_trigger_of(state, &state->triggers[i]) == NULL) {
            return true;
        }
    }
    return false;
}

static void *copy_of(struct weir_arena *arena, const void *items, size_t n, size_t size)
{
    void *copy = weir_arena_calloc(arena, n + 1, size);
    if (n > 0) {
        memcpy(copy, items, n * size);
    }
    return copy;
}

void step_arm_triggers(struct ion_step *step)
{
    struct weir_ion_state *state = step->state;
    if (!is_out_of_line(state)) {
        return;
    }
    state->pipelines =
        copy_of(step->arena, state->pipelines, state->n_pipelines, sizeof *state->pipelines);
    state->triggers =
        copy_of(step->arena, state->triggers, state->n_triggers, sizeof *state->triggers);
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *doc = doc_of(state, &state->pipelines[i]);
        if (doc != NULL && !is_armed(state, doc)) {
            arm_pipeline(step, &state->pipelines[i], doc);
        }
    }
    for (size_t i = 0; i < state->n_triggers; i++) {
        struct weir_ion_trigger *row = &state->triggers[i];
        if (step_is(row->state, TRIGGER_ARMED) && weir_ion_trigger_of(state, row) == NULL) {
            row->state = TRIGGER_REMOVED;
            row->updated_ms = step->now_ms;
        }
    }
}

/* ---- firing ---------------------------------------------------------------------------------- */

static void use_data(struct ion_step *step, struct weir_ion_trigger *row)
{
    if (row->used_version != row->version || row->used_files != row->n_files ||
        row->used_bytes != row->n_bytes || row->used_rows != row->n_rows) {
        row->used_version = row->version;
        row->used_files = row->n_files;
        row->used_bytes = row->n_bytes;
        row->used_rows = row->n_rows;
        row->updated_ms = step->now_ms;
    }
}

void step_use_data(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        if (strcmp(step->state->triggers[i].pipeline, pipeline->name) == 0) {
            use_data(step, &step->state->triggers[i]);
        }
    }
}

static void record(struct ion_step *step, const struct weir_ion_trigger *row,
                   const struct weir_ion_pipeline *pipeline,
                   const struct weir_trigger_inputs *inputs, const char *reason)
{
    struct weir_ion *ion = &step->state->ion;
    ion->n_firings++;
    step_act(step, (struct weir_ion_action){
                       .type = WEIR_ION_ACTION_FIRED,
                       .firing = {.id = step_text(step, "%s:%" PRId64, ion->name, ion->n_firings),
                                  .ion = ion->name,
                                  .number = ion->n_firings,
                                  .pipeline = pipeline->name,
                                  .position = row->position,
                                  .kind = row->kind,
                                  .training = weir_ion_runs_of(pipeline)->training + 1,
                                  .inputs = weir_trigger_inputs_text(inputs, step->arena),
                                  .reason = (char *)reason,
                                  .actor = inputs->by != NULL ? inputs->by : ACTOR_TRIGGER,
                                  .time_ms = step->now_ms}});
}

void step_fire(struct ion_step *step, struct weir_ion_trigger *row,
               struct weir_ion_pipeline *pipeline, const struct weir_trigger_inputs *inputs,
               const char *reason, const char *cause)
{
    const struct weir_trigger *trigger = weir_ion_trigger_of(step->state, row);
    row->n_fired++;
    row->fired_ms = step->now_ms;
    row->reason = weir_arena_strdup(step->arena, reason);
    row->updated_ms = step->now_ms;
    if (weir_trigger_cron(trigger) != NULL) {
        /* Times that were missed while the server was down are one firing. */
        row->next_ms = next_of(trigger, step->now_ms);
        show_next(step, pipeline);
    }
    record(step, row, pipeline, inputs, row->reason);
    use_data(step, row);
    step_trigger(step, pipeline, cause);
}

/** Ask a trigger; if it fires, the pipeline runs. */
static void ask(struct ion_step *step, struct weir_ion_trigger *row,
                struct weir_ion_pipeline *pipeline, const struct weir_trigger_inputs *inputs)
{
    const struct weir_trigger *trigger = weir_ion_trigger_of(step->state, row);
    struct weir_trigger_verdict told = weir_trigger_decide(trigger, inputs, step->arena);
    if (told.fires) {
        step_fire(step, row, pipeline, inputs, told.reason, told.reason);
    }
}

static void see(struct ion_step *step, struct weir_ion_trigger *row,
                const struct weir_ion_dataset *dataset)
{
    row->version = dataset->version;
    row->n_files = dataset->n_files;
    row->n_bytes = dataset->n_bytes;
    row->n_rows = dataset->n_rows;
    row->updated_ms = step->now_ms;
}

void step_forget_dataset(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    weir_ion_runs_of(pipeline)->dataset_version = 0;
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        struct weir_ion_trigger *row = &step->state->triggers[i];
        if (strcmp(row->pipeline, pipeline->name) == 0) {
            see(step, row, &(struct weir_ion_dataset){0});
            use_data(step, row);
        }
    }
}

/** A version that was seen before its size was told: rows of triggers are younger than pipelines. */
static void learn_size(struct ion_step *step, const struct weir_ion_pipeline *pipeline,
                       const struct weir_ion_dataset *dataset)
{
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        struct weir_ion_trigger *row = &step->state->triggers[i];
        if (strcmp(row->pipeline, pipeline->name) == 0 && row->version == dataset->version &&
            row->n_files == 0 && dataset->n_files > 0) {
            bool is_used = row->used_version == row->version;
            see(step, row, dataset);
            if (is_used) {
                use_data(step, row);
            }
        }
    }
}

void step_see_dataset(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                      const struct weir_ion_dataset *dataset)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (dataset->version <= runs->dataset_version) {
        learn_size(step, pipeline, dataset);
        return;
    }
    runs->dataset_version = dataset->version;
    pipeline->updated_ms = step->now_ms;
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        if (strcmp(step->state->triggers[i].pipeline, pipeline->name) == 0) {
            see(step, &step->state->triggers[i], dataset);
        }
    }
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        struct weir_ion_trigger *row = &step->state->triggers[i];
        if (strcmp(row->pipeline, pipeline->name) == 0 &&
            weir_ion_trigger_of(step->state, row) != NULL) {
            struct weir_trigger_inputs inputs =
                weir_ion_trigger_inputs(step->state, row, step->now_ms);
            ask(step, row, pipeline, &inputs);
        }
    }
}

struct weir_ion_trigger *step_ask_by_hand(struct ion_step *step,
                                          const struct weir_ion_pipeline *pipeline,
                                          struct weir_trigger_inputs *inputs,
                                          struct weir_trigger_verdict *told)
{
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        struct weir_ion_trigger *row = &step->state->triggers[i];
        const struct weir_trigger *trigger = weir_ion_trigger_of(step->state, row);
        if (trigger != NULL && trigger->kind == &weir_trigger_kind_manual &&
            strcmp(row->pipeline, pipeline->name) == 0) {
            *inputs = weir_ion_trigger_inputs(step->state, row, step->now_ms);
            inputs->by = weir_arena_strdup(step->arena, step_actor(step));
            *told = weir_trigger_decide(trigger, inputs, step->arena);
            return row;
        }
    }
    return NULL;
}

weir_status step_on_trigger(struct ion_step *step)
{
    const char *name = step->event->pipeline != NULL ? step->event->pipeline : "";
    struct weir_ion_pipeline *pipeline = step_pipeline(step, name);
    const struct weir_ion_doc_pipeline *doc = weir_ion_doc_pipeline(&step->state->doc, name);
    if (pipeline == NULL || doc == NULL) {
        return weir_error_set(step->err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no pipeline \"%s\"",
                              step->state->ion.name, name);
    }
    if (doc->type == WEIR_PIPELINE_PREDICTION) {
        return weir_error_set(step->err, WEIR_ERR_INVALID,
                              "pipeline \"%s\" is a prediction: it serves, and is not started",
                              name);
    }
    if (step_lacks_model(step, pipeline)) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                              "pipeline \"%s\" has no model to measure yet: none has come through "
                              "its link",
                              name);
    }
    struct weir_trigger_inputs inputs;
    struct weir_trigger_verdict told;
    struct weir_ion_trigger *row = step_ask_by_hand(step, pipeline, &inputs, &told);
    if (row == NULL) {
        return weir_error_set(step->err, WEIR_ERR_INTERNAL, "pipeline \"%s\" has no manual trigger",
                              name);
    }
    if (!told.fires) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                              "pipeline \"%s\" may not be started by hand: %s", name, told.reason);
    }
    step_fire(step, row, pipeline, &inputs, told.reason, told.reason);
    return WEIR_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

/**
 * Is a schedule's stored time later than the schedule says? A time that was worked out earlier is never
 * later than one that is worked out now, unless the wall clock was set back. Times within
 * SCHEDULE_SLACK_MS do not count: a wall clock that is put right by a moment must not fire the same
 * time twice.
 */
static bool is_put_off(const struct weir_trigger *trigger, const struct weir_ion_trigger *row,
                       int64_t now_ms)
{
    if (row->next_ms > 0 && row->next_ms <= now_ms) {
        return false;
    }
    int64_t next_ms = next_of(trigger, now_ms + SCHEDULE_SLACK_MS);
    return next_ms > 0 && (row->next_ms == 0 || row->next_ms > next_ms);
}

/** What the server observed for the trigger; NULL: nothing. */
static const struct weir_ion_observed *observed_of(const struct ion_step *step, const char *id)
{
    for (size_t i = 0; i < step->event->n_observed; i++) {
        if (strcmp(step->event->observed[i].trigger, id) == 0) {
            return &step->event->observed[i];
        }
    }
    return NULL;
}

static void tick(struct ion_step *step, struct weir_ion_trigger *row,
                 struct weir_ion_pipeline *pipeline)
{
    const struct weir_trigger *trigger = weir_ion_trigger_of(step->state, row);
    const struct weir_ion_observed *seen = observed_of(step, row->id);
    bool observes = weir_trigger_ops(trigger)->sees != WEIR_TRIGGER_SEES_OWN;
    if (is_put_off(trigger, row, step->now_ms)) {
        row->next_ms = next_of(trigger, step->now_ms);
        row->updated_ms = step->now_ms;
        show_next(step, pipeline);
    }
    bool is_busy = step_is_running(pipeline) || pipeline->paused_by != NULL;
    if (observes && (seen == NULL || is_busy)) {
        return; /* What is observed of the past does not start another run behind this one. */
    }
    struct weir_trigger_inputs own = weir_ion_trigger_inputs(step->state, row, step->now_ms);
    struct weir_trigger_inputs inputs = observes ? seen->inputs : own;
    inputs.trigger = own.trigger;
    inputs.now_ms = own.now_ms;
    inputs.armed_ms = own.armed_ms;
    inputs.started_ms = own.started_ms;
    ask(step, row, pipeline, &inputs);
}

void step_tick_triggers(struct ion_step *step)
{
    for (size_t i = 0; i < step->state->n_triggers; i++) {
        struct weir_ion_trigger *row = &step->state->triggers[i];
        if (weir_ion_trigger_of(step->state, row) != NULL) {
            tick(step, row, step_pipeline(step, row->pipeline));
        }
    }
}

/** When one trigger needs a tick. */
static int64_t tick_ms_of(const struct weir_ion_state *state, const struct weir_ion_trigger *row,
                          struct weir_arena *arena, int64_t now_ms)
{
    const struct weir_trigger *trigger = weir_ion_trigger_of(state, row);
    if (trigger == NULL) {
        return INT64_MAX;
    }
    if (is_put_off(trigger, row, now_ms)) {
        return now_ms;
    }
    if (weir_trigger_ops(trigger)->sees != WEIR_TRIGGER_SEES_OWN) {
        return INT64_MAX; /* The server looks by itself. */
    }
    struct weir_trigger_inputs inputs = weir_ion_trigger_inputs(state, row, now_ms);
    struct weir_trigger_verdict told = weir_trigger_decide(trigger, &inputs, arena);
    return told.fires ? now_ms : told.until_ms;
}

int64_t step_triggers_tick_ms(const struct weir_ion_state *state, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    struct weir_arena arena;
    if (is_out_of_line(state)) {
        return now_ms;
    }
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < state->n_triggers; i++) {
        next_ms = WEIR_MIN(next_ms, tick_ms_of(state, &state->triggers[i], &arena, now_ms));
    }
    weir_arena_fini(&arena);
    return next_ms;
}
