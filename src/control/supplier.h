/**
 * Supplier: makes what was asked of clusters so (job/cluster.h).
 *
 * Each cluster has a thread of its own, which may wait for it: one that is silent holds up no other, and none the engine.
 * A thread looks once a second, and when it is told to: it asks the cluster how all of its allocations are, in one
 * question; asks for those that are wanted; gives back those that are releasing; and writes what it learned, with
 * what follows for nodes and jobs, in one transaction. Once a minute it looks whether the configuration is right and what can
 * be had.
 *
 * That an allocation is asked for is written before it is: killed between the two, the next thread asks the
 * cluster for its tag first, so that nothing is asked for twice. While a cluster is silent its allocations stay as they are.
 */
#ifndef WEIR_CONTROL_SUPPLIER_H
#define WEIR_CONTROL_SUPPLIER_H

#include "base/clock.h"
#include "base/kind.h"
#include "cluster/driver.h"
#include "control/control.h"
#include "job/cluster.h"

struct supplier;

/** The record of a pool that a cluster offers; "": of one that is not stored yet. Text is theirs, or in the arena. Pure. */
struct weir_pool supplier_pool(const char *cluster, const struct weir_pool_offer *offer,
                               struct weir_arena *arena);

struct supplier_config {
    struct weir_store *store;
    struct control_listener listener; /**< Copied. */
    /** The engine should look. Called on the suppliers' threads. May be NULL. */
    void (*changed)(void *context);
    void *changed_context;
    const struct weir_registry *drivers; /**< NULL: weir_drivers. */
    const struct weir_clock *clock;      /**< NULL: the system's. */
    const char *state_dir;               /**< Copied. */
    const char *server_url; /**< Copied; for clusters that have none among their options. */
    const char *ca_file;    /**< Copied; for their agents; NULL: the system's. */
    int64_t look_ms;        /**< From one look to the next; 0: a second. */
};

/** Start the threads. */
weir_status supplier_start(const struct supplier_config *config, struct supplier **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Look again soon. Any thread. NULL is accepted. */
void supplier_notify(struct supplier *supplier);

/** End the threads, when what they ask of clusters now is answered; and free it. Allocations go on. NULL is accepted. */
void supplier_stop(struct supplier *supplier);

#endif
