#include "predict/engine.h"

#include "base/clock.h"
#include "base/complaint.h"
#include "base/log.h"
#include "predict/decision.h"

#include <math.h>
#include <stdlib.h>

struct engine {
    struct engine_config config;
    pthread_t thread;
    struct weir_complaint damaged; /**< Frames. */
};

static void complain(struct engine *engine, const struct frame *frame, const char *reason)
{
    int64_t n_unsaid;
    if (weir_complaint_is_due(&engine->damaged, &n_unsaid)) {
        weir_log(WEIR_LOG_WARN, "frame_damaged", WEIR_KV_STR("camera", frame->camera),
                 WEIR_KV_INT("frame", frame->number), WEIR_KV_STR("reason", reason),
                 WEIR_KV_INT("others_before", n_unsaid));
    }
}

/* What the monitor compares with training; of frames that it does not count no more than whether they
 * are new. A chain that put no picture to the model shows nothing; of several objects one. */
static void note_health(struct engine *engine, const struct stage_frame *at)
{
    const struct stage_object *object = at->shown;
    struct model *model = at->serving->model;
    struct health *health = engine->config.health;
    struct health_values values = {
        .camera = at->frame->camera, .frame = at->frame->number, .time_ms = at->frame->received_ms};
    for (size_t i = 0; i < MODEL_N_SIGNALS; i++) {
        values.of[i] = NAN;
    }
    values.has_digest = object != NULL;
    values.digest = values.has_digest ? model_digest(model, 0) : 0;
    values.is_due = health_is_due(health, at->serving, values.camera, values.time_ms);
    if (values.is_due && object != NULL) {
        values.of[MODEL_SCORE] = object->finding.score;
        values.of[MODEL_BRIGHTNESS] = object->brightness;
    }
    if (values.is_due && values.has_digest &&
        (model->has_baseline[MODEL_CONTRAST] || model->has_baseline[MODEL_SHARPNESS] ||
         model->has_baseline[MODEL_ENTROPY])) {
        struct weir_look look = model_look(model, 0);
        values.of[MODEL_CONTRAST] = look.contrast;
        values.of[MODEL_SHARPNESS] = look.sharpness;
        values.of[MODEL_ENTROPY] = look.entropy;
    }
    if (values.is_due && object != NULL && object->embedding != NULL &&
        model->has_baseline[MODEL_EMBEDDING]) {
        values.of[MODEL_EMBEDDING] = weir_embedding_distance(&model->embedding, object->embedding);
    }
    health_note(health, at->serving, &values);
}

/* A frame that cannot be decided about: that is its decision. */
static void decide_error(struct engine *engine, struct stage_frame *at, const char *reason)
{
    stage_decisions_drop(at);
    complain(engine, at->frame, reason);
    struct decision *decision = stage_decision_add(at)->decision;
    decision->verdict = VERDICT_ERROR;
    decision->error = weir_arena_strdup(&decision->arena, reason);
}

static void hand_over(struct engine *engine, struct frame *frame, struct stage_decision *made)
{
    const struct predict_spec *spec = engine->config.spec;
    struct decision *decision = made->decision;
    decision->ion = spec->ion;
    decision->pipeline = spec->pipeline;
    decision->replica = spec->host.replica;
    decision->camera = frame->camera;
    decision->frame = frame->number;
    decision->key = frame->is_keyed ? frame->key : NULL;
    decision->time_ms = frame->received_ms;
    decision->is_sandbox = spec->sandbox_dir != NULL;
    decision_keep(decision); /* the serving may end before it is written */
    weir_uuid_make(decision->id);
    decision->latency_us = (int64_t)((weir_mono_ns() - frame->received_ns) / 1000);
    struct outbox_item item = {.decision = decision,
                               .received_ns = frame->received_ns,
                               .picture = made->picture,
                               .ticket = frame};
    *made = (struct stage_decision){0};
    outbox_put(engine->config.outbox, &item);
}

static void process(struct engine *engine, struct frame *frame, struct serving *serving)
{
    struct weir_error err;
    struct stage_frame at;
    stage_frame_init(&at, frame, serving);
    if (stages_run(serving->stages, &at, &err) != WEIR_OK) {
        if (model_is_broken(serving->model)) {
            engine->config.on_broken(err.message);
        }
        decide_error(engine, &at, err.message);
    } else if (engine->config.health != NULL) {
        note_health(engine, &at);
    }
    free(frame->bytes);
    frame->bytes = NULL;
    if (at.n_decisions > 0) {
        at.decisions[0].picture = at.image;
        at.image = (struct weir_image){0};
    }
    for (size_t i = 0; i < at.n_decisions; i++) {
        hand_over(engine, frame, &at.decisions[i]);
    }
    stage_frame_fini(&at);
}

static void *engine_main(void *context)
{
    struct engine *engine = context;
    struct frame *frame;
    while ((frame = intake_take(engine->config.intake)) != NULL) {
        json_t *known = outbox_find(engine->config.outbox, frame->key);
        if (known != NULL) {
            json_decref(known);
            intake_done(engine->config.intake, frame);
            continue;
        }
        /* The intake opens when there is a serving, so there is one. */
        struct serving *serving = serving_slot_get(engine->config.slot);
        process(engine, frame, serving);
        serving_unref(serving);
    }
    return NULL;
}

weir_status engine_start(const struct engine_config *config, struct engine **out,
                         struct weir_error *err)
{
    struct engine *engine = weir_xalloc(sizeof *engine);
    *engine = (struct engine){.config = *config};
    int failed = pthread_create(&engine->thread, NULL, engine_main, engine);
    if (failed != 0) {
        free(engine);
        return weir_error_set_errno(err, failed, "starting a thread");
    }
    *out = engine;
    return WEIR_OK;
}

void engine_stop(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    pthread_join(engine->thread, NULL);
    free(engine);
}
