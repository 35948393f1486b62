/**
 * Call: one request on its way through the gateway. The front that takes the request in (http_front.c,
 * grpc_front.c) fills it and posts it; the gateway's thread carries it out and calls `done`. From
 * gateway_post until then it belongs to the gateway, and what it points to must stay.
 */
#ifndef WEIR_GATEWAY_CALL_H
#define WEIR_GATEWAY_CALL_H

#include "gateway/gateway.h"
#include "gateway/receipt.h"
#include "gateway/reply.h"

#include <sys/uio.h>

struct gateway_call;
struct live_deployment;
struct live_replica;
struct upstream;
struct mirror;
struct figures;

/** The call belongs again to the front that posted it. On the gateway's thread, under no lock: must not block. */
typedef void (*gateway_done_fn)(struct gateway_call *call);

/** Has the client gone? Asked now and then on the gateway's thread. */
typedef bool (*gateway_gone_fn)(const struct gateway_call *call);

enum call_state { CALL_NEW, CALL_HELD, CALL_AT_REPLICA, CALL_DONE };

struct gateway_call {
    const char *deployment;
    int64_t version;         /**< The request names it; 0: it names none. */
    const char *key;         /**< What the choice of version sticks to; NULL: nothing. */
    const char *method;      /**< "GET" or "POST". */
    const char *path_before; /**< The replica's path is this, "/versions/V" and path_after. */
    const char *path_after;
    const char *headers; /**< Whole lines "Name: value\r\n", already clean; "" for none. */
    const struct iovec *body;
    size_t n_body;      /**< Pieces. */
    size_t body_bytes;  /**< All pieces together. */
    int64_t timeout_ms; /**< 0: the deployment's. */
    bool is_inference;  /**< Counts in the figures, and may be mirrored. */
    gateway_done_fn done;
    gateway_gone_fn is_gone; /**< NULL: nobody can go. */

    /** The answer: `status` OK, and what the replica answered with, or an error. */
    weir_status status;
    struct weir_error error;
    int retry_after_s; /**< With UNAVAILABLE. */
    int http_status;
    char content_type[REPLY_TYPE_BYTES];
    char times[REPLY_TIMES_BYTES]; /**< The replica's stages'; "": it says none. */
    int64_t inference_header_bytes, model_version;
    int output_class, output_score; /**< As the reply has them; with an answer of a replica only. */
    bool has_output;
    char receipt[WEIR_RECEIPT_BYTES]; /**< An inference's that went well; "": there is none. */
    struct weir_buf body_out;         /**< Owned by the call; gateway_call_fini. */

    /** The gateway's. */
    enum call_state state;
    struct live_deployment *to;
    struct live_replica *avoid; /**< It answered that it has no room. */
    struct upstream *upstream;
    struct mirror *mirror;   /**< NULL: there is no copy. */
    bool is_copy;            /**< It is the copy itself. */
    bool is_refused;         /**< At a bound, or held too long. */
    int64_t chosen;          /**< The version that answers; 0: none yet. */
    struct figures *figures; /**< That version's; NULL: none yet. */
    uint64_t ticket;
    int n_tries;
    uint64_t begun_ns;
    int64_t due_ms, hold_until_ms;
    struct gateway_call *next;          /**< In the inbox. */
    struct gateway_call *newer, *older; /**< Among all that are under way. */
    bool is_load; /**< Held, and counted so (n_held): it wants a replica that can come. */
    struct gateway_call *held_next, *held_previous; /**< Among those the deployment holds. */
};

/** Zero it first; free what an answer has left in it. */
void gateway_call_fini(struct gateway_call *call);

/** Send a call on its way. Any thread. A gateway that stops answers it UNAVAILABLE, maybe before
 *  this returns. */
void gateway_post(struct weir_gateway *gateway, struct gateway_call *call);

#endif
