/**
 * What is to be done so that people see jobs as they are, and what they have deleted. Pure. For the driver's own files.
 *
 * A job's object lies at one place: in the namespace of its queue, under a name made of its identifier. To delete an object cancels
 * a job only if it lies there, and its status says that it is that job's: rights in one namespace reach no job of
 * another's.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_SHOWN_PLAN_H
#define WEIR_CLUSTER_KUBERNETES_SHOWN_PLAN_H

#include "cluster/kubernetes/shown_object.h"

#define SHOWN_KEPT_MS 3600000 /**< So long the object of a job that has ended is still there. */

enum shown_what {
    SHOWN_NOTHING,
    SHOWN_PUT,     /**< Make the object, or make it as it should be, and its status. */
    SHOWN_STATE,   /**< Its status alone. */
    SHOWN_RELEASE, /**< Take the finalizer off. */
    SHOWN_REMOVE,  /**< The same, and delete it. */
    SHOWN_REFUSE,  /**< Say in its status that it makes no job. */
    SHOWN_DELETED, /**< A person has deleted it: the job is to be cancelled. Nothing is asked. */
};

/** An object that is there. */
struct shown_there {
    const char *key;
    const struct shown_object *object;
};

/** A job that is to be shown. */
struct shown_told {
    const char *key; /**< NULL: there is no such job. */
    const struct weir_shown_job *job;
    uint64_t spec, status; /**< As they should be. */
};

struct shown_step {
    enum shown_what what;
    const char *key;
    const struct shown_told *told;     /**< NULL: it is no job's. */
    const struct shown_object *object; /**< NULL: it is not there. */
};

struct shown_view {
    const struct shown_there *there; /**< By key. */
    size_t n_there;
    const struct shown_told *told; /**< In any order. */
    size_t n_told;
    uint64_t server; /**< Ours (shown_server_hash). */
    int64_t now_ms;  /**< Since 1970. */
    /** The definition of WeirJobs is being deleted, and each of them with it: that says nothing of a job. */
    bool is_withdrawn;
};

/** Steps, by key, each of another object. In the arena, as *out_n of them. */
struct shown_step *shown_plan(const struct shown_view *view, struct weir_arena *arena,
                              size_t *out_n);

/** Is its job to be asked after: may it be another's, or not as it is any more? */
bool shown_is_open(const struct shown_object *object, uint64_t server);

#endif
