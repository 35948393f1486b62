/** The inside of an optimiser: optimizer.c makes it, optimizer_update.c updates with it. */
#ifndef WEIR_NN_OPTIMIZER_PRIVATE_H
#define WEIR_NN_OPTIMIZER_PRIVATE_H

#include "nn/backend/slab.h"
#include "optimizer_rules.h"

/** Elements [first, end) of the slab that have the same decay and rate. */
struct optimizer_segment {
    size_t first, end;
    size_t first_slot; /**< First slot of its sums. */
    struct run_traits traits;
    bool is_adapted; /**< It is one tensor, with a rate of its own. */
};

struct weir_optimizer {
    struct weir_optimizer_config config;
    const struct optimizer_rule_table *rules;
    const struct optimizer_rule *rule;
    struct optimizer_segment *segments; /**< By first element, not overlapping. */
    size_t n_segments;
    struct weir_optimizer_state states[OPTIMIZER_STATES_MAX];
    struct slab slabs[OPTIMIZER_STATES_MAX]; /**< Memory of the states, in huge pages. */
    size_t n_states;
    bool has_moments; /**< adam, adamw, lamb: moments of early steps are corrected for their
                           bias. */

    /* For optimisers that need norms. A slot is the part that a segment and a tile share. */
    size_t n_slots;
    /** By slot: sums of gradients or directions; then of weights, if tensors have rates. */
    double *sums;
    float scale; /**< Factor of the gradients; below 1 where their norm is clipped. */
};

/** Do tensors have rates of their own, from their norms? */
bool optimizer_is_layerwise(const struct weir_optimizer_config *config);

static inline size_t optimizer_tile_of(size_t elem)
{
    return elem / WEIR_OPTIMIZER_TILE;
}

/** Slots of a segment: one for each tile that it has a part of. */
static inline size_t segment_slots(const struct optimizer_segment *segment)
{
    return optimizer_tile_of(segment->end - 1) - optimizer_tile_of(segment->first) + 1;
}

#endif
