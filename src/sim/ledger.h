/**
 * Where the tasks of a replay run, and what is left on each node: a second account beside the
 * scheduler's, which refuses a place that is taken. Also the labels by which tasks that name models
 * find their nodes: a selector holds one value, a trace may name several models.
 */
#ifndef WEIR_SIM_LEDGER_H
#define WEIR_SIM_LEDGER_H

#include "sim/engine.h"

struct ledger_job {
    int32_t *tasks; /**< Per task: node or -1, then its devices. NULL: not in the cluster. */
};

struct ledger_model {
    const char *text; /**< "A|B" as the trace has it. */
    struct weir_sched_label selector;
};

struct ledger {
    const struct engine *engine;
    struct weir_sched_node *nodes; /**< The cluster's, with labels for models. */
    int32_t n_nodes;
    struct ledger_job *jobs; /**< As in the trace. */
    int32_t *first_device;   /**< Per node, in taken_milli. */
    int32_t *taken_milli;    /**< Per device. */
    int64_t parts_milli;     /**< Free of devices of which something is taken. */
    int64_t *free_cpu, *free_memory;
    struct ledger_model *models;
    int32_t n_models;
};

weir_status ledger_init(struct ledger *ledger, const struct engine *engine,
                        const struct weir_sim_cluster *cluster,
                        struct weir_error *err) WEIR_MUST_CHECK;
void ledger_fini(struct ledger *ledger);

/** A job comes, with no places yet; or goes, its places given back before. */
void ledger_open(struct ledger *ledger, int32_t job);
void ledger_close(struct ledger *ledger, int32_t job);

/** Node of a task, -1 if it has none; and its devices there. */
int32_t ledger_node(const struct ledger *ledger, int32_t job, int32_t task);
const int32_t *ledger_devices(const struct ledger *ledger, int32_t job, int32_t task);

/** Whether a place is free at this moment; one that is none is not. */
bool ledger_is_free(const struct ledger *ledger, int32_t job, int32_t task,
                    const struct weir_sched_action *action);

/** @return INTERNAL, naming job and node, if the place is not free or the task has one. */
weir_status ledger_take(struct ledger *ledger, int32_t job, int32_t task,
                        const struct weir_sched_action *action,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Give a task's place back; nothing if it has none. */
void ledger_free(struct ledger *ledger, int32_t job, int32_t task);

/** What a task that names models asks of its node; NULL for NULL. */
const struct weir_sched_label *ledger_selector(const struct ledger *ledger, const char *models);

#endif
