#include "comm/rendezvous/rendezvous_private.h"

#include "base/clock.h"
#include "comm/rendezvous/handshake_listener.h"

struct server {
    struct rendezvous *rdv;
    int n_joined;
    struct handshake_listener listener;
};

static weir_status check_rank(void *context, const struct wire_join *join, struct weir_error *err)
{
    const struct server *server = context;
    const struct rendezvous *rdv = server->rdv;
    if (join->size == 0) {
        /* A joiner of a running group: it will run, soon. */
        return weir_error_set(err, WEIR_ERR_CONFLICT, "the group is only just being formed");
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
    if (rdv->conns[join->rank].fd >= 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "rank %u has joined already", join->rank);
    }
    return WEIR_OK;
}

static void accept_rank(void *context, const struct wire_join *join, struct auth_conn *conn)
{
    struct server *server = context;
    server->rdv->conns[join->rank] = *conn;
    server->n_joined++;
}

/* Sleep until something happens; a rank that joined and died may join again. */
static void wait_for_events(struct server *server)
{
    struct rendezvous *rdv = server->rdv;
    struct pollfd poll_fds[HANDSHAKE_MAX_FDS + WEIR_COMM_MAX_RANKS];
    nfds_t n = handshake_listener_poll_fds(&server->listener, poll_fds);
    nfds_t first_joined = n;
    for (int r = 0; r < rdv->size; r++) {
        poll_fds[n++] = (struct pollfd){.fd = rdv->conns[r].fd, .events = POLLRDHUP};
    }
    (void)poll(poll_fds, n, auth_conn_poll_ms(rdv->deadline_ns, 1000));
    for (int r = 1; r < rdv->size; r++) {
        if ((poll_fds[first_joined + (nfds_t)r].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
            auth_conn_close(&rdv->conns[r]);
            server->n_joined--;
        }
    }
}

static weir_status missing(const struct server *server, struct weir_error *err)
{
    char ranks[128] = "";
    size_t len = 0;
    for (int r = 1; r < server->rdv->size; r++) {
        if (server->rdv->conns[r].fd < 0 && len < sizeof ranks - 8) {
            len += (size_t)snprintf(ranks + len, sizeof ranks - len, " %d", r);
        }
    }
    return weir_error_set(err, WEIR_ERR_TIMEOUT,
                          "these ranks did not come to %s in time:%s (connections refused: %d)",
                          server->rdv->url, ranks, server->listener.n_refused);
}

weir_status rendezvous_serve(struct rendezvous *rdv, struct weir_error *err)
{
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the rendezvous");
    }
    server->rdv = rdv;
    server->listener = (struct handshake_listener){.where = &rdv->where,
                                                   .key = &rdv->key,
                                                   .job_id = rdv->job_id,
                                                   .attempt = rdv->attempt,
                                                   .context = server,
                                                   .check = check_rank,
                                                   .accept = accept_rank};
    weir_status status = handshake_listener_open(&server->listener, err);
    while (status == WEIR_OK && server->n_joined < rdv->size - 1) {
        if (weir_mono_ns() >= rdv->deadline_ns) {
            struct weir_error why;
            status = missing(server, &why);
            rendezvous_abort(rdv, status, -1, why.message);
            (void)weir_error_set(err, status, "%s", why.message);
            break;
        }
        wait_for_events(server);
        handshake_listener_serve(&server->listener);
    }
    handshake_listener_close(&server->listener);
    free(server);
    return status;
}
