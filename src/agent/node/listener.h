/**
 * Listener: which user's program listens on a port of this machine, or of the network that this process is in.
 *
 * The kernel is asked for the one port (NETLINK_SOCK_DIAG): it looks at what listens alone, however many
 * connections the machine has. Where it has no such interface, its table of sockets is read up to the first
 * one that does not listen: those that do stand first in it.
 */
#ifndef WEIR_AGENT_LISTENER_H
#define WEIR_AGENT_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

enum listener_owner {
    LISTENER_OWN,     /**< There is one, and no other user's. */
    LISTENER_NONE,    /**< Nobody listens. */
    LISTENER_FOREIGN, /**< Somebody else does, maybe beside the user. */
    LISTENER_UNKNOWN, /**< The kernel did not say. */
};

/** Which user listens on a TCP port of loopback, or of all addresses? Any thread. */
enum listener_owner listener_find(int port, uid_t user);

/**
 * The same of the text of /proc/net/tcp, or tcp6. Pure.
 * @param out_is_whole  Were these all that listen: does the text go on behind them, or end?
 */
enum listener_owner listener_find_in(const char *table, int port, uid_t user, bool *out_is_whole);

#endif
