#include "sched/model/portion.h"

#include "base/macros.h"

#include <math.h>

#define MIB (INT64_C(1) << 20)
/** KAI-Scheduler divides a device of unknown memory into so many parts, and others into a multiple.
 */
#define KAI_PARTS 100
/** Of a device, in thousandths, what it counts by. */
#define HUNDREDTH (WEIR_SCHED_DEVICE / 100)

int64_t portion_device_size(const struct weir_sched_profile *profile, int64_t memory_bytes)
{
    if (!profile->like_kai) {
        return memory_bytes > 0 ? memory_bytes : WEIR_SCHED_DEVICE;
    }
    int64_t mib = memory_bytes / MIB;
    if (mib >= KAI_PARTS) {
        return (mib - mib % KAI_PARTS) * MIB;
    }
    return memory_bytes > 0 ? WEIR_MAX(mib, 1) * MIB : KAI_PARTS;
}

/** Its binary fractions are kept with what they round to: 0.145 of 200 MiB are 28 MiB. */
static int64_t kai_units(const struct weir_sched_demand *demand, int64_t size)
{
    int64_t unit = size > KAI_PARTS ? MIB : 1;
    if (demand->device_milli == 0) {
        return (demand->device_memory_bytes + MIB - 1) / MIB * MIB;
    }
    int64_t n_units = size / unit;
    double portion = (double)demand->device_milli / WEIR_SCHED_DEVICE;
    return (int64_t)(portion * (double)n_units) * unit;
}

int64_t portion_units(const struct weir_sched_profile *profile,
                      const struct weir_sched_demand *demand, int64_t size, bool is_known)
{
    if (demand->device_milli == WEIR_SCHED_DEVICE) {
        return size;
    }
    if (demand->device_milli == 0 && !is_known) {
        return size + 1;
    }
    if (profile->like_kai) {
        return kai_units(demand, size);
    }
    if (demand->device_milli == 0) {
        return demand->device_memory_bytes;
    }
    return (int64_t)((__int128)size * demand->device_milli / WEIR_SCHED_DEVICE);
}

static int64_t round_up(int64_t units, int64_t parts, int64_t size)
{
    return (int64_t)(((__int128)units * parts + size - 1) / size);
}

/** Hundredths that so much memory of a device is, as KAI-Scheduler works them out. */
static int64_t kai_hundredths(int64_t units, int64_t size)
{
    return (int64_t)ceil((double)units / (double)size * 100);
}

static int64_t kai_charge(const struct weir_sched_demand *demand, int64_t size, bool is_there)
{
    if (demand->device_milli > 0) {
        return llround((double)demand->device_milli / WEIR_SCHED_DEVICE * 100) * HUNDREDTH;
    }
    int64_t units = kai_units(demand, size);
    return is_there ? kai_hundredths(units, size) * HUNDREDTH
                    : round_up(units, WEIR_SCHED_DEVICE, size);
}

int64_t portion_charge(const struct weir_sched_profile *profile,
                       const struct weir_sched_demand *demand, int64_t size, bool is_there)
{
    int64_t each = demand->device_milli;
    if (demand->n_devices == 0) {
        return 0;
    }
    if (each == 0 && size <= 0) {
        each = WEIR_SCHED_DEVICE;
    } else if (profile->like_kai) {
        each = kai_charge(demand, size, is_there);
    } else if (each == 0) {
        each = WEIR_MIN(round_up(demand->device_memory_bytes, WEIR_SCHED_DEVICE, size),
                        WEIR_SCHED_DEVICE);
    }
    return demand->n_devices * each;
}

int64_t portion_least(const struct weir_sched_profile *profile,
                      const struct weir_sched_demand *demand)
{
    bool is_rounded = profile->like_kai && demand->device_milli < WEIR_SCHED_DEVICE;
    int64_t less = is_rounded ? WEIR_SCHED_DEVICE / KAI_PARTS : 0; /* A unit of the smallest. */
    return demand->n_devices * WEIR_MAX(demand->device_milli - less, 0);
}

/** Most are free or taken as a whole. */
int32_t portion_room(int64_t size, int64_t taken)
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
