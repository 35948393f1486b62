#include "auth.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/rng.h"
#include "md5.h"

#include <stdio.h>
#include <string.h>

enum { HASHED_MAX_BYTES = 4096 };

static bool list_has(struct rtsp_text list, const char *word)
{
    struct rtsp_text unused;
    return rtsp_text_find(list, ',', word, &unused);
}

/* A parameter that may be missing, as a text that is empty then. */
static weir_status copy_parameter(struct rtsp_text list, const char *name,
                                  char out[RTSP_AUTH_TEXT_BYTES], bool *out_has)
{
    struct rtsp_text value = {"", 0};
    *out_has = rtsp_text_find(list, ',', name, &value);
    return rtsp_text_copy(value, out, RTSP_AUTH_TEXT_BYTES);
}

static weir_status parse_digest(struct rtsp_text list, struct rtsp_auth *out)
{
    struct rtsp_text algorithm = rtsp_text_of("MD5"), qop = {"", 0};
    bool has_realm = false, has_nonce = false;
    out->has_algorithm = rtsp_text_find(list, ',', "algorithm", &algorithm);
    out->is_session =
        rtsp_text_is(algorithm, "MD5-sess") || rtsp_text_is(algorithm, "SHA-256-sess");
    if (rtsp_text_is(algorithm, "MD5") || rtsp_text_is(algorithm, "MD5-sess")) {
        out->scheme = RTSP_AUTH_MD5;
    } else if (rtsp_text_is(algorithm, "SHA-256") || rtsp_text_is(algorithm, "SHA-256-sess")) {
        out->scheme = RTSP_AUTH_SHA256;
    } else {
        return WEIR_ERR_UNSUPPORTED;
    }
    WEIR_TRY(copy_parameter(list, "realm", out->realm, &has_realm));
    WEIR_TRY(copy_parameter(list, "nonce", out->nonce, &has_nonce));
    WEIR_TRY(copy_parameter(list, "opaque", out->opaque, &out->has_opaque));
    out->has_qop = rtsp_text_find(list, ',', "qop", &qop);
    bool is_usable = has_realm && has_nonce && (!out->has_qop || list_has(qop, "auth"));
    return is_usable ? WEIR_OK : WEIR_ERR_UNSUPPORTED;
}

static weir_status parse_challenge(struct rtsp_text challenge, struct rtsp_auth *out)
{
    struct rtsp_text scheme = rtsp_text_cut(&challenge, ' ');
    if (rtsp_text_is(scheme, "Basic")) {
        out->scheme = RTSP_AUTH_BASIC;
        return WEIR_OK;
    }
    return rtsp_text_is(scheme, "Digest") ? parse_digest(challenge, out) : WEIR_ERR_UNSUPPORTED;
}

weir_status rtsp_auth_challenge(struct rtsp_auth *auth, const struct rtsp_message *refusal)
{
    struct rtsp_auth best = {0};
    struct rtsp_text challenge;
    for (unsigned i = 0; rtsp_message_header(refusal, "WWW-Authenticate", i, &challenge); i++) {
        struct rtsp_auth one = {0};
        if (parse_challenge(challenge, &one) == WEIR_OK && one.scheme > best.scheme) {
            best = one;
        }
    }
    if (best.scheme == RTSP_AUTH_NONE) {
        return WEIR_ERR_UNSUPPORTED;
    }
    uint64_t random = 0;
    weir_random_bytes(&random, sizeof random);
    (void)snprintf(best.cnonce, sizeof best.cnonce, "%016llx", (unsigned long long)random);
    *auth = best;
    return WEIR_OK;
}

/* H(text), in the buffer's place. What is too long for the buffer is cut: the camera refuses the answer. */
static void hash(const struct rtsp_auth *auth, struct weir_buf *text, char out[65])
{
    if (auth->scheme == RTSP_AUTH_SHA256) {
        weir_sha256(text->data, text->len, out);
    } else {
        rtsp_md5(text->data, text->len, out);
    }
    weir_buf_reset(text);
}

static void answer_digest(struct rtsp_auth *auth, const char *user, const char *password,
                          const char *method, const char *url, char out[65])
{
    char secret[65], request[65];
    struct weir_buf text;
    weir_buf_init(&text, HASHED_MAX_BYTES);
    weir_buf_printf(&text, "%s:%s:%s", user, auth->realm, password);
    hash(auth, &text, secret);
    if (auth->is_session) {
        weir_buf_printf(&text, "%s:%s:%s", secret, auth->nonce, auth->cnonce);
        hash(auth, &text, secret);
    }
    weir_buf_printf(&text, "%s:%s", method, url);
    hash(auth, &text, request);
    if (auth->has_qop) {
        weir_buf_printf(&text, "%s:%s:%08x:%s:auth:%s", secret, auth->nonce, auth->n_uses,
                        auth->cnonce, request);
    } else {
        weir_buf_printf(&text, "%s:%s:%s", secret, auth->nonce, request);
    }
    hash(auth, &text, out);
    weir_buf_fini(&text);
}

/* As a quoted text: a user is a person's word, and may contain quotes. */
static void put_quoted(struct weir_buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        weir_buf_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
}

static void put_digest(struct rtsp_auth *auth, const char *user, const char *password,
                       const char *method, const char *url, struct weir_buf *out)
{
    char answer[65];
    auth->n_uses++;
    answer_digest(auth, user, password, method, url, answer);
    weir_buf_puts(out, "Authorization: Digest username=\"");
    put_quoted(out, user);
    weir_buf_printf(out, "\", realm=\"%s\", nonce=\"%s\", uri=\"%s\", response=\"%s\"", auth->realm,
                    auth->nonce, url, answer);
    if (auth->has_algorithm) {
        weir_buf_printf(out, ", algorithm=%s%s",
                        auth->scheme == RTSP_AUTH_SHA256 ? "SHA-256" : "MD5",
                        auth->is_session ? "-sess" : "");
    }
    if (auth->has_opaque) {
        weir_buf_printf(out, ", opaque=\"%s\"", auth->opaque);
    }
    if (auth->has_qop) {
        weir_buf_printf(out, ", qop=auth, nc=%08x", auth->n_uses);
    }
    if (auth->has_qop || auth->is_session) {
        weir_buf_printf(out, ", cnonce=\"%s\"", auth->cnonce);
    }
    weir_buf_puts(out, "\r\n");
}

void rtsp_auth_put(struct rtsp_auth *auth, const char *user, const char *password,
                   const char *method, const char *url, struct weir_buf *out)
{
    if (auth->scheme == RTSP_AUTH_BASIC) {
        char pair[RTSP_AUTH_TEXT_BYTES * 2], encoded[WEIR_BASE64_TEXT_BYTES(sizeof pair)];
        int n = snprintf(pair, sizeof pair, "%s:%s", user, password);
        weir_buf_printf(out, "Authorization: Basic %s\r\n",
                        weir_base64_encode(pair, WEIR_MIN((size_t)n, sizeof pair - 1), encoded));
    } else if (auth->scheme != RTSP_AUTH_NONE) {
        put_digest(auth, user, password, method, url, out);
    }
}
