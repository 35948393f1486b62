#include "cluster/kubernetes/scheduler/world_part.h"

#include "base/macros.h"
#include "cluster/kubernetes/scheduler/reservation.h"

void world_part_begin(const struct world *world, struct world_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        int32_t n = shares_n_devices(&world->shares, (int32_t)i);
        nodes->uses[i].own_devices = nodes->uses[i].next_device = n;
    }
}

/* A part of a device comes, for a pod that has no place yet, with what it takes to hold the device. What pods have of it that
 * are not planned counts as one's that is. */
static void put_part(struct world *world, struct weir_arena *arena, const struct world_pod *pod,
                     int32_t node, struct weir_sched_task *task)
{
    int64_t milli = pod->pod->part.milli;
    struct shares_group *group = shares_of(&world->shares, pod, node);
    if (milli == 0 || (node >= 0 && group == NULL)) {
        return;
    }
    task->demand.n_devices = 1;
    task->demand.device_milli = (int32_t)milli;
    if (group == NULL) {
        task->demand.cpu_milli += RESERVATION_CPU_MILLI;
        task->demand.memory_bytes += RESERVATION_MEMORY_BYTES;
        return;
    }
    task->demand.device_milli =
        (int32_t)WEIR_MIN(milli + group->lost_milli, (int64_t)WEIR_SCHED_DEVICE);
    group->lost_milli = 0;
    int32_t *devices = WEIR_ARENA_ARRAY(arena, 1, int32_t);
    devices[0] = group->device;
    task->devices = devices;
}

/* Where devices are divided, pods that have whole ones have the others. */
static void put_whole(const struct world *world, struct world_nodes *nodes, int32_t node,
                      struct weir_sched_task *task)
{
    int32_t n = task->demand.n_devices;
    if (node < 0 || n == 0 || task->devices != NULL ||
        shares_n_devices(&world->shares, node) == 0) {
        return;
    }
    int32_t *next = &nodes->uses[node].next_device;
    if (*next + n > WORLD_DEVICES_MAX) {
        return;
    }
    int32_t *devices = WEIR_ARENA_ARRAY(nodes->arena, (size_t)n, int32_t);
    for (int32_t i = 0; i < n; i++) {
        devices[i] = (*next)++;
    }
    task->devices = devices;
}

void world_part_put(struct world *world, struct world_nodes *nodes, const struct world_pod *pod,
                    int32_t node, struct weir_sched_task *task)
{
    put_part(world, nodes->arena, pod, node, task);
    put_whole(world, nodes, node, task);
}
