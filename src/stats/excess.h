/**
 * Excess: do events fall to one of two sides more often than its share of the trials says? Pure.
 *
 * Each trial goes to the first side with the chance `share`, whatever comes of it. If an event is as
 * likely on both sides, each event is of the first side with that same chance, however frequent events
 * are. So the sides of the events alone tell: no rate has to be known, and nothing is approximated for
 * few events.
 *
 * The evidence is a mixture of likelihood ratios (H. Robbins, Ann. Math. Statist. 41, 1970): of k events
 * of the first side and k_rest of the other to a chance of q instead of `share`, averaged over all q from
 * `share` to 1. While the chance is `share` or less it is a non-negative martingale, or falls: that it
 * ever reaches 1 / alpha has the chance alpha at most (Ville). So who looks after each event, and stops
 * when it does, is wrong with alpha at most.
 *
 * A share that is larger than the true one only makes the evidence smaller where there is an excess. Who
 * knows the share by more than one way takes the largest.
 */
#ifndef WEIR_STATS_EXCESS_H
#define WEIR_STATS_EXCESS_H

#include <stdint.h>

/**
 * The natural logarithm of the evidence that events fall to the first side more often than `share`.
 *
 * @param k       Events of the first side; below 2^52, as is k_rest.
 * @param share   Above 0 and below 1; else nothing can be said, and it is 0.
 * @return Compare it with log(1 / alpha). At most 0 where the first side has no more than its share.
 */
double weir_excess_evidence(uint64_t k, uint64_t k_rest, double share);

#endif
