#include "sched/place/zones.h"

#include "base/macros.h"

#include <string.h>

/** Of what a zone does not bound: the sum over all zones does not overflow. */
#define UNBOUNDED (INT64_MAX / (2 * ZONES_MAX))

enum need { NEED_CPU, NEED_MEMORY, NEED_DEVICES, N_NEEDS };

enum view {
    VIEW_EMPTY,  /**< Nothing is there. */
    VIEW_FUTURE, /**< What leaves has left. */
    VIEW_NOW,
};

/** A task that asks for zones of a node. */
struct asking {
    const struct weir_sched_node *node;
    int64_t need[N_NEEDS];
    int64_t size[ZONES_MAX][N_NEEDS]; /**< Of the zones. */
    int64_t free[ZONES_MAX][N_NEEDS];
    uint32_t must; /**< Zones that it has to take. */
};

bool zones_concern(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    return cluster->numa.max_zones > 0 && demand->numa_aligned;
}

static bool do_matter(const struct cluster *cluster, int32_t task, int32_t at)
{
    const struct weir_sched_node *node = &cluster->snapshot->nodes[at];
    return node->n_zones > 0 && node->numa_policy != WEIR_SCHED_NUMA_NONE &&
           zones_concern(cluster, task);
}

static bool is_free(const struct device_state *device, enum view view)
{
    return view == VIEW_EMPTY || (device->future == 0 && (view == VIEW_FUTURE || device->now == 0));
}

static int64_t size_of(int64_t stated)
{
    return stated < 0 ? UNBOUNDED : WEIR_MIN(stated, UNBOUNDED - 1);
}

static int64_t left_of(int64_t size, int64_t now, int64_t future, enum view view)
{
    int64_t used = view == VIEW_NOW ? WEIR_MAX(now, future) : future;
    return view == VIEW_EMPTY || size == UNBOUNDED ? size : size - used;
}

/** @return The first device behind those of the zone. */
static int32_t read_zone(const struct cluster *cluster, int32_t at, int32_t zone, int32_t device,
                         enum view view, struct asking *asking)
{
    const struct weir_sched_numa_zone *given = &asking->node->zones[zone];
    const struct zone_state *state = &cluster->numa.zones[cluster->nodes[at].first_zone + zone];
    int64_t *size = asking->size[zone], *free = asking->free[zone];
    size[NEED_CPU] = size_of(given->cpu_milli);
    size[NEED_MEMORY] = size_of(given->memory_bytes);
    size[NEED_DEVICES] = size_of(given->n_devices);
    free[NEED_CPU] = left_of(size[NEED_CPU], state->cpu_now, state->cpu_future, view);
    free[NEED_MEMORY] = left_of(size[NEED_MEMORY], state->memory_now, state->memory_future, view);
    free[NEED_DEVICES] = given->n_devices < 0 ? UNBOUNDED : 0;
    int32_t end = WEIR_MIN(device + WEIR_MAX(given->n_devices, 0), asking->node->n_devices);
    for (; device < end; device++) {
        free[NEED_DEVICES] +=
            is_free(&cluster->devices[cluster->nodes[at].first_device + device], view);
    }
    return device;
}

static void read_needs(const struct cluster *cluster, int32_t task, struct asking *asking)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    asking->need[NEED_CPU] = demand->numa_aligned ? demand->cpu_milli : 0;
    asking->need[NEED_MEMORY] = demand->numa_aligned ? demand->memory_bytes : 0;
    asking->need[NEED_DEVICES] = demand->device_milli == WEIR_SCHED_DEVICE ? demand->n_devices : 0;
    for (int r = 0; r < N_NEEDS; r++) {
        bool is_stated = false;
        for (int32_t z = 0; z < asking->node->n_zones; z++) {
            is_stated = is_stated || asking->size[z][r] != UNBOUNDED;
        }
        asking->need[r] = is_stated ? asking->need[r] : 0;
        for (int32_t z = 0; z < asking->node->n_zones && r == NEED_DEVICES && is_stated; z++) {
            if (asking->size[z][r] == UNBOUNDED) { /* The others have them all. */
                asking->size[z][r] = asking->free[z][r] = 0;
            }
        }
    }
}

static void grace_step(const struct cluster *cluster, int32_t task, int32_t at, enum view view,
                       struct asking *out)
{
    int32_t device = 0;
    *out = (struct asking){.node = &cluster->snapshot->nodes[at]};
    for (int32_t z = 0; z < out->node->n_zones; z++) {
        device = read_zone(cluster, at, z, device, view, out);
    }
    read_needs(cluster, task, out);
}

uint32_t zones_of_devices(const struct weir_sched_node *node, const int32_t *devices,
                          int32_t n_devices)
{
    uint32_t mask = 0;
    for (int32_t i = 0; i < n_devices; i++) {
        int32_t end = 0;
        for (int32_t z = 0; z < node->n_zones; z++) {
            int32_t first = end;
            end += WEIR_MAX(node->zones[z].n_devices, 0);
            mask |= devices[i] >= first && devices[i] < end ? 1U << z : 0;
        }
    }
    return mask;
}

/** The fewest zones whose sizes sum up to what is needed; 0: all together do not. */
static int32_t width_of(const struct asking *asking, enum need r)
{
    int64_t sum = 0;
    uint32_t used = 0;
    for (int32_t width = 1; width <= asking->node->n_zones; width++) {
        int32_t largest = -1;
        for (int32_t z = 0; z < asking->node->n_zones; z++) {
            if ((used >> z & 1) == 0 &&
                (largest < 0 || asking->size[z][r] > asking->size[largest][r])) {
                largest = z;
            }
        }
        used |= 1U << largest;
        sum += asking->size[largest][r];
        if (sum >= asking->need[r]) {
            return width;
        }
    }
    return 0;
}

/** @return The width that all that is needed has; 0: nothing is; -1: they differ. */
static int32_t common_width(const struct asking *asking)
{
    int32_t common = 0;
    for (int r = 0; r < N_NEEDS; r++) {
        int32_t width = asking->need[r] > 0 ? width_of(asking, (enum need)r) : common;
        if (asking->need[r] > 0 && (width == 0 || (common > 0 && width != common))) {
            return -1;
        }
        common = width;
    }
    return common;
}

static bool is_enough(const struct asking *asking, uint32_t mask)
{
    for (int r = 0; r < N_NEEDS; r++) {
        int64_t sum = 0;
        for (int32_t z = 0; z < asking->node->n_zones; z++) {
            sum += (mask >> z & 1) != 0 ? asking->free[z][r] : 0;
        }
        if (asking->need[r] > 0 && sum < asking->need[r]) {
            return false;
        }
    }
    return (asking->must & ~mask) == 0;
}

/** The first zones, so many of them, that have what is needed. */
static bool find_width(const struct asking *asking, int32_t width, uint32_t *out)
{
    int32_t n = asking->node->n_zones;
    for (uint32_t turned = (1U << n) - 1; turned > 0; turned--) { /* Its highest bit is zone 0. */
        uint32_t mask = 0;
        for (int32_t z = 0; z < n; z++) {
            mask |= (turned >> (n - 1 - z) & 1) << z;
        }
        if (__builtin_popcount(mask) == width && is_enough(asking, mask)) {
            *out = mask;
            return true;
        }
    }
    return false;
}

static int64_t cover(const struct asking *asking, const int64_t *rest, int32_t zone)
{
    int64_t sum = 0;
    for (int r = 0; r < N_NEEDS; r++) {
        sum += rest[r] > 0 ? WEIR_MIN(rest[r], asking->free[zone][r]) : 0;
    }
    return sum;
}

static bool find_best_effort(const struct asking *asking, uint32_t *out)
{
    int64_t rest[N_NEEDS];
    memcpy(rest, asking->need, sizeof rest);
    *out = 0;
    for (;;) {
        int32_t best = -1;
        if (rest[NEED_CPU] <= 0 && rest[NEED_MEMORY] <= 0 && rest[NEED_DEVICES] <= 0) {
            return true;
        }
        for (int32_t z = 0; z < asking->node->n_zones; z++) {
            int64_t covered = (*out >> z & 1) != 0 ? 0 : cover(asking, rest, z);
            best = covered > (best < 0 ? 0 : cover(asking, rest, best)) ? z : best;
        }
        if (best < 0) {
            return false;
        }
        *out |= 1U << best;
        for (int r = 0; r < N_NEEDS; r++) {
            rest[r] -= asking->free[best][r];
        }
    }
}

static bool find(const struct asking *asking, uint32_t *out)
{
    int32_t width = 1;
    switch (asking->node->numa_policy) {
    case WEIR_SCHED_NUMA_BEST_EFFORT:
        return find_best_effort(asking, out);
    case WEIR_SCHED_NUMA_RESTRICTED:
        width = common_width(asking);
        break;
    case WEIR_SCHED_NUMA_SINGLE:
    case WEIR_SCHED_NUMA_NONE:
        break;
    }
    if (width == 0) {
        *out = asking->must;
        return true;
    }
    return width > 0 && find_width(asking, width, out);
}

/** Draw what is needed, from the lowest of the zones first. @return Zones it takes anything of. */
static uint32_t draw(const struct asking *asking, uint32_t mask, int64_t (*out)[N_NEEDS])
{
    uint32_t drawn = 0;
    for (int r = 0; r < N_NEEDS; r++) {
        int64_t rest = asking->need[r];
        for (int32_t z = 0; z < asking->node->n_zones; z++) {
            bool is_last = mask >> z == 1;
            int64_t left = is_last ? rest : WEIR_MAX(asking->free[z][r], 0);
            out[z][r] = (mask >> z & 1) != 0 ? WEIR_MIN(left, rest) : 0;
            rest -= out[z][r];
            drawn |= out[z][r] > 0 ? 1U << z : 0;
        }
    }
    return drawn;
}

/** So many free devices of each zone. Who must wait leaves those that are free now to others. */
static void choose_devices(const struct cluster *cluster, int32_t at, const struct asking *asking,
                           enum view view, int64_t (*drawn)[N_NEEDS], int32_t *devices)
{
    const struct device_state *states = cluster->devices + cluster->nodes[at].first_device;
    int32_t first = 0, n = 0;
    for (int32_t z = 0; z < asking->node->n_zones; z++) {
        int64_t rest = drawn[z][NEED_DEVICES];
        int32_t end = first + WEIR_MAX(asking->node->zones[z].n_devices, 0);
        for (int turn = 0; turn < 2; turn++) {
            for (int32_t d = first; d < end && rest > 0; d++) {
                if (is_free(&states[d], view) && (states[d].now == 0) == (turn == 1)) {
                    devices[n++] = d;
                    rest--;
                }
            }
        }
        first = end;
    }
}

static bool do_fit(const struct cluster *cluster, int32_t task, int32_t at, enum view view)
{
    struct asking asking;
    uint32_t mask;
    if (!do_matter(cluster, task, at)) {
        return true;
    }
    grace_step(cluster, task, at, view, &asking);
    return asking.node->numa_policy == WEIR_SCHED_NUMA_BEST_EFFORT || find(&asking, &mask);
}

bool zones_fit_empty(const struct cluster *cluster, int32_t task, int32_t at)
{
    return do_fit(cluster, task, at, VIEW_EMPTY);
}

bool zones_fit_future(const struct cluster *cluster, int32_t task, int32_t at)
{
    return do_fit(cluster, task, at, VIEW_FUTURE);
}

bool zones_find(const struct cluster *cluster, int32_t task, int32_t at, bool is_now,
                int32_t *devices, uint32_t *out_zones, int32_t *out_span)
{
    enum view view = is_now ? VIEW_NOW : VIEW_FUTURE;
    int64_t drawn[ZONES_MAX][N_NEEDS];
    struct asking asking;
    uint32_t mask = 0;
    *out_zones = 0;
    *out_span = 0;
    if (!do_matter(cluster, task, at)) {
        return true;
    }
    grace_step(cluster, task, at, view, &asking);
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    if (demand->device_milli < WEIR_SCHED_DEVICE) {
        asking.must = zones_of_devices(asking.node, devices, demand->n_devices);
    }
    if (!find(&asking, &mask)) {
        *out_span = ZONES_NONE_DO;
        return asking.node->numa_policy == WEIR_SCHED_NUMA_BEST_EFFORT;
    }
    *out_zones = draw(&asking, mask, drawn) | asking.must;
    *out_span = WEIR_MAX(__builtin_popcount(*out_zones), 1);
    if (asking.need[NEED_DEVICES] > 0) {
        choose_devices(cluster, at, &asking, view, drawn, devices);
    }
    return true;
}

bool zones_hold(const struct cluster *cluster, int32_t at, uint32_t zones,
                const struct numa_allocation *numa, bool is_now)
{
    for (int32_t z = 0; zones >> z != 0; z++) {
        const struct weir_sched_numa_zone *given = &cluster->snapshot->nodes[at].zones[z];
        const struct zone_state *zone = &cluster->numa.zones[cluster->nodes[at].first_zone + z];
        struct numa_allocation sum = numa != NULL ? numa[z] : (struct numa_allocation){0};
        sum.cpu_milli += is_now ? zone->cpu_now : zone->cpu_future;
        sum.memory_bytes += is_now ? zone->memory_now : zone->memory_future;
        if ((zones >> z & 1) != 0 && (sum.cpu_milli > size_of(given->cpu_milli) ||
                                      sum.memory_bytes > size_of(given->memory_bytes))) {
            return false;
        }
    }
    return true;
}

void zones_allocate(const struct cluster *cluster, int32_t task, int32_t at, uint32_t zones,
                    bool is_now, struct numa_allocation *out)
{
    int64_t drawn[ZONES_MAX][N_NEEDS];
    struct asking asking;
    grace_step(cluster, task, at, is_now ? VIEW_NOW : VIEW_FUTURE, &asking);
    draw(&asking, zones, drawn);
    for (int32_t z = 0; z < asking.node->n_zones; z++) {
        out[z] = (struct numa_allocation){drawn[z][NEED_CPU], drawn[z][NEED_MEMORY]};
    }
}
