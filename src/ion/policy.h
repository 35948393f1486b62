/**
 * Policies: what becomes of a model version that comes to a link. Pure.
 *
 * A link has a chain of policies. A candidate stands at one of them at a time, beginning with the
 * first: `pass` sends it on to the next, and behind the last it serves; `wait` leaves it where it is,
 * until a time or until a person speaks; `skip` and `reject` end its way.
 *
 * A policy is a kind (base/kind.h), a file of its own in ion/policy/. It is asked when a candidate
 * comes to it, when the time that it named has come, and when a person approves. It sees what is in
 * weir_policy_inputs and nothing else, and answers with a verdict and the rule in words. The engine
 * writes inputs, verdict and rule into the decision's row: weir_policy_replay makes the same decision
 * of the row's inputs alone.
 *
 * In a document a policy is its name ("policy: manual"), or an object with its options
 * ("policy: {kind: NAME, OPTION: VALUE}"); a list of them is a chain, and one is a chain of one.
 */
#ifndef WEIR_ION_POLICY_H
#define WEIR_ION_POLICY_H

#include "base/kind.h"
#include "base/record.h"

/** What a decision's row names if no policy of the chain was asked. */
#define WEIR_POLICY_NONE "none"

/** Verdicts, of policies and of people. */
#define WEIR_VERDICT_PASS     "pass"     /**< It goes on to the next policy. */
#define WEIR_VERDICT_PROMOTE  "promote"  /**< It has passed the last: it serves from now on. */
#define WEIR_VERDICT_WAIT     "wait"     /**< It waits: for a time, or for a person. */
#define WEIR_VERDICT_SKIP     "skip"     /**< It is passed over. */
#define WEIR_VERDICT_REJECT   "reject"   /**< It is refused. */
#define WEIR_VERDICT_ROLLBACK "rollback" /**< It served, all or in part, and does not any more. */
#define WEIR_VERDICT_SET      "set" /**< By hand, or as a link's default: no policy was asked. */

struct weir_policy_trial;
struct weir_policy_evaluation;
struct weir_policy_arms;

/** A person has said that a version may pass the policy where it stands. */
struct weir_policy_approval {
    char *by;
    char *roles; /**< JSON: a list of those that the person had. */
    int64_t time_ms;
};

extern const struct weir_resource weir_policy_approval_resource;

/** What a policy looks at; a record, whose JSON is the decision's `inputs`. Borrowed. */
struct weir_policy_inputs {
    char *policy;     /**< JSON: {"kind": NAME, OPTION: VALUE}, as the document has it. */
    int64_t i_policy; /**< Its place in the chain, from 0. */
    bool is_last;     /**< If it passes here, it serves. */
    int64_t now_ms;
    int64_t created_ms; /**< When the version came to the link. */
    int64_t since_ms;   /**< Since when it stands at this policy. */
    int64_t candidate_version;
    char *candidate_state;
    int64_t
        newest_other_version; /**< Of all others of this model that came to the link; 0: none. */
    int64_t serving_version;  /**< Of this model, that the link serves; 0: nothing, or another. */
    int64_t last_served_ms;   /**< When the link last began to serve another version; 0: never. */
    char *made_by; /**< Who triggered its training or registered it: names, with ", " between them;
                        NULL: no person did. */
    const struct weir_policy_approval *approvals; /**< At this policy; NULL: none. */
    size_t n_approvals;
    char *rejected_by; /**< A person who rejects it; NULL: nobody does. */
    char *metrics;     /**< JSON, as its training reported them; NULL: none. */
    /* What a family of policies looks at beside that; NULL: the policy is of another. */
    const struct weir_policy_trial *trial;           /**< It tries versions (policy_trial.h). */
    const struct weir_policy_evaluation *evaluation; /**< It measures (policy_evaluation.h). */
    const struct weir_policy_arms
        *arms; /**< It compares outcomes (policy_arms.h), and some are known. */
    char *
        changes; /**< What it takes or gives is incompatible with what serves: in words; NULL: it is
                        compatible, or nobody has to say so at this policy. */
};

extern const struct weir_resource weir_policy_inputs_resource;

struct weir_policy_verdict {
    const char *verdict; /**< PASS, WAIT, SKIP, REJECT or ROLLBACK. */
    const char *rule;    /**< Why, in words, beginning with the policy's name; a literal, or in the
                            arena. */
    int64_t until_ms;    /**< Of WAIT: when to ask again, later than now_ms; 0: no time is known. */
    /* Of WAIT, of a policy that watches; the rest of them is 0 where nothing is tried. */
    const char *state; /**< The candidate's meanwhile; NULL: as for any other policy. */
    int64_t share_ppm; /**< Of the deployment's requests, that the candidate is to answer. */
    int64_t step;      /**< Which of the policy's shares that is, from 0. */
    bool is_mirrored;  /**< Answers are to be compared, by copies of requests. */
    bool is_begun;     /**< What was wanted is in effect: figures count from now on. */
    bool is_looked;    /**< Outputs were compared, and nothing was found: that counts. */
    const char *
        blocked; /**< Why it cannot judge, as far as can be seen (ion/policy/policy_blocked.h); NULL:
                              nothing shows. */
    bool is_to_measure; /**< It is to be measured, beside what serves now. */
};

/** A person who approves, and in which roles. */
struct weir_policy_person {
    const char *name;
    const char *const *roles; /**< NULL at the end; or NULL: none is known. */
};

/** `ops` of a policy. */
struct weir_policy_ops {
    /** What belongs together in the options; what points into the document is copied. NULL: nothing. */
    weir_status (*check)(void *options, const char *where, struct weir_arena *arena,
                         struct weir_error *err);
    struct weir_policy_verdict (*decide)(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena);
    /** Does this person's approval count here? Else why not. NULL: nobody is asked. */
    weir_status (*admit)(const struct weir_policy_inputs *inputs, const void *options,
                         const struct weir_policy_person *person, struct weir_error *err);
    bool is_gate; /**< It is asked again at the moment of promotion, wherever it stands. */
    bool
        watches; /**< While a candidate waits here it is asked again with every tick; what it says is
                     recorded if it is another thing than before. */
    bool measures; /**< It has its candidates measured on a dataset: its options name `dataset`. */
    /** It tries versions: the state of its candidates while they get requests of a deployment, no other
     *  policy's; the link must end in one. NULL: it tries none. */
    const char *trial_state;
    bool ends_chain; /**< It must be the last of its chain: what waits behind it would give the
                         requests back to the version before. */
    /** Of one that tries: above which time of an answer, in us, a request counts as slow; 0: never. */
    int64_t (*slow_us)(const void *options);
    /** Of one that compares by what came of requests: the name of the outcome or KPI. NULL: none does. */
    const char *(*metric)(const void *options);
    bool is_limit; /**< It holds wherever the candidate stands: while it waits at another policy, a
                      SKIP of this one ends its way. Its WAIT is never. */
    /** Of a limit: when its answer changes; INT64_MAX: never. */
    int64_t (*limit_ms)(const struct weir_policy_inputs *inputs, const void *options);
};

extern const struct weir_registry weir_policies;

#define WEIR_KIND(name) extern const struct weir_kind weir_policy_##name;
#include "ion/policies.def"
#undef WEIR_KIND

/** What a document that names no policy gets: nothing goes live unasked. */
#define WEIR_POLICY_DEFAULT "manual"

#define WEIR_POLICY_CHAIN_MAX 16

/** A policy of a chain. */
struct weir_policy {
    const struct weir_kind *kind;
    const void *options; /**< NULL: it has none. */
    char *text;          /**< JSON: {"kind": NAME, OPTION: VALUE}. */
};

struct weir_policy_chain {
    struct weir_policy *items;
    size_t n; /**< 1 or more. */
    char
        *text; /**< JSON: the array of the policies' texts; two chains are one if it is the same. */
    char *names; /**< "rate-limit, manual" */
};

/**
 * Read a link's policy: a name, an object with "kind", or an array of them; NULL or null: the
 * default.
 * @param where  "$.links[0].policy".
 */
weir_status weir_policy_chain_read(const json_t *json, const char *where, struct weir_arena *arena,
                                   struct weir_policy_chain *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Ask a policy. A version that a person rejects it rejects, whatever it is; and no policy but one that
 * asks people lets a version pass or wait while a newer one of its model serves: it is skipped. A version
 * with incompatible changes waits for a person (PENDING_REVIEW), at whatever policy it is said; one that
 * asks people says what they are.
 */
struct weir_policy_verdict weir_policy_decide(const struct weir_policy *policy,
                                              const struct weir_policy_inputs *inputs,
                                              struct weir_arena *arena);

/** A verdict with its rule and no more. */
static inline struct weir_policy_verdict weir_policy_answer(const char *verdict, const char *rule)
{
    return (struct weir_policy_verdict){.verdict = verdict, .rule = rule};
}

/** The verdict for a version that is older than what serves. */
struct weir_policy_verdict weir_policy_newer_serves(const char *policy,
                                                    const struct weir_policy_inputs *inputs,
                                                    struct weir_arena *arena);

/** Does a person's approval count? Of a version with incompatible changes everybody's does, where the policy
 * asks nobody. @return DENIED or CONFLICT with a sentence if not. */
weir_status weir_policy_admit(const struct weir_policy *policy,
                              const struct weir_policy_inputs *inputs,
                              const struct weir_policy_person *person,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Is it the state of what a policy tries? */
bool weir_policy_is_trial(const char *state);

static inline const struct weir_policy_ops *weir_policy_ops(const struct weir_policy *policy)
{
    return policy->kind->ops;
}

/** Does a version that waits at this policy wait for a person? */
static inline bool weir_policy_asks_people(const struct weir_policy *policy)
{
    return weir_policy_ops(policy)->admit != NULL;
}

/** A decision's `inputs`, as JSON in the arena. */
char *weir_policy_inputs_text(const struct weir_policy_inputs *inputs, struct weir_arena *arena);

/**
 * Make a recorded decision again.
 * @param inputs  The row's `inputs`.
 * @param out     `verdict` is the row's: PROMOTE where the last of the chain passes.
 * @return INVALID or UNSUPPORTED: they are not a policy's inputs, or of one that is not there.
 */
weir_status weir_policy_replay(const char *inputs, struct weir_arena *arena,
                               struct weir_policy_verdict *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
