/** A request as what sbatch is given: words, script and environment. For the driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_SUBMISSION_H
#define WEIR_CLUSTER_SLURM_SUBMISSION_H

#include "cluster/slurm/pool.h"

/** Where on the first node what agents print is kept, until all have ended well or are told to; Slurm puts the tag in. */
#define SLURM_OUTPUT "/tmp/weir-%x.out"

struct slurm_submission {
    const char *const *words; /**< "sbatch", …; NULL at the end. No secret stands in them. */
    const char *script;
    const char *const *env; /**< NAME=VALUE; NULL at the end. */
};

/**
 * Make it, pure: one Slurm job named as the tag, with one agent per node. Slurm starts no second one of that name beside it
 * (--dependency=singleton), whatever becomes of this server meanwhile.
 *
 * @param is_test  It only asks whether it could be.
 * @return LIMIT for more nodes than the pool has; INVALID for more time, or more of a node, than it allows.
 */
weir_status slurm_submission_make(const struct slurm_options *options,
                                  const struct slurm_pool *pool,
                                  const struct weir_node_request *request, bool is_test,
                                  struct weir_arena *arena, struct slurm_submission *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make it, and give it to sbatch.
 * @return As above; INVALID if Slurm refuses it; UNAVAILABLE if it may or may not have it now.
 */
weir_status slurm_submit(const struct slurm_options *options, const struct slurm_pool *pool,
                         const struct weir_node_request *request, bool is_test,
                         struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** The text as one word of a shell: 'it'\''s'. In the arena. */
const char *slurm_shell_word(const char *text, struct weir_arena *arena);

#endif
