#include "ion/policy.h"

#include "ion/ion_step.h"
#include "ion/policy_arms.h"
#include "ion/policy_evaluation.h"
#include "ion/policy_trial.h"

#include <inttypes.h>
#include <string.h>

static const struct weir_kind *const policies[] = {
#define WEIR_KIND(name) &weir_policy_##name,
#include "ion/policies.def"
#undef WEIR_KIND
};

const struct weir_registry weir_policies = {
    .noun = "policy",
    .plural = "policies",
    .doc = "What becomes of a model version that comes to a link of an ION. A list of them is a "
           "chain: what passes one comes to the next, and behind the last it serves.",
    .kinds = policies,
    .n_kinds = WEIR_ARRAY_LEN(policies),
};

// clang-format off
static const struct weir_field approval_fields[] = {
    WEIR_FIELD(weir_policy_approval, by,      TEXT, 0, "", "Person"),
    WEIR_FIELD(weir_policy_approval, roles,   JSON, 0, "", "Roles of theirs"),
    WEIR_FIELD(weir_policy_approval, time_ms, INT,  0, "ms", "When"),
};
static const struct weir_field inputs_fields[] = {
    WEIR_FIELD(weir_policy_inputs, policy,               JSON, WEIR_FIELD_REQUIRED, "", "Policy with its options, as the document has it"),
    WEIR_FIELD(weir_policy_inputs, i_policy,             INT,  0, "", "Its place in the chain, from 0"),
    WEIR_FIELD(weir_policy_inputs, is_last,              BOOL, 0, "", "What passes here serves"),
    WEIR_FIELD(weir_policy_inputs, now_ms,               INT,  WEIR_FIELD_REQUIRED, "ms", "When it was asked"),
    WEIR_FIELD(weir_policy_inputs, created_ms,           INT,  0, "ms", "When the version came to the link"),
    WEIR_FIELD(weir_policy_inputs, since_ms,             INT,  0, "ms", "Since when it stands at this policy"),
    WEIR_FIELD(weir_policy_inputs, candidate_version,    INT,  WEIR_FIELD_REQUIRED, "", "Version"),
    WEIR_FIELD(weir_policy_inputs, candidate_state,      TEXT, 0, "", "Its state"),
    WEIR_FIELD(weir_policy_inputs, newest_other_version, INT,  0, "", "Newest other version of the model that came to the link; 0: none"),
    WEIR_FIELD(weir_policy_inputs, serving_version,      INT,  0, "", "What the link served of the model; 0: nothing"),
    WEIR_FIELD(weir_policy_inputs, last_served_ms,       INT,  0, "ms", "When the link last began to serve another version; 0: never"),
    WEIR_FIELD(weir_policy_inputs, made_by,              TEXT, 0, "", "Who triggered its training or registered it"),
    WEIR_FIELD_RECORDS(weir_policy_inputs, approvals, weir_policy_approval_resource, 0, "Approvals at this policy"),
    WEIR_FIELD(weir_policy_inputs, rejected_by,          TEXT, 0, "", "Who rejects it"),
    WEIR_FIELD(weir_policy_inputs, metrics,              JSON, 0, "", "Measured quality"),
    WEIR_FIELD_RECORD(weir_policy_inputs, trial, weir_policy_trial_resource, 0, "How it does among the requests of the deployment"),
    WEIR_FIELD_RECORD(weir_policy_inputs, evaluation, weir_policy_evaluation_resource, 0, "How right it is on the policy's dataset"),
    WEIR_FIELD(weir_policy_inputs, changes,              TEXT, 0, "", "What it takes or gives that is incompatible with what serves"),
    WEIR_FIELD_RECORD(weir_policy_inputs, arms, weir_policy_arms_resource, 0, "What came of requests, of it and of the version that serves"),
};
// clang-format on

const struct weir_resource weir_policy_approval_resource =
    WEIR_RESOURCE("approval", "policy_approvals", weir_policy_approval, approval_fields);
const struct weir_resource weir_policy_inputs_resource =
    WEIR_RESOURCE("policy's inputs", "policy_inputs", weir_policy_inputs, inputs_fields);

static weir_status read_policy(const json_t *json, const char *where, struct weir_arena *arena,
                               struct weir_policy *out, struct weir_error *err)
{
    struct weir_configured read;
    char *text;
    WEIR_TRY(weir_registry_read_named(&weir_policies, json, where, arena, &read, &text, err));
    const struct weir_policy_ops *ops = read.kind->ops;
    if (ops->check != NULL) {
        /* The struct is this call's own until it is given out. */
        WEIR_TRY(ops->check((void *)read.options, where, arena, err));
    }
    *out = (struct weir_policy){.kind = read.kind, .options = read.options, .text = text};
    return WEIR_OK;
}

static void add_texts(struct weir_policy_chain *chain, struct weir_arena *arena)
{
    char *text = "", *names = "";
    for (size_t i = 0; i < chain->n; i++) {
        const char *comma = i > 0 ? "," : "";
        text = weir_arena_printf(arena, "%s%s%s", text, comma, chain->items[i].text);
        names = weir_arena_printf(arena, "%s%s%s%s", names, comma, i > 0 ? " " : "",
                                  chain->items[i].kind->name);
    }
    chain->text = weir_arena_printf(arena, "[%s]", text);
    chain->names = names;
}

weir_status weir_policy_chain_read(const json_t *json, const char *where, struct weir_arena *arena,
                                   struct weir_policy_chain *out, struct weir_error *err)
{
    bool is_absent = json == NULL || json_is_null(json);
    json_t *one = json_is_array(json) ? NULL
                  : is_absent         ? json_pack("[s]", WEIR_POLICY_DEFAULT)
                                      : json_pack("[O]", json);
    const json_t *list = one != NULL ? one : json;
    size_t n = json_array_size(list);
    struct weir_policy_chain chain = {.items = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_policy)};
    weir_status status = WEIR_OK;
    if (n == 0 || n > WEIR_POLICY_CHAIN_MAX) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "%s: expected 1 to %d policies", where,
                                WEIR_POLICY_CHAIN_MAX);
    }
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        const char *place = one != NULL ? where : weir_arena_printf(arena, "%s[%zu]", where, i);
        status = read_policy(json_array_get(list, i), place, arena, &chain.items[i], err);
        chain.n++;
    }
    json_decref(one);
    WEIR_TRY(status);
    add_texts(&chain, arena);
    *out = chain;
    return WEIR_OK;
}

bool weir_policy_is_trial(const char *state)
{
    for (size_t i = 0; state != NULL && i < WEIR_ARRAY_LEN(policies); i++) {
        const struct weir_policy_ops *ops = policies[i]->ops;
        if (ops->trial_state != NULL && strcmp(ops->trial_state, state) == 0) {
            return true;
        }
    }
    return false;
}

/** What serves has callers who would be refused, or read the answers wrongly: a person must know. */
static struct weir_policy_verdict changes_wait(const struct weir_policy *policy,
                                               const struct weir_policy_inputs *inputs,
                                               struct weir_arena *arena)
{
    return (struct weir_policy_verdict){
        .verdict = WEIR_VERDICT_WAIT,
        .state = WEIR_CANDIDATE_PENDING_REVIEW,
        .rule = weir_arena_printf(arena, "%s: a person must approve it: %s", policy->kind->name,
                                  inputs->changes)};
}

struct weir_policy_verdict weir_policy_decide(const struct weir_policy *policy,
                                              const struct weir_policy_inputs *inputs,
                                              struct weir_arena *arena)
{
    if (inputs->rejected_by != NULL) {
        return weir_policy_answer(WEIR_VERDICT_REJECT,
                                  weir_arena_printf(arena, "%s: rejected by %s", policy->kind->name,
                                                    inputs->rejected_by));
    }
    if (inputs->changes != NULL && inputs->approvals == NULL && !weir_policy_asks_people(policy) &&
        inputs->serving_version < inputs->candidate_version) {
        return changes_wait(policy, inputs, arena);
    }
    struct weir_policy_verdict told =
        weir_policy_ops(policy)->decide(inputs, policy->options, arena);
    if (inputs->changes != NULL && strcmp(told.verdict, WEIR_VERDICT_WAIT) == 0 &&
        weir_policy_asks_people(policy)) {
        told.rule = weir_arena_printf(arena, "%s; %s", told.rule, inputs->changes);
    }
    bool ends = strcmp(told.verdict, WEIR_VERDICT_SKIP) == 0 ||
                strcmp(told.verdict, WEIR_VERDICT_REJECT) == 0 ||
                strcmp(told.verdict, WEIR_VERDICT_ROLLBACK) == 0;
    if (!ends && !weir_policy_asks_people(policy) &&
        inputs->serving_version > inputs->candidate_version) {
        return weir_policy_newer_serves(policy->kind->name, inputs, arena);
    }
    return told;
}

struct weir_policy_verdict weir_policy_newer_serves(const char *policy,
                                                    const struct weir_policy_inputs *inputs,
                                                    struct weir_arena *arena)
{
    return weir_policy_answer(WEIR_VERDICT_SKIP,
                              weir_arena_printf(arena,
                                                "%s: version %" PRId64 " serves, which is newer",
                                                policy, inputs->serving_version));
}

weir_status weir_policy_admit(const struct weir_policy *policy,
                              const struct weir_policy_inputs *inputs,
                              const struct weir_policy_person *person, struct weir_error *err)
{
    const struct weir_policy_ops *ops = weir_policy_ops(policy);
    if (ops->admit == NULL && inputs->changes != NULL) {
        return WEIR_OK;
    }
    return ops->admit != NULL ? ops->admit(inputs, policy->options, person, err)
                              : weir_error_set(err, WEIR_ERR_CONFLICT, "policy %s asks nobody",
                                               policy->kind->name);
}

char *weir_policy_inputs_text(const struct weir_policy_inputs *inputs, struct weir_arena *arena)
{
    return weir_record_text(&weir_policy_inputs_resource, inputs, arena);
}

static weir_status replay(const json_t *json, struct weir_arena *arena,
                          struct weir_policy_verdict *out, struct weir_error *err)
{
    struct weir_policy_inputs inputs = {0};
    struct weir_policy policy;
    WEIR_TRY(weir_record_from_json(&weir_policy_inputs_resource, json, WEIR_RECORD_REPORT, arena,
                                   &inputs, err));
    WEIR_TRY(weir_record_check_times(&weir_policy_inputs_resource, &inputs, err));
    if (inputs.arms != NULL && weir_policy_arms_of(inputs.arms) != inputs.arms) {
        return weir_error_set(err, WEIR_ERR_INVALID, "arms: the figures cannot be");
    }
    WEIR_TRY(read_policy(json_object_get(json, "policy"), "$.policy", arena, &policy, err));
    struct weir_policy_verdict told = weir_policy_decide(&policy, &inputs, arena);
    if (inputs.is_last && strcmp(told.verdict, WEIR_VERDICT_PASS) == 0) {
        told.verdict = WEIR_VERDICT_PROMOTE;
    }
    *out = told;
    return WEIR_OK;
}

weir_status weir_policy_replay(const char *inputs, struct weir_arena *arena,
                               struct weir_policy_verdict *out, struct weir_error *err)
{
    json_t *json;
    WEIR_TRY(weir_json_parse(inputs, strlen(inputs), "inputs", &json, err));
    weir_status status = replay(json, arena, out, err);
    json_decref(json);
    return status;
}
