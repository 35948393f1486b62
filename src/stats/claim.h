/**
 * Claim: what a number of comparisons can say of a rate of false matches, and how many admissions a day that means. Pure.
 */
#ifndef WEIR_STATS_CLAIM_H
#define WEIR_STATS_CLAIM_H

/**
 * Expected admissions of strangers a day: n_strangers × (1 - (1 - fmr)^(n_people × n_looks)).
 *
 * @param n_strangers  Strangers that pass in a day.
 * @param fmr       Share of false matches, 0 to 1: of one comparison with one person. A rate that was measured
 *                  by searches through the whole gallery goes with n_people 1: the gallery is in it.
 * @param n_people  People that each look is compared with.
 * @param n_looks   Independent looks at each stranger.
 */
double weir_false_admits_a_day(double n_strangers, double fmr, double n_people, double n_looks);

/** The least rate of false matches that n independent comparisons without an error can claim, with 95 %: 3 / n; at most 1. */
double weir_claimable_rate(double n_comparisons);

#endif
