#include "control/schedule/past_share.h"

#include "control/schedule/guarantee.h"

/* What is less is said to be its share. */
#define TOLD_FROM 1.05

#define PPM    1e6
#define DAY_MS 86400000.0

/* A queue's guarantee as a part of the cluster, at most what is due above it. */
static double guarantee_of(const struct weir_sched_snapshot *rows, int32_t queue, int32_t r,
                           double capacity, double above)
{
    int64_t quota = guarantee_share(rows, &rows->queues[queue], r, NULL)->quota;
    double part = quota == WEIR_SCHED_UNLIMITED ? above : (double)quota / capacity;
    return WEIR_MIN(part, above);
}

/* As a part of the cluster, from 0 to 1. */
static double due(const struct weir_sched_snapshot *rows, int32_t queue, int32_t r, double capacity)
{
    const struct weir_sched_queue *own = &rows->queues[queue];
    double above = own->parent >= 0 ? due(rows, own->parent, r, capacity) : 1, rest = above;
    int64_t weights = 0;
    for (int32_t q = 0; q < rows->n_queues; q++) {
        if (rows->queues[q].parent == own->parent) {
            rest -= guarantee_of(rows, q, r, capacity, above);
            weights += WEIR_MAX(guarantee_share(rows, &rows->queues[q], r, NULL)->weight, 0);
        }
    }
    double weight = (double)WEIR_MAX(guarantee_share(rows, own, r, NULL)->weight, 0);
    double borrowed = weights > 0 ? WEIR_MAX(rest, 0.0) * weight / (double)weights : 0;
    return WEIR_MIN(guarantee_of(rows, queue, r, capacity, above) + borrowed, above);
}

/* The resource that is divided; -1: there is nothing. */
static int32_t resource_of(const struct weir_sched_snapshot *rows, double *out_capacity)
{
    struct weir_sched_amount has;
    guarantee_capacity(rows, &has);
    int32_t r = has.of[WEIR_SCHED_ACCELERATOR] > 0 ? WEIR_SCHED_ACCELERATOR : WEIR_SCHED_CPU;
    *out_capacity = (double)has.of[r];
    return has.of[r] > 0 ? r : -1;
}

double past_share(const struct weir_sched_snapshot *rows, int32_t queue)
{
    double capacity;
    int32_t r = resource_of(rows, &capacity);
    double part = r >= 0 ? due(rows, queue, r, capacity) : 0;
    return part > 0 ? (double)rows->queues[queue].usage_ppm[r] / PPM / part : -1;
}

const char *past_share_tell(const struct weir_sched_snapshot *rows, int32_t queue,
                            int64_t half_life_ms, struct weir_arena *arena)
{
    double capacity, times = past_share(rows, queue);
    const char *what =
        resource_of(rows, &capacity) == WEIR_SCHED_ACCELERATOR ? "accelerators" : "CPUs";
    return times < TOLD_FROM
               ? NULL
               : weir_arena_printf(
                     arena, "%.1f times its share of the %s of late (by a half-life of %.3g days)",
                     times, what, (double)half_life_ms / DAY_MS);
}
