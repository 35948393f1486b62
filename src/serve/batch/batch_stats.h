/**
 * Batch statistics: what a version has computed so far, in the parts that Triton's statistics have.
 * A value type: copy it freely.
 */
#ifndef WEIR_SERVE_BATCH_STATS_H
#define WEIR_SERVE_BATCH_STATS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** Sizes of batches that are counted apart; further sizes are in the totals only. */
#define BATCH_SIZES_MAX 64
/** Bounds of latency_counts in microseconds: 100·2^i; the last bucket has none. */
#define BATCH_LATENCY_BUCKETS 20

struct batch_count {
    uint64_t n, ns;
};

/** Times of a request or of a batch. */
struct batch_times {
    uint64_t queue_ns, input_ns, infer_ns, output_ns;
};

/** Batches of one size, in rows. */
struct batch_size_stats {
    int64_t n_rows;
    struct batch_count input, infer, output;
};

struct batch_stats {
    struct batch_count success, failure;            /**< Requests, from submission to answer. */
    struct batch_count queue, input, infer, output; /**< Of requests that succeeded. */
    uint64_t n_rows, n_batches;                     /**< Computed. */
    uint64_t n_refused, n_expired,
        n_gone;      /**< Of the failures: queue full, too late, nobody waits. */
    int64_t last_ms; /**< Wall clock of the last answer; 0: none. */
    uint64_t latency_counts[BATCH_LATENCY_BUCKETS]; /**< Of requests that succeeded. */
    struct batch_size_stats sizes[BATCH_SIZES_MAX];
    size_t n_sizes;
};

/** A request has its answer. */
void batch_stats_add_request(struct batch_stats *stats, weir_status status,
                             const struct batch_times *times, uint64_t total_ns);
/** A batch was computed. */
void batch_stats_add_batch(struct batch_stats *stats, int64_t n_rows,
                           const struct batch_times *times);

/** Upper bound of a latency bucket in seconds; infinity for the last. */
double batch_latency_bound_s(size_t bucket);

/** The latency that a share of the requests stayed below, in seconds, between the bounds of a bucket
 *  as if its requests were spread evenly. 0: there were none. */
double batch_latency_quantile_s(const struct batch_stats *stats, double share);

#endif
