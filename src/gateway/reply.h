/**
 * Reply: reads an answer of HTTP/1.1 (RFC 9112), as its bytes come. It takes no part in reading the
 * socket.
 *
 *     reply_init(&reply, max_body_bytes);
 *     while ((status = reply_feed(&reply, bytes, len, &n_taken)) == WEIR_OK) { read more }
 *     // END: it is whole; bytes behind n_taken are not its own
 *
 * An answer that could be understood in two ways (two lengths, a length and chunks) is CORRUPT.
 */
#ifndef WEIR_GATEWAY_REPLY_H
#define WEIR_GATEWAY_REPLY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define REPLY_HEAD_MAX_BYTES 16384
#define REPLY_TYPE_BYTES     128
#define REPLY_TIMES_BYTES    192
#define REPLY_BINS           64 /* Weir-Output's */

enum reply_part {
    REPLY_HEAD,
    REPLY_BODY,       /* its length is known, or it goes on to the connection's end */
    REPLY_CHUNK_SIZE, /* the line before a chunk */
    REPLY_CHUNK,
    REPLY_CHUNK_END, /* the line end behind it */
    REPLY_TRAILER,
    REPLY_WHOLE,
};

struct reply {
    int http_status;                     /**< Known when the head is: part is beyond REPLY_HEAD. */
    char content_type[REPLY_TYPE_BYTES]; /**< "": none, or a longer one. */
    int64_t inference_header_bytes;      /**< Inference-Header-Content-Length; -1: none. */
    int64_t model_version;               /**< Weir-Model-Version; 0: none. */
    int64_t retry_after_s;               /**< -1: none. */
    int output_class, output_score;      /**< Weir-Output: bins below 64; -1: none. */
    char times[REPLY_TIMES_BYTES];       /**< Weir-Times; "": none, or a longer one. */
    bool keeps_alive;                    /**< The connection may carry another request. */
    struct weir_buf body;                /**< What has come; whole when reply_feed says END. */

    enum reply_part part;
    char line[REPLY_HEAD_MAX_BYTES]; /* the line that is being read */
    size_t line_len, head_len;
    bool has_length, is_chunked, has_begun;
    uint64_t n_left; /* in the body or the chunk */
};

/** Caller memory. The body's memory is allocated as it comes, at most max_body_bytes. */
void reply_init(struct reply *reply, size_t max_body_bytes);

/** Be ready for the next answer; the body's memory is kept, if it is still the reply's. */
void reply_reset(struct reply *reply);
void reply_fini(struct reply *reply);

/**
 * Take bytes of the connection.
 * @return WEIR_OK: it needs more; END: it is whole; CORRUPT: it is no answer; LIMIT: the body is over
 *         its maximum; NOMEM.
 */
weir_status reply_feed(struct reply *reply, const char *bytes, size_t len,
                       size_t *out_taken) WEIR_MUST_CHECK;

/** The connection has ended: END if that makes the answer whole, PEER if not. */
weir_status reply_close(struct reply *reply) WEIR_MUST_CHECK;

#endif
