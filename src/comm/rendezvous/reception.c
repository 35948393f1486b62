#include "comm/rendezvous/reception.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PENDING_DEADLINE_MS = 5000 /**< A stranger may hold a place no longer than this. */ };

static weir_status publish(struct reception *reception, struct weir_error *err)
{
    if (!reception->where->is_file) {
        return WEIR_OK;
    }
    struct address_notice notice = {.is_over = false};
    memcpy(notice.instance, reception->instance, sizeof notice.instance);
    address_boot_id(notice.boot_id);
    WEIR_TRY(address_list_own(reception->listen_fd, &notice, err));
    struct weir_buf text;
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    address_notice_write(&notice, &text);
    weir_status status = text.status;
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "the rendezvous file was not written: %s",
                             weir_status_text(status));
    } else {
        status = weir_file_write_atomic(reception->where->path, text.data, text.len, 0600, err);
    }
    weir_buf_fini(&text);
    reception->is_published = status == WEIR_OK;
    return status;
}

weir_status reception_open(struct reception *reception, struct weir_error *err)
{
    reception->listen_fd = -1;
    weir_random_bytes(reception->instance, sizeof reception->instance);
    WEIR_TRY(address_listen(reception->where, &reception->listen_fd, err));
    return publish(reception, err);
}

static void drop_pending(struct reception *reception, int i)
{
    link_close(&reception->pending[i].link);
    reception->n_pending--;
    memmove(&reception->pending[i], &reception->pending[i + 1],
            sizeof reception->pending[0] * (size_t)(reception->n_pending - i));
}

static void accept_all(struct reception *reception)
{
    for (;;) {
        int fd = accept4(reception->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (reception->n_pending == RECEPTION_MAX_PENDING) {
            drop_pending(reception, 0);
        }
        struct reception_pending *pending = &reception->pending[reception->n_pending++];
        link_init(&pending->link, fd);
        pending->deadline_ns = weir_mono_ns() + PENDING_DEADLINE_MS * UINT64_C(1000000);
        weir_random_bytes(pending->nonce, sizeof pending->nonce);
        struct wire_challenge challenge;
        memcpy(challenge.instance, reception->instance, sizeof challenge.instance);
        memcpy(challenge.nonce, pending->nonce, sizeof challenge.nonce);
        uint8_t bytes[sizeof challenge];
        struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
        wire_challenge_write(&writer, &challenge);
        if (link_send(&pending->link, WIRE_CHALLENGE, bytes, writer.len, 0) != WEIR_OK) {
            drop_pending(reception, reception->n_pending - 1);
        }
    }
}

/* Why this JOIN is refused; WEIR_OK if it is not. Nothing in it is believed before the proof. */
static weir_status judge_join(const struct reception *reception,
                              const struct reception_pending *pending, const struct wire_join *join,
                              struct weir_error *err)
{
    uint8_t expected[WIRE_MAC_BYTES];
    proof_of_join(reception->key, pending->nonce, join, expected);
    if (!proof_is_equal(join->mac, expected)) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "the job secret is not the one that rank 0 was started with");
    }
    if (strcmp(join->job_id, reception->job_id) != 0 ||
        join->attempt != (uint32_t)reception->attempt) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "rank 0 belongs to job \"%s\" attempt %d, not to \"%s\" attempt %u",
                              reception->job_id, reception->attempt, join->job_id, join->attempt);
    }
    return reception->judge(reception->context, join, err);
}

static void refuse(struct reception *reception, struct reception_pending *pending,
                   const struct weir_error *why)
{
    reception->n_refused++;
    weir_log(WEIR_LOG_DEBUG, "comm_rank_refused", WEIR_KV_STR("reason", why->message));
    struct wire_problem problem = {.status = why->status, .rank = WIRE_NO_RANK};
    (void)snprintf(problem.text, sizeof problem.text, "%.*s", WIRE_TEXT_BYTES - 1, why->message);
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_problem_write(&writer, &problem);
    (void)!link_send(&pending->link, WIRE_REFUSE, bytes, writer.len, 0);
}

/* The link of one that is let in moves to the owner; a refused one is closed with its reason. */
static void hear(struct reception *reception, int i, const struct wire_frame *frame)
{
    struct reception_pending *pending = &reception->pending[i];
    struct wire_join join;
    struct weir_error why;
    if (frame->type != WIRE_JOIN || wire_join_parse(frame->payload, frame->len, &join) != WEIR_OK) {
        drop_pending(reception, i);
        return;
    }
    if (judge_join(reception, pending, &join, &why) != WEIR_OK) {
        refuse(reception, pending, &why);
        drop_pending(reception, i);
        return;
    }
    uint8_t mac[WIRE_MAC_BYTES];
    struct proof_key connection_key;
    proof_of_accept(reception->key, pending->nonce, join.nonce, mac);
    proof_key_for_connection(reception->key, pending->nonce, join.nonce, &connection_key);
    if (link_send(&pending->link, WIRE_ACCEPT, mac, sizeof mac, 0) == WEIR_OK) {
        link_prove(&pending->link, &connection_key, true);
        struct link link = pending->link;
        link_init(&pending->link, -1);
        reception->admit(reception->context, &join, &link);
    }
    drop_pending(reception, i);
}

void reception_serve(struct reception *reception)
{
    accept_all(reception);
    for (int i = reception->n_pending - 1; i >= 0; i--) {
        struct wire_frame frame;
        weir_status status = link_try_receive(&reception->pending[i].link, &frame);
        if (status == WEIR_OK) {
            hear(reception, i, &frame);
        } else if (status != WEIR_ERR_END || weir_mono_ns() >= reception->pending[i].deadline_ns) {
            drop_pending(reception, i);
        }
    }
}

nfds_t reception_poll_fds(const struct reception *reception, struct pollfd out[RECEPTION_MAX_FDS])
{
    nfds_t n = 0;
    out[n++] = (struct pollfd){.fd = reception->listen_fd, .events = POLLIN};
    for (int i = 0; i < reception->n_pending; i++) {
        out[n++] = (struct pollfd){.fd = reception->pending[i].link.fd, .events = POLLIN};
    }
    return n;
}

void reception_close(struct reception *reception)
{
    if (reception->is_published) {
        (void)unlink(reception->where->path);
        reception->is_published = false;
    }
    while (reception->n_pending > 0) {
        drop_pending(reception, 0);
    }
    if (reception->listen_fd >= 0) {
        (void)close(reception->listen_fd);
        reception->listen_fd = -1;
    }
}
