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
