/**
 * Policies: what becomes of a model version that comes to a link. Pure.
 *
 * A policy is a kind (base/kind.h), a file of its own in ion/policy/. It is asked once for each
 * candidate, sees what is in weir_policy_inputs and nothing else, and answers with a verdict and the
 * rule in words. The engine writes both into the decision's row and carries the verdict out.
 *
 * In a document a policy is its name ("policy: manual"), or an object with its options
 * ("policy: {kind: NAME, OPTION: VALUE}").
 */
#ifndef WEIR_ION_POLICY_H
#define WEIR_ION_POLICY_H

#include "base/kind.h"

/** Verdicts, of policies and of people. */
#define WEIR_VERDICT_PROMOTE  "promote"  /**< It serves from now on. */
#define WEIR_VERDICT_WAIT     "wait"     /**< It waits for a person, who hears of it. */
#define WEIR_VERDICT_SKIP     "skip"     /**< It is passed over. */
#define WEIR_VERDICT_REJECT   "reject"   /**< Of people only. */
#define WEIR_VERDICT_ROLLBACK "rollback" /**< Of people only. */

/** What a policy looks at; borrowed. */
struct weir_policy_inputs {
    const void *options;          /**< The policy's struct; NULL if it has none. */
    int64_t version;              /**< Of the model that came. */
    int64_t newest_other_version; /**< Of all others that ever came to the link; 0: none. */
    int64_t serving_version;      /**< What the link serves; 0: nothing. */
    const char *metrics;          /**< JSON, as its training reported them; NULL: none. */
    int64_t now_ms;
};

struct weir_policy_verdict {
    const char *verdict; /**< PROMOTE, WAIT or SKIP. */
    const char *rule;    /**< Why, in words, beginning with the policy's name; a literal, or in the
                            arena. */
};

/** `ops` of a policy. */
struct weir_policy_ops {
    struct weir_policy_verdict (*decide)(const struct weir_policy_inputs *inputs,
                                         struct weir_arena *arena);
};

extern const struct weir_registry weir_policies;

#define WEIR_KIND(name) extern const struct weir_kind weir_policy_##name;
#include "ion/policies.def"
#undef WEIR_KIND

/** What a document that names no policy gets: nothing goes live unasked. */
#define WEIR_POLICY_DEFAULT "manual"

/**
 * Read a link's policy: a name, or an object with "kind"; NULL or null: the default.
 * @param where  "$.links[0].policy".
 */
weir_status weir_policy_read(const json_t *json, const char *where, struct weir_arena *arena,
                             struct weir_configured *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Ask a policy. */
struct weir_policy_verdict weir_policy_decide(const struct weir_configured *policy,
                                              struct weir_policy_inputs inputs,
                                              struct weir_arena *arena);

#endif
