/**
 * Serving: everything a decision depends on, immutable, replaced as one.
 *
 * The slot holds the one in use. The engine takes it once per frame, so each frame is decided by
 * one serving from beginning to end; publishing is one pointer, and the old one is freed when the
 * last frame that uses it is done.
 */
#ifndef WEIR_PREDICT_SERVING_H
#define WEIR_PREDICT_SERVING_H

#include "predict/decide.h"
#include "predict/gallery.h"
#include "predict/model.h"
#include "predict/stage.h"

#include <pthread.h>
#include <stdatomic.h>

#define SERVING_FINDERS_MAX 4

struct serving {
    atomic_int n_refs;
    struct model *model;     /**< Counted. NULL: what the finder finds is all there is to know. */
    int64_t model_version;   /**< The model's, or the finder's. */
    struct gallery *gallery; /**< Counted; made by this model. NULL: no stage compares with one. */
    /** Counted, and alike: each is for one frame at a time. None: no stage detects. */
    struct finder *finders[SERVING_FINDERS_MAX];
    size_t n_finders;
    struct stages *stages; /**< Its own; they fit the model. */
    struct lists lists;
    struct weir_arena arena; /**< Of the lists. */
    int64_t revision, list_revision;
};

/** What it takes the references of; gallery may be NULL, and model beside a finder. */
struct serving_parts {
    struct model *model;
    struct gallery *gallery;
    struct finder *finders[SERVING_FINDERS_MAX];
    size_t n_finders;
    struct stages *stages;
};

/** Takes the parts; lists are copied and sorted. */
struct serving *serving_create(const struct serving_parts *parts, const struct lists *lists,
                               int64_t revision, int64_t list_revision);

/** The score that is needed of people on no list, or of labels. */
double serving_threshold(const struct serving *serving);
/** Has the GPU of its model or detector failed? */
bool serving_is_broken(const struct serving *serving);

struct serving *serving_ref(struct serving *serving);
void serving_unref(struct serving *serving);

struct serving_slot {
    pthread_mutex_t lock;
    struct serving *current; /**< NULL: none yet. */
};

void serving_slot_init(struct serving_slot *slot);
void serving_slot_fini(struct serving_slot *slot);

/** A reference to the current one, or NULL. Any thread. */
struct serving *serving_slot_get(struct serving_slot *slot);

/** Takes the reference. Any thread. */
void serving_slot_publish(struct serving_slot *slot, struct serving *serving);

#endif
