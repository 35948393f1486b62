/**
 * Placement: the best assignment for one task; and a job's next tasks all together or not at all,
 * within the domains that its sub-groups ask for.
 */
#ifndef WEIR_SCHED_PLACE_H
#define WEIR_SCHED_PLACE_H

#include "sched/place/fits.h"
#include "sched/place/topology.h"

/** The nodes to choose from: all, or a list. */
struct place_nodes {
    const int32_t *list; /**< In order; NULL: all. */
    int32_t n;
    const int32_t *ranks; /**< Per node: smaller ones are preferred; NULL: all alike. */
};

struct placer {
    struct cluster *cluster;
    struct topology *topologies;
    int32_t *devices; /**< Room for two assignments on the largest node. */
    int32_t max_devices;
    struct place_nodes only; /**< Where to place; empty: anywhere. */
    bool future_only;        /**< Do not look for what is free already now. */
    bool pipeline_only; /**< Bind nothing: what is placed waits for what is being worked out. */
    void (*note_placed)(void *context, int32_t task); /**< Called at each placement; NULL. */
    void *context;
};

weir_status placer_init(struct placer *placer, struct cluster *cluster) WEIR_MUST_CHECK;
void placer_fini(struct placer *placer);

/**
 * Place these pending tasks of one job. If a part of a gang would wait, all of it waits.
 * @param wait  Out, on failure: what was missing. May be NULL.
 * @return false: they have no placement, and nothing has changed.
 */
bool placer_place(struct placer *placer, int32_t job, const int32_t *tasks, int32_t n_tasks,
                  struct weir_sched_wait *wait);

/** Find the best assignment for one task; assignment->when is FITS_NO if there is none. */
void placer_find(struct placer *placer, int32_t task, const struct place_nodes *nodes,
                 struct assignment *assignment);

#endif
