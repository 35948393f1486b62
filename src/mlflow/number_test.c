/* Numbers as text: what strtod reads back is the same double. */
#include "mlflow/number.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(double value)
{
    char text[NUMBER_TEXT_BYTES + 1];
    size_t len = number_text(value, text);
    ck_assert_uint_le(len, NUMBER_TEXT_BYTES);
    text[len] = '\0';
    double back = strtod(text, NULL);
    ck_assert_msg(memcmp(&back, &value, sizeof value) == 0 || (value == 0 && back == 0),
                  "%a became %s", value, text);
}

START_TEST(any_double_reads_back)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 11, 0);
    for (int i = 0; i < 300000; i++) {
        uint64_t bits = weir_rng_u64(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            check(value);
        }
        check(weir_rng_f64(&rng));
        check((weir_rng_f64(&rng) - 0.5) * pow(10, (double)weir_rng_below(&rng, 40) - 20));
        check((double)(float)weir_rng_f64(&rng));
        check(nextafter((double)weir_rng_below(&rng, 100000) / 1000, 1e9));
    }
}

END_TEST

START_TEST(short_numbers_are_short)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0.0"},           {1, "1.0"},
                {-3, "-3.0"},         {0.1, "0.1"},
                {-0.5, "-0.5"},       {123.456, "123.456"},
                {1e-5, "0.00001"},    {0.37, "0.37"},
                {99999.5, "99999.5"}, {1e14, "100000000000000.0"},
                {0.001, "0.001"},     {-12.25, "-12.25"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[NUMBER_TEXT_BYTES + 1];
        text[number_text(rows[i].value, text)] = '\0';
        ck_assert_str_eq(text, rows[i].text);
    }
    check(DBL_MAX);
    check(-DBL_MAX);
    check(DBL_MIN);
    check(4.9e-324);
    check(9007199254740993.0);
}

END_TEST

WEIR_TEST_MAIN("number", any_double_reads_back, short_numbers_are_short)
