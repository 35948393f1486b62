#include "base/amount.h"

#include "base/macros.h"

#include <ctype.h>
#include <string.h>

#define DIGITS_MAX   18
#define EXPONENT_MAX 18
#define MILLI_MAX    (((int64_t)1 << 53) * 1000)

/* A value that is so many, times 1000^thousand and 1024^binary. */
static const struct unit {
    const char *text;
    int thousand, binary;
} units[] = {
    // clang-format off
    {"", 0, 0}, {"n", -3, 0}, {"u", -2, 0}, {"m", -1, 0},
    {"k", 1, 0}, {"M", 2, 0}, {"G", 3, 0}, {"T", 4, 0}, {"P", 5, 0}, {"E", 6, 0},
    {"Ki", 0, 1}, {"Mi", 0, 2}, {"Gi", 0, 3}, {"Ti", 0, 4}, {"Pi", 0, 5}, {"Ei", 0, 6},
    // clang-format on
};

/* A decimal number: digits, and by how many powers of ten they are too large. */
struct decimal {
    __int128 digits;
    int scale;
};

static bool read_decimal(const char **at, struct decimal *out)
{
    int n = 0;
    bool has_dot = false;
    *out = (struct decimal){0};
    for (; isdigit((unsigned char)**at) || (**at == '.' && !has_dot); (*at)++) {
        if (**at == '.') {
            has_dot = true;
        } else if (++n <= DIGITS_MAX) {
            out->digits = out->digits * 10 + (**at - '0');
            out->scale += has_dot;
        }
    }
    return n > 0 && n <= DIGITS_MAX;
}

/* "e3", "E-2": an exponent in place of a unit. */
static bool read_exponent(const char *at, int *out)
{
    if (at[0] != 'e' && at[0] != 'E') {
        return false;
    }
    bool is_negative = at[1] == '-';
    const char *digits = at + 1 + (at[1] == '-' || at[1] == '+');
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 2 || digits[n] != '\0') {
        return false;
    }
    int value = digits[0] - '0';
    value = n == 2 ? value * 10 + (digits[1] - '0') : value;
    *out = is_negative ? -value : value;
    return value <= EXPONENT_MAX;
}

/* Times a power, rounded up; too much is MILLI_MAX + 1 or more. */
static __int128 times_power(__int128 value, int base, int power)
{
    for (; power > 0 && value <= MILLI_MAX; power--) {
        value *= base;
    }
    if (power < 0) {
        __int128 divisor = 1;
        for (; power < 0 && divisor <= value; power++) {
            divisor *= base;
        }
        value = (value + divisor - 1) / divisor;
    }
    return value;
}

static const struct unit *unit_of(const char *text)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(units); i++) {
        if (strcmp(units[i].text, text) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

bool weir_amount_parse(const char *text, int64_t *out_milli)
{
    struct decimal decimal;
    int exponent = 0, binary = 0;
    if (!read_decimal(&text, &decimal)) {
        return false;
    }
    if (!read_exponent(text, &exponent)) {
        const struct unit *unit = unit_of(text);
        if (unit == NULL) {
            return false;
        }
        exponent = 3 * unit->thousand;
        binary = unit->binary;
    }
    __int128 value = times_power(decimal.digits, 1024, binary);
    value = times_power(value, 10, exponent + 3 - decimal.scale);
    if (value > MILLI_MAX) {
        return false;
    }
    *out_milli = (int64_t)value;
    return true;
}
