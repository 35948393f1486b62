#include "kube/client.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "http/http_client.h"
#include "kube/config_copy.h"
#include "kube/credential.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS         20000
#define TRY_MS          10000
#define CONNECT_MS      5000
#define PAUSE_BASE_MS   100
#define PAUSE_MAX_MS    10000
#define REPLY_MAX_BYTES ((size_t)64 << 20)
#define LINE_MAX_BYTES  ((size_t)8 << 20)
#define HEADERS_MAX     (WEIR_KUBE_GROUPS_MAX + 4)
#define LINE_NOT_JSON   "the API server sent what is no JSON"

struct weir_kube {
    struct weir_arena arena;
    struct weir_kube_config config;
    struct kube_credential credential;
    size_t i_server;
    struct weir_http_client *http; /* for that server; NULL: to be opened */
    pthread_mutex_t lock;          /* guards http and is_cancelled */
    pthread_cond_t cancelled;
    bool is_cancelled;
};

/* One answer, or none. */
struct answer {
    int code;
    int64_t retry_after_ms;
    struct weir_buf body;
};

weir_status weir_kube_open(const struct weir_kube_config *config, struct weir_kube **out,
                           struct weir_error *err)
{
    struct weir_kube *kube = weir_xalloc(sizeof *kube);
    *kube = (struct weir_kube){0};
    if (config->n_servers == 0) {
        free(kube);
        return weir_error_set(err, WEIR_ERR_INVALID, "no API server is named");
    }
    weir_arena_init(&kube->arena, 0);
    kube_config_copy(config, &kube->arena, &kube->config);
    kube->credential.config = &kube->config;
    pthread_mutex_init(&kube->lock, NULL);
    pthread_cond_init(&kube->cancelled, NULL);
    *out = kube;
    return WEIR_OK;
}

void weir_kube_close(struct weir_kube *kube)
{
    if (kube != NULL) {
        weir_http_client_close(kube->http);
        kube_credential_fini(&kube->credential);
        pthread_cond_destroy(&kube->cancelled);
        pthread_mutex_destroy(&kube->lock);
        weir_arena_fini(&kube->arena);
        free(kube);
    }
}

void weir_kube_cancel(struct weir_kube *kube)
{
    pthread_mutex_lock(&kube->lock);
    kube->is_cancelled = true;
    if (kube->http != NULL) {
        weir_http_client_cancel(kube->http);
    }
    pthread_cond_broadcast(&kube->cancelled);
    pthread_mutex_unlock(&kube->lock);
}

const struct weir_kube_config *weir_kube_config_of(const struct weir_kube *kube)
{
    return &kube->config;
}

/* @return False: cancelled meanwhile. */
static bool pause_ms(struct weir_kube *kube, int64_t ms)
{
    struct timespec until = weir_deadline_after(ms);
    pthread_mutex_lock(&kube->lock);
    while (!kube->is_cancelled &&
           weir_cond_wait_until(&kube->cancelled, &kube->lock, &until) == 0) {
    }
    bool goes_on = !kube->is_cancelled;
    pthread_mutex_unlock(&kube->lock);
    return goes_on;
}

bool weir_kube_pause(struct weir_kube *kube, unsigned n)
{
    struct weir_backoff backoff = {.base_ms = PAUSE_BASE_MS, .max_ms = PAUSE_MAX_MS, .n_tries = n};
    return pause_ms(kube, weir_backoff_next_ms(&backoff));
}

/* ---- the connection -------------------------------------------------------------------------- */

/* "NAME:PORT:HOST:PORT" and the address with the name in the host's place: the certificate is for the name. */
static void rename_server(const char *server, const char *name, struct weir_arena *arena,
                          const char **out_url, const char **out_connect_to)
{
    const char *host = strstr(server, "://");
    host = host != NULL ? host + 3 : server;
    size_t len = strcspn(host, "/"), n_host = len;
    for (size_t i = len; i > 0 && host[i - 1] != ']'; i--) {
        if (host[i - 1] == ':') {
            n_host = i - 1;
            break;
        }
    }
    const char *port =
        n_host < len ? weir_arena_memdup(arena, host + n_host + 1, len - n_host - 1) : "443";
    *out_url = weir_arena_printf(arena, "https://%s:%s%s", name, port, host + len);
    *out_connect_to =
        weir_arena_printf(arena, "%s:%s:%.*s:%s", name, port, (int)n_host, host, port);
}

static void drop_connection(struct weir_kube *kube)
{
    pthread_mutex_lock(&kube->lock);
    struct weir_http_client *http = kube->http;
    kube->http = NULL;
    pthread_mutex_unlock(&kube->lock);
    weir_http_client_close(http);
}

/* What was asked in vain is asked the next API server. */
static void next_server(struct weir_kube *kube)
{
    if (kube->config.n_servers > 1) {
        kube->i_server = (kube->i_server + 1) % kube->config.n_servers;
        drop_connection(kube);
    }
}

static weir_status connect_to(struct weir_kube *kube, struct weir_arena *arena,
                              const char **out_base, struct weir_error *err)
{
    const struct weir_kube_config *config = &kube->config;
    struct weir_http_client *http;
    const char *to = NULL;
    bool is_other;
    WEIR_TRY(kube_credential_get(&kube->credential, &is_other, err));
    if (is_other) {
        drop_connection(kube);
    }
    *out_base = config->servers[kube->i_server];
    if (config->server_name != NULL) {
        rename_server(*out_base, config->server_name, arena, out_base, &to);
    }
    if (kube->http != NULL) {
        return WEIR_OK;
    }
    const struct weir_http_client_config way = {.ca_pem = config->ca_pem,
                                                .cert_pem = kube->credential.cert_pem,
                                                .key_pem = kube->credential.key_pem,
                                                .connect_to = to,
                                                .proxy = config->proxy,
                                                .has_environment_proxy = true,
                                                .is_unverified = config->is_unverified,
                                                .is_foreign = true,
                                                .connect_timeout_ms = CONNECT_MS};
    WEIR_TRY(weir_http_client_open(&way, &http, err));
    pthread_mutex_lock(&kube->lock);
    kube->http = http;
    if (kube->is_cancelled) {
        weir_http_client_cancel(http);
    }
    pthread_mutex_unlock(&kube->lock);
    return WEIR_OK;
}

/* Accept, and whom the caller acts as. */
static size_t headers_of(const struct weir_kube_config *config, struct weir_arena *arena,
                         const char *headers[HEADERS_MAX])
{
    size_t n = 0;
    headers[n++] = "Accept: application/json";
    if (config->as_user != NULL) {
        headers[n++] = weir_arena_printf(arena, "Impersonate-User: %s", config->as_user);
    }
    for (size_t i = 0; i < config->n_as_groups; i++) {
        headers[n++] = weir_arena_printf(arena, "Impersonate-Group: %s", config->as_groups[i]);
    }
    return n;
}

static const char *url_of(const char *base, const char *path, const char *query,
                          struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s%s%s%s", base, path, query != NULL ? "?" : "",
                             query != NULL ? query : "");
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* The sentence of a Status, or what else was said. */
static const char *sentence_of(const json_t *status, const struct weir_buf *body,
                               struct weir_arena *arena)
{
    const char *message = weir_kube_text(status, "message");
    if (message != NULL && message[0] != '\0') {
        return weir_arena_printf(arena, "%.800s", message);
    }
    size_t len = strcspn(body->data, "\r\n");
    return len > 0 && weir_text_is_utf8(body->data)
               ? weir_arena_printf(arena, "%.*s", (int)WEIR_MIN(len, (size_t)300), body->data)
               : "it gave no reason";
}

static weir_status status_of(int code)
{
    static const struct {
        int code;
        weir_status status;
    } known[] = {{401, WEIR_ERR_DENIED},   {403, WEIR_ERR_DENIED},   {404, WEIR_ERR_NOT_FOUND},
                 {409, WEIR_ERR_CONFLICT}, {410, WEIR_ERR_CONFLICT}, {413, WEIR_ERR_LIMIT}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        if (known[i].code == code) {
            return known[i].status;
        }
    }
    return code == 429 || code >= 500 ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_INVALID;
}

static weir_status refuse(const struct answer *answer, struct weir_arena *arena,
                          struct weir_kube_refusal *refusal, struct weir_error *err)
{
    json_t *status = json_loadb(answer->body.data, answer->body.len, 0, NULL);
    const char *reason = weir_kube_text(status, "reason");
    if (refusal != NULL) {
        refusal->code = answer->code;
        refusal->reason = reason != NULL ? weir_arena_strdup(arena, reason) : "";
    }
    const char *sentence = sentence_of(status, &answer->body, arena);
    json_decref(status);
    return weir_error_set(err, status_of(answer->code), "%s%s",
                          answer->code == 401 ? "the API server does not know who asks: " : "",
                          sentence);
}

/* A proxy, or what stands before an API server, also answers. What is no JSON is a text. */
static weir_status take_body(const struct answer *answer, json_t **out, struct weir_error *err)
{
    if (out == NULL) {
        return WEIR_OK;
    }
    const char *at = answer->body.data + strspn(answer->body.data, " \t\r\n");
    if (*at != '{') {
        *out = weir_json_string(answer->body.data, "");
        return WEIR_OK;
    }
    return weir_json_parse(answer->body.data, answer->body.len, "the API server's answer", out,
                           err);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int64_t retry_after_ms(const struct weir_http_reply *reply)
{
    char text[16];
    return weir_http_reply_header(reply, "Retry-After", text, sizeof text)
               ? WEIR_MIN(strtoll(text, NULL, 10), (long long)60) * 1000
               : 0;
}

static weir_status try_once(struct weir_kube *kube, const struct weir_kube_call *call,
                            const char *body, int64_t timeout_ms, struct answer *out,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_http_reply reply;
    const char *headers[HEADERS_MAX], *base;
    weir_arena_init(&arena, 0);
    WEIR_TRY(connect_to(kube, &arena, &base, err));
    const struct weir_http_call http = {.method = call->method,
                                        .url = url_of(base, call->path, call->query, &arena),
                                        .bearer = kube->credential.token,
                                        .headers = headers,
                                        .n_headers = headers_of(&kube->config, &arena, headers),
                                        .content_type = body == NULL ? NULL
                                                        : call->content_type != NULL
                                                            ? call->content_type
                                                            : "application/json",
                                        .body = body,
                                        .body_len = body != NULL ? strlen(body) : 0,
                                        .timeout_ms = timeout_ms,
                                        .max_reply_bytes = REPLY_MAX_BYTES};
    WEIR_TRY(weir_http_client_call(kube->http, &http, &reply, err));
    out->code = reply.http_status;
    out->retry_after_ms = retry_after_ms(&reply);
    weir_buf_fini(&out->body);
    out->body = reply.body;
    reply.body = (struct weir_buf){0};
    weir_buf_fini(&reply.headers);
    return WEIR_OK;
}

/* What is to be done about a try. */
enum next { DONE, AGAIN_AT_ONCE, AGAIN_LATER };

static enum next after_silence(struct weir_kube *kube, weir_status status)
{
    bool passes =
        status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_TIMEOUT || status == WEIR_ERR_PEER;
    if (passes || (status == WEIR_ERR_DENIED && kube->config.n_servers > 1)) {
        next_server(kube);
        return AGAIN_LATER;
    }
    return DONE;
}

/* Another has changed it meanwhile: what is asked whatever the version is asked again. */
static bool has_raced(const struct weir_kube_call *call, const struct answer *answer)
{
    if (answer->code != 409 || call->takes_no ||
        weir_kube_text(call->body, "metadata.resourceVersion") != NULL) {
        return false;
    }
    json_t *status = json_loadb(answer->body.data, answer->body.len, 0, NULL);
    const char *reason = weir_kube_text(status, "reason");
    bool has_raced = reason != NULL && strcmp(reason, "Conflict") == 0;
    json_decref(status);
    return has_raced;
}

static enum next after_answer(struct weir_kube *kube, const struct weir_kube_call *call,
                              const struct answer *answer, bool *has_credential_again)
{
    if (answer->code == 401 && !*has_credential_again) {
        *has_credential_again = true;
        return kube_credential_refused(&kube->credential) ? AGAIN_AT_ONCE : DONE;
    }
    bool is_put_off = answer->code == 429 && !call->takes_no;
    if (is_put_off || answer->code >= 500 || has_raced(call, answer)) {
        if (answer->code >= 502) {
            next_server(kube);
        }
        return AGAIN_LATER;
    }
    return DONE;
}

/* Until there is an answer that counts, or no time is left; then it is the last one that there was. */
static weir_status ask(struct weir_kube *kube, const struct weir_kube_call *call, const char *body,
                       struct answer *answer, struct weir_error *err)
{
    struct weir_backoff backoff = {.base_ms = PAUSE_BASE_MS, .max_ms = PAUSE_MAX_MS};
    int64_t until_ms = weir_mono_ms() + (call->timeout_ms > 0 ? call->timeout_ms : CALL_MS);
    bool has_credential_again = false;
    for (;;) {
        int64_t left_ms = WEIR_MAX(until_ms - weir_mono_ms(), (int64_t)1);
        answer->code = 0;
        weir_status status =
            try_once(kube, call, body, WEIR_MIN(left_ms, (int64_t)TRY_MS), answer, err);
        enum next next = status != WEIR_OK
                             ? after_silence(kube, status)
                             : after_answer(kube, call, answer, &has_credential_again);
        if (next == AGAIN_AT_ONCE) {
            continue;
        }
        int64_t pause = WEIR_MAX(weir_backoff_next_ms(&backoff),
                                 answer->code != 0 ? answer->retry_after_ms : 0);
        if (next == DONE || weir_mono_ms() + pause >= until_ms) {
            return status;
        }
        if (!pause_ms(kube, pause)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "the request was cancelled");
        }
    }
}

/* No answer is no answer, whatever it was that was not there. */
static weir_status tell_silence(weir_status status, struct weir_error *err)
{
    if (status == WEIR_ERR_TIMEOUT || status == WEIR_ERR_PEER) {
        struct weir_error why = *err;
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s", why.message);
    }
    return status;
}

weir_status weir_kube_call(struct weir_kube *kube, const struct weir_kube_call *call,
                           struct weir_arena *arena, json_t **out,
                           struct weir_kube_refusal *refusal, struct weir_error *err)
{
    struct weir_error own;
    struct answer answer = {0};
    weir_buf_init(&answer.body, 0);
    err = err != NULL ? err : &own;
    if (refusal != NULL) {
        *refusal = (struct weir_kube_refusal){.reason = ""};
    }
    char *body = call->body != NULL ? json_dumps(call->body, JSON_COMPACT) : NULL;
    if (call->body != NULL && body == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "what is asked is no UTF-8");
    }
    weir_status status = ask(kube, call, body, &answer, err);
    if (status != WEIR_OK) {
        status = tell_silence(status, err);
    } else if (answer.code >= 200 && answer.code < 300) {
        status = take_body(&answer, out, err);
    } else {
        status = refuse(&answer, arena, refusal, err);
    }
    free(body);
    weir_buf_fini(&answer.body);
    return status;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct lines {
    const struct weir_kube_stream *stream;
    struct weir_buf line; /* what is not ended yet */
};

static weir_status take_line(struct lines *lines, const char *text, size_t len,
                             struct weir_error *err)
{
    json_t *value;
    if (len == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_json_parse(text, len, LINE_NOT_JSON, &value, err));
    weir_status status = lines->stream->on_value(lines->stream->context, value, err);
    json_decref(value);
    return status;
}

static weir_status on_bytes(void *context, const char *bytes, size_t len, struct weir_error *err)
{
    struct lines *lines = context;
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t n = end != NULL ? (size_t)(end - bytes) : len;
        if (end != NULL && lines->line.len == 0) {
            WEIR_TRY(take_line(lines, bytes, n, err));
        } else {
            if (weir_buf_append(&lines->line, bytes, n) != WEIR_OK) {
                return weir_error_set(err, WEIR_ERR_LIMIT, "a line of more than %zu MiB",
                                      LINE_MAX_BYTES >> 20);
            }
            if (end != NULL) {
                WEIR_TRY(take_line(lines, lines->line.data, lines->line.len, err));
                weir_buf_reset(&lines->line);
            }
        }
        n += end != NULL;
        bytes += n;
        len -= n;
    }
    return WEIR_OK;
}

static weir_status read_stream(struct weir_kube *kube, const struct weir_kube_stream *stream,
                               struct lines *lines, struct answer *answer, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_http_reply reply;
    const char *headers[HEADERS_MAX], *base;
    weir_arena_init(&arena, 0);
    WEIR_TRY(connect_to(kube, &arena, &base, err));
    const struct weir_http_call http = {.method = "GET",
                                        .url = url_of(base, stream->path, stream->query, &arena),
                                        .bearer = kube->credential.token,
                                        .headers = headers,
                                        .n_headers = headers_of(&kube->config, &arena, headers),
                                        .quiet_timeout_ms = stream->quiet_timeout_ms,
                                        .on_bytes = on_bytes,
                                        .on_bytes_context = lines};
    WEIR_TRY(weir_http_client_call(kube->http, &http, &reply, err));
    answer->code = reply.http_status;
    answer->body = reply.body;
    weir_buf_fini(&reply.headers);
    return WEIR_OK;
}

weir_status weir_kube_stream(struct weir_kube *kube, const struct weir_kube_stream *stream,
                             struct weir_kube_refusal *refusal, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct lines lines = {.stream = stream};
    struct answer answer = {0};
    struct weir_kube_refusal own;
    refusal = refusal != NULL ? refusal : &own;
    *refusal = (struct weir_kube_refusal){.reason = ""};
    weir_arena_init(&arena, 0);
    weir_buf_init(&lines.line, LINE_MAX_BYTES);
    weir_buf_init(&answer.body, 0);
    weir_status status = read_stream(kube, stream, &lines, &answer, err);
    if (status != WEIR_OK) {
        (void)after_silence(kube, status);
    } else if (answer.code == 401) {
        (void)kube_credential_refused(&kube->credential);
    }
    if (answer.code != 0 && (answer.code < 200 || answer.code >= 300)) {
        status = refuse(&answer, &arena, refusal, err);
        refusal->reason = ""; /* it lay in our arena */
    } else {
        status = tell_silence(status, err);
    }
    weir_buf_fini(&lines.line);
    weir_buf_fini(&answer.body);
    return status;
}
