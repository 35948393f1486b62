#include "serve/batch/batch_stats.h"

#include "base/clock.h"

#include <math.h>

#define FIRST_BOUND_NS 100000u

static void count(struct batch_count *at, uint64_t ns)
{
    at->n++;
    at->ns += ns;
}

static size_t bucket_of(uint64_t total_ns)
{
    size_t bucket = 0;
    while (bucket + 1 < BATCH_LATENCY_BUCKETS && total_ns > ((uint64_t)FIRST_BOUND_NS << bucket)) {
        bucket++;
    }
    return bucket;
}

void batch_stats_add_request(struct batch_stats *stats, weir_status status,
                             const struct batch_times *times, uint64_t total_ns)
{
    stats->last_ms = weir_time_ms();
    if (status != WEIR_OK) {
        count(&stats->failure, total_ns);
        stats->n_refused += status == WEIR_ERR_UNAVAILABLE;
        stats->n_expired += status == WEIR_ERR_TIMEOUT;
        stats->n_gone += status == WEIR_ERR_CANCELLED;
        return;
    }
    count(&stats->success, total_ns);
    count(&stats->queue, times->queue_ns);
    count(&stats->input, times->input_ns);
    count(&stats->infer, times->infer_ns);
    count(&stats->output, times->output_ns);
    stats->latency_counts[bucket_of(total_ns)]++;
}

void batch_stats_add_batch(struct batch_stats *stats, int64_t n_rows,
                           const struct batch_times *times)
{
    size_t i = 0;
    stats->n_batches++;
    stats->n_rows += (uint64_t)n_rows;
    while (i < stats->n_sizes && stats->sizes[i].n_rows != n_rows) {
        i++;
    }
    if (i == BATCH_SIZES_MAX) {
        return;
    }
    if (i == stats->n_sizes) {
        stats->sizes[stats->n_sizes++] = (struct batch_size_stats){.n_rows = n_rows};
    }
    count(&stats->sizes[i].input, times->input_ns);
    count(&stats->sizes[i].infer, times->infer_ns);
    count(&stats->sizes[i].output, times->output_ns);
}

double batch_latency_bound_s(size_t bucket)
{
    return bucket + 1 < BATCH_LATENCY_BUCKETS ? (double)((uint64_t)FIRST_BOUND_NS << bucket) / 1e9
                                              : (double)INFINITY;
}

double batch_latency_quantile_s(const struct batch_stats *stats, double share)
{
    double wanted = share * (double)stats->success.n, seen = 0, from_s = 0;
    if (stats->success.n == 0) {
        return 0;
    }
    for (size_t i = 0; i + 1 < BATCH_LATENCY_BUCKETS; i++) {
        double n = (double)stats->latency_counts[i];
        if (n > 0 && seen + n >= wanted) {
            return from_s + (batch_latency_bound_s(i) - from_s) * (wanted - seen) / n;
        }
        seen += n;
        from_s = batch_latency_bound_s(i);
    }
    return from_s;
}
