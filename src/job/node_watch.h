/**
 * When a node that says nothing is lost, and when it is the server that does not hear.
 *
 * Agents report every 5 s. A node that was not heard of for two thirds of the node time-out is silent,
 * and after all of it (15 s unless somebody sets it) it is lost: its tasks are started elsewhere. Three
 * kinds of silence are the server's own, and no node is lost by them:
 *
 * - The server was not there to hear: it has just started, or was stopped, suspended or starved (the
 *   control/engine/presence.h says so). Every node has the full time from then on.
 * - All nodes that spoke are silent, and the cluster has two or more: the server is cut off from the
 *   network. None is lost until one speaks; there would be no node to start anything on either.
 * - More than half of them, of two or more, fall silent at once: so too, but for
 *   WEIR_NODE_CUT_MS at most. They may be gone indeed, as with a rack.
 *
 * "At once" is: before the first of them was lost. Nodes that were lost before count for nothing.
 * When it is half of them or fewer again that are silent, every node has the full time again.
 *
 * What follows is one number that everybody asks with: since_ms, from which on nodes could be heard. While
 * the server is cut off it keeps so close behind the time that a silent node stays silent.
 */
#ifndef WEIR_JOB_NODE_WATCH_H
#define WEIR_JOB_NODE_WATCH_H

#include "base/arena.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_NODE_TIMEOUT_MS     15000 /**< Until somebody sets another. */
#define WEIR_NODE_TIMEOUT_MIN_MS 10000 /**< Two reports may be missed. */
#define WEIR_NODE_TIMEOUT_MAX_MS 3600000
#define WEIR_NODE_CUT_MS         300000

/** The node time-out of this process. Set it before the first thread starts. */
void weir_node_set_timeout_ms(int64_t timeout_ms);
int64_t weir_node_lost_ms(void);
int64_t weir_node_silent_ms(void);

/** Owned by one thread. */
struct weir_node_watch {
    int64_t since_ms;         /**< Since when nodes could be heard. */
    int64_t cut_ms;           /**< Since when the server counts as cut off; 0: it does not. */
    size_t n_silent, n_heard; /**< While it does: how many are silent, of how many. */
    /* Its own. */
    int64_t looked_ms; /**< The look before; 0: none. */
    int64_t alive_ms;  /**< A node heard since then was not lost when the server started. */
    int64_t from_ms;   /**< While it is cut off: nodes heard since then count. */
    int64_t before_ms; /**< since_ms before that. */
};

void weir_node_watch_start(struct weir_node_watch *watch, int64_t now_ms);

/** The server was away until now: every node has the full time. */
void weir_node_watch_pause(struct weir_node_watch *watch, int64_t now_ms);

/** The clock that all times are by was set by so much, and nodes' heartbeats with it. */
void weir_node_watch_move(struct weir_node_watch *watch, int64_t by_ms);

/**
 * Look at all nodes, before asking whether one is lost. @param heard_ms  Of each node of the cluster its last
 * heartbeat. @return Whether it began or ceased to count as cut off.
 */
bool weir_node_watch_look(struct weir_node_watch *watch, const int64_t *heard_ms, size_t n,
                          int64_t now_ms);

/** The same, of what the database says. *out: has it changed? */
weir_status weir_node_watch_read(struct weir_node_watch *watch, struct weir_txn *txn,
                                 int64_t now_ms, struct weir_arena *arena, bool *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
