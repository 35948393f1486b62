#include "comm/rendezvous/handshake_listener.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PENDING_DEADLINE_MS = 5000 /**< Of an unauthenticated peer. */
};

static weir_status publish(struct handshake_listener *listener, struct weir_error *err)
{
    if (!listener->where->is_file) {
        return WEIR_OK;
    }
    struct address_notice notice = {.is_over = false};
    memcpy(notice.instance, listener->instance, sizeof notice.instance);
    address_boot_id(notice.boot_id);
    WEIR_TRY(address_list_own(listener->listen_fd, &notice, err));
    struct weir_buf text;
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    address_notice_write(&notice, &text);
    weir_status status = text.status;
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "the rendezvous file was not written: %s",
                             weir_status_text(status));
    } else {
        status = weir_file_write_atomic(listener->where->path, text.data, text.len, 0600, err);
    }
    weir_buf_fini(&text);
    listener->is_published = status == WEIR_OK;
    return status;
}

weir_status handshake_listener_open(struct handshake_listener *listener, struct weir_error *err)
{
    listener->listen_fd = -1;
    weir_random_bytes(listener->instance, sizeof listener->instance);
    WEIR_TRY(address_listen(listener->where, &listener->listen_fd, err));
    return publish(listener, err);
}

static void drop_pending(struct handshake_listener *listener, int i)
{
    auth_conn_close(&listener->pending[i].conn);
    listener->n_pending--;
    memmove(&listener->pending[i], &listener->pending[i + 1],
            sizeof listener->pending[0] * (size_t)(listener->n_pending - i));
}

static void accept_all(struct handshake_listener *listener)
{
    for (;;) {
        int fd = accept4(listener->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (listener->n_pending == HANDSHAKE_MAX_PENDING) {
            drop_pending(listener, 0);
        }
        struct handshake_pending *pending = &listener->pending[listener->n_pending++];
        auth_conn_init(&pending->conn, fd);
        pending->deadline_ns = weir_mono_ns() + PENDING_DEADLINE_MS * UINT64_C(1000000);
        weir_random_bytes(pending->nonce, sizeof pending->nonce);
        struct wire_challenge challenge;
        memcpy(challenge.instance, listener->instance, sizeof challenge.instance);
        memcpy(challenge.nonce, pending->nonce, sizeof challenge.nonce);
        uint8_t bytes[sizeof challenge];
        struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
        wire_challenge_write(&writer, &challenge);
        if (auth_conn_send(&pending->conn, WIRE_CHALLENGE, bytes, writer.len, 0) != WEIR_OK) {
            drop_pending(listener, listener->n_pending - 1);
        }
    }
}

/* Why this JOIN is refused; WEIR_OK if it is not. Nothing in it is believed before its MAC. */
static weir_status check_join(const struct handshake_listener *listener,
                              const struct handshake_pending *pending, const struct wire_join *join,
                              struct weir_error *err)
{
    uint8_t expected[WIRE_MAC_BYTES];
    mac_of_join(listener->key, pending->nonce, join, expected);
    if (!mac_is_equal(join->mac, expected)) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "the job secret is not the one that rank 0 was started with");
    }
    if (strcmp(join->job_id, listener->job_id) != 0 ||
        join->attempt != (uint32_t)listener->attempt) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "rank 0 belongs to job \"%s\" attempt %d, not to \"%s\" attempt %u",
                              listener->job_id, listener->attempt, join->job_id, join->attempt);
    }
    return listener->check(listener->context, join, err);
}

static void refuse(struct handshake_listener *listener, struct handshake_pending *pending,
                   const struct weir_error *why)
{
    listener->n_refused++;
    weir_log(WEIR_LOG_DEBUG, "comm_rank_refused", WEIR_KV_STR("reason", why->message));
    struct wire_problem problem = {.status = why->status, .rank = WIRE_NO_RANK};
    (void)snprintf(problem.text, sizeof problem.text, "%.*s", WIRE_TEXT_BYTES - 1, why->message);
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_problem_write(&writer, &problem);
    (void)!auth_conn_send(&pending->conn, WIRE_REFUSE, bytes, writer.len, 0);
}

/* The link of one that is let in moves to the owner; a refused one is closed with its reason. */
static void handle_frame(struct handshake_listener *listener, int i, const struct wire_frame *frame)
{
    struct handshake_pending *pending = &listener->pending[i];
    struct wire_join join;
    struct weir_error why;
    if (frame->type != WIRE_JOIN || wire_join_parse(frame->payload, frame->len, &join) != WEIR_OK) {
        drop_pending(listener, i);
        return;
    }
    if (check_join(listener, pending, &join, &why) != WEIR_OK) {
        refuse(listener, pending, &why);
        drop_pending(listener, i);
        return;
    }
    uint8_t mac[WIRE_MAC_BYTES];
    struct mac_key connection_key;
    mac_of_accept(listener->key, pending->nonce, join.nonce, mac);
    mac_key_for_connection(listener->key, pending->nonce, join.nonce, &connection_key);
    if (auth_conn_send(&pending->conn, WIRE_ACCEPT, mac, sizeof mac, 0) == WEIR_OK) {
        auth_conn_authenticate(&pending->conn, &connection_key, true);
        struct auth_conn conn = pending->conn;
        auth_conn_init(&pending->conn, -1);
        listener->accept(listener->context, &join, &conn);
    }
    drop_pending(listener, i);
}

void handshake_listener_serve(struct handshake_listener *listener)
{
    accept_all(listener);
    for (int i = listener->n_pending - 1; i >= 0; i--) {
        struct wire_frame frame;
        weir_status status = auth_conn_try_receive(&listener->pending[i].conn, &frame);
        if (status == WEIR_OK) {
            handle_frame(listener, i, &frame);
        } else if (status != WEIR_ERR_END || weir_mono_ns() >= listener->pending[i].deadline_ns) {
            drop_pending(listener, i);
        }
    }
}

nfds_t handshake_listener_poll_fds(const struct handshake_listener *listener,
                                   struct pollfd out[HANDSHAKE_MAX_FDS])
{
    nfds_t n = 0;
    out[n++] = (struct pollfd){.fd = listener->listen_fd, .events = POLLIN};
    for (int i = 0; i < listener->n_pending; i++) {
        out[n++] = (struct pollfd){.fd = listener->pending[i].conn.fd, .events = POLLIN};
    }
    return n;
}

void handshake_listener_close(struct handshake_listener *listener)
{
    if (listener->is_published) {
        (void)unlink(listener->where->path);
        listener->is_published = false;
    }
    while (listener->n_pending > 0) {
        drop_pending(listener, 0);
    }
    if (listener->listen_fd >= 0) {
        (void)close(listener->listen_fd);
        listener->listen_fd = -1;
    }
}
