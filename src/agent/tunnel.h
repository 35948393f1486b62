/**
 * Tunnel: the way to the program of a task that has a port, and the one that keeps strangers out.
 *
 * The program listens on loopback, on WEIR_PORT; the tunnel listens where the server reaches this node,
 * and lets a connection through only if it shows the service's secret, which the server made and
 * nobody else is told:
 *
 *     CONNECT anything HTTP/1.1
 *     Proxy-Authorization: Bearer SECRET
 *
 * It answers 200 and from then on passes bytes, 407 for another secret, 502 if nobody listens on the
 * port or takes the connection, 409 if a process does that is not of this task: where tasks have users of their
 * own, every listener on the port must be the task's (listener.h), so that a neighbour that takes the port
 * first gets no visitor. 500: the kernel does not name the listener. If the job has
 * a network of its own, the port is looked for there, and no one else on the node can reach it at all.
 *
 * It is a child of the supervisor and ends with it. Bounds: TUNNEL_CONNECTIONS_MAX, of which those that
 * have not shown the secret yet are at most TUNNEL_UNAUTHORIZED_MAX, the oldest giving way to the newest;
 * they have TUNNEL_HEAD_MS to show it.
 */
#ifndef WEIR_AGENT_TUNNEL_H
#define WEIR_AGENT_TUNNEL_H

#include "agent/namespaces.h"
#include "base/status.h"

#include <stdbool.h>
#include <sys/types.h>

#define TUNNEL_CONNECTIONS_MAX  512
#define TUNNEL_UNAUTHORIZED_MAX 64
#define TUNNEL_HEAD_MS          10000
#define TUNNEL_HEAD_MAX_BYTES   4096
#define TUNNEL_ADDRESS_BYTES    80
#define TUNNEL_RESTARTS_MAX     16

/** Part of a task; all zero: it has none. */
struct tunnel {
    const char *secret;                 /**< NULL: there is no tunnel. */
    int port;                           /**< The program's. */
    uid_t user;                         /**< The listener must be this user's; 0: anybody's. */
    int fd;                             /**< Listens; close-on-exec. */
    char address[TUNNEL_ADDRESS_BYTES]; /**< Where it listens: "10.0.0.7:40123". */
    pid_t pid;                          /**< The child's; 0: none. */
    int n_restarts;
};

/** Listen at this numeric address, or at any if the machine does not have it (it may be that of a
 *  router in front); any free port. fd and address are set. */
weir_status tunnel_listen(struct tunnel *tunnel, const char *host,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Start the child, if there is a tunnel. `ns`: those of the program. */
void tunnel_start(struct tunnel *tunnel, const struct namespaces *ns);

/** A child of this process has ended: if it was the tunnel, start it again. */
void tunnel_note_end(struct tunnel *tunnel, pid_t pid, const struct namespaces *ns);

/** What the child does: for ever. */
_Noreturn void tunnel_serve(const struct tunnel *tunnel);

#endif
