/* The server's thread: connections, time, and answers that come from other threads. */
#include "grpc/server_private.h"

#include "base/clock.h"
#include "base/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 128
#define READ_BYTES     (1 << 16)
#define LOOK_MS        1000 /* for idle connections */

#define ADDRESS_CONNECTIONS_MIN 16

/* ---- connections -------------------------------------------------------------------------------------- */

void grpc_connection_close(struct connection *connection)
{
    struct weir_grpc_server *server = connection->server;
    if (connection->is_closing) {
        return;
    }
    connection->is_closing = true;
    (void)close(connection->fd);
    while (connection->calls != NULL) {
        grpc_call_detach(connection->calls);
    }
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        server->connections = connection->next;
    }
    server->n_connections--;
    connection->peer->n_open--;
    weir_peers_leave(&server->peers, &connection->peer->peer);
    connection->next = server->closed; /* events of this turn may name it */
    server->closed = connection;
}

void grpc_connections_free_closed(struct weir_grpc_server *server)
{
    while (server->closed != NULL) {
        struct connection *connection = server->closed;
        server->closed = connection->next;
        nghttp2_session_del(connection->session);
        weir_buf_fini(&connection->out);
        free(connection);
    }
}

static void watch(struct connection *connection, bool wants_to_write)
{
    if (wants_to_write != connection->is_waiting_to_write) {
        struct epoll_event event = {.events = EPOLLIN | (wants_to_write ? (uint32_t)EPOLLOUT : 0u),
                                    .data.ptr = connection};
        (void)epoll_ctl(connection->server->epoll_fd, EPOLL_CTL_MOD, connection->fd, &event);
        connection->is_waiting_to_write = wants_to_write;
    }
}

/* Fill `out` from nghttp2. False: there is nothing more. */
static bool fill_out(struct connection *connection)
{
    while (connection->out.len < OUT_MAX_BYTES) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(connection->session, &bytes);
        if (n <= 0) {
            return n == 0 && connection->out.len > 0;
        }
        (void)weir_buf_append(&connection->out, bytes, (size_t)n);
    }
    return true;
}

/* Send what there is to send. It may close the connection. */
void grpc_connection_flush(struct connection *connection)
{
    bool is_blocked = false;
    while (!is_blocked && fill_out(connection)) {
        ssize_t sent = send(connection->fd, connection->out.data + connection->n_sent,
                            connection->out.len - connection->n_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
            grpc_connection_close(connection);
            return;
        }
        is_blocked = sent < 0 && errno != EINTR;
        if (sent > 0) {
            connection->since_ms = connection->server->now_ms;
            connection->n_sent += (size_t)sent;
            grpc_session_credit(connection, (int)(sent >> 10));
        }
        if (connection->n_sent == connection->out.len) {
            weir_buf_reset(&connection->out);
            connection->n_sent = 0;
        }
    }
    watch(connection, is_blocked);
    if (!is_blocked && nghttp2_session_want_read(connection->session) == 0 &&
        nghttp2_session_want_write(connection->session) == 0) {
        grpc_connection_close(connection);
    }
}

static void read_some(struct connection *connection)
{
    static _Thread_local uint8_t bytes[READ_BYTES];
    ssize_t got = recv(connection->fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    if (got <= 0 || !grpc_session_take(connection, bytes, (size_t)got)) {
        grpc_connection_close(connection);
        return;
    }
    grpc_connection_flush(connection);
}

struct connection *grpc_connection_open(struct weir_grpc_server *server, int fd,
                                        const struct sockaddr *address)
{
    struct connection *connection = weir_xalloc(sizeof *connection);
    memset(connection, 0, sizeof *connection);
    connection->server = server;
    connection->fd = fd;
    connection->since_ms = connection->flood_since_ms = server->now_ms;
    connection->peer =
        (struct grpc_peer *)weir_peers_enter(&server->peers, address, sizeof(struct grpc_peer));
    connection->peer->n_open++;
    weir_buf_init(&connection->out, 2 * OUT_MAX_BYTES);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    connection->next = server->connections;
    if (connection->next != NULL) {
        connection->next->previous = connection;
    }
    server->connections = connection;
    server->n_connections++;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (!grpc_session_begin(connection) ||
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        grpc_connection_close(connection);
        return connection;
    }
    server->next_due_ms = WEIR_MIN(server->next_due_ms, server->now_ms + LOOK_MS);
    grpc_connection_flush(connection);
    return connection;
}

/* All places are taken: the connection gives way that has kept a stranger's for longest. */
static bool make_room(struct weir_grpc_server *server)
{
    struct connection *oldest = NULL;
    for (struct connection *one = server->connections; one != NULL; one = one->next) {
        oldest = one->is_known ? oldest : one; /* the newest are first */
    }
    if (oldest != NULL) {
        grpc_connection_close(oldest);
    }
    return oldest != NULL;
}

static void take_in(struct weir_grpc_server *server, int fd, const struct sockaddr *address)
{
    const struct grpc_peer *peer = (struct grpc_peer *)weir_peers_find(&server->peers, address);
    int most = server->config.max_connections;
    if ((peer != NULL && peer->n_open >= WEIR_MAX(most / 4, ADDRESS_CONNECTIONS_MIN)) ||
        (server->n_connections >= most && !make_room(server))) {
        (void)close(fd);
    } else {
        (void)grpc_connection_open(server, fd, address);
    }
}

static void accept_some(struct weir_grpc_server *server)
{
    for (int i = 0; i < EVENTS_AT_ONCE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t len = sizeof address;
        int fd = accept4(server->listen_fd, (struct sockaddr *)&address, &len,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        take_in(server, fd, (const struct sockaddr *)&address);
    }
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

/* False: the server stops. */
bool grpc_server_take_answers(struct weir_grpc_server *server)
{
    eventfd_t n_wakes;
    (void)eventfd_read(server->wake_fd, &n_wakes);
    pthread_mutex_lock(&server->lock);
    struct weir_grpc_call *call = server->done;
    bool is_stopping = server->is_stopping;
    server->done = NULL;
    pthread_mutex_unlock(&server->lock);
    while (call != NULL) {
        struct weir_grpc_call *next = call->next_done;
        grpc_call_take_back(call);
        call = next;
    }
    return !is_stopping;
}

/* How long who has begun with something may be quiet, or slow. */
static int64_t begun_max_ms(const struct weir_grpc_server *server)
{
    return WEIR_MIN((int64_t)server->config.idle_timeout_s * 1000, (int64_t)BEGUN_MAX_MS);
}

static void end_overdue(struct connection *connection, int64_t *next_ms)
{
    struct weir_grpc_server *server = connection->server;
    struct weir_grpc_call *next;
    for (struct weir_grpc_call *call = connection->calls; call != NULL; call = next) {
        next = call->next;
        int64_t due_ms = call->request.deadline_ms;
        if (call->is_admitted && !call->has_ended && !call->is_answered &&
            !weir_pace_holds(&call->pace, server->now_ms, begun_max_ms(server), SLOW_BYTES_S)) {
            grpc_call_submit_text(call, WEIR_GRPC_DEADLINE_EXCEEDED,
                                  "the message comes slower than 4 KiB a second");
        }
        if (due_ms == 0 || call->is_answered) {
            continue;
        }
        if (due_ms > server->now_ms) {
            *next_ms = WEIR_MIN(*next_ms, due_ms);
            continue;
        }
        pthread_mutex_lock(&server->lock); /* an answer that comes now is dropped */
        atomic_store(&call->is_gone, true);
        pthread_mutex_unlock(&server->lock);
        grpc_call_submit_text(call, WEIR_GRPC_DEADLINE_EXCEEDED, "the call's deadline has passed");
    }
}

static bool is_idle(const struct connection *connection)
{
    for (const struct weir_grpc_call *call = connection->calls; call != NULL; call = call->next) {
        if (call->is_handled && !call->is_answered) {
            return false; /* it waits for us */
        }
    }
    int64_t quiet_ms = connection->server->now_ms - connection->since_ms;
    bool is_begun = connection->n_calls > 0 || !connection->is_known;
    return quiet_ms >= (is_begun ? begun_max_ms(connection->server)
                                 : (int64_t)connection->server->config.idle_timeout_s * 1000);
}

void grpc_server_look_after(struct weir_grpc_server *server)
{
    struct connection *next;
    int64_t next_ms = server->connections != NULL ? server->now_ms + LOOK_MS : INT64_MAX;
    for (struct connection *connection = server->connections; connection != NULL;
         connection = next) {
        next = connection->next;
        end_overdue(connection, &next_ms);
        if (is_idle(connection)) {
            (void)nghttp2_session_terminate_session(connection->session, NGHTTP2_NO_ERROR);
            grpc_connection_flush(connection);
            grpc_connection_close(connection);
        } else {
            grpc_connection_flush(connection);
        }
    }
    server->next_due_ms = next_ms;
}

static int timeout_of(const struct weir_grpc_server *server)
{
    if (server->next_due_ms == INT64_MAX) {
        return -1;
    }
    int64_t left_ms = server->next_due_ms - weir_mono_ms();
    return (int)WEIR_MAX((int64_t)0, WEIR_MIN(left_ms, (int64_t)LOOK_MS));
}

static void *server_main(void *context)
{
    struct weir_grpc_server *server = context;
    struct epoll_event events[EVENTS_AT_ONCE];
    bool goes_on = true;
    while (goes_on) {
        int n = epoll_wait(server->epoll_fd, events, EVENTS_AT_ONCE, timeout_of(server));
        server->now_ms = weir_mono_ms();
        for (int i = 0; i < n; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].data.ptr == server) {
                accept_some(server);
            } else if (connection == NULL) {
                goes_on = grpc_server_take_answers(server);
            } else if (!connection->is_closing && (events[i].events & EPOLLOUT) != 0) {
                grpc_connection_flush(connection);
            }
            if (connection != NULL && events[i].data.ptr != server && !connection->is_closing &&
                (events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
                read_some(connection);
            }
        }
        if (server->now_ms >= server->next_due_ms) {
            grpc_server_look_after(server);
        }
        grpc_connections_free_closed(server);
    }
    while (server->connections != NULL) {
        grpc_connection_close(server->connections);
    }
    grpc_connections_free_closed(server);
    return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------------------- */

void grpc_server_init(struct weir_grpc_server *server, const struct weir_grpc_config *config,
                      weir_grpc_handler_fn handler, void *context)
{
    memset(server, 0, sizeof *server);
    server->config = *config;
    server->config.listen = NULL;
    if (config->max_message_bytes == 0) {
        server->config.max_message_bytes = (size_t)64 << 20;
    }
    if (config->max_held_bytes == 0) {
        server->config.max_held_bytes = (size_t)256 << 20;
    }
    server->config.max_connections = config->max_connections > 0 ? config->max_connections : 1024;
    server->config.max_streams = config->max_streams > 0 ? config->max_streams : 256;
    server->config.idle_timeout_s = config->idle_timeout_s > 0 ? config->idle_timeout_s : 300;
    server->handler = handler;
    server->context = context;
    server->listen_fd = server->wake_fd = server->epoll_fd = -1;
    server->next_due_ms = INT64_MAX;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->all_answered, NULL);
}

void grpc_server_fini(struct weir_grpc_server *server)
{
    const int fds[] = {server->listen_fd, server->wake_fd, server->epoll_fd};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    weir_peers_fini(&server->peers);
    nghttp2_session_callbacks_del(server->callbacks);
    nghttp2_option_del(server->options);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->all_answered);
}

static weir_status start(struct weir_grpc_server *server, const char *listen,
                         struct weir_error *err)
{
    WEIR_TRY(weir_listen_open(listen, "--grpc-listen", &server->listen_fd, &server->port, err));
    WEIR_TRY(grpc_session_make_callbacks(server));
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event wakes = {.events = EPOLLIN, .data.ptr = NULL};
    struct epoll_event connects = {.events = EPOLLIN, .data.ptr = server};
    if (server->epoll_fd < 0 || server->wake_fd < 0 ||
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->wake_fd, &wakes) != 0 ||
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->listen_fd, &connects) != 0) {
        return weir_error_set_errno(err, errno, "cannot start the gRPC server");
    }
    int rc = pthread_create(&server->thread, NULL, server_main, server);
    return rc == 0 ? WEIR_OK
                   : weir_error_set_errno(err, rc, "cannot start the gRPC server's thread");
}

weir_status weir_grpc_server_start(const struct weir_grpc_config *config,
                                   weir_grpc_handler_fn handler, void *context,
                                   struct weir_grpc_server **out, struct weir_error *err)
{
    struct weir_grpc_server *server = weir_xalloc(sizeof *server);
    grpc_server_init(server, config, handler, context);
    weir_status status = start(server, config->listen, err);
    if (status != WEIR_OK) {
        grpc_server_fini(server);
        free(server);
        return status;
    }
    *out = server;
    return WEIR_OK;
}

int weir_grpc_server_port(const struct weir_grpc_server *server)
{
    return server->port;
}

void weir_grpc_server_stop(struct weir_grpc_server *server)
{
    if (server == NULL) {
        return;
    }
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    pthread_mutex_unlock(&server->lock);
    (void)eventfd_write(server->wake_fd, 1);
    pthread_join(server->thread, NULL);
    pthread_mutex_lock(&server->lock);
    while (server->n_out > 0) {
        pthread_cond_wait(&server->all_answered, &server->lock);
    }
    struct weir_grpc_call *call = server->done;
    pthread_mutex_unlock(&server->lock);
    while (call != NULL) { /* their streams are gone */
        struct weir_grpc_call *next = call->next_done;
        grpc_call_unref(call);
        call = next;
    }
    grpc_server_fini(server);
    free(server);
}
