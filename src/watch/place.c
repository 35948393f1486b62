#include "watch/place.h"

#include "base/json.h"

#include <string.h>

#define KIND "place_condition"

/* The message stays the same while the condition holds: how many there are changes all the time. */
static void find(const struct weir_ion_pipeline *pipeline, const json_t *place,
                 const char *condition, struct weir_arena *arena,
                 struct weir_watch_findings *findings)
{
    const char *camera = json_string_value(json_object_get(place, "camera"));
    const char *name = json_string_value(json_object_get(place, "place"));
    if (camera == NULL || name == NULL || condition == NULL) {
        return;
    }
    bool is_long = strncmp(condition, "longer", 6) == 0;
    weir_watch_add(findings, arena,
                   (struct weir_watch_finding){
                       .key = weir_arena_printf(arena, KIND ":%s:%s:%s:%s", pipeline->id, camera,
                                                name, condition),
                       .kind = KIND,
                       .subject = weir_arena_printf(arena, "ion/%s", pipeline->ion),
                       .message = weir_arena_printf(
                           arena, "Camera %s, place \"%s\": %s%s.", camera, name,
                           is_long ? "something is there for " : "there are ", condition)});
}

static void find_of_replica(const struct weir_ion_pipeline *pipeline,
                            const struct weir_ion_replica *replica, struct weir_arena *arena,
                            struct weir_watch_findings *findings)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *places =
        replica->places != NULL ? json_loads(replica->places, JSON_DECODE_ANY, NULL) : NULL;
    const json_t *place, *condition;
    size_t i, k;
    json_array_foreach(places, i, place)
    {
        json_array_foreach(json_object_get(place, "conditions"), k, condition)
        {
            find(pipeline, place, json_string_value(condition), arena, findings);
        }
    }
}

void weir_watch_find_places(const struct weir_watch_seen *seen, const struct weir_ion_state *ion,
                            struct weir_arena *arena, struct weir_watch_findings *findings)
{
    for (size_t i = 0; i < ion->n_replicas; i++) {
        const struct weir_ion_replica *replica = &ion->replicas[i];
        const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(ion, replica->pipeline);
        bool is_heard =
            seen->now_ms - WEIR_MAX(replica->time_ms, seen->since_ms) < WEIR_REPLICA_SILENT_MS;
        if (is_heard && pipeline != NULL &&
            weir_ion_replica_is_of(replica->replica, pipeline->job)) {
            find_of_replica(pipeline, replica, arena, findings);
        }
    }
}
