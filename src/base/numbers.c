#include "base/numbers.h"

#include <stdlib.h>
#include <string.h>

/* The number at *at, which moves behind it. False: there is none, or it is too large. */
static bool read_number(const char **at, int64_t *out)
{
    size_t len = strspn(*at, "0123456789");
    int64_t value = 0;
    for (size_t i = 0; i < len && value <= WEIR_NUMBERS_LARGEST; i++) {
        value = value * 10 + ((*at)[i] - '0');
    }
    *at += len;
    *out = value;
    return len > 0 && value <= WEIR_NUMBERS_LARGEST;
}

/* FROM, FROM-TO or FROM-TO:STEP. */
static bool read_range(const char **at, int64_t *from, int64_t *to, int64_t *step)
{
    *step = 1;
    if (!read_number(at, from)) {
        return false;
    }
    *to = *from;
    if (**at != '-') {
        return true;
    }
    (*at)++;
    if (!read_number(at, to) || *to < *from) {
        return false;
    }
    if (**at != ':') {
        return true;
    }
    (*at)++;
    return read_number(at, step) && *step > 0;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

weir_status weir_numbers_parse(const char *text, size_t most, struct weir_arena *arena,
                               int64_t **out, size_t *out_n, struct weir_error *err)
{
    int64_t *numbers = WEIR_ARENA_ARRAY(arena, most + 1, int64_t);
    size_t n = 0, n_unique = 0;
    for (const char *at = text;; at++) {
        int64_t from, to, step;
        if (!read_range(&at, &from, &to, &step) || (*at != ',' && *at != '\0')) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "\"%.60s\": expected numbers up to %d and ranges of them, as "
                                  "0-9 or 1,3,5-9:2",
                                  text, WEIR_NUMBERS_LARGEST);
        }
        for (int64_t i = from; i <= to; i += step) {
            if (n == most) {
                return weir_error_set(err, WEIR_ERR_LIMIT, "\"%.60s\": more than %zu numbers", text,
                                      most);
            }
            numbers[n++] = i;
        }
        if (*at == '\0') {
            break;
        }
    }
    qsort(numbers, n, sizeof *numbers, by_value);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || numbers[i] != numbers[i - 1]) {
            numbers[n_unique++] = numbers[i];
        }
    }
    *out = numbers;
    *out_n = n_unique;
    return WEIR_OK;
}
