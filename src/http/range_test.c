#include "http/range.h"

#include "base/arena.h"
#include "base/test_main.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Expected values by hand, from the RFC's own examples (section 14.1.2) and their edges. */
static const struct {
    const char *text;
    uint64_t size;
    enum http_range kind;
    uint64_t offset, len;
} cases[] = {
    {NULL, 100, HTTP_RANGE_NONE, 0, 0},
    {"bytes=0-499", 10000, HTTP_RANGE_PART, 0, 500},
    {"bytes=500-999", 10000, HTTP_RANGE_PART, 500, 500},
    {"bytes=-500", 10000, HTTP_RANGE_PART, 9500, 500},
    {"bytes=9500-", 10000, HTTP_RANGE_PART, 9500, 500},
    {"bytes=0-0", 1, HTTP_RANGE_PART, 0, 1},
    {"Bytes= 5-5 ", 10, HTTP_RANGE_PART, 5, 1},
    {"bytes=-500", 10, HTTP_RANGE_PART, 0, 10},
    {"bytes=0-18446744073709551615", 10, HTTP_RANGE_PART, 0, 10},
    {"bytes=10-", 10, HTTP_RANGE_BAD, 0, 0},
    {"bytes=-0", 10, HTTP_RANGE_BAD, 0, 0},
    {"bytes=-1", 0, HTTP_RANGE_BAD, 0, 0},
    {"bytes=0-", 0, HTTP_RANGE_BAD, 0, 0},
    {"bytes=0-0,-1", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=5-4", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=99999999999999999999-", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=+1-2", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=1 -2", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=-", 10, HTTP_RANGE_NONE, 0, 0},
    {"lines=0-1", 10, HTTP_RANGE_NONE, 0, 0},
};

START_TEST(a_range_is_read_as_the_rfc_has_it)
{
    uint64_t offset = 0, len = 0;
    enum http_range kind = http_range_parse(cases[_i].text, cases[_i].size, &offset, &len);
    ck_assert_msg(kind == cases[_i].kind, "%s", cases[_i].text);
    ck_assert_uint_eq(offset, cases[_i].offset);
    ck_assert_uint_eq(len, cases[_i].len);
}

END_TEST

/* Whatever the text, a part lies within its file: that is what the answer's bytes are taken by. */
START_TEST(a_part_lies_within_its_file_whatever_was_asked)
{
    static const char letters[] = "bytes=0123456789-, \t";
    unsigned seed = 7;
    for (int round = 0; round < 200000; round++) {
        char text[48] = "bytes=";
        size_t n = (size_t)rand_r(&seed) % 24;
        for (size_t i = 0; i < n; i++) {
            text[6 + i] = letters[6 + (size_t)rand_r(&seed) % (sizeof letters - 7)];
        }
        text[6 + n] = '\0';
        uint64_t size = (uint64_t)rand_r(&seed) % 1000, offset = 0, len = 0;
        if (http_range_parse(text, size, &offset, &len) == HTTP_RANGE_PART) {
            ck_assert_msg(len >= 1 && offset < size && len <= size - offset,
                          "seed 7, \"%s\" of %" PRIu64, text, size);
        }
    }
}

END_TEST

static const struct {
    const char *list;
    bool is_listed;
} lists[] = {
    {"\"a\"", true},         {"*", true},      {"W/\"a\"", true}, {"\"b\", \"a\"", true},
    {"\"b\",W/\"a\"", true}, {"\"b\"", false}, {"\"aa\"", false}, {"a", false},
    {"\"b\", \"a", false},   {"", false},
};

START_TEST(an_etag_is_found_in_a_list)
{
    ck_assert_msg(http_etag_is_listed(lists[_i].list, "\"a\"") == lists[_i].is_listed, "%s",
                  lists[_i].list);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("range");
    TCase *tcase = tcase_create("range");
    tcase_add_loop_test(tcase, a_range_is_read_as_the_rfc_has_it, 0, WEIR_ARRAY_LEN(cases));
    tcase_add_test(tcase, a_part_lies_within_its_file_whatever_was_asked);
    tcase_add_loop_test(tcase, an_etag_is_found_in_a_list, 0, WEIR_ARRAY_LEN(lists));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
