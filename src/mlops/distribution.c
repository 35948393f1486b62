/** A distribution, binned as MCenter does. */
#include "mlops/mlops_private.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define CATEGORIES_MAX 25
#define INNER_BINS     11

struct categories {
    double values[CATEGORIES_MAX];
    int64_t counts[CATEGORIES_MAX];
    size_t n;
};

/* @return false: there are more than CATEGORIES_MAX. */
static bool count_category(struct categories *categories, double value)
{
    size_t i = 0;
    while (i < categories->n && categories->values[i] != value) {
        i++;
    }
    if (i == CATEGORIES_MAX) {
        return false;
    }
    categories->values[i] = value;
    categories->counts[i]++;
    categories->n = i == categories->n ? i + 1 : categories->n;
    return true;
}

static json_t *of_categories(const struct categories *categories)
{
    json_t *counts = json_object();
    char name[32];
    for (size_t i = 0; i < categories->n; i++) {
        (void)snprintf(name, sizeof name, "%.17g", categories->values[i]);
        json_object_set_new(counts, name, json_integer(categories->counts[i]));
    }
    return json_pack("{s:o}", "counts", counts);
}

/* Edges are finite, as JSON's numbers are. */
static void add_edge(json_t *edges, double edge)
{
    json_array_append_new(edges, json_real(fmax(-DBL_MAX, fmin(DBL_MAX, edge))));
}

/* The outer edges are at the least and the greatest value. Mean and deviation are of values by `scale`, the
 * greatest there is, for the squares of what they are themselves may be beyond all numbers. */
static json_t *of_bins(const double *values, size_t n, double scale, double mean, double stddev,
                       double least, double greatest)
{
    double first = mean - 2 * stddev, width = 4 * stddev / INNER_BINS;
    int64_t counts[INNER_BINS + 2] = {0};
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            double at = (values[i] / scale - first) / width;
            counts[!(at >= 0) ? 0 : at >= INNER_BINS ? INNER_BINS + 1 : (size_t)at + 1]++;
        }
    }
    json_t *edges = json_array(), *list = json_array();
    add_edge(edges, fmin(least, scale * first));
    for (int i = 0; i <= INNER_BINS; i++) {
        add_edge(edges, scale * (first + i * width));
    }
    add_edge(edges, fmax(greatest, scale * (first + INNER_BINS * width)));
    for (int i = 0; i < INNER_BINS + 2; i++) {
        json_array_append_new(list, json_integer(counts[i]));
    }
    return json_pack("{s:o,s:o}", "edges", edges, "counts", list);
}

json_t *mlops_distribution(const double *values, size_t n)
{
    struct categories categories = {.n = 0};
    bool are_few = true;
    double mean = 0, squares = 0, least = DBL_MAX, greatest = -DBL_MAX;
    size_t n_finite = 0, n_seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            n_finite++;
            are_few = are_few && count_category(&categories, values[i]);
            least = fmin(least, values[i]);
            greatest = fmax(greatest, values[i]);
        }
    }
    if (n_finite == 0) {
        return NULL;
    }
    if (are_few) {
        return of_categories(&categories);
    }
    double scale = fmax(fabs(least), fabs(greatest));
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            double value = values[i] / scale, before = value - mean;
            mean += before / (double)++n_seen;
            squares += before * (value - mean);
        }
    }
    return of_bins(values, n, scale, mean, sqrt(squares / (double)n_finite), least, greatest);
}
