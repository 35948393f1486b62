/**
 * The usual log-batch, read in one pass over its bytes: a run and many metrics, names without escapes,
 * numbers as JSON has them, no parameters and tags. A tree of 5,000 values for 1,000 metrics takes longer
 * than storing them. Whatever looks otherwise, right or wrong, is left to the parser that knows it all.
 */
#include "mlflow/call.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_MAX 1000

struct scan {
    const char *at, *end; /* a NUL stands at the end */
    struct weir_arena *arena;
    const char *key; /* the name of the last metric, which mostly comes again */
    size_t key_len;
};

static char next(struct scan *scan)
{
    while (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r') {
        scan->at++;
    }
    return *scan->at;
}

static bool take(struct scan *scan, char c)
{
    if (next(scan) != c || c == '\0') {
        return false;
    }
    scan->at++;
    return true;
}

/* "text" of plain ASCII. */
static bool take_text(struct scan *scan, const char **out, size_t *out_len)
{
    if (!take(scan, '"')) {
        return false;
    }
    const char *begin = scan->at;
    while (*scan->at >= 0x20 && *scan->at != '"' && *scan->at != '\\' && *scan->at != 0x7f) {
        scan->at++;
    }
    *out = begin;
    *out_len = (size_t)(scan->at - begin);
    return *scan->at++ == '"';
}

/* Only what JSON takes as a number: strtod takes more. */
static size_t number_len(const char *text, bool *out_is_integer)
{
    const char *p = text + (*text == '-');
    size_t n_digits = strspn(p, "0123456789");
    *out_is_integer = true;
    if (n_digits == 0 || (*p == '0' && n_digits > 1)) {
        return 0;
    }
    p += n_digits;
    if (*p == '.') {
        size_t n_after = strspn(p + 1, "0123456789");
        *out_is_integer = false;
        p = n_after > 0 ? p + 1 + n_after : text;
    }
    if (p != text && (*p == 'e' || *p == 'E')) {
        p += 1 + (p[1] == '-' || p[1] == '+');
        size_t n_exponent = strspn(p, "0123456789");
        *out_is_integer = false;
        p = n_exponent > 0 ? p + n_exponent : text;
    }
    return (size_t)(p - text);
}

static bool take_number(struct scan *scan, double *out)
{
    bool is_integer;
    (void)next(scan);
    size_t len = number_len(scan->at, &is_integer);
    *out = strtod(scan->at, NULL);
    scan->at += len;
    return len > 0 && isfinite(*out);
}

static bool take_int(struct scan *scan, int64_t *out)
{
    bool is_integer;
    (void)next(scan);
    size_t len = number_len(scan->at, &is_integer);
    errno = 0;
    *out = strtoll(scan->at, NULL, 10);
    scan->at += len;
    return len > 0 && is_integer && errno == 0;
}

static bool is_name(const char *text, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(text, name, len) == 0;
}

static bool take_key(struct scan *scan, char **out)
{
    const char *text;
    size_t len;
    struct weir_error ignored;
    if (!take_text(scan, &text, &len)) {
        return false;
    }
    if (scan->key == NULL || scan->key_len != len || memcmp(scan->key, text, len) != 0) {
        scan->key = weir_arena_memdup(scan->arena, text, len);
        scan->key_len = len;
        if (mlflow_check_key(scan->arena, "key", scan->key, &ignored) != WEIR_OK) {
            return false;
        }
    }
    *out = (char *)scan->key;
    return true;
}

static bool take_metric(struct scan *scan, struct weir_metric *out)
{
    unsigned seen = 0;
    *out = (struct weir_metric){0};
    if (!take(scan, '{')) {
        return false;
    }
    do {
        const char *name;
        size_t len;
        if (!take_text(scan, &name, &len) || !take(scan, ':')) {
            return false;
        }
        unsigned bit = is_name(name, len, "key")         ? 1
                       : is_name(name, len, "value")     ? 2
                       : is_name(name, len, "timestamp") ? 4
                       : is_name(name, len, "step")      ? 8
                                                         : 0;
        bool is_good = bit != 0 && (seen & bit) == 0 &&
                       (bit == 1   ? take_key(scan, &out->key)
                        : bit == 2 ? take_number(scan, &out->value)
                                   : take_int(scan, bit == 4 ? &out->time_ms : &out->step));
        if (!is_good) {
            return false;
        }
        seen |= bit;
    } while (take(scan, ','));
    return take(scan, '}') && (seen & 7) == 7 && out->time_ms >= 0;
}

static bool take_metrics(struct scan *scan, struct mlflow_batch *out)
{
    out->metrics = WEIR_ARENA_ARRAY(scan->arena, METRICS_MAX, struct weir_metric);
    if (!take(scan, '[')) {
        return false;
    }
    do {
        if (out->n == METRICS_MAX || !take_metric(scan, &out->metrics[out->n])) {
            return false;
        }
        out->n++;
    } while (take(scan, ','));
    return take(scan, ']');
}

static bool take_batch(struct scan *scan, struct mlflow_batch *out)
{
    if (!take(scan, '{')) {
        return false;
    }
    do {
        const char *name, *id;
        size_t len, id_len;
        if (!take_text(scan, &name, &len) || !take(scan, ':')) {
            return false;
        }
        if (is_name(name, len, "run_id") && out->run_id == NULL) {
            if (!take_text(scan, &id, &id_len) || id_len == 0) {
                return false;
            }
            out->run_id = weir_arena_memdup(scan->arena, id, id_len);
        } else if (is_name(name, len, "metrics") && out->n == 0) {
            if (!take_metrics(scan, out)) {
                return false;
            }
        } else if (is_name(name, len, "params") || is_name(name, len, "tags")) {
            if (!take(scan, '[') || !take(scan, ']')) {
                return false;
            }
        } else {
            return false;
        }
    } while (take(scan, ','));
    return take(scan, '}') && next(scan) == '\0' && scan->at == scan->end && out->run_id != NULL &&
           out->n > 0;
}

struct mlflow_batch *mlflow_scan_batch(const struct weir_http_request *request,
                                       struct weir_arena *arena)
{
    struct mlflow_batch *batch = WEIR_ARENA_NEW(arena, struct mlflow_batch);
    struct scan scan = {
        .at = request->body, .end = request->body + request->body_len, .arena = arena};
    return request->body_len > 0 && take_batch(&scan, batch) ? batch : NULL;
}
