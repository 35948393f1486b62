#include "train/eigenfaces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS_MAX 60
/* Below this part of the largest, a variance is rounding. */
#define VARIANCE_MIN 1e-9

/* ---- symmetric eigenproblem ----------------------------------------------------------------- */

static double off_diagonal(const double *matrix, size_t n)
{
    double sum = 0;
    for (size_t p = 0; p < n; p++) {
        for (size_t q = p + 1; q < n; q++) {
            sum += matrix[p * n + q] * matrix[p * n + q];
        }
    }
    return sum;
}

/** Make element (p, q) zero. */
static void rotate(double *matrix, size_t n, double *vectors, size_t p, size_t q)
{
    double apq = matrix[p * n + q];
    double theta = (matrix[q * n + q] - matrix[p * n + p]) / (2 * apq);
    double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t k = 0; k < n; k++) {
        double kp = matrix[k * n + p], kq = matrix[k * n + q];
        matrix[k * n + p] = c * kp - s * kq;
        matrix[k * n + q] = s * kp + c * kq;
    }
    for (size_t k = 0; k < n; k++) {
        double pk = matrix[p * n + k], qk = matrix[q * n + k];
        matrix[p * n + k] = c * pk - s * qk;
        matrix[q * n + k] = s * pk + c * qk;
        double vp = vectors[k * n + p], vq = vectors[k * n + q];
        vectors[k * n + p] = c * vp - s * vq;
        vectors[k * n + q] = s * vp + c * vq;
    }
}

/**
 * Eigenvalues and eigenvectors of a symmetric matrix by cyclic Jacobi rotations (Golub and Van
 * Loan, 8.5). `matrix` (n x n) is overwritten: its diagonal holds the eigenvalues, in no order.
 * Column j of `vectors` (n x n) is the unit eigenvector of the j-th.
 */
static void jacobi_eigen(double *matrix, size_t n, double *vectors)
{
    double all = 0;
    memset(vectors, 0, n * n * sizeof *vectors);
    for (size_t i = 0; i < n * n; i++) {
        all += matrix[i] * matrix[i];
    }
    for (size_t i = 0; i < n; i++) {
        vectors[i * n + i] = 1;
    }
    for (int sweep = 0; sweep < SWEEPS_MAX && off_diagonal(matrix, n) > 1e-30 * all; sweep++) {
        for (size_t p = 0; p < n; p++) {
            for (size_t q = p + 1; q < n; q++) {
                if (matrix[p * n + q] * matrix[p * n + q] > 1e-40 * all) {
                    rotate(matrix, n, vectors, p, q);
                }
            }
        }
    }
}

/* ---- components ----------------------------------------------------------------------------- */

/** Working memory of a fit. */
struct fit {
    float *centred; /**< n x dim */
    double *gram, *vectors;
    size_t *order; /**< Of the eigenvalues, falling. */
};

static void fit_fini(struct fit *fit)
{
    free(fit->centred);
    free(fit->gram);
    free(fit->vectors);
    free(fit->order);
}

static weir_status allocate(struct fit *fit, size_t n, size_t dim, size_t n_components,
                            struct eigenfaces *faces)
{
    fit->centred = malloc(n * dim * sizeof *fit->centred);
    fit->gram = malloc(n * n * sizeof *fit->gram);
    fit->vectors = malloc(n * n * sizeof *fit->vectors);
    fit->order = malloc(n * sizeof *fit->order);
    faces->dim = dim;
    faces->mean = malloc(dim * sizeof *faces->mean);
    faces->components = malloc(n_components * dim * sizeof *faces->components);
    faces->variances = malloc(n_components * sizeof *faces->variances);
    return fit->centred == NULL || fit->gram == NULL || fit->vectors == NULL ||
                   fit->order == NULL || faces->mean == NULL || faces->components == NULL ||
                   faces->variances == NULL
               ? WEIR_ERR_NOMEM
               : WEIR_OK;
}

static void centre(const float *const *pictures, size_t n, size_t dim, float *mean, float *centred)
{
    for (size_t i = 0; i < dim; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) {
            sum += (double)pictures[k][i];
        }
        mean[i] = (float)(sum / (double)n);
        for (size_t k = 0; k < n; k++) {
            centred[k * dim + i] = pictures[k][i] - mean[i];
        }
    }
}

static double dot(const float *a, const float *b, size_t dim)
{
    double sum = 0;
    for (size_t i = 0; i < dim; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

/** Insertion sort of the eigenvalues' numbers: n is a few hundred. */
static void sort_falling(const double *matrix, size_t n, size_t *order)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && matrix[order[at - 1] * (n + 1)] < matrix[i * (n + 1)]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

/** Component of eigenvalue number j: X^T u over its length, over its deviation. */
static void make_component(const struct fit *fit, size_t n, size_t dim, size_t j, double variance,
                           float *out)
{
    /* |X^T u|^2 is the eigenvalue, (n - 1) * variance; whitening divides by the deviation. */
    double factor = 1 / (variance * sqrt((double)(n - 1)));
    for (size_t i = 0; i < dim; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) {
            sum += fit->vectors[k * n + j] * (double)fit->centred[k * dim + i];
        }
        out[i] = (float)(sum * factor);
    }
}

static weir_status fit_components(const struct fit *fit, size_t n, size_t max_components,
                                  struct eigenfaces *faces)
{
    size_t dim = faces->dim;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i; k++) {
            double value = dot(fit->centred + i * dim, fit->centred + k * dim, dim);
            fit->gram[i * n + k] = fit->gram[k * n + i] = value / (double)(n - 1);
        }
    }
    jacobi_eigen(fit->gram, n, fit->vectors);
    sort_falling(fit->gram, n, fit->order);
    double largest = fit->gram[fit->order[0] * (n + 1)];
    faces->n_components = 0;
    while (faces->n_components < max_components && faces->n_components < n - 1) {
        size_t c = faces->n_components, j = fit->order[c];
        double variance = fit->gram[j * (n + 1)];
        if (!(variance > VARIANCE_MIN * largest) || !(variance > 0)) {
            break;
        }
        make_component(fit, n, dim, j, variance, faces->components + c * dim);
        faces->variances[c] = variance;
        faces->n_components++;
    }
    return faces->n_components > 0 ? WEIR_OK : WEIR_ERR_INVALID;
}

weir_status eigenfaces_fit(const float *const *pictures, size_t n, size_t dim,
                           size_t max_components, struct eigenfaces *out)
{
    struct eigenfaces faces = {0};
    struct fit fit = {0};
    if (n < 2 || dim == 0 || max_components == 0) {
        return WEIR_ERR_INVALID;
    }
    weir_status status = allocate(&fit, n, dim, max_components, &faces);
    if (status == WEIR_OK) {
        centre(pictures, n, dim, faces.mean, fit.centred);
        status = fit_components(&fit, n, max_components, &faces);
    }
    fit_fini(&fit);
    if (status != WEIR_OK) {
        eigenfaces_fini(&faces);
        return status;
    }
    *out = faces;
    return WEIR_OK;
}

void eigenfaces_fini(struct eigenfaces *faces)
{
    free(faces->mean);
    free(faces->components);
    free(faces->variances);
    *faces = (struct eigenfaces){0};
}

void eigenfaces_project(const struct eigenfaces *faces, const float *picture, float *out)
{
    for (size_t c = 0; c < faces->n_components; c++) {
        const float *component = faces->components + c * faces->dim;
        double sum = 0;
        for (size_t i = 0; i < faces->dim; i++) {
            sum += (double)component[i] * (double)(picture[i] - faces->mean[i]);
        }
        out[c] = (float)sum;
    }
}
