#include "comm/rendezvous/rendezvous_private.h"

#include "base/clock.h"
#include "comm/rendezvous/reception.h"

struct server {
    struct rendezvous *rdv;
    int n_joined;
    struct reception reception;
};

static weir_status judge(void *context, const struct wire_join *join, struct weir_error *err)
{
    const struct server *server = context;
    const struct rendezvous *rdv = server->rdv;
    if (join->size == 0) {
        /* Who wants to join a group that runs: it will, soon. */
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
    if (rdv->links[join->rank].fd >= 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "rank %u has joined already", join->rank);
    }
    return WEIR_OK;
}

static void admit(void *context, const struct wire_join *join, struct link *link)
{
    struct server *server = context;
    server->rdv->links[join->rank] = *link;
    server->n_joined++;
}

/* Sleep until something happens; a rank that joined and died may join again. */
static void wait_for_events(struct server *server)
{
    struct rendezvous *rdv = server->rdv;
    struct pollfd poll_fds[RECEPTION_MAX_FDS + WEIR_COMM_MAX_RANKS];
    nfds_t n = reception_poll_fds(&server->reception, poll_fds);
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
                          server->rdv->url, ranks, server->reception.n_refused);
}

weir_status rendezvous_serve(struct rendezvous *rdv, struct weir_error *err)
{
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the rendezvous");
    }
    server->rdv = rdv;
    server->reception = (struct reception){.where = &rdv->where,
                                           .key = &rdv->key,
                                           .job_id = rdv->job_id,
                                           .attempt = rdv->attempt,
                                           .context = server,
                                           .judge = judge,
                                           .admit = admit};
    weir_status status = reception_open(&server->reception, err);
    while (status == WEIR_OK && server->n_joined < rdv->size - 1) {
        if (weir_mono_ns() >= rdv->deadline_ns) {
            struct weir_error why;
            status = missing(server, &why);
            rendezvous_abort(rdv, status, -1, why.message);
            (void)weir_error_set(err, status, "%s", why.message);
            break;
        }
        wait_for_events(server);
        reception_serve(&server->reception);
    }
    reception_close(&server->reception);
    free(server);
    return status;
}
