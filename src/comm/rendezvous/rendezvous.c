#include "comm/rendezvous/rendezvous_private.h"

#include "base/clock.h"

#include <limits.h>
#include <poll.h>

enum { TABLE_MAX_BYTES = WIRE_MAX_PAYLOAD - WIRE_MAC_BYTES };

static void rendezvous_init(struct rendezvous *rdv, const struct weir_comm_config *config,
                            uint64_t deadline_ns)
{
    *rdv = (struct rendezvous){.rank = config->rank,
                               .size = config->size,
                               .n_servers = config->n_servers,
                               .attempt = config->attempt,
                               .job_id = config->job_id == NULL ? "job" : config->job_id,
                               .url = config->rendezvous,
                               .deadline_ns = deadline_ns};
    weir_buf_init(&rdv->table, TABLE_MAX_BYTES);
    for (int i = 0; i < WEIR_COMM_MAX_RANKS; i++) {
        auth_conn_init(&rdv->conns[i], -1);
    }
}

weir_status rendezvous_make(const struct weir_comm_config *config, uint64_t deadline_ns,
                            struct rendezvous **out, struct weir_error *err)
{
    struct rendezvous *rdv = malloc(sizeof *rdv);
    if (rdv == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the rendezvous");
    }
    rendezvous_init(rdv, config, deadline_ns);
    weir_status status =
        address_rendezvous_parse(config->rendezvous, rdv->job_id, rdv->attempt, &rdv->where, err);
    if (status == WEIR_OK) {
        status = mac_key_from_secret(config->secret, &rdv->key);
        if (status != WEIR_OK) {
            (void)weir_error_set(err, status, "libsodium does not start");
        }
    }
    if (status != WEIR_OK) {
        rendezvous_close(rdv);
        return status;
    }
    *out = rdv;
    return WEIR_OK;
}

weir_status rendezvous_join(const struct weir_comm_config *config, uint64_t deadline_ns,
                            struct rendezvous **out, struct weir_error *err)
{
    struct rendezvous *rdv = NULL;
    WEIR_TRY(rendezvous_make(config, deadline_ns, &rdv, err));
    weir_status status = rdv->rank == 0 ? rendezvous_serve(rdv, err) : rendezvous_connect(rdv, err);
    if (status != WEIR_OK) {
        rendezvous_close(rdv);
        return status;
    }
    rdv->job_id = rdv->url = NULL;
    *out = rdv;
    return WEIR_OK;
}

void rendezvous_close(struct rendezvous *rdv)
{
    if (rdv == NULL) {
        return;
    }
    for (int i = 0; i < WEIR_COMM_MAX_RANKS; i++) {
        auth_conn_close(&rdv->conns[i]);
    }
    weir_buf_fini(&rdv->table);
    free(rdv);
}

void rendezvous_abort(struct rendezvous *rdv, weir_status status, int rank, const char *text)
{
    struct wire_problem problem = {.status = status,
                                   .rank = rank < 0 ? WIRE_NO_RANK : (uint32_t)rank};
    (void)snprintf(problem.text, sizeof problem.text, "%.*s", WIRE_TEXT_BYTES - 1, text);
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_problem_write(&writer, &problem);
    /* A rank that does not read must not hold up the others: what fits its socket, no more. */
    for (int r = 1; r < rdv->size; r++) {
        if (rdv->conns[r].fd >= 0) {
            (void)!auth_conn_send(&rdv->conns[r], WIRE_ABORT, bytes, writer.len, 0);
        }
    }
}

/* What a lost or misbehaving connection means, said with the rank's number. */
static weir_status conn_problem(weir_status status, int rank, struct weir_error *err)
{
    switch (status) {
    case WEIR_ERR_PEER:
        return weir_error_set(err, status, "rank %d was lost while the ranks met", rank);
    case WEIR_ERR_TIMEOUT:
        return weir_error_set(err, status, "rank %d sent nothing in time while the ranks met",
                              rank);
    case WEIR_ERR_UNAUTH:
        return weir_error_set(err, status, "rank %d sent a frame with a wrong MAC", rank);
    default:
        return weir_error_set(err, status, "exchange with rank %d: %s", rank,
                              weir_status_text(status));
    }
}

static void put_entry(struct weir_buf *table, const void *bytes, size_t len)
{
    uint8_t field[4];
    struct wire_writer writer = {.data = field, .cap = sizeof field};
    wire_put_u32(&writer, (uint32_t)len);
    (void)weir_buf_append(table, field, sizeof field);
    (void)weir_buf_append(table, bytes, len);
}

static weir_status read_table(const struct rendezvous *rdv, struct rendezvous_blob out[],
                              struct weir_error *err)
{
    struct wire_reader reader = {.data = (const uint8_t *)rdv->table.data, .left = rdv->table.len};
    for (int r = 0; r < rdv->size; r++) {
        size_t len = wire_get_u32(&reader);
        if (reader.is_bad || len > reader.left) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "rank 0 sent a damaged table of ranks");
        }
        out[r] = (struct rendezvous_blob){.data = reader.data, .len = len};
        reader.data += len;
        reader.left -= len;
    }
    return WEIR_OK;
}

/* Rank 0 keeps each reply in its connection's buffer until all are there. */
struct gather {
    struct wire_frame frames[WEIR_COMM_MAX_RANKS];
    bool has[WEIR_COMM_MAX_RANKS];
    int n_missing;
};

static weir_status gather_from(struct rendezvous *rdv, struct gather *gather, int rank,
                               struct weir_error *err)
{
    weir_status status = auth_conn_try_receive(&rdv->conns[rank], &gather->frames[rank]);
    if (status == WEIR_ERR_END) {
        return WEIR_OK;
    }
    if (status == WEIR_OK && gather->frames[rank].type != WIRE_DATA) {
        status = WEIR_ERR_CORRUPT;
    }
    if (status != WEIR_OK) {
        (void)conn_problem(status, rank, err);
        rendezvous_abort(rdv, status, rank, err->message);
        return status;
    }
    gather->has[rank] = true;
    gather->n_missing--;
    return WEIR_OK;
}

static weir_status gather_timeout(struct rendezvous *rdv, const struct gather *gather,
                                  struct weir_error *err)
{
    int rank = 1;
    while (gather->has[rank]) {
        rank++;
    }
    (void)conn_problem(WEIR_ERR_TIMEOUT, rank, err);
    rendezvous_abort(rdv, WEIR_ERR_TIMEOUT, rank, err->message);
    return WEIR_ERR_TIMEOUT;
}

static weir_status gather_all(struct rendezvous *rdv, struct gather *gather, struct weir_error *err)
{
    struct pollfd poll_fds[WEIR_COMM_MAX_RANKS];
    for (;;) {
        /* Look before sleeping: a reply may lie in the buffer already. A rank that has replied
         * is watched for its loss alone. */
        for (int r = 1; r < rdv->size; r++) {
            if (!gather->has[r]) {
                WEIR_TRY(gather_from(rdv, gather, r, err));
            }
            poll_fds[r - 1] = (struct pollfd){
                .fd = rdv->conns[r].fd, .events = gather->has[r] ? POLLRDHUP : POLLIN | POLLRDHUP};
        }
        if (gather->n_missing == 0) {
            return WEIR_OK;
        }
        if (weir_mono_ns() >= rdv->deadline_ns) {
            return gather_timeout(rdv, gather, err);
        }
        (void)poll(poll_fds, (nfds_t)rdv->size - 1, auth_conn_poll_ms(rdv->deadline_ns, INT_MAX));
        for (int r = 1; r < rdv->size; r++) {
            if (gather->has[r] &&
                (poll_fds[r - 1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
                (void)conn_problem(WEIR_ERR_PEER, r, err);
                rendezvous_abort(rdv, WEIR_ERR_PEER, r, err->message);
                return WEIR_ERR_PEER;
            }
        }
    }
}

static weir_status exchange_root(struct rendezvous *rdv, const void *bytes, size_t len,
                                 struct weir_error *err)
{
    struct gather *gather = calloc(1, sizeof *gather);
    if (gather == NULL) {
        rendezvous_abort(rdv, WEIR_ERR_NOMEM, 0, "rank 0 has no memory for the table of ranks");
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the table of ranks");
    }
    gather->n_missing = rdv->size - 1;
    weir_status status = gather_all(rdv, gather, err);
    if (status == WEIR_OK) {
        put_entry(&rdv->table, bytes, len);
        for (int r = 1; r < rdv->size; r++) {
            put_entry(&rdv->table, gather->frames[r].payload, gather->frames[r].len);
        }
        status = rdv->table.status;
        if (status != WEIR_OK) {
            (void)weir_error_set(err, status, "the table of ranks: %s", weir_status_text(status));
            rendezvous_abort(rdv, status, 0, err->message);
        }
    }
    free(gather);
    for (int r = 1; r < rdv->size && status == WEIR_OK; r++) {
        status = auth_conn_send(&rdv->conns[r], WIRE_DATA, rdv->table.data, rdv->table.len,
                                rdv->deadline_ns);
        if (status != WEIR_OK) {
            (void)conn_problem(status, r, err);
            rendezvous_abort(rdv, status, r, err->message);
        }
    }
    return status;
}

static weir_status exchange_leaf(struct rendezvous *rdv, const void *bytes, size_t len,
                                 struct weir_error *err)
{
    struct auth_conn *conn = &rdv->conns[0];
    struct wire_frame frame;
    weir_status status = auth_conn_send(conn, WIRE_DATA, bytes, len, rdv->deadline_ns);
    if (status == WEIR_OK || status == WEIR_ERR_PEER) {
        /* Also after a failed send: rank 0 may have said why it closed. */
        status = auth_conn_receive(conn, rdv->deadline_ns, &frame);
    }
    if (status != WEIR_OK) {
        return conn_problem(status, 0, err);
    }
    if (frame.type == WIRE_ABORT) {
        struct wire_problem problem;
        if (wire_problem_parse(frame.payload, frame.len, &problem) == WEIR_OK) {
            return weir_error_set(err, problem.status, "%s", problem.text);
        }
    }
    if (frame.type != WIRE_DATA) {
        return conn_problem(WEIR_ERR_CORRUPT, 0, err);
    }
    status = weir_buf_append(&rdv->table, frame.payload, frame.len);
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "keeping the table of ranks");
}

void rendezvous_narrow(struct rendezvous *rdv, const int *ranks, int n)
{
    rdv->wanted = ranks;
    rdv->n_wanted = n;
}

weir_status rendezvous_exchange(struct rendezvous *rdv, const void *bytes, size_t len,
                                struct rendezvous_blob out[], struct weir_error *err)
{
    struct weir_error own;
    if (err == NULL) {
        err = &own;
    }
    weir_buf_reset(&rdv->table);
    WEIR_TRY(rdv->rank == 0 ? exchange_root(rdv, bytes, len, err)
                            : exchange_leaf(rdv, bytes, len, err));
    WEIR_TRY(read_table(rdv, out, err));
    for (int i = 0; i < rdv->n_wanted; i++) {
        out[i] = out[rdv->wanted[i]]; /* they grow: never one that was overwritten */
    }
    return WEIR_OK;
}
