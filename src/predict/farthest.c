#include "predict/farthest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void farthest_init(struct farthest *farthest, const struct weir_histogram *baseline,
                   bool is_upwards)
{
    *farthest = (struct farthest){.mean = baseline->mean,
                                  .stddev = weir_histogram_stddev(baseline),
                                  .is_upwards = is_upwards};
}

static struct far_frame *nearest_of(struct farthest *farthest)
{
    struct far_frame *nearest = &farthest->items[0];
    for (size_t i = 1; i < farthest->n; i++) {
        nearest = farthest->items[i].sigmas < nearest->sigmas ? &farthest->items[i] : nearest;
    }
    return nearest;
}

void farthest_add(struct farthest *farthest, const char *camera, int64_t number, int64_t time_ms,
                  double value)
{
    double away = value - farthest->mean;
    double sigmas = (farthest->is_upwards ? away : fabs(away)) / farthest->stddev;
    if (farthest->stddev <= 0 || !isfinite(sigmas) || sigmas < 0) {
        return;
    }
    struct far_frame *place = farthest->n < FARTHEST_MAX ? &farthest->items[farthest->n] : NULL;
    if (place == NULL && (place = nearest_of(farthest))->sigmas >= sigmas) {
        return;
    }
    farthest->n += farthest->n < FARTHEST_MAX;
    *place =
        (struct far_frame){.number = number, .time_ms = time_ms, .value = value, .sigmas = sigmas};
    (void)snprintf(place->camera, sizeof place->camera, "%s", camera);
}

static int compare(const void *a, const void *b)
{
    const struct far_frame *x = a, *y = b;
    return (x->sigmas < y->sigmas) - (x->sigmas > y->sigmas);
}

json_t *farthest_take(struct farthest *farthest)
{
    json_t *items = json_array();
    qsort(farthest->items, farthest->n, sizeof *farthest->items, compare);
    for (size_t i = 0; i < farthest->n; i++) {
        const struct far_frame *frame = &farthest->items[i];
        json_array_append_new(items, json_pack("{s:s,s:I,s:I,s:f,s:f}", "camera", frame->camera,
                                               "frame", (json_int_t)frame->number, "time_ms",
                                               (json_int_t)frame->time_ms, "value", frame->value,
                                               "sigmas", frame->sigmas));
    }
    farthest->n = 0;
    return items;
}
