/* A call, from its headers to its answer: asked for, held, handed out and taken back. */
#include "grpc/server_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum weir_grpc_code weir_grpc_code_of(weir_status status)
{
    switch (status) {
    case WEIR_OK:
        return WEIR_GRPC_OK;
    case WEIR_ERR_INVALID:
    case WEIR_ERR_CORRUPT:
        return WEIR_GRPC_INVALID_ARGUMENT;
    case WEIR_ERR_NOT_FOUND:
        return WEIR_GRPC_NOT_FOUND;
    case WEIR_ERR_DENIED:
        return WEIR_GRPC_PERMISSION_DENIED;
    case WEIR_ERR_UNAUTH:
        return WEIR_GRPC_UNAUTHENTICATED;
    case WEIR_ERR_UNSUPPORTED:
        return WEIR_GRPC_UNIMPLEMENTED;
    case WEIR_ERR_LIMIT:
        return WEIR_GRPC_RESOURCE_EXHAUSTED;
    case WEIR_ERR_TIMEOUT:
        return WEIR_GRPC_DEADLINE_EXCEEDED;
    case WEIR_ERR_CANCELLED:
        return WEIR_GRPC_CANCELLED;
    case WEIR_ERR_UNAVAILABLE:
    case WEIR_ERR_NOMEM:
    case WEIR_ERR_PEER:
        return WEIR_GRPC_UNAVAILABLE;
    default:
        return WEIR_GRPC_INTERNAL;
    }
}

const struct weir_grpc_request *weir_grpc_call_request(const struct weir_grpc_call *call)
{
    return &call->request;
}

const char *weir_grpc_call_metadata(const struct weir_grpc_call *call, const char *name)
{
    for (size_t i = 0; i < call->n_metadata; i++) {
        if (strcmp(call->metadata[i].name, name) == 0) {
            return call->metadata[i].value;
        }
    }
    return NULL;
}

bool weir_grpc_call_is_gone(const struct weir_grpc_call *call)
{
    return atomic_load(&call->is_gone);
}

static struct weir_held *all_of(struct weir_grpc_call *call, struct weir_held **out_peer)
{
    *out_peer = call->is_known ? &call->peer->peer.held : &call->peer->strange;
    return call->is_known ? &call->server->peers.held : &call->server->strange;
}

bool grpc_call_hold(struct weir_grpc_call *call, size_t n)
{
    size_t most = call->server->config.max_held_bytes;
    struct weir_held *peer, *all = all_of(call, &peer);
    if (!weir_held_take(all, peer, n, call->is_known ? most : most / 4)) {
        return false;
    }
    call->n_held += n;
    return true;
}

static void release_held(struct weir_grpc_call *call)
{
    if (call->n_held > 0) {
        struct weir_held *peer, *all = all_of(call, &peer);
        weir_held_give(all, peer, call->n_held);
        call->n_held = 0;
    }
}

void grpc_call_unref(struct weir_grpc_call *call)
{
    if (atomic_fetch_sub(&call->n_refs, 1) == 1) {
        release_held(call);
        weir_peers_leave(&call->server->peers, &call->peer->peer);
        weir_buf_fini(&call->body);
        weir_buf_fini(&call->reply);
        weir_arena_fini(&call->arena);
        free(call);
    }
}

void grpc_call_detach(struct weir_grpc_call *call)
{
    struct connection *connection = call->connection;
    if (call->next != NULL) {
        call->next->previous = call->previous;
    }
    if (call->previous != NULL) {
        call->previous->next = call->next;
    } else {
        connection->calls = call->next;
    }
    connection->n_calls--;
    connection->since_ms = call->server->now_ms;
    call->connection = NULL;
    atomic_store(&call->is_gone, true);
    if (!call->is_handled) { /* else its message is somebody's until the answer */
        release_held(call);
    }
    grpc_call_unref(call);
}

void grpc_call_submit_text(struct weir_grpc_call *call, enum weir_grpc_code code, const char *text)
{
    call->code = code;
    (void)snprintf(call->text, sizeof call->text, "%s", text);
    call->has_reply = false;
    grpc_session_submit(call);
}

void grpc_call_refuse(struct weir_grpc_call *call, enum weir_grpc_code code, const char *text)
{
    if (!call->is_answered) {
        grpc_call_submit_text(call, code, text);
    }
}

/* Whoever has it answers it, or lets it in. */
static void hand_out(struct weir_grpc_call *call)
{
    struct weir_grpc_server *server = call->server;
    (void)atomic_fetch_add(&call->n_refs, 1);
    pthread_mutex_lock(&server->lock);
    server->n_out++;
    pthread_mutex_unlock(&server->lock);
}

static void hand_back(struct weir_grpc_call *call)
{
    struct weir_grpc_server *server = call->server;
    pthread_mutex_lock(&server->lock);
    server->n_out--;
    pthread_mutex_unlock(&server->lock);
    grpc_call_unref(call);
}

/* What it held as a stranger's is an admitted call's from now on. */
static void let_in(struct weir_grpc_call *call)
{
    size_t n = call->n_held;
    release_held(call);
    call->is_admitted = call->is_known = call->connection->is_known = true;
    call->pace = (struct weir_pace){.since_ms = call->server->now_ms};
    if (n > 0 && !grpc_call_hold(call, n)) {
        grpc_call_refuse(call, WEIR_GRPC_RESOURCE_EXHAUSTED,
                         "the server holds as many bytes as it may, for all or for one address");
        return;
    }
    grpc_session_open_window(call);
    if (call->has_ended) {
        grpc_call_handle(call);
    }
}

void grpc_call_ask(struct weir_grpc_call *call)
{
    struct weir_grpc_server *server = call->server;
    if (server->config.admit == NULL) {
        let_in(call);
        return;
    }
    hand_out(call);
    enum weir_grpc_admission admission = server->config.admit(server->context, call);
    if (admission != WEIR_GRPC_ASKS) {
        hand_back(call);
    }
    if (admission == WEIR_GRPC_ADMITS) {
        let_in(call);
    } else if (admission == WEIR_GRPC_IS_OPEN) {
        call->is_admitted = true;
        weir_buf_init(&call->body, WEIR_GRPC_OPEN_BYTES);
    }
}

void grpc_call_handle(struct weir_grpc_call *call)
{
    struct weir_grpc_server *server = call->server;
    struct weir_error err = {0};
    if (!call->is_admitted) {
        return; /* it is asked for */
    }
    weir_status status = grpc_message_read((const uint8_t *)call->body.data, call->body.len,
                                           server->config.max_message_bytes, &call->request.message,
                                           &call->request.len, &err);
    if (status != WEIR_OK) {
        grpc_call_refuse(call, weir_grpc_code_of(status), err.message);
        return;
    }
    call->is_handled = true;
    hand_out(call);
    server->handler(server->context, call);
}

/* Under the lock: once it is let go, a server that stops may be gone. */
static void give_to_thread(struct weir_grpc_call *call)
{
    struct weir_grpc_server *server = call->server;
    bool was_empty = server->done == NULL;
    call->next_done = server->done;
    server->done = call;
    if (--server->n_out == 0) {
        pthread_cond_broadcast(&server->all_answered);
    }
    if (was_empty) {
        (void)eventfd_write(server->wake_fd, 1);
    }
}

void weir_grpc_answer(struct weir_grpc_call *call, enum weir_grpc_code code, const char *message,
                      struct weir_buf *reply)
{
    struct weir_grpc_server *server = call->server;
    if (reply != NULL && reply->status != WEIR_OK) {
        code = WEIR_GRPC_INTERNAL;
        message = "the answer is longer than it may be";
        weir_buf_fini(reply);
        reply = NULL;
    }
    pthread_mutex_lock(&server->lock);
    if (!atomic_load(&call->is_gone)) { /* else the thread may have answered it, and nobody reads */
        call->code = code;
        (void)snprintf(call->text, sizeof call->text, "%s", message);
        call->has_reply = reply != NULL;
        if (reply != NULL) {
            weir_buf_fini(&call->reply);
            call->reply = *reply;
            weir_buf_init(reply, reply->max_bytes);
            reply = NULL;
        }
    }
    if (reply != NULL) {
        weir_buf_fini(reply);
    }
    give_to_thread(call);
    pthread_mutex_unlock(&server->lock);
}

void weir_grpc_admit(struct weir_grpc_call *call)
{
    struct weir_grpc_server *server = call->server;
    pthread_mutex_lock(&server->lock);
    call->is_let_in = true;
    give_to_thread(call);
    pthread_mutex_unlock(&server->lock);
}

/* It comes from the handler: answered, or let in. */
void grpc_call_take_back(struct weir_grpc_call *call)
{
    bool is_open = call->connection != NULL && !call->is_answered;
    if (call->is_let_in && is_open) {
        call->is_let_in = false;
        let_in(call);
    } else if (!call->is_let_in) {
        release_held(call);
        if (is_open) {
            grpc_session_submit(call);
        }
    }
    if (call->connection != NULL) {
        grpc_connection_flush(call->connection);
    }
    grpc_call_unref(call);
}
