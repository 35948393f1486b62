/** What the files of demand.h share: a look, which is rows of the planner that nodes are added to. */
#ifndef WEIR_CONTROL_DEMAND_PRIVATE_H
#define WEIR_CONTROL_DEMAND_PRIVATE_H

#include "control/schedule/demand.h"

/** The taint of nodes that are thought of: only jobs that may ask for them tolerate it. */
#define DEMAND_ASK_KEY "weir/ask"

/** What stands behind the row of a node that is not there. */
struct thought {
    const struct weir_allocation *allocation; /**< It was asked for; NULL: it is thought of. */
    const struct weir_pool *pool;             /**< It is thought of; NULL: it was asked for. */
    int32_t union_with; /**< Nodes that belong to one gang: another's index, at last its own. */
    int64_t cpu_milli, memory_bytes;
    int64_t *taken; /**< What each of its devices gives, in thousandths; NULL: nothing. */
    int64_t n_devices, device_milli; /**< Those of which something is taken, and that in all. */
    /** What the first task there asks for, if all of the gang's are like it; NULL. */
    const struct weir_sched_demand *like;
    int32_t n_tasks;
    int32_t first_job; /**< Row; -1: nothing was placed there. */
    bool is_endless;   /**< A job of unknown length was placed there. */
    int64_t time_ms;   /**< The longest limit of those there. */
};

struct looking {
    struct snapshot *snapshot;
    const struct offers *offers;
    struct weir_sched_profile profile;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_sched_snapshot rows; /**< Copies that plans are applied to. */
    struct weir_sched_node *nodes;
    struct weir_sched_task *tasks;
    struct weir_sched_job *jobs;
    int32_t n_own; /**< Nodes that are there. */
    struct thought *thoughts;
    size_t nodes_cap;
    struct weir_sched_plan **plans; /**< What was placed points into them. */
    size_t n_plans;
    /** Per node that is there: index of its allocation; -1: it is of none that is open. */
    int32_t *allocation_of;
    int32_t *n_joined; /**< Per allocation: nodes of it that are there. */
    bool *is_needed;   /**< Per allocation: something runs, or is placed, on a node of it. */
    bool has_given_up; /**< Any allocation is given up now. */
    struct demand *out;
};

/* ---- demand.c -------------------------------------------------------------------------------- */

struct snapshot_job *demand_job_of(const struct looking *looking, int32_t row);
bool demand_is_state(const struct weir_allocation *allocation, const char *state);

/** Is it too late for nodes of it to join that have not? */
bool demand_is_late(const struct looking *looking, const struct weir_allocation *of);

/** Nodes of it that run never joined: it ends as failed, or is about to. */
bool demand_is_given_up(const struct looking *looking, const struct weir_allocation *of);

/** Are both of one size, and of nothing but CPUs, memory and devices? NULL is like nothing. */
bool demand_is_like(const struct weir_sched_demand *left, const struct weir_sched_demand *right);

/** Look again at this time, or earlier. */
void demand_look_again(struct looking *looking, int64_t at_ms);

/** Add a row. There is room for nodes_cap rows. */
void demand_think_of(struct looking *looking, const struct weir_sched_node *node,
                     const struct thought *thought);

/** Plan, and apply to the rows what is bound. @return As weir_sched_plan. */
weir_status demand_plan(struct looking *looking, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- demand_pools.c: what may be asked for --------------------------------------------------- */

/** Where the job of a row may run. */
struct offers_where demand_where(const struct looking *looking, int32_t row);

/** What the job of a row wants of its pods (ask.h); NULL: nothing. */
const char *demand_pod(const struct looking *looking, int32_t row);

/** Has a cluster what the job of a row wants of its pods? */
bool demand_can_be(const struct looking *looking, int32_t row, const char *cluster);

/** When the job of a row has waited long enough for a cluster. */
int64_t demand_due_ms(const struct looking *looking, int32_t row, const struct offers_where *where,
                      const struct weir_cluster *cluster);

/** NULL: none of late. */
const struct offers_refusal *demand_refusal(const struct looking *looking, const char *job,
                                            const struct weir_pool *pool);

/** When a pool is asked again for a job that it refused. */
int64_t demand_again_ms(const struct offers_refusal *refusal);

/** How many more nodes of a pool may be asked for. */
int64_t demand_n_left(const struct looking *looking, const struct weir_pool *pool);

/** Add nodes, pool by pool, and keep those that something is placed on. @return As weir_sched_plan. */
weir_status demand_think_of_pools(struct looking *looking, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- demand_take.c, demand_tell.c: what comes of it ------------------------------------------ */

/** Fill in `wanted` of the result. */
void demand_take_wanted(struct looking *looking);

/** Fill in `idle`, `needed`, `over` and `missing`. */
void demand_judge(struct looking *looking);

/** Fill in `waits`, for jobs that waited before the plans. */
void demand_tell(struct looking *looking, const struct weir_sched_snapshot *before);

#endif
