/**
 * Split: the people to train on, the unseen people, and the photographs that are enrolled, in one
 * round of the identification protocol. A pure function of the seed and of the numbers of
 * photographs.
 *
 * People are numbered in bytewise order of their names, photographs of a person in bytewise order
 * of theirs. For seed s people are shuffled by weir_rng_shuffle_u32 with stream 0; the first 2n/3
 * (rounded down) are *trained*, the rest *unseen*. The photographs of person p are shuffled with
 * stream 1 + p; the first five are *enrolled*, the others are probes.
 */
#ifndef WEIR_TRAIN_SPLIT_H
#define WEIR_TRAIN_SPLIT_H

#include "base/arena.h"

#include <stdint.h>

#define SPLIT_ENROLLED 5

/** Fewest photographs of a person, with one probe; fewest people, with one unseen. */
#define SPLIT_PHOTOS_MIN (SPLIT_ENROLLED + 1)
#define SPLIT_PEOPLE_MIN 3

struct train_split {
    uint32_t n_people, n_trained;
    uint32_t *people;  /**< All, shuffled: the first n_trained are trained. */
    uint32_t **photos; /**< By person: its photographs, shuffled: the first five are enrolled. */
};

/**
 * Make the split.
 *
 * @param n_photos  By person, at least SPLIT_PHOTOS_MIN each.
 * @param n_people  At least SPLIT_PEOPLE_MIN.
 * @param arena     Owns the split's arrays.
 */
void train_split_make(uint64_t seed, const uint32_t *n_photos, uint32_t n_people,
                      struct weir_arena *arena, struct train_split *out);

#endif
