/**
 * MPI over the tasks of a job: Open MPI's mpirun and MPICH's mpiexec start their daemons on other
 * hosts by a program that is called as ssh is. Here that program leaves the command on the job's
 * board, and the task that is meant runs it. No ssh, no accounts, no list of addresses: hosts are
 * called "rank-0", "rank-1", …, names that no resolver knows, and the daemons find the way back to
 * mpirun by the addresses that it tells them.
 *
 *     rank 0:  weir-worker mpi-run ─exec─▸ mpirun ─▸ ./mpi-agent rank-1 orted …
 *                                                        │ board: run.1.ID = "orted …"
 *     rank 1:  weir-worker mpi-serve ◂───────────────────┘ ─▸ sh -c "orted …"
 *                                                          board: done.1.ID = "0" ─▸ mpi-agent
 *
 * Each of the three is a role of weir-worker, started in a task of the job, and finds the server by
 * the task's variables (WEIR_SERVER, WEIR_JOB, WEIR_CA_FILE) and its token file.
 */
#ifndef WEIR_GANG_MPI_H
#define WEIR_GANG_MPI_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Implementations of MPI. */
enum mpi {
    MPI_OPENMPI,
    MPI_MPICH,
    MPI_OWN, /**< The program itself calls mpirun or mpiexec, of whichever it has. */
    MPI_N,
};

/** "openmpi", "mpich", "none"; -1 for another text. */
int mpi_from_text(const char *text);

/** What mpi-run starts. */
struct mpi_launch {
    enum mpi mpi;
    int n_processes;
    char *const *argv;  /**< The program's; NULL at the end. */
    const char *folder; /**< Where the hosts' files are, and mpi-agent's script: absolute. */
};

/**
 * The words of the launcher and of the program, NULL at the end. Pure.
 * @param launcher  Its path; unused for MPI_OWN.
 */
char **mpi_launch_words(const struct mpi_launch *launch, const char *launcher,
                        struct weir_arena *arena);

/** "NAME=VALUE" of what tells the launchers who starts their daemons and where, NULL at the end. Both
 *  implementations' are there, because a script may call either. Pure. */
char **mpi_launch_environment(const struct mpi_launch *launch, struct weir_arena *arena);

/**
 * The host and the command of an ssh-like call: flags are passed over, the words after the host are
 * joined by blanks, as ssh does.
 * @param out_rank  Of the host "rank-N".
 * @return INVALID.
 */
weir_status mpi_agent_parse(int argc, char *const *argv, struct weir_arena *arena, int *out_rank,
                            char **out_command, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Set variables for daemons that are started in this process's task. Each has folders of its own for
 * its session and for the segments by which its processes share memory: two daemons of one host would
 * make them under the same names. And where the folder in which mpirun was started is not on this node, the program
 * begins in the task's.
 */
void mpi_settle(int64_t rank);

/** Have this program's folder in PATH, behind the others. */
void mpi_add_to_path(struct weir_arena *arena);

/** Roles of weir-worker; argv[0] is the role. @return the exit status. */
int weir_mpi_run_main(int argc, char **argv);
int weir_mpi_agent_main(int argc, char **argv);
int weir_mpi_serve_main(int argc, char **argv);

#endif
