/**
 * Contexts: servers that a person uses from this account, each with its token. They lie in one file of the account,
 * contexts.json in $XDG_CONFIG_HOME/weir (~/.config/weir), which only its owner may read.
 *
 * Which server a command talks to: --server, else --context, else --state (each may stand in the environment; a
 * --context in the command goes before a server there, and that server's token is not shown to it), else
 * the context that `weir context use` chose, else the state folder of this machine. A context's token goes to that
 * context's server, and to no other.
 */
#ifndef WEIR_CLI_CONTEXT_H
#define WEIR_CLI_CONTEXT_H

#include "cli/command.h"

/** One server. Texts lie in the call's arena; NULL: none. */
struct cli_context {
    const char *name, *server, *token, *ca_file;
    const char *token_id; /**< Of the token, if `weir login` made it: to revoke it. */
};

/**
 * The context that this command is to use; all NULL: none, by the order above.
 * @return NOT_FOUND if --context names none; DENIED if others may read the file; CORRUPT.
 */
weir_status cli_context_find(struct cli_call *call, struct cli_context *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Keep it, in place of one of that name, and use it from now on. */
weir_status cli_context_keep(struct cli_call *call, const struct cli_context *context,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Forget it. @return NOT_FOUND naming those there are. */
weir_status cli_context_forget(struct cli_call *call, const char *name,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
