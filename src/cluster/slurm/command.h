/** Slurm's commands: run without a shell, with little of the server's environment, for a bounded time and output. For the
 *  driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_COMMAND_H
#define WEIR_CLUSTER_SLURM_COMMAND_H

#include "cluster/slurm/options.h"

/** How long a command that asks may take, and one that changes something. A controller that is away lets commands of
 *  Slurm's wait 9 to 18 s, an authentication service that is away 50 s. */
#define SLURM_ASK_MS    20000
#define SLURM_CHANGE_MS 40000

/** What a command may print. */
#define SLURM_OUT_MAX_BYTES  ((size_t)64 << 20)
#define SLURM_SAID_MAX_BYTES ((size_t)16 << 10)

struct slurm_command {
    const char *const *words; /**< The command's name and its arguments; NULL at the end. */
    const char *input;        /**< Its standard input, less than 60 KiB; NULL: none. */
    const char *const *env;   /**< More of its environment, NAME=VALUE; NULL at the end; or NULL. */
    int64_t timeout_ms;
};

struct slurm_answer {
    int exit_status;
    const char *out, *said; /**< Standard output; standard error, cut. In the arena. */
};

#define SLURM_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/**
 * Run one, and wait for its end. Its environment is PATH, HOME, USER, LD_LIBRARY_PATH, LC_ALL=C and SLURM_CONF. Times are
 * printed as seconds since 1970 unless it changes something.
 * @return NOT_FOUND: it is not there; UNAVAILABLE: it had not ended in time, and is killed; LIMIT: it prints too much.
 */
weir_status slurm_run(const struct slurm_options *options, const struct slurm_command *command,
                      struct weir_arena *arena, struct slurm_answer *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** Run one that asks. @return What slurm_run says; for one that fails, slurm_refusal's sentence. */
weir_status slurm_ask(const struct slurm_options *options, const char *const *words,
                      struct weir_arena *arena, const char **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
