/**
 * Calls: what is asked of the API server beside the planning, several at a time, each by a client of its own. Bindings and
 * evictions go before what is only told. For the scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_CALLS_H
#define WEIR_CLUSTER_KUBERNETES_CALLS_H

#include "kube/client.h"

#define CALLS_AT_ONCE 8
#define CALLS_MAX                                                                                  \
    20000 /**< That wait; what is more is refused, and asked for again by a later cycle. */

enum calls_kind {
    CALLS_BIND,
    CALLS_CLAIM, /**< A claim of a volume is to be bound. */
    CALLS_EVICT,
    CALLS_RESERVE, /**< Have a pod hold a device (reservation.h). */
    CALLS_RELEASE, /**< Have it let go. */
    CALLS_REPORT,  /**< What that pod printed. */
    CALLS_SAY,     /**< In a pod's conditions. */
    CALLS_EVENT,
};

struct calls_one {
    enum calls_kind kind;
    const char *uid;   /**< The pod that it is about, or the name of a group. */
    const char *about; /**< The uid of a group's pod, a claim or a volume (settle.h); NULL. */
    const char *method, *path, *query, *content_type;
    json_t *body; /**< Taken. */
    /** Asked first, on the same thread, with `with` (taken); if that fails the rest is not asked. NULL: nothing is. */
    weir_status (*before)(struct weir_kube *kube, const json_t *with, struct weir_arena *arena,
                          struct weir_kube_refusal *refusal, struct weir_error *err);
    json_t *with;
    /* For `done` alone. */
    bool has_failed_before;
    const json_t *answer; /**< What was answered to a report. */
};

struct calls;

struct calls_config {
    const struct weir_kube_config *kube; /**< Copied by the clients. */
    /** It was answered, or not. On a thread of the calls'. */
    void (*done)(void *context, const struct calls_one *one, weir_status status,
                 const struct weir_kube_refusal *refusal, const struct weir_error *err);
    void *context;
};

weir_status calls_start(const struct calls_config *config, struct calls **out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** End the threads, at once; what waits is dropped. NULL is accepted. */
void calls_stop(struct calls *calls);

/** Ask. Texts are copied. @return False, and the body is released: too many wait. Any thread. */
bool calls_ask(struct calls *calls, const struct calls_one *one);

#endif
