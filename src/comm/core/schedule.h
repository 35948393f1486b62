/**
 * Schedules of an all-reduce: which rank sends which part to whom, and when. Pure functions.
 *
 * A *block* is cut into slices. A *schedule* is one rank's list of *stages*; the *steps* of a stage
 * happen at the same time: SEND these slices to a peer, ADD what a peer sends to one's own, or TAKE
 * it instead of one's own. A stage begins when the one before is over. Between two ranks messages
 * keep their order, so a step needs no name.
 *
 * Order of sums: within a stage, own slices and what is added to them are summed in the order of
 * rank numbers. An element of the result is computed by one rank and handed on (FLAT: by all, in
 * the same way), so all ranks hold the same bits. With P ranks, S bytes:
 *
 *     algorithm  messages in turn   sent by each rank     order of the sums
 *     FLAT       1                  (P-1) S               rank order, ((x0 + x1) + x2) + …
 *     DIRECT     2                  2(P-1)/P S            rank order
 *     RING       2(P-1)             2(P-1)/P S            slice i: from rank i+1 around to rank i
 *     HALVING    2 log2 P (+2)      2(P'-1)/P' S (+2 S)   pairs: P'/2 apart first, neighbours last;
 *                                                         before that rank r + P' into rank r
 *     TREE       about 2 log2 P     at most 2 S           in-order binary tree: lower child, own,
 *                                                         upper child; odd blocks: another tree
 *
 * P' is the largest power of two that is not above P; what is in brackets is for the others. TREE
 * has two trees, in one of which (but for one rank) each rank is a leaf, so that with blocks in
 * turn all links are used.
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

struct comm_schedule {
    int rank, n_ranks;
    int n_slices;  /**< Of a block. */
    int n_largest; /**< Most slices of a message, of any rank. */
    int n_stages, n_steps;
    int *first_steps; /**< [n_stages + 1]: steps of stage s are first_steps[s] up to [s + 1]. */
    struct comm_step *steps;
    int most_in, most_out; /**< Most slices that a stage adds or takes; that it sends. */
    int most_steps;        /**< Most steps of a stage. */
};

const char *comm_algorithm_name(enum comm_algorithm algorithm);

/**
 * The schedule of one rank. Free it with comm_schedule_fini (also a zeroed one).
 * @param variant  0 or 1: blocks with even and with odd number (of TREE they differ).
 * @return NOMEM.
 */
weir_status comm_schedule_init(struct comm_schedule *schedule, enum comm_algorithm algorithm,
                               int n_ranks, int rank, int variant) WEIR_MUST_CHECK;
void comm_schedule_fini(struct comm_schedule *schedule);

#endif
