/* What holds for every rule: settings, cuts into ranges and owners, states, refusals. */
#include "optimizer_fixture.h"

#include <math.h>

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

/* Tensors that end within tiles, one that lies within one tile, and one that is not trained. */
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

WEIR_TEST_MAIN("optimizer", settings_are_read_from_a_text, any_cut_into_ranges_gives_the_same_bits,
               several_owners_of_tiles_have_the_bits_of_one,
               a_restored_optimizer_goes_on_with_the_same_bits,
               a_state_of_another_model_or_rule_is_refused,
               nan_in_a_gradient_stays_visible_and_stays_in_its_element,
               settings_out_of_range_are_refused_by_name, overlapping_parameters_are_refused)
