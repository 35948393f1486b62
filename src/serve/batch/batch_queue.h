/**
 * Batch queue: which requests are computed together, and when. Pure: time is an argument.
 *
 * Requests are taken earliest deadline first; of equal deadlines the earlier arrival. A batch is the
 * first request and those behind it that mix with it (tensors of the same shape beside the batch's
 * dimension), in this order, as long as all their rows are at most batch_max. A request of more rows
 * than that is a batch by itself.
 *
 * A batch that is not full waits until the oldest request has waited for delay_ns, or the first
 * deadline would not come any closer than delay_ns: no longer. With a delay of 0 what is there is
 * taken.
 *
 * The queue holds at most queue_max requests. Entries are the caller's memory, linked in.
 */
#ifndef WEIR_SERVE_BATCH_QUEUE_H
#define WEIR_SERVE_BATCH_QUEUE_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCH_NO_DEADLINE UINT64_MAX

struct batch_entry {
    int64_t n_rows; /**< At least 1. */
    uint64_t arrived_ns;
    uint64_t deadline_ns;                /**< BATCH_NO_DEADLINE: none. */
    struct batch_entry *next, *previous; /**< By deadline; of what was taken: the next one. */
    struct batch_entry *newer, *older;   /**< By arrival. */
};

struct batch_rules {
    int64_t batch_max; /**< Rows; 1: nothing is mixed. */
    uint64_t delay_ns;
    size_t queue_max;
    /** May these two be computed together? Asked about two entries of the queue. */
    bool (*mixes)(const struct batch_entry *a, const struct batch_entry *b);
};

struct batch_queue {
    struct batch_rules rules; /**< May be changed between calls. */
    struct batch_entry *first, *last, *oldest, *newest;
    size_t n;
};

/** False: the queue is full, and nothing was done. Cost: O(entries with a later deadline). */
bool batch_queue_push(struct batch_queue *queue, struct batch_entry *entry) WEIR_MUST_CHECK;

/** Takes out those whose deadline is over at `now_ns`: a list by `next`, or NULL. */
struct batch_entry *batch_queue_take_expired(struct batch_queue *queue, uint64_t now_ns);

/**
 * Takes the next batch out.
 *
 * @param is_urgent    Take what is there, whatever the delay: the queue ends.
 * @param out_wait_ns  Where NULL is returned: when to ask again at the latest. UINT64_MAX: not
 *                     before something is pushed.
 * @return A list by `next`, in order; NULL: nothing yet.
 */
struct batch_entry *batch_queue_take(struct batch_queue *queue, uint64_t now_ns, bool is_urgent,
                                     uint64_t *out_wait_ns);

#endif
