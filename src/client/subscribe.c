/* Server-sent events: the reconnecting loop around the parser (event_stream.c). */
#include "client/client_private.h"

#include "base/clock.h"
#include "client/event_stream.h"

#include <stdio.h>

#define QUIET_TIMEOUT_MS 45000 /* the server sends a comment every 15 s */

struct subscription {
    struct weir_client *client;
    struct event_stream stream;
    bool has_contact; /* a line arrived on this connection */
};

static weir_status on_line(void *context, const char *line, size_t len)
{
    struct subscription *s = context;
    s->has_contact = true;
    return event_stream_line(&s->stream, line, len);
}

/* One connection, until it ends; the server's orderly end is PEER: try again. */
static weir_status follow(struct subscription *s, const char *path, struct weir_error *err)
{
    event_stream_restart(&s->stream);
    s->has_contact = false;
    char resume[512];
    (void)snprintf(resume, sizeof resume, "Last-Event-ID: %s", s->stream.last_id.data);
    const char *const headers[] = {"Accept: text/event-stream", resume};
    struct weir_http_call call = {.method = "GET",
                                  .headers = headers,
                                  .n_headers = s->stream.last_id.len > 0 ? 2 : 1,
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
        if (s->stream.verdict != WEIR_OK) {
            return s->stream.verdict == WEIR_ERR_END ? WEIR_OK : s->stream.verdict;
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
    struct subscription s = {.client = client};
    event_stream_init(&s.stream, first_id, event_fn, context);
    weir_status status = follow_again(&s, path, give_up_ms, err);
    event_stream_fini(&s.stream);
    return status;
}
