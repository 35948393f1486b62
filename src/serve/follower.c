#include "serve/follower.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "client/client.h"
#include "serve/golden.h"
#include "serve/wanted.h"

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
#define WANTED_MAX_BYTES ((size_t)64 << 20)
#define PATH_BYTES       4300

struct follower {
    struct follower_config config;
    pthread_t thread;
    struct weir_client *client; /**< NULL: there is no server. */
    char *path;
    char cache_dir[PATH_BYTES - 160];
    int64_t revision; /**< That was applied; −1: none. */
    pthread_mutex_t lock;
    pthread_cond_t stopping;
    bool is_stopping; /* under lock */
};

static bool is_stopping(struct follower *follower)
{
    pthread_mutex_lock(&follower->lock);
    bool stops = follower->is_stopping;
    pthread_mutex_unlock(&follower->lock);
    return stops;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *cache_path(const struct follower *follower, char out[PATH_BYTES], const char *blob)
{
    (void)snprintf(out, PATH_BYTES, "%s/model-%s", follower->cache_dir, blob);
    return out;
}

/* Is the file in the cache, and still what it was fetched as? One that is not goes. */
static bool is_cached(const char *blob, const char *path)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    struct weir_error err;
    if (!weir_path_exists(path)) {
        return false;
    }
    if (weir_file_sha256(path, digest, &n_bytes, &err) == WEIR_OK && strcmp(digest, blob) == 0) {
        return true;
    }
    weir_log(WEIR_LOG_WARN, "cached_file_damaged", WEIR_KV_STR("path", path));
    (void)unlink(path);
    return false;
}

/** A file to get, on a thread of low priority. */
struct fetch {
    struct follower *follower;
    const char *blob, *path;
    weir_status status;
    struct weir_error err;
};

static void *fetch_main(void *context)
{
    struct fetch *fetch = context;
    const struct follower *follower = fetch->follower;
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOW_PRIORITY);
    if (is_cached(fetch->blob, fetch->path)) {
        fetch->status = WEIR_OK;
    } else if (follower->client == NULL) {
        fetch->status = weir_error_set(&fetch->err, WEIR_ERR_UNAVAILABLE,
                                       "model file %s is not in %s, and no server is named in the "
                                       "specification",
                                       fetch->blob, follower->cache_dir);
    } else {
        fetch->status =
            weir_client_blob_get(follower->client, fetch->blob, fetch->path, &fetch->err);
    }
    return NULL;
}

static weir_status get_file(struct follower *follower, const char *blob, const char *path,
                            struct weir_error *err)
{
    struct fetch fetch = {.follower = follower, .blob = blob, .path = path};
    pthread_t thread;
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

/* Files that nothing wanted needs. */
static void clean_cache(const struct follower *follower, const struct wanted *wanted)
{
    DIR *stream = opendir(follower->cache_dir);
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[PATH_BYTES + 256];
        bool is_kept = entry->d_name[0] == '.';
        for (size_t i = 0; i < wanted->n_versions && !is_kept; i++) {
            is_kept = strstr(entry->d_name, wanted->versions[i].blob) != NULL ||
                      (wanted->versions[i].golden[0] != '\0' &&
                       strstr(entry->d_name, wanted->versions[i].golden) != NULL);
        }
        if (!is_kept) {
            (void)snprintf(path, sizeof path, "%s/%s", follower->cache_dir, entry->d_name);
            (void)unlink(path);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
}

static void remember(const struct follower *follower, const json_t *json,
                     const struct wanted *wanted)
{
    char path[PATH_BYTES];
    struct weir_error err;
    (void)snprintf(path, sizeof path, "%s/wanted.json", follower->config.spec->dir);
    char *text = json_dumps(json, JSON_COMPACT);
    if (text == NULL || weir_file_write_atomic(path, text, strlen(text), 0600, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "wanted_not_saved", WEIR_KV_STR("reason", err.message));
    } else {
        clean_cache(follower, wanted);
    }
    free(text);
}

/* ---- applying -------------------------------------------------------------------------------- */

static weir_status get_golden(struct follower *follower, const struct wanted_one *one,
                              struct weir_arena *arena, char **out, size_t *out_len,
                              struct weir_error *err)
{
    char path[PATH_BYTES];
    if (one->golden[0] == '\0') {
        return WEIR_OK;
    }
    cache_path(follower, path, one->golden);
    WEIR_TRY(get_file(follower, one->golden, path, err));
    return weir_file_read(path, GOLDEN_MAX_BYTES, arena, out, out_len, err);
}

static weir_status load_with(struct follower *follower, const struct wanted *wanted,
                             const struct wanted_one *one, struct weir_arena *arena,
                             struct weir_error *err)
{
    char path[PATH_BYTES], *golden = NULL;
    size_t golden_len = 0;
    cache_path(follower, path, one->blob);
    WEIR_TRY(get_file(follower, one->blob, path, err));
    WEIR_TRY(get_golden(follower, one, arena, &golden, &golden_len, err));
    const struct version_wanted version = {.model = follower->config.spec->deployment,
                                           .number = one->number,
                                           .path = path,
                                           .blob = one->blob,
                                           .signature = one->signature,
                                           .golden = golden,
                                           .golden_len = golden_len,
                                           .rules = wanted->rules};
    return versions_load(follower->config.versions, &version, err);
}

static weir_status load_one(struct follower *follower, const struct wanted *wanted,
                            const struct wanted_one *one, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status = load_with(follower, wanted, one, &arena, err);
    weir_arena_fini(&arena);
    return status;
}

static bool is_wanted(const struct wanted *wanted, int64_t number)
{
    for (size_t i = 0; i < wanted->n_versions; i++) {
        if (wanted->versions[i].number == number) {
            return true;
        }
    }
    return false;
}

static void unload_others(struct follower *follower, const struct wanted *wanted)
{
    struct weir_arena arena;
    struct versions_view view;
    weir_arena_init(&arena, 0);
    versions_view(follower->config.versions, &arena, &view);
    versions_view_release(&view);
    for (size_t i = 0; i < view.n; i++) {
        if (!is_wanted(wanted, view.rows[i].number)) {
            (void)versions_unload(follower->config.versions, view.rows[i].model,
                                  view.rows[i].number);
        }
    }
    weir_arena_fini(&arena);
}

/* What runs goes on while the new ones are loaded; only where there is no room for both it ends
 * first. The first error that another try may mend is returned. */
static weir_status apply_versions(struct follower *follower, const struct wanted *wanted,
                                  struct weir_error *err)
{
    weir_status result = WEIR_OK;
    const char *model = follower->config.spec->deployment;
    for (size_t i = 0; i < wanted->n_versions; i++) {
        versions_announce(follower->config.versions, model, wanted->versions[i].number);
    }
    reporter_set_revision(follower->config.reporter, wanted->revision);
    for (size_t i = 0; i < wanted->n_versions && !is_stopping(follower); i++) {
        struct weir_error one_err;
        const struct wanted_one *one = &wanted->versions[i];
        weir_status status = load_one(follower, wanted, one, &one_err);
        if (status == WEIR_ERR_LIMIT) {
            unload_others(follower, wanted);
            versions_wait_freed(follower->config.versions);
            status = load_one(follower, wanted, one, &one_err);
        }
        if (status != WEIR_OK && !weir_client_can_retry(status)) {
            versions_fail(follower->config.versions, model, one->number, one_err.message);
        } else if (status != WEIR_OK && result == WEIR_OK) {
            *err = one_err; /* it stays LOADING until another try */
            result = status;
        }
        reporter_notify(follower->config.reporter);
    }
    if (result == WEIR_OK && !is_stopping(follower)) {
        unload_others(follower, wanted);
        reporter_notify(follower->config.reporter);
    }
    return result;
}

static weir_status apply(struct follower *follower, const json_t *json, struct weir_error *err)
{
    struct weir_arena arena;
    struct wanted *wanted;
    weir_arena_init(&arena, 0);
    wanted = WEIR_ARENA_NEW(&arena, struct wanted);
    weir_status status = wanted_parse(json, wanted, err);
    if (status == WEIR_OK) {
        versions_set_limits(follower->config.versions, wanted->memory_max_bytes, wanted->n_threads);
        status = apply_versions(follower, wanted, err);
    }
    if (status == WEIR_OK) {
        remember(follower, json, wanted);
        follower->revision = wanted->revision;
    }
    weir_arena_fini(&arena);
    return status;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void apply_remembered(struct follower *follower)
{
    char path[PATH_BYTES];
    json_t *json;
    struct weir_error err;
    (void)snprintf(path, sizeof path, "%s/wanted.json", follower->config.spec->dir);
    weir_status status = weir_json_load(path, WANTED_MAX_BYTES, &json, &err);
    if (status == WEIR_OK) {
        status = apply(follower, json, &err);
        json_decref(json);
    }
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_WARN, "last_wanted_unusable", WEIR_KV_STR("reason", err.message));
    }
}

static void pause_for(struct follower *follower, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    int rc = 0;
    pthread_mutex_lock(&follower->lock);
    while (!follower->is_stopping && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&follower->stopping, &follower->lock, &deadline);
    }
    pthread_mutex_unlock(&follower->lock);
}

/* Ask, and apply what is new. */
static weir_status poll_once(struct follower *follower, struct weir_error *err)
{
    char path[PATH_BYTES];
    json_t *reply;
    (void)snprintf(path, sizeof path, "%s?after=%" PRId64 "&wait_s=%d", follower->path,
                   follower->revision, POLL_WAIT_S);
    WEIR_TRY(weir_client_call(follower->client, "GET", path, NULL, &reply, err));
    int64_t revision = json_integer_value(json_object_get(reply, "revision"));
    weir_status status = WEIR_OK;
    /* A server that was set back to an older state counts anew: what it says is what counts. */
    bool is_new = revision != follower->revision && json_object_get(reply, "versions") != NULL;
    if (is_new) {
        status = apply(follower, reply, err);
    }
    json_decref(reply);
    if (!is_new) {
        pause_for(follower, QUIET_MS);
    }
    return status;
}

static void *follower_main(void *context)
{
    struct follower *follower = context;
    struct weir_backoff backoff = {.base_ms = RETRY_FIRST_MS, .max_ms = RETRY_MAX_MS};
    apply_remembered(follower);
    while (follower->client != NULL && !is_stopping(follower)) {
        struct weir_error err = {0};
        weir_status status = poll_once(follower, &err);
        if (status == WEIR_OK) {
            weir_backoff_reset(&backoff);
        } else if (!is_stopping(follower)) {
            weir_log(WEIR_LOG_WARN, "following_failed", WEIR_KV_STR("reason", err.message));
            pause_for(follower, weir_backoff_next_ms(&backoff));
        }
    }
    return NULL;
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static weir_status open_client(struct follower *follower, struct weir_error *err)
{
    const struct serve_spec *spec = follower->config.spec;
    struct weir_arena arena;
    if (spec->server == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = spec->server,
                                                           .token_file = spec->token_file,
                                                           .ca_file = spec->ca_file,
                                                           .timeout_ms = POLL_TIMEOUT_MS},
                              &follower->client, err));
    weir_arena_init(&arena, 0);
    follower->path = weir_xstrdup(weir_client_path(&arena, "/api/v1/deployments/{}/desired",
                                                   (const char *[]){spec->deployment}, 1));
    weir_arena_fini(&arena);
    return WEIR_OK;
}

static void follower_free(struct follower *follower)
{
    if (follower->client != NULL) {
        weir_client_close(follower->client);
    }
    pthread_cond_destroy(&follower->stopping);
    pthread_mutex_destroy(&follower->lock);
    free(follower->path);
    free(follower);
}

weir_status follower_start(const struct follower_config *config, struct follower **out,
                           struct weir_error *err)
{
    struct follower *follower = weir_xalloc(sizeof *follower);
    memset(follower, 0, sizeof *follower);
    follower->config = *config;
    follower->revision = -1;
    (void)snprintf(follower->cache_dir, sizeof follower->cache_dir, "%s/cache", config->spec->dir);
    pthread_mutex_init(&follower->lock, NULL);
    pthread_cond_init(&follower->stopping, NULL);
    weir_status status = weir_dir_make(follower->cache_dir, 0700, err);
    if (status == WEIR_OK) {
        status = open_client(follower, err);
    }
    if (status == WEIR_OK) {
        int failed = pthread_create(&follower->thread, NULL, follower_main, follower);
        status = failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
    }
    if (status != WEIR_OK) {
        follower_free(follower);
        return status;
    }
    *out = follower;
    return WEIR_OK;
}

void follower_stop(struct follower *follower)
{
    if (follower == NULL) {
        return;
    }
    pthread_mutex_lock(&follower->lock);
    follower->is_stopping = true;
    pthread_cond_broadcast(&follower->stopping);
    pthread_mutex_unlock(&follower->lock);
    if (follower->client != NULL) {
        weir_client_cancel(follower->client);
    }
    pthread_join(follower->thread, NULL);
    follower_free(follower);
}
