/**
 * The order in which a worker's ready pieces go to the servers. Pure.
 *
 * By need, the piece nearest to the end of the array goes first. But a server replies when the last
 * worker's piece has come, and workers are not equally fast: one that is ahead has more pieces to
 * choose from, chooses differently, and sends other pieces than the rest at that time. So only one
 * round in sixteen goes by need. In the others all workers follow the order of that round's
 * replies, which all have seen and which the slowest worker could keep up with.
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
    bool has_ranks; /**< A round by need has been completed. */
    size_t *ranks;  /**< By piece: its place in that order. */
    struct ps_reply *replies;
    size_t n_replies; /**< Of this round. */
};

/** @return false without memory; ps_order_fini is then wanted too. */
bool ps_order_init(struct ps_order *order, size_t n_pieces);
void ps_order_fini(struct ps_order *order);

/** Begin a round of gradients; the last round's pieces have all been replied to. */
void ps_order_begin(struct ps_order *order);
/** Record when the reply to a piece of the round came, by any clock. */
void ps_order_note(struct ps_order *order, size_t i_piece, uint64_t when_ns);
/** The piece's place in this round: 0 goes first. */
size_t ps_order_place(const struct ps_order *order, size_t i_piece);

#endif
