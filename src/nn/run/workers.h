/**
 * Workers: the threads of one net, and the rule by which they take work.
 *
 * A program is a list of stages. A stage is n_tiles tasks that may run at the same time. The thread
 * that ends the last task calls end_stage, and the next stage opens.
 *
 * The end of a stage also opens deferred tasks: work off the critical path, such as weight
 * gradients. Threads take them in order when no tile is left. A pool of one thread takes them at
 * once. A deferred task has a deadline: the stage that must not open before the task is done,
 * because that stage overwrites memory that the task reads. Which thread runs what is decided at
 * run time. What is computed does not depend on it.
 *
 * Threads without work spin, then wait in the kernel. Between runs they spin for 50 us. Within a
 * run they spin for 1 ms, because more work is about to come and a sleeping processor, above all a
 * virtual one, may take milliseconds to wake. While the kernel preempts the process's threads for
 * others, they spin for 50 us within a run too, so that they do not burn shared cores.
 *
 * The thread that calls workers_run works as thread 0. A pool of one has no thread of its own. A
 * run allocates nothing. One thread at a time calls the functions below.
 */
#ifndef WEIR_NN_WORKERS_H
#define WEIR_NN_WORKERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program_stage {
    int32_t i_deferred, n_deferred; /** The end of this stage opens these deferred tasks. */
    int32_t n_due;                  /**< Deferred tasks whose deadline this stage is. */
};

struct deferred_task {
    int32_t deadline; /**< Stage that waits for it; n_stages = none. */
};

struct program {
    const struct program_stage *stages;
    int32_t n_stages;
    const struct deferred_task *deferred; /**< In the order in which stages open them. */
    int32_t n_deferred;
    int32_t n_tiles; /**< Of every stage. */
    /** Each returns WEIR_OK or a failure. workers_run returns the first failure; the program still
     *  runs to its end. */
    weir_status (*run_tile)(void *context, int32_t i_thread, int32_t i_stage, int32_t i_tile);
    weir_status (*end_stage)(void *context, int32_t i_thread,
                             int32_t i_stage); /**< NULL: nothing. */
    weir_status (*run_deferred)(void *context, int32_t i_thread, int32_t i_deferred);
    void *context;
};

struct workers;

/**
 * Starts n_threads - 1 threads. The caller owns *out.
 * @param max_stages    Stages of the longest program to come.
 * @param enter_thread  Called once in each new thread; may be NULL.
 * @return NOMEM, or the status of pthread_create's error.
 */
weir_status workers_create(int32_t n_threads, int32_t max_stages, void (*enter_thread)(void),
                           struct workers **out) WEIR_MUST_CHECK;
/** Ends the threads. NULL is accepted. */
void workers_destroy(struct workers *workers);

/** How long to spin within a run, after elapsed_ns in which the kernel has preempted threads of
 *  this process n_put_aside times. n_threads is the size of the pool. Pure. */
uint64_t workers_spin_ns(int64_t n_put_aside, uint64_t elapsed_ns, int32_t n_threads);

/** Runs a program to its end. A program without stages opens all its deferred tasks at once.
 *  @return The first failure of its functions. */
weir_status workers_run(struct workers *workers, const struct program *program) WEIR_MUST_CHECK;

#endif
