/**
 * Inside of the gRPC server. server.c: the thread, connections, time. call.c: what becomes of a call,
 * and answers from other threads. session.c: what nghttp2 says of a connection's frames and streams.
 *
 * A call is counted by two: its stream, as long as that is open, and whoever is to answer it. The
 * stream's side belongs to the server's thread.
 */
#ifndef WEIR_GRPC_SERVER_PRIVATE_H
#define WEIR_GRPC_SERVER_PRIVATE_H

#include "base/arena.h"
#include "base/peers.h"
#include "grpc/grpc.h"
#include "message.h"

#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>

#define HEADERS_MAX_BYTES 16384
#define METADATA_MAX      64
#define BEGUN_MAX_MS      30000             /* quiet of who has sent half a call, or none yet */
#define OUT_MAX_BYTES     ((size_t)1 << 18) /* given by nghttp2 and not yet sent */
#define SLOW_BYTES_S      4096              /* the least rate of a message, over BEGUN_MAX_MS */
#define FLOOD_WINDOW_MS   10000
#define FLOOD_FRAMES_MAX  10000
#define FLOOD_RESETS_MAX  2000
#define MESSAGE_TEXT_MAX  1024

struct metadata {
    const char *name, *value;
};

struct connection;

/* An address: with its bytes of admitted calls, and of others. */
struct grpc_peer {
    struct weir_peer peer; /* used by its connections and its calls */
    struct weir_held strange;
    int n_open; /* connections */
};

struct weir_grpc_call {
    atomic_int n_refs;
    struct weir_grpc_server *server;
    struct connection *connection; /* NULL: the stream is closed */
    int32_t stream_id;
    struct weir_arena arena;
    struct metadata metadata[METADATA_MAX];
    size_t n_metadata, headers_bytes;
    const char *content_type, *method, *timeout;
    struct weir_buf body;
    struct grpc_peer *peer; /* of its connection */
    size_t n_held;          /* of what the server holds for all, and for the peer */
    size_t n_kept_back;     /* of its window: given back once it is admitted */
    struct weir_pace pace;  /* of its message */
    struct weir_grpc_request request;
    bool has_ended;   /* the client sends no more */
    bool is_admitted; /* its message may come */
    bool is_known;    /* and its sender is known */
    bool is_let_in;   /* weir_grpc_admit was called: among the answers; lock */
    bool is_handled;  /* the handler has it, or had it */
    bool is_answered; /* something was submitted on the stream */
    atomic_bool is_gone;

    /* The answer. */
    enum weir_grpc_code code;
    char text[MESSAGE_TEXT_MAX];
    struct weir_buf reply;
    bool has_reply;
    uint8_t prefix[MESSAGE_PREFIX_BYTES];
    size_t n_sent; /* of prefix and reply */

    struct weir_grpc_call *next, *previous; /* of the connection */
    struct weir_grpc_call *next_done;       /* in the list of answers */
};

struct connection {
    struct weir_grpc_server *server;
    int fd;
    nghttp2_session *session;
    struct weir_grpc_call *calls;
    size_t n_calls;
    struct grpc_peer *peer;
    struct weir_buf out;
    size_t n_sent;    /* of out */
    int64_t since_ms; /* of the last byte that brought something on */
    int64_t flood_since_ms;
    int n_frames, n_resets;
    bool is_waiting_to_write, is_closing, is_known; /* known: a call was admitted */
    struct connection *next, *previous;
};

struct weir_grpc_server {
    struct weir_grpc_config config;
    weir_grpc_handler_fn handler;
    void *context;
    int listen_fd, wake_fd, epoll_fd, port;
    pthread_t thread;
    struct connection *connections, *closed;
    int n_connections;
    struct weir_peers peers;  /* with the bytes of admitted calls */
    struct weir_held strange; /* bytes of calls that are not admitted yet */
    int64_t now_ms, next_due_ms;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;

    pthread_mutex_t lock; /* of these: */
    pthread_cond_t all_answered;
    struct weir_grpc_call *done;
    size_t n_out; /* calls that the handler has */
    bool is_stopping;
};

/* session.c */
weir_status grpc_session_make_callbacks(struct weir_grpc_server *server);
/** False: no memory. */
bool grpc_session_begin(struct connection *connection);
/** Bytes of the client. False: the connection is to be closed. */
bool grpc_session_take(struct connection *connection, const uint8_t *bytes, size_t len);
/** Work was done on it: as many more frames that bring nothing on are no flood. */
void grpc_session_credit(struct connection *connection, int n_frames);
/** Put the call's answer on its stream. */
void grpc_session_submit(struct weir_grpc_call *call);

/* server.c */
/** A connection of the server's thread, which owns `fd`. It may be closed already. */
struct connection *grpc_connection_open(struct weir_grpc_server *server, int fd,
                                        const struct sockaddr *address);
void grpc_connection_close(struct connection *connection);
/** Send what there is to send. It may close the connection. */
void grpc_connection_flush(struct connection *connection);
void grpc_connections_free_closed(struct weir_grpc_server *server);
/** Submit the answers that have come. False: the server stops. */
bool grpc_server_take_answers(struct weir_grpc_server *server);
void grpc_server_init(struct weir_grpc_server *server, const struct weir_grpc_config *config,
                      weir_grpc_handler_fn handler, void *context);
void grpc_server_fini(struct weir_grpc_server *server);
/** Time has passed: end what is overdue, slow or idle. */
void grpc_server_look_after(struct weir_grpc_server *server);

/* call.c */
void grpc_call_unref(struct weir_grpc_call *call);
/** The handler gives it back: answered, or let in. */
void grpc_call_take_back(struct weir_grpc_call *call);
/** Only the answer: who has the message may still read it. */
void grpc_call_submit_text(struct weir_grpc_call *call, enum weir_grpc_code code, const char *text);
/** The stream is over: whoever has the call sees it. */
void grpc_call_detach(struct weir_grpc_call *call);
/** The server itself answers, or ends what the handler has not answered in time. */
void grpc_call_refuse(struct weir_grpc_call *call, enum weir_grpc_code code, const char *text);
/** Ask whether its message may come. */
void grpc_call_ask(struct weir_grpc_call *call);
/** Hold bytes of its message; false: there is no room. */
bool grpc_call_hold(struct weir_grpc_call *call, size_t n);
/** Its message is whole: if it is admitted, the handler gets it. */
void grpc_call_handle(struct weir_grpc_call *call);
/** The client may send as much again as was kept back of the call's window. session.c */
void grpc_session_open_window(struct weir_grpc_call *call);

#endif
