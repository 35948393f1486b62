/**
 * Peak: how many FLOP a second this machine can do at its best, now, with so many threads: what the
 * speed of a net is compared with.
 *
 * Each thread runs convolutions of 3x3 over 256 channels that stay in its cache, of oneDNN's
 * fastest kernels; the best of several short windows counts, so that a neighbour's burst does not
 * make the machine look slow.
 */
#ifndef WEIR_NN_PEAK_H
#define WEIR_NN_PEAK_H

#include "nn/nn.h"

/** What the convolutions multiply. */
enum weir_peak_type { WEIR_PEAK_F32, WEIR_PEAK_BF16 };

/**
 * @param n_threads  1 .. 1024; they run on the CPUs this process may use.
 * @param budget_s   Time to take, some tenths of a second.
 * @param out_flops  FLOP a second, all threads together.
 * @return UNSUPPORTED if the processor has no fast kernel of this type, IO (threads), NOMEM.
 */
weir_status weir_peak_measure(enum weir_peak_type type, int32_t n_threads, double budget_s,
                              double *out_flops, struct weir_error *err) WEIR_MUST_CHECK;

#endif
