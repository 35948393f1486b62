#include "comm/rendezvous/rendezvous_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"

#include <poll.h>

enum {
    RETRY_MS = 10,       /**< Between looks at a file that is not there yet. */
    CONNECT_MS = 1000,   /**< One address that swallows packets must not use up the deadline. */
    HANDSHAKE_MS = 5000, /**< Rank 0 replies at once, or it is not rank 0. */
    JOIN_MS = 600000     /**< The leader of an elastic group replies between two steps. */
};

static uint64_t soon(const struct rendezvous *rdv, unsigned ms)
{
    uint64_t at = weir_mono_ns() + ms * UINT64_C(1000000);
    return WEIR_MIN(at, rdv->deadline_ns);
}

/* A member of an elastic group waits at its join listener. */
static uint64_t reply_due(const struct rendezvous *rdv)
{
    return soon(rdv, rdv->size == 0 ? JOIN_MS : HANDSHAKE_MS);
}

/* Outcome of one try: WEIR_OK; *out_is_final: another try cannot help. */
static weir_status finish_join(struct rendezvous *rdv, struct auth_conn *conn,
                               const struct wire_challenge *challenge, const uint8_t *nonce,
                               bool *out_is_final, struct weir_error *err)
{
    struct wire_frame frame;
    weir_status status = auth_conn_receive(conn, reply_due(rdv), &frame);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "rank 0 did not reply");
    }
    if (frame.type == WIRE_REFUSE) {
        struct wire_problem problem;
        if (wire_problem_parse(frame.payload, frame.len, &problem) == WEIR_OK) {
            /* "Joined already" ends when rank 0 notices that our predecessor is gone. */
            *out_is_final = problem.status != WEIR_ERR_CONFLICT;
            return weir_error_set(err, problem.status, "rank 0 refused rank %d: %s", rdv->rank,
                                  problem.text);
        }
    }
    if (frame.type != WIRE_ACCEPT || frame.len != WIRE_MAC_BYTES) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "rank 0 sent something else than a reply");
    }
    uint8_t expected[WIRE_MAC_BYTES];
    mac_of_accept(&rdv->key, challenge->nonce, nonce, expected);
    if (!mac_is_equal(frame.payload, expected)) {
        *out_is_final = true;
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "whoever listens as rank 0 does not know the job secret");
    }
    struct mac_key connection_key;
    mac_key_for_connection(&rdv->key, challenge->nonce, nonce, &connection_key);
    auth_conn_authenticate(conn, &connection_key, false);
    return WEIR_OK;
}

static weir_status shake_hands(struct rendezvous *rdv, struct auth_conn *conn,
                               const uint8_t *instance, bool *out_is_final, struct weir_error *err)
{
    struct wire_frame frame;
    struct wire_challenge challenge;
    weir_status status = auth_conn_receive(conn, reply_due(rdv), &frame);
    if (status == WEIR_OK && frame.type != WIRE_CHALLENGE) {
        status = WEIR_ERR_CORRUPT;
    }
    if (status == WEIR_OK) {
        status = wire_challenge_parse(frame.payload, frame.len, &challenge);
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "whoever listens there is no rank 0");
    }
    if (instance != NULL && memcmp(instance, challenge.instance, WIRE_NONCE_BYTES) != 0) {
        return weir_error_set(err, WEIR_ERR_PEER, "the rank 0 that published it is gone");
    }
    struct wire_join join = {.rank = (uint32_t)rdv->rank,
                             .size = (uint32_t)rdv->size,
                             .n_servers = (uint32_t)rdv->n_servers,
                             .attempt = (uint32_t)rdv->attempt};
    (void)snprintf(join.job_id, sizeof join.job_id, "%s", rdv->job_id);
    weir_random_bytes(join.nonce, sizeof join.nonce);
    mac_of_join(&rdv->key, challenge.nonce, &join, join.mac);
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_join_write(&writer, &join);
    wire_put_bytes(&writer, join.mac, sizeof join.mac);
    status = auth_conn_send(conn, WIRE_JOIN, bytes, writer.len, soon(rdv, HANDSHAKE_MS));
    if (status != WEIR_OK && status != WEIR_ERR_PEER) {
        return weir_error_set(err, status, "rank 0 does not read");
    }
    return finish_join(rdv, conn, &challenge, join.nonce, out_is_final, err);
}

/* instance NULL: any rank 0 that knows the secret is the right one (tcp://). */
static weir_status try_address(struct rendezvous *rdv, const char *address, const uint8_t *instance,
                               bool *out_is_final, struct weir_error *err)
{
    int fd = -1;
    WEIR_TRY(address_connect(address, soon(rdv, CONNECT_MS), &fd, err));
    struct auth_conn *conn = &rdv->conns[0];
    auth_conn_init(conn, fd);
    weir_status status = shake_hands(rdv, conn, instance, out_is_final, err);
    if (status != WEIR_OK) {
        auth_conn_close(conn);
        *out_is_final =
            *out_is_final || status == WEIR_ERR_NOMEM; /* ours: rank 0 is not at fault */
        (void)weir_error_prefix(err, "%s: ", address);
    }
    return status;
}

static weir_status try_file(struct rendezvous *rdv, bool *out_is_final, struct weir_error *err)
{
    char text[ADDRESS_NOTICE_MAX_BYTES];
    size_t len = 0;
    struct address_notice notice;
    char boot_id[BOOT_ID_BYTES];
    address_boot_id(boot_id);
    WEIR_TRY(weir_file_read_into(rdv->where.path, text, sizeof text, &len, err));
    weir_status status = address_notice_parse(text, len, &notice);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s is not a rendezvous file", rdv->where.path);
    }
    if (notice.is_over) {
        *out_is_final = true;
        return weir_error_set(err, WEIR_ERR_END, "the group has done its work and is no more");
    }
    bool is_same_host = strcmp(boot_id, notice.boot_id) == 0;
    status = weir_error_set(err, WEIR_ERR_PEER, "%s names no address that can be tried from here",
                            rdv->where.path);
    for (int i = 0; i < notice.n_addresses && !*out_is_final; i++) {
        if (address_is_loopback(notice.addresses[i]) && !is_same_host) {
            continue;
        }
        status = try_address(rdv, notice.addresses[i], notice.instance, out_is_final, err);
        if (status == WEIR_OK) {
            break;
        }
    }
    return status;
}

static weir_status try_tcp(struct rendezvous *rdv, bool *out_is_final, struct weir_error *err)
{
    char address[ADDRESS_TEXT_BYTES];
    bool is_six = strchr(rdv->where.host, ':') != NULL;
    (void)snprintf(address, sizeof address, is_six ? "[%s]:%s" : "%s:%s", rdv->where.host,
                   rdv->where.port);
    return try_address(rdv, address, NULL, out_is_final, err);
}

weir_status rendezvous_try(struct rendezvous *rdv, bool *out_is_final, struct weir_error *err)
{
    return rdv->where.is_file ? try_file(rdv, out_is_final, err) : try_tcp(rdv, out_is_final, err);
}

weir_status rendezvous_connect(struct rendezvous *rdv, struct weir_error *err)
{
    struct weir_error last = {.message = "not tried"};
    for (;;) {
        bool is_final = false;
        weir_status status = rendezvous_try(rdv, &is_final, &last);
        if (status == WEIR_OK) {
            return WEIR_OK;
        }
        if (is_final) {
            return weir_error_set(err, status, "%s", last.message);
        }
        if (weir_mono_ns() >= rdv->deadline_ns) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT,
                                  "rank 0 was not found at %s in time (last try: %s)", rdv->url,
                                  last.message);
        }
        (void)poll(NULL, 0, auth_conn_poll_ms(rdv->deadline_ns, RETRY_MS));
    }
}
