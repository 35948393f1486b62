/**
 * A batch script's head, as Slurm has it: its lines `#SBATCH OPTION …`, read as sbatch reads them, and what they
 * come to in a job of the kind "sbatch" (framework/sbatch.c).
 *
 * sbatch reads the lines up to the first that is a command. Each line that begins with #SBATCH has words:
 * quotes and backslashes as in a shell, and from a "#" on the rest is a comment. All words together are options,
 * `--opt=VALUE`, `--opt VALUE`, `-o VALUE` and `-oVALUE`; a long name may be cut short while it is unmistakable; where
 * two say the same the later counts. What sbatch refuses is refused, with the line.
 *
 * Each option of sbatch is a row of one table. It becomes a part of the job, or it is remarked on: what it would have
 * done, and what to do here instead. Nothing is left out silently.
 *
 * Pure; any thread.
 */
#ifndef WEIR_CLI_SBATCH_H
#define WEIR_CLI_SBATCH_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longest script, as of Slurm. */
#define SBATCH_SCRIPT_MAX_BYTES ((size_t)4 << 20)

#define SBATCH_REMARKS_MAX 96

/** Something of the script that is not taken over, or not quite. */
struct sbatch_remark {
    int line;           /**< From 1. */
    const char *option; /**< "--partition", or "#SBATCH" for a line. */
    const char *say;    /**< What is done here instead; no sentence. */
};

/** What the lines say. Text lies in the arena; NULL, 0 or false: nothing was said. */
struct sbatch {
    bool has_options; /**< There is a line #SBATCH before the first command. */
    char **argv; /**< What runs the script, as its first line says; without the script's path. */
    size_t n_argv;

    char *name, *dir;
    char *gpus;       /**< "4", "4:h100": what each node has. */
    char *time_limit; /**< "90m" */
    char *env;        /**< Lines NAME=VALUE. */
    char *env_taken;  /**< Lines NAME: with the value that the submitter's variable has. */
    char *save_signal, *save_within;
    int64_t memory_bytes; /**< Each node has so much. */
    bool is_fixed;        /**< --no-requeue */

    int64_t nodes, tasks, tasks_per_node; /**< Always said: at least 1. */
    int64_t cpus;                         /**< Each node has so many; always said. */
    int64_t cpus_per_task, gpus_per_task;
    char *array;              /**< "1,3,5-9:2" */
    int64_t parallel;         /**< So many parts of the array at once. */
    bool is_signal_of_script; /**< --signal=B:…: the script has it, not what srun starts. */

    struct sbatch_remark remarks[SBATCH_REMARKS_MAX];
    size_t n_remarks;
};

/**
 * Read a script.
 * @param text  Ends with NUL; `len` bytes are before it.
 * @return INVALID with the line: an option that sbatch has not, a value that it would not take, two that exclude each
 *         other, a first line that does not name an interpreter; UNSUPPORTED and LIMIT with the line for what cannot be here.
 *         Only has_options is set then. A script without such lines is OK whatever it is.
 */
weir_status sbatch_read(const char *text, size_t len, struct weir_arena *arena, struct sbatch *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
