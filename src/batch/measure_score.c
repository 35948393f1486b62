#include "batch/measure.h"

#include "base/macros.h"
#include "stats/paired.h"

#include <float.h>
#include <math.h>

double measure_loss(double probability)
{
    return -log(probability > FLT_MIN ? probability : FLT_MIN);
}

void measure_score_add(struct measure_score *score, bool is_right, double loss)
{
    score->n++;
    score->n_right += is_right;
    score->loss += loss;
}

void measure_pairs_add(struct measure_pairs *pairs, bool is_first, bool is_second, bool is_alike,
                       double loss_difference)
{
    double distance = loss_difference - pairs->loss_mean;
    pairs->n++;
    pairs->loss_mean += distance / (double)pairs->n;
    pairs->loss_m2 += distance * (loss_difference - pairs->loss_mean);
    pairs->only_first += is_first && !is_second;
    pairs->only_second += is_second && !is_first;
    pairs->n_other += !is_alike;
}

double measure_accuracy(const struct measure_score *score)
{
    return score->n > 0 ? (double)score->n_right / (double)score->n : 0;
}

/* Both sides are alike. */
double measure_p_value(const struct measure_pairs *pairs)
{
    uint64_t most = (uint64_t)WEIR_MAX(pairs->only_first, pairs->only_second);
    uint64_t least = (uint64_t)WEIR_MIN(pairs->only_first, pairs->only_second);
    return WEIR_MIN(2 * weir_mcnemar_p(most, least), 1.0);
}

int measure_better(const struct measure_pairs *pairs, double alpha)
{
    if (measure_p_value(pairs) >= alpha) {
        return 0;
    }
    return pairs->only_first > pairs->only_second ? 1 : -1;
}
