#include "ion/ion_step.h"

#include "base/kind_laws.h"
#include "base/test_main.h"

START_TEST(policies_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_policies);
}

END_TEST

/* No state of a trial is another policy's, or one that candidates have anyway; and what is tried is watched. */
START_TEST(states_of_trials_are_their_policies_own)
{
    static const char *const others[] = {WEIR_CANDIDATE_PENDING_REVIEW, WEIR_CANDIDATE_WAITING,
                                         WEIR_CANDIDATE_APPROVED,       WEIR_CANDIDATE_SERVING,
                                         WEIR_CANDIDATE_PAUSED,         WEIR_CANDIDATE_RETIRED,
                                         WEIR_CANDIDATE_REJECTED,       WEIR_CANDIDATE_ROLLED_BACK};
    size_t n_trying = 0;
    for (size_t i = 0; i < weir_policies.n_kinds; i++) {
        const struct weir_policy_ops *ops = weir_policies.kinds[i]->ops;
        n_trying += ops->trial_state != NULL;
        ck_assert(ops->trial_state == NULL ||
                  (ops->watches && weir_policy_is_trial(ops->trial_state)));
        for (size_t k = 0; k < i && ops->trial_state != NULL; k++) {
            const struct weir_policy_ops *other = weir_policies.kinds[k]->ops;
            ck_assert(other->trial_state == NULL ||
                      strcmp(other->trial_state, ops->trial_state) != 0);
        }
    }
    ck_assert_uint_ge(n_trying, 3);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        ck_assert(!weir_policy_is_trial(others[i]));
    }
    ck_assert(!weir_policy_is_trial(NULL));
}

END_TEST

/* Each kind once, with what it requires, in the order of policies.def. */
static const char *const of_each[] = {
    "{\"kind\":\"always-update\"}",
    "{\"kind\":\"always-reject\"}",
    "{\"kind\":\"manual\",\"timeout_s\":7}",
    "{\"kind\":\"rate-limit\",\"min_interval_s\":10}",
    "{\"kind\":\"freeze-window\",\"start\":\"0/10 * * * * ?\",\"duration_s\":3}",
    "{\"kind\":\"expiry\",\"max_age_s\":12}",
    "{\"kind\":\"evaluate\",\"dataset\":\"held-out\",\"timeout_s\":9}",
    "{\"kind\":\"shadow\",\"timeout_s\":9}",
    "{\"kind\":\"canary\",\"hold_s\":1,\"timeout_s\":9}",
    "{\"kind\":\"ab\",\"timeout_s\":9}",
};
_Static_assert(WEIR_ARRAY_LEN(of_each) == 10, "one of each kind");

/** The row's inputs alone give the same verdict and rule. */
static void check_replay(const struct weir_policy_inputs *inputs,
                         const struct weir_policy_verdict *told, struct weir_arena *arena)
{
    struct weir_policy_verdict again;
    struct weir_error err;
    weir_status status =
        weir_policy_replay(weir_policy_inputs_text(inputs, arena), arena, &again, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(again.verdict, told->verdict);
    ck_assert_str_eq(again.rule, told->rule);
    ck_assert_int_eq(again.until_ms, told->until_ms);
}

/* Of whatever numbers: one of the verdicts, and a rule that begins with the policy's name. */
START_TEST(each_policy_gives_a_verdict_and_says_why)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < weir_policies.n_kinds; i++) {
        struct weir_policy_chain chain;
        struct weir_error err;
        json_t *json = json_loads(of_each[i], 0, NULL);
        ck_assert_msg(weir_policy_chain_read(json, "$", &arena, &chain, &err) == WEIR_OK, "%s",
                      err.message);
        json_decref(json);
        const struct weir_policy *policy = &chain.items[0];
        ck_assert_str_eq(policy->kind->name, weir_policies.kinds[i]->name);
        for (int64_t version = 1; version <= 3; version++) {
            for (int64_t other = 0; other <= 3; other++) {
                const struct weir_policy_inputs inputs = {.policy = policy->text,
                                                          .now_ms = 5000 * version,
                                                          .created_ms = 100,
                                                          .since_ms = 200,
                                                          .candidate_version = version,
                                                          .newest_other_version = other,
                                                          .serving_version = other,
                                                          .last_served_ms = 4000 * other};
                struct weir_policy_verdict told = weir_policy_decide(policy, &inputs, &arena);
                check_replay(&inputs, &told, &arena);
                ck_assert(strcmp(told.verdict, WEIR_VERDICT_PASS) == 0 ||
                          strcmp(told.verdict, WEIR_VERDICT_WAIT) == 0 ||
                          strcmp(told.verdict, WEIR_VERDICT_REJECT) == 0 ||
                          strcmp(told.verdict, WEIR_VERDICT_SKIP) == 0);
                ck_assert(told.until_ms == 0 || told.until_ms > inputs.now_ms);
                size_t len = strlen(policy->kind->name);
                ck_assert_msg(strncmp(told.rule, policy->kind->name, len) == 0 &&
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
    {"[\"always-update\",{\"kind\":\"manual\",\"approvals\":2}]", "always-update, manual", NULL},
    {"[]", NULL, "$.policy: expected 1 to 16 policies"},
    {"[\"manual\",3]", NULL, "$.policy[1]: expected the name of a policy"},
    {"[\"manual\",[\"manual\"]]", NULL, "$.policy[1]: expected the name of a policy"},
    {"{\"kind\":\"manual\",\"approvals\":0}", NULL, "$.policy.approvals: "},
    {"{\"kind\":\"manual\",\"roles\":[\"Boss!\"]}", NULL, "$.policy.roles[0]: "},
    {"{\"kind\":\"manual\",\"roles\":[3]}", NULL, "$.policy.roles"},
    {"{\"kind\":\"manual\",\"roles\":[\"boss\"]}", "manual", NULL}, /* a custom role */
    {"{\"kind\":\"manual\",\"on_timeout\":\"approve\"}", NULL, "$.policy.on_timeout: "},
    {"{\"kind\":\"manual\",\"timeout_s\":9,\"on_timeout\":\"shrug\"}", NULL,
     "$.policy.on_timeout: "},
    {"{\"kind\":\"freeze-window\",\"from\":\"08:00\",\"to\":\"09:00\",\"zone\":\"CET\"}", NULL,
     "$.policy.zone: "},
    {"{\"kind\":\"freeze-window\"}", NULL, "$.policy: expected from and to"},
    {"{\"kind\":\"freeze-window\",\"from\":\"8:00\",\"to\":\"09:00\"}", NULL,
     "$.policy.from: expected a time of day"},
    {"{\"kind\":\"freeze-window\",\"from\":\"08:00\",\"to\":\"24:01\"}", NULL,
     "$.policy.to: expected a time of day"},
    {"{\"kind\":\"freeze-window\",\"days\":\"FUN\",\"from\":\"08:00\",\"to\":\"09:00\"}", NULL,
     "$.policy.days: "},
    {"{\"kind\":\"freeze-window\",\"start\":\"0 0 8 * * ?\"}", NULL,
     "$.policy: expected from and to"},
    {"\"evaluate\"", NULL, "$.policy.dataset: missing"},
    {"{\"kind\":\"evaluate\",\"dataset\":\"\"}", NULL, "$.policy.dataset: "},
    {"{\"kind\":\"evaluate\",\"dataset\":\"d\",\"metric\":\"f1\"}", NULL, "$.policy.metric: "},
    {"{\"kind\":\"evaluate\",\"dataset\":\"d\",\"margin\":1}", NULL, "$.policy.margin: "},
    {"{\"kind\":\"evaluate\",\"dataset\":\"d\",\"on_failure\":\"wait\"}", NULL,
     "$.policy.on_failure: "},
    {"\"ab\"", "ab", NULL},
    {"{\"kind\":\"ab\",\"share\":100}", NULL, "$.policy.share: "},
    {"\"always-updates\"", NULL, "$.policy: \"always-updates\" is none of "},
    {"{\"kind\":\"manual\",\"share\":1}", NULL, "$.policy.share: unknown option"},
    {"{}", NULL, "$.policy.kind: missing"},
    {"3", NULL, "$.policy: expected the name of a policy"},
};

START_TEST(a_policy_is_a_name_an_object_or_a_list)
{
    struct weir_arena arena;
    struct weir_policy_chain chain;
    struct weir_error err;
    json_t *json = json_loads(forms[_i].json, JSON_DECODE_ANY, NULL);
    weir_arena_init(&arena, 0);
    weir_status status = weir_policy_chain_read(json, "$.policy", &arena, &chain, &err);
    if (forms[_i].name != NULL) {
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        ck_assert_str_eq(chain.names, forms[_i].name);
    } else {
        ck_assert_int_ne(status, WEIR_OK);
        ck_assert_msg(strncmp(err.message, forms[_i].message, strlen(forms[_i].message)) == 0, "%s",
                      err.message);
    }
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

/** Monday, 5 January 1970, 00:00 UTC. */
#define MONDAY_MS (4 * INT64_C(86400000))
#define HOURS(n)  ((n)*INT64_C(3600000))

static const struct {
    const char *json;
    int64_t now_ms, until_ms;
} windows[] = {
    {"{\"kind\":\"freeze-window\",\"days\":\"MON-FRI\",\"from\":\"08:00\",\"to\":\"18:00\"}",
     MONDAY_MS + HOURS(8) - 1, 0},
    {"{\"kind\":\"freeze-window\",\"days\":\"MON-FRI\",\"from\":\"08:00\",\"to\":\"18:00\"}",
     MONDAY_MS + HOURS(8), MONDAY_MS + HOURS(18)},
    {"{\"kind\":\"freeze-window\",\"days\":\"MON-FRI\",\"from\":\"08:00\",\"to\":\"18:00\"}",
     MONDAY_MS + HOURS(18) - 1, MONDAY_MS + HOURS(18)},
    {"{\"kind\":\"freeze-window\",\"days\":\"MON-FRI\",\"from\":\"08:00\",\"to\":\"18:00\"}",
     MONDAY_MS + HOURS(18), 0},
    {"{\"kind\":\"freeze-window\",\"days\":\"MON-FRI\",\"from\":\"08:00\",\"to\":\"18:00\"}",
     MONDAY_MS + HOURS(5 * 24 + 9), 0}, /* Saturday */
    {"{\"kind\":\"freeze-window\",\"days\":\"FRI\",\"from\":\"22:00\",\"to\":\"06:00\"}",
     MONDAY_MS + HOURS(5 * 24 + 3), MONDAY_MS + HOURS(5 * 24 + 6)}, /* begun on Friday */
    {"{\"kind\":\"freeze-window\",\"days\":\"SAT,SUN\",\"from\":\"00:00\",\"to\":\"24:00\"}",
     MONDAY_MS + HOURS(5 * 24), MONDAY_MS + HOURS(7 * 24)}, /* windows that touch are one */
    {"{\"kind\":\"freeze-window\",\"start\":\"0 0 0 1 * ?\",\"duration_s\":7200,\"zone\":\"UTC\"}",
     HOURS(31 * 24 + 1), HOURS(31 * 24 + 2)}, /* 1 February */
};

START_TEST(a_freeze_window_waits_until_its_end)
{
    struct weir_arena arena;
    struct weir_policy_chain chain;
    struct weir_error err;
    json_t *json = json_loads(windows[_i].json, 0, NULL);
    weir_arena_init(&arena, 0);
    ck_assert_msg(weir_policy_chain_read(json, "$", &arena, &chain, &err) == WEIR_OK, "%s",
                  err.message);
    json_decref(json);
    const struct weir_policy_inputs inputs = {
        .policy = chain.items[0].text, .candidate_version = 1, .now_ms = windows[_i].now_ms};
    struct weir_policy_verdict told = weir_policy_decide(&chain.items[0], &inputs, &arena);
    ck_assert_str_eq(told.verdict, windows[_i].until_ms > 0 ? "wait" : "pass");
    ck_assert_int_eq(told.until_ms, windows[_i].until_ms);
    check_replay(&inputs, &told, &arena);
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const char *trial, *message; /**< NULL: it can be made again. */
} trials[] = {
    {"{\"step\":0,\"step_ms\":5,\"begun_ms\":6,\"n_requests\":3}", NULL},
    {"{\"step_ms\":9223372036854775807}", "step_ms"},
    {"{\"step_ms\":1,\"begun_ms\":9223372036854775807}", "begun_ms"},
    {"{\"step_ms\":-1}", "step_ms"},
    {"{\"step_ms\":\"soon\"}", "step_ms"},
    {"{\"colour\":1}", "colour"},
    {"[]", "expected an object"},
};

/* Rows are imported, too: what they say of a trial is read as what comes from outside. */
START_TEST(a_trial_that_no_row_has_is_refused)
{
    struct weir_arena arena;
    struct weir_policy_verdict told;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < 2; i++) {
        char *text = weir_arena_printf(&arena,
                                       "{\"policy\":{\"kind\":\"%s\"},\"now_ms\":9,"
                                       "\"candidate_version\":2,\"serving_version\":1,"
                                       "\"candidate_state\":\"CANARY\",\"trial\":%s}",
                                       i == 0 ? "canary" : "shadow", trials[_i].trial);
        weir_status status = weir_policy_replay(text, &arena, &told, &err);
        ck_assert_msg(status == (trials[_i].message == NULL ? WEIR_OK : WEIR_ERR_INVALID), "%s: %s",
                      text, err.message);
        ck_assert(trials[_i].message == NULL || strstr(err.message, trials[_i].message) != NULL);
    }
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("policy", {a_trial_that_no_row_has_is_refused, WEIR_ARRAY_LEN(trials)},
                     {policies_keep_the_laws_of_registries, 0},
                     {states_of_trials_are_their_policies_own, 0},
                     {each_policy_gives_a_verdict_and_says_why, 0},
                     {a_policy_is_a_name_an_object_or_a_list, WEIR_ARRAY_LEN(forms)},
                     {a_freeze_window_waits_until_its_end, WEIR_ARRAY_LEN(windows)})
