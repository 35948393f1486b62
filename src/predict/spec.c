#include "predict/spec.h"

#include "stats/frozen.h"

#include <stdlib.h>
#include <string.h>

static const struct weir_host_text texts[] = {
    {"ion", offsetof(struct predict_spec, ion), true},
    {"pipeline", offsetof(struct predict_spec, pipeline), true},
    {"job", offsetof(struct predict_spec, job), false},
    {"project", offsetof(struct predict_spec, project), false},
    {"sandbox_dir", offsetof(struct predict_spec, sandbox_dir), false},
};

static const struct weir_host_int replicas = {"replicas", offsetof(struct predict_spec, n_replicas),
                                              1, 1, 1024};

// clang-format off
static const struct weir_host_int health[] = {
    {"window",          offsetof(struct predict_spec, health_window),          200,  20, 100000},
    {"interval_ms",     offsetof(struct predict_spec, health_interval_ms),     1000, 0,  86400000},
    {"frozen_after_ms", offsetof(struct predict_spec, health_frozen_after_ms), WEIR_FROZEN_AFTER_MS, 0, 86400000},
};

// clang-format on

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

/* The endpoint's own, and those of the objects in its lists. */
static void forget_names(json_t *endpoint)
{
    json_t *list, *item;
    const char *key;
    size_t i;
    (void)json_object_del(endpoint, "secrets");
    json_object_foreach(endpoint, key, list)
    {
        json_array_foreach(list, i, item)
        {
            (void)json_object_del(item, "secrets");
        }
    }
}

/* They are not named any more then. */
static weir_status fill_secrets(json_t *source, json_t *sinks, json_t *doors,
                                struct weir_error *err)
{
    const char *missing = NULL;
    json_t *sink, *door;
    size_t i;
    weir_endpoints_secrets(source, sinks, fill_secret, &missing);
    weir_doors_secrets(doors, fill_secret, &missing);
    if (missing != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "secret %s is not in the environment",
                              missing);
    }
    forget_names(source);
    json_array_foreach(sinks, i, sink)
    {
        forget_names(sink);
    }
    json_array_foreach(doors, i, door)
    {
        forget_names(json_object_get(door, "by"));
    }
    return WEIR_OK;
}

static weir_status read_rest(json_t *root, struct weir_arena *arena, void *spec,
                             struct weir_error *err)
{
    struct predict_spec *out = spec;
    json_t *source = json_object_get(root, "source"), *sinks = json_object_get(root, "sinks");
    json_t *doors = json_object_get(root, "doors");
    read_left(root, arena, out);
    out->keeps_no_pictures = json_is_false(json_object_get(root, "pictures"));
    WEIR_TRY(weir_host_read_ints(root, "$", &replicas, 1, out, err));
    WEIR_TRY(weir_host_read_ints(json_object_get(root, "health"), "$.health", health,
                                 WEIR_ARRAY_LEN(health), out, err));
    out->rank = rank_of(out->host.replica) % out->n_replicas;
    out->project = out->project != NULL ? out->project : weir_arena_strdup(arena, "default");
    WEIR_TRY(fill_secrets(source, sinks, doors, err));
    WEIR_TRY(weir_endpoints_read(source, sinks, "$", arena, &out->source, out->sinks, &out->n_sinks,
                                 err));
    WEIR_TRY(weir_doors_read(doors, "$", out->n_replicas, arena, out->doors, &out->n_doors, err));
    out->document = json_incref(root);
    return WEIR_OK;
}

weir_status predict_spec_load(const char *path, struct weir_arena *arena, struct predict_spec *out,
                              struct weir_error *err)
{
    static const struct weir_host_spec_form form = {texts, WEIR_ARRAY_LEN(texts), read_rest};
    struct predict_spec spec = {0};
    WEIR_TRY(weir_host_spec_load(path, &form, arena, &spec, err));
    *out = spec;
    return WEIR_OK;
}

void predict_spec_fini(struct predict_spec *spec)
{
    json_decref(spec->document);
    spec->document = NULL;
}
