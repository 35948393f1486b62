/**
 * Nodes in the order of a key: a treap over node numbers. The best fit is found by walking from a
 * bound, without a look at every node. Equal keys are in the order of the nodes. Nodes may be
 * divided into parts; a walk leaves parts out without touching their nodes.
 */
#ifndef WEIR_SCHED_NODE_INDEX_H
#define WEIR_SCHED_NODE_INDEX_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define NODE_INDEX_PARTS_MAX 16
#define NODE_INDEX_ALL       UINT32_MAX

struct node_index_entry {
    int64_t key;
    int32_t left, right;
    uint32_t weight; /**< Heap order of the treap: a fixed hash of the node. */
    bool is_in;
};

struct node_index {
    struct node_index_entry *entries; /**< One per node. Owned. */
    int32_t n_nodes;
    const uint8_t *parts; /**< Per node: the part it is in. Borrowed. */
    int32_t n_parts;
    int32_t roots[NODE_INDEX_PARTS_MAX];
};

weir_status node_index_init(struct node_index *index, int32_t n_nodes, const uint8_t *parts,
                            int32_t n_parts) WEIR_MUST_CHECK;
void node_index_fini(struct node_index *index);

/** Put the node under `key`, wherever it was before. O(log n). */
void node_index_set(struct node_index *index, int32_t node, int64_t key);

/** Take it out, if it is in. O(log n). */
void node_index_clear(struct node_index *index, int32_t node);

/** The first (key, node) of the open parts (a bit each) that is not below the given one, or -1.
 *  O(open parts * log n). */
int32_t node_index_at_least(const struct node_index *index, uint32_t open, int64_t key,
                            int32_t node);

#endif
