/* 16-bit floats against their definition: value by value, in double precision. */
#include "comm/core/half.h"

#include "base/test_main.h"
#include "comm/core/test_group.h"

#include <math.h>

/* ck_assert writes to a pipe each time: too slow for millions of values. */
#define CHECK(condition, what)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ck_abort_msg("%s: %a", #condition, (double)(what));                                    \
        }                                                                                          \
    } while (0)

/* What 16 bits mean: sign, exponent, fraction. */
static double value_of(enum comm_wire wire, uint16_t half)
{
    int n_fraction = wire == COMM_WIRE_BF16 ? 7 : 10, bias = wire == COMM_WIRE_BF16 ? 127 : 15;
    int exponent = (half & 0x7fff) >> n_fraction, fraction = half & ((1 << n_fraction) - 1);
    double sign = (half & 0x8000) != 0 ? -1 : 1;
    if (exponent == 2 * bias + 1) {
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    return exponent == 0 ? sign * ldexp(fraction, 1 - bias - n_fraction)
                         : sign * ldexp(fraction + (1 << n_fraction), exponent - bias - n_fraction);
}

static const enum comm_wire wires[] = {COMM_WIRE_BF16, COMM_WIRE_FP16};

START_TEST(all_65536_values_are_right_and_come_back)
{
    static uint16_t halves[65536], back[65536];
    static float floats[65536];
    for (int i = 0; i < 65536; i++) {
        halves[i] = (uint16_t)i;
    }
    /* Short pieces too: what vectors leave over. */
    for (size_t piece = 65536; piece > 0; piece = piece > 13 ? 13 : 0) {
        for (size_t i = 0; i < 65536; i += piece) {
            size_t n = WEIR_MIN(piece, 65536 - i);
            comm_half_widen(wires[_i], halves + i, n, floats + i);
            comm_half_narrow(wires[_i], floats + i, n, back + i);
        }
        for (int i = 0; i < 65536; i++) {
            double expected = value_of(wires[_i], (uint16_t)i);
            if (isnan(expected)) {
                CHECK(isnan(floats[i]) && isnan(value_of(wires[_i], back[i])), i);
            } else {
                CHECK((double)floats[i] == expected, i);
                CHECK(back[i] == i, i);
            }
        }
    }
}

END_TEST

/* The nearest of the value found and its two neighbours; at a tie the even one. */
static void check_nearest(enum comm_wire wire, float value, uint16_t found)
{
    double error = fabs(value_of(wire, found) - (double)value);
    for (int step = -1; step <= 1; step += 2) {
        uint16_t size = (uint16_t)((found & 0x7fff) + step),
                 other = (uint16_t)((found & 0x8000) | size);
        if ((found & 0x7fff) == 0 && step < 0) {
            continue;
        }
        double neighbour = value_of(wire, other);
        if (isfinite(neighbour)) {
            double theirs = fabs(neighbour - (double)value);
            CHECK(error < theirs || (error == theirs && (found & 1) == 0), value);
        }
    }
    CHECK((signbit(value) != 0) == ((found & 0x8000) != 0), value);
}

START_TEST(the_nearest_is_taken_and_ties_go_to_even)
{
    enum comm_wire wire = wires[_i];
    for (uint64_t i = 0; i < 300000; i++) {
        float values[16];
        uint16_t found[16];
        /* Between two neighbours: exactly, and a bit beside; and anywhere. */
        for (int k = 0; k < 16; k++) {
            uint16_t half = (uint16_t)(i * 40503 + (uint64_t)k * 4099);
            double low = value_of(wire, half), high = value_of(wire, (uint16_t)(half + 1));
            float middle = (float)((low + high) / 2);
            bool is_usable = isfinite(low) && isfinite(high) && (half & 0x7fff) != 0x7fff;
            values[k] = !is_usable   ? test_value(3, k, i)
                        : k % 3 == 0 ? middle
                                     : nextafterf(middle, k % 3 == 1 ? INFINITY : -INFINITY);
        }
        comm_half_narrow(wire, values, 16, found);
        for (int k = 0; k < 16; k++) {
            uint16_t alone;
            comm_half_narrow(wire, &values[k], 1, &alone);
            CHECK(alone == found[k], values[k]);
            if (isfinite(value_of(wire, found[k]))) {
                check_nearest(wire, values[k], found[k]);
            }
        }
    }
}

END_TEST

START_TEST(what_is_too_large_becomes_infinite)
{
    static const float values[] = {65519.996f, 65520, 3e38f, -1e6f, 3.3961775e38f, INFINITY};
    uint16_t found[6];
    comm_half_narrow(COMM_WIRE_FP16, values, 6, found);
    ck_assert_int_eq(found[0], 0x7bff);
    ck_assert_int_eq(found[1], 0x7c00);
    ck_assert_int_eq(found[2], 0x7c00);
    ck_assert_int_eq(found[3], 0xfc00);
    comm_half_narrow(COMM_WIRE_BF16, values, 6, found);
    ck_assert_int_eq(found[4], 0x7f80);
    ck_assert_int_eq(found[5], 0x7f80);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("half");
    TCase *tcase = tcase_create("half");
    tcase_add_loop_test(tcase, all_65536_values_are_right_and_come_back, 0, 2);
    tcase_add_loop_test(tcase, the_nearest_is_taken_and_ties_go_to_even, 0, 2);
    tcase_add_test(tcase, what_is_too_large_becomes_infinite);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
