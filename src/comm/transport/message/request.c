#include "comm/transport/ucx/ucx_private.h"

#include "base/clock.h"

#include <limits.h>
#include <poll.h>

enum {
    NOTICE_MS = 100,     /**< How long telling the others may hold up the failure. */
    REPLY_MAX_MS = 2000, /**< Longest wait for replies after a deadline. */
    GOODBYE_MS = 1000,
    CLOSE_MS = 1000,
    SPINS_LEAST = 2,  /**< Rounds of progress before sleeping. */
    SHORT_NS = 50000, /**< A sleep that spinning would have spared. */
};

#define LONGEST_SLEEP_NS UINT64_C(1000000000)

_Static_assert(WEIR_COMM_MAX_RANKS <= 256, "a tag has 8 bits for the sender");

/* Operation 32 bits, phase 8, number within it 16, sender 8. */
static uint64_t make_tag(uint32_t n_op, unsigned part, int sender)
{
    return (uint64_t)n_op << 32 | (uint64_t)part << 8 | (uint64_t)sender;
}

static uint64_t in_ms(unsigned ms)
{
    return weir_mono_ns() + ms * UINT64_C(1000000);
}

/* ---- the list of what is in flight ---------------------------------------------------------- */

static void track(struct ucx_state *ucx, struct ucx_request *request)
{
    request->next = ucx->active;
    request->previous_next = &ucx->active;
    if (ucx->active != NULL) {
        ucx->active->previous_next = &request->next;
    }
    ucx->active = request;
}

/* UCX_PENDING, or how the request ended; then it is no longer in flight. */
static enum ucx_outcome test(const struct ucx_state *ucx, struct ucx_request *request)
{
    enum ucx_outcome outcome = ucx->fabric->test(request);
    if (outcome != UCX_PENDING) {
        *request->previous_next = request->next;
        if (request->next != NULL) {
            request->next->previous_next = request->previous_next;
        }
        request->handle = NULL;
    }
    return outcome;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Where spinning did not help the next while is half as long; where it did, or would have, twice:
 * next to busy neighbours it only takes the core away from the awaited rank; on a quiet machine it
 * spares waking up. */
void ucx_progress_or_sleep(struct ucx_state *ucx, uint64_t deadline_ns, unsigned *n_idle)
{
    if (ucx->fabric->progress(ucx)) {
        if (*n_idle > 0) {
            ucx->n_spins = WEIR_MIN(2 * ucx->n_spins, ucx->n_spins_most);
        }
        *n_idle = 0;
        return;
    }
    if (++*n_idle < ucx->n_spins || !ucx->fabric->arm(ucx)) {
        return;
    }
    uint64_t now = weir_mono_ns();
    uint64_t left_ns = WEIR_MIN(now >= deadline_ns ? 0 : deadline_ns - now, LONGEST_SLEEP_NS);
    const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000),
                                  .tv_nsec = (long)(left_ns % 1000000000)};
    struct pollfd poll_fd = {.fd = ucx->event_fd, .events = POLLIN};
    (void)ppoll(&poll_fd, 1, &left, NULL);
    bool was_short = weir_mono_ns() - now < SHORT_NS;
    ucx->n_spins = was_short ? WEIR_MIN(2 * ucx->n_spins, ucx->n_spins_most)
                             : WEIR_MAX(ucx->n_spins / 2, (unsigned)SPINS_LEAST);
    *n_idle = 0;
}

void ucx_close_connections(struct ucx_state *ucx)
{
    uint64_t deadline_ns = in_ms(CLOSE_MS);
    unsigned n_idle = 0;
    for (struct ucx_request *i = ucx->active; i != NULL; i = i->next) {
        if (i->is_receive) {
            ucx->fabric->cancel(ucx, i);
        }
    }
    ucx->fabric->disconnect(ucx, deadline_ns);
    while (ucx->active != NULL && weir_mono_ns() < deadline_ns) {
        for (struct ucx_request *i = ucx->active, *next; i != NULL; i = next) {
            next = i->next;
            (void)test(ucx, i);
        }
        if (ucx->active != NULL) {
            ucx_progress_or_sleep(ucx, deadline_ns, &n_idle);
        }
    }
}

/* ---- failure -------------------------------------------------------------------------------- */

void ucx_peer_broke(struct ucx_state *ucx, int rank)
{
    if (!ucx->peers[rank].is_broken) {
        ucx->peers[rank].is_broken = true;
        ucx->first_broken = ucx->first_broken < 0 ? rank : ucx->first_broken;
        ucx->n_broken++;
    }
}

static uint64_t notice_tag(const struct ucx_state *ucx)
{
    return make_tag(0, ucx_part(UCX_NOTICE, 0), ucx->comm->rank);
}

weir_status ucx_expect_notice(struct ucx_state *ucx)
{
    ucx->notice_request =
        (struct ucx_request){.rank = UCX_ANYBODY, .is_receive = true, .bytes = sizeof ucx->notice};
    if (ucx->fabric->receive(ucx, &ucx->notice, make_tag(0, ucx_part(UCX_NOTICE, 0), 0),
                             UINT64_C(0xff) << 24, &ucx->notice_request) != UCX_PENDING) {
        return comm_fail(ucx->comm, WEIR_ERR_NOMEM, ucx->comm->rank, "no memory for a message");
    }
    track(ucx, &ucx->notice_request);
    return WEIR_OK;
}

static bool is_reachable(const struct ucx_state *ucx, int rank)
{
    return ucx->peers[rank].is_connected && !ucx->peers[rank].is_broken;
}

/* Send without waiting; `notice` stays where it is. A rank that cannot be reached gets nothing. */
static void send_aside(struct ucx_state *ucx, int rank, const struct ucx_notice *notice)
{
    if (is_reachable(ucx, rank)) {
        ucx->fabric->send_aside(ucx, rank, notice, notice_tag(ucx));
    }
}

/* A notice that is no bad news. */
static void take_note(struct ucx_state *ucx, const struct ucx_notice *notice)
{
    struct ucx_peer *peer = &ucx->peers[notice->rank];
    if (notice->status == WEIR_ERR_END) {
        peer->has_left = true;
    } else if (notice->status == UCX_HERE) {
        peer->is_here = true;
        peer->waits_for = notice->waits_for;
    } else {
        peer->reply = (struct ucx_notice){
            .status = UCX_HERE, .rank = ucx->comm->rank, .waits_for = ucx->waits_for};
        send_aside(ucx, notice->rank, &peer->reply);
    }
}

/* Is there bad news (in ucx->notice)? Goodbyes, questions and replies are dealt with on the way. */
static bool has_notice(struct ucx_state *ucx)
{
    while (ucx->notice_request.handle != NULL && test(ucx, &ucx->notice_request) == UCX_DONE) {
        int rank = ucx->notice.rank, status = ucx->notice.status;
        bool is_bad = status != WEIR_ERR_END && status != UCX_ASK && status != UCX_HERE;
        if (is_bad || rank < 0 || rank >= ucx->comm->size) {
            return true;
        }
        take_note(ucx, &ucx->notice);
        if (ucx_expect_notice(ucx) != WEIR_OK) {
            return false; /* a thread that waits sees the failure */
        }
    }
    return false;
}

weir_status ucx_fail(struct ucx_state *ucx, weir_status status, int rank, const char *what)
{
    status = comm_fail(ucx->comm, status, rank, "rank %d%s %s", rank,
                       rank == ucx->comm->rank ? " (this one)" : "", what);
    if (ucx->notice_request.handle != NULL) {
        /* Also stops a notice from arriving in the memory that now holds ours. */
        ucx->fabric->cancel(ucx, &ucx->notice_request);
        unsigned n_idle = 0;
        uint64_t deadline_ns = in_ms(NOTICE_MS);
        while (test(ucx, &ucx->notice_request) == UCX_PENDING && weir_mono_ns() < deadline_ns) {
            ucx_progress_or_sleep(ucx, deadline_ns, &n_idle);
        }
    }
    /* Outlives the call, unlike the stack. */
    ucx->notice = (struct ucx_notice){.status = status, .rank = rank};
    ucx->fabric->broadcast(ucx, &ucx->notice, notice_tag(ucx), rank, in_ms(NOTICE_MS));
    ucx_close_connections(ucx);
    return status;
}

/* Another rank found out first. Passed on: a third rank may see this one go before the first
 * one's notice arrives, and would report it. */
static weir_status fail_as_notified(struct ucx_state *ucx)
{
    int rank = ucx->notice.rank;
    weir_status status = ucx->notice.status;
    const char *self = rank == ucx->comm->rank ? " (this one)" : "";
    switch (status) {
    case WEIR_ERR_PEER:
        status = comm_fail(ucx->comm, status, rank, "rank %d died or left", rank);
        break;
    case WEIR_ERR_TIMEOUT:
        status = comm_fail(ucx->comm, status, rank, "rank %d%s did not reply in time", rank, self);
        break;
    default:
        status = comm_fail(ucx->comm, WEIR_ERR_PEER, rank, "rank %d%s gave up", rank, self);
        break;
    }
    ucx->fabric->broadcast(ucx, &ucx->notice, notice_tag(ucx), rank, in_ms(NOTICE_MS));
    ucx_close_connections(ucx);
    return status;
}

weir_status ucx_poll_notice(struct ucx_state *ucx, unsigned wait_ms)
{
    uint64_t deadline_ns = in_ms(wait_ms);
    unsigned n_idle = 0;
    do {
        ucx_progress_or_sleep(ucx, deadline_ns, &n_idle);
        if (has_notice(ucx)) {
            return fail_as_notified(ucx);
        }
    } while (weir_mono_ns() < deadline_ns);
    return WEIR_OK;
}

static bool has_everybody_left(const struct ucx_state *ucx)
{
    for (int r = 0; r < ucx->comm->size; r++) {
        if (is_reachable(ucx, r) && !ucx->peers[r].has_left) {
            return false;
        }
    }
    return true;
}

void ucx_send_goodbye(struct ucx_state *ucx)
{
    uint64_t deadline_ns = in_ms(GOODBYE_MS);
    unsigned n_idle = 0;
    ucx->waits_for = -1;
    ucx->goodbye = (struct ucx_notice){.status = WEIR_ERR_END, .rank = ucx->comm->rank};
    ucx->fabric->broadcast(ucx, &ucx->goodbye, notice_tag(ucx), -1, deadline_ns);
    while (!has_notice(ucx) && !has_everybody_left(ucx) && weir_mono_ns() < deadline_ns) {
        ucx_progress_or_sleep(ucx, deadline_ns, &n_idle);
    }
}

/* A rank that is gone and from which something is still awaited; -1 if there is none. What has come
 * but was not looked at yet counts as come. */
static int find_lost(const struct ucx_state *ucx)
{
    for (const struct ucx_request *i = ucx->active; i != NULL; i = i->next) {
        if (i->rank >= 0 && (ucx->peers[i->rank].is_broken || ucx->peers[i->rank].has_left) &&
            !ucx->fabric->has_come(i)) {
            return i->rank;
        }
    }
    return -1;
}

/* The connection to `rank` is gone. If another one broke before, that was the first to fall, and
 * `rank` has only given up because of it: its notice may have been lost with the connection. */
static weir_status fail_lost(struct ucx_state *ucx, int rank)
{
    int first = ucx->first_broken;
    if (ucx->peers[rank].has_left) {
        return ucx_fail(ucx, WEIR_ERR_PEER, rank, "left the group");
    }
    return ucx_fail(ucx, WEIR_ERR_PEER, first >= 0 && !ucx->peers[first].has_left ? first : rank,
                    "died or left");
}

static void ask_around(struct ucx_state *ucx, uint64_t deadline_ns)
{
    uint64_t patience_ns = WEIR_MIN(ucx->comm->timeout_ns / 4, REPLY_MAX_MS * UINT64_C(1000000));
    ucx->asked_for_ns = deadline_ns;
    ucx->replies_due_ns = weir_mono_ns() + patience_ns;
    ucx->question = (struct ucx_notice){.status = UCX_ASK, .rank = ucx->comm->rank};
    for (int r = 0; r < ucx->comm->size; r++) {
        ucx->peers[r].is_here = false;
        send_aside(ucx, r, &ucx->question);
    }
}

/* From the rank that is waited for along the replies to one that gave none. If they lead in a
 * circle all are there and a message is not: then `rank`, from which it should have come. */
static int find_late(const struct ucx_state *ucx, int rank)
{
    int suspect = rank;
    for (int i = 0; i < ucx->comm->size; i++) {
        if (!ucx->peers[suspect].is_here) {
            return suspect;
        }
        suspect = ucx->peers[suspect].waits_for;
        if (suspect < 0 || suspect >= ucx->comm->size || suspect == ucx->comm->rank) {
            return rank;
        }
    }
    return rank;
}

/* Is there a reason to stop waiting for `request`? */
static weir_status check_trouble(struct ucx_state *ucx, const struct ucx_request *request,
                                 uint64_t deadline_ns)
{
    if (has_notice(ucx)) {
        return fail_as_notified(ucx);
    }
    weir_status failed = comm_failed(ucx->comm);
    if (failed != WEIR_OK) {
        ucx_close_connections(ucx); /* interrupted */
        return failed;
    }
    int lost = find_lost(ucx);
    if (lost >= 0) {
        return fail_lost(ucx, lost);
    }
    if (weir_mono_ns() < deadline_ns) {
        return WEIR_OK;
    }
    if (ucx->asked_for_ns != deadline_ns) {
        ask_around(ucx, deadline_ns);
    }
    if (weir_mono_ns() < ucx->replies_due_ns) {
        return WEIR_OK;
    }
    return ucx_fail(ucx, WEIR_ERR_TIMEOUT, find_late(ucx, request->rank), "did not reply in time");
}

/* ---- messages ------------------------------------------------------------------------------- */

static weir_status check_outcome(struct ucx_state *ucx, int rank, enum ucx_outcome outcome)
{
    switch (outcome) {
    case UCX_DONE:
        return WEIR_OK;
    case UCX_TRUNCATED:
        return ucx_fail(ucx, WEIR_ERR_INVALID, rank, "disagrees on the size of the operation");
    case UCX_NOMEM:
        return ucx_fail(ucx, WEIR_ERR_NOMEM, ucx->comm->rank, "has no memory for a message");
    default:
        return has_notice(ucx) ? fail_as_notified(ucx) : fail_lost(ucx, rank);
    }
}

static weir_status started(struct ucx_state *ucx, struct ucx_request *request,
                           enum ucx_outcome outcome)
{
    if (outcome == UCX_PENDING) {
        track(ucx, request);
        return WEIR_OK;
    }
    request->handle = NULL;
    return check_outcome(ucx, request->rank, outcome);
}

weir_status ucx_send(struct ucx_state *ucx, int rank, const void *buf, size_t bytes, uint32_t n_op,
                     unsigned part, struct ucx_request *request)
{
    *request = (struct ucx_request){.rank = rank, .bytes = bytes};
    if (!is_reachable(ucx, rank)) {
        return check_outcome(ucx, rank, UCX_LOST);
    }
    return started(ucx, request,
                   ucx->fabric->send(ucx, buf, make_tag(n_op, part, ucx->comm->rank), request));
}

weir_status ucx_receive(struct ucx_state *ucx, int rank, void *buf, size_t bytes, uint32_t n_op,
                        unsigned part, struct ucx_request *request)
{
    *request = (struct ucx_request){.rank = rank, .is_receive = true, .bytes = bytes};
    return started(
        ucx, request,
        ucx->fabric->receive(ucx, buf, make_tag(n_op, part, rank), ~UINT64_C(0), request));
}

weir_status ucx_idle_until(struct ucx_state *ucx, const struct ucx_request *request,
                           uint64_t until_ns, uint64_t deadline_ns, unsigned *n_idle)
{
    ucx->waits_for = request->handle != NULL ? request->rank : -1;
    WEIR_TRY(check_trouble(ucx, request, deadline_ns));
    bool has_asked = ucx->asked_for_ns == deadline_ns;
    uint64_t end_ns = has_asked ? ucx->replies_due_ns : deadline_ns;
    ucx_progress_or_sleep(ucx, WEIR_MIN(until_ns, end_ns), n_idle);
    return WEIR_OK;
}

weir_status ucx_idle(struct ucx_state *ucx, const struct ucx_request *request, uint64_t deadline_ns,
                     unsigned *n_idle)
{
    uint64_t until_ns = UINT64_MAX;
    if (ucx->comm->ps != NULL) {
        /* While workers wait for each other their pieces go on. */
        comm_ps_progress(ucx->comm);
        until_ns = comm_ps_next_ns(ucx->comm);
    }
    return ucx_idle_until(ucx, request, until_ns, deadline_ns, n_idle);
}

void ucx_cancel(struct ucx_state *ucx, struct ucx_request *request)
{
    unsigned n_idle = 0;
    if (request->handle == NULL) {
        return;
    }
    ucx->fabric->cancel(ucx, request);
    while (request->handle != NULL && test(ucx, request) == UCX_PENDING) {
        ucx_progress_or_sleep(ucx, in_ms(1), &n_idle);
    }
}

weir_status ucx_test_all(struct ucx_state *ucx, struct ucx_request *requests, size_t n,
                         bool *out_is_over)
{
    *out_is_over = false;
    for (size_t i = 0; i < n; i++) {
        enum ucx_outcome outcome = requests[i].handle != NULL ? test(ucx, &requests[i]) : UCX_DONE;
        if (outcome == UCX_PENDING) {
            return WEIR_OK;
        }
        WEIR_TRY(check_outcome(ucx, requests[i].rank, outcome));
    }
    *out_is_over = true;
    return WEIR_OK;
}

weir_status ucx_wait(struct ucx_state *ucx, struct ucx_request *request, uint64_t deadline_ns)
{
    unsigned n_idle = 0;
    ucx->waits_for = -1;
    while (request->handle != NULL) {
        enum ucx_outcome outcome = test(ucx, request);
        if (outcome != UCX_PENDING) {
            return check_outcome(ucx, request->rank, outcome);
        }
        WEIR_TRY(ucx_idle(ucx, request, deadline_ns, &n_idle));
    }
    return comm_failed(ucx->comm);
}

weir_status ucx_wait_all(struct ucx_state *ucx, struct ucx_request *requests, size_t n,
                         uint64_t deadline_ns)
{
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(ucx_wait(ucx, &requests[i], deadline_ns));
    }
    return WEIR_OK;
}
