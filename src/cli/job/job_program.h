/** Program: what `weir job run` and what starts a service say of a user's own program: options, and
 *  what becomes of them in a job's specification (framework/program.h). */
#ifndef WEIR_CLI_JOB_PROGRAM_H
#define WEIR_CLI_JOB_PROGRAM_H

#include "base/json.h"
#include "cli/command.h"

/** Texts of options; the members without a row in JOB_PROGRAM_OPTIONS have one of each command's
 *  own, whose words are the command's. */
struct job_program {
    char *env, *secret, *python, *volume;
    char *memory, *network;
    int64_t cpu_millis; /**< -1000: not said. */
};

/** Rows of a table of options; `program` is a member of the struct. */
#define JOB_PROGRAM_OPTIONS(strct)                                                                 \
    CLI_TEXT(strct, program.python, "python", 0, "FILE",                                           \
             "Python packages, as a requirements.txt: an environment with them is made once on "   \
             "each node"),                                                                         \
        CLI_LIST(strct, program.secret, "secret", 0, "[VARIABLE=]NAME",                            \
                 "A secret of the project as a variable; may be given again"),                     \
        CLI_LIST(strct, program.volume, "volume", 0, "SOURCE:PATH[:rw]",                           \
                 "A volume of its pods in Kubernetes, claim:NAME or nfs:HOST:/DIR, at a path, to " \
                 "be written to with :rw; may be given again"),                                    \
        CLI_LIST(strct, program.env, "env", 'e', "NAME=VALUE",                                     \
                 "Set a variable; may be given again")

/** Of the words, those in front of "--". */
size_t job_program_words_before(const struct cli_call *call);

/** "python3 src/Train_v2.py" is train_v2: the first word with a dot within, else the program. */
char *job_program_name_of(struct cli_call *call, char **words, size_t n);

/** A text as a job's name, in the arena: "My Run.v2" is my-run.v2; "command" where nothing is left of it. */
char *job_program_name_tidy(struct weir_arena *arena, const char *text);

/**
 * Put the program and what was given into a specification.
 * @param words  The program and its arguments; n 0: the specification gets no argv.
 * @return INVALID naming the option or the word; as weir_file_read for --python.
 */
weir_status job_program_add(struct cli_call *call, const struct job_program *program, char **words,
                            size_t n, json_t *spec, struct weir_error *err) WEIR_MUST_CHECK;

#endif
