#include "base/quantity.h"

#include "base/macros.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((double)((int64_t)1 << 60))

struct unit {
    const char *text;
    int64_t factor;
};

static const struct unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"K", (int64_t)1 << 10},
    {"k", (int64_t)1 << 10},
    {"M", (int64_t)1 << 20},
    {"m", (int64_t)1 << 20},
    {"G", (int64_t)1 << 30},
    {"g", (int64_t)1 << 30},
    {"T", (int64_t)1 << 40},
    {"t", (int64_t)1 << 40},
    {"KiB", (int64_t)1 << 10},
    {"MiB", (int64_t)1 << 20},
    {"GiB", (int64_t)1 << 30},
    {"TiB", (int64_t)1 << 40},
};
static const struct unit time_units[] = {{"", 1000},   {"ms", 1},      {"s", 1000},
                                         {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

static bool parse(const char *text, const struct unit *units, size_t n, int64_t *out)
{
    char *end;
    size_t len = strspn(text, "0123456789."); /* strtod takes a sign, "inf", "1e9", "0x1" too */
    double number = strtod(text, &end);
    if (len == 0 || end != text + len) {
        return false;
    }
    end += strspn(end, " ");
    for (size_t i = 0; i < n; i++) {
        double value = number * (double)units[i].factor;
        if (strcmp(end, units[i].text) == 0 && value >= 0 && value <= MOST) {
            *out = (int64_t)value;
            return true;
        }
    }
    return false;
}

bool weir_bytes_parse(const char *text, int64_t *out)
{
    return parse(text, byte_units, WEIR_ARRAY_LEN(byte_units), out);
}

bool weir_span_parse(const char *text, int64_t *out_ms)
{
    return parse(text, time_units, WEIR_ARRAY_LEN(time_units), out_ms);
}

bool weir_cpus_parse(const char *text, int64_t *out_millis)
{
    char *end;
    size_t len = strspn(text, "0123456789.");
    double number = strtod(text, &end);
    bool is_milli = strcmp(end, "m") == 0;
    double millis = is_milli ? number : number * 1000;
    /* 0.1 of a binary fraction is not quite that. */
    if (len == 0 || end != text + len || (!is_milli && *end != '\0') || millis > MOST ||
        fabs(millis - nearbyint(millis)) > 1e-6) {
        return false;
    }
    *out_millis = llrint(millis);
    return true;
}

int64_t weir_cpus_whole(int64_t millis)
{
    return (millis + 999) / 1000;
}
