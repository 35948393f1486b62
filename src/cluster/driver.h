/**
 * Drivers: suppliers of nodes. A driver asks somebody who has machines (this machine itself; a cluster with its own
 * queue) for some of them, on which agents then register as nodes. It places no task: that is the planner's, which sees
 * an allocation's nodes as all others, until they end.
 *
 *     ops->check(options, arena, &missing, err)      what lacks here, by name
 *     ops->list(options, arena, &pools, &n, err)     what can be had
 *     ops->request(options, &request, err)           twice with one tag asks for nothing twice
 *     ops->poll(options, tag, arena, &allocation, err)
 *     ops->release(options, tag, err)
 *
 * Drivers are kinds (base/kind.h), each a file of this folder. All functions may take as long as the other side does, and
 * are called from a thread that may wait; never from the engine's.
 */
#ifndef WEIR_CLUSTER_DRIVER_H
#define WEIR_CLUSTER_DRIVER_H

#include "base/arena.h"
#include "base/kind.h"

/** Like nodes that can be had. Text lies in the caller's arena. */
struct weir_pool {
    const char *name;
    int64_t cpu_slots, memory_bytes, n_accelerators; /**< Of one node. */
    const char *accelerator;                         /**< Model of its accelerators; NULL: none. */
    int64_t max_nodes;                               /**< How many at a time; 0: nobody says. */
    double weight; /**< What one costs beside those of other pools; 1: as usual. */
};

struct weir_node_request {
    const char *tag; /**< [a-z0-9-], at most 63 bytes: names the allocation for ever. */
    const char *pool;
    int64_t n_nodes;
    int64_t time_ms; /**< For how long; 0: until they are released. */
};

enum weir_allocation_state {
    WEIR_ALLOCATION_PENDING, /**< It waits over there. */
    WEIR_ALLOCATION_RUNNING, /**< Its agents run, or are being started. */
    WEIR_ALLOCATION_ENDED,   /**< Its nodes are gone for good. */
};

/** Text lies in the caller's arena. */
struct weir_allocation {
    enum weir_allocation_state state;
    const char *why; /**< Why it waits, or how it ended; NULL: nobody says. */
    /** While it waits: when it is expected to start, since 1970; 0: nobody says. */
    int64_t starts_ms;
    /** While it runs: when its nodes end at the latest; 0: when they are released. */
    int64_t ends_ms;
    const char **nodes; /**< Names of its nodes, while it runs. */
    size_t n_nodes;
};

/** `ops` of a driver. `options` is the kind's struct. */
struct weir_driver_ops {
    /** Can this machine use it so? @param out_missing  What lacks, a sentence; NULL: nothing. */
    weir_status (*check)(const void *options, struct weir_arena *arena, const char **out_missing,
                         struct weir_error *err);
    /** What can be had. @return UNAVAILABLE if the other side does not answer. */
    weir_status (*list)(const void *options, struct weir_arena *arena, struct weir_pool **out,
                        size_t *out_n, struct weir_error *err);
    /** Ask for nodes, unless this tag has been asked for. @return NOT_FOUND without such a pool, LIMIT for more nodes than
     *  it has; the other side's errors. After an error the tag may or may not be known there: poll tells. */
    weir_status (*request)(const void *options, const struct weir_node_request *request,
                           struct weir_error *err);
    /** How it is. @return NOT_FOUND: nothing of this tag was asked for. */
    weir_status (*poll)(const void *options, const char *tag, struct weir_arena *arena,
                        struct weir_allocation *out, struct weir_error *err);
    /** Give the nodes back; what runs there is ended. Twice is harmless. */
    weir_status (*release)(const void *options, const char *tag, struct weir_error *err);
};

extern const struct weir_registry weir_drivers;

#define WEIR_KIND(name) extern const struct weir_kind weir_driver_##name;
#include "cluster/drivers.def"
#undef WEIR_KIND

#endif
