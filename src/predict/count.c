#include "predict/count.h"

#include "base/clock.h"
#include "base/grow.h"
#include "endpoint/stage/count.h"
#include "find/finder.h"
#include "predict/passage.h"
#include "predict/serving.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/** One that is followed while it is in a place, or near. */
struct thing {
    uint64_t track;
    char id[PASSAGE_ID_BYTES];
    char *label;
    double score; /**< The best. */
    int64_t n_frames;
    bool is_long;
    int64_t first_ms;                  /**< When it came in. */
    const struct stage_object *object; /**< In this frame. */
};

struct place {
    char camera[FRAME_CAMERA_BYTES];
    char *name;
    uint64_t rules; /**< Hash of what the stage says. */
    struct weir_occupancy *occupancy;
    struct weir_crossings *crossings;
    struct thing *things;
    size_t n_things, things_cap;
    int64_t last_ms;  /**< When its camera's last frame was taken. */
    uint64_t seen_ns; /**< When that was looked at. */
    /* Under the lock: */
    int64_t n, n_entered, n_left, n_right, n_left_over, n_long;
    enum weir_occupancy_what limit;
    int64_t limit_n; /**< The limit that is passed. */
    double long_s;
};

struct counts {
    struct intake *intake;
    struct place *places; /**< COUNTS_PLACES_MAX. */
    size_t n_places;
    uint64_t n_events;
    pthread_mutex_t lock; /**< Guards what the status reads. */
    void (*changed)(void *context);
    void *context;
};

struct counts *counts_create(struct intake *intake)
{
    struct counts *counts = weir_xalloc(sizeof *counts);
    *counts = (struct counts){.intake = intake};
    counts->places = weir_xalloc(COUNTS_PLACES_MAX * sizeof *counts->places);
    pthread_mutex_init(&counts->lock, NULL);
    return counts;
}

static void place_fini(struct place *place)
{
    for (size_t i = 0; i < place->n_things; i++) {
        free(place->things[i].label);
    }
    free(place->things);
    weir_occupancy_destroy(place->occupancy);
    weir_crossings_destroy(place->crossings);
    free(place->name);
}

void counts_destroy(struct counts *counts)
{
    if (counts == NULL) {
        return;
    }
    for (size_t i = 0; i < counts->n_places; i++) {
        place_fini(&counts->places[i]);
    }
    pthread_mutex_destroy(&counts->lock);
    free(counts->places);
    free(counts);
}

/* ---- places ---------------------------------------------------------------------------------- */

static weir_status equip(struct place *place, const struct count_rules *rules,
                         struct weir_error *err)
{
    if (rules->has_zone) {
        WEIR_TRY(weir_occupancy_create(&rules->zone, &place->occupancy, err));
    }
    return rules->has_line
               ? weir_crossings_create(&rules->line, rules->zone.is_by_foot, &place->crossings, err)
               : WEIR_OK;
}

/* It begins, or does so once more by other rules. */
static weir_status begin(struct counts *counts, struct place *place, const char *camera,
                         const struct count_rules *rules, struct weir_error *err)
{
    struct place new = {.rules = rules->hash,
                        .limit = WEIR_OCCUPANCY_WITHIN,
                        .long_s = rules->long_s,
                        .name = weir_xstrdup(rules->name)};
    (void)snprintf(new.camera, sizeof new.camera, "%s", camera);
    weir_status status = equip(&new, rules, err);
    if (status != WEIR_OK) {
        place_fini(&new);
        return weir_error_prefix(err, "stage \"count\", place %s: ", rules->name);
    }
    pthread_mutex_lock(&counts->lock);
    if (place == &counts->places[counts->n_places]) {
        counts->n_places++;
    } else {
        place_fini(place);
    }
    *place = new;
    pthread_mutex_unlock(&counts->lock);
    return WEIR_OK;
}

/* *out is NULL where there are too many. */
static weir_status find_place(struct counts *counts, const char *camera,
                              const struct count_rules *rules, struct place **out,
                              struct weir_error *err)
{
    struct place *place = counts->places, *end = place + counts->n_places;
    while (place < end &&
           (strcmp(place->camera, camera) != 0 || strcmp(place->name, rules->name) != 0)) {
        place++;
    }
    *out = NULL;
    if (place == counts->places + COUNTS_PLACES_MAX) {
        return WEIR_OK;
    }
    if (place == end || place->rules != rules->hash) {
        WEIR_TRY(begin(counts, place, camera, rules, err));
    }
    *out = place;
    return WEIR_OK;
}

static bool is_among(const json_t *names, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach(names, i, one)
    {
        if (strcmp(json_string_value(one), name) == 0) {
            return true;
        }
    }
    return json_array_size(names) == 0;
}

/* ---- things ---------------------------------------------------------------------------------- */

static struct thing *find_thing(struct place *place, uint64_t track)
{
    for (size_t i = 0; i < place->n_things; i++) {
        if (place->things[i].track == track) {
            return &place->things[i];
        }
    }
    return NULL;
}

static void note_thing(struct place *place, const struct stage_object *object, const char *label)
{
    struct thing *thing = find_thing(place, object->track->id);
    if (thing == NULL) {
        weir_xgrow(&place->things, sizeof *place->things, place->n_things, &place->things_cap);
        thing = &place->things[place->n_things++];
        *thing = (struct thing){.track = object->track->id, .label = weir_xstrdup(label)};
        (void)snprintf(thing->id, sizeof thing->id, "%s", passages_id(object->track));
    }
    thing->n_frames++;
    thing->score = fmax(thing->score, (double)object->detection.score);
    thing->object = object;
}

/* Those that are neither in nor followed any more. */
static void forget_things(struct place *place, struct weir_track *const *tracks, size_t n)
{
    size_t n_left = 0;
    for (size_t i = 0; i < place->n_things; i++) {
        struct thing *thing = &place->things[i];
        bool stays = place->occupancy != NULL &&
                     weir_occupancy_inside_ms(place->occupancy, thing->track) >= 0;
        for (size_t k = 0; k < n; k++) {
            stays = stays || tracks[k]->id == thing->track;
        }
        thing->object = NULL;
        if (stays) {
            place->things[n_left++] = *thing;
        } else {
            free(thing->label);
        }
    }
    place->n_things = n_left;
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct stage_event *add_event(struct counts *counts, const struct place *place,
                                     struct stage_frame *at, const char *what)
{
    weir_arena_grow(&at->arena, &at->events, sizeof *at->events, at->n_events, &at->events_cap);
    struct stage_event *event = &at->events[at->n_events++];
    *event = (struct stage_event){.camera = weir_arena_strdup(&at->arena, place->camera),
                                  .place = weir_arena_strdup(&at->arena, place->name),
                                  .what = what,
                                  .n = place->n,
                                  .score = NAN};
    (void)snprintf(event->id, sizeof event->id, "%" PRId64 "-%" PRIu64, weir_time_ms(),
                   ++counts->n_events);
    return event;
}

static void add_thing(struct stage_event *event, const struct thing *thing,
                      struct weir_arena *arena)
{
    if (thing != NULL) {
        event->label = weir_arena_strdup(arena, thing->label);
        event->score = thing->score;
        event->object = thing->object;
        event->n_frames = thing->n_frames;
    }
}

/* An event of a zone. */
static void tell(struct counts *counts, struct place *place, struct stage_frame *at,
                 const struct count_rules *rules, const struct weir_occupancy_event *one,
                 int64_t time_ms)
{
    static const char *const whats[] = {"entered", "left", "long", "over", "under", "within"};
    static const char *const labels[] = {NULL, NULL, NULL, "too many", "too few", "within limits"};
    struct thing *thing = find_thing(place, one->track);
    place->n = one->n_inside;
    struct stage_event *event = add_event(counts, place, at, whats[one->what]);
    event->label = labels[one->what];
    switch (one->what) {
    case WEIR_OCCUPANCY_ENTERED:
        place->n_entered++;
        break;
    case WEIR_OCCUPANCY_LEFT:
        place->n_left++;
        place->n_long -= thing != NULL && thing->is_long;
        break;
    case WEIR_OCCUPANCY_LONG:
        place->n_long++;
        break;
    default:
        place->limit = one->what;
        place->limit_n = one->what == WEIR_OCCUPANCY_OVER ? rules->zone.over : rules->zone.under;
        return;
    }
    add_thing(event, thing, &at->arena);
    if (thing != NULL && one->what == WEIR_OCCUPANCY_ENTERED) {
        thing->first_ms = time_ms - one->inside_ms;
    } else if (thing != NULL) {
        thing->is_long = one->what == WEIR_OCCUPANCY_LONG;
        event->passage = weir_arena_strdup(&at->arena, thing->id);
        event->first_ms = thing->first_ms;
        event->last_ms = thing->first_ms + one->inside_ms;
    }
}

static void tell_crossing(struct counts *counts, struct place *place, struct stage_frame *at,
                          const struct weir_crossing *one)
{
    struct stage_event *event = add_event(counts, place, at, "crossed");
    event->to = one->is_right ? "right" : "left";
    add_thing(event, find_thing(place, one->track), &at->arena);
    place->n_right += one->is_right;
    place->n_left_over += !one->is_right;
}

/* The place at a time, with what is seen there. */
static void step(struct counts *counts, struct place *place, const struct count_rules *rules,
                 struct stage_frame *at, int64_t time_ms, struct weir_track *const *seen, size_t n)
{
    const struct weir_occupancy_event *events;
    bool was_long = place->n_long > 0, has_changed = false;
    enum weir_occupancy_what limit = place->limit;
    pthread_mutex_lock(&counts->lock);
    if (place->occupancy != NULL) {
        size_t n_events =
            weir_occupancy_step(place->occupancy, time_ms, WEIR_MAX(at->view.width, 1),
                                WEIR_MAX(at->view.height, 1), seen, n, &events);
        for (size_t i = 0; i < n_events; i++) {
            tell(counts, place, at, rules, &events[i], time_ms);
        }
        has_changed = place->limit != limit || (place->n_long > 0) != was_long;
    }
    void (*changed)(void *) = has_changed ? counts->changed : NULL;
    void *context = counts->context;
    pthread_mutex_unlock(&counts->lock);
    if (changed != NULL) {
        changed(context);
    }
}

static void step_line(struct counts *counts, struct place *place, struct stage_frame *at,
                      struct weir_track *const *tracks, size_t n)
{
    const struct weir_crossing *found;
    pthread_mutex_lock(&counts->lock);
    size_t n_found = place->crossings != NULL
                         ? weir_crossings_step(place->crossings, at->view.width, at->view.height,
                                               tracks, n, &found)
                         : 0;
    for (size_t i = 0; i < n_found; i++) {
        tell_crossing(counts, place, at, &found[i]);
    }
    pthread_mutex_unlock(&counts->lock);
}

/* Tracks of classes that count. `seen`: those of this frame alone. Returns how many. */
static size_t choose(struct place *place, const struct count_rules *rules, struct stage_frame *at,
                     struct weir_track *const *tracks, size_t n, struct weir_track **seen,
                     struct weir_track **all, size_t *out_n_all)
{
    size_t n_seen = 0;
    *out_n_all = 0;
    for (size_t i = 0; i < n; i++) {
        const char *label = finder_class(at->finder, tracks[i]->last.class_id);
        if (!is_among(rules->classes, label)) {
            continue;
        }
        all[(*out_n_all)++] = tracks[i];
        for (size_t k = 0; k < at->n_objects; k++) {
            if (at->objects[k].track == tracks[i]) {
                note_thing(place, &at->objects[k], label);
                seen[n_seen++] = tracks[i];
            }
        }
    }
    return n_seen;
}

void counts_wait(struct counts *counts, const struct count_rules *rules, struct stage_frame *at)
{
    uint64_t now_ns = weir_mono_ns();
    at->has_counts = true;
    for (size_t i = 0; i < counts->n_places; i++) {
        struct place *place = &counts->places[i];
        int64_t silent_ms = (int64_t)((now_ns - place->seen_ns) / 1000000);
        if (place->occupancy != NULL && !weir_occupancy_is_settled(place->occupancy) &&
            strcmp(place->name, rules->name) == 0 &&
            intake_is_silent(counts->intake, place->camera, silent_ms)) {
            struct weir_track *const *tracks;
            step(counts, place, rules, at, place->last_ms + silent_ms, NULL, 0);
            size_t n = passages_tracks(at->passages, place->camera, &tracks);
            forget_things(place, tracks, n);
        }
    }
}

weir_status counts_step(struct counts *counts, const struct count_rules *rules,
                        struct stage_frame *at, struct weir_error *err)
{
    struct place *place;
    struct weir_track *const *tracks;
    size_t n_all;
    const char *camera = at->frame->camera;
    counts_wait(counts, rules, at);
    if (!is_among(rules->cameras, camera)) {
        return WEIR_OK;
    }
    WEIR_TRY(find_place(counts, camera, rules, &place, err));
    size_t n = place != NULL ? passages_tracks(at->passages, camera, &tracks) : 0;
    struct weir_track **seen = WEIR_ARENA_ARRAY(&at->arena, n + 1, struct weir_track *);
    struct weir_track **all = WEIR_ARENA_ARRAY(&at->arena, n + 1, struct weir_track *);
    if (place == NULL) {
        return WEIR_OK;
    }
    size_t n_seen = choose(place, rules, at, tracks, n, seen, all, &n_all);
    step(counts, place, rules, at, frame_taken_ms(at->frame), seen, n_seen);
    step_line(counts, place, at, all, n_all);
    place->last_ms = frame_taken_ms(at->frame);
    place->seen_ns = weir_mono_ns();
    forget_things(place, tracks, n);
    return WEIR_OK;
}

static bool has_place(const struct weir_stage_chain *chain, const struct place *place)
{
    for (size_t i = 0; i < chain->n; i++) {
        const struct weir_stage_count *count = chain->items[i].options;
        if (chain->items[i].kind == &weir_stage_count_kind &&
            strcmp(count->name, place->name) == 0 && is_among(count->cameras, place->camera)) {
            return true;
        }
    }
    return false;
}

void counts_prune(struct counts *counts, const struct weir_stage_chain *chain)
{
    size_t n_left = 0;
    pthread_mutex_lock(&counts->lock);
    for (size_t i = 0; i < counts->n_places; i++) {
        if (has_place(chain, &counts->places[i])) {
            counts->places[n_left++] = counts->places[i];
        } else {
            place_fini(&counts->places[i]);
        }
    }
    counts->n_places = n_left;
    pthread_mutex_unlock(&counts->lock);
}

bool counts_are_on(const struct counts *counts)
{
    bool are_on = false;
    for (size_t i = 0; i < counts->n_places; i++) {
        are_on = are_on || (counts->places[i].occupancy != NULL &&
                            !weir_occupancy_is_settled(counts->places[i].occupancy));
    }
    return are_on;
}

/* ---- what people see ------------------------------------------------------------------------- */

static json_t *conditions_of(const struct place *place)
{
    json_t *list = json_array();
    if (place->limit == WEIR_OCCUPANCY_OVER) {
        json_array_append_new(list, json_sprintf("more than %lld", (long long)place->limit_n));
    } else if (place->limit == WEIR_OCCUPANCY_UNDER) {
        json_array_append_new(list, json_sprintf("fewer than %lld", (long long)place->limit_n));
    }
    if (place->n_long > 0) {
        json_array_append_new(list, json_sprintf("longer than %g s", place->long_s));
    }
    return list;
}

json_t *counts_status(struct counts *counts)
{
    json_t *list = json_array();
    pthread_mutex_lock(&counts->lock);
    for (size_t i = 0; i < counts->n_places; i++) {
        const struct place *place = &counts->places[i];
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:o}", "camera", place->camera, "place",
                            place->name, "n", (json_int_t)place->n, "entered",
                            (json_int_t)place->n_entered, "left", (json_int_t)place->n_left,
                            "to_right", (json_int_t)place->n_right, "to_left",
                            (json_int_t)place->n_left_over, "conditions", conditions_of(place)));
    }
    pthread_mutex_unlock(&counts->lock);
    return list;
}

void counts_listen(struct counts *counts, void (*changed)(void *context), void *context)
{
    pthread_mutex_lock(&counts->lock);
    counts->changed = changed;
    counts->context = context;
    pthread_mutex_unlock(&counts->lock);
}
