#include "job/place.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <inttypes.h>
#include <string.h>

START_TEST(the_first_node_with_room_takes_the_task)
{
    struct weir_place_node nodes[] = {{"node-a", true, 4, 1, false},
                                      {"node-b", false, 8, 8, false},
                                      {"node-c", true, 4, 4, false}};
    int64_t slots[] = {2, 1, 2};
    size_t where[3];
    char reason[WEIR_PLACE_REASON_BYTES];
    ck_assert(weir_place(slots, 3, nodes, 3, where, reason));
    ck_assert_uint_eq(where[0], 2);
    ck_assert_uint_eq(where[1], 0);
    ck_assert_uint_eq(where[2], 2);
    ck_assert_int_eq(nodes[0].cpu_free, 0);
    ck_assert_int_eq(nodes[2].cpu_free, 0);
}

END_TEST

START_TEST(a_node_without_room_for_text_takes_no_task)
{
    struct weir_place_node nodes[] = {
        {.name = "node-a", .is_live = true, .cpu_slots = 4, .cpu_free = 4, .is_full = true}};
    int64_t none = 0;
    size_t where;
    char reason[WEIR_PLACE_REASON_BYTES];
    ck_assert(!weir_place(&none, 1, nodes, 1, &where, reason));
    ck_assert_str_eq(reason, "needs 0 CPU slots, 4 free on node-a (no room for more tasks' files)");
}

END_TEST

START_TEST(why_not_is_said_in_words)
{
    char reason[WEIR_PLACE_REASON_BYTES];
    size_t where[4];
    int64_t two = 2, many = 64, ones[] = {1, 1, 1};
    struct weir_place_node nodes[] = {{"node-a", true, 4, 1, false}, {"node-b", true, 2, 0, false}};
    ck_assert(!weir_place(&two, 1, nodes, 1, where, reason));
    ck_assert_str_eq(reason, "needs 2 CPU slots, 1 free on node-a");
    ck_assert(!weir_place(&two, 1, nodes, 2, where, reason));
    ck_assert_str_eq(reason, "needs 2 CPU slots, 1 free on node-a, 0 free on node-b");
    ck_assert(!weir_place(&many, 1, nodes, 2, where, reason));
    ck_assert_str_eq(reason, "needs 64 CPU slots, but the largest node has 4");
    ck_assert(!weir_place(ones, 3, nodes, 2, where, reason));
    ck_assert_str_eq(reason, "needs 3 tasks together, each of up to 1 CPU slot, 1 free on node-a, "
                             "0 free on node-b");
    ck_assert_int_eq(nodes[0].cpu_free, 1);
    nodes[0].is_live = false;
    ck_assert(!weir_place(&two, 1, nodes, 1, where, reason));
    ck_assert_str_eq(
        reason,
        "no node is ready: 1 known, all lost, draining, or not heard of since the server started");
    ck_assert(!weir_place(&two, 1, nodes, 0, where, reason));
    ck_assert_str_eq(reason, "no node has registered yet");
}

END_TEST

START_TEST(a_long_list_of_nodes_is_cut_not_overrun)
{
    struct weir_place_node nodes[100];
    char reason[WEIR_PLACE_REASON_BYTES];
    size_t where;
    int64_t two = 2;
    for (size_t i = 0; i < 100; i++) {
        nodes[i] = (struct weir_place_node){"a-node-with-a-rather-long-name", true, 2, 1, false};
    }
    ck_assert(!weir_place(&two, 1, nodes, 100, &where, reason));
    ck_assert_uint_eq(strlen(reason), WEIR_PLACE_REASON_BYTES - 1);
}

END_TEST

START_TEST(random_gangs_of_equal_tasks_are_placed_exactly_when_they_fit)
{
    uint64_t seed = 77;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    for (int i_trial = 0; i_trial < 5000; i_trial++) {
        struct weir_place_node nodes[6], before[6];
        size_t n_nodes = weir_rng_below(&rng, 7), n_tasks = 1 + weir_rng_below(&rng, 10), where[10];
        int64_t size = 1 + (int64_t)weir_rng_below(&rng, 3), room = 0, slots[10];
        for (size_t i = 0; i < n_nodes; i++) {
            int64_t n_slots = (int64_t)weir_rng_below(&rng, 9);
            nodes[i] = (struct weir_place_node){
                "n", weir_rng_below(&rng, 4) != 0, n_slots,
                (int64_t)weir_rng_below(&rng, (uint64_t)n_slots + 1), false};
            room += nodes[i].is_live ? nodes[i].cpu_free / size : 0;
        }
        for (size_t i = 0; i < n_tasks; i++) {
            slots[i] = size;
        }
        memcpy(before, nodes, sizeof(before));
        char reason[WEIR_PLACE_REASON_BYTES] = "";
        bool is_placed = weir_place(slots, n_tasks, nodes, n_nodes, where, reason);
        ck_assert(is_placed == ((int64_t)n_tasks <= room));
        ck_assert(is_placed == (reason[0] == '\0'));
        for (size_t i = 0; i < n_nodes; i++) {
            int64_t taken = 0;
            for (size_t k = 0; is_placed && k < n_tasks; k++) {
                taken += where[k] == i ? size : 0;
            }
            ck_assert_int_eq(nodes[i].cpu_free, before[i].cpu_free - taken);
            ck_assert_int_ge(nodes[i].cpu_free, 0);
            ck_assert(taken == 0 || nodes[i].is_live);
        }
    }
}

END_TEST

WEIR_TEST_MAIN("place", the_first_node_with_room_takes_the_task,
               a_node_without_room_for_text_takes_no_task, why_not_is_said_in_words,
               a_long_list_of_nodes_is_cut_not_overrun,
               random_gangs_of_equal_tasks_are_placed_exactly_when_they_fit)
