#include "comm/ps/ps_order.h"

#include <stdlib.h>

/* Rounds that go by need: the first, in which times settle, and then one in so many. */
#define FIRST_FREE 3
#define FREE_EVERY 16

bool ps_order_init(struct ps_order *order, size_t n_pieces)
{
    *order = (struct ps_order){.n_pieces = n_pieces,
                               .is_free = true,
                               .ranks = calloc(n_pieces + 1, sizeof *order->ranks),
                               .replies = calloc(n_pieces + 1, sizeof *order->replies)};
    return order->ranks != NULL && order->replies != NULL;
}

void ps_order_fini(struct ps_order *order)
{
    free(order->ranks);
    free(order->replies);
    order->ranks = NULL;
    order->replies = NULL;
}

static int compare(const void *a_, const void *b_)
{
    const struct ps_reply *a = a_, *b = b_;
    if (a->when_ns != b->when_ns) {
        return a->when_ns < b->when_ns ? -1 : 1;
    }
    return a->i_piece > b->i_piece ? -1 : a->i_piece < b->i_piece;
}

void ps_order_begin(struct ps_order *order)
{
    if (order->is_free && order->n_replies == order->n_pieces) {
        qsort(order->replies, order->n_pieces, sizeof *order->replies, compare);
        for (size_t i = 0; i < order->n_pieces; i++) {
            order->ranks[order->replies[i].i_piece] = i;
        }
        order->has_ranks = true;
    }
    order->n_replies = 0;
    order->is_free = order->n_rounds < FIRST_FREE || order->n_rounds % FREE_EVERY == 0;
    order->n_rounds++;
}

void ps_order_note(struct ps_order *order, size_t i_piece, uint64_t when_ns)
{
    if (order->n_replies < order->n_pieces) {
        order->replies[order->n_replies++] =
            (struct ps_reply){.i_piece = i_piece, .when_ns = when_ns};
    }
}

size_t ps_order_place(const struct ps_order *order, size_t i_piece)
{
    return order->is_free || !order->has_ranks ? order->n_pieces - 1 - i_piece
                                               : order->ranks[i_piece];
}
