/**
 * In which order a worker's pieces go to the servers, of those that are ready. Pure.
 *
 * By need, the nearest to the end of the array goes first. But a piece is answered when the last
 * worker's has come, and workers are not equally fast: one that is ahead has more to choose from,
 * chooses otherwise, and what it sends is not what the others send at that time. So by need go only
 * some rounds, one in sixteen. In the others all follow the order in which that one's pieces were
 * answered: which all workers have seen, and which the slowest of them could keep to.
 */
#ifndef WEIR_COMM_PS_ORDER_H
#define WEIR_COMM_PS_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ps_reply {
    size_t i_piece;
    uint64_t when_ns;
};

struct ps_order {
    size_t n_pieces;
    uint64_t n_rounds;
    bool is_free;   /**< This round goes by need. */
    bool has_ranks; /**< There was one before. */
    size_t *ranks;  /**< By piece. */
    struct ps_reply *replies;
    size_t n_replies; /**< Of this round. */
};

/** @return false without memory; ps_order_fini is then wanted too. */
bool ps_order_init(struct ps_order *order, size_t n_pieces);
void ps_order_fini(struct ps_order *order);

/** A round of gradients begins, and the last one's pieces have all been answered. */
void ps_order_begin(struct ps_order *order);
/** A piece of the round was answered, by some clock. */
void ps_order_note(struct ps_order *order, size_t i_piece, uint64_t when_ns);
/** The piece's place in this round: the first to go has 0. */
size_t ps_order_place(const struct ps_order *order, size_t i_piece);

#endif
