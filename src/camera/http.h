/**
 * Pictures over HTTP/1.1, on a connection that is given: one for a request, or many in one answer (multipart/x-mixed-replace). Redirects are not
 * followed. What a camera sends is at worst a sentence. One thread.
 */
#ifndef WEIR_CAMERA_HTTP_H
#define WEIR_CAMERA_HTTP_H

#include "chunks.h"
#include "rtsp/auth.h"

#include <stdbool.h>

#define CAMERA_HTTP_PICTURE_MAX ((size_t)32 << 20)

struct camera_http {
    int fd; /**< -1: no connection. The caller opens and closes it. */
    const char *host, *path, *user, *password;
    struct rtsp_auth auth; /**< Follows the camera's challenges, over connections. */
    struct weir_buf in;    /**< What has come; of a body in chunks, what they say. */
    /* The answer under way. */
    struct camera_chunks chunks; /**< If is_chunked. */
    int64_t body_left;           /**< Bytes of the body; -1: until its end. */
    char boundary[80];           /**< "--…" of a stream; "": a single picture. */
    bool is_chunked, is_asked, is_answered, is_last, /**< The connection ends with the picture. */
        is_to_end;                                   /**< And the picture with the connection. */
    size_t n_used;     /**< Bytes of `in` that the last picture has. */
    size_t n_others;   /**< Parts without a picture since the last one. */
    size_t n_searched; /**< A part without a length has no end in its first n_searched bytes. */
};

void camera_http_init(struct camera_http *http, const char *host, const char *path,
                      const char *user, const char *password);
void camera_http_fini(struct camera_http *http);

/** A new connection: whatever was under way is not. */
void camera_http_begin(struct camera_http *http, int fd);

/**
 * The next picture: asks for it where nothing is under way. Borrowed until the next call.
 * @return TIMEOUT: not whole by the deadline, call again; PEER: the connection is over; UNAUTH, NOT_FOUND, UNSUPPORTED, UNAVAILABLE,
 *         CORRUPT, LIMIT: the camera's answer. CONFLICT: the camera wants a proof of the password, which is there now: begin again.
 */
weir_status camera_http_next(struct camera_http *http, int64_t deadline_ms, const uint8_t **out,
                             size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
