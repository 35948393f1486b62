/**
 * Restart rules: whether a pipeline of an ION runs again after a run has ended, and when. Pure.
 *
 * A rule is a kind (base/kind.h), a file of its own in ion/restart/. It is asked when a run has ended
 * that no other run follows: one that succeeded, or one that failed for good, beyond the restarts of
 * its job. A run that a person ends is not run again. What a rule starts is a run like any other: under
 * its project's quota, with a cause that names the rule.
 *
 * In a document a rule is its name, or an object with its options: {kind: on-failure, times: 3}.
 */
#ifndef WEIR_ION_RESTART_H
#define WEIR_ION_RESTART_H

#include "base/kind.h"

/** How a run ended. */
struct weir_restart_inputs {
    int64_t n_failures; /**< Runs that have failed in a row, this one included; 0: it succeeded. */
};

/** `ops` of a rule. */
struct weir_restart_ops {
    bool
        is_patient; /**< A failure that it answers with another run is not one for good: no alert. */
    /** Shall it run again? *out_delay_ms: so long after the end. */
    bool (*decide)(const struct weir_restart_inputs *inputs, const void *options,
                   int64_t *out_delay_ms);
};

extern const struct weir_registry weir_restarts;

#define WEIR_KIND(name) extern const struct weir_kind weir_restart_##name;
#include "ion/restarts.def"
#undef WEIR_KIND

/** A pipeline's rule. */
struct weir_restart {
    const struct weir_kind *kind;
    const void *options;
};

/**
 * Read a rule; what stands for none is "never".
 * @param json  May be NULL.
 * @param where  "$.pipelines[0].restart".
 */
weir_status weir_restart_read(const json_t *json, const char *where, struct weir_arena *arena,
                              struct weir_restart *out, struct weir_error *err) WEIR_MUST_CHECK;

bool weir_restart_decide(const struct weir_restart *restart,
                         const struct weir_restart_inputs *inputs, int64_t *out_delay_ms);

#endif
