/** States of Slurm's jobs, and its reasons, as an allocation's report. Pure. For the driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_STATE_H
#define WEIR_CLUSTER_SLURM_STATE_H

#include "cluster/driver.h"

/** What an allocation's comment begins with once it was released. */
#define SLURM_RELEASED "released by Weir"

/** Agents get TERM a minute before the time of an allocation of so many seconds or more is over, and Slurm is up to a minute
 *  early. For shorter ones it is Slurm's own TERM, at the end, before its KillWait. */
#define SLURM_WARNED_S 300

/** A job as squeue or sacct has it. Text is never NULL; it lies in an arena. */
struct slurm_job {
    int64_t id;
    const char *state;  /**< "RUNNING", "CANCELLED by 0" */
    int64_t limit_s;    /**< 0: none. */
    int64_t used_s;     /**< How long it has run. */
    int64_t starts_ms;  /**< When it started, or is expected to; 0: nobody says. */
    int64_t ends_ms;    /**< When it ended, or is ended; 0: nobody says. */
    const char *nodes;  /**< As Slurm writes them; "". */
    const char *reason; /**< "Resources", "None"; "" */
    const char *comment;
    const char *name;
    /** What is known once it has ended. */
    bool was_preempted;
    int exit_status; /**< -1: nobody says. */
};

/**
 * Say what it is.
 * @param uid  Ours: what this user cancelled was released.
 * @param out  Its text lies in the arena, or is the job's. closed_node and closed_why are left out.
 */
void slurm_report(const struct slurm_job *job, int64_t uid, struct weir_arena *arena,
                  struct weir_allocation_report *out);

/** Has it ended, in a way that squeue's lines alone do not tell: its agents ended by themselves, or its time was over, and
 *  was_preempted says why? */
bool slurm_job_is_doubtful(const struct slurm_job *job);

/** Is it not over yet? */
bool slurm_job_is_alive(const struct slurm_job *job);

#endif
