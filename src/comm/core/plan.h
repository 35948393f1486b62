/**
 * Plans: which algorithm carries an all-reduce of a size. Pure, but for tuning files.
 *
 * A plan is a list of rules by size. As text, in tuning files and on command lines:
 *
 *     flat:8K:direct#256K:4M:ring       up to 8 KiB FLAT, up to 4 MiB DIRECT in messages of at most
 *                                       256 KiB, RING above
 *
 * A tuning file (weir-worker bench-allreduce --tune FILE) holds the plans that were measured to be
 * fastest, by transport, number of ranks, number of hosts and wire format.
 */
#ifndef WEIR_COMM_PLAN_H
#define WEIR_COMM_PLAN_H

#include "comm/core/schedule.h"

/** Format of F32 between hosts. Other types are sent as they are. */
enum comm_wire { COMM_WIRE_F32, COMM_WIRE_BF16, COMM_WIRE_FP16, COMM_N_WIRES };

/** Most members of a group in which all ranks send to all. */
enum { COMM_PLAN_FEW = 16 };

struct comm_rule {
    uint64_t up_to_bytes; /**< Of the last rule UINT64_MAX. */
    uint32_t algorithm;   /**< enum comm_algorithm */
    uint32_t chunk_bytes; /**< Largest message; 0: the transport's own choice. */
};

struct comm_plan {
    uint32_t n_rules;
    struct comm_rule rules[WEIR_COMM_MAX_RULES];
};

/** The group that a plan is for; a tuning file is searched by it. */
struct comm_plan_key {
    const char *transport; /**< "tcp", "ucx", "rc", "dc". */
    int n_ranks, n_hosts;
    enum comm_wire wire;
};

/** The reverse; NULL is f32. @return INVALID with the names. */
weir_status comm_wire_parse(const char *text, enum comm_wire *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The built-in plan. Up to COMM_PLAN_FEW hosts (ranks, if all are on one) it is flat:8K:direct, in
 *  rank order. Above, where messages between all pairs are too many, it is flat:512:tree:256K:ring,
 *  with halving in place of ring if 16 bits are sent. */
void comm_plan_default(const struct comm_plan_key *key, struct comm_plan *out);

/** @return INVALID with a sentence that says what was expected. */
weir_status comm_plan_parse(const char *text, struct comm_plan *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The text of a plan; comm_plan_parse reads it back. */
void comm_plan_print(const struct comm_plan *plan, char out[WEIR_COMM_ALGORITHM_BYTES]);

/** The rule for an all-reduce of so many bytes. Borrowed from the plan. */
const struct comm_rule *comm_plan_choose(const struct comm_plan *plan, uint64_t bytes);

/**
 * Take the plan from a tuning file: of the entries with the key's transport and wire format the one
 * with the same number of hosts, if there is one, and the nearest number of ranks (as a ratio);
 * without such an entry the built-in plan.
 *
 * @return INVALID, or what reading gave, naming the file.
 */
weir_status comm_plan_load(const char *path, const struct comm_plan_key *key, struct comm_plan *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Put a plan into a tuning file, in place of the one with the same key. The file is created if it
 *  is missing, and replaced atomically. */
weir_status comm_plan_save(const char *path, const struct comm_plan_key *key,
                           const struct comm_plan *plan, struct weir_error *err) WEIR_MUST_CHECK;

#endif
