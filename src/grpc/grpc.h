/**
 * gRPC server: unary calls over HTTP/2 in the clear ("prior knowledge"), by nghttp2.
 *
 * One thread owns every connection (epoll). A call is one message in, one message out. When its headers
 * are whole, config.admit is asked whether the message may come; when that is whole, the handler is
 * called. Both run on that thread and must not block. The handler answers at once or later, from any
 * thread, by weir_grpc_answer, exactly once.
 *
 *     static void on_call(void *context, struct weir_grpc_call *call)
 *     {
 *         const struct weir_grpc_request *request = weir_grpc_call_request(call);
 *         … request->path "/package.Service/Method", request->message …
 *         weir_grpc_answer(call, WEIR_GRPC_OK, "", &reply);
 *     }
 *     weir_grpc_server_start(&(struct weir_grpc_config){.listen = "127.0.0.1:0"}, on_call, NULL,
 *                            &server, err);
 *
 * Not supported, and answered so: streams of messages, compressed messages, TLS (a proxy in front ends
 * it).
 *
 * Maximums and what happens at them:
 *  - a message over max_message_bytes: RESOURCE_EXHAUSTED, and the stream is reset.
 *  - all messages that are held over max_held_bytes, or those of one address (base/peers.h) over half of
 *    it: the same for the one that comes. Of calls that are not admitted yet a quarter as much is held
 *    beside that, by no more than a window of 64 KiB each.
 *  - a message slower than 4 KiB/s over 30 s: DEADLINE_EXCEEDED, and the stream is reset.
 *  - max_streams calls at a time on a connection: nghttp2 refuses more, as the client was told.
 *  - max_connections: the oldest connection without an admitted call gives way, else the new one is
 *    closed at once; so is one over a quarter of them from one address.
 *  - headers over 16 KiB: the stream is reset.
 *  - a connection without a call for idle_timeout_s, 30 s if none was ever admitted, or one whose begun
 *    messages do not grow for 30 s: it is closed.
 *  - more than 10,000 frames that bring no call on, or 2,000 streams that the client resets, in 10 s:
 *    the connection is closed.
 *  - a deadline of the client (grpc-timeout) that passes: DEADLINE_EXCEEDED; the handler's answer is
 *    then dropped.
 */
#ifndef WEIR_GRPC_GRPC_H
#define WEIR_GRPC_GRPC_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Codes of gRPC (grpc/grpc, doc/statuscodes.md), those that are used. */
enum weir_grpc_code {
    WEIR_GRPC_OK = 0,
    WEIR_GRPC_CANCELLED = 1,
    WEIR_GRPC_INVALID_ARGUMENT = 3,
    WEIR_GRPC_DEADLINE_EXCEEDED = 4,
    WEIR_GRPC_NOT_FOUND = 5,
    WEIR_GRPC_PERMISSION_DENIED = 7,
    WEIR_GRPC_RESOURCE_EXHAUSTED = 8,
    WEIR_GRPC_UNIMPLEMENTED = 12,
    WEIR_GRPC_INTERNAL = 13,
    WEIR_GRPC_UNAVAILABLE = 14,
    WEIR_GRPC_UNAUTHENTICATED = 16,
};

/** The code that says what a status says. Pure. */
enum weir_grpc_code weir_grpc_code_of(weir_status status);

struct weir_grpc_server;
struct weir_grpc_call;

/** Lives until the call is answered. */
struct weir_grpc_request {
    const char *path;
    const uint8_t *message;
    size_t len;
    const char *authorization; /**< That metadata; NULL: none. */
    int64_t deadline_ms;       /**< By weir_mono_ms; 0: none. */
};

const struct weir_grpc_request *weir_grpc_call_request(const struct weir_grpc_call *call);

/** Metadata by its name (lower case); NULL: none. Of each call the first 64 are kept. */
const char *weir_grpc_call_metadata(const struct weir_grpc_call *call, const char *name);

/** Has the client cancelled it, or gone, or its deadline passed? Any thread, before the answer. */
bool weir_grpc_call_is_gone(const struct weir_grpc_call *call);

/**
 * Answer, and be done with the call. Any thread.
 *
 * @param message  A sentence; "" with OK.
 * @param reply    The message's bytes, whose memory is taken; NULL: no message. One whose status is not
 *                 OK answers INTERNAL instead.
 */
void weir_grpc_answer(struct weir_grpc_call *call, enum weir_grpc_code code, const char *message,
                      struct weir_buf *reply);

typedef void (*weir_grpc_handler_fn)(void *context, struct weir_grpc_call *call);

enum weir_grpc_admission {
    WEIR_GRPC_ASKS,    /**< weir_grpc_admit or weir_grpc_answer will be called for it, or has been,
                             exactly once; till then the client sends no more than a first window. */
    WEIR_GRPC_ADMITS,  /**< Its sender is known. */
    WEIR_GRPC_IS_OPEN, /**< A stranger's, which may come: up to WEIR_GRPC_OPEN_BYTES. */
};

#define WEIR_GRPC_OPEN_BYTES ((size_t)16 << 10)

/** May this call's message come? The headers are there, of the message nothing. On the server's
 *  thread. */
typedef enum weir_grpc_admission (*weir_grpc_admit_fn)(void *context, struct weir_grpc_call *call);

/** The message may come; the call is the server's again. Any thread. */
void weir_grpc_admit(struct weir_grpc_call *call);

/** Zero means the default for every number. Strings are copied. */
struct weir_grpc_config {
    const char *listen;       /**< "127.0.0.1:0" */
    size_t max_message_bytes; /**< Default 64 MiB. */
    size_t max_held_bytes;    /**< Default 256 MiB. */
    int max_connections;      /**< Default 1024. */
    int max_streams;          /**< Of a connection; default 256. */
    int idle_timeout_s;       /**< Default 300. */
    weir_grpc_admit_fn admit; /**< Gets the handler's context. NULL: every message may come. */
};

/** @return As weir_listen_open; IO if the thread cannot be started. Nothing is left behind. */
weir_status weir_grpc_server_start(const struct weir_grpc_config *config,
                                   weir_grpc_handler_fn handler, void *context,
                                   struct weir_grpc_server **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

int weir_grpc_server_port(const struct weir_grpc_server *server);

/**
 * Close every connection, and wait until the calls that the handler has are answered. Whoever holds
 * them sees that they are gone. Frees the server; NULL is accepted.
 */
void weir_grpc_server_stop(struct weir_grpc_server *server);

#endif
