/**
 * Clusters: records of those that supply nodes, beside the ones that join by themselves.
 *
 * A *cluster* is somebody else's queue for machines: a driver (cluster/driver.h) and its options. Its *pools* are
 * the shapes of node that can be had there. An *allocation* is a number of nodes of one pool that was asked for
 * under its id, for ever: its row is written before it is asked for, and what it says is what should be, which the
 * control plane's supplier (control/supplier.h) makes so. Its nodes join as nodes that end.
 *
 *     wanted ──asked for→ pending ──they run→ running ──idle, or cancelled→ releasing ──→ ended
 *        └──────────────────┴───────────────────┴──refused, taken, failed, over──────────→ ended
 *
 * Nothing goes back: an allocation that ended is followed by another one.
 */
#ifndef WEIR_JOB_CLUSTER_H
#define WEIR_JOB_CLUSTER_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_CLUSTERS_MAX         64
#define WEIR_POOLS_MAX            256   /**< One cluster has no more. */
#define WEIR_ALLOCATIONS_OPEN_MAX 10000 /**< All clusters together. */

/** The cluster, in lists of names, of the nodes that joined by themselves. */
#define WEIR_CLUSTER_OWN "local"

extern const struct weir_resource weir_cluster_resource;
extern const struct weir_resource weir_pool_resource;
extern const struct weir_resource weir_allocation_resource;

#define WEIR_CLUSTER_NEW    "new"    /**< It was not asked yet. */
#define WEIR_CLUSTER_READY  "ready"  /**< What it was asked last it answered. */
#define WEIR_CLUSTER_WRONG  "wrong"  /**< Something lacks: `said`. Nothing new is asked for. */
#define WEIR_CLUSTER_SILENT "silent" /**< It does not answer: what is known of it is old. */

struct weir_cluster {
    char *name;
    char *driver;     /**< One of weir_drivers. */
    char *options;    /**< JSON, as the driver reads them. */
    bool is_draining; /**< Nothing new is asked for. */
    int64_t after_ms; /**< A job has waited so long before nodes are asked for it here. */
    int64_t idle_ms;  /**< Nodes that nothing has run on for so long are given back. */
    /** Nodes are asked for so long if no job says how long it runs; 0: as long as may be. */
    int64_t time_ms;
    int64_t max_nodes;  /**< At a time; 0: no bound of Weir's. */
    char *state, *said; /**< WEIR_CLUSTER_…, and why; the supplier's. */
    int64_t heard_ms;   /**< Its last answer; 0: none yet. */
    char *created_by;
    int64_t created_ms;
};

struct weir_pool {
    char *id; /**< "CLUSTER/NAME". */
    char *cluster, *name;
    int64_t cpu_slots, memory_bytes, n_accelerators; /**< One node has them. */
    char *accelerator;                               /**< Model; NULL: none, or not told. */
    int64_t accelerator_parts;      /**< Into how many one can be had; 0: whole ones only. */
    int64_t max_nodes, time_max_ms; /**< 0: nobody says. */
    double weight;
    /** CPUs of its nodes that are in use there, also by others; -1: nobody says. */
    int64_t cpus_busy;
    char *why; /**< Why none can be had now; NULL: they can. */
};

#define WEIR_ALLOCATION_WANTED    "wanted"
#define WEIR_ALLOCATION_PENDS     "pending"
#define WEIR_ALLOCATION_RUNS      "running"
#define WEIR_ALLOCATION_RELEASING "releasing"
#define WEIR_ALLOCATION_OVER      "ended"

struct weir_allocation {
    char *id; /**< Also the tag over there: "CLUSTER-1f9a03c2". */
    char *cluster, *pool;
    char *state;
    char *their_id; /**< What it is called over there; NULL: not told. */
    char *job;      /**< The first that it was asked for. */
    char *project;  /**< That job's. */
    char *queue;    /**< It says which account pays over there; NULL: the cluster's own does. */
    int64_t n_nodes;
    int64_t cpu_slots, memory_bytes, n_accelerators; /**< Each node has at least so much. */
    int64_t accelerator_milli; /**< What of each accelerator, in thousandths; 0: all of it. */
    char *accelerator;
    char *pod;       /**< What jobs want of its pods: JSON (framework/pod.h); NULL: nothing. */
    int64_t time_ms; /**< Asked for so long; 0: until it is released. */
    char *nodes;     /**< JSON list: what they are called over there; NULL. */
    char *said;      /**< State or reason in the words of the other side; NULL. */
    char *why;       /**< Why it waits, or how it ended; NULL. */
    /** "released", "time", "preempted", "cancelled", "failed", "refused"; NULL: it has not ended. One that is
     *  given up says "failed" before. */
    char *ending;
    /** A node of it that takes nothing new over there, and what they say of it; NULL: all do. */
    char *closed;
    int64_t starts_ms; /**< While it waits: expected over there; 0: nobody says. */
    int64_t ends_ms;   /**< While it runs: at the latest; 0: when it is released. */
    int64_t created_ms, asked_ms, started_ms, idle_since_ms, ended_ms; /**< 0: not (yet). */
};

/** Counts up with every change of a cluster, a pool or an allocation: a copy is read again when it has. */
weir_status weir_cluster_revision(struct weir_txn *txn, int64_t *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** All clusters, by name. */
weir_status weir_cluster_list(struct weir_txn *txn, struct weir_arena *arena,
                              struct weir_cluster **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Insert a cluster, or write all of one that is there but what the supplier knows of it. @return LIMIT. */
weir_status weir_cluster_set(struct weir_txn *txn, const struct weir_cluster *cluster,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** What the supplier found: state, said, heard_ms. A cluster that is gone is none. */
weir_status weir_cluster_note(struct weir_txn *txn, const struct weir_cluster *cluster,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND; CONFLICT while allocations of it have not ended, naming how many. Its pools go with it. */
weir_status weir_cluster_remove(struct weir_txn *txn, const char *name,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The pools of a cluster are these n; others of it go. */
weir_status weir_pools_put(struct weir_txn *txn, const char *cluster, const struct weir_pool *pools,
                           size_t n, struct weir_error *err) WEIR_MUST_CHECK;

/** All pools, by cluster and name; of one cluster, or NULL: of all. */
weir_status weir_pool_list(struct weir_txn *txn, const char *cluster, struct weir_arena *arena,
                           struct weir_pool **out, size_t *out_n,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Allocations that have not ended, by cluster and id; of one cluster, or NULL: of all. */
weir_status weir_allocation_list_open(struct weir_txn *txn, const char *cluster,
                                      struct weir_arena *arena, struct weir_allocation **out,
                                      size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** Those a node of which takes nothing new over there. */
weir_status weir_allocation_list_closed(struct weir_txn *txn, struct weir_arena *arena,
                                        struct weir_allocation **out, size_t *out_n,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/** A new one: state and times are set here. @return LIMIT: WEIR_ALLOCATIONS_OPEN_MAX are open. */
weir_status weir_allocation_insert(struct weir_txn *txn, const struct weir_allocation *allocation,
                                   int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** Note that one is asked for now: before it is. @return CONFLICT: it is not wanted (any more); NOT_FOUND. */
weir_status weir_allocation_begin(struct weir_txn *txn, const char *id, int64_t now_ms,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Write what its cluster says of one: all fields but id, cluster, created_ms, and idle_since_ms. An end is for ever: a
 *  row that has ended is not changed; and one that was released meanwhile stays so until it ends. */
weir_status weir_allocation_save(struct weir_txn *txn, const struct weir_allocation *allocation,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Note since when nothing needs one; 0: something does. A row that is gone is none. */
weir_status weir_allocation_note_idle(struct weir_txn *txn, const char *id, int64_t since_ms,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** Give one back: releasing; one that was not asked for yet has ended. One that is releasing or over stays as it is.
 *  @return NOT_FOUND. */
weir_status weir_allocation_release(struct weir_txn *txn, const char *id, const char *why,
                                    int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** The same of one that did not become what it should: it ends as failed. */
weir_status weir_allocation_give_up(struct weir_txn *txn, const char *id, const char *why,
                                    int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** The names of the nodes of an allocation that are part of the cluster. */
weir_status weir_allocation_nodes(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                                  char ***out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
