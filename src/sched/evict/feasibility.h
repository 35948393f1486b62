/**
 * What sums alone say about making room for a task, before anything is tried: whether what is free
 * on a node and what its victims hold there would be enough at all. Of a hundred nodes they leave
 * those worth a trial.
 *
 * Victims that may not be lost, as in consolidation or because their queue has no more than its
 * share, must move: of them only those count that fit somewhere now. Whoever fits nowhere could at
 * best change places with others that go, which leaves no more room than before: where all of a
 * gang goes, its members may take each other's places, so that one that could move, or shares of
 * devices, make all on its nodes count. What this rules out beyond what cannot succeed is that a
 * gang of whole devices changes places with a job that is larger in one resource and smaller in
 * another, or that two change places beside room of which neither fits.
 */
#ifndef WEIR_SCHED_FEASIBILITY_H
#define WEIR_SCHED_FEASIBILITY_H

#include "sched/place/place.h"

/** What tasks take of a node. */
struct feasibility_room {
    int64_t milli, cpu_milli, memory_bytes;
    int32_t n_tasks;
};

enum feasibility_verdict {
    FEASIBILITY_UNKNOWN,
    FEASIBILITY_SOME,
    FEASIBILITY_NONE,
};

/** What could become free on a node. */
struct reclaimable {
    struct feasibility_room of_useful; /**< Held by those that may be lost, or could move. */
    struct feasibility_room of_all;
    bool counts_all; /**< All count: a gang goes whose places elsewhere others could take. */
};

struct feasibility {
    struct cluster *cluster;
    struct placer *placer;
    struct reclaimable *reclaimable; /**< Per node: of those that could move. */
    int32_t *examples;               /**< Per shape a task of it. */
    uint8_t *is_movable;             /**< Per shape: fits somewhere. */
    bool *counts_all;                /**< Per node: some gang on it could be placed anew. */
    uint8_t *verdicts;               /**< Per shape: enum feasibility_verdict of consolidation. */
    int32_t *gangs, n_gangs;         /**< Jobs of several tasks that may be moved. */
    int64_t version; /**< Of the state (cluster.n_commits) that these are for; -1. */
};

weir_status feasibility_init(struct feasibility *feasibility, struct cluster *cluster,
                             struct placer *placer) WEIR_MUST_CHECK;
void feasibility_fini(struct feasibility *feasibility);

/** Count who could move, if the state has changed. Nothing may be held or uncommitted.
 *  Cost: tasks, and per shape a search for a node. */
void feasibility_update(struct feasibility *feasibility);

/** Whether the task fits nowhere now and moving others could not change that. `feasibility_update` was
 *  called since the last commit, and nothing is held if the answer is not known.
 *  Cost: nodes, once per shape. */
bool feasibility_rules_out(struct feasibility *feasibility, int32_t task);

bool feasibility_is_known(const struct feasibility *feasibility, int32_t task);

/** Count a victim on the node where it runs, or was to. May it be lost, or must it move? And does
 * more than one task go with it? */
void feasibility_count(const struct feasibility *feasibility, int32_t task, int32_t node,
                       bool may_lose, bool is_gang, struct reclaimable *gain);

/** Count what a task takes of a node as room. */
void feasibility_add(const struct cluster *cluster, int32_t task, int32_t node,
                     struct feasibility_room *room);

/** How many tasks like this one fit if `gains` (per node) were free beside what is, as far as sums
 *  go; counts no further than `most`. Cost: nodes. */
int64_t feasibility_count_fits(const struct cluster *cluster, int32_t task,
                               const struct reclaimable *reclaimable, int64_t most);

/** The same on one node. */
int64_t feasibility_count_on(const struct cluster *cluster, int32_t task, int32_t node,
                             const struct reclaimable *gain);

/** Whether the task could fit the node if `gain` were free beside what is: as far as sums go. */
bool feasibility_fits(const struct cluster *cluster, int32_t task, int32_t node,
                      const struct reclaimable *gain);

#endif
