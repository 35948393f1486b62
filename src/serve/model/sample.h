/**
 * Sample: inputs for a model of which nobody has said what it takes: of its ports' shapes, with values
 * that most models can be run on.
 */
#ifndef WEIR_SERVE_SAMPLE_H
#define WEIR_SERVE_SAMPLE_H

#include "base/rng.h"
#include "serve/signature.h"

/** What an input holds. Texts are numbers, since many models make numbers of them. */
enum sample_kind {
    SAMPLE_ZEROS, /**< Texts are empty. */
    SAMPLE_ONES,
    SAMPLE_TEXT_ZEROS, /**< Zeros, and texts "0". */
    SAMPLE_SMALL,      /**< Floats are normal, whole numbers 0 or 1. */
    SAMPLE_WIDE,       /**< Floats are normal, whole numbers 0 to 99. */
};

/** What free dimensions become, where the picture rule does not say it. */
struct sample_size {
    int64_t batch;     /**< The first. */
    int64_t free_size; /**< The others. */
    bool only_last;    /**< The last only; those between are `batch` too, as of a state's batch. */
};

/** Inputs of zeros. @param out  n_inputs references; NULLs on an error. */
weir_status sample_make(const struct weir_signature *signature, const struct sample_size *size,
                        struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Fills a tensor. NOMEM. */
weir_status sample_fill(struct weir_tensor *tensor, enum sample_kind kind, struct weir_rng *rng,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** New tensors of the same shapes, filled. */
weir_status sample_like(struct weir_tensor *const *like, size_t n, enum sample_kind kind,
                        struct weir_rng *rng, struct weir_tensor **out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Rows first to first + n_rows of a tensor, as one of its own. */
weir_status sample_rows(const struct weir_tensor *from, int64_t first, int64_t n_rows,
                        struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** The rows of a, then those of b. */
weir_status sample_join(const struct weir_tensor *a, const struct weir_tensor *b,
                        struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** The rows of a tensor n times. */
weir_status sample_repeat(const struct weir_tensor *from, int64_t n, struct weir_tensor **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * How far one output is from another: the root of the mean square of their difference, in parts of
 * that of `of`. Texts and whole numbers that differ count as a difference of their own size. Another
 * type or shape, and NaN or an infinity in one of them only: 1 at least.
 */
double sample_distance(const struct weir_tensor *is, const struct weir_tensor *of);

#endif
