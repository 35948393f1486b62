/** Listen: a socket that takes connections of TCP. */
#ifndef WEIR_BASE_LISTEN_H
#define WEIR_BASE_LISTEN_H

#include "base/macros.h"
#include "base/status.h"

/**
 * A bound, listening, non-blocking socket, closed on exec.
 *
 * @param address  "HOST:PORT" or "[V6]:PORT"; port 0: any free one.
 * @param option   What sets it, for the message: "--listen".
 * @return CONFLICT if the port is in use, DENIED if it may not be bound, INVALID for an address that
 *         cannot be used; each says what and what to do.
 */
weir_status weir_listen_open(const char *address, const char *option, int *out_fd, int *out_port,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
