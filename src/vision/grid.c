#include "vision/grid.h"

#include "base/macros.h"

#include <math.h>

#define N_SCALES    2
#define N_PLACE     (WEIR_GRID_VALUES - 1)
#define MIN_WIDTH   6.0F /* a face that is learnt has so much */
#define MIN_VISIBLE 0.4F
#define PARTING     26.0F /* wider faces are the coarse scale's */
#define BETWEEN     1.25F /* up to this factor from the parting the other scale may see a face too */
#define SPREAD      0.16F /* how far a score reaches, in widths */
#define SPREAD_MIN  0.5F  /* in squares */
#define NEAR        0.6F  /* a score from which on a square tells the place too */

struct scale {
    int side, columns, rows;
    size_t first;       /* where its scores begin */
    size_t first_place; /* where its planes begin */
};

/* The middle of a square, in pixels. */
static void middle_of(const struct scale *scale, size_t i_square, float *out_u, float *out_v)
{
    int row = (int)(i_square / (size_t)scale->columns);
    int column = (int)(i_square % (size_t)scale->columns);
    *out_u = ((float)column + 0.5F) * (float)scale->side;
    *out_v = ((float)row + 0.5F) * (float)scale->side;
}

static size_t scales_of(int width, int height, struct scale out[N_SCALES])
{
    static const int sides[N_SCALES] = {8, 16};
    size_t n = 0;
    for (int i = 0; i < N_SCALES; i++) {
        out[i] = (struct scale){.side = sides[i],
                                .columns = (width + sides[i] - 1) / sides[i],
                                .rows = (height + sides[i] - 1) / sides[i],
                                .first = n};
        n += (size_t)out[i].columns * (size_t)out[i].rows;
    }
    for (int i = 0; i < N_SCALES; i++) {
        out[i].first_place = n + N_PLACE * out[i].first;
    }
    return n;
}

size_t weir_grid_count(int width, int height)
{
    struct scale scales[N_SCALES];
    return scales_of(width, height, scales);
}

/* ---- targets -------------------------------------------------------------------------------- */

static void put_place(const struct scale *scale, size_t i_square, const struct weir_grid_face *face,
                      float *out)
{
    size_t n_squares = (size_t)scale->columns * (size_t)scale->rows;
    float side = (float)scale->side, u, v;
    middle_of(scale, i_square, &u, &v);
    float *at = out + scale->first_place + i_square;
    at[0 * n_squares] = (face->box.x + face->box.w / 2 - u) / side;
    at[1 * n_squares] = (face->box.y + face->box.h / 2 - v) / side;
    at[2 * n_squares] = logf(face->box.w / (2 * side));
    at[3 * n_squares] = logf(face->box.h / (2 * side));
    for (size_t k = 0; k < WEIR_FACE_POINTS; k++) {
        at[(4 + 2 * k) * n_squares] = (face->points[2 * k] - u) / (2 * side);
        at[(5 + 2 * k) * n_squares] = (face->points[2 * k + 1] - v) / (2 * side);
    }
}

/* One face at one scale: scores around its middle, or NaN there if nothing is to be learnt of it. */
static void put_face(const struct scale *scale, const struct weir_grid_face *face, bool is_learnt,
                     float *out)
{
    float side = (float)scale->side;
    float cx = (face->box.x + face->box.w / 2) / side, cy = (face->box.y + face->box.h / 2) / side;
    float spread = fmaxf(SPREAD * face->box.w / side, SPREAD_MIN);
    int column = (int)floorf(cx), row = (int)floorf(cy), reach = (int)ceilf(3 * spread);
    for (int y = WEIR_MAX(row - reach, 0); y <= WEIR_MIN(row + reach, scale->rows - 1); y++) {
        for (int x = WEIR_MAX(column - reach, 0); x <= WEIR_MIN(column + reach, scale->columns - 1);
             x++) {
            size_t i_square = (size_t)y * (size_t)scale->columns + (size_t)x;
            float dx = (float)x + 0.5F - cx, dy = (float)y + 0.5F - cy;
            bool is_middle = x == column && y == row;
            float score = is_middle ? 1 : expf(-(dx * dx + dy * dy) / (2 * spread * spread));
            float *at = &out[scale->first + i_square];
            if (!is_learnt) {
                *at = score >= 0.1F && *at < 1 ? NAN : *at;
            } else if (!(*at >= score)) {
                *at = score;
                if (score >= NEAR) {
                    put_place(scale, i_square, face, out);
                }
            }
        }
    }
}

/* 2: the face is of this scale; 1: it may be seen here too; 0: it is not. */
static int belongs(const struct weir_grid_face *face, int i_scale)
{
    float ratio = face->box.w / PARTING;
    bool is_own = (ratio < 1) == (i_scale == 0);
    bool is_near = ratio < BETWEEN && ratio > 1 / BETWEEN;
    return is_own ? 2 : is_near ? 1 : 0;
}

void weir_grid_encode(int width, int height, const struct weir_grid_face *faces, size_t n_faces,
                      float *out)
{
    struct scale scales[N_SCALES];
    size_t n_squares = scales_of(width, height, scales);
    for (size_t i = 0; i < WEIR_GRID_VALUES * n_squares; i++) {
        out[i] = i < n_squares ? 0 : NAN;
    }
    for (int pass = 0; pass < 2; pass++) { /* what is not learnt never covers what is */
        for (size_t i = 0; i < n_faces; i++) {
            bool is_plain = faces[i].box.w >= MIN_WIDTH && faces[i].visible >= MIN_VISIBLE;
            for (int s = 0; s < N_SCALES; s++) {
                int how = belongs(&faces[i], s);
                bool is_learnt = is_plain && how == 2;
                if (how > 0 && is_learnt == (pass == 1)) {
                    put_face(&scales[s], &faces[i], is_learnt, out);
                }
            }
        }
    }
}

/* ---- detections ----------------------------------------------------------------------------- */

void weir_grid_read(int width, int height, const float *values, size_t i_square,
                    struct weir_detection *out)
{
    struct scale scales[N_SCALES];
    (void)scales_of(width, height, scales);
    const struct scale *scale = &scales[i_square >= scales[1].first];
    size_t n_squares = (size_t)scale->columns * (size_t)scale->rows, i = i_square - scale->first;
    float side = (float)scale->side, u, v;
    middle_of(scale, i, &u, &v);
    const float *at = values + scale->first_place + i;
    float w = 2 * side * expf(at[2 * n_squares]), h = 2 * side * expf(at[3 * n_squares]);
    *out = (struct weir_detection){
        .box = {u + at[0] * side - w / 2, v + at[n_squares] * side - h / 2, w, h},
        .score = 1 / (1 + expf(-values[i_square])),
        .has_points = true};
    for (size_t k = 0; k < WEIR_FACE_POINTS; k++) {
        out->points[2 * k] = u + 2 * side * at[(4 + 2 * k) * n_squares];
        out->points[2 * k + 1] = v + 2 * side * at[(5 + 2 * k) * n_squares];
    }
}
