#include "cluster/kubernetes/shown_plan.h"

#include <stdlib.h>
#include <string.h>

/* What is told, by key and by identifier. */
struct sorted {
    const struct shown_told **by_key, **by_id;
    size_t n_keys, n;
};

static int compare_keys(const void *a, const void *b)
{
    const struct shown_told *const *left = a, *const *right = b;
    int order = strcmp((*left)->key, (*right)->key);
    return order != 0 ? order : strcmp((*left)->job->id, (*right)->job->id);
}

static int compare_ids(const void *a, const void *b)
{
    const struct shown_told *const *left = a, *const *right = b;
    return strcmp((*left)->job->id, (*right)->job->id);
}

static struct sorted sort(const struct shown_view *view, struct weir_arena *arena)
{
    struct sorted sorted = {
        .by_key = WEIR_ARENA_ARRAY(arena, view->n_told + 1, const struct shown_told *),
        .by_id = WEIR_ARENA_ARRAY(arena, view->n_told + 1, const struct shown_told *),
        .n = view->n_told};
    for (size_t i = 0; i < view->n_told; i++) {
        sorted.by_id[i] = &view->told[i];
        if (view->told[i].key != NULL) {
            sorted.by_key[sorted.n_keys++] = &view->told[i];
        }
    }
    qsort(sorted.by_key, sorted.n_keys, sizeof(void *), compare_keys);
    qsort(sorted.by_id, sorted.n, sizeof(void *), compare_ids);
    return sorted;
}

static const struct shown_told *find(const struct sorted *sorted, const char *id)
{
    const struct weir_shown_job job = {.id = id};
    const struct shown_told key = {.job = &job}, *at = &key;
    const struct shown_told **found =
        bsearch(&at, sorted->by_id, sorted->n, sizeof(void *), compare_ids);
    return found != NULL ? *found : NULL;
}

/* ---- one object ------------------------------------------------------------------------------ */

static bool is_held(const struct shown_object *object)
{
    return object->finalizer >= 0;
}

static enum shown_what let_go(const struct shown_object *object)
{
    return is_held(object) ? SHOWN_RELEASE : SHOWN_NOTHING;
}

static enum shown_what take_away(const struct shown_object *object)
{
    return object->is_leaving ? let_go(object) : SHOWN_REMOVE;
}

static bool is_kept_no_more(int64_t ended_ms, int64_t now_ms)
{
    return ended_ms > 0 && now_ms - ended_ms > SHOWN_KEPT_MS;
}

/* At the place of a job. */
static enum shown_what for_job(const struct shown_view *view, const struct shown_told *told,
                               const struct shown_object *object)
{
    const struct weir_shown_job *job = told->job;
    if (object == NULL) {
        return job->is_ending ? SHOWN_NOTHING : SHOWN_PUT;
    }
    if (object->is_leaving) {
        bool is_its = object->job != NULL && strcmp(object->job, job->id) == 0;
        return is_its && is_held(object) && !job->is_ending ? SHOWN_DELETED : let_go(object);
    }
    if (is_kept_no_more(job->ended_ms, view->now_ms)) {
        return SHOWN_REMOVE;
    }
    if (object->spec != told->spec || !is_held(object)) {
        return SHOWN_PUT;
    }
    return object->status != told->status ? SHOWN_STATE : SHOWN_NOTHING;
}

/* Elsewhere. What may be another server's is left alone. */
static enum shown_what for_none(const struct shown_view *view, const struct shown_told *told,
                                const struct shown_object *object)
{
    bool is_ours = object->server == view->server;
    if (object->job == NULL) {
        bool is_said = object->is_refused || object->is_leaving;
        return is_held(object) ? SHOWN_RELEASE : is_said ? SHOWN_NOTHING : SHOWN_REFUSE;
    }
    if (told != NULL) {
        bool is_known = told->key != NULL;
        return is_known || is_ours ? take_away(object) : SHOWN_NOTHING;
    }
    if (!is_ours || object->ended_ms == 0) {
        return SHOWN_NOTHING;
    }
    return object->is_leaving || is_kept_no_more(object->ended_ms, view->now_ms) ? take_away(object)
                                                                                 : SHOWN_NOTHING;
}

/* All of them go: they are let go, so that they can. */
static enum shown_what withdraw(const struct shown_view *view, const struct shown_object *object)
{
    bool is_ours = object->server == view->server || object->job == NULL;
    return is_ours ? let_go(object) : SHOWN_NOTHING;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void add(struct shown_step *steps, size_t *n, struct shown_step step)
{
    if (step.what != SHOWN_NOTHING) {
        steps[(*n)++] = step;
    }
}

static void plan_one(const struct shown_view *view, const struct sorted *sorted,
                     const struct shown_told *told, const struct shown_there *there,
                     struct shown_step *steps, size_t *n)
{
    const struct shown_object *object = there != NULL ? there->object : NULL;
    struct shown_step step = {
        .key = there != NULL ? there->key : told->key, .told = told, .object = object};
    if (view->is_withdrawn) {
        step.what = object != NULL ? withdraw(view, object) : SHOWN_NOTHING;
    } else if (told != NULL) {
        step.what = for_job(view, told, object);
    } else {
        const char *id = object->job;
        step.what = for_none(view, id != NULL ? find(sorted, id) : NULL, object);
    }
    add(steps, n, step);
}

struct shown_step *shown_plan(const struct shown_view *view, struct weir_arena *arena,
                              size_t *out_n)
{
    struct sorted sorted = sort(view, arena);
    struct shown_step *steps =
        WEIR_ARENA_ARRAY(arena, view->n_there + sorted.n_keys + 1, struct shown_step);
    *out_n = 0;
    for (size_t i = 0, k = 0; i < view->n_there || k < sorted.n_keys;) {
        int order = i == view->n_there   ? 1
                    : k == sorted.n_keys ? -1
                                         : strcmp(view->there[i].key, sorted.by_key[k]->key);
        plan_one(view, &sorted, order >= 0 ? sorted.by_key[k] : NULL,
                 order <= 0 ? &view->there[i] : NULL, steps, out_n);
        i += order <= 0;
        for (const char *key = order >= 0 ? sorted.by_key[k]->key : NULL;
             key != NULL && k < sorted.n_keys && strcmp(sorted.by_key[k]->key, key) == 0; k++) {
        }
    }
    return steps;
}

bool shown_is_open(const struct shown_object *object, uint64_t server)
{
    return object->job != NULL && (object->ended_ms == 0 || object->server != server);
}
