/**
 * Supply: what one node offers to the planner beside CPUs and memory: devices, labels and taints,
 * read from the texts of its record and read again only when one of them has changed.
 *
 * The planner knows devices of one model and size per node, which it numbers without gaps; here they
 * are called *slots*. A device has a slot if it is ok, whole, not cut into MIG slices, and nobody
 * has left something of it (job/task_device.h). If a node has several models, the most numerous one
 * has slots, and devices of the others are given to nobody. MIG slices have no slots: the planner
 * counts them by profile.
 *
 * Beside the node's own labels stand weir/node, its name, weir/cluster, its supplier, weir/accelerator, the model,
 * and weir/images, if it starts tasks in images.
 *
 * Owned by the snapshot's thread. Memory: aborts if there is none.
 */
#ifndef WEIR_CONTROL_SUPPLY_H
#define WEIR_CONTROL_SUPPLY_H

#include "base/arena.h"
#include "job/job.h"
#include "sched/sched.h"

#define SUPPLY_LABEL_NODE  "weir/node"
#define SUPPLY_LABEL_MODEL "weir/accelerator"

/** Labels and taints of a node that count; more are not looked at. */
#define SUPPLY_MARKS_MAX 96

struct supply_device {
    int64_t idx, memory_bytes, parent;
    const char *kind, *model, *profile, *state; /**< "" for what is not told. */
    int32_t slot;                               /**< -1: none. */
    int32_t held_milli;                         /**< Given to tasks. */
    bool is_left;
};

struct supply {
    struct weir_arena arena; /**< Holds all below; empty as long as there is nothing to know. */
    const char *cluster;     /**< That supplied the node; NULL: it joined by itself. */
    const char *allocation;  /**< The one that the node belongs to; NULL. */
    const char *texts[3];    /**< Accelerators, labels and taints as they were read; NULL. */
    struct supply_device *devices; /**< By index. */
    int32_t n_devices;
    int32_t n_unfit;      /**< Devices that are bad or gone. */
    const char *model;    /**< The model of the slots, or of what is cut into slices; NULL: none. */
    int64_t memory_bytes; /**< A slot's, as a whole. */
    int32_t device_milli; /**< What of each slot is the node's, in thousandths. */
    int64_t *slots;       /**< Index of the device of each slot. */
    int32_t n_slots;
    struct weir_sched_label *labels;
    struct weir_sched_taint *taints;
    struct weir_sched_extra *extras; /**< Free and held slices by profile. */
    int32_t n_labels, n_taints, n_extras;
};

void supply_init(struct supply *supply);
void supply_fini(struct supply *supply);

/** Take over what the node's record says. @return It is something new. */
bool supply_read(struct supply *supply, const struct weir_node *node);

/** The same texts? */
bool supply_is_of(const struct supply *supply, const struct weir_node *node);

/** Nothing is left of any device; then those of which something is; then number the slots. */
void supply_clear_left(struct supply *supply);
void supply_mark_left(struct supply *supply, int64_t idx);
void supply_number(struct supply *supply);

/** By its index; NULL: it is gone and forgotten. */
struct supply_device *supply_device(const struct supply *supply, int64_t idx);

/** The task has, or gets, its part of this device. */
void supply_hold(struct supply *supply, int64_t idx, const struct weir_task *task);

/** What a task's part of a device is, in thousandths, rounded up. */
int64_t supply_milli_of(const struct weir_task *task, const struct supply_device *device);

/** Can it be given, were it free? */
bool supply_device_is_fit(const struct supply_device *device);

/** Has the node all these labels? */
bool supply_has_labels(const struct supply *supply, const struct weir_sched_label *labels,
                       int32_t n);

/** The part of the planner's row that follows from it. */
void supply_fill(const struct supply *supply, struct weir_sched_node *row);

#endif
