/**
 * A scenario of the case files as a snapshot that lives through rounds: what a plan says is done to
 * it, and its tasks carry the case files' names of states.
 */
#ifndef SCHED_CASES_WORLD_H
#define SCHED_CASES_WORLD_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "sched/sched.h"

/** A task beside its row in the snapshot. */
struct world_task {
    const char *state;       /**< "Pending", "Binding", … */
    int32_t node;            /**< Where it is or will be; -1. */
    bool is_deleted_in_test; /**< Stays Releasing. */
    uint32_t zones;
    int32_t *devices;
};

struct world {
    struct weir_arena *arena;
    const json_t *document; /**< The case. */
    const json_t *defaults;
    struct weir_sched_snapshot snapshot;
    struct weir_sched_profile profile;
    struct weir_sched_node *nodes;
    struct weir_sched_queue *queues;
    struct weir_sched_job *jobs;
    struct weir_sched_task *tasks;
    struct weir_sched_topology *topologies;
    struct world_task *states; /**< One per task. */
    int64_t n_binds, n_evictions, n_pipelined;
};

/** @return UNSUPPORTED with the reason for which the case is left out; INVALID: not a case. */
weir_status world_load(struct world *world, const char *profile, const json_t *document,
                       const json_t *defaults, struct weir_arena *arena,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** One round of `actions`; the tasks' states are then as right after it. */
weir_status world_run(struct world *world, struct weir_error *err) WEIR_MUST_CHECK;

/** Between two rounds of a full cycle: what was evicted waits again, what was bound runs. */
void world_advance(struct world *world);

/** Of a full cycle: gangs below their minimum are so for long, because rounds are far apart. */
void world_mark_stale(struct world *world);

/** Append to `out` a line for each expectation that does not hold. @return How many do not. */
int32_t world_compare(const struct world *world, struct weir_buf *out);

int32_t world_find_node(const struct world *world, const char *name);

#endif
