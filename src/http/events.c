/* Server-sent events: the text format, and libmicrohttpd's reader of a stream. */
#include "http/server_private.h"

#include "base/clock.h"

#include <string.h>
#include <sys/types.h>

#define READER_BLOCK_BYTES 16384

/* A field's value must stay on its line. */
static bool is_one_line(const char *text)
{
    return strpbrk(text, "\r\n") == NULL;
}

weir_status weir_http_event_append(struct weir_buf *out, const char *event, const char *id,
                                   const char *data)
{
    if ((event != NULL && !is_one_line(event)) || (id != NULL && !is_one_line(id))) {
        return WEIR_ERR_INVALID;
    }
    size_t before = out->len;
    if (event != NULL) {
        (void)weir_buf_printf(out, "event: %s\n", event);
    }
    if (id != NULL) {
        (void)weir_buf_printf(out, "id: %s\n", id);
    }
    const char *line = data;
    for (;;) {
        size_t len = strcspn(line, "\r\n");
        (void)weir_buf_puts(out, "data: ");
        (void)weir_buf_append(out, line, len);
        (void)weir_buf_puts(out, "\n");
        line += len;
        if (*line == '\0') {
            break;
        }
        line += line[0] == '\r' && line[1] == '\n' ? 2 : 1;
    }
    (void)weir_buf_puts(out, "\n");
    weir_status status = out->status;
    if (status != WEIR_OK && out->cap > 0) {
        /* Whole events only. With others before it this one goes into the next batch; alone it is
         * too long for any batch, and the status stays. */
        out->len = before;
        out->data[before] = '\0';
        out->status = before > 0 ? WEIR_OK : status;
    }
    return status;
}

/* libmicrohttpd asks for bytes to send. */
static ssize_t read_events(void *context, uint64_t position, char *out, size_t size)
{
    (void)position;
    struct http_exchange *x = context;
    pthread_mutex_lock(&x->server->lock);
    ssize_t n = 0;
    size_t left = x->pending.len - x->n_pending_sent;
    if (left > 0) {
        n = (ssize_t)WEIR_MIN(left, size);
        memcpy(out, x->pending.data + x->n_pending_sent, (size_t)n);
        x->n_pending_sent += (size_t)n;
    } else if (x->is_stream_over || x->server->is_stopping) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        pool_submit_pull(x);
    }
    pthread_mutex_unlock(&x->server->lock);
    return n;
}

void events_make_response(struct http_exchange *x)
{
    x->response.mhd = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, READER_BLOCK_BYTES,
                                                        read_events, x, NULL);
    if (x->response.mhd == NULL) {
        fprintf(stderr, "weir: out of memory in an HTTP answer\n");
        abort();
    }
    x->quiet_since_ms = weir_mono_ms();
    weir_http_response_header(&x->response, "Content-Type", "text/event-stream");
    weir_http_response_header(&x->response, "X-Accel-Buffering", "no");
}
