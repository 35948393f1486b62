/**
 * Open: what a weir-camera needs opened, which it cannot do itself. Each answers with a sentence for people. A camera's host is
 * connected to at its port and nowhere else. Any thread.
 */
#ifndef WEIR_VIDEO_OPEN_H
#define WEIR_VIDEO_OPEN_H

#include "base/status.h"

#include <stdbool.h>

/** A non-blocking connection of TCP. @param stop_fd  Readable: give up (CANCELLED). */
weir_status weir_video_open_connection(const char *host, int port, int64_t timeout_ms, int stop_fd,
                                       int *out_fd, struct weir_error *err) WEIR_MUST_CHECK;

/** Two sockets of UDP at an even port and the next one, of the address from which the host is reached. */
weir_status weir_video_open_udp_pair(const char *host, int port, int out_fds[2], int *out_port,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** A regular file to read, or the device of a camera (Video4Linux) to read and control; nothing else is opened. */
weir_status weir_video_open_file(const char *path, bool is_device, int *out_fd,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
