/** What Slurm's commands complain of, as a sentence that says which option is meant, what Slurm said, and the cure. For the
 *  driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_REFUSAL_H
#define WEIR_CLUSTER_SLURM_REFUSAL_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

/**
 * The error of a command that failed. Pure.
 * @param said  Its standard error.
 * @return UNAVAILABLE if Slurm could not be asked, else INVALID, with a sentence.
 */
weir_status slurm_refusal(const char *command, const char *said, struct weir_error *err);

/** Is it this machine that is not set up for it: its configuration, munge, key, clock or version? */
bool slurm_blames_this_machine(const char *said);

/** Does it say that the cluster keeps no accounts of jobs? */
bool slurm_has_no_accounting(const char *said);

/** The line that says most: the last that is an error, without "sbatch: error: " before it. In the arena. */
const char *slurm_said_line(const char *said, struct weir_arena *arena);

#endif
