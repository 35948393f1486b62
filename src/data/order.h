/**
 * Order: which sample comes at which position of an epoch. Pure: no state, no table, O(1).
 *
 * An epoch of n samples is a stream of n positions. With shuffle, position p of epoch e holds
 * sample π(seed, e)(p), a keyed pseudo-random permutation: a Feistel network of 8 rounds over the
 * next power of two (at least 64), Philox 4x32-10 as the round function, cycle-walked into [0, n).
 *
 * A global batch is B consecutive positions [p, p + B). Rank r of R takes the slots
 * [⌊rB/R⌋, ⌊(r+1)B/R⌋) of it, contiguous; so R workers read exactly what one worker would have
 * read, each sample once, for every R, also where R does not divide B. What is left at the end of
 * an epoch (fewer than B positions) follows the tail rule, and the next epoch starts with a whole
 * batch.
 *
 * A place in the stream is (epoch, position); it says everything a restart needs to know.
 */
#ifndef WEIR_DATA_ORDER_H
#define WEIR_DATA_ORDER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_tail {
    WEIR_TAIL_DROP, /**< The rest of the epoch is not used; other samples fall out each epoch. */
    WEIR_TAIL_PAD,  /**< A last batch with empty slots: label −1, tensor 0. */
};

struct weir_order {
    uint64_t n_samples;
    uint64_t seed;
    uint32_t batch; /**< Global batch B, at least 1. */
    bool shuffle;   /**< false: position p is sample p. */
    enum weir_tail tail;
};

/** Where the stream stands: the next batch starts at `position` of `epoch`. */
struct weir_place {
    uint64_t epoch;
    uint64_t position; /**< 0 .. n_samples */
};

/** @return INVALID with a sentence: nothing to order, or DROP with fewer samples than a batch. */
weir_status weir_order_check(const struct weir_order *order,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Sample at `position` (< n_samples) of `epoch`. */
uint64_t weir_order_sample(const struct weir_order *order, uint64_t epoch, uint64_t position);

/** Position of `sample` (< n_samples) in `epoch`: the inverse of weir_order_sample. */
uint64_t weir_order_position(const struct weir_order *order, uint64_t epoch, uint64_t sample);

/** Does a stream that began at `start` hold `sample`, on whichever rank, before the position `end`?
 *  Cost: one permutation for each epoch between them. */
bool weir_order_has_shown(const struct weir_order *order, struct weir_place start,
                          struct weir_place end, uint64_t sample);

/** The permutation alone: image of `i` (< n) under the permutation of [0, n) with this key. */
uint64_t weir_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

/** Batches of one epoch that starts at position 0. */
uint64_t weir_order_batches(const struct weir_order *order);

/** The place where the next batch really starts: `place`, or the next epoch if the tail rule says
 * so. */
struct weir_place weir_order_normalize(const struct weir_order *order, struct weir_place place);

/** The place after the batch that starts at (normalised) `place`. */
struct weir_place weir_order_after(const struct weir_order *order, struct weir_place place);

/** Slots of a global batch of B that rank r of `size` takes: first and number. */
void weir_order_share(uint32_t batch, uint32_t rank, uint32_t size, uint32_t *out_first,
                      uint32_t *out_n);

/** The largest share of any rank: ⌈B/size⌉. */
uint32_t weir_order_max_share(uint32_t batch, uint32_t size);

#endif
