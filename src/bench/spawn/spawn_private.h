/** The protocol between launcher and rank. For spawn's own files. */
#ifndef WEIR_BENCH_SPAWN_PRIVATE_H
#define WEIR_BENCH_SPAWN_PRIVATE_H

#include "bench/spawn.h"

#define SPAWN_ENV_PREFIX     "WEIR_SPAWN_"
#define SPAWN_ENV_RANK       SPAWN_ENV_PREFIX "RANK"
#define SPAWN_ENV_SIZE       SPAWN_ENV_PREFIX "SIZE"
#define SPAWN_ENV_HERE       SPAWN_ENV_PREFIX "HERE"
#define SPAWN_ENV_RENDEZVOUS SPAWN_ENV_PREFIX "RENDEZVOUS"
#define SPAWN_ENV_SECRET     SPAWN_ENV_PREFIX "SECRET"

/** How to start one rank. */
struct spawn_start {
    const char *by;   /**< NULL: here; else "ssh" or "srun". */
    const char *host; /**< Of ssh and srun. */
    const char *program;
    char *const *argv;
    const char *const *env; /**< "NAME=VALUE" of this rank; ends with NULL. */
};

/**
 * spawn_start.c: start a rank. Its standard input is one end of a new stream, its standard error a
 * new pipe. It leads a process group of its own.
 *
 * @return NOT_FOUND if ssh, srun or the program is missing; IO; NOMEM.
 */
weir_status spawn_start(const struct spawn_start *start, int *out_pid, int *out_in_fd,
                        int *out_err_fd, struct weir_error *err) WEIR_MUST_CHECK;

#endif
