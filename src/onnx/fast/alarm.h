/**
 * Alarm: tells whether a piece of work met a NaN, or made one, at no cost to those that did not.
 *
 * oneDNN's activations, softmax and largest of a window compare their input with numbers, and what
 * is no number comes out as one: a NaN as the 0 of a ReLU. IEEE 754 says that such a comparison, and
 * every operation that makes a NaN of numbers, raises the exception "invalid", which stays raised
 * until it is cleared. So it is cleared before such an action and looked at behind it. A run in
 * which it was raised is done again by a plan that keeps NaN (plan.h). A false alarm costs time only.
 *
 * Each thread has its own flags. A thread of libgomp may end with the next smaller team, and so is
 * asked before that.
 */
#ifndef WEIR_ONNX_FAST_ALARM_H
#define WEIR_ONNX_FAST_ALARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Silences the threads of a team. */
void alarm_silence(int32_t n_threads);
/** Silences the calling thread, which alone does what no alarm is wanted for. */
void alarm_silence_here(void);
/** Has one of the team's threads raised it since? */
bool alarm_rings(int32_t n_threads);

/** Raises it, in the calling thread. */
void alarm_ring(void);

/** Raises it if one of n numbers is the lowest of all, which is what the largest of windows that
 *  hold nothing but -infinity comes out as. */
void alarm_ring_at_lowest(const float *values, size_t n);

/** Are n numbers all finite, and none larger than `most`? */
bool alarm_are_within(const float *values, size_t n, float most);

/** Raises it if one of n numbers is none, or infinite, or 2^12 times as large as the others (as the geometric
 *  mean of those that are not zero). */
void alarm_ring_at_outlier(const float *values, size_t n);

#endif
