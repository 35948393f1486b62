/**
 * Peak: how many FLOP a second this machine can do at its best, now, with so many threads: what the
 * speed of a net is compared with.
 *
 * Each thread runs convolutions of 3x3 over 256 channels that stay in its cache, of oneDNN's
 * fastest kernels. The best of several short windows counts, so that a neighbour's burst does not
 * make the machine look slow, and only of those in which every thread had a processor nearly all
 * the time; while there is none of these, measuring goes on for up to four times as long.
 */
#ifndef WEIR_NN_PEAK_H
#define WEIR_NN_PEAK_H

#include "nn/nn.h"

/** What one thread did in one window: whole convolutions, begun in it, and what they took. */
struct weir_peak_window {
    uint64_t n_done, wall_ns, cpu_ns;
};

/**
 * The rate of the best window, in convolutions a second of processor time, all threads together.
 *
 * @param windows   [n_threads][n_windows].
 * @param out_good  Whether there was a window in which every thread had its processor for nine
 *                  tenths of the time; else it is the best of all in which all threads did
 * anything.
 */
double weir_peak_best(const struct weir_peak_window *windows, int32_t n_threads, int32_t n_windows,
                      bool *out_good);

/** What the convolutions multiply. */
enum weir_peak_type { WEIR_PEAK_F32, WEIR_PEAK_BF16 };

/**
 * @param n_threads  1 .. 1024; they run on the CPUs this process may use.
 * @param budget_s   Time to take, some tenths of a second; four times as much if a processor is
 *                   missing all that time.
 * @param out_flops  FLOP a second, all threads together.
 * @return UNSUPPORTED if the processor has no fast kernel of this type, IO (threads), NOMEM.
 */
weir_status weir_peak_measure(enum weir_peak_type type, int32_t n_threads, double budget_s,
                              double *out_flops, struct weir_error *err) WEIR_MUST_CHECK;

#endif
