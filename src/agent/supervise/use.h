/**
 * Use: how much of its machine one attempt uses.
 *
 * What its control group counts, where that counts it; else the sum over its own process and all that
 * descend from it, which misses those that ended between two readings.
 */
#ifndef WEIR_AGENT_USE_H
#define WEIR_AGENT_USE_H

#include "agent/task.h"

#include <stdbool.h>
#include <stdint.h>

struct use {
    int64_t cpu_us;       /**< Time of the processors so far. */
    int64_t memory_bytes; /**< Now, without the files that the kernel could forget. */
};

/**
 * Read it. Any process of the node's agent; cost: a few small files, without control groups one for
 * each process of the machine.
 * @return false if the attempt is over.
 */
bool use_read(const struct task_run *run, struct use *out);

/** Processors that were busy between two readings, 1.5 = one and a half; 0 if time stood still. */
double use_cores(const struct use *before, const struct use *now, int64_t elapsed_ms);

#endif
