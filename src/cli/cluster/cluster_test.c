/* Clusters at the command line, of a driver that is a script. */
#include "cli/core/cli_fixture.h"

#include "api/driver_fixture.h"
#include "base/test_main.h"
#include "job/cluster.h"

static void set_up(void)
{
    callers_drivers = &scripted_drivers;
    cli_open();
}

#define ADD "cluster", "add", "hpc", "--driver", "scripted"

START_TEST(what_is_not_said_is_guessed_and_shown)
{
    EXPECT_EXIT(0, ADD, "--after", "10m", "--max-nodes", "3");
    ck_assert_ptr_nonnull(strstr(cli.err, "hpc: guessed: partition: gpu"));
    ck_assert_ptr_nonnull(strstr(cli.err, "gpu (4 nodes of 64 CPUs, 8 H100)"));
    ck_assert_str_eq(cli.out, "hpc: added, by driver scripted\n");
    EXPECT_EXIT(0, "get", "cluster", "hpc", "-o", "json");
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "after_ms")), 600000);
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "idle_ms")), 60000);
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "max_nodes")), 3);
    EXPECT_EXIT(5, ADD);
}

END_TEST

START_TEST(a_cluster_that_lacks_something_is_not_added_unless_it_is_forced)
{
    EXPECT_REFUSED(9, "partition: there is no none", ADD, "--set", "partition=none");
    EXPECT_REFUSED(9, "it does not answer", ADD, "--set", "partition=away");
    EXPECT_EXIT(0, "cluster", "get");
    ck_assert_ptr_null(strstr(cli.out, "hpc"));
    EXPECT_EXIT(0, ADD, "--set", "partition=none", "--force");
    EXPECT_EXIT(1, "cluster", "check", "hpc");
    ck_assert_str_eq(cli.out, "hpc: lacks something: partition: there is no none\n");
    EXPECT_EXIT(0, "cluster", "set", "hpc", "--set", "partition=7");
    EXPECT_EXIT(0, "cluster", "check", "hpc");
    ck_assert_ptr_nonnull(strstr(cli.out, "hpc: ready; pools: 7 (4 nodes"));
    EXPECT_EXIT(0, "cluster", "describe", "hpc");
    ck_assert_ptr_nonnull(strstr(cli.out, "partition: \"7\"")); /* Text is text. */
}

END_TEST

START_TEST(a_secret_stays_when_something_else_is_set)
{
    EXPECT_EXIT(0, ADD, "--set", "token=right");
    EXPECT_EXIT(0, "cluster", "set", "hpc", "--idle", "2m");
    EXPECT_EXIT(0, "cluster", "check", "hpc");
    EXPECT_REFUSED(9, "token: it is wrong", "cluster", "set", "hpc", "--set", "token=left");
    EXPECT_EXIT(0, "cluster", "set", "hpc", "--set", "token=");
    EXPECT_EXIT(0, "cluster", "check", "hpc");
}

END_TEST

START_TEST(it_is_drained_resumed_and_removed)
{
    EXPECT_EXIT(0, ADD);
    EXPECT_EXIT(0, "cluster", "drain", "hpc");
    ck_assert_ptr_nonnull(strstr(cli.out, "no more nodes are asked for"));
    EXPECT_EXIT(0, "cluster", "resume", "hpc");
    ck_assert_str_eq(cli.out, "hpc: new, nodes are asked for\n");
    (void)WEIR("doctor", "-o", "json"); /* No weir-worker is beside this program. */
    ck_assert_ptr_nonnull(strstr(cli.out, "hpc by scripted: new, 0 of its nodes here"));
    EXPECT_EXIT(0, "cluster", "remove", "hpc");
    EXPECT_REFUSED(4, "there is no cluster", "cluster", "check", "hpc");
    EXPECT_REFUSED(4, "allocation", "allocation", "release", "none");
    EXPECT_REFUSED(2, "--set gpu: expected OPTION=VALUE", ADD, "--set", "gpu");
    EXPECT_REFUSED(2, "--after soon", ADD, "--after", "soon");
    EXPECT_REFUSED(2, "a node already", "cluster", "add", "me", "--driver", "local");
    EXPECT_REFUSED(7, "nomad", "cluster", "add", "k", "--driver", "nomad");
}

END_TEST

START_TEST(queues_and_jobs_name_clusters_in_order)
{
    EXPECT_EXIT(0, "queue", "create", "default", "--project", "default", "--clusters", "local,hpc",
                "--overflow-after", "10m");
    EXPECT_EXIT(0, "queue", "set", "default", "--priority", "7");
    EXPECT_EXIT(0, "get", "queue", "default", "-o", "json");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(cli.json, "clusters"), 1)),
                     "hpc");
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "overflow_after_ms")), 600000);
    EXPECT_EXIT(0, "job", "run", "--clusters", "hpc,local", "--overflow-after", "0", "-o", "json",
                "--", "true");
    EXPECT(200, "GET /api/v1/jobs");
    ck_assert_str_eq(said_text("items.0.placement.clusters.0"), "hpc");
    ck_assert_int_eq(json_integer_value(said("items.0.placement.overflow_after_ms")), 0);
    EXPECT_REFUSED(2, "$.spec.clusters", "job", "run", "--clusters", ",", "--", "true");
}

END_TEST

START_TEST(of_a_cluster_that_was_not_asked_yet_nothing_is_said_to_lack)
{
    EXPECT_EXIT(0, "job", "run", "--gpus", "2", "--", "true");
    ck_assert_ptr_nonnull(strstr(cli.err, "no node of the cluster has one"));
    EXPECT_EXIT(0, ADD);
    EXPECT_EXIT(0, "job", "run", "--gpus", "2", "--", "true");
    ck_assert_ptr_null(strstr(cli.err, "has one"));
}

END_TEST

START_TEST(what_runs_it_on_kubernetes_is_printed_without_a_server)
{
    WEIR_AUTO(weir_json_auto_free) json_t *documents = NULL;
    struct weir_error err;
    (void)unsetenv("WEIR_SERVER");
    EXPECT_EXIT(0, "cluster", "manifest", "k8s", "--namespace", "ml", "-o", "json");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "kind")), "List");
    EXPECT_EXIT(0, "cluster", "manifest", "k8s", "--namespace", "ml", "-o", "yaml");
    must(weir_yaml_parse(cli.out, strlen(cli.out), "printed", true, &documents, &err), &err);
    EXPECT_EXIT(0, "cluster", "manifest", "k8s", "--namespace", "ml", "-o", "json");
    ck_assert(json_equal(documents, json_object_get(cli.json, "items")));
    ck_assert_ptr_nonnull(strstr(cli.err, "kubectl -n ml exec weir-0 -- /weir/bin/weir login"));
    EXPECT_REFUSED(2, "--host \"a b\": expected a host", "cluster", "manifest", "k8s", "--host",
                   "a b");
}

END_TEST

WEIR_TEST_MAIN_WITH("cluster", set_up, cli_close, what_is_not_said_is_guessed_and_shown,
                    a_cluster_that_lacks_something_is_not_added_unless_it_is_forced,
                    a_secret_stays_when_something_else_is_set, it_is_drained_resumed_and_removed,
                    queues_and_jobs_name_clusters_in_order,
                    of_a_cluster_that_was_not_asked_yet_nothing_is_said_to_lack,
                    what_runs_it_on_kubernetes_is_printed_without_a_server)
