#include "agent/tunnel.h"

#include "agent/node/listener.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/macros.h"
#include "base/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS    1000
#define CONNECT_MS 1000
#define EVENTS_MAX 64
#define NOTHING    "Content-Length: 0\r\nConnection: close\r\n\r\n"

weir_status tunnel_listen(struct tunnel *tunnel, const char *host, struct weir_error *err)
{
    bool is_v6 = strchr(host, ':') != NULL;
    char address[TUNNEL_ADDRESS_BYTES];
    int port = 0;
    (void)snprintf(address, sizeof address, is_v6 ? "[%s]:0" : "%s:0", host);
    if (weir_listen_open(address, "--address", &tunnel->fd, &port, NULL) != WEIR_OK) {
        WEIR_TRY(
            weir_listen_open(is_v6 ? "[::]:0" : "0.0.0.0:0", "--address", &tunnel->fd, &port, err));
    }
    (void)snprintf(tunnel->address, sizeof tunnel->address, is_v6 ? "[%s]:%d" : "%s:%d", host,
                   port);
    return WEIR_OK;
}

/* ---- connections and the program ------------------------------------------------------------------- */

/** Does a head ask for the way in with this secret? Pure; takes as long for every wrong secret. */
static bool is_authorized(const char *head, const char *secret)
{
    static const char name[] = "\r\nProxy-Authorization: Bearer ";
    const char *shown = strcasestr(head, name);
    size_t len = strlen(secret);
    if (strncmp(head, "CONNECT ", 8) != 0 || shown == NULL || len == 0) {
        return false;
    }
    shown += sizeof name - 1;
    size_t n = strcspn(shown, "\r");
    unsigned char differs = n != len;
    for (size_t i = 0; i < len; i++) {
        differs |= (unsigned char)(secret[i] ^ (i < n ? shown[i] : 0));
    }
    return differs == 0;
}

/* Loopback answers at once, unless the program does not take what waits for it: only its own
 * visitors are kept waiting here. */
static bool is_connected(int fd, int rc)
{
    struct pollfd made = {.fd = fd, .events = POLLOUT};
    int errno_value = rc == 0 ? 0 : errno;
    socklen_t len = sizeof errno_value;
    if (errno_value == EINPROGRESS && poll(&made, 1, CONNECT_MS) == 1) {
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &errno_value, &len);
    }
    return fd >= 0 && errno_value == 0;
}

/* Among which it may be let in; *out_owner says of whom else the port is. */
static bool is_own(const struct tunnel *tunnel, enum listener_owner *out_owner)
{
    *out_owner = tunnel->user != 0 ? listener_find(tunnel->port, tunnel->user) : LISTENER_OWN;
    return *out_owner == LISTENER_OWN;
}

/* -1: there is none of the task's. */
static int connect_program(const struct tunnel *tunnel, enum listener_owner *out_owner)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET,
                                   .sin_addr = {htonl(INADDR_LOOPBACK)},
                                   .sin_port = htons((uint16_t)tunnel->port)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                    .sin6_port = htons((uint16_t)tunnel->port)};
    for (int i = 0; i < 2 && is_own(tunnel, out_owner); i++) {
        int fd = socket(i == 0 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int rc = i == 0 ? connect(fd, (const struct sockaddr *)&v4, sizeof v4)
                        : connect(fd, (const struct sockaddr *)&v6, sizeof v6);
        if (is_connected(fd, rc)) {
            return fd;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return -1;
}

/* ---- connections -------------------------------------------------------------------------------- */

struct visitor {
    int fd, program_fd; /* -1: not yet let in */
    size_t n;
    char head[TUNNEL_HEAD_MAX_BYTES + 1];
    int64_t due_ms;
    struct weir_relay relay;
    bool is_over;
    struct visitor *next;
};

struct tunnel_server {
    const struct tunnel *tunnel;
    int epoll_fd;
    struct visitor *visitors; /* the newest first */
    bool has_more;            /* a relay is to be pumped again */
    size_t n_visitors;
};

static bool watch(const struct tunnel_server *server, struct visitor *visitor, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = visitor};
    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void turn_away(struct visitor *visitor, const char *answer)
{
    (void)send(visitor->fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
    visitor->is_over = true;
}

/* The head is whole: `rest` is what came behind it. */
static void decide(struct tunnel_server *server, struct visitor *visitor, const char *rest,
                   size_t n)
{
    static const char welcome[] = "HTTP/1.1 200 OK\r\n\r\n";
    if (!is_authorized(visitor->head, server->tunnel->secret)) {
        turn_away(visitor, "HTTP/1.1 407 Proxy Authentication Required\r\n" NOTHING);
        return;
    }
    enum listener_owner owner;
    visitor->program_fd = connect_program(server->tunnel, &owner);
    if (visitor->program_fd < 0) {
        turn_away(visitor, owner == LISTENER_FOREIGN   ? "HTTP/1.1 409 Conflict\r\n" NOTHING
                           : owner == LISTENER_UNKNOWN ? "HTTP/1.1 500 Unknown\r\n" NOTHING
                                                       : "HTTP/1.1 502 Bad Gateway\r\n" NOTHING);
        return;
    }
    weir_relay_init(&visitor->relay, visitor->fd, visitor->program_fd, weir_mono_ms());
    visitor->is_over = !weir_relay_preload(&visitor->relay, 1, welcome, sizeof welcome - 1) ||
                       !weir_relay_preload(&visitor->relay, 0, rest, n) ||
                       !watch(server, visitor, visitor->program_fd) ||
                       !weir_relay_pump(&visitor->relay, weir_mono_ms());
}

static void read_head(struct tunnel_server *server, struct visitor *visitor)
{
    for (;;) {
        ssize_t n =
            recv(visitor->fd, visitor->head + visitor->n, TUNNEL_HEAD_MAX_BYTES - visitor->n, 0);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            visitor->is_over = true;
            return;
        }
        visitor->n += (size_t)n;
        visitor->head[visitor->n] = '\0';
        char *end = memmem(visitor->head, visitor->n, "\r\n\r\n", 4);
        if (end != NULL) {
            const char *rest = end + 4;
            end[2] = '\0'; /* the last line keeps its end */
            decide(server, visitor, rest, (size_t)(visitor->head + visitor->n - rest));
            return;
        }
        if (visitor->n == TUNNEL_HEAD_MAX_BYTES) {
            turn_away(visitor, "HTTP/1.1 431 Too Large\r\nConnection: close\r\n\r\n");
            return;
        }
    }
}

static void step(struct tunnel_server *server, struct visitor *visitor)
{
    if (visitor->is_over) {
        return;
    }
    if (visitor->program_fd < 0) {
        read_head(server, visitor);
    } else {
        visitor->is_over = !weir_relay_pump(&visitor->relay, weir_mono_ms());
    }
    server->has_more = server->has_more || visitor->relay.has_more;
}

static void step_again(struct tunnel_server *server)
{
    server->has_more = false;
    for (struct visitor *visitor = server->visitors; visitor != NULL; visitor = visitor->next) {
        if (visitor->relay.has_more) {
            step(server, visitor);
        }
    }
}

static void make_room(struct tunnel_server *server)
{
    struct visitor *oldest = NULL;
    int n = 0;
    for (struct visitor *visitor = server->visitors; visitor != NULL; visitor = visitor->next) {
        if (visitor->program_fd < 0 && !visitor->is_over) {
            oldest = visitor;
            n++;
        }
    }
    if (n >= TUNNEL_UNAUTHORIZED_MAX) {
        oldest->is_over = true;
    }
}

static void take_in(struct tunnel_server *server)
{
    int fd;
    while ((fd = accept4(server->tunnel->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (server->n_visitors >= TUNNEL_CONNECTIONS_MAX) {
            close(fd);
            continue;
        }
        make_room(server);
        struct visitor *visitor = weir_xalloc(sizeof *visitor);
        visitor->fd = fd;
        visitor->program_fd = -1;
        visitor->n = 0;
        visitor->is_over = false;
        visitor->due_ms = weir_mono_ms() + TUNNEL_HEAD_MS;
        visitor->relay = (struct weir_relay){0};
        visitor->next = server->visitors;
        server->visitors = visitor;
        server->n_visitors++;
        visitor->is_over = !watch(server, visitor, fd);
    }
}

/* At the end of a turn: its events may have named them. */
static void see_off(struct tunnel_server *server)
{
    struct visitor **at = &server->visitors;
    while (*at != NULL) {
        struct visitor *visitor = *at;
        if (!visitor->is_over) {
            at = &visitor->next;
            continue;
        }
        *at = visitor->next;
        server->n_visitors--;
        close(visitor->fd);
        if (visitor->program_fd >= 0) {
            close(visitor->program_fd);
        }
        weir_relay_fini(&visitor->relay);
        free(visitor);
    }
}

static void look_at_all(struct tunnel_server *server, int64_t now_ms)
{
    for (struct visitor *visitor = server->visitors; visitor != NULL; visitor = visitor->next) {
        if (visitor->program_fd >= 0 && !visitor->is_over) {
            visitor->is_over = !weir_relay_pump(&visitor->relay, now_ms);
        } else if (now_ms >= visitor->due_ms) {
            visitor->is_over = true;
        }
    }
}

_Noreturn void tunnel_serve(const struct tunnel *tunnel)
{
    struct tunnel_server server = {.tunnel = tunnel, .epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event events[EVENTS_MAX], arrival = {.events = EPOLLIN};
    int64_t next_tick_ms = 0;
    if (server.epoll_fd < 0 ||
        epoll_ctl(server.epoll_fd, EPOLL_CTL_ADD, tunnel->fd, &arrival) != 0) {
        _exit(1);
    }
    for (;;) {
        int n = epoll_wait(server.epoll_fd, events, EVENTS_MAX, server.has_more ? 0 : TICK_MS);
        step_again(&server);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL) {
                take_in(&server);
            } else {
                step(&server, events[i].data.ptr);
            }
        }
        int64_t now_ms = weir_mono_ms();
        if (now_ms >= next_tick_ms) {
            next_tick_ms = now_ms + TICK_MS;
            look_at_all(&server, now_ms);
        }
        see_off(&server);
    }
}

/* ---- the child ------------------------------------------------------------------------------------ */

/* Into the network of the program, where that is another one; what listens stays where it is. */
static bool enter_network(const struct namespaces *ns)
{
    return ns->net_fd < 0 || ((ns->user_fd < 0 || setns(ns->user_fd, CLONE_NEWUSER) == 0) &&
                              setns(ns->net_fd, CLONE_NEWNET) == 0);
}

static _Noreturn void be_tunnel(struct tunnel *tunnel, const struct namespaces *ns, pid_t parent)
{
    sigset_t none;
    (void)prctl(PR_SET_NAME, "weir-door", 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !enter_network(ns) || dup2(tunnel->fd, 3) != 3 ||
        close_range(4, ~0U, 0) != 0) { /* locks and pipes of the supervisor are not to be held */
        _exit(1);
    }
    tunnel->fd = 3;
    sigemptyset(&none);
    (void)signal(SIGTERM, SIG_IGN); /* a task that stops is still visited */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    tunnel_serve(tunnel);
}

void tunnel_start(struct tunnel *tunnel, const struct namespaces *ns)
{
    pid_t parent = getpid();
    if (tunnel->secret == NULL) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        be_tunnel(tunnel, ns, parent);
    }
    tunnel->pid = pid > 0 ? pid : 0;
}

void tunnel_note_end(struct tunnel *tunnel, pid_t pid, const struct namespaces *ns)
{
    if (tunnel->secret != NULL && pid == tunnel->pid &&
        tunnel->n_restarts++ < TUNNEL_RESTARTS_MAX) {
        tunnel_start(tunnel, ns);
    }
}
