#include "base/quantity.h"

#include "base/macros.h"
#include "base/test_main.h"

#define BAD (-1)

static const struct {
    const char *text;
    int64_t bytes, ms;
} rows[] = {
    {"0", 0, 0},
    {"512", 512, 512000},
    {"512M", 512LL << 20, BAD},
    {"2g", 2LL << 30, BAD},
    {"80 GiB", 80LL << 30, BAD},
    {"80GB", 80000000000LL, BAD},
    {"1.5kB", 1500, BAD},
    {"90s", BAD, 90000},
    {"0ms", BAD, 0},
    {"5ms", BAD, 5},
    {"1.5 ms", BAD, 1},
    {"500us", BAD, BAD},
    {"2h", BAD, 7200000},
    {"1.5m", 1572864, 90000}, /* memory, or minutes */
    {"7d", BAD, 604800000},
    {"", BAD, BAD},
    {"G", BAD, BAD},
    {"-1", BAD, BAD},
    {" 1", BAD, BAD},
    {"inf", BAD, BAD},
    {"1e30", BAD, BAD},
    {"0x1", BAD, BAD},
    {"1.2.3", BAD, BAD},
    {"1GiBs", BAD, BAD},
    {"2000000TiB", BAD, BAD},
};

START_TEST(quantities_are_read_and_other_texts_are_refused)
{
    int64_t bytes = BAD, ms = BAD;
    ck_assert_int_eq(weir_bytes_parse(rows[_i].text, &bytes), rows[_i].bytes != BAD);
    ck_assert_int_eq(bytes, rows[_i].bytes);
    ck_assert_int_eq(weir_span_parse(rows[_i].text, &ms), rows[_i].ms != BAD);
    ck_assert_int_eq(ms, rows[_i].ms);
}

END_TEST

static const struct {
    const char *text;
    int64_t millis, whole;
} cpus[] = {
    {"0", 0, 0},      {"2", 2000, 2},     {"0.5", 500, 1},    {"1.5", 1500, 2},
    {"500m", 500, 1}, {"1500m", 1500, 2}, {"0.001", 1, 1},    {"4096", 4096000, 4096},
    {"100m", 100, 1}, {"2.0", 2000, 2},   {"2.001", 2001, 3}, {"0.10000000000000001", 100, 1},
    {"", BAD, 0},     {"m", BAD, 0},      {"0.0005", BAD, 0}, {"0.5m", BAD, 0},
    {"-1", BAD, 0},   {"inf", BAD, 0},    {"1e3", BAD, 0},    {"0x1", BAD, 0},
    {"2 m", BAD, 0},  {"2M", BAD, 0},     {"1.2.3", BAD, 0},  {"99999999999999999999", BAD, 0},
};

START_TEST(processors_are_read_as_thousandths_of_one)
{
    int64_t millis = BAD;
    ck_assert_int_eq(weir_cpus_parse(cpus[_i].text, &millis), cpus[_i].millis != BAD);
    ck_assert_int_eq(millis, cpus[_i].millis);
    if (millis != BAD) {
        ck_assert_int_eq(weir_cpus_whole(millis), cpus[_i].whole);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("quantity");
    TCase *tcase = tcase_create("quantity");
    tcase_add_loop_test(tcase, quantities_are_read_and_other_texts_are_refused, 0,
                        (int)WEIR_ARRAY_LEN(rows));
    tcase_add_loop_test(tcase, processors_are_read_as_thousandths_of_one, 0,
                        (int)WEIR_ARRAY_LEN(cpus));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
