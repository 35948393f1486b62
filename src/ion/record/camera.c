#include "ion/camera.h"

#include "base/view.h"
#include "endpoint/source/camera.h"
#include "ion/record/said.h"
#include "ion/replica.h"
#include "store/noun.h"
#include "store/stmt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define STALE_MS      30000 /* Connected, and no frame for so long: none comes. */
#define STALE_PERIODS 5

// clang-format off
static const struct weir_field camera_fields[] = {
    WEIR_FIELD(weir_ion_camera, id,               TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:PIPELINE:CAMERA"),
    WEIR_FIELD(weir_ion_camera, project,          TEXT, WEIR_FIELD_READ_ONLY, "", "Project of the ION"),
    WEIR_FIELD(weir_ion_camera, ion,              TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_ion_camera, pipeline,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Pipeline that decides about its frames"),
    WEIR_FIELD(weir_ion_camera, name,             TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What decisions call it"),
    WEIR_FIELD(weir_ion_camera, kind,             TEXT, WEIR_FIELD_READ_ONLY, "", "Kind of its source"),
    WEIR_FIELD(weir_ion_camera, mode,             TEXT, WEIR_FIELD_READ_ONLY, "", "How the ION runs: production or sandbox"),
    WEIR_FIELD(weir_ion_camera, replica,          TEXT, WEIR_FIELD_READ_ONLY, "", "Replica that takes its frames"),
    WEIR_FIELD(weir_ion_camera, state,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "sees; unwell, if its frames come and health says what is wrong; lost; connecting, for the first time; unknown, if no replica reports it"),
    WEIR_FIELD(weir_ion_camera, since_ms,         TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When that began"),
    WEIR_FIELD(weir_ion_camera, health,           JSON, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What is not well: dark, dazzled, frozen, covered, blurred, moved, clock"),
    WEIR_FIELD(weir_ion_camera, fps,              F64,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "1/s", "Frames a second that are taken"),
    WEIR_FIELD(weir_ion_camera, fps_expected,     F64,  WEIR_FIELD_READ_ONLY, "1/s", "Frames a second that the document asks for, else that the camera sends"),
    WEIR_FIELD(weir_ion_camera, width,            INT,  WEIR_FIELD_READ_ONLY, "", "Width of its frames, in pixels"),
    WEIR_FIELD(weir_ion_camera, height,           INT,  WEIR_FIELD_READ_ONLY, "", "Height of its frames, in pixels"),
    WEIR_FIELD(weir_ion_camera, codec,            TEXT, WEIR_FIELD_READ_ONLY, "", "How they are encoded"),
    WEIR_FIELD(weir_ion_camera, age_ms,           INT,  WEIR_FIELD_READ_ONLY, "ms", "Age of its newest frame when it was reported"),
    WEIR_FIELD(weir_ion_camera, clock_off_ms,     INT,  WEIR_FIELD_READ_ONLY, "ms", "By how much its clock is ahead; wrong from 5 s on"),
    WEIR_FIELD(weir_ion_camera, frames,           INT,  WEIR_FIELD_READ_ONLY, "", "Frames that came since the replica started, as all of these"),
    WEIR_FIELD(weir_ion_camera, dropped,          INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Frames that were passed over for newer ones"),
    WEIR_FIELD(weir_ion_camera, damaged,          INT,  WEIR_FIELD_READ_ONLY, "", "Frames that could not be decoded"),
    WEIR_FIELD(weir_ion_camera, lost,             INT,  WEIR_FIELD_READ_ONLY, "", "Packets that did not come"),
    WEIR_FIELD(weir_ion_camera, n_decided,        INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Decisions of the last 30 minutes"),
    WEIR_FIELD(weir_ion_camera, n_unknown,        INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Decisions among these about people whom nobody knows"),
    WEIR_FIELD(weir_ion_camera, last_decision_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "The newest decision of the ION about a camera of this name"),
    WEIR_FIELD(weir_ion_camera, reported_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "When its replica reported last"),
    WEIR_FIELD(weir_ion_camera, error,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it is lost, in its own words"),
    WEIR_FIELD(weir_ion_camera, cure,             TEXT, WEIR_FIELD_READ_ONLY, "", "What to do"),
};
// clang-format on

const struct weir_resource weir_ion_camera_resource =
    WEIR_RESOURCE("camera", "cameras", weir_ion_camera, camera_fields);

const struct weir_noun weir_noun_camera_minute = {
    "camera_minutes", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("camera-minutes", "How much was decided about each camera, by minute",
                        "Those of cameras that have decided nothing for longest go first.", 225,
                        {WEIR_DAYS(1), WEIR_MB(2)}, 150, 2, .by = WEIR_ROWS_TIMED,
                        .time = "last_ms", .key = "ion, pipeline, camera, slot")}};

#define MINUTE_MS ((int64_t)60000)
#define OF_PIPELINE                                                                                \
    " FROM camera_minutes WHERE ion = :ion AND pipeline = :pipeline AND minute > :from"            \
    " AND minute < :from + 32" /* a clock may be ahead */

static const char sql_decided[] =
    "SELECT coalesce(sum(n_decided), 0)" OF_PIPELINE " AND camera = :camera";
static const char sql_unknown[] =
    "SELECT coalesce(sum(n_unknown), 0)" OF_PIPELINE " AND camera = :camera";
static const char sql_last[] = "SELECT time_ms FROM decisions WHERE ion = :ion"
                               " AND camera = :camera ORDER BY time_ms DESC LIMIT 1";
static const char sql_names[] = "SELECT DISTINCT camera" OF_PIPELINE " ORDER BY camera LIMIT :max";

/* ---- what a replica says ------------------------------------------------------------------------ */

static int64_t count_in(const json_t *object, const char *member)
{
    return WEIR_MAX(json_integer_value(json_object_get(object, member)), 0);
}

/** A pipeline with its source, and the reports of its replicas that have not fallen silent. */
struct scene {
    const struct weir_ion_state *state;
    const struct weir_ion_doc_pipeline *doc;
    const struct weir_ion_pipeline *pipeline; /**< NULL: the document is new. */
    json_t *source;
    struct weir_source_video options;
    json_t **said; /**< By replica of the state; NULL: it says nothing. */
    int64_t now_ms;
    struct weir_arena *arena;
};

/* The newest report that names the camera. */
static const json_t *report_of(const struct scene *scene, struct weir_ion_camera *camera)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < scene->state->n_replicas; i++) {
        const struct weir_ion_replica *replica = &scene->state->replicas[i];
        const json_t *cameras = json_object_get(scene->said[i], "cameras");
        const json_t *said = json_object_get(cameras, camera->name);
        if (json_is_object(said) && (found == NULL || replica->time_ms > camera->reported_ms)) {
            found = said;
            camera->replica = replica->replica;
            camera->reported_ms = replica->time_ms;
        }
    }
    return found;
}

static void take_figures(const struct scene *scene, const json_t *said,
                         struct weir_ion_camera *camera)
{
    const json_t *size = json_object_get(said, "size"), *age = json_object_get(said, "age_ms");
    int64_t width = json_integer_value(json_array_get(size, 0));
    int64_t height = json_integer_value(json_array_get(size, 1));
    int64_t period_ms = count_in(said, "period_ms"),
            clock_off_ms = json_integer_value(json_object_get(said, "clock_off_ms"));
    double fps = json_number_value(json_object_get(said, "fps"));
    camera->fps = fps > 0 ? fps : NAN;
    camera->fps_expected = isnan(camera->fps_expected) && period_ms > 0 ? 1000. / (double)period_ms
                                                                        : camera->fps_expected;
    camera->width = width > 0 && height > 0 ? width : WEIR_INT_NONE;
    camera->height = width > 0 && height > 0 ? height : WEIR_INT_NONE;
    camera->codec = said_text(said, "codec", scene->arena);
    camera->age_ms = json_is_integer(age) ? count_in(said, "age_ms") : WEIR_INT_NONE;
    camera->clock_off_ms = clock_off_ms != 0 ? clock_off_ms : WEIR_INT_NONE;
    camera->frames = count_in(said, "frames");
    camera->dropped = count_in(said, "dropped");
    camera->damaged = count_in(said, "damaged");
    camera->lost = count_in(said, "lost");
}

static int64_t stale_ms(const struct scene *scene, const json_t *said)
{
    double fps = scene->options.fps, wanted_s = fps > 0 ? 1 / fps : 0;
    double period_ms = WEIR_MAX((double)count_in(said, "period_ms"), 1000 * wanted_s);
    period_ms = WEIR_MAX(period_ms, 1000 * scene->options.period_s);
    return WEIR_MAX((int64_t)(STALE_PERIODS * WEIR_MIN(period_ms, 1e9)), (int64_t)STALE_MS);
}

/* ---- how it stands ------------------------------------------------------------------------------ */

static void take_health(const struct scene *scene, const json_t *said,
                        struct weir_ion_camera *camera)
{
    const char *reported = json_string_value(json_object_get(said, "health"));
    const char *picture = reported != NULL ? weir_camera_health(reported) : NULL;
    int64_t clock_ms = said_time(said, "clock_since"), picture_ms = said_time(said, "health_since");
    bool is_clock_bad = clock_ms != 0 || (picture != NULL && strcmp(picture, "clock") == 0);
    picture = picture != NULL && strcmp(picture, "clock") != 0 ? picture : NULL;
    picture_ms = picture == NULL || picture_ms == 0 ? INT64_MAX : picture_ms;
    if (picture == NULL && !is_clock_bad) {
        camera->state = (char *)"sees";
        camera->since_ms = said_time(said, "since");
        return;
    }
    int64_t since_ms = WEIR_MIN(picture_ms, clock_ms != 0 ? clock_ms : INT64_MAX);
    camera->state = (char *)"unwell";
    camera->since_ms = since_ms != INT64_MAX ? since_ms : said_time(said, "since");
    camera->unwell_ms = camera->since_ms;
    camera->health =
        weir_arena_printf(scene->arena, "[%s%s%s%s]", picture != NULL ? "\"" : "",
                          picture != NULL ? picture : "", picture != NULL ? "\"" : "",
                          is_clock_bad ? picture != NULL ? ",\"clock\"" : "\"clock\"" : "");
    camera->cure = (char *)weir_camera_health_cure(picture != NULL ? picture : "clock");
}

static void take_lost(const struct scene *scene, const json_t *said, int64_t lost_ms,
                      struct weir_ion_camera *camera)
{
    camera->state = (char *)"lost";
    camera->since_ms = lost_ms;
    camera->lost_ms = lost_ms;
    camera->error = said_text(said, "error", scene->arena);
    camera->cure =
        (char *)weir_camera_cure(json_string_value(json_object_get(said, "cause")), camera->error);
}

static void take_report(const struct scene *scene, const json_t *said,
                        struct weir_ion_camera *camera)
{
    const char *state = json_string_value(json_object_get(said, "state"));
    int64_t since_ms = said_time(said, "since"), lost_ms = said_time(said, "lost_since");
    take_figures(scene, said, camera);
    if (state == NULL) {
        return;
    }
    if (strcmp(state, "live") == 0 && camera->age_ms > stale_ms(scene, said)) {
        take_lost(scene, said, WEIR_MAX(camera->reported_ms - camera->age_ms, 1), camera);
        camera->error = NULL;
        camera->cure = (char *)"It is connected and none of its frames can be shown: restart the "
                               "camera, or set its stream to H.264 in its own settings.";
    } else if (strcmp(state, "live") == 0) {
        take_health(scene, said, camera);
    } else if (strcmp(state, "ended") == 0) {
        take_lost(scene, said, lost_ms != 0 ? lost_ms : since_ms, camera);
        camera->lost_ms = 0;
    } else if (strcmp(state, "lost") == 0 || lost_ms != 0) {
        take_lost(scene, said, lost_ms != 0 ? lost_ms : since_ms, camera);
    } else if (strcmp(state, "connecting") == 0) {
        camera->state = (char *)"connecting";
        camera->since_ms = camera->lost_ms = since_ms;
        camera->cure = (char *)"No picture has come of it yet: within a minute one comes, or it is "
                               "lost and the error says why. Is its address that of a stream?";
    }
}

/* Nobody reports it. */
static char *cure_of_silence(const struct scene *scene)
{
    const struct weir_ion_pipeline *pipeline = scene->pipeline;
    const struct weir_ion_service *service = weir_ion_service_of(pipeline);
    const char *ion = scene->state->ion.name, *name = scene->doc->name;
    if (pipeline != NULL && pipeline->paused_by != NULL) {
        return weir_arena_printf(scene->arena, "Its pipeline is paused: `weir ion resume %s %s`.",
                                 ion, name);
    }
    if (service == NULL || service->candidate == NULL) {
        return weir_arena_printf(scene->arena,
                                 "Its pipeline has no model to serve yet, so nothing looks at it: "
                                 "`weir describe %s` says what it waits for.",
                                 ion);
    }
    return weir_arena_printf(scene->arena,
                             "No replica reports it: `weir describe %s` says why none runs, `weir "
                             "logs %s/%s` what it has said.",
                             ion, ion, name);
}

static struct weir_ion_camera new_camera(const struct scene *scene, char *name)
{
    const struct weir_ion *ion = &scene->state->ion;
    return (struct weir_ion_camera){
        .id = weir_arena_printf(scene->arena, "%s:%s:%s", ion->name, scene->doc->name, name),
        .project = ion->project,
        .ion = ion->name,
        .pipeline = scene->doc->name,
        .name = name,
        .kind = said_text(scene->source, "kind", scene->arena),
        .mode = ion->mode,
        .state = (char *)"unknown",
        .health = (char *)"[]",
        .fps = NAN,
        .fps_expected =
            scene->options.fps > 0 && !scene->options.key_frames ? scene->options.fps : NAN,
        .width = WEIR_INT_NONE,
        .height = WEIR_INT_NONE,
        .age_ms = WEIR_INT_NONE,
        .clock_off_ms = WEIR_INT_NONE,
        .lost_after_ms = 1000 * scene->options.lost_after_s,
        .unwell_after_ms = 1000 * scene->options.unwell_after_s};
}

/* ---- the view ----------------------------------------------------------------------------------- */

/* Options as they are written, or their defaults. A document that is older than this version may be refused by it. */
static void read_options(struct scene *scene)
{
    struct weir_configured source, sinks[WEIR_ENDPOINT_SINKS_MAX];
    struct weir_error ignored;
    size_t n_sinks;
    scene->options = (struct weir_source_video){.lost_after_s = 30, .unwell_after_s = 60};
    if (json_is_array(json_object_get(scene->source, "cameras")) &&
        weir_endpoints_read(scene->source, NULL, "$", scene->arena, &source, sinks, &n_sinks,
                            &ignored) == WEIR_OK) {
        scene->options = *(const struct weir_source_video *)source.options;
    }
}

static void open_scene(struct scene *scene, int64_t since_ms)
{
    const struct weir_ion_state *state = scene->state;
    const char *source = scene->doc->source;
    scene->pipeline = weir_ion_pipeline_of(state, scene->doc->name);
    scene->source = source != NULL ? json_loads(source, 0, NULL) : NULL;
    scene->said = WEIR_ARENA_ARRAY(scene->arena, state->n_replicas + 1, json_t *);
    read_options(scene);
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_ion_replica *replica = &state->replicas[i];
        bool is_heard =
            scene->now_ms - WEIR_MAX(replica->time_ms, since_ms) < WEIR_REPLICA_SILENT_MS;
        bool is_ours = scene->pipeline != NULL &&
                       strcmp(replica->pipeline, scene->doc->name) == 0 &&
                       weir_ion_replica_is_of(replica->replica, scene->pipeline->job);
        scene->said[i] = is_heard && is_ours && replica->source != NULL
                             ? json_loads(replica->source, JSON_DECODE_ANY, NULL)
                             : NULL;
    }
}

static void close_scene(struct scene *scene)
{
    for (size_t i = 0; i < scene->state->n_replicas; i++) {
        json_decref(scene->said[i]);
    }
    json_decref(scene->source);
}

static void add_cameras(struct scene *scene, struct weir_ion_camera *out, size_t *n)
{
    const json_t *list = json_object_get(scene->source, "cameras"), *written;
    size_t i;
    json_array_foreach(list, i, written)
    {
        char *name = said_text(written, "name", scene->arena);
        if (name == NULL) {
            continue;
        }
        struct weir_ion_camera *camera = &out[(*n)++];
        *camera = new_camera(scene, name);
        const json_t *said = report_of(scene, camera);
        if (said != NULL) {
            take_report(scene, said, camera);
        } else {
            camera->cure = cure_of_silence(scene);
        }
    }
}

void weir_ion_cameras(const struct weir_ion_state *state, int64_t now_ms, int64_t since_ms,
                      struct weir_arena *arena, struct weir_ion_camera **out, size_t *out_n)
{
    const struct weir_ion_doc *doc = &state->doc;
    struct scene *scenes = WEIR_ARENA_ARRAY(arena, doc->n_pipelines + 1, struct scene);
    size_t n = 0, room = 0;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        scenes[i] = (struct scene){
            .state = state, .doc = &doc->pipelines[i], .now_ms = now_ms, .arena = arena};
        open_scene(&scenes[i], since_ms);
        room += json_array_size(json_object_get(scenes[i].source, "cameras"));
    }
    struct weir_ion_camera *cameras = WEIR_ARENA_ARRAY(arena, room + 1, struct weir_ion_camera);
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        add_cameras(&scenes[i], cameras, &n);
        close_scene(&scenes[i]);
    }
    *out = cameras;
    *out_n = n;
}

/* ---- what is counted ---------------------------------------------------------------------------- */

static weir_status count_one(struct weir_txn *txn, int64_t from, struct weir_ion_camera *camera,
                             struct weir_error *err)
{
    const struct weir_bind binds[] = {
        WEIR_BIND_TEXT("ion", camera->ion), WEIR_BIND_TEXT("pipeline", camera->pipeline),
        WEIR_BIND_TEXT("camera", camera->name), WEIR_BIND_INT("from", from)};
    WEIR_TRY(weir_txn_query_int(txn, sql_decided, binds, 4, 0, &camera->n_decided, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_unknown, binds, 4, 0, &camera->n_unknown, err));
    return weir_txn_query_int(
        txn, sql_last,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", camera->ion), WEIR_BIND_TEXT("camera", camera->name)), 0,
        &camera->last_decision_ms, err);
}

/* Cameras of a source that has no list of them, behind the n of *in_out. */
static weir_status add_decided(struct weir_txn *txn, struct scene *scene, int64_t from,
                               struct weir_ion_camera **in_out, size_t *n, struct weir_error *err)
{
    char **names;
    size_t n_names;
    WEIR_TRY(weir_txn_query_texts(txn, sql_names,
                                  WEIR_BINDS(WEIR_BIND_TEXT("ion", scene->state->ion.name),
                                             WEIR_BIND_TEXT("pipeline", scene->doc->name),
                                             WEIR_BIND_INT("from", from),
                                             WEIR_BIND_INT("max", WEIR_CAMERAS_DECIDED_MAX)),
                                  scene->arena, &names, &n_names, err));
    struct weir_ion_camera *all =
        WEIR_ARENA_ARRAY(scene->arena, *n + n_names + 1, struct weir_ion_camera);
    if (*n > 0) {
        memcpy(all, *in_out, *n * sizeof *all);
    }
    for (size_t i = 0; i < n_names; i++) {
        all[(*n)++] = new_camera(scene, names[i]);
    }
    *in_out = all;
    return WEIR_OK;
}

weir_status weir_ion_cameras_load(struct weir_txn *txn, const struct weir_ion_state *state,
                                  int64_t now_ms, struct weir_arena *arena,
                                  struct weir_ion_camera **out, size_t *out_n,
                                  struct weir_error *err)
{
    int64_t from = now_ms / MINUTE_MS - WEIR_CAMERA_RECENT_MIN;
    struct weir_ion_camera *cameras;
    size_t n;
    weir_ion_cameras(state, now_ms, 0, arena, &cameras, &n);
    for (size_t i = 0; i < state->doc.n_pipelines; i++) {
        struct scene scene = {.state = state, .doc = &state->doc.pipelines[i], .arena = arena};
        const char *source = scene.doc->source;
        scene.source = source != NULL ? json_loads(source, 0, NULL) : NULL;
        bool has_list = scene.source == NULL || json_object_get(scene.source, "cameras") != NULL;
        weir_status status = has_list ? WEIR_OK : add_decided(txn, &scene, from, &cameras, &n, err);
        json_decref(scene.source);
        WEIR_TRY(status);
    }
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(count_one(txn, from, &cameras[i], err));
    }
    *out = cameras;
    *out_n = n;
    return WEIR_OK;
}
