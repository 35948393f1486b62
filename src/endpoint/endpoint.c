#include "endpoint/endpoint.h"

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

const struct weir_registry weir_sources = {
    .noun = "source",
    .plural = "sources",
    .doc = "Where a prediction pipeline's frames come from.",
    .kinds = sources,
    .n_kinds = WEIR_ARRAY_LEN(sources),
    .planned = WEIR_WORDS("rtsp", "mqtt", "kafka", "nats", "redis"),
};

const struct weir_registry weir_sinks = {
    .noun = "sink",
    .plural = "sinks",
    .doc = "Where a prediction pipeline's decisions go, beside the server.",
    .kinds = sinks,
    .n_kinds = WEIR_ARRAY_LEN(sinks),
    .planned = WEIR_WORDS("http", "mqtt", "kafka", "nats", "redis"),
};

weir_status weir_endpoints_read(const json_t *source, const json_t *list, const char *where,
                                struct weir_arena *arena, struct weir_configured *out_source,
                                struct weir_configured *out_sinks, size_t *out_n_sinks,
                                struct weir_error *err)
{
    const json_t *sink;
    size_t i;
    char *place = weir_arena_printf(arena, "%s.source", where);
    WEIR_TRY(weir_registry_read(&weir_sources, source, place, arena, out_source, err));
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
        WEIR_TRY(weir_registry_read(&weir_sinks, sink, place, arena, &out_sinks[i], err));
    }
    *out_n_sinks = json_array_size(list);
    return WEIR_OK;
}

weir_status weir_endpoints_paths(const json_t *source, const json_t *list, const char *where,
                                 weir_option_path_fn fn, void *context)
{
    char place[128];
    const json_t *sink;
    size_t i;
    (void)snprintf(place, sizeof place, "%s.source", where);
    WEIR_TRY(weir_registry_paths(&weir_sources, source, place, fn, context));
    json_array_foreach(list, i, sink)
    {
        (void)snprintf(place, sizeof place, "%s.sinks[%zu]", where, i);
        WEIR_TRY(weir_registry_paths(&weir_sinks, sink, place, fn, context));
    }
    return WEIR_OK;
}
