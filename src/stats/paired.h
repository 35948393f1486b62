/**
 * Two methods on the same items, compared item by item: is the first better? All p-values are
 * one-sided, in (0, 1], DBL_MIN for anything smaller. Pure.
 */
#ifndef WEIR_STATS_PAIRED_H
#define WEIR_STATS_PAIRED_H

#include <stdint.h>

/** P(at least t) of Student's t with so many degrees of freedom, 1 or more (DLMF 8.17, 26.5.27 of
 *  Abramowitz and Stegun). To 1e-12 of the value or better. */
double weir_student_p(double t, double degrees);

/**
 * The paired t-test: P(a mean difference at least as large), if the true one is `margin`.
 *
 * @param n     Items.
 * @param mean  Of the differences, first less second.
 * @param m2    Sum of the squares of their distances from that mean.
 * @return 1 for n below 2. Without any spread 1, or DBL_MIN if the mean is above the margin.
 */
double weir_paired_p(uint64_t n, double mean, double m2, double margin);

/**
 * The exact McNemar test: P(at least so many of the items on which one alone is right fall to the
 * first), were both as often right (Q. McNemar, Psychometrika 12, 1947).
 * @return 1 if there is no such item.
 */
double weir_mcnemar_p(uint64_t only_first, uint64_t only_second);

#endif
