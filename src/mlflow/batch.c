/**
 * The usual log-batch, read in one pass over its bytes: a run and many metrics, names without escapes,
 * numbers as JSON has them, no parameters and tags. A tree of 5,000 values for 1,000 metrics takes longer
 * than storing them. Whatever looks otherwise, right or wrong, is left to the parser that knows it all.
 */
#include "base/json_scan.h"
#include "mlflow/call.h"

#include <math.h>
#include <string.h>

#define METRICS_MAX 1000

struct batch_scan {
    struct weir_json_scan json;
    struct weir_arena *arena;
    const char *key; /* the name of the last metric, which mostly comes again */
    size_t key_len;
};

static bool is_name(const struct weir_json_text *text, const char *name)
{
    return strlen(name) == text->len && memcmp(text->bytes, name, text->len) == 0;
}

static bool take_number(struct batch_scan *scan, double *out)
{
    struct weir_json_number number;
    bool is_good = weir_json_scan_number(&scan->json, true, &number) == WEIR_OK;
    *out = is_good ? number.value : 0;
    return is_good && isfinite(*out);
}

static bool take_int(struct batch_scan *scan, int64_t *out)
{
    struct weir_json_number number;
    bool is_good = weir_json_scan_number(&scan->json, true, &number) == WEIR_OK &&
                   number.is_integer && number.magnitude <= INT64_MAX;
    *out = !is_good             ? 0
           : number.is_negative ? -(int64_t)number.magnitude
                                : (int64_t)number.magnitude;
    return is_good;
}

static bool take_key(struct batch_scan *scan, char **out)
{
    struct weir_json_text text;
    struct weir_error ignored;
    if (weir_json_scan_text_raw(&scan->json, &text) != WEIR_OK) {
        return false;
    }
    if (scan->key == NULL || scan->key_len != text.len ||
        memcmp(scan->key, text.bytes, text.len) != 0) {
        scan->key = weir_arena_memdup(scan->arena, text.bytes, text.len);
        scan->key_len = text.len;
        if (mlflow_check_key(scan->arena, "key", scan->key, &ignored) != WEIR_OK) {
            return false;
        }
    }
    *out = (char *)scan->key;
    return true;
}

static bool take_metric(struct batch_scan *scan, struct weir_metric *out)
{
    struct weir_json_text name;
    unsigned seen = 0;
    *out = (struct weir_metric){0};
    if (weir_json_scan_enter(&scan->json, '{') != WEIR_OK) {
        return false;
    }
    while (weir_json_scan_member_raw(&scan->json, &name)) {
        unsigned bit = is_name(&name, "key")         ? 1
                       : is_name(&name, "value")     ? 2
                       : is_name(&name, "timestamp") ? 4
                       : is_name(&name, "step")      ? 8
                                                     : 0;
        bool is_good = bit != 0 && (seen & bit) == 0 &&
                       (bit == 1   ? take_key(scan, &out->key)
                        : bit == 2 ? take_number(scan, &out->value)
                                   : take_int(scan, bit == 4 ? &out->time_ms : &out->step));
        if (!is_good) {
            return false;
        }
        seen |= bit;
    }
    return scan->json.status == WEIR_OK && (seen & 7) == 7 && out->time_ms >= 0;
}

static bool take_metrics(struct batch_scan *scan, struct mlflow_batch *out)
{
    out->metrics = WEIR_ARENA_ARRAY(scan->arena, METRICS_MAX, struct weir_metric);
    if (weir_json_scan_enter(&scan->json, '[') != WEIR_OK) {
        return false;
    }
    while (weir_json_scan_element(&scan->json)) {
        if (out->n == METRICS_MAX || !take_metric(scan, &out->metrics[out->n])) {
            return false;
        }
        out->n++;
    }
    return scan->json.status == WEIR_OK;
}

/* A list of parameters or tags, which has to be empty. */
static bool take_nothing(struct batch_scan *scan)
{
    return weir_json_scan_enter(&scan->json, '[') == WEIR_OK &&
           !weir_json_scan_element(&scan->json) && scan->json.status == WEIR_OK;
}

static bool take_member(struct batch_scan *scan, const struct weir_json_text *name,
                        struct mlflow_batch *out)
{
    struct weir_json_text id;
    if (is_name(name, "run_id") && out->run_id == NULL) {
        bool is_good = weir_json_scan_text_raw(&scan->json, &id) == WEIR_OK && id.len > 0;
        out->run_id = is_good ? weir_arena_memdup(scan->arena, id.bytes, id.len) : NULL;
        return is_good;
    }
    if (is_name(name, "metrics") && out->n == 0) {
        return take_metrics(scan, out);
    }
    return (is_name(name, "params") || is_name(name, "tags")) && take_nothing(scan);
}

static bool take_batch(struct batch_scan *scan, struct mlflow_batch *out)
{
    struct weir_json_text name;
    if (weir_json_scan_enter(&scan->json, '{') != WEIR_OK) {
        return false;
    }
    while (weir_json_scan_member_raw(&scan->json, &name)) {
        if (!take_member(scan, &name, out)) {
            return false;
        }
    }
    return weir_json_scan_end(&scan->json) == WEIR_OK && out->run_id != NULL && out->n > 0;
}

struct mlflow_batch *mlflow_scan_batch(const struct weir_http_request *request,
                                       struct weir_arena *arena)
{
    struct mlflow_batch *batch = WEIR_ARENA_NEW(arena, struct mlflow_batch);
    struct batch_scan scan = {.arena = arena};
    struct weir_error ignored;
    weir_json_scan_init(&scan.json, request->body, request->body_len, &ignored);
    return request->body_len > 0 && take_batch(&scan, batch) ? batch : NULL;
}
