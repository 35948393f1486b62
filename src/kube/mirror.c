#include "kube/mirror.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/rng.h"
#include "kube/table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE           500
#define WATCH_MIN_S    240 /* a watch is ended by the API server after so long, to twice as long */
#define QUIET_MS       150000 /* bookmarks come once a minute */
#define FORGET_EACH_MS 5000

struct weir_kube_mirror {
    struct weir_kube_mirror_config config;
    struct weir_arena arena; /* has the configuration's text */
    struct weir_kube *kube;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below, but for the thread's own */
    pthread_cond_t changed;
    struct kube_table table;
    bool is_listed; /* a list has been whole */
    bool is_stopping;
    int64_t heard_ms;   /* when the API server was heard last, monotonic */
    weir_status status; /* how the last try ended; WEIR_OK: the watch goes on */
    struct weir_error err;
    struct weir_kube_mirror_stats stats;
    /* The thread's own. */
    char version[64]; /* from which the watch goes on; "": all is to be listed */
    int64_t forgot_ms;
};

/* ---- the table ------------------------------------------------------------------------------- */

static const char *key_of(const json_t *object, struct weir_arena *arena)
{
    const char *name = weir_kube_text(object, "metadata.name");
    const char *space = weir_kube_text(object, "metadata.namespace");
    return name == NULL || space == NULL ? name : weir_arena_printf(arena, "%s/%s", space, name);
}

static void hear(struct weir_kube_mirror *mirror)
{
    mirror->heard_ms = weir_mono_ms();
    mirror->status = WEIR_OK;
}

static void put(struct weir_kube_mirror *mirror, const json_t *object, bool is_deleted)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *key = key_of(object, &arena);
    if (key == NULL) {
        return;
    }
    bool is_kept = !is_deleted || mirror->config.deleted_ms > 0;
    void *digest = is_kept ? mirror->config.digest(mirror->config.digest_context, object) : NULL;
    pthread_mutex_lock(&mirror->lock);
    if (digest == NULL || is_deleted) {
        kube_table_delete(&mirror->table, key, digest, weir_mono_ms());
    } else {
        kube_table_put(&mirror->table, key, digest, true);
    }
    hear(mirror);
    pthread_mutex_unlock(&mirror->lock);
}

static void forget(struct weir_kube_mirror *mirror)
{
    int64_t now_ms = weir_mono_ms();
    if (mirror->config.deleted_ms > 0 && now_ms - mirror->forgot_ms > FORGET_EACH_MS) {
        mirror->forgot_ms = now_ms;
        pthread_mutex_lock(&mirror->lock);
        kube_table_forget(&mirror->table, now_ms - mirror->config.deleted_ms);
        pthread_mutex_unlock(&mirror->lock);
    }
}

static void tell(struct weir_kube_mirror *mirror)
{
    if (mirror->config.changed != NULL) {
        mirror->config.changed(mirror->config.changed_context);
    }
}

static void take_version(struct weir_kube_mirror *mirror, const json_t *object)
{
    const char *version = weir_kube_text(object, "metadata.resourceVersion");
    if (version != NULL && strlen(version) < sizeof mirror->version) {
        (void)snprintf(mirror->version, sizeof mirror->version, "%s", version);
    }
}

/* ---- the list -------------------------------------------------------------------------------- */

static const char *list_query(const struct weir_kube_mirror *mirror, const char *next,
                              struct weir_arena *arena)
{
    const char *query = mirror->config.query;
    return weir_arena_printf(arena, "%s%slimit=%lld%s%s", query != NULL ? query : "",
                             query != NULL ? "&" : "", (long long)mirror->config.page,
                             next[0] != '\0' ? "&continue=" : "", weir_kube_escape(next, arena));
}

/* @param next  In: where it goes on; out: the same of the next page, "" at the end. */
static weir_status list_page(struct weir_kube_mirror *mirror, const char **next,
                             struct weir_arena *arena, struct weir_kube_refusal *refusal,
                             struct weir_error *err)
{
    const struct weir_kube_call call = {
        .method = "GET", .path = mirror->config.path, .query = list_query(mirror, *next, arena)};
    json_t *page, *object;
    size_t i;
    WEIR_TRY(weir_kube_call(mirror->kube, &call, arena, &page, refusal, err));
    json_array_foreach(json_object_get(page, "items"), i, object)
    {
        put(mirror, object, false);
    }
    const char *more = weir_kube_text(page, "metadata.continue");
    *next = more != NULL ? weir_arena_strdup(arena, more) : "";
    take_version(mirror, page);
    json_decref(page);
    return WEIR_OK;
}

static weir_status list_all(struct weir_kube_mirror *mirror, struct weir_kube_refusal *refusal,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const char *next = "";
    weir_arena_init(&arena, 0);
    pthread_mutex_lock(&mirror->lock);
    kube_table_begin_list(&mirror->table);
    mirror->stats.n_lists++;
    pthread_mutex_unlock(&mirror->lock);
    do {
        weir_status status = list_page(mirror, &next, &arena, refusal, err);
        if (status != WEIR_OK) {
            mirror->version[0] = '\0'; /* the list is not whole */
            return status;
        }
    } while (next[0] != '\0');
    pthread_mutex_lock(&mirror->lock);
    kube_table_end_list(&mirror->table, weir_mono_ms(), mirror->config.deleted_ms > 0);
    mirror->is_listed = true;
    hear(mirror);
    pthread_cond_broadcast(&mirror->changed);
    pthread_mutex_unlock(&mirror->lock);
    tell(mirror);
    return WEIR_OK;
}

/* ---- the watch ------------------------------------------------------------------------------- */

/* @return CONFLICT: the API server has forgotten where the watch was. */
static weir_status take_error(struct weir_kube_mirror *mirror, const json_t *status,
                              struct weir_error *err)
{
    json_int_t code = json_integer_value(json_object_get(status, "code"));
    const char *message = weir_kube_text(status, "message");
    message = message != NULL ? message : "the watch has failed";
    if (code == 410) {
        mirror->version[0] = '\0';
        return weir_error_set(err, WEIR_ERR_CONFLICT, "%s", message);
    }
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s", message);
}

static weir_status on_event(void *context, const json_t *event, struct weir_error *err)
{
    struct weir_kube_mirror *mirror = context;
    const char *type = weir_kube_text(event, "type");
    const json_t *object = json_object_get(event, "object");
    type = type != NULL ? type : "";
    if (strcmp(type, "ERROR") == 0) {
        return take_error(mirror, object, err);
    }
    if (strcmp(type, "BOOKMARK") == 0) {
        pthread_mutex_lock(&mirror->lock);
        hear(mirror);
        pthread_mutex_unlock(&mirror->lock);
    } else {
        put(mirror, object, strcmp(type, "DELETED") == 0);
        pthread_mutex_lock(&mirror->lock);
        mirror->stats.n_events++;
        pthread_mutex_unlock(&mirror->lock);
        tell(mirror);
    }
    take_version(mirror, object);
    forget(mirror);
    return WEIR_OK;
}

static weir_status watch(struct weir_kube_mirror *mirror, struct weir_kube_refusal *refusal,
                         struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const char *query = mirror->config.query;
    uint32_t chance;
    weir_arena_init(&arena, 0);
    weir_random_bytes(&chance, sizeof chance);
    const struct weir_kube_stream stream = {
        .path = mirror->config.path,
        .query = weir_arena_printf(&arena,
                                   "%s%swatch=1&allowWatchBookmarks=true&resourceVersion=%s"
                                   "&timeoutSeconds=%u",
                                   query != NULL ? query : "", query != NULL ? "&" : "",
                                   mirror->version, WATCH_MIN_S + chance % WATCH_MIN_S),
        .on_value = on_event,
        .context = mirror,
        .quiet_timeout_ms = QUIET_MS};
    pthread_mutex_lock(&mirror->lock);
    mirror->stats.n_watches++;
    pthread_mutex_unlock(&mirror->lock);
    return weir_kube_stream(mirror->kube, &stream, refusal, err);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_stopping(struct weir_kube_mirror *mirror)
{
    pthread_mutex_lock(&mirror->lock);
    bool is = mirror->is_stopping;
    pthread_mutex_unlock(&mirror->lock);
    return is;
}

static void note(struct weir_kube_mirror *mirror, weir_status status, const struct weir_error *err)
{
    pthread_mutex_lock(&mirror->lock);
    mirror->status = status;
    mirror->err = *err;
    pthread_cond_broadcast(&mirror->changed);
    pthread_mutex_unlock(&mirror->lock);
}

static void *mirror_main(void *context)
{
    struct weir_kube_mirror *mirror = context;
    unsigned n_tries = 0;
    while (!is_stopping(mirror)) {
        struct weir_kube_refusal refusal;
        struct weir_error err;
        int64_t n_before = mirror->stats.n_events;
        weir_status status = mirror->version[0] == '\0' ? list_all(mirror, &refusal, &err)
                                                        : watch(mirror, &refusal, &err);
        if (refusal.code == 410) {
            mirror->version[0] = '\0';
        }
        if (status != WEIR_OK) {
            note(mirror, status, &err);
        }
        /* A watch that ends at once, again and again, is no better than one that fails. */
        bool has_come_on = status == WEIR_OK || mirror->stats.n_events > n_before;
        n_tries = has_come_on ? 0 : n_tries + 1;
        if (!weir_kube_pause(mirror->kube, n_tries)) {
            break;
        }
    }
    return NULL;
}

weir_status weir_kube_mirror_start(const struct weir_kube_mirror_config *config,
                                   struct weir_kube_mirror **out, struct weir_error *err)
{
    struct weir_kube *kube;
    WEIR_TRY(weir_kube_open(config->kube, &kube, err));
    struct weir_kube_mirror *mirror = weir_xalloc(sizeof *mirror);
    *mirror = (struct weir_kube_mirror){.config = *config, .kube = kube};
    weir_arena_init(&mirror->arena, 0);
    mirror->config.path = weir_arena_strdup(&mirror->arena, config->path);
    mirror->config.query = weir_arena_strdup(&mirror->arena, config->query);
    mirror->config.page = config->page > 0 ? config->page : PAGE;
    mirror->config.kube = NULL; /* the client has its own */
    mirror->table.release = config->release;
    pthread_mutex_init(&mirror->lock, NULL);
    pthread_cond_init(&mirror->changed, NULL);
    int reason = pthread_create(&mirror->thread, NULL, mirror_main, mirror);
    if (reason != 0) {
        mirror->is_stopping = true;
        weir_kube_close(kube);
        weir_arena_fini(&mirror->arena);
        free(mirror);
        return weir_error_set_errno(err, reason, "cannot start a thread");
    }
    *out = mirror;
    return WEIR_OK;
}

void weir_kube_mirror_stop(struct weir_kube_mirror *mirror)
{
    if (mirror == NULL) {
        return;
    }
    pthread_mutex_lock(&mirror->lock);
    mirror->is_stopping = true;
    pthread_mutex_unlock(&mirror->lock);
    weir_kube_cancel(mirror->kube);
    pthread_join(mirror->thread, NULL);
    weir_kube_close(mirror->kube);
    kube_table_fini(&mirror->table);
    pthread_cond_destroy(&mirror->changed);
    pthread_mutex_destroy(&mirror->lock);
    weir_arena_fini(&mirror->arena);
    free(mirror);
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool has_failed(const struct weir_kube_mirror *mirror)
{
    return mirror->status != WEIR_OK;
}

/* Until there is a list, or it is clear that there will be none. The lock is held. */
static void await_list(struct weir_kube_mirror *mirror, int64_t wait_ms)
{
    struct timespec until = weir_deadline_after(wait_ms);
    while (!mirror->is_listed && !has_failed(mirror) &&
           weir_cond_wait_until(&mirror->changed, &mirror->lock, &until) == 0) {
    }
}

static weir_status check_fresh(const struct weir_kube_mirror *mirror, int64_t stale_ms,
                               struct weir_error *err)
{
    int64_t silent_ms = weir_mono_ms() - mirror->heard_ms;
    bool is_old = stale_ms > 0 && silent_ms > stale_ms;
    if (mirror->is_listed && !is_old) {
        return WEIR_OK;
    }
    if (has_failed(mirror)) {
        bool is_refused = mirror->status == WEIR_ERR_DENIED || mirror->status == WEIR_ERR_NOT_FOUND;
        return weir_error_set(err, is_refused ? mirror->status : WEIR_ERR_UNAVAILABLE, "%s",
                              mirror->err.message);
    }
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "the API server has not been heard for %lld s",
                          (long long)(mirror->heard_ms > 0 ? silent_ms : 0) / 1000);
}

weir_status weir_kube_mirror_look(struct weir_kube_mirror *mirror, int64_t wait_ms,
                                  int64_t stale_ms, weir_kube_object_fn fn, void *context,
                                  struct weir_error *err)
{
    pthread_mutex_lock(&mirror->lock);
    await_list(mirror, wait_ms);
    weir_status status = check_fresh(mirror, stale_ms, err);
    size_t n = status != WEIR_OK ? 0 : mirror->table.n;
    for (size_t i = 0; i < n; i++) {
        const struct kube_entry *entry = &mirror->table.entries[i];
        const struct weir_kube_object object = {
            .key = entry->key, .digest = entry->digest, .is_deleted = entry->deleted_ms != 0};
        fn(context, &object);
    }
    pthread_mutex_unlock(&mirror->lock);
    return status;
}

struct weir_kube_mirror_stats weir_kube_mirror_stats(struct weir_kube_mirror *mirror)
{
    pthread_mutex_lock(&mirror->lock);
    struct weir_kube_mirror_stats stats = mirror->stats;
    stats.n_objects = (int64_t)mirror->table.n;
    pthread_mutex_unlock(&mirror->lock);
    return stats;
}
