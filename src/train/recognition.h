/**
 * Recognition: the two figures of an identification test (ISO/IEC 19795-1), from scores of probes
 * against people.
 *
 * - rank-1: fraction of the probes whose own person has the highest score (of equal ones the
 * first).
 * - TAR at a false accept rate f: fraction of the genuine scores above a threshold. The threshold
 * is the (k+1)-th largest impostor score, k = floor(f * impostor scores); scores above it are
 * accepted, so that at most k impostors are.
 */
#ifndef WEIR_TRAIN_RECOGNITION_H
#define WEIR_TRAIN_RECOGNITION_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct recognition {
    double rank1, tar; /**< 0 .. 1 */
};

/**
 * Compute both figures.
 *
 * @param scores   n_probes x n_people.
 * @param persons  The person of each probe.
 * @param n_people At least 2.
 * @return NOMEM.
 */
weir_status recognition_measure(const float *scores, const uint32_t *persons, size_t n_probes,
                                size_t n_people, double false_accept_rate,
                                struct recognition *out) WEIR_MUST_CHECK;

/**
 * The score of a probe for a person: the largest dot product with one of the person's n vectors of
 * `dim` values. For unit vectors that is the cosine to the nearest.
 */
float recognition_score(const float *probe, const float *const *enrolled, size_t n, size_t dim);

#endif
