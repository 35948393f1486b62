#include "batch/measure.h"

#include "base/macros.h"

#include <float.h>
#include <math.h>

void measure_score_add(struct measure_score *score, bool is_right, double probability)
{
    score->n++;
    score->n_right += is_right;
    score->loss -= log(probability > FLT_MIN ? probability : FLT_MIN);
}

double measure_accuracy(const struct measure_score *score)
{
    return score->n > 0 ? (double)score->n_right / (double)score->n : 0;
}

/* 2 * P(X <= k) for X ~ B(n, 1/2), in logarithms: n may be large. */
double measure_p_value(const struct measure_pairs *pairs)
{
    double n = (double)(pairs->only_first + pairs->only_second), p = 0;
    int64_t least = WEIR_MIN(pairs->only_first, pairs->only_second);
    for (int64_t k = 0; k <= least; k++) {
        double ways = lgamma(n + 1) - lgamma((double)k + 1) - lgamma(n - (double)k + 1);
        p += 2 * exp(ways - n * log(2));
    }
    return p < 1 ? p : 1;
}

int measure_better(const struct measure_pairs *pairs, double alpha)
{
    if (measure_p_value(pairs) >= alpha) {
        return 0;
    }
    return pairs->only_first > pairs->only_second ? 1 : -1;
}
