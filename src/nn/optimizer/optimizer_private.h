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

/** Where the state lies on a GPU. */
struct optimizer_on_gpu {
    struct weir_net *net; /**< Whose GPU. */
    void *states[OPTIMIZER_STATES_MAX];
    void *is_decayed; /**< A byte for each 16 elements. */
    bool is_newer;    /**< Than the processor's copy. */
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
    struct optimizer_on_gpu *on_gpu; /**< NULL: the state lies in the processor's memory alone. */
};

/* optimizer_gpu.c: updates on the GPU of a net. */

/** Queues the update of all weights by the net's own gradients. The first call takes the state to
 *  the net's GPU. @return UNSUPPORTED: the net is on none, or the rule needs norms; NOMEM. Nothing has
 *  changed then. */
weir_status optimizer_gpu_update(struct weir_optimizer *optimizer, struct weir_net *net, double lr,
                                 uint64_t step) WEIR_MUST_CHECK;
/** Fetches the state, so that the processor's copy is the newest. */
void optimizer_gpu_fetch(const struct weir_optimizer *optimizer);
/** Fetches the state and gives the GPU's memory back. */
void optimizer_gpu_detach(struct weir_optimizer *optimizer);

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
