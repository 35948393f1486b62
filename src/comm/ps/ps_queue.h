/**
 * Pieces that wait to go on, in lines: which goes next. Pure.
 *
 * What waited when the way got free goes in the order of places; if nothing did, what came first
 * goes, and of those that came together the first in place. A line whose way is full is passed
 * over. A piece is added and taken in O(log n).
 */
#ifndef WEIR_COMM_PS_QUEUE_H
#define WEIR_COMM_PS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ps_waiting {
    uint64_t since_ns;
    size_t place; /**< In the order: no two pieces have the same. */
    size_t i_piece;
};

/** A heap: the next on top. */
struct ps_heap {
    struct ps_waiting *entries;
    size_t n;
};

struct ps_queue {
    size_t n_pieces;
    int n_lines;
    struct ps_heap *late; /**< By line: by time. */
    struct ps_heap *due;  /**< By line: by place, those that came before the way got free. */
    struct ps_waiting *entries;
};

/** Piece i is in line i mod n_lines. @return false without memory; ps_queue_fini is then wanted
 *  too. */
bool ps_queue_init(struct ps_queue *queue, size_t n_pieces, int n_lines);
void ps_queue_fini(struct ps_queue *queue);
/** Nobody waits any more. */
void ps_queue_clear(struct ps_queue *queue);

/** A piece that does not wait yet. */
void ps_queue_add(struct ps_queue *queue, size_t i_piece, uint64_t since_ns, size_t place);

/**
 * @param n_ahead  By line: how many are on its way; from `most` on it is full. NULL: none is.
 * @param free_ns  When the way got free; never earlier than it was before, but for a clear.
 * @return The next, which does not wait any more; SIZE_MAX: there is none.
 */
size_t ps_queue_take(struct ps_queue *queue, const int n_ahead[], int most, uint64_t free_ns);

#endif
