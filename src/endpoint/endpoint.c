#include "endpoint/endpoint.h"

#include "endpoint/private.h"

#include <ctype.h>
#include <string.h>

#define VARIABLE_BYTES 64
#define PLACE_BYTES    160

static const struct weir_kind *const sources[] = {
#define WEIR_KIND(name) &weir_source_##name##_kind,
#include "endpoint/sources.def"
#undef WEIR_KIND
};

static const struct weir_kind *const sinks[] = {
#define WEIR_KIND(name) &weir_sink_##name##_kind,
#include "endpoint/sinks.def"
#undef WEIR_KIND
};

/* What each takes beside its own options. */
struct common {
    const json_t *secrets;
};

const struct weir_option endpoint_common[ENDPOINT_N_COMMON] = {
    WEIR_OPT_JSON(common, secrets, "secrets", JSON, 0, NULL, 0, 0,
                  "Options whose values are secrets of the project: a list of \"OPTION=NAME\""),
};

const struct weir_registry weir_sources = {
    .noun = "source",
    .plural = "sources",
    .doc = "Where a prediction pipeline's frames come from.",
    .kinds = sources,
    .n_kinds = WEIR_ARRAY_LEN(sources),
    .common = endpoint_common,
    .n_common = ENDPOINT_N_COMMON,
    .planned = WEIR_WORDS("mqtt", "kafka", "nats", "redis"),
};

const struct weir_registry weir_sinks = {
    .noun = "sink",
    .plural = "sinks",
    .doc = "Where a prediction pipeline's decisions go, beside the server.",
    .kinds = sinks,
    .n_kinds = WEIR_ARRAY_LEN(sinks),
    .common = endpoint_common,
    .n_common = ENDPOINT_N_COMMON,
    .planned = WEIR_WORDS("kafka", "nats", "redis"),
};

/* ---- secrets --------------------------------------------------------------------------------- */

/* "token=door-token" → its option of the kind, or NULL, and what stands behind "=". */
static const struct weir_option *secret_option(const struct weir_kind *kind, const char *text,
                                               const char **out_name)
{
    size_t len = strcspn(text, "=");
    for (size_t i = 0; text[len] == '=' && i < kind->n_options; i++) {
        const struct weir_option *option = &kind->options[i];
        if ((option->flags & WEIR_OPTION_SECRET) != 0 && strlen(option->name) == len &&
            strncmp(option->name, text, len) == 0 && text[len + 1] != '\0') {
            *out_name = text + len + 1;
            return option;
        }
    }
    return NULL;
}

/* Has one of the first n the same option? */
static bool is_named_before(const struct weir_kind *kind, const json_t *list, size_t n,
                            const struct weir_option *option)
{
    const char *name;
    bool is_there = false;
    for (size_t i = 0; i < n; i++) {
        is_there = is_there ||
                   secret_option(kind, json_string_value(json_array_get(list, i)), &name) == option;
    }
    return is_there;
}

static weir_status check_secrets(const struct weir_kind *kind, const json_t *endpoint,
                                 const char *where, struct weir_error *err)
{
    const json_t *list = json_object_get(endpoint, "secrets"), *item;
    const char *name;
    size_t i;
    if (list != NULL && !json_is_null(list) && !json_is_array(list)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.secrets: expected an array", where);
    }
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        const struct weir_option *option = text != NULL ? secret_option(kind, text, &name) : NULL;
        if (option == NULL) { /* it may be a value: it is not repeated */
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.secrets[%zu]: expected OPTION=NAME: an option of %s that is "
                                  "secret, and the name of a secret of the project",
                                  where, i, kind->name);
        }
        if (is_named_before(kind, list, i, option)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.secrets[%zu]: a secret is named for %s already: which one is "
                                  "meant",
                                  where, i, option->name);
        }
        if (json_object_get(endpoint, option->name) != NULL) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "%s.%s: it is given here and by %s.secrets[%zu]: which one is meant", where,
                option->name, where, i);
        }
    }
    return WEIR_OK;
}

/* The secrets that one object names. @param place  What the names of its variables begin with. */
static void secrets_in(const struct weir_kind *kind, json_t *object, const char *place,
                       weir_endpoint_secret_fn fn, void *context)
{
    const char *name;
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(object, "secrets"), i, item)
    {
        char variable[2 * VARIABLE_BYTES];
        const char *text = json_string_value(item);
        const struct weir_option *option = text != NULL ? secret_option(kind, text, &name) : NULL;
        if (option == NULL) {
            continue;
        }
        (void)snprintf(variable, sizeof variable, "%s_%s", place, option->name);
        for (char *c = variable; *c != '\0'; c++) {
            *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        }
        fn(context, &(struct weir_endpoint_secret){object, option->name, variable, name});
    }
}

static const struct weir_kind *kind_of(const struct weir_registry *registry, const json_t *endpoint)
{
    const char *name = json_string_value(json_object_get(endpoint, "kind"));
    return name != NULL ? weir_registry_get(registry, name) : NULL;
}

/* The objects that a kind has in a list; NULL: it has none. */
static json_t *items_of(const struct weir_kind *kind, const json_t *endpoint)
{
    const struct weir_endpoint_ops *ops = kind->ops;
    return ops != NULL && ops->items != NULL ? json_object_get(endpoint, ops->items) : NULL;
}

void endpoint_secrets(const struct weir_registry *registry, json_t *endpoint, const char *place,
                      weir_endpoint_secret_fn fn, void *context)
{
    const struct weir_kind *kind = kind_of(registry, endpoint);
    json_t *item;
    size_t i;
    if (kind == NULL) {
        return;
    }
    const struct weir_endpoint_ops *ops = kind->ops;
    secrets_in(kind, endpoint, place, fn, context);
    json_array_foreach(items_of(kind, endpoint), i, item)
    {
        char inner[VARIABLE_BYTES];
        (void)snprintf(inner, sizeof inner, "%s_%.12s_%zu", place, ops->items, i);
        secrets_in(ops->item, item, inner, fn, context);
    }
}

void weir_endpoints_secrets(json_t *source, json_t *list, weir_endpoint_secret_fn fn, void *context)
{
    char place[32];
    json_t *sink;
    size_t i;
    endpoint_secrets(&weir_sources, source, "source", fn, context);
    json_array_foreach(list, i, sink)
    {
        (void)snprintf(place, sizeof place, "sink_%zu", i);
        endpoint_secrets(&weir_sinks, sink, place, fn, context);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static weir_status check_item_secrets(const struct weir_kind *kind, const json_t *endpoint,
                                      const char *where, struct weir_arena *arena,
                                      struct weir_error *err)
{
    const struct weir_endpoint_ops *ops = kind->ops;
    const json_t *item;
    size_t i;
    json_array_foreach(items_of(kind, endpoint), i, item)
    {
        const char *place = weir_arena_printf(arena, "%s.%s[%zu]", where, ops->items, i);
        WEIR_TRY(check_secrets(ops->item, item, place, err));
    }
    return WEIR_OK;
}

weir_status endpoint_read(const struct weir_registry *registry, const json_t *endpoint,
                          const char *where, struct weir_arena *arena, struct weir_configured *out,
                          struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *own = json_copy((json_t *)endpoint);
    (void)json_object_del(own, "secrets");
    WEIR_TRY(weir_registry_read(registry, own, where, arena, out, err));
    WEIR_TRY(check_secrets(out->kind, endpoint, where, err));
    const struct weir_endpoint_ops *ops = out->kind->ops;
    if (ops != NULL && ops->check(out->options, err) != WEIR_OK) {
        return weir_error_prefix(err, "%s", where);
    }
    return check_item_secrets(out->kind, endpoint, where, arena, err);
}

weir_status weir_endpoints_read(const json_t *source, const json_t *list, const char *where,
                                struct weir_arena *arena, struct weir_configured *out_source,
                                struct weir_configured *out_sinks, size_t *out_n_sinks,
                                struct weir_error *err)
{
    const json_t *sink;
    size_t i;
    char *place = weir_arena_printf(arena, "%s.source", where);
    WEIR_TRY(endpoint_read(&weir_sources, source, place, arena, out_source, err));
    if (list != NULL && !json_is_null(list) && !json_is_array(list)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.sinks: expected an array", where);
    }
    if (json_array_size(list) > WEIR_ENDPOINT_SINKS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s.sinks: %zu sinks; at most %d are allowed",
                              where, json_array_size(list), WEIR_ENDPOINT_SINKS_MAX);
    }
    json_array_foreach(list, i, sink)
    {
        place = weir_arena_printf(arena, "%s.sinks[%zu]", where, i);
        WEIR_TRY(endpoint_read(&weir_sinks, sink, place, arena, &out_sinks[i], err));
    }
    *out_n_sinks = json_array_size(list);
    return WEIR_OK;
}

static weir_status paths_of(const struct weir_registry *registry, const json_t *endpoint,
                            const char *where, weir_option_path_fn fn, void *context)
{
    const struct weir_kind *kind = kind_of(registry, endpoint);
    const json_t *item;
    size_t i;
    WEIR_TRY(weir_registry_paths(registry, endpoint, where, fn, context));
    if (kind == NULL) {
        return WEIR_OK;
    }
    const struct weir_endpoint_ops *ops = kind->ops;
    json_array_foreach(items_of(kind, endpoint), i, item)
    {
        char place[PLACE_BYTES];
        (void)snprintf(place, sizeof place, "%s.%s[%zu]", where, ops->items, i);
        WEIR_TRY(
            weir_options_paths(ops->item->options, ops->item->n_options, item, place, fn, context));
    }
    return WEIR_OK;
}

weir_status weir_endpoints_paths(const json_t *source, const json_t *list, const char *where,
                                 weir_option_path_fn fn, void *context)
{
    char place[PLACE_BYTES];
    const json_t *sink;
    size_t i;
    (void)snprintf(place, sizeof place, "%s.source", where);
    WEIR_TRY(paths_of(&weir_sources, source, place, fn, context));
    json_array_foreach(list, i, sink)
    {
        (void)snprintf(place, sizeof place, "%s.sinks[%zu]", where, i);
        WEIR_TRY(paths_of(&weir_sinks, sink, place, fn, context));
    }
    return WEIR_OK;
}
