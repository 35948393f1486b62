/** Allocations as jobs of Slurm: found by their name, reported, ended. For the driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_JOB_H
#define WEIR_CLUSTER_SLURM_JOB_H

#include "cluster/slurm/options.h"
#include "cluster/slurm/state.h"

/** What squeue and sacct are asked. */
#define SLURM_QUEUE_FORMAT   "%i|%T|%l|%M|%S|%e|%N|%j|%k|%r"
#define SLURM_HISTORY_FORMAT "JobIDRaw,State,Timelimit,Elapsed,Start,End,NodeList,ExitCode,JobName"

struct slurm_jobs {
    struct slurm_job *list;
    size_t n;
};

/** Has it the line of headings that squeue prints? Without it an empty list would be taken for one without jobs. */
bool slurm_is_queue(const char *text);

/** The jobs in what squeue prints; in what sacct prints. Pure. */
struct slurm_jobs slurm_jobs_read_queue(const char *text, struct weir_arena *arena);
struct slurm_jobs slurm_jobs_read_history(const char *text, struct weir_arena *arena);

/** Our user's jobs that Slurm still has: one question. @param name  Of that name alone; NULL: all. */
weir_status slurm_jobs_queued(const struct slurm_options *options, const char *name,
                              struct weir_arena *arena, struct slurm_jobs *out,
                              struct weir_error *err);

/** Those of the names that accounting knows; none where the cluster keeps no accounts. One question per 500. */
weir_status slurm_jobs_past(const struct slurm_options *options, const char *const *names, size_t n,
                            struct weir_arena *arena, struct slurm_jobs *out,
                            struct weir_error *err);

/** Cancel jobs by their ids; those that have ended are passed over. @param mark  Their comment is to say that they were
 *  released. */
weir_status slurm_jobs_cancel(const struct slurm_options *options, const struct slurm_jobs *jobs,
                              bool mark, struct weir_arena *arena, struct weir_error *err);

/** ops->poll. */
weir_status slurm_poll(const struct slurm_options *options, const char *const *tags, size_t n,
                       struct weir_arena *arena, struct weir_allocation_report *out,
                       struct weir_error *err);

#endif
