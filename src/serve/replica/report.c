#include "serve/replica/replica_private.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define URL_BYTES 320

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
static void find_url(const struct serve_replica *replica, char out[URL_BYTES])
{
    char host[256], port[16], own[NI_MAXHOST];
    const struct serve_spec *spec = replica->options->spec;
    if (!split_url(spec->listen, host, sizeof host, port, sizeof port) || is_any_address(host)) {
        if (!own_address(spec->host.server, own, sizeof own)) {
            (void)snprintf(own, sizeof own, "127.0.0.1");
        }
        (void)snprintf(host, sizeof host, "%.250s", own);
    }
    bool is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(out, URL_BYTES, is_v6 ? "http://[%s]:%d" : "http://%s:%d", host,
                   front_port(replica->front));
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

json_t *serve_report(const struct serve_replica *replica)
{
    int64_t revision = atomic_load(&replica->revision); /* Its versions are announced by now. */
    char url[URL_BYTES];
    struct weir_arena arena;
    struct versions_view view;
    json_t *versions = json_array(), *by_version = json_array();
    size_t memory_bytes = 0;
    weir_arena_init(&arena, 0);
    struct batch_stats *stats = WEIR_ARENA_NEW(&arena, struct batch_stats);
    struct batch_stats *sum = WEIR_ARENA_NEW(&arena, struct batch_stats);
    versions_view(replica->versions, &arena, &view);
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
    find_url(replica, url);
    json_t *all = figures(sum, memory_bytes);
    (void)json_object_set_new(all, "versions", by_version);
    json_t *report =
        json_pack("{s:s,s:I,s:o,s:I,s:o}", "url", url, "revision", (json_int_t)revision, "versions",
                  versions, "n_running", (json_int_t)front_n_running(replica->front), "stats", all);
    weir_arena_fini(&arena);
    return report;
}
