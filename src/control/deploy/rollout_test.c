/* What links of IONs want of deployments, carried out over a store: given, given back, refused, and tried
 * again. Each action fails at the end of its transaction first. */
#include "control/rollout.h"

#include "control/deploy.h"
#include "control/job/control_fixture.h"
#include "store/event.h"

#include <inttypes.h>

#define LINK "model/x.t:deployment/d"

static struct control_fixture fixture;

static void set_up(void)
{
    control_fixture_make(&fixture);
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

static void apply_links(const char *links)
{
    struct weir_arena *arena = &fixture.store.arena;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    char *text;
    event.doc = doc_from_yaml(
        arena, weir_arena_printf(arena, "{name: x, pipelines: [], links: [%s]}", links), &text);
    event.document = text;
    turn(&fixture, apply_in, &event);
}

static void apply_policy(const char *policy)
{
    apply_links(weir_arena_printf(&fixture.store.arena,
                                  "{from: {model: x.t}, to: {deployment: d}, policy: %s}", policy));
}

static void delete_ion(void)
{
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_DELETED, .actor = "ann"};
    turn(&fixture, ion_event_in, &event);
}

struct put {
    const char *name, *body;
};

static weir_status put_in(struct control *control, struct weir_txn *txn, void *context,
                          struct weir_error *err)
{
    const struct put *put = context;
    struct weir_deploy_state state;
    json_t *body = json_loads(put->body, 0, NULL);
    REQUIRE(body != NULL);
    weir_status status = control_deploy_put(control, txn, put->name, body, &state, err);
    json_decref(body);
    return status;
}

static void put(const char *body)
{
    turn(&fixture, put_in, &(struct put){"d", body});
}

static weir_status load_d_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_deploy_load(txn, "d", &fixture.store.arena, context, err);
}

static struct weir_deploy_state load_d(void)
{
    struct weir_deploy_state state;
    fixture_read(&fixture.store, load_d_in, &state);
    return state;
}

/** The shares that are asked for, and the mirror: "v1=90,v2=10 v2". */
static const char *asked(void)
{
    struct weir_deploy_state state = load_d();
    struct weir_shares shares = weir_deploy_shares(&state, false);
    return weir_arena_printf(&fixture.store.arena, "%s v%" PRId64,
                             weir_shares_text(&shares, &fixture.store.arena),
                             state.deployment.mirror);
}

#define CANARY "{kind: canary, steps: [10, 100], max_disagreement: 0.1}"

/** Version 1 serves at the deployment, and version 2 is tried there. */
static void try_second(void)
{
    apply_policy(CANARY);
    (void)register_model(&fixture, "m1", NULL);
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(asked(), "v1=100 v0");
    fixture.now_ms += 1000;
    (void)register_model(&fixture, "m2", NULL);
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(asked(), "v1=90,v2=10 v2");
    fixture.now_ms += 1000;
}

START_TEST(what_a_trial_was_given_goes_back_with_its_ion_or_link)
{
    try_second();
    if (_i == 0) {
        delete_ion();
    } else {
        apply_links("{from: {model: other}, to: {deployment: d}, policy: manual}");
    }
    ck_assert_str_eq(asked(), "v1=90,v2=10 v2");
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(asked(), "v1=100 v0");
}

END_TEST

START_TEST(what_a_person_has_asked_for_since_then_stays)
{
    try_second();
    (void)register_model(&fixture, "m3", NULL);
    delete_ion();
    put("{\"version\":\"v3\",\"mirror\":\"none\"}");
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(asked(), "v3=100 v0");
}

END_TEST

START_TEST(a_link_that_is_there_again_wants_what_it_wants_now)
{
    try_second();
    delete_ion();
    fixture.now_ms += 1000;
    apply_policy("always-update");
    (void)register_model(&fixture, "m3", NULL);
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(asked(), "v3=100 v0");
}

END_TEST

static weir_status is_refused_in(struct control *control, struct weir_txn *txn, void *context,
                                 struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(weir_ion_load(txn, "x", control->arena, &state, err));
    return control_rollout_is_refused(control, txn, &state, context, err);
}

static bool is_refused(void)
{
    bool is_refused;
    turn(&fixture, is_refused_in, &is_refused);
    return is_refused;
}

static weir_status again_in(struct control *control, struct weir_txn *txn, void *context,
                            struct weir_error *err)
{
    (void)context;
    return control_rollout_again(control, txn, "x", err);
}

static weir_status delete_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    return control_deploy_delete(control, txn, context, err);
}

static weir_status push_other_in(struct control *control, struct weir_txn *txn, void *context,
                                 struct weir_error *err)
{
    struct weir_model_version out, version = {.id = context, .model = "other", .blob = "b10b"};
    return control_model_register(control, txn, &version, &out, err);
}

/** The deployment serves another model when the link comes. */
static void be_refused(void)
{
    turn(&fixture, push_other_in, (void *)"o1");
    put("{\"model\":\"other\"}");
    apply_policy("always-update");
    (void)register_model(&fixture, "m1", NULL);
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(alert_state(&fixture, "deployment_failed:x:" LINK), "open");
    ck_assert(is_refused());
}

static struct weir_alert only_alert(void)
{
    void *items;
    ck_assert_uint_eq(list_records(&fixture, &weir_alert_resource, &items), 1);
    return *(const struct weir_alert *)items;
}

START_TEST(what_was_refused_is_tried_again_until_it_can_be)
{
    be_refused();
    fixture.now_ms += 30000;
    turn(&fixture, again_in, NULL);
    ck_assert_uint_gt(carry_out(&fixture, 1), 0);
    ck_assert_int_eq(only_alert().count, 1); /* refused again: nothing new */
    ck_assert(is_refused());
    turn(&fixture, delete_in, (void *)"d");
    fixture.now_ms += 30000;
    turn(&fixture, again_in, NULL);
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(asked(), "v1=100 v0");
    ck_assert_str_eq(only_alert().state, "resolved");
    ck_assert(!is_refused());
    fixture.now_ms += 30000;
    turn(&fixture, again_in, NULL);
    ck_assert_uint_eq(carry_out(&fixture, 1), 0);
}

END_TEST

START_TEST(the_alert_goes_with_its_link_or_ion)
{
    be_refused();
    fixture.now_ms += 1000;
    if (_i == 0) {
        delete_ion();
    } else {
        apply_links("{from: {model: x.t}, to: {deployment: e}, policy: manual}");
    }
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(only_alert().state, "resolved");
    ck_assert_str_eq(load_d().deployment.model, "other");
}

END_TEST

static weir_status report_in_d(struct control *control, struct weir_txn *txn, void *context,
                               struct weir_error *err)
{
    struct weir_deployment_replica row = {
        .id = "d-1", .url = "http://h:1", .versions = context, .stats = "{}"};
    return control_deploy_report(control, txn, "d", &row, err);
}

static void report_ready(int64_t version)
{
    turn(&fixture, report_in_d,
         weir_arena_printf(&fixture.store.arena, "[{\"version\":%" PRId64 ",\"state\":\"READY\"}]",
                           version));
}

static weir_status tick_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    const struct weir_deploy_event tick = {.type = WEIR_DEPLOY_EVENT_TICK, .load = context};
    return control_deploy_event(control, txn, "d", &tick, err);
}

static struct weir_outbox only_action(void)
{
    struct take_actions take = {0};
    turn(&fixture, take_actions_in, &take);
    ck_assert_uint_eq(take.n, 1);
    return take.items[0];
}

START_TEST(what_there_is_no_room_for_yet_is_an_error_that_leaves_nothing)
{
    struct weir_deploy_load load = {0};
    apply_policy("always-update");
    for (int64_t i = 1; i <= WEIR_DEPLOY_VERSIONS_MAX; i++) {
        (void)register_model(&fixture, weir_arena_printf(&fixture.store.arena, "m%02" PRId64, i),
                             NULL);
        (void)carry_out(&fixture, 0);
        report_ready(i);
    }
    ck_assert_uint_eq(load_d().n_versions, WEIR_DEPLOY_VERSIONS_MAX);
    (void)register_model(&fixture, "m99", NULL);
    struct weir_outbox action = only_action();
    size_t n_events = count_records(&fixture, &weir_event_resource);
    ck_assert_int_eq(try_turn(&fixture, do_action_in, &action, false), WEIR_ERR_LIMIT);
    ck_assert_uint_eq(count_records(&fixture, &weir_event_resource), n_events);
    ck_assert_uint_eq(count_records(&fixture, &weir_alert_resource), 0);
    fixture.now_ms += WEIR_DEPLOY_KEEP_MS + 1;
    turn(&fixture, tick_in, &load);
    turn(&fixture, do_action_in, &action);
    ck_assert_str_eq(asked(), "v33=100 v0");
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("control_rollout");
    TCase *tcase = tcase_create("control_rollout");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, what_a_trial_was_given_goes_back_with_its_ion_or_link, 0, 2);
    tcase_add_test(tcase, what_a_person_has_asked_for_since_then_stays);
    tcase_add_test(tcase, a_link_that_is_there_again_wants_what_it_wants_now);
    tcase_add_test(tcase, what_was_refused_is_tried_again_until_it_can_be);
    tcase_add_loop_test(tcase, the_alert_goes_with_its_link_or_ion, 0, 2);
    tcase_add_test(tcase, what_there_is_no_room_for_yet_is_an_error_that_leaves_nothing);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
