/** What `weir job run` gives a program, for other commands that start one. */
#ifndef WEIR_CLI_JOB_RUN_H
#define WEIR_CLI_JOB_RUN_H

#include "base/json.h"
#include "cli/command.h"

/** Of the words, those in front of "--". */
size_t job_run_words_before(const struct cli_call *call);

/** --env, joined by newlines, as "env". @return INVALID. */
weir_status job_run_add_env(const char *lines, json_t *spec,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** --secret, joined by newlines: NAME or NAME=VARIABLE, which a specification has the other way round. */
void job_run_add_secrets(const char *lines, json_t *spec);

/** --python FILE: its text as "python"; NULL: nothing. */
weir_status job_run_add_python(struct cli_call *call, const char *path, json_t *spec,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** "python3 src/Train_v2.py" is train_v2: the first word with a dot within, else the program. */
char *job_run_name_of(struct cli_call *call, char **words, size_t n);

#endif
