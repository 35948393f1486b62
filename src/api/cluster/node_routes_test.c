/* Nodes as people handle them: devices, draining, labels and taints, joining and leaving. */
#include "api/caller_fixture.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "store/stmt.h"

#define NODE   API "/nodes/n"
#define LENT   API "/nodes/slurm-1-n2"
#define DEVICE "{\"id\":\"%s\",\"kind\":\"gpu\",\"model\":\"H100\",\"state\":\"%s\"%s}"

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4}");
}

START_TEST(a_heartbeats_devices_are_the_nodes)
{
    EXPECT(204,
           "PUT " NODE "\n\n{\"cpu_slots\":4,\"devices\":[" DEVICE "," DEVICE ",{\"id\":\"eth0\","
           "\"kind\":\"nic\",\"state\":\"ok\",\"details\":{\"mtu\":9000}}]}",
           "a", "ok", ",\"temperature_c\":40.5", "s", "bad",
           ",\"parent_id\":\"a\",\"reason\":\"r\"");
    EXPECT(200, "GET " NODE);
    ck_assert_str_eq(said_text("state"), "ready");
    ck_assert_int_eq(json_integer_value(said("n_accelerators")), 1); /* A slice is a part of it. */
    ck_assert_str_eq(said_text("devices.0.name"), "n/0");
    ck_assert_int_eq((int)(10 * json_real_value(said("devices.0.temperature_c"))), 405);
    ck_assert(json_is_null(said("devices.0.power_w")));
    ck_assert_int_eq(json_integer_value(said("devices.1.parent")), 0);
    ck_assert_str_eq(said_text("devices.1.reason"), "r");
    ck_assert_int_eq(json_integer_value(said("devices.2.details.mtu")), 9000);
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4}"); /* Says nothing of them. */
    EXPECT(200, "GET " API "/devices?state=bad");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.id"), "s");
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"devices\":[]}");
    EXPECT(200, "GET " API "/devices?node=n&state=gone");
    ck_assert_uint_eq(json_array_size(said("items")), 3);
    EXPECT(404, "GET " API "/nodes/none");
}

END_TEST

static const char *const refused[] = {
    "\"devices\":3",
    "\"devices\":[3]",
    "\"devices\":[{\"id\":\"a\",\"kind\":\"gpu\"}]",
    "\"devices\":[{\"id\":\"a\",\"kind\":\"gpu\",\"state\":\"gone\"}]",
    "\"devices\":[{\"id\":\"a\",\"kind\":\"toaster\",\"state\":\"ok\"}]",
    "\"devices\":[{\"id\":\"\",\"kind\":\"gpu\",\"state\":\"ok\"}]",
    "\"devices\":[{\"id\":7,\"kind\":\"gpu\",\"state\":\"ok\"}]",
    ("\"devices\":[{\"id\":\"a\",\"kind\":\"gpu\",\"state\":\"ok\"},"
     "{\"id\":\"a\",\"kind\":\"gpu\",\"state\":\"ok\"}]"),
    "\"unhealthy\":3",
    "\"time_ms\":\"noon\"",
};

START_TEST(a_heartbeat_that_is_none_changes_nothing)
{
    EXPECT(400, "PUT " NODE "\n\n{\"cpu_slots\":9,%s}", refused[_i]);
    EXPECT(200, "GET " NODE);
    ck_assert_int_eq(json_integer_value(said("cpu_slots")), 4);
    ck_assert_uint_eq(json_array_size(said("devices")), 0);
}

END_TEST

START_TEST(a_node_is_unhealthy_as_long_as_its_agent_or_its_clock_says_so)
{
    int64_t now_ms = weir_time_ms();
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"unhealthy\":\"its disk is full\"}");
    EXPECT(200, "GET " NODE);
    ck_assert_str_eq(said_text("unhealthy"), "its disk is full");
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"time_ms\":%lld}", (long long)now_ms);
    EXPECT(200, "GET " NODE);
    ck_assert(json_is_null(said("unhealthy")));
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"time_ms\":%lld}", (long long)now_ms + 60000);
    EXPECT(200, "GET " NODE);
    ck_assert_ptr_nonnull(strstr(said_text("unhealthy"), "ahead of"));
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"time_ms\":%lld}", (long long)now_ms - 60000);
    EXPECT(200, "GET " NODE);
    ck_assert_ptr_nonnull(strstr(said_text("unhealthy"), "behind"));
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"time_ms\":-9223372036854775808}");
}

END_TEST

START_TEST(a_node_is_drained_and_resumed_and_marked_and_each_is_told)
{
    EXPECT(200, "PATCH " NODE "\n\n{\"is_draining\":true}");
    ck_assert(json_is_true(said("is_draining")));
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4}");
    EXPECT(200, "PATCH " NODE "\n\n{\"labels\":{\"zone\":\"a\",\"disk\":\"nvme\"},"
                "\"taints\":{\"maintenance\":{\"value\":\"x\"}}}");
    ck_assert(json_is_true(said("is_draining"))); /* A heartbeat and other changes leave it. */
    ck_assert_str_eq(said_text("labels.zone"), "a");
    ck_assert_str_eq(said_text("taints.0.effect"), "NoSchedule");
    EXPECT(200, "PATCH " NODE "\n\n{\"is_draining\":false,\"labels\":{\"zone\":null},"
                "\"taints\":{\"maintenance\":null}}");
    ck_assert(!json_is_true(said("is_draining")));
    ck_assert_ptr_null(said("labels.zone"));
    ck_assert_str_eq(said_text("labels.disk"), "nvme");
    ck_assert(json_is_null(said("taints")));
    EXPECT(200, "GET " API "/events?subject=node/n");
    static const char *const kinds[] = {"node_marked", "node_resumed", "node_marked",
                                        "node_drained"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "items.%zu.kind", i);
        ck_assert_str_eq(said_text(path), kinds[i]);
        (void)snprintf(path, sizeof path, "items.%zu.actor", i);
        ck_assert_str_eq(said_text(path), "ann");
    }
    EXPECT(404, "PATCH " API "/nodes/none\n\n{\"is_draining\":true}");
    EXPECT(400, "PATCH " NODE "\n\n{\"cpu_slots\":9}");
    EXPECT(400, "PATCH " NODE "\n\n{\"labels\":[]}");
    EXPECT(400, "PATCH " NODE "\n\n{\"labels\":{\"a b\":\"c\"}}");
    EXPECT(400, "PATCH " NODE "\n\n{\"labels\":{\"a\":7}}");
    EXPECT(400, "PATCH " NODE "\n\n{\"taints\":{\"a\":7}}");
    EXPECT(501, "PATCH " NODE "\n\n{\"taints\":{\"a\":{\"effect\":\"NoExecute\"}}}");
}

END_TEST

START_TEST(a_node_closes_for_maintenance_and_who_resumes_it_ends_that)
{
    EXPECT(200, "PATCH " NODE "\n\n{\"closed_from_ms\":\"2001-01-01T00:00:00Z\","
                "\"closed_until_ms\":null}");
    ck_assert(!json_is_true(said("is_draining")));
    ck_assert_str_ne(said_text("closed_from_ms"), "2001-01-01T00:00:00.000Z"); /* From now on. */
    ck_assert(json_is_null(said("closed_until_ms")));
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4}");
    EXPECT(200, "GET " NODE);
    ck_assert(json_is_string(said("closed_from_ms"))); /* A heartbeat leaves it. */
    EXPECT(200, "PATCH " NODE "\n\n{\"is_draining\":false}");
    ck_assert(json_is_null(said("closed_from_ms")));
    EXPECT(200, "GET " API "/events?subject=node/n");
    ck_assert_str_eq(said_text("items.0.kind"), "node_window_ended");
    ck_assert_str_eq(said_text("items.1.kind"), "node_closing");
    EXPECT(400, "PATCH " NODE "\n\n{\"closed_from_ms\":\"soon\"}");
    EXPECT(400, "PATCH " NODE "\n\n{\"closed_from_ms\":\"2001-01-01T00:00:00Z\","
                "\"closed_until_ms\":\"2001-01-02T00:00:00Z\"}");
    EXPECT(400, "PATCH " NODE "\n\n{\"closed_from_ms\":\"2999-01-01T00:00:00Z\"}");
    EXPECT(200, "GET " NODE);
    ck_assert(json_is_null(said("closed_from_ms")));
}

END_TEST

START_TEST(nodes_are_reserved_listed_and_freed_and_each_is_told)
{
    char until[WEIR_TIME_TEXT_BYTES], body[400], viewer[BEARER_BYTES];
    weir_time_format(weir_time_ms() + 3600000, until);
    (void)snprintf(body, sizeof body,
                   "POST " API "/reservations\n\n{\"name\":\"r\",\"project\":\"default\","
                   "\"cpus\":4,\"until_ms\":\"%s\"}",
                   until);
    make_caller("v", "viewer", "", viewer);
    EXPECT_STATUS(403, ask_as(viewer, "%s", body));
    EXPECT(200, "%s", body);
    ck_assert_str_eq(said_text("nodes.0"), "n");
    ck_assert_str_eq(said_text("created_by"), "ann");
    EXPECT(409, "%s", body);
    EXPECT(200, "GET " API "/reservations");
    ck_assert_str_eq(said_text("items.0.project"), "default");
    EXPECT(200, "GET " API "/reservations/r");
    ck_assert_str_eq(said_text("until_ms"), until);
    EXPECT_STATUS(403, ask_as(viewer, "DELETE " API "/reservations/r"));
    EXPECT(204, "DELETE " API "/reservations/r");
    EXPECT(404, "DELETE " API "/reservations/r");
    EXPECT(404, "GET " API "/reservations/r");
    EXPECT(200, "GET " API "/events?subject=reservation/r");
    ck_assert_str_eq(said_text("items.0.kind"), "reservation_ended");
    ck_assert_str_eq(said_text("items.1.kind"), "nodes_reserved");
}

END_TEST

START_TEST(who_may_not_change_nodes_does_not)
{
    char viewer[BEARER_BYTES], agent[BEARER_BYTES];
    make_caller("v", "viewer", "", viewer);
    make_caller("g", "agent", ",\"node\":\"n\"", agent);
    EXPECT_STATUS(403, ask_as(viewer, "PATCH " NODE "\n\n{\"is_draining\":true}"));
    EXPECT_STATUS(403, ask_as(viewer, "DELETE " NODE));
    EXPECT_STATUS(403, ask_as(viewer, "POST " API "/node-joins\n\n{}"));
    EXPECT_STATUS(403, ask_as(viewer, "GET " API "/node-joins"));
    EXPECT_STATUS(403, ask_as(agent, "PATCH " NODE "\n\n{\"is_draining\":true}"));
    EXPECT_STATUS(403, ask_as(agent, "DELETE " API "/nodes/m"));
}

END_TEST

/** Make a token to join with; *secret is good until the end of the test. */
static const char *make_join(const char *body)
{
    static char secret[64];
    EXPECT(200, "POST " API "/node-joins\n\n%s", body);
    (void)snprintf(secret, sizeof secret, "%s", said_text("secret"));
    return secret;
}

#define JOIN "POST " API "/join\nAuthorization: none\n\n{\"token\":\"%s\",\"node\":\"%s\"}"

START_TEST(a_machine_joins_once_and_gets_a_token_that_speaks_for_it_alone)
{
    char agent[BEARER_BYTES];
    EXPECT(200,
           "POST " API "/users\n\n{\"name\":\"agent\",\"kind\":\"service\",\"role\":\"agent\"}");
    const char *secret = make_join("{}");
    EXPECT(200, JOIN, secret, "m");
    (void)snprintf(agent, sizeof agent, "Bearer %s", said_text("secret"));
    EXPECT_STATUS(204,
                  ask_as(agent, "PUT " API "/nodes/m\n\n{\"cpu_slots\":1,\"devices\":[" DEVICE "]}",
                         "a", "bad", ""));
    EXPECT_STATUS(403, ask_as(agent, "PUT " API "/nodes/n\n\n{\"cpu_slots\":1}"));
    EXPECT_ERROR(401, "node m has joined with this token", JOIN, secret, "o");
    EXPECT(200, "GET " API "/node-joins");
    ck_assert_str_eq(said_text("items.0.used_by"), "m");
    ck_assert_ptr_null(said("items.0.secret"));
    ck_assert_ptr_null(said("items.0.secret_hash"));
    EXPECT_ERROR(409, "there is a node m already", JOIN, make_join("{}"), "m");
    EXPECT_STATUS(204, ask_as(agent, "DELETE " API "/nodes/m"));
    EXPECT_STATUS(401, ask_as(agent, "PUT " API "/nodes/m\n\n{\"cpu_slots\":1}"));
    EXPECT(200, "GET " API "/nodes/m");
    ck_assert_str_eq(said_text("state"), "left");
    ck_assert_uint_eq(json_array_size(said("devices")), 0);
    EXPECT(200, JOIN, make_join("{}"), "m");
}

END_TEST

START_TEST(a_token_that_is_wrong_or_old_or_for_another_joins_nobody)
{
    EXPECT_ERROR(401, "no token to join with", JOIN, "weir_guess", "m");
    EXPECT_ERROR(401, "for node m, not for o", JOIN, make_join("{\"node\":\"m\"}"), "o");
    EXPECT(401, JOIN, "weir_guess", "Not A Name");
    const char *secret = make_join("{}");
    EXPECT(400, JOIN, secret, "Not A Name");
    EXPECT(400, JOIN, secret, "Not A Name"); /* Still good. */
    EXPECT(400, "POST " API "/node-joins\n\n{\"expires_ms\":1000}");
    EXPECT(400, "POST " API "/node-joins\n\n{\"expires_ms\":99999999999999}");
    EXPECT(401, "POST " API "/join\n\n{\"node\":\"m\"}");
    EXPECT(401, "POST " API "/join");
}

END_TEST

START_TEST(a_token_for_several_joins_so_many_each_once)
{
    EXPECT(200,
           "POST " API "/users\n\n{\"name\":\"agent\",\"kind\":\"service\",\"role\":\"agent\"}");
    EXPECT(400, "POST " API "/node-joins\n\n{\"n_nodes\":0}");
    EXPECT(400, "POST " API "/node-joins\n\n{\"n_nodes\":2,\"node\":\"a\"}");
    const char *secret = make_join("{\"n_nodes\":2}");
    EXPECT(200, JOIN, secret, "a");
    EXPECT_ERROR(401, "has joined with this token already", JOIN, secret, "a");
    EXPECT(200, JOIN, secret, "b");
    EXPECT_ERROR(401, "2 nodes have joined with this token", JOIN, secret, "c");
    EXPECT(200, "GET " API "/node-joins");
    ck_assert_int_eq(json_integer_value(said("items.0.n_used")), 2);
}

END_TEST

/* A token of an allocation, as the control plane makes it. */
static weir_status lend(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    (void)context;
    weir_secret_hash("weir_lent", hash);
    const struct weir_node_join join = {.id = (char *)"j1",
                                        .secret_hash = hash,
                                        .created_by = (char *)"ann",
                                        .created_ms = 1,
                                        .expires_ms = INT64_MAX / 2,
                                        .n_nodes = 1,
                                        .allocation = (char *)"slurm-1"};
    return weir_node_join_insert(txn, &join, 1, err);
}

START_TEST(a_node_that_was_lent_says_when_it_ends_and_what_runs_there_moves_on_uncounted)
{
    char first[BEARER_BYTES], agent[BEARER_BYTES];
    struct weir_error err;
    EXPECT(200,
           "POST " API "/users\n\n{\"name\":\"agent\",\"kind\":\"service\",\"role\":\"agent\"}");
    must(weir_store_write(callers.fixture.store, lend, NULL, &err), &err);
    EXPECT_ERROR(401, "whose names begin with slurm-1-", JOIN, "weir_lent", "n2");
    EXPECT(200, JOIN, "weir_lent", "slurm-1-n2");
    (void)snprintf(first, sizeof first, "Bearer %s", said_text("secret"));
    EXPECT_ERROR(401, "is good for one", JOIN, "weir_lent", "slurm-1-n3");
    EXPECT(200, JOIN, "weir_lent", "slurm-1-n2"); /* its agent was started again */
    (void)snprintf(agent, sizeof agent, "Bearer %s", said_text("secret"));
    EXPECT_STATUS(401, ask_as(first, "PUT " LENT "\n\n{\"cpu_slots\":1}"));
    EXPECT_STATUS(204,
                  ask_as(agent, "PUT " LENT "\n\n{\"cpu_slots\":1,\"ends_ms\":4102444800000}"));
    EXPECT(200, "GET " LENT);
    ck_assert_str_eq(said_text("allocation"), "slurm-1");
    ck_assert_str_eq(said_text("ends_ms"), "2100-01-01T00:00:00.000Z");
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"ends_ms\":4102444800000}");
    EXPECT(200, "GET " NODE);
    ck_assert(json_is_null(said("ends_ms"))); /* it was not lent */
    place_job(&(struct placed_job){.id = "00000000-0000-4000-8000-0000000000b1",
                                   .task = "00000000-0000-4000-8000-0000000000a1",
                                   .kind = "command",
                                   .node = "slurm-1-n2",
                                   .spec = "{\"argv\":[\"true\"]}"});
    EXPECT_STATUS(400, ask_as(agent, "PUT " LENT "\n\n{\"cpu_slots\":1,\"leaving\":\"\"}"));
    for (int i = 0; i < 2; i++) { /* told twice, heard once */
        EXPECT_STATUS(204,
                      ask_as(agent, "PUT " LENT "\n\n{\"cpu_slots\":1,\"leaving\":\"preempted\"}"));
    }
    EXPECT(200, "GET " API "/jobs/00000000-0000-4000-8000-0000000000b1");
    ck_assert_str_eq(said_text("state"), "STOPPING");
    ck_assert_str_eq(said_text("eviction"), "node slurm-1-n2 leaves: preempted");
    EXPECT_STATUS(204, ask_as(agent, "PUT " API "/tasks/00000000-0000-4000-8000-0000000000a1/status"
                                     "\n\n{\"attempt\":1,\"state\":\"exited\",\"exit_code\":143}"));
    EXPECT(200, "GET " API "/jobs/00000000-0000-4000-8000-0000000000b1");
    ck_assert_str_eq(said_text("state"), "PENDING");
    ck_assert_int_eq(json_integer_value(said("n_restarts")), 0);
    ck_assert_int_eq(json_integer_value(said("n_evictions")), 1);
    EXPECT(200, "GET " LENT);
    ck_assert_str_eq(said_text("leaving"), "preempted");
    EXPECT(200, "GET " API "/events?subject=node/slurm-1-n2");
    ck_assert_str_eq(said_text("items.0.kind"), "node_leaving");
    ck_assert_str_ne(said_text("items.1.kind"), "node_leaving");
    EXPECT_STATUS(204, ask_as(agent, "DELETE " LENT));
    EXPECT(200, "GET " LENT);
    ck_assert_str_eq(said_text("state"), "left");
}

END_TEST

START_TEST(a_node_with_tasks_does_not_leave)
{
    place_job(&(struct placed_job){.id = "00000000-0000-4000-8000-0000000000b1",
                                   .task = "00000000-0000-4000-8000-0000000000a1",
                                   .kind = "command",
                                   .node = "n",
                                   .spec = "{\"argv\":[\"true\"]}"});
    EXPECT_ERROR(409, "1 tasks are on node n", "DELETE " NODE);
    EXPECT(200, "GET " NODE);
    ck_assert_str_eq(said_text("state"), "ready");
}

END_TEST

/* A second project, and a device that tasks of both have. */
static weir_status share_device(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const rows[] = {
        "INSERT INTO task_devices VALUES ('00000000-0000-4000-8000-0000000000a1', 1, 'n', 0, 500, "
        "0, 0)",
        "INSERT INTO task_devices VALUES ('00000000-0000-4000-8000-0000000000a2', 1, 'n', 0, 500, "
        "0, 0)",
        "UPDATE jobs SET project = 'blue', name = 'secret' WHERE id = "
        "'00000000-0000-4000-8000-0000000000b2'",
        "UPDATE devices SET used_milli = 1000, holders = 'j/0, secret/0' WHERE name = 'n/0'"};
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        WEIR_TRY(weir_txn_exec(txn, rows[i], WEIR_NO_BINDS, NULL, err));
    }
    return WEIR_OK;
}

START_TEST(what_runs_on_a_drained_node_is_asked_to_move_on)
{
    for (int i = 1; i <= 2; i++) {
        char job[] = "00000000-0000-4000-8000-0000000000b0",
             task[] = "00000000-0000-4000-8000-0000000000a0";
        job[35] = task[35] = (char)('0' + i);
        place_job(&(struct placed_job){.id = job,
                                       .task = task,
                                       .kind = "command",
                                       .node = "n",
                                       .spec = "{\"argv\":[\"true\"]}"});
    }
    EXPECT_ERROR(400, "$.evict", "PATCH " NODE "\n\n{\"evict\":true}");
    EXPECT(200, "PATCH " NODE "\n\n{\"is_draining\":true}");
    EXPECT(200, "GET " API "/jobs/00000000-0000-4000-8000-0000000000b1");
    ck_assert_str_eq(said_text("state"), "RUNNING"); /* Without it what runs goes on. */
    EXPECT(200, "PATCH " NODE "\n\n{\"is_draining\":true,\"evict\":true}");
    for (int i = 1; i <= 2; i++) {
        EXPECT(200, "GET " API "/jobs/00000000-0000-4000-8000-0000000000b%d", i);
        ck_assert_str_eq(said_text("state"), "STOPPING");
        ck_assert_str_eq(said_text("outcome"), "PENDING");
        ck_assert_str_eq(said_text("eviction"), "node n is drained by ann");
    }
    EXPECT(200, "GET " API "/events?kind=node_drained&limit=1");
    ck_assert_ptr_nonnull(strstr(said_text("items.0.message"), "save and move on (2 times)"));
    EXPECT(200, "GET " API "/events?kind=job_evicted&limit=1");
    ck_assert_str_eq(said_text("items.0.actor"), "ann");
    EXPECT(200, "PATCH " NODE "\n\n{\"is_draining\":true,\"evict\":true}"); /* They go already. */
}

END_TEST

START_TEST(who_holds_a_device_is_named_to_members_of_the_holders_project)
{
    struct weir_error err;
    char member[BEARER_BYTES];
    EXPECT(204, "PUT " NODE "\n\n{\"cpu_slots\":4,\"devices\":[{\"id\":\"a\",\"kind\":\"gpu\","
                "\"state\":\"ok\"}]}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"blue\"}");
    for (int i = 1; i <= 2; i++) {
        char job[] = "00000000-0000-4000-8000-0000000000b0",
             task[] = "00000000-0000-4000-8000-0000000000a0";
        job[35] = task[35] = (char)('0' + i);
        place_job(&(struct placed_job){.id = job,
                                       .task = task,
                                       .kind = "command",
                                       .node = "n",
                                       .spec = "{\"argv\":[\"true\"]}"});
    }
    must(weir_store_write(callers.fixture.store, share_device, NULL, &err), &err);
    EXPECT(200, "GET " API "/devices");
    ck_assert_str_eq(said_text("items.0.holders"), "j/0, secret/0");
    make_caller("mia", "member", "", member);
    EXPECT(200, "PUT " API "/projects/default/members/user/mia\n\n{\"role\":\"viewer\"}");
    EXPECT_STATUS(200, ask_as(member, "GET " API "/devices"));
    ck_assert_str_eq(said_text("items.0.holders"), "j/0, 1 task of other projects");
    EXPECT_STATUS(200, ask_as(member, "GET " NODE));
    ck_assert_str_eq(said_text("devices.0.holders"), "j/0, 1 task of other projects");
    EXPECT(204, "DELETE " API "/projects/default/members/user/mia");
    EXPECT_STATUS(200, ask_as(member, "GET " API "/devices"));
    ck_assert_str_eq(said_text("items.0.holders"), "2 tasks of other projects");
}

END_TEST

START_TEST(what_is_kept_and_used_is_told_of_nodes_and_of_jobs)
{
    place_job(&(struct placed_job){.id = "00000000-0000-4000-8000-0000000000b1",
                                   .task = "00000000-0000-4000-8000-0000000000a1",
                                   .kind = "command",
                                   .node = "n",
                                   .spec = "{\"argv\":[\"true\"]}"});
    EXPECT(200, "GET " NODE);
    ck_assert_double_eq(json_number_value(said("cpus_used")), 1);
    ck_assert_double_eq(json_number_value(said("cpus_free")), 3);
    ck_assert(json_is_null(said("cpus_busy")));
    EXPECT(204,
           "POST " NODE "/use\n\n{\"tasks\":[{\"task\":\"00000000-0000-4000-8000-0000000000a1\","
           "\"attempt\":1,\"cpu_cores\":0.25,\"memory_bytes\":4096}]}");
    EXPECT(200, "GET " API "/nodes");
    ck_assert_double_eq(json_number_value(said("items.0.cpus_busy")), 0.25);
    ck_assert_int_eq(json_integer_value(said("items.0.memory_used_bytes")), 4096);
    ck_assert_int_eq(json_integer_value(said("items.0.n_tasks")), 1);
    EXPECT(200, "GET " API "/top/jobs");
    ck_assert_str_eq(said_text("items.0.id"), "00000000-0000-4000-8000-0000000000b1");
    ck_assert_double_eq(json_number_value(said("items.0.cpus_used")), 1);
    ck_assert_double_eq(json_number_value(said("items.0.cpus_busy")), 0.25);
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " API "/top/jobs?node=elsewhere");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(200, "GET " API "/nodes");
    char here[64];
    (void)snprintf(here, sizeof here, "%s", said_text("items.0.name"));
    EXPECT(200, "GET " API "/top/jobs?node=%s", here);
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    /* One that runs and of which nothing was said yet: the sum of the others is not the node's. */
    place_job(&(struct placed_job){.id = "00000000-0000-4000-8000-0000000000b2",
                                   .task = "00000000-0000-4000-8000-0000000000a2",
                                   .kind = "command",
                                   .node = "n",
                                   .spec = "{\"argv\":[\"true\"]}"});
    EXPECT(204, "PUT " API "/tasks/00000000-0000-4000-8000-0000000000a2/status\n\n"
                "{\"attempt\":1,\"state\":\"running\",\"pid\":7,\"time_ms\":1}");
    EXPECT(200, "GET " API "/nodes");
    ck_assert(json_is_null(said("items.0.cpus_busy")));
    ck_assert(json_is_null(said("items.0.memory_used_bytes")));
    ck_assert_int_eq(json_integer_value(said("items.0.n_tasks")), 2);
    EXPECT(204,
           "POST " NODE "/use\n\n{\"tasks\":[{\"task\":\"00000000-0000-4000-8000-0000000000a2\","
           "\"attempt\":1,\"cpu_cores\":0.5,\"memory_bytes\":1}]}");
    EXPECT(200, "GET " API "/nodes");
    ck_assert_double_eq(json_number_value(said("items.0.cpus_busy")), 0.75);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("node_routes");
    TCase *tcase = tcase_create("node_routes");
    tcase_add_checked_fixture(tcase, set_up, callers_close);
    tcase_add_test(tcase, a_heartbeats_devices_are_the_nodes);
    tcase_add_loop_test(tcase, a_heartbeat_that_is_none_changes_nothing, 0,
                        (int)WEIR_ARRAY_LEN(refused));
    tcase_add_test(tcase, a_node_is_unhealthy_as_long_as_its_agent_or_its_clock_says_so);
    tcase_add_test(tcase, a_node_is_drained_and_resumed_and_marked_and_each_is_told);
    tcase_add_test(tcase, nodes_are_reserved_listed_and_freed_and_each_is_told);
    tcase_add_test(tcase, a_node_closes_for_maintenance_and_who_resumes_it_ends_that);
    tcase_add_test(tcase, who_may_not_change_nodes_does_not);
    tcase_add_test(tcase, a_machine_joins_once_and_gets_a_token_that_speaks_for_it_alone);
    tcase_add_test(tcase, a_token_that_is_wrong_or_old_or_for_another_joins_nobody);
    tcase_add_test(tcase, a_token_for_several_joins_so_many_each_once);
    tcase_add_test(tcase,
                   a_node_that_was_lent_says_when_it_ends_and_what_runs_there_moves_on_uncounted);
    tcase_add_test(tcase, a_node_with_tasks_does_not_leave);
    tcase_add_test(tcase, what_runs_on_a_drained_node_is_asked_to_move_on);
    tcase_add_test(tcase, who_holds_a_device_is_named_to_members_of_the_holders_project);
    tcase_add_test(tcase, what_is_kept_and_used_is_told_of_nodes_and_of_jobs);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
