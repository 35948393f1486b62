/*
 * How the ranks find each other and authenticate. Each listens on a port of its own; by the
 * rendezvous all learn where, with a nonce of each. Then every rank connects to those below it and
 * takes in those above:
 *
 *     upper → lower: rank, MAC over (lower's nonce, upper's nonce)
 *     lower → upper: another MAC over the same
 *
 * A peer whose MAC is wrong is dropped, and the next address of the rank is tried, for an address
 * may lead elsewhere: to another host of the same private network, to another process here.
 */
#include "comm/rendezvous/rendezvous_private.h"
#include "comm/transport/tcp/tcp_private.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/rng.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TRY_MS = 1000,         /**< One address that swallows packets must not use up the deadline. */
    REPLY_MS = 5000,       /**< The rank that is asked may itself be waiting for replies. */
    HELLO_MS = 1000,       /**< A rank that has connected sends its hello at once. */
    KEEPALIVE_IDLE_S = 10, /**< A host that is gone silently is noticed between steps too. */
    KEEPALIVE_INTERVAL_S = 2,
    HELLO_BYTES = 4 + WIRE_MAC_BYTES,
    MAX_JOINERS = 64, /**< Unauthenticated connections. */
};

struct joiner {
    int fd;
    uint64_t deadline_ns;
};

struct wireup {
    struct message_state *state;
    struct rendezvous *rdv;
    int listen_fd;
    struct address_notice own;
    struct address_notice *others; /**< [size] */
    int n_joiners, n_missing;
    struct joiner joiners[MAX_JOINERS];
};

static uint64_t soon(const struct wireup *wireup, unsigned ms)
{
    uint64_t at = weir_mono_ns() + ms * UINT64_C(1000000);
    return WEIR_MIN(at, wireup->rdv->deadline_ns);
}

/* ---- proofs --------------------------------------------------------------------------------- */

static void mac_of_caller(const struct wireup *wireup, int lower, int upper, uint8_t out[])
{
    struct mac_key mac;
    mac_key_for_connection(&wireup->rdv->key, wireup->others[lower].instance,
                           wireup->others[upper].instance, &mac);
    memcpy(out, mac.bytes, WIRE_MAC_BYTES);
}

static void mac_of_host(const struct wireup *wireup, int lower, int upper, uint8_t out[])
{
    mac_of_accept(&wireup->rdv->key, wireup->others[lower].instance, wireup->others[upper].instance,
                  out);
}

/* All of a few bytes that fit a fresh socket. */
static bool send_few(int fd, const void *bytes, size_t n)
{
    return send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

/* Take n bytes if all are there. *out_is_over: they never will be. */
static bool take_few(int fd, void *bytes, size_t n, bool *out_is_over)
{
    ssize_t here = recv(fd, bytes, n, MSG_DONTWAIT | MSG_PEEK);
    *out_is_over = here == 0 || (here < 0 && errno != EAGAIN && errno != EINTR);
    return here == (ssize_t)n && recv(fd, bytes, n, MSG_DONTWAIT) == (ssize_t)n;
}

/* ---- a connection --------------------------------------------------------------------------- */

static weir_status adopt(struct wireup *wireup, int rank, int fd, struct weir_error *err)
{
    struct tcp *tcp = tcp_of(wireup->state);
    struct tcp_peer *peer = &tcp->peers[rank];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)rank};
    int on = 1, idle_s = KEEPALIVE_IDLE_S, interval_s = KEEPALIVE_INTERVAL_S;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    /* Paces itself by losses and acknowledgements: on short paths, where bbr, the default in
     * places, measures badly, it fills the link. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    if (epoll_ctl(tcp->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        (void)close(fd);
        return weir_error_set_errno(err, errno, "watching the connection to rank %d", rank);
    }
    peer->fd = fd;
    peer->events = event.events;
    wireup->state->peers[rank].is_connected = true;
    return WEIR_OK;
}

/* ---- to those below ------------------------------------------------------------------------- */

static bool wait_for_reply(const struct wireup *wireup, int rank, int fd)
{
    uint8_t expected[WIRE_MAC_BYTES], reply[WIRE_MAC_BYTES];
    uint64_t deadline_ns = soon(wireup, REPLY_MS);
    bool is_over = false;
    mac_of_host(wireup, rank, wireup->state->comm->rank, expected);
    while (!take_few(fd, reply, sizeof reply, &is_over)) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        if (is_over || weir_mono_ns() >= deadline_ns ||
            poll(&poll_fd, 1, auth_conn_poll_ms(deadline_ns, REPLY_MS)) < 0) {
            return false;
        }
    }
    return mac_is_equal(reply, expected);
}

static weir_status call_at(struct wireup *wireup, int rank, const char *address, int *out_fd,
                           struct weir_error *err)
{
    uint8_t hello[HELLO_BYTES];
    struct wire_writer writer = {.data = hello, .cap = sizeof hello};
    wire_put_u32(&writer, (uint32_t)wireup->state->comm->rank);
    mac_of_caller(wireup, rank, wireup->state->comm->rank, hello + writer.len);
    weir_status status = address_connect(address, soon(wireup, TRY_MS), out_fd, err);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "rank %d does not reply at %s", rank, address);
    }
    if (!send_few(*out_fd, hello, sizeof hello) || !wait_for_reply(wireup, rank, *out_fd)) {
        (void)close(*out_fd);
        return weir_error_set(err, WEIR_ERR_PEER, "whoever listens at %s is not rank %d", address,
                              rank);
    }
    return WEIR_OK;
}

static weir_status call(struct wireup *wireup, int rank, struct weir_error *err)
{
    const struct address_notice *there = &wireup->others[rank];
    bool is_same_host = strcmp(there->boot_id, wireup->own.boot_id) == 0;
    int fd = -1;
    weir_status status = weir_error_set(err, WEIR_ERR_PEER, "rank %d has no address", rank);
    for (int i = 0; i < there->n_addresses && status != WEIR_OK; i++) {
        if (is_same_host || !address_is_loopback(there->addresses[i])) {
            status = call_at(wireup, rank, there->addresses[i], &fd, err);
        }
    }
    return status == WEIR_OK ? adopt(wireup, rank, fd, err) : status;
}

/* ---- from those above ----------------------------------------------------------------------- */

static void drop_joiner(struct wireup *wireup, int i, bool is_closed)
{
    if (is_closed) {
        (void)close(wireup->joiners[i].fd);
    }
    wireup->joiners[i] = wireup->joiners[--wireup->n_joiners];
}

static void let_in(struct wireup *wireup)
{
    int fd = accept4(wireup->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (wireup->n_joiners == MAX_JOINERS) {
        drop_joiner(wireup, 0, true);
    }
    wireup->joiners[wireup->n_joiners++] =
        (struct joiner){.fd = fd, .deadline_ns = soon(wireup, HELLO_MS)};
}

/* The rank that has said its hello, or -1. */
static int handle_joiner(struct wireup *wireup, int fd, bool *out_is_over)
{
    uint8_t hello[HELLO_BYTES], mac[WIRE_MAC_BYTES];
    if (!take_few(fd, hello, sizeof hello, out_is_over)) {
        return -1;
    }
    struct wire_reader reader = {.data = hello, .left = sizeof hello};
    uint32_t upper = wire_get_u32(&reader);
    int self = wireup->state->comm->rank;
    *out_is_over = true;
    if (upper <= (uint32_t)self || upper >= (uint32_t)wireup->state->comm->size ||
        wireup->state->peers[upper].is_connected) {
        return -1;
    }
    mac_of_caller(wireup, self, (int)upper, mac);
    if (!mac_is_equal(mac, reader.data)) {
        return -1;
    }
    mac_of_host(wireup, self, (int)upper, mac);
    return send_few(fd, mac, sizeof mac) ? (int)upper : -1;
}

static weir_status handle_joiners(struct wireup *wireup, struct weir_error *err)
{
    for (int i = wireup->n_joiners - 1; i >= 0; i--) {
        const struct joiner joiner = wireup->joiners[i];
        bool is_over = false;
        int rank = handle_joiner(wireup, joiner.fd, &is_over);
        if (rank >= 0) {
            drop_joiner(wireup, i, false);
            WEIR_TRY(adopt(wireup, rank, joiner.fd, err));
            wireup->n_missing--;
        } else if (is_over || weir_mono_ns() >= joiner.deadline_ns) {
            drop_joiner(wireup, i, true);
        }
    }
    return WEIR_OK;
}

/* A rank that is lost meanwhile closes its link of the rendezvous. */
static weir_status check_conns(const struct wireup *wireup, struct weir_error *err)
{
    const struct rendezvous *rdv = wireup->rdv;
    struct pollfd poll_fds[WEIR_COMM_MAX_RANKS];
    nfds_t n_conns = rdv->rank == 0 ? (nfds_t)rdv->size : 1;
    nfds_t n = WEIR_MIN(n_conns, (nfds_t)WEIR_COMM_MAX_RANKS);
    for (nfds_t r = 0; r < n; r++) {
        poll_fds[r] = (struct pollfd){.fd = rdv->conns[r].fd, .events = POLLRDHUP};
    }
    (void)poll(poll_fds, n, 0);
    for (nfds_t r = 0; r < n; r++) {
        if (poll_fds[r].fd >= 0 && poll_fds[r].revents != 0) {
            return weir_error_set(err, WEIR_ERR_PEER, "rank %d was lost while the ranks met",
                                  (int)r);
        }
    }
    return WEIR_OK;
}

static weir_status wait_for_joiners(struct wireup *wireup, struct weir_error *err)
{
    enum { POLL_MS = 100 };

    struct pollfd poll_fds[1 + MAX_JOINERS] = {{.fd = wireup->listen_fd, .events = POLLIN}};
    for (int i = 0; i < wireup->n_joiners; i++) {
        poll_fds[1 + i] = (struct pollfd){.fd = wireup->joiners[i].fd, .events = POLLIN};
    }
    (void)poll(poll_fds, (nfds_t)wireup->n_joiners + 1,
               auth_conn_poll_ms(wireup->rdv->deadline_ns, POLL_MS));
    if (poll_fds[0].revents != 0) {
        let_in(wireup);
    }
    return check_conns(wireup, err);
}

static weir_status take_in(struct wireup *wireup, struct weir_error *err)
{
    const struct weir_comm *comm = wireup->state->comm;
    wireup->n_missing = comm->size - 1 - comm->rank;
    while (wireup->n_missing > 0) {
        if (weir_mono_ns() >= wireup->rdv->deadline_ns) {
            int rank = comm->rank + 1;
            while (wireup->state->peers[rank].is_connected) {
                rank++;
            }
            return weir_error_set(err, WEIR_ERR_TIMEOUT, "rank %d did not connect to rank %d", rank,
                                  comm->rank);
        }
        WEIR_TRY(wait_for_joiners(wireup, err));
        WEIR_TRY(handle_joiners(wireup, err));
    }
    return WEIR_OK;
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* First the address that the rendezvous goes over: a person has chosen it. */
static void prefer_rendezvous(struct wireup *wireup)
{
    char host[ADDRESS_HOST_BYTES];
    const struct rendezvous *rdv = wireup->rdv;
    struct address_notice *own = &wireup->own;
    if (!address_of_socket(rdv->conns[rdv->rank == 0 ? rdv->size - 1 : 0].fd, host)) {
        return;
    }
    size_t len = strlen(host);
    for (int i = 0; i < own->n_addresses; i++) {
        const char *text = own->addresses[i] + (own->addresses[i][0] == '[');
        if (strncmp(text, host, len) == 0 && (text[len] == ':' || text[len] == ']')) {
            char first[ADDRESS_TEXT_BYTES];
            memcpy(first, own->addresses[i], sizeof first);
            memmove(own->addresses[1], own->addresses[0], (size_t)i * sizeof first);
            memcpy(own->addresses[0], first, sizeof first);
            return;
        }
    }
}

static weir_status prepare(struct wireup *wireup, struct weir_error *err)
{
    static const struct address_rendezvous anywhere = {.is_file = true};
    wireup->others = calloc((size_t)wireup->state->comm->size, sizeof *wireup->others);
    if (wireup->others == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the addresses of the ranks");
    }
    WEIR_TRY(address_listen(&anywhere, &wireup->listen_fd, err));
    WEIR_TRY(address_list_own(wireup->listen_fd, &wireup->own, err));
    weir_random_bytes(wireup->own.instance, sizeof wireup->own.instance);
    address_boot_id(wireup->own.boot_id);
    prefer_rendezvous(wireup);
    return WEIR_OK;
}

static weir_status exchange(struct wireup *wireup, struct weir_error *err)
{
    struct weir_buf text;
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    address_notice_write(&wireup->own, &text);
    weir_status status = text.status;
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "writing down this rank's addresses");
    } else {
        status = rendezvous_exchange(wireup->rdv, text.data, text.len, table, err);
    }
    weir_buf_fini(&text);
    for (int r = 0; r < wireup->state->comm->size && status == WEIR_OK; r++) {
        status =
            address_notice_parse((const char *)table[r].data, table[r].len, &wireup->others[r]);
        if (status != WEIR_OK) {
            (void)weir_error_set(err, status, "rank %d has no addresses", r);
        }
    }
    return status;
}

static weir_status meet(struct wireup *wireup, struct weir_error *err)
{
    WEIR_TRY(prepare(wireup, err));
    WEIR_TRY(exchange(wireup, err));
    for (int r = 0; r < wireup->state->comm->rank; r++) {
        WEIR_TRY(call(wireup, r, err));
    }
    return take_in(wireup, err);
}

weir_status tcp_connect(struct message_state *state, struct rendezvous *rdv, struct weir_error *err)
{
    struct wireup wireup = {.state = state, .rdv = rdv, .listen_fd = -1};
    weir_status status = meet(&wireup, err);
    for (int i = 0; i < wireup.n_joiners; i++) {
        (void)close(wireup.joiners[i].fd);
    }
    if (wireup.listen_fd >= 0) {
        (void)close(wireup.listen_fd);
    }
    free(wireup.others);
    return status;
}
