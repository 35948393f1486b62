/**
 * Give tasks their places: the best spot for one task, and a job's next tasks all together or not
 * at all, within the domains that its sub-groups ask for.
 */
#ifndef WEIR_SCHED_PLACE_H
#define WEIR_SCHED_PLACE_H

#include "sched/place/fits.h"
#include "sched/place/topology.h"

/** Nodes to choose from: all, or a list. */
struct place_nodes {
    const int32_t *list; /**< In order; NULL: all. */
    int32_t n;
    const int32_t *ranks; /**< Per node: smaller ones are preferred; NULL: all alike. */
};

struct placer {
    struct cluster *cluster;
    struct topology *topologies;
    int32_t *devices; /**< Two spots' worth of the largest node. */
    int32_t max_devices;
    struct place_nodes only; /**< Where to place; empty: anywhere. */
    bool future_only;        /**< Do not look for what is free already now. */
    bool pipeline_only; /**< Bind nothing: what is placed waits for what is being worked out. */
    void (*note_placed)(void *context, int32_t task); /**< Told of each place at once; NULL. */
    void *context;
};

weir_status placer_init(struct placer *placer, struct cluster *cluster) WEIR_MUST_CHECK;
void placer_fini(struct placer *placer);

/** Place these pending tasks of one job. On failure nothing has changed, and *wait (may be NULL)
 *  says what was missing. Tasks of a gang that would partly wait all wait. */
bool placer_place(struct placer *placer, int32_t job, const int32_t *tasks, int32_t n_tasks,
                  struct weir_sched_wait *wait);

/** The best spot for one task; spot->when FITS_NO if there is none. */
void placer_find(struct placer *placer, int32_t task, const struct place_nodes *nodes,
                 struct assignment *assignment);

#endif
