/* Detectors over the decisions of a snapshot. */
#include "capture/replay.h"

#include "base/grow.h"
#include "ion/decision.h"
#include "ion/ion.h"
#include "stats/monitor.h"
#include "track/track.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGNALS_MAX 512 /* of pipelines, replicas and model versions together */

/* Which model version a pipeline's number means, and its baseline. */
struct version {
    char *pipeline, *id;
    int64_t version;
    json_t *baseline; /* owned; NULL: it has none */
};

/* A signal of a replica that serves one version. */
struct signal {
    struct weir_monitor monitor;
    uint64_t n_values, n_windows;
    int64_t alarm_ms; /* first; 0: none */
    json_t *windows;
};

struct camera {
    char *name;
    int64_t time_ms;
};

/* What of a replica's decisions one detector of each signal sees. */
struct watcher {
    char *pipeline, *replica;
    int64_t model_version;
    double threshold;
    bool has_gallery;
    struct signal score, brightness;
    struct camera *cameras;
    size_t n_cameras;
    struct watcher *next;
};

struct detecting {
    const struct weir_replay_rules *rules;
    struct weir_arena *arena;
    struct version *versions;
    size_t n_versions, cap_versions;
    struct watcher *watchers, **last;
    size_t n_watchers;
    json_t *alarms; /* first alarm that was reported, by "PIPELINE/REPLICA/VERSION/SIGNAL" */
};

/* ---- baselines ------------------------------------------------------------------------------- */

static weir_status see_candidate(void *context, const void *record, struct weir_error *err)
{
    struct detecting *detecting = context;
    const struct weir_ion_candidate *candidate = record;
    const char *colon = candidate->link != NULL ? strchr(candidate->link, ':') : NULL;
    if (colon == NULL || candidate->model_version == NULL) {
        return WEIR_OK;
    }
    weir_arena_grow(detecting->arena, &detecting->versions, sizeof *detecting->versions,
                    detecting->n_versions, &detecting->cap_versions);
    detecting->versions[detecting->n_versions++] =
        (struct version){.pipeline = weir_arena_strdup(detecting->arena, colon + 1),
                         .id = weir_arena_strdup(detecting->arena, candidate->model_version),
                         .version = candidate->version};
    return weir_arena_check(detecting->arena, "snapshot", err);
}

static weir_status see_version(void *context, const void *record, struct weir_error *err)
{
    struct detecting *detecting = context;
    const struct weir_model_version *version = record;
    (void)err;
    for (size_t i = 0; i < detecting->n_versions && version->baseline != NULL; i++) {
        struct version *known = &detecting->versions[i];
        if (known->baseline == NULL && version->id != NULL && strcmp(known->id, version->id) == 0) {
            known->baseline = json_loads(version->baseline, 0, NULL);
        }
    }
    return WEIR_OK;
}

static const json_t *baseline_of(const struct detecting *detecting, const char *pipeline,
                                 int64_t version)
{
    for (size_t i = 0; i < detecting->n_versions; i++) {
        const struct version *known = &detecting->versions[i];
        if (known->version == version && strcmp(known->pipeline, pipeline) == 0) {
            return known->baseline;
        }
    }
    return NULL;
}

/* ---- detectors ------------------------------------------------------------------------------- */

static weir_status watch(struct detecting *detecting, struct signal *signal, const char *name,
                         const struct weir_histogram *baseline, double threshold,
                         struct weir_error *err)
{
    struct weir_drift_config config = detecting->rules->drift;
    config.seed = WEIR_MONITOR_SEED;
    *signal = (struct signal){.windows = json_array()};
    return weir_monitor_init(&signal->monitor, weir_signal_find(name), baseline, threshold, &config,
                             err);
}

static bool has_histogram(const json_t *baseline, const char *name, struct weir_histogram *out)
{
    struct weir_error ignored;
    const json_t *value = json_object_get(baseline, name);
    return value != NULL && weir_histogram_from_json(value, out, &ignored) == WEIR_OK;
}

static weir_status begin_watching(struct detecting *detecting, struct watcher *watcher,
                                  struct weir_error *err)
{
    struct weir_histogram score, brightness;
    const json_t *baseline = baseline_of(detecting, watcher->pipeline, watcher->model_version);
    bool has_score = has_histogram(baseline, "score", &score);
    bool has_brightness = has_histogram(baseline, "brightness", &brightness);
    WEIR_TRY(watch(detecting, &watcher->score, "score", has_score ? &score : NULL,
                   watcher->has_gallery ? watcher->threshold : NAN, err));
    return watch(detecting, &watcher->brightness, "brightness", has_brightness ? &brightness : NULL,
                 NAN, err);
}

/* A new one when the version or the threshold changes, as in service. */
static weir_status watcher_of(struct detecting *detecting, const struct weir_decision *decision,
                              struct watcher **out, struct weir_error *err)
{
    const char *replica = decision->replica != NULL ? decision->replica : "";
    bool has_gallery = strcmp(decision->verdict, "label") != 0;
    for (struct watcher *known = detecting->watchers; known != NULL; known = known->next) {
        if (known->model_version == decision->model_version &&
            strcmp(known->pipeline, decision->pipeline) == 0 &&
            strcmp(known->replica, replica) == 0 && known->has_gallery == has_gallery &&
            (!has_gallery || known->threshold == decision->threshold)) {
            *out = known;
            return WEIR_OK;
        }
    }
    *out = NULL;
    if (detecting->n_watchers == SIGNALS_MAX) {
        return WEIR_OK;
    }
    struct watcher *made = WEIR_ARENA_NEW(detecting->arena, struct watcher);
    made->pipeline = weir_arena_strdup(detecting->arena, decision->pipeline);
    made->replica = weir_arena_strdup(detecting->arena, replica);
    made->model_version = decision->model_version;
    made->threshold = decision->threshold;
    made->has_gallery = has_gallery;
    made->cameras = WEIR_ARENA_ARRAY(detecting->arena, WEIR_MONITOR_CAMERAS_MAX, struct camera);
    *detecting->last = made;
    detecting->last = &made->next;
    detecting->n_watchers++;
    *out = made;
    return begin_watching(detecting, made, err);
}

static bool is_camera_due(struct detecting *detecting, struct watcher *watcher,
                          const struct weir_decision *decision)
{
    int64_t interval_ms = detecting->rules->interval_ms > 0 ? detecting->rules->interval_ms
                                                            : WEIR_MONITOR_INTERVAL_MS;
    size_t i = 0;
    while (i < watcher->n_cameras && strcmp(watcher->cameras[i].name, decision->camera) != 0) {
        i++;
    }
    if (i == WEIR_MONITOR_CAMERAS_MAX) {
        return false;
    }
    if (i == watcher->n_cameras) {
        watcher->cameras[watcher->n_cameras++].name =
            weir_arena_strdup(detecting->arena, decision->camera);
    } else if (!weir_monitor_is_due(watcher->cameras[i].time_ms, decision->time_ms, interval_ms)) {
        return false;
    }
    watcher->cameras[i].time_ms = decision->time_ms;
    return true;
}

static void add_value(struct signal *signal, double value, int64_t time_ms)
{
    struct weir_monitor_report found;
    signal->n_values += weir_monitor_wants(&signal->monitor, value);
    if (!weir_monitor_add(&signal->monitor, value, &found)) {
        return;
    }
    const struct weir_drift_report *window = &found.window;
    signal->n_windows++;
    signal->alarm_ms = signal->alarm_ms == 0 && found.is_drifted ? time_ms : signal->alarm_ms;
    if (json_array_size(signal->windows) < WEIR_REPLAY_WINDOWS_MAX) {
        json_array_append_new(
            signal->windows,
            WEIR_VIEW_JSON(replay_window, .time_ms = time_ms, .window = (int64_t)window->i_window,
                           .n_values = (int64_t)window->n_values, .p_value = window->p_value,
                           .effect = window->effect, .kind = weir_drift_kind_name(window->kind),
                           .level = found.level, .drifted = window->is_drifted,
                           .confirmed = window->is_confirmed, .alarm = found.is_drifted));
    }
}

static weir_status see_decision(void *context, const void *record, struct weir_error *err)
{
    struct detecting *detecting = context;
    const struct weir_decision *decision = record;
    struct watcher *watcher;
    if (decision->verdict == NULL || decision->pipeline == NULL || decision->camera == NULL ||
        strcmp(decision->verdict, "error") == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(watcher_of(detecting, decision, &watcher, err));
    if (watcher != NULL && is_camera_due(detecting, watcher, decision)) {
        add_value(&watcher->brightness, decision->brightness, decision->time_ms);
        add_value(&watcher->score, decision->score, decision->time_ms);
    }
    return weir_arena_check(detecting->arena, "snapshot", err);
}

static char *key_of(struct weir_arena *arena, const char *pipeline, const char *replica,
                    int64_t version, const char *signal)
{
    return weir_arena_printf(arena, "%s/%s/%lld/%s", pipeline, replica, (long long)version, signal);
}

static weir_status see_report(void *context, const void *record, struct weir_error *err)
{
    struct detecting *detecting = context;
    const struct weir_health_report *report = record;
    if (report->drifted && report->pipeline != NULL && report->signal != NULL) {
        char *key = key_of(detecting->arena, report->pipeline,
                           report->replica != NULL ? report->replica : "", report->model_version,
                           report->signal);
        if (json_object_get(detecting->alarms, key) == NULL) {
            json_object_set_new(detecting->alarms, key, json_integer(report->time_ms));
        }
    }
    return weir_arena_check(detecting->arena, "snapshot", err);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Does it differ whether there was an alarm? When is told beside it. */
static bool put_signal(struct detecting *detecting, const struct watcher *watcher,
                       const struct signal *signal, json_t *signals)
{
    int64_t reported_ms = json_integer_value(json_object_get(
        detecting->alarms, key_of(detecting->arena, watcher->pipeline, watcher->replica,
                                  watcher->model_version, signal->monitor.signal->name)));
    bool differs = (reported_ms > 0) != (signal->alarm_ms > 0) && signal->monitor.is_watched;
    const char *why = !signal->monitor.is_watched ? "the model version has no baseline of it"
                      : !differs                  ? NULL
                      : signal->alarm_ms > 0
                          ? "these thresholds raise an alarm, then there was none"
                          : "there was an alarm, these thresholds raise none";
    json_array_append_new(
        signals,
        WEIR_VIEW_JSON(
            replay_signal, .pipeline = watcher->pipeline, .replica = watcher->replica,
            .model_version = watcher->model_version, .signal = signal->monitor.signal->name,
            .n_values = (int64_t)signal->n_values, .n_windows = (int64_t)signal->n_windows,
            .recorded_alarm = reported_ms, .replayed_alarm = signal->alarm_ms, .differs = differs,
            .why = why, .windows = json_incref(signal->windows)));
    return differs;
}

static json_t *answer(struct detecting *detecting, bool *out_differs)
{
    json_t *signals = json_array();
    struct weir_drift_config used = detecting->rules->drift;
    bool differs = false;
    for (const struct watcher *watcher = detecting->watchers; watcher != NULL;
         watcher = watcher->next) {
        const struct signal *both[] = {&watcher->score, &watcher->brightness};
        for (size_t i = 0; i < WEIR_ARRAY_LEN(both); i++) {
            differs = put_signal(detecting, watcher, both[i], signals) || differs;
            used = both[i]->monitor.is_watched ? both[i]->monitor.drift.config
                                               : used; /* with its defaults */
        }
    }
    *out_differs = differs;
    return WEIR_VIEW_JSON(replay_drift, .false_alarm_rate = used.false_alarm_rate,
                          .min_effect = used.min_effect, .window = (int64_t)used.window,
                          .confirm_k = (int64_t)used.confirm_k,
                          .confirm_n = (int64_t)used.confirm_n, .signals = signals);
}

static const struct weir_snapshot_seer seers[] = {
    {&weir_noun_ion_candidate, see_candidate},
    {&weir_noun_model_version, see_version},
    {&weir_noun_health_report, see_report},
    {&weir_noun_decision, see_decision},
};

weir_status replay_drift(const struct weir_snapshot_file *file,
                         const struct weir_replay_rules *rules, struct weir_arena *arena,
                         json_t **out, bool *out_differs, struct weir_error *err)
{
    struct detecting detecting = {.rules = rules, .arena = arena, .alarms = json_object()};
    detecting.last = &detecting.watchers;
    weir_status status = weir_snapshot_see(file, seers, WEIR_ARRAY_LEN(seers), &detecting, err);
    if (status == WEIR_OK) {
        *out = answer(&detecting, out_differs);
    }
    for (size_t i = 0; i < detecting.n_versions; i++) {
        json_decref(detecting.versions[i].baseline);
    }
    for (struct watcher *watcher = detecting.watchers; watcher != NULL; watcher = watcher->next) {
        json_decref(watcher->score.windows);
        json_decref(watcher->brightness.windows);
    }
    json_decref(detecting.alarms);
    return status;
}
