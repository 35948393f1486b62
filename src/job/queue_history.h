/**
 * Queue history: what each queue was guaranteed, had, had borrowed and waited for, over time.
 *
 * The engine takes a sample every WEIR_QUEUE_SAMPLE_MS. Samples of WEIR_QUEUE_BUCKET_MS are added up
 * in one row of each queue; a mean is the sum by their number. The newest sample stands beside, for
 * gauges, and for the account: what of a project's use is borrowed (job/usage.h).
 *
 * Amounts are thousandths of a device or CPU. A guarantee without a bound is what the queue has.
 */
#ifndef WEIR_JOB_QUEUE_HISTORY_H
#define WEIR_JOB_QUEUE_HISTORY_H

#include "base/arena.h"
#include "store/store.h"

#define WEIR_QUEUE_SAMPLE_MS ((int64_t)30 * 1000)
#define WEIR_QUEUE_BUCKET_MS ((int64_t)5 * 60 * 1000)

/** Rows that one answer may have. */
#define WEIR_QUEUE_HISTORY_MAX 20000

struct weir_queue_amounts {
    int64_t guarantee, used, borrowed, waiting;
};

struct weir_queue_sample {
    const char *queue;
    const char *project; /**< NULL: a department. */
    struct weir_queue_amounts devices, cpus;
    int64_t memory_bytes; /**< Used; kept in no history. */
};

/** Add a sample of all queues. What the newest sample said of a queue that is no more is forgotten. */
weir_status weir_queue_history_add(struct weir_txn *txn, const struct weir_queue_sample *samples,
                                   size_t n, int64_t now_ms,
                                   struct weir_error *err) WEIR_MUST_CHECK;

struct weir_queue_point {
    int64_t time_ms; /**< Where its step begins. */
    struct weir_queue_sample mean;
};

/**
 * Means by steps of time.
 *
 * @param queue, project  One alone; NULL: all that the transaction sees.
 * @param step_ms  A multiple of WEIR_QUEUE_BUCKET_MS.
 * @param out  By time, then by queue, in the arena. Steps without a sample are left out.
 * @return LIMIT: more than WEIR_QUEUE_HISTORY_MAX points.
 */
weir_status weir_queue_history_read(struct weir_txn *txn, const char *queue, const char *project,
                                    int64_t from_ms, int64_t to_ms, int64_t step_ms,
                                    struct weir_arena *arena, struct weir_queue_point **out,
                                    size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
