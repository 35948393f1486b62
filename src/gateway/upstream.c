/* Connections to replicas: kept alive, one call at a time each, never blocking.
 *
 * A call is tried again only if nothing of it was begun: the replica was not reached, or the
 * connection ended before a byte of the request was taken, or the replica said by a 503 that it has
 * not begun. */
#include "gateway/gateway_private.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HEAD_MAX_BYTES 16384
#define PIECES_AT_ONCE 64
/* A machine that is cut off acknowledges nothing; one that only computes for long does. */
#define UNREACHED_MS  10000
#define PROBE_AFTER_S 5
#define PROBE_EVERY_S 2
#define PROBES        3
#define LOST          "was not heard of any more: its machine, or the network to it, may be gone"

enum upstream_phase { UP_CONNECTING, UP_SENDING, UP_READING, UP_IDLE, UP_CLOSED };

struct upstream {
    int fd;
    enum upstream_phase phase;
    struct live_replica *replica;
    struct gateway_call *call; /* NULL: idle */
    struct weir_buf head;
    size_t n_sent; /* of head and body */
    struct reply reply;
    bool is_reused;
    int64_t since_ms;                 /* of connecting, or of being idle */
    struct upstream *next, *previous; /* idle ones of the replica; closed ones of the gateway */
};

/* ---- lists ---------------------------------------------------------------------------------------- */

static void enter_idle(struct weir_gateway *gateway, struct upstream *up)
{
    up->phase = UP_IDLE;
    up->since_ms = gateway->now_ms;
    up->previous = NULL;
    up->next = up->replica->idle;
    if (up->next != NULL) {
        up->next->previous = up;
    }
    up->replica->idle = up;
    up->replica->n_idle++;
    gateway->n_idle++;
    gateway->next_sweep_ms = WEIR_MIN(gateway->next_sweep_ms, gateway->now_ms + IDLE_KEEP_MS);
}

static void leave_idle(struct weir_gateway *gateway, struct upstream *up)
{
    if (up->next != NULL) {
        up->next->previous = up->previous;
    }
    if (up->previous != NULL) {
        up->previous->next = up->next;
    } else {
        up->replica->idle = up->next;
    }
    up->replica->n_idle--;
    gateway->n_idle--;
}

/* Events of this turn may still name it: it is freed at the turn's end. */
static void close_up(struct weir_gateway *gateway, struct upstream *up)
{
    if (up->phase == UP_IDLE) {
        leave_idle(gateway, up);
    }
    (void)close(up->fd);
    up->phase = UP_CLOSED;
    up->next = gateway->closing;
    gateway->closing = up;
}

void upstream_free_closed(struct weir_gateway *gateway)
{
    while (gateway->closing != NULL) {
        struct upstream *up = gateway->closing;
        gateway->closing = up->next;
        weir_buf_fini(&up->head);
        reply_fini(&up->reply);
        live_replica_unref(up->replica);
        free(up);
    }
}

void upstream_trim(struct weir_gateway *gateway, struct live_replica *replica)
{
    struct upstream *next;
    for (struct upstream *up = replica->idle; up != NULL; up = next) {
        next = up->next;
        if (replica->is_gone || gateway->now_ms - up->since_ms >= IDLE_KEEP_MS) {
            close_up(gateway, up);
        }
    }
}

/* ---- a call comes on and off ------------------------------------------------------------------------ */

static struct gateway_call *take_off(struct upstream *up)
{
    struct gateway_call *call = up->call;
    up->call = NULL;
    up->replica->n_outstanding--;
    call->upstream = NULL;
    return call;
}

static void put_on(struct gateway_call *call, struct upstream *up)
{
    up->call = call;
    up->n_sent = 0;
    up->replica->n_outstanding++;
    call->upstream = up;
    reply_reset(&up->reply);
    weir_buf_reset(&up->head);
    (void)weir_buf_printf(&up->head,
                          "%s %s/versions/%" PRId64 "%s HTTP/1.1\r\n"
                          "Host: replica\r\n"
                          "Authorization: Bearer %s\r\n"
                          "Weir-Timeout-Ms: %" PRId64 "\r\n",
                          call->method, call->path_before, call->chosen, call->path_after,
                          call->to->row->secret,
                          WEIR_MAX(call->due_ms - weir_mono_ms(), (int64_t)1));
    if (call->body_bytes > 0 || strcmp(call->method, "POST") == 0) {
        (void)weir_buf_printf(&up->head, "Content-Length: %zu\r\n", call->body_bytes);
    }
    (void)weir_buf_printf(&up->head, "%s\r\n", call->headers);
}

void upstream_abandon(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct upstream *up = call->upstream;
    (void)take_off(up);
    close_up(gateway, up);
}

/* Room has come up where the call went. */
static void go_on(struct weir_gateway *gateway, struct live_deployment *to)
{
    if (to->held_first != NULL) {
        dispatch_held(gateway, to);
    }
    live_deployment_unref(to);
}

static void back_off(struct weir_gateway *gateway, struct live_replica *replica)
{
    replica->backoff_ms = WEIR_MIN(WEIR_MAX(2 * replica->backoff_ms, (int64_t)BACKOFF_FIRST_MS),
                                   (int64_t)BACKOFF_MAX_MS);
    replica->backoff_until_ms = gateway->now_ms + replica->backoff_ms;
}

/* Nothing of the call was begun here. */
static void give_back(struct weir_gateway *gateway, struct upstream *up, int errno_value)
{
    const char *why = errno_value != 0 ? strerror(errno_value) : "it closed the connection";
    if (!up->is_reused) {
        back_off(gateway, up->replica);
        weir_log(WEIR_LOG_DEBUG, "replica_unreachable", WEIR_KV_STR("replica", up->replica->id),
                 WEIR_KV_STR("because", why));
    }
    struct gateway_call *call = take_off(up);
    close_up(gateway, up);
    dispatch_again(gateway, call, why);
}

static void fail(struct weir_gateway *gateway, struct upstream *up, weir_status status,
                 const char *what)
{
    struct gateway_call *call = take_off(up);
    struct live_deployment *to = call->to;
    to->n_refs++;
    close_up(gateway, up);
    dispatch_fail(gateway, call, status, "replica %s of \"%s\" %s", up->replica->id, to->name,
                  what);
    go_on(gateway, to);
}

/* It has no room: is there another replica which has? */
static bool is_moved(struct weir_gateway *gateway, struct gateway_call *call, struct upstream *up)
{
    if (up->reply.http_status != 503 || call->n_tries >= TRIES_MAX || call->is_copy ||
        call->to->row == NULL) {
        return false;
    }
    struct live_replica *before = call->avoid;
    call->avoid = up->replica;
    up->replica->n_refs++;
    live_replica_unref(before);
    struct live_replica *other = dispatch_choose(gateway, call);
    if (other == NULL) {
        return false;
    }
    figures_add(&call->to->figures->n_retried, call->is_inference);
    call->n_tries++;
    upstream_send(gateway, call, other);
    return true;
}

static void complete(struct weir_gateway *gateway, struct upstream *up, bool has_more)
{
    bool is_kept =
        up->phase == UP_READING && up->reply.keeps_alive && !has_more && !up->replica->is_gone;
    struct gateway_call *call = take_off(up);
    struct live_deployment *to = call->to;
    to->n_refs++;
    up->replica->backoff_ms = 0;
    if (!is_moved(gateway, call, up)) {
        dispatch_answer(gateway, call, &up->reply);
    }
    if (is_kept) {
        enter_idle(gateway, up);
    } else {
        close_up(gateway, up);
    }
    go_on(gateway, to);
}

/* ---- bytes ------------------------------------------------------------------------------------------- */

/* What is left to send, at most PIECES_AT_ONCE pieces of it. */
static size_t pieces_left(const struct upstream *up, struct iovec out[PIECES_AT_ONCE])
{
    const struct gateway_call *call = up->call;
    size_t skip = up->n_sent, n = 0;
    for (size_t i = 0; i <= call->n_body && n < PIECES_AT_ONCE; i++) {
        struct iovec piece =
            i == 0 ? (struct iovec){up->head.data, up->head.len} : call->body[i - 1];
        if (skip >= piece.iov_len) {
            skip -= piece.iov_len;
            continue;
        }
        out[n++] = (struct iovec){(char *)piece.iov_base + skip, piece.iov_len - skip};
        skip = 0;
    }
    return n;
}

/* Send until all is sent or the socket is full. False: the call is not on this connection any more. */
static bool send_more(struct weir_gateway *gateway, struct upstream *up)
{
    struct iovec pieces[PIECES_AT_ONCE];
    size_t n;
    while ((n = pieces_left(up, pieces)) > 0) {
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n};
        ssize_t sent = sendmsg(up->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return true;
        }
        if (sent < 0 && up->n_sent == 0) {
            give_back(gateway, up, errno);
            return false;
        }
        if (sent < 0) {
            return true; /* an early answer may be there to read; if not, reading says so */
        }
        up->n_sent += (size_t)sent;
    }
    up->phase = UP_READING;
    mirror_begin(gateway, up->call);
    return true;
}

static void on_end(struct weir_gateway *gateway, struct upstream *up, int errno_value)
{
    if (errno_value == 0 && reply_close(&up->reply) == WEIR_ERR_END) {
        complete(gateway, up, false);
    } else if (up->n_sent == 0 && !up->reply.has_begun) {
        give_back(gateway, up, errno_value);
    } else {
        back_off(gateway, up->replica);
        fail(gateway, up, WEIR_ERR_PEER,
             errno_value == ETIMEDOUT ? LOST : "ended the connection before it had answered");
    }
}

static void read_more(struct weir_gateway *gateway, struct upstream *up)
{
    for (;;) {
        ssize_t got = recv(up->fd, gateway->read_buffer, sizeof gateway->read_buffer, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        }
        if (got <= 0) {
            on_end(gateway, up, got < 0 ? errno : 0);
            return;
        }
        size_t taken = 0;
        weir_status status = reply_feed(&up->reply, gateway->read_buffer, (size_t)got, &taken);
        if (status == WEIR_ERR_END) {
            complete(gateway, up, taken < (size_t)got);
            return;
        }
        if (status != WEIR_OK) {
            fail(gateway, up, WEIR_ERR_PEER,
                 status == WEIR_ERR_CORRUPT ? "answered with what is no HTTP"
                                            : "answered with more than an answer may hold");
            return;
        }
    }
}

static void on_connected(struct weir_gateway *gateway, struct upstream *up)
{
    int errno_value = 0;
    socklen_t len = sizeof errno_value;
    if (getsockopt(up->fd, SOL_SOCKET, SO_ERROR, &errno_value, &len) != 0) {
        errno_value = errno;
    }
    if (errno_value != 0) {
        give_back(gateway, up, errno_value);
        return;
    }
    up->phase = UP_SENDING;
    (void)send_more(gateway, up);
}

void upstream_on_event(struct weir_gateway *gateway, struct upstream *up, uint32_t events)
{
    switch (up->phase) {
    case UP_CONNECTING:
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
            on_connected(gateway, up);
        }
        break;
    case UP_SENDING:
        if (send_more(gateway, up) && (events & (EPOLLIN | EPOLLERR | EPOLLHUP | EPOLLRDHUP))) {
            read_more(gateway, up);
        }
        break;
    case UP_READING:
        if (events & (EPOLLIN | EPOLLERR | EPOLLHUP | EPOLLRDHUP)) {
            read_more(gateway, up);
        }
        break;
    case UP_IDLE: /* it ends, or says what nobody asked for */
        if (events & (EPOLLIN | EPOLLERR | EPOLLHUP | EPOLLRDHUP)) {
            close_up(gateway, up);
        }
        break;
    case UP_CLOSED:
        break;
    }
}

/* Let the kernel end it when the other machine is not reached any more. */
static void watch_peer(int fd)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){PROBE_AFTER_S}, sizeof(int));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){PROBE_EVERY_S}, sizeof(int));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){PROBES}, sizeof(int));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(int){UNREACHED_MS}, sizeof(int));
}

/* A new connection, not yet made. NULL, errno says why: no descriptor is left. */
static struct upstream *open_up(struct weir_gateway *gateway, struct live_replica *replica)
{
    int fd = socket(replica->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return NULL;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    watch_peer(fd);
    struct upstream *up = weir_xalloc(sizeof *up);
    memset(up, 0, sizeof *up);
    up->fd = fd;
    up->replica = replica;
    replica->n_refs++;
    weir_buf_init(&up->head, HEAD_MAX_BYTES);
    reply_init(&up->reply, ANSWER_MAX_BYTES);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = up};
    if (epoll_ctl(gateway->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        int errno_value = errno;
        close_up(gateway, up);
        errno = errno_value;
        return NULL;
    }
    return up;
}

/* An idle connection whose other end has closed would take a request and lose it. */
static bool is_quiet(const struct upstream *up)
{
    char byte;
    ssize_t got = recv(up->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void upstream_send(struct weir_gateway *gateway, struct gateway_call *call,
                   struct live_replica *replica)
{
    struct upstream *up;
    while ((up = replica->idle) != NULL && !is_quiet(up)) {
        close_up(gateway, up);
    }
    if (up != NULL) {
        leave_idle(gateway, up);
        up->is_reused = true;
        up->phase = UP_SENDING;
        put_on(call, up);
        (void)send_more(gateway, up);
        return;
    }
    up = open_up(gateway, replica);
    if (up == NULL) {
        dispatch_fail(gateway, call, WEIR_ERR_UNAVAILABLE,
                      "the server cannot open a connection to a replica: %s", strerror(errno));
        return;
    }
    up->since_ms = gateway->now_ms;
    put_on(call, up);
    up->phase = UP_CONNECTING;
    if (connect(up->fd, (struct sockaddr *)&replica->address, replica->address_len) == 0) {
        up->phase = UP_SENDING;
        (void)send_more(gateway, up);
    } else if (errno != EINPROGRESS) {
        give_back(gateway, up, errno);
    }
}

void upstream_check(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct upstream *up = call->upstream;
    if (up->phase == UP_CONNECTING && gateway->now_ms - up->since_ms >= CONNECT_MAX_MS) {
        give_back(gateway, up, ETIMEDOUT);
    } else if (up->replica->is_silent && up->phase != UP_CONNECTING) {
        fail(gateway, up, WEIR_ERR_PEER, LOST);
    }
}
