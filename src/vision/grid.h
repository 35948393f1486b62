/**
 * Grid: what the outputs of Weir's own detector mean (`face-detect` of the zoo), for training and for use alike. Pure.
 *
 * A picture of width × height is seen in squares at two scales: of 8 pixels a side, for small faces, and of 16. Rows and columns are
 * rounded up. A square has 15 numbers: a score, a place and five points. The output is one vector: the scores of all squares, of the
 * finer scale first, row by row; then of each scale 14 planes of its squares, one a number. With (u, v) the middle of the square and s its side:
 *
 *     score    logit of "the middle of a face is here"
 *     place    (cx - u) / s, (cy - v) / s, ln(w / 2s), ln(h / 2s)
 *     points   five times (x - u) / 2s, (y - v) / 2s
 */
#ifndef WEIR_VISION_GRID_H
#define WEIR_VISION_GRID_H

#include "vision/detection.h"

/** Numbers of a square. */
#define WEIR_GRID_VALUES 15

/** Squares of a picture of this size. The output has WEIR_GRID_VALUES times as many numbers. */
size_t weir_grid_count(int width, int height);

/** A face to be learnt. */
struct weir_grid_face {
    struct weir_box box; /**< Parts of it may lie outside. */
    float points[2 * WEIR_FACE_POINTS];
    /** 0 to 1. A face that is mostly hidden, or too small, is not learnt: neither as one nor as none. */
    float visible;
};

/**
 * What the output should be: targets of a detect loss (nn.h). Scores are 1 where the middle of a face is and fall off
 * around it; the numbers of squares near no middle are NaN, and so are scores at the scale that a face hardly belongs to.
 *
 * @param out  WEIR_GRID_VALUES × weir_grid_count numbers.
 */
void weir_grid_encode(int width, int height, const struct weir_grid_face *faces, size_t n_faces,
                      float *out);

/** What square i of an output says: the score, 0 to 1, the box and the points. Parts of the box may lie outside; of an output that is no
 *  detector's, numbers may be anything. */
void weir_grid_read(int width, int height, const float *values, size_t i_square,
                    struct weir_detection *out);

#endif
