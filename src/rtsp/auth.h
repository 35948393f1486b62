/**
 * The proof that a camera asks for: Basic (RFC 7617) and Digest (RFC 7616, and RFC 2069 where a camera names no "qop")
 * with SHA-256, MD5 and their "-sess".
 *
 * A state is all zeros before the first challenge, and then follows the camera's. One thread.
 */
#ifndef WEIR_RTSP_AUTH_H
#define WEIR_RTSP_AUTH_H

#include "base/buf.h"
#include "message.h"

#define RTSP_AUTH_TEXT_BYTES 256

enum rtsp_auth_scheme { RTSP_AUTH_NONE, RTSP_AUTH_BASIC, RTSP_AUTH_MD5, RTSP_AUTH_SHA256 };

struct rtsp_auth {
    enum rtsp_auth_scheme scheme;
    bool is_session, has_qop, has_algorithm, has_opaque;
    char realm[RTSP_AUTH_TEXT_BYTES], nonce[RTSP_AUTH_TEXT_BYTES], opaque[RTSP_AUTH_TEXT_BYTES];
    char cnonce[48]; /**< 16 digits of ours. */
    uint32_t n_uses; /**< How often the nonce was used. */
};

/**
 * Follows the challenges of a refusal (401): the strongest that it knows.
 * @return UNSUPPORTED: it knows none of them. The state is as it was.
 */
weir_status rtsp_auth_challenge(struct rtsp_auth *auth,
                                const struct rtsp_message *refusal) WEIR_MUST_CHECK;

/** Appends the header Authorization of a request, with its line's end. Without a challenge: nothing. */
void rtsp_auth_put(struct rtsp_auth *auth, const char *user, const char *password,
                   const char *method, const char *url, struct weir_buf *out);

#endif
