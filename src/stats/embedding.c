#include "stats/embedding.h"

#include <math.h>
#include <stdlib.h>

/* A dimension that never moved in training: any move is far. */
#define DEVIATION_MIN 1e-4

static json_t *floats_json(const float *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_real((double)values[i]));
    }
    return list;
}

/* The sums of squares from the means, dim of them, which also give the deviations. */
static void moments(const float *vectors, size_t n, size_t dim, struct weir_embedding *out,
                    double *out_means, double *out_squares)
{
    for (size_t d = 0; d < dim; d++) {
        double mean = 0, m2 = 0;
        for (size_t i = 0; i < n; i++) {
            double delta = (double)vectors[i * dim + d] - mean;
            mean += delta / (double)(i + 1);
            m2 += delta * ((double)vectors[i * dim + d] - mean);
        }
        out->mean[d] = (float)mean;
        out->inverse[d] = (float)(1 / fmax(sqrt(m2 / (double)(n - 1)), DEVIATION_MIN));
        out_means[d] = mean;
        out_squares[d] = m2;
    }
}

/* How far a vector lies from where all others lie: from itself too, it would seem nearer than live ones
 * do. Without x the mean moves by (mean - x) / (n - 1), and the sum of squares by (x - mean)² n / (n - 1). */
static double distance_from_others(const float *vector, size_t n, size_t dim, const double *means,
                                   const double *squares)
{
    double sum = 0, others = (double)(n - 1);
    for (size_t d = 0; d < dim; d++) {
        double off = (double)vector[d] - means[d];
        double left = squares[d] - off * off * (double)n / others;
        double deviation = n > 2 ? sqrt(fmax(0, left) / (double)(n - 2)) : 0;
        double z = off * (double)n / others / fmax(deviation, DEVIATION_MIN);
        sum += z * z;
    }
    return sqrt(sum / (double)dim);
}

static weir_status allocate(struct weir_embedding *embedding, size_t dim)
{
    *embedding = (struct weir_embedding){
        .dim = dim, .mean = calloc(dim, sizeof(float)), .inverse = calloc(dim, sizeof(float))};
    return embedding->mean != NULL && embedding->inverse != NULL ? WEIR_OK : WEIR_ERR_NOMEM;
}

void weir_embedding_fini(struct weir_embedding *embedding)
{
    free(embedding->mean);
    free(embedding->inverse);
    *embedding = (struct weir_embedding){0};
}

double weir_embedding_distance(const struct weir_embedding *embedding, const float *vector)
{
    double sum = 0;
    for (size_t d = 0; d < embedding->dim; d++) {
        double z = ((double)vector[d] - (double)embedding->mean[d]) * (double)embedding->inverse[d];
        sum += z * z;
    }
    return sqrt(sum / (double)embedding->dim);
}

static json_t *describe(struct weir_embedding *made, const float *vectors, size_t n)
{
    double *distances = calloc(n + 2 * made->dim, sizeof *distances);
    json_t *view = NULL;
    if (distances == NULL) {
        return NULL;
    }
    double *means = distances + n, *squares = means + made->dim;
    moments(vectors, n, made->dim, made, means, squares);
    for (size_t i = 0; i < n; i++) {
        distances[i] = distance_from_others(vectors + i * made->dim, n, made->dim, means, squares);
    }
    bool is_finite = weir_histogram_from_values(&made->distance, distances, n) == WEIR_OK &&
                     made->distance.n_nan == 0 && made->distance.n_infinite == 0;
    if (is_finite) {
        json_t *deviations = json_array();
        for (size_t d = 0; d < made->dim; d++) {
            json_array_append_new(deviations, json_real(1 / (double)made->inverse[d]));
        }
        view = json_pack("{s:I,s:o,s:o,s:o}", "n", (json_int_t)n, "mean",
                         floats_json(made->mean, made->dim), "stddev", deviations, "distance",
                         weir_histogram_to_json(&made->distance));
    }
    free(distances);
    return view;
}

json_t *weir_embedding_json(const float *vectors, size_t n, size_t dim)
{
    struct weir_embedding made = {0};
    json_t *view = NULL;
    if (n >= 2 && dim >= 1 && dim <= WEIR_EMBEDDING_DIM_MAX && allocate(&made, dim) == WEIR_OK) {
        view = describe(&made, vectors, n);
    }
    weir_embedding_fini(&made);
    return view;
}

static bool read_floats(const json_t *list, size_t dim, bool is_deviation, float *out)
{
    bool is_good = json_array_size(list) == dim;
    for (size_t d = 0; is_good && d < dim; d++) {
        const json_t *one = json_array_get(list, d);
        double value = json_number_value(one);
        is_good = json_is_number(one) && isfinite(value) && (!is_deviation || value > 0);
        out[d] = (float)(is_deviation ? 1 / fmax(value, DEVIATION_MIN) : value);
    }
    return is_good;
}

weir_status weir_embedding_read(const json_t *value, size_t dim, struct weir_embedding *out,
                                struct weir_error *err)
{
    struct weir_embedding made;
    if (dim == 0 || dim > WEIR_EMBEDDING_DIM_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "embedding: %zu dimensions", dim);
    }
    weir_status status = allocate(&made, dim);
    if (status != WEIR_OK) {
        status = weir_error_set(err, status, "no memory for the embedding's baseline");
    } else if (!read_floats(json_object_get(value, "mean"), dim, false, made.mean) ||
               !read_floats(json_object_get(value, "stddev"), dim, true, made.inverse)) {
        status = weir_error_set(err, WEIR_ERR_INVALID,
                                "embedding: expected mean and stddev of %zu dimensions", dim);
    } else {
        status = weir_histogram_from_json(json_object_get(value, "distance"), &made.distance, err);
    }
    if (status != WEIR_OK) {
        weir_embedding_fini(&made);
        return status;
    }
    *out = made;
    return WEIR_OK;
}
