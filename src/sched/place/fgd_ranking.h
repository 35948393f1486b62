/**
 * Nodes by a cost: one array of costs, the least of every block of it, and of every span of blocks.
 * A changed cost touches its block; asking for the first node looks at the spans. That beats a tree
 * because most costs that are put in are never asked for. Equal costs are in the order of the
 * nodes.
 *
 * Nodes may be divided into parts, some of which are left out when the first is asked for. A
 * *layout*, which rankings share, gives each part spans of its own.
 */
#ifndef WEIR_SCHED_FGD_RANKING_H
#define WEIR_SCHED_FGD_RANKING_H

#include "sched/model/node_index.h"

#define FGD_RANKING_NONE INT64_MAX

struct fgd_layout {
    int32_t n_nodes, n_spans;
    int32_t *place_of;                            /**< Per node. */
    int32_t *node_at;                             /**< Per place; places between parts: -1. */
    int32_t span_first[NODE_INDEX_PARTS_MAX + 1]; /**< Of each part, and an end. */
    int32_t n_parts;
};

struct fgd_ranking {
    const struct fgd_layout *layout;
    int64_t *costs;     /**< Per place; FGD_RANKING_NONE: not ranked. */
    int64_t *of_blocks; /**< Least cost of each block of places, */
    int64_t *of_spans;  /**< and of each span of blocks. */
};

/** @param parts  Per node its part, below n_parts. */
weir_status fgd_layout_init(struct fgd_layout *layout, int32_t n_nodes, const uint8_t *parts,
                            int32_t n_parts) WEIR_MUST_CHECK;
void fgd_layout_fini(struct fgd_layout *layout);

/** What a ranking takes. */
size_t fgd_ranking_bytes(const struct fgd_layout *layout);

/** No node is ranked. The layout is borrowed. */
weir_status fgd_ranking_init(struct fgd_ranking *ranking,
                             const struct fgd_layout *layout) WEIR_MUST_CHECK;
void fgd_ranking_fini(struct fgd_ranking *ranking);

/** Rank no node any more. O(nodes). */
void fgd_ranking_clear(struct fgd_ranking *ranking);

/** Rank a node, or with FGD_RANKING_NONE do not. O(1) to O(block). */
void fgd_ranking_set(struct fgd_ranking *ranking, int32_t node, int64_t cost);

/**
 * Rank many nodes: put each, then call fgd_ranking_sort. Between the two nothing else may be asked.
 */
void fgd_ranking_put(struct fgd_ranking *ranking, int32_t node, int64_t cost);
void fgd_ranking_sort(struct fgd_ranking *ranking);

int64_t fgd_ranking_cost(const struct fgd_ranking *ranking, int32_t node);

/** The node of the open parts (a bit each) that costs least; -1: none is ranked. O(spans). */
int32_t fgd_ranking_first(const struct fgd_ranking *ranking, uint32_t open);

#endif
