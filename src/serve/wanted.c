#include "serve/wanted.h"

#include <string.h>

#define BATCH_MAX 65536
#define QUEUE_MAX 65536

static weir_status read_int(const json_t *object, const char *where, const char *key,
                            int64_t fallback, int64_t lo, int64_t hi, int64_t *out,
                            struct weir_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL || json_is_null(value)) {
        *out = fallback;
        return WEIR_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < lo ||
        json_integer_value(value) > hi) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s: expected an integer from %lld to %lld",
                              where, key, (long long)lo, (long long)hi);
    }
    *out = json_integer_value(value);
    return WEIR_OK;
}

/* It becomes part of a file's name: 64 hexadecimal digits and nothing else. */
static bool is_digest(const char *text)
{
    return text != NULL && strlen(text) == WEIR_SHA256_TEXT_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == WEIR_SHA256_TEXT_BYTES - 1;
}

static weir_status read_version(const json_t *value, size_t i, struct wanted_one *out,
                                struct weir_error *err)
{
    char where[48];
    (void)snprintf(where, sizeof where, "$.versions[%zu]", i);
    const char *blob = json_string_value(json_object_get(value, "blob"));
    const json_t *signature = json_object_get(value, "signature");
    const json_t *golden_value = json_object_get(value, "golden");
    const char *golden = json_string_value(golden_value);
    WEIR_TRY(read_int(value, where, "version", 0, 1, INT64_MAX, &out->number, err));
    if (out->number == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.version is missing", where);
    }
    if (!is_digest(blob)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.blob: expected a SHA-256 sum", where);
    }
    memcpy(out->blob, blob, sizeof out->blob);
    out->signature = json_is_object(signature) ? signature : NULL;
    if (golden_value != NULL && !json_is_null(golden_value) && !is_digest(golden)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.golden: expected a SHA-256 sum", where);
    }
    (void)snprintf(out->golden, sizeof out->golden, "%s", golden != NULL ? golden : "");
    return WEIR_OK;
}

static weir_status read_rules(const json_t *json, struct wanted *out, struct weir_error *err)
{
    int64_t delay_us, queue_max, memory_bytes, n_threads;
    WEIR_TRY(read_int(json, "$", "batch_max", 1, 1, BATCH_MAX, &out->rules.batch_max, err));
    WEIR_TRY(read_int(json, "$", "delay_max_us", 0, 0, 60000000, &delay_us, err));
    WEIR_TRY(read_int(json, "$", "queue_max", 256, 1, QUEUE_MAX, &queue_max, err));
    WEIR_TRY(read_int(json, "$", "memory_max_bytes", 0, 0, INT64_MAX, &memory_bytes, err));
    WEIR_TRY(read_int(json, "$", "n_threads", 0, 0, 4096, &n_threads, err));
    out->rules.delay_ns = (uint64_t)delay_us * 1000;
    out->rules.queue_max = (size_t)queue_max;
    out->memory_max_bytes = (size_t)memory_bytes;
    out->n_threads = (int32_t)n_threads;
    return WEIR_OK;
}

weir_status wanted_parse(const json_t *json, struct wanted *out, struct weir_error *err)
{
    const json_t *versions = json_object_get(json, "versions");
    if (!json_is_object(json) || (versions != NULL && !json_is_array(versions))) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.versions: expected an array");
    }
    if (json_array_size(versions) > WANTED_VERSIONS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.versions: %zu versions, at most %d",
                              json_array_size(versions), WANTED_VERSIONS_MAX);
    }
    memset(out, 0, sizeof *out);
    WEIR_TRY(read_int(json, "$", "revision", 0, 0, INT64_MAX, &out->revision, err));
    WEIR_TRY(read_rules(json, out, err));
    for (size_t i = 0; i < json_array_size(versions); i++) {
        WEIR_TRY(read_version(json_array_get(versions, i), i, &out->versions[i], err));
        out->n_versions++;
    }
    return WEIR_OK;
}
