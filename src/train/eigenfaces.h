/**
 * Eigenfaces: whitened principal components of a few pictures, as a baseline for embeddings
 * (Turk and Pentland, 1991).
 *
 * For n pictures of `dim` values with mean m, the components are the eigenvectors of their
 * covariance matrix. They are computed from the n x n Gram matrix of the centred pictures by Jacobi
 * rotations in double precision. Projections are divided by the standard deviation along each
 * component: over the n pictures they are uncorrelated with variance 1 (over n - 1).
 */
#ifndef WEIR_TRAIN_EIGENFACES_H
#define WEIR_TRAIN_EIGENFACES_H

#include "base/status.h"

#include <stddef.h>

struct eigenfaces {
    size_t dim, n_components;
    float *mean;       /**< dim */
    float *components; /**< n_components x dim, scaled so that a projection is whitened. */
    double *variances; /**< n_components, descending. */
};

/**
 * Fit to n pictures (rows of `dim`). n_components is max_components, or fewer if the pictures span
 * fewer directions.
 *
 * @return INVALID if all pictures are equal; NOMEM. Cost: n^2 * dim and about 10 * n^3.
 */
weir_status eigenfaces_fit(const float *const *pictures, size_t n, size_t dim,
                           size_t max_components, struct eigenfaces *out) WEIR_MUST_CHECK;
void eigenfaces_fini(struct eigenfaces *faces);

/** Whitened projection of a picture. @param[out] out  n_components values. */
void eigenfaces_project(const struct eigenfaces *faces, const float *picture, float *out);

#endif
