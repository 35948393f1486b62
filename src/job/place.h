/**
 * Placement: which node takes which task. Pure.
 *
 * This is the simplest rule that respects gangs: nodes in the order given, the first with enough
 * free CPU slots takes the task; all tasks of the request are placed or none, and then the reason
 * says what was needed and what was free. The fair-share scheduler has the same interface.
 */
#ifndef WEIR_JOB_PLACE_H
#define WEIR_JOB_PLACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_place_node {
    const char *name;
    bool is_live; /**< Heartbeats arrive and it is not draining. */
    int64_t cpu_slots;
    int64_t cpu_free; /**< weir_place takes from it what it gives out. */
    bool is_full;     /**< Its tasks have as much text (files, environment) as it is told of. */
};

#define WEIR_PLACE_REASON_BYTES 256

/**
 * Place n_tasks tasks together.
 *
 * @param slots     CPU slots each task needs.
 * @param nodes     In/out: cpu_free is lowered on success, untouched on failure.
 * @param out_node  n_tasks indices into nodes.
 * @param reason    On failure: why, for people: "needs 2 CPU slots, 1 free on node-a".
 * @return true if all were placed.
 */
bool weir_place(const int64_t *slots, size_t n_tasks, struct weir_place_node *nodes, size_t n_nodes,
                size_t *out_node, char reason[WEIR_PLACE_REASON_BYTES]);

#endif
