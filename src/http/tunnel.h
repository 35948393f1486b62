/**
 * Tunnel: the client's side of a connection that stops being HTTP (stream.h: upgrades), with TLS or without.
 *
 * A tunnel belongs to one thread. Its descriptor is non-blocking: wait for it with poll, but read until there
 * is nothing before that, because TLS may hold bytes that the descriptor does not show.
 */
#ifndef WEIR_HTTP_TUNNEL_H
#define WEIR_HTTP_TUNNEL_H

#include "base/buf.h"
#include "base/status.h"

#include <sys/types.h>

struct weir_http_tunnel;

struct weir_http_tunnel_config {
    const char *url;      /**< "http://host:port/path". */
    const char *protocol; /**< What the connection becomes: "Upgrade: <protocol>". */
    const char *bearer;   /**< Token, or NULL. */
    const char *header;   /**< One more line, "Name: value", or NULL. */
    const char *ca_file;  /**< As in http_client.h. */
    int64_t timeout_ms;   /**< Until the server has answered; 0: 10 s. */
};

/**
 * Connect, ask, and read the answer's head.
 * @param out_http  The answer's status; 0: there was none.
 * @param out_body  Of another answer than 101: its body, at most 64 KiB. Empty before.
 * @return WEIR_OK after 101 alone; INVALID after another answer; UNAVAILABLE, TIMEOUT, PEER, DENIED as in
 *         http_client.h.
 */
weir_status weir_http_tunnel_open(const struct weir_http_tunnel_config *config,
                                  struct weir_http_tunnel **out, int *out_http,
                                  struct weir_buf *out_body,
                                  struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void weir_http_tunnel_close(struct weir_http_tunnel *tunnel);

int weir_http_tunnel_fd(const struct weir_http_tunnel *tunnel);

/** How many bytes; 0: none now; -1: the connection is over. */
ssize_t weir_http_tunnel_read(struct weir_http_tunnel *tunnel, void *out, size_t size);
ssize_t weir_http_tunnel_write(struct weir_http_tunnel *tunnel, const void *bytes, size_t len);

#endif
