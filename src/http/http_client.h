/**
 * HTTP client: one request at a time over libcurl, with kept-alive connections.
 *
 *     weir_http_client_open(&(struct weir_http_client_config){0}, &client, err);
 *     struct weir_http_call call = {.method = "GET", .url = url, .timeout_ms = 5000};
 *     weir_http_client_call(client, &call, &reply, err);
 *     … reply.http_status, reply.body.data, weir_http_reply_header(&reply, "X-Weir-Offset") …
 *     weir_http_reply_fini(&reply);
 *
 * A client belongs to one thread at a time; only weir_http_client_cancel may come from others.
 * Redirects are not followed. TLS certificates are verified and no proxy is used, unless the configuration says so.
 * An answer with an HTTP error status is not an error here: look at reply.http_status.
 */
#ifndef WEIR_HTTP_HTTP_CLIENT_H
#define WEIR_HTTP_HTTP_CLIENT_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_http_client;

struct weir_http_client_config {
    const char *ca_file;            /**< PEM of the authorities to trust; NULL: the system's. */
    int64_t connect_timeout_ms;     /**< 0: 5000. */
    const char *ca_pem;             /**< The same as text, in place of a file; or NULL. */
    const char *cert_pem, *key_pem; /**< The client's own certificate; or NULL. */
    /** "NAME:PORT:HOST:PORT": calls to the first go to the second, which has a certificate for NAME; or NULL. */
    const char *connect_to;
    const char *proxy;          /**< URL; NULL: none. */
    bool has_environment_proxy; /**< Without one, that of HTTPS_PROXY and NO_PROXY. */
    bool is_unverified;         /**< Any certificate will do. */
    bool is_foreign;            /**< It is no server of Weir's: errors give no advice about one. */
};

weir_status weir_http_client_open(const struct weir_http_client_config *config,
                                  struct weir_http_client **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;
void weir_http_client_close(struct weir_http_client *client);

/**
 * Make the call in progress, or else the next one, end with CANCELLED. Any thread.
 */
void weir_http_client_cancel(struct weir_http_client *client);

/** Forget a cancellation that has not ended a call yet. */
void weir_http_client_cancel_clear(struct weir_http_client *client);

struct weir_http_call {
    const char *method;
    const char *url;
    const char *bearer;         /**< Token for "Authorization: Bearer", or NULL. */
    const char *const *headers; /**< n_headers lines "Name: value". */
    size_t n_headers;
    const char *content_type; /**< The body's; NULL: none sent. */
    const void *body;         /**< body_len bytes, borrowed; or */
    size_t body_len;
    const char *body_file; /**< a regular file to send, from body_offset on. */
    uint64_t body_offset;
    int64_t timeout_ms;       /**< For the whole call; 0: none (streams). */
    int64_t quiet_timeout_ms; /**< Give up after so long without a byte; 0: none. */
    size_t max_reply_bytes;   /**< The body in memory (also an error's); 0: 16 MiB. */
    int out_fd;               /**< > 0: a 2xx body is written there instead of to reply.body. */
    /** A 2xx body goes there, piece by piece, instead; an error ends the call with it. NULL: to reply.body. */
    weir_status (*on_bytes)(void *context, const char *bytes, size_t len, struct weir_error *err);
    void *on_bytes_context;
};

struct weir_http_reply {
    int http_status;
    struct weir_buf body;
    struct weir_buf headers; /**< Lines "Name: value\n"; at most 64 KiB. */
    uint64_t n_body_bytes;   /**< Received, wherever they went. */
};

/**
 * Do the call. *reply is initialised here; on success the caller ends it with weir_http_reply_fini,
 * on error nothing is left to free.
 * @return UNAVAILABLE if nobody listens or the name does not resolve (with what to do about it),
 *         TIMEOUT, PEER if the connection broke, LIMIT if the answer is too long, CANCELLED, DENIED
 *         for a certificate that does not verify, INVALID for a URL that is none, IO for local
 *         files.
 */
weir_status weir_http_client_call(struct weir_http_client *client,
                                  const struct weir_http_call *call, struct weir_http_reply *reply,
                                  struct weir_error *err) WEIR_MUST_CHECK;

void weir_http_reply_fini(struct weir_http_reply *reply);

/** Value of the reply's header, copied into out (cut to size); false if absent. */
bool weir_http_reply_header(const struct weir_http_reply *reply, const char *name, char *out,
                            size_t size);

#endif
