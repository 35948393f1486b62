/** What an optimiser is made of, for those who make it (optimizer.c) and who update by it
 *  (optimizer_update.c). */
#ifndef WEIR_NN_OPTIMIZER_PRIVATE_H
#define WEIR_NN_OPTIMIZER_PRIVATE_H

#include "nn/backend/slab.h"
#include "optimizer_rules.h"

/** Elements [first, end) of the slab that are treated alike. */
struct segment {
    size_t first, end;
    size_t first_slot; /**< Of its sums. */
    struct run_traits traits;
    bool is_adapted; /**< It is a tensor with a rate of its own. */
};

struct weir_optimizer {
    struct weir_optimizer_config config;
    const struct optimizer_rule_table *rules;
    const struct optimizer_rule *rule;
    struct segment *segments; /**< By first element, not overlapping. */
    size_t n_segments;
    struct weir_optimizer_state states[OPTIMIZER_STATES_MAX];
    struct slab slabs[OPTIMIZER_STATES_MAX]; /**< Of the states: in huge pages, as weights are. */
    size_t n_states;
    bool has_moments; /**< adam and its kin: those of early steps are made larger. */

    /* Of optimisers that need norms. A slot is what a segment and a tile have in common. */
    size_t n_slots;
    /** Of gradients or directions, by slot; then of weights, if tensors have rates. */
    double *sums;
    float scale; /**< Of the gradients: below 1 where their norm is clipped. */
};

/** Have tensors rates of their own, from their norms? */
bool optimizer_is_layerwise(const struct weir_optimizer_config *config);

static inline size_t optimizer_tile_of(size_t elem)
{
    return elem / WEIR_OPTIMIZER_TILE;
}

/** How many sums a segment has: one for each tile that it has a part of. */
static inline size_t segment_slots(const struct segment *segment)
{
    return optimizer_tile_of(segment->end - 1) - optimizer_tile_of(segment->first) + 1;
}

#endif
