/**
 * Figures: what became of the requests, by deployment and version. Counters and times since the
 * server started; a version that has left the table loses its figures.
 *
 * Times are kept in a log-linear histogram: exact below 32 us, and each power of two in 16 parts
 * above, so that a quantile is off by at most 1/16. Reading is for any thread at any time; it sees
 * each number whole, but not all of one moment.
 */
#ifndef WEIR_GATEWAY_FIGURES_H
#define WEIR_GATEWAY_FIGURES_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_gateway;

/** How many times lay below end_us, and not below the bucket before. */
struct weir_gateway_bucket {
    int64_t end_us, n;
};

#define WEIR_GATEWAY_BINS 64

struct weir_gateway_figures {
    const char *deployment, *project; /**< Valid until the function that was given them returns. */
    int64_t version; /**< 0: of requests for which no version was chosen, and of the deployment. */
    int64_t made;    /**< Another number: another time in the table, counted from 0. */

#define X(field, name, help) int64_t field;
#include "gateway/figures.def"
#undef X
    int64_t n_in_flight;            /**< Now, at replicas. */
    int64_t n_held;                 /**< Now, waiting for a replica; version 0 only. */
    int64_t sum_us, p50_us, p99_us; /**< From the request to its answer, of those with one. */
    /** The same times by bucket, those without one left out: what came between two looks is their
     *  difference. Valid as long as the names. */
    const struct weir_gateway_bucket *buckets;
    size_t n_buckets;
    /** What a classifier answered, copies too: answers by bin of the likeliest class, and of its margin
     *  (serve/protocol/outputs.h). WEIR_GATEWAY_BINS each; valid as long as the names. */
    const int64_t *classes, *scores;
};

typedef void (*weir_gateway_figures_fn)(void *context, const struct weir_gateway_figures *figures);

/** Call `fn` for each deployment and version. It must not call the gateway. Any thread. */
void weir_gateway_figures_each(struct weir_gateway *gateway, weir_gateway_figures_fn fn,
                               void *context);

/** How many of its times were surely not below `us`: those of buckets that lie above it as a whole. */
int64_t weir_gateway_figures_slow(const struct weir_gateway_figures *figures, int64_t us);

/** How much a deployment has to do: what starting and stopping replicas goes by. */
struct weir_gateway_load {
    int64_t n_in_flight, n_held; /**< Now. */
    int64_t n_requests;          /**< So far, answered. */
    int64_t last_ms; /**< weir_mono_ms of the last request that came; 0: none came yet. */
};

/** False: the gateway does not know it. Any thread. */
bool weir_gateway_load(struct weir_gateway *gateway, const char *deployment,
                       struct weir_gateway_load *out);

/** Append all of it in the text format of Prometheus: Weir's own names, and Triton's for what they
 *  name (nv_inference_request_success and its like). Failures stay in out->status. Any thread. */
void weir_gateway_prometheus(struct weir_gateway *gateway, struct weir_buf *out);

#endif
