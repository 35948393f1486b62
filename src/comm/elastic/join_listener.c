#include "comm/elastic/join_listener.h"

#include "base/file.h"
#include "base/log.h"

#include <string.h>
#include <unistd.h>

enum { LONGEST_WAIT_MS = 1000 };

weir_status join_listener_address(const struct address_rendezvous *where,
                                  struct address_rendezvous *out, struct weir_error *err)
{
    *out = *where;
    if (!where->is_file) {
        return WEIR_OK;
    }
    int len = snprintf(out->path, sizeof out->path, "%.4000s.join", where->path);
    return (size_t)len == strlen(where->path) + strlen(".join")
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "rendezvous \"%s\": too long", where->path);
}

bool join_listener_has(const struct join_listener *listener, int member)
{
    for (int i = 0; i < listener->n_joiners; i++) {
        if (listener->joiners[i].member == member) {
            return true;
        }
    }
    return false;
}

static void drop_joiner(struct join_listener *listener, int i)
{
    auth_conn_close(&listener->joiners[i].conn);
    listener->n_joiners--;
    memmove(&listener->joiners[i], &listener->joiners[i + 1],
            sizeof listener->joiners[0] * (size_t)(listener->n_joiners - i));
}

static void drop_gone(struct join_listener *listener)
{
    struct pollfd poll_fds[WEIR_COMM_MAX_RANKS];
    for (int i = 0; i < listener->n_joiners; i++) {
        poll_fds[i] = (struct pollfd){.fd = listener->joiners[i].conn.fd, .events = POLLRDHUP};
    }
    if (listener->n_joiners == 0 || poll(poll_fds, (nfds_t)listener->n_joiners, 0) <= 0) {
        return;
    }
    for (int i = listener->n_joiners - 1; i >= 0; i--) {
        if (poll_fds[i].revents != 0) {
            drop_joiner(listener, i);
        }
    }
}

static weir_status check_joiner(void *context, const struct wire_join *join, struct weir_error *err)
{
    struct join_listener *listener = context;
    if (join->size != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the group runs already; a newcomer has to say that it is one");
    }
    if (join->rank >= WEIR_COMM_MAX_RANKS) {
        return weir_error_set(err, WEIR_ERR_INVALID, "member %u: expected 0 to %d", join->rank,
                              WEIR_COMM_MAX_RANKS - 1);
    }
    drop_gone(listener); /* its predecessor, for one */
    return join_listener_has(listener, (int)join->rank)
               ? weir_error_set(err, WEIR_ERR_CONFLICT, "member %u waits already", join->rank)
               : WEIR_OK;
}

static void accept_joiner(void *context, const struct wire_join *join, struct auth_conn *conn)
{
    struct join_listener *listener = context;
    int i = listener->n_joiners++;
    for (; i > 0 && listener->joiners[i - 1].member > (int)join->rank; i--) {
        listener->joiners[i] = listener->joiners[i - 1];
    }
    listener->joiners[i] = (struct joiner){.member = (int)join->rank, .conn = *conn};
}

static weir_status open_all(struct join_listener *listener, struct weir_error *err)
{
    if (listener->where.is_file) {
        char path[sizeof listener->where.path + 8];
        (void)snprintf(path, sizeof path, "%s.lock", listener->where.path);
        WEIR_TRY(weir_file_lock(path, &listener->lock_fd, err));
    }
    return handshake_listener_open(&listener->handshakes, err);
}

weir_status join_listener_open(const struct address_rendezvous *place, const struct mac_key *key,
                               const char *job_id, int attempt, struct join_listener **out,
                               struct weir_error *err)
{
    struct join_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the group's join listener");
    }
    listener->where = *place;
    listener->key = *key;
    listener->lock_fd = -1;
    (void)snprintf(listener->job_id, sizeof listener->job_id, "%s", job_id);
    listener->handshakes = (struct handshake_listener){.where = &listener->where,
                                                       .key = &listener->key,
                                                       .job_id = listener->job_id,
                                                       .attempt = attempt,
                                                       .context = listener,
                                                       .check = check_joiner,
                                                       .accept = accept_joiner,
                                                       .listen_fd = -1};
    weir_status status = open_all(listener, err);
    if (status != WEIR_OK) {
        join_listener_close(listener, false);
        return status;
    }
    *out = listener;
    return WEIR_OK;
}

void join_listener_poll(struct join_listener *listener)
{
    drop_gone(listener);
    if (listener->n_joiners < WEIR_COMM_MAX_RANKS) {
        handshake_listener_serve(&listener->handshakes);
    }
}

void join_listener_wait(struct join_listener *listener, const int fds[], int n_fds,
                        uint64_t deadline_ns)
{
    struct pollfd poll_fds[HANDSHAKE_MAX_FDS + 2 * WEIR_COMM_MAX_RANKS];
    nfds_t n = handshake_listener_poll_fds(&listener->handshakes, poll_fds);
    for (int i = 0; i < listener->n_joiners; i++) {
        poll_fds[n++] = (struct pollfd){.fd = listener->joiners[i].conn.fd, .events = POLLRDHUP};
    }
    for (int i = 0; i < n_fds; i++) {
        poll_fds[n++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    }
    (void)poll(poll_fds, n, auth_conn_poll_ms(deadline_ns, LONGEST_WAIT_MS));
}

static void send_away(struct join_listener *listener, bool is_over)
{
    const struct wire_problem problem = {.status = is_over ? WEIR_ERR_END : WEIR_ERR_PEER,
                                         .rank = WIRE_NO_RANK,
                                         .text = "the group has done its work and is no more"};
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_problem_write(&writer, &problem);
    for (int i = listener->n_joiners - 1; i >= 0; i--) {
        if (is_over) {
            (void)!auth_conn_send(&listener->joiners[i].conn, WIRE_ABORT, bytes, writer.len, 0);
        }
        drop_joiner(listener, i);
    }
}

static void publish_end(const struct join_listener *listener)
{
    struct weir_buf text;
    struct weir_error err;
    const struct address_notice notice = {.is_over = true};
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    address_notice_write(&notice, &text);
    if (text.status == WEIR_OK &&
        weir_file_write_atomic(listener->where.path, text.data, text.len, 0600, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_DEBUG, "comm_end_not_published", WEIR_KV_STR("reason", err.message));
    }
    weir_buf_fini(&text);
}

void join_listener_close(struct join_listener *listener, bool is_over)
{
    if (listener == NULL) {
        return;
    }
    send_away(listener, is_over);
    bool was_published = listener->handshakes.is_published;
    handshake_listener_close(&listener->handshakes);
    if (is_over && was_published) {
        publish_end(listener);
    }
    if (listener->lock_fd >= 0) {
        (void)close(listener->lock_fd); /* last: the next leader may open its own now */
    }
    free(listener);
}
