/**
 * A batch script of Slurm given to `weir job run`: its head (sbatch.h) becomes what the command's own options say, where
 * they do not say it already, and the members of a job of the kind "sbatch".
 */
#ifndef WEIR_CLI_JOB_SCRIPT_H
#define WEIR_CLI_JOB_SCRIPT_H

#include "base/json.h"
#include "cli/command.h"
#include "cli/job/job_ask.h"
#include "cli/job/job_code.h"
#include "cli/job/job_program.h"
#include "cli/job/sbatch.h"

/** A script, and what of the command stands behind it. */
struct job_script {
    struct sbatch head;
    const char *path; /**< As it was given. */
    char *text;
};

/** The options of the command that a head has a say in; 0 or NULL: not given. */
struct job_script_asks {
    struct job_program *program;
    struct job_ask *ask;
    struct job_code *code;
    char **name;
    int64_t *nodes, *tasks, *array, *parallel;
    int64_t tasks_per_node; /**< Set by job_script_fill. */
};

/**
 * Is this word a file here that is a batch script, with lines #SBATCH?
 * @param out  NULL in *out: it is none.
 * @return as sbatch_read, with the file in front; as weir_file_read.
 */
weir_status job_script_find(struct cli_call *call, const char *word, struct job_script **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** What the script says and the command does not. */
void job_script_fill(struct cli_call *call, const struct job_script *script,
                     struct job_script_asks *asks);

/**
 * The members of the specification that only this kind has; the script itself, where it is not in the folder that is
 * sent.
 * @param out_words  The program's words: what runs the script, the script, its arguments.
 * @param out_is_sent  Does the script go with the folder's files?
 */
void job_script_add(struct cli_call *call, const struct job_script *script,
                    const struct job_script_asks *asks, char **arguments, size_t n_arguments,
                    json_t *spec, char ***out_words, size_t *out_n, bool *out_is_sent);

/** On standard error, what of the script is not taken over. */
void job_script_warn(const struct job_script *script);

/** The same for programs: [{"line", "option", "instead"}]; a new reference. */
json_t *job_script_remarks(const struct job_script *script);

#endif
