#include "retain/choose.h"

#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

/* What goes, as text: names in the order of age. */
static const char *chosen(struct retain_item *items, size_t n, int64_t keep_ms, int64_t max_bytes,
                          int64_t now_ms)
{
    static char text[64];
    struct weir_retain_limit limit = {keep_ms, max_bytes};
    size_t n_going = retain_choose(items, n, &limit, now_ms), len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (items[i].goes) {
            len += (size_t)snprintf(text + len, sizeof text - len, "%s", items[i].name);
        }
    }
    ck_assert_uint_eq(n_going, strlen(text));
    return text;
}

#define ITEMS                                                                                      \
    struct retain_item items[] = {                                                                 \
        {.name = "c", .time_ms = 300, .bytes = 10},                                                \
        {.name = "a", .time_ms = 100, .bytes = 10},                                                \
        {.name = "d", .time_ms = 400, .bytes = 10},                                                \
        {.name = "b", .time_ms = 200, .bytes = 10},                                                \
    }

START_TEST(what_is_too_old_goes)
{
    ITEMS;
    ck_assert_str_eq(chosen(items, 4, 250, -1, 450), "ab");
    ck_assert_str_eq(chosen(items, 4, 0, -1, 450), "abcd");
    ck_assert_str_eq(chosen(items, 4, 1000, -1, 450), "");
    ck_assert_str_eq(chosen(items, 4, -1, -1, 1 << 30), "");
}

END_TEST

START_TEST(the_oldest_go_until_the_rest_fits)
{
    ITEMS;
    ck_assert_str_eq(chosen(items, 4, -1, 40, 450), "");
    ck_assert_str_eq(chosen(items, 4, -1, 39, 450), "a");
    ck_assert_str_eq(chosen(items, 4, -1, 20, 450), "ab");
    ck_assert_str_eq(chosen(items, 4, -1, 0, 450), "abcd");
    ck_assert_str_eq(chosen(items, 4, 350, 20, 450), "ab");
}

END_TEST

START_TEST(what_is_needed_counts_but_never_goes)
{
    ITEMS;
    items[1].is_needed = true; /* a */
    ck_assert_str_eq(chosen(items, 4, 0, 0, 1000), "bcd");
    ck_assert_str_eq(chosen(items, 4, -1, 20, 450), "bc");
}

END_TEST

START_TEST(what_has_no_size_goes_by_age_alone)
{
    ITEMS;
    items[1].has_no_size = true; /* a */
    ck_assert_str_eq(chosen(items, 4, -1, 20, 450), "bc");
    ck_assert_str_eq(chosen(items, 4, 350, 40, 450), "a");
}

END_TEST

START_TEST(a_time_in_the_future_is_not_old)
{
    struct retain_item items[] = {{.name = "x", .time_ms = 2000, .bytes = 1}};
    ck_assert_str_eq(chosen(items, 1, 0, -1, 1000), "");
    ck_assert_str_eq(chosen(items, 1, -1, 0, 1000), "x");
    ck_assert_uint_eq(retain_choose(NULL, 0, &(struct weir_retain_limit){0, 0}, 0), 0);
}

END_TEST

WEIR_TEST_MAIN("choose", what_is_too_old_goes, the_oldest_go_until_the_rest_fits,
               what_is_needed_counts_but_never_goes, what_has_no_size_goes_by_age_alone,
               a_time_in_the_future_is_not_old)
