#include "api/ion/desk.h"

#include "base/clock.h"
#include "base/hash.h"
#include "ion/replica.h"
#include "job/job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Topics that are no node's (job/job.h). A look that is woken reads its photos again: it shares none with cameras. */
#define TOPIC_FIRST      WEIR_TOPIC_FREE
#define N_TOPICS         8
#define LOOK_TOPIC_FIRST (TOPIC_FIRST + N_TOPICS)
#define N_LOOK_TOPICS    2

#define REVISION_MASK (((uint64_t)1 << 52) - 1) /* JavaScript's numbers hold it */

struct watch {
    char *ion, *pipeline, *camera; /* NULL: the place is free */
    char *project;                 /* may be NULL */
    int64_t until_ms;
    int64_t seq, shown_ms; /* 0: no picture */
    char *full, *bare;     /* with people and without */
};

struct look {
    char id[WEIR_UUID_BYTES]; /* "": the place is free */
    char *ion, *pipeline;
    char *job; /* its replicas get it; NULL: any */
    char *ask;
    size_t ask_bytes, n_pictures;
    int64_t handed_ms; /* 0: no replica has it */
    bool is_answered;
    char *answer; /* NULL: there is none, and this is why */
    struct weir_error why;
};

struct seen {
    uint64_t hash;
    int64_t ms;
};

struct desk {
    _Atomic int64_t next_seq;
    pthread_mutex_t lock; /* all below */
    struct watch watches[DESK_WATCHES_MAX];
    struct look looks[DESK_LOOKS_MAX];
    size_t looks_bytes;
    struct seen seen[DESK_SEEN_MAX];
    size_t i_seen; /* the oldest */
};

/* Numbers go on above those of a server before, as long as clocks do. */
struct desk *desk_create(void)
{
    struct desk *desk = weir_xalloc(sizeof *desk);
    memset(desk, 0, sizeof *desk);
    atomic_init(&desk->next_seq, weir_time_ms());
    pthread_mutex_init(&desk->lock, NULL);
    return desk;
}

static void watch_free(struct watch *watch)
{
    free(watch->ion);
    free(watch->pipeline);
    free(watch->camera);
    free(watch->project);
    free(watch->full);
    free(watch->bare);
    *watch = (struct watch){0};
}

static void look_free(struct desk *desk, struct look *look)
{
    desk->looks_bytes -= look->ask_bytes;
    free(look->ion);
    free(look->pipeline);
    free(look->job);
    free(look->ask);
    free(look->answer);
    *look = (struct look){0};
}

void desk_destroy(struct desk *desk)
{
    if (desk == NULL) {
        return;
    }
    for (size_t i = 0; i < DESK_WATCHES_MAX; i++) {
        watch_free(&desk->watches[i]);
    }
    for (size_t i = 0; i < DESK_LOOKS_MAX; i++) {
        look_free(desk, &desk->looks[i]);
    }
    pthread_mutex_destroy(&desk->lock);
    free(desk);
}

/* ---- topics ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *const *texts, size_t n)
{
    uint64_t hash = WEIR_HASH_BEGIN;
    for (size_t i = 0; i < n; i++) {
        hash = weir_hash_text(weir_hash_text(hash, texts[i]), "\n");
    }
    return hash ^ hash >> 32;
}

#define HASH_OF(...)                                                                               \
    hash_of((const char *const[]){__VA_ARGS__},                                                    \
            sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))

static uint64_t topic_of(uint64_t hash)
{
    return (uint64_t)1 << (TOPIC_FIRST + hash % N_TOPICS);
}

uint64_t desk_camera_topic(struct desk_place place, const char *camera)
{
    return topic_of(HASH_OF("camera", place.ion, place.pipeline, camera));
}

uint64_t desk_place_topic(struct desk_place place)
{
    return topic_of(HASH_OF("place", place.ion, place.pipeline));
}

uint64_t desk_look_topic(const char *id)
{
    return (uint64_t)1 << (LOOK_TOPIC_FIRST + HASH_OF("look", id) % N_LOOK_TOPICS);
}

/* ---- watches; the lock is held --------------------------------------------------------------- */

static bool is_of(const char *ion, const char *pipeline, struct desk_place place)
{
    return strcmp(ion, place.ion) == 0 && strcmp(pipeline, place.pipeline) == 0;
}

static bool has_picture(const struct watch *watch, int64_t now_ms)
{
    return watch->seq != 0 && now_ms - watch->shown_ms < DESK_PICTURE_KEPT_MS;
}

/* That of the camera; those that are over are freed on the way. */
static struct watch *find_watch(struct desk *desk, struct desk_place place, const char *camera,
                                int64_t now_ms, struct watch **out_free)
{
    struct watch *found = NULL;
    *out_free = NULL;
    for (size_t i = 0; i < DESK_WATCHES_MAX; i++) {
        struct watch *watch = &desk->watches[i];
        if (watch->camera != NULL && watch->until_ms <= now_ms && !has_picture(watch, now_ms)) {
            watch_free(watch);
        }
        if (watch->camera == NULL) {
            *out_free = watch;
        } else if (strcmp(watch->camera, camera) == 0 &&
                   is_of(watch->ion, watch->pipeline, place)) {
            found = watch;
        }
    }
    return found;
}

/* One that nobody looks at any more gives its place, though its picture is kept still. */
static struct watch *idle_watch(struct desk *desk, int64_t now_ms)
{
    struct watch *idle = NULL;
    for (size_t i = 0; i < DESK_WATCHES_MAX; i++) {
        struct watch *watch = &desk->watches[i];
        if (watch->until_ms <= now_ms && (idle == NULL || watch->until_ms < idle->until_ms)) {
            idle = watch;
        }
    }
    if (idle != NULL) {
        watch_free(idle);
    }
    return idle;
}

static size_t watches_of(const struct desk *desk, const char *ion)
{
    size_t n = 0;
    for (size_t i = 0; i < DESK_WATCHES_MAX; i++) {
        n += desk->watches[i].camera != NULL && strcmp(desk->watches[i].ion, ion) == 0;
    }
    return n;
}

/* All are watched: the ION with the most gives the one that would end first, if it has two more than this one. */
static struct watch *crowding_watch(struct desk *desk, const char *ion)
{
    struct watch *found = NULL;
    size_t n_most = watches_of(desk, ion) + 1;
    for (size_t i = 0; i < DESK_WATCHES_MAX; i++) {
        struct watch *watch = &desk->watches[i];
        size_t n = watch->camera != NULL ? watches_of(desk, watch->ion) : 0;
        if (n > n_most || (n == n_most && found != NULL && watch->until_ms < found->until_ms)) {
            n_most = n;
            found = watch;
        }
    }
    if (found != NULL) {
        watch_free(found);
    }
    return found;
}

/* Is it one of an ION that had the name before? */
static bool is_of_another(const struct watch *watch, const char *project)
{
    bool has_both = watch->project != NULL && project != NULL;
    return has_both ? strcmp(watch->project, project) != 0 : watch->project != project;
}

weir_status desk_watch(struct desk *desk, struct desk_place place, const char *camera,
                       int64_t now_ms, int64_t until_ms, bool *out_is_new, struct weir_error *err)
{
    struct watch *room;
    pthread_mutex_lock(&desk->lock);
    struct watch *watch = find_watch(desk, place, camera, now_ms, &room);
    if (watch != NULL && is_of_another(watch, place.project)) {
        watch_free(watch);
    }
    if (watch == NULL) {
        watch = room != NULL ? room : idle_watch(desk, now_ms);
        watch = watch != NULL ? watch : crowding_watch(desk, place.ion);
    }
    if (watch == NULL) {
        pthread_mutex_unlock(&desk->lock);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "%d cameras are watched at once already: close some live pictures, "
                              "and ask again",
                              DESK_WATCHES_MAX);
    }
    *out_is_new = watch->until_ms <= now_ms;
    if (watch->camera == NULL) {
        *watch =
            (struct watch){.ion = weir_xstrdup(place.ion),
                           .pipeline = weir_xstrdup(place.pipeline),
                           .camera = weir_xstrdup(camera),
                           .project = place.project != NULL ? weir_xstrdup(place.project) : NULL};
    }
    watch->until_ms = WEIR_MAX(watch->until_ms, until_ms);
    pthread_mutex_unlock(&desk->lock);
    return WEIR_OK;
}

static char *dump(const json_t *json)
{
    return json_dumps(json, JSON_COMPACT);
}

/* What a viewer without the right to people may see. */
static char *dump_bare(const json_t *live)
{
    size_t i;
    json_t *box, *copy = json_deep_copy(live);
    json_array_foreach(json_object_get(copy, "boxes"), i, box)
    {
        json_object_set_new(box, "name", json_null());
    }
    json_object_set_new(copy, "picture", json_null());
    char *text = dump(copy);
    json_decref(copy);
    return text;
}

bool desk_show(struct desk *desk, struct desk_place place, const char *camera, json_t *live,
               int64_t now_ms)
{
    struct watch *room;
    int64_t seq = atomic_fetch_add(&desk->next_seq, 1);
    json_object_set_new(live, "seq", json_integer(seq));
    char *full = dump(live), *bare = dump_bare(live);
    pthread_mutex_lock(&desk->lock);
    struct watch *watch = find_watch(desk, place, camera, now_ms, &room);
    bool is_kept = watch != NULL && full != NULL && bare != NULL;
    if (is_kept) {
        free(watch->full);
        free(watch->bare);
        watch->full = full;
        watch->bare = bare;
        watch->seq = seq;
        watch->shown_ms = now_ms;
        full = bare = NULL;
    }
    pthread_mutex_unlock(&desk->lock);
    free(full);
    free(bare);
    return is_kept;
}

int64_t desk_live(struct desk *desk, struct desk_place place, const char *camera, bool sees_people,
                  int64_t now_ms, struct weir_buf *out)
{
    struct watch *room;
    int64_t seq = 0;
    pthread_mutex_lock(&desk->lock);
    const struct watch *watch = find_watch(desk, place, camera, now_ms, &room);
    if (watch != NULL && has_picture(watch, now_ms)) {
        seq = watch->seq;
        if (out != NULL) {
            (void)weir_buf_puts(out, sees_people ? watch->full : watch->bare);
        }
    }
    pthread_mutex_unlock(&desk->lock);
    return seq;
}

int64_t desk_live_seq(struct desk *desk, struct desk_place place, const char *camera,
                      int64_t now_ms)
{
    return desk_live(desk, place, camera, false, now_ms, NULL);
}

bool desk_is_first_view(struct desk *desk, const char *viewer, struct desk_place place,
                        const char *camera, int64_t now_ms)
{
    uint64_t hash = HASH_OF("view", viewer, place.ion, place.pipeline, camera);
    bool is_first = true;
    pthread_mutex_lock(&desk->lock);
    for (size_t i = 0; i < DESK_SEEN_MAX && is_first; i++) {
        const struct seen *seen = &desk->seen[i];
        is_first = seen->hash != hash || seen->ms == 0 || now_ms - seen->ms >= DESK_SEEN_MS;
    }
    if (is_first) {
        desk->seen[desk->i_seen] = (struct seen){hash, now_ms};
        desk->i_seen = (desk->i_seen + 1) % DESK_SEEN_MAX;
    }
    pthread_mutex_unlock(&desk->lock);
    return is_first;
}

/* ---- what replicas are asked; the lock is held ----------------------------------------------- */

static bool is_watched(const struct watch *watch, struct desk_place place, int64_t now_ms)
{
    return watch->camera != NULL && watch->until_ms > now_ms &&
           is_of(watch->ion, watch->pipeline, place);
}

/* The cameras that are watched, as JSON; a hash of them is the revision. */
static int64_t append_watched(const struct desk *desk, struct desk_place place, int64_t now_ms,
                              json_t *names, int64_t *out_until_ms)
{
    uint64_t hash = WEIR_HASH_BEGIN;
    int64_t until_ms = 0;
    for (size_t i = 0; i < DESK_WATCHES_MAX; i++) {
        const struct watch *watch = &desk->watches[i];
        if (is_watched(watch, place, now_ms)) {
            json_array_append_new(names, json_string(watch->camera));
            hash = weir_hash_text(weir_hash_text(hash, watch->camera), "\n");
            until_ms = until_ms == 0 ? watch->until_ms : WEIR_MIN(until_ms, watch->until_ms);
        }
    }
    *out_until_ms = until_ms;
    return (int64_t)(hash & REVISION_MASK);
}

/* Is it for the replica that asks? */
static bool is_for(const struct look *look, struct desk_place place)
{
    return is_of(look->ion, look->pipeline, place) &&
           (look->job == NULL || place.replica == NULL ||
            weir_ion_replica_is_of(place.replica, look->job));
}

/* The oldest that no replica has, or had long enough. */
static struct look *look_due(struct desk *desk, struct desk_place place, int64_t now_ms)
{
    for (size_t i = 0; i < DESK_LOOKS_MAX; i++) {
        struct look *look = &desk->looks[i];
        bool is_free = look->handed_ms == 0 || now_ms - look->handed_ms >= DESK_AGAIN_MS;
        if (look->id[0] != '\0' && !look->is_answered && is_free && is_for(look, place)) {
            return look;
        }
    }
    return NULL;
}

bool desk_poll(struct desk *desk, struct desk_place place, int64_t after, bool is_asked,
               int64_t now_ms, struct weir_buf *out, struct desk_news *out_news)
{
    json_t *names = json_array();
    pthread_mutex_lock(&desk->lock);
    int64_t revision = append_watched(desk, place, now_ms, names, &out_news->until_ms);
    struct look *look = look_due(desk, place, now_ms);
    out_news->has_look = look != NULL;
    bool is_news = look != NULL || revision != after || is_asked;
    if (is_news) {
        char *watched = dump(names);
        (void)weir_buf_printf(out, "{\"revision\":%lld,\"watched\":%s,\"looks\":[",
                              (long long)revision, watched != NULL ? watched : "[]");
        if (look != NULL) {
            look->handed_ms = now_ms;
            (void)weir_buf_puts(out, look->ask);
        }
        (void)weir_buf_puts(out, "]}");
        free(watched);
    }
    pthread_mutex_unlock(&desk->lock);
    json_decref(names);
    return is_news;
}

/* ---- looks ----------------------------------------------------------------------------------- */

/* Lock held. */
static struct look *find_look(struct desk *desk, const char *id)
{
    for (size_t i = 0; i < DESK_LOOKS_MAX; i++) {
        if (strcmp(desk->looks[i].id, id) == 0) {
            return &desk->looks[i];
        }
    }
    return NULL;
}

/* Lock held. Is there room for a question of so many bytes, and has its ION not its share already? */
static bool has_room(const struct desk *desk, const char *ion, size_t bytes)
{
    size_t n = 0, ion_bytes = 0;
    for (size_t i = 0; i < DESK_LOOKS_MAX; i++) {
        const struct look *look = &desk->looks[i];
        bool is_its = look->id[0] != '\0' && strcmp(look->ion, ion) == 0;
        n += is_its;
        ion_bytes += is_its ? look->ask_bytes : 0;
    }
    return desk->looks_bytes + bytes <= DESK_LOOKS_MAX_BYTES &&
           n < DESK_LOOKS_MAX / DESK_ION_SHARE &&
           ion_bytes + bytes <= DESK_LOOKS_MAX_BYTES / DESK_ION_SHARE;
}

weir_status desk_look_begin(struct desk *desk, struct desk_place place, json_t *ask,
                            char out_id[WEIR_UUID_BYTES], struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    json_object_set_new(ask, "id", json_string(id));
    char *text = dump(ask);
    size_t bytes = text != NULL ? strlen(text) : 0;
    pthread_mutex_lock(&desk->lock);
    struct look *look = find_look(desk, "");
    bool fits = look != NULL && text != NULL && has_room(desk, place.ion, bytes);
    if (fits) {
        *look = (struct look){.ion = weir_xstrdup(place.ion),
                              .pipeline = weir_xstrdup(place.pipeline),
                              .job = place.job != NULL ? weir_xstrdup(place.job) : NULL,
                              .ask = text,
                              .ask_bytes = bytes,
                              .n_pictures = json_array_size(json_object_get(ask, "pictures"))};
        memcpy(look->id, id, sizeof look->id);
        desk->looks_bytes += bytes;
        memcpy(out_id, id, sizeof id);
    }
    pthread_mutex_unlock(&desk->lock);
    if (!fits) {
        free(text);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "many photos are being looked at: at most %d questions of %zu MiB "
                              "together for an ION; ask again in a few seconds",
                              DESK_LOOKS_MAX / DESK_ION_SHARE,
                              (DESK_LOOKS_MAX_BYTES / DESK_ION_SHARE) >> 20);
    }
    return WEIR_OK;
}

/* Lock held. That of the place which waits for its answer. */
static struct look *open_look(struct desk *desk, struct desk_place place, const char *id)
{
    struct look *look = *id != '\0' ? find_look(desk, id) : NULL;
    return look != NULL && !look->is_answered && is_for(look, place) ? look : NULL;
}

size_t desk_look_pictures(struct desk *desk, struct desk_place place, const char *id)
{
    pthread_mutex_lock(&desk->lock);
    const struct look *look = open_look(desk, place, id);
    size_t n = look != NULL ? look->n_pictures : 0;
    pthread_mutex_unlock(&desk->lock);
    return n;
}

bool desk_look_answer(struct desk *desk, struct desk_place place, const char *id,
                      const json_t *answer, const struct weir_error *why)
{
    char *text = answer != NULL ? dump(answer) : NULL;
    pthread_mutex_lock(&desk->lock);
    struct look *look = open_look(desk, place, id);
    if (look != NULL) {
        look->is_answered = true;
        look->answer = text;
        look->why = why != NULL ? *why : look->why;
    }
    pthread_mutex_unlock(&desk->lock);
    if (look == NULL) {
        free(text);
    }
    return look != NULL;
}

bool desk_look_is_answered(struct desk *desk, const char *id)
{
    pthread_mutex_lock(&desk->lock);
    const struct look *look = find_look(desk, id);
    bool is_answered = look != NULL && look->is_answered;
    pthread_mutex_unlock(&desk->lock);
    return is_answered;
}

/* Lock held. */
static weir_status conclude(const struct look *look, struct weir_buf *out, struct weir_error *err)
{
    if (look == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "this look is over");
    }
    if (look->answer != NULL) {
        (void)weir_buf_puts(out, look->answer);
        return WEIR_OK;
    }
    if (look->is_answered) {
        return weir_error_set(err, look->why.status, "%s", look->why.message);
    }
    return weir_error_set(
        err, WEIR_ERR_UNAVAILABLE,
        look->handed_ms != 0
            ? "a replica of pipeline \"%s\" has the photos, and has not answered within %d s: it "
              "is "
              "busy or gone; ask again"
            : "no replica of pipeline \"%s\" has asked for the photos within %d s: look at the "
              "pipeline's state and its job",
        look->pipeline, DESK_LOOK_MS / 1000);
}

weir_status desk_look_end(struct desk *desk, const char *id, struct weir_buf *out,
                          struct weir_error *err)
{
    pthread_mutex_lock(&desk->lock);
    struct look *look = find_look(desk, id);
    weir_status status = conclude(look, out, err);
    if (look != NULL) {
        look_free(desk, look);
    }
    pthread_mutex_unlock(&desk->lock);
    return status;
}

void desk_look_drop(struct desk *desk, const char *id)
{
    pthread_mutex_lock(&desk->lock);
    struct look *look = find_look(desk, id);
    if (look != NULL) {
        look_free(desk, look);
    }
    pthread_mutex_unlock(&desk->lock);
}
