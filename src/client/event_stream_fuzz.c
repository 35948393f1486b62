/* Any bytes as a stream of events; and any event, written by the server's side, read back the same.
 */
#include "client/event_stream.h"

#include "http/http.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    const char *event, *id, *data; /* what is expected; NULL: anything */
    int n;
};

static weir_status look(void *context, const struct weir_client_event *event)
{
    struct seen *seen = context;
    seen->n++;
    if (strlen(event->event) > 256 || strlen(event->id) > 256 || event->event[0] == '\0') {
        abort();
    }
    if (seen->data != NULL &&
        (strcmp(event->event, seen->event) != 0 || strcmp(event->id, seen->id) != 0 ||
         strcmp(event->data, seen->data) != 0)) {
        abort();
    }
    return WEIR_OK;
}

/* Each line a copy of its own size, as the HTTP client gives it. */
static void feed(struct event_stream *stream, const char *text, size_t len)
{
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end == NULL ? len : (size_t)(end - text), used = end == NULL ? n : n + 1;
        char *line = malloc(n + 1);
        if (line == NULL) {
            return;
        }
        memcpy(line, text, n);
        n -= n > 0 && line[n - 1] == '\r';
        line[n] = '\0';
        weir_status status = event_stream_line(stream, line, n);
        free(line);
        if (status != WEIR_OK) {
            event_stream_restart(stream); /* the loop would connect again */
        }
        text += used;
        len -= used;
    }
}

static void read_any(const uint8_t *data, size_t size)
{
    struct event_stream stream;
    struct seen seen = {0};
    event_stream_init(&stream, "7", look, &seen);
    feed(&stream, (const char *)data, size);
    event_stream_fini(&stream);
}

/* name LF id LF data */
static void write_and_read(char *text)
{
    char *name = strsep(&text, "\n"), *id = strsep(&text, "\n");
    struct weir_buf out;
    struct event_stream stream;
    if (text == NULL || strchr(text, '\r') != NULL || name[0] == '\0') {
        return;
    }
    weir_buf_init(&out, WEIR_HTTP_EVENTS_MAX_BYTES);
    if (strlen(name) < 256 && strlen(id) < 256 &&
        weir_http_event_append(&out, name, id, text) == WEIR_OK) {
        struct seen seen = {name, id, text, 0};
        event_stream_init(&stream, NULL, look, &seen);
        feed(&stream, out.data, out.len);
        if (seen.n != 1 || strcmp(stream.last_id.data, id) != 0) {
            abort();
        }
        event_stream_fini(&stream);
    }
    weir_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_any(data, size);
    char *text = strndup((const char *)data, size);
    if (text != NULL) {
        write_and_read(text);
        free(text);
    }
    return 0;
}
