/* Rules of alerts act on IONs, by the events that people's commands send. */
#include "control/engine/alerter.h"

#include "base/test_seed.h"
#include "base/uuid.h"
#include "control/job/control_fixture.h"
#include "notify/notify.h"
#include "store/role.h"
#include "store/tenant.h"

static struct control_fixture fixture;

static weir_status add_user_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_user user = {.name = "ann", .kind = "person", .role = context};
    return weir_txn_insert(txn, &weir_user_resource, &user, err);
}

static void set_up(void)
{
    control_fixture_make(&fixture);
    fixture_write(&fixture.store, add_user_in, "ml-engineer");
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

/* As if a ms passes whenever somebody asks. */
static int64_t ask_fixture(const struct weir_clock *asked)
{
    (void)asked;
    return fixture.now_ms++;
}

static const struct weir_clock fixture_clock = {.now_ms = ask_fixture};

static struct alerter the_alerter(void)
{
    return (struct alerter){
        .store = fixture.store.store, .clock = &fixture_clock, .server_url = "http://h:1"};
}

/* Who sets the rules here; its role may be changed. */
static const struct weir_identity ann = {.user = {.name = "ann"}, .rights = WEIR_RIGHTS_ALL};

static weir_status set_rule_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_alert_rule rule = {.name = "r",
                                   .project = "default",
                                   .group_by = "rule",
                                   .receivers = "[]",
                                   .actions = context};
    return weir_alert_rule_set(txn, &rule, &ann, fixture.now_ms, &fixture.store.arena, err);
}

static weir_status raise_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    const struct weir_alert alert = {
        .id = id, .key = context, .kind = "drift", .subject = "ion/x", .message = "It drifts"};
    return weir_alert_raise(txn, &alert, fixture.now_ms, NULL, err);
}

/* The rule with these actions, and an alert that it wants. */
static void alert_with(const char *actions)
{
    const struct alerter alerter = the_alerter();
    fixture_write(&fixture.store, set_rule_in, (void *)actions);
    fixture_write(&fixture.store, raise_in, "drift:x:p:score");
    alerter_look(&alerter);
    carry_out(&fixture, 1);
}

/* What became of the only action of the only firing: its state, or why not. */
static const char *outcome_of(const char *member)
{
    void *items;
    ck_assert_uint_eq(list_records(&fixture, &weir_alert_firing_resource, &items), 1);
    const struct weir_alert_firing *firing = items;
    json_t *actions = firing->actions != NULL ? json_loads(firing->actions, 0, NULL) : NULL;
    const char *state = json_string_value(json_object_get(json_array_get(actions, 0), member));
    char *copy = weir_arena_strdup(&fixture.store.arena, state != NULL ? state : "");
    json_decref(actions);
    return copy;
}

static const char *outcome(void)
{
    return outcome_of("state");
}

/* "x" with a link from its own model, whose first version is its default; versions 1 to 3 came. */
static void apply_with_default(void)
{
    struct weir_arena *arena = &fixture.store.arena;
    char *text;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(
        arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: lenet},"
        " {name: p, type: prediction, source: {kind: http}}],"
        " links: [{from: {model: x.t}, to: p, policy: always-update,"
        " default: x.t@1}]}",
        &text);
    event.document = text;
    turn(&fixture, apply_in, &event);
    (void)register_model(&fixture, "m1", NULL);
    fixture.now_ms += 1000;
    (void)register_model(&fixture, "m2", NULL);
    fixture.now_ms += 1000;
    (void)register_model(&fixture, "m3", NULL);
    fixture.now_ms += 1000;
    struct weir_ion_state state = ion_state(&fixture);
    ck_assert_str_eq(serving(&state, "model/x.t:p")->model_version, "m3");
}

static const char *now_serves(void)
{
    struct weir_ion_state state = ion_state(&fixture);
    return serving(&state, "model/x.t:p")->model_version;
}

/* The newest policy decision was made by the rule. */
static void decided_by_rule(void)
{
    void *items;
    size_t n = list_records(&fixture, &weir_policy_decision_resource, &items);
    ck_assert_uint_ge(n, 1);
    ck_assert_str_eq(((const struct weir_policy_decision *)items)[n - 1].actor, "rule/r");
}

START_TEST(it_rolls_back_once)
{
    apply_with_default();
    size_t n = count_records(&fixture, &weir_policy_decision_resource);
    alert_with("[{\"kind\":\"roll-back\"}]");
    ck_assert_str_eq(now_serves(), "m2");
    ck_assert_str_eq(outcome(), "done");
    decided_by_rule();
    ck_assert_uint_eq(count_records(&fixture, &weir_policy_decision_resource), n + 1);
    fixture.now_ms += 1000;
    alert_with("[{\"kind\":\"roll-back\"}]"); /* raised again: the same alert */
    ck_assert_str_eq(now_serves(), "m2");
    ck_assert_uint_eq(count_records(&fixture, &weir_policy_decision_resource), n + 1);
}

END_TEST

START_TEST(it_goes_to_the_default_model)
{
    apply_with_default();
    alert_with("[{\"kind\":\"default-model\",\"link\":\"model/x.t:p\"}]");
    ck_assert_str_eq(now_serves(), "m1");
    ck_assert_str_eq(outcome(), "done");
    decided_by_rule();
}

END_TEST

START_TEST(it_trains_again)
{
    apply(&fixture, "manual", 1);
    alert_with("[{\"kind\":\"retrain\"}]");
    ck_assert_str_eq(outcome(), "done");
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "TRAINING");
    ck_assert_str_eq(pipeline_record(&fixture, "t").runs.cause_by, "rule/r");
    ck_assert_int_eq(pipeline_record(&fixture, "t").runs.training, 1);
}

END_TEST

static weir_status resume_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    const struct weir_ion_event event = {.type = WEIR_ION_EVENT_RESUME, .actor = "ann"};
    (void)context;
    return control_ion_event(control, txn, "x", &event, err);
}

START_TEST(it_pauses_until_somebody_lets_it_go_on)
{
    apply_with_default();
    carry_out(&fixture, 0);
    ck_assert_ptr_nonnull(pipeline_record(&fixture, "p").job);
    alert_with("[{\"kind\":\"pause\"}]");
    ck_assert_str_eq(outcome(), "done");
    struct weir_ion_pipeline paused = pipeline_record(&fixture, "p");
    ck_assert_str_eq(paused.paused_by, "rule/r");
    ck_assert_str_eq(paused.state, "WAITING");
    ck_assert_ptr_null(paused.job);
    trigger(&fixture);
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "IDLE");
    (void)register_model(&fixture, "m3", NULL); /* it serves, but nothing starts */
    ck_assert_uint_eq(carry_out(&fixture, 0), 0);
    turn(&fixture, resume_in, NULL);
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "TRAINING");
    carry_out(&fixture, 0);
    ck_assert_ptr_nonnull(pipeline_record(&fixture, "p").job);
    ck_assert_ptr_null(pipeline_record(&fixture, "p").paused_by);
    ck_assert_str_eq(now_serves(), "m3");
}

END_TEST

START_TEST(what_the_ion_refuses_is_noted_and_not_tried_again)
{
    apply(&fixture, "manual", 1);
    alert_with("[{\"kind\":\"roll-back\"}]"); /* nothing serves */
    ck_assert_str_eq(outcome(), "refused");
    alert_with("[{\"kind\":\"roll-back\"}]");
    ck_assert_str_eq(outcome(), "refused");
}

END_TEST

static weir_status make_sandbox_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "UPDATE ions SET mode = 'sandbox'", WEIR_NO_BINDS, NULL, err);
}

START_TEST(a_sandbox_is_left_alone)
{
    apply_with_default();
    fixture_write(&fixture.store, make_sandbox_in, NULL);
    alert_with("[{\"kind\":\"roll-back\"}]");
    ck_assert_str_eq(now_serves(), "m3");
    void *items;
    ck_assert_uint_eq(list_records(&fixture, &weir_alert_resource, &items), 1);
    ck_assert(((const struct weir_alert *)items)->is_sandbox);
}

END_TEST

/* What each action needs, written once more: the words of the right of the command that people have. */
static const struct {
    const char *action, *right;
} needs[] = {{"retrain", "trigger ions"},
             {"roll-back", "roll back ions"},
             {"default-model", "roll back ions"},
             {"pause", "pause ions"}};

/* What became of the maker after it has set the rule. */
struct maker_now {
    const char *role; /**< On the platform; NULL: it is gone. */
    /** That its role in the project gives beside "read ions"; NULL: it has none. */
    const char *right;
    bool is_in_other_project; /**< That role is in another one. */
    bool is_disabled;
};

static weir_status change_maker_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct maker_now *now = context;
    struct weir_arena *arena = &fixture.store.arena;
    const struct weir_user user = {
        .name = "ann", .role = (char *)now->role, .is_disabled = now->is_disabled};
    if (now->role == NULL) {
        return weir_txn_delete(txn, &weir_user_resource, "ann", err);
    }
    WEIR_TRY(
        weir_txn_update(txn, &weir_user_resource, &user, WEIR_FIELDS("role", "is_disabled"), err));
    if (now->right == NULL) {
        return WEIR_OK;
    }
    const struct weir_custom_role role = {.name = "some",
                                          .rights =
                                              weir_arena_printf(arena, "read ions,%s", now->right),
                                          .created_by = "eve",
                                          .changed_by = "eve"};
    const struct weir_project_member member = {.name = "m",
                                               .project =
                                                   now->is_in_other_project ? "other" : "default",
                                               .user = "ann",
                                               .role = "some",
                                               .created_by = "eve"};
    WEIR_TRY(weir_txn_insert(txn, &weir_custom_role_resource, &role, err));
    WEIR_TRY(
        weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "other"}, err));
    return weir_txn_insert(txn, &weir_project_member_resource, &member, err);
}

/* The matrix as documented: operators and ML engineers may all four, data scientists train. */
static bool role_may(const char *role, const char *right)
{
    return strcmp(role, "admin") == 0 || strcmp(role, "operator") == 0 ||
           strcmp(role, "ml-engineer") == 0 ||
           (strcmp(role, "data-scientist") == 0 && strcmp(right, "trigger ions") == 0);
}

static bool may_now(const struct maker_now *now, const char *right)
{
    return now->role != NULL && !now->is_disabled &&
           (role_may(now->role, right) ||
            (now->right != NULL && !now->is_in_other_project && strcmp(now->right, right) == 0));
}

START_TEST(a_rule_does_what_its_maker_may_when_it_fires)
{
    static const char *const roles[] = {NULL,       "member",   "member",         "viewer",
                                        "approver", "operator", "data-scientist", "ml-engineer",
                                        "admin"};
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int round = 0; round < 8; round++) {
        size_t i = weir_rng_below(&rng, WEIR_ARRAY_LEN(needs));
        struct maker_now now = {.role = roles[weir_rng_below(&rng, WEIR_ARRAY_LEN(roles))],
                                .is_in_other_project = weir_rng_below(&rng, 4) == 0,
                                .is_disabled = weir_rng_below(&rng, 6) == 0};
        if (weir_rng_below(&rng, 2) == 0) {
            now.right =
                needs[weir_rng_below(&rng, 2) == 0 ? i
                                                   : weir_rng_below(&rng, WEIR_ARRAY_LEN(needs))]
                    .right;
        }
        const char *actions =
            weir_arena_printf(&fixture.store.arena, "[{\"kind\":\"%s\"}]", needs[i].action);
        apply_with_default();
        fixture_write(&fixture.store, set_rule_in, (void *)actions);
        fixture_write(&fixture.store, change_maker_in, &now);
        fixture_write(&fixture.store, raise_in, "drift:x:p:score");
        alerter_look(&(struct alerter){
            .store = fixture.store.store, .clock = &fixture_clock, .server_url = "http://h:1"});
        carry_out(&fixture, 1);
        bool may = may_now(&now, needs[i].right);
        ck_assert_msg((strcmp(outcome(), "done") == 0) == may &&
                          (strstr(outcome_of("message"), "its maker") != NULL) == !may,
                      "round %d: %s as %s%s, %s: %s (%s)", round, needs[i].action,
                      now.role != NULL ? now.role : "nobody", now.is_disabled ? ", disabled" : "",
                      now.right != NULL ? now.right : "-", outcome(), outcome_of("message"));
        tear_down();
        set_up();
    }
}

END_TEST

static weir_status hold_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_alert_rule rule = {
        .name = "r", .group_by = "rule", .receivers = "[]", .hold_ms = 60000};
    (void)context;
    return weir_alert_rule_set(txn, &rule, &ann, fixture.now_ms, &fixture.store.arena, err);
}

/* The clock asked within the look: an alert of the same moment is held, too. */
START_TEST(what_is_raised_as_it_looks_is_held_for_its_time)
{
    const struct alerter alerter = the_alerter();
    void *items;
    fixture_write(&fixture.store, hold_in, NULL);
    fixture.now_ms++;
    fixture_write(&fixture.store, raise_in, "drift:x:p:score");
    fixture.now_ms--; /* the look began before it was raised, and sees it */
    alerter_look(&alerter);
    ck_assert_uint_eq(list_records(&fixture, &weir_alert_firing_resource, &items), 1);
    const struct weir_alert_firing *firing = items;
    ck_assert_str_eq(firing->state, WEIR_FIRING_WAITING);
    ck_assert_int_gt(firing->due_ms, fixture.now_ms);
}

END_TEST

WEIR_TEST_MAIN_WITH("alerter", set_up, tear_down, it_rolls_back_once, it_goes_to_the_default_model,
                    it_trains_again, it_pauses_until_somebody_lets_it_go_on,
                    what_the_ion_refuses_is_noted_and_not_tried_again,
                    a_rule_does_what_its_maker_may_when_it_fires, a_sandbox_is_left_alone,
                    what_is_raised_as_it_looks_is_held_for_its_time)
