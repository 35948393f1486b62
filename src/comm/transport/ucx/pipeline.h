/**
 * All-reduces over messages: schedules (comm/schedule.h) carried out block by block.
 *
 * An array is cut into blocks; each goes through its schedule's stages, and several blocks
 * are on their way at once, each in its own stage: while one is on the wire another is summed. What
 * is to be added arrives in scratch memory; what replaces one's own arrives in place, unless it has
 * to be widened first. Which block goes on first depends on the network; the result does not.
 */
#ifndef WEIR_COMM_UCX_PIPELINE_H
#define WEIR_COMM_UCX_PIPELINE_H

#include "comm/core/plan.h"

struct ucx_state;
struct ucx_request;

/** Ranks that reduce together, and what they need for it. Zeroed but for the first three. */
struct ucx_group {
    int n_ranks, self;              /**< self: own place among ranks, not a rank. */
    int ranks[WEIR_COMM_MAX_RANKS]; /**< In growing order. */
    struct comm_schedule schedules[COMM_N_ALGORITHMS][2]; /**< Made when first needed. */
    uint8_t *scratch;
    size_t scratch_bytes;
    struct ucx_request *requests;
    size_t n_requests;
};

enum ucx_half { UCX_WHOLE, UCX_REDUCE_SCATTER, UCX_ALL_GATHER };

/**
 * All-reduce among the group. On failure ucx_fail was called.
 * @param rule  How; chunk_bytes 0 is the fabric's.
 * @param wire  What F32 is sent as; other types are sent as they are.
 */
weir_status ucx_reduce(struct ucx_state *ucx, struct ucx_group *group, const struct comm_rule *rule,
                       enum comm_wire wire, void *buf, size_t n_elems,
                       enum weir_comm_type type) WEIR_MUST_CHECK;

/** Half of one, by DIRECT with one slice of the array per member: the first, that ends with the sum
 *  in one's own, or the second. */
weir_status ucx_reduce_half(struct ucx_state *ucx, struct ucx_group *group, enum ucx_half half,
                            enum comm_wire wire, void *buf, size_t n_elems,
                            enum weir_comm_type type) WEIR_MUST_CHECK;

/** Give back what a group has taken. */
void ucx_group_fini(struct ucx_group *group);

#endif
