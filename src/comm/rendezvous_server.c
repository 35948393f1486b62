#include "comm/rendezvous_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX_PENDING = 64,          /**< Connections that have not proved themselves; the oldest goes. */
    PENDING_DEADLINE_MS = 5000 /**< A stranger may hold a place no longer than this. */
};

struct pending {
    struct link link;
    uint64_t deadline_ns;
    uint8_t nonce[WIRE_NONCE_BYTES];
};

struct server {
    struct rendezvous *rdv;
    int listen_fd;
    uint8_t instance[WIRE_NONCE_BYTES];
    int n_joined, n_refused;
    int n_pending;
    struct pending pending[MAX_PENDING];
};

static weir_status publish(const struct server *server, struct weir_error *err)
{
    if (!server->rdv->where.is_file) {
        return WEIR_OK;
    }
    struct address_notice notice;
    memcpy(notice.instance, server->instance, sizeof notice.instance);
    address_boot_id(notice.boot_id);
    WEIR_TRY(address_list_own(server->listen_fd, &notice, err));
    struct weir_buf text;
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    address_notice_write(&notice, &text);
    weir_status status = text.status;
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "the rendezvous file was not written: %s",
                             weir_status_text(status));
    } else {
        status = weir_file_write_atomic(server->rdv->where.path, text.data, text.len, 0600, err);
    }
    weir_buf_fini(&text);
    return status;
}

static void drop_pending(struct server *server, int i)
{
    link_close(&server->pending[i].link);
    server->n_pending--;
    memmove(&server->pending[i], &server->pending[i + 1],
            sizeof server->pending[0] * (size_t)(server->n_pending - i));
}

static void accept_all(struct server *server)
{
    for (;;) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (server->n_pending == MAX_PENDING) {
            drop_pending(server, 0);
        }
        struct pending *pending = &server->pending[server->n_pending++];
        link_init(&pending->link, fd);
        pending->deadline_ns = weir_mono_ns() + PENDING_DEADLINE_MS * UINT64_C(1000000);
        weir_random_bytes(pending->nonce, sizeof pending->nonce);
        struct wire_challenge challenge;
        memcpy(challenge.instance, server->instance, sizeof challenge.instance);
        memcpy(challenge.nonce, pending->nonce, sizeof challenge.nonce);
        uint8_t bytes[sizeof challenge];
        struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
        wire_challenge_write(&writer, &challenge);
        if (link_send(&pending->link, WIRE_CHALLENGE, bytes, writer.len, 0) != WEIR_OK) {
            drop_pending(server, server->n_pending - 1);
        }
    }
}

/* Why this JOIN is refused; WEIR_OK if it is not. Nothing in it is believed before the proof. */
static weir_status judge_join(const struct server *server, const struct pending *pending,
                              const struct wire_join *join, struct weir_error *err)
{
    const struct rendezvous *rdv = server->rdv;
    uint8_t expected[WIRE_MAC_BYTES];
    proof_of_join(&rdv->key, pending->nonce, join, expected);
    if (!proof_is_equal(join->mac, expected)) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "the job secret is not the one that rank 0 was started with");
    }
    if (strcmp(join->job_id, rdv->job_id) != 0 || join->attempt != (uint32_t)rdv->attempt) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "rank 0 belongs to job \"%s\" attempt %d, not to \"%s\" attempt %u",
                              rdv->job_id, rdv->attempt, join->job_id, join->attempt);
    }
    if (join->size != (uint32_t)rdv->size || join->n_servers != (uint32_t)rdv->n_servers) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "rank %u expects %u ranks with %u servers, rank 0 %d with %d",
                              join->rank, join->size, join->n_servers, rdv->size, rdv->n_servers);
    }
    if (join->rank == 0 || join->rank >= join->size) {
        return weir_error_set(err, WEIR_ERR_INVALID, "rank %u is not in 1..%d", join->rank,
                              rdv->size - 1);
    }
    if (rdv->links[join->rank].fd >= 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "rank %u has joined already", join->rank);
    }
    return WEIR_OK;
}

static void refuse(struct server *server, struct pending *pending, const struct weir_error *why)
{
    server->n_refused++;
    weir_log(WEIR_LOG_DEBUG, "comm_rank_refused", WEIR_KV_STR("reason", why->message));
    struct wire_problem problem = {.status = why->status, .rank = WIRE_NO_RANK};
    (void)snprintf(problem.text, sizeof problem.text, "%.*s", WIRE_TEXT_BYTES - 1, why->message);
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_problem_write(&writer, &problem);
    (void)!link_send(&pending->link, WIRE_REFUSE, bytes, writer.len, 0);
}

/* A joined link moves from pending to links[rank]; a refused one is closed with its reason. */
static void admit(struct server *server, int i, const struct wire_frame *frame)
{
    struct pending *pending = &server->pending[i];
    struct rendezvous *rdv = server->rdv;
    struct wire_join join;
    struct weir_error why;
    if (frame->type != WIRE_JOIN || wire_join_parse(frame->payload, frame->len, &join) != WEIR_OK) {
        drop_pending(server, i);
        return;
    }
    if (judge_join(server, pending, &join, &why) != WEIR_OK) {
        refuse(server, pending, &why);
        drop_pending(server, i);
        return;
    }
    uint8_t mac[WIRE_MAC_BYTES];
    struct proof_key connection_key;
    proof_of_accept(&rdv->key, pending->nonce, join.nonce, mac);
    proof_key_for_connection(&rdv->key, pending->nonce, join.nonce, &connection_key);
    if (link_send(&pending->link, WIRE_ACCEPT, mac, sizeof mac, 0) == WEIR_OK) {
        link_prove(&pending->link, &connection_key, true);
        rdv->links[join.rank] = pending->link;
        link_init(&pending->link, -1);
        server->n_joined++;
    }
    drop_pending(server, i);
}

static void read_pending(struct server *server)
{
    for (int i = server->n_pending - 1; i >= 0; i--) {
        struct wire_frame frame;
        weir_status status = link_try_receive(&server->pending[i].link, &frame);
        if (status == WEIR_OK) {
            admit(server, i, &frame);
        } else if (status != WEIR_ERR_END || weir_mono_ns() >= server->pending[i].deadline_ns) {
            drop_pending(server, i);
        }
    }
}

/* Sleep until something happens; a rank that joined and died may join again. */
static void wait_for_events(struct server *server)
{
    struct rendezvous *rdv = server->rdv;
    struct pollfd poll_fds[1 + MAX_PENDING + WEIR_COMM_MAX_RANKS];
    nfds_t n = 0;
    poll_fds[n++] = (struct pollfd){.fd = server->listen_fd, .events = POLLIN};
    for (int i = 0; i < server->n_pending; i++) {
        poll_fds[n++] = (struct pollfd){.fd = server->pending[i].link.fd, .events = POLLIN};
    }
    nfds_t first_joined = n;
    for (int r = 0; r < rdv->size; r++) {
        poll_fds[n++] = (struct pollfd){.fd = rdv->links[r].fd, .events = POLLRDHUP};
    }
    (void)poll(poll_fds, n, link_poll_ms(rdv->deadline_ns, 1000));
    for (int r = 1; r < rdv->size; r++) {
        if ((poll_fds[first_joined + (nfds_t)r].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
            link_close(&rdv->links[r]);
            server->n_joined--;
        }
    }
}

static weir_status missing(const struct server *server, struct weir_error *err)
{
    char ranks[128] = "";
    size_t len = 0;
    for (int r = 1; r < server->rdv->size; r++) {
        if (server->rdv->links[r].fd < 0 && len < sizeof ranks - 8) {
            len += (size_t)snprintf(ranks + len, sizeof ranks - len, " %d", r);
        }
    }
    return weir_error_set(err, WEIR_ERR_TIMEOUT,
                          "these ranks did not come to %s in time:%s (connections refused: %d)",
                          server->rdv->url, ranks, server->n_refused);
}

weir_status rendezvous_serve(struct rendezvous *rdv, struct weir_error *err)
{
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the rendezvous");
    }
    server->rdv = rdv;
    server->listen_fd = -1;
    weir_random_bytes(server->instance, sizeof server->instance);
    weir_status status = address_listen(&rdv->where, &server->listen_fd, err);
    if (status == WEIR_OK) {
        status = publish(server, err);
    }
    bool is_published = status == WEIR_OK && rdv->where.is_file;
    while (status == WEIR_OK && server->n_joined < rdv->size - 1) {
        if (weir_mono_ns() >= rdv->deadline_ns) {
            struct weir_error why;
            status = missing(server, &why);
            rendezvous_abort(rdv, status, -1, why.message);
            (void)weir_error_set(err, status, "%s", why.message);
            break;
        }
        wait_for_events(server);
        accept_all(server);
        read_pending(server);
    }
    if (is_published) {
        (void)unlink(rdv->where.path);
    }
    while (server->n_pending > 0) {
        drop_pending(server, 0);
    }
    if (server->listen_fd >= 0) {
        (void)close(server->listen_fd);
    }
    free(server);
    return status;
}
