/* Deployments over a store: jobs that agents play, reports that replicas send. */
#include "control/alias.h"
#include "control/deploy.h"
#include "control/job/control_fixture.h"

static struct control_fixture fixture;

static weir_status push_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    struct weir_model_version out, version = {.id = context, .model = "digits", .blob = "b10b"};
    version.signature = "{\"format\":\"onnx\"}";
    return control_model_register(control, txn, &version, &out, err);
}

static void set_up(void)
{
    control_fixture_make(&fixture);
    turn(&fixture, push_in, (char *)"id-1");
    turn(&fixture, push_in, (char *)"id-2");
    turn(&fixture, push_in, (char *)"id-3");
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

/* ---- what people and replicas do ------------------------------------------------------------- */

static weir_status put_in(struct control *control, struct weir_txn *txn, void *context,
                          struct weir_error *err)
{
    struct weir_deploy_state state;
    json_t *body = json_loads(context, 0, NULL);
    REQUIRE(body != NULL);
    weir_status status = control_deploy_put(control, txn, "d", body, &state, err);
    json_decref(body);
    return status;
}

static void put(const char *body)
{
    turn(&fixture, put_in, (char *)body);
}

static weir_status delete_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    return control_deploy_delete(control, txn, context, err);
}

static weir_status report_of_in(struct control *control, struct weir_txn *txn, void *context,
                                struct weir_error *err)
{
    return control_deploy_report(control, txn, "d", context, err);
}

static void report_of(const char *replica, const char *versions)
{
    struct weir_deployment_replica row = {
        .id = (char *)replica, .url = "http://h:1", .versions = (char *)versions, .stats = "{}"};
    turn(&fixture, report_of_in, &row);
}

static weir_status tick_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    const struct weir_deploy_event tick = {.type = WEIR_DEPLOY_EVENT_TICK, .load = context};
    return control_deploy_event(control, txn, "d", &tick, err);
}

static void tick(int64_t pass_ms, int64_t n_outstanding, int64_t n_held)
{
    struct weir_deploy_load load = {n_outstanding, n_held};
    fixture.now_ms += pass_ms;
    turn(&fixture, tick_in, &load);
}

/* ---- what is there --------------------------------------------------------------------------- */

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

static const char *live(void)
{
    struct weir_deploy_state state = load_d();
    struct weir_shares shares = weir_deploy_shares(&state, true);
    return weir_shares_text(&shares, &fixture.store.arena);
}

static char *job_of(const char *replica)
{
    struct weir_deployment_replica row;
    REQUIRE(find_record(&fixture, &weir_deployment_replica_resource, replica, &row));
    return row.job;
}

static weir_status desired_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_deploy_state state;
    WEIR_TRY(weir_deploy_load(txn, "d", &fixture.store.arena, &state, err));
    return control_deploy_desired(txn, &state, &fixture.store.arena, context, err);
}

#define READY(v) "{\"version\":" #v ",\"state\":\"READY\"}"

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(a_deployment_becomes_a_job_that_knows_its_secret)
{
    put("{\"model\":\"digits\",\"cpus\":2,\"memory\":\"1GiB\"}");
    ck_assert_uint_eq(carry_out(&fixture, 2), 1);
    struct weir_job job = job_record(&fixture, job_of("d-1"));
    ck_assert_str_eq(job.kind, "serve");
    ck_assert(job.is_service);
    struct weir_deploy_state state = load_d();
    ck_assert_ptr_nonnull(strstr(job.spec, state.deployment.secret));
    json_t *shown = weir_record_to_json(&weir_job_resource, &job);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(shown, "spec"), "secret")),
                     "***");
    json_decref(shown);
    place(&fixture, job.id);
    runs(&fixture, job.id, 0);
    report_of("d-1", "[" READY(3) "]"); /* the newest version, since none was named */
    ck_assert_str_eq(live(), "v3=100");
    ck_assert_str_eq(load_d().deployment.state, WEIR_DEPLOYMENT_SERVING);
}

END_TEST

START_TEST(a_heartbeat_changes_no_more_than_its_row)
{
    int64_t n_events;
    put("{\"model\":\"digits\"}");
    (void)carry_out(&fixture, 0);
    report_of("d-1", "[" READY(3) "]");
    n_events = (int64_t)count_records(&fixture, &weir_event_resource);
    fixture.now_ms += 5000;
    report_of("d-1", "[" READY(3) "]");
    ck_assert_int_eq((int64_t)count_records(&fixture, &weir_event_resource), n_events);
    ck_assert_int_eq(load_d().replicas[0].row.time_ms, fixture.now_ms);
    fixture.now_ms += 10000;
    tick(0, 0, 0);
    ck_assert_str_eq(load_d().replicas[0].row.state, WEIR_DEPLOYED_READY);
}

END_TEST

START_TEST(a_canary_waits_for_its_version_and_the_replica_is_told_of_both)
{
    json_t *desired;
    put("{\"model\":\"digits\",\"version\":\"v1\"}");
    (void)carry_out(&fixture, 0);
    report_of("d-1", "[" READY(1) "]");
    put("{\"traffic\":\"v1=90,v2=10\",\"mirror\":\"v3\"}");
    ck_assert_str_eq(live(), "v1=100");
    fixture_read(&fixture.store, desired_in, &desired);
    ck_assert_uint_eq(json_array_size(json_object_get(desired, "versions")), 3);
    ck_assert_uint_eq(json_array_size(json_object_get(desired, "live")), 1);
    ck_assert_str_eq(
        json_string_value(json_object_get(
            json_object_get(json_array_get(json_object_get(desired, "versions"), 0), "signature"),
            "format")),
        "onnx");
    json_decref(desired);
    report_of("d-1", "[" READY(1) "," READY(2) "," READY(3) "]");
    ck_assert_str_eq(live(), "v1=90,v2=10");
}

END_TEST

START_TEST(a_replica_whose_process_ends_gets_nothing_until_the_next_one_reports)
{
    put("{\"model\":\"digits\"}");
    (void)carry_out(&fixture, 0);
    char *job = job_of("d-1");
    place(&fixture, job);
    runs(&fixture, job, 0);
    report_of("d-1", "[" READY(3) "]");
    exits(&fixture, job, 0, 2);
    struct weir_deploy_state state = load_d();
    ck_assert_str_eq(state.replicas[0].row.state, WEIR_DEPLOYED_STARTING);
    ck_assert_ptr_null(state.replicas[0].row.url);
    ck_assert_uint_eq(weir_deploy_n_ready(&state, 3), 0);
    ck_assert_msg(strstr(state.deployment.reason, "its last replica ended: ") != NULL, "%s",
                  state.deployment.reason);
    ck_assert_str_eq(live(), "v3=100");
    report_of("d-1", "[" READY(3) "]");
    ck_assert_str_eq(load_d().deployment.state, WEIR_DEPLOYMENT_SERVING);
}

END_TEST

static weir_status cancel_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    const struct weir_job_event event = {.type = WEIR_JOB_EVENT_CANCEL, .text = "by ann"};
    return control_job_event(control, txn, context, &event, err);
}

START_TEST(a_job_that_somebody_cancels_is_replaced)
{
    put("{\"model\":\"digits\"}");
    (void)carry_out(&fixture, 0);
    char *job = job_of("d-1");
    turn(&fixture, cancel_in, job);
    ck_assert_str_eq(job_record(&fixture, job).state, "CANCELLED");
    ck_assert_str_eq(alert_state(&fixture, "job_failed"), "");
    ck_assert_uint_eq(carry_out(&fixture, 0), 1);
    ck_assert_str_ne(job_of("d-2"), job);
}

END_TEST

START_TEST(an_idle_deployment_stops_its_job_and_starts_one_for_a_held_request)
{
    put("{\"model\":\"digits\",\"replicas\":\"0..2\",\"idle_after_ms\":4000}");
    (void)carry_out(&fixture, 0);
    char *job = job_of("d-1");
    place(&fixture, job);
    runs(&fixture, job, 0);
    report_of("d-1", "[" READY(3) "]");
    tick(1, 0, 0);
    tick(4000, 0, 0);
    ck_assert_uint_eq(carry_out(&fixture, 0), 1);
    exits(&fixture, job, 0, 0);
    ck_assert_uint_eq(load_d().n_replicas, 0);
    ck_assert_str_eq(load_d().deployment.state, WEIR_DEPLOYMENT_IDLE);
    tick(5, 0, 1);
    ck_assert_uint_eq(carry_out(&fixture, 0), 1);
    ck_assert_str_eq(load_d().replicas[0].row.state, WEIR_DEPLOYED_STARTING);
}

END_TEST

START_TEST(a_deleted_deployment_cancels_its_jobs_and_its_name_is_free)
{
    put("{\"model\":\"digits\"}");
    (void)carry_out(&fixture, 0);
    char *job = job_of("d-1");
    turn(&fixture, delete_in, (char *)"d");
    ck_assert_uint_eq(carry_out(&fixture, 0), 1);
    ck_assert_str_eq(job_record(&fixture, job).state, "CANCELLED");
    ck_assert_uint_eq(count_records(&fixture, &weir_deployment_version_resource), 0);
    fixture.now_ms += 1;
    put("{\"model\":\"digits\"}"); /* the same name, and the same number of its first replica */
    ck_assert_uint_eq(carry_out(&fixture, 0), 1);
}

END_TEST

static const struct {
    const char *body;
    weir_status status;
    const char *says;
} wrong[] = {
    {"{\"model\":\"digit\"}", WEIR_ERR_NOT_FOUND, "did you mean \"digits\"?"},
    {"{\"model\":\"zebra\"}", WEIR_ERR_NOT_FOUND, "`weir model push NAME FILE` makes one"},
    {"{}", WEIR_ERR_INVALID, "$.model: missing"},
    {"{\"model\":\"digits\",\"version\":\"v9\"}", WEIR_ERR_NOT_FOUND, "there are v3, v2, v1"},
    {"{\"model\":\"digits\",\"traffic\":\"v1=50\"}", WEIR_ERR_INVALID, "must sum to 100"},
    {"{\"model\":\"digits\",\"traffic\":\"v1=100\",\"version\":\"v1\"}", WEIR_ERR_INVALID,
     "not both"},
    {"{\"model\":\"digits\",\"mirror\":\"v8\"}", WEIR_ERR_NOT_FOUND, "no version 8"},
    {"{\"model\":\"digits\",\"replicas\":\"4..0\"}", WEIR_ERR_INVALID, "expected A..B"},
    {"{\"model\":\"digits\",\"replicas\":0}", WEIR_ERR_INVALID, "`weir undeploy`"},
    {"{\"model\":\"digits\",\"replicas\":\"1..\"}", WEIR_ERR_INVALID, "expected A..B"},
    {"{\"model\":\"digits\",\"replicas\":\"1..65\"}", WEIR_ERR_INVALID, "0 to 64"},
    {"{\"model\":\"digits\",\"batch_max\":0}", WEIR_ERR_INVALID, "$.batch_max: expected 1"},
    {"{\"model\":\"digits\",\"batch_max\":99999}", WEIR_ERR_INVALID, "batch_max"},
    {"{\"model\":\"digits\",\"memory\":\"much\"}", WEIR_ERR_INVALID, "$.memory: expected bytes"},
    {"{\"model\":\"digits\",\"memory\":\"4\"}", WEIR_ERR_INVALID, "give the unit"},
    {"{\"model\":\"digits\",\"replica\":2}", WEIR_ERR_INVALID, "replica"},
};

START_TEST(what_makes_no_sense_is_refused_and_nothing_is_made)
{
    weir_status status = try_turn(&fixture, put_in, (char *)wrong[_i].body, false);
    ck_assert_msg(status == wrong[_i].status, "%s: %s", weir_status_name(status),
                  fixture.err.message);
    ck_assert_msg(strstr(fixture.err.message, wrong[_i].says) != NULL, "%s", fixture.err.message);
    ck_assert_uint_eq(count_records(&fixture, &weir_deployment_resource), 0);
}

END_TEST

static weir_status make_unservable(struct control *control, struct weir_txn *txn, void *context,
                                   struct weir_error *err)
{
    const struct weir_model_version version = {.id = "00000000-0000-4000-8000-00000000beef",
                                               .model = "digits",
                                               .blob = "",
                                               .unservable = "it is a pickle",
                                               .created_by = "ann"};
    struct weir_model_version out;
    (void)context;
    return control_model_push(control, txn, &version, NULL, &out, err);
}

START_TEST(what_a_registry_cannot_serve_is_not_deployed)
{
    turn(&fixture, make_unservable, NULL);
    weir_status status =
        try_turn(&fixture, put_in, "{\"model\":\"digits\",\"version\":\"v4\"}", false);
    ck_assert_int_eq(status, WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "not servable: it is a pickle"));
}

END_TEST

struct alias {
    const char *alias;
    int64_t version;
};

static weir_status alias_in(struct control *control, struct weir_txn *txn, void *context,
                            struct weir_error *err)
{
    const struct alias *alias = context;
    return control_alias_set(control, txn, "digits", alias->alias, alias->version, err);
}

START_TEST(an_alias_names_a_version_until_it_is_moved)
{
    turn(&fixture, alias_in, &(struct alias){"stable", 1});
    put("{\"model\":\"digits\",\"version\":\"stable\"}");
    struct weir_deploy_state state = load_d();
    struct weir_shares shares = weir_deploy_shares(&state, false);
    ck_assert_int_eq(shares.items[0].version, 1);
    turn(&fixture, alias_in, &(struct alias){"stable", 2});
    put("{\"version\":\"stable\"}");
    state = load_d();
    shares = weir_deploy_shares(&state, false);
    ck_assert_int_eq(shares.items[0].version, 2);
    turn(&fixture, alias_in, &(struct alias){"stable", 0});
    static const struct alias bad[] = {{"v3", 1}, {"7", 1}, {"a b", 1}, {"none", 1}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(try_turn(&fixture, alias_in, (void *)&bad[i], false), WEIR_ERR_INVALID);
    }
    ck_assert_int_eq(try_turn(&fixture, alias_in, &(struct alias){"stable", 0}, false),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(try_turn(&fixture, alias_in, &(struct alias){"best", 9}, false),
                     WEIR_ERR_NOT_FOUND);
}

END_TEST

static int64_t wanted_version(void)
{
    struct weir_deploy_state state = load_d();
    struct weir_shares shares = weir_deploy_shares(&state, false);
    ck_assert_uint_eq(shares.n, 1);
    return shares.items[0].version;
}

START_TEST(a_deployment_that_follows_an_alias_moves_with_it)
{
    turn(&fixture, alias_in, &(struct alias){"Stable", 1});
    put("{\"model\":\"digits\",\"version\":\"@Stable\"}");
    ck_assert_str_eq(load_d().deployment.follows, "Stable");
    turn(&fixture, alias_in, &(struct alias){"Stable", 2});
    ck_assert_int_eq(wanted_version(), 2);
    turn(&fixture, alias_in, &(struct alias){"other", 3});
    put("{\"batch_max\":4}"); /* what says nothing of versions lets it follow */
    turn(&fixture, alias_in, &(struct alias){"Stable", 3});
    ck_assert_int_eq(wanted_version(), 3);
    turn(&fixture, make_unservable, NULL);
    turn(&fixture, alias_in, &(struct alias){"Stable", 4}); /* the name moves, the traffic stays */
    ck_assert_int_eq(wanted_version(), 3);
    put("{\"version\":\"v1\"}");
    ck_assert_ptr_null(load_d().deployment.follows);
    turn(&fixture, alias_in, &(struct alias){"Stable", 2});
    ck_assert_int_eq(wanted_version(), 1);
    ck_assert_int_eq(try_turn(&fixture, put_in, "{\"version\":\"@v2\"}", false), WEIR_ERR_INVALID);
    ck_assert_int_eq(try_turn(&fixture, put_in, "{\"version\":\"@none-such\"}", false),
                     WEIR_ERR_NOT_FOUND);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("control_deploy");
    TCase *tcase = tcase_create("control_deploy");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_deployment_becomes_a_job_that_knows_its_secret);
    tcase_add_test(tcase, a_heartbeat_changes_no_more_than_its_row);
    tcase_add_test(tcase, a_canary_waits_for_its_version_and_the_replica_is_told_of_both);
    tcase_add_test(tcase, a_replica_whose_process_ends_gets_nothing_until_the_next_one_reports);
    tcase_add_test(tcase, a_job_that_somebody_cancels_is_replaced);
    tcase_add_test(tcase, an_idle_deployment_stops_its_job_and_starts_one_for_a_held_request);
    tcase_add_test(tcase, a_deleted_deployment_cancels_its_jobs_and_its_name_is_free);
    tcase_add_test(tcase, an_alias_names_a_version_until_it_is_moved);
    tcase_add_test(tcase, a_deployment_that_follows_an_alias_moves_with_it);
    tcase_add_test(tcase, what_a_registry_cannot_serve_is_not_deployed);
    tcase_add_loop_test(tcase, what_makes_no_sense_is_refused_and_nothing_is_made, 0,
                        (int)WEIR_ARRAY_LEN(wrong));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
