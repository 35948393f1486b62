/* WebSockets to services: one thread, epoll. The handshake with the program comes first, through the
 * tunnel; only its own 101 makes the browser's connection a tunnel, and from then on bytes are bytes. */
#include "proxy/exchange.h"

#include "base/clock.h"
#include "base/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS       1000
#define HANDSHAKE_MS  (2 * (int64_t)PROXY_CONNECT_MS)
#define JOIN_MS       60000
#define EVENTS_MAX    64
#define GOT_MAX_BYTES (2 * RULES_HEAD_MAX_BYTES)

enum phase { PHASE_ASKING, PHASE_TUNNEL, PHASE_PROGRAM, PHASE_READY, PHASE_RELAYING, PHASE_OVER };

/** A WebSocket; the thread's own. */
struct work {
    struct exchange *x;
    enum phase phase;
    int fd; /* to the tunnel; -1 */
    struct weir_buf request, got;
    size_t n_sent;
    int64_t due_ms;
    struct weir_http_upgraded *upgraded;
    struct weir_relay relay;
    uint64_t n_seen;
    int epoll_fd; /* watches its descriptors */
    struct work *next;
};

/** What other threads leave: an exchange to begin (upgraded NULL), or its browser's side. */
struct message {
    struct exchange *x;
    struct weir_http_upgraded *upgraded;
    int fd;
    size_t extra_len;
    struct message *next;
    char extra[];
};

struct websockets {
    struct weir_proxy *proxy;
    pthread_t thread;
    int epoll_fd, wake_fd;
    pthread_mutex_t lock;
    struct message *first, **last; /* lock; in the order they came */
    bool is_stopping;              /* lock */
    struct work *works;
    bool has_more; /* a relay is to be pumped again */
};

/* ---- the request ----------------------------------------------------------------------------------- */

static void make_request(struct work *w)
{
    const struct exchange *x = w->x;
    (void)weir_buf_printf(&w->request,
                          "CONNECT %s:80 HTTP/1.1\r\nHost: %s:80\r\n"
                          "Proxy-Authorization: Bearer %s\r\n\r\n"
                          "GET %s HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
                          x->service.id, x->service.id, x->service.secret, x->target);
    for (size_t i = 0; i < x->n_headers; i++) {
        (void)weir_buf_printf(&w->request, "%s: %s\r\n", x->headers[i].name, x->headers[i].value);
    }
    (void)weir_buf_puts(&w->request, "\r\n");
}

/* "10.0.0.7:40123" or "[::1]:40123". */
static bool read_address(const char *text, struct sockaddr_storage *out, socklen_t *out_len)
{
    char host[INET6_ADDRSTRLEN + 2];
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    bool is_v6 = text[0] == '[';
    if (len == 0 || len >= sizeof host || (is_v6 && text[len - 1] != ']')) {
        return false;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(is_v6 ? len - 2 : len), text + is_v6);
    in_port_t port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    memset(out, 0, sizeof *out);
    if (is_v6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = port;
        *out_len = sizeof *v6;
        return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1;
    }
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    *out_len = sizeof *v4;
    return inet_pton(AF_INET, host, &v4->sin_addr) == 1;
}

/* ---- ends ------------------------------------------------------------------------------------------ */

static void finish(struct work *w, weir_status status, const char *message)
{
    if (w->phase == PHASE_OVER) {
        return;
    }
    bool has_relay = w->phase == PHASE_RELAYING;
    w->phase = PHASE_OVER;
    exchange_ready(w->x, status, message);
    if (w->fd >= 0) {
        close(w->fd);
        w->fd = -1;
    }
    if (has_relay) {
        /* It is closed by another thread, later: no event of it may come until then. */
        (void)epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, w->relay.fds[0], NULL);
        weir_relay_fini(&w->relay);
        weir_http_upgraded_close(w->upgraded);
    }
}

static void refuse(struct work *w, long tunnel_status)
{
    finish(w, WEIR_ERR_UNAVAILABLE, exchange_closed_tunnel(tunnel_status));
}

/* At the end of a turn: events of it may have named them. */
static void free_over(struct websockets *ws)
{
    struct work **at = &ws->works;
    while (*at != NULL) {
        struct work *w = *at;
        if (w->phase != PHASE_OVER) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        weir_buf_fini(&w->request);
        weir_buf_fini(&w->got);
        w->x->work = NULL;
        exchange_unref(w->x);
        free(w);
    }
}

/* ---- the handshake --------------------------------------------------------------------------------- */

static bool watch(struct websockets *ws, struct work *w, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = w};
    return epoll_ctl(ws->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void begin(struct websockets *ws, struct exchange *x)
{
    struct sockaddr_storage address;
    socklen_t len = 0;
    struct work *w = weir_xalloc(sizeof *w);
    *w = (struct work){
        .x = x, .fd = -1, .epoll_fd = ws->epoll_fd, .due_ms = weir_mono_ms() + HANDSHAKE_MS};
    weir_buf_init(&w->request, 2 * RULES_HEAD_MAX_BYTES);
    weir_buf_init(&w->got, GOT_MAX_BYTES);
    w->next = ws->works;
    ws->works = w;
    x->work = w;
    make_request(w);
    if (w->request.status != WEIR_OK || !read_address(x->service.address, &address, &len)) {
        finish(w, WEIR_ERR_INVALID, "the headers of the request are too long");
        return;
    }
    w->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    (void)setsockopt(w->fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    if (w->fd < 0 || !watch(ws, w, w->fd) ||
        (connect(w->fd, (struct sockaddr *)&address, len) != 0 && errno != EINPROGRESS)) {
        refuse(w, 0);
    }
}

static bool is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static void send_request(struct work *w)
{
    while (w->n_sent < w->request.len) {
        ssize_t n =
            send(w->fd, w->request.data + w->n_sent, w->request.len - w->n_sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (!is_later()) {
                refuse(w, 0);
            }
            return;
        }
        w->n_sent += (size_t)n;
    }
    w->phase = PHASE_TUNNEL;
}

static void drop_front(struct weir_buf *buf, size_t n)
{
    memmove(buf->data, buf->data + n, buf->len - n);
    buf->len -= n;
    buf->data[buf->len] = '\0';
}

/* The program's answer. Anything but its consent ends here: no byte of the browser reaches it. */
static void take_answer(struct work *w, const struct rules_head *head)
{
    bool is_upgrade = head->http_status == 101 &&
                      rules_has_token(rules_head_value(head, "Upgrade"), "websocket") &&
                      rules_has_token(rules_head_value(head, "Connection"), "upgrade") &&
                      rules_head_value(head, "Sec-WebSocket-Accept") != NULL;
    if (head->http_status == 101 && !is_upgrade) {
        finish(w, WEIR_ERR_PEER, "the service answered with another protocol than WebSocket");
        return;
    }
    if (exchange_take_head(w->x, head) != WEIR_OK) {
        finish(w, WEIR_ERR_PEER, "the service answered with what is no HTTP");
        return;
    }
    if (!is_upgrade) {
        finish(w, WEIR_OK, NULL); /* with its own status, and no body */
        return;
    }
    w->phase = PHASE_READY;
    w->due_ms = weir_mono_ms() + JOIN_MS;
    exchange_ready(w->x, WEIR_OK, NULL);
}

static void read_heads(struct work *w)
{
    while (w->phase == PHASE_TUNNEL || w->phase == PHASE_PROGRAM) {
        struct rules_head head;
        size_t len;
        weir_status status = rules_read_head(w->got.data, w->got.len, &w->x->arena, &head, &len);
        if (status == WEIR_ERR_END) {
            return;
        }
        if (status != WEIR_OK) {
            finish(w, WEIR_ERR_PEER, "the service answered with what is no HTTP");
            return;
        }
        drop_front(&w->got, len);
        if (w->phase == PHASE_TUNNEL && head.http_status != 200) {
            refuse(w, head.http_status);
        } else if (w->phase == PHASE_TUNNEL) {
            w->phase = PHASE_PROGRAM;
        } else if (head.http_status >= 200 || head.http_status == 101) {
            take_answer(w, &head);
        } /* else 1xx: the answer is still to come */
    }
}

static void receive(struct work *w)
{
    char bytes[8192];
    while (w->phase == PHASE_TUNNEL || w->phase == PHASE_PROGRAM) {
        ssize_t n = recv(w->fd, bytes, sizeof bytes, 0);
        if (n < 0 && is_later()) {
            return;
        }
        if (n <= 0) {
            refuse(w, w->phase == PHASE_TUNNEL ? 0 : 200);
            return;
        }
        if (weir_buf_append(&w->got, bytes, (size_t)n) != WEIR_OK) {
            finish(w, WEIR_ERR_PEER, "the service answered with what is no HTTP");
            return;
        }
        read_heads(w);
    }
}

/* ---- the relay ------------------------------------------------------------------------------------- */

static void pump(struct websockets *ws, struct work *w)
{
    bool goes_on = weir_relay_pump(&w->relay, weir_mono_ms());
    if (w->relay.ways[0].n_bytes != w->n_seen) {
        w->n_seen = w->relay.ways[0].n_bytes;
        use_touch(ws->proxy, w->x->use);
    }
    ws->has_more = ws->has_more || (goes_on && w->relay.has_more);
    if (!goes_on) {
        finish(w, WEIR_OK, NULL);
    }
}

static void pump_again(struct websockets *ws)
{
    ws->has_more = false;
    for (struct work *w = ws->works; w != NULL; w = w->next) {
        if (w->phase == PHASE_RELAYING && w->relay.has_more) {
            pump(ws, w);
        }
    }
}

static void step(struct websockets *ws, struct work *w)
{
    if (w->phase == PHASE_ASKING) {
        send_request(w);
    }
    if (w->phase == PHASE_TUNNEL || w->phase == PHASE_PROGRAM) {
        receive(w);
    }
    if (w->phase == PHASE_RELAYING) {
        pump(ws, w);
    }
}

static void join(struct websockets *ws, const struct message *message)
{
    struct work *w = message->x->work;
    if (w == NULL || w->phase != PHASE_READY) {
        weir_http_upgraded_close(message->upgraded);
        return;
    }
    w->phase = PHASE_RELAYING;
    w->upgraded = message->upgraded;
    weir_relay_init(&w->relay, message->fd, w->fd, weir_mono_ms());
    bool is_good = weir_relay_preload(&w->relay, 0, message->extra, message->extra_len) &&
                   w->got.len <= WEIR_RELAY_BYTES &&
                   weir_relay_preload(&w->relay, 1, w->got.data, w->got.len) &&
                   watch(ws, w, message->fd);
    if (is_good) {
        pump(ws, w);
    } else {
        finish(w, WEIR_OK, NULL);
    }
}

/* ---- the thread ------------------------------------------------------------------------------------ */

static bool take_messages(struct websockets *ws)
{
    pthread_mutex_lock(&ws->lock);
    struct message *message = ws->first;
    bool goes_on = !ws->is_stopping;
    ws->first = NULL;
    ws->last = &ws->first;
    pthread_mutex_unlock(&ws->lock);
    while (message != NULL) {
        struct message *next = message->next;
        if (message->upgraded != NULL) {
            join(ws, message);
            exchange_unref(message->x);
        } else {
            begin(ws, message->x);
        }
        free(message);
        message = next;
    }
    return goes_on;
}

static void look_at_all(struct websockets *ws, int64_t now_ms)
{
    for (struct work *w = ws->works; w != NULL; w = w->next) {
        if (w->phase == PHASE_RELAYING) {
            pump(ws, w); /* for the time */
        } else if (w->phase != PHASE_OVER && (w->x->is_abandoned || exchange_is_gone(w->x))) {
            finish(w, WEIR_ERR_CANCELLED, "nobody waits for the answer");
        } else if (w->phase != PHASE_OVER && now_ms >= w->due_ms) {
            finish(w, WEIR_ERR_TIMEOUT, "the service did not answer in time");
        }
    }
}

static void *websocket_main(void *context)
{
    struct websockets *ws = context;
    struct epoll_event events[EVENTS_MAX];
    int64_t next_tick_ms = 0;
    bool goes_on = true;
    while (goes_on) {
        int n = epoll_wait(ws->epoll_fd, events, EVENTS_MAX, ws->has_more ? 0 : TICK_MS);
        pump_again(ws);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr != NULL) {
                step(ws, events[i].data.ptr);
            } else {
                eventfd_t ignored;
                (void)eventfd_read(ws->wake_fd, &ignored);
            }
        }
        goes_on = take_messages(ws);
        int64_t now_ms = weir_mono_ms();
        if (now_ms >= next_tick_ms) {
            next_tick_ms = now_ms + TICK_MS;
            look_at_all(ws, now_ms);
            use_tell(ws->proxy, now_ms);
        }
        free_over(ws);
    }
    for (struct work *w = ws->works; w != NULL; w = w->next) {
        finish(w, WEIR_ERR_UNAVAILABLE, "the server is stopping");
    }
    free_over(ws);
    return NULL;
}

static bool post(struct websockets *ws, struct exchange *x, struct weir_http_upgraded *upgraded,
                 int fd, const void *extra, size_t extra_len)
{
    struct message *message = weir_xalloc(sizeof *message + extra_len);
    *message = (struct message){.x = x, .upgraded = upgraded, .fd = fd, .extra_len = extra_len};
    if (extra_len > 0) {
        memcpy(message->extra, extra, extra_len);
    }
    pthread_mutex_lock(&ws->lock);
    bool is_taken = !ws->is_stopping;
    if (is_taken) {
        message->x = exchange_ref(x);
        *ws->last = message;
        ws->last = &message->next;
    }
    pthread_mutex_unlock(&ws->lock);
    if (!is_taken) {
        free(message);
    }
    websockets_wake(ws);
    return is_taken;
}

bool websockets_begin(struct websockets *ws, struct exchange *x)
{
    return post(ws, x, NULL, -1, NULL, 0);
}

bool websockets_join(struct websockets *ws, struct exchange *x, struct weir_http_upgraded *upgraded,
                     int fd, const void *extra, size_t extra_len)
{
    return post(ws, x, upgraded, fd, extra, extra_len);
}

void websockets_wake(struct websockets *ws)
{
    (void)eventfd_write(ws->wake_fd, 1);
}

weir_status websockets_start(struct weir_proxy *proxy, struct websockets **out,
                             struct weir_error *err)
{
    struct websockets *ws = weir_xalloc(sizeof *ws);
    *ws = (struct websockets){.proxy = proxy,
                              .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                              .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    ws->last = &ws->first;
    pthread_mutex_init(&ws->lock, NULL);
    struct epoll_event event = {.events = EPOLLIN};
    int rc = ws->epoll_fd >= 0 && ws->wake_fd >= 0 &&
                     epoll_ctl(ws->epoll_fd, EPOLL_CTL_ADD, ws->wake_fd, &event) == 0
                 ? pthread_create(&ws->thread, NULL, websocket_main, ws)
                 : errno;
    if (rc != 0) {
        websockets_destroy(ws);
        return weir_error_set_errno(err, rc, "cannot start the thread of WebSockets");
    }
    *out = ws;
    return WEIR_OK;
}

void websockets_stop(struct websockets *ws)
{
    if (ws == NULL) {
        return;
    }
    pthread_mutex_lock(&ws->lock);
    bool is_first = !ws->is_stopping;
    ws->is_stopping = true;
    pthread_mutex_unlock(&ws->lock);
    if (is_first) {
        websockets_wake(ws);
        pthread_join(ws->thread, NULL);
    }
}

void websockets_destroy(struct websockets *ws)
{
    if (ws == NULL) {
        return;
    }
    if (ws->epoll_fd >= 0) {
        close(ws->epoll_fd);
    }
    if (ws->wake_fd >= 0) {
        close(ws->wake_fd);
    }
    pthread_mutex_destroy(&ws->lock);
    free(ws);
}
