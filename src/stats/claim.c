#include "stats/claim.h"

#include <math.h>

#define COMPARISONS_AT_95 3.0 /* -ln 0.05, rounded up */

double weir_false_admits_a_day(double n_strangers, double fmr, double n_people, double n_looks)
{
    return n_strangers * -expm1(n_people * n_looks * log1p(-fmr));
}

double weir_claimable_rate(double n_comparisons)
{
    return n_comparisons > COMPARISONS_AT_95 ? COMPARISONS_AT_95 / n_comparisons : 1;
}
