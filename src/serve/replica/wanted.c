#include "serve/replica/wanted.h"

#include "host/spec.h"

#include <string.h>

#define BATCH_MAX 65536
#define QUEUE_MAX 65536

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
    static const struct weir_host_int number = {"version", offsetof(struct wanted_one, number), 0,
                                                1, INT64_MAX};
    WEIR_TRY(weir_host_read_ints(value, where, &number, 1, out, err));
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

/** What the document says in numbers, beside its versions. */
struct numbers {
    int64_t revision, batch_max, delay_us, queue_max, memory_bytes, n_threads;
};

// clang-format off
static const struct weir_host_int numbers[] = {
    {"revision",         offsetof(struct numbers, revision),     0,   0, INT64_MAX},
    {"batch_max",        offsetof(struct numbers, batch_max),    1,   1, BATCH_MAX},
    {"delay_max_us",     offsetof(struct numbers, delay_us),     0,   0, 60000000},
    {"queue_max",        offsetof(struct numbers, queue_max),    256, 1, QUEUE_MAX},
    {"memory_max_bytes", offsetof(struct numbers, memory_bytes), 0,   0, INT64_MAX},
    {"n_threads",        offsetof(struct numbers, n_threads),    0,   0, 4096},
};

// clang-format on

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
    struct numbers read;
    WEIR_TRY(weir_host_read_ints(json, "$", numbers, WEIR_ARRAY_LEN(numbers), &read, err));
    memset(out, 0, sizeof *out);
    out->revision = read.revision;
    out->rules = (struct batcher_rules){.batch_max = read.batch_max,
                                        .delay_ns = (uint64_t)read.delay_us * 1000,
                                        .queue_max = (size_t)read.queue_max};
    out->memory_max_bytes = (size_t)read.memory_bytes;
    out->n_threads = (int32_t)read.n_threads;
    for (size_t i = 0; i < json_array_size(versions); i++) {
        WEIR_TRY(read_version(json_array_get(versions, i), i, &out->versions[i], err));
        out->n_versions++;
    }
    return WEIR_OK;
}
