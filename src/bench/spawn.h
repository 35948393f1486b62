/**
 * spawn: start N copies of a program as the ranks of one group, watch them, end them together.
 *
 * Three nouns. The *launcher* is the process that calls weir_spawn_run. A *rank* is one copy of the
 * program: on this host, on another over ssh, or on a node of a Slurm allocation by srun. It calls
 * weir_spawn_join first, to learn its number and where the ranks meet. A *place* is a host with
 * slots for ranks.
 *
 *     launcher                                        rank
 *     weir_spawn_run(&(struct weir_spawn_config){     if (weir_spawn_is_rank()) {
 *             .n_ranks = 4, .hosts = "a:2,b:2",           weir_spawn_join(&me, err);
 *             .argv = argv}, err);                        weir_comm_create({me.rank, me.size,
 *                                                             me.rendezvous, me.secret, …});
 *
 * Ranks are laid out in blocks: with "a:2,b:2" ranks 0 and 1 run on a, 2 and 3 on b. A host named
 * "localhost", or as this one, needs no ssh. ssh and srun are found in PATH; ssh asks for no
 * password. The program must lie at the same path on all hosts. It starts in the launcher's working
 * folder if that exists there.
 *
 * A rank gets its number, the rendezvous, the secret, `env`, and the launcher's variables that
 * begin with WEIR_ or MESSAGE_ in its environment. To other hosts they travel over standard input,
 * never on a command line. Standard input stays open as long as the launcher lives. When it closes,
 * weir_spawn_join's thread ends the rank, so that no rank outlives its launcher on any host.
 * Standard output is the launcher's. Each line on standard error is forwarded as "rank 3: …".
 *
 * When a rank fails, the others get a moment to report their own failure. Then their input is
 * closed, and ranks that are still running 5 s later are killed. SIGINT and SIGTERM to the launcher
 * end all ranks in the same way.
 */
#ifndef WEIR_BENCH_SPAWN_H
#define WEIR_BENCH_SPAWN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct weir_spawn_config {
    int n_ranks; /**< 1 .. WEIR_COMM_MAX_RANKS; 0: as many as the places have slots. */
    /** "a:2,b:2" with slots, or "a,b": n_ranks divided evenly, one each if n_ranks is 0. NULL: no
     *  hosts are named. */
    const char *hosts;
    /** "local", "ssh", "srun", or "auto" (NULL): ssh if hosts are named, srun if this process runs
     *  inside a Slurm allocation and has no hosts, else local. */
    const char *by;
    const char *program;    /**< Path; NULL: the running one. */
    char *const *argv;      /**< Of every rank, from argv[0]; ends with NULL. No secrets here. */
    const char *const *env; /**< "NAME=VALUE" for every rank; ends with NULL; may be NULL. */
    /** Where the ranks meet; NULL: a temporary folder if all run here, else tcp:// on the first
     *  host and a random port from 20000 to 32767. */
    const char *rendezvous;
};

/**
 * Start the ranks and wait until all have ended. Call it in a process without other threads; it
 * catches SIGINT, SIGTERM and SIGCHLD meanwhile.
 *
 * @return WEIR_OK if all ended with status 0. Otherwise the root cause: the first failure as a
 *         sentence that names the rank, with its last line on standard error. A rank that reports
 *         only the loss of another is a secondary failure, and is named only if there is no other.
 *         The status is the one that the rank's exit status stands for (PEER if it was killed).
 *         CANCELLED after a signal to the launcher; INVALID (hosts, n_ranks); NOT_FOUND if ssh or
 *         srun is missing; IO; NOMEM.
 */
weir_status weir_spawn_run(const struct weir_spawn_config *config,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** The number of ranks that weir_spawn_run will start; same errors for hosts and n_ranks. */
weir_status weir_spawn_count(const struct weir_spawn_config *config, int *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

#define WEIR_SPAWN_SECRET_BYTES 65

/** What a rank knows about itself. */
struct weir_spawn_rank {
    int rank, size;
    int n_here;             /**< Ranks of the group on this rank's host. */
    const char *rendezvous; /**< In the environment. */
    char secret[WEIR_SPAWN_SECRET_BYTES];
};

/** Was this process started by weir_spawn_run? */
bool weir_spawn_is_rank(void);

/**
 * Learn this rank's number and group. It removes the secret from the environment, and starts a
 * thread that ends the process with the exit status of CANCELLED when standard input closes. Call
 * it once, before other threads start.
 *
 * @return INVALID if this process is no rank; IO if no thread can be started.
 */
weir_status weir_spawn_join(struct weir_spawn_rank *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
