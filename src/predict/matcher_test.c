/* The matcher against the obvious double loop in double, on random unit vectors of odd sizes. */
#include "predict/matcher.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <string.h>

#define N_MAX   200
#define DIM_MAX 130

static float vectors[N_MAX * DIM_MAX], probe[DIM_MAX];
static int32_t persons[N_MAX];

static void unit_vector(struct weir_rng *rng, float *out, size_t dim)
{
    double squares = 0;
    for (size_t d = 0; d < dim; d++) {
        out[d] = (float)weir_rng_normal(rng);
        squares += (double)out[d] * out[d];
    }
    for (size_t d = 0; d < dim; d++) {
        out[d] = (float)(out[d] / sqrt(squares));
    }
}

static double slow_cosine(const float *a, const float *b, size_t dim)
{
    double sum = 0;
    for (size_t d = 0; d < dim; d++) {
        sum += (double)a[d] * (double)b[d];
    }
    return sum;
}

/* Which templates count: 0 all, 1 others than `person`, 2 `person` without `excluded`. */
static double slow_best(const struct templates *all, int how, int32_t person, size_t excluded)
{
    double best = -2;
    for (size_t i = 0; i < all->n; i++) {
        bool counts = how == 0 || (how == 1 && all->persons[i] != person) ||
                      (how == 2 && all->persons[i] == person && i != excluded);
        if (counts) {
            best = fmax(best, slow_cosine(all->vectors + i * all->dim, probe, all->dim));
        }
    }
    return best;
}

static void check(struct match found, double wanted, const struct templates *all)
{
    if (wanted < -1.5) {
        ck_assert_int_eq(found.person, -1);
        ck_assert(isnan(found.score));
        return;
    }
    ck_assert_double_eq_tol(found.score, wanted, 1e-5);
    ck_assert_int_eq(found.person, all->persons[found.i_template]);
    ck_assert_double_eq_tol(
        slow_cosine(all->vectors + found.i_template * all->dim, probe, all->dim), wanted, 1e-5);
}

/* The nearest k are those of all who have templates, sorted. */
static void check_nearest(const struct templates *all, const float *each, size_t n_persons,
                          size_t k)
{
    struct match nearest[7];
    size_t n = match_nearest(all, probe, k, nearest), n_known = 0;
    bool is_in[12] = {false};
    for (size_t i = 0; i < n; i++) {
        int32_t person = nearest[i].person;
        ck_assert(!is_in[person]);
        is_in[person] = true;
        ck_assert_double_eq_tol(nearest[i].score, (double)each[person], 1e-5);
        ck_assert_int_eq(all->persons[nearest[i].i_template], person);
        ck_assert(i == 0 || nearest[i].score <= nearest[i - 1].score);
    }
    for (size_t p = 0; p < n_persons; p++) {
        n_known += !isinf(each[p]);
        ck_assert(is_in[p] || isinf(each[p]) || (double)each[p] <= nearest[n - 1].score + 1e-6);
    }
    ck_assert_uint_eq(n, n_known < k ? n_known : k);
}

START_TEST(best_matches_agree_with_brute_force_in_double)
{
    const uint64_t seed = 20261;
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 300; round++) {
        size_t dim = 1 + weir_rng_below(&rng, DIM_MAX), n = weir_rng_below(&rng, N_MAX + 1);
        int32_t n_persons = 1 + (int32_t)weir_rng_below(&rng, 12);
        for (size_t i = 0; i < n; i++) {
            unit_vector(&rng, vectors + i * dim, dim);
            persons[i] = (int32_t)weir_rng_below(&rng, (uint64_t)n_persons);
        }
        unit_vector(&rng, probe, dim);
        const struct templates all = {vectors, persons, n, dim};
        int32_t person = (int32_t)weir_rng_below(&rng, (uint64_t)n_persons);
        size_t excluded = n > 0 ? weir_rng_below(&rng, n) : 0;
        check(match_best(&all, probe), slow_best(&all, 0, 0, 0), &all);
        float each[12];
        match_each(&all, probe, (size_t)n_persons, each);
        for (int32_t p = 0; p < n_persons; p++) { /* of everybody but the others: p alone */
            double wanted = slow_best(&all, 2, p, n);
            ck_assert(wanted < -1.5 ? isinf(each[p]) : fabs(each[p] - wanted) < 1e-5);
        }
        check_nearest(&all, each, (size_t)n_persons, 1 + weir_rng_below(&rng, 7));
        check(match_best_same(&all, probe, person, excluded), slow_best(&all, 2, person, excluded),
              &all);
    }
}

END_TEST

START_TEST(the_first_of_equal_templates_wins)
{
    const float same[] = {1, 0, 1, 0, 1, 0};
    const int32_t of[] = {4, 2, 4};
    const float straight[] = {1, 0};
    const struct templates all = {same, of, 3, 2};
    struct match match = match_best(&all, straight);
    ck_assert_int_eq(match.person, 4);
    ck_assert_uint_eq(match.i_template, 0);
}

END_TEST

WEIR_TEST_MAIN("matcher", best_matches_agree_with_brute_force_in_double,
               the_first_of_equal_templates_wins)
