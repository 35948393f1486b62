#include "predict/engine.h"

#include "base/clock.h"
#include "base/complaint.h"
#include "base/log.h"
#include "predict/count.h"
#include "predict/decision.h"
#include "predict/outcome.h"
#include "predict/passage.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** One of the engine's threads. */
struct hand {
    struct engine *engine;
    size_t i;
    pthread_t thread;
};

struct engine {
    struct engine_config config;
    struct hand hands[ENGINE_AT_ONCE_MAX];
    size_t n_hands;
    pthread_mutex_t door;      /**< To take a frame, and to let time pass while none is at work. */
    uint64_t n_taken;          /**< Behind the door. */
    atomic_bool goes_on;       /**< Time must: somebody is there. */
    pthread_mutex_t turn_lock; /**< Guards what follows. */
    pthread_cond_t turned;
    uint64_t turn; /**< The number of the next frame to finish. */
    /* The thread in turn owns the rest. */
    struct frame none; /**< Stands for a frame while none comes. */
    int64_t revision;  /**< The last serving's. */
    struct passages *passages;
    struct weir_complaint damaged; /**< Frames. */
};

/** A frame at work. */
struct work {
    struct frame *frame;
    struct serving *serving;
    uint64_t number; /**< It has its turn behind the number before. */
    uint64_t spent_ns;
    char camera[FRAME_CAMERA_BYTES]; /**< The frame may be freed before it is over. */
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
    if (model == NULL) {
        return; /* A detector has nothing that is compared. */
    }
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

/* A frame that cannot be decided about: that is its decision. In video the next frame tells more. Passages that are due are
 * decided all the same: no frame after it will tell of them. */
static void decide_error(struct engine *engine, struct stage_frame *at, const char *reason)
{
    stage_decisions_drop_others(at);
    stage_decide_due(at);
    at->has_detector = false; /* The frame is decided, not what is in it. */
    complain(engine, at->frame, reason);
    if (at->frame->view.form != WEIR_VIEW_NONE) {
        return;
    }
    struct decision *decision = stage_decision_add(at)->decision;
    decision->verdict = VERDICT_ERROR;
    decision->error = weir_arena_strdup(&decision->arena, reason);
}

/* The key of a decision: its own, one of several of the frame, or the frame's. */
static void name(const struct stage_frame *at, size_t i, struct decision *decision)
{
    char key[FRAME_KEY_BYTES];
    const struct frame *frame = at->frame;
    decision->frame = frame->number;
    if (decision->key == NULL && at->has_detector) {
        decision->key = weir_arena_strdup(&decision->arena, frame_part_key(frame, i, key));
    } else if (decision->key == NULL && frame->is_keyed) {
        decision->key = frame->key;
    }
}

static void hand_over(struct engine *engine, struct frame *frame, struct stage_decision *made)
{
    const struct predict_spec *spec = engine->config.spec;
    struct decision *decision = made->decision;
    decision->ion = spec->ion;
    decision->pipeline = spec->pipeline;
    decision->replica = spec->host.replica;
    decision->camera = decision->camera != NULL ? decision->camera : frame->camera;
    decision->time_ms = frame->received_ms;
    decision->is_sandbox = spec->sandbox_dir != NULL;
    decision_keep(decision); /* the serving may end before it is written */
    weir_uuid_make(decision->id);
    decision->latency_us = (int64_t)((weir_mono_ns() - frame->received_ns) / 1000);
    struct outbox_item item = {.decision = decision,
                               .received_ns = frame->received_ns,
                               .picture = made->picture,
                               .ticket = frame == &engine->none ? NULL : frame};
    *made = (struct stage_decision){0};
    outbox_put(engine->config.outbox, &item);
}

/* Those that a process before has made durable already are left out. Returns how many stay. */
static size_t leave_out_known(struct engine *engine, struct stage_frame *at)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < at->n_decisions; i++) {
        struct stage_decision made = at->decisions[i];
        bool has_own_key = made.decision->key != NULL;
        name(at, i, made.decision);
        json_t *known = (at->has_detector || has_own_key) && made.decision->key != NULL
                            ? outcome_find_part(engine->config.outbox, made.decision->key)
                            : NULL;
        if (known == NULL) {
            at->decisions[n_kept++] = made;
        } else {
            decision_destroy(made.decision);
            weir_image_fini(&made.picture);
        }
        json_decref(known);
    }
    return at->n_decisions = n_kept;
}

/* What was made of a frame goes out. What a frame is acknowledged by may be freed with the last of it. */
static void give(struct engine *engine, struct frame *frame, struct stage_frame *at)
{
    size_t n = leave_out_known(engine, at);
    frame->is_undecided = n == 0 || at->has_tracks; /* Passages are not the frame's. */
    atomic_store(&frame->n_open, n);
    for (size_t i = 0; i < n; i++) {
        hand_over(engine, frame, &at->decisions[i]);
    }
    at->n_decisions = 0;
    if (n == 0 && frame != &engine->none) {
        intake_done(engine->config.intake, frame);
    }
}

/* A camera with an ended passage may have no undecided one left. */
static void tell_of_ended(struct engine *engine, const struct stage_frame *at)
{
    for (size_t i = 0; i < at->n_due; i++) {
        const char *camera = at->due[i]->camera;
        intake_tell(engine->config.intake, camera,
                    passages_are_undecided(engine->passages, camera));
    }
}

static bool must_go_on(const struct engine *engine)
{
    return passages_are_on(engine->passages) || counts_are_on(engine->config.counts);
}

/* A serving decides its first frame. */
static void note_serving(struct engine *engine, const struct serving *serving)
{
    if (serving->revision != engine->revision) {
        engine->revision = serving->revision;
        counts_prune(engine->config.counts, stages_chain(serving->stages));
    }
}

/* The remaining stages of a frame, in turn. */
static weir_status run_rest(struct engine *engine, struct stage_frame *at, weir_status begun,
                            struct weir_error *err)
{
    note_serving(engine, at->serving);
    WEIR_TRY(begun);
    return stages_end(at->serving->stages, at, err);
}

/* In turn: the frame is decided, and its decisions go out. */
static void finish(struct engine *engine, struct frame *frame, struct stage_frame *at,
                   weir_status begun, struct weir_error *err)
{
    if (run_rest(engine, at, begun, err) != WEIR_OK) {
        if (serving_is_broken(at->serving)) {
            engine->config.on_broken(err->message);
        }
        decide_error(engine, at, err->message);
    } else if (engine->config.health != NULL) {
        note_health(engine, at);
    }
    desk_show(engine->config.desk, at);
    if (at->n_decisions == 1 && at->decisions[0].picture.pixels == NULL &&
        at->decisions[0].decision->camera == NULL) { /* else its camera may be another */
        at->decisions[0].picture = at->image;
        at->image = (struct weir_image){0};
    }
    frame_drop_pixels(frame); /* before its decisions are durable */
    intake_tell(engine->config.intake, frame->camera,
                passages_are_undecided(engine->passages, frame->camera));
    tell_of_ended(engine, at);
    give(engine, frame, at);
    passages_end_due(engine->passages, at);
    atomic_store(&engine->goes_on, must_go_on(engine));
}

static void await_turn(struct engine *engine, uint64_t number)
{
    pthread_mutex_lock(&engine->turn_lock);
    while (engine->turn != number) {
        pthread_cond_wait(&engine->turned, &engine->turn_lock);
    }
    pthread_mutex_unlock(&engine->turn_lock);
}

static void end_turn(struct engine *engine)
{
    pthread_mutex_lock(&engine->turn_lock);
    engine->turn++;
    pthread_cond_broadcast(&engine->turned);
    pthread_mutex_unlock(&engine->turn_lock);
}

/* Has the engine finished all frames that it took? Behind the door. */
static bool is_idle(struct engine *engine)
{
    pthread_mutex_lock(&engine->turn_lock);
    bool is = engine->turn == engine->n_taken;
    pthread_mutex_unlock(&engine->turn_lock);
    return is;
}

static void process(struct hand *hand, struct work *work)
{
    struct engine *engine = hand->engine;
    struct weir_error err;
    struct stage_frame at;
    uint64_t start_ns = weir_mono_ns();
    stage_frame_init(&at, work->frame, work->serving);
    at.passages = engine->passages;
    at.counts = engine->config.counts;
    if (work->serving->n_finders > 0) {
        assert(hand->i < work->serving->n_finders);
        at.finder = work->serving->finders[hand->i];
    }
    weir_status status = stages_begin(work->serving->stages, &at, &err);
    work->spent_ns = weir_mono_ns() - start_ns;
    await_turn(engine, work->number);
    start_ns = weir_mono_ns();
    finish(engine, work->frame, &at, status, &err);
    work->spent_ns += weir_mono_ns() - start_ns;
    end_turn(engine);
    stage_frame_fini(&at);
}

/* No frame has come: passages end by the clock. */
static void wait_on(struct engine *engine)
{
    struct weir_error err;
    struct stage_frame at;
    struct serving *serving = serving_slot_get(engine->config.slot);
    note_serving(engine, serving);
    engine->none.received_ms = weir_time_ms();
    engine->none.received_ns = weir_mono_ns();
    stage_frame_init(&at, &engine->none, serving);
    at.passages = engine->passages;
    at.counts = engine->config.counts;
    if (stages_wait(serving->stages, &at, &err) != WEIR_OK) {
        stage_decisions_drop_others(&at);
        stage_decide_due(&at);
        complain(engine, at.frame, err.message);
    }
    tell_of_ended(engine, &at);
    give(engine, &engine->none, &at);
    passages_end_due(engine->passages, &at);
    atomic_store(&engine->goes_on, must_go_on(engine));
    stage_frame_fini(&at);
    serving_unref(serving);
}

/* Is it decided already, by a process before? */
static bool is_known(struct engine *engine, const struct frame *frame)
{
    json_t *known = outcome_find(engine->config.outbox, frame);
    json_decref(known);
    return known != NULL;
}

/* The next frame that is to be decided, or time passes: TIMEOUT. Behind the door. */
static weir_status take(struct engine *engine, struct work *out)
{
    struct intake *intake = engine->config.intake;
    struct frame *frame;
    /* What is at work may bring somebody. */
    bool must = !is_idle(engine) || atomic_load(&engine->goes_on);
    weir_status status = intake_take(intake, must ? ENGINE_TICK_MS : -1, &frame);
    if (status == WEIR_ERR_TIMEOUT && atomic_load(&engine->goes_on)) {
        wait_on(engine);
    }
    WEIR_TRY(status);
    memcpy(out->camera, frame->camera, sizeof out->camera);
    if (is_known(engine, frame)) {
        intake_done(intake, frame);
        intake_over(intake, out->camera, 0);
        return WEIR_ERR_TIMEOUT;
    }
    out->frame = frame;
    out->serving = serving_slot_get(engine->config.slot);
    out->number = engine->n_taken++;
    return WEIR_OK;
}

static void *hand_main(void *context)
{
    struct hand *hand = context;
    struct engine *engine = hand->engine;
    for (;;) {
        struct work work;
        pthread_mutex_lock(&engine->door);
        weir_status status = take(engine, &work);
        pthread_mutex_unlock(&engine->door);
        if (status == WEIR_ERR_CANCELLED) {
            return NULL;
        }
        if (status == WEIR_ERR_TIMEOUT) {
            continue;
        }
        process(hand, &work);
        serving_unref(work.serving);
        intake_over(engine->config.intake, work.camera, work.spent_ns);
    }
}

static void destroy(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_hands; i++) {
        pthread_join(engine->hands[i].thread, NULL);
    }
    passages_close(engine->passages);
    pthread_mutex_destroy(&engine->door);
    pthread_mutex_destroy(&engine->turn_lock);
    pthread_cond_destroy(&engine->turned);
    free(engine);
}

weir_status engine_start(const struct engine_config *config, struct engine **out,
                         struct weir_error *err)
{
    struct engine *engine = weir_xalloc(sizeof *engine);
    *engine = (struct engine){
        .config = *config,
        .passages = passages_open(config->present_path, config->outbox, config->intake)};
    pthread_mutex_init(&engine->door, NULL);
    pthread_mutex_init(&engine->turn_lock, NULL);
    pthread_cond_init(&engine->turned, NULL);
    atomic_init(&engine->goes_on, must_go_on(engine));
    for (size_t i = 0; i < WEIR_MAX(config->n_at_once, (size_t)1); i++) {
        engine->hands[i] = (struct hand){.engine = engine, .i = i};
        int failed = pthread_create(&engine->hands[i].thread, NULL, hand_main, &engine->hands[i]);
        if (failed != 0) {
            intake_close(config->intake);
            destroy(engine);
            return weir_error_set_errno(err, failed, "starting a thread");
        }
        engine->n_hands++;
    }
    *out = engine;
    return WEIR_OK;
}

void engine_durable(struct intake *intake, void *const *tickets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct frame *frame = tickets[i];
        if (frame != NULL && atomic_fetch_sub(&frame->n_open, 1) == 1) {
            intake_done(intake, frame);
        }
    }
}

void engine_stop(struct engine *engine)
{
    if (engine != NULL) {
        destroy(engine);
    }
}
