/* Narrow floats against the definitions in their papers, by all their bit patterns. */
#include "tensor/convert.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Every pattern survives the way to a double and back; NaN stays NaN. */
static void round_trip(enum weir_dtype dtype)
{
    size_t n_bits = weir_dtype_bits(dtype);
    for (uint32_t bits = 0; bits < 1U << n_bits; bits++) {
        uint8_t byte = (uint8_t)bits, byte_back = 0;
        uint16_t half = (uint16_t)bits, half_back = 0;
        double value, again;
        weir_elems_to_f64(dtype, n_bits == 16 ? (void *)&half : (void *)&byte, &value, 1);
        weir_elems_from_f64(dtype, &value, n_bits == 16 ? (void *)&half_back : (void *)&byte_back,
                            1, WEIR_OVERFLOW_IS_LOST);
        weir_elems_to_f64(dtype, n_bits == 16 ? (void *)&half_back : (void *)&byte_back, &again, 1);
        uint32_t back = n_bits == 16 ? half_back : byte_back;
        ck_assert_msg(isnan(value) ? isnan(again) : back == bits, "%s: %#x became %#x (%g)",
                      weir_dtype_name(dtype), bits, back, value);
    }
}

START_TEST(every_pattern_survives)
{
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_FLOAT16,      WEIR_DTYPE_BFLOAT16,
                                             WEIR_DTYPE_FLOAT8E4M3FN, WEIR_DTYPE_FLOAT8E4M3FNUZ,
                                             WEIR_DTYPE_FLOAT8E5M2,   WEIR_DTYPE_FLOAT8E5M2FNUZ,
                                             WEIR_DTYPE_FLOAT4E2M1,   WEIR_DTYPE_FLOAT8E8M0};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(dtypes); i++) {
        round_trip(dtypes[i]);
    }
}

END_TEST

#ifdef __FLT16_MAX__ /* Where the compiler has halves its conversions are the oracle. */
START_TEST(halves_are_those_of_the_compiler)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 1);
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = weir_rng_u32(&rng);
        float value;
        memcpy(&value, &bits, sizeof value);
        value = i % 2 == 0 ? value : (float)ldexp(weir_rng_f64(&rng) - 0.5, (int)(bits % 40) - 26);
        double wide = value;
        uint16_t ours;
        _Float16 theirs = (_Float16)value;
        uint16_t expected;
        memcpy(&expected, &theirs, sizeof expected);
        weir_elems_from_f64(WEIR_DTYPE_FLOAT16, &wide, &ours, 1, WEIR_OVERFLOW_SATURATES);
        ck_assert_msg(isnan(value) ? (ours & 0x7c00) == 0x7c00 && (ours & 0x3ff) != 0
                                   : ours == expected,
                      "%.9g became %#x, expected %#x", (double)value, ours, expected);
    }
}

END_TEST
#endif

/* Largest values and the neighbours of ties, from the formats' definitions. */
START_TEST(known_values_are_met)
{
    static const struct {
        enum weir_dtype dtype;
        double value;
        uint8_t saturated, lost;
    } cases[] = {
        {WEIR_DTYPE_FLOAT8E4M3FN, 448, 0x7e, 0x7e},
        {WEIR_DTYPE_FLOAT8E4M3FN, 1e9, 0x7e, 0x7f},
        {WEIR_DTYPE_FLOAT8E4M3FN, -1e9, 0xfe, 0xff},
        {WEIR_DTYPE_FLOAT8E5M2, 57344, 0x7b, 0x7b},
        {WEIR_DTYPE_FLOAT8E5M2, 1e9, 0x7b, 0x7c},
        {WEIR_DTYPE_FLOAT8E4M3FNUZ, 240, 0x7f, 0x7f},
        {WEIR_DTYPE_FLOAT8E4M3FNUZ, 1e9, 0x7f, 0x80},
        {WEIR_DTYPE_FLOAT8E4M3FN, 1.0625, 0x38, 0x38},
        {WEIR_DTYPE_FLOAT8E4M3FN, 1.1875, 0x3a, 0x3a},
        {WEIR_DTYPE_FLOAT4E2M1, 6, 7, 7},
        {WEIR_DTYPE_FLOAT4E2M1, 100, 7, 7},
        {WEIR_DTYPE_FLOAT4E2M1, -0.25, 8, 8},
        {WEIR_DTYPE_FLOAT8E5M2FNUZ, -0.0, 0, 0},
        {WEIR_DTYPE_FLOAT8E8M0, 1, 127, 127},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        uint8_t saturated = 0, lost = 0;
        weir_elems_from_f64(cases[i].dtype, &cases[i].value, &saturated, 1,
                            WEIR_OVERFLOW_SATURATES);
        weir_elems_from_f64(cases[i].dtype, &cases[i].value, &lost, 1, WEIR_OVERFLOW_IS_LOST);
        ck_assert_msg(saturated == cases[i].saturated && lost == cases[i].lost,
                      "%g of %s: %#x and %#x", cases[i].value, weir_dtype_name(cases[i].dtype),
                      saturated, lost);
    }
}

END_TEST

START_TEST(integers_wrap_and_floats_are_cut)
{
    const double values[] = {3.9, -3.9, 300, -1, 4294967297.0};
    int8_t bytes[5];
    uint32_t words[5];
    int64_t wide[5];
    uint8_t nibble = 0xf;
    weir_elems_from_f64(WEIR_DTYPE_INT8, values, bytes, 5, WEIR_OVERFLOW_SATURATES);
    weir_elems_from_f64(WEIR_DTYPE_UINT32, values, words, 5, WEIR_OVERFLOW_SATURATES);
    weir_elems_to_i64(WEIR_DTYPE_DOUBLE, values, wide, 5);
    ck_assert_int_eq(bytes[0], 3);
    ck_assert_int_eq(bytes[1], -3);
    ck_assert_int_eq(bytes[2], 44);
    ck_assert_uint_eq(words[3], UINT32_MAX);
    ck_assert_uint_eq(words[4], 1);
    ck_assert_int_eq(wide[4], 4294967297);
    weir_elems_to_i64(WEIR_DTYPE_INT4, &nibble, wide, 1);
    ck_assert_int_eq(wide[0], -1);
}

END_TEST

/* The nearest with so many bits, of two the even one, in integers alone; such a value is a double. */
static double rounded(uint64_t size, int n_bits)
{
    int drop = 0;
    while (drop < 64 && (size >> drop) >> n_bits != 0) {
        drop++;
    }
    uint64_t low = drop > 0 ? size & (((uint64_t)1 << drop) - 1) : 0;
    uint64_t half = drop > 0 ? (uint64_t)1 << (drop - 1) : 0, kept = size >> drop;
    kept += low > half || (low == half && drop > 0 && (kept & 1) != 0);
    return ldexp((double)kept, drop);
}

START_TEST(integers_are_rounded_once)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 2);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = (uint64_t)weir_rng_u32(&rng) << 32 | weir_rng_u32(&rng);
        const int64_t value = (int64_t)(i % 2 == 0 ? bits >> i % 60
                                                   : ((bits >> 41) << 41 | (uint64_t)1 << 40) +
                                                         (uint64_t)(i % 3) - 1); /* next to ties */
        const bool is_unsigned = i % 4 < 2;
        bool is_negative = !is_unsigned && value < 0;
        uint64_t size = is_negative ? -(uint64_t)value : (uint64_t)value;
        double expected = rounded(size, 24) * (is_negative ? -1 : 1), got;
        float single;
        uint16_t brain;
        weir_elems_from_i64(WEIR_DTYPE_FLOAT, &value, is_unsigned, &single, 1);
        ck_assert_msg((double)single == expected, "%#llx became %.17g, expected %.17g",
                      (unsigned long long)value, (double)single, expected);
        weir_elems_from_i64(WEIR_DTYPE_BFLOAT16, &value, is_unsigned, &brain, 1);
        weir_elems_to_f64(WEIR_DTYPE_BFLOAT16, &brain, &got, 1);
        expected = rounded(size, 8) * (is_negative ? -1 : 1);
        ck_assert_msg(got == expected, "%#llx became %.17g, expected %.17g",
                      (unsigned long long)value, got, expected);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tests = tcase_create("convert");
    tcase_add_test(tests, every_pattern_survives);
#ifdef __FLT16_MAX__
    tcase_add_test(tests, halves_are_those_of_the_compiler);
#endif
    tcase_add_test(tests, known_values_are_met);
    tcase_add_test(tests, integers_wrap_and_floats_are_cut);
    tcase_add_test(tests, integers_are_rounded_once);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
