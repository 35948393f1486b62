#include "stats/embedding.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "stats/drift.h"

#include <math.h>
#include <stdio.h>

#define DIM 64
#define N   400

static float vectors[N * DIM];

static void draw(struct weir_rng *rng, float *out, double shift)
{
    for (int d = 0; d < DIM; d++) {
        out[d] = (float)((1 + d % 5) * (weir_rng_normal(rng) + shift) + d);
    }
}

START_TEST(a_vector_like_trainings_is_at_a_distance_of_about_one_and_a_moved_one_farther)
{
    struct weir_rng rng;
    struct weir_embedding read;
    struct weir_error err = {0};
    float live[DIM];
    weir_rng_init(&rng, 6, 0);
    for (int i = 0; i < N; i++) {
        draw(&rng, vectors + (size_t)i * DIM, 0);
    }
    json_t *view = weir_embedding_json(vectors, N, DIM);
    ck_assert_ptr_nonnull(view);
    ck_assert_msg(weir_embedding_read(view, DIM, &read, &err) == WEIR_OK, "%s", err.message);
    ck_assert_uint_eq(read.distance.n, N);
    ck_assert_double_eq_tol(read.distance.mean, 1, 0.05);
    double near = 0, far = 0;
    for (int i = 0; i < 50; i++) {
        draw(&rng, live, 0);
        near += weir_embedding_distance(&read, live) / 50;
        draw(&rng, live, 1);
        far += weir_embedding_distance(&read, live) / 50;
    }
    ck_assert_double_eq_tol(near, 1, 0.05);
    ck_assert_double_eq_tol(far, sqrt(2), 0.08); /* variance 1 and a squared shift of 1 */
    weir_embedding_fini(&read);
    json_decref(view);
}

END_TEST

/* Distances of the very vectors that mean and deviation were computed of are smaller than those of
 * others, the more so the fewer they are: live ones of the same kind must not look drifted for it. */
START_TEST(few_vectors_of_training_make_no_drift_of_others_like_them)
{
    enum { FEW = 30, WIDE = 128, TRIALS = 40 };

    int n_drifted = 0;
    double moved = 0;
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct weir_rng rng;
        struct weir_embedding read;
        struct weir_drift drift;
        struct weir_drift_report report;
        float live[WIDE];
        const struct weir_drift_config config = {.window = 200};
        weir_rng_init(&rng, 8, trial);
        for (int i = 0; i < FEW * WIDE; i++) {
            vectors[i] = (float)weir_rng_normal(&rng);
        }
        json_t *view = weir_embedding_json(vectors, FEW, WIDE);
        ck_assert_int_eq(weir_embedding_read(view, WIDE, &read, NULL), WEIR_OK);
        ck_assert_int_eq(weir_drift_init(&drift, &read.distance, &config, NULL), WEIR_OK);
        for (int i = 0; i < 200; i++) {
            for (int d = 0; d < WIDE; d++) {
                live[d] = (float)weir_rng_normal(&rng);
            }
            ck_assert_int_eq(weir_drift_add(&drift, weir_embedding_distance(&read, live), &report),
                             i == 199);
        }
        n_drifted += report.is_drifted;
        moved += (report.live_mean - report.baseline_mean) / report.baseline_stddev / TRIALS;
        weir_embedding_fini(&read);
        json_decref(view);
    }
    printf("seed 8: %d of %d drifted, moved by %.2f\n", n_drifted, TRIALS, moved);
    ck_assert_int_le(n_drifted, 1);
    ck_assert_double_le(fabs(moved), 0.2);
}

END_TEST

START_TEST(what_is_no_baseline_is_refused)
{
    struct weir_embedding read;
    struct weir_rng rng;
    weir_rng_init(&rng, 7, 0);
    for (int i = 0; i < 30; i++) {
        draw(&rng, vectors + (size_t)i * DIM, 0);
    }
    json_t *view = weir_embedding_json(vectors, 30, DIM);
    ck_assert_int_eq(weir_embedding_read(view, DIM + 1, &read, NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_embedding_read(view, 0, &read, NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_embedding_read(NULL, DIM, &read, NULL), WEIR_ERR_INVALID);
    json_array_set_new(json_object_get(view, "stddev"), 3, json_integer(0));
    ck_assert_int_eq(weir_embedding_read(view, DIM, &read, NULL), WEIR_ERR_INVALID);
    json_decref(view);
    ck_assert_ptr_null(weir_embedding_json(vectors, 1, DIM));
    vectors[5] = NAN;
    ck_assert_ptr_null(weir_embedding_json(vectors, 30, DIM));
}

END_TEST

WEIR_TEST_MAIN("embedding",
               a_vector_like_trainings_is_at_a_distance_of_about_one_and_a_moved_one_farther,
               few_vectors_of_training_make_no_drift_of_others_like_them,
               what_is_no_baseline_is_refused)
