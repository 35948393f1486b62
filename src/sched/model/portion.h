/**
 * Parts of a device: how much of it a task takes and counts as, and how much is left.
 *
 * Profile like_kai rounds as KAI-Scheduler does: a device's memory down to hundreds of MiB, what a
 * share takes of it down to 1 MiB, and what counts of a queue's accelerators to hundredths of a
 * device, a share to the nearest and memory up. So three tasks of 0.335 fit one device of 100 MiB
 * there.
 */
#ifndef WEIR_SCHED_PORTION_H
#define WEIR_SCHED_PORTION_H

#include "sched/sched.h"

#include <stdint.h>

/** Units of a device by its memory (0: unknown): bytes if that is known. */
int64_t portion_device_size(const struct weir_sched_profile *profile, int64_t memory_bytes);

/** Units that each of a task's devices takes of one of `size` units; size + 1 if it asks for memory
 *  where that is unknown. */
int64_t portion_units(const struct weir_sched_profile *profile,
                      const struct weir_sched_demand *demand, int64_t size, bool is_known);

/** What all of a task's devices count as, in thousandths, where they are of `size` units (0:
 *  unknown). `is_there`: on such a node; else it is not known yet on which, which only matters to
 *  those who ask for memory. */
int64_t portion_charge(const struct weir_sched_profile *profile,
                       const struct weir_sched_demand *demand, int64_t size, bool is_there);

/** Thousandths of their devices' room that a task's shares take at least, on any node; memory of
 *  them may take none. */
int64_t portion_least(const struct weir_sched_profile *profile,
                      const struct weir_sched_demand *demand);

/** Thousandths of a device of `size` units that are left beside `taken`, rounded down. */
int32_t portion_room(int64_t size, int64_t taken);

#endif
