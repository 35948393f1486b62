/* The least sum is found, as by trying all. */
#include "vision/assign.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define SEED  461
#define N_MAX 6

/* The least sum of rows from `row` on, by trying all. */
static double try_all(const float *costs, size_t n_rows, size_t n_cols, size_t row, bool *is_taken)
{
    if (row == n_rows) {
        return 0;
    }
    double best = 1 + try_all(costs, n_rows, n_cols, row + 1, is_taken);
    for (size_t col = 0; col < n_cols; col++) {
        float cost = costs[row * n_cols + col];
        if (!is_taken[col] && cost < 1) {
            is_taken[col] = true;
            best = fmin(best, (double)cost + try_all(costs, n_rows, n_cols, row + 1, is_taken));
            is_taken[col] = false;
        }
    }
    return best;
}

START_TEST(the_sum_is_that_of_trying_all)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 0);
    for (int k = 0; k < WEIR_TEST_TIMES(2000, 200); k++) {
        size_t n_rows = weir_rng_below(&rng, N_MAX + 1), n_cols = weir_rng_below(&rng, N_MAX + 1);
        float costs[N_MAX * N_MAX];
        bool is_taken[N_MAX] = {false};
        int32_t col_of[N_MAX];
        for (size_t i = 0; i < n_rows * n_cols; i++) {
            costs[i] = weir_rng_below(&rng, 3) == 0 ? 1 : weir_rng_f32(&rng);
        }
        assign_least(costs, n_rows, n_cols, col_of);
        double sum = 0;
        for (size_t i = 0; i < n_rows; i++) {
            sum += col_of[i] < 0 ? 1 : (double)costs[i * n_cols + (size_t)col_of[i]];
            ck_assert_int_lt(col_of[i], (int32_t)n_cols);
            ck_assert(col_of[i] < 0 || !is_taken[col_of[i]]);
            ck_assert(col_of[i] < 0 || costs[i * n_cols + (size_t)col_of[i]] < 1);
            is_taken[WEIR_MAX(col_of[i], 0)] |= col_of[i] >= 0;
        }
        for (size_t col = 0; col < N_MAX; col++) {
            is_taken[col] = false;
        }
        double least = try_all(costs, n_rows, n_cols, 0, is_taken);
        ck_assert_msg(fabs(sum - least) < 1e-6, "seed %d, case %d: %g, the least is %g", SEED, k,
                      sum, least);
    }
}

END_TEST

START_TEST(as_many_as_there_may_be_are_joined)
{
    static float costs[ASSIGN_MAX * ASSIGN_MAX];
    int32_t col_of[ASSIGN_MAX];
    for (size_t i = 0; i < ASSIGN_MAX; i++) {
        for (size_t j = 0; j < ASSIGN_MAX; j++) {
            costs[i * ASSIGN_MAX + j] = fminf(1, fabsf((float)i - (float)(j ^ 1U)) / 8);
        }
    }
    assign_least(costs, ASSIGN_MAX, ASSIGN_MAX, col_of);
    for (size_t i = 0; i < ASSIGN_MAX; i++) {
        ck_assert_int_eq(col_of[i], (int32_t)(i ^ 1U));
    }
}

END_TEST

WEIR_TEST_MAIN("assign", the_sum_is_that_of_trying_all, as_many_as_there_may_be_are_joined)
