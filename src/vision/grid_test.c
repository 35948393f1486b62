/* Grid: targets against a plain reading of their definition, and back to the faces that they were made of. */
#include "vision/grid.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdlib.h>

#define WIDTH     200 /* no multiple of 16: the last column is cut */
#define HEIGHT    120
#define N_FACES   5
#define COLUMNS_8 25
#define ROWS_8    15
#define N_8       (COLUMNS_8 * ROWS_8)
#define N_16      (13 * 8)
#define N_SQUARES (N_8 + N_16)

static void draw_faces(struct weir_rng *rng, struct weir_grid_face faces[N_FACES])
{
    for (int i = 0; i < N_FACES; i++) {
        struct weir_grid_face *f = &faces[i];
        float w = 4 + 60 * weir_rng_f32(rng);
        f->box = (struct weir_box){WIDTH * weir_rng_f32(rng) - w / 2,
                                   HEIGHT * weir_rng_f32(rng) - w / 2, w, 1.2F * w};
        f->visible = weir_rng_f32(rng);
        for (int k = 0; k < 2 * WEIR_FACE_POINTS; k++) {
            f->points[k] = 100 * weir_rng_f32(rng);
        }
    }
}

static bool is_plain(const struct weir_grid_face *face)
{
    return face->box.w >= 6 && face->visible >= 0.4F;
}

/* The score of one square by its definition, without regard to what is left out. */
static double score_at(const struct weir_grid_face *faces, int side, int column, int row)
{
    double best = 0;
    for (int i = 0; i < N_FACES; i++) {
        double w = (double)faces[i].box.w, cx = ((double)faces[i].box.x + w / 2) / side;
        double cy = ((double)faces[i].box.y + (double)faces[i].box.h / 2) / side;
        double spread = fmax(0.16 * w / side, 0.5);
        double dx = column + 0.5 - cx, dy = row + 0.5 - cy;
        bool is_here = column == (int)floor(cx) && row == (int)floor(cy);
        if (is_plain(&faces[i]) && (w < 26) == (side == 8)) {
            best = fmax(best, is_here ? 1 : exp(-(dx * dx + dy * dy) / (2 * spread * spread)));
        }
    }
    return best;
}

/* Is there a face that nothing is to be learnt of, around this square? */
static bool is_near_unlearnt(const struct weir_grid_face *faces, int side, int column, int row)
{
    for (int i = 0; i < N_FACES; i++) {
        double u = (column + 0.5) * side - ((double)faces[i].box.x + (double)faces[i].box.w / 2);
        double v = (row + 0.5) * side - ((double)faces[i].box.y + (double)faces[i].box.h / 2);
        bool is_own = is_plain(&faces[i]) && (faces[i].box.w < 26) == (side == 8);
        if (!is_own && hypot(u, v) < fmax((double)faces[i].box.w, 2 * side)) {
            return true;
        }
    }
    return false;
}

START_TEST(scores_are_those_of_the_definition)
{
    struct weir_rng rng;
    struct weir_grid_face faces[N_FACES];
    float *targets = calloc(WEIR_GRID_VALUES * N_SQUARES, sizeof *targets);
    ck_assert_uint_eq(weir_grid_count(WIDTH, HEIGHT), N_SQUARES);
    weir_rng_init(&rng, (uint64_t)_i, 1);
    draw_faces(&rng, faces);
    weir_grid_encode(WIDTH, HEIGHT, faces, N_FACES, targets);
    for (int i = 0; i < N_SQUARES; i++) {
        int side = i < N_8 ? 8 : 16, columns = i < N_8 ? COLUMNS_8 : 13, at = i < N_8 ? i : i - N_8;
        double expected = score_at(faces, side, at % columns, at / columns);
        if (isnan(targets[i])) {
            ck_assert_msg(is_near_unlearnt(faces, side, at % columns, at / columns),
                          "seed %d, square %d is left out", _i, i);
        } else {
            /* Beyond three spreads it is 0. */
            ck_assert_msg(fabs((double)targets[i] - expected) < 0.0112,
                          "seed %d, square %d: %g, not %g", _i, i, (double)targets[i], expected);
        }
    }
    free(targets);
}

END_TEST

/* What says 1, or nearly, has a place; and the place is of the face there. */
START_TEST(targets_are_the_faces_again)
{
    struct weir_rng rng;
    struct weir_grid_face faces[N_FACES];
    int n_found = 0;
    float *targets = calloc(WEIR_GRID_VALUES * N_SQUARES, sizeof *targets);
    weir_rng_init(&rng, (uint64_t)_i, 1);
    draw_faces(&rng, faces);
    weir_grid_encode(WIDTH, HEIGHT, faces, N_FACES, targets);
    for (size_t i = 0; i < N_SQUARES; i++) {
        struct weir_detection found;
        bool is_face = false;
        if (!(targets[i] >= 0.6F)) {
            continue;
        }
        weir_grid_read(WIDTH, HEIGHT, targets, i, &found);
        for (int k = 0; k < N_FACES; k++) {
            bool is_same = fabsf(found.box.x - faces[k].box.x) < 1e-2F &&
                           fabsf(found.box.y - faces[k].box.y) < 1e-2F &&
                           fabsf(found.box.w - faces[k].box.w) < 1e-2F &&
                           fabsf(found.box.h - faces[k].box.h) < 1e-2F;
            for (int p = 0; p < 2 * WEIR_FACE_POINTS; p++) {
                is_same = is_same && fabsf(found.points[p] - faces[k].points[p]) < 1e-2F;
            }
            is_face = is_face || (is_same && is_plain(&faces[k]));
        }
        ck_assert_msg(is_face, "seed %d, square %zu is of no face", _i, i);
        n_found++;
    }
    int n_plain = 0;
    for (int k = 0; k < N_FACES; k++) {
        float cx = faces[k].box.x + faces[k].box.w / 2, cy = faces[k].box.y + faces[k].box.h / 2;
        n_plain += is_plain(&faces[k]) && cx >= 0 && cy >= 0 && cx < WIDTH && cy < HEIGHT;
    }
    ck_assert_msg(n_found > 0 || n_plain == 0, "seed %d: %d faces, none in the targets", _i,
                  n_plain);
    free(targets);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("squares", {scores_are_those_of_the_definition, 40},
                     {targets_are_the_faces_again, 40})
