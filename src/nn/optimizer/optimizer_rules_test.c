/*
 * The optimisers against the rules as PyTorch's documentation and the papers of LARS and LAMB state
 * them, written again here in double precision, and against steps worked by hand.
 */
#include "nn/backend/cpu/cpu_level.h"
#include "optimizer_fixture.h"
#include "optimizer_rules.h"

#include <math.h>

enum { N_STEPS = 20 };

struct double_oracle {
    double w[N], m[N], s[N], u[N], g[N];
};

static bool is_trained(size_t i)
{
    return i < 310 || (i >= 320 && i < 901);
}

static bool is(const struct weir_optimizer_config *config, const char *name)
{
    return strcmp(config->name, name) == 0;
}

/* torch.optim.SGD, RMSprop, Adam and AdamW: the "algorithm" boxes of their manual pages. u is what
 * the learning rate is multiplied by. */
static void oracle_element(struct double_oracle *o, const struct weir_optimizer_config *config,
                           double d, double lr, int t, size_t i)
{
    double mu = config->momentum;
    double g = o->g[i] + (is(config, "adamw") || is(config, "lamb") ? 0 : d * o->w[i]);
    if (is(config, "sgd")) {
        o->m[i] = t == 1 ? g : mu * o->m[i] + g;
        o->u[i] = config->is_nesterov ? g + mu * o->m[i] : o->m[i];
    } else if (is(config, "rmsprop")) {
        o->s[i] = config->alpha * o->s[i] + (1 - config->alpha) * g * g;
        o->u[i] = o->m[i] = mu * o->m[i] + g / (sqrt(o->s[i]) + config->epsilon);
    } else if (is(config, "lars")) {
        o->u[i] = g;
    } else {
        o->m[i] = config->beta1 * o->m[i] + (1 - config->beta1) * g;
        o->s[i] = config->beta2 * o->s[i] + (1 - config->beta2) * g * g;
        double m_hat = o->m[i] / (1 - pow(config->beta1, t));
        double s_hat = o->s[i] / (1 - pow(config->beta2, t));
        o->u[i] = m_hat / (sqrt(s_hat) + config->epsilon);
        o->u[i] += is(config, "lamb") ? d * o->w[i] : 0;
        o->w[i] -= is(config, "adamw") ? lr * d * o->w[i] : 0;
    }
}

static double norm_of(const double *x, const struct weir_param *param)
{
    double squares = 0;
    for (size_t i = param->first_elem; i < param->first_elem + param->n_elems; i++) {
        squares += x[i] * x[i];
    }
    return sqrt(squares);
}

static void oracle_tensor(struct double_oracle *o, const struct weir_optimizer_config *config,
                          const struct weir_param *param, double lr, int t)
{
    double d = param->is_decayed ? config->weight_decay : 0, ratio = 1;
    double norm_w = norm_of(o->w, param), norm_g = norm_of(o->g, param);
    for (size_t i = param->first_elem; i < param->first_elem + param->n_elems; i++) {
        oracle_element(o, config, d, lr, t, i);
    }
    if (param->is_decayed && is(config, "lars")) {
        ratio = config->trust * norm_w / (norm_g + d * norm_w);
    } else if (param->is_decayed && is(config, "lamb")) {
        ratio = norm_w / norm_of(o->u, param);
    }
    for (size_t i = param->first_elem; i < param->first_elem + param->n_elems; i++) {
        if (is(config, "lars")) {
            o->m[i] = config->momentum * o->m[i] + lr * ratio * o->u[i];
            o->w[i] -= o->m[i];
        } else {
            o->w[i] -= lr * ratio * o->u[i];
        }
    }
}

static void oracle_step(struct double_oracle *oracle, const struct weir_optimizer_config *config,
                        const float *gradients, double lr, int t)
{
    double squares = 0;
    for (size_t i = 0; i < N; i++) {
        squares += is_trained(i) ? (double)gradients[i] * gradients[i] : 0;
    }
    double scale = config->clip_norm > 0 ? config->clip_norm / (sqrt(squares) + 1e-6) : 1;
    for (size_t i = 0; i < N; i++) {
        oracle->g[i] = fmin(scale, 1) * gradients[i];
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(params); i++) {
        if (params[i].is_trainable) {
            oracle_tensor(oracle, config, &params[i], lr, t);
        }
    }
}

static void follows_oracle(const struct weir_optimizer_config *config)
{
    static struct double_oracle oracle;
    static float weights[N], gradients[N];
    memset(&oracle, 0, sizeof oracle);
    fill(weights, 0);
    for (size_t i = 0; i < N; i++) {
        oracle.w[i] = weights[i];
    }
    struct weir_optimizer *optimizer = created(config);
    for (int step = 0; step < N_STEPS; step++) {
        fill(gradients, (uint64_t)step + 1);
        double lr = 0.05 / (1 + step);
        weir_optimizer_update(optimizer, weights, gradients, 0, N, lr, (uint64_t)step);
        oracle_step(&oracle, config, gradients, lr, step + 1);
    }
    for (size_t i = 0; i < N; i++) {
        if (is_trained(i)) {
            ck_assert_msg(fabs(weights[i] - oracle.w[i]) < 5e-6 * (1 + fabs(oracle.w[i])),
                          "%s, seed %d, element %zu: %.9g, not %.9g", config->name, SEED, i,
                          weights[i], oracle.w[i]);
        } else {
            ck_assert_float_eq(weights[i], (float)oracle.w[i]);
        }
    }
    weir_optimizer_destroy(optimizer);
}

START_TEST(every_rule_follows_its_formula_in_double_precision)
{
    struct weir_optimizer_config config = defaults("sgd");
    follows_oracle(&config);
    config.weight_decay = 0.01;
    follows_oracle(&config);
    config.is_nesterov = true;
    follows_oracle(&config);
    config.is_nesterov = false;
    config.momentum = 0;
    follows_oracle(&config);
    for (size_t i = 1; i < WEIR_ARRAY_LEN(names); i++) {
        config = defaults(names[i]);
        follows_oracle(&config);
        config.weight_decay = 0.01;
        config.alpha = 0.9;
        config.beta1 = 0.8;
        config.epsilon = 1e-3;
        config.trust = 0.02;
        follows_oracle(&config);
        config.momentum = 0;
        follows_oracle(&config);
    }
}

END_TEST

START_TEST(gradients_longer_than_the_limit_are_made_as_long_as_it)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        struct weir_optimizer_config config = defaults(names[i]);
        config.weight_decay = 0.01;
        config.clip_norm = 3; /* of a norm of about 30 */
        follows_oracle(&config);
        config.clip_norm = 3000;
        follows_oracle(&config);
    }
    /* Without rounding: a step of plain descent is as long as the limit. */
    struct weir_optimizer_config config = defaults("sgd");
    float weights[N] = {0}, gradients[N] = {3, [320] = 4, [315] = 100};
    config.momentum = 0;
    config.clip_norm = 1;
    struct weir_optimizer *optimizer = created(&config);
    weir_optimizer_update(optimizer, weights, gradients, 0, N, 1, 0);
    ck_assert_double_eq_tol(weights[0], -0.6, 1e-6);
    ck_assert_double_eq_tol(weights[320], -0.8, 1e-6);
    ck_assert_float_eq(weights[315], 0);
    weir_optimizer_destroy(optimizer);
}

END_TEST

START_TEST(a_tensor_of_zeros_begins_to_learn_under_lars_and_lamb)
{
    for (size_t i = 4; i < WEIR_ARRAY_LEN(names); i++) {
        struct weir_optimizer_config config = defaults(names[i]);
        struct weir_optimizer *optimizer = created(&config);
        float weights[N] = {0}, gradients[N] = {[7] = 0.5f};
        weir_optimizer_update(optimizer, weights, gradients, 0, N, 0.125, 0);
        /* The ratio is 1: lars moves by the gradient, lamb by its sign. */
        ck_assert_double_eq_tol(weights[7], i == 4 ? -0.0625 : -0.125, 1e-5);
        ck_assert_float_eq(weights[8], 0);
        weir_optimizer_destroy(optimizer);
    }
}

END_TEST

START_TEST(two_steps_of_momentum_worked_by_hand)
{
    struct weir_optimizer_config config = defaults("sgd");
    config.momentum = 0.5;
    config.weight_decay = 0.25;
    struct weir_optimizer *optimizer = created(&config);
    float weights[N] = {2}, gradients[N] = {1};
    weir_optimizer_update(optimizer, weights, gradients, 0, 1, 0.5, 0);
    ck_assert_float_eq(weights[0], 1.25f); /* v = 1 + 0.5 = 1.5; 2 - 0.75 */
    weir_optimizer_update(optimizer, weights, gradients, 0, 1, 0.5, 1);
    ck_assert_float_eq(weights[0], 0.21875f); /* v = 0.75 + 1.3125 = 2.0625; 1.25 - 1.03125 */
    weir_optimizer_destroy(optimizer);
}

END_TEST

START_TEST(the_first_step_of_adam_moves_each_weight_by_the_learning_rate)
{
    struct weir_optimizer_config config = defaults("adam");
    struct weir_optimizer *optimizer = created(&config);
    static float weights[N], gradients[N];
    for (size_t i = 0; i < N; i++) {
        gradients[i] = i % 2 == 0 ? 1e-3f : -40.0f;
        weights[i] = 0;
    }
    weir_optimizer_update(optimizer, weights, gradients, 0, N, 0.125, 0);
    for (size_t i = 0; i < 300; i++) {
        ck_assert_float_eq_tol(weights[i], i % 2 == 0 ? -0.125f : 0.125f, 2e-6f);
    }
    weir_optimizer_destroy(optimizer);
}

END_TEST

/* One step of a rule, as a level of processors has it, over a run that fills no vector. */
static void step_of_level(const struct optimizer_rule_table *table,
                          const struct weir_optimizer_config *config, float out[3][N])
{
    const struct step_scalars scalars = {.lr = 0.1f,
                                         .momentum = 0.9f,
                                         .alpha = 0.99f,
                                         .beta1 = 0.9f,
                                         .beta2 = 0.999f,
                                         .epsilon = 1e-8f,
                                         .rest_alpha = 0.01f,
                                         .rest1 = 0.1f,
                                         .rest2 = 0.001f,
                                         .step_size = 0.2f,
                                         .bc1 = 0.3f,
                                         .sqrt_bc2 = 0.7f,
                                         .scale = 0.8f};
    const struct run_traits traits = {.decay = 0.01f, .trust = 0.6f};
    const struct optimizer_rule *rule = optimizer_rule_in(table, config);
    static float gradients[N];
    float *states[] = {out[1], out[2]};
    fill(gradients, 1);
    fill(out[0], 2);
    fill(out[1], 3);
    fill(out[2], 4);
    for (size_t i = 0; i < N; i++) {
        out[2][i] = fabsf(out[2][i]); /* a second moment */
        out[1][i] = strcmp(config->name, "rmsprop") == 0 ? fabsf(out[1][i]) : out[1][i];
    }
    if (rule->prepare != NULL) {
        out[0][N - 1] = (float)rule->prepare(&scalars, &traits, N - 3, out[0], gradients, states);
    }
    rule->update(&scalars, &traits, N - 3, out[0], gradients, states);
    out[0][N - 2] = (float)table->square_sum(gradients, N - 3);
}

START_TEST(every_processor_gives_the_same_bits)
{
    static float plain[3][N], wide[3][N];
    for (size_t i = 0; i < 3 * WEIR_ARRAY_LEN(names); i++) {
        struct weir_optimizer_config config = defaults(names[i / 3]);
        config.momentum = i % 3 == 0 ? 0 : config.momentum;
        config.is_nesterov = i % 3 == 1;
        step_of_level(&optimizer_rules_v1, &config, plain);
        if (cpu_level() >= CPU_LEVEL_V3) {
            step_of_level(&optimizer_rules_v3, &config, wide);
            ck_assert_mem_eq(plain, wide, sizeof plain);
        }
        if (cpu_level() >= CPU_LEVEL_V4) {
            step_of_level(&optimizer_rules_v4, &config, wide);
            ck_assert_mem_eq(plain, wide, sizeof plain);
        }
    }
}

END_TEST

WEIR_TEST_MAIN("optimizer rules", every_rule_follows_its_formula_in_double_precision,
               gradients_longer_than_the_limit_are_made_as_long_as_it,
               a_tensor_of_zeros_begins_to_learn_under_lars_and_lamb,
               two_steps_of_momentum_worked_by_hand,
               the_first_step_of_adam_moves_each_weight_by_the_learning_rate,
               every_processor_gives_the_same_bits)
