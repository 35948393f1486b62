#include "stats/excess.h"

#include "base/macros.h"
#include "stats/rate.h"

#include <float.h>
#include <math.h>

double weir_excess_evidence(uint64_t k, uint64_t k_rest, double share)
{
    double a = (double)k, b = (double)k_rest, rest = 1 - share;
    if (!(share > 0 && rest > 0) || a <= share * (a + b)) {
        return 0;
    }
    /* The integral of q^k (1-q)^k_rest over [0, 1] is a beta function; the part above `share` is the chance
     * of at most k of k + k_rest + 1. */
    double whole = lgamma(a + 1) + lgamma(b + 1) - lgamma(a + b + 2);
    double part = 1 - weir_binomial_p(k + 1, k + k_rest + 1, share);
    double evidence =
        whole + log(WEIR_MAX(part, DBL_MIN)) - log(rest) - a * log(share) - b * log(rest);
    return evidence;
}
