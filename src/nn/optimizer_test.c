/*
 * The optimisers against the rules as PyTorch's documentation and the papers of LARS and LAMB state
 * them, written again here in double precision, and against steps worked by hand.
 */
#include "nn/optimizer.h"

#include "cpu_level.h"
#include "optimizer_rules.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, N_STEPS = 20, SEED = 7 };

static const char *const names[] = {"sgd", "rmsprop", "adam", "adamw", "lars", "lamb"};

/* Trainable: [0,300) decayed, [300,310) not, a gap [310,320), [320,901) decayed; [901,1000) is a
 * running statistic. Given out of order, as nothing says they are sorted. */
static const struct weir_param params[] = {
    {.name = "b.weight",
     .first_elem = 320,
     .n_elems = 581,
     .is_trainable = true,
     .is_decayed = true},
    {.name = "a.weight", .first_elem = 0, .n_elems = 300, .is_trainable = true, .is_decayed = true},
    {.name = "a.bias", .first_elem = 300, .n_elems = 10, .is_trainable = true},
    {.name = "n.running_mean", .first_elem = 901, .n_elems = 99},
};

struct oracle {
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
static void oracle_element(struct oracle *o, const struct weir_optimizer_config *config, double d,
                           double lr, int t, size_t i)
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

static void oracle_tensor(struct oracle *o, const struct weir_optimizer_config *config,
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

static void oracle_step(struct oracle *oracle, const struct weir_optimizer_config *config,
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

static struct weir_optimizer *created(const struct weir_optimizer_config *config)
{
    struct weir_optimizer *optimizer = NULL;
    struct weir_error err;
    ck_assert_msg(weir_optimizer_create(config, params, WEIR_ARRAY_LEN(params), &optimizer, &err) ==
                      WEIR_OK,
                  "%s", err.message);
    return optimizer;
}

static struct weir_optimizer_config defaults(const char *name)
{
    struct weir_optimizer_config config;
    ck_assert_int_eq(weir_optimizer_defaults(name, &config, NULL), WEIR_OK);
    return config;
}

static void fill(float *values, uint64_t stream)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, stream);
    for (size_t i = 0; i < N; i++) {
        values[i] = (float)weir_rng_normal(&rng);
    }
}

static void follows_oracle(const struct weir_optimizer_config *config)
{
    static struct oracle oracle;
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

START_TEST(settings_are_read_from_a_text)
{
    struct weir_optimizer_config config;
    struct weir_error err;
    ck_assert_int_eq(weir_optimizer_parse("rmsprop:alpha=0.9,epsilon=1", &config, &err), WEIR_OK);
    ck_assert_str_eq(config.name, "rmsprop");
    ck_assert_double_eq(config.alpha, 0.9);
    ck_assert_double_eq(config.epsilon, 1);
    ck_assert_int_eq(weir_optimizer_parse("sgd:nesterov=1", &config, &err), WEIR_OK);
    ck_assert(config.is_nesterov);
    ck_assert_int_eq(weir_optimizer_parse("lamb", &config, &err), WEIR_OK);
    ck_assert_double_eq(config.epsilon, 1e-6);
    static const char *const bad[][2] = {
        {"adagrad", "sgd, rmsprop, adam, adamw, lars, lamb"},
        {"sgd:beta1=0.9", "no setting \"beta1\""},
        {"adam:beta1", "beta1=number"},
        {"adam:beta1=x", "beta1=number"},
        {"lars:trust=inf", "trust=number"},
        {"sgd:nesterov=2", "0 or 1"},
        {"adam:", "no setting \"\""},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(weir_optimizer_parse(bad[i][0], &config, &err), WEIR_ERR_INVALID);
        ck_assert_msg(strstr(err.message, bad[i][1]) != NULL, "%s", err.message);
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

START_TEST(any_cut_into_ranges_gives_the_same_bits)
{
    for (size_t i_name = 0; i_name < WEIR_ARRAY_LEN(names); i_name++) {
        struct weir_optimizer_config config = defaults(names[i_name]);
        config.weight_decay = 0.01;
        if (weir_optimizer_needs_all(&config)) {
            continue;
        }
        struct weir_optimizer *whole = created(&config);
        struct weir_optimizer *cut = created(&config);
        static float a[N], b[N], gradients[N];
        fill(a, 0);
        memcpy(b, a, sizeof b);
        struct weir_rng rng;
        weir_rng_init(&rng, 11, 0);
        for (uint64_t step = 0; step < 10; step++) {
            fill(gradients, step + 1);
            weir_optimizer_update(whole, a, gradients, 0, N, 0.1, step);
            for (size_t end = N; end > 0;) { /* Backwards: order must not matter either. */
                size_t n = 1 + weir_rng_below(&rng, WEIR_MIN(end, 97));
                end -= WEIR_MIN(n, end);
                weir_optimizer_update(cut, b, gradients, end, WEIR_MIN(n, N - end), 0.1, step);
                ck_assert(n <= N);
            }
        }
        ck_assert_mem_eq(a, b, sizeof a);
        weir_optimizer_destroy(whole);
        weir_optimizer_destroy(cut);
    }
}

END_TEST

/* ---- several owners ----------------------------------------------------------------------- */

#define N_WIDE     5003
#define MAX_OWNERS 4

/* Tensors that end within tiles, one that lies in one, and one that nobody trains. */
static const struct weir_param wide_params[] = {
    {.first_elem = 0, .n_elems = 1500, .is_trainable = true, .is_decayed = true},
    {.first_elem = 1500, .n_elems = 24, .is_trainable = true},
    {.first_elem = 1536, .n_elems = 40, .is_trainable = true, .is_decayed = true},
    {.first_elem = 1600, .n_elems = 3000, .is_trainable = true, .is_decayed = true},
    {.first_elem = 4600, .n_elems = 100},
    {.first_elem = 4700, .n_elems = 303, .is_trainable = true, .is_decayed = true},
};

struct owner {
    struct weir_optimizer *optimizer;
    float weights[N_WIDE];
};

static void owner_make(struct owner *owner, const struct weir_optimizer_config *config)
{
    ck_assert_int_eq(weir_optimizer_create(config, wide_params, WEIR_ARRAY_LEN(wide_params),
                                           &owner->optimizer, NULL),
                     WEIR_OK);
    for (size_t i = 0; i < N_WIDE; i++) {
        owner->weights[i] = (float)(i % 97) / 97 - 0.4f;
    }
}

/** A step by owners of a tile each in turn, or in any other way. */
static void step_of_owners(struct owner *owners, const int owner_of[], int n_owners,
                           const float *gradients, uint64_t step)
{
    const size_t n_tiles = (N_WIDE + WEIR_OPTIMIZER_TILE - 1) / WEIR_OPTIMIZER_TILE;
    const size_t n_passes = weir_optimizer_n_passes(owners[0].optimizer);
    size_t n_sums = 0;
    for (size_t pass = 0; pass <= n_passes; pass++) { /* the last applies */
        for (int o = 0; pass < n_passes && o < n_owners; o++) {
            double *sums = weir_optimizer_sums(owners[o].optimizer, &n_sums);
            memset(sums, 0, n_sums * sizeof *sums);
        }
        for (size_t t = n_tiles; t-- > 0;) {
            const size_t first = t * WEIR_OPTIMIZER_TILE;
            const size_t n = WEIR_MIN(WEIR_OPTIMIZER_TILE, N_WIDE - first);
            struct owner *owner = &owners[owner_of[t]];
            if (pass < n_passes) {
                weir_optimizer_measure(owner->optimizer, pass, owner->weights, gradients, first, n,
                                       0.1, step);
            } else {
                weir_optimizer_apply(owner->optimizer, owner->weights, gradients, first, n, 0.1,
                                     step);
            }
        }
        for (size_t i = 0; pass < n_passes && i < n_sums; i++) {
            double sum = 0;
            for (int o = 0; o < n_owners; o++) {
                sum += weir_optimizer_sums(owners[o].optimizer, &n_sums)[i];
            }
            for (int o = 0; o < n_owners; o++) {
                weir_optimizer_sums(owners[o].optimizer, &n_sums)[i] = sum;
            }
        }
        for (int o = 0; pass < n_passes && o < n_owners; o++) {
            weir_optimizer_conclude(owners[o].optimizer, pass);
        }
    }
}

static void check_owners(const struct weir_optimizer_config *config, int n_owners)
{
    static struct owner one, owners[MAX_OWNERS];
    static float gradients[N_WIDE];
    struct weir_rng rng;
    int owner_of[N_WIDE / WEIR_OPTIMIZER_TILE + 1];
    weir_rng_init(&rng, SEED, (uint64_t)n_owners);
    owner_make(&one, config);
    for (int o = 0; o < n_owners; o++) {
        owner_make(&owners[o], config);
    }
    for (size_t t = 0; t < WEIR_ARRAY_LEN(owner_of); t++) {
        owner_of[t] = (int)weir_rng_below(&rng, (uint64_t)n_owners); /* some may have none */
    }
    for (uint64_t step = 0; step < 5; step++) {
        for (size_t i = 0; i < N_WIDE; i++) {
            gradients[i] = (float)weir_rng_normal(&rng);
        }
        weir_optimizer_update(one.optimizer, one.weights, gradients, 0, N_WIDE, 0.1, step);
        step_of_owners(owners, owner_of, n_owners, gradients, step);
    }
    for (size_t t = 0; t < WEIR_ARRAY_LEN(owner_of); t++) {
        const size_t first = t * WEIR_OPTIMIZER_TILE;
        const size_t n = WEIR_MIN(WEIR_OPTIMIZER_TILE, N_WIDE - first);
        ck_assert_msg(memcmp(one.weights + first, owners[owner_of[t]].weights + first,
                             n * sizeof(float)) == 0,
                      "%s, clip norm %g, %d owners, tile %zu, seed %d", config->name,
                      config->clip_norm, n_owners, t, SEED);
    }
    weir_optimizer_destroy(one.optimizer);
    for (int o = 0; o < n_owners; o++) {
        weir_optimizer_destroy(owners[o].optimizer);
    }
}

START_TEST(several_owners_of_tiles_have_the_bits_of_one)
{
    for (size_t i = 0; i < 2 * WEIR_ARRAY_LEN(names); i++) {
        struct weir_optimizer_config config = defaults(names[i / 2]);
        config.weight_decay = 0.01;
        config.clip_norm = i % 2 == 0 ? 0 : 3;
        for (int n_owners = 1; n_owners <= MAX_OWNERS; n_owners++) {
            check_owners(&config, n_owners);
        }
    }
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

START_TEST(a_restored_optimizer_goes_on_with_the_same_bits)
{
    const size_t states_of[] = {1, 2, 2, 2, 1, 2};
    for (size_t i_name = 0; i_name < WEIR_ARRAY_LEN(names); i_name++) {
        struct weir_optimizer_config config = defaults(names[i_name]);
        struct weir_optimizer *first = created(&config);
        struct weir_optimizer *second = created(&config);
        static float a[N], b[N], gradients[N];
        fill(a, 0);
        for (uint64_t step = 0; step < 6; step++) {
            if (step == 3) {
                memcpy(b, a, sizeof b);
                size_t n_states = 0;
                const struct weir_optimizer_state *states = weir_optimizer_states(first, &n_states);
                ck_assert_uint_eq(n_states, states_of[i_name]);
                for (size_t i = 0; i < n_states; i++) {
                    ck_assert_uint_eq(states[i].n_elems, 901);
                    ck_assert_int_eq(weir_optimizer_restore(second, states[i].name, states[i].data,
                                                            states[i].n_elems, NULL),
                                     WEIR_OK);
                }
            }
            fill(gradients, step + 1);
            weir_optimizer_update(first, a, gradients, 0, N, 0.1, step);
            if (step >= 3) {
                weir_optimizer_update(second, b, gradients, 0, N, 0.1, step);
            }
        }
        ck_assert_mem_eq(a, b, sizeof a);
        weir_optimizer_destroy(first);
        weir_optimizer_destroy(second);
    }
}

END_TEST

START_TEST(a_state_of_another_model_or_rule_is_refused)
{
    struct weir_optimizer_config config = defaults("sgd");
    struct weir_optimizer *optimizer = created(&config);
    float data[901] = {0};
    struct weir_error err;
    ck_assert_int_eq(weir_optimizer_restore(optimizer, "optimizer.sgd.momentum", data, 900, &err),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "900"));
    ck_assert_int_eq(
        weir_optimizer_restore(optimizer, "optimizer.adam.first_moment", data, 901, &err),
        WEIR_ERR_NOT_FOUND);
    weir_optimizer_destroy(optimizer);
    config.momentum = 0;
    optimizer = created(&config);
    size_t n_states = 9;
    weir_optimizer_states(optimizer, &n_states);
    ck_assert_uint_eq(n_states, 0);
    weir_optimizer_destroy(optimizer);
}

END_TEST

START_TEST(nan_in_a_gradient_stays_visible_and_stays_in_its_element)
{
    struct weir_optimizer_config config = defaults("adam");
    struct weir_optimizer *optimizer = created(&config);
    static float weights[N], gradients[N];
    fill(weights, 0);
    fill(gradients, 1);
    gradients[5] = NAN;
    weir_optimizer_update(optimizer, weights, gradients, 0, N, 0.1, 0);
    for (size_t i = 0; i < N; i++) {
        ck_assert_int_eq(isnan(weights[i]) != 0, i == 5);
    }
    weir_optimizer_destroy(optimizer);
}

END_TEST

static void refused(const struct weir_optimizer_config *config, const char *part)
{
    struct weir_optimizer *optimizer = NULL;
    struct weir_error err;
    ck_assert_int_eq(
        weir_optimizer_create(config, params, WEIR_ARRAY_LEN(params), &optimizer, &err),
        WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, part) != NULL, "\"%s\" is not in \"%s\"", part, err.message);
}

START_TEST(settings_out_of_range_are_refused_by_name)
{
    struct weir_optimizer_config config;
    struct weir_error err;
    ck_assert_int_eq(weir_optimizer_defaults("adagrad", &config, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "sgd, rmsprop, adam"));
    config = defaults("sgd");
    config.momentum = 1;
    refused(&config, "momentum");
    config = defaults("sgd");
    config.weight_decay = -1;
    refused(&config, "weight decay");
    config = defaults("sgd");
    config.is_nesterov = true;
    config.momentum = 0;
    refused(&config, "Nesterov");
    config = defaults("adam");
    config.is_nesterov = true;
    refused(&config, "Nesterov");
    config = defaults("adam");
    config.beta2 = NAN;
    refused(&config, "beta2");
    config = defaults("adam");
    config.epsilon = 0;
    refused(&config, "epsilon");
    config = defaults("lars");
    config.trust = 0;
    refused(&config, "trust");
    config = defaults("rmsprop");
    config.alpha = 1;
    refused(&config, "alpha");
    config.alpha = 0.9;
    config.clip_norm = NAN;
    refused(&config, "clip norm");
}

END_TEST

START_TEST(overlapping_parameters_are_refused)
{
    const struct weir_param bad[] = {
        {.name = "a", .first_elem = 0, .n_elems = 10, .is_trainable = true},
        {.name = "b", .first_elem = 9, .n_elems = 10, .is_trainable = true},
    };
    struct weir_optimizer_config config = defaults("sgd");
    struct weir_optimizer *optimizer = NULL;
    struct weir_error err;
    ck_assert_int_eq(weir_optimizer_create(&config, bad, 2, &optimizer, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "element 9"));
    ck_assert_int_eq(weir_optimizer_create(&config, NULL, 0, &optimizer, &err), WEIR_OK);
    weir_optimizer_destroy(optimizer);
    weir_optimizer_destroy(NULL);
}

END_TEST

WEIR_TEST_MAIN("optimizer", every_rule_follows_its_formula_in_double_precision,
               gradients_longer_than_the_limit_are_made_as_long_as_it,
               several_owners_of_tiles_have_the_bits_of_one,
               a_tensor_of_zeros_begins_to_learn_under_lars_and_lamb, settings_are_read_from_a_text,
               two_steps_of_momentum_worked_by_hand,
               the_first_step_of_adam_moves_each_weight_by_the_learning_rate,
               any_cut_into_ranges_gives_the_same_bits, every_processor_gives_the_same_bits,
               a_restored_optimizer_goes_on_with_the_same_bits,
               a_state_of_another_model_or_rule_is_refused,
               nan_in_a_gradient_stays_visible_and_stays_in_its_element,
               settings_out_of_range_are_refused_by_name, overlapping_parameters_are_refused)
