/** Threads: libgomp's, which oneDNN's primitives use too. One team serves both, so that no thread
 *  waits for a processor while another spins. */
#ifndef WEIR_ONNX_FAST_THREADS_H
#define WEIR_ONNX_FAST_THREADS_H

#include <stddef.h>
#include <stdint.h>

/** A part of the work: that of thread i of n. */
typedef void (*threads_fn)(const void *job, int32_t i, int32_t n);

/** Runs the parts in up to n_threads threads, and returns when all have ended. */
void threads_run(int32_t n_threads, threads_fn fn, const void *job);

/** How many threads oneDNN may use from this thread. */
void threads_set(int32_t n_threads);

/** First of n items for thread i of n_threads; that for i + 1 is its end. */
static inline size_t threads_share(size_t n, int32_t i, int32_t n_threads)
{
    return n * (size_t)i / (size_t)n_threads;
}

#endif
