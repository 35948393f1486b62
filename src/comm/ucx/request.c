#include "comm/ucx/ucx_private.h"

#include "base/clock.h"

#include <limits.h>
#include <poll.h>

enum {
    NOTICE_MS = 100,      /**< How long telling the others may hold up the failure. */
    ANSWER_MAX_MS = 2000, /**< Longest wait for answers after a deadline. */
    GOODBYE_MS = 1000,
    CLOSE_MS = 1000,
    SPINS_LEAST = 2, /**< Rounds of ucp_worker_progress before sleeping. */
    SPINS_MOST = 256,
};

_Static_assert(WEIR_COMM_MAX_RANKS <= 256, "a tag has 8 bits for the sender");

/* Operation 32 bits, phase 8, number within it 16, sender 8. */
static ucp_tag_t make_tag(uint32_t n_op, unsigned part, int sender)
{
    return (ucp_tag_t)n_op << 32 | (ucp_tag_t)part << 8 | (ucp_tag_t)sender;
}

static uint64_t in_ms(unsigned ms)
{
    return weir_mono_ns() + ms * UINT64_C(1000000);
}

/* ---- the list of what is in flight ------------------------------------------------------------
 */

static void track(struct ucx_state *ucx, struct ucx_request *request, void *handle)
{
    request->handle = handle;
    request->next = ucx->active;
    request->link = &ucx->active;
    if (ucx->active != NULL) {
        ucx->active->link = &request->next;
    }
    ucx->active = request;
}

static void untrack(struct ucx_request *request)
{
    *request->link = request->next;
    if (request->next != NULL) {
        request->next->link = request->link;
    }
    ucp_request_free(request->handle);
    request->handle = NULL;
}

/* UCS_INPROGRESS, or how the request ended; then it is no longer in flight. */
static ucs_status_t test(struct ucx_request *request)
{
    ucp_tag_recv_info_t info = {.length = request->bytes};
    ucs_status_t status = request->is_receive ? ucp_tag_recv_request_test(request->handle, &info)
                                              : ucp_request_check_status(request->handle);
    if (status == UCS_INPROGRESS) {
        return status;
    }
    untrack(request);
    return status == UCS_OK && info.length != request->bytes ? UCS_ERR_MESSAGE_TRUNCATED : status;
}

/* ---- waiting ------------------------------------------------------------------------------------
 */

/* Let UCX work; after a while without events sleep until there is one. Where spinning did not help
 * the next while is half as long, where it did twice: beside busy neighbours it only takes the core
 * away from who is waited for; on a quiet machine it spares waking up. */
static void progress_or_sleep(struct ucx_state *ucx, uint64_t deadline_ns, unsigned *n_idle)
{
    if (ucp_worker_progress(ucx->worker) != 0) {
        if (*n_idle > 0) {
            ucx->n_spins = WEIR_MIN(2 * ucx->n_spins, (unsigned)SPINS_MOST);
        }
        *n_idle = 0;
        return;
    }
    if (++*n_idle < ucx->n_spins || ucp_worker_arm(ucx->worker) != UCS_OK) {
        return;
    }
    ucx->n_spins = WEIR_MAX(ucx->n_spins / 2, (unsigned)SPINS_LEAST);
    uint64_t now = weir_mono_ns();
    uint64_t ms = now >= deadline_ns ? 0 : (deadline_ns - now + 999999) / 1000000;
    struct pollfd poll_fd = {.fd = ucx->event_fd, .events = POLLIN};
    (void)poll(&poll_fd, 1, (int)WEIR_MIN(ms, (uint64_t)1000));
    *n_idle = 0;
}

void ucx_finish(struct ucx_state *ucx, ucs_status_ptr_t handle, uint64_t deadline_ns)
{
    unsigned n_idle = 0;
    if (!UCS_PTR_IS_PTR(handle)) {
        return;
    }
    while (ucp_request_check_status(handle) == UCS_INPROGRESS && weir_mono_ns() < deadline_ns) {
        progress_or_sleep(ucx, deadline_ns, &n_idle);
    }
    ucp_request_free(handle);
}

void ucx_close_endpoints(struct ucx_state *ucx)
{
    static const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                              .flags = UCP_EP_CLOSE_FLAG_FORCE};
    uint64_t deadline_ns = in_ms(CLOSE_MS);
    unsigned n_idle = 0;
    for (struct ucx_request *i = ucx->active; i != NULL; i = i->next) {
        if (i->is_receive) {
            ucp_request_cancel(ucx->worker, i->handle);
        }
    }
    ucs_status_ptr_t closing[WEIR_COMM_MAX_RANKS];
    for (int r = 0; r < ucx->comm->size; r++) {
        closing[r] = NULL;
        if (ucx->peers[r].ep != NULL) {
            closing[r] = ucp_ep_close_nbx(ucx->peers[r].ep, &force);
            ucx->peers[r].ep = NULL;
        }
    }
    for (int r = 0; r < ucx->comm->size; r++) {
        ucx_finish(ucx, closing[r], deadline_ns);
    }
    while (ucx->active != NULL && weir_mono_ns() < deadline_ns) {
        for (struct ucx_request *i = ucx->active, *next; i != NULL; i = next) {
            next = i->next;
            (void)test(i);
        }
        if (ucx->active != NULL) {
            progress_or_sleep(ucx, deadline_ns, &n_idle);
        }
    }
}

/* ---- failure
 * ------------------------------------------------------------------------------------- */

weir_status ucx_expect_notice(struct ucx_state *ucx)
{
    static const ucp_request_param_t by_request = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    void *handle = ucp_tag_recv_nbx(ucx->worker, &ucx->notice, sizeof ucx->notice,
                                    make_tag(0, ucx_part(UCX_NOTICE, 0), 0),
                                    (ucp_tag_t)0xff << 24 /* from anybody */, &by_request);
    if (!UCS_PTR_IS_PTR(handle)) {
        return comm_fail(ucx->comm, WEIR_ERR_NOMEM, ucx->comm->rank, "no memory for a message");
    }
    ucx->notice_request =
        (struct ucx_request){.rank = -1, .is_receive = true, .bytes = sizeof ucx->notice};
    track(ucx, &ucx->notice_request, handle);
    return WEIR_OK;
}

static void free_sent(void *handle, ucs_status_t status, void *context)
{
    (void)status;
    (void)context;
    ucp_request_free(handle);
}

/* Send without waiting; `notice` stays where it is. Who cannot be reached is told nothing. */
static void send_aside(struct ucx_state *ucx, int rank, const struct ucx_notice *notice)
{
    static const ucp_request_param_t unattended = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
                                                   .cb.send = free_sent};
    const struct ucx_peer *peer = &ucx->peers[rank];
    if (peer->ep != NULL && peer->broken == UCS_OK) {
        (void)ucp_tag_send_nbx(peer->ep, notice, sizeof *notice,
                               make_tag(0, ucx_part(UCX_NOTICE, 0), ucx->comm->rank), &unattended);
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
        peer->answer = (struct ucx_notice){
            .status = UCX_HERE, .rank = ucx->comm->rank, .waits_for = ucx->waits_for};
        send_aside(ucx, notice->rank, &peer->answer);
    }
}

/* Is there bad news (in ucx->notice)? Goodbyes, questions and answers are dealt with on the way. */
static bool has_notice(struct ucx_state *ucx)
{
    while (ucx->notice_request.handle != NULL && test(&ucx->notice_request) == UCS_OK) {
        int rank = ucx->notice.rank, status = ucx->notice.status;
        bool is_bad = status != WEIR_ERR_END && status != UCX_ASK && status != UCX_HERE;
        if (is_bad || rank < 0 || rank >= ucx->comm->size) {
            return true;
        }
        take_note(ucx, &ucx->notice);
        if (ucx_expect_notice(ucx) != WEIR_OK) {
            return false; /* the failure is seen by whoever waits */
        }
    }
    return false;
}

static ucs_status_ptr_t flush(const struct ucx_state *ucx, int rank)
{
    static const ucp_request_param_t plain = {.op_attr_mask = 0};
    const struct ucx_peer *peer = &ucx->peers[rank];
    return peer->ep == NULL || peer->broken != UCS_OK ? NULL : ucp_ep_flush_nbx(peer->ep, &plain);
}

/* Tell every rank that can be reached, for a bounded time. */
static void send_notices(struct ucx_state *ucx, struct ucx_notice notice)
{
    static const ucp_request_param_t plain = {.op_attr_mask = 0};
    struct ucx_notice *copy = &ucx->notice; /* outlives the call, unlike the stack */
    ucs_status_ptr_t sends[WEIR_COMM_MAX_RANKS];
    uint64_t deadline_ns = in_ms(NOTICE_MS);
    *copy = notice;
    for (int r = 0; r < ucx->comm->size; r++) {
        const struct ucx_peer *peer = &ucx->peers[r];
        sends[r] = NULL;
        if (peer->ep != NULL && peer->broken == UCS_OK && r != notice.rank) {
            sends[r] =
                ucp_tag_send_nbx(peer->ep, copy, sizeof *copy,
                                 make_tag(0, ucx_part(UCX_NOTICE, 0), ucx->comm->rank), &plain);
        }
    }
    /* Sent means handed to UCX; only a flush hands it to the wire before the close drops it. One
     * by one: that of all ends with the first that fails. */
    ucs_status_ptr_t flushes[WEIR_COMM_MAX_RANKS];
    for (int r = 0; r < ucx->comm->size; r++) {
        flushes[r] = r == notice.rank ? NULL : flush(ucx, r);
    }
    for (int r = 0; r < ucx->comm->size; r++) {
        ucx_finish(ucx, sends[r], deadline_ns);
        ucx_finish(ucx, flushes[r], deadline_ns);
    }
}

weir_status ucx_fail(struct ucx_state *ucx, weir_status status, int rank, const char *what)
{
    status = comm_fail(ucx->comm, status, rank, "rank %d%s %s", rank,
                       rank == ucx->comm->rank ? " (this one)" : "", what);
    if (ucx->notice_request.handle != NULL) {
        /* Also stops a notice from arriving in the memory that now holds ours. */
        ucp_request_cancel(ucx->worker, ucx->notice_request.handle);
        unsigned n_idle = 0;
        uint64_t deadline_ns = in_ms(NOTICE_MS);
        while (test(&ucx->notice_request) == UCS_INPROGRESS && weir_mono_ns() < deadline_ns) {
            progress_or_sleep(ucx, deadline_ns, &n_idle);
        }
    }
    send_notices(ucx, (struct ucx_notice){.status = status, .rank = rank});
    ucx_close_endpoints(ucx);
    return status;
}

/* Another rank found out first. It has told everybody: pass nothing on. */
static weir_status fail_as_told(struct ucx_state *ucx)
{
    int rank = ucx->notice.rank;
    weir_status status = ucx->notice.status;
    const char *self = rank == ucx->comm->rank ? " (this one)" : "";
    switch (status) {
    case WEIR_ERR_PEER:
        status = comm_fail(ucx->comm, status, rank, "rank %d died or left", rank);
        break;
    case WEIR_ERR_TIMEOUT:
        status = comm_fail(ucx->comm, status, rank, "rank %d%s did not answer in time", rank, self);
        break;
    default:
        status = comm_fail(ucx->comm, WEIR_ERR_PEER, rank, "rank %d%s gave up", rank, self);
        break;
    }
    ucx_close_endpoints(ucx);
    return status;
}

weir_status ucx_hear(struct ucx_state *ucx, unsigned wait_ms)
{
    uint64_t deadline_ns = in_ms(wait_ms);
    unsigned n_idle = 0;
    do {
        progress_or_sleep(ucx, deadline_ns, &n_idle);
        if (has_notice(ucx)) {
            return fail_as_told(ucx);
        }
    } while (weir_mono_ns() < deadline_ns);
    return WEIR_OK;
}

static bool has_everybody_left(const struct ucx_state *ucx)
{
    for (int r = 0; r < ucx->comm->size; r++) {
        const struct ucx_peer *peer = &ucx->peers[r];
        if (peer->ep != NULL && peer->broken == UCS_OK && !peer->has_left) {
            return false;
        }
    }
    return true;
}

void ucx_say_goodbye(struct ucx_state *ucx)
{
    static const ucp_request_param_t plain = {.op_attr_mask = 0};
    uint64_t deadline_ns = in_ms(GOODBYE_MS);
    unsigned n_idle = 0;
    ucx->waits_for = -1;
    ucx->goodbye = (struct ucx_notice){.status = WEIR_ERR_END, .rank = ucx->comm->rank};
    /* Behind everything sent before, also what takes several messages to deliver. */
    ucx_finish(ucx, ucp_worker_flush_nbx(ucx->worker, &plain), deadline_ns);
    ucs_status_ptr_t sends[WEIR_COMM_MAX_RANKS];
    for (int r = 0; r < ucx->comm->size; r++) {
        const struct ucx_peer *peer = &ucx->peers[r];
        sends[r] =
            peer->ep == NULL || peer->broken != UCS_OK
                ? NULL
                : ucp_tag_send_nbx(peer->ep, &ucx->goodbye, sizeof ucx->goodbye,
                                   make_tag(0, ucx_part(UCX_NOTICE, 0), ucx->comm->rank), &plain);
    }
    while (!has_notice(ucx) && !has_everybody_left(ucx) && weir_mono_ns() < deadline_ns) {
        progress_or_sleep(ucx, deadline_ns, &n_idle);
    }
    for (int r = 0; r < ucx->comm->size; r++) {
        ucx_finish(ucx, sends[r], deadline_ns);
    }
    ucx_finish(ucx, ucp_worker_flush_nbx(ucx->worker, &plain), deadline_ns);
}

/* A rank that is gone and from which something is still awaited; -1 if there is none. What has come
 * but was not looked at yet counts as come. */
static int find_lost(const struct ucx_state *ucx)
{
    for (const struct ucx_request *i = ucx->active; i != NULL; i = i->next) {
        if (i->rank >= 0 &&
            (ucx->peers[i->rank].broken != UCS_OK || ucx->peers[i->rank].has_left) &&
            ucp_request_check_status(i->handle) != UCS_OK) {
            return i->rank;
        }
    }
    return -1;
}

/* The connection to `rank` is gone. If another one broke before, that was the first to fall, and
 * `rank` has only given up because of it: its word may have been lost with the connection. */
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
    uint64_t patience_ns = WEIR_MIN(ucx->comm->timeout_ns / 4, ANSWER_MAX_MS * UINT64_C(1000000));
    ucx->asked_for_ns = deadline_ns;
    ucx->answers_due_ns = weir_mono_ns() + patience_ns;
    ucx->question = (struct ucx_notice){.status = UCX_ASK, .rank = ucx->comm->rank};
    for (int r = 0; r < ucx->comm->size; r++) {
        ucx->peers[r].is_here = false;
        send_aside(ucx, r, &ucx->question);
    }
}

/* From the rank that is waited for along the answers to one that gave none. If they lead in a
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
        return fail_as_told(ucx);
    }
    weir_status failed = comm_failed(ucx->comm);
    if (failed != WEIR_OK) {
        ucx_close_endpoints(ucx); /* interrupted */
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
    if (weir_mono_ns() < ucx->answers_due_ns) {
        return WEIR_OK;
    }
    return ucx_fail(ucx, WEIR_ERR_TIMEOUT, find_late(ucx, request->rank), "did not answer in time");
}

/* ---- messages
 * ------------------------------------------------------------------------------------- */

static weir_status judge(struct ucx_state *ucx, int rank, ucs_status_t status)
{
    if (status == UCS_OK) {
        return WEIR_OK;
    }
    if (status == UCS_ERR_MESSAGE_TRUNCATED) {
        return ucx_fail(ucx, WEIR_ERR_INVALID, rank, "disagrees on the size of the operation");
    }
    if (status == UCS_ERR_NO_MEMORY) {
        return ucx_fail(ucx, WEIR_ERR_NOMEM, ucx->comm->rank, "has no memory for a message");
    }
    if (has_notice(ucx)) {
        return fail_as_told(ucx);
    }
    return fail_lost(ucx, rank);
}

static weir_status started(struct ucx_state *ucx, struct ucx_request *request,
                           ucs_status_ptr_t handle)
{
    if (UCS_PTR_IS_PTR(handle)) {
        track(ucx, request, handle);
        return WEIR_OK;
    }
    return judge(ucx, request->rank, UCS_PTR_STATUS(handle));
}

weir_status ucx_send(struct ucx_state *ucx, int rank, const void *buf, size_t bytes, uint32_t n_op,
                     unsigned part, struct ucx_request *request)
{
    static const ucp_request_param_t plain = {.op_attr_mask = 0};
    const struct ucx_peer *peer = &ucx->peers[rank];
    *request = (struct ucx_request){.rank = rank, .bytes = bytes};
    if (peer->ep == NULL || peer->broken != UCS_OK) {
        return judge(ucx, rank, UCS_ERR_CONNECTION_RESET);
    }
    return started(
        ucx, request,
        ucp_tag_send_nbx(peer->ep, buf, bytes, make_tag(n_op, part, ucx->comm->rank), &plain));
}

weir_status ucx_receive(struct ucx_state *ucx, int rank, void *buf, size_t bytes, uint32_t n_op,
                        unsigned part, struct ucx_request *request)
{
    /* Always by request: its end tells how many bytes came. */
    static const ucp_request_param_t by_request = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    *request = (struct ucx_request){.rank = rank, .is_receive = true, .bytes = bytes};
    return started(ucx, request,
                   ucp_tag_recv_nbx(ucx->worker, buf, bytes, make_tag(n_op, part, rank),
                                    ~(ucp_tag_t)0, &by_request));
}

weir_status ucx_idle(struct ucx_state *ucx, const struct ucx_request *request, uint64_t deadline_ns,
                     unsigned *n_idle)
{
    ucx->waits_for = request->handle != NULL ? request->rank : -1;
    WEIR_TRY(check_trouble(ucx, request, deadline_ns));
    bool has_asked = ucx->asked_for_ns == deadline_ns;
    progress_or_sleep(ucx, has_asked ? ucx->answers_due_ns : deadline_ns, n_idle);
    return WEIR_OK;
}

weir_status ucx_test_all(struct ucx_state *ucx, struct ucx_request *requests, size_t n,
                         bool *out_is_over)
{
    *out_is_over = false;
    for (size_t i = 0; i < n; i++) {
        ucs_status_t status = requests[i].handle != NULL ? test(&requests[i]) : UCS_OK;
        if (status == UCS_INPROGRESS) {
            return WEIR_OK;
        }
        WEIR_TRY(judge(ucx, requests[i].rank, status));
    }
    *out_is_over = true;
    return WEIR_OK;
}

weir_status ucx_wait(struct ucx_state *ucx, struct ucx_request *request, uint64_t deadline_ns)
{
    unsigned n_idle = 0;
    ucx->waits_for = -1;
    while (request->handle != NULL) {
        ucs_status_t status = test(request);
        if (status != UCS_INPROGRESS) {
            return judge(ucx, request->rank, status);
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
