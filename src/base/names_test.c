#include "base/names.h"

#include "base/test_main.h"

#include <string.h>

START_TEST(names_stand_behind_each_other_with_commas)
{
    struct weir_names names = {0};
    ck_assert_str_eq(names.text, "");
    weir_names_add(&names, "fifo", strlen("fifo"));
    ck_assert_str_eq(names.text, "fifo");
    weir_names_add(&names, "sjf,las", 3);
    ck_assert_str_eq(names.text, "fifo, sjf");
}

END_TEST

START_TEST(what_has_no_room_is_told_once)
{
    static const char filler[] = "1234567890123456789";
    for (size_t longest = 1; longest < sizeof filler; longest++) {
        struct weir_names names = {0};
        for (int i = 0; i < 300; i++) {
            weir_names_add(&names, filler, longest);
        }
        ck_assert_uint_eq(names.len, strlen(names.text));
        ck_assert_uint_lt(names.len, sizeof names.text);
        ck_assert_uint_gt(names.len, sizeof names.text - 32);
        ck_assert_str_eq(strstr(names.text, "…"), "…"); /* at the very end */
    }
}

END_TEST

WEIR_TEST_MAIN("names", names_stand_behind_each_other_with_commas, what_has_no_room_is_told_once)
