/* What a deployment does when this and that happens: by hand, one story a test. */
#include "deploy/step_fixture.h"

static struct deploy_fixture f;

static void set_up(void)
{
    deploy_fixture_init(&f);
}

static void tear_down(void)
{
    weir_arena_fini(&f.arena);
}

static const struct weir_shares canary = {.items = {{3, 900000}, {4, 100000}}, .n = 2};

/* Version 3 serves from replica d-1. */
static void serve(int64_t min, int64_t max)
{
    deploy_apply(&f, wanted_of(weir_shares_of(3), min, max));
    deploy_started(&f, "d-1");
    deploy_report(&f, "d-1", "[" READY(3) "]");
}

START_TEST(a_first_deployment_has_no_traffic_until_its_version_is_ready)
{
    deploy_apply(&f, wanted_of(weir_shares_of(3), 1, 2));
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_START), 1);
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_DEPLOYING);
    ck_assert_str_eq(live_text(&f), "none");
    deploy_started(&f, "d-1");
    deploy_report(&f, "d-1", "[" LOADS(3) "]");
    ck_assert_str_eq(live_text(&f), "none");
    deploy_report(&f, "d-1", "[" READY(3) "]");
    ck_assert_str_eq(live_text(&f), "v3=100");
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_SERVING);
}

END_TEST

START_TEST(a_version_that_fails_to_load_leaves_the_shares_as_they_were)
{
    serve(1, 1);
    deploy_apply(&f, wanted_of(canary, 1, 1));
    ck_assert_str_eq(live_text(&f), "v3=100");
    deploy_report(&f, "d-1", "[" READY(3) "," FAILS(4) "]");
    ck_assert_str_eq(live_text(&f), "v3=100");
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_SERVING);
    ck_assert_str_eq(f.state.deployment.reason,
                     "v4 could not be loaded by replica d-1: no operator Foo; the traffic stays as "
                     "it was");
    deploy_report(&f, "d-1", "[" READY(3) "," READY(4) "]"); /* it was mended */
    ck_assert_str_eq(live_text(&f), "v3=90,v4=10");
    ck_assert_ptr_null(f.state.deployment.reason);
    ck_assert_str_eq(f.state.deployment.previous, "[{\"version\":3,\"percent\":100.0}]");
}

END_TEST

START_TEST(a_first_version_that_fails_is_told)
{
    deploy_apply(&f, wanted_of(weir_shares_of(3), 0, 1));
    deploy_started(&f, "d-1");
    deploy_report(&f, "d-1", "[" FAILS(3) "]");
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_FAILED);
    ck_assert_str_eq(live_text(&f), "none");
    deploy_tick(&f, 1, 0, 0);
    f.now_ms += 14000;
    deploy_report(&f, "d-1", "[" FAILS(3) "]");
    for (int i = 0; i < 10; i++) { /* nobody waits: it goes, and no other comes to fail again */
        f.now_ms += 10000;
        if (n_replicas(&f.state, false) > 0) {
            deploy_report(&f, "d-1", "[" FAILS(3) "]");
        }
        deploy_tick(&f, 0, 0, 0);
    }
    ck_assert_uint_eq(n_replicas(&f.state, false), 0);
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_FAILED);
    deploy_apply(&f, wanted_of(weir_shares_of(3), 0, 1)); /* asked for again: tried again */
    deploy_ended(&f, "d-1", NULL);
    ck_assert_uint_eq(n_replicas(&f.state, false), 1);
}

END_TEST

START_TEST(shares_among_versions_that_are_loaded_change_at_once)
{
    serve(1, 1);
    deploy_apply(&f, wanted_of(canary, 1, 1));
    deploy_report(&f, "d-1", "[" READY(3) "," READY(4) "]");
    struct weir_shares half = {.items = {{3, 500000}, {4, 500000}}, .n = 2};
    deploy_apply(&f, wanted_of(half, 1, 1));
    ck_assert_str_eq(live_text(&f), "v3=50,v4=50");
    deploy_apply(&f, wanted_of(weir_shares_of(4), 1, 1));
    ck_assert_str_eq(live_text(&f), "v4=100");
    ck_assert_uint_eq(f.state.n_versions, 2);
    ck_assert(!f.state.versions[0].is_gone); /* requests for v3 are on their way */
    deploy_tick(&f, WEIR_DEPLOY_KEEP_MS, 0, 0);
    ck_assert(f.state.versions[0].is_gone);
}

END_TEST

START_TEST(it_goes_down_to_no_replica_and_comes_back_when_a_request_is_held)
{
    serve(0, 2);
    deploy_tick(&f, 1000, 0, 0);
    f.now_ms += 50000;
    deploy_report(&f, "d-1", "[" READY(3) "]");
    deploy_tick(&f, 9000, 0, 0);
    ck_assert_uint_eq(n_replicas(&f.state, false), 1);
    deploy_tick(&f, 1000, 0, 0);
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_STOP), 1);
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_IDLE);
    deploy_ended(&f, "d-1", "it was stopped");
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_IDLE);
    ck_assert_str_eq(live_text(&f), "v3=100");
    deploy_tick(&f, 5, 0, 1);
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_START), 1);
    ck_assert_str_eq(f.state.replicas[1].row.id, "d-2");
}

END_TEST

START_TEST(load_brings_more_replicas_once_it_has_lasted)
{
    serve(1, 3);
    deploy_tick(&f, 1000, 20, 0); /* 20 of 8 each: three */
    ck_assert_uint_eq(n_replicas(&f.state, false), 1);
    deploy_tick(&f, 2000, 1, 0); /* a burst */
    deploy_tick(&f, 2000, 20, 0);
    deploy_tick(&f, 4000, 20, 0);
    ck_assert_uint_eq(n_replicas(&f.state, false), 1);
    deploy_tick(&f, 1000, 20, 0);
    ck_assert_uint_eq(n_replicas(&f.state, false), 3);
    deploy_tick(&f, 1000, 400, 0);
    deploy_tick(&f, 5000, 400, 0);
    ck_assert_uint_eq(n_replicas(&f.state, true), 3);
}

END_TEST

START_TEST(a_replica_that_ends_is_replaced_at_once_then_slower)
{
    serve(1, 1);
    deploy_ended(&f, "d-1", "killed by signal 9");
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_START), 1);
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_DEPLOYING);
    ck_assert_str_eq(f.state.deployment.reason, "its last replica ended: killed by signal 9");
    deploy_do(&f, (struct weir_deploy_event){
                      .type = WEIR_DEPLOY_EVENT_REFUSED, .replica = "d-2", .note = "no quota"});
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_FAILED);
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_START), 0);
    deploy_tick(&f, 1999, 0, 0);
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_START), 0);
    deploy_tick(&f, 1, 0, 0);
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_START), 1);
    deploy_started(&f, "d-3");
    deploy_report(&f, "d-3", "[" READY(3) "]");
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_SERVING);
    ck_assert_int_eq(f.state.deployment.n_failures, 0);
}

END_TEST

START_TEST(a_silent_replica_gets_nothing_and_is_replaced)
{
    serve(1, 2);
    deploy_tick(&f, WEIR_DEPLOY_SILENT_MS, 0, 0);
    ck_assert_str_eq(f.state.replicas[0].row.state, WEIR_DEPLOYED_SILENT);
    ck_assert_uint_eq(weir_deploy_n_ready(&f.state, 3), 0);
    deploy_report(&f, "d-1", "[" READY(3) "]");
    ck_assert_uint_eq(weir_deploy_n_ready(&f.state, 3), 1);
    deploy_tick(&f, WEIR_DEPLOY_RESTART_MS, 0, 0);
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_STOP), 1);
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_START), 1); /* there is room for both */
}

END_TEST

START_TEST(reports_of_strangers_and_of_no_form_are_refused)
{
    serve(1, 1);
    struct weir_deploy_event event = {
        .type = WEIR_DEPLOY_EVENT_REPORT, .replica = "d-9", .url = "http://h:1"};
    ck_assert_int_eq(deploy_try(&f, event), WEIR_ERR_NOT_FOUND);
    event.replica = "d-1";
    event.versions = "[{\"version\":3,\"state\":\"FINE\"}]";
    ck_assert_int_eq(deploy_try(&f, event), WEIR_ERR_INVALID);
    ck_assert_str_eq(f.state.deployment.state, WEIR_DEPLOYMENT_SERVING);
}

END_TEST

START_TEST(a_deleted_deployment_stops_all)
{
    serve(2, 2); /* d-2 has no job yet */
    deploy_do(&f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_DELETED});
    ck_assert_uint_eq(n_actions(&f, WEIR_DEPLOY_ACTION_STOP), 1);
    ck_assert(f.state.is_deleted);
}

END_TEST

WEIR_TEST_MAIN_WITH("deploy_step", set_up, tear_down,
                    a_first_deployment_has_no_traffic_until_its_version_is_ready,
                    a_version_that_fails_to_load_leaves_the_shares_as_they_were,
                    a_first_version_that_fails_is_told,
                    shares_among_versions_that_are_loaded_change_at_once,
                    it_goes_down_to_no_replica_and_comes_back_when_a_request_is_held,
                    load_brings_more_replicas_once_it_has_lasted,
                    a_replica_that_ends_is_replaced_at_once_then_slower,
                    a_silent_replica_gets_nothing_and_is_replaced,
                    reports_of_strangers_and_of_no_form_are_refused, a_deleted_deployment_stops_all)
