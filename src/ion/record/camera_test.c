/* What is said of cameras is what a plain model says, over random reports; and any report leaves the view in order. */
#include "ion/camera.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "base/view.h"
#include "ion/decision.h"
#include "ion/ion_fixture.h"
#include "store/store_fixture.h"

#include <math.h>
#include <string.h>

#define NOW        ((int64_t)1800000000000)
#define N_CAMERAS  5
#define N_REPLICAS 3
#define N_ROUNDS   400

static const char *const names[N_CAMERAS] = {"door-1", "Außentür \"Süd\"", "カメラ/3", "a:b",
                                             "\\x"};

/** What a replica knows of a camera. */
struct fact {
    bool is_said, is_clock_bad, has_failed;
    const char *state, *health;
    int64_t since_ms, lost_ms, health_ms, clock_ms, age_ms, period_ms;
    const char *error, *cause;
};

struct world {
    struct weir_arena *arena;
    struct weir_rng *rng;
    struct weir_ion_state state;
    struct weir_ion_doc_pipeline doc;
    struct weir_ion_pipeline pipeline;
    struct weir_ion_replica replicas[N_REPLICAS];
    struct fact facts[N_REPLICAS][N_CAMERAS];
    double fps;
};

static uint64_t below(struct world *world, uint64_t n)
{
    return weir_rng_below(world->rng, n);
}

static json_t *time_json(int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    weir_time_format(time_ms, text);
    return time_ms != 0 ? json_string(text) : json_null();
}

static struct fact make_fact(struct world *world)
{
    static const char *const states[] = {"live", "live", "live", "connecting", "lost", "ended"};
    static const char *const healths[] = {"well",   "well",  "black",
                                          "frozen", "moved", "wrong clock"};
    static const char *const errors[][2] = {
        {"UNAUTH", "the camera wants a user and a password"},
        {"UNAVAILABLE", "cannot connect to 192.0.2.7 port 554: Connection refused"},
        {"TIMEOUT", "the camera has sent no picture for 60 s"},
        {"INTERNAL", "nobody knows ☹"}};
    size_t i_error = below(world, 4);
    struct fact fact = {.is_said = below(world, 5) != 0,
                        .state = states[below(world, 6)],
                        .health = "well",
                        .since_ms = NOW - 1 - (int64_t)below(world, 100000),
                        .age_ms = (int64_t)below(world, 4) == 0 ? 200000 : 80,
                        .period_ms = below(world, 3) == 0 ? 60000 : 100,
                        .has_failed = below(world, 2) == 0,
                        .cause = errors[i_error][0],
                        .error = errors[i_error][1]};
    if (strcmp(fact.state, "live") == 0) {
        fact.health = healths[below(world, 6)];
        fact.is_clock_bad = strcmp(fact.health, "wrong clock") == 0 || below(world, 4) == 0;
        fact.health_ms = strcmp(fact.health, "well") == 0 || strcmp(fact.health, "wrong clock") == 0
                             ? 0
                             : NOW - 1 - (int64_t)below(world, 90000);
        fact.clock_ms = fact.is_clock_bad ? NOW - 1 - (int64_t)below(world, 90000) : 0;
    } else {
        fact.has_failed = fact.has_failed || strcmp(fact.state, "connecting") != 0;
        fact.lost_ms = fact.has_failed ? fact.since_ms - (int64_t)below(world, 50000) : 0;
    }
    return fact;
}

static json_t *fact_to_json(const struct fact *fact)
{
    json_t *json =
        json_pack("{s:s,s:s,s:I,s:[i,i],s:f}", "state", fact->state, "health", fact->health,
                  "period_ms", (json_int_t)fact->period_ms, "size", 1920, 1080, "fps", 9.5);
    json_object_set_new(json, "since", time_json(fact->since_ms));
    json_object_set_new(json, "lost_since", time_json(fact->lost_ms));
    json_object_set_new(json, "health_since", time_json(fact->health_ms));
    json_object_set_new(json, "clock_since", time_json(fact->clock_ms));
    json_object_set_new(json, "age_ms", json_integer(fact->age_ms));
    if (fact->has_failed) {
        json_object_set_new(json, "error", json_string(fact->error));
        json_object_set_new(json, "cause", json_string(fact->cause));
    }
    return json;
}

static void make_world(struct world *world)
{
    json_t *source = json_pack("{s:s,s:[]}", "kind", "rtsp", "cameras");
    world->fps = below(world, 2) == 0 ? 10 : 0;
    json_object_set_new(source, "fps", json_real(world->fps));
    for (size_t i = 0; i < N_CAMERAS; i++) {
        json_array_append_new(json_object_get(source, "cameras"),
                              json_pack("{s:s,s:s}", "name", names[i], "url", "rtsp://h/"));
    }
    world->doc = (struct weir_ion_doc_pipeline){.name = (char *)"see",
                                                .type = WEIR_PIPELINE_PREDICTION,
                                                .source = weir_json_text(source, world->arena)};
    json_decref(source);
    world->pipeline = (struct weir_ion_pipeline){.name = (char *)"see",
                                                 .type = (char *)"prediction",
                                                 .job = (char *)"j",
                                                 .service.candidate = (char *)"c"};
    for (size_t r = 0; r < N_REPLICAS; r++) {
        json_t *said = json_pack("{s:{}}", "cameras");
        for (size_t i = 0; i < N_CAMERAS; i++) {
            world->facts[r][i] = make_fact(world);
            if (world->facts[r][i].is_said) {
                json_object_set_new(json_object_get(said, "cameras"), names[i],
                                    fact_to_json(&world->facts[r][i]));
            }
        }
        world->replicas[r] = (struct weir_ion_replica){
            .pipeline = (char *)"see",
            .replica =
                weir_arena_printf(world->arena, "%s-%zu", below(world, 5) == 0 ? "old" : "j", r),
            .source = weir_json_text(said, world->arena),
            .time_ms = NOW - 1 - (int64_t)r - (below(world, 4) == 0 ? 20000 : 0)};
        json_decref(said);
    }
    world->state = (struct weir_ion_state){
        .ion = {.name = (char *)"site", .project = (char *)"p", .mode = (char *)"sandbox"},
        .doc = {.pipelines = &world->doc, .n_pipelines = 1},
        .pipelines = &world->pipeline,
        .n_pipelines = 1,
        .replicas = world->replicas,
        .n_replicas = N_REPLICAS};
}

/* ---- the model -------------------------------------------------------------------------------- */

/* The report that counts: of a replica of the job that is not silent, the newest (they are in that order). */
static const struct fact *model_report(const struct world *world, size_t i, int64_t *out_time_ms)
{
    for (size_t r = 0; r < N_REPLICAS; r++) {
        const struct weir_ion_replica *replica = &world->replicas[r];
        if (world->facts[r][i].is_said && replica->replica[0] == 'j' &&
            NOW - replica->time_ms < WEIR_REPLICA_SILENT_MS) {
            *out_time_ms = replica->time_ms;
            return &world->facts[r][i];
        }
    }
    return NULL;
}

struct expected {
    const char *state, *health;
    int64_t since_ms, lost_ms, unwell_ms;
    bool has_error;
};

static struct expected model_live(const struct world *world, const struct fact *fact,
                                  int64_t time_ms)
{
    static char health[64];
    int64_t stale_ms = 5 * (fact->period_ms > 100 || world->fps == 0 ? fact->period_ms : 100);
    if (fact->age_ms > (stale_ms > 30000 ? stale_ms : 30000)) {
        int64_t last_ms = time_ms - fact->age_ms;
        return (struct expected){"lost", "[]", last_ms, last_ms, 0, false};
    }
    int64_t first_ms = fact->health_ms != 0 ? fact->health_ms : INT64_MAX;
    if (fact->clock_ms != 0 && fact->clock_ms < first_ms) {
        first_ms = fact->clock_ms;
    }
    if (first_ms == INT64_MAX) {
        return (struct expected){"sees", "[]", fact->since_ms, 0, 0, false};
    }
    const char *picture = strcmp(fact->health, "black") == 0 ? "dark" : fact->health;
    (void)snprintf(health, sizeof health,
                   fact->health_ms == 0  ? "[\"clock\"]"
                   : fact->clock_ms == 0 ? "[\"%s\"]"
                                         : "[\"%s\",\"clock\"]",
                   picture);
    return (struct expected){"unwell", health, first_ms, 0, first_ms, false};
}

static struct expected expect_of(const struct world *world, size_t i)
{
    int64_t time_ms;
    const struct fact *fact = model_report(world, i, &time_ms);
    if (fact == NULL) {
        return (struct expected){.state = "unknown", .health = "[]"};
    }
    if (strcmp(fact->state, "live") == 0) {
        return model_live(world, fact, time_ms);
    }
    if (!fact->has_failed) {
        return (struct expected){"connecting", "[]", fact->since_ms, fact->since_ms, 0, false};
    }
    bool is_over = strcmp(fact->state, "ended") == 0;
    return (struct expected){"lost", "[]", fact->lost_ms, is_over ? 0 : fact->lost_ms, 0, true};
}

static void check_camera(const struct world *world, size_t i, const struct weir_ion_camera *camera)
{
    struct expected expected = expect_of(world, i);
    ck_assert_str_eq(camera->name, names[i]);
    ck_assert_str_eq(camera->id, weir_arena_printf(world->arena, "site:see:%s", names[i]));
    ck_assert_str_eq(camera->state, expected.state);
    ck_assert_str_eq(camera->health, expected.health);
    ck_assert_int_eq(camera->since_ms, expected.since_ms);
    ck_assert_int_eq(camera->lost_ms, expected.lost_ms);
    ck_assert_int_eq(camera->unwell_ms, expected.unwell_ms);
    ck_assert_int_eq(camera->error != NULL, expected.has_error);
    bool is_known = strcmp(expected.state, "unknown") != 0;
    ck_assert_int_eq(camera->width, is_known ? 1920 : WEIR_INT_NONE);
    ck_assert_int_eq(camera->replica != NULL, is_known);
    ck_assert_str_eq(camera->mode, "sandbox");
    ck_assert_int_eq(camera->lost_after_ms, 30000);
}

START_TEST(cameras_stand_as_their_replicas_say)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int round = 0; round < N_ROUNDS; round++) {
        struct weir_arena arena;
        struct weir_ion_camera *cameras;
        size_t n;
        weir_arena_init(&arena, 0);
        struct world world = {.arena = &arena, .rng = &rng};
        make_world(&world);
        weir_ion_cameras(&world.state, NOW, 0, &arena, &cameras, &n);
        ck_assert_uint_eq(n, N_CAMERAS);
        for (size_t i = 0; i < n; i++) {
            check_camera(&world, i, &cameras[i]);
        }
        weir_arena_fini(&arena);
    }
}

END_TEST

/* ---- hostile reports ---------------------------------------------------------------------------- */

static json_t *any_json(struct weir_rng *rng, int depth)
{
    static const char *const texts[] = {
        "live",  "lost", "ended", "connecting", "black",
        "moved", "well", "",      "9999-99-99", "2026-01-01T00:00:00Z"};
    static const char *const members[] = {
        "state", "since", "lost_since", "health",    "cameras", "door-1", "カメラ/3",
        "size",  "fps",   "age_ms",     "period_ms", "error",   "cause",  "clock_since"};
    json_t *json;
    switch (weir_rng_below(rng, depth > 3 ? 5 : 8)) {
    case 0:
        return json_integer((json_int_t)weir_rng_u64(rng));
    case 1:
        return json_real(ldexp(weir_rng_f64(rng) - 0.5, (int)weir_rng_below(rng, 1000)));
    case 2:
        return json_null();
    case 3:
        return json_boolean(weir_rng_below(rng, 2));
    case 4:
        return json_string(texts[weir_rng_below(rng, WEIR_ARRAY_LEN(texts))]);
    case 5:
        json = json_array();
        for (size_t i = weir_rng_below(rng, 4); i > 0; i--) {
            json_array_append_new(json, any_json(rng, depth + 1));
        }
        return json;
    default:
        json = json_object();
        for (size_t i = weir_rng_below(rng, 12); i > 0; i--) {
            json_object_set_new(json, members[weir_rng_below(rng, WEIR_ARRAY_LEN(members))],
                                any_json(rng, depth + 1));
        }
        return json;
    }
}

/* As a report that is right but for some members, which are anything. */
static json_t *hostile_report(struct world *world)
{
    json_t *report = json_loads(world->replicas[0].source, 0, NULL), *camera;
    const char *name;
    if (below(world, 4) == 0) {
        json_decref(report);
        return any_json(world->rng, 0);
    }
    json_object_foreach(json_object_get(report, "cameras"), name, camera)
    {
        json_t *noise = any_json(world->rng, 0);
        if (json_is_object(noise)) {
            json_object_update(camera, noise);
        }
        json_decref(noise);
    }
    return report;
}

START_TEST(whatever_a_replica_reports_the_view_is_in_order)
{
    static const char states[] = " sees unwell lost connecting unknown ";
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int round = 0; round < N_ROUNDS; round++) {
        struct weir_arena arena;
        struct weir_ion_camera *cameras;
        size_t n;
        weir_arena_init(&arena, 0);
        struct world world = {.arena = &arena, .rng = &rng};
        make_world(&world);
        json_t *report = hostile_report(&world);
        world.replicas[0].source = json_dumps(report, JSON_ENCODE_ANY);
        world.replicas[0].replica = (char *)"j-0";
        world.replicas[0].time_ms = NOW - 1;
        weir_ion_cameras(&world.state, NOW, 0, &arena, &cameras, &n);
        ck_assert_uint_eq(n, N_CAMERAS);
        for (size_t i = 0; i < n; i++) {
            json_t *json = weir_record_to_json(&weir_ion_camera_resource, &cameras[i]);
            ck_assert(json_is_array(json_object_get(json, "health")));
            ck_assert_ptr_nonnull(
                strstr(states, weir_arena_printf(&arena, " %s ", cameras[i].state)));
            ck_assert(cameras[i].frames >= 0 && cameras[i].lost_ms >= 0);
            ck_assert(cameras[i].unwell_ms == 0 || strcmp(cameras[i].state, "unwell") == 0);
            json_decref(json);
        }
        free(world.replicas[0].source);
        json_decref(report);
        weir_arena_fini(&arena);
    }
}

END_TEST

START_TEST(a_lost_camera_has_a_cure_by_its_cause_and_its_words)
{
    static const struct {
        const char *cause, *error, *cure;
    } rows[] = {
        {"UNAUTH", "the camera refuses the user or the password", "secret"},
        {"UNAVAILABLE", "cannot connect to 192.0.2.7 port 554: Connection refused", "port"},
        {"UNAVAILABLE", "cannot connect to 192.0.2.7 port 554: No route to host", "no way"},
        {"NOT_FOUND", "the camera's name is not known: Name or service not known", "address"},
        {"NOT_FOUND", "the camera has no stream at the path of this address", "path of its url"},
        {"TIMEOUT", "the camera has sent no picture for 60 s", "connected and sends no frames"},
        {"UNSUPPORTED", "the camera sends VP9: set its stream to H.264, H.265 or JPEG", "H.264"},
        {"UNSUPPORTED", "the libraries of ffmpeg here have no decoder for vp9", "libraries"},
        {"LIMIT", "its frames have 9000 × 9000 pixels, more than max_pixels (1)", "max_pixels"},
        {"LIMIT", "a picture of more than 32 MiB", "so much at once"},
        {"CORRUPT", "the camera sends what is not RTSP: is this its RTSP port?", "port"},
        {"INVALID", "/dev/zero is no regular file", "a file of video"},
        {"UNAVAILABLE", "the camera answers 503", "restart it"},
        {"UNSUPPORTED", "the camera points to another address (302): give that one", "curl -I"},
        {"UNSUPPORTED", "its answer is no stream of pictures, and has no length", "MJPEG"},
        {"CORRUPT", "it does not answer in HTTP/1", "kind rtsp"},
        {"CORRUPT", "its stream loses its boundary", "JPEG"},
        {"CORRUPT", "it is no video file that the libraries of ffmpeg know", "weir-camera"},
        {"CORRUPT", "the address gives text/html, which is no picture", "page"},
        {"CORRUPT", "none of the pictures that it has sent for 20 s can be decoded", "encryption"},
        {"END", "the file is over", "loop"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        const char *cure = weir_camera_cure(rows[i].cause, rows[i].error);
        ck_assert_ptr_nonnull(cure);
        ck_assert_msg(strstr(cure, rows[i].cure) != NULL, "%s: %s", rows[i].error, cure);
    }
    ck_assert_ptr_null(weir_camera_cure("INTERNAL", "x"));
    ck_assert_ptr_null(weir_camera_cure(NULL, NULL));
    ck_assert_ptr_null(weir_camera_health("well"));
}

END_TEST

/* ---- what is counted ---------------------------------------------------------------------------- */

#define N_DECISIONS 300
#define N_AHEAD     80

static struct weir_decision decisions[N_DECISIONS];

static weir_status store_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    size_t n_stored;
    (void)context;
    for (size_t i = 0; i < N_DECISIONS; i++) {
        WEIR_TRY(weir_decisions_store(txn, &decisions[i], 1, NULL, 0, &n_stored, err));
    }
    return WEIR_OK;
}

struct counted {
    struct world *world;
    struct weir_ion_camera *cameras;
    size_t n;
};

static weir_status load_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct counted *counted = context;
    return weir_ion_cameras_load(txn, &counted->world->state, NOW, counted->world->arena,
                                 &counted->cameras, &counted->n, err);
}

static void check_counts(const struct weir_ion_camera *camera)
{
    int64_t n = 0, n_unknown = 0, last_ms = 0;
    for (size_t i = 0; i < N_DECISIONS; i++) {
        const struct weir_decision *one = &decisions[i];
        bool is_of = strcmp(one->ion, "site") == 0 && strcmp(one->camera, camera->name) == 0;
        bool is_here = is_of && strcmp(one->pipeline, "see") == 0 &&
                       one->time_ms / 60000 > NOW / 60000 - WEIR_CAMERA_RECENT_MIN &&
                       one->time_ms <= NOW;
        n += is_here;
        n_unknown += is_here && strcmp(one->verdict, "unknown") == 0;
        last_ms = is_of && one->time_ms > last_ms ? one->time_ms : last_ms;
    }
    ck_assert_int_eq(camera->n_decided, n);
    ck_assert_int_eq(camera->n_unknown, n_unknown);
    ck_assert_int_eq(camera->last_decision_ms, last_ms);
}

START_TEST(what_cameras_decided_lately_is_counted_by_minutes)
{
    struct store_fixture fixture;
    struct weir_rng rng;
    (void)test_seed(&rng);
    fixture_make(&fixture, NULL);
    struct world world = {.arena = &fixture.arena, .rng = &rng};
    make_world(&world);
    for (size_t i = 0; i < N_DECISIONS; i++) {
        decisions[i] = (struct weir_decision){
            .id = weir_arena_printf(&fixture.arena, "d%zu", i),
            .ion = below(&world, 5) == 0 ? (char *)"other" : (char *)"site",
            .pipeline = below(&world, 5) == 0 ? (char *)"q" : (char *)"see",
            .camera = (char *)names[i < N_AHEAD ? 0 : below(&world, N_CAMERAS)],
            .frame = (int64_t)i,
            /* The first by a clock that is a year ahead, then in no order. */
            .time_ms = i < N_AHEAD ? NOW + 365 * 86400000LL + (int64_t)i * 60000
                                   : NOW - (int64_t)below(&world, 100 * 60000),
            .verdict = below(&world, 3) == 0 ? (char *)"unknown" : (char *)"grant"};
    }
    fixture_write(&fixture, store_in, NULL);
    struct counted counted = {.world = &world};
    for (int has_list = 1; has_list >= 0; has_list--) {
        fixture_read(&fixture, load_in, &counted);
        ck_assert_uint_eq(counted.n, N_CAMERAS); /* with so many decisions each has one of late */
        for (size_t i = 0; i < counted.n; i++) {
            check_counts(&counted.cameras[i]);
        }
        world.doc.source = (char *)"{\"kind\":\"directory\",\"path\":\"/frames\"}";
    }
    ck_assert_str_eq(counted.cameras[0].state, "unknown");
    ck_assert_str_eq(counted.cameras[0].kind, "directory");
    fixture_fini(&fixture);
}

END_TEST

WEIR_TEST_MAIN("camera", cameras_stand_as_their_replicas_say,
               whatever_a_replica_reports_the_view_is_in_order,
               a_lost_camera_has_a_cure_by_its_cause_and_its_words,
               what_cameras_decided_lately_is_counted_by_minutes)
