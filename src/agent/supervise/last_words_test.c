#include "agent/supervise/last_words.h"

#include "base/json.h"
#include "base/test_main.h"

#include <string.h>

static char *argv[] = {"/opt/weir/weir-worker", "train", "--spec", NULL};

static const struct {
    const char *log, *words;
} cases[] = {
    {"", ""},
    {"\n \t\n", ""},
    {"one\ntwo\n", "two"},
    {"one\ntwo", "two"},
    {"Traceback:\n  File \"a.py\"\nValueError: no such key\n\n  \n", "ValueError: no such key"},
    {"weir-worker train: there is no model \"lenett\"\n", "there is no model \"lenett\""},
    {"weir-worker: bad\n", "bad"},
    {"weir-worker training is fun\n", "weir-worker training is fun"},
    {"sh: 1: nosuch: not found\n", "nosuch: not found"},
    {"bash: line 12: ./go: Permission denied\n", "./go: Permission denied"},
    {"/bin/sh: 0: cannot open x\n", "cannot open x"},
    {"sh: \n", "sh:"},
    {"/opt/weir/weir-worker: no\n", "no"},
    {"shell: no\n", "shell: no"},
    {"12: no\n", "12: no"},
    {"\x1b[31mError:\x1b[0m red\r\n", "Error: red"},
    {"\x1b]0;title\x07gone\n", "gone"},
    {"a\tb\x01z\x7f\n", "a b z"},
    {"bad \xff\xfe byte\n", "bad ?? byte"},
    {"c1 \xc2\x9b here\n", "c1   here"},
    {"caf\xc3\xa9\n", "café"},
    {"cut \xc3", "cut ?"},
};

START_TEST(the_last_line_that_says_anything_is_cleaned)
{
    char out[LAST_WORDS_BYTES];
    last_words_of(cases[_i].log, strlen(cases[_i].log), argv, out);
    ck_assert_str_eq(out, cases[_i].words);
}

END_TEST

START_TEST(a_long_line_is_cut_between_characters)
{
    char log[2000], out[LAST_WORDS_BYTES];
    for (size_t i = 0; i < sizeof log / 2; i++) {
        memcpy(log + 2 * i, "é", 2);
    }
    last_words_of(log, sizeof log, NULL, out);
    ck_assert_uint_gt(strlen(out), LAST_WORDS_BYTES - 8);
    ck_assert(weir_text_is_utf8(out));
    ck_assert_str_eq(out + strlen(out) - strlen("…"), "…");
}

END_TEST

START_TEST(a_log_that_is_not_there_has_no_words)
{
    char out[LAST_WORDS_BYTES] = "x";
    last_words_read("/nonexistent/log", argv, out);
    ck_assert_str_eq(out, "");
}

END_TEST

WEIR_TEST_LOOPS_MAIN("last_words",
                     {the_last_line_that_says_anything_is_cleaned, WEIR_ARRAY_LEN(cases)},
                     {a_long_line_is_cut_between_characters, 0},
                     {a_log_that_is_not_there_has_no_words, 0})
