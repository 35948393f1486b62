/* The bodies of the optimisers' rules: included by one file per instruction set, which names the
 * table (RULE_TABLE). The same bits from each: CMakeLists.txt keeps the compiler from fusing
 * products and sums. */
#include "optimizer_rules.h"

#include <math.h>

/* Sums side by side: one chain of additions would wait for each. */
#define LANES 16

static double lanes_add(const double lanes[LANES])
{
    double sum = 0;
    for (size_t i = 0; i < LANES; i++) {
        sum += lanes[i];
    }
    return sum;
}

static double square_sum(const float *x, size_t n)
{
    double lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            double value = (double)x[i + j];
            lanes[j] += value * value;
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        double value = (double)x[i + j];
        lanes[j] += value * value;
    }
    return lanes_add(lanes);
}

/* ---- rules: loops written so that the compiler can vectorise them -------------------------- */

#define RULE(name)                                                                                 \
    static void name(const struct step_scalars *scalars, const struct run_traits *run, size_t n,   \
                     float *restrict w, const float *restrict g, float *const *states)

RULE(sgd_plain)
{
    (void)states;
    const float lr = scalars->lr, scale = scalars->scale, decay = run->decay;
    for (size_t i = 0; i < n; i++) {
        w[i] -= lr * (scale * g[i] + decay * w[i]);
    }
}

RULE(sgd_momentum)
{
    const float lr = scalars->lr, momentum = scalars->momentum, scale = scalars->scale;
    const float decay = run->decay;
    float *restrict v = states[0];
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (scale * g[i] + decay * w[i]);
        w[i] -= lr * v[i];
    }
}

RULE(sgd_nesterov)
{
    const float lr = scalars->lr, momentum = scalars->momentum, scale = scalars->scale;
    const float decay = run->decay;
    float *restrict v = states[0];
    for (size_t i = 0; i < n; i++) {
        float decayed = scale * g[i] + decay * w[i];
        v[i] = momentum * v[i] + decayed;
        w[i] -= lr * (decayed + momentum * v[i]);
    }
}

RULE(rmsprop_plain)
{
    const float lr = scalars->lr, scale = scalars->scale, decay = run->decay;
    const float alpha = scalars->alpha, rest = scalars->rest_alpha, epsilon = scalars->epsilon;
    float *restrict s = states[0];
    for (size_t i = 0; i < n; i++) {
        float decayed = scale * g[i] + decay * w[i];
        s[i] = alpha * s[i] + rest * decayed * decayed;
        w[i] -= lr * (decayed / (sqrtf(s[i]) + epsilon));
    }
}

RULE(rmsprop_momentum)
{
    const float lr = scalars->lr, momentum = scalars->momentum, scale = scalars->scale;
    const float alpha = scalars->alpha, rest = scalars->rest_alpha, epsilon = scalars->epsilon;
    const float decay = run->decay;
    float *restrict s = states[0];
    float *restrict b = states[1];
    for (size_t i = 0; i < n; i++) {
        float decayed = scale * g[i] + decay * w[i];
        s[i] = alpha * s[i] + rest * decayed * decayed;
        b[i] = momentum * b[i] + decayed / (sqrtf(s[i]) + epsilon);
        w[i] -= lr * b[i];
    }
}

/** Adam's step with the decay in the gradient, or after `shrink` of the weights (AdamW). */
static inline void adam_step(const struct step_scalars *scalars, float decay, float shrink,
                             size_t n, float *restrict w, const float *restrict g,
                             float *const *states)
{
    const float beta1 = scalars->beta1, beta2 = scalars->beta2, epsilon = scalars->epsilon;
    const float rest1 = scalars->rest1, rest2 = scalars->rest2, scale = scalars->scale;
    const float step_size = scalars->step_size, sqrt_bc2 = scalars->sqrt_bc2;
    float *restrict m = states[0];
    float *restrict s = states[1];
    for (size_t i = 0; i < n; i++) {
        float decayed = scale * g[i] + decay * w[i];
        m[i] = beta1 * m[i] + rest1 * decayed;
        s[i] = beta2 * s[i] + rest2 * decayed * decayed;
        w[i] = shrink * w[i] - step_size * m[i] / (sqrtf(s[i]) / sqrt_bc2 + epsilon);
    }
}

RULE(adam)
{
    adam_step(scalars, run->decay, 1, n, w, g, states);
}

RULE(adamw)
{
    adam_step(scalars, 0, 1 - scalars->lr * run->decay, n, w, g, states);
}

RULE(lars)
{
    const float momentum = scalars->momentum, scale = scalars->scale, decay = run->decay;
    const float rate = scalars->lr * run->trust;
    float *restrict v = states[0];
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + rate * (scale * g[i] + decay * w[i]);
        w[i] -= v[i];
    }
}

/** The direction of one element, from its new moments. */
static inline float lamb_direction(const struct step_scalars *scalars, float decay, float w,
                                   float m, float s)
{
    return m / scalars->bc1 / (sqrtf(s) / scalars->sqrt_bc2 + scalars->epsilon) + decay * w;
}

/** The new moments of one element. */
static inline void lamb_moments(const struct step_scalars *scalars, float g, float *m, float *s)
{
    *m = scalars->beta1 * *m + scalars->rest1 * g;
    *s = scalars->beta2 * *s + scalars->rest2 * g * g;
}

static double lamb_prepare(const struct step_scalars *scalars, const struct run_traits *run,
                           size_t n, const float *restrict w, const float *restrict g,
                           float *const *states)
{
    const struct step_scalars local = *scalars;
    const float decay = run->decay;
    float *restrict m = states[0];
    float *restrict s = states[1];
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES) {
        for (size_t j = 0; j < LANES && i + j < n; j++) {
            lamb_moments(&local, local.scale * g[i + j], &m[i + j], &s[i + j]);
            double u = (double)lamb_direction(&local, decay, w[i + j], m[i + j], s[i + j]);
            lanes[j] += u * u;
        }
    }
    return lanes_add(lanes);
}

RULE(lamb)
{
    const struct step_scalars local = *scalars;
    const float decay = run->decay, rate = scalars->lr * run->trust;
    const float *restrict m = states[0];
    const float *restrict s = states[1];
    (void)g;
    for (size_t i = 0; i < n; i++) {
        w[i] -= rate * lamb_direction(&local, decay, w[i], m[i], s[i]);
    }
}

/* ---- table -------------------------------------------------------------------------------- */

// clang-format off
static const struct optimizer_rule rules[] = {
    {"sgd",     0, false, false, {NULL}, NULL, sgd_plain},
    {"sgd",     1, true,  false, {"optimizer.sgd.momentum"}, NULL, sgd_momentum},
    {"sgd",     1, true,  true,  {"optimizer.sgd.momentum"}, NULL, sgd_nesterov},
    {"rmsprop", 1, false, false, {"optimizer.rmsprop.second_moment"}, NULL, rmsprop_plain},
    {"rmsprop", 2, true,  false, {"optimizer.rmsprop.second_moment", "optimizer.rmsprop.momentum"}, NULL, rmsprop_momentum},
    {"adam",    2, false, false, {"optimizer.adam.first_moment", "optimizer.adam.second_moment"}, NULL, adam},
    {"adamw",   2, false, false, {"optimizer.adamw.first_moment", "optimizer.adamw.second_moment"}, NULL, adamw},
    {"lars",    1, false, false, {"optimizer.lars.momentum"}, NULL, lars},
    {"lamb",    2, false, false, {"optimizer.lamb.first_moment", "optimizer.lamb.second_moment"}, lamb_prepare, lamb},
};

// clang-format on

const struct optimizer_rule_table RULE_TABLE = {
    .rules = rules, .n_rules = WEIR_ARRAY_LEN(rules), .square_sum = square_sum};
