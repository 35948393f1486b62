#include "cluster/cluster.h"

#include "base/record.h"
#include "base/test_main.h"

#include <unistd.h>

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
    ck_assert_int_eq(memory, pages);
    json_decref(inventory);
    inventory = weir_cluster_inventory(7);
    ck_assert_int_eq(json_integer_value(json_object_get(inventory, "cpu_slots")), 7);
    json_decref(inventory);
}

END_TEST

START_TEST(a_node_name_is_a_name_and_other_drivers_say_no)
{
    struct weir_arena arena;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    ck_assert(weir_name_is_valid(weir_cluster_node_name(&arena)));
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_cluster_driver_check("local", &err), WEIR_OK);
    ck_assert_int_eq(weir_cluster_driver_check("slurm", &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(weir_cluster_driver_check("mesos", &err), WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN("local", the_inventory_says_what_the_system_says,
               a_node_name_is_a_name_and_other_drivers_say_no)
