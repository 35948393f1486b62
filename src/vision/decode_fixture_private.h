/** What encodings are made with. Only the fixture includes this. */
#ifndef WEIR_VISION_DECODE_FIXTURE_PRIVATE_H
#define WEIR_VISION_DECODE_FIXTURE_PRIVATE_H

#include "vision/decode_fixture.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

/** A new output, filled with one value; its numbers. Dimensions are ints. */
float *fixture_add(struct fixture *f, const char *name, double fill, size_t rank, ...);

static inline double between(struct weir_rng *rng, double low, double high)
{
    return low + (high - low) * weir_rng_f64(rng);
}

static inline double centre_x(const struct thing *t)
{
    return (t->box[0] + t->box[2]) / 2;
}

static inline double centre_y(const struct thing *t)
{
    return (t->box[1] + t->box[3]) / 2;
}

static inline double wide(const struct thing *t)
{
    return t->box[2] - t->box[0];
}

static inline double high(const struct thing *t)
{
    return t->box[3] - t->box[1];
}

static inline double logit(double p)
{
    return log(p / (1 - p));
}

static inline int line_of(int i, int width)
{
    return i / width;
}

static inline int any(struct fixture *f, int n)
{
    return (int)weir_rng_below(f->rng, (uint64_t)n);
}

static inline int places(int side, int stride)
{
    return (side + stride - 1) / stride;
}

/* A place behind place i of n for a thing, so that the others find theirs; the last one is often near the end. */
static inline int further(struct fixture *f, const struct thing *t, int i, int n)
{
    int next = i + 1 + any(f, n / (int)f->scene->n - 1), near_end = n - 1 - any(f, n / 20 + 1);
    bool is_last = t + 1 == f->scene->things + f->scene->n;
    return is_last && any(f, 2) == 0 && near_end > next ? near_end : next;
}

#define FOR_THINGS(f, t)                                                                           \
    for (const struct thing *t = (f)->scene->things, *t##_end = t + (f)->scene->n; t < t##_end; t++)

void fixture_yolo_v5(struct fixture *f);
void fixture_yolo_v5_face(struct fixture *f);
void fixture_yolox(struct fixture *f);
void fixture_yolo_v8(struct fixture *f);
void fixture_yolo_v8_face(struct fixture *f);
void fixture_yolo_v5_raw(struct fixture *f);
void fixture_yolo_v8_raw(struct fixture *f);
void fixture_yolo_end2end(struct fixture *f);
void fixture_yolo_v7(struct fixture *f);
void fixture_yolo_plugin(struct fixture *f);

#endif
