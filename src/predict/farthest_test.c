/* Of however many values the ten farthest are kept, as if all had been sorted. */
#include "predict/farthest.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N_MAX 300

static struct weir_rng rng;

static int downwards(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static double member(const json_t *item, const char *name)
{
    return json_number_value(json_object_get(item, name));
}

/* One round: n values, some of them none; what is taken beside what a sort finds. */
static void play(struct farthest *farthest, const struct weir_histogram *baseline, size_t n,
                 bool is_upwards)
{
    double values[N_MAX], sigmas[N_MAX];
    size_t n_far = 0;
    for (size_t i = 0; i < n; i++) {
        values[i] = weir_rng_below(&rng, 10) == 0 ? NAN : 3 + 2 * weir_rng_normal(&rng);
        double away = (values[i] - baseline->mean) / weir_histogram_stddev(baseline);
        away = is_upwards ? away : fabs(away);
        farthest_add(farthest, i % 2 == 0 ? "north" : "south", (int64_t)i, 1000 + (int64_t)i,
                     values[i]);
        if (away >= 0) {
            sigmas[n_far++] = away;
        }
    }
    qsort(sigmas, n_far, sizeof *sigmas, downwards);
    json_t *found = farthest_take(farthest), *item;
    ck_assert_uint_eq(json_array_size(found), WEIR_MIN(n_far, (size_t)FARTHEST_MAX));
    size_t k;
    json_array_foreach(found, k, item)
    {
        size_t i = (size_t)member(item, "frame");
        ck_assert_double_eq_tol(member(item, "sigmas"), sigmas[k], 1e-12);
        ck_assert_double_eq(member(item, "value"), values[i]);
        ck_assert_double_eq(member(item, "time_ms"), 1000 + (double)i);
        ck_assert_str_eq(json_string_value(json_object_get(item, "camera")),
                         i % 2 == 0 ? "north" : "south");
    }
    json_decref(found);
}

START_TEST(the_farthest_are_those_that_a_sort_finds_and_each_report_begins_anew)
{
    test_seed(&rng);
    for (int round = 0; round < 200; round++) {
        struct weir_histogram baseline;
        struct farthest farthest;
        double training[50];
        for (size_t i = 0; i < 50; i++) {
            training[i] = weir_rng_normal(&rng);
        }
        ck_assert_int_eq(weir_histogram_from_values(&baseline, training, 50), WEIR_OK);
        bool is_upwards = round % 2 == 1;
        farthest_init(&farthest, &baseline, is_upwards);
        play(&farthest, &baseline, weir_rng_below(&rng, N_MAX), is_upwards);
        play(&farthest, &baseline, weir_rng_below(&rng, 15), is_upwards);
    }
}

END_TEST

START_TEST(a_training_without_deviation_has_no_far_frames)
{
    struct weir_histogram baseline;
    struct farthest farthest;
    const double same[] = {2, 2, 2};
    ck_assert_int_eq(weir_histogram_from_values(&baseline, same, 3), WEIR_OK);
    farthest_init(&farthest, &baseline, false);
    farthest_add(&farthest, "north", 1, 1, 5);
    json_t *found = farthest_take(&farthest);
    ck_assert_uint_eq(json_array_size(found), 0);
    json_decref(found);
}

END_TEST

WEIR_TEST_MAIN("farthest", the_farthest_are_those_that_a_sort_finds_and_each_report_begins_anew,
               a_training_without_deviation_has_no_far_frames)
