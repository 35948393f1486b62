#include "agent/supervise/log_sink.h"

#include "base/clock.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

weir_status log_sink_open(struct log_sink *sink, const char *path, int64_t max_bytes,
                          struct weir_error *err)
{
    *sink = (struct log_sink){0};
    WEIR_TRY(weir_rolling_open(&sink->file, path, max_bytes, err));
    sink->end = weir_rolling_end(&sink->file);
    return WEIR_OK;
}

/* Bytes before it are left out: it begins with a whole line, if it has one. */
static void begin_with_line(struct log_sink *sink)
{
    const char *line_end = memchr(sink->waiting, '\n', sink->n_waiting);
    size_t n = line_end != NULL ? (size_t)(line_end - sink->waiting) + 1 : 0;
    if (n < sink->n_waiting) {
        sink->n_waiting -= n;
        memmove(sink->waiting, sink->waiting + n, sink->n_waiting);
    }
}

/* It is not on disk: remember the last of it. */
static void keep_waiting(struct log_sink *sink, const char *bytes, size_t len)
{
    if (sink->waiting == NULL) {
        sink->waiting = malloc(LOG_SINK_WAITING_BYTES);
    }
    if (sink->waiting == NULL) {
        return; /* left out, as if it had been too much */
    }
    size_t n_new = WEIR_MIN(len, (size_t)LOG_SINK_WAITING_BYTES);
    size_t n_old = WEIR_MIN(sink->n_waiting, LOG_SINK_WAITING_BYTES - n_new);
    bool is_cut = n_new < len || n_old < sink->n_waiting;
    memmove(sink->waiting, sink->waiting + sink->n_waiting - n_old, n_old);
    memcpy(sink->waiting + n_old, bytes + len - n_new, n_new);
    sink->n_waiting = n_old + n_new;
    if (is_cut) {
        begin_with_line(sink);
    }
}

/* True: nothing waits any more. */
static bool write_waiting(struct log_sink *sink)
{
    size_t n = 0;
    if (sink->n_waiting == 0) {
        return true;
    }
    (void)weir_rolling_write(&sink->file, sink->end - (int64_t)sink->n_waiting, weir_time_ms(),
                             sink->waiting, sink->n_waiting, &n, NULL);
    sink->n_waiting -= n;
    memmove(sink->waiting, sink->waiting + n, sink->n_waiting);
    return sink->n_waiting == 0;
}

void log_sink_write(struct log_sink *sink, const char *bytes, size_t len)
{
    size_t n = 0;
    if (write_waiting(sink)) {
        (void)weir_rolling_write(&sink->file, sink->end, weir_time_ms(), bytes, len, &n, NULL);
    }
    sink->end += (int64_t)len;
    if (n < len) {
        keep_waiting(sink, bytes + n, len - n);
    }
}

int64_t log_sink_close(struct log_sink *sink)
{
    (void)write_waiting(sink);
    int64_t end = weir_rolling_end(&sink->file);
    weir_rolling_sync(&sink->file);
    weir_rolling_close(&sink->file);
    free(sink->waiting);
    return end;
}
