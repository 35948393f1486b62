#include "notify/receiver.h"

#include "base/file.h"
#include "base/log.h"
#include "http/http_client.h"
#include "notify/notify.h"

#include <string.h>

#define SECRET_MAX_BYTES  ((size_t)4 << 10)
#define ANSWER_MAX_BYTES  ((size_t)64 << 10)
#define ANSWER_LOGGED_MAX 500

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_receiver_##name,
#include "notify/receivers.def"
#undef WEIR_KIND
};

const struct weir_registry weir_receiver_kinds = {
    .noun = "receiver",
    .plural = "receivers",
    .doc = "Where messages about alerts go. An admin of the platform defines receivers; rules of "
           "alerts name them.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
};

weir_status weir_receiver_read(const char *kind_name, const json_t *options, const char *where,
                               struct weir_arena *arena, struct weir_configured *out,
                               struct weir_error *err)
{
    const struct weir_kind *kind;
    WEIR_TRY(weir_registry_find(&weir_receiver_kinds, kind_name, "$.kind", &kind, err));
    WEIR_TRY(weir_kind_read(kind, options, where, arena, out, err));
    const struct weir_receiver_ops *ops = kind->ops;
    return ops->check != NULL ? ops->check(out->options, err) : WEIR_OK;
}

bool weir_receiver_forgets(const char *kind)
{
    const struct weir_kind *found = weir_registry_get(&weir_receiver_kinds, kind);
    const struct weir_receiver_ops *ops = found != NULL ? found->ops : NULL;
    return ops != NULL && ops->forgets;
}

/* ---- for the kinds --------------------------------------------------------------------------- */

weir_status receiver_check_url(const char *url, const char *place, struct weir_error *err)
{
    const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
                       : strncmp(url, "https://", 8) == 0 ? url + 8
                                                          : NULL;
    size_t host_len = host != NULL ? strcspn(host, "/?#") : 0;
    bool is_plain = true;
    for (const char *p = url; *p != '\0'; p++) {
        is_plain = is_plain && *p > ' ' && *p != 0x7f;
    }
    if (host_len == 0 || !is_plain || memchr(host, '@', host_len) != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected http://HOST… or https://HOST…, without blanks and "
                              "without a user or password in it",
                              place);
    }
    return WEIR_OK;
}

weir_status receiver_check_token(const char *token, struct weir_error *err)
{
    for (const char *p = token != NULL ? token : ""; *p != '\0'; p++) {
        if (*p <= ' ' || *p >= 0x7f) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.options.token: expected a word of ASCII letters and signs");
        }
    }
    return WEIR_OK;
}

void receiver_log(const struct weir_receiver_send *send, const char *text)
{
    weir_log(WEIR_LOG_DEBUG, "receiver_said", WEIR_KV_STR("delivery", send->delivery),
             WEIR_KV_STR("text", text));
}

weir_status receiver_read_secret(const struct weir_receiver_send *send, const char *path,
                                 char **out, struct weir_error *err)
{
    char *text;
    size_t len;
    weir_status status = weir_file_read(path, SECRET_MAX_BYTES, send->arena, &text, &len, err);
    if (status != WEIR_OK) {
        receiver_log(send, err->message);
        return weir_error_set(err, status, "its password_file cannot be read");
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_IO, "the first line of its password_file is empty");
    }
    *out = text;
    return WEIR_OK;
}

/* What a receiver answered. Its text is for the log alone: servers answer with the path that was asked
 * for, and a path may be a secret. */
static weir_status judge(const struct weir_receiver_send *send, const struct weir_http_reply *reply,
                         struct weir_error *err)
{
    int http = reply->http_status;
    if (http >= 200 && http < 300) {
        return WEIR_OK;
    }
    int shown = (int)WEIR_MIN(reply->body.len, (size_t)ANSWER_LOGGED_MAX);
    receiver_log(send, weir_arena_printf(send->arena, "%.*s", shown, reply->body.data));
    bool is_refusal = http >= 300 && http < 500 && http != 408 && http != 425 && http != 429;
    return weir_error_set(err, is_refusal ? WEIR_ERR_INVALID : WEIR_ERR_UNAVAILABLE,
                          "it answered with HTTP status %d", http);
}

/* The client's sentence names the address. */
static weir_status tell_failure(const struct weir_receiver_send *send, weir_status status,
                                struct weir_error *err)
{
    receiver_log(send, err->message);
    switch (status) {
    case WEIR_ERR_UNAVAILABLE:
        return weir_error_set(err, status, "nothing answers at its address");
    case WEIR_ERR_TIMEOUT:
        return weir_error_set(err, status, "it did not answer within %lld ms",
                              (long long)send->timeout_ms);
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

bool receiver_is_stopping(struct weir_receiver_stop *stop)
{
    pthread_mutex_lock(&stop->lock);
    bool is_stopping = stop->is_stopping;
    pthread_mutex_unlock(&stop->lock);
    return is_stopping;
}

/* From now on a stop cancels this client; NULL: none. */
static void set_current(struct weir_receiver_stop *stop, struct weir_http_client *client)
{
    pthread_mutex_lock(&stop->lock);
    stop->client = client;
    if (client != NULL && stop->is_stopping) {
        weir_http_client_cancel(client);
    }
    pthread_mutex_unlock(&stop->lock);
}

weir_status receiver_post(const struct weir_receiver_send *send, struct weir_http_call *call,
                          const char *ca_file, struct weir_error *err)
{
    struct weir_http_client *client = send->client, *own = NULL;
    struct weir_http_reply reply;
    call->method = "POST";
    call->timeout_ms = send->timeout_ms;
    call->max_reply_bytes = ANSWER_MAX_BYTES;
    if (ca_file != NULL) {
        const struct weir_http_client_config config = {.ca_file = ca_file};
        WEIR_TRY(weir_http_client_open(&config, &own, err));
        client = own;
    }
    set_current(send->stop, client);
    weir_status status = weir_http_client_call(client, call, &reply, err);
    set_current(send->stop, NULL);
    if (status == WEIR_OK) {
        status = judge(send, &reply, err);
        weir_http_reply_fini(&reply);
    } else {
        status = tell_failure(send, status, err);
    }
    weir_http_client_close(own);
    return status;
}

char *receiver_title(const json_t *message, struct weir_arena *arena)
{
    const json_t *alerts = json_object_get(message, "alerts");
    const json_t *first = json_array_get(alerts, 0);
    const char *event = json_string_value(json_object_get(message, "event"));
    const char *severity = json_string_value(json_object_get(first, "severity"));
    const char *text = json_string_value(json_object_get(first, "message"));
    size_t n = json_array_size(alerts);
    bool is_end = event != NULL && strcmp(event, WEIR_DELIVERY_RESOLVED) == 0;
    char *more = n > 1 ? weir_arena_printf(arena, " (and %zu more)", n - 1) : "";
    return weir_arena_printf(arena, "[%s] %s%s%s",
                             is_end             ? "resolved"
                             : severity != NULL ? severity
                                                : "test",
                             event != NULL && strcmp(event, WEIR_DELIVERY_ESCALATED) == 0
                                 ? "Nobody looks after it: "
                                 : "",
                             text != NULL ? text : "A test of this receiver", more);
}
