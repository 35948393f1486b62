#include "predict/look.h"

#include "base/base64.h"
#include "base/clock.h"
#include "find/photo.h"
#include "predict/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEPT (LOOK_NEAREST_MAX + 1) /* one of them may be the person that is left out */

struct near {
    char *person;
    double score;
};

/** The people that are most like, best first. */
struct nearest {
    struct near items[KEPT];
    size_t n;
};

/** One photo: what goes to the engine's thread, and what comes back. */
struct photo {
    struct serving_slot *slot;
    struct weir_image image;
    const struct weir_image *shown; /* it, or with nothing around it */
    weir_status status;
    struct weir_error err;
    bool has_detector, has_box, is_usable;
    size_t n_faces;
    struct weir_box box;
    struct weir_face_quality quality; /* width 0: not judged */
    char why[128];                    /* "": it is usable */
    struct nearest nearest;
    double threshold, confused_from;
};

/* ---- the nearest ----------------------------------------------------------------------------- */

static void nearest_fini(struct nearest *nearest)
{
    for (size_t i = 0; i < nearest->n; i++) {
        free(nearest->items[i].person);
    }
    nearest->n = 0;
}

static void nearest_remove(struct nearest *nearest, size_t i)
{
    free(nearest->items[i].person);
    memmove(&nearest->items[i], &nearest->items[i + 1],
            (nearest->n - i - 1) * sizeof nearest->items[0]);
    nearest->n--;
}

/* A person that is there already keeps the better score. */
static void nearest_add(struct nearest *nearest, const char *person, double score)
{
    for (size_t i = 0; i < nearest->n; i++) {
        if (strcmp(nearest->items[i].person, person) == 0) {
            if (nearest->items[i].score >= score) {
                return;
            }
            nearest_remove(nearest, i);
            break;
        }
    }
    size_t at = nearest->n;
    while (at > 0 && nearest->items[at - 1].score < score) {
        at--;
    }
    if (at == KEPT) {
        return;
    }
    if (nearest->n == KEPT) {
        nearest_remove(nearest, KEPT - 1);
    }
    memmove(&nearest->items[at + 1], &nearest->items[at],
            (nearest->n - at) * sizeof nearest->items[0]);
    nearest->items[at] = (struct near){weir_xstrdup(person), score};
    nearest->n++;
}

static void photo_fini(struct photo *photo)
{
    weir_image_fini(&photo->image);
    nearest_fini(&photo->nearest);
}

static void compare(const struct gallery *gallery, const float *embedding, struct nearest *nearest)
{
    struct match found[KEPT];
    size_t n = match_nearest(&gallery->templates, embedding, KEPT, found);
    for (size_t i = 0; i < n; i++) {
        nearest_add(nearest, gallery->persons[found[i].person], found[i].score);
    }
}

static json_t *nearest_to_json(const struct nearest *nearest, const char *without)
{
    json_t *list = json_array();
    for (size_t i = 0; i < nearest->n && json_array_size(list) < LOOK_NEAREST_MAX; i++) {
        const struct near *near = &nearest->items[i];
        if (without == NULL || strcmp(near->person, without) != 0) {
            json_array_append_new(list, json_pack("{s:o,s:f}", "person",
                                                  weir_json_string(near->person, "?"), "score",
                                                  near->score));
        }
    }
    return list;
}

/* ---- on the engine's thread ------------------------------------------------------------------ */

static void say_why(struct photo *photo, const char *why)
{
    (void)snprintf(photo->why, sizeof photo->why, "%.*s", (int)sizeof photo->why - 1, why);
}

/* The face that a gallery would take of it: the largest. */
static const struct stage_object *largest(const struct stage_frame *at)
{
    const struct stage_object *found = NULL;
    float most = -1;
    for (size_t i = 0; i < at->n_objects; i++) {
        const struct weir_box *box = &at->objects[i].detection.box;
        if (box->w * box->h > most) {
            most = box->w * box->h;
            found = &at->objects[i];
        }
    }
    return found;
}

static void note(struct photo *photo, const struct stage_frame *at)
{
    const struct gallery *gallery = at->serving->gallery;
    const struct thresholds thresholds = gallery_thresholds(gallery);
    const struct stage_object *object = largest(at);
    photo->has_detector = at->has_detector;
    photo->n_faces = at->n_objects;
    photo->why[0] = '\0';
    photo->threshold = thresholds.known;
    photo->confused_from = fmin(thresholds.known, thresholds.barred);
    if (object == NULL) {
        say_why(photo, "no face");
        return;
    }
    photo->has_box = object->has_box;
    photo->box = object->detection.box;
    photo->quality = object->quality;
    photo->is_usable = object->refused == NULL && object->embedding != NULL;
    if (photo->is_usable) {
        compare(gallery, object->embedding, &photo->nearest);
    } else {
        say_why(photo, object->refused != NULL ? object->refused : "not compared");
    }
}

static weir_status run_stages(struct photo *photo, struct serving *serving, struct weir_error *err)
{
    const struct frame frame = {.view = weir_view_of(photo->shown),
                                .received_ms = weir_time_ms(),
                                .received_ns = weir_mono_ns()};
    if (serving->gallery == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the pipeline compares with no gallery: it recognises nobody");
    }
    WEIR_AUTO(stage_frame_fini) struct stage_frame at;
    stage_frame_init(&at, &frame, serving);
    WEIR_TRY(stages_look(serving->stages, &at, err));
    note(photo, &at);
    return WEIR_OK;
}

static void look_on_engine(void *context)
{
    struct photo *photo = context;
    struct serving *serving = serving_slot_get(photo->slot);
    photo->status = serving != NULL
                        ? run_stages(photo, serving, &photo->err)
                        : weir_error_set(&photo->err, WEIR_ERR_UNAVAILABLE,
                                         "the replica has no model yet: ask again in a moment");
    serving_unref(serving);
}

/* ---- on the caller's ------------------------------------------------------------------------- */

static weir_status decode(const char *text, struct weir_image *out, struct weir_error *err)
{
    size_t size = strlen(text) / 4 * 3 + 3, len;
    WEIR_AUTO(weir_auto_free) char *bytes = weir_xalloc(size);
    return weir_base64_decode(text, bytes, size, &len) == WEIR_OK
               ? weir_image_decode(bytes, len, out, err)
               : weir_error_set(err, WEIR_ERR_INVALID, "it is no base64");
}

static void show(struct intake *intake, const struct weir_image *image, struct photo *photo)
{
    photo->shown = image;
    if (intake_run(intake, look_on_engine, photo) != WEIR_OK) {
        photo->status = weir_error_set(&photo->err, WEIR_ERR_CANCELLED, "the replica stops");
    }
}

/* As a gallery does it (find/photo.h): a photo in which no face is found is looked at smaller. */
static weir_status show_around(struct intake *intake, struct photo *photo, struct weir_error *err)
{
    show(intake, &photo->image, photo);
    for (size_t i = 1; i < PHOTO_SURROUNDS; i++) {
        struct photo_place place;
        bool is_over = photo->status != WEIR_OK || !photo->has_detector || photo->n_faces > 0;
        if (is_over) {
            return WEIR_OK;
        }
        WEIR_AUTO(weir_image_fini) struct weir_image wide = {0};
        WEIR_TRY(photo_surround(&photo->image, photo_surrounds[i], &place, &wide, err));
        show(intake, &wide, photo);
        photo->box = photo_place_box(&place, &photo->box);
    }
    return WEIR_OK;
}

/* A photo that cannot be read says why; the others are looked at. */
static weir_status look_at_one(struct intake *intake, const char *text, struct photo *photo,
                               struct weir_error *err)
{
    struct weir_error damaged;
    if (decode(text, &photo->image, &damaged) != WEIR_OK) {
        photo->has_detector = true;
        say_why(photo, damaged.message);
        return WEIR_OK;
    }
    weir_status shown = show_around(intake, photo, err);
    weir_image_fini(&photo->image);
    WEIR_TRY(shown);
    return photo->status == WEIR_OK ? WEIR_OK
                                    : weir_error_set(err, photo->status, "%s", photo->err.message);
}

static json_t *box_to_json(const struct photo *photo)
{
    const struct weir_box *box = &photo->box;
    return photo->has_box ? json_pack("{s:f,s:f,s:f,s:f}", "x", (double)box->x, "y", (double)box->y,
                                      "w", (double)box->w, "h", (double)box->h)
                          : json_null();
}

static json_t *photo_to_json(const struct photo *photo)
{
    return json_pack("{s:o,s:o,s:o,s:b,s:o,s:o}", "faces",
                     photo->has_detector ? json_integer((json_int_t)photo->n_faces) : json_null(),
                     "box", box_to_json(photo), "quality",
                     photo->quality.width > 0 ? decision_quality_to_json(&photo->quality)
                                              : json_null(),
                     "usable", photo->is_usable, "why",
                     weir_json_string(photo->why[0] != '\0' ? photo->why : NULL, "not readable"),
                     "nearest", nearest_to_json(&photo->nearest, NULL));
}

/** What is said of all photos. */
struct answer {
    json_t *pictures;
    struct nearest nearest;
    double threshold, confused_from;
};

static void answer_fini(struct answer *answer)
{
    json_decref(answer->pictures);
    nearest_fini(&answer->nearest);
}

static void add_photo(struct answer *answer, const struct photo *photo)
{
    const struct nearest *nearest = &photo->nearest;
    json_array_append_new(answer->pictures, photo_to_json(photo));
    for (size_t i = 0; i < nearest->n; i++) {
        nearest_add(&answer->nearest, nearest->items[i].person, nearest->items[i].score);
    }
    if (!isnan(photo->threshold)) {
        answer->threshold = photo->threshold;
        answer->confused_from = photo->confused_from;
    }
}

weir_status look_at(struct intake *intake, struct serving_slot *slot, const json_t *pictures,
                    const char *person, json_t **out, struct weir_error *err)
{
    size_t i;
    json_t *one;
    WEIR_AUTO(answer_fini)
    struct answer answer = {.pictures = json_array(), .threshold = NAN, .confused_from = NAN};
    if (!json_is_array(pictures)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "pictures: expected a list");
    }
    json_array_foreach(pictures, i, one)
    {
        WEIR_AUTO(photo_fini)
        struct photo photo = {.slot = slot, .threshold = NAN, .confused_from = NAN};
        const char *text = json_string_value(one);
        WEIR_TRY(look_at_one(intake, text != NULL ? text : "", &photo, err));
        add_photo(&answer, &photo);
    }
    *out = json_pack("{s:O,s:o,s:o,s:o}", "pictures", answer.pictures, "nearest",
                     nearest_to_json(&answer.nearest, person), "threshold",
                     weir_json_real(answer.threshold), "confused_from",
                     weir_json_real(answer.confused_from));
    return WEIR_OK;
}
