#include "sched/model/fraction.h"

#include "base/macros.h"

int64_t fraction_device_size(int64_t memory_bytes)
{
    return memory_bytes > 0 ? memory_bytes : WEIR_SCHED_DEVICE;
}

int64_t fraction_units(const struct weir_sched_demand *demand, int64_t size, bool is_known)
{
    if (demand->device_milli == WEIR_SCHED_DEVICE) {
        return size;
    }
    if (demand->device_milli == 0) {
        return is_known ? demand->device_memory_bytes : size + 1;
    }
    return fraction_of(size, demand->device_milli);
}

int64_t fraction_of(int64_t size, int64_t milli)
{
    return (int64_t)((__int128)size * milli / WEIR_SCHED_DEVICE);
}

static int64_t round_up(int64_t units, int64_t parts, int64_t size)
{
    return (int64_t)(((__int128)units * parts + size - 1) / size);
}

int64_t fraction_charge(const struct weir_sched_demand *demand, int64_t size)
{
    int64_t each = demand->device_milli;
    if (demand->n_devices == 0) {
        return 0;
    }
    if (each == 0 && size <= 0) {
        each = WEIR_SCHED_DEVICE;
    } else if (each == 0) {
        each = WEIR_MIN(round_up(demand->device_memory_bytes, WEIR_SCHED_DEVICE, size),
                        WEIR_SCHED_DEVICE);
    }
    return demand->n_devices * each;
}

int64_t fraction_least(const struct weir_sched_demand *demand)
{
    return (int64_t)demand->n_devices * demand->device_milli;
}

/** Most are free or taken as a whole. */
int32_t fraction_room(int64_t size, int64_t taken)
{
    int64_t room = size - taken;
    if (room <= 0) {
        return 0;
    }
    if (room == size) {
        return WEIR_SCHED_DEVICE;
    }
    if (room <= INT64_MAX / WEIR_SCHED_DEVICE) {
        return (int32_t)(room * WEIR_SCHED_DEVICE / size);
    }
    return (int32_t)((__int128)room * WEIR_SCHED_DEVICE / size);
}
