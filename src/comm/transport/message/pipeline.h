/**
 * All-reduces over messages: schedules (core/schedule.h) executed block by block.
 *
 * An array is cut into blocks. Each block goes through its schedule's stages, and several blocks
 * are in flight at once, each in its own stage: while one is on the wire another is summed. Slices
 * to be added arrive in scratch memory; slices that replace the own ones arrive in place, unless
 * they have to be widened first. Which block proceeds first depends on the network; the result does
 * not.
 */
#ifndef WEIR_COMM_PIPELINE_H
#define WEIR_COMM_PIPELINE_H

#include "comm/core/plan.h"

struct message_state;
struct message_request;

/** Ranks that reduce together, and the memory for it. Zeroed but for the first three members. */
struct message_group {
    int n_ranks, self;              /**< self: index of this rank in `ranks`. */
    int ranks[WEIR_COMM_MAX_RANKS]; /**< In ascending order. */
    struct comm_schedule schedules[COMM_N_ALGORITHMS][2]; /**< Made at first use. */
    uint8_t *scratch;
    size_t scratch_bytes;
    struct message_request *requests;
    size_t n_requests;
};

enum message_half { MESSAGE_WHOLE, MESSAGE_REDUCE_SCATTER, MESSAGE_ALL_GATHER };

/**
 * All-reduce in the group. On failure message_fail was called.
 *
 * @param rule  Algorithm; chunk_bytes 0: the fabric's.
 * @param wire  Format of F32 on the wire; other types are sent as they are.
 */
weir_status message_reduce(struct message_state *state, struct message_group *group,
                           const struct comm_rule *rule, enum comm_wire wire, void *buf,
                           size_t n_elems, enum weir_comm_type type) WEIR_MUST_CHECK;

/** One half of an all-reduce, by DIRECT with one slice of the array per member: the first, which
 *  ends with the sum in the own slice, or the second. */
weir_status message_reduce_half(struct message_state *state, struct message_group *group,
                                enum message_half half, enum comm_wire wire, void *buf,
                                size_t n_elems, enum weir_comm_type type) WEIR_MUST_CHECK;

/** Free the group's memory. */
void message_group_fini(struct message_group *group);

#endif
