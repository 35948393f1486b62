#include "ion/policy.h"

#include "base/kind_laws.h"
#include "base/test_main.h"

START_TEST(policies_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_policies);
}

END_TEST

/* Of whatever numbers: one of the three verdicts, and a rule that begins with the policy's name. */
START_TEST(each_policy_gives_a_verdict_and_says_why)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < weir_policies.n_kinds; i++) {
        struct weir_configured policy;
        struct weir_error err;
        json_t *json = json_pack("{s:s}", "kind", weir_policies.kinds[i]->name);
        if (weir_policy_read(json, "$", &arena, &policy, &err) != WEIR_OK) {
            ck_assert_ptr_nonnull(strstr(err.message, "missing")); /* it has required options */
            json_decref(json);
            continue;
        }
        json_decref(json);
        for (int64_t version = 1; version <= 3; version++) {
            for (int64_t other = 0; other <= 3; other++) {
                struct weir_policy_verdict told = weir_policy_decide(
                    &policy,
                    (struct weir_policy_inputs){.version = version, .newest_other_version = other},
                    &arena);
                ck_assert(strcmp(told.verdict, WEIR_VERDICT_PROMOTE) == 0 ||
                          strcmp(told.verdict, WEIR_VERDICT_WAIT) == 0 ||
                          strcmp(told.verdict, WEIR_VERDICT_SKIP) == 0);
                size_t len = strlen(policy.kind->name);
                ck_assert_msg(strncmp(told.rule, policy.kind->name, len) == 0 &&
                                  strncmp(told.rule + len, ": ", 2) == 0,
                              "%s", told.rule);
            }
        }
    }
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const char *json, *name, *message;
} forms[] = {
    {"null", "manual", NULL},
    {"\"always-update\"", "always-update", NULL},
    {"{\"kind\":\"always-update\"}", "always-update", NULL},
    {"\"canary\"", NULL, "$.policy: \"canary\" is not a policy of this version"},
    {"\"always-updates\"", NULL, "$.policy: \"always-updates\" is none of "},
    {"{\"kind\":\"manual\",\"share\":1}", NULL, "$.policy.share: unknown option"},
    {"{}", NULL, "$.policy.kind: missing"},
    {"3", NULL, "$.policy: expected the name of a policy"},
};

START_TEST(a_policy_is_a_name_or_an_object)
{
    struct weir_arena arena;
    struct weir_configured policy;
    struct weir_error err;
    json_t *json = json_loads(forms[_i].json, JSON_DECODE_ANY, NULL);
    weir_arena_init(&arena, 0);
    weir_status status = weir_policy_read(json, "$.policy", &arena, &policy, &err);
    if (forms[_i].name != NULL) {
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        ck_assert_str_eq(policy.kind->name, forms[_i].name);
    } else {
        ck_assert_int_ne(status, WEIR_OK);
        ck_assert_msg(strncmp(err.message, forms[_i].message, strlen(forms[_i].message)) == 0, "%s",
                      err.message);
    }
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("policy", {policies_keep_the_laws_of_registries, 0},
                     {each_policy_gives_a_verdict_and_says_why, 0},
                     {a_policy_is_a_name_or_an_object, WEIR_ARRAY_LEN(forms)})
