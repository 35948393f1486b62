/** The traces of fgd-allocation: nodes, tasks, and the allocation that the authors of FGD measured.
 */
#ifndef WEIR_SCHED_FGD_ALLOCATION_OPENB_H
#define WEIR_SCHED_FGD_ALLOCATION_OPENB_H

#include "base/arena.h"
#include "sched/snapshot.h"

struct openb_node {
    char *name, *model;
    int64_t cpu_milli, memory_bytes;
    int32_t n_devices;
};

struct openb_task {
    char *name, *models; /**< "A|B": any of them; empty: all. */
    int64_t cpu_milli, memory_bytes;
    int32_t n_devices, device_milli;
};

struct openb_nodes {
    struct openb_node *all;
    int32_t n;
    int64_t milli; /**< Of devices, in all. */
};

struct openb_tasks {
    struct openb_task *all;
    int32_t n;
};

/** What a policy allocated of a trace, in percent of all devices, mean of its seeds. */
struct openb_expected {
    double at_100, at_130;
    int n_seeds;
};

weir_status openb_read_nodes(const char *path, struct weir_arena *arena, struct openb_nodes *out,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status openb_read_tasks(const char *path, struct weir_arena *arena, struct openb_tasks *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** n_seeds is 0 if the file has nothing of the trace. */
weir_status openb_read_expected(const char *path, const char *trace, struct weir_arena *arena,
                                struct openb_expected *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
