/**
 * A/B: two arms of which each request goes to one; is the first better? Pure.
 *
 * Who looks again and again at a test of a fixed size, and stops when it says yes, is wrong far more
 * often than the test's level says. What is computed here holds however often one looks, and whenever
 * one stops: the mixture sequential probability ratio test. Of the difference d of the means, with
 * variance V, and a difference of theta, the likelihood ratio to no difference is
 * exp(theta d / V - theta^2 / 2V). Averaged over the positive half of a normal distribution of theta with
 * variance rho V it is
 *
 *     evidence = 2 Phi(z sqrt(rho / (1 + rho))) / sqrt(1 + rho) exp(z^2 rho / (2 (1 + rho))),  z = d / sqrt(V)
 *
 * which under no difference, or a worse candidate, reaches 1 / alpha at any time with a probability of at
 * most alpha (Ville's inequality): H. Robbins, Ann. Math. Statist. 41 (1970) 1397; R. Johari, P. Koomen,
 * L. Pekelis, D. Walsh, Always Valid Inference, Operations Research 70 (2022) 1806; S. Howard, A. Ramdas,
 * J. McAuliffe, J. Sekhon, Ann. Statist. 49 (2021) 1055. rho = N / N0 of N = n1 n2 / (n1 + n2), so that
 * rho V does not change as samples come; N0 is half of `scale`: evidence is soonest for what shows at
 * about eight times as many samples in each arm.
 *
 * V is estimated, so this holds as the central limit theorem does: not for a handful of samples. It is
 * the larger of two estimates: of the spread of all about their common mean, which is what no
 * difference means, and of each arm's own.
 */
#ifndef WEIR_STATS_AB_H
#define WEIR_STATS_AB_H

#include <stdint.h>

struct weir_ab_arm {
    int64_t n;   /**< Samples. */
    double mean; /**< Of 0 and 1 the rate. */
    double m2;   /**< Sum of the squares of their distances from the mean; n rate (1 - rate). */
};

struct weir_ab {
    double difference; /**< First less second. */
    double uplift;     /**< It as a share of the second's size; NaN if that is 0. */
    double z;        /**< 0 while nothing can be said: fewer than 2 samples, or no spread at all. */
    double p;        /**< One-sided, of a single look at a fixed number of samples. */
    double p_better; /**< At most this likely, at any look, if the first is no better; 0 to 1. */
    double p_worse;  /**< The same of no worse. */
    double low,
        high; /**< The difference, at every look so far; infinite while nothing can be said. */
};

/**
 * @param scale       Samples in an arm, 1 or more; see above.
 * @param confidence  Of low and high; above 0 and below 1.
 */
struct weir_ab weir_ab_compare(const struct weir_ab_arm *first, const struct weir_ab_arm *second,
                               double scale, double confidence);

#endif
