/* Is what came out what a random graph is to give? */
#include "random_private.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparing -------------------------------------------------------------------------------- */

static double element(const struct weir_tensor *tensor, size_t i)
{
    double value;
    weir_elems_to_f64(tensor->dtype,
                      (const char *)tensor->data + i * weir_dtype_bytes(tensor->dtype), &value, 1);
    return value;
}

static bool is_same_string(const struct weir_tensor *a, const struct weir_tensor *b, size_t i)
{
    const struct weir_tensor_string *x = a->data, *y = b->data;
    return x[i].len == y[i].len && (x[i].len == 0 || memcmp(x[i].bytes, y[i].bytes, x[i].len) == 0);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What noise does to an element; NaN: it may even make it finite, or not. */
static double swing(const struct random_value *value, size_t i)
{
    double most = 0, now = element(value->now, i);
    for (int k = 0; k < GRAPH_NOISES; k++) {
        double noisy = element(value->noisy[k], i);
        bool is_same = noisy == now || (isnan(noisy) && isnan(now));
        most = is_same ? most : fmax(most, fabs(noisy - now));
        if (!is_same && (!isfinite(noisy) || !isfinite(now))) {
            return (double)NAN;
        }
    }
    return most;
}

#define SWINGS 64 /* Swings that an element may be off. */

/* Noise on a few terms may cancel by chance; not that on a quarter of a tensor's elements. */
static double quarter(const struct random_value *value)
{
    size_t n = WEIR_MIN(value->now->n_elems, (size_t)64);
    double all[64];
    size_t n_all = 0;
    for (size_t i = 0; i < n; i++) {
        double of = swing(value, i * value->now->n_elems / n);
        if (isfinite(of)) {
            all[n_all++] = of;
        }
    }
    qsort(all, n_all, sizeof *all, by_size);
    return n_all > 0 ? all[n_all / 4] : 0;
}

double random_graph_tolerance(const struct random_graph *g, int i_out, size_t i)
{
    const struct random_value *value = &g->values[g->outputs[i_out]];
    if (value->is_exact) {
        return 0;
    }
    double now = fabs(element(value->now, i));
    return SWINGS * fmax(swing(value, i), quarter(value)) +
           4 * graph_noise_of(value->now->dtype) * (isfinite(now) ? now : 0) + 1e-30;
}

/* How far element i is off, beyond what it may be; 0: not at all. */
static double distance(const struct random_value *value, const struct weir_tensor *is, size_t i,
                       double most)
{
    double want = element(value->now, i), got = element(is, i);
    if (got == want || (isnan(got) && isnan(want))) {
        return 0;
    }
    if (!value->is_exact && isnan(swing(value, i))) {
        return 0;
    }
    double off = fabs(got - want);
    return off <= most ? 0 : isnan(off) ? INFINITY : off;
}

#define RETRIES 16

/* What noise did may have been little by chance: is it near enough with more of it? */
static bool is_near(struct random_graph *g, struct random_value *value,
                    const struct weir_tensor *is, size_t i)
{
    double most = 0;
    for (int k = 0; k < RETRIES && !value->is_exact; k++) {
        graph_must(random_graph_compute(g) ? WEIR_OK : WEIR_ERR_INTERNAL);
        double of = swing(value, i);
        if (isnan(of)) {
            return true;
        }
        most = fmax(most, of);
    }
    return !value->is_exact && distance(value, is, i, SWINGS * most) == 0;
}

static bool has_shape(const struct weir_tensor *a, const struct weir_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

bool random_graph_differs(struct random_graph *g, int i_out, const struct weir_tensor *is,
                          char what[160])
{
    struct random_value *value = &g->values[g->outputs[i_out]];
    if (!has_shape(value->now, is)) {
        (void)snprintf(what, 160, "%s: another type or shape", value->name);
        return true;
    }
    double base = value->is_exact || is->n_elems == 0 ? 0 : SWINGS * quarter(value);
    for (size_t i = 0; i < is->n_elems; i++) {
        if (is->dtype == WEIR_DTYPE_STRING ? is_same_string(value->now, is, i)
                                           : element(value->now, i) == element(is, i)) {
            continue;
        }
        double most = value->is_exact
                          ? 0
                          : fmax(base, SWINGS * swing(value, i)) +
                                4 * graph_noise_of(is->dtype) * fabs(element(value->now, i)) +
                                1e-30;
        if (is->dtype == WEIR_DTYPE_STRING ||
            (distance(value, is, i, most) > 0 && !is_near(g, value, is, i))) {
            (void)snprintf(what, 160, "%s[%zu] is %.9g, not %.9g +- %.3g", value->name, i,
                           element(is, i), element(value->now, i), most);
            return true;
        }
    }
    return false;
}
