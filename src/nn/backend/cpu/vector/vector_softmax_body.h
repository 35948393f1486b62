/* The softmax of vector_body.h, of floats in every table. */
#include <math.h>

/* Up to LANES of n scores; what is missing adds nothing to a sum of exponentials. */
static inline vec load_scores(const float *x, size_t n)
{
    const veci lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return n >= LANES ? load_floats(x, n)
                      : choose(lane < (int32_t)n, load_floats(x, n), splat(-INFINITY));
}

/* exp(x) of x <= 0, within 2 units of the last place; 0 below -87; NaN stays. x = k ln 2 + f with
 * the polynomial of Cephes' expf for f (S. L. Moshier). */
static inline vec exp_below(vec x)
{
    const float to_integer = 0x1.8p23f; /* added, leaves no room for a fraction */
    vec bounded = choose(x < -87, splat(-87), x);
    vec shifted = bounded * 1.44269504088896341f + to_integer;
    vec k = shifted - to_integer;
    vec f = bounded - k * 0.693359375f + k * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    vec power = (vec)(((veci)shifted - (veci)splat(to_integer) + 127) << 23);
    return keep(~(x < -87), (p * f * f + f + 1) * power);
}

/* The vector with its halves, of so many lanes, swapped. */
#define SWAP_8(v)                                                                                  \
    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define SWAP_4(v)                                                                                  \
    __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define SWAP_2(v)                                                                                  \
    __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define SWAP_1(v)                                                                                  \
    __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)

static inline vec larger(vec a, vec b)
{
    return choose(a > b, a, b);
}

static inline float largest_lane(vec v)
{
    v = larger(v, SWAP_8(v));
    v = larger(v, SWAP_4(v));
    v = larger(v, SWAP_2(v));
    v = larger(v, SWAP_1(v));
    return v[0];
}

static inline float sum_lanes(vec v)
{
    v += SWAP_8(v);
    v += SWAP_4(v);
    v += SWAP_2(v);
    v += SWAP_1(v);
    return v[0];
}

/* sum(exp(x - the largest)). */
static double sum_exp(const float *x, size_t total, float *out_largest)
{
    vec most = splat(-INFINITY);
    FOR_LANES(total, at, n)
    {
        vec v = load_scores(x + at, n);
        most = larger(v, most);
    }
    float largest = largest_lane(most);
    double sum = 0;
    for (size_t first = 0; first < total; first += VECTOR_CHUNK * LANES) {
        vec sums = {0};
        FOR_LANES(WEIR_MIN(total - first, (size_t)VECTOR_CHUNK * LANES), at, n)
        {
            sums += exp_below(load_scores(x + first + at, n) - largest);
        }
        sum += (double)sum_lanes(sums);
    }
    *out_largest = largest;
    return sum;
}

static double log_sum_exp(const float *x, size_t n)
{
    float largest;
    double sum = sum_exp(x, n, &largest);
    return (double)largest + log(sum);
}

static void softmax_backward(const float *x, size_t total, float rest, float factor, float *dx,
                             bool adds)
{
    float largest;
    double sum = sum_exp(x, total, &largest);
    float of_one = (float)((double)factor / sum);
    FOR_LANES(total, at, n)
    {
        vec g = exp_below(load_scores(x + at, n) - largest) * of_one - rest * factor;
        store_floats(dx + at, adds ? load_floats(dx + at, n) + g : g, n);
    }
}
