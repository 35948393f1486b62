/**
 * Searches of an action that found nothing. A job that asks for no less need not be searched for.
 * Only jobs count whose tasks are all alike and need nothing of each other.
 */
#ifndef WEIR_SCHED_ATTEMPTS_H
#define WEIR_SCHED_ATTEMPTS_H

#include "sched/action/actions.h"

/**
 * A request that could not be helped. Another job of the queue that asks for as much cannot be
 * helped either.
 */
struct failure {
    bool is_set, is_fixed;
    int32_t shape, n_tasks, priority;
    int32_t job;    /**< If it matters which one it was; -1. */
    int64_t run_ms; /**< Longest run; INT64_MAX = unknown. */
    int32_t next;   /**< Of the same queue; -1. */
};

struct attempts {
    struct failure *last; /**< Per queue: its last failure, whatever happened since. */
    int32_t *first;       /**< Per queue: head of the list in `all`; -1. */
    struct failure *all;  /**< All in the state of this version. */
    int32_t n;
    int64_t version; /**< cluster.changes.n_commits. */
};

weir_status attempts_init(struct attempts *attempts, const struct cluster *cluster) WEIR_MUST_CHECK;
void attempts_fini(struct attempts *attempts);

/** What a job asks for. @return Whether it is one of those that count. */
bool attempts_describe(struct cycle *cycle, int32_t job, struct failure *out);

/** Whether a job that needs no less of the same queue has failed: the last one of the queue, or
 * one in the state as it is. */
bool attempts_have_failed(const struct cycle *cycle, const struct attempts *attempts, int32_t job,
                          const struct failure *request);

void attempts_note(const struct cluster *cluster, struct attempts *attempts, int32_t queue,
                   const struct failure *request);

#endif
