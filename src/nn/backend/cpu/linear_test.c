/*
 * Kernels of small linears of every instruction set this machine has, against sums in double: odd
 * sizes, sums that are added to, and bits that do not depend on how many images come along.
 */
#include "linear.h"

#include "nn/backend/cpu/vector/vector.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_N = 32, MAX_IN = 2100, MAX_OUT = 23 };

static const size_t sizes[][3] = {
    {32, 130, 10}, {1, 1, 1},   {2, 16, 4},  {3, 17, 5},  {4, 64, 8},     {5, 100, 3},  {7, 31, 9},
    {8, 784, 23},  {11, 15, 4}, {6, 640, 7}, {1, 640, 7}, {8, MAX_IN, 6}, {9, 1040, 10}};

static float x[MAX_N * MAX_IN], weights[MAX_IN * MAX_OUT], bias[MAX_OUT], dy[MAX_N * MAX_OUT];
static float got[MAX_N * MAX_IN], before[MAX_N * MAX_IN];

/* The tables that run here; the best one last. */
static size_t list_tables(const struct linear_kernels *tables[3])
{
    static const struct linear_kernels *const all[] = {&linear_kernels_v1, &linear_kernels_v3,
                                                       &linear_kernels_v4};
    size_t n = 0;
    do {
        tables[n] = all[n];
    } while (all[n++] != linear_kernels());
    return n;
}

static void fill(float *values, size_t n, uint64_t stream)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 7, stream);
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)weir_rng_normal(&rng);
    }
}

static void fill_all(void)
{
    fill(x, WEIR_ARRAY_LEN(x), 1);
    fill(weights, WEIR_ARRAY_LEN(weights), 2);
    fill(bias, WEIR_ARRAY_LEN(bias), 3);
    fill(dy, WEIR_ARRAY_LEN(dy), 4);
    fill(before, WEIR_ARRAY_LEN(before), 5);
}

/* `magnitude`: the sum of what was added, without signs. */
static void expect_near(float value, double expected, double magnitude, const size_t size[3])
{
    ck_assert_msg(fabs((double)value - expected) <= 4e-7 * magnitude + 1e-7,
                  "%zu images, %zu -> %zu: %.9g, expected %.9g", size[0], size[1], size[2],
                  (double)value, expected);
}

static void check_forward(const struct linear_kernels *table, const size_t size[3], bool has_bias)
{
    struct linear_shape s = {size[0], size[1], size[2]};
    table->forward(s, x, weights, has_bias ? bias : NULL, got);
    for (size_t i = 0; i < s.n * s.n_out; i++) {
        const float *row = weights + i % s.n_out * s.n_in, *image = x + i / s.n_out * s.n_in;
        double sum = has_bias ? (double)bias[i % s.n_out] : 0, magnitude = fabs(sum);
        for (size_t f = 0; f < s.n_in; f++) {
            sum += (double)row[f] * (double)image[f];
            magnitude += fabs((double)row[f] * (double)image[f]);
        }
        expect_near(got[i], sum, magnitude, size);
    }
}

static void check_backward(const struct linear_kernels *table, const size_t size[3], bool adds)
{
    struct linear_shape s = {size[0], size[1], size[2]};
    memcpy(got, before, sizeof(got));
    table->backward(s, dy, weights, adds, got);
    for (size_t i = 0; i < s.n * s.n_in; i++) {
        double sum = adds ? (double)before[i] : 0, magnitude = fabs(sum);
        for (size_t k = 0; k < s.n_out; k++) {
            double product =
                (double)dy[i / s.n_in * s.n_out + k] * (double)weights[k * s.n_in + i % s.n_in];
            sum += product;
            magnitude += fabs(product);
        }
        expect_near(got[i], sum, magnitude, size);
    }
}

static void check_weight_gradient(const struct linear_kernels *table, const size_t size[3])
{
    static float gradient[MAX_IN * MAX_OUT], sums[MAX_OUT];
    struct linear_shape s = {size[0], size[1], size[2]};
    table->weight_gradient(s, dy, x, gradient, sums);
    for (size_t i = 0; i < s.n_out * s.n_in; i++) {
        double sum = 0, magnitude = 0;
        for (size_t j = 0; j < s.n; j++) {
            double product =
                (double)dy[j * s.n_out + i / s.n_in] * (double)x[j * s.n_in + i % s.n_in];
            sum += product;
            magnitude += fabs(product);
        }
        expect_near(gradient[i], sum, magnitude, size);
    }
    for (size_t k = 0; k < s.n_out; k++) {
        double sum = 0, magnitude = 0;
        for (size_t j = 0; j < s.n; j++) {
            sum += (double)dy[j * s.n_out + k];
            magnitude += fabs((double)dy[j * s.n_out + k]);
        }
        expect_near(sums[k], sum, magnitude, size);
    }
}

START_TEST(products_are_those_of_plain_loops)
{
    const struct linear_kernels *tables[3];
    size_t n_tables = list_tables(tables);
    fill_all();
    for (size_t t = 0; t < n_tables; t++) {
        for (size_t i = 0; i < WEIR_ARRAY_LEN(sizes); i++) {
            check_forward(tables[t], sizes[i], i % 2 == 0);
            check_backward(tables[t], sizes[i], i % 2 == 0);
            check_backward(tables[t], sizes[i], i % 2 == 1);
            check_weight_gradient(tables[t], sizes[i]);
        }
    }
}

END_TEST

START_TEST(an_image_has_the_same_bits_alone_and_among_others)
{
    const struct linear_kernels *tables[3];
    size_t n_tables = list_tables(tables);
    fill_all();
    for (size_t t = 0; t < n_tables; t++) {
        static float alone[MAX_IN];
        struct linear_shape all = {MAX_N, MAX_IN, MAX_OUT}, one = {1, MAX_IN, MAX_OUT};
        for (size_t i = 0; i < MAX_N; i++) {
            tables[t]->forward(all, x, weights, bias, got);
            tables[t]->forward(one, x + i * MAX_IN, weights, bias, alone);
            ck_assert_mem_eq(alone, got + i * MAX_OUT, MAX_OUT * sizeof(float));
            tables[t]->backward(all, dy, weights, false, got);
            tables[t]->backward(one, dy + i * MAX_OUT, weights, false, alone);
            ck_assert_mem_eq(alone, got + i * MAX_IN, MAX_IN * sizeof(float));
        }
    }
}

END_TEST

/* 0 times infinity is not a number, wherever it stands. */
START_TEST(nan_comes_through)
{
    const struct linear_kernels *tables[3];
    size_t n_tables = list_tables(tables);
    for (size_t t = 0; t < n_tables; t++) {
        for (size_t at = 0; at < 21; at++) {
            fill_all();
            x[at] = 0;
            weights[at] = INFINITY;
            dy[0] = 0;
            tables[t]->forward((struct linear_shape){1, 21, 5}, x, weights, bias, got);
            ck_assert(isnan(got[0]) && !isnan(got[1]));
            tables[t]->backward((struct linear_shape){1, 21, 5}, dy, weights, false, got);
            ck_assert(isnan(got[at]) && !isnan(got[(at + 1) % 21]));
            tables[t]->weight_gradient((struct linear_shape){1, 21, 5}, dy, weights, got, NULL);
            ck_assert(isnan(got[at]) && !isnan(got[(at + 1) % 21]));
        }
    }
}

END_TEST

WEIR_TEST_MAIN("linear", products_are_those_of_plain_loops,
               an_image_has_the_same_bits_alone_and_among_others, nan_comes_through)
