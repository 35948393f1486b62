/* Suppression against the plain rule, and in any order of what comes in. */
#include "vision/detection.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <math.h>
#include <string.h>

static struct weir_rng rng;

static float between(float low, float high)
{
    return low + (high - low) * weir_rng_f32(&rng);
}

/* Few scores and few places, so that many are equal. */
static struct weir_detection random_one(void)
{
    struct weir_detection one = {
        .box = {4 * (float)weir_rng_below(&rng, 9), 4 * (float)weir_rng_below(&rng, 9),
                3 + 3 * (float)weir_rng_below(&rng, 9), 3 + 3 * (float)weir_rng_below(&rng, 9)},
        .score = (float)weir_rng_below(&rng, 8) / 8,
        .class_id = (int32_t)weir_rng_below(&rng, 3),
        .has_points = true};
    for (size_t i = 0; i < 2 * WEIR_FACE_POINTS; i++) {
        one.points[i] = between(-5, 60);
    }
    return one;
}

/* By counting the points of a fine grid that both cover. */
START_TEST(overlap_is_the_share_of_area)
{
    test_seed(&rng);
    for (int trial = 0; trial < 30; trial++) {
        struct weir_box a = random_one().box, b = random_one().box;
        size_t both = 0, either = 0;
        for (int i = 0; i < 320 * 320; i++) {
            int line = i / 320;
            double x = i % 320 * 0.25, y = line * 0.25;
            bool in_a = x >= a.x && x < a.x + a.w && y >= a.y && y < a.y + a.h;
            bool in_b = x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h;
            both += in_a && in_b;
            either += in_a || in_b;
        }
        if (either > 2000) {
            ck_assert_double_eq_tol(weir_box_overlap(&a, &b), (double)both / (double)either, 0.03);
        }
        ck_assert_float_eq(weir_box_overlap(&a, &b), weir_box_overlap(&b, &a));
        ck_assert_float_eq_tol(weir_box_overlap(&a, &a), 1, 1e-5f);
    }
    struct weir_box empty = {1, 1, 0, 5}, whole = {0, 0, 9, 9}, bad = {NAN, 0, 1, 1};
    ck_assert_float_eq(weir_box_overlap(&empty, &empty), 0);
    ck_assert_float_eq(weir_box_overlap(&empty, &whole), 0);
    ck_assert_float_eq(weir_box_overlap(&bad, &bad), 0);
}

END_TEST

/* Does a come before b? */
static bool is_before(const struct weir_detection *a, const struct weir_detection *b)
{
    const float of_a[] = {-a->score, (float)a->class_id, a->box.x, a->box.y, a->box.w, a->box.h};
    const float of_b[] = {-b->score, (float)b->class_id, b->box.x, b->box.y, b->box.w, b->box.h};
    for (size_t i = 0; i < 6; i++) {
        if (of_a[i] != of_b[i]) {
            return of_a[i] < of_b[i];
        }
    }
    for (size_t i = 0; i < 10; i++) {
        if (a->points[i] != b->points[i]) {
            return a->points[i] < b->points[i];
        }
    }
    return false;
}

enum { N_MAX = 120 };

/* Again and again: the first of what is left stays, and takes those with it that it covers. */
static size_t plain(struct weir_detection *all, size_t n, float most, bool blends,
                    struct weir_detection *out)
{
    bool is_gone[N_MAX] = {false};
    size_t n_out = 0;
    for (;;) {
        size_t best = n;
        double weight = 0, sums[14] = {0};
        for (size_t i = 0; i < n; i++) {
            best = !is_gone[i] && (best == n || is_before(&all[i], &all[best])) ? i : best;
        }
        if (best == n) {
            return n_out;
        }
        for (size_t i = 0; i < n; i++) {
            bool is_covered = all[i].class_id == all[best].class_id &&
                              weir_box_overlap(&all[i].box, &all[best].box) > most;
            if (!is_gone[i] && (i == best || is_covered)) {
                double numbers[14] = {all[i].box.x, all[i].box.y, all[i].box.w, all[i].box.h};
                for (size_t k = 0; k < 10; k++) {
                    numbers[4 + k] = all[i].points[k];
                }
                is_gone[i] = true;
                weight += all[i].score;
                for (size_t k = 0; k < 14; k++) {
                    sums[k] += all[i].score * numbers[k];
                }
            }
        }
        out[n_out] = all[best];
        if (blends && weight > 0) {
            out[n_out].box =
                (struct weir_box){(float)(sums[0] / weight), (float)(sums[1] / weight),
                                  (float)(sums[2] / weight), (float)(sums[3] / weight)};
            for (size_t k = 0; k < 10; k++) {
                out[n_out].points[k] = (float)(sums[4 + k] / weight);
            }
        }
        n_out++;
    }
}

START_TEST(suppression_is_the_plain_rule_in_any_order)
{
    test_seed(&rng);
    for (int trial = 0; trial < 200; trial++) {
        struct weir_detection all[N_MAX], expected[N_MAX], shuffled[N_MAX];
        uint32_t order[N_MAX];
        size_t n = weir_rng_below(&rng, N_MAX);
        float most = between(0, 1);
        bool blends = trial % 2 == 1;
        for (size_t i = 0; i < n; i++) {
            all[i] = random_one();
            order[i] = (uint32_t)i;
        }
        weir_rng_shuffle_u32(&rng, order, n);
        for (size_t i = 0; i < n; i++) {
            shuffled[i] = all[order[i]];
        }
        size_t n_expected = plain(all, n, most, blends, expected);
        size_t n_got = blends ? weir_detections_blend(shuffled, n, most)
                              : weir_detections_suppress(shuffled, n, most);
        ck_assert_uint_eq(n_got, n_expected);
        for (size_t i = 0; i < n_got; i++) {
            ck_assert_float_eq(shuffled[i].score, expected[i].score);
            ck_assert_int_eq(shuffled[i].class_id, expected[i].class_id);
            ck_assert_float_eq_tol(shuffled[i].box.x, expected[i].box.x, 1e-3f);
            ck_assert_float_eq_tol(shuffled[i].box.h, expected[i].box.h, 1e-3f);
            ck_assert_float_eq_tol(shuffled[i].points[9], expected[i].points[9], 1e-3f);
        }
    }
    ck_assert_uint_eq(weir_detections_suppress(NULL, 0, 0.5f), 0);
}

END_TEST

WEIR_TEST_MAIN("detection", overlap_is_the_share_of_area,
               suppression_is_the_plain_rule_in_any_order)
