/* The acceptor: takes connections and hands them to the I/O threads in turn. libmicrohttpd could
 * listen itself, but its MHD_quiesce_daemon races with its I/O threads for the listening socket and
 * aborts the process when it loses (0.9.75); what only this thread listens to, it can close. */
#include "http/server_private.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MS 100  /* when no descriptor is left, or no place */
#define BEGIN_MS 1000 /* for I/O threads to begin what they were given */

static bool take_place(struct weir_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool has_place = server->n_connections < (size_t)server->config.max_connections;
    server->n_connections += has_place ? 1 : 0;
    pthread_mutex_unlock(&server->lock);
    return has_place;
}

/* No place is free: whoever waits in the backlog gets that of an idle connection, if one address
 * has many. */
static void make_room(struct weir_http_server *server)
{
    struct pollfd backlog = {.fd = server->acceptor.listen_fd, .events = POLLIN};
    if (poll(&backlog, 1, 0) == 1) {
        pthread_mutex_lock(&server->lock);
        peer_make_room(server);
        pthread_mutex_unlock(&server->lock);
    }
}

/* Give a connection to an I/O thread, if its address may have one more. Closes it otherwise. */
static bool hand_over(struct weir_http_server *server, int fd, const struct sockaddr *peer,
                      socklen_t len)
{
    pthread_mutex_lock(&server->lock);
    bool may_enter = peer_enter(server, peer);
    server->acceptor.n_handed += may_enter;
    pthread_mutex_unlock(&server->lock);
    if (!may_enter) {
        (void)close(fd);
        return false;
    }
    size_t next = server->acceptor.n_accepted++ % server->n_io;
    if (MHD_add_connection(server->io[next].daemon, fd, peer, len) == MHD_YES) {
        return true;
    }
    pthread_mutex_lock(&server->lock); /* libmicrohttpd has closed what it did not take */
    peer_leave(server, peer);
    server->acceptor.n_handed--;
    pthread_mutex_unlock(&server->lock);
    return false;
}

/* Whether it was the last one. */
static bool give_place(struct weir_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool was_full = server->n_connections == (size_t)server->config.max_connections;
    server->n_connections--;
    pthread_mutex_unlock(&server->lock);
    return was_full;
}

void acceptor_leave(struct weir_http_server *server)
{
    if (give_place(server)) {
        (void)eventfd_write(server->acceptor.wake_fd, 1);
    }
}

enum accepted { ACCEPTED_ALL, ACCEPTED_TO_LIMIT, ACCEPTED_NO_FILES };

static bool is_shortage(int errno_value)
{
    return errno_value == EMFILE || errno_value == ENFILE || errno_value == ENOBUFS ||
           errno_value == ENOMEM;
}

/* Take what waits in the backlog. */
static enum accepted accept_waiting(struct weir_http_server *server)
{
    struct http_acceptor *acceptor = &server->acceptor;
    while (take_place(server)) {
        struct sockaddr_storage peer;
        socklen_t len = sizeof peer;
        int fd = accept4(acceptor->listen_fd, (struct sockaddr *)&peer, &len,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        int errno_value = errno;
        if (fd >= 0 && hand_over(server, fd, (struct sockaddr *)&peer, len)) {
            continue;
        }
        (void)give_place(server);
        if (fd < 0 && is_shortage(errno_value)) {
            weir_log(WEIR_LOG_WARN, "http_accept_failed",
                     WEIR_KV_STR("because", strerror(errno_value)));
            return ACCEPTED_NO_FILES;
        }
        if (fd < 0 && (errno_value == EAGAIN || errno_value == EWOULDBLOCK)) {
            return ACCEPTED_ALL;
        }
        /* Anything else is the fate of that one connection (accept(2)): go on with the next. */
    }
    make_room(server);
    return ACCEPTED_TO_LIMIT;
}

static void *acceptor_main(void *context)
{
    struct weir_http_server *server = context;
    struct http_acceptor *acceptor = &server->acceptor;
    enum accepted last = ACCEPTED_ALL;
    while (!acceptor->is_stopping) {
        struct pollfd fds[] = {
            {.fd = acceptor->wake_fd, .events = POLLIN},
            {.fd = last == ACCEPTED_ALL ? acceptor->listen_fd : -1, .events = POLLIN},
        };
        (void)poll(fds, WEIR_ARRAY_LEN(fds), last == ACCEPTED_ALL ? -1 : RETRY_MS);
        eventfd_t n_wakes;
        (void)eventfd_read(acceptor->wake_fd, &n_wakes);
        if (!acceptor->is_stopping) {
            last = accept_waiting(server);
        }
    }
    return NULL;
}

weir_status acceptor_start(struct weir_http_server *server, int listen_fd, struct weir_error *err)
{
    struct http_acceptor *acceptor = &server->acceptor;
    acceptor->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (acceptor->wake_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot start the HTTP server's acceptor");
    }
    acceptor->listen_fd = listen_fd;
    int rc = pthread_create(&acceptor->thread, NULL, acceptor_main, server);
    if (rc != 0) {
        return weir_error_set_errno(err, rc, "cannot start the HTTP server's acceptor thread");
    }
    acceptor->is_started = true;
    return WEIR_OK;
}

/* An I/O thread that is stopped closes what it has not begun without a word: so it is let begin first. */
static void await_begun(struct weir_http_server *server)
{
    const struct http_acceptor *acceptor = &server->acceptor;
    int64_t until_ms = weir_mono_ms() + BEGIN_MS;
    struct timespec until = weir_deadline_at(until_ms);
    pthread_mutex_lock(&server->lock);
    while (acceptor->n_begun < acceptor->n_handed && weir_mono_ms() < until_ms) {
        (void)weir_cond_wait_until(&server->idle, &server->lock, &until);
    }
    pthread_mutex_unlock(&server->lock);
}

void acceptor_stop(struct weir_http_server *server)
{
    struct http_acceptor *acceptor = &server->acceptor;
    if (!acceptor->is_started) {
        return;
    }
    acceptor->is_stopping = true;
    (void)eventfd_write(acceptor->wake_fd, 1);
    pthread_join(acceptor->thread, NULL);
    acceptor->is_started = false;
    close(acceptor->listen_fd);
    await_begun(server);
}
