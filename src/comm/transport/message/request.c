#include "comm/transport/message/message_private.h"

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

static void track(struct message_state *state, struct message_request *request)
{
    request->next = state->active;
    request->previous_next = &state->active;
    if (state->active != NULL) {
        state->active->previous_next = &request->next;
    }
    state->active = request;
}

/* MESSAGE_PENDING, or how the request ended; then it is no longer in flight. */
static enum message_outcome test(const struct message_state *state, struct message_request *request)
{
    enum message_outcome outcome = state->fabric->test(request);
    if (outcome != MESSAGE_PENDING) {
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
void message_progress_or_sleep(struct message_state *state, uint64_t deadline_ns, unsigned *n_idle)
{
    if (state->fabric->progress(state)) {
        if (*n_idle > 0) {
            state->n_spins = WEIR_MIN(2 * state->n_spins, state->n_spins_most);
        }
        *n_idle = 0;
        return;
    }
    if (++*n_idle < state->n_spins || !state->fabric->arm(state)) {
        return;
    }
    uint64_t now = weir_mono_ns();
    uint64_t left_ns = WEIR_MIN(now >= deadline_ns ? 0 : deadline_ns - now, LONGEST_SLEEP_NS);
    const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000),
                                  .tv_nsec = (long)(left_ns % 1000000000)};
    struct pollfd poll_fd = {.fd = state->event_fd, .events = POLLIN};
    (void)ppoll(&poll_fd, 1, &left, NULL);
    bool was_short = weir_mono_ns() - now < SHORT_NS;
    state->n_spins = was_short ? WEIR_MIN(2 * state->n_spins, state->n_spins_most)
                               : WEIR_MAX(state->n_spins / 2, (unsigned)SPINS_LEAST);
    *n_idle = 0;
}

void message_close_connections(struct message_state *state)
{
    uint64_t deadline_ns = in_ms(CLOSE_MS);
    unsigned n_idle = 0;
    for (struct message_request *i = state->active; i != NULL; i = i->next) {
        if (i->is_receive) {
            state->fabric->cancel(state, i);
        }
    }
    state->fabric->disconnect(state, deadline_ns);
    while (state->active != NULL && weir_mono_ns() < deadline_ns) {
        for (struct message_request *i = state->active, *next; i != NULL; i = next) {
            next = i->next;
            (void)test(state, i);
        }
        if (state->active != NULL) {
            message_progress_or_sleep(state, deadline_ns, &n_idle);
        }
    }
}

/* ---- failure -------------------------------------------------------------------------------- */

void message_peer_broke(struct message_state *state, int rank)
{
    if (!state->peers[rank].is_broken) {
        state->peers[rank].is_broken = true;
        state->first_broken = state->first_broken < 0 ? rank : state->first_broken;
        state->n_broken++;
    }
}

static uint64_t notice_tag(const struct message_state *state)
{
    return make_tag(0, message_part(MESSAGE_NOTICE, 0), state->comm->rank);
}

weir_status message_expect_notice(struct message_state *state)
{
    state->notice_request = (struct message_request){
        .rank = MESSAGE_ANYBODY, .is_receive = true, .bytes = sizeof state->notice};
    if (state->fabric->receive(state, &state->notice,
                               make_tag(0, message_part(MESSAGE_NOTICE, 0), 0),
                               UINT64_C(0xff) << 24, &state->notice_request) != MESSAGE_PENDING) {
        return comm_fail(state->comm, WEIR_ERR_NOMEM, state->comm->rank, "no memory for a message");
    }
    track(state, &state->notice_request);
    return WEIR_OK;
}

static bool is_reachable(const struct message_state *state, int rank)
{
    return state->peers[rank].is_connected && !state->peers[rank].is_broken;
}

/* Send without waiting; `notice` stays where it is. A rank that cannot be reached gets nothing. */
static void send_aside(struct message_state *state, int rank, const struct message_notice *notice)
{
    if (is_reachable(state, rank)) {
        state->fabric->send_aside(state, rank, notice, notice_tag(state));
    }
}

/* A notice that is no bad news. */
static void take_note(struct message_state *state, const struct message_notice *notice)
{
    struct message_peer *peer = &state->peers[notice->rank];
    if (notice->status == WEIR_ERR_END) {
        peer->has_left = true;
    } else if (notice->status == MESSAGE_HERE) {
        peer->is_here = true;
        peer->waits_for = notice->waits_for;
    } else {
        peer->reply = (struct message_notice){
            .status = MESSAGE_HERE, .rank = state->comm->rank, .waits_for = state->waits_for};
        send_aside(state, notice->rank, &peer->reply);
    }
}

/* Is there bad news (in state->notice)? Goodbyes, questions and replies are dealt with on the way. */
static bool has_notice(struct message_state *state)
{
    while (state->notice_request.handle != NULL &&
           test(state, &state->notice_request) == MESSAGE_DONE) {
        int rank = state->notice.rank, status = state->notice.status;
        bool is_bad = status != WEIR_ERR_END && status != MESSAGE_ASK && status != MESSAGE_HERE;
        if (is_bad || rank < 0 || rank >= state->comm->size) {
            return true;
        }
        take_note(state, &state->notice);
        if (message_expect_notice(state) != WEIR_OK) {
            return false; /* a thread that waits sees the failure */
        }
    }
    return false;
}

weir_status message_fail(struct message_state *state, weir_status status, int rank,
                         const char *what)
{
    status = comm_fail(state->comm, status, rank, "rank %d%s %s", rank,
                       rank == state->comm->rank ? " (this one)" : "", what);
    if (state->notice_request.handle != NULL) {
        /* Also stops a notice from arriving in the memory that now holds ours. */
        state->fabric->cancel(state, &state->notice_request);
        unsigned n_idle = 0;
        uint64_t deadline_ns = in_ms(NOTICE_MS);
        while (test(state, &state->notice_request) == MESSAGE_PENDING &&
               weir_mono_ns() < deadline_ns) {
            message_progress_or_sleep(state, deadline_ns, &n_idle);
        }
    }
    /* Outlives the call, unlike the stack. */
    state->notice = (struct message_notice){.status = status, .rank = rank};
    state->fabric->broadcast(state, &state->notice, notice_tag(state), rank, in_ms(NOTICE_MS));
    message_close_connections(state);
    return status;
}

/* Another rank found out first. Passed on: a third rank may see this one go before the first
 * one's notice arrives, and would report it. */
static weir_status fail_as_notified(struct message_state *state)
{
    int rank = state->notice.rank;
    weir_status status = state->notice.status;
    const char *self = rank == state->comm->rank ? " (this one)" : "";
    switch (status) {
    case WEIR_ERR_PEER:
        status = comm_fail(state->comm, status, rank, "rank %d died or left", rank);
        break;
    case WEIR_ERR_TIMEOUT:
        status =
            comm_fail(state->comm, status, rank, "rank %d%s did not reply in time", rank, self);
        break;
    default:
        status = comm_fail(state->comm, WEIR_ERR_PEER, rank, "rank %d%s gave up", rank, self);
        break;
    }
    state->fabric->broadcast(state, &state->notice, notice_tag(state), rank, in_ms(NOTICE_MS));
    message_close_connections(state);
    return status;
}

weir_status message_poll_notice(struct message_state *state, unsigned wait_ms)
{
    uint64_t deadline_ns = in_ms(wait_ms);
    unsigned n_idle = 0;
    do {
        message_progress_or_sleep(state, deadline_ns, &n_idle);
        if (has_notice(state)) {
            return fail_as_notified(state);
        }
    } while (weir_mono_ns() < deadline_ns);
    return WEIR_OK;
}

static bool has_everybody_left(const struct message_state *state)
{
    for (int r = 0; r < state->comm->size; r++) {
        if (is_reachable(state, r) && !state->peers[r].has_left) {
            return false;
        }
    }
    return true;
}

void message_send_goodbye(struct message_state *state)
{
    uint64_t deadline_ns = in_ms(GOODBYE_MS);
    unsigned n_idle = 0;
    state->waits_for = -1;
    state->goodbye = (struct message_notice){.status = WEIR_ERR_END, .rank = state->comm->rank};
    state->fabric->broadcast(state, &state->goodbye, notice_tag(state), -1, deadline_ns);
    while (!has_notice(state) && !has_everybody_left(state) && weir_mono_ns() < deadline_ns) {
        message_progress_or_sleep(state, deadline_ns, &n_idle);
    }
}

/* A rank that is gone and from which something is still awaited; -1 if there is none. What has come
 * but was not looked at yet counts as come. */
static int find_lost(const struct message_state *state)
{
    for (const struct message_request *i = state->active; i != NULL; i = i->next) {
        if (i->rank >= 0 && (state->peers[i->rank].is_broken || state->peers[i->rank].has_left) &&
            !state->fabric->has_come(i)) {
            return i->rank;
        }
    }
    return -1;
}

/* The connection to `rank` is gone. If another one broke before, that was the first to fall, and
 * `rank` has only given up because of it: its notice may have been lost with the connection. */
static weir_status fail_lost(struct message_state *state, int rank)
{
    int first = state->first_broken;
    if (state->peers[rank].has_left) {
        return message_fail(state, WEIR_ERR_PEER, rank, "left the group");
    }
    return message_fail(state, WEIR_ERR_PEER,
                        first >= 0 && !state->peers[first].has_left ? first : rank, "died or left");
}

static void ask_around(struct message_state *state, uint64_t deadline_ns)
{
    uint64_t patience_ns = WEIR_MIN(state->comm->timeout_ns / 4, REPLY_MAX_MS * UINT64_C(1000000));
    state->asked_for_ns = deadline_ns;
    state->replies_due_ns = weir_mono_ns() + patience_ns;
    state->question = (struct message_notice){.status = MESSAGE_ASK, .rank = state->comm->rank};
    for (int r = 0; r < state->comm->size; r++) {
        state->peers[r].is_here = false;
        send_aside(state, r, &state->question);
    }
}

/* From the rank that is waited for along the replies to one that gave none. If they lead in a
 * circle all are there and a message is not: then `rank`, from which it should have come. */
static int find_late(const struct message_state *state, int rank)
{
    int suspect = rank;
    for (int i = 0; i < state->comm->size; i++) {
        if (!state->peers[suspect].is_here) {
            return suspect;
        }
        suspect = state->peers[suspect].waits_for;
        if (suspect < 0 || suspect >= state->comm->size || suspect == state->comm->rank) {
            return rank;
        }
    }
    return rank;
}

/* Is there a reason to stop waiting for `request`? */
static weir_status check_trouble(struct message_state *state, const struct message_request *request,
                                 uint64_t deadline_ns)
{
    if (has_notice(state)) {
        return fail_as_notified(state);
    }
    weir_status failed = comm_failed(state->comm);
    if (failed != WEIR_OK) {
        message_close_connections(state); /* interrupted */
        return failed;
    }
    int lost = find_lost(state);
    if (lost >= 0) {
        return fail_lost(state, lost);
    }
    if (weir_mono_ns() < deadline_ns) {
        return WEIR_OK;
    }
    if (state->asked_for_ns != deadline_ns) {
        ask_around(state, deadline_ns);
    }
    if (weir_mono_ns() < state->replies_due_ns) {
        return WEIR_OK;
    }
    return message_fail(state, WEIR_ERR_TIMEOUT, find_late(state, request->rank),
                        "did not reply in time");
}

/* ---- messages ------------------------------------------------------------------------------- */

static weir_status check_outcome(struct message_state *state, int rank,
                                 enum message_outcome outcome)
{
    switch (outcome) {
    case MESSAGE_DONE:
        return WEIR_OK;
    case MESSAGE_TRUNCATED:
        return message_fail(state, WEIR_ERR_INVALID, rank,
                            "disagrees on the size of the operation");
    case MESSAGE_NOMEM:
        return message_fail(state, WEIR_ERR_NOMEM, state->comm->rank,
                            "has no memory for a message");
    default:
        return has_notice(state) ? fail_as_notified(state) : fail_lost(state, rank);
    }
}

static weir_status started(struct message_state *state, struct message_request *request,
                           enum message_outcome outcome)
{
    if (outcome == MESSAGE_PENDING) {
        track(state, request);
        return WEIR_OK;
    }
    request->handle = NULL;
    return check_outcome(state, request->rank, outcome);
}

weir_status message_send(struct message_state *state, int rank, const void *buf, size_t bytes,
                         uint32_t n_op, unsigned part, struct message_request *request)
{
    *request = (struct message_request){.rank = rank, .bytes = bytes};
    if (!is_reachable(state, rank)) {
        return check_outcome(state, rank, MESSAGE_LOST);
    }
    return started(
        state, request,
        state->fabric->send(state, buf, make_tag(n_op, part, state->comm->rank), request));
}

weir_status message_receive(struct message_state *state, int rank, void *buf, size_t bytes,
                            uint32_t n_op, unsigned part, struct message_request *request)
{
    *request = (struct message_request){.rank = rank, .is_receive = true, .bytes = bytes};
    return started(
        state, request,
        state->fabric->receive(state, buf, make_tag(n_op, part, rank), ~UINT64_C(0), request));
}

weir_status message_idle_until(struct message_state *state, const struct message_request *request,
                               uint64_t until_ns, uint64_t deadline_ns, unsigned *n_idle)
{
    state->waits_for = request->handle != NULL ? request->rank : -1;
    WEIR_TRY(check_trouble(state, request, deadline_ns));
    bool has_asked = state->asked_for_ns == deadline_ns;
    uint64_t end_ns = has_asked ? state->replies_due_ns : deadline_ns;
    message_progress_or_sleep(state, WEIR_MIN(until_ns, end_ns), n_idle);
    return WEIR_OK;
}

weir_status message_idle(struct message_state *state, const struct message_request *request,
                         uint64_t deadline_ns, unsigned *n_idle)
{
    uint64_t until_ns = UINT64_MAX;
    if (state->comm->ps != NULL) {
        /* While workers wait for each other their pieces go on. */
        comm_ps_progress(state->comm);
        until_ns = comm_ps_next_ns(state->comm);
    }
    return message_idle_until(state, request, until_ns, deadline_ns, n_idle);
}

void message_cancel(struct message_state *state, struct message_request *request)
{
    unsigned n_idle = 0;
    if (request->handle == NULL) {
        return;
    }
    state->fabric->cancel(state, request);
    while (request->handle != NULL && test(state, request) == MESSAGE_PENDING) {
        message_progress_or_sleep(state, in_ms(1), &n_idle);
    }
}

weir_status message_test_all(struct message_state *state, struct message_request *requests,
                             size_t n, bool *out_is_over)
{
    *out_is_over = false;
    for (size_t i = 0; i < n; i++) {
        enum message_outcome outcome =
            requests[i].handle != NULL ? test(state, &requests[i]) : MESSAGE_DONE;
        if (outcome == MESSAGE_PENDING) {
            return WEIR_OK;
        }
        WEIR_TRY(check_outcome(state, requests[i].rank, outcome));
    }
    *out_is_over = true;
    return WEIR_OK;
}

weir_status message_wait(struct message_state *state, struct message_request *request,
                         uint64_t deadline_ns)
{
    unsigned n_idle = 0;
    state->waits_for = -1;
    while (request->handle != NULL) {
        enum message_outcome outcome = test(state, request);
        if (outcome != MESSAGE_PENDING) {
            return check_outcome(state, request->rank, outcome);
        }
        WEIR_TRY(message_idle(state, request, deadline_ns, &n_idle));
    }
    return comm_failed(state->comm);
}

weir_status message_wait_all(struct message_state *state, struct message_request *requests,
                             size_t n, uint64_t deadline_ns)
{
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(message_wait(state, &requests[i], deadline_ns));
    }
    return WEIR_OK;
}
