#include "client/client_private.h"

#include "base/clock.h"
#include "http/http.h"

#include <assert.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_TIMEOUT_MS    30000
#define QUIET_TIMEOUT_MS   60000
#define SLOW_DISK_BYTES_MS 10000 /* what the slowest disk writes in a millisecond */

weir_status weir_client_open(const struct weir_client_config *config, struct weir_client **out,
                             struct weir_error *err)
{
    struct weir_client *client = weir_xalloc(sizeof *client);
    memset(client, 0, sizeof *client);
    client->timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : CALL_TIMEOUT_MS;
    client->ca_file = config->ca_file != NULL ? weir_xstrdup(config->ca_file) : NULL;
    client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    weir_status status = client->wake_fd >= 0
                             ? WEIR_OK
                             : weir_error_set(err, WEIR_ERR_IO, "cannot make an event descriptor");
    if (status == WEIR_OK) {
        status = client_discover(config, &client->server, &client->token, err);
    }
    if (status == WEIR_OK) {
        struct weir_http_client_config http = {.ca_file = config->ca_file};
        status = weir_http_client_open(&http, &client->http, err);
    }
    if (status != WEIR_OK) {
        weir_client_close(client);
        return status;
    }
    *out = client;
    return WEIR_OK;
}

void weir_client_close(struct weir_client *client)
{
    if (client == NULL) {
        return;
    }
    weir_http_client_close(client->http);
    if (client->wake_fd >= 0) {
        close(client->wake_fd);
    }
    free(client->server);
    free(client->ca_file);
    if (client->token != NULL) {
        explicit_bzero(client->token, strlen(client->token));
    }
    free(client->token);
    free(client);
}

const char *weir_client_token(const struct weir_client *client)
{
    return client->token;
}

const char *weir_client_server(const struct weir_client *client)
{
    return client->server;
}

void weir_client_set_timeout(struct weir_client *client, int64_t timeout_ms)
{
    client->timeout_ms = timeout_ms;
}

void weir_client_cancel(struct weir_client *client)
{
    uint64_t one = 1;
    atomic_store(&client->is_cancelled, true);
    (void)!write(client->wake_fd, &one, sizeof one);
    weir_http_client_cancel(client->http);
}

/* Consume a cancellation; true if there was one. */
static bool take_cancel(struct weir_client *client)
{
    uint64_t n;
    bool was = atomic_exchange(&client->is_cancelled, false);
    (void)!read(client->wake_fd, &n, sizeof n);
    weir_http_client_cancel_clear(client->http);
    return was;
}

weir_status client_pause(struct weir_client *client, int64_t ms, struct weir_error *err)
{
    int64_t until_ms = weir_mono_ms() + ms;
    int64_t left_ms = ms;
    while (left_ms > 0 && !atomic_load(&client->is_cancelled)) {
        struct pollfd fd = {.fd = client->wake_fd, .events = POLLIN};
        (void)poll(&fd, 1, (int)WEIR_MIN(left_ms, (int64_t)60000));
        left_ms = until_ms - weir_mono_ms();
    }
    if (take_cancel(client)) {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "the request was cancelled");
    }
    return WEIR_OK;
}

weir_status client_http(struct weir_client *client, struct weir_http_call *call, const char *path,
                        struct weir_http_reply *reply, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    call->url = weir_arena_printf(&arena, "%s%s", client->server, path);
    call->bearer = client->token;
    weir_status status = weir_http_client_call(client->http, call, reply, err);
    call->url = NULL;
    weir_arena_fini(&arena);
    if (status == WEIR_ERR_CANCELLED) {
        (void)take_cancel(client);
    }
    return status;
}

/* The status whose HTTP number this is, for answers without our error body (a proxy's). */
static weir_status status_of_http(int http_status)
{
    switch (http_status) {
    case 401:
        return WEIR_ERR_UNAUTH;
    case 403:
        return WEIR_ERR_DENIED;
    case 404:
        return WEIR_ERR_NOT_FOUND;
    case 409:
        return WEIR_ERR_CONFLICT;
    case 413:
    case 431:
        return WEIR_ERR_LIMIT;
    case 501:
        return WEIR_ERR_UNSUPPORTED;
    case 408:
    case 504:
        return WEIR_ERR_TIMEOUT;
    case 429:
    case 502:
    case 503:
        return WEIR_ERR_UNAVAILABLE;
    case 507:
        return WEIR_ERR_NOSPACE;
    default:
        return http_status >= 500 ? WEIR_ERR_INTERNAL : WEIR_ERR_INVALID;
    }
}

weir_status client_error(const struct weir_http_reply *reply, const char *method, const char *path,
                         struct weir_error *err)
{
    json_t *body = json_loadb(reply->body.data, reply->body.len, 0, NULL);
    const json_t *error = json_object_get(body, "error");
    const char *name = json_string_value(json_object_get(error, "status"));
    const char *message = json_string_value(json_object_get(error, "message"));
    weir_status status;
    if (name != NULL && message != NULL) {
        status = weir_error_set(err, weir_status_from_name(name), "%s", message);
    } else if (json_is_string(error)) { /* The inference protocols' errors are a sentence. */
        status =
            weir_error_set(err, status_of_http(reply->http_status), "%s", json_string_value(error));
    } else {
        status = weir_error_set(err, status_of_http(reply->http_status),
                                "the server answered %s %s with HTTP status %d", method, path,
                                reply->http_status);
    }
    json_decref(body);
    return status;
}

weir_status weir_client_call_raw(struct weir_client *client, const char *method, const char *path,
                                 const char *content_type, const void *body, size_t body_len,
                                 int *out_http, json_t **out, struct weir_error *err)
{
    struct weir_http_call call = {.method = method,
                                  .content_type = content_type,
                                  .body = body,
                                  .body_len = body_len,
                                  .timeout_ms = client->timeout_ms};
    struct weir_http_reply reply;
    WEIR_TRY(client_http(client, &call, path, &reply, err));
    json_t *value = NULL;
    weir_status status = WEIR_OK;
    if (reply.body.len == 0) {
        value = json_null();
    } else {
        struct weir_error bad;
        status = weir_json_parse(reply.body.data, reply.body.len, path, &value, &bad);
        if (status != WEIR_OK && reply.http_status < 400) {
            status = weir_error_set(err, WEIR_ERR_CORRUPT, "the answer to %s %s is not JSON: %s",
                                    method, path, bad.message);
        }
    }
    if (reply.http_status >= 300) {
        status = client_error(&reply, method, path, err);
    }
    if (out_http != NULL) {
        *out_http = reply.http_status;
    }
    weir_http_reply_fini(&reply);
    if (out != NULL) {
        *out = value;
    } else {
        json_decref(value);
    }
    return status;
}

weir_status weir_client_call(struct weir_client *client, const char *method, const char *path,
                             const json_t *body, json_t **out, struct weir_error *err)
{
    char *text = NULL;
    if (body != NULL) {
        text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
        if (text == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a request");
        }
    }
    json_t *answer = NULL;
    weir_status status =
        weir_client_call_raw(client, method, path, text != NULL ? "application/json" : NULL, text,
                             text != NULL ? strlen(text) : 0, NULL, &answer, err);
    free(text);
    if (status == WEIR_OK && out != NULL) {
        *out = answer;
    } else {
        json_decref(answer);
    }
    return status;
}

weir_status weir_client_get_bytes(struct weir_client *client, const char *path,
                                  struct weir_buf *out, int64_t *out_offset, struct weir_error *err)
{
    struct weir_http_call call = {.method = "GET",
                                  .timeout_ms = client->timeout_ms,
                                  .max_reply_bytes = out->max_bytes - out->len};
    struct weir_http_reply reply;
    WEIR_TRY(client_http(client, &call, path, &reply, err));
    weir_status status = WEIR_OK;
    if (reply.http_status >= 300) {
        status = client_error(&reply, "GET", path, err);
    } else {
        status = weir_buf_append(out, reply.body.data, reply.body.len);
        char offset[32];
        if (out_offset != NULL) {
            *out_offset = weir_http_reply_header(&reply, "X-Weir-Offset", offset, sizeof offset)
                              ? strtoll(offset, NULL, 10)
                              : -1;
        }
    }
    weir_http_reply_fini(&reply);
    return status;
}

weir_status weir_client_send_file(struct weir_client *client, const char *method, const char *path,
                                  const char *content_type, const char *file, json_t **out,
                                  struct weir_error *err)
{
    struct stat facts = {0};
    (void)stat(file, &facts); /* one that is not there is found when it is sent */
    struct weir_http_call call = {.method = method,
                                  .content_type = content_type,
                                  .body_file = file,
                                  .quiet_timeout_ms =
                                      QUIET_TIMEOUT_MS + facts.st_size / SLOW_DISK_BYTES_MS};
    struct weir_http_reply reply;
    WEIR_TRY(client_http(client, &call, path, &reply, err));
    weir_status status = WEIR_OK;
    json_t *value = NULL;
    if (reply.http_status >= 300) {
        status = client_error(&reply, method, path, err);
    } else if (reply.body.len == 0) {
        value = json_null();
    } else {
        status = weir_json_parse(reply.body.data, reply.body.len, path, &value, err);
    }
    weir_http_reply_fini(&reply);
    if (status == WEIR_OK && out != NULL) {
        *out = value;
    } else {
        json_decref(value);
    }
    return status;
}

char *weir_client_path(struct weir_arena *arena, const char *pattern, const char *const *values,
                       size_t n_values)
{
    char *path = weir_arena_strdup(arena, "");
    size_t i = 0;
    for (;;) {
        const char *hole = strstr(pattern, "{}");
        if (hole == NULL) {
            break;
        }
        assert(i < n_values);
        if (i == n_values) {
            break;
        }
        path = weir_arena_printf(arena, "%s%.*s%s", path, (int)(hole - pattern), pattern,
                                 weir_http_percent_encode(arena, values[i++]));
        pattern = hole + 2;
    }
    assert(i == n_values);
    return weir_arena_printf(arena, "%s%s", path, pattern);
}

bool weir_client_can_retry(weir_status status)
{
    return status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_TIMEOUT ||
           status == WEIR_ERR_PEER || status == WEIR_ERR_NOMEM;
}

weir_status weir_client_call_retry(struct weir_client *client, const char *method, const char *path,
                                   const json_t *body, int64_t deadline_ms, json_t **out,
                                   struct weir_error *err)
{
    struct weir_backoff backoff = {.base_ms = 100, .max_ms = 5000};
    int64_t until_ms = weir_mono_ms() + deadline_ms;
    for (;;) {
        weir_status status = weir_client_call(client, method, path, body, out, err);
        if (status == WEIR_OK || !weir_client_can_retry(status)) {
            return status;
        }
        int64_t delay_ms = weir_backoff_next_ms(&backoff);
        if (weir_mono_ms() + delay_ms >= until_ms) {
            return status;
        }
        WEIR_TRY(client_pause(client, delay_ms, err));
    }
}
