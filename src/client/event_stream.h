/** A stream of server-sent events, line by line (WHATWG HTML, 9.2.6): the parser of subscribe.c. */
#ifndef WEIR_CLIENT_EVENT_STREAM_H
#define WEIR_CLIENT_EVENT_STREAM_H

#include "base/buf.h"
#include "client/client.h"

#include <stdbool.h>

struct event_stream {
    weir_client_event_fn event_fn;
    void *context;
    struct weir_buf event, data, id; /**< Of the event being read. */
    struct weir_buf last_id;         /**< Of the last event that event_fn took. */
    bool has_data;
    weir_status verdict; /**< Of event_fn. */
};

/** @param first_id  What last_id begins with; may be NULL. */
void event_stream_init(struct event_stream *stream, const char *first_id,
                       weir_client_event_fn event_fn, void *context);
void event_stream_fini(struct event_stream *stream);

/** A new connection: what was read of an event is forgotten, last_id is not. */
void event_stream_restart(struct event_stream *stream);

/**
 * One line without its end; the empty one ends an event. The line has a NUL behind it.
 * @return what event_fn returned; LIMIT for data over 1 MiB, an event's name or identifier over 256
 *         bytes; NOMEM.
 */
weir_status event_stream_line(struct event_stream *stream, const char *line,
                              size_t len) WEIR_MUST_CHECK;

#endif
