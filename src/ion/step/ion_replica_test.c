/* What replicas report becomes the state of their pipeline, an alert, and the end of the alert. */
#include "ion/ion_fixture.h"

static struct weir_arena arena;
static struct weir_ion_state state;
static struct weir_ion_actions actions;
static struct weir_ion_replica reports[3];
static int64_t now_ms;

static void must(struct weir_ion_event event)
{
    struct weir_error err;
    weir_status status;
    actions = (struct weir_ion_actions){0};
    now_ms += 1000;
    status = weir_ion_step(&state, &event, now_ms, &arena, &actions, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

static void started(char *job)
{
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_STARTED, .pipeline = "p", .job = job});
}

/** A pipeline whose replicas of job "j" have been given deployment 1 of model version 1. */
static void set_up(void)
{
    weir_arena_init(&arena, 0);
    weir_ion_state_new("x", &arena, &state);
    memset(reports, 0, sizeof reports);
    now_ms = 1000000;
    must(applied(&arena, "always-update", "{}", 2));
    must(model(&arena, "t", 1));
    started("j");
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

/** Replica i says this of itself; the others' last reports stay. */
static void report(int i, char *replica, char *said, int64_t revision, int64_t served, char *reason)
{
    reports[i] = (struct weir_ion_replica){.ion = "x",
                                           .pipeline = "p",
                                           .replica = replica,
                                           .state = said,
                                           .revision = revision,
                                           .served_revision = served,
                                           .reason = reason};
    state.replicas = reports;
    state.n_replicas = (size_t)i + 1 > state.n_replicas ? (size_t)i + 1 : state.n_replicas;
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_REPLICA, .pipeline = "p"});
}

static const struct weir_ion_pipeline *door(void)
{
    return pipeline_of(&state, "p");
}

static const char *shown(int64_t version)
{
    for (size_t i = 0; i < state.n_candidates; i++) {
        if (state.candidates[i].version == version) {
            return weir_ion_candidate_shown(&state, &state.candidates[i]);
        }
    }
    return "none";
}

static const struct weir_ion_action *only_alert(void)
{
    const struct weir_ion_action *found = NULL;
    for (size_t i = 0; i < actions.n; i++) {
        if (actions.items[i].type == WEIR_ION_ACTION_ALERT) {
            ck_assert_ptr_null(found);
            found = &actions.items[i];
        }
    }
    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(found->key, "deployment_failed:x:p");
    return found;
}

START_TEST(it_serves_when_a_replica_says_so_and_not_before)
{
    ck_assert_str_eq(door()->state, "DEPLOYING");
    ck_assert_str_eq(shown(1), "DEPLOYING");
    report(0, "j-0", "STARTING", 0, 0, NULL);
    ck_assert_str_eq(door()->state, "DEPLOYING");
    report(0, "j-0", "APPLIED", 1, 1, NULL);
    ck_assert_str_eq(door()->state, "SERVING");
    ck_assert_int_eq(door()->state_ms, now_ms);
    ck_assert_str_eq(shown(1), "SERVING");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE), 1);
    report(0, "j-0", "APPLIED", 1, 1, NULL);
    ck_assert_uint_eq(actions.n, 0); /* nothing new */
}

END_TEST

START_TEST(a_deployment_that_fails_is_critical_while_nothing_serves)
{
    report(0, "j-0", "FAILED", 1, 0, "it is a classifier");
    ck_assert_str_eq(door()->state, "DEPLOY_FAILED");
    ck_assert_str_eq(door()->state_reason, "it is a classifier");
    ck_assert_str_eq(shown(1), "DEPLOY_FAILED");
    ck_assert_str_eq(only_alert()->severity, "critical");
    ck_assert_ptr_nonnull(strstr(only_alert()->message, "it is a classifier"));
    report(0, "j-0", "FAILED", 1, 0, "it is a classifier");
    ck_assert_uint_eq(actions.n, 0); /* it tries again and again */
    report(0, "j-0", "FAILED", 1, 0, "no memory");
    ck_assert_ptr_nonnull(strstr(only_alert()->message, "no memory"));
    report(0, "j-0", "APPLIED", 1, 1, NULL);
    ck_assert_str_eq(door()->state, "SERVING");
    ck_assert_ptr_null(door()->state_reason);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE), 1);
}

END_TEST

START_TEST(what_served_before_serves_on_when_the_next_fails)
{
    report(0, "j-0", "APPLIED", 1, 1, NULL);
    must(model(&arena, "t", 2));
    ck_assert_str_eq(door()->state, "SERVING"); /* version 1 does */
    ck_assert_str_eq(shown(1), "SERVING");
    ck_assert_str_eq(shown(2), "DEPLOYING");
    report(0, "j-0", "FAILED", 2, 1, "damaged");
    ck_assert_str_eq(door()->state, "DEPLOY_FAILED");
    ck_assert_str_eq(only_alert()->severity, "warning");
    ck_assert_str_eq(shown(1), "SERVING");
    ck_assert_str_eq(shown(2), "DEPLOY_FAILED");
    must(model(&arena, "t", 3)); /* the alert stays until one works */
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE), 0);
    report(0, "j-0", "FAILED", 2, 1, "damaged"); /* a late word about the one before */
    ck_assert_str_eq(door()->state, "SERVING");
    report(0, "j-0", "APPLIED", 3, 3, NULL);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE), 1);
    ck_assert_str_eq(shown(1), "RETIRED");
    ck_assert_str_eq(shown(3), "SERVING");
}

END_TEST

START_TEST(one_replica_that_cannot_is_enough_to_say_so)
{
    report(0, "j-0", "APPLIED", 1, 1, NULL);
    report(1, "j-1", "FAILED", 1, 0, "no space");
    ck_assert_str_eq(door()->state, "DEPLOY_FAILED");
    ck_assert_str_eq(only_alert()->severity, "warning"); /* the other decides */
    report(1, "j-1", "APPLIED", 1, 1, NULL);
    ck_assert_str_eq(door()->state, "SERVING");
}

END_TEST

START_TEST(replicas_of_another_job_say_nothing)
{
    report(0, "k-0", "APPLIED", 1, 1, NULL);
    ck_assert_str_eq(door()->state, "DEPLOYING");
    report(0, "jj-0", "FAILED", 1, 0, "no");
    ck_assert_str_eq(door()->state, "DEPLOYING");
    report(0, "j-0", "APPLIED", 1, 1, NULL);
    must(applied(&arena, "always-update", "{}", 3)); /* other replicas: a new job */
    ck_assert_str_eq(door()->state, "DEPLOYING");
    ck_assert_int_eq(door()->service.served_revision, 0);
    ck_assert_str_eq(shown(1), "DEPLOYING");
    started("k");
    report(1, "k-0", "APPLIED", door()->service.deployment_revision,
           door()->service.deployment_revision, NULL);
    ck_assert_str_eq(door()->state, "SERVING");
}

END_TEST

START_TEST(an_alert_ends_with_its_replicas_and_its_pipeline)
{
    report(0, "j-0", "FAILED", 1, 0, "no");
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_FAILED, .pipeline = "p", .job = "j", .note = "cancelled"});
    ck_assert_str_eq(door()->state, "WAITING");
    ck_assert_str_eq(door()->state_reason, "its replicas have ended: cancelled");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE), 1);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED, .actor = "ann"});
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE),
                      2); /* that of its training too */
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ion_replica");
    TCase *tcase = tcase_create("ion_replica");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, it_serves_when_a_replica_says_so_and_not_before);
    tcase_add_test(tcase, a_deployment_that_fails_is_critical_while_nothing_serves);
    tcase_add_test(tcase, what_served_before_serves_on_when_the_next_fails);
    tcase_add_test(tcase, one_replica_that_cannot_is_enough_to_say_so);
    tcase_add_test(tcase, replicas_of_another_job_say_nothing);
    tcase_add_test(tcase, an_alert_ends_with_its_replicas_and_its_pipeline);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
