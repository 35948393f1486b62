#include "watch/cameras.h"

#include "base/clock.h"
#include "ion/camera.h"

#include <string.h>

static void find(const struct weir_ion_camera *camera, const char *kind, const char *severity,
                 const char *message, struct weir_arena *arena,
                 struct weir_watch_findings *findings)
{
    weir_watch_add(
        findings, arena,
        (struct weir_watch_finding){.key = weir_arena_printf(arena, "%s:%s", kind, camera->id),
                                    .kind = kind,
                                    .severity = severity,
                                    .subject = weir_arena_printf(arena, "ion/%s", camera->ion),
                                    .message = message});
}

/* It is so since then, and may be so for that time; 0: it is not, or for ever. */
static bool is_told(int64_t since_ms, int64_t after_ms, int64_t now_ms)
{
    return since_ms != 0 && after_ms != 0 && now_ms - since_ms >= after_ms;
}

/* "dark", "dark and clock": of a JSON list of names. */
static const char *health_words(const struct weir_ion_camera *camera, struct weir_arena *arena)
{
    json_t *list = json_loads(camera->health, 0, NULL), *name;
    char *words = weir_arena_strdup(arena, "");
    size_t i;
    json_array_foreach(list, i, name)
    {
        bool is_clock = strcmp(json_string_value(name), "clock") == 0;
        words = weir_arena_printf(
            arena, "%s%s%s", words, i > 0 ? ", and " : "",
            is_clock ? "its clock is wrong"
                     : weir_arena_printf(arena, "its picture is %s", json_string_value(name)));
    }
    json_decref(list);
    return words;
}

static void look_at(const struct weir_watch_seen *seen, const struct weir_ion_camera *camera,
                    bool is_critical, struct weir_arena *arena,
                    struct weir_watch_findings *findings)
{
    char since[WEIR_TIME_TEXT_BYTES];
    const char *cure = camera->cure != NULL ? camera->cure : "";
    weir_time_format(camera->since_ms, since);
    if (is_told(camera->lost_ms, camera->lost_after_ms, seen->now_ms)) {
        find(camera, "camera_lost", is_critical ? "critical" : "warning",
             weir_arena_printf(arena, "Camera %s of pipeline %s gives no picture since %s%s%s. %s",
                               camera->name, camera->pipeline, since,
                               camera->error != NULL ? ": " : "",
                               camera->error != NULL ? camera->error : "", cure),
             arena, findings);
    }
    if (is_told(camera->unwell_ms, camera->unwell_after_ms, seen->now_ms)) {
        find(camera, "camera_unwell", "warning",
             weir_arena_printf(arena, "Camera %s of pipeline %s is not well since %s: %s. %s",
                               camera->name, camera->pipeline, since, health_words(camera, arena),
                               cure),
             arena, findings);
    }
}

void watch_cameras(const struct weir_watch_seen *seen, const struct weir_ion_state *ion,
                   struct weir_arena *arena, struct weir_watch_findings *findings)
{
    struct weir_ion_camera *cameras;
    size_t n;
    weir_ion_cameras(ion, seen->now_ms, seen->since_ms, arena, &cameras, &n);
    for (size_t i = 0; i < n; i++) {
        const struct weir_ion_doc_pipeline *doc =
            weir_ion_doc_pipeline(&ion->doc, cameras[i].pipeline);
        const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(ion, cameras[i].pipeline);
        const struct weir_ion_service *service = weir_ion_service_of(pipeline);
        if (service != NULL && service->candidate != NULL && pipeline->paused_by == NULL) {
            look_at(seen, &cameras[i], doc->is_critical, arena, findings);
        }
    }
}
