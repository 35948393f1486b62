#include "base/names.h"

#include "base/macros.h"
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

START_TEST(a_name_is_akin_that_says_more_than_the_word)
{
    ck_assert(weir_name_is_akin("cpus", "cpu_slots"));
    ck_assert(weir_name_is_akin("restart", "max_restarts"));
    ck_assert(weir_name_is_akin("memory", "memory-max-bytes"));
    ck_assert(!weir_name_is_akin("art", "max_restarts"));
    ck_assert(!weir_name_is_akin("s", "spec"));
    ck_assert(!weir_name_is_akin("", "spec"));
    ck_assert(!weir_name_is_akin("spectrum", "spec"));
}

END_TEST

static const char *nearest_of(const char *word, const char *const *names)
{
    struct weir_nearest nearest = {0};
    for (; *names != NULL; names++) {
        weir_nearest_see(&nearest, word, strlen(word), *names);
    }
    return nearest.name;
}

START_TEST(the_name_with_the_fewest_changes_is_meant)
{
    const char *const people[] = {"ann", "anne", "hannah", "bo", "Émile", NULL};
    ck_assert_str_eq(nearest_of("anne", people), "anne");
    ck_assert_str_eq(nearest_of("annn", people), "ann"); /* the first of equals */
    ck_assert_str_eq(nearest_of("hanna", people), "hannah");
    ck_assert_str_eq(nearest_of("Emile", people), "Émile");
    ck_assert_ptr_null(nearest_of("gertrude", people));
    ck_assert_ptr_null(nearest_of("x", people)); /* every letter changed is another word */
    ck_assert_ptr_null(nearest_of("", people));
}

END_TEST

START_TEST(long_words_are_near_to_nothing)
{
    char word[300], name[300];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    memcpy(name, word, sizeof name);
    const char *const names[] = {name, NULL};
    ck_assert_ptr_null(nearest_of(word, names));
    word[128] = name[127] = '\0';
    ck_assert_str_eq(nearest_of(word, names), name);
}

END_TEST

START_TEST(a_word_is_had_whole_or_not_at_all)
{
    const char *const words = "get job get-logs";
    const char *const there[] = {"get", "job", "get-logs"};
    const char *const absent[] = {"", " ", "ge", "get-", "logs", "get job", "jobs"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(there); i++) {
        ck_assert(weir_words_have(words, there[i], strlen(there[i])));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(absent); i++) {
        ck_assert_msg(!weir_words_have(words, absent[i], strlen(absent[i])), "%s", absent[i]);
    }
    ck_assert(weir_words_have(words, "job=1", 3));
    ck_assert(!weir_words_have("", "", 0));
}

END_TEST

WEIR_TEST_MAIN("names", names_stand_behind_each_other_with_commas,
               a_word_is_had_whole_or_not_at_all, a_name_is_akin_that_says_more_than_the_word,
               what_has_no_room_is_told_once, the_name_with_the_fewest_changes_is_meant,
               long_words_are_near_to_nothing)
