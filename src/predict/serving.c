#include "predict/serving.h"

#include "find/finder.h"

#include <stdlib.h>
#include <string.h>

static const char **copy_names(struct weir_arena *arena, const char *const *names, size_t n)
{
    const char **copies = WEIR_ARENA_ARRAY(arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        copies[i] = weir_arena_strdup(arena, names[i]);
    }
    return copies;
}

struct serving *serving_create(const struct serving_parts *parts, const struct lists *lists,
                               int64_t revision, int64_t list_revision)
{
    struct serving *serving = weir_xalloc(sizeof *serving);
    *serving = (struct serving){.model = parts->model,
                                .gallery = parts->gallery,
                                .n_finders = parts->n_finders,
                                .stages = parts->stages,
                                .model_version = parts->model != NULL ? parts->model->version
                                                 : parts->n_finders > 0
                                                     ? finder_name(parts->finders[0])->version
                                                     : 0,
                                .revision = revision,
                                .list_revision = list_revision};
    memcpy(serving->finders, parts->finders, sizeof serving->finders);
    atomic_init(&serving->n_refs, 1);
    weir_arena_init(&serving->arena, 0);
    serving->lists = (struct lists){
        .allow = copy_names(&serving->arena, lists->allow, lists->n_allow),
        .n_allow = lists->n_allow,
        .deny = copy_names(&serving->arena, lists->deny, lists->n_deny),
        .n_deny = lists->n_deny,
        .locked = copy_names(&serving->arena, lists->locked, lists->n_locked),
        .n_locked = lists->n_locked,
        .fallback = lists->fallback,
    };
    lists_sort(&serving->lists);
    return serving;
}

struct serving *serving_ref(struct serving *serving)
{
    atomic_fetch_add(&serving->n_refs, 1);
    return serving;
}

void serving_unref(struct serving *serving)
{
    if (serving == NULL || atomic_fetch_sub(&serving->n_refs, 1) > 1) {
        return;
    }
    model_unref(serving->model);
    gallery_unref(serving->gallery);
    for (size_t i = 0; i < serving->n_finders; i++) {
        finder_unref(serving->finders[i]);
    }
    stages_destroy(serving->stages);
    weir_arena_fini(&serving->arena);
    free(serving);
}

double serving_threshold(const struct serving *serving)
{
    return serving->gallery != NULL ? serving->gallery->calibration.threshold
                                    : stages_threshold(serving->stages);
}

bool serving_is_broken(const struct serving *serving)
{
    bool is_broken = serving->model != NULL && model_is_broken(serving->model);
    for (size_t i = 0; i < serving->n_finders; i++) {
        is_broken = is_broken || finder_is_broken(serving->finders[i]);
    }
    return is_broken;
}

void serving_slot_init(struct serving_slot *slot)
{
    slot->current = NULL;
    pthread_mutex_init(&slot->lock, NULL);
}

void serving_slot_fini(struct serving_slot *slot)
{
    serving_unref(slot->current);
    pthread_mutex_destroy(&slot->lock);
}

struct serving *serving_slot_get(struct serving_slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    struct serving *serving = slot->current != NULL ? serving_ref(slot->current) : NULL;
    pthread_mutex_unlock(&slot->lock);
    return serving;
}

void serving_slot_publish(struct serving_slot *slot, struct serving *serving)
{
    pthread_mutex_lock(&slot->lock);
    struct serving *old = slot->current;
    slot->current = serving;
    pthread_mutex_unlock(&slot->lock);
    serving_unref(old);
}
