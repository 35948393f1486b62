/**
 * The actions of a cycle, all on one state. Each returns with everything committed or undone; its
 * status is the cluster's.
 */
#ifndef WEIR_SCHED_ACTIONS_H
#define WEIR_SCHED_ACTIONS_H

#include "sched/evict/solver.h"
#include "sched/forecast/backfill.h"
#include "sched/place/place.h"

/**
 * What a queue is owed after action_allocate: the tasks of those of its jobs that ask for no more
 * than its quota and found no room.
 */
struct owed {
    int32_t job; /**< The first of them; -1: none. */
    struct weir_sched_amount amount;
};

/** What the actions of one cycle share. */
struct cycle {
    struct cluster cluster;
    struct placer placer;
    struct solver solver;
    struct backfill backfill;
    int32_t *tasks;         /**< Room for one job's tasks. */
    bool *is_listed;        /**< Per job. */
    bool *is_withheld;      /**< Per job: it would take what its queue owes an earlier one. */
    struct owed *owed;      /**< Per queue. */
    int32_t *first_waiting; /**< Per leaf queue: its first waiting job; -1. */
    uint8_t *runs;          /**< Per job: enum solver_victim, whoever asks, */
    int64_t runs_version;   /**< in the state of cluster.changes.n_commits; -1: not known. */
    bool has_taken_lent;    /**< In this cycle a job took what is lent, because of its age. */
};

typedef weir_status action_fn(struct cycle *cycle);

/** Allocate: give what is free. */
action_fn action_allocate;

/** Consolidation: move preemptible work together so that waiting jobs fit. */
action_fn action_consolidate;

/** Reclaim: take from queues above their share for queues below it. */
action_fn action_reclaim;

/** Preempt: take from lower priority of the same queue. */
action_fn action_preempt;

/** End gangs that are below their minimum for too long. */
action_fn action_evict_stale;

/** End jobs that run for longer than their time limit. */
action_fn action_end_over_time;

/** Take devices back that are idle for too long. */
action_fn action_end_idle;

/**
 * Place a job's next tasks in what evictions have freed beyond their need, now or when it is free,
 * if the room is guaranteed to them.
 * @return Whether they have a placement.
 */
bool action_give_rest_to(struct cycle *cycle, int32_t job);

/**
 * At the end: give what is still free to the jobs that were withheld while room was made for an
 * earlier job of their queue.
 */
action_fn action_allocate_withheld;

/** At the end, if anything was evicted: action_give_rest_to for all that wait, in their order. */
action_fn action_give_rest;

/** At the end: bind what was to wait for work that did not start after all. */
action_fn action_bind_ready;

/** Mark in cycle->is_listed the jobs that have pending tasks which could start together. */
void action_list_waiting(struct cycle *cycle);

/** Whether the cycle ends the job because of its time limit. */
bool action_is_over_time(const struct cluster *cluster, int32_t job);

/** The action of this name, or NULL. */
action_fn *action_named(const char *name, size_t len);

#endif
