/** The reader of sbatch.h in three parts: lines and words (sbatch.c), the table of options (sbatch_option.c), and what
 *  they come to together (sbatch_job.c). */
#ifndef WEIR_CLI_SBATCH_PRIVATE_H
#define WEIR_CLI_SBATCH_PRIVATE_H

#include "cli/job/sbatch.h"

/** Values as they were written, by option, with the line of each; the later counts. */
struct sbatch_values {
    char *array, *name, *dir, *export, *gpus, *gpus_per_node, *gpus_per_task, *gres, *nodes,
        *signal;
    int64_t tasks, tasks_per_node, cpus_per_task, cpus_per_gpu;
    int64_t memory, memory_per_cpu, memory_per_gpu; /**< Bytes. */
    int64_t minutes;
    bool is_fixed;
    int lines[32]; /**< By enum sbatch_value; 0: not said. */
};

/** Where a value was written. */
enum sbatch_value {
    SBATCH_REMARK, /**< No value: it is only remarked on. */
    SBATCH_ARRAY,
    SBATCH_NAME,
    SBATCH_DIR,
    SBATCH_EXPORT,
    SBATCH_GPUS,
    SBATCH_GPUS_PER_NODE,
    SBATCH_GPUS_PER_TASK,
    SBATCH_GRES,
    SBATCH_NODES,
    SBATCH_SIGNAL,
    SBATCH_TASKS,
    SBATCH_TASKS_PER_NODE,
    SBATCH_CPUS_PER_TASK,
    SBATCH_CPUS_PER_GPU,
    SBATCH_MEMORY,
    SBATCH_MEMORY_PER_CPU,
    SBATCH_MEMORY_PER_GPU,
    SBATCH_TIME,
    SBATCH_REQUEUE,
    SBATCH_NO_REQUEUE,
};

enum sbatch_takes { SBATCH_NOTHING, SBATCH_A_VALUE, SBATCH_PERHAPS };

/** One option of sbatch. */
struct sbatch_option {
    const char *name; /**< "job-name" */
    char short_name;  /**< 'J', or 0 */
    enum sbatch_takes takes;
    enum sbatch_value value;
    const char *say; /**< SBATCH_REMARK alone has it: what is done here instead. */
};

/** All options that sbatch has, by name. */
extern const struct sbatch_option sbatch_options[];
extern const size_t sbatch_n_options;

/** The option of a long name of `len` bytes, or of an unmistakable beginning; INVALID if there is none. */
weir_status sbatch_option_find(const char *name, size_t len, const struct sbatch_option **out,
                               struct weir_error *err) WEIR_MUST_CHECK;
/** NULL: there is none. */
const struct sbatch_option *sbatch_option_of_letter(char letter);

/** Take a value over, or remark on it.
 *  @param given  NULL: none was given. */
weir_status sbatch_take(const struct sbatch_option *option, const char *given, int line,
                        struct weir_arena *arena, struct sbatch_values *values, struct sbatch *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** By line. Beyond SBATCH_REMARKS_MAX none is kept; the same of one option is said once. */
void sbatch_remark(struct sbatch *out, int line, const char *option, const char *say);

/** What all values come to together. */
weir_status sbatch_settle(const struct sbatch_values *values, struct weir_arena *arena,
                          struct sbatch *out, struct weir_error *err) WEIR_MUST_CHECK;

/** The reader's errors: "line 3: --mem=3X: …". */
weir_status sbatch_wrong(struct weir_error *err, int line, const char *option, const char *given,
                         const char *expected);

#endif
