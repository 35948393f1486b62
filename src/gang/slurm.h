/**
 * A batch script of Slurm on the nodes of a job of the kind "sbatch". The script runs once, on the first node; `srun
 * PROGRAM` in it starts the program in all tasks, here and on the other nodes, and waits for them. Nothing of Slurm is
 * needed: srun and scontrol are small scripts in a folder in front of PATH, which call roles of weir-worker.
 *
 *     node 0:  weir-worker sbatch-run ─▸ script ─▸ srun PROGRAM ─▸ PROGRAM, task 0 and 1
 *                                                     │ board: run.1.ID = "weir-worker srun-step …" (gang/mpi.h)
 *     node 1:  weir-worker mpi-serve ◂────────────────┘ ─▸ PROGRAM, task 2 and 3
 *
 * What the script has changed of its environment goes along, and so does the folder it is in; where the words of the
 * program, that folder or a variable name the first node's folder of the job, the others have their own. What a
 * program prints on another node is in the log of that node's task.
 * Several tasks of a node print in whole lines (gang/lines.h).
 */
#ifndef WEIR_GANG_SLURM_H
#define WEIR_GANG_SLURM_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "gang/lines.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Where sbatch-run leaves what srun needs; a folder in that of the job. */
#define SLURM_FOLDER ".slurm"

/** Most bytes of hosts that a list may become. */
#define SLURM_HOSTS_MAX 4096

/**
 * The hosts of a list as Slurm writes it, "a,n[1-3,07-09]": each a text of its own, in its order. Pure.
 * @return INVALID with what is wrong; LIMIT for more than SLURM_HOSTS_MAX.
 */
weir_status slurm_hosts_expand(const char *list, struct weir_arena *arena, char ***out,
                               size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** How srun lays out the tasks of a step: on which nodes, and how many on each. */
struct slurm_layout {
    int64_t *nodes;  /**< Indexes of the job's nodes. */
    int64_t *counts; /**< Tasks of each of them, at least 1; they are numbered in this order. */
    int64_t n_nodes, n_tasks;
};

/** What was asked of srun, and what the job has; 0: nothing was said. */
struct slurm_asked {
    int64_t nodes, tasks, tasks_per_node;
    const int64_t *on; /**< Nodes that were named; n_on 0: any. */
    size_t n_on;
    bool is_overcommitted;
    int64_t job_nodes, job_tasks, job_tasks_per_node;
};

/** Evenly, and the first nodes one more where it does not come out even. Pure. @return INVALID, as a sentence. */
weir_status slurm_layout_make(const struct slurm_asked *asked, struct weir_arena *arena,
                              struct slurm_layout *out, struct weir_error *err) WEIR_MUST_CHECK;

/** "2(x2),1": how many tasks each node has. Pure. */
char *slurm_layout_text(const struct slurm_layout *layout, struct weir_arena *arena);

/**
 * A text in which `from`, a folder, is `to`, wherever it stands as a whole path or the beginning of one. Pure.
 */
char *slurm_relocate(const char *text, const char *from, const char *to, struct weir_arena *arena);

/**
 * Start the tasks of a step that are on this node, each in a process group of its own. Several print in whole lines.
 * @param step  {"step", "tasks", "nodes", "node", "first", "count", "hosts", "host", "layout", "gpus_per_task",
 *              "folder", "dir", "env", "unset", "argv", "is_killing"}
 * @param out_pids  Of "count" processes, in the arena.
 * @param out_lines  What they print; to be closed when all have ended. NULL where there is one: it has our streams.
 * @return INVALID; as weir_spawn_start and gang_lines_open: none runs then.
 */
weir_status slurm_step_start(const json_t *step, struct weir_arena *arena, pid_t **out_pids,
                             size_t *out_n, struct gang_lines **out_lines,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Signals that are passed on to tasks: all are blocked from here on, and SIGCHLD; what is started has them as usual. */
void slurm_signals_block(sigset_t *out);

/** Roles of weir-worker; argv[0] is the role. @return the exit status. */
int weir_sbatch_run_main(int argc, char **argv);
int weir_srun_main(int argc, char **argv);
int weir_srun_step_main(int argc, char **argv);
int weir_scontrol_main(int argc, char **argv);

#endif
