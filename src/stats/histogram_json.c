#include "stats/histogram.h"

#include <math.h>
#include <stdlib.h>

static json_t *must(json_t *value)
{
    if (value == NULL) {
        abort(); // memory is out; stats is used by programs, which end then
    }
    return value;
}

static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, must(value)) != 0) {
        abort();
    }
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *weir_histogram_counts_json(const struct weir_histogram *hist)
{
    json_t *object = must(json_object()), *edges = must(json_array()), *counts = must(json_array());
    for (uint32_t i = 0; i < hist->n_bins; i++) {
        if (i + 1 < hist->n_bins && json_array_append_new(edges, json_real(hist->edges[i])) != 0) {
            abort();
        }
        if (json_array_append_new(counts, json_integer((json_int_t)hist->counts[i])) != 0) {
            abort();
        }
    }
    put(object, "edges", edges);
    put(object, "counts", counts);
    return object;
}

json_t *weir_histogram_to_json(const struct weir_histogram *hist)
{
    json_t *object = weir_histogram_counts_json(hist);
    put(object, "nan", json_integer((json_int_t)hist->n_nan));
    put(object, "infinite", json_integer((json_int_t)hist->n_infinite));
    put(object, "mean", json_real(hist->mean));
    put(object, "m2", json_real(hist->m2));
    put(object, "min", number_or_null(hist->min));
    put(object, "max", number_or_null(hist->max));
    return object;
}

char *weir_histogram_to_text(const struct weir_histogram *hist, struct weir_arena *arena)
{
    json_t *value = weir_histogram_to_json(hist);
    char *text = weir_json_text(value, arena);
    json_decref(value);
    return text;
}

static weir_status read_edges(const json_t *value, struct weir_histogram *out,
                              struct weir_error *err)
{
    const json_t *edges = json_object_get(value, "edges");
    size_t n = json_array_size(edges);
    double values[WEIR_HISTOGRAM_MAX_BINS];
    if (n < 1 || n > WEIR_HISTOGRAM_MAX_BINS - 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "histogram: \"edges\" must be an array of 1 to %d numbers",
                              WEIR_HISTOGRAM_MAX_BINS - 1);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *edge = json_array_get(edges, i);
        values[i] = json_is_number(edge) ? json_number_value(edge) : NAN;
    }
    if (weir_histogram_init(out, values, n) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "histogram: \"edges\" must be strictly increasing numbers");
    }
    return WEIR_OK;
}

/** A count: an integer that no sum of 64 of them can overflow. */
static weir_status read_count(const json_t *value, const char *key, uint64_t *out,
                              struct weir_error *err)
{
    json_int_t count = json_integer_value(value);
    if (!json_is_integer(value) || count < 0 || count > (json_int_t)1 << 53) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "histogram: \"%s\" must hold integers from 0 to 2^53", key);
    }
    *out = (uint64_t)count;
    return WEIR_OK;
}

static weir_status read_counts(const json_t *value, struct weir_histogram *out,
                               struct weir_error *err)
{
    const json_t *counts = json_object_get(value, "counts");
    if (json_array_size(counts) != out->n_bins) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "histogram: \"counts\" must be an array of %u integers, one more "
                              "than \"edges\"",
                              out->n_bins);
    }
    for (uint32_t i = 0; i < out->n_bins; i++) {
        WEIR_TRY(read_count(json_array_get(counts, i), "counts", &out->counts[i], err));
        out->n += out->counts[i];
    }
    const json_t *n_nan = json_object_get(value, "nan"),
                 *n_inf = json_object_get(value, "infinite");
    if (n_nan != NULL) {
        WEIR_TRY(read_count(n_nan, "nan", &out->n_nan, err));
    }
    if (n_inf != NULL) {
        WEIR_TRY(read_count(n_inf, "infinite", &out->n_infinite, err));
    }
    if (out->n_infinite > out->counts[0] + out->counts[out->n_bins - 1]) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "histogram: \"infinite\" is more than the outer bins hold");
    }
    return WEIR_OK;
}

weir_status weir_histogram_from_json(const json_t *value, struct weir_histogram *out,
                                     struct weir_error *err)
{
    struct weir_histogram made;
    if (!json_is_object(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "histogram: expected an object");
    }
    WEIR_TRY(read_edges(value, &made, err));
    WEIR_TRY(read_counts(value, &made, err));
    const json_t *mean = json_object_get(value, "mean"), *m2 = json_object_get(value, "m2");
    if (!json_is_number(mean) || !json_is_number(m2) || json_number_value(m2) < 0) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "histogram: \"mean\" and \"m2\" must be numbers, \"m2\" not negative");
    }
    made.mean = json_number_value(mean);
    made.m2 = json_number_value(m2);
    const json_t *min = json_object_get(value, "min"), *max = json_object_get(value, "max");
    if (made.n > 0) {
        // An infinity has no JSON form: it is written as null and belongs to the outer bins.
        made.min = json_is_number(min) ? json_number_value(min) : -INFINITY;
        made.max = json_is_number(max) ? json_number_value(max) : INFINITY;
    }
    *out = made;
    return WEIR_OK;
}

weir_status weir_histogram_from_text(const char *text, size_t len, struct weir_histogram *out,
                                     struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *value = NULL;
    WEIR_TRY(weir_json_parse(text, len, "histogram", &value, err));
    return weir_histogram_from_json(value, out, err);
}
