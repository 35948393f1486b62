/** Joining: a token to join with becomes a node's own, in its agent's folder. */
#ifndef WEIR_CLI_JOIN_H
#define WEIR_CLI_JOIN_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

/** Text is borrowed. */
struct cli_joining {
    const char *server, *ca_file;
    const char *node;
    const char *dir;        /**< The agent's folder; made if it is not there. */
    const char *token_path; /**< DIR/token. */
    struct weir_arena *arena;
};

/** Is the token in the folder good for this node? *out: false too if there is none, or it has ended.
 *  @return CONFLICT if it is another node's; what the call returned. */
weir_status cli_join_is_done(const struct cli_joining *joining, bool *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Exchange the secret for the node's own token, which is written. On error there is none in the folder.
 *  @return What the server says: UNAUTH of a secret that is not good for this node. */
weir_status cli_join_exchange(const struct cli_joining *joining, const char *secret,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Both, again and again while the server does not answer.
 * @param stop_fd  Readable: give up, with CANCELLED.
 */
weir_status cli_join_await(const struct cli_joining *joining, const char *secret, int stop_fd,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
