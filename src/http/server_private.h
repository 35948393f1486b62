/**
 * Inside of the HTTP server: the exchange (one request and its answer) and its owner at each moment.
 *
 *   phase           owner                     leaves it by
 *   HEADERS, BODY   its I/O thread            the body is whole: suspend, put in the queue
 *   QUEUED          the queue (server->lock)  a handler thread takes it
 *   RUNNING         that handler thread       answer: resume; wait: WAITING; no event: WAITING;
 *                                             later: LATER
 *   LATER           who has the handle        weir_http_later_resume: QUEUED
 *   WAITING         waiting list (lock)       wake or time: QUEUED
 *   ANSWERED        its I/O thread            the answer was sent, or the connection broke
 *
 * From QUEUED to LATER the connection is suspended, so libmicrohttpd does not touch the exchange.
 * A stream of events goes ANSWERED → QUEUED each time the I/O thread has sent what it had.
 * Lock order: server->lock, then whatever libmicrohttpd locks inside suspend and resume.
 */
#ifndef WEIR_HTTP_SERVER_PRIVATE_H
#define WEIR_HTTP_SERVER_PRIVATE_H

#include "http/http.h"
#include "http/stream.h"
#include "http/unpack.h"

#include "base/peers.h"
#include "base/sha256.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define REQUEST_ARENA_MAX_BYTES ((size_t)64 << 20)
#define PACKED_MORE_BYTES       ((uint64_t)4096) /* a packed body may have more than what is in it */
#define DISCARD_MAX_BYTES       ((uint64_t)16 << 20) /* read past a limit so that the 413 arrives */
#define UPLOAD_PUSH_BYTES       ((uint64_t)32 << 20) /* between requests to write to the disk */
#define WAIT_MAX_MS             ((int64_t)10 * 60 * 1000)
#define SLOW_BODY_BYTES_S       4096
#define ADMIT_FREE_BYTES        ((uint64_t)16 << 10) /* a body that is taken before anybody asks */
/* libmicrohttpd's per connection: bounds the headers. A header or a cookie takes some 70 bytes beside its
 * text; several hundred cookies that use it up leave no room for an answer. */
#define CONNECTION_MEMORY_BYTES 65536

enum exchange_phase {
    PHASE_HEADERS,
    PHASE_ADMITTED, /* the admit function let it pass; body not begun */
    PHASE_BODY,
    PHASE_QUEUED,
    PHASE_RUNNING,
    PHASE_WAITING,
    PHASE_LATER,
    PHASE_ANSWERED,
};

/** What a handler thread has to do with a queued exchange. */
enum exchange_job { JOB_ADMIT, JOB_HANDLE, JOB_PULL };

struct http_pair {
    const char *name, *value;
    struct http_pair *next;
};

struct http_pairs {
    struct http_pair *head, *tail;
};

enum answer_kind { ANSWER_NONE, ANSWER_READY, ANSWER_WAIT, ANSWER_LATER, ANSWER_EVENTS };

struct weir_http_response {
    enum answer_kind kind;
    int http_status;
    struct MHD_Response *mhd; /* ANSWER_READY and ANSWER_EVENTS */
    const char *body;         /* for tests: what mhd holds, as long as it does; a file: NULL */
    size_t body_len;
    const char *content_type;
    struct http_pair *headers;
    bool has_bad_header;
    bool is_foreign;             /* without the common headers */
    bool is_kept_plain;          /* never packed */
    struct weir_http_pipe *pipe; /* what is sent comes from there; or NULL */
    weir_http_upgrade_fn upgrade_fn;
    uint64_t topics;
    int64_t wait_ms;
    weir_http_next_fn next_fn;
    void (*free_fn)(void *state);
    void *stream_state;
};

struct http_exchange {
    struct weir_http_request request;
    struct weir_http_response response;
    struct weir_arena arena;
    struct weir_http_server *server;
    struct MHD_Connection *connection;
    struct http_watch *watch;
    char *target; /* as sent, with the query */
    struct http_pairs query, headers;

    struct weir_http_body_rule rule;
    struct weir_buf body;
    bool is_packed;        /* it comes in an encoding that is unpacked */
    struct unpack *unpack; /* that body's, once it begins */
    uint64_t n_packed_bytes;
    int upload_fd; /* -1: none */
    char *upload_path;
    struct weir_sha256_stream upload_hash;
    char upload_sha256[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_upload_pushed_bytes; /* that the kernel was asked to write */
    char *head; /* the first n_head bytes of an upload, until they were looked at */
    size_t n_head;
    bool is_head_refused;
    uint64_t n_discarded_bytes;
    struct weir_error body_error; /* why the body was discarded; status OK: it was not */
    uint64_t n_reserved_bytes;    /* this one's part of the bodies in flight */

    bool is_held;              /* suspended for a pipe; under the pipe's lock */
    bool is_upgraded;          /* the connection is somebody else's */
    bool is_counted_later;     /* in n_later, until a call of the handler ends otherwise */
    bool is_later;             /* a handle is out; lock */
    bool is_resumed;           /* it came back before the handler returned; lock */
    enum exchange_phase phase; /* server->lock, or its I/O thread while that owns it */
    enum exchange_job job;
    bool is_fresh;    /* counts against its class's max_queued_of */
    bool is_accepted; /* counts in n_inflight */
    uint64_t seen_generation;
    int64_t deadline_ms; /* the wait's; 0: not set yet */
    int64_t quiet_since_ms;
    struct weir_buf pending; /* events not yet sent */
    size_t n_pending_sent;
    bool is_stream_over;
    struct http_exchange *next, *previous; /* in the queue, or in the waiting list */
};

/** One connection, watched for slowness. */
struct http_watch {
    int fd;
    bool is_reading; /* headers or body are awaited */
    bool is_in_body;
    bool is_sending;       /* an answer that is there: bytes are to be taken */
    struct weir_pace pace; /* since that began; of a body or an answer, its current window */
    bool is_known;         /* somebody proved an identity on it */
    bool is_cut;
    struct http_watch *next, *previous;
    struct http_peer *peer;           /* NULL: not known */
    struct http_watch *older, *newer; /* neighbours with the same peer */
};

/** An address, and what it holds. Lives as long as it has a connection; server->lock. */
struct http_peer {
    struct weir_peer peer; /* its connections: accepted and not yet closed; its bytes of bodies */
    size_t n_cut;          /* its connections that are shut down, and about to be closed */
    struct http_watch *oldest, *newest;
};

struct http_list {
    struct http_exchange *head, *tail;
    size_t n;
};

/** Requests of one class; server->lock. */
struct http_class {
    struct http_list queue;
    size_t n_fresh;   /* in the queue, and not woken from a wait */
    size_t n_running; /* in handlers */
};

/** Waits for connections, as long as there is room for one. */
struct http_acceptor {
    pthread_t thread;
    int listen_fd;
    int wake_fd; /* an eventfd: room again, or is_stopping; -1: none. Outlives the daemons. */
    atomic_bool is_stopping;
    bool is_started;
    size_t n_accepted; /* the acceptor's own */
    size_t n_handed,
        n_begun; /* connections given to I/O threads, and those that they began; locked */
};

/** An I/O thread and its connections. */
struct http_io {
    struct MHD_Daemon *daemon;
};

struct weir_http_server {
    struct weir_http_config config; /* with defaults filled in; strings owned */
    weir_http_handler_fn handler;
    void *context;
    struct http_acceptor acceptor;
    struct http_io *io; /* each a thread */
    size_t n_io;
    int port;
    char *tls_cert, *tls_key;

    pthread_mutex_t lock;
    pthread_cond_t work_ready;  /* a queue is not empty, or is_shutdown */
    pthread_cond_t timer_ready; /* next_deadline_ms became earlier, or is_shutdown */
    pthread_cond_t idle;        /* n_inflight, n_later or n_upgraded became 0 */
    struct http_class classes[WEIR_HTTP_CLASSES];
    int i_turn; /* the class that a handler looks at first */
    struct http_list waiting;
    _Atomic(struct http_exchange *) ended; /* upgraded ones that are over: see exchange_completed */
    struct http_watch *watches;
    struct weir_peers peers; /* with the bytes of all bodies in memory */
    size_t n_inflight, n_later, n_upgraded, n_streams, n_connections, n_busy;
    int64_t n_requests, n_refused;
    uint64_t generation, topic_generation[64];
    int64_t next_deadline_ms;
    bool is_stopping; /* no new requests */
    bool is_shutdown; /* threads end */
    bool is_started;  /* the threads below exist */
    size_t n_handler_threads;
    pthread_t *handler_threads;
    pthread_t timer_thread;
};

/* pool.c: queue, handler threads, waiting list, timer */
weir_status pool_start(struct weir_http_server *server, struct weir_error *err);
void pool_stop(struct weir_http_server *server);
/** Suspend and queue; false if the queue is full or the server stops (then nothing was done). */
bool pool_submit(struct http_exchange *x, enum exchange_job job);
/** Suspend a stream that has sent its events, and queue it for the next pull. Lock held. */
void pool_submit_pull(struct http_exchange *x);
/** A handle of the exchange goes out: it counts until it is resumed. */
void pool_begin_later(struct http_exchange *x);
/** No more requests; waits expire, streams end. */
void pool_begin_stop(struct weir_http_server *server);

/* peer.c: what each address holds. All but body_… with server->lock held. */
/** Count a connection of this address; one over its limit takes the place of the address's oldest
 *  idle one. False: it has none, and may not come in. */
bool peer_enter(struct weir_http_server *server, const struct sockaddr *address);
void peer_leave(struct weir_http_server *server, const struct sockaddr *address);
void peer_add_watch(struct weir_http_server *server, const struct sockaddr *address,
                    struct http_watch *watch);
void peer_remove_watch(struct http_watch *watch);
/** All places are taken and somebody waits: the address with most connections loses an idle one. If none
 *  has more than its part, the connection goes that has kept a stranger's place for longest. */
void peer_make_room(struct weir_http_server *server);
/** Shut a connection down; its I/O thread closes it. */
void watch_cut(struct http_watch *watch);
/** Take n_bytes more of the memory for bodies; false: the server's or the address's part is used
 *  up. All of an exchange's part is given back at once. Takes the lock. */
bool body_reserve(struct http_exchange *x, uint64_t n_bytes);
void body_release(struct http_exchange *x);

/* exchange.c: libmicrohttpd's callbacks */
void *exchange_begin(void *server, const char *uri, struct MHD_Connection *connection);
enum MHD_Result exchange_access(void *server, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_len, void **exchange);
void exchange_completed(void *server, struct MHD_Connection *connection, void **exchange,
                        enum MHD_RequestTerminationCode why);
/** Free those of `ended`; any thread, one at a time, without the lock. */
void exchange_reap(struct weir_http_server *server);
void connection_notify(void *server, struct MHD_Connection *connection, void **watch,
                       enum MHD_ConnectionNotificationCode code);
/** The watch of a connection expects headers, a body, or (is_reading false) nothing. */
void watch_expect(struct http_exchange *x, bool is_reading, bool is_in_body);
/** A body comes, unless that is known; so many bytes of it came. */
void watch_body(struct http_exchange *x);
void watch_count(struct http_exchange *x, size_t n_bytes);
/** So many bytes of an answer were given to libmicrohttpd, which asks for more once they are sent. */
void watch_send(struct http_exchange *x, size_t n_bytes);
/** The handler is done: what of the body's file it has not taken is removed. */
void exchange_drop_upload(struct http_exchange *x);

/* request.c */
/** Fill method, path, segments, query, headers from the connection. INVALID: a malformed target. */
weir_status request_fill(struct http_exchange *x, const char *method, struct weir_error *err);
/** Can the body be understood in one way only? By the headers added so far. */
weir_status request_check_framing(const struct http_exchange *x, struct weir_error *err);
/** A name of RFC 9110. */
bool request_is_token(const char *name);
/** Its parts that need no connection: path, segments and query from x->target; one more header. */
weir_status request_read_target(struct http_exchange *x, struct weir_error *err);
void request_add_header(struct http_exchange *x, const char *name, const char *value);

/* stream.c */
void stream_begin_body(struct http_exchange *x);
/** *len: what is left of the bytes, which come again. */
enum MHD_Result stream_take_body(struct http_exchange *x, const char *bytes, size_t *len);
void stream_end_body(struct http_exchange *x, weir_status status);
void stream_drop_body(struct http_exchange *x);
void stream_drop_answer(struct weir_http_response *response);

/* response.c */
/** The answer is `mhd`, which is not NULL: out of memory ends the program. */
void response_set(struct weir_http_response *response, int http_status, const char *content_type,
                  struct MHD_Response *mhd);
void response_init(struct weir_http_response *response);
/** What a header was given; NULL: it was not. */
const char *response_header(const struct weir_http_response *response, const char *name);
/** The same answer with these bytes, packed with gzip, for its body; takes them. */
void response_replace_body(struct weir_http_response *response, char *bytes, size_t len);
void response_fini(struct weir_http_response *response);
/** Add the common headers and hand over to libmicrohttpd; the exchange's I/O thread only. */
enum MHD_Result response_queue(struct http_exchange *x);

/* events.c */
void events_make_response(struct http_exchange *x);

/* accept.c */
/** Start to take connections of `listen_fd` (base/listen.h), which then is the acceptor's. */
weir_status acceptor_start(struct weir_http_server *server, int listen_fd, struct weir_error *err);
/** A connection that was taken is closed: its place is free. */
void acceptor_leave(struct weir_http_server *server);
/** Take no more, and refuse from now on. */
void acceptor_stop(struct weir_http_server *server);

/* listen.c */
/** Raise the soft limit of open files; the number of connections it allows, at most `wanted`. */
int listen_allowed_connections(int wanted);

#endif
