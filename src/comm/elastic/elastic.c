#include "comm/elastic.h"

#include "base/clock.h"
#include "base/log.h"
#include "comm/core/comm_private.h"
#include "comm/elastic/join_listener.h"
#include "comm/rendezvous/rendezvous_private.h"

#include <string.h>
#include <unistd.h>

enum {
    RETRY_MS = 5,       /**< Between tries to find the join listener. */
    PATIENCE_MS = 1000, /**< Time of the lowest survivor to open a listener. */
    AGAIN_MS = 2000,    /**< Members whose rendezvous failed come back at once, or never. */
    GREET_MS = 2,       /**< Most time of a step for the handshake of a joiner. */
    GREET_ROUNDS = 3,
};

/** What a member knows of its group, beyond the communicator it has at the moment. */
struct comm_elastic {
    struct weir_comm_config config; /**< As given: the texts are the caller's. */
    struct address_rendezvous place;
    struct mac_key key;
    struct join_listener *listener; /**< The leader's. */
    int member;
    int n_members;
    int members[WEIR_COMM_MAX_RANKS]; /**< By rank in the last group; none: a newcomer. */

    /* During a rendezvous: by member number. */
    bool is_dead[WEIR_COMM_MAX_RANKS];
    int death_fds[WEIR_COMM_MAX_RANKS];              /**< -1: none. */
    uint64_t begin_ns, deadline_ns, patience_end_ns; /**< Of waiting for those not known alive. */
};

/* ---- life ----------------------------------------------------------------------------------- */

static void elastic_free(struct comm_elastic *elastic, bool is_over)
{
    if (elastic == NULL) {
        return;
    }
    join_listener_close(elastic->listener, is_over);
    for (int m = 0; m < WEIR_COMM_MAX_RANKS; m++) {
        if (elastic->death_fds[m] >= 0) {
            (void)close(elastic->death_fds[m]);
        }
    }
    free(elastic);
}

static weir_status elastic_make(const struct weir_comm_config *config, struct comm_elastic **out,
                                struct weir_error *err)
{
    struct rendezvous *rdv = NULL;
    struct comm_elastic *elastic = calloc(1, sizeof *elastic);
    if (elastic == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for an elastic group");
    }
    memset(elastic->death_fds, -1, sizeof elastic->death_fds);
    elastic->member = config->rank;
    elastic->config = *config;
    elastic->config.job_id = config->job_id == NULL ? "job" : config->job_id;
    /* For what it reads out of the configuration; it connects to no rank. */
    weir_status status = rendezvous_make(&elastic->config, 0, &rdv, err);
    if (status == WEIR_OK) {
        elastic->key = rdv->key;
        status = join_listener_address(&rdv->where, &elastic->place, err);
    }
    rendezvous_close(rdv);
    if (status != WEIR_OK) {
        elastic_free(elastic, false);
        return status;
    }
    *out = elastic;
    return WEIR_OK;
}

static weir_status open_listener(struct comm_elastic *elastic, struct weir_error *err)
{
    return join_listener_open(&elastic->place, &elastic->key, elastic->config.job_id,
                              elastic->config.attempt, &elastic->listener, err);
}

weir_status comm_elastic_begin(struct weir_comm *comm, const struct weir_comm_config *config,
                               struct weir_error *err)
{
    struct comm_elastic *elastic = NULL;
    WEIR_TRY(elastic_make(config, &elastic, err));
    elastic->n_members = comm->size;
    for (int r = 0; r < comm->size; r++) {
        elastic->members[r] = r;
    }
    comm->elastic = elastic;
    return comm->rank == 0 ? open_listener(elastic, err) : WEIR_OK;
}

void comm_elastic_end(struct weir_comm *comm)
{
    elastic_free(comm->elastic, comm_failed(comm) == WEIR_OK);
    comm->elastic = NULL;
}

int weir_comm_member(const struct weir_comm *comm, int rank)
{
    return comm->elastic == NULL ? rank : comm->elastic->members[rank];
}

static bool is_member(const struct comm_elastic *elastic, int member)
{
    for (int r = 0; r < elastic->n_members; r++) {
        if (elastic->members[r] == member) {
            return true;
        }
    }
    return false;
}

int weir_comm_n_waiting(struct weir_comm *comm)
{
    struct comm_elastic *elastic = comm->elastic;
    if (elastic == NULL || elastic->listener == NULL) {
        return 0;
    }
    struct join_listener *listener = elastic->listener;
    join_listener_poll(listener);
    /* A handshake that is under way ends in this step, not in the next one or two. */
    for (int i = 0; i < GREET_ROUNDS && listener->handshakes.n_pending > 0; i++) {
        join_listener_wait(listener, NULL, 0, weir_mono_ns() + GREET_MS * UINT64_C(1000000));
        join_listener_poll(listener);
    }
    int n = 0;
    for (int i = 0; i < listener->n_joiners; i++) {
        n += !is_member(elastic, listener->joiners[i].member);
    }
    return n;
}

/* ---- members that are waited for ------------------------------------------------------------ */

/** What the old communicator knows of its ranks, by member number. */
static void ask_transport(struct comm_elastic *elastic, struct weir_comm *comm)
{
    bool is_dead[WEIR_COMM_MAX_RANKS] = {false};
    int fds[WEIR_COMM_MAX_RANKS], at_fault = -1;
    memset(fds, -1, sizeof fds);
    if (comm->transport->watch != NULL) {
        comm->transport->watch(comm, is_dead, fds);
    }
    (void)weir_comm_failure(comm, &at_fault, NULL);
    for (int r = 0; r < comm->size; r++) {
        int member = elastic->members[r];
        elastic->is_dead[member] = is_dead[r] || (r == at_fault && r != comm->rank);
        elastic->death_fds[member] = fds[r];
    }
}

static bool is_lost(struct comm_elastic *elastic, int member)
{
    struct pollfd poll_fd = {.fd = elastic->death_fds[member], .events = POLLIN};
    if (!elastic->is_dead[member] && poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) == 1) {
        elastic->is_dead[member] = true;
    }
    return elastic->is_dead[member];
}

static void forget_deaths(struct comm_elastic *elastic)
{
    memset(elastic->is_dead, 0, sizeof elastic->is_dead);
    for (int m = 0; m < WEIR_COMM_MAX_RANKS; m++) {
        if (elastic->death_fds[m] >= 0) {
            (void)close(elastic->death_fds[m]);
            elastic->death_fds[m] = -1;
        }
    }
}

/* ---- the leader ----------------------------------------------------------------------------- */

/** Members that live, as far as is known, and have not come: how many, and what tells of them. */
static int missing(struct comm_elastic *elastic, int out_fds[])
{
    int n = 0;
    for (int r = 0; r < elastic->n_members; r++) {
        int member = elastic->members[r];
        if (member != elastic->member && !join_listener_has(elastic->listener, member) &&
            !is_lost(elastic, member)) {
            out_fds[n++] = elastic->death_fds[member];
        }
    }
    return n;
}

static void send_roster(struct comm_elastic *elastic, struct auth_conn *conn)
{
    uint8_t bytes[4 + 4 * WEIR_COMM_MAX_RANKS];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_put_u32(&writer, (uint32_t)elastic->n_members);
    for (int r = 0; r < elastic->n_members; r++) {
        wire_put_u32(&writer, (uint32_t)elastic->members[r]);
    }
    /* A member that this does not reach is missed in the first exchange. */
    (void)!auth_conn_send(conn, WIRE_DATA, bytes, writer.len, elastic->deadline_ns);
}

/** All have come: they are the group, and the listener's connections those of its rendezvous. */
static void make_roster(struct comm_elastic *elastic, struct rendezvous *rdv)
{
    struct join_listener *listener = elastic->listener;
    int n = 1;
    elastic->members[0] = elastic->member;
    for (int i = 0; i < listener->n_joiners && n < WEIR_COMM_MAX_RANKS; i++) {
        elastic->members[n] = listener->joiners[i].member;
        rdv->conns[n++] = listener->joiners[i].conn;
    }
    elastic->n_members = n;
    listener->n_joiners = 0;
    rdv->rank = 0;
    rdv->size = n;
    for (int r = 1; r < n; r++) {
        send_roster(elastic, &rdv->conns[r]);
    }
}

static weir_status lead(struct comm_elastic *elastic, struct rendezvous *rdv)
{
    for (;;) {
        int fds[WEIR_COMM_MAX_RANKS];
        join_listener_poll(elastic->listener);
        int n = missing(elastic, fds);
        if (n == 0 || weir_mono_ns() >= elastic->patience_end_ns) {
            break; /* one that has not come is lost, or comes to the next rendezvous */
        }
        join_listener_wait(elastic->listener, fds, n, elastic->patience_end_ns);
    }
    make_roster(elastic, rdv);
    return WEIR_OK;
}

/* ---- the others ----------------------------------------------------------------------------- */

static weir_status read_roster(struct comm_elastic *elastic, struct rendezvous *rdv,
                               const struct wire_frame *frame, struct weir_error *err)
{
    struct wire_reader reader = {.data = frame->payload, .left = frame->len};
    uint32_t n = wire_get_u32(&reader);
    int rank = -1;
    for (uint32_t r = 0; r < n && r < WEIR_COMM_MAX_RANKS; r++) {
        elastic->members[r] = (int)wire_get_u32(&reader);
        if (elastic->members[r] < 0 || elastic->members[r] >= WEIR_COMM_MAX_RANKS) {
            reader.is_bad = true;
        } else if (elastic->members[r] == elastic->member) {
            rank = (int)r;
        }
    }
    if (reader.is_bad || reader.left != 0 || n > WEIR_COMM_MAX_RANKS || rank <= 0) {
        elastic->n_members = 0;
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the leader sent a damaged list of members");
    }
    elastic->n_members = (int)n;
    rdv->rank = rank;
    rdv->size = (int)n;
    return WEIR_OK;
}

/** Accepted: the leader sends the list when all have come. */
static weir_status await_roster(struct comm_elastic *elastic, struct rendezvous *rdv,
                                bool *out_is_final, struct weir_error *err)
{
    struct wire_frame frame;
    struct wire_problem problem;
    weir_status status = auth_conn_receive(&rdv->conns[0], elastic->deadline_ns, &frame);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "the group's leader was lost while its members met");
    }
    if (frame.type == WIRE_ABORT &&
        wire_problem_parse(frame.payload, frame.len, &problem) == WEIR_OK) {
        *out_is_final = true;
        return weir_error_set(err, problem.status, "%s", problem.text);
    }
    return frame.type == WIRE_DATA
               ? read_roster(elastic, rdv, &frame, err)
               : weir_error_set(err, WEIR_ERR_CORRUPT, "the leader sent something unexpected");
}

/** A member may take the lost leader's place; the lowest that lives before all others. */
static bool may_lead(struct comm_elastic *elastic)
{
    if (!elastic->place.is_file || elastic->n_members == 0) {
        return false;
    }
    if (weir_mono_ns() >= elastic->begin_ns + PATIENCE_MS * UINT64_C(1000000)) {
        return true;
    }
    for (int r = 0; r < elastic->n_members; r++) {
        int member = elastic->members[r];
        if (member < elastic->member && !is_lost(elastic, member)) {
            return false;
        }
    }
    return true;
}

static weir_status check_leader_of_address(struct comm_elastic *elastic, struct weir_error *err)
{
    bool is_gone =
        !elastic->place.is_file && elastic->n_members > 0 && is_lost(elastic, elastic->members[0]);
    return is_gone
               ? weir_error_set(err, WEIR_ERR_PEER,
                                "rank 0 is lost, and nobody else can listen at %s; a rendezvous "
                                "in a folder would have let the others go on",
                                elastic->config.rendezvous)
               : WEIR_OK;
}

/** Find the join listener, or open one. On success the leader has one, and the others are in the
 *  group. */
static weir_status follow(struct comm_elastic *elastic, struct rendezvous *rdv, bool *out_is_final,
                          struct weir_error *err)
{
    struct weir_error last = {.message = "not tried"};
    for (;;) {
        weir_status status = rendezvous_try(rdv, out_is_final, &last);
        if (status == WEIR_OK) {
            status = await_roster(elastic, rdv, out_is_final, &last);
            if (status == WEIR_OK) {
                return WEIR_OK;
            }
            auth_conn_close(&rdv->conns[0]);
        }
        if (*out_is_final) {
            return weir_error_set(err, status, "%s", last.message);
        }
        status = check_leader_of_address(elastic, err);
        if (status != WEIR_OK) {
            *out_is_final = true;
            return status;
        }
        if (may_lead(elastic) && open_listener(elastic, &last) == WEIR_OK) {
            return lead(elastic, rdv);
        }
        if (weir_mono_ns() >= elastic->deadline_ns) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT,
                                  "no group was found at %s in time (last try: %s)",
                                  elastic->config.rendezvous, last.message);
        }
        (void)poll(NULL, 0, auth_conn_poll_ms(elastic->deadline_ns, RETRY_MS));
    }
}

/* ---- rendezvous ----------------------------------------------------------------------------- */

static weir_status meet_once(struct comm_elastic *elastic, struct weir_comm **out,
                             bool *out_is_final, struct weir_error *err)
{
    struct weir_comm_config config = elastic->config;
    struct rendezvous *rdv = NULL;
    config.size = 0; /* as a member, to be told rank and size */
    config.rank = elastic->member;
    WEIR_TRY(rendezvous_make(&config, elastic->deadline_ns, &rdv, err));
    rdv->where = elastic->place;
    weir_status status =
        elastic->listener != NULL ? lead(elastic, rdv) : follow(elastic, rdv, out_is_final, err);
    if (status == WEIR_OK) {
        config.rank = rdv->rank;
        config.size = rdv->size;
        status = comm_build(&config, config.size > 1 ? rdv : NULL, out, err);
    }
    rendezvous_close(rdv);
    return status;
}

/** Is another rendezvous worth a try? A member was lost during this one, and the rest are still there.
 */
static bool is_worth_trying(const struct comm_elastic *elastic, weir_status status)
{
    return (status == WEIR_ERR_PEER || status == WEIR_ERR_TIMEOUT || status == WEIR_ERR_CORRUPT) &&
           weir_mono_ns() < elastic->deadline_ns;
}

static weir_status meet(struct comm_elastic *elastic, int timeout_ms, struct weir_comm **out,
                        struct weir_error *err)
{
    bool is_final = false;
    elastic->begin_ns = weir_mono_ns();
    elastic->deadline_ns = elastic->begin_ns + (uint64_t)timeout_ms * 1000000;
    elastic->patience_end_ns = elastic->begin_ns + (uint64_t)timeout_ms * 750000;
    weir_status status = meet_once(elastic, out, &is_final, err);
    while (status != WEIR_OK && !is_final && is_worth_trying(elastic, status)) {
        weir_log(WEIR_LOG_DEBUG, "comm_meets_again",
                 WEIR_KV_STR("reason", err == NULL ? "" : err->message));
        elastic->begin_ns = weir_mono_ns();
        elastic->patience_end_ns = elastic->begin_ns + AGAIN_MS * UINT64_C(1000000);
        status = meet_once(elastic, out, &is_final, err);
    }
    forget_deaths(elastic);
    if (status != WEIR_OK) {
        elastic_free(elastic, false);
        return status;
    }
    (*out)->elastic = elastic;
    return WEIR_OK;
}

weir_status weir_comm_join(const struct weir_comm_config *config, struct weir_comm **out,
                           struct weir_error *err)
{
    struct weir_error own;
    struct comm_elastic *elastic = NULL;
    struct weir_comm_config newcomer = *config;
    err = err == NULL ? &own : err;
    newcomer.size = WEIR_COMM_MAX_RANKS;
    newcomer.is_elastic = true;
    WEIR_TRY(comm_check_config(&newcomer, err));
    WEIR_TRY(elastic_make(&newcomer, &elastic, err));
    int timeout_ms = config->join_timeout_ms > 0 ? config->join_timeout_ms : config->timeout_ms;
    return meet(elastic, timeout_ms > 0 ? timeout_ms : COMM_DEFAULT_TIMEOUT_MS, out, err);
}

weir_status weir_comm_regroup(struct weir_comm **comm, struct weir_error *err)
{
    struct weir_error own;
    struct comm_elastic *elastic = (*comm)->elastic;
    err = err == NULL ? &own : err;
    if (elastic == NULL) {
        weir_comm_destroy(*comm);
        *comm = NULL;
        return weir_error_set(err, WEIR_ERR_INVALID, "the group was not created elastic");
    }
    int timeout_ms = (int)((*comm)->timeout_ns / 1000000);
    ask_transport(elastic, *comm);
    (*comm)->elastic = NULL;
    weir_comm_destroy(*comm);
    *comm = NULL;
    return meet(elastic, timeout_ms, comm, err);
}
