#include "comm/transport/tcp/tcp_private.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    WINDOW_BYTES = 2 << 20,
    CHUNK_BYTES = 256 << 10, /**< Stays in the cache between arrival and sum. */
    MOST_EVENTS = 64,
    WAKE = WEIR_COMM_MAX_RANKS, /**< In place of a rank: wake_fd. */
};

/* ---- connections ---------------------------------------------------------------------------- */

void tcp_watch(struct message_state *state, struct tcp_peer *peer, uint32_t events)
{
    if (events != peer->events) {
        struct epoll_event event = {.events = events, .data.u32 = (uint32_t)peer->rank};
        /* Out of the set, or the loss of a rank that is not read from would be reported for
         * ever. */
        int change = events == 0         ? EPOLL_CTL_DEL
                     : peer->events == 0 ? EPOLL_CTL_ADD
                                         : EPOLL_CTL_MOD;
        (void)epoll_ctl(tcp_of(state)->epoll_fd, change, peer->fd, &event);
        peer->events = events;
    }
}

static void close_peer(struct message_state *state, struct tcp_peer *peer)
{
    if (peer->fd >= 0) {
        (void)close(peer->fd);
        peer->fd = -1;
        peer->events = 0;
    }
    tcp_drop_output(peer);
    for (struct message_request *i = state->active; i != NULL; i = i->next) {
        if (i->rank == peer->rank && i->outcome == MESSAGE_PENDING) {
            i->outcome = MESSAGE_LOST;
        }
    }
    peer->receives = NULL;
    peer->receives_end = &peer->receives;
    peer->receive = NULL;
    peer->into = NULL;
}

void tcp_peer_broke(struct message_state *state, struct tcp_peer *peer)
{
    close_peer(state, peer);
    message_peer_broke(state, peer->rank);
}

static void disconnect(struct message_state *state, uint64_t deadline_ns)
{
    struct tcp *tcp = tcp_of(state);
    (void)deadline_ns;
    for (int r = 0; r < tcp->n_peers; r++) {
        close_peer(state, &tcp->peers[r]);
        state->peers[r].is_connected = false;
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

static enum message_outcome test(struct message_request *request)
{
    return request->outcome;
}

static bool has_come(const struct message_request *request)
{
    return request->outcome == MESSAGE_DONE;
}

/* ---- progress ------------------------------------------------------------------------------- */

static bool handle(struct message_state *state, const struct epoll_event *event)
{
    struct tcp *tcp = tcp_of(state);
    if (event->data.u32 == WAKE) {
        uint64_t count;
        (void)!read(tcp->wake_fd, &count, sizeof count);
        return true;
    }
    struct tcp_peer *peer = &tcp->peers[event->data.u32];
    bool has_moved = false;
    if (peer->fd >= 0 && (event->events & (uint32_t)EPOLLOUT) != 0) {
        has_moved = tcp_write(state, peer);
    }
    if (peer->fd >= 0 && (event->events & ~(uint32_t)EPOLLOUT) != 0) {
        has_moved = tcp_read(state, peer) || has_moved;
    }
    return has_moved;
}

static bool progress(struct message_state *state)
{
    struct epoll_event events[MOST_EVENTS];
    bool has_moved = false;
    int n = epoll_wait(tcp_of(state)->epoll_fd, events, MOST_EVENTS, 0);
    for (int i = 0; i < n; i++) {
        has_moved = handle(state, &events[i]) || has_moved;
    }
    return has_moved;
}

/* The descriptor of all of them is readable as long as there is something to do. */
static bool arm(struct message_state *state)
{
    (void)state;
    return true;
}

static void wake(struct message_state *state)
{
    uint64_t one = 1;
    (void)!write(tcp_of(state)->wake_fd, &one, sizeof one);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void *register_memory(struct message_state *state, void *base, size_t bytes)
{
    (void)state, (void)base, (void)bytes;
    return NULL; /* the kernel copies */
}

static void unregister_memory(struct message_state *state, void *registered)
{
    (void)state, (void)registered;
}

static void init_peer(struct tcp_peer *peer, int rank)
{
    *peer = (struct tcp_peer){.fd = -1, .rank = rank};
    peer->sends_end = &peer->sends;
    peer->receives_end = &peer->receives;
    peer->kept_end = &peer->kept;
}

static weir_status open_fabric(struct message_state *state, struct weir_error *err)
{
    size_t n_peers = (size_t)state->comm->size;
    struct tcp *tcp = calloc(1, sizeof *tcp + n_peers * sizeof tcp->peers[0]);
    if (tcp == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    tcp->n_peers = (int)n_peers;
    tcp->notices_end = &tcp->notices;
    for (int r = 0; r < tcp->n_peers; r++) {
        init_peer(&tcp->peers[r], r);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = WAKE};
    state->fabric_state = tcp;
    tcp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    tcp->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    state->event_fd = tcp->epoll_fd;
    if (tcp->epoll_fd < 0 || tcp->wake_fd < 0 ||
        epoll_ctl(tcp->epoll_fd, EPOLL_CTL_ADD, tcp->wake_fd, &event) != 0) {
        return weir_error_set_errno(err, errno, "no descriptors for the communicator");
    }
    return WEIR_OK;
}

static void close_fabric(struct message_state *state)
{
    struct tcp *tcp = tcp_of(state);
    if (tcp == NULL) {
        return;
    }
    for (int r = 0; r < tcp->n_peers; r++) {
        close_peer(state, &tcp->peers[r]);
        tcp_drop_input(tcp, &tcp->peers[r]);
    }
    if (tcp->wake_fd >= 0) {
        (void)close(tcp->wake_fd);
    }
    if (tcp->epoll_fd >= 0) {
        (void)close(tcp->epoll_fd);
    }
    free(tcp);
    state->fabric_state = NULL;
}

const struct message_fabric tcp_fabric = {
    .name = "tcp",
    .window_bytes = WINDOW_BYTES,
    .chunk_bytes = CHUNK_BYTES,
    .open = open_fabric,
    .connect = tcp_connect,
    .send = tcp_send,
    .receive = tcp_receive,
    .test = test,
    .has_come = has_come,
    .cancel = tcp_cancel,
    .send_aside = tcp_send_aside,
    .broadcast = tcp_broadcast,
    .progress = progress,
    .arm = arm,
    .signal = wake,
    .disconnect = disconnect,
    .map = register_memory,
    .unmap = unregister_memory,
    .close = close_fabric,
};
