/** Whose something is to be, where nobody said. */
#ifndef WEIR_CLI_PROJECT_FIND_H
#define WEIR_CLI_PROJECT_FIND_H

#include "cli/command.h"

/**
 * The project of what is about to be made: the one given, else the only one in which the caller may do that, else
 * "default". As the server chooses where a request names none; for requests whose path needs the name.
 *
 * @param right  As `weir whoami` says it: "submit jobs".
 * @param out    Borrowed from `given`, or in the arena.
 * @return INVALID, naming them, if there are several and none of them is "default".
 */
weir_status cli_project_find(struct cli_call *call, const char *given, const char *right,
                             const char **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
