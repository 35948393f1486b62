#include "base/clock.h"

#include "base/test_main.h"

/* Pairs made with `date -u -d @N +%FT%TZ`. */
static const struct {
    const char *text;
    int64_t time_ms;
} known[] = {
    {"1970-01-01T00:00:00.000Z", 0},
    {"2000-02-29T23:59:59.999Z", 951868799999},
    {"2026-01-31T10:00:00.123Z", 1769853600123},
    {"1969-12-31T23:59:59.500Z", -500},
    {"2038-01-19T03:14:08.000Z", 2147483648000},
};

START_TEST(times_are_written_and_read_as_date_does)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char text[WEIR_TIME_TEXT_BYTES];
        weir_time_format(known[i].time_ms, text);
        ck_assert_str_eq(text, known[i].text);
        int64_t time_ms = 1;
        ck_assert_int_eq(weir_time_parse(known[i].text, &time_ms), WEIR_OK);
        ck_assert_int_eq(time_ms, known[i].time_ms);
    }
    int64_t time_ms;
    ck_assert_int_eq(weir_time_parse("2026-01-31T12:30:00+02:30", &time_ms), WEIR_OK);
    ck_assert_int_eq(time_ms, 1769853600000);
}

END_TEST

START_TEST(what_is_not_a_time_is_refused)
{
    static const char *const wrong[] = {"",
                                        "now",
                                        "2026-01-31",
                                        "2026-13-01T00:00:00Z",
                                        "2026-02-31T00:00:30Z",
                                        "2026-02-31T10:00:00Z",
                                        "2026-01-31T10:00:00",
                                        "2026-01-31T10:00:00Zx",
                                        "2026-01-31T10:00:00+2",
                                        "2026-01-31T25:00:00Z"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t time_ms = 42;
        ck_assert_msg(weir_time_parse(wrong[i], &time_ms) == WEIR_ERR_INVALID, "%s", wrong[i]);
        ck_assert_int_eq(time_ms, 42);
    }
}

END_TEST

WEIR_TEST_MAIN("clock", times_are_written_and_read_as_date_does, what_is_not_a_time_is_refused)
