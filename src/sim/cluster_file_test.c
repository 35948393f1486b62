/** Clusters in files, against what was written into them. */
#include "sim/cluster_file.h"

#include "base/test_main.h"

#include <string.h>
#include <unistd.h>

static weir_status parse(const char *text, const char *what, struct weir_sim_cluster *out,
                         struct weir_error *err)
{
    return weir_sim_cluster_parse(text, strlen(text), what, out, err);
}

START_TEST(classes_become_nodes_and_queues_a_tree)
{
    struct weir_error err = {0};
    struct weir_sim_cluster cluster;
    weir_status status =
        parse("nodes:\n"
              "  - {name: gpu, count: 2, accelerators: 8, model: A100, cpu: 64, memory_gib: 0.5,\n"
              "     accelerator_memory_gib: 40, labels: {rack: r1}}\n"
              "  - {name: solo}\n"
              "queues:\n"
              "  - {name: dept, quota: 16}\n"
              "  - {name: vision, parent: dept, quota: 7.5, limit: 12, weight: 2, priority: 90,\n"
              "     min_run_s: 60, cpu_quota: 4, memory_limit_gib: 1}\n",
              "c.yaml", &cluster, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(cluster.n_nodes, 3);
    ck_assert_str_eq(cluster.nodes[1].name, "gpu-1");
    ck_assert_str_eq(cluster.nodes[1].model, "A100");
    ck_assert_int_eq(cluster.nodes[1].n_devices, 8);
    ck_assert_int_eq(cluster.nodes[1].cpu_milli, 64000);
    ck_assert_int_eq(cluster.nodes[1].memory_bytes, 1 << 29);
    ck_assert_int_eq(cluster.nodes[1].device_memory_bytes, (int64_t)40 << 30);
    ck_assert_str_eq(cluster.nodes[1].labels[0].key, "rack");
    ck_assert_str_eq(cluster.nodes[2].name, "solo");
    ck_assert_int_eq(cluster.nodes[2].n_devices, 0);
    const struct weir_sched_queue *vision = &cluster.queues[1];
    ck_assert_int_eq(vision->parent, 0);
    ck_assert_int_eq(vision->priority, 90);
    ck_assert_int_eq(vision->shares[WEIR_SCHED_ACCELERATOR].quota, 7500);
    ck_assert_int_eq(vision->shares[WEIR_SCHED_ACCELERATOR].limit, 12000);
    ck_assert_int_eq(vision->shares[WEIR_SCHED_CPU].quota, 4000);
    ck_assert_int_eq(vision->shares[WEIR_SCHED_CPU].limit, WEIR_SCHED_UNLIMITED);
    ck_assert_int_eq(vision->shares[WEIR_SCHED_MEMORY].limit, 1 << 30);
    ck_assert_int_eq(vision->reclaim_min_run_ms, 60000);
    weir_sim_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_queue_may_have_shares_of_models)
{
    struct weir_error err = {0};
    struct weir_sim_cluster cluster;
    weir_status status =
        parse("nodes:\n"
              "  - {name: h, accelerators: 8, model: H100}\n"
              "  - {name: l, accelerators: 8, model: L4}\n"
              "queues:\n"
              "  - {name: vision, quota: 6,\n"
              "     models: {H100: {quota: 4, limit: 6.5, weight: 2}, L4: {limit: 2}}}\n"
              "  - {name: other}\n",
              "c.yaml", &cluster, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    const struct weir_sched_queue *vision = &cluster.queues[0];
    ck_assert_int_eq(vision->n_models, 2);
    ck_assert_str_eq(vision->models[0].model, "H100");
    ck_assert_int_eq(vision->models[0].share.quota, 4000);
    ck_assert_int_eq(vision->models[0].share.limit, 6500);
    ck_assert_int_eq(vision->models[0].share.weight, 2000);
    ck_assert_str_eq(vision->models[1].model, "L4");
    ck_assert_int_eq(vision->models[1].share.quota, WEIR_SCHED_UNLIMITED);
    ck_assert_int_eq(vision->models[1].share.limit, 2000);
    ck_assert_int_eq(cluster.queues[1].n_models, 0);
    weir_sim_cluster_fini(&cluster);
}

END_TEST

START_TEST(wrong_clusters_are_refused_with_their_place)
{
    // clang-format off
    static const struct { const char *text, *part; } wrong[] = {
        {"nodes: []\n", "expected \"nodes\", a list of at least one"},
        {"nodes:\n  - {name: a}\nspeed: 1\n", "\"speed\": a cluster has"},
        {"nodes:\n  - {name: a, count: 300000}\n", "nodes[0]: count: expected 1 to 200000"},
        {"nodes:\n  - {name: a}\n  - {name: b, acelerators: 1}\n", "nodes[1]: "},
        {"nodes:\n  - {name: a, cpu: -3}\n", "nodes[0]: cpu"},
        {"nodes:\n  - {name: a}\nqueues:\n  - {name: q, parent: q}\n", "queues[0]: parent"},
        {"nodes:\n  - {name: a}\nqueues:\n  - {name: q}\n  - {name: q}\n", "queues[1]: this name"},
        {"nodes:\n  - {name: a}\nqueues:\n  - {name: q, quota: -2}\n", "queues[0]: quotas"},
        {"nodes:\n  - {name: a}\nqueues:\n  - {name: q, models: {L4: {quota: 1}}}\n", "queues[0]: models: \"L4\": expected the model of a node"},
        {"nodes:\n  - {name: a, model: L4}\nqueues:\n  - {name: q, models: {L4: {quota: -3}}}\n", "models: \"L4\": expected quota"},
        {"nodes:\n  - {name: a, model: L4}\nqueues:\n  - {name: q, models: {L4: {qouta: 3}}}\n", "models: \"L4\": "},
        {"nodes:\n  - {name: a, model: L4}\nqueues:\n  - {name: q, models: L4}\n", "models: expected names"},
    };

    // clang-format on
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct weir_error err = {0};
        struct weir_sim_cluster cluster;
        ck_assert_int_eq(parse(wrong[i].text, "c.yaml", &cluster, &err), WEIR_ERR_INVALID);
        ck_assert_msg(strstr(err.message, wrong[i].part) != NULL, "\"%s\" has no \"%s\"",
                      err.message, wrong[i].part);
    }
}

END_TEST

START_TEST(alibabas_list_has_the_published_nodes)
{
    const char *root = getenv("WEIR_SHARED_DATA");
    char path[4096];
    struct weir_error err = {0};
    struct weir_sim_cluster cluster;
    (void)snprintf(path, sizeof path, "%s/scheduler/alibaba-gpu-v2023/openb_node_list_gpu_node.csv",
                   root == NULL ? "." : root);
    if (access(path, R_OK) != 0) {
        return;
    }
    ck_assert_int_eq(weir_sim_cluster_load(path, &cluster, &err), WEIR_OK);
    int64_t n_devices = 0;
    for (int32_t n = 0; n < cluster.n_nodes; n++) {
        n_devices += cluster.nodes[n].n_devices;
    }
    ck_assert_int_eq(cluster.n_nodes, 1213);
    ck_assert_int_eq(n_devices, 6212);
    weir_sim_cluster_fini(&cluster);
}

END_TEST

START_TEST(uniform_nodes_add_up_with_the_last_one_smaller)
{
    struct weir_error err = {0};
    struct weir_sim_cluster cluster;
    ck_assert_int_eq(weir_sim_cluster_uniform(20, 8, &cluster, &err), WEIR_OK);
    ck_assert_int_eq(cluster.n_nodes, 3);
    ck_assert_int_eq(cluster.nodes[2].n_devices, 4);
    weir_sim_cluster_fini(&cluster);
    ck_assert_int_eq(weir_sim_cluster_uniform(0, 8, &cluster, &err), WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN("cluster_file", classes_become_nodes_and_queues_a_tree,
               a_queue_may_have_shares_of_models, wrong_clusters_are_refused_with_their_place,
               alibabas_list_has_the_published_nodes,
               uniform_nodes_add_up_with_the_last_one_smaller)
