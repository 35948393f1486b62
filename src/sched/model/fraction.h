/**
 * Parts of a device: how much of it a task takes and counts as, and how much is left.
 */
#ifndef WEIR_SCHED_FRACTION_H
#define WEIR_SCHED_FRACTION_H

#include "sched/sched.h"

#include <stdint.h>

/** Units of a device by its memory (0: unknown): bytes if that is known. */
int64_t fraction_device_size(int64_t memory_bytes);

/** Units that each of a task's devices takes of one of `size` units; size + 1 if it asks for memory
 *  where that is unknown. */
int64_t fraction_units(const struct weir_sched_demand *demand, int64_t size, bool is_known);

/** What all of a task's devices count as, in thousandths, where they are of `size` units (0:
 *  unknown). */
int64_t fraction_charge(const struct weir_sched_demand *demand, int64_t size);

/** Thousandths of their devices' room that a task's shares take at least, on any node; memory of
 *  them may take none. */
int64_t fraction_least(const struct weir_sched_demand *demand);

/** Thousandths of a device of `size` units that are left beside `taken`, rounded down. */
int32_t fraction_room(int64_t size, int64_t taken);

#endif
