/** weir help: the commands that matter first, all of them in groups, one of them. */
#ifndef WEIR_CLI_HELP_H
#define WEIR_CLI_HELP_H

#include "cli/command.h"

/** The group of commands that one belongs to, for help: "Jobs"; NULL: none, which is a mistake of the table. */
const char *cli_help_group(const char *command);

/** Is it the first command of its first word that help shows? So that "job" is named once. */
bool cli_help_is_first(size_t i_command);

/** The commands that matter first, and the names of all others in groups. */
void cli_help_print(FILE *file);

/**
 * Help on what the words name: nothing, "all", a command, those whose first word it is, a group by its title's first
 * word ("ions"). Prints it.
 * @return INVALID with what was probably meant, and nothing printed.
 */
weir_status cli_help_on(int argc, char **argv, struct weir_error *err) WEIR_MUST_CHECK;

/** The command that the words begin with, of two words before of one; NULL: none. *out_n_words is how many it has. */
const struct cli_command *cli_command_match(int argc, char **argv, int *out_n_words);

#endif
