/**
 * Fractional shares of a device: how many units of it a task takes, how many thousandths it counts
 * as, and how much is left. Pure.
 */
#ifndef WEIR_SCHED_FRACTION_H
#define WEIR_SCHED_FRACTION_H

#include "sched/sched.h"

#include <stdint.h>

/** Units of a device: its bytes of memory, or thousandths if that is unknown (0). */
int64_t fraction_device_size(int64_t memory_bytes);

/** Units that so many thousandths of a device of `size` units are, rounded down. */
int64_t fraction_of(int64_t size, int64_t milli);

/**
 * Units that each of a task's devices takes of one with `size` units. size + 1, which fits nowhere,
 * if the task asks for memory and the device's is unknown.
 */
int64_t fraction_units(const struct weir_sched_demand *demand, int64_t size, bool is_known);

/**
 * What all of a task's devices count as, in thousandths, on devices of `size` units (0: unknown).
 */
int64_t fraction_charge(const struct weir_sched_demand *demand, int64_t size);

/**
 * Thousandths of devices that a task takes at least, on any node. A task that asks for memory may
 * take next to none.
 */
int64_t fraction_least(const struct weir_sched_demand *demand);

/** Thousandths of a device of `size` units that are left beside `taken`, rounded down. */
int32_t fraction_room(int64_t size, int64_t taken);

#endif
