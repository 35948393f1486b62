#include "stats/above.h"

#include <math.h>

bool weir_histogram_above(const struct weir_histogram *histogram, double threshold, uint64_t n_min,
                          struct weir_histogram *out, double *out_cut)
{
    uint32_t i_first = 1;
    while (i_first < histogram->n_bins && histogram->edges[i_first - 1] < threshold) {
        i_first++;
    }
    if (i_first >= histogram->n_bins) {
        return false;
    }
    struct weir_histogram kept;
    double centres[WEIR_HISTOGRAM_MAX_BINS];
    weir_histogram_init_like(&kept, histogram);
    weir_histogram_centres(histogram, centres);
    for (uint32_t i = i_first; i < kept.n_bins; i++) {
        double n = (double)histogram->counts[i], before = (double)kept.n;
        double delta = centres[i] - kept.mean;
        kept.counts[i] = histogram->counts[i];
        kept.n += kept.counts[i];
        kept.mean += n > 0 ? delta * n / (double)kept.n : 0;
        kept.m2 += n > 0 ? delta * delta * before * n / (double)kept.n : 0;
    }
    if (kept.n < n_min) {
        return false;
    }
    kept.min = fmax(histogram->min, histogram->edges[i_first - 1]);
    kept.max = histogram->max;
    *out_cut = histogram->edges[i_first - 1];
    *out = kept;
    return true;
}
