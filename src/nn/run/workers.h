/**
 * Workers: the threads of one net and the rule by which they take work.
 *
 * A program is a row of stages. A stage is n_tiles tasks that may run at once; when the last has
 * ended, the thread that ran it calls end_stage, and the next stage opens. The end of a stage also
 * opens *fillers*: tasks off the critical path (weight gradients) that threads take, in order, when
 * no tile is left; a single thread takes them at once. A filler has a deadline: the stage that must
 * not open before it is done (it overwrites memory the filler reads). Which thread runs what is
 * decided as it happens; what is computed does not depend on it.
 *
 * Threads without work spin, then wait in the kernel. Between runs they spin for 50 us; in a run,
 * in which more is about to come, for 1 ms, as a processor that has gone to sleep may take
 * milliseconds to come back, above all a virtual one. But an engine that shares its cores with
 * others must not burn them: while the kernel puts its threads aside for others, it is 50 us in a
 * run too. The thread that calls workers_run works too, as thread 0; a pool of one has no thread of
 * its own. A run allocates nothing.
 */
#ifndef WEIR_NN_WORKERS_H
#define WEIR_NN_WORKERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program_stage {
    int32_t i_deferred,
        n_deferred; /**< Fillers the end of this stage opens: a run of their list. */
    int32_t n_due;  /**< Fillers whose deadline this stage is. */
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
    /** Each returns WEIR_OK or a failure, which workers_run returns; the program still runs out. */
    weir_status (*run_tile)(void *context, int32_t i_thread, int32_t i_stage, int32_t i_tile);
    weir_status (*end_stage)(void *context, int32_t i_thread,
                             int32_t i_stage); /**< NULL: nothing. */
    weir_status (*run_deferred)(void *context, int32_t i_thread, int32_t i_deferred);
    void *context;
};

struct workers;

/**
 * @param max_stages    The longest program to come.
 * @param enter_thread  Called once in each new thread; may be NULL.
 */
weir_status workers_create(int32_t n_threads, int32_t max_stages, void (*enter_thread)(void),
                           struct workers **out) WEIR_MUST_CHECK;
void workers_destroy(struct workers *workers);

/** How long to spin in a run after elapsed_ns in which threads of this process were put aside
 * n_put_aside times, by how many threads it computes with. Pure. */
uint64_t workers_spin_ns(int64_t n_put_aside, uint64_t elapsed_ns, int32_t n_threads);

/** Run a program to its end. A program without stages opens all its fillers at once. */
weir_status workers_run(struct workers *workers, const struct program *program) WEIR_MUST_CHECK;

#endif
