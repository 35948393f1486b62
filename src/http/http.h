/**
 * HTTP server: libmicrohttpd moves the bytes, a bounded pool of handler threads answers.
 *
 * The acceptor takes connections and deals them to the I/O threads (epoll). An I/O thread reads a
 * request; once it is whole, its connection is suspended and the request goes to a queue. One of
 * `n_handlers` threads takes it and calls the one handler function, which reads the request and
 * fills the response. Nothing here knows routes, users or JSON schemas.
 *
 * A handler has four ways to end:
 *  - an answer: weir_http_response_json, _text, _static, _file, _error …;
 *  - "wait" (long poll): weir_http_response_wait. No thread is held; the handler is called again
 *    for the same request after weir_http_wake of one of its topics, or when its time is up
 *    (then request->is_expired is set and it must answer). Thousands of waits are cheap;
 *  - "later" (another thread works on it): weir_http_response_later. No thread is held; the handler
 *    is called again for the same request after weir_http_later_resume. Work that ends goes before
 *    requests that begin;
 *  - a stream of server-sent events: weir_http_response_events. The pull function is called on a
 *    handler thread at the start, after each wake, and again after bytes it gave have been sent.
 *
 * Wakes are never lost: one that comes between the handler's look and its "wait" calls it again.
 *
 * Maximums and what happens at them:
 *  - no descriptor left (EMFILE and its like): the acceptor tries again every 100 ms.
 *  - handler queue full: 503, Retry-After: 1. Waits and streams that are woken do not count. Each class of requests
 *    (body_rule says of which one is) has a queue of its own, and the classes take turns at the handlers; one may have
 *    all of these but one for each other class, so that a wave of one neither refuses nor holds up the others.
 *  - body over its limit: 413. Headers over 32 KiB: 431. Bodies in memory over max_bodies_bytes, or
 *    those of one address over half of it: 503.
 *  - connections over max_connections stay in the kernel's accept queue until one closes. While
 *    some wait there, the address with most connections loses idle ones, if it has over 1/32 of
 *    all.
 *  - connections of one address over max_connections_per_address: the new one takes the place of
 *    the address's oldest idle one; if none is idle it is closed. An IPv6 /64 is one address.
 *  - silence of idle_timeout_s, or headers not whole within twice that, or a body of which less
 *    than 4 KiB/s came in any idle_timeout_s: the connection is cut. Waits and quiet streams are not
 *    silence.
 *  - a request whose body could be understood in two ways (two lengths, a length and chunks, a
 *    header name with a space): 400, and the connection is closed.
 *  - a stream whose reader is slow is not pulled until its earlier bytes are in the socket (at most
 *    WEIR_HTTP_EVENTS_MAX_BYTES wait in memory), and is cut after idle_timeout_s without taking
 *    any.
 *
 * Whole answers of text and JSON to GET are packed with gzip for clients that take it, on the handler thread (pack.h).
 *
 * Every answer carries X-Content-Type-Options: nosniff, X-Frame-Options: DENY, Referrer-Policy:
 * no-referrer, the caller's Content-Security-Policy, and Cache-Control: no-store unless the handler
 * set another. Every error has the body {"error":{"status":"NOT_FOUND","message":"…"}}, except what
 * libmicrohttpd refuses itself (a request that is not HTTP).
 *
 *     static void hello(void *context, struct weir_http_request *request,
 *                       struct weir_http_response *response)
 *     {
 *         weir_http_response_text(response, 200, "text/plain", "hello\n");
 *     }
 *     struct weir_http_config config = {.listen = "127.0.0.1:0"};
 *     WEIR_TRY(weir_http_server_start(&config, hello, NULL, &server, err));
 *     printf("http://127.0.0.1:%d/\n", weir_http_server_port(server));
 */
#ifndef WEIR_HTTP_HTTP_H
#define WEIR_HTTP_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_http_server;
struct weir_http_response;
struct weir_http_pipe;

/** A request. Everything it points to lives until its response has been sent. Read only. */
struct weir_http_request {
    const char *method; /**< "GET", as sent. */
    const char *path;   /**< As sent, percent-encoded, without the query: "/api/v1/jobs/a%2Fb". */
    char **segments;    /**< The path's parts, decoded: {"api","v1","jobs","a/b"}. Never "..".
                           UTF-8, as the query's values: others are answered 400. */
    size_t n_segments;  /**< 0 for "/". Empty parts are left out ("/a//b/" has two). */
    const char *body;   /**< body_len bytes and a NUL; "" if there is none or it went to a file. */
    size_t body_len;
    const char *body_file; /**< Temporary file with the body (rule.to_file), else NULL. The handler
                              may rename it away; otherwise it is unlinked before the answer. */
    uint64_t body_file_bytes;
    /** Its bytes' digest, taken as they came (rule.wants_sha256), or NULL. */
    const char *body_file_sha256;
    const char *remote; /**< Address of the other side, "127.0.0.1". */
    bool is_tls;
    bool is_expired; /**< The time of an earlier "wait" is over: answer now. */
    void *state;     /**< The handler's own, NULL at first; kept between calls of one request.
                          Allocate it in `arena`, or say in end_fn how it ends. */
    void (*end_fn)(void *state); /**< Set by the handler with `state`: called once, on any thread,
                                      when the request is over, however that comes. */
    struct weir_http_pipe *body_pipe; /**< A body that comes by pieces (rule.to_pipe, stream.h);
                                           NULL: there is none. */
    struct weir_arena *arena; /**< Memory that lives as long as the request (at most 64 MiB). */
};

/** Percent-decoded value of a query parameter ("+" is a space); NULL if absent. The first wins. */
const char *weir_http_request_query(const struct weir_http_request *request, const char *name);

/** The value of the i-th parameter (0, 1 …) of this name; NULL: there are fewer. */
const char *weir_http_request_query_at(const struct weir_http_request *request, const char *name,
                                       size_t i);

/** The name of the i-th parameter (0, 1 …) of the query, as they came; NULL: there are fewer. */
const char *weir_http_request_query_name(const struct weir_http_request *request, size_t i);

/** Value of a header, name compared without case; NULL if absent. */
const char *weir_http_request_header(const struct weir_http_request *request, const char *name);

/** Is the body as it is, or unpacked (rule.is_unpacked)? UNSUPPORTED if it has another Content-Encoding: an
 *  answer that says so is one of 415 (weir_http_response_not_plain). */
weir_status weir_http_request_check_plain(const struct weir_http_request *request,
                                          struct weir_error *err) WEIR_MUST_CHECK;

/** Value of a cookie; NULL if absent, or if it came twice with different values: a page of another port of
 *  this host can have set the second one. */
const char *weir_http_request_cookie(const struct weir_http_request *request, const char *name);

/** Its sender has proved an identity: from now on the connection does not give way to new ones when all
 *  places are taken, as strangers' do. Any thread that has the request. */
void weir_http_request_is_known(const struct weir_http_request *request);

/** Decode %XX (and "+" to space if plus_is_space) in `arena`; NULL if malformed or it holds %00. */
char *weir_http_percent_decode(struct weir_arena *arena, const char *text, size_t len,
                               bool plus_is_space);

/** Encode for use as one path segment or query value: all but A-Z a-z 0-9 - . _ ~ become %XX. */
char *weir_http_percent_encode(struct weir_arena *arena, const char *text);

/** Answers. The last one called counts. Text and bytes are copied unless said otherwise. --------
 */
void weir_http_response_text(struct weir_http_response *response, int http_status,
                             const char *content_type, const char *text);
void weir_http_response_bytes(struct weir_http_response *response, int http_status,
                              const char *content_type, const void *bytes, size_t len);
/** Takes buf's memory (buf is empty after). A buf with a status other than OK answers with that error.
 */
void weir_http_response_buf(struct weir_http_response *response, int http_status,
                            const char *content_type, struct weir_buf *buf);
/** Bytes that live as long as the program (embedded files): not copied. */
void weir_http_response_static(struct weir_http_response *response, int http_status,
                               const char *content_type, const void *bytes, size_t len);
/** A regular file that is open, which becomes the response's; sent with sendfile(2). */
void weir_http_response_fd(struct weir_http_response *response, int http_status,
                           const char *content_type, int fd);
/** The same, opened now; cannot be opened: 404 or 500. */
void weir_http_response_file(struct weir_http_response *response, int http_status,
                             const char *content_type, const char *path);
/**
 * The same, or the part of it that the request asks for (Range, If-Range: 206, 416), or 304 for a client that has
 * it (If-None-Match). One range; several are answered with the whole file. HEAD as GET.
 * @param etag  With its quotes: the same for as long as the bytes are the same.
 */
void weir_http_response_file_part(struct weir_http_response *response,
                                  const struct weir_http_request *request, const char *content_type,
                                  const char *path, const char *etag);

/** A file in the program's memory that never changes. The first answer fills in what follows `end`. */
struct weir_http_asset {
    const char *content_type, *bytes, *end;
    char digest[WEIR_SHA256_TEXT_BYTES]; /**< SHA-256 of the bytes, hexadecimal. */
    char *packed; /**< The same with gzip, as long as the program; NULL: not smaller. */
    size_t n_packed_bytes;
};

/**
 * Answer with it: packed once for clients that take gzip, 304 for those that have it (If-None-Match). A client that asks
 * with "v=…" of the first digits of its digest may keep it for a year, others ask again each time whether it has changed.
 * Any thread. Cost: the first call of an asset packs it (60 ms of 500 kB), the others copy nothing.
 */
void weir_http_response_asset(struct weir_http_response *response,
                              const struct weir_http_request *request,
                              struct weir_http_asset *asset);
/** Compact JSON; takes the reference to `value`. NULL (text that is not UTF-8) answers 500. */
void weir_http_response_json(struct weir_http_response *response, int http_status, json_t *value);
/** {"error":{"status","message"}} with weir_status_http(error->status). */
void weir_http_response_error(struct weir_http_response *response, const struct weir_error *error);
/** Same, formatted. */
void weir_http_response_errorf(struct weir_http_response *response, weir_status status,
                               const char *fmt, ...) WEIR_PRINTF(3, 4);
/** An error that is the answer to a question: sent as 200, and what it is stands in the header X-Weir-Status. */
void weir_http_response_as_answer(struct weir_http_response *response);
/** The answer holds a secret: it is never packed, so that its length tells nothing of it (see pack.h). */
void weir_http_response_keep_plain(struct weir_http_response *response);
/** The answer, which says why, is one of 415, and names the encodings that the body could have. */
void weir_http_response_not_plain(struct weir_http_response *response);
/** The answer, which says why, is one of 405: the path is there for the methods of `allow`, "GET, HEAD". */
void weir_http_response_not_allowed(struct weir_http_response *response, const char *allow);
/** 204. */
void weir_http_response_empty(struct weir_http_response *response);
/** 303 to a location of ours. */
void weir_http_response_redirect(struct weir_http_response *response, const char *location);

/** Add a header (Set-Cookie may repeat). A value with a control character answers 500 instead. */
void weir_http_response_header(struct weir_http_response *response, const char *name,
                               const char *value);

/** Topics are bits; what they mean is the caller's. */
#define WEIR_HTTP_ALL_TOPICS UINT64_MAX

/** Was the answer put off (weir_http_response_wait)? */
bool weir_http_response_waits(const struct weir_http_response *response);

/**
 * Answer later. The handler is called again after a wake of any of `topics`, or when `timeout_ms`
 * (counted from the first wait of this request; at most 10 minutes) is over, with is_expired set.
 * Waiting again when is_expired is a mistake and answers 500.
 */
void weir_http_response_wait(struct weir_http_response *response, uint64_t topics,
                             int64_t timeout_ms);

struct weir_http_later;

/**
 * Answer when another thread has done its part. The handler is called again for this request, on
 * some handler thread, after weir_http_later_resume, which may come before the handler has returned.
 * Calling "later" again is allowed, "wait" too. Only in a handler that the server called.
 *
 * The handler that took a handle must return so, and the holder of the handle must resume it exactly
 * once, in the end: weir_http_server_stop waits for that without a limit. How many may be in the works
 * is for the caller to bound.
 *
 * @return A handle that is good until it is resumed.
 */
struct weir_http_later *weir_http_response_later(struct weir_http_response *response);

/** Have the handler called again. The handle is gone. Any thread, also the handler's own. */
void weir_http_later_resume(struct weir_http_later *later);

/**
 * Has the client closed its side of the connection? Then nobody reads the answer. A client that
 * only ends its sending (shutdown) looks the same, as it does to most proxies. Any thread, before
 * the handle is resumed. Cost: a system call.
 */
bool weir_http_later_is_gone(const struct weir_http_later *later);

#define WEIR_HTTP_EVENTS_MAX_BYTES (256 * 1024)

/**
 * Produce the next events into `out` (empty, maximum WEIR_HTTP_EVENTS_MAX_BYTES): append whole
 * events (weir_http_event_append) and return WEIR_OK; append nothing for "nothing yet";
 * WEIR_ERR_END (or any error) to close after what is in `out`. Called on a handler thread, never
 * twice at the same time. Produce a bounded batch: it is called again at once after bytes were
 * sent, until it has nothing.
 */
typedef weir_status (*weir_http_next_fn)(void *state, struct weir_buf *out);

/**
 * Stream text/event-stream. A comment line is sent every 15 s of quiet. When the connection is over
 * (either side) `free_fn(state)` runs once, on any thread, after the last next_fn; it may be NULL.
 */
void weir_http_response_events(struct weir_http_response *response, uint64_t topics,
                               weir_http_next_fn next_fn, void (*free_fn)(void *state),
                               void *state);

/**
 * Append "event: <event>\nid: <id>\ndata: <each line of data>\n\n"; event and id may be NULL.
 * @return LIMIT if it does not fit (nothing was appended: give it in the next call), INVALID for a
 *         line end in event or id. An event longer than the buffer's maximum ends the stream.
 */
weir_status weir_http_event_append(struct weir_buf *out, const char *event, const char *id,
                                   const char *data);

/** Runs on a handler thread; several at the same time. Without any answer: 500. */
typedef void (*weir_http_handler_fn)(void *context, struct weir_http_request *request,
                                     struct weir_http_response *response);

/**
 * May a body go on that begins so? Asked once: `len` is rule.check_bytes, or all of the body if that is
 * shorter, of `total_bytes` (0: not said yet). Runs on an I/O thread: must not block. An error is
 * answered once the rest has been read, and dropped: HTTP/1 has no other moment.
 */
typedef weir_status (*weir_http_head_fn)(const struct weir_http_request *request, const void *bytes,
                                         size_t len, uint64_t total_bytes, struct weir_error *err);

/** Most classes of requests. */
#define WEIR_HTTP_CLASSES 4

struct weir_http_body_rule {
    int of_class;       /**< The request's: below config.n_classes. */
    uint64_t max_bytes; /**< 0: no body allowed beyond 0 bytes. */
    bool to_file;       /**< Stream to a temporary file in config.upload_dir. */
    bool to_pipe;       /**< It comes into request->body_pipe, whatever its length (stream.h),
                                  if config.admit lets it; it must be set then. */
    /** One in memory that comes as gzip or deflate (Content-Encoding) is unpacked: the handler
     *  gets what was packed, and max_bytes is of that. */
    bool is_unpacked;
    bool wants_sha256;       /**< For such a body: take the digest of its bytes as they come. */
    weir_http_head_fn check; /**< For such a body: looks at its first bytes; NULL: none. */
    size_t check_bytes;      /**< How many it looks at; at most 4096. */
};

/**
 * How to take the body of a request once its headers are known, and of which class it is. `rule` comes with class 0,
 * max_body_bytes, and nothing else set. Runs on an I/O thread: must not block. NULL in the config leaves the default for all.
 */
typedef void (*weir_http_body_rule_fn)(void *context, const struct weir_http_request *request,
                                       struct weir_http_body_rule *rule);

/**
 * May this body come? Called on a handler thread before the first byte of a body is read that goes
 * to a file, is over 16 KiB or does not say its length: leave `response` alone to go on, or answer
 * to refuse (then the body is never read).
 */
typedef weir_http_handler_fn weir_http_admit_fn;

/** Zero means the default for every number. Strings are copied. */
struct weir_http_config {
    const char *listen; /**< "127.0.0.1:0", "[::]:8440", "host:port"; port 0: any free one. */
    int n_handlers;     /**< Default 8. */
    int n_io_threads;   /**< Default 2. */
    int max_queued;     /**< Requests of a class that wait for a handler thread; default 256. */
    int n_classes;      /**< Default 1, at most WEIR_HTTP_CLASSES. */
    int max_queued_of[WEIR_HTTP_CLASSES]; /**< Each class's; default max_queued. */
    int max_connections; /**< Default 4096; lowered (with a warning) to what open files allow. */
    int max_connections_per_address; /**< Default a quarter of these, at least 16. */
    int idle_timeout_s;              /**< Default 30. */
    int keep_alive_ms; /**< Quiet of an event stream before a comment is sent; default 15000. */
    uint64_t max_body_bytes;          /**< Default 1 MiB. */
    uint64_t max_bodies_bytes;        /**< All bodies in memory; default 256 MiB. */
    weir_http_body_rule_fn body_rule; /**< May be NULL. */
    weir_http_admit_fn admit;         /**< May be NULL: bodies come unasked. */
    bool has_upgrades;                /**< Answers may be weir_http_response_upgrade (stream.h). */
    const char *upload_dir; /**< Folder for temporary files; NULL: uploads to files answer 500. */
    const char *tls_cert_file, *tls_key_file; /**< PEM; both or neither. TLS 1.2 and 1.3. */
    const char *content_security_policy; /**< NULL: "default-src 'none'; frame-ancestors 'none'". */
};

/**
 * Bind, listen, start the threads. `context` goes to handler, body_rule and admit.
 * @return CONFLICT if the port is in use, DENIED if it may not be bound, INVALID for an address or
 *         certificate that cannot be used; each says what and what to do. Nothing is left behind.
 */
weir_status weir_http_server_start(const struct weir_http_config *config,
                                   weir_http_handler_fn handler, void *context,
                                   struct weir_http_server **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The port that is listened on. */
int weir_http_server_port(const struct weir_http_server *server);

/** Call waiting requests and streams of these topics again. Any thread; cost: O(waiting). */
void weir_http_wake(struct weir_http_server *server, uint64_t topics);

/**
 * Stop: no new connections; waits are called a last time with is_expired; streams end; requests in
 * handlers finish, and those that are answered later. After deadline_ms what is still being sent is
 * cut. Returns when every thread has ended, so a handler must not run without end. Frees the server;
 * NULL is accepted.
 */
void weir_http_server_stop(struct weir_http_server *server, int64_t deadline_ms);

/** What the server has done so far, for metrics. Any thread. */
struct weir_http_counts {
    int64_t n_requests, n_refused_queue_full, n_waiting, n_streams, n_queued, n_connections;
};

void weir_http_server_counts(struct weir_http_server *server, struct weir_http_counts *out);

#endif
