#include "http/server_private.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/listen.h"
#include "base/log.h"

#include <string.h>
#include <unistd.h>

#define TLS_PRIORITIES     "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define TLS_FILE_MAX_BYTES (1 << 20)
#define DEFAULT_POLICY     "default-src 'none'; frame-ancestors 'none'"

static char *copy_or_null(const char *text)
{
    return text != NULL ? weir_xstrdup(text) : NULL;
}

static int value_or(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

static void copy_config(struct weir_http_config *to, const struct weir_http_config *from)
{
    *to = *from;
    to->n_handlers = value_or(from->n_handlers, 8);
    to->n_io_threads = value_or(from->n_io_threads, 2);
    to->max_queued = value_or(from->max_queued, 256);
    to->n_classes = WEIR_MIN(value_or(from->n_classes, 1), WEIR_HTTP_CLASSES);
    for (int i = 0; i < WEIR_HTTP_CLASSES; i++) {
        to->max_queued_of[i] = value_or(from->max_queued_of[i], to->max_queued);
    }
    to->max_connections = listen_allowed_connections(value_or(from->max_connections, 4096));
    to->idle_timeout_s = value_or(from->idle_timeout_s, 30);
    to->max_connections_per_address =
        value_or(from->max_connections_per_address, WEIR_MAX(to->max_connections / 4, 16));
    to->max_bodies_bytes =
        from->max_bodies_bytes > 0 ? from->max_bodies_bytes : (uint64_t)256 << 20;
    to->keep_alive_ms = value_or(from->keep_alive_ms, 15000);
    to->max_body_bytes = from->max_body_bytes > 0 ? from->max_body_bytes : (uint64_t)1 << 20;
    to->listen = copy_or_null(from->listen);
    to->upload_dir = copy_or_null(from->upload_dir);
    to->tls_cert_file = copy_or_null(from->tls_cert_file);
    to->tls_key_file = copy_or_null(from->tls_key_file);
    const char *policy = from->content_security_policy;
    to->content_security_policy = weir_xstrdup(policy != NULL ? policy : DEFAULT_POLICY);
}

static weir_status read_pem(const char *path, char **out, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 2 * TLS_FILE_MAX_BYTES);
    char *data;
    size_t len;
    WEIR_TRY(weir_file_read(path, TLS_FILE_MAX_BYTES, &arena, &data, &len, err));
    *out = weir_xstrdup(data);
    return WEIR_OK;
}

static weir_status read_tls(struct weir_http_server *server, struct weir_error *err)
{
    const struct weir_http_config *config = &server->config;
    if (config->tls_cert_file == NULL && config->tls_key_file == NULL) {
        return WEIR_OK;
    }
    if (config->tls_cert_file == NULL || config->tls_key_file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "TLS needs both a certificate and a key: only the %s is given",
                              config->tls_cert_file != NULL ? "certificate" : "key");
    }
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "this libmicrohttpd was built without TLS");
    }
    WEIR_TRY(read_pem(config->tls_cert_file, &server->tls_cert, err));
    return read_pem(config->tls_key_file, &server->tls_key, err);
}

static void log_daemon(void *context, const char *fmt, va_list args) WEIR_PRINTF(2, 0);

static void log_daemon(void *context, const char *fmt, va_list args)
{
    (void)context;
    char text[256];
    (void)vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = '\0';
    weir_log(WEIR_LOG_DEBUG, "http_library", WEIR_KV_STR("message", text));
}

/* The path and the query are decoded by request.c: keep them as they came. */
static size_t leave_escaped(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* One more I/O thread; NULL: it cannot be started. */
static struct MHD_Daemon *start_daemon(struct weir_http_server *server)
{
    const struct weir_http_config *config = &server->config;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls_key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };
    bool is_tls = server->tls_cert != NULL;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                     MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG | (is_tls ? MHD_USE_TLS : 0u) |
                     (config->has_upgrades ? MHD_ALLOW_UPGRADE : 0u);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, exchange_access, server, /* */
        MHD_OPTION_EXTERNAL_LOGGER, log_daemon, NULL,  /* first, to catch what the others say */
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)config->max_connections,      /* the acceptor's */
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)config->idle_timeout_s,     /* */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES, /* */
        MHD_OPTION_STRICT_FOR_CLIENT, 1,                                     /* */
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL,                   /* */
        MHD_OPTION_URI_LOG_CALLBACK, exchange_begin, server,                 /* */
        MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, server,             /* */
        MHD_OPTION_NOTIFY_CONNECTION, connection_notify, server,             /* */
        MHD_OPTION_ARRAY, is_tls ? tls : &tls[3],                            /* */
        MHD_OPTION_END);
}

static weir_status start_daemons(struct weir_http_server *server, struct weir_error *err)
{
    const struct weir_http_config *config = &server->config;
    size_t n = (size_t)config->n_io_threads;
    server->io = weir_xalloc(n * sizeof *server->io);
    for (; server->n_io < n; server->n_io++) {
        struct MHD_Daemon *daemon = start_daemon(server);
        if (daemon == NULL && server->tls_cert != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "cannot start the HTTPS server: is %s a PEM certificate and %s "
                                  "its key?",
                                  config->tls_cert_file, config->tls_key_file);
        }
        if (daemon == NULL) {
            return weir_error_set(err, WEIR_ERR_IO, "cannot start the HTTP server's threads");
        }
        server->io[server->n_io].daemon = daemon;
    }
    return WEIR_OK;
}

static void stop_daemons(struct weir_http_server *server)
{
    while (server->n_io > 0) {
        MHD_stop_daemon(server->io[--server->n_io].daemon);
    }
}

static void init_locks(struct weir_http_server *server)
{
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->work_ready, NULL);
    pthread_cond_init(&server->timer_ready, NULL);
    pthread_cond_init(&server->idle, NULL);
}

static void destroy(struct weir_http_server *server)
{
    pool_stop(server);
    stop_daemons(server);
    exchange_reap(server);
    weir_peers_fini(&server->peers); /* of those that no I/O thread had begun with */
    free(server->io);
    if (server->acceptor.wake_fd >= 0) {
        close(server->acceptor.wake_fd);
    }
    pthread_cond_destroy(&server->work_ready);
    pthread_cond_destroy(&server->timer_ready);
    pthread_cond_destroy(&server->idle);
    pthread_mutex_destroy(&server->lock);
    free((char *)server->config.listen);
    free((char *)server->config.upload_dir);
    free((char *)server->config.tls_cert_file);
    free((char *)server->config.tls_key_file);
    free((char *)server->config.content_security_policy);
    free(server->tls_cert);
    if (server->tls_key != NULL) {
        explicit_bzero(server->tls_key, strlen(server->tls_key));
    }
    free(server->tls_key);
    free(server);
}

weir_status weir_http_server_start(const struct weir_http_config *config,
                                   weir_http_handler_fn handler, void *context,
                                   struct weir_http_server **out, struct weir_error *err)
{
    struct weir_http_server *server = weir_xalloc(sizeof *server);
    memset(server, 0, sizeof *server);
    server->acceptor.wake_fd = -1;
    copy_config(&server->config, config);
    server->handler = handler;
    server->context = context;
    init_locks(server);
    int fd = -1;
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(read_tls(server, err), status, destroy);
    WEIR_TRY_GOTO(weir_listen_open(server->config.listen, "--listen", &fd, &server->port, err),
                  status, destroy);
    WEIR_TRY_GOTO(pool_start(server, err), status, destroy);
    WEIR_TRY_GOTO(start_daemons(server, err), status, destroy);
    WEIR_TRY_GOTO(acceptor_start(server, fd, err), status, destroy);
    *out = server;
    return WEIR_OK;
destroy:
    if (fd >= 0) {
        close(fd);
    }
    destroy(server);
    return status;
}

int weir_http_server_port(const struct weir_http_server *server)
{
    return server->port;
}

void weir_http_server_counts(struct weir_http_server *server, struct weir_http_counts *out)
{
    size_t n_queued = 0;
    pthread_mutex_lock(&server->lock);
    for (int i = 0; i < WEIR_HTTP_CLASSES; i++) {
        n_queued += server->classes[i].queue.n;
    }
    *out = (struct weir_http_counts){
        .n_requests = server->n_requests,
        .n_refused_queue_full = server->n_refused,
        .n_waiting = (int64_t)server->waiting.n,
        .n_streams = (int64_t)server->n_streams,
        .n_queued = (int64_t)n_queued,
        .n_connections = (int64_t)server->n_connections,
    };
    pthread_mutex_unlock(&server->lock);
}

/* Until every accepted request has been answered, or the deadline. */
static void drain(struct weir_http_server *server, int64_t deadline_ms)
{
    int64_t until_ms = weir_mono_ms() + WEIR_MAX((int64_t)0, deadline_ms);
    struct timespec until = weir_deadline_at(until_ms);
    pthread_mutex_lock(&server->lock);
    while (server->n_inflight > 0 && weir_mono_ms() < until_ms) {
        (void)weir_cond_wait_until(&server->idle, &server->lock, &until);
    }
    while (server->n_later > 0 || server->n_upgraded > 0) { /* who holds them gives them back */
        pthread_cond_wait(&server->idle, &server->lock);
    }
    size_t n_left = server->n_inflight;
    pthread_mutex_unlock(&server->lock);
    if (n_left > 0) {
        weir_log(WEIR_LOG_WARN, "http_stop_cut", WEIR_KV_INT("requests", (int64_t)n_left));
    }
}

void weir_http_server_stop(struct weir_http_server *server, int64_t deadline_ms)
{
    if (server == NULL) {
        return;
    }
    acceptor_stop(server);
    pool_begin_stop(server);
    drain(server, deadline_ms);
    /* The handler threads empty the queues before they end. After that no connection is suspended,
     * and none can be suspended again but by a stream, which sees is_stopping. */
    destroy(server);
}
