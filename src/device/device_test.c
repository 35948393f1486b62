/* What providers make of a machine's /sys and /proc, and of a file that declares devices. */
#include "device/device.h"

#include "base/file.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char root[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_error err;

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("devices", root, &err), WEIR_OK);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(root, &err), WEIR_OK);
}

/** A file below the root, with its folders. */
static const char *put(const char *path, const char *text)
{
    static char whole[512];
    char folder[512];
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    (void)snprintf(folder, sizeof folder, "%s", whole);
    *strrchr(folder, '/') = '\0';
    ck_assert_int_eq(weir_dir_make(folder, 0700, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_write(whole, text, strlen(text), 0600, &err), WEIR_OK);
    return whole;
}

/** What the provider finds, a line for each: "id model bytes numa reason details". */
static const char *found(const struct weir_kind *kind, const char *declared, weir_status *out)
{
    static char text[4096];
    const struct weir_device_config config = {.root = root, .declared = declared};
    struct weir_device_context *context = weir_device_context_create(&config);
    struct weir_found_list list = {0};
    const struct weir_device_provider *provider = kind->ops;
    *out = provider->find(context, &list, &err);
    text[0] = '\0';
    for (size_t i = 0; i < list.n; i++) {
        const struct weir_found *one = &list.items[i];
        char *details = one->details != NULL ? json_dumps(one->details, JSON_SORT_KEYS) : NULL;
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s|%s|%lld|%lld|%s|%s\n", one->id,
                       one->model, (long long)one->memory_bytes, (long long)one->numa, one->reason,
                       details != NULL ? details : "");
        free(details);
    }
    weir_found_list_fini(&list);
    weir_device_context_destroy(context);
    return text;
}

#define EXPECT(kind, lines)                                                                        \
    do {                                                                                           \
        weir_status status;                                                                        \
        ck_assert_str_eq(found(&weir_device_##kind, NULL, &status), lines);                        \
        ck_assert_int_eq(status, WEIR_OK);                                                         \
    } while (0)

START_TEST(a_machine_without_anything_has_nothing_and_that_is_no_error)
{
    EXPECT(cpu, "");
    EXPECT(memory, "");
    EXPECT(disk, "");
    EXPECT(nic, "");
    EXPECT(declared, "");
}

END_TEST

START_TEST(processors_and_memory_are_told_by_numa_node)
{
    (void)put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Xeon\n");
    (void)put("/sys/devices/system/node/node0/cpulist", "0-3,8\n");
    (void)put("/sys/devices/system/node/node1/cpulist", "4-7\n");
    (void)put("/sys/devices/system/node/node2/cpulist", "\n"); /* Memory alone. */
    (void)put("/sys/devices/system/node/node2/meminfo", "Node 2 MemTotal:     1024 kB\n");
    EXPECT(cpu, "cpu0|Xeon|0|0||{\"n_processors\": 5, \"processors\": \"0-3,8\"}\n"
                "cpu1|Xeon|0|1||{\"n_processors\": 4, \"processors\": \"4-7\"}\n");
    EXPECT(memory, "memory2||1048576|2||\n");
}

END_TEST

START_TEST(memory_with_errors_that_could_not_be_corrected_is_bad)
{
    (void)put("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 4 kB\n");
    (void)put("/sys/devices/system/edac/mc/mc0/ue_count", "0\n");
    EXPECT(memory, "memory0||4096|0||\n");
    (void)put("/sys/devices/system/edac/mc/mc1/ue_count", "2\n");
    EXPECT(memory, "memory0||4096|0|the machine's memory had 2 errors that could not be corrected "
                   "since it started|\n");
}

END_TEST

START_TEST(disks_are_those_of_hardware)
{
    (void)put("/sys/block/loop0/size", "100\n");
    (void)put("/sys/block/sda/size", "1000\n");
    (void)put("/sys/block/sda/device/model", "Fast disk  \n");
    (void)put("/sys/block/sda/queue/rotational", "0\n");
    EXPECT(disk, "sda|Fast disk|512000|-1||{\"rotates\": false}\n");
}

END_TEST

START_TEST(a_network_card_tells_its_link_and_its_rdma_ports)
{
    (void)put("/sys/class/net/lo/operstate", "unknown\n");
    (void)put("/sys/class/net/eth0/operstate", "up\n");
    (void)put("/sys/class/net/eth0/speed", "100000\n");
    (void)put("/sys/class/net/eth0/mtu", "9000\n");
    (void)put("/sys/class/net/eth0/device/numa_node", "1\n");
    (void)put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    (void)put("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    (void)put("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
    (void)put("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n");
    (void)put("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/1", "RoCE v2\n");
    (void)put("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "RoCE v2\n");
    EXPECT(nic,
           "eth0||0|1||{\"link\": \"up\", \"mbit_s\": 100000, \"mtu\": 9000, \"rdma\": false}\n"
           "mlx5_0||0|-1||{\"ports\": [{\"gid_types\": [\"IB/RoCE v1\", \"RoCE v2\"], "
           "\"link_layer\": \"Ethernet\", \"port\": \"1\", \"rate\": \"100 Gb/sec (4X EDR)\", "
           "\"state\": \"4: ACTIVE\"}], \"rdma\": true}\n");
}

END_TEST

static const struct {
    const char *text, *lines, *error;
} declarations[] = {
    {"devices: [{model: A100, count: 2, memory: 40GiB}, {model: NPU}]",
     "declared-0-A100-0|A100|42949672960|-1||\ndeclared-0-A100-1|A100|42949672960|-1||\n"
     "declared-1-NPU-0|NPU|0|-1||\n",
     NULL},
    {"{\"devices\": [{\"model\": \"X\", \"memory\": 512}]}", "declared-0-X-0|X|512|-1||\n", NULL},
    {"devices: []", "", NULL},
    {"accelerators: 3", "", "$.devices: expected a list"},
    {"devices: [{count: 2}]", "", "$.devices[0].model"},
    {"devices: [{model: A, count: 0}]", "", "$.devices[0].count"},
    {"devices: [{model: A, memory: much}]", "", "$.devices[0].memory"},
    {"devices: [{model: A, memory: -5}]", "", "$.devices[0].memory"},
    {"devices: [{model: A, memroy: 5}]", "", "$.devices[0].memroy"},
    {"devices: [3]", "", "$.devices[0].model"},
};

START_TEST(what_a_file_declares_is_there_and_what_it_says_wrongly_is_named)
{
    weir_status status;
    const char *path = put("/devices.yaml", declarations[_i].text);
    ck_assert_str_eq(found(&weir_device_declared, path, &status), declarations[_i].lines);
    ck_assert_int_eq(status, declarations[_i].error == NULL ? WEIR_OK : WEIR_ERR_INVALID);
    ck_assert_msg(declarations[_i].error == NULL || strstr(err.message, declarations[_i].error),
                  "%s", err.message);
}

END_TEST

START_TEST(more_than_are_looked_at_are_left_out_and_told)
{
    weir_status status;
    const char *path = put("/d.yaml", "devices: [{model: A, count: 192}, {model: B, count: 1}]");
    (void)found(&weir_device_declared, path, &status);
    ck_assert_int_eq(status, WEIR_ERR_LIMIT);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("device");
    TCase *tcase = tcase_create("device");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_machine_without_anything_has_nothing_and_that_is_no_error);
    tcase_add_test(tcase, processors_and_memory_are_told_by_numa_node);
    tcase_add_test(tcase, memory_with_errors_that_could_not_be_corrected_is_bad);
    tcase_add_test(tcase, disks_are_those_of_hardware);
    tcase_add_test(tcase, a_network_card_tells_its_link_and_its_rdma_ports);
    tcase_add_loop_test(tcase, what_a_file_declares_is_there_and_what_it_says_wrongly_is_named, 0,
                        (int)WEIR_ARRAY_LEN(declarations));
    tcase_add_test(tcase, more_than_are_looked_at_are_left_out_and_told);
    return weir_test_run(suite);
}
