/**
 * Post: a message to a program of somebody else's, by HTTP POST, signed if there is a secret.
 *
 *     weir_poster_open(&poster, err);
 *     struct weir_post post = {.url = url, .secret = key, .id = id, .body = text, …};
 *     weir_poster_post(poster, &post, arena, &answer, err);
 *
 * Redirects are not followed, so that nothing goes to another host; certificates are always verified;
 * of an answer no more than 64 KiB is read. Errors do not say where the message went, since the address
 * may be a secret: people who see them need not be those who wrote it.
 *
 * The receiver finds the headers Weir-Delivery (an identifier, the same with each try), Weir-Timestamp
 * (seconds since 1970) and, with a secret, Weir-Signature: "v1=" and the HMAC-SHA256 of "TIMESTAMP.BODY"
 * in hexadecimal. Or what Standard Webhooks 1.0 say: webhook-id, webhook-timestamp and webhook-signature,
 * "v1," and the HMAC-SHA256 of "ID.TIMESTAMP.BODY" in base64; a secret of the form "whsec_BASE64" stands for
 * the bytes in it.
 */
#ifndef WEIR_HTTP_POST_H
#define WEIR_HTTP_POST_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_POST_SIGNATURE_BYTES 65 /**< 64 hexadecimal digits and a NUL. */
#define WEIR_POST_SAID_BYTES      512

struct weir_poster;

struct weir_post {
    const char *url;
    const char *ca_file; /**< Authorities to trust; NULL: the system's. */
    const char *token;   /**< For the header Authorization: Bearer; NULL: none. */
    const char *basic;   /**< "USER:PASSWORD" of the header Authorization: Basic; NULL: none. */
    const char *secret;  /**< Key of the signature; NULL: none. */
    const char *id;      /**< The message's; NULL: neither identifier nor time nor signature. */
    bool is_standard;    /**< The headers of Standard Webhooks, in place of ours. */
    const char *body;    /**< JSON. */
    int64_t now_ms;      /**< Wall clock. */
    int64_t timeout_ms;  /**< For all of it. */
};

/** What came of it, for readers of the log: the error does not show it. */
struct weir_post_answer {
    int http_status;                 /**< 0: none came. */
    int64_t retry_ms;                /**< As "Retry-After" asks, at most a day; 0: it does not. */
    char said[WEIR_POST_SAID_BYTES]; /**< The beginning of the answer, or why none came. */
};

/** A poster belongs to one thread at a time; only weir_poster_stop may come from others. */
weir_status weir_poster_open(struct weir_poster **out, struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. */
void weir_poster_close(struct weir_poster *poster);

/** The post in progress, and each from now on, ends with CANCELLED. Any thread. */
void weir_poster_stop(struct weir_poster *poster);
bool weir_poster_is_stopped(struct weir_poster *poster);

/**
 * Send, and wait for the answer. 2xx is success.
 *
 * @return INVALID where a second try of the same would end alike: 3xx and 4xx but 408, 425 and 429, an
 *         address or a header that HTTP does not take; DENIED for a certificate that is not trusted;
 *         CANCELLED; else UNAVAILABLE, TIMEOUT or PEER. *answer is filled in in any case.
 */
weir_status weir_poster_post(struct weir_poster *poster, const struct weir_post *post,
                             struct weir_arena *arena, struct weir_post_answer *answer,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The signature of Standard Webhooks 1.0: "v1,BASE64". Pure. */
#define WEIR_POST_STANDARD_BYTES 48
void weir_post_signature_standard(const char *secret, const char *id, const char *time,
                                  const char *body, size_t body_len,
                                  char out[WEIR_POST_STANDARD_BYTES]);

/** Pure. */
void weir_post_signature(const char *secret, const char *time, const char *body, size_t body_len,
                         char out[WEIR_POST_SIGNATURE_BYTES]);

#endif
