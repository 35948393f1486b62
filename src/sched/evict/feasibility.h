/**
 * Feasibility bounds: what sums alone say about making room for a task, before anything is tried.
 * Would what is free on a node, together with what its victims hold there, be enough at all? Of a
 * hundred nodes that leaves those that are worth a trial.
 *
 * Victims that may not be lost must move: in consolidation, and of queues that have no more than
 * their share. Of them only those count that fit somewhere now. One that fits nowhere could at best
 * change places with others that go, which leaves no more room than before. Where all of a gang
 * goes, its members may take each other's places: so one member that could move, or a fractional
 * share, makes all count on its nodes.
 *
 * Two things that could succeed are ruled out as well: a gang of whole devices that changes places
 * with a job that is larger in one resource and smaller in another; and two jobs that change places
 * beside room of which neither fits.
 */
#ifndef WEIR_SCHED_FEASIBILITY_H
#define WEIR_SCHED_FEASIBILITY_H

#include "sched/place/place.h"

/** What tasks take of a node. */
struct feasibility_room {
    int64_t milli, cpu_milli, memory_bytes;
    int32_t n_tasks;
};

/** Whether moving others could make room for a shape. */
enum feasibility_verdict {
    FEASIBILITY_UNKNOWN,
    FEASIBILITY_SOME,
    FEASIBILITY_NONE,
};

/** What could become free on a node. */
struct reclaimable {
    struct feasibility_room of_useful; /**< Held by those that may be lost, or could move. */
    struct feasibility_room of_all;
    bool counts_all; /**< of_all counts: a gang goes whose rooms elsewhere others could take. */
};

struct feasibility {
    struct cluster *cluster;
    struct placer *placer;
    struct reclaimable *reclaimable; /**< Per node: of those that could move. */
    int32_t *examples;               /**< Per shape a task of it. */
    uint8_t *is_movable;             /**< Per shape: fits somewhere. */
    bool *counts_all;                /**< Per node: some gang on it could be placed again. */
    uint8_t *verdicts;               /**< Per shape: enum feasibility_verdict of consolidation. */
    int32_t *gangs, n_gangs;         /**< Jobs of several tasks that may be moved. */
    int64_t version; /**< Of the state (cluster.changes.n_commits) that these are for; -1. */
};

weir_status feasibility_init(struct feasibility *feasibility, struct cluster *cluster,
                             struct placer *placer) WEIR_MUST_CHECK;
void feasibility_fini(struct feasibility *feasibility);

/**
 * Count the tasks that could move, if the state has changed. Nothing may be held or uncommitted.
 * Cost: tasks, and per shape a search for a node.
 */
void feasibility_update(struct feasibility *feasibility);

/**
 * Whether the task fits nowhere now and moving others could not change that. Call
 * feasibility_update after the last commit. If the answer is not known, nothing may be held. Cost:
 * nodes, once per shape.
 */
bool feasibility_rules_out(struct feasibility *feasibility, int32_t task);

/** Whether feasibility_rules_out has its answer already. */
bool feasibility_is_known(const struct feasibility *feasibility, int32_t task);

/**
 * Add a victim to what is reclaimable on its node. `may_lose`: it need not move. `is_gang`: more
 * tasks go with it.
 */
void feasibility_count(const struct feasibility *feasibility, int32_t task, int32_t node,
                       bool may_lose, bool is_gang, struct reclaimable *gain);

/** Count what a task takes of a node as room. */
void feasibility_add(const struct cluster *cluster, int32_t task, int32_t node,
                     struct feasibility_room *room);

/**
 * How many tasks like this one fit by sums, if `reclaimable` (per node) were free beside what is.
 * Counts no further than `most`. Cost: nodes.
 */
int64_t feasibility_count_fits(const struct cluster *cluster, int32_t task,
                               const struct reclaimable *reclaimable, int64_t most);

/** The same on one node. */
int64_t feasibility_count_on(const struct cluster *cluster, int32_t task, int32_t node,
                             const struct reclaimable *gain);

/** Whether the task could fit the node by sums, if `reclaimable` were free beside what is. */
bool feasibility_fits(const struct cluster *cluster, int32_t task, int32_t node,
                      const struct reclaimable *gain);

#endif
