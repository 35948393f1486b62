/**
 * Queue of pieces that wait to be sent, in one line per server. Pure.
 *
 * Of the pieces that waited when the link got free the first in order goes. If none did, the
 * earliest goes, and of several that came together the first in order. A line with too many pieces
 * ahead is skipped. Adding and taking a piece costs O(log n).
 */
#ifndef WEIR_COMM_PS_QUEUE_H
#define WEIR_COMM_PS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ps_waiting {
    uint64_t since_ns;
    size_t place; /**< In the order; no two pieces have the same. */
    size_t i_piece;
};

/** A binary heap with the next piece on top. */
struct ps_heap {
    struct ps_waiting *entries;
    size_t n;
};

struct ps_queue {
    size_t n_pieces;
    int n_lines;
    struct ps_heap *late; /**< By line: by time. */
    struct ps_heap *due;  /**< By line: by place, those before the link got free. */
    struct ps_waiting *entries;
};

/** Piece i is in line i mod n_lines. @return false without memory; call ps_queue_fini also then. */
bool ps_queue_init(struct ps_queue *queue, size_t n_pieces, int n_lines);
void ps_queue_fini(struct ps_queue *queue);
/** Remove all pieces. */
void ps_queue_clear(struct ps_queue *queue);

/** Add a piece that is not in the queue. */
void ps_queue_add(struct ps_queue *queue, size_t i_piece, uint64_t since_ns, size_t place);

/**
 * Take the next piece out.
 *
 * @param n_ahead  By line: pieces already handed over; a line with `most` or more is skipped. NULL:
 *                 none are.
 * @param free_ns  When the link got free; it never decreases, except after a clear.
 * @return The piece; SIZE_MAX if there is none.
 */
size_t ps_queue_take(struct ps_queue *queue, const int n_ahead[], int most, uint64_t free_ns);

#endif
