/**
 * Allocation step: what becomes of an allocation's record (job/cluster.h) by what its cluster says of it. Pure.
 *
 *     wanted    + unknown  → it is to be asked for         pending, running + unknown → ended, failed
 *     releasing + anything but an end → it is to be released again
 *     pending   + stuck for long → releasing, as failed
 *     anything  + ended    → ended, for ever
 */
#ifndef WEIR_CONTROL_ALLOCATION_STEP_H
#define WEIR_CONTROL_ALLOCATION_STEP_H

#include "cluster/driver.h"
#include "job/cluster.h"

/** One that has machines, on which its agents do not start for so long, is given back as failed. */
#define ALLOCATION_STUCK_MS ((int64_t)15 * 60 * 1000)

struct allocation_step {
    bool is_changed; /**< The record is not as it was. */
    bool asks;       /**< Ask the cluster for it. */
    bool releases;   /**< Tell the cluster that it is given back. */
    bool has_ended;  /**< By this step. */
};

/**
 * @param allocation  Changed in place; its new texts lie in the arena.
 * @param report      NULL: it was not asked for, or not asked about.
 */
struct allocation_step allocation_step(struct weir_allocation *allocation,
                                       const struct weir_allocation_report *report, int64_t now_ms,
                                       struct weir_arena *arena);

/** It was refused, and will never be had. */
void allocation_refuse(struct weir_allocation *allocation, const char *why, int64_t now_ms);

/** "released" …: as records have it. Static. */
const char *allocation_ending_text(enum weir_allocation_ending ending);

/** Did it end as its cluster does with what is well: what ran there moves on, and that is no failure of it? */
bool allocation_ended_as_foreseen(const struct weir_allocation *allocation);

#endif
