/**
 * The fill experiment, by which placement rules are compared (FGD, Weng et al., ATC'23). The tasks
 * of a trace, and tasks drawn from it with replacement until all ask for 130 % of the cluster's
 * devices, are shuffled and placed one after the other. Nothing leaves; a task without a placement
 * is dropped. The result is how much of the devices is allocated when so much has arrived.
 *
 * The whole sequence is one plan: jobs of one queue in order of arrival, the action "allocate"
 * alone.
 */
#ifndef WEIR_SIM_FILL_H
#define WEIR_SIM_FILL_H

#include "sched/sched.h"
#include "sim/cluster_file.h"
#include "sim/trace.h"

#define WEIR_SIM_FILL_PCT 130

/** The result for one seed. */
struct weir_sim_fill {
    double allocated_pct[WEIR_SIM_FILL_PCT + 1]; /**< By arrived load, 0 … 130 %. */
    int32_t n_tasks, n_dropped;
};

/**
 * Run the experiment once.
 *
 * @param profile  Its placement rules are used; its actions are not.
 * @param seed     Decides what is drawn and the order.
 * @return INVALID: the trace asks for no device, or has jobs of several tasks; INTERNAL: the plan
 *         gives something away twice. *out is unchanged on error.
 *
 * Cost: one plan of all tasks.
 */
weir_status weir_sim_fill(const struct weir_sim_trace *trace,
                          const struct weir_sim_cluster *cluster,
                          const struct weir_sched_profile *profile, uint64_t seed,
                          struct weir_sim_fill *out, struct weir_error *err) WEIR_MUST_CHECK;

#define WEIR_SIM_POLICIES_MAX 16

/**
 * What the authors measured for other rules: allocation at 100 % and 130 % arrived load, mean over
 * seeds.
 */
struct weir_sim_published {
    struct {
        char name[32];
        double at_100, at_130;
        int32_t n_seeds;
    } policies[WEIR_SIM_POLICIES_MAX];

    int32_t n_policies;
};

/**
 * Read the authors' table (columns workload, sc_policy, seed, 100, 130).
 *
 * @param workload  "openb_pod_list_default". If the table does not have it, there are no policies.
 * @return INVALID: source, line, column and what was expected. *out is unchanged on error.
 */
weir_status weir_sim_published_parse(const char *text, size_t len, const char *what,
                                     const char *workload, struct weir_sim_published *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
