/**
 * Where the tasks of a replay run, and what is left on each node: a second account beside the
 * scheduler's, which refuses a place that is taken. Also the labels by which tasks that name models
 * find their nodes: a selector holds one value, a trace may name several models.
 */
#ifndef WEIR_SIM_SPOTS_H
#define WEIR_SIM_SPOTS_H

#include "sim/engine.h"

struct spots_job {
    int32_t *tasks; /**< Per task: node or -1, then its devices. NULL: not in the cluster. */
    bool is_touched;
    bool is_put_off; /**< In this cycle: a place that a plan keeps for it is still taken. */
};

struct spots_model {
    const char *text; /**< "A|B" as the trace has it. */
    struct weir_sched_label selector;
};

struct spots {
    const struct engine *engine;
    struct weir_sched_node *nodes; /**< The cluster's, with labels for models. */
    int32_t n_nodes;
    struct spots_job *jobs; /**< As in the trace. */
    int32_t *first_device;  /**< Per node, in taken_milli. */
    int32_t *taken_milli;   /**< Per device. */
    int64_t parts_milli;    /**< Free of devices of which something is taken. */
    int64_t *free_cpu, *free_memory;
    struct spots_model *models;
    int32_t n_models;
};

weir_status spots_init(struct spots *spots, const struct engine *engine,
                       const struct weir_sim_cluster *cluster,
                       struct weir_error *err) WEIR_MUST_CHECK;
void spots_fini(struct spots *spots);

/** A job comes, with no places yet; or goes, its places given back before. */
void spots_open(struct spots *spots, int32_t job);
void spots_close(struct spots *spots, int32_t job);

/** Node of a task, -1 if it has none; and its devices there. */
int32_t spots_node(const struct spots *spots, int32_t job, int32_t task);
const int32_t *spots_devices(const struct spots *spots, int32_t job, int32_t task);

/** Whether a place is free at this moment; one that is none is not. */
bool spots_is_free(const struct spots *spots, int32_t job, int32_t task,
                   const struct weir_sched_action *action);

/** @return INTERNAL, naming job and node, if the place is not free or the task has one. */
weir_status spots_take(struct spots *spots, int32_t job, int32_t task,
                       const struct weir_sched_action *action,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Give a task's place back; nothing if it has none. */
void spots_free(struct spots *spots, int32_t job, int32_t task);

/** What a task that names models asks of its node; NULL for NULL. */
const struct weir_sched_label *spots_selector(const struct spots *spots, const char *models);

#endif
