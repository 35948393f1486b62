/**
 * Exchange: one request to a service, or one WebSocket, on its way.
 *
 * It is begun on a handler thread of the services' listener and worked on by one of two threads of the
 * proxy: forward.c (HTTP, by libcurl) or websocket.c (bytes). It is *ready* when the head of the answer
 * is there, or it is known that there will be none; then the listener's handler, which waits without a
 * thread, is called again.
 */
#ifndef WEIR_PROXY_EXCHANGE_H
#define WEIR_PROXY_EXCHANGE_H

#include "http/stream.h"
#include "proxy/proxy.h"
#include "proxy/rules.h"

#include <pthread.h>
#include <stdatomic.h>

#define EXCHANGE_ARENA_MAX_BYTES ((size_t)1 << 20)

struct exchange {
    struct weir_proxy *proxy;
    pthread_mutex_t lock;
    int n_refs;                    /* lock */
    struct weir_http_later *later; /* lock: the handler waits for is_ready */
    bool is_ready;                 /* lock; what follows under "answer" does not change any more */
    atomic_bool is_abandoned;      /* the request is over: nobody wants the rest */
    atomic_bool wants_look;        /* a pipe has moved */
    struct weir_arena arena;
    struct use *use; /* counts it; proxy's */

    /* The request. Copied; nothing changes after it was begun. */
    struct proxy_place place;
    struct weir_proxy_service service;
    const char *method, *target; /* as the program is asked */
    struct rules_header *headers;
    size_t n_headers;
    int64_t body_bytes; /* -1: in chunks; 0: none */
    struct weir_http_pipe *in, *out;
    bool is_websocket;
    bool wants_page; /* a person looks at the answer */

    /* The answer. */
    weir_status status;
    char message[160];
    struct rules_head head;
    int64_t answer_bytes; /* -1: not known */

    void *work; /* of the thread that works on it */
    struct exchange *next;
};

/** One reference. */
struct exchange *exchange_create(struct weir_proxy *proxy);
struct exchange *exchange_ref(struct exchange *x);
void exchange_unref(struct exchange *x);

/** The head is there (OK), or there will be none. Once; later calls change nothing. */
void exchange_ready(struct exchange *x, weir_status status, const char *message);
bool exchange_is_ready(struct exchange *x);
/** Nobody is there any more to read an answer that has not come yet. */
bool exchange_is_gone(struct exchange *x);

/** Take over from the answer's lines what the listener's handler needs of them. CORRUPT if its length is
 *  said in two ways. */
weir_status exchange_take_head(struct exchange *x, const struct rules_head *head);

/** What is told of a service whose tunnel (agent/tunnel.h) did not open.
 *  @param http_status  What it answered; 0: it was not reached; 200: it did, and the program broke off. */
const char *exchange_closed_tunnel(long http_status);

/* ---- the two threads ---------------------------------------------------------------------------- */

struct forwarder;
struct websockets;

weir_status forwarder_start(struct forwarder **out, struct weir_error *err) WEIR_MUST_CHECK;
/** Takes a reference of its own. False: it is stopping. */
bool forwarder_begin(struct forwarder *forwarder, struct exchange *x);
/** Look at what was abandoned. */
void forwarder_wake(struct forwarder *forwarder);
/** All exchanges end; none begins after that. NULL is accepted, here and below. */
void forwarder_stop(struct forwarder *forwarder);
void forwarder_destroy(struct forwarder *forwarder);

weir_status websockets_start(struct weir_proxy *proxy, struct websockets **out,
                             struct weir_error *err) WEIR_MUST_CHECK;
bool websockets_begin(struct websockets *websockets, struct exchange *x);
/** The browser's side is there; on an I/O thread of the listener. False: it is stopping. */
bool websockets_join(struct websockets *websockets, struct exchange *x,
                     struct weir_http_upgraded *upgraded, int fd, const void *extra,
                     size_t extra_len);
void websockets_wake(struct websockets *websockets);
void websockets_stop(struct websockets *websockets);
void websockets_destroy(struct websockets *websockets);

/* ---- of the proxy -------------------------------------------------------------------------------- */

/** Count one of the service's, or LIMIT with which bound it meets. */
weir_status use_begin(struct weir_proxy *proxy, const char *id, const char *project,
                      struct use **out, struct weir_error *err) WEIR_MUST_CHECK;
void use_end(struct weir_proxy *proxy, struct use *use);
/** Something came from the browser. */
void use_touch(struct weir_proxy *proxy, struct use *use);
/** Tell the owner of what was used; called every second by one thread. */
void use_tell(struct weir_proxy *proxy, int64_t now_ms);

#endif
