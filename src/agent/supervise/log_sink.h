/**
 * Log of one task: what it wrote, on disk, within a maximum (base/rolling.h): the beginning, and always the
 * newest lines.
 *
 * The task is never held up by its log. What a full disk does not take is remembered, the last 64 KiB of
 * it, and written when there is room again; the rest is left out. A line has the time of this writing.
 */
#ifndef WEIR_AGENT_LOG_SINK_H
#define WEIR_AGENT_LOG_SINK_H

#include "base/rolling.h"

#define LOG_SINK_WAITING_BYTES 65536

struct log_sink {
    struct weir_rolling file;
    int64_t end;   /* the position behind all that the task wrote */
    char *waiting; /* the last of that, which is not on disk; NULL until needed */
    size_t n_waiting;
};

/** Goes on behind what is there. */
weir_status log_sink_open(struct log_sink *sink, const char *path, int64_t max_bytes,
                          struct weir_error *err) WEIR_MUST_CHECK;
void log_sink_write(struct log_sink *sink, const char *bytes, size_t len);

/** Make the file durable, close it. Returns how long it is, with what is left out of it. */
int64_t log_sink_close(struct log_sink *sink);

#endif
