/** Files of a host: what it remembers, and the cache. */
#include "host/host_private.h"

#include "base/file.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOW_PRIORITY     10
#define WANTED_MAX_BYTES ((size_t)256 << 20)

const char *weir_host_cache_dir(const struct weir_host *host)
{
    return host->cache_dir;
}

char *weir_host_cache_path(const struct weir_host *host, const char *kind, const char *sha256,
                           char out[WEIR_HOST_PATH_BYTES])
{
    (void)snprintf(out, WEIR_HOST_PATH_BYTES, "%s/%s-%s", host->cache_dir, kind, sha256);
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

void host_lower_priority(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOW_PRIORITY);
}

static weir_status get(const struct weir_host *host, const char *sha256, const char *path,
                       struct weir_error *err)
{
    if (is_cached(sha256, path)) {
        return WEIR_OK;
    }
    if (host->follower.client == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "blob %s is not in %s, and no server is named in the specification",
                              sha256, host->cache_dir);
    }
    return weir_client_blob_get(host->follower.client, sha256, path, err);
}

/** A file to get, on a thread of low priority: a thread cannot raise its priority again. */
struct fetch {
    const struct weir_host *host;
    const char *sha256, *path;
    weir_status status;
    struct weir_error err;
};

static void *fetch_main(void *context)
{
    struct fetch *fetch = context;
    host_lower_priority();
    fetch->status = get(fetch->host, fetch->sha256, fetch->path, &fetch->err);
    return NULL;
}

weir_status weir_host_get(struct weir_host *host, const char *sha256, const char *path,
                          struct weir_error *err)
{
    struct fetch fetch = {.host = host, .sha256 = sha256, .path = path};
    pthread_t thread;
    if (host->config.hosted->is_low_priority) {
        return get(host, sha256, path, err);
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

static char *remembered_path(const struct weir_host *host, char out[WEIR_HOST_PATH_BYTES])
{
    (void)snprintf(out, WEIR_HOST_PATH_BYTES, "%s/%s", host->config.spec->dir,
                   host->config.hosted->file);
    return out;
}

weir_status host_recall(const struct weir_host *host, json_t **out, struct weir_error *err)
{
    char path[WEIR_HOST_PATH_BYTES];
    return weir_json_load(remembered_path(host, path), WANTED_MAX_BYTES, out, err);
}

static bool keep(const struct weir_host *host, const json_t *wanted)
{
    char path[WEIR_HOST_PATH_BYTES];
    struct weir_error err = {.message = "it is no JSON"};
    char *text = json_dumps(wanted, JSON_COMPACT);
    bool is_kept = text != NULL && weir_file_write_atomic(remembered_path(host, path), text,
                                                          strlen(text), 0600, &err) == WEIR_OK;
    if (!is_kept) {
        weir_log(WEIR_LOG_WARN, "deployment_not_saved", WEIR_KV_STR("reason", err.message));
    }
    free(text);
    return is_kept;
}

/* A file with a name that begins with "." is being fetched. */
static void clean(const struct weir_host *host, const json_t *wanted)
{
    const struct weir_hosted *hosted = host->config.hosted;
    DIR *stream = opendir(host->cache_dir);
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[WEIR_HOST_PATH_BYTES + 256];
        if (entry->d_name[0] != '.' &&
            !hosted->needs(host->config.context, wanted, entry->d_name)) {
            (void)snprintf(path, sizeof path, "%s/%s", host->cache_dir, entry->d_name);
            (void)unlink(path);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
}

void host_remember(const struct weir_host *host, const json_t *wanted)
{
    if (keep(host, wanted)) {
        clean(host, wanted);
    }
}
