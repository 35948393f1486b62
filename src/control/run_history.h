/**
 * Run history: how long work ran when it last ended well, which is what is expected of the next.
 *
 * Trainings of one pipeline of an ION are the same work, and so are jobs of one name in a project.
 * From it follow the expected starts of jobs that wait, and which of them may pass a job for which
 * room is held. It is a guess, made again from the store when the server starts; work goes by a hash
 * of its names, and two that share one share a guess.
 *
 * Bound: RUN_HISTORY_MAX kinds of work; one more takes the place of the one that ended longest ago.
 * Owned by one thread.
 */
#ifndef WEIR_CONTROL_RUN_HISTORY_H
#define WEIR_CONTROL_RUN_HISTORY_H

#include "job/job.h"

#define RUN_HISTORY_MAX 4096

/** So many runs are kept to know how far they lie apart. */
#define RUN_HISTORY_RUNS_MAX 8

struct run_history_entry {
    uint64_t work;
    int64_t run_ms;
    int64_t revision;                      /**< The ended job's. */
    int64_t runs_ms[RUN_HISTORY_RUNS_MAX]; /**< The last ones, in a ring. */
    int32_t n_runs;                        /**< All so far; the ring has the last of them. */
};

/** Start with {0}. */
struct run_history {
    struct run_history_entry *entries; /**< By work; room for RUN_HISTORY_MAX, or NULL. */
    int32_t n;
};

void run_history_fini(struct run_history *history);

/** Which work a job does. Read: project, name, ion, pipeline. */
uint64_t run_history_work(const struct weir_job *job);

/** A job ended; only one that SUCCEEDED and had started counts. Read as for run_history_work, and
 *  state, started_ms, finished_ms, revision. */
void run_history_note(struct run_history *history, const struct weir_job *job);

/**
 * The shortest and the longest of its last runs, of those that were longer than ran_ms: of one that has run for
 * so long already the others tell nothing.
 * @return How many those are; 0: nothing is known.
 */
int32_t run_history_spread(const struct run_history *history, uint64_t work, int64_t ran_ms,
                           int64_t *out_least_ms, int64_t *out_most_ms);

/** How long this work is expected to run; 0: nothing is known. */
int64_t run_history_expected_ms(const struct run_history *history, uint64_t work);

#endif
