#include "predict/passage.h"

#include "base/clock.h"
#include "base/grow.h"
#include "find/finder.h"
#include "predict/passage_present.h"
#include "predict/serving.h"
#include "vision/tracker.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REFUSALS_MAX 16
#define JUDGED_WIDTH 112.0f /**< A face so wide is as good as a wider one. */

/** Somebody whom frames of a passage name. */
struct named {
    char *name;
    struct finding best; /**< Its name is this one's. */
};

/** A passage that goes on: the head is what is told of it. */
struct going {
    struct passage told;
    struct weir_evidence evidence;
    struct named *named;
    size_t n_named, named_cap;
    struct decision_refusal refused[REFUSALS_MAX];
    double embedding_worth; /**< The worth of the frame that the kept embedding is of. */
    bool is_decided, is_over, is_due;
};

struct camera {
    char name[FRAME_CAMERA_BYTES];
    struct weir_tracker *tracker;
    int64_t gone_ms; /**< That the tracker goes by. */
    float low_score;
    char *model;      /**< It compares embeddings of this one; "": none. */
    int64_t last_ms;  /**< When its last frame came. */
    uint64_t seen_ns; /**< When that was followed. */
};

struct passages {
    struct present *present;
    struct intake *intake;
    struct visitors *visitors;
    struct camera *cameras;
    size_t n_cameras, cameras_cap;
    uint64_t n_begun;
};

static struct visitors *open_visitors(const char *path)
{
    char beside[4200];
    (void)snprintf(beside, sizeof beside, "%s.visitors", path != NULL ? path : "");
    return visitors_open(path != NULL ? beside : NULL);
}

struct passages *passages_open(const char *path, struct outbox *outbox, struct intake *intake)
{
    struct passages *passages = weir_xalloc(sizeof *passages);
    *passages = (struct passages){
        .present = present_open(path, outbox), .intake = intake, .visitors = open_visitors(path)};
    return passages;
}

const char *passage_key(const struct passage *passage, char out[FRAME_KEY_BYTES])
{
    (void)snprintf(out, FRAME_KEY_BYTES, "passage/%s/%s", passage->camera, passage->id);
    return out;
}

/* ---- one passage ----------------------------------------------------------------------------- */

static void going_destroy(struct going *going)
{
    for (size_t i = 0; i < going->n_named; i++) {
        free(going->named[i].name);
    }
    free(going->named);
    free(going->told.embedding);
    film_fini(&going->told.film);
    free(going);
}

static struct going *going_create(struct passages *passages, const struct camera *camera,
                                  int64_t time_ms)
{
    struct going *going = weir_xalloc(sizeof *going);
    *going = (struct going){
        .told = {.first_ms = time_ms, .brightness = NAN, .best = {.score = NAN, .threshold = NAN}},
        .embedding_worth = -1};
    film_init(&going->told.film);
    (void)snprintf(going->told.id, sizeof going->told.id, "%" PRId64 "-%" PRIu64, time_ms,
                   ++passages->n_begun);
    (void)snprintf(going->told.camera, sizeof going->told.camera, "%s", camera->name);
    going->told.refused = going->refused;
    weir_evidence_init(&going->evidence);
    return going;
}

/* The number of a name in this passage. */
static int32_t number_of(struct going *going, const struct finding *finding)
{
    size_t i = 0;
    /* A label is no person of the same name: after a change of the serving both may come. */
    while (i < going->n_named && (going->named[i].best.is_label != finding->is_label ||
                                  strcmp(going->named[i].name, finding->name) != 0)) {
        i++;
    }
    if (i == going->n_named) {
        weir_xgrow(&going->named, sizeof *going->named, going->n_named, &going->named_cap);
        going->named[going->n_named++] =
            (struct named){.name = weir_xstrdup(finding->name),
                           .best = {.is_label = finding->is_label, .score = -INFINITY}};
    }
    struct named *named = &going->named[i];
    if (finding->score > named->best.score) {
        named->best = *finding;
        named->best.name = named->name;
    }
    return (int32_t)i;
}

static void count_refusal(struct going *going, const char *why)
{
    size_t i = 0;
    while (i < going->told.n_refused && strcmp(going->refused[i].why, why) != 0) {
        i++;
    }
    if (i == REFUSALS_MAX) {
        return;
    }
    if (i == going->told.n_refused) {
        going->refused[going->told.n_refused++] = (struct decision_refusal){.why = why};
    }
    going->refused[i].n++;
}

/* How good a picture of it this is: sure, large and sharp ones are. */
static double worth_of(const struct stage_object *object)
{
    double worth =
        (double)object->detection.score * (double)fminf(object->detection.box.w / JUDGED_WIDTH, 1);
    if (object->quality.width > 0) {
        worth *= (double)fminf(object->quality.sharpness, 1);
    }
    return object->refused != NULL ? worth / 10 : worth;
}

/* What the decision says of its picture. */
static void tell_best(struct passage *told, const struct stage_frame *at,
                      const struct stage_object *object)
{
    told->box = object->detection.box;
    told->n_boxes = (int64_t)at->n_objects;
    told->quality = object->quality;
    told->brightness = object->brightness;
}

/* One more frame of the film, with a picture if it is to stay. One that cannot be cut is no best one. */
static void film(struct going *going, const struct stage_frame *at,
                 const struct stage_object *object, struct film_frame *frame)
{
    struct weir_error ignored;
    struct film *film = &going->told.film;
    double worth = worth_of(object);
    if (film_wants(film, worth) &&
        stage_object_show(&at->view, object, &frame->picture, &ignored) != WEIR_OK) {
        worth = -1;
    }
    if (worth > film->worth) {
        tell_best(&going->told, at, object);
    }
    film_add(film, frame, worth);
}

/* The embedding of the best frame, for whom else it could be. */
static void keep_embedding(struct going *going, const struct stage_frame *at,
                           const struct stage_object *object)
{
    struct passage *told = &going->told;
    const struct model *model = at->serving->model;
    double worth = worth_of(object);
    if (object->embedding == NULL || !(worth > going->embedding_worth)) {
        return;
    }
    if (told->dim != model->dim) {
        free(told->embedding);
        told->embedding = weir_xalloc(model->dim * sizeof *told->embedding);
        told->dim = model->dim;
    }
    memcpy(told->embedding, object->embedding, model->dim * sizeof *told->embedding);
    (void)snprintf(told->embedder, sizeof told->embedder, "%s", model->blob);
    going->embedding_worth = worth;
}

/* Is it compared, what does it say? Its number of the frame's person; below 0: none. */
static int32_t weigh(struct going *going, const struct passage_rules *rules,
                     const struct stage_frame *at, const struct finding *finding, int64_t time_ms)
{
    struct weir_look_at look = {.time_ms = time_ms,
                                .person = -1,
                                .score = (float)finding->score,
                                .threshold = (float)finding->threshold,
                                .likelihood = NAN};
    if (finding->name != NULL) {
        look.person = number_of(going, finding);
        look.is_barred = !finding->is_label && lists_bar(&at->serving->lists, finding->name);
    }
    (void)weir_evidence_add(&going->evidence, &rules->evidence, &look);
    going->told.n_counted = going->evidence.n_counted;
    going->told.n_named = going->evidence.n_named;
    return look.person;
}

/* One more frame of it. */
static void note(struct going *going, const struct passage_rules *rules,
                 const struct stage_frame *at, const struct stage_object *object, int64_t time_ms)
{
    const struct finding *finding = &object->finding;
    struct passage *told = &going->told;
    struct film_frame frame = {
        .time_ms = time_ms, .score = NAN, .why = object->refused, .box = object->detection.box};
    told->last_ms = time_ms;
    told->n_frames++;
    told->rules = *rules;
    if (object->refused != NULL) {
        count_refusal(going, object->refused);
    } else {
        int32_t i = weigh(going, rules, at, finding, time_ms);
        frame.score = finding->score;
        frame.is_counted = finding->name != NULL;
        frame.person = i >= 0 && finding->score >= finding->threshold ? going->named[i].name : NULL;
    }
    if (!going->is_decided) {
        keep_embedding(going, at, object);
        film(going, at, object, &frame);
    }
}

/* What is told of one that is to be decided. */
static void conclude(struct going *going)
{
    struct passage *told = &going->told;
    told->is_known = going->evidence.state == WEIR_EVIDENCE_KNOWN;
    for (size_t i = 0; i < going->n_named; i++) {
        const struct named *named = &going->named[i];
        bool is_it = told->is_known ? (int32_t)i == going->evidence.person
                                    : !(named->best.score <= told->best.score);
        told->best = is_it ? named->best : told->best;
    }
}

/* Did the unknown person come before? */
static void compare_visitor(struct passages *passages, struct passage *told)
{
    const struct visitor_look look = {.embedding = told->embedding,
                                      .dim = told->dim,
                                      .embedder = told->embedder,
                                      .first_ms = told->first_ms,
                                      .last_ms = told->last_ms};
    if (!told->is_known) {
        visitors_see(passages->visitors, &look, &told->visitor);
    }
}

/* ---- cameras --------------------------------------------------------------------------------- */

static void add_due(struct stage_frame *at, struct going *going)
{
    weir_arena_grow(&at->arena, &at->due, sizeof(struct passage *), at->n_due, &at->due_cap);
    at->due[at->n_due++] = &going->told;
    going->is_due = true;
}

/* Those that are over: what is not decided is, as far as it can be. */
static void take_ended(struct camera *camera, struct stage_frame *at)
{
    const struct weir_track *track;
    while (camera->tracker != NULL && (track = weir_tracker_ended(camera->tracker)) != NULL) {
        struct going *going = track->of_user;
        if (going == NULL) {
            continue;
        }
        if (going->is_decided || track->is_doubtful) {
            going_destroy(going);
            continue;
        }
        weir_evidence_end(&going->evidence);
        conclude(going);
        compare_visitor(at->passages, &going->told);
        going->is_decided = going->is_over = true;
        add_due(at, going);
    }
}

/* All of a camera's passages are over. */
static void end_all(struct camera *camera, struct stage_frame *at)
{
    weir_tracker_end(camera->tracker);
    take_ended(camera, at);
    weir_tracker_destroy(camera->tracker);
    free(camera->model);
    camera->tracker = NULL;
    camera->model = NULL;
}

static struct camera *find_camera(struct passages *passages, struct stage_frame *at)
{
    size_t i_oldest = 0;
    const char *name = at->frame->camera;
    for (size_t i = 0; i < passages->n_cameras; i++) {
        struct camera *camera = &passages->cameras[i];
        if (strcmp(camera->name, name) == 0) {
            return camera;
        }
        i_oldest = camera->last_ms < passages->cameras[i_oldest].last_ms ? i : i_oldest;
    }
    struct camera *camera = &passages->cameras[i_oldest];
    if (passages->n_cameras == PASSAGES_CAMERAS_MAX) {
        end_all(camera, at);
    } else {
        weir_xgrow(&passages->cameras, sizeof *passages->cameras, passages->n_cameras,
                   &passages->cameras_cap);
        camera = &passages->cameras[passages->n_cameras++];
    }
    *camera = (struct camera){0};
    (void)snprintf(camera->name, sizeof camera->name, "%s", name);
    return camera;
}

/* Does it follow somebody? */
static bool is_busy(const struct camera *camera)
{
    struct weir_track *const *ignored;
    return camera->tracker != NULL && weir_tracker_tracks(camera->tracker, &ignored) > 0;
}

/* What a camera's tracker goes by: a passage that goes on keeps it. */
static struct weir_tracker_options tracker_options(const struct passage_rules *rules,
                                                   const struct serving *serving)
{
    struct finder_wish wish;
    struct weir_tracker_options options = weir_tracker_usual;
    options.gone_ms = rules->gone_ms;
    if (finder_wish_of(stages_chain(serving->stages), &wish)) {
        /* What people call found is not too weak for a passage to begin with. */
        options.low_score = fminf(options.low_score, wish.detector.threshold);
    }
    return options;
}

/* A tracker by these rules; one that follows somebody keeps its own. It compares embeddings of this serving's model from now on. */
static weir_status fit_tracker(struct camera *camera, const struct passage_rules *rules,
                               const struct serving *serving, struct weir_error *err)
{
    const struct model *model = serving->model;
    const struct weir_tracker_options options = tracker_options(rules, serving);
    bool embeds = model != NULL && model->gives == WEIR_STAGE_MODEL_EMBEDS;
    const char *blob = embeds ? model->blob : "";
    size_t dim = embeds ? model->dim : 0;
    bool has_rules = camera->tracker != NULL && camera->gone_ms == options.gone_ms &&
                     camera->low_score == options.low_score;
    if (has_rules || is_busy(camera)) {
        if (strcmp(camera->model, blob) == 0) {
            return WEIR_OK;
        }
        WEIR_TRY(weir_tracker_change_model(camera->tracker, dim, err));
    } else {
        struct weir_tracker *tracker;
        WEIR_TRY(weir_tracker_create(&options, dim, &tracker, err));
        weir_tracker_destroy(camera->tracker);
        camera->tracker = tracker;
        camera->gone_ms = options.gone_ms;
        camera->low_score = options.low_score;
    }
    free(camera->model);
    camera->model = weir_xstrdup(blob);
    return WEIR_OK;
}

/* Somebody is known for sure: decide it, unless that was done when another track was this person. */
static void decide_known(struct passages *passages, struct camera *camera, struct going *going,
                         struct stage_frame *at)
{
    char key[FRAME_KEY_BYTES];
    struct passage *told = &going->told;
    conclude(going);
    going->is_decided = true;
    if (told->best.is_label) {
        add_due(at, going); /* There may be two things alike. */
    } else if (!present_see(passages->present, camera->name, told->best.name, told->last_ms)) {
        present_add(passages->present, camera->name, told->best.name, passage_key(told, key),
                    told->last_ms);
        add_due(at, going);
    }
}

/* A person whom a frame names is still there, though a track that has just begun is not sure yet. */
static void see(struct passages *passages, const struct camera *camera,
                const struct finding *finding, int64_t time_ms)
{
    if (finding->name != NULL && !finding->is_label && finding->score >= finding->threshold) {
        (void)present_see(passages->present, camera->name, finding->name, time_ms);
    }
}

static void follow(struct passages *passages, struct camera *camera,
                   const struct passage_rules *rules, struct stage_frame *at,
                   struct weir_track **tracks, int64_t time_ms)
{
    for (size_t i = 0; i < at->n_objects; i++) {
        struct going *going = tracks[i] != NULL ? tracks[i]->of_user : NULL;
        if (tracks[i] == NULL) {
            continue;
        }
        if (going == NULL) {
            tracks[i]->of_user = going = going_create(passages, camera, time_ms);
        }
        note(going, rules, at, &at->objects[i], time_ms);
        at->objects[i].passage = &going->told;
        if (going->evidence.state == WEIR_EVIDENCE_KNOWN && !going->is_decided) {
            decide_known(passages, camera, going, at);
        }
        see(passages, camera, &at->objects[i].finding, time_ms);
    }
}

/* Time goes on for cameras without a frame, too. A camera with a waiting frame is not silent. */
static void wait_for_others(struct passages *passages, const struct camera *but,
                            struct stage_frame *at)
{
    uint64_t now_ns = weir_mono_ns();
    for (size_t i = 0; i < passages->n_cameras; i++) {
        struct camera *camera = &passages->cameras[i];
        int64_t silent_ms = (int64_t)((now_ns - camera->seen_ns) / 1000000);
        if (camera != but && is_busy(camera) &&
            intake_is_silent(passages->intake, camera->name, silent_ms)) {
            weir_tracker_wait(camera->tracker, camera->last_ms + silent_ms);
            take_ended(camera, at);
        }
    }
}

/* Where no model says what a thing is, the detector's class is what it is. */
static void name_classes(struct stage_frame *at)
{
    for (size_t i = 0; i < at->n_objects && at->serving->model == NULL; i++) {
        struct stage_object *object = &at->objects[i];
        object->finding =
            (struct finding){.is_label = true,
                             .name = finder_class(at->finder, object->detection.class_id),
                             .score = (double)object->detection.score,
                             .threshold = 0};
    }
}

weir_status passages_step(struct passages *passages, const struct passage_rules *rules,
                          struct stage_frame *at, struct weir_error *err)
{
    int64_t time_ms = frame_taken_ms(at->frame);
    struct camera *camera = find_camera(passages, at);
    size_t n = at->n_objects;
    name_classes(at);
    WEIR_TRY(fit_tracker(camera, rules, at->serving, err));
    struct weir_sighting *sights = WEIR_ARENA_ARRAY(&at->arena, n + 1, struct weir_sighting);
    struct weir_track **tracks = WEIR_ARENA_ARRAY(&at->arena, n + 1, struct weir_track *);
    for (size_t i = 0; i < n; i++) {
        sights[i] = (struct weir_sighting){.detection = at->objects[i].detection,
                                           .embedding = at->objects[i].embedding};
    }
    int64_t blind_ms = weir_tracker_blind_ms(time_ms - camera->last_ms, rules->gone_ms);
    camera->last_ms = time_ms;
    camera->seen_ns = weir_mono_ns();
    visitors_fit(passages->visitors, rules->keeps_visitors, at->serving->gallery, time_ms);
    present_begin(passages->present, camera->name,
                  &(struct present_frame){time_ms, rules->gone_ms, blind_ms});
    weir_tracker_step(camera->tracker, time_ms, sights, n, tracks);
    for (size_t i = 0; i < n; i++) {
        at->objects[i].track = tracks[i];
    }
    follow(passages, camera, rules, at, tracks, time_ms);
    take_ended(camera, at);
    wait_for_others(passages, camera, at);
    at->has_tracks = true;
    present_save(passages->present, time_ms);
    return WEIR_OK;
}

void passages_wait(struct passages *passages, struct stage_frame *at)
{
    wait_for_others(passages, NULL, at);
    at->has_tracks = true;
}

size_t passages_tracks(const struct passages *passages, const char *camera,
                       struct weir_track *const **out)
{
    for (size_t i = 0; i < passages->n_cameras; i++) {
        const struct camera *one = &passages->cameras[i];
        if (one->tracker != NULL && strcmp(one->name, camera) == 0) {
            return weir_tracker_tracks(one->tracker, out);
        }
    }
    return 0;
}

const char *passages_id(const struct weir_track *track)
{
    const struct going *going = track->of_user;
    return going != NULL ? going->told.id : "";
}

bool passages_are_on(const struct passages *passages)
{
    bool is_on = false;
    for (size_t i = 0; i < passages->n_cameras; i++) {
        is_on = is_on || is_busy(&passages->cameras[i]);
    }
    return is_on;
}

bool passages_are_undecided(const struct passages *passages, const char *camera)
{
    struct weir_track *const *tracks;
    bool are_undecided = false;
    size_t n = passages_tracks(passages, camera, &tracks);
    for (size_t i = 0; i < n; i++) {
        const struct going *going = tracks[i]->of_user;
        are_undecided = are_undecided || (going != NULL && !going->is_decided);
    }
    return are_undecided;
}

void passages_end_due(struct passages *passages, struct stage_frame *at)
{
    const struct weir_stage_chain *chain = stages_chain(at->serving->stages);
    if (weir_stages_options(chain, &weir_stage_track_kind) == NULL) {
        visitors_fit(passages->visitors, false, NULL, 0); /* Nobody is followed any more. */
    }
    for (size_t i = 0; i < at->n_due; i++) {
        struct going *going = (struct going *)at->due[i];
        going->is_due = false;
        if (going->is_over) {
            going_destroy(going);
        }
    }
    at->n_due = 0;
}

void passages_close(struct passages *passages)
{
    if (passages == NULL) {
        return;
    }
    for (size_t i = 0; i < passages->n_cameras; i++) {
        struct camera *camera = &passages->cameras[i];
        struct weir_track *const *tracks;
        size_t n = camera->tracker != NULL ? weir_tracker_tracks(camera->tracker, &tracks) : 0;
        for (size_t k = 0; k < n; k++) {
            if (tracks[k]->of_user != NULL) {
                going_destroy(tracks[k]->of_user);
            }
        }
        weir_tracker_destroy(camera->tracker);
        free(camera->model);
    }
    present_close(passages->present);
    visitors_close(passages->visitors);
    free(passages->cameras);
    free(passages);
}
