/* Who crosses a line: as the sides say where it began and ended, and as two segments meet. */
#include "vision/line.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

#define SIDE 1000 /* The picture's, in pixels. */
#define N    8

static struct weir_error err;

static struct weir_track *stand(struct weir_track *track, uint64_t id, float x, float y)
{
    track->id = id;
    track->last.box = (struct weir_box){x * SIDE - 10, y * SIDE - 10, 20, 20};
    return track;
}

static struct weir_crossings *line_of(float ax, float ay, float bx, float by)
{
    struct weir_crossings *crossings;
    const struct weir_line line = {ax, ay, bx, by};
    ck_assert_msg(weir_crossings_create(&line, false, &crossings, &err) == WEIR_OK, "%s",
                  err.message);
    return crossings;
}

static uint64_t begin(struct weir_rng *rng)
{
    uint64_t seed = weir_mono_ns();
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(rng, seed, 0);
    return seed;
}

/* A line from edge to edge cannot be gone around: how often it was crossed each way says on which side one is. */
START_TEST(crossings_say_on_which_side_each_is)
{
    struct weir_rng rng;
    struct weir_track tracks[N] = {0}, *list[N];
    float x[N], y[N];
    int balance[N] = {0}, n_crossed = 0;
    bool began_right[N], is_right[N], has_begun[N] = {false};
    (void)begin(&rng);
    struct weir_crossings *crossings = line_of(0, 0.5F, 1, 0.5F);
    for (int i = 0; i < N; i++) {
        x[i] = weir_rng_f32(&rng);
        y[i] = weir_rng_f32(&rng);
    }
    for (int step = 0; step < 5000; step++) {
        const struct weir_crossing *found;
        for (int i = 0; i < N; i++) {
            x[i] = fminf(fmaxf(x[i] + 0.1F * (weir_rng_f32(&rng) - 0.5F), 0.01F), 0.99F);
            y[i] = fminf(fmaxf(y[i] + 0.1F * (weir_rng_f32(&rng) - 0.5F), 0.01F), 0.99F);
            list[i] = stand(&tracks[i], (uint64_t)i + 1, x[i], y[i]);
            if (fabsf(y[i] - 0.5F) > WEIR_LINE_MARGIN + 0.001F) {
                is_right[i] = y[i] > 0.5F; /* Down is to the right of who goes to the right. */
                began_right[i] = has_begun[i] ? began_right[i] : is_right[i];
                has_begun[i] = true;
            }
        }
        size_t n = weir_crossings_step(crossings, SIDE, SIDE, list, N, &found);
        for (size_t k = 0; k < n; k++) {
            balance[found[k].track - 1] += found[k].is_right ? 1 : -1;
            n_crossed++;
        }
    }
    ck_assert_int_gt(n_crossed, 20);
    for (int i = 0; i < N; i++) {
        /* The last steps may lie on the line, where the side is the one before. */
        ck_assert_int_eq(balance[i], (int)is_right[i] - (int)began_right[i]);
    }
    weir_crossings_destroy(crossings);
}

END_TEST

static double turn(const double a[2], const double b[2], const double c[2])
{
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/* By four turns, as textbooks have it. */
START_TEST(a_straight_way_crosses_where_the_segments_meet)
{
    struct weir_rng rng;
    int n_crossed = 0, n_missed = 0;
    (void)begin(&rng);
    for (int round = 0; round < 3000; round++) {
        double p[4][2];
        struct weir_track track = {0}, *list[1];
        const struct weir_crossing *found;
        for (int i = 0; i < 8; i++) {
            p[i / 2][i % 2] = (double)weir_rng_f32(&rng);
        }
        double across[4] = {turn(p[0], p[1], p[2]), turn(p[0], p[1], p[3]), turn(p[2], p[3], p[0]),
                            turn(p[2], p[3], p[1])};
        double line = hypot(p[1][0] - p[0][0], p[1][1] - p[0][1]);
        double way = hypot(p[3][0] - p[2][0], p[3][1] - p[2][1]);
        if (line < 0.1 || way < 0.1 || fabs(across[0]) < 0.03 * line ||
            fabs(across[1]) < 0.03 * line || fabs(across[2]) < 0.001 || fabs(across[3]) < 0.001) {
            continue; /* Too near to call. */
        }
        bool meets = (across[0] > 0) != (across[1] > 0) && (across[2] > 0) != (across[3] > 0);
        struct weir_crossings *crossings =
            line_of((float)p[0][0], (float)p[0][1], (float)p[1][0], (float)p[1][1]);
        list[0] = stand(&track, 7, (float)p[2][0], (float)p[2][1]);
        ck_assert_uint_eq(weir_crossings_step(crossings, SIDE, SIDE, list, 1, &found), 0);
        list[0] = stand(&track, 7, (float)p[3][0], (float)p[3][1]);
        size_t n = weir_crossings_step(crossings, SIDE, SIDE, list, 1, &found);
        ck_assert_uint_eq(n, meets);
        ck_assert(n == 0 || (found[0].track == 7 && found[0].is_right == (across[1] > 0)));
        n_crossed += meets;
        n_missed += !meets;
        weir_crossings_destroy(crossings);
    }
    ck_assert_int_gt(n_crossed, 100);
    ck_assert_int_gt(n_missed, 100);
}

END_TEST

START_TEST(what_stands_on_the_line_does_not_go_to_and_fro)
{
    struct weir_rng rng;
    struct weir_track track = {0}, *list[1];
    const struct weir_crossing *found;
    (void)begin(&rng);
    struct weir_crossings *crossings = line_of(0, 0.5F, 1, 0.5F);
    for (int step = 0; step < 200; step++) {
        float off = 1.8F * WEIR_LINE_MARGIN * (weir_rng_f32(&rng) - 0.5F);
        list[0] = stand(&track, 1, 0.5F, step == 0 ? 0.2F : 0.5F + off);
        ck_assert_uint_eq(weir_crossings_step(crossings, SIDE, SIDE, list, 1, &found), 0);
    }
    weir_crossings_destroy(crossings);
}

END_TEST

START_TEST(who_was_forgotten_crosses_nothing)
{
    struct weir_track track = {0}, *list[1];
    const struct weir_crossing *found;
    struct weir_crossings *crossings = line_of(0.5F, 0, 0.5F, 1);
    list[0] = stand(&track, 1, 0.2F, 0.5F);
    ck_assert_uint_eq(weir_crossings_step(crossings, SIDE, SIDE, list, 1, &found), 0);
    ck_assert_uint_eq(weir_crossings_step(crossings, SIDE, SIDE, list, 0, &found), 0);
    list[0] = stand(&track, 1, 0.8F, 0.5F);
    ck_assert_uint_eq(weir_crossings_step(crossings, SIDE, SIDE, list, 1, &found), 0);
    list[0] = stand(&track, 1, 0.2F, 0.5F);
    ck_assert_uint_eq(weir_crossings_step(crossings, SIDE, SIDE, list, 1, &found), 1);
    ck_assert(found[0].is_right); /* Who goes down has its right hand where x is small. */
    weir_crossings_destroy(crossings);
}

END_TEST

START_TEST(a_line_has_two_ends_in_the_picture)
{
    static const struct weir_line bad[] = {
        {0, 0, 1.1F, 0}, {-0.1F, 0, 1, 1}, {0.5F, 0.5F, 0.5F, 0.5F}, {0, NAN, 1, 1}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(weir_line_check(&bad[i], &err), WEIR_ERR_INVALID);
    }
}

END_TEST

WEIR_TEST_MAIN("line", crossings_say_on_which_side_each_is,
               a_straight_way_crosses_where_the_segments_meet,
               what_stands_on_the_line_does_not_go_to_and_fro, who_was_forgotten_crosses_nothing,
               a_line_has_two_ends_in_the_picture)
