/* Lists of hosts against what they must mean, written out by hand. */
#include "bench/spawn/spawn_place.h"

#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static struct spawn_places places;
static struct weir_error err;

/** "a:2 b:1": what was understood. */
static const char *text_of(weir_status status)
{
    static char text[4096];
    size_t len = 0;
    text[0] = '\0';
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    for (int i = 0; i < places.n; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s:%d", i > 0 ? " " : "",
                                places.list[i].host, places.list[i].n_slots);
    }
    return text;
}

static const char *layout(const char *hosts, int n_ranks)
{
    static char text[512];
    int place_of_rank[512], n = 0;
    ck_assert_int_eq(spawn_places_parse(hosts, &places, &err), WEIR_OK);
    weir_status status = spawn_places_lay_out(&places, n_ranks, true, place_of_rank, &n, &err);
    if (status != WEIR_OK) {
        return weir_status_name(status);
    }
    for (int r = 0; r < n; r++) {
        text[r] = places.list[place_of_rank[r]].host[0];
    }
    text[n] = '\0';
    return text;
}

START_TEST(hosts_are_read_with_and_without_numbers)
{
    ck_assert_str_eq(text_of(spawn_places_parse("a,b", &places, &err)), "a:0 b:0");
    ck_assert_str_eq(text_of(spawn_places_parse("n-1.lab:2,me@b:10", &places, &err)),
                     "n-1.lab:2 me@b:10");
}

END_TEST

START_TEST(what_is_no_host_is_refused)
{
    static const char *const bad[] = {"",      ",",    "a,",   "-oProxyCommand=x", "a b", "a:0",
                                      "a:1,b", "a:1x", "a;rm", "a:99999999999"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(spawn_places_parse(bad[i], &places, &err) == WEIR_ERR_INVALID, "%s", bad[i]);
        ck_assert(err.message[0] != '\0');
    }
}

END_TEST

START_TEST(slurms_lists_are_read)
{
    ck_assert_str_eq(
        text_of(spawn_places_parse_slurm("gpu[01-03,7],login", "2(x3),1,4", &places, &err)),
        "gpu01:2 gpu02:2 gpu03:2 gpu7:1 login:4");
    ck_assert_str_eq(text_of(spawn_places_parse_slurm("n[098-101]", NULL, &places, &err)),
                     "n098:0 n099:0 n100:0 n101:0");
    ck_assert_str_eq(text_of(spawn_places_parse_slurm("one", "3", &places, &err)), "one:3");
}

END_TEST

START_TEST(what_slurm_does_not_write_is_refused)
{
    static const char *const bad[] = {"",      "n[",      "n[]",  "n[3-1]",
                                      "n[1-2", "n[1-2]x", "n[a]", "n[1]["};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(spawn_places_parse_slurm(bad[i], NULL, &places, &err) == WEIR_ERR_INVALID,
                      "%s", bad[i]);
    }
    ck_assert_int_eq(spawn_places_parse_slurm("n[1-4]", "2(x3)", &places, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(spawn_places_parse_slurm("n[1-4]", "x", &places, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(spawn_places_parse_slurm("n[1-999]", NULL, &places, &err), WEIR_ERR_LIMIT);
}

END_TEST

START_TEST(ranks_fill_hosts_in_blocks)
{
    ck_assert_str_eq(layout("a,b", 0), "ab");
    ck_assert_str_eq(layout("a,b", 5), "aaabb");
    ck_assert_str_eq(layout("a:2,b:2", 0), "aabb");
    ck_assert_str_eq(layout("a:2,b:2", 3), "aab");
    ck_assert_str_eq(layout("a,b,c", 2), "ab");
    ck_assert_str_eq(layout("a:2,b:2", 5), "INVALID");
    ck_assert_str_eq(layout("a", 300), "INVALID");
}

END_TEST

WEIR_TEST_MAIN("spawn_place", hosts_are_read_with_and_without_numbers, what_is_no_host_is_refused,
               slurms_lists_are_read, what_slurm_does_not_write_is_refused,
               ranks_fill_hosts_in_blocks)
