/**
 * Embeddings: how far a vector lies from where training's vectors lay. The mean and the deviation of
 * each dimension are kept, which is bounded by the dimension; the distance is Mahalanobis' with a
 * diagonal covariance, by the root of the dimension: about 1 for a vector like training's.
 *
 * JSON: {"mean": [...], "stddev": [...], "n": count, "distance": HISTOGRAM of training's distances}.
 * Each of those is the distance of a vector from all others, so that few vectors make no drift.
 */
#ifndef WEIR_STATS_EMBEDDING_H
#define WEIR_STATS_EMBEDDING_H

#include "stats/histogram.h"

#define WEIR_EMBEDDING_DIM_MAX 4096

struct weir_embedding {
    size_t dim;
    float *mean, *inverse; /**< Of each dimension; 1 / deviation. */
    struct weir_histogram distance;
};

/** The baseline of n vectors of `dim` values, one behind the other: new JSON. NULL for fewer than two
 *  vectors, more dimensions than WEIR_EMBEDDING_DIM_MAX, or values that are not finite. */
json_t *weir_embedding_json(const float *vectors, size_t n, size_t dim);

/** Read one of `dim` dimensions; weir_embedding_fini frees it. @return INVALID: no such baseline, or
 *  of another dimension. */
weir_status weir_embedding_read(const json_t *value, size_t dim, struct weir_embedding *out,
                                struct weir_error *err) WEIR_MUST_CHECK;
void weir_embedding_fini(struct weir_embedding *embedding);

/** Pure. */
double weir_embedding_distance(const struct weir_embedding *embedding, const float *vector);

#endif
