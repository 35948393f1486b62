#include "serve/reporter.h"

#include "base/deadline.h"
#include "base/log.h"
#include "client/client.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALL_MS   5000
#define URL_BYTES 320

struct reporter {
    struct reporter_config config;
    struct weir_client *client;
    char *path;
    char url[URL_BYTES];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    bool is_stopping, has_news;
    int64_t revision;
};

/* ---- the address ----------------------------------------------------------------------------- */

/* "http://HOST:PORT/…" taken apart. */
static bool split_url(const char *url, char *host, size_t size, char *port, size_t port_size)
{
    const char *at = strstr(url, "://");
    bool is_tls = strncmp(url, "https", 5) == 0;
    at = at != NULL ? at + 3 : url;
    bool is_v6 = at[0] == '[';
    size_t len = is_v6 ? strcspn(++at, "]") : strcspn(at, ":/");
    if (len == 0 || len >= size) {
        return false;
    }
    memcpy(host, at, len);
    host[len] = '\0';
    at += len + (is_v6 && at[len] == ']');
    len = at[0] == ':' ? strspn(at + 1, "0123456789") : 0;
    (void)snprintf(port, port_size, "%.*s", len > 0 ? (int)len : 4,
                   len > 0 ? at + 1 : (is_tls ? "443" : "80"));
    return true;
}

/* The address from which this machine reaches the server: by it the server reaches us. No packet is
 * sent. */
static bool own_address(const char *server, char *out, size_t size)
{
    char host[256], port[16];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    bool is_found = false;
    if (!split_url(server, host, sizeof host, port, sizeof port) ||
        getaddrinfo(host, port, &hints, &found) != 0) {
        return false;
    }
    for (const struct addrinfo *at = found; at != NULL && !is_found; at = at->ai_next) {
        struct sockaddr_storage own;
        socklen_t len = sizeof own;
        int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        is_found = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
                   getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
                   getnameinfo((struct sockaddr *)&own, len, out, (socklen_t)size, NULL, 0,
                               NI_NUMERICHOST) == 0;
        if (fd >= 0) {
            close(fd);
        }
    }
    freeaddrinfo(found);
    return is_found;
}

static bool is_any_address(const char *host)
{
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* Again for each report: which way leads to the server may change. */
static void find_url(struct reporter *reporter)
{
    char host[256], port[16], own[NI_MAXHOST];
    const struct serve_spec *spec = reporter->config.spec;
    if (!split_url(spec->listen, host, sizeof host, port, sizeof port) || is_any_address(host)) {
        if (!own_address(spec->server, own, sizeof own)) {
            (void)snprintf(own, sizeof own, "127.0.0.1");
        }
        (void)snprintf(host, sizeof host, "%.250s", own);
    }
    bool is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(reporter->url, sizeof reporter->url, is_v6 ? "http://[%s]:%d" : "http://%s:%d",
                   host, host_port(reporter->config.host));
}

/* ---- the report ------------------------------------------------------------------------------ */

static json_t *figures(const struct batch_stats *stats, size_t memory_bytes)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:f,s:f,s:I}", "success", (json_int_t)stats->success.n,
                     "failure", (json_int_t)stats->failure.n, "rows", (json_int_t)stats->n_rows,
                     "batches", (json_int_t)stats->n_batches, "p50_ms",
                     1e3 * batch_latency_quantile_s(stats, 0.5), "p99_ms",
                     1e3 * batch_latency_quantile_s(stats, 0.99), "memory_bytes",
                     (json_int_t)memory_bytes);
}

static void add_stats(struct batch_stats *sum, const struct batch_stats *stats)
{
    sum->success.n += stats->success.n;
    sum->failure.n += stats->failure.n;
    sum->n_rows += stats->n_rows;
    sum->n_batches += stats->n_batches;
    for (size_t i = 0; i < BATCH_LATENCY_BUCKETS; i++) {
        sum->latency_counts[i] += stats->latency_counts[i];
    }
}

static json_t *version_json(const struct version_row *row)
{
    const struct version *version = row->version;
    return json_pack("{s:I,s:s,s:s,s:s?,s:s?,s:f}", "version", (json_int_t)row->number, "state",
                     version_state_text(row->state), "reason", row->reason, "executor",
                     version != NULL ? version->signature.executor : NULL, "place",
                     version != NULL ? version->executor->place : NULL, "load_ms",
                     version != NULL ? version->load_ms : 0.0);
}

static json_t *compose(struct reporter *reporter)
{
    struct weir_arena arena;
    struct versions_view view;
    json_t *versions = json_array(), *by_version = json_array();
    size_t memory_bytes = 0;
    weir_arena_init(&arena, 0);
    struct batch_stats *stats = WEIR_ARENA_NEW(&arena, struct batch_stats);
    struct batch_stats *sum = WEIR_ARENA_NEW(&arena, struct batch_stats);
    pthread_mutex_lock(&reporter->lock);
    int64_t revision = reporter->revision;
    reporter->has_news = false; /* before it is looked at, so that no news is missed */
    pthread_mutex_unlock(&reporter->lock);
    versions_view(reporter->config.versions, &arena, &view);
    for (size_t i = 0; i < view.n; i++) {
        (void)json_array_append_new(versions, version_json(&view.rows[i]));
        if (view.rows[i].version != NULL) {
            batcher_stats(view.rows[i].version->batcher, stats);
            json_t *one = figures(stats, view.rows[i].version->memory_bytes);
            (void)json_object_set_new(one, "version", json_integer(view.rows[i].number));
            (void)json_array_append_new(by_version, one);
            add_stats(sum, stats);
            memory_bytes += view.rows[i].version->memory_bytes;
        }
    }
    versions_view_release(&view);
    find_url(reporter);
    json_t *all = figures(sum, memory_bytes);
    (void)json_object_set_new(all, "versions", by_version);
    json_t *report = json_pack("{s:s,s:I,s:o,s:I,s:o}", "url", reporter->url, "revision",
                               (json_int_t)revision, "versions", versions, "n_running",
                               (json_int_t)host_n_running(reporter->config.host), "stats", all);
    weir_arena_fini(&arena);
    return report;
}

static void report(struct reporter *reporter)
{
    struct weir_error err;
    json_t *json = compose(reporter);
    if (json == NULL) {
        weir_log_event(WEIR_LOG_WARN, "report_not_utf8");
        return;
    }
    weir_status status =
        weir_client_call(reporter->client, "PUT", reporter->path, json, NULL, &err);
    json_decref(json);
    if (status != WEIR_OK && !weir_client_can_retry(status) && status != WEIR_ERR_CANCELLED) {
        weir_log(WEIR_LOG_WARN, "report_refused", WEIR_KV_STR("reason", err.message));
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Until there is news or the next report is due; false: stop. */
static bool wait_for_next(struct reporter *reporter)
{
    struct timespec deadline = weir_deadline_after(REPORT_MS);
    int rc = 0;
    pthread_mutex_lock(&reporter->lock);
    while (!reporter->is_stopping && !reporter->has_news && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&reporter->changed, &reporter->lock, &deadline);
    }
    bool goes_on = !reporter->is_stopping;
    pthread_mutex_unlock(&reporter->lock);
    return goes_on;
}

static void *reporter_main(void *context)
{
    struct reporter *reporter = context;
    do {
        report(reporter);
    } while (wait_for_next(reporter));
    return NULL;
}

static weir_status open_client(struct reporter *reporter, struct weir_error *err)
{
    const struct serve_spec *spec = reporter->config.spec;
    struct weir_arena arena;
    WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = spec->server,
                                                           .token_file = spec->token_file,
                                                           .ca_file = spec->ca_file,
                                                           .timeout_ms = CALL_MS},
                              &reporter->client, err));
    weir_arena_init(&arena, 0);
    reporter->path =
        weir_xstrdup(weir_client_path(&arena, "/api/v1/deployments/{}/replicas/{}",
                                      (const char *[]){spec->deployment, spec->replica}, 2));
    weir_arena_fini(&arena);
    return WEIR_OK;
}

static void reporter_free(struct reporter *reporter)
{
    if (reporter->client != NULL) {
        weir_client_close(reporter->client);
    }
    pthread_cond_destroy(&reporter->changed);
    pthread_mutex_destroy(&reporter->lock);
    free(reporter->path);
    free(reporter);
}

weir_status reporter_start(const struct reporter_config *config, struct reporter **out,
                           struct weir_error *err)
{
    struct reporter *reporter = weir_xalloc(sizeof *reporter);
    memset(reporter, 0, sizeof *reporter);
    reporter->config = *config;
    pthread_mutex_init(&reporter->lock, NULL);
    pthread_cond_init(&reporter->changed, NULL);
    weir_status status = open_client(reporter, err);
    if (status == WEIR_OK) {
        int failed = pthread_create(&reporter->thread, NULL, reporter_main, reporter);
        status = failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
    }
    if (status != WEIR_OK) {
        reporter_free(reporter);
        return status;
    }
    *out = reporter;
    return WEIR_OK;
}

void reporter_stop(struct reporter *reporter)
{
    if (reporter == NULL) {
        return;
    }
    pthread_mutex_lock(&reporter->lock);
    reporter->is_stopping = true;
    pthread_cond_signal(&reporter->changed);
    pthread_mutex_unlock(&reporter->lock);
    weir_client_cancel(reporter->client);
    pthread_join(reporter->thread, NULL);
    reporter_free(reporter);
}

void reporter_notify(struct reporter *reporter)
{
    if (reporter == NULL) {
        return;
    }
    pthread_mutex_lock(&reporter->lock);
    reporter->has_news = true;
    pthread_cond_signal(&reporter->changed);
    pthread_mutex_unlock(&reporter->lock);
}

void reporter_set_revision(struct reporter *reporter, int64_t revision)
{
    if (reporter == NULL) {
        return;
    }
    pthread_mutex_lock(&reporter->lock);
    reporter->revision = revision;
    reporter->has_news = true;
    pthread_cond_signal(&reporter->changed);
    pthread_mutex_unlock(&reporter->lock);
}
