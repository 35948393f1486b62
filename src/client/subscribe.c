/* Server-sent events: the parser of the stream (WHATWG HTML, 9.2.6) and the reconnecting loop. */
#include "client/client_private.h"

#include "base/clock.h"

#include <string.h>

#define DATA_MAX_BYTES   ((size_t)1 << 20)
#define QUIET_TIMEOUT_MS 45000 /* the server sends a comment every 15 s */

struct subscription {
    struct weir_client *client;
    weir_client_event_fn event_fn;
    void *context;
    struct weir_buf event, data, id; /* of the event being read */
    struct weir_buf last_id;         /* of the last event given to event_fn */
    bool has_data;
    bool has_contact;    /* a line arrived on this connection */
    weir_status verdict; /* of event_fn */
};

static weir_status dispatch(struct subscription *s)
{
    weir_status status = WEIR_OK;
    if (s->has_data) {
        if (s->data.len > 0 && s->data.data[s->data.len - 1] == '\n') {
            s->data.data[--s->data.len] = '\0';
        }
        struct weir_client_event event = {.event = s->event.len > 0 ? s->event.data : "message",
                                          .id = s->id.data,
                                          .data = s->data.data};
        status = s->event_fn(s->context, &event);
        s->verdict = status;
        /* An event that was refused comes again after a resume; one that was taken does not. */
        if (status == WEIR_OK || status == WEIR_ERR_END) {
            weir_buf_reset(&s->last_id);
            (void)weir_buf_puts(&s->last_id, s->id.data);
        }
    }
    weir_buf_reset(&s->event);
    weir_buf_reset(&s->data);
    s->has_data = false;
    return status;
}

static bool is_field(const char *line, size_t name_len, const char *name)
{
    return strlen(name) == name_len && memcmp(line, name, name_len) == 0;
}

static weir_status on_line(void *context, const char *line, size_t len)
{
    struct subscription *s = context;
    s->has_contact = true;
    if (len == 0) {
        return dispatch(s);
    }
    if (line[0] == ':') {
        return WEIR_OK;
    }
    size_t name_len = strcspn(line, ":");
    const char *value = line + name_len;
    value += *value == ':';
    value += *value == ' ';
    if (is_field(line, name_len, "data")) {
        s->has_data = true;
        (void)weir_buf_puts(&s->data, value);
        return weir_buf_puts(&s->data, "\n");
    }
    if (is_field(line, name_len, "event")) {
        weir_buf_reset(&s->event);
        return weir_buf_puts(&s->event, value);
    }
    if (is_field(line, name_len, "id")) {
        weir_buf_reset(&s->id);
        return weir_buf_puts(&s->id, value);
    }
    return WEIR_OK; /* "retry" and unknown fields */
}

/* One connection, until it ends; the server's orderly end is PEER: try again. */
static weir_status follow(struct subscription *s, const char *path, struct weir_error *err)
{
    weir_buf_reset(&s->event);
    weir_buf_reset(&s->data);
    s->has_data = false;
    s->has_contact = false;
    s->verdict = WEIR_OK;
    char resume[512];
    (void)snprintf(resume, sizeof resume, "Last-Event-ID: %s", s->last_id.data);
    const char *const headers[] = {"Accept: text/event-stream", resume};
    struct weir_http_call call = {.method = "GET",
                                  .headers = headers,
                                  .n_headers = s->last_id.len > 0 ? 2 : 1,
                                  .quiet_timeout_ms = QUIET_TIMEOUT_MS,
                                  .line_fn = on_line,
                                  .line_context = s};
    struct weir_http_reply reply;
    WEIR_TRY(client_http(s->client, &call, path, &reply, err));
    weir_status status =
        reply.http_status == 200
            ? weir_error_set(err, WEIR_ERR_PEER, "the server ended the stream %s", path)
            : client_error(&reply, "GET", path, err);
    weir_http_reply_fini(&reply);
    return status;
}

static weir_status follow_again(struct subscription *s, const char *path, int64_t give_up_ms,
                                struct weir_error *err)
{
    struct weir_backoff backoff = {.base_ms = 100, .max_ms = 10000};
    int64_t contact_ms = weir_mono_ms();
    for (;;) {
        weir_status status = follow(s, path, err);
        if (s->verdict != WEIR_OK) {
            return s->verdict == WEIR_ERR_END ? WEIR_OK : s->verdict;
        }
        if (!weir_client_can_retry(status)) {
            return status;
        }
        int64_t now = weir_mono_ms();
        if (s->has_contact) {
            weir_backoff_reset(&backoff);
            contact_ms = now;
        }
        int64_t delay_ms = weir_backoff_next_ms(&backoff);
        if (give_up_ms > 0 && now + delay_ms - contact_ms > give_up_ms) {
            return status;
        }
        WEIR_TRY(client_pause(s->client, delay_ms, err));
    }
}

weir_status weir_client_subscribe(struct weir_client *client, const char *path,
                                  const char *first_id, int64_t give_up_ms,
                                  weir_client_event_fn event_fn, void *context,
                                  struct weir_error *err)
{
    struct subscription s = {.client = client, .event_fn = event_fn, .context = context};
    weir_buf_init(&s.event, 256);
    weir_buf_init(&s.data, DATA_MAX_BYTES);
    weir_buf_init(&s.id, 256);
    weir_buf_init(&s.last_id, 256);
    if (first_id != NULL) {
        (void)weir_buf_puts(&s.id, first_id);
        (void)weir_buf_puts(&s.last_id, first_id);
    }
    weir_status status = follow_again(&s, path, give_up_ms, err);
    weir_buf_fini(&s.event);
    weir_buf_fini(&s.data);
    weir_buf_fini(&s.id);
    weir_buf_fini(&s.last_id);
    return status;
}
