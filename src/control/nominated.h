/**
 * Nominated places: the job that gets the room which others still leave.
 *
 * A plan that evicts tasks nominates a place for each task that it makes room for (the action PIPELINE,
 * sched/sched.h). They are kept here from plan to plan, by names, so that what comes meanwhile does not
 * take the room: jobs are read again, nodes come and go, devices get other numbers. The next snapshot
 * tells the planner of those whose node and devices are still there; the planner drops what has become
 * void, and binds the others when their room is free.
 *
 *     nominated_init(&next);          // while a plan is taken apart
 *     nominated_add(&next, &place);   // a new one, or one that stands
 *     nominated_end(&next, &snapshot->nominated);
 *
 * They live in memory alone: after a restart of the server places are nominated again. Owned by one
 * thread. Memory: aborts if there is none.
 */
#ifndef WEIR_CONTROL_NOMINATED_H
#define WEIR_CONTROL_NOMINATED_H

#include "base/arena.h"

#include <stdint.h>

struct nominated_place {
    const char *task, *node; /**< Identifier and name. */
    const int64_t *devices;  /**< Indices on the node (job/task_device.h). */
    int32_t n_devices;
};

/** By task. Zeroed is empty. */
struct nominated {
    struct weir_arena arena;
    struct nominated_place *places;
    size_t n, cap;
};

/** Make *out empty. */
void nominated_init(struct nominated *out);
void nominated_fini(struct nominated *nominated);

/** Add a place; texts and devices are copied. Before nominated_end. */
void nominated_add(struct nominated *to, const struct nominated_place *place);

/** Sort `from` and put it in the place of `to`, and free what `to` was. `from` is empty then. */
void nominated_end(struct nominated *from, struct nominated *to);

/** The place of a task; NULL: it has none. */
const struct nominated_place *nominated_find(const struct nominated *nominated, const char *task);

#endif
