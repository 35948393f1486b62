/** The parameters that optimizer_test.c and optimizer_rules_test.c update. */
#ifndef WEIR_NN_OPTIMIZER_FIXTURE_H
#define WEIR_NN_OPTIMIZER_FIXTURE_H

#include "nn/optimizer.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <string.h>

enum { N = 1000, SEED = 7 };

static const char *const names[] = {"sgd", "rmsprop", "adam", "adamw", "lars", "lamb"};

/* Trainable: [0,300) decayed, [300,310) not, a gap [310,320), [320,901) decayed. [901,1000) is a
 * running statistic. They are not sorted, because nothing requires it. */
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

static inline struct weir_optimizer *created(const struct weir_optimizer_config *config)
{
    struct weir_optimizer *optimizer = NULL;
    struct weir_error err;
    ck_assert_msg(weir_optimizer_create(config, params, WEIR_ARRAY_LEN(params), &optimizer, &err) ==
                      WEIR_OK,
                  "%s", err.message);
    return optimizer;
}

static inline struct weir_optimizer_config defaults(const char *name)
{
    struct weir_optimizer_config config;
    ck_assert_int_eq(weir_optimizer_defaults(name, &config, NULL), WEIR_OK);
    return config;
}

static inline void fill(float *values, uint64_t stream)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, stream);
    for (size_t i = 0; i < N; i++) {
        values[i] = (float)weir_rng_normal(&rng);
    }
}

#endif
