#include "predict/spec.h"

#include "base/json.h"
#include "stats/frozen.h"

#include <stdlib.h>
#include <string.h>

#define SPEC_MAX_BYTES ((size_t)1 << 20)

static weir_status read_text(const json_t *object, const char *where, const char *key,
                             bool is_required, struct weir_arena *arena, char **out,
                             struct weir_error *err)
{
    const json_t *value = json_object_get(object, key);
    if ((value == NULL || json_is_null(value)) && !is_required) {
        *out = NULL;
        return WEIR_OK;
    }
    if (!json_is_string(value) || json_string_length(value) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s: expected text", where, key);
    }
    *out = weir_arena_strdup(arena, json_string_value(value));
    return WEIR_OK;
}

static weir_status read_int(const json_t *object, const char *where, const char *key,
                            int64_t fallback, int64_t lo, int64_t hi, int64_t *out,
                            struct weir_error *err)
{
    const json_t *value = json_object_get(object, key);
    *out = json_is_integer(value) ? json_integer_value(value) : fallback;
    if ((value != NULL && !json_is_null(value) && !json_is_integer(value)) || *out < lo ||
        *out > hi) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s: expected an integer from %lld to %lld",
                              where, key, (long long)lo, (long long)hi);
    }
    return WEIR_OK;
}

static int64_t rank_of(const char *replica)
{
    const char *dash = strrchr(replica, '-');
    char *end;
    if (dash == NULL) {
        return 0;
    }
    long long rank = strtoll(dash + 1, &end, 10);
    return *end == '\0' && end != dash + 1 && rank >= 0 ? rank : 0;
}

static void read_left(const json_t *root, struct weir_arena *arena, struct predict_spec *out)
{
    const json_t *left = json_object_get(root, "left");
    for (size_t i = 0; i < json_array_size(left) && out->n_left < PREDICT_LEFT_MAX; i++) {
        const char *dir = json_string_value(json_array_get(left, i));
        if (dir != NULL) {
            out->left[out->n_left++] = weir_arena_strdup(arena, dir);
        }
    }
}

/* What the agent has put into the environment, into the options that take it from there. */
static void fill_secret(void *context, const struct weir_endpoint_secret *secret)
{
    const char **missing = context, *value = getenv(secret->variable);
    if (value != NULL) {
        json_object_set_new(secret->endpoint, secret->option, json_string(value));
    } else if (*missing == NULL) {
        *missing = secret->name;
    }
}

/* They are not named any more then. */
static weir_status fill_secrets(json_t *source, json_t *sinks, struct weir_error *err)
{
    const char *missing = NULL;
    json_t *sink;
    size_t i;
    weir_endpoints_secrets(source, sinks, fill_secret, &missing);
    if (missing != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "secret %s is not in the environment",
                              missing);
    }
    (void)json_object_del(source, "secrets");
    json_array_foreach(sinks, i, sink)
    {
        (void)json_object_del(sink, "secrets");
    }
    return WEIR_OK;
}

static weir_status read_spec(const json_t *root, struct weir_arena *arena, struct predict_spec *out,
                             struct weir_error *err)
{
    const json_t *health = json_object_get(root, "health");
    WEIR_TRY(read_text(root, "$", "ion", true, arena, &out->ion, err));
    WEIR_TRY(read_text(root, "$", "pipeline", true, arena, &out->pipeline, err));
    WEIR_TRY(read_text(root, "$", "replica", true, arena, &out->replica, err));
    WEIR_TRY(read_text(root, "$", "dir", true, arena, &out->dir, err));
    WEIR_TRY(read_text(root, "$", "server", false, arena, &out->server, err));
    WEIR_TRY(read_text(root, "$", "token_file", false, arena, &out->token_file, err));
    WEIR_TRY(read_text(root, "$", "ca_file", false, arena, &out->ca_file, err));
    WEIR_TRY(read_text(root, "$", "job", false, arena, &out->job, err));
    WEIR_TRY(read_text(root, "$", "sandbox_dir", false, arena, &out->sandbox_dir, err));
    read_left(root, arena, out);
    WEIR_TRY(read_int(root, "$", "replicas", 1, 1, 1024, &out->n_replicas, err));
    WEIR_TRY(read_int(health, "$.health", "window", 200, 20, 100000, &out->health_window, err));
    WEIR_TRY(read_int(health, "$.health", "interval_ms", 1000, 0, 86400000,
                      &out->health_interval_ms, err));
    WEIR_TRY(read_int(health, "$.health", "frozen_after_ms", WEIR_FROZEN_AFTER_MS, 0, 86400000,
                      &out->health_frozen_after_ms, err));
    out->rank = rank_of(out->replica) % out->n_replicas;
    json_t *source = json_object_get(root, "source"), *sinks = json_object_get(root, "sinks");
    WEIR_TRY(fill_secrets(source, sinks, err));
    return weir_endpoints_read(source, sinks, "$", arena, &out->source, out->sinks, &out->n_sinks,
                               err);
}

weir_status predict_spec_load(const char *path, struct weir_arena *arena, struct predict_spec *out,
                              struct weir_error *err)
{
    json_t *root;
    struct predict_spec spec = {0};
    WEIR_TRY(weir_json_load(path, SPEC_MAX_BYTES, &root, err));
    weir_status status = read_spec(root, arena, &spec, err);
    json_decref(root);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "%s: ", path);
    }
    *out = spec;
    return WEIR_OK;
}
