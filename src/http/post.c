#include "http/post.h"

#include "base/base64.h"
#include "http/http_client.h"

#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX_BYTES ((size_t)64 << 10)
#define RETRY_MAX_S      86400
#define HEADERS_MAX      5
#define KEY_MAX          4096 /* as long as an option's text */

struct weir_poster {
    struct weir_http_client *client; /**< NULL: none yet. */
    char *ca_file;                   /**< Of the client. */
    pthread_mutex_t lock;
    bool is_stopped, is_posting; /**< Under lock. */
};

void weir_post_signature(const char *secret, const char *time, const char *body, size_t body_len,
                         char out[WEIR_POST_SIGNATURE_BYTES])
{
    crypto_auth_hmacsha256_state state;
    unsigned char sum[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)time, strlen(time));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)".", 1);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, body_len);
    crypto_auth_hmacsha256_final(&state, sum);
    (void)sodium_bin2hex(out, WEIR_POST_SIGNATURE_BYTES, sum, sizeof sum);
    sodium_memzero(&state, sizeof state);
}

/* The key that a secret stands for: the bytes of "whsec_BASE64", else its own. @return How many. */
static size_t standard_key(const char *secret, unsigned char *out, size_t size)
{
    static const char mark[] = "whsec_";
    size_t len = strlen(secret);
    if (strncmp(secret, mark, sizeof mark - 1) == 0 &&
        weir_base64_decode(secret + sizeof mark - 1, out, size, &len) == WEIR_OK) {
        return len;
    }
    len = WEIR_MIN(strlen(secret), size);
    memcpy(out, secret, len);
    return len;
}

void weir_post_signature_standard(const char *secret, const char *id, const char *time,
                                  const char *body, size_t body_len,
                                  char out[WEIR_POST_STANDARD_BYTES])
{
    crypto_auth_hmacsha256_state state;
    unsigned char sum[crypto_auth_hmacsha256_BYTES], key[KEY_MAX];
    size_t key_len = standard_key(secret, key, sizeof key);
    crypto_auth_hmacsha256_init(&state, key, key_len);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)id, strlen(id));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)".", 1);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)time, strlen(time));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)".", 1);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, body_len);
    crypto_auth_hmacsha256_final(&state, sum);
    memcpy(out, "v1,", 3);
    (void)weir_base64_encode(sum, sizeof sum, out + 3);
    sodium_memzero(&state, sizeof state);
    sodium_memzero(key, sizeof key);
}

/* ---- life ------------------------------------------------------------------------------------ */

weir_status weir_poster_open(struct weir_poster **out, struct weir_error *err)
{
    struct weir_poster *poster = calloc(1, sizeof *poster);
    if (poster == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for an HTTP client");
    }
    pthread_mutex_init(&poster->lock, NULL);
    *out = poster;
    return WEIR_OK;
}

void weir_poster_close(struct weir_poster *poster)
{
    if (poster != NULL) {
        weir_http_client_close(poster->client);
        free(poster->ca_file);
        pthread_mutex_destroy(&poster->lock);
        free(poster);
    }
}

void weir_poster_stop(struct weir_poster *poster)
{
    pthread_mutex_lock(&poster->lock);
    poster->is_stopped = true;
    if (poster->is_posting) {
        weir_http_client_cancel(poster->client);
    }
    pthread_mutex_unlock(&poster->lock);
}

bool weir_poster_is_stopped(struct weir_poster *poster)
{
    pthread_mutex_lock(&poster->lock);
    bool is_stopped = poster->is_stopped;
    pthread_mutex_unlock(&poster->lock);
    return is_stopped;
}

/* A client that trusts these; that of the post before, if it does. */
static weir_status have_client(struct weir_poster *poster, const char *ca_file,
                               struct weir_error *err)
{
    bool is_same = poster->ca_file == NULL || ca_file == NULL
                       ? poster->ca_file == ca_file
                       : strcmp(poster->ca_file, ca_file) == 0;
    if (poster->client != NULL && is_same) {
        return WEIR_OK;
    }
    weir_http_client_close(poster->client);
    free(poster->ca_file);
    poster->client = NULL;
    poster->ca_file = ca_file != NULL ? weir_xstrdup(ca_file) : NULL;
    return weir_http_client_open(&(struct weir_http_client_config){.ca_file = ca_file},
                                 &poster->client, err);
}

static bool begin(struct weir_poster *poster)
{
    pthread_mutex_lock(&poster->lock);
    poster->is_posting = !poster->is_stopped;
    bool may_post = poster->is_posting;
    pthread_mutex_unlock(&poster->lock);
    return may_post;
}

static void end(struct weir_poster *poster)
{
    pthread_mutex_lock(&poster->lock);
    poster->is_posting = false;
    pthread_mutex_unlock(&poster->lock);
}

/* ---- one post -------------------------------------------------------------------------------- */

static size_t make_headers(const struct weir_post *post, struct weir_arena *arena,
                           const char *headers[HEADERS_MAX])
{
    size_t n = 0;
    if (post->basic != NULL) {
        char *text = weir_arena_alloc(arena, WEIR_BASE64_TEXT_BYTES(strlen(post->basic)));
        headers[n++] =
            weir_arena_printf(arena, "Authorization: Basic %s",
                              weir_base64_encode(post->basic, strlen(post->basic), text));
    }
    if (post->id == NULL) {
        return n;
    }
    char time[24], signature[WEIR_POST_SIGNATURE_BYTES], standard[WEIR_POST_STANDARD_BYTES];
    (void)snprintf(time, sizeof time, "%" PRId64, post->now_ms / 1000);
    headers[n++] = "User-Agent: weir";
    if (post->is_standard) {
        headers[n++] = weir_arena_printf(arena, "webhook-id: %s", post->id);
        headers[n++] = weir_arena_printf(arena, "webhook-timestamp: %s", time);
        if (post->secret != NULL) {
            weir_post_signature_standard(post->secret, post->id, time, post->body,
                                         strlen(post->body), standard);
            headers[n++] = weir_arena_printf(arena, "webhook-signature: %s", standard);
        }
        return n;
    }
    headers[n++] = weir_arena_printf(arena, "Weir-Delivery: %s", post->id);
    headers[n++] = weir_arena_printf(arena, "Weir-Timestamp: %s", time);
    if (post->secret != NULL) {
        weir_post_signature(post->secret, time, post->body, strlen(post->body), signature);
        headers[n++] = weir_arena_printf(arena, "Weir-Signature: v1=%s", signature);
    }
    return n;
}

static weir_status judge(const struct weir_http_reply *reply, struct weir_post_answer *answer,
                         struct weir_error *err)
{
    char seconds[24];
    int http = reply->http_status;
    answer->http_status = http;
    (void)snprintf(answer->said, sizeof answer->said, "%s", reply->body.data);
    if (weir_http_reply_header(reply, "Retry-After", seconds, sizeof seconds)) {
        long long wanted_s = strtoll(seconds, NULL, 10); /* 0 for a date */
        answer->retry_ms = 1000 * (int64_t)WEIR_MAX(WEIR_MIN(wanted_s, RETRY_MAX_S), 0);
    }
    if (http >= 200 && http < 300) {
        return WEIR_OK;
    }
    bool is_refusal = http >= 300 && http < 500 && http != 408 && http != 425 && http != 429;
    return weir_error_set(err, is_refusal ? WEIR_ERR_INVALID : WEIR_ERR_UNAVAILABLE,
                          "it answered with HTTP status %d", http);
}

/* The client's sentence names the address. */
static weir_status hide_address(const struct weir_post *post, weir_status status,
                                struct weir_error *err)
{
    switch (status) {
    case WEIR_ERR_UNAVAILABLE:
        return weir_error_set(err, status, "nothing answers at its address");
    case WEIR_ERR_TIMEOUT:
        return weir_error_set(err, status, "it did not answer within %lld ms",
                              (long long)post->timeout_ms);
    case WEIR_ERR_PEER:
        return weir_error_set(err, status, "the connection to it broke");
    case WEIR_ERR_DENIED:
        return weir_error_set(err, status, "its certificate is not trusted");
    case WEIR_ERR_LIMIT: /* says nothing about the message */
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "its answer is too long");
    case WEIR_ERR_INVALID:
        return weir_error_set(err, status, "its address or a header is none that HTTP takes");
    default:
        return weir_error_set(err, status, "%s", weir_status_text(status));
    }
}

weir_status weir_poster_post(struct weir_poster *poster, const struct weir_post *post,
                             struct weir_arena *arena, struct weir_post_answer *answer,
                             struct weir_error *err)
{
    const char *headers[HEADERS_MAX];
    struct weir_http_reply reply;
    struct weir_error why = {0};
    const struct weir_http_call call = {.method = "POST",
                                        .url = post->url,
                                        .bearer = post->token,
                                        .headers = headers,
                                        .n_headers = make_headers(post, arena, headers),
                                        .content_type = "application/json",
                                        .body = post->body,
                                        .body_len = strlen(post->body),
                                        .timeout_ms = post->timeout_ms,
                                        .max_reply_bytes = ANSWER_MAX_BYTES};
    *answer = (struct weir_post_answer){0};
    WEIR_TRY(have_client(poster, post->ca_file, err));
    if (!begin(poster)) {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "%s", weir_status_text(WEIR_ERR_CANCELLED));
    }
    weir_status status = weir_http_client_call(poster->client, &call, &reply, &why);
    end(poster);
    if (status != WEIR_OK) {
        (void)snprintf(answer->said, sizeof answer->said, "%s", why.message);
        return hide_address(post, status, err);
    }
    status = judge(&reply, answer, err);
    weir_http_reply_fini(&reply);
    return status;
}
