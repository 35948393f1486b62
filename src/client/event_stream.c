#include "client/event_stream.h"

#include <string.h>

#define DATA_MAX_BYTES ((size_t)1 << 20)
#define NAME_MAX_BYTES 256

void event_stream_init(struct event_stream *s, const char *first_id, weir_client_event_fn event_fn,
                       void *context)
{
    *s = (struct event_stream){.event_fn = event_fn, .context = context};
    weir_buf_init(&s->event, NAME_MAX_BYTES);
    weir_buf_init(&s->data, DATA_MAX_BYTES);
    weir_buf_init(&s->id, NAME_MAX_BYTES);
    weir_buf_init(&s->last_id, NAME_MAX_BYTES);
    if (first_id != NULL) {
        (void)weir_buf_puts(&s->id, first_id);
        (void)weir_buf_puts(&s->last_id, first_id);
    }
}

void event_stream_fini(struct event_stream *s)
{
    weir_buf_fini(&s->event);
    weir_buf_fini(&s->data);
    weir_buf_fini(&s->id);
    weir_buf_fini(&s->last_id);
}

void event_stream_restart(struct event_stream *s)
{
    weir_buf_reset(&s->event);
    weir_buf_reset(&s->data);
    s->has_data = false;
    s->verdict = WEIR_OK;
    /* An identifier that came without the end of its event counts no more than the event. */
    weir_buf_reset(&s->id);
    (void)weir_buf_puts(&s->id, s->last_id.data);
}

static weir_status dispatch(struct event_stream *s)
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

weir_status event_stream_line(struct event_stream *s, const char *line, size_t len)
{
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
