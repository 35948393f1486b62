/* Whether guarantees can be kept, over trees that are written down here. */
#include "control/schedule/guarantee.h"

#include "base/test_main.h"
#include "base/test_seed.h"
#include "control/small.h"

#include <check.h>
#include <string.h>

#define NONE   WEIR_SCHED_UNLIMITED
#define MONDAY (INT64_C(4) * 24 * 3600 * 1000) /* 1970-01-05, midnight */

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static struct weir_sched_queue queue(const char *name, int32_t parent, int64_t cpus)
{
    return (struct weir_sched_queue){
        .name = name,
        .parent = parent,
        .shares = {{0, 1, NONE}, {cpus < 0 ? NONE : cpus * 1000, 1, NONE}, {0, 1, NONE}}};
}

static struct guarantee_sum look(const struct weir_sched_queue *queues, int32_t n, int64_t cpus)
{
    const struct weir_sched_node node = {.name = "a", .cpu_milli = cpus * 1000};
    const struct weir_sched_snapshot rows = {
        .now_ms = MONDAY, .queues = queues, .n_queues = n, .nodes = &node, .n_nodes = cpus > 0};
    struct guarantee_sum sum;
    guarantee_look(&rows, &arena, &sum);
    return sum;
}

START_TEST(departments_count_once_and_parts_above_theirs_count_themselves)
{
    const struct weir_sched_queue queues[] = {queue("research", -1, 6), queue("a", 0, 2),
                                              queue("b", 0, 3),         queue("free", -1, -1),
                                              queue("sales", -1, 1),    queue("c", 4, 4)};
    struct guarantee_sum sum = look(queues, 6, 10);
    ck_assert_int_eq(sum.sum.of[WEIR_SCHED_CPU], 10000); /* 6 and 4: no bound is no number. */
    ck_assert_int_eq(sum.resource, -1);
    sum = look(queues, 6, 9);
    ck_assert_int_eq(sum.resource, WEIR_SCHED_CPU);
    ck_assert_int_eq(guarantee_missing(&sum), 1000);
    ck_assert_int_eq(look(queues, 6, 0).resource, -1); /* No node yet. */
}

END_TEST

START_TEST(slices_of_devices_count_as_parts_of_them)
{
    const struct weir_sched_extra slices[] = {{"1g.10gb", 4, 125}, {"card", 9, 0}};
    const struct weir_sched_node node = {
        .name = "a", .n_devices = 1, .extras = slices, .n_extras = 2};
    struct weir_sched_queue queues[] = {queue("a", -1, 0), queue("b", -1, 0)};
    const struct weir_sched_snapshot rows = {
        .now_ms = MONDAY, .queues = queues, .n_queues = 2, .nodes = &node, .n_nodes = 1};
    struct guarantee_sum sum;
    queues[0].shares[WEIR_SCHED_ACCELERATOR].quota = 1000;
    queues[1].shares[WEIR_SCHED_ACCELERATOR].quota = 500;
    guarantee_look(&rows, &arena, &sum);
    ck_assert_int_eq(sum.capacity.of[WEIR_SCHED_ACCELERATOR], 1500);
    ck_assert_int_eq(sum.resource, -1);
    queues[1].shares[WEIR_SCHED_ACCELERATOR].quota = 625;
    guarantee_look(&rows, &arena, &sum);
    ck_assert_int_eq(sum.resource, WEIR_SCHED_ACCELERATOR);
    ck_assert_int_eq(guarantee_missing(&sum), 125);
}

END_TEST

START_TEST(times_of_the_week_add_up_where_they_meet)
{
    struct weir_sched_timed_quota night = {.days = 0x7f,
                                           .from_minute = 20 * 60,
                                           .until_minute = 6 * 60,
                                           .shares = {{0, 1, NONE}, {8000, 1, NONE}, {0, 1, NONE}}};
    struct weir_sched_timed_quota dawn = night;
    dawn.from_minute = 5 * 60;
    dawn.until_minute = 7 * 60;
    struct weir_sched_queue queues[] = {queue("a", -1, 2), queue("b", -1, 2)};
    queues[0].timed_quotas = &night;
    queues[0].n_timed_quotas = 1;
    ck_assert_int_eq(look(queues, 2, 10).resource, -1); /* 8 and 2. */
    queues[1].timed_quotas = &dawn;
    queues[1].n_timed_quotas = 1;
    struct guarantee_sum sum = look(queues, 2, 10); /* From 5 to 6 both. */
    ck_assert_int_eq(sum.resource, WEIR_SCHED_CPU);
    ck_assert_int_eq(guarantee_missing(&sum), 6000);
    ck_assert_int_eq((sum.at_ms - MONDAY) % 86400000, 5 * 3600000);
}

END_TEST

START_TEST(the_sentence_names_who_uses_the_least_of_theirs)
{
    const struct weir_sched_queue queues[] = {queue("a", -1, 4), queue("b", -1, 4),
                                              queue("c", -1, 4)};
    const struct weir_sched_node node = {.name = "a", .cpu_milli = 8000};
    const struct weir_sched_snapshot rows = {
        .now_ms = MONDAY, .queues = queues, .n_queues = 3, .nodes = &node, .n_nodes = 1};
    struct weir_sched_queue_share used[3] = {{.allocated = {{0}}}};
    struct guarantee_sum sum;
    used[0].allocated.of[WEIR_SCHED_CPU] = 3000;
    used[1].allocated.of[WEIR_SCHED_CPU] = 4000;
    guarantee_look(&rows, &arena, &sum);
    ck_assert_str_eq(
        guarantee_tell(&rows, &sum, used, NULL, &arena),
        "guarantees of 12 CPUs in all are more than the 8 CPUs that the nodes have; of "
        "theirs these do not use: c (4 CPUs), a (1 CPUs)");
    const bool named[3] = {true, true, false};
    ck_assert_ptr_null(strstr(guarantee_tell(&rows, &sum, used, named, &arena), " c "));
}

END_TEST

#define QUEUES_MAX 12
#define NODES_MAX  6

/* What the parts of a queue are promised, or it itself where that is more; by another way than the code's. */
static int64_t promised(const struct weir_sched_queue *queues, int32_t n, int32_t of)
{
    int64_t parts = 0;
    for (int32_t q = 0; q < n; q++) {
        parts += queues[q].parent == of ? promised(queues, n, q) : 0;
    }
    int64_t own = of >= 0 ? queues[of].shares[WEIR_SCHED_CPU].quota : 0;
    return own > parts ? own : parts;
}

/* Nodes have room for small tasks beside their CPUs, as control/schedule/snapshot_rows.c gives it to them. */
START_TEST(what_is_promised_can_be_placed_whatever_is_small)
{
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    int n_kept = 0, n_rounds = WEIR_TEST_TIMES(3000, 300);
    for (int round = 0; round < n_rounds; round++) {
        struct weir_sched_queue queues[QUEUES_MAX];
        struct weir_sched_node nodes[NODES_MAX];
        int32_t n_queues = 1 + (int32_t)weir_rng_below(&rng, QUEUES_MAX);
        int32_t n_nodes = 1 + (int32_t)weir_rng_below(&rng, NODES_MAX);
        int64_t n_cpus = 0;
        for (int32_t i = 0; i < n_nodes; i++) {
            int64_t own = 1 + (int64_t)weir_rng_below(&rng, 8);
            int64_t room = (int64_t)weir_rng_below(&rng, CONTROL_SMALL_ROOM_MILLIS + 1);
            nodes[i] = (struct weir_sched_node){.name = "n", .cpu_milli = own * 1000 + room};
            n_cpus += own;
        }
        for (int32_t q = 0; q < n_queues; q++) {
            int32_t parent = (int32_t)weir_rng_below(&rng, (uint64_t)q + 1) - 1;
            queues[q] = queue("q", parent, 0);
            queues[q].shares[WEIR_SCHED_CPU].quota = (int64_t)weir_rng_below(&rng, 6000);
        }
        const struct weir_sched_snapshot rows = {.now_ms = MONDAY,
                                                 .queues = queues,
                                                 .n_queues = n_queues,
                                                 .nodes = nodes,
                                                 .n_nodes = n_nodes};
        struct guarantee_sum sum;
        guarantee_look(&rows, &arena, &sum);
        int64_t most = promised(queues, n_queues, -1);
        ck_assert_int_eq(sum.sum.of[WEIR_SCHED_CPU], most); /* to the thousandth */
        ck_assert_msg((sum.resource < 0) == (most <= n_cpus * 1000),
                      "%lld promised of %lld CPUs, seed %llu", (long long)most, (long long)n_cpus,
                      (unsigned long long)seed);
        n_kept += sum.resource < 0;
    }
    ck_assert_int_gt(n_kept, n_rounds / 20);
    ck_assert_int_lt(n_kept, n_rounds);
}

END_TEST

START_TEST(only_who_has_some_is_asked_for_it)
{
    const struct weir_sched_queue queues[] = {queue("a", -1, 4), queue("b", -1, 5)};
    const struct weir_sched_node node = {.name = "a", .cpu_milli = 8000};
    const struct weir_sched_snapshot rows = {
        .now_ms = MONDAY, .queues = queues, .n_queues = 2, .nodes = &node, .n_nodes = 1};
    struct weir_sched_queue_share used[2] = {{.allocated = {{0}}}};
    const bool named[2] = {true, false}; /* b is the one that asks */
    struct guarantee_sum sum;
    guarantee_look(&rows, &arena, &sum);
    ck_assert(guarantee_has_donors(&rows, &sum, used, named, &arena));
    used[0].allocated.of[WEIR_SCHED_CPU] = 4000;
    ck_assert(!guarantee_has_donors(&rows, &sum, used, named, &arena));
}

END_TEST

WEIR_TEST_MAIN_WITH("guarantee", set_up, tear_down,
                    departments_count_once_and_parts_above_theirs_count_themselves,
                    slices_of_devices_count_as_parts_of_them,
                    times_of_the_week_add_up_where_they_meet,
                    what_is_promised_can_be_placed_whatever_is_small,
                    only_who_has_some_is_asked_for_it,
                    the_sentence_names_who_uses_the_least_of_theirs)
