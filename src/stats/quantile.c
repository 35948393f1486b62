#include "stats/quantile.h"

#include <math.h>
#include <string.h>

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/** Reorder so that values[k] is the k-th smallest, nothing before it is larger, nothing behind it
 *  smaller (Hoare's selection, median of three). */
static void select_rank(double *values, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] < values[low]) {
            swap(&values[middle], &values[low]);
        }
        if (values[high] < values[low]) {
            swap(&values[high], &values[low]);
        }
        if (values[high] < values[middle]) {
            swap(&values[high], &values[middle]);
        }
        double pivot = values[middle];
        size_t i = low, j = high;
        for (;;) {
            while (values[i] < pivot) {
                i++;
            }
            while (values[j] > pivot) {
                j--;
            }
            if (i >= j) {
                break;
            }
            swap(&values[i++], &values[j--]);
        }
        // Now values[low..j] <= pivot <= values[j+1..high].
        if (k <= j) {
            high = j;
        } else {
            low = j + 1;
        }
    }
}

double weir_quantile(double *values, size_t n, double q)
{
    if (n == 0 || isnan(q)) {
        return NAN;
    }
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i])) {
            return NAN;
        }
    }
    double rank = fmin(1, fmax(0, q)) * (double)(n - 1);
    size_t k = (size_t)rank;
    double fraction = rank - (double)k;
    select_rank(values, n, k);
    if (fraction == 0 || k + 1 >= n) {
        return values[k];
    }
    double above = values[k + 1];
    for (size_t i = k + 2; i < n; i++) {
        above = fmin(above, values[i]);
    }
    return values[k] + fraction * (above - values[k]);
}

/** Values below 64 have a bucket each; from 2^e on (e >= 6) there are 32 per power of two. */
static unsigned bucket_of(uint64_t value)
{
    if (value < 64) {
        return (unsigned)value;
    }
    unsigned exponent = 63u - (unsigned)__builtin_clzll(value);
    return 64 + (exponent - 6) * 32 + (unsigned)(value >> (exponent - 5) & 31);
}

static uint64_t bucket_middle(unsigned bucket)
{
    if (bucket < 64) {
        return bucket;
    }
    unsigned exponent = 6 + (bucket - 64) / 32;
    uint64_t width = 1ull << (exponent - 5);
    return (1ull << exponent) + (bucket - 64) % 32 * width + width / 2;
}

void weir_sketch_init(struct weir_sketch *sketch)
{
    memset(sketch, 0, sizeof *sketch);
    sketch->min = UINT64_MAX;
}

void weir_sketch_add(struct weir_sketch *sketch, uint64_t value)
{
    sketch->counts[bucket_of(value)]++;
    sketch->n++;
    sketch->sum += (double)value;
    sketch->min = value < sketch->min ? value : sketch->min;
    sketch->max = value > sketch->max ? value : sketch->max;
}

void weir_sketch_merge(struct weir_sketch *sketch, const struct weir_sketch *other)
{
    for (unsigned i = 0; i < WEIR_SKETCH_BUCKETS; i++) {
        sketch->counts[i] += other->counts[i];
    }
    sketch->n += other->n;
    sketch->sum += other->sum;
    sketch->min = other->min < sketch->min ? other->min : sketch->min;
    sketch->max = other->max > sketch->max ? other->max : sketch->max;
}

uint64_t weir_sketch_quantile(const struct weir_sketch *sketch, double q)
{
    if (sketch->n == 0) {
        return 0;
    }
    double wanted = ceil(fmin(1, fmax(0, q)) * (double)sketch->n);
    uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted;
    if (rank >= sketch->n) {
        return sketch->max;
    }
    if (rank == 1) {
        return sketch->min;
    }
    uint64_t seen = 0;
    unsigned bucket = 0;
    while (bucket < WEIR_SKETCH_BUCKETS - 1 && seen + sketch->counts[bucket] < rank) {
        seen += sketch->counts[bucket++];
    }
    uint64_t middle = bucket_middle(bucket);
    middle = middle < sketch->min ? sketch->min : middle;
    return middle > sketch->max ? sketch->max : middle;
}

double weir_sketch_mean(const struct weir_sketch *sketch)
{
    return sketch->n == 0 ? 0 : sketch->sum / (double)sketch->n;
}
