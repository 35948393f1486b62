#include "cluster/cluster.h"
#include "cluster/driver.h"
#include "cluster/local_agent.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/kind_laws.h"
#include "base/macros.h"
#include "base/record.h"
#include "base/test_main.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* This program is also the "agent" that is started: see main. */

START_TEST(the_inventory_says_what_the_system_says)
{
    json_t *inventory = weir_cluster_inventory(0);
    ck_assert_ptr_nonnull(inventory);
    int64_t slots = json_integer_value(json_object_get(inventory, "cpu_slots"));
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    ck_assert_int_ge(slots, 2);
    ck_assert_int_le(slots, online > 2 ? online : 2);
    int64_t memory = json_integer_value(json_object_get(inventory, "memory_bytes"));
    int64_t pages = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    ck_assert_int_le(memory, pages);
    ck_assert_int_gt(memory, 0);
    json_decref(inventory);
    inventory = weir_cluster_inventory(7);
    ck_assert_int_eq(json_integer_value(json_object_get(inventory, "cpu_slots")), 7);
    json_decref(inventory);
}

END_TEST

START_TEST(a_cpu_quota_counts_as_whole_processors)
{
    ck_assert_int_eq(weir_cluster_quota_processors("max 100000", NULL), 0);
    ck_assert_int_eq(weir_cluster_quota_processors("150000 100000", NULL), 2);
    ck_assert_int_eq(weir_cluster_quota_processors("50000 100000", NULL), 1);
    ck_assert_int_eq(weir_cluster_quota_processors("400000 100000", NULL), 4);
    ck_assert_int_eq(weir_cluster_quota_processors("-1", "100000"), 0);
    ck_assert_int_eq(weir_cluster_quota_processors("250000", "100000"), 3);
    ck_assert_int_eq(weir_cluster_quota_processors("", ""), 0);
    ck_assert_int_eq(weir_cluster_quota_processors("100000", ""), 0);
}

END_TEST

static void add_gpu(const char *folder, const char *address, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, address);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/%s/information", folder, address);
    ck_assert_int_eq(weir_file_write_atomic(path, text, strlen(text), 0600, NULL), WEIR_OK);
}

START_TEST(accelerators_are_listed_by_their_address)
{
    char folder[] = "/tmp/weir-gpus-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    add_gpu(folder, "0000:65:00.0",
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 7\n"
            "GPU UUID: \t GPU-b\nVideo BIOS: \t 1\n");
    add_gpu(folder, "0000:17:00.0", "Model: \t\t NVIDIA L4\nGPU UUID: \t GPU-a\n");
    json_t *list = weir_cluster_accelerators(folder);
    char *text = json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(text, "[{\"index\":0,\"model\":\"NVIDIA L4\",\"uuid\":\"GPU-a\"},"
                           "{\"index\":1,\"model\":\"NVIDIA H200\",\"uuid\":\"GPU-b\"}]");
    free(text);
    json_decref(list);
    list = weir_cluster_accelerators("/nowhere/at/all");
    ck_assert_uint_eq(json_array_size(list), 0);
    json_decref(list);
    ck_assert_int_eq(weir_dir_remove(folder, NULL), WEIR_OK);
}

END_TEST

START_TEST(a_node_name_is_a_name_and_other_drivers_say_no)
{
    struct weir_arena arena;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    ck_assert(weir_name_is_valid(weir_cluster_node_name(&arena)));
    weir_arena_fini(&arena);
    const struct weir_kind *kind;
    ck_assert_int_eq(weir_registry_find(&weir_drivers, "local", "--driver", &kind, &err), WEIR_OK);
    ck_assert_ptr_eq(kind, &weir_driver_local);
    ck_assert_int_eq(weir_registry_find(&weir_drivers, "mesos", "--driver", &kind, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

static void await_path(const char *path)
{
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while (!weir_path_exists(path)) {
        ck_assert_msg(weir_mono_ms() < give_up_ms, "no %s", path);
        (void)usleep(1000);
    }
}

START_TEST(drivers_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_drivers);
    for (size_t i = 0; i < weir_drivers.n_kinds; i++) {
        const struct weir_driver_ops *ops = weir_drivers.kinds[i]->ops;
        ck_assert(ops->check != NULL && ops->list != NULL && ops->request != NULL &&
                  ops->poll != NULL && ops->release != NULL);
    }
}

END_TEST

START_TEST(one_agent_is_started_detached_however_often_it_is_asked_for)
{
    char dir[] = "/tmp/weir-local-XXXXXX";
    char started[64];
    char end[64];
    char lock[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(started, sizeof started, "%s/started", dir);
    (void)snprintf(end, sizeof end, "%s/end", dir);
    (void)snprintf(lock, sizeof lock, "%s/lock", dir);
    struct weir_local_agent agent = {.dir = dir,
                                     .server = "http://a:1",
                                     .ca_file = "ca.pem",
                                     .node = "n1",
                                     .shares = "/a:rw\n/b",
                                     .onnxruntime = "/o"};
    ck_assert_int_eq(weir_local_agent_start(&agent, NULL), WEIR_OK);
    await_path(started);
    ck_assert(weir_local_agent_is_running(dir));
    agent.server = "http://a:2";
    ck_assert(!weir_local_agent_differs(&agent));
    agent.shares = "/a:rw";
    ck_assert(weir_local_agent_differs(&agent));
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(weir_local_agent_start(&agent, NULL), WEIR_OK);
    }
    struct weir_arena arena;
    char *text;
    size_t len;
    char path[64];
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_file_read(started, 4096, &arena, &text, &len, NULL), WEIR_OK);
    char wanted[192];
    (void)snprintf(wanted, sizeof wanted,
                   "--dir=%s --server=http://a:1 --node=n1 --cpu-slots=0 --ca-file=ca.pem "
                   "--onnxruntime=/o --share=/a:rw --share=/b ",
                   dir);
    ck_assert_str_eq(text, wanted); /* one line: one agent */
    (void)snprintf(path, sizeof path, "%s/server.url", dir);
    ck_assert_int_eq(weir_file_read(path, 4096, &arena, &text, &len, NULL), WEIR_OK);
    ck_assert_str_eq(text, "http://a:2");
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_file_write_atomic(end, "", 0, 0600, NULL), WEIR_OK);
    int fd = -1;
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while (weir_file_lock(lock, &fd, NULL) != WEIR_OK && weir_mono_ms() < give_up_ms) {
        (void)usleep(1000);
    }
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert(!weir_local_agent_is_running(dir));
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

END_TEST

START_TEST(this_machine_is_a_pool_of_one_node)
{
    static const struct {
        struct weir_node_request request;
        weir_status status;
    } refused[] = {
        {{.tag = "a", .pool = "gpus", .n_nodes = 1}, WEIR_ERR_NOT_FOUND},
        {{.tag = "a", .pool = "local", .n_nodes = 2}, WEIR_ERR_LIMIT},
        {{.tag = "a", .pool = "local", .n_nodes = 1, .time_ms = 1}, WEIR_ERR_UNSUPPORTED}};
    const struct weir_driver_ops *driver = weir_driver_local.ops;
    const struct weir_node_request request = {.tag = "a", .pool = "local", .n_nodes = 1};
    char dir[] = "/tmp/weir-local-XXXXXX", started[64];
    const char *missing;
    struct weir_arena arena;
    struct weir_error err;
    struct weir_pool_offer *pools;
    struct weir_allocation_report allocation;
    size_t n;
    weir_arena_init(&arena, 0);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(started, sizeof started, "%s/started", dir);
    const struct weir_local_agent agent = {
        .dir = dir, .server = "http://a:1", .node = "n1", .cpu_slots = 7};
    struct weir_driver_link link = {.options = &agent};
    ck_assert_int_eq(driver->check(&link, &arena, &missing, &err), WEIR_OK);
    ck_assert_ptr_null(missing);
    ck_assert_int_eq(driver->list(&link, &arena, &pools, &n, &err), WEIR_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(pools[0].cpu_slots, 7);
    ck_assert_int_eq(pools[0].max_nodes, 1);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused); i++) {
        ck_assert_int_eq(driver->request(&link, &refused[i].request, &err), refused[i].status);
    }
    ck_assert_int_eq(driver->poll(&link, &request.tag, 1, &arena, &allocation, &err), WEIR_OK);
    ck_assert_int_eq(allocation.phase, WEIR_ALLOCATION_ENDED);
    for (int i = 0; i < 2; i++) { /* twice asks for nothing twice */
        ck_assert_int_eq(driver->request(&link, &request, &err), WEIR_OK);
        await_path(started);
    }
    ck_assert_int_eq(driver->poll(&link, &request.tag, 1, &arena, &allocation, &err), WEIR_OK);
    ck_assert_int_eq(allocation.phase, WEIR_ALLOCATION_RUNNING);
    ck_assert_uint_eq(allocation.n_nodes, 1);
    ck_assert_str_eq(allocation.nodes[0], "n1");
    for (int i = 0; i < 2; i++) {
        weir_status status = driver->release(&link, "a", &err);
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
    }
    ck_assert(!weir_local_agent_is_running(dir));
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

END_TEST

/* Stands in for `weir agent stop`: returns when the agent has ended. */
static int end_agent(const char *dir)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/end", dir);
    if (weir_file_write_atomic(path, "", 0, 0600, NULL) != WEIR_OK) {
        return 1;
    }
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while (weir_local_agent_is_running(dir) && weir_mono_ms() < give_up_ms) {
        (void)usleep(1000);
    }
    return weir_local_agent_is_running(dir);
}

/* Stands in for the agent: holds the lock, says what it was told, ends when `end` appears. */
static int be_agent(int argc, char **argv)
{
    const char *dir = argv[2] + strlen("--dir=");
    char path[256];
    int fd;
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    if (weir_file_lock(path, &fd, NULL) != WEIR_OK || getsid(0) == getpid()) {
        return 1; /* a session leader could get a terminal */
    }
    (void)snprintf(path, sizeof path, "%s/started.new", dir);
    FILE *file = fopen(path, "ae");
    for (int i = 2; file != NULL && i < argc; i++) {
        (void)fprintf(file, "%s ", argv[i]);
    }
    if (file == NULL || fclose(file) != 0) {
        return 1;
    }
    char ready[256];
    (void)snprintf(ready, sizeof ready, "%s/started", dir);
    (void)rename(path, ready);
    (void)snprintf(path, sizeof path, "%s/end", dir);
    for (int i = 0; i < 30000 && !weir_path_exists(path); i++) {
        (void)usleep(1000);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "agent") == 0) {
        bool is_end = strcmp(argv[2], "stop") == 0;
        return is_end ? end_agent(argv[3] + strlen("--dir=")) : be_agent(argc, argv);
    }
    const TTest *const tests[] = {the_inventory_says_what_the_system_says,
                                  a_cpu_quota_counts_as_whole_processors,
                                  accelerators_are_listed_by_their_address,
                                  a_node_name_is_a_name_and_other_drivers_say_no,
                                  drivers_keep_the_laws_of_registries,
                                  this_machine_is_a_pool_of_one_node,
                                  one_agent_is_started_detached_however_often_it_is_asked_for};
    return weir_test_run(weir_test_suite("local", tests, WEIR_ARRAY_LEN(tests)));
}
