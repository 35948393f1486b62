/**
 * The ledger: where the tasks of a replay run, and what is left on each node. It is a second
 * account beside the scheduler's, and refuses what is taken. It also has the labels by which tasks
 * that name models find their nodes: a selector holds one value, a trace may name several models.
 */
#ifndef WEIR_SIM_LEDGER_H
#define WEIR_SIM_LEDGER_H

#include "sim/timeline.h"

struct ledger_job {
    int32_t *tasks; /**< Per task: node or -1, then its devices. NULL: not in the cluster. */
};

struct ledger_model {
    const char *text; /**< "A|B" as the trace has it. */
    struct weir_sched_label selector;
};

struct ledger {
    const struct timeline *timeline;
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

/**
 * Begin an empty ledger. Borrows the timeline; ledger_fini frees. LIMIT: too many distinct models.
 */
weir_status ledger_init(struct ledger *ledger, const struct timeline *timeline,
                        const struct weir_sim_cluster *cluster,
                        struct weir_error *err) WEIR_MUST_CHECK;
void ledger_fini(struct ledger *ledger);

/** Add a job, with no tasks placed; or remove it, after its tasks were freed. */
void ledger_open(struct ledger *ledger, int32_t job);
void ledger_close(struct ledger *ledger, int32_t job);

/** The node of a task, -1 if it has none; and its devices there. */
int32_t ledger_node(const struct ledger *ledger, int32_t job, int32_t task);
const int32_t *ledger_devices(const struct ledger *ledger, int32_t job, int32_t task);

/** Whether all that an action places is free at this moment. */
bool ledger_is_free(const struct ledger *ledger, int32_t job, int32_t task,
                    const struct weir_sched_action *action);

/**
 * Place a task. INTERNAL, naming job and node, if something of it is taken or the task has a node
 * already.
 */
weir_status ledger_take(struct ledger *ledger, int32_t job, int32_t task,
                        const struct weir_sched_action *action,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Take a task from its node; nothing happens if it has none. */
void ledger_free(struct ledger *ledger, int32_t job, int32_t task);

/** The selector of a task that names models; NULL for NULL. */
const struct weir_sched_label *ledger_selector(const struct ledger *ledger, const char *models);

#endif
