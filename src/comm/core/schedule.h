/**
 * Schedules of an all-reduce: which rank sends which part to whom, and when. Pure functions.
 *
 * A *block* is cut into slices. A *schedule* is one rank's list of *stages*. The *steps* of a stage
 * happen at the same time: SEND slices to a peer, ADD a peer's slices to the own ones, or TAKE a
 * peer's slices in place of the own ones. A stage begins when the previous one is over. Messages
 * between two ranks keep their order, so a step needs no identifier.
 *
 * Order of sums: within a stage, the own slices and those added to them are summed in the order of
 * rank numbers. Each element of the result is computed by one rank and passed on (FLAT: by all
 * ranks in the same way), so all ranks hold the same bits. With P ranks and S bytes:
 *
 *     algorithm  message latencies  sent by each rank     order of the sums
 *     FLAT       1                  (P-1) S               rank order, ((x0 + x1) + x2) + …
 *     DIRECT     2                  2(P-1)/P S            rank order
 *     RING       2(P-1)             2(P-1)/P S            slice i: from rank i+1 around to rank i
 *     HALVING    2 log2 P (+2)      2(P'-1)/P' S (+2 S)   pairs: P'/2 apart first, neighbours last;
 *                                                         before that rank r + P' into rank r
 *     TREE       about 2 log2 P     at most 2 S           in-order binary tree: lower child, own,
 *                                                         upper child; odd blocks: another tree
 *
 * P' is the largest power of two that is not above P; the values in brackets apply if P is not P'.
 * RING is the ring of Patarasuk and Yuan (2009), HALVING Rabenseifner's recursive halving and
 * doubling (2004). TREE is the two-tree algorithm of Sanders, Speck and Träff (2009): each rank but
 * one is a leaf in one of the trees, and as blocks alternate between the trees all links are used.
 */
#ifndef WEIR_COMM_SCHEDULE_H
#define WEIR_COMM_SCHEDULE_H

#include "comm/comm.h"

enum comm_algorithm {
    COMM_FLAT,
    COMM_DIRECT,
    COMM_RING,
    COMM_HALVING,
    COMM_TREE,
    COMM_N_ALGORITHMS
};

enum comm_action { COMM_SEND, COMM_ADD, COMM_TAKE };

struct comm_step {
    enum comm_action action;
    bool is_final; /**< SEND: of finished sums. */
    int peer;
    int first, n; /**< Slices. All ADDs of a stage have the same. */
};

/** The schedule of one rank. */
struct comm_schedule {
    int rank, n_ranks;
    int n_slices;  /**< Slices of a block. */
    int n_largest; /**< Most slices of a message, of any rank. */
    int n_stages, n_steps;
    int *first_steps; /**< [n_stages + 1]: steps of stage s are first_steps[s] up to [s + 1]. */
    struct comm_step *steps;
    int most_in, most_out; /**< Most slices that a stage adds or takes; that it sends. */
    int most_steps;        /**< Most steps of a stage. */
};

/** "flat", "direct", "ring", "halving" or "tree". */
const char *comm_algorithm_name(enum comm_algorithm algorithm);

/**
 * Make the schedule of one rank. Free it with comm_schedule_fini, which accepts a zeroed one too.
 *
 * @param variant  0 for blocks with an even number, 1 for odd ones: those of TREE differ.
 * @return NOMEM.
 */
weir_status comm_schedule_init(struct comm_schedule *schedule, enum comm_algorithm algorithm,
                               int n_ranks, int rank, int variant) WEIR_MUST_CHECK;
void comm_schedule_fini(struct comm_schedule *schedule);

#endif
