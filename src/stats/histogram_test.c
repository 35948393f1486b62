/* Expected numbers were computed with numpy 2.4 (searchsorted, bincount, var). */
#include "stats/histogram.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

static const double sample[] = {3.5, -1, 2, 2, 7.25, 0, 11, -4.5, 6, 5.5};

#define N_SAMPLE (sizeof sample / sizeof sample[0])

START_TEST(thirteen_bins_lie_as_numpy_places_them)
{
    static const double edges[] = {-5.322205422961129, -3.7772589824227416, -2.2323125418843546,
                                   -0.687366101345968, 0.8575803391924195,  2.402526779730807,
                                   3.9474732202691927, 5.49241966080758,    7.037366101345968,
                                   8.582312541884356,  10.127258982422742,  11.672205422961127};
    static const uint64_t counts[] = {0, 1, 0, 1, 1, 2, 1, 0, 2, 1, 0, 1, 0};
    struct weir_histogram hist;
    ck_assert_int_eq(weir_histogram_from_values(&hist, sample, N_SAMPLE), WEIR_OK);
    ck_assert_uint_eq(hist.n_bins, 13);
    for (int i = 0; i < 12; i++) {
        ck_assert_double_eq_tol(hist.edges[i], edges[i], 1e-12);
    }
    for (int i = 0; i < 13; i++) {
        ck_assert_uint_eq(hist.counts[i], counts[i]);
    }
    ck_assert_double_eq_tol(hist.mean, 3.175, 1e-14);
    ck_assert_double_eq_tol(weir_histogram_variance(&hist), 20.056250000000002, 1e-12);
    ck_assert_double_eq(hist.min, -4.5);
    ck_assert_double_eq(hist.max, 11);
}

END_TEST

START_TEST(an_edge_belongs_to_the_bin_below_it)
{
    struct weir_histogram hist;
    ck_assert_int_eq(weir_histogram_init(&hist, (double[]){0, 1, 2}, 3), WEIR_OK);

    static const struct {
        double value;
        uint32_t bin;
    } cases[] = {{-INFINITY, 0}, {0, 0}, {1e-300, 1}, {1, 1},
                 {1.5, 2},       {2, 2}, {2.0001, 3}, {INFINITY, 3}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_uint_eq(weir_histogram_bin(&hist, cases[i].value), cases[i].bin);
    }
}

END_TEST

START_TEST(a_constant_gets_a_deviation_of_a_twentieth)
{
    struct weir_histogram hist;
    double same[] = {0.7, 0.7, 0.7};
    ck_assert_int_eq(weir_histogram_from_values(&hist, same, 3), WEIR_OK);
    ck_assert_double_eq_tol(hist.edges[0], 0.6, 1e-12);
    ck_assert_double_eq_tol(hist.edges[11], 0.8, 1e-12);
    double huge[] = {1e17, 1e17};
    ck_assert_int_eq(weir_histogram_from_values(&hist, huge, 2), WEIR_OK);
    ck_assert(hist.edges[0] < hist.edges[1]);
}

END_TEST

START_TEST(moments_of_offset_data_do_not_cancel)
{
    struct weir_histogram hist;
    ck_assert_int_eq(weir_histogram_init_normal(&hist, 1e9, 1), WEIR_OK);
    for (int i = 0; i < 100000; i++) {
        weir_histogram_add(&hist, 1e9 + (i % 2 == 0 ? 1 : -1)); // variance n/(n-1)
    }
    ck_assert_double_eq_tol(weir_histogram_variance(&hist), 100000.0 / 99999, 1e-6);
}

END_TEST

START_TEST(json_text_brings_back_every_field)
{
    struct weir_histogram hist, back;
    ck_assert_int_eq(weir_histogram_from_values(&hist, sample, N_SAMPLE), WEIR_OK);
    weir_histogram_add(&hist, NAN);
    weir_histogram_add(&hist, 0.1);
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *text = weir_histogram_to_text(&hist, &arena);
    struct weir_error err;
    ck_assert_int_eq(weir_histogram_from_text(text, strlen(text), &back, &err), WEIR_OK);
    ck_assert_int_eq(memcmp(&hist, &back, sizeof hist), 0);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(an_infinity_survives_json_and_leaves_the_moments_alone)
{
    struct weir_histogram hist, back;
    ck_assert_int_eq(weir_histogram_from_values(&hist, sample, N_SAMPLE), WEIR_OK);
    weir_histogram_add(&hist, INFINITY);
    ck_assert_double_eq_tol(hist.mean, 3.175, 1e-14);
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *text = weir_histogram_to_text(&hist, &arena);
    ck_assert_int_eq(weir_histogram_from_text(text, strlen(text), &back, NULL), WEIR_OK);
    ck_assert_int_eq(memcmp(&hist, &back, sizeof hist), 0);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(unusable_json_is_refused_and_leaves_the_output_alone)
{
    static const char *const bad[] = {
        "[]",
        "{}",
        "{\"edges\":[1,1],\"counts\":[0,0,0],\"mean\":0,\"m2\":0}",
        "{\"edges\":[1,\"2\"],\"counts\":[0,0,0],\"mean\":0,\"m2\":0}",
        "{\"edges\":[1,2],\"counts\":[0,0],\"mean\":0,\"m2\":0}",
        "{\"edges\":[1,2],\"counts\":[0,-1,0],\"mean\":0,\"m2\":0}",
        "{\"edges\":[1,2],\"counts\":[0,1.5,0],\"mean\":0,\"m2\":0}",
        "{\"edges\":[1,2],\"counts\":[0,1,0],\"mean\":0,\"m2\":-1}",
        "{\"edges\":[1,2],\"counts\":[0,1,0],\"m2\":1}",
        "{\"edges\":[1,2],\"counts\":[0,1,0],\"mean\":0,\"m2\":1,\"infinite\":1}",
        "{\"edges\":[1,2],\"counts\":[0,9223372036854775807,0],\"mean\":0,\"m2\":1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir_histogram hist = {.n_bins = 77};
        struct weir_error err = {0};
        ck_assert_int_eq(weir_histogram_from_text(bad[i], strlen(bad[i]), &hist, &err),
                         WEIR_ERR_INVALID);
        ck_assert_uint_eq(hist.n_bins, 77);
        ck_assert_uint_gt(strlen(err.message), 10);
    }
}

END_TEST

START_TEST(unusable_edges_are_refused)
{
    struct weir_histogram hist;
    double many[WEIR_HISTOGRAM_MAX_BINS] = {0};
    ck_assert_int_eq(weir_histogram_init(&hist, many, 0), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_histogram_init(&hist, many, WEIR_HISTOGRAM_MAX_BINS), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_histogram_init(&hist, (double[]){1, 0}, 2), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_histogram_init(&hist, (double[]){NAN}, 1), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_histogram_init_linear(&hist, 1, 1, 10), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_histogram_init_normal(&hist, NAN, 1), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_histogram_from_values(&hist, (double[]){NAN, INFINITY}, 2),
                     WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN("histogram", thirteen_bins_lie_as_numpy_places_them,
               an_edge_belongs_to_the_bin_below_it, a_constant_gets_a_deviation_of_a_twentieth,
               moments_of_offset_data_do_not_cancel, json_text_brings_back_every_field,
               an_infinity_survives_json_and_leaves_the_moments_alone,
               unusable_json_is_refused_and_leaves_the_output_alone, unusable_edges_are_refused)
