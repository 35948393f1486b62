#include "kube/client.h"

#include "base/clock.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((double)((int64_t)1 << 60))

json_t *weir_kube_at(const json_t *object, const char *path)
{
    const json_t *at = object;
    while (at != NULL && *path != '\0') {
        size_t len = strcspn(path, ".");
        at = json_object_getn(at, path, len);
        path += len + (path[len] == '.');
    }
    return (json_t *)(uintptr_t)at;
}

const char *weir_kube_text(const json_t *object, const char *path)
{
    return json_string_value(weir_kube_at(object, path));
}

const char *weir_kube_escape(const char *text, struct weir_arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = weir_arena_alloc(arena, 3 * strlen(text) + 1), *at = out;
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-_.~", c) != NULL) {
            *at++ = (char)c;
        } else {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    *at = '\0';
    return out;
}

/* What an amount's last letters multiply it with; 0: they are none. */
static double factor_of(const char *suffix)
{
    static const struct {
        const char *text;
        double factor;
    } known[] = {{"", 1},
                 {"n", 1e-9},
                 {"u", 1e-6},
                 {"m", 1e-3},
                 {"k", 1e3},
                 {"M", 1e6},
                 {"G", 1e9},
                 {"T", 1e12},
                 {"P", 1e15},
                 {"E", 1e18},
                 {"Ki", 1024.0},
                 {"Mi", 1048576.0},
                 {"Gi", 1073741824.0},
                 {"Ti", 1099511627776.0},
                 {"Pi", 1125899906842624.0},
                 {"Ei", 1152921504606846976.0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        if (strcmp(suffix, known[i].text) == 0) {
            return known[i].factor;
        }
    }
    return 0;
}

/* An exponent ("e3", "E-2"), which stands in place of a suffix. @return Its end, or NULL: it is none. */
static const char *exponent_of(const char *text, double *out_factor)
{
    char *end;
    bool is_exponent = (*text == 'e' || *text == 'E') &&
                       (isdigit((unsigned char)text[1]) ||
                        ((text[1] == '-' || text[1] == '+') && isdigit((unsigned char)text[2])));
    if (!is_exponent) {
        return NULL;
    }
    *out_factor = pow(10, (double)strtol(text + 1, &end, 10));
    return end;
}

bool weir_kube_quantity(const char *text, int64_t *out_milli)
{
    size_t len = strspn(text, "0123456789.");
    const char *dot = memchr(text, '.', len);
    if (len == 0 || (dot != NULL &&
                     (len == 1 || memchr(dot + 1, '.', len - (size_t)(dot + 1 - text)) != NULL))) {
        return false;
    }
    double factor, number = strtod(text, NULL);
    const char *end = exponent_of(text + len, &factor);
    if (end != NULL) {
        /* strtod has read the exponent. */
        factor = 1;
    } else {
        factor = factor_of(text + len);
        end = factor > 0 ? "" : "x";
    }
    double milli = ceil(number * factor * 1000 - 1e-6);
    if (*end != '\0' || !(milli >= 0 && milli <= MOST)) {
        return false;
    }
    *out_milli = (int64_t)milli;
    return true;
}

int64_t weir_kube_time_ms(const char *text)
{
    int64_t ms;
    return text != NULL && weir_time_parse(text, &ms) == WEIR_OK ? ms : 0;
}
