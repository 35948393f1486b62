#include "cluster/kubernetes/shown.h"

#include "cluster/kubernetes/shown_do.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/log.h"
#include "kube/mirror.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_MS      60000 /* from one question for the definition to the next */
#define PLACE_SOON_MS 5000  /* the same while it is being deleted */
#define ANSWER_MS     5000
#define ROUND_MS      200  /* from one round to the next, at least */
#define CERTAIN_MS    1000 /* by then the API server tells that the definition is being deleted */
#define STALE_MS      90000
#define LOG_MS        600000
#define IDS_MAX       1000
#define STRANGERS_MAX 1000 /* objects of people's own that are looked at */

/* What was told. One block each time: the thread has the one that it works with, `next` is the newest. */
struct telling {
    struct weir_arena arena;
    const char *server;
    struct shown_told *told;
    size_t n;
    uint64_t hash;
};

/* An object that a person has deleted. */
struct deletion {
    const char *key, *job;
    int64_t seen_ms; /* monotonic */
    bool is_certain; /* the definition was there a second later */
};

/* What one round has found. */
struct found {
    struct weir_arena arena;
    struct weir_shown shown;
    struct deletion *deletions;
    size_t n_deletions;
};

struct kubernetes_shown {
    struct weir_arena arena; /* has the namespaces' names */
    const char **spaces;
    size_t n_spaces;
    struct weir_kube *kube;
    pthread_t thread;
    pthread_mutex_t lock; /* guards these */
    pthread_cond_t woken;
    bool is_stopping;
    uint64_t n_notified;
    uint64_t told;        /* hash of what was told last */
    struct telling *next; /* NULL: nothing new was told */
    struct found *found;  /* NULL: no round has ended */
    /* The thread's own. */
    enum kubernetes_shown_place place;
    int64_t place_due_ms;
    struct weir_kube_mirror *mirror;
    struct telling *telling;
    struct shown_do doing;
    uint64_t n_known;
    int64_t log_due_ms; /* that it may not list them is logged from then on */
};

/* ---- the definition -------------------------------------------------------------------------- */

static enum kubernetes_shown_place place_in(const json_t *list)
{
    const json_t *resource, *verb;
    size_t i, k;
    json_array_foreach(json_object_get(list, "resources"), i, resource)
    {
        if (!weir_kube_is(resource, "name", SHOWN_RESOURCE)) {
            continue;
        }
        json_array_foreach(json_object_get(resource, "verbs"), k, verb)
        {
            if (json_is_string(verb) && strcmp(json_string_value(verb), "create") == 0) {
                return KUBERNETES_SHOWN_THERE;
            }
        }
        return KUBERNETES_SHOWN_WITHDRAWN;
    }
    return KUBERNETES_SHOWN_NOWHERE;
}

weir_status kubernetes_shown_place(struct weir_kube *kube, struct weir_arena *arena,
                                   enum kubernetes_shown_place *out, struct weir_error *err)
{
    const struct weir_kube_call call = {
        .method = "GET", .path = SHOWN_GROUP_PATH, .timeout_ms = ANSWER_MS};
    json_t *list = NULL;
    weir_status status = weir_kube_call(kube, &call, arena, &list, NULL, err);
    if (status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_DENIED) {
        *out = KUBERNETES_SHOWN_NOWHERE;
        return WEIR_OK;
    }
    WEIR_TRY(status);
    *out = place_in(list);
    json_decref(list);
    return WEIR_OK;
}

static bool is_ours(const struct kubernetes_shown *shown, const char *space)
{
    for (size_t i = 0; space != NULL && i < shown->n_spaces; i++) {
        if (strcmp(shown->spaces[i], space) == 0) {
            return true;
        }
    }
    return false;
}

/* What lies in other namespaces is not for us. */
static void *read_object(void *context, const json_t *object)
{
    const struct kubernetes_shown *shown = context;
    return is_ours(shown, weir_kube_text(object, "metadata.namespace")) ? shown_object_read(object)
                                                                        : NULL;
}

static void notify(void *context)
{
    struct kubernetes_shown *shown = context;
    pthread_mutex_lock(&shown->lock);
    shown->n_notified++;
    pthread_cond_signal(&shown->woken);
    pthread_mutex_unlock(&shown->lock);
}

static void start_mirror(struct kubernetes_shown *shown)
{
    const struct weir_kube_mirror_config config = {.kube = weir_kube_config_of(shown->kube),
                                                   .path = SHOWN_GROUP_PATH "/" SHOWN_RESOURCE,
                                                   .digest = read_object,
                                                   .digest_context = shown,
                                                   .changed = notify,
                                                   .changed_context = shown};
    struct weir_error err;
    if (weir_kube_mirror_start(&config, &shown->mirror, &err) != WEIR_OK) {
        shown->mirror = NULL;
        weir_log(WEIR_LOG_WARN, "weirjobs_not_mirrored", WEIR_KV_STR("error", err.message));
    }
}

/* What an API server that is away does not say is as it was. @return False: it is. */
static bool ask_place(struct kubernetes_shown *shown)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status = kubernetes_shown_place(shown->kube, &arena, &shown->place, NULL);
    shown->place_due_ms =
        weir_mono_ms() + (shown->place == KUBERNETES_SHOWN_WITHDRAWN ? PLACE_SOON_MS : PLACE_MS);
    if (shown->place == KUBERNETES_SHOWN_NOWHERE) {
        weir_kube_mirror_stop(shown->mirror);
        shown->mirror = NULL;
    } else if (shown->mirror == NULL) {
        start_mirror(shown);
    }
    return status == WEIR_OK;
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void telling_free(struct telling *telling)
{
    if (telling != NULL) {
        weir_arena_fini(&telling->arena);
        free(telling);
    }
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    hash = weir_hash_text(hash, text != NULL ? text : "");
    return weir_hash_bytes(hash, text != NULL ? "" : "-", 1);
}

static uint64_t hash_telling(const struct weir_showing *showing, const char *const *spaces)
{
    uint64_t hash = hash_text(WEIR_HASH_BEGIN, showing->server);
    for (size_t i = 0; i < showing->n; i++) {
        const struct weir_shown_job *job = &showing->jobs[i];
        const char *texts[] = {job->id,   job->name,  job->project, job->queue,
                               job->kind, job->state, job->reason,  spaces[i]};
        const int64_t numbers[] = {job->n_nodes, job->started_ms, job->ended_ms, job->is_ending};
        for (size_t k = 0; k < WEIR_ARRAY_LEN(texts); k++) {
            hash = hash_text(hash, texts[k]);
        }
        hash = weir_hash_bytes(hash, numbers, sizeof numbers);
    }
    return hash;
}

static struct weir_shown_job *copy_job(const struct weir_shown_job *job, struct weir_arena *arena)
{
    struct weir_shown_job *copy = WEIR_ARENA_NEW(arena, struct weir_shown_job);
    *copy = *job;
    copy->id = weir_arena_strdup(arena, job->id);
    copy->name = weir_arena_strdup(arena, job->name);
    copy->project = weir_arena_strdup(arena, job->project);
    copy->queue = weir_arena_strdup(arena, job->queue);
    copy->kind = weir_arena_strdup(arena, job->kind);
    copy->state = weir_arena_strdup(arena, job->state);
    copy->reason = weir_arena_strdup(arena, job->reason);
    return copy;
}

static struct telling *telling_make(const struct weir_showing *showing, const char *const *spaces,
                                    uint64_t hash)
{
    struct telling *telling = weir_xalloc(sizeof *telling);
    *telling = (struct telling){.n = showing->n, .hash = hash};
    weir_arena_init(&telling->arena, 0);
    telling->server = weir_arena_strdup(&telling->arena, showing->server);
    telling->told = WEIR_ARENA_ARRAY(&telling->arena, showing->n + 1, struct shown_told);
    for (size_t i = 0; i < showing->n; i++) {
        const struct weir_shown_job *job = copy_job(&showing->jobs[i], &telling->arena);
        telling->told[i].job = job;
        if (job->state != NULL) {
            telling->told[i] =
                (struct shown_told){.key = shown_key(spaces[i], job, &telling->arena),
                                    .job = job,
                                    .spec = shown_spec_hash(job, showing->server),
                                    .status = shown_status_hash(job)};
        }
    }
    return telling;
}

void kubernetes_shown_tell(struct kubernetes_shown *shown, const struct weir_showing *showing,
                           const char *const *spaces)
{
    uint64_t hash = hash_telling(showing, spaces);
    pthread_mutex_lock(&shown->lock);
    bool is_news = shown->told != hash;
    shown->told = hash;
    pthread_mutex_unlock(&shown->lock);
    if (!is_news) {
        return;
    }
    struct telling *telling = telling_make(showing, spaces, hash);
    pthread_mutex_lock(&shown->lock);
    telling_free(shown->next);
    shown->next = telling;
    pthread_mutex_unlock(&shown->lock);
    notify(shown);
}

static void take_telling(struct kubernetes_shown *shown)
{
    pthread_mutex_lock(&shown->lock);
    struct telling *next = shown->next;
    shown->next = NULL;
    pthread_mutex_unlock(&shown->lock);
    if (next != NULL) {
        telling_free(shown->telling);
        shown->telling = next;
    }
}

/* ---- what is found --------------------------------------------------------------------------- */

static void found_free(struct found *found)
{
    if (found != NULL) {
        weir_arena_fini(&found->arena);
        free(found);
    }
}

static struct found *found_make(void)
{
    struct found *found = weir_xalloc(sizeof *found);
    *found = (struct found){.n_deletions = 0};
    weir_arena_init(&found->arena, 0);
    return found;
}

/* Only the thread sets it, so it may read it without the lock. */
static void publish(struct kubernetes_shown *shown, struct found *found)
{
    pthread_mutex_lock(&shown->lock);
    struct found *before = shown->found;
    shown->found = found;
    pthread_mutex_unlock(&shown->lock);
    found_free(before);
}

static const char **copy_texts(const char *const *texts, size_t n, struct weir_arena *arena)
{
    const char **copies = WEIR_ARENA_ARRAY(arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        copies[i] = weir_arena_strdup(arena, texts[i]);
    }
    return copies;
}

void kubernetes_shown_look(struct kubernetes_shown *shown, struct weir_arena *arena,
                           struct weir_shown *out)
{
    *out = (struct weir_shown){.is_wanted = false};
    pthread_mutex_lock(&shown->lock);
    if (shown->found != NULL) {
        *out = shown->found->shown;
        out->ids = copy_texts(out->ids, out->n_ids, arena);
        out->deleted = copy_texts(out->deleted, out->n_deleted, arena);
    }
    pthread_mutex_unlock(&shown->lock);
}

/* ---- a round --------------------------------------------------------------------------------- */

struct round {
    struct kubernetes_shown *shown;
    struct weir_arena arena;
    struct shown_there *there; /* in the arena, as all it points to */
    size_t n, cap, n_strangers;
    struct shown_step *steps;
    size_t n_steps;
};

/* How many objects of their own people make is up to them. */
static void gather(void *context, const struct weir_kube_object *object)
{
    struct round *round = context;
    const struct shown_object *digest = object->digest;
    if (digest->job == NULL && round->n_strangers++ >= STRANGERS_MAX) {
        return;
    }
    struct shown_object *copy = WEIR_ARENA_NEW(&round->arena, struct shown_object);
    *copy = *digest;
    copy->uid = weir_arena_strdup(&round->arena, digest->uid);
    copy->job = weir_arena_strdup(&round->arena, digest->job);
    weir_arena_grow(&round->arena, &round->there, sizeof round->there[0], round->n, &round->cap);
    round->there[round->n++] =
        (struct shown_there){.key = weir_arena_strdup(&round->arena, object->key), .object = copy};
}

static void plan(struct round *round)
{
    const struct kubernetes_shown *shown = round->shown;
    const struct telling *telling = shown->telling;
    const struct shown_view view = {.there = round->there,
                                    .n_there = round->n,
                                    .told = telling->told,
                                    .n_told = telling->n,
                                    .server = shown_server_hash(telling->server),
                                    .now_ms = weir_time_ms(),
                                    .is_withdrawn = shown->place == KUBERNETES_SHOWN_WITHDRAWN};
    round->steps = shown_plan(&view, &round->arena, &round->n_steps);
}

/* As the round before has it; now, if it has not. */
static struct deletion seen_before(const struct found *before, const struct shown_step *step)
{
    for (size_t i = 0; before != NULL && i < before->n_deletions; i++) {
        if (strcmp(before->deletions[i].key, step->key) == 0 &&
            strcmp(before->deletions[i].job, step->object->job) == 0) {
            return before->deletions[i];
        }
    }
    return (struct deletion){.seen_ms = weir_mono_ms()};
}

static void take_deletions(const struct round *round, struct found *found)
{
    found->deletions = WEIR_ARENA_ARRAY(&found->arena, round->n_steps + 1, struct deletion);
    for (size_t i = 0; i < round->n_steps; i++) {
        const struct shown_step *step = &round->steps[i];
        if (step->what == SHOWN_DELETED) {
            struct deletion *deletion = &found->deletions[found->n_deletions++];
            *deletion = seen_before(round->shown->found, step);
            deletion->key = weir_arena_strdup(&found->arena, step->key);
            deletion->job = weir_arena_strdup(&found->arena, step->object->job);
        }
    }
}

/* To delete the definition deletes all WeirJobs, and means no job. @return When the next is to be made certain. */
static int64_t make_certain(struct kubernetes_shown *shown, struct found *found)
{
    int64_t now_ms = weir_mono_ms(), due_ms = INT64_MAX;
    bool is_due = false;
    for (size_t i = 0; i < found->n_deletions; i++) {
        const struct deletion *deletion = &found->deletions[i];
        bool is_now = now_ms - deletion->seen_ms >= CERTAIN_MS;
        is_due = is_due || (!deletion->is_certain && is_now);
        if (!deletion->is_certain && !is_now) {
            due_ms = WEIR_MIN(due_ms, deletion->seen_ms + CERTAIN_MS);
        }
    }
    bool is_said = is_due && ask_place(shown);
    if (is_due && !is_said) {
        return now_ms + CERTAIN_MS;
    }
    for (size_t i = 0; is_said && i < found->n_deletions; i++) {
        found->deletions[i].is_certain |= shown->place == KUBERNETES_SHOWN_THERE &&
                                          now_ms - found->deletions[i].seen_ms >= CERTAIN_MS;
    }
    return due_ms;
}

static void take_found(const struct round *round, struct found *found)
{
    const struct telling *telling = round->shown->telling;
    const uint64_t server = telling != NULL ? shown_server_hash(telling->server) : 0;
    struct weir_shown *shown = &found->shown;
    shown->is_wanted = round->shown->place == KUBERNETES_SHOWN_THERE;
    shown->ids = WEIR_ARENA_ARRAY(&found->arena, IDS_MAX, const char *);
    shown->deleted = WEIR_ARENA_ARRAY(&found->arena, found->n_deletions + 1, const char *);
    for (size_t i = 0; i < round->n && shown->n_ids < IDS_MAX; i++) {
        if (shown_is_open(round->there[i].object, server)) {
            shown->ids[shown->n_ids++] =
                weir_arena_strdup(&found->arena, round->there[i].object->job);
        }
    }
    for (size_t i = 0; i < found->n_deletions; i++) {
        if (found->deletions[i].is_certain) {
            shown->deleted[shown->n_deleted++] = found->deletions[i].job;
        }
    }
}

/* @return When the next round is due at the latest, monotonic. */
static int64_t do_round(struct round *round)
{
    struct kubernetes_shown *shown = round->shown;
    struct found *found = found_make();
    int64_t due_ms = INT64_MAX;
    if (shown->telling != NULL) {
        plan(round);
        take_deletions(round, found);
        due_ms = make_certain(shown, found);
        if (shown->place == KUBERNETES_SHOWN_WITHDRAWN) {
            plan(round); /* It may be known since just now. */
        }
    }
    take_found(round, found);
    publish(shown, found);
    int64_t done_ms = shown->telling != NULL && shown->place != KUBERNETES_SHOWN_NOWHERE
                          ? shown_do(&shown->doing, round->steps, round->n_steps,
                                     shown->telling->server, &round->arena)
                          : INT64_MAX;
    return WEIR_MIN(due_ms, done_ms);
}

static int64_t go_round(struct kubernetes_shown *shown)
{
    struct round round = {.shown = shown};
    struct weir_error err;
    int64_t due_ms = INT64_MAX;
    take_telling(shown);
    if (weir_mono_ms() >= shown->place_due_ms) {
        (void)ask_place(shown);
    }
    if (shown->mirror == NULL) {
        publish(shown, NULL);
        return shown->place_due_ms;
    }
    weir_arena_init(&round.arena, 0);
    weir_status status = weir_kube_mirror_look(shown->mirror, 0, STALE_MS, gather, &round, &err);
    bool is_refused = status != WEIR_OK && status != WEIR_ERR_UNAVAILABLE;
    if (is_refused && weir_mono_ms() >= shown->log_due_ms) {
        shown->log_due_ms = weir_mono_ms() + LOG_MS;
        weir_log(WEIR_LOG_WARN, "weirjobs_not_mirrored", WEIR_KV_STR("error", err.message));
    }
    due_ms = status != WEIR_OK ? due_ms : do_round(&round);
    weir_arena_fini(&round.arena);
    return WEIR_MIN(due_ms, shown->place_due_ms);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Until something has changed, or it is time; a moment at least. @return Go on? */
static bool wait_for_next(struct kubernetes_shown *shown, int64_t due_ms)
{
    int64_t first_ms = weir_mono_ms() + ROUND_MS;
    pthread_mutex_lock(&shown->lock);
    for (;;) {
        int64_t now_ms = weir_mono_ms();
        bool is_news = shown->n_notified != shown->n_known || now_ms >= due_ms;
        if (shown->is_stopping || (now_ms >= first_ms && is_news)) {
            break;
        }
        struct timespec until = weir_deadline_at(now_ms < first_ms ? first_ms : due_ms);
        (void)weir_cond_wait_until(&shown->woken, &shown->lock, &until);
    }
    shown->n_known = shown->n_notified;
    bool goes_on = !shown->is_stopping;
    pthread_mutex_unlock(&shown->lock);
    return goes_on;
}

static void *shown_main(void *context)
{
    struct kubernetes_shown *shown = context;
    while (wait_for_next(shown, go_round(shown))) {
    }
    return NULL;
}

static void destroy(struct kubernetes_shown *shown)
{
    weir_kube_mirror_stop(shown->mirror);
    shown_do_fini(&shown->doing);
    telling_free(shown->telling);
    telling_free(shown->next);
    found_free(shown->found);
    weir_kube_close(shown->kube);
    pthread_cond_destroy(&shown->woken);
    pthread_mutex_destroy(&shown->lock);
    weir_arena_fini(&shown->arena);
    free(shown);
}

static weir_status begin(struct kubernetes_shown *shown, const struct weir_kube_config *kube,
                         struct weir_error *err)
{
    WEIR_TRY(weir_kube_open(kube, &shown->kube, err));
    shown->doing.kube = shown->kube;
    int reason = pthread_create(&shown->thread, NULL, shown_main, shown);
    return reason == 0 ? WEIR_OK : weir_error_set_errno(err, reason, "cannot start a thread");
}

weir_status kubernetes_shown_start(const struct weir_kube_config *kube, const char *const *spaces,
                                   size_t n_spaces, struct kubernetes_shown **out,
                                   struct weir_error *err)
{
    struct kubernetes_shown *shown = weir_xalloc(sizeof *shown);
    *shown = (struct kubernetes_shown){.n_spaces = n_spaces};
    weir_arena_init(&shown->arena, 0);
    shown->spaces = copy_texts(spaces, n_spaces, &shown->arena);
    pthread_mutex_init(&shown->lock, NULL);
    pthread_cond_init(&shown->woken, NULL);
    weir_status status = begin(shown, kube, err);
    if (status != WEIR_OK) {
        destroy(shown);
        return status;
    }
    *out = shown;
    return WEIR_OK;
}

void kubernetes_shown_stop(struct kubernetes_shown *shown)
{
    if (shown == NULL) {
        return;
    }
    pthread_mutex_lock(&shown->lock);
    shown->is_stopping = true;
    pthread_cond_signal(&shown->woken);
    pthread_mutex_unlock(&shown->lock);
    weir_kube_cancel(shown->kube);
    pthread_join(shown->thread, NULL);
    destroy(shown);
}
