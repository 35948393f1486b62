#include "endpoint/stage/count.h"
#include "predict/passage.h"
#include "predict/serving.h"
#include "predict/stage.h"

#include <string.h>

/* What is said of a finding that stands. `is_sure`: it holds although its score alone may not say so. */
static void say(const struct serving *serving, const struct finding *finding, bool is_sure,
                struct decision *decision)
{
    decision->score = finding->score;
    decision->threshold = finding->threshold;
    if (finding->is_label) {
        decision->verdict = decide_label(finding->score, finding->threshold, finding->is_rejected);
        decision->label = decision->verdict == VERDICT_LABEL ? finding->name : NULL;
        return;
    }
    const struct thresholds thresholds = gallery_thresholds(serving->gallery);
    bool is_known = is_sure || finding->score >= finding->threshold;
    decision->verdict = is_sure
                            ? decide_person(finding->name, &serving->lists)
                            : decide(finding->score, finding->name, &thresholds, &serving->lists);
    decision->person = is_known ? finding->name : NULL;
}

/* The picture of an object; of the whole picture the engine has it. */
static weir_status show(const struct stage_frame *at, const struct stage_object *object,
                        struct weir_image *out, struct weir_error *err)
{
    return at->has_detector || at->image.pixels == NULL
               ? stage_object_show(&at->view, object, out, err)
               : WEIR_OK;
}

static weir_status decide_object(struct stage_frame *at, const struct stage_object *object,
                                 struct weir_error *err)
{
    struct stage_decision *made = stage_decision_add(at);
    struct decision *decision = made->decision;
    decision->labels = object->labels;
    decision->n_labels = object->n_labels;
    decision->brightness = object->brightness;
    decision->has_box = object->has_box;
    decision->box = object->detection.box;
    decision->n_boxes = at->has_detector ? (int64_t)at->n_objects : 0;
    decision->has_quality = object->quality.width > 0;
    decision->quality = object->quality;
    decision->refused = object->refused;
    if (at->serving->gallery == NULL && object->finding.name == NULL) {
        decision->verdict = VERDICT_UNKNOWN; /* It was refused. */
    } else {
        say(at->serving, &object->finding, false, decision);
    }
    return show(at, object, &made->picture, err);
}

/* A frame in which nothing is found is decided, too: there is nobody to know. */
static weir_status decide_nothing(struct stage_frame *at, struct weir_error *err)
{
    struct stage_decision *made = stage_decision_add(at);
    made->decision->verdict = VERDICT_UNKNOWN;
    made->decision->refused = "no face";
    return weir_view_to_image(&at->view, PICTURE_SIDE_MAX, &made->picture, err);
}

/* What frames that were not compared were refused for most often. */
static const char *refusal_of(const struct passage *passage)
{
    const struct decision_refusal *most = NULL;
    for (size_t i = 0; i < passage->n_refused && passage->n_counted == 0; i++) {
        most = most == NULL || passage->refused[i].n > most->n ? &passage->refused[i] : most;
    }
    return most != NULL ? most->why : NULL;
}

/* Whom else it could be: people of the gallery that serves now, if its embeddings are of the model that made this one. */
static void tell_nearest(const struct serving *serving, const struct passage *passage,
                         struct weir_arena *arena, struct decision_passage *told)
{
    struct match matches[DECISION_NEAREST];
    const struct gallery *gallery = serving->gallery;
    if (passage->embedding == NULL || gallery == NULL || serving->model == NULL ||
        strcmp(serving->model->blob, passage->embedder) != 0) {
        return;
    }
    struct decision_near *nearest = WEIR_ARENA_ARRAY(arena, DECISION_NEAREST, struct decision_near);
    told->n_nearest =
        match_nearest(&gallery->templates, passage->embedding, DECISION_NEAREST, matches);
    for (size_t i = 0; i < told->n_nearest; i++) {
        const char *person = gallery->persons[matches[i].person];
        nearest[i] = (struct decision_near){weir_arena_strdup(arena, person), matches[i].score};
    }
    told->nearest = nearest;
}

/* The film becomes the decision's; the best frame's picture is the decision's own. */
static void tell_film(struct passage *passage, struct weir_arena *arena,
                      struct decision_passage *told, struct weir_image *out_picture)
{
    told->film = passage->film;
    film_init(&passage->film);
    for (size_t i = 0; i < told->film.n; i++) {
        struct film_frame *frame = &told->film.frames[i];
        frame->person = weir_arena_strdup(arena, frame->person);
    }
    struct film_frame *best = film_best(&told->film);
    if (best != NULL) {
        *out_picture = best->picture;
        best->picture = (struct weir_image){0};
    }
}

static struct decision_passage *tell_passage(const struct passage *passage,
                                             struct weir_arena *arena)
{
    const struct passage_rules *rules = &passage->rules;
    struct decision_passage *told = WEIR_ARENA_NEW(arena, struct decision_passage);
    *told = (struct decision_passage){
        .id = weir_arena_strdup(arena, passage->id),
        .first_ms = passage->first_ms,
        .last_ms = passage->last_ms,
        .n_frames = passage->n_frames,
        .n_counted = passage->n_counted,
        .n_named = passage->n_named,
        .refused = (const void *)weir_arena_memdup(arena, passage->refused,
                                                   passage->n_refused * sizeof *passage->refused),
        .n_refused = passage->n_refused,
        .rule = {.n = rules->evidence.n,
                 .m = rules->evidence.m,
                 .gone_ms = rules->gone_ms,
                 .accept = (double)rules->evidence.accept,
                 .deny = (double)rules->evidence.deny},
        .visitor = passage->visitor};
    return told;
}

static void decide_passage(struct stage_frame *at, struct passage *passage)
{
    char key[FRAME_KEY_BYTES];
    struct stage_decision *made = stage_decision_add(at);
    struct decision *decision = made->decision;
    struct weir_arena *arena = &decision->arena;
    decision->passage = tell_passage(passage, arena);
    tell_nearest(at->serving, passage, arena, decision->passage);
    tell_film(passage, arena, decision->passage, &made->picture);
    decision->key = weir_arena_strdup(arena, passage_key(passage, key));
    decision->camera = weir_arena_strdup(arena, passage->camera);
    decision->brightness = passage->brightness;
    decision->has_box = true;
    decision->box = passage->box;
    decision->n_boxes = passage->n_boxes;
    decision->has_quality = passage->quality.width > 0;
    decision->quality = passage->quality;
    decision->refused = refusal_of(passage);
    if (passage->is_known) {
        say(at->serving, &passage->best, true, decision);
    } else {
        decision->verdict = VERDICT_UNKNOWN;
        decision->score = passage->best.score;
        decision->threshold = passage->best.threshold;
    }
}

/* The way of a thing through a place. */
static struct decision_passage *way_of(const struct stage_event *event, struct weir_arena *arena)
{
    struct decision_passage *way = NULL;
    if (event->passage != NULL) {
        way = WEIR_ARENA_NEW(arena, struct decision_passage);
        *way = (struct decision_passage){.id = weir_arena_strdup(arena, event->passage),
                                         .first_ms = event->first_ms,
                                         .last_ms = event->last_ms,
                                         .n_frames = event->n_frames,
                                         .n_counted = event->n_frames,
                                         .n_named = event->n_frames};
    }
    return way;
}

static weir_status decide_event(struct stage_frame *at, const struct stage_event *event,
                                struct weir_error *err)
{
    struct stage_decision *made = stage_decision_add(at);
    struct decision *decision = made->decision;
    struct weir_arena *arena = &decision->arena;
    struct decision_count *counted = WEIR_ARENA_NEW(arena, struct decision_count);
    *counted = (struct decision_count){.place = weir_arena_strdup(arena, event->place),
                                       .what = event->what,
                                       .to = event->to,
                                       .n = event->n};
    decision->counted = counted;
    decision->verdict = VERDICT_LABEL;
    decision->label = event->label != NULL ? event->label : "?";
    decision->score = event->score;
    decision->camera = weir_arena_strdup(arena, event->camera);
    decision->key = weir_arena_printf(arena, "count/%s/%s", event->camera, event->id);
    decision->passage = way_of(event, arena);
    if (event->object != NULL) {
        decision->has_box = true;
        decision->box = event->object->detection.box;
        decision->n_boxes = (int64_t)at->n_objects;
        return stage_object_show(&at->view, event->object, &made->picture, err);
    }
    bool is_its = strcmp(event->camera, at->frame->camera) == 0;
    return is_its && at->view.form != WEIR_VIEW_NONE
               ? weir_view_to_image(&at->view, PICTURE_SIDE_MAX, &made->picture, err)
               : WEIR_OK;
}

void stage_decide_due(struct stage_frame *at)
{
    const struct weir_stage_chain *chain = stages_chain(at->serving->stages);
    /* Where things are counted and no model knows them, what happens to them is all there is to say. */
    bool is_said =
        at->serving->model == NULL && weir_stages_options(chain, &weir_stage_count_kind) != NULL;
    for (; at->n_due_decided < at->n_due; at->n_due_decided++) {
        if (!is_said) {
            decide_passage(at, at->due[at->n_due_decided]);
        }
    }
}

static weir_status wait_on(const void *options, struct stage_frame *at, struct weir_error *err)
{
    (void)options;
    stage_decide_due(at);
    for (size_t i = 0; i < at->n_events; i++) {
        WEIR_TRY(decide_event(at, &at->events[i], err));
    }
    return WEIR_OK;
}

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    WEIR_TRY(wait_on(options, at, err));
    if (at->has_tracks) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < at->n_objects; i++) {
        WEIR_TRY(decide_object(at, &at->objects[i], err));
    }
    return at->n_objects == 0 ? decide_nothing(at, err) : WEIR_OK;
}

const struct stage_ops stage_decide = {.run = run, .wait = wait_on};
