#include "vision/detection.h"

#include "base/macros.h"

#include <math.h>
#include <stdlib.h>

float weir_box_overlap(const struct weir_box *a, const struct weir_box *b)
{
    float w = fminf(a->x + a->w, b->x + b->w) - fmaxf(a->x, b->x);
    float h = fminf(a->y + a->h, b->y + b->h) - fmaxf(a->y, b->y);
    if (!(w > 0 && h > 0)) {
        return 0;
    }
    float both = w * h, either = a->w * a->h + b->w * b->h - both;
    return either > 0 ? fminf(both / either, 1) : 0;
}

static int by_number(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_rank(const void *left, const void *right)
{
    const struct weir_detection *a = left, *b = right;
    const int order[] = {by_number(b->score, a->score), by_number(a->class_id, b->class_id),
                         by_number(a->box.x, b->box.x), by_number(a->box.y, b->box.y),
                         by_number(a->box.w, b->box.w), by_number(a->box.h, b->box.h)};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(order); i++) {
        if (order[i] != 0) {
            return order[i];
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(a->points); i++) {
        if (a->points[i] != b->points[i]) {
            return by_number(a->points[i], b->points[i]);
        }
    }
    return 0;
}

void weir_detections_sort(struct weir_detection *detections, size_t n)
{
    if (n > 1) {
        qsort(detections, n, sizeof *detections, by_rank);
    }
}

/* ---- the mean of several ----------------------------------------------------------------------- */

#define N_NUMBERS (4 + 2 * WEIR_FACE_POINTS)

struct mean {
    double weight, numbers[N_NUMBERS];
};

static void mean_add(struct mean *mean, const struct weir_detection *one)
{
    const float box[] = {one->box.x, one->box.y, one->box.w, one->box.h};
    mean->weight += one->score;
    for (size_t i = 0; i < N_NUMBERS; i++) {
        mean->numbers[i] += (double)one->score * (double)(i < 4 ? box[i] : one->points[i - 4]);
    }
}

static void mean_take(const struct mean *mean, struct weir_detection *out)
{
    if (!(mean->weight > 0)) {
        return;
    }
    const double *sums = mean->numbers, weight = mean->weight;
    out->box = (struct weir_box){(float)(sums[0] / weight), (float)(sums[1] / weight),
                                 (float)(sums[2] / weight), (float)(sums[3] / weight)};
    for (size_t i = 0; i < N_NUMBERS - 4; i++) {
        out->points[i] = (float)(sums[i + 4] / weight);
    }
}

/* ---- suppression --------------------------------------------------------------------------------- */

/* Those behind `best` that it stands for go; the others move up. @return How many of n are left. */
static size_t sweep(struct weir_detection *all, size_t best, size_t n, float max_overlap,
                    struct mean *mean)
{
    size_t n_left = best + 1;
    for (size_t i = best + 1; i < n; i++) {
        if (all[i].class_id == all[best].class_id &&
            weir_box_overlap(&all[i].box, &all[best].box) > max_overlap) {
            mean_add(mean, &all[i]);
        } else {
            all[n_left++] = all[i];
        }
    }
    return n_left;
}

static size_t merge(struct weir_detection *detections, size_t n, float max_overlap, bool blends)
{
    weir_detections_sort(detections, n);
    for (size_t i = 0; i < n; i++) {
        struct mean mean = {0};
        mean_add(&mean, &detections[i]);
        n = sweep(detections, i, n, max_overlap, &mean);
        if (blends) {
            mean_take(&mean, &detections[i]);
        }
    }
    return n;
}

size_t weir_detections_suppress(struct weir_detection *detections, size_t n, float max_overlap)
{
    return merge(detections, n, max_overlap, false);
}

size_t weir_detections_blend(struct weir_detection *detections, size_t n, float max_overlap)
{
    return merge(detections, n, max_overlap, true);
}
