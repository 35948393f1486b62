#include "stats/above.h"

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
    struct weir_histogram kept = *histogram;
    kept.n = 0;
    kept.n_nan = 0;
    for (uint32_t i = 0; i < kept.n_bins; i++) {
        kept.counts[i] = i < i_first ? 0 : kept.counts[i];
        kept.n += kept.counts[i];
    }
    if (kept.n < n_min) {
        return false;
    }
    *out_cut = histogram->edges[i_first - 1];
    *out = kept;
    return true;
}
