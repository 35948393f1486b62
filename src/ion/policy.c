#include "ion/policy.h"

static const struct weir_kind *const policies[] = {
#define WEIR_KIND(name) &weir_policy_##name,
#include "ion/policies.def"
#undef WEIR_KIND
};

const struct weir_registry weir_policies = {
    .noun = "policy",
    .plural = "policies",
    .doc = "What becomes of a model version that comes to a link of an ION.",
    .kinds = policies,
    .n_kinds = WEIR_ARRAY_LEN(policies),
    .planned = WEIR_WORDS("always-reject", "evaluate", "shadow", "canary", "ab", "rate-limit",
                          "freeze", "expiry"),
};

weir_status weir_policy_read(const json_t *json, const char *where, struct weir_arena *arena,
                             struct weir_configured *out, struct weir_error *err)
{
    const struct weir_kind *kind;
    if (json_is_object(json)) {
        return weir_registry_read(&weir_policies, json, where, arena, out, err);
    }
    bool is_absent = json == NULL || json_is_null(json);
    const char *name = is_absent ? WEIR_POLICY_DEFAULT : json_string_value(json);
    if (name == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected the name of a policy, or an object with kind", where);
    }
    WEIR_TRY(weir_registry_find(&weir_policies, name, where, &kind, err));
    json_t *none = json_object();
    weir_status status = weir_kind_read(kind, none, where, arena, out, err);
    json_decref(none);
    return status;
}

struct weir_policy_verdict weir_policy_decide(const struct weir_configured *policy,
                                              struct weir_policy_inputs inputs,
                                              struct weir_arena *arena)
{
    const struct weir_policy_ops *ops = policy->kind->ops;
    inputs.options = policy->options;
    return ops->decide(&inputs, arena);
}
