/* A call's life: where it goes, waiting, trying again, its end. */
#include "gateway/choose.h"
#include "gateway/gateway_private.h"

#include "base/clock.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- lists --------------------------------------------------------------------------------------- */

static void link_call(struct weir_gateway *gateway, struct gateway_call *call)
{
    call->newer = NULL;
    call->older = gateway->newest;
    if (gateway->newest != NULL) {
        gateway->newest->newer = call;
    } else {
        gateway->oldest = call;
    }
    gateway->newest = call;
    gateway->n_calls++;
}

static void unlink_call(struct weir_gateway *gateway, struct gateway_call *call)
{
    if (call->newer != NULL) {
        call->newer->older = call->older;
    } else {
        gateway->newest = call->older;
    }
    if (call->older != NULL) {
        call->older->newer = call->newer;
    } else {
        gateway->oldest = call->newer;
    }
    gateway->n_calls--;
}

/* None is there, and none will come, by the table. */
static bool has_none(const struct live_deployment *to)
{
    return !weir_gateway_has_replica(to->row) && !to->row->can_start;
}

static void enter_hold(struct gateway_call *call)
{
    struct live_deployment *to = call->to;
    call->state = CALL_HELD;
    call->held_next = NULL;
    call->held_previous = to->held_last;
    if (to->held_last != NULL) {
        to->held_last->held_next = call;
    } else {
        to->held_first = call;
    }
    to->held_last = call;
    call->is_load = !has_none(to); /* what no replica comes for must not ask for more of them */
    figures_add(&to->figures->n_held, call->is_load);
}

static void leave_hold(struct gateway_call *call)
{
    struct live_deployment *to = call->to;
    if (call->state != CALL_HELD) {
        return;
    }
    if (call->held_next != NULL) {
        call->held_next->held_previous = call->held_previous;
    } else {
        to->held_last = call->held_previous;
    }
    if (call->held_previous != NULL) {
        call->held_previous->held_next = call->held_next;
    } else {
        to->held_first = call->held_next;
    }
    call->state = CALL_NEW;
    figures_add(&to->figures->n_held, -(int64_t)call->is_load);
}

/* ---- the end -------------------------------------------------------------------------------------- */

static void leave_version(struct gateway_call *call)
{
    if (call->figures != NULL) {
        figures_add(&call->figures->n_in_flight, -1);
        call->figures = figures_unref(call->figures);
    }
}

/** The version answered, and the request is none that it takes. */
static bool is_unaccepted(const struct gateway_call *call)
{
    return call->status == WEIR_OK && call->http_status >= 400 && call->http_status < 500;
}

static void count(const struct gateway_call *call)
{
    struct figures *figures = call->figures != NULL ? call->figures : call->to->figures;
    if (call->is_inference && call->has_output) { /* copies, too: they tell what a version says */
        figures_add(&figures->classes[call->output_class], 1);
        figures_add(&figures->scores[call->output_score], 1);
    }
    if (!call->is_inference || call->is_copy) {
        return;
    }
    if (call->status == WEIR_ERR_CANCELLED) {
        figures_add(&figures->n_cancelled, 1);
        return;
    }
    figures_add(&figures->n_requests, 1);
    figures_add(&figures->n_refused, call->is_refused);
    figures_add(&figures->n_failed, call->status != WEIR_OK || call->http_status >= 500);
    figures_add(&figures->n_unaccepted, is_unaccepted(call));
    if (call->status == WEIR_OK) {
        figures_add_us(figures, (int64_t)(weir_mono_ns() - call->begun_ns) / 1000);
    }
}

static void finish(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct live_deployment *to = call->to;
    if (to != NULL) {
        leave_hold(call);
        count(call);
        mirror_answer(gateway, call);
        leave_version(call);
        unlink_call(gateway, call);
        to->n_calls -= !call->is_copy;
        to->project->n_calls -= !call->is_copy;
        to->n_mirrors -= call->is_copy;
        call->avoid = live_replica_unref(call->avoid);
        call->to = live_deployment_unref(to);
    }
    call->state = CALL_DONE;
    call->done(call);
}

/* What came of it can be told by this. */
static void give_receipt(const struct weir_gateway *gateway, struct gateway_call *call)
{
    struct weir_receipt receipt = {
        .deployment = (char *)call->deployment, .version = call->chosen, .time_ms = weir_time_ms()};
    if (gateway->config.key != NULL && call->is_inference && !call->is_copy &&
        call->http_status == 200) {
        weir_random_bytes(&receipt.number, sizeof receipt.number);
        weir_receipt_make(gateway->config.key, &receipt, call->receipt);
    }
}

void dispatch_answer(struct weir_gateway *gateway, struct gateway_call *call, struct reply *reply)
{
    call->status = WEIR_OK;
    call->http_status = reply->http_status;
    memcpy(call->content_type, reply->content_type, sizeof call->content_type);
    memcpy(call->times, reply->times, sizeof call->times);
    call->inference_header_bytes = reply->inference_header_bytes;
    call->has_output = reply->output_class >= 0;
    call->output_class = reply->output_class;
    call->output_score = reply->output_score;
    call->model_version = reply->model_version > 0 ? reply->model_version : call->chosen;
    call->retry_after_s = reply->retry_after_s > 0 ? (int)WEIR_MIN(reply->retry_after_s, 3600) : 1;
    call->body_out = reply->body;
    give_receipt(gateway, call);
    weir_buf_init(&reply->body, ANSWER_MAX_BYTES);
    finish(gateway, call);
}

void dispatch_fail(struct weir_gateway *gateway, struct gateway_call *call, weir_status status,
                   const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    call->status = call->error.status = status;
    (void)vsnprintf(call->error.message, sizeof call->error.message, fmt, args);
    va_end(args);
    call->retry_after_s = 1;
    if (call->upstream != NULL) {
        upstream_abandon(gateway, call);
    }
    finish(gateway, call);
}

void dispatch_fail_all(struct weir_gateway *gateway)
{
    while (gateway->oldest != NULL) {
        dispatch_fail(gateway, gateway->oldest, WEIR_ERR_UNAVAILABLE, "the server is stopping");
    }
}

/* ---- choice --------------------------------------------------------------------------------------- */

static bool may_connect(const struct weir_gateway *gateway, const struct gateway_call *call,
                        const struct live_replica *replica)
{
    return replica->address_len > 0 && replica->backoff_until_ms <= gateway->now_ms &&
           replica != call->avoid;
}

struct live_replica *dispatch_choose(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct live_deployment *to = call->to;
    const struct weir_gateway_deployment *row = to->row;
    int32_t n_outstanding[WEIR_GATEWAY_REPLICAS_MAX];
    uint32_t ready = 0;
    for (size_t i = 0; i < row->n_replicas; i++) {
        ready |= may_connect(gateway, call, to->replicas[i]) ? row->replicas[i].ready : 0;
    }
    int i_version = call->version != 0 ? weir_gateway_version_find(row, call->version)
                                       : choose_version(row, ready, call->key, call->ticket);
    if (i_version < 0 || (ready >> i_version & 1) == 0) {
        return NULL;
    }
    for (size_t i = 0; i < row->n_replicas; i++) {
        const struct live_replica *replica = to->replicas[i];
        bool fits = may_connect(gateway, call, replica) &&
                    (row->replicas[i].ready >> i_version & 1) != 0 &&
                    replica->n_outstanding < CONNECTIONS_PER_REPLICA_MAX;
        n_outstanding[i] = fits ? replica->n_outstanding : -1;
    }
    int i_replica = choose_replica(n_outstanding, row->n_replicas, call->ticket);
    if (i_replica < 0) {
        return NULL;
    }
    leave_hold(call);
    leave_version(call);
    call->chosen = to->versions[i_version].version;
    call->figures = to->versions[i_version].figures;
    (void)atomic_fetch_add(&call->figures->n_refs, 1);
    figures_add(&call->figures->n_in_flight, 1);
    return to->replicas[i_replica];
}

static void ask_to_start(struct weir_gateway *gateway, struct live_deployment *to)
{
    if (to->row->can_start && gateway->config.start != NULL &&
        gateway->now_ms >= to->start_again_ms) {
        to->start_again_ms = gateway->now_ms + START_AGAIN_MS;
        gateway->config.start(gateway->config.start_context, to->name);
    }
}

/* No replica can take it now: it waits. If none will come, it waits for the next table alone: a deployment that was just seen
 * to serve may not be in this one yet. */
static void hold(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct live_deployment *to = call->to;
    if (call->is_copy) {
        dispatch_fail(gateway, call, WEIR_ERR_UNAVAILABLE, "no replica has the mirrored version");
        return;
    }
    call->avoid = live_replica_unref(call->avoid);
    if (call->hold_until_ms == 0) {
        int64_t most_ms = has_none(to) ? TABLE_AGE_MS : to->row->hold_ms;
        call->hold_until_ms = WEIR_MIN(gateway->now_ms + most_ms, call->due_ms);
    }
    enter_hold(call);
    ask_to_start(gateway, to);
}

/* True: it is on its way, or has ended. */
static bool send_now(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct live_deployment *to = call->to;
    if (to->row == NULL ||
        (call->version != 0 && weir_gateway_version_find(to->row, call->version) < 0)) {
        dispatch_fail(gateway, call, WEIR_ERR_NOT_FOUND,
                      "the deployment \"%s\" has ended, or does not serve version %lld any more",
                      to->name, (long long)call->version);
        return true;
    }
    struct live_replica *replica = dispatch_choose(gateway, call);
    if (replica == NULL) {
        return false;
    }
    call->state = CALL_AT_REPLICA;
    call->n_tries++;
    upstream_send(gateway, call, replica);
    return true;
}

/** Choose for it and send it, or hold it, or end it. */
static void try_replica(struct weir_gateway *gateway, struct gateway_call *call)
{
    if (!send_now(gateway, call)) {
        hold(gateway, call);
    }
}

void dispatch_held(struct weir_gateway *gateway, struct live_deployment *deployment)
{
    struct gateway_call *next;
    for (struct gateway_call *call = deployment->held_first; call != NULL; call = next) {
        next = call->held_next;
        if (!send_now(gateway, call) && call->version == 0) {
            break; /* what it waits for, those behind it wait for as well */
        }
    }
}

void dispatch_again(struct weir_gateway *gateway, struct gateway_call *call, const char *why)
{
    call->state = CALL_NEW;
    if (call->n_tries >= TRIES_MAX) {
        dispatch_fail(gateway, call, WEIR_ERR_UNAVAILABLE,
                      "no replica of \"%s\" could be reached in %d tries: %s", call->deployment,
                      TRIES_MAX, why);
        return;
    }
    figures_add(&call->to->figures->n_retried, call->is_inference && !call->is_copy);
    leave_version(call);
    try_replica(gateway, call);
}

/* ---- the beginning --------------------------------------------------------------------------------- */

static bool is_full(struct weir_gateway *gateway, struct gateway_call *call,
                    struct live_deployment *to)
{
    int32_t most = gateway->config.n_project_calls_max;
    if (to->n_calls < to->row->n_calls_max && to->project->n_calls < most) {
        return false;
    }
    call->is_refused = true;
    call->status = WEIR_ERR_UNAVAILABLE;
    count(call);
    bool is_deployment = to->n_calls >= to->row->n_calls_max;
    call->to = NULL; /* it never came in */
    dispatch_fail(gateway, call, WEIR_ERR_UNAVAILABLE,
                  "%s \"%s\" has as many requests under way as it may (%d); try again",
                  is_deployment ? "the deployment" : "the project",
                  is_deployment ? to->name : to->project->name,
                  is_deployment ? to->row->n_calls_max : most);
    return true;
}

void dispatch_begin(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct live_deployment *to = live_find(gateway, call->deployment);
    call->begun_ns = weir_mono_ns();
    call->ticket = gateway->ticket++;
    if (to == NULL) {
        dispatch_fail(gateway, call, WEIR_ERR_NOT_FOUND, "there is no deployment \"%s\"",
                      call->deployment);
        return;
    }
    call->to = to;
    if (call->is_inference) {
        atomic_store_explicit(&to->figures->last_ms, gateway->now_ms, memory_order_relaxed);
    }
    if (is_full(gateway, call, to)) {
        return;
    }
    to->n_refs++;
    to->n_calls++;
    to->project->n_calls++;
    link_call(gateway, call);
    int64_t timeout_ms = call->timeout_ms > 0 ? call->timeout_ms : to->row->timeout_ms;
    call->due_ms = gateway->now_ms + timeout_ms;
    gateway->next_sweep_ms = WEIR_MIN(gateway->next_sweep_ms, call->due_ms);
    try_replica(gateway, call);
}

void dispatch_copy(struct weir_gateway *gateway, struct gateway_call *copy,
                   struct live_deployment *to, int64_t due_ms)
{
    copy->to = to;
    copy->begun_ns = weir_mono_ns();
    copy->ticket = gateway->ticket++;
    copy->due_ms = due_ms;
    copy->inference_header_bytes = -1;
    to->n_refs++;
    to->n_mirrors++;
    link_call(gateway, copy);
    try_replica(gateway, copy);
}

/* ---- time ------------------------------------------------------------------------------------------ */

static void look_after(struct weir_gateway *gateway, struct gateway_call *call)
{
    int64_t now = gateway->now_ms;
    if (now >= call->due_ms) {
        dispatch_fail(gateway, call, WEIR_ERR_TIMEOUT, "the request's time is over%s",
                      call->state == CALL_HELD ? ", and no replica was there for it" : "");
    } else if (call->state == CALL_HELD && now >= call->hold_until_ms && has_none(call->to)) {
        dispatch_fail(
            gateway, call, WEIR_ERR_UNAVAILABLE,
            "the deployment \"%s\" has no replica that answers: `weir get deployments` says "
            "why",
            call->to->name);
    } else if (call->state == CALL_HELD && now >= call->hold_until_ms) {
        call->is_refused = true;
        dispatch_fail(gateway, call, WEIR_ERR_UNAVAILABLE,
                      "no replica of \"%s\" became ready in time; try again", call->deployment);
    } else if (call->is_gone != NULL && call->is_gone(call)) {
        dispatch_fail(gateway, call, WEIR_ERR_CANCELLED, "the client has gone");
    } else if (call->upstream != NULL) {
        upstream_check(gateway, call);
    }
}

int64_t dispatch_sweep(struct weir_gateway *gateway)
{
    struct gateway_call *newer;
    int64_t next_ms = gateway->n_calls > 0  ? gateway->now_ms + SWEEP_MS
                      : gateway->n_idle > 0 ? gateway->now_ms + IDLE_KEEP_MS / 4
                                            : INT64_MAX;
    for (struct gateway_call *call = gateway->oldest; call != NULL; call = newer) {
        newer = call->newer;
        int64_t due_ms = call->due_ms;
        look_after(gateway, call);
        if (due_ms > gateway->now_ms) {
            next_ms = WEIR_MIN(next_ms, due_ms);
        }
    }
    for (size_t i = 0; i < gateway->n_deployments; i++) {
        struct live_deployment *deployment = gateway->deployments[i];
        for (size_t j = 0; j < deployment->row->n_replicas; j++) {
            upstream_trim(gateway, deployment->replicas[j]);
        }
        if (deployment->held_first != NULL) {
            dispatch_held(gateway, deployment);
        }
        if (deployment->held_first != NULL) {
            ask_to_start(gateway, deployment);
        }
    }
    return next_ms;
}
