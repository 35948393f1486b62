#include "stats/permutation.h"

#include <math.h>

double permutation_log_factorial(uint64_t n)
{
    static const double small[16] = {
        0.0,
        0.0,
        0.69314718055994531,
        1.7917594692280550,
        3.1780538303479458,
        4.7874917427820458,
        6.5792512120101012,
        8.5251613610654147,
        10.604602902745251,
        12.801827480081469,
        15.104412573075516,
        17.502307845873887,
        19.987214495661885,
        22.552163853123425,
        25.191221182738680,
        27.899271383840890,
    };
    if (n < 16) {
        return small[n];
    }
    // Stirling's series; the first term left out is 1/(1680 n^7).
    double x = (double)n, inverse = 1 / x, square = inverse * inverse;
    return x * log(x) - x + 0.5 * log(2 * M_PI * x) +
           inverse * (1.0 / 12 - square * (1.0 / 360 - square / 1260));
}

static double log_choose(uint64_t n, uint64_t k)
{
    return permutation_log_factorial(n) - permutation_log_factorial(k) -
           permutation_log_factorial(n - k);
}

uint64_t permutation_hypergeometric(struct weir_rng *rng, uint64_t n_total, uint64_t n_marked,
                                    uint64_t n_draws)
{
    uint64_t n_plain = n_total - n_marked;
    uint64_t least = n_draws > n_plain ? n_draws - n_plain : 0;
    uint64_t most = n_draws < n_marked ? n_draws : n_marked;
    if (least == most) {
        return least;
    }
    double total = (double)n_total, marked = (double)n_marked, draws = (double)n_draws;
    uint64_t mode = (uint64_t)((draws + 1) * (marked + 1) / (total + 2));
    mode = mode < least ? least : mode > most ? most : mode;
    double p_mode = exp(log_choose(n_marked, mode) + log_choose(n_plain, n_draws - mode) -
                        log_choose(n_total, n_draws));
    double left = weir_rng_f64(rng) - p_mode;
    double p_up = p_mode, p_down = p_mode;
    uint64_t up = mode, down = mode;
    while (left >= 0 && (up < most || down > least)) {
        if (up < most) {
            double x = (double)up;
            p_up *= (marked - x) * (draws - x) / ((x + 1) * ((double)n_plain - draws + x + 1));
            up++;
            left -= p_up;
            if (left < 0) {
                return up;
            }
        }
        if (down > least) {
            double x = (double)down;
            p_down *= x * ((double)n_plain - draws + x) / ((marked - x + 1) * (draws - x + 1));
            down--;
            left -= p_down;
            if (left < 0) {
                return down;
            }
        }
        if (p_up < 1e-18 && p_down < 1e-18) {
            break; // only rounding is left of the uniform number
        }
    }
    return mode;
}

void permutation_draw(struct weir_rng *rng, const uint64_t *pooled, uint32_t n_bins,
                      uint64_t n_draws, uint64_t *out)
{
    uint64_t n_left = 0;
    for (uint32_t i = 0; i < n_bins; i++) {
        n_left += pooled[i];
    }
    for (uint32_t i = 0; i < n_bins; i++) {
        out[i] = permutation_hypergeometric(rng, n_left, pooled[i], n_draws);
        n_left -= pooled[i];
        n_draws -= out[i];
    }
}
