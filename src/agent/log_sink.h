/**
 * Log of one task: what it wrote, on disk, within a maximum.
 *
 * The beginning is kept up to max_bytes - 128 KiB. After that bytes are counted and only the last
 * 64 KiB remembered; at the end one line says how many were left out, and those last bytes follow.
 * A full disk is treated the same way: the task is never held up by its log.
 */
#ifndef WEIR_AGENT_LOG_SINK_H
#define WEIR_AGENT_LOG_SINK_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define LOG_SINK_TAIL_BYTES 65536

struct log_sink {
    int fd;
    int64_t n_written, head_max_bytes;
    int64_t n_dropped; /* bytes that are not in the file, those in `tail` included */
    char *tail;        /* ring of the last dropped bytes; NULL until needed */
};

weir_status log_sink_open(struct log_sink *sink, const char *path, int64_t max_bytes,
                          struct weir_error *err) WEIR_MUST_CHECK;
void log_sink_write(struct log_sink *sink, const char *bytes, size_t len);

/** Write the tail, make the file durable, close it. */
void log_sink_close(struct log_sink *sink);

#endif
