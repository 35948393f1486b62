#include "client/follow.h"

#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_WAIT_S      20
#define POLL_TIMEOUT_MS  ((POLL_WAIT_S + 15) * 1000)
#define LOW_PRIORITY     10
#define QUIET_MS         100 /**< After an answer without news, whatever the server does. */
#define RETRY_FIRST_MS   1000
#define RETRY_MAX_MS     60000
#define WANTED_MAX_BYTES ((size_t)256 << 20)
#define DIR_BYTES        (WEIR_FOLLOW_PATH_BYTES - 160)

struct weir_follow {
    struct weir_follow_config config;
    pthread_t thread;
    struct weir_client *client; /**< NULL: there is no server. */
    char cache_dir[DIR_BYTES];
    int64_t revision; /**< That was applied; −1: none. */
    bool is_started;
    atomic_bool is_stopping;
    pthread_mutex_t lock; /**< With `stopping`: for pauses. */
    pthread_cond_t stopping;
};

const atomic_bool *weir_follow_stopping(const struct weir_follow *follow)
{
    return &follow->is_stopping;
}

struct weir_client *weir_follow_client(struct weir_follow *follow)
{
    return follow->client;
}

/* ---- files ----------------------------------------------------------------------------------- */

const char *weir_follow_cache_dir(const struct weir_follow *follow)
{
    return follow->cache_dir;
}

char *weir_follow_cache_path(const struct weir_follow *follow, const char *kind, const char *sha256,
                             char out[WEIR_FOLLOW_PATH_BYTES])
{
    (void)snprintf(out, WEIR_FOLLOW_PATH_BYTES, "%s/%s-%s", follow->cache_dir, kind, sha256);
    return out;
}

/* Is the file in the cache, and still what it was fetched as? One that is not goes. */
static bool is_cached(const char *sha256, const char *path)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    struct weir_error err;
    if (!weir_path_exists(path)) {
        return false;
    }
    if (weir_file_sha256(path, digest, &n_bytes, &err) == WEIR_OK && strcmp(digest, sha256) == 0) {
        return true;
    }
    weir_log(WEIR_LOG_WARN, "cached_file_damaged", WEIR_KV_STR("path", path));
    (void)unlink(path);
    return false;
}

static void lower_priority(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOW_PRIORITY);
}

static weir_status get(const struct weir_follow *follow, const char *sha256, const char *path,
                       struct weir_error *err)
{
    if (is_cached(sha256, path)) {
        return WEIR_OK;
    }
    if (follow->client == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "blob %s is not in %s, and no server is named in the specification",
                              sha256, follow->cache_dir);
    }
    return weir_client_blob_get(follow->client, sha256, path, err);
}

/** A file to get, on a thread of low priority: a thread cannot raise its priority again. */
struct fetch {
    const struct weir_follow *follow;
    const char *sha256, *path;
    weir_status status;
    struct weir_error err;
};

static void *fetch_main(void *context)
{
    struct fetch *fetch = context;
    lower_priority();
    fetch->status = get(fetch->follow, fetch->sha256, fetch->path, &fetch->err);
    return NULL;
}

weir_status weir_follow_get(struct weir_follow *follow, const char *sha256, const char *path,
                            struct weir_error *err)
{
    struct fetch fetch = {.follow = follow, .sha256 = sha256, .path = path};
    pthread_t thread;
    if (follow->config.is_low_priority) {
        return get(follow, sha256, path, err);
    }
    int failed = pthread_create(&thread, NULL, fetch_main, &fetch);
    if (failed != 0) {
        return weir_error_set_errno(err, failed, "starting a thread");
    }
    pthread_join(thread, NULL);
    if (fetch.status != WEIR_OK) {
        *err = fetch.err;
    }
    return fetch.status;
}

static char *remembered_path(const struct weir_follow *follow, char out[WEIR_FOLLOW_PATH_BYTES])
{
    (void)snprintf(out, WEIR_FOLLOW_PATH_BYTES, "%s/%s", follow->config.dir, follow->config.file);
    return out;
}

bool weir_follow_remember(struct weir_follow *follow, const json_t *wanted)
{
    char path[WEIR_FOLLOW_PATH_BYTES];
    struct weir_error err = {.message = "it is no JSON"};
    char *text = json_dumps(wanted, JSON_COMPACT);
    bool is_kept = text != NULL && weir_file_write_atomic(remembered_path(follow, path), text,
                                                          strlen(text), 0600, &err) == WEIR_OK;
    if (!is_kept) {
        weir_log(WEIR_LOG_WARN, "deployment_not_saved", WEIR_KV_STR("reason", err.message));
    }
    free(text);
    return is_kept;
}

void weir_follow_clean(const struct weir_follow *follow, weir_follow_needs_fn needs,
                       const void *context)
{
    DIR *stream = opendir(follow->cache_dir);
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[WEIR_FOLLOW_PATH_BYTES + 256];
        if (entry->d_name[0] != '.' && !needs(context, entry->d_name)) {
            (void)snprintf(path, sizeof path, "%s/%s", follow->cache_dir, entry->d_name);
            (void)unlink(path);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static weir_status apply(struct weir_follow *follow, const json_t *wanted, struct weir_error *err)
{
    WEIR_TRY(follow->config.apply(follow->config.context, wanted, err));
    follow->revision = json_integer_value(json_object_get(wanted, "revision"));
    return WEIR_OK;
}

static void apply_remembered(struct weir_follow *follow)
{
    char path[WEIR_FOLLOW_PATH_BYTES];
    json_t *json;
    struct weir_error err = {0};
    weir_status status =
        weir_json_load(remembered_path(follow, path), WANTED_MAX_BYTES, &json, &err);
    if (status == WEIR_OK) {
        status = apply(follow, json, &err);
        json_decref(json);
    }
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND && status != WEIR_ERR_CANCELLED) {
        weir_log(WEIR_LOG_WARN, "last_deployment_unusable", WEIR_KV_STR("reason", err.message));
    }
}

static void pause_for(struct weir_follow *follow, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    int rc = 0;
    pthread_mutex_lock(&follow->lock);
    while (!atomic_load(&follow->is_stopping) && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&follow->stopping, &follow->lock, &deadline);
    }
    pthread_mutex_unlock(&follow->lock);
}

/* Ask, and apply what is new. */
static weir_status ask(struct weir_follow *follow, struct weir_error *err)
{
    char path[WEIR_FOLLOW_PATH_BYTES];
    json_t *reply;
    (void)snprintf(path, sizeof path, "%s?after=%" PRId64 "&wait_s=%d", follow->config.path,
                   follow->revision, POLL_WAIT_S);
    WEIR_TRY(weir_client_call(follow->client, "GET", path, NULL, &reply, err));
    int64_t revision = json_integer_value(json_object_get(reply, "revision"));
    weir_status status = WEIR_OK;
    /* A server that was set back to an older state counts again: what it says is what counts. */
    bool is_new =
        revision != follow->revision && json_object_get(reply, follow->config.member) != NULL;
    if (is_new) {
        status = apply(follow, reply, err);
    }
    json_decref(reply);
    if (!is_new) {
        pause_for(follow, QUIET_MS);
    }
    return status;
}

static void *follow_main(void *context)
{
    struct weir_follow *follow = context;
    const struct weir_follow_config *config = &follow->config;
    struct weir_backoff backoff = {.base_ms =
                                       config->retry_ms > 0 ? config->retry_ms : RETRY_FIRST_MS,
                                   .max_ms = RETRY_MAX_MS};
    if (config->is_low_priority) {
        lower_priority();
    }
    apply_remembered(follow);
    while (follow->client != NULL && !atomic_load(&follow->is_stopping)) {
        struct weir_error err = {0};
        if (config->before_asking != NULL) {
            config->before_asking(config->context);
        }
        weir_status status = ask(follow, &err);
        if (status == WEIR_OK) {
            weir_backoff_reset(&backoff);
        } else if (!atomic_load(&follow->is_stopping)) {
            weir_log(WEIR_LOG_WARN, "deployment_failed", WEIR_KV_STR("reason", err.message));
            pause_for(follow, weir_backoff_next_ms(&backoff));
        }
    }
    return NULL;
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static weir_status open_client(struct weir_follow *follow, struct weir_error *err)
{
    const struct weir_follow_config *config = &follow->config;
    const struct weir_client_config client = {.server = config->server,
                                              .token_file = config->token_file,
                                              .ca_file = config->ca_file,
                                              .timeout_ms = POLL_TIMEOUT_MS};
    return config->server != NULL ? weir_client_open(&client, &follow->client, err) : WEIR_OK;
}

weir_status weir_follow_create(const struct weir_follow_config *config, struct weir_follow **out,
                               struct weir_error *err)
{
    struct weir_follow *follow = weir_xalloc(sizeof *follow);
    memset(follow, 0, sizeof *follow);
    follow->config = *config;
    follow->revision = -1;
    atomic_init(&follow->is_stopping, false);
    (void)snprintf(follow->cache_dir, sizeof follow->cache_dir, "%s/cache", config->dir);
    pthread_mutex_init(&follow->lock, NULL);
    pthread_cond_init(&follow->stopping, NULL);
    weir_status status = weir_dir_make(follow->cache_dir, 0700, err);
    if (status == WEIR_OK) {
        status = open_client(follow, err);
    }
    if (status != WEIR_OK) {
        weir_follow_destroy(follow);
        return status;
    }
    *out = follow;
    return WEIR_OK;
}

weir_status weir_follow_start(struct weir_follow *follow, struct weir_error *err)
{
    int failed = pthread_create(&follow->thread, NULL, follow_main, follow);
    if (failed != 0) {
        return weir_error_set_errno(err, failed, "starting a thread");
    }
    follow->is_started = true;
    return WEIR_OK;
}

static void stop(struct weir_follow *follow)
{
    pthread_mutex_lock(&follow->lock);
    atomic_store(&follow->is_stopping, true);
    pthread_cond_broadcast(&follow->stopping);
    pthread_mutex_unlock(&follow->lock);
    if (follow->client != NULL) {
        weir_client_cancel(follow->client);
    }
    pthread_join(follow->thread, NULL);
}

void weir_follow_destroy(struct weir_follow *follow)
{
    if (follow == NULL) {
        return;
    }
    if (follow->is_started) {
        stop(follow);
    }
    if (follow->client != NULL) {
        weir_client_close(follow->client);
    }
    pthread_cond_destroy(&follow->stopping);
    pthread_mutex_destroy(&follow->lock);
    free(follow);
}
