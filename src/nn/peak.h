/**
 * Peak: the highest rate of floating-point operations that this machine reaches now with so many
 * threads. The speed of a net is compared with it.
 *
 * Each thread runs convolutions of 3x3 over 256 channels that stay in its cache, by oneDNN's
 * fastest kernels. The best of several short windows counts, so that a short load of other
 * processes does not make the machine look slow. Only windows count in which every thread had a
 * processor nearly all the time. If there is none, measuring goes on for up to four times as long.
 */
#ifndef WEIR_NN_PEAK_H
#define WEIR_NN_PEAK_H

#include "nn/nn.h"

/** One thread in one window: the convolutions begun in it, and the time they took. */
struct weir_peak_window {
    uint64_t n_done, wall_ns, cpu_ns;
};

/**
 * The rate of the best window: convolutions per second of processor time, of all threads together.
 * Pure.
 *
 * @param windows  [n_threads][n_windows].
 * @param out_good  true: in that window every thread had its processor for nine tenths of the time.
 *         false: there is no such window, and it is the best of those in which every thread did
 *         anything.
 */
double weir_peak_best(const struct weir_peak_window *windows, int32_t n_threads, int32_t n_windows,
                      bool *out_good);

/** Type of the convolutions. */
enum weir_peak_type { WEIR_PEAK_F32, WEIR_PEAK_BF16 };

/**
 * Measures the peak. It starts n_threads threads and ends them.
 *
 * @param n_threads  1 to 1024. They run on the CPUs this process may use.
 * @param budget_s  Seconds to take, some tenths; up to four times as much if threads lack a
 *         processor.
 * @param out_flops  FLOP per second, all threads together.
 * @return UNSUPPORTED if the processor has no fast kernel of this type, IO (threads), NOMEM.
 */
weir_status weir_peak_measure(enum weir_peak_type type, int32_t n_threads, double budget_s,
                              double *out_flops, struct weir_error *err) WEIR_MUST_CHECK;

#endif
