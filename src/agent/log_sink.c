#include "agent/log_sink.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

weir_status log_sink_open(struct log_sink *sink, const char *path, int64_t max_bytes,
                          struct weir_error *err)
{
    *sink = (struct log_sink){.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
                              .head_max_bytes = max_bytes - 2 * LOG_SINK_TAIL_BYTES};
    if (sink->fd < 0) {
        return weir_error_set_errno(err, errno, "cannot write %s", path);
    }
    return WEIR_OK;
}

/* Remember the last LOG_SINK_TAIL_BYTES of what is dropped. */
static void drop(struct log_sink *sink, const char *bytes, size_t len)
{
    if (len > 0 && sink->tail == NULL) {
        sink->tail = malloc(LOG_SINK_TAIL_BYTES);
    }
    for (size_t i = 0; i < len; i++) {
        if (sink->tail != NULL) {
            sink->tail[sink->n_dropped % LOG_SINK_TAIL_BYTES] = bytes[i];
        }
        sink->n_dropped++;
    }
}

void log_sink_write(struct log_sink *sink, const char *bytes, size_t len)
{
    while (len > 0 && sink->n_dropped == 0 && sink->n_written < sink->head_max_bytes) {
        int64_t room = sink->head_max_bytes - sink->n_written;
        ssize_t n = write(sink->fd, bytes, (size_t)WEIR_MIN((int64_t)len, room));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break; /* full disk: from here on only the tail */
        }
        sink->n_written += n;
        bytes += n;
        len -= (size_t)n;
    }
    drop(sink, bytes, len);
}

void log_sink_close(struct log_sink *sink)
{
    if (sink->n_dropped > 0) {
        int64_t n_tail =
            sink->tail != NULL ? WEIR_MIN(sink->n_dropped, (int64_t)LOG_SINK_TAIL_BYTES) : 0;
        char line[128];
        int len = snprintf(line, sizeof line, "\n[weir: %lld bytes of output are left out here]\n",
                           (long long)(sink->n_dropped - n_tail));
        weir_status status = weir_fd_write_all(sink->fd, line, (size_t)len, NULL);
        int64_t at = sink->n_dropped - n_tail;
        while (status == WEIR_OK && at < sink->n_dropped) {
            size_t begin = (size_t)(at % LOG_SINK_TAIL_BYTES);
            size_t part =
                (size_t)WEIR_MIN((int64_t)(LOG_SINK_TAIL_BYTES - begin), sink->n_dropped - at);
            status = weir_fd_write_all(sink->fd, sink->tail + begin, part, NULL);
            at += (int64_t)part;
        }
    }
    (void)fsync(sink->fd);
    close(sink->fd);
    free(sink->tail);
}
