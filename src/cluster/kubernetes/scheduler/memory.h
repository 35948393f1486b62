/**
 * Memory: what the scheduler knows of pods and gangs that the API server has not told yet, or never does. All of it may be
 * lost: a scheduler that begins again learns it from the API server. For the scheduler's own files. Not thread-safe.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_MEMORY_H
#define WEIR_CLUSTER_KUBERNETES_MEMORY_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_UNASKED_MS                                                                          \
    30000 /**< What is assumed is dropped when the API server has not said it for so long. */

/** Times are monotonic, but for half_since_ms; 0: never. */
struct memory_item {
    char *key; /**< A pod's uid, a gang, a claim or a volume (settle.h). */
    /** The node that it was asked to have, until the API server says so, or it is too late for that. */
    char *node;
    int64_t node_until_ms;
    /** It waits on that node for the device that it has a part of, or for its gang: it is not bound yet. */
    bool is_held;
    int64_t held_ms;              /**< Since when. */
    char *group;                  /**< The device that it is to have a part of; NULL: none. */
    char *trouble;                /**< Why that failed; NULL: it did not. */
    int64_t n_troubles, retry_ms; /**< So often, one after another; and not again before that. */
    bool awaits_claims;           /**< It is bound to that node when its claims are. */
    bool has_lost_claim;          /**< One of them could not be asked for. */
    char *refused; /**< Nodes where a claim's volume was not made, a space behind each; NULL. */
    int64_t refused_until_ms;  /**< So long they are not tried again. */
    char *nominated;           /**< "": of none; NULL: nothing was said of it. */
    char *said;                /**< Why it waits, as it was told last; NULL: nothing was told. */
    int64_t said_ms, event_ms; /**< When. */
    int64_t leaves_until_ms;   /**< It was told to end; so long it counts as if it did. */
    int64_t spared_until_ms;   /**< So long it is not told to end. */
    int64_t half_since_ms;     /**< A part of this gang alone runs, since 1970; 0: not so. */
    /** So often, one after another, its place was beside others than its rules allow. */
    int64_t n_refused;
    /** The key is the group of a device that is divided: the uid of the pod that holds it, and the device that it told of. */
    char *holder, *device;
    int64_t asked_until_ms;   /**< So long nothing more of that pod is asked for. */
    int64_t idle_ms;          /**< Nobody has had a part of the device since. */
    int64_t seen;             /**< The cycle that saw it last. */
    struct memory_item *next; /**< In its bucket. */
};

struct memory {
    struct memory_item **buckets;
    size_t n_buckets, n;
};

void memory_init(struct memory *memory);
void memory_fini(struct memory *memory);

/** What is known of it; made where nothing is. */
struct memory_item *memory_of(struct memory *memory, const char *key);

/** The same; NULL: nothing is known. */
struct memory_item *memory_find(const struct memory *memory, const char *key);

/** It is not asked to have a node any more. */
void memory_let_go(struct memory_item *item);

/** It failed: it is not tried again for a second, or twice as long as the last time, up to a minute. */
void memory_trouble(struct memory_item *item, const char *trouble, int64_t now_ms);

/** Set one of its texts; NULL is a text, too. */
void memory_set(char **text, const char *to);

/** Forget what has not been seen since that cycle. */
void memory_forget(struct memory *memory, int64_t before);

#endif
