/** What people type that is no command: understood where it is plain, else the right one is named.
 */
#ifndef WEIR_CLI_HINT_H
#define WEIR_CLI_HINT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

/**
 * Words with the noun in front, as the command that they mean: "jobs", "dataset list", "model show
 * X" become get and describe. *out_argc words in *out_argv (in the arena), or those that were
 * given.
 */
void cli_reword(int argc, char **argv, struct weir_arena *arena, int *out_argc, char ***out_argv);

/** Is it a command of two words whose first is `group`: "job run" of "job"? */
bool cli_is_of_group(const char *command, const char *group);

/** Is there such a command? */
bool cli_is_group(const char *group);

/**
 * What an option that a command does not have is called here, as a sentence: "--mem" of `weir job run`; NULL: nobody
 * knows.
 */
const char *cli_hint_option(const char *command, int argc, char **argv);

/** What others call a verb of a command or a group, as a sentence: "download" of dataset; NULL: nobody knows. */
const char *cli_hint_second(const char *first, const char *second);

/** The error for words that begin with no command: names the one that was probably meant. INVALID.
 */
weir_status cli_unknown_command(int argc, char **argv, struct weir_error *err);

#endif
