/* Of each camera one alert of a kind is open while what it is about has lasted for its time, over random histories: it is raised once
 * and resolved once, by itself. */
#include "watch/cameras.h"

#include "base/clock.h"
#include "base/library.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "store/stmt.h"
#include "store/store_fixture.h"

#include <string.h>

#define START     ((int64_t)1800000000000)
#define N_CAMERAS 4
#define N_TICKS   250
#define TICK_MS   5000

enum mood { LIVE, UNWELL, LOST, N_MOODS };

/** A camera as its history has it. */
struct camera {
    enum mood mood;
    int64_t since_ms;
    bool is_told[N_MOODS]; /**< By the model. */
};

static struct weir_arena arena;
static struct camera cameras[N_CAMERAS];
static struct weir_ion_state ion;
static struct weir_ion_doc_pipeline doc;
static struct weir_ion_pipeline pipeline;
static struct weir_ion_replica replica;
static int64_t after_s[N_MOODS];

static void set_up(void)
{
    json_t *source = json_pack("{s:s,s:[]}", "kind", "rtsp", "cameras");
    weir_arena_init(&arena, 0);
    for (int i = 0; i < N_CAMERAS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "door-%d", i);
        cameras[i] = (struct camera){.since_ms = START};
        json_array_append_new(json_object_get(source, "cameras"),
                              json_pack("{s:s,s:s}", "name", name, "url", "rtsp://h/"));
    }
    if (after_s[LOST] >= 0) {
        json_object_set_new(source, "lost_after_s", json_integer(after_s[LOST]));
        json_object_set_new(source, "unwell_after_s", json_integer(after_s[UNWELL]));
    }
    doc = (struct weir_ion_doc_pipeline){.name = (char *)"see",
                                         .type = WEIR_PIPELINE_PREDICTION,
                                         .is_critical = true,
                                         .replicas = 1,
                                         .source = weir_json_text(source, &arena)};
    pipeline = (struct weir_ion_pipeline){.id = (char *)"site:see",
                                          .name = (char *)"see",
                                          .type = (char *)"prediction",
                                          .state = (char *)"SERVING",
                                          .job = (char *)"j",
                                          .service.candidate = (char *)"c"};
    replica = (struct weir_ion_replica){
        .pipeline = (char *)"see", .replica = (char *)"j-0", .state = (char *)"APPLIED"};
    ion = (struct weir_ion_state){.ion = {.name = (char *)"site", .state = (char *)"ACTIVE"},
                                  .doc = {.pipelines = &doc, .n_pipelines = 1},
                                  .pipelines = &pipeline,
                                  .n_pipelines = 1,
                                  .replicas = &replica,
                                  .n_replicas = 1};
    json_decref(source);
}

/* A lost camera is tried again and again, which does not make it lost later. */
static json_t *said_of(const struct camera *camera, int64_t now_ms)
{
    bool is_lost = camera->mood == LOST, is_unwell = camera->mood == UNWELL;
    bool is_tried = is_lost && now_ms / TICK_MS % 2 == 0;
    return json_pack("{s:s,s:o,s:o?,s:o?,s:s,s:s,s:s,s:i}", "state",
                     is_tried  ? "connecting"
                     : is_lost ? "lost"
                               : "live",
                     "since", weir_json_time(is_tried ? now_ms : camera->since_ms), "lost_since",
                     is_lost ? weir_json_time(camera->since_ms) : NULL, "health_since",
                     is_unwell ? weir_json_time(camera->since_ms) : NULL, "health",
                     is_unwell ? "covered" : "well", "error",
                     "the camera refuses the user or the password", "cause", "UNAUTH", "age_ms",
                     20);
}

static void report(int64_t now_ms)
{
    json_t *said = json_pack("{s:{}}", "cameras");
    for (int i = 0; i < N_CAMERAS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "door-%d", i);
        json_object_set_new(json_object_get(said, "cameras"), name, said_of(&cameras[i], now_ms));
    }
    replica.source = weir_json_text(said, &arena);
    replica.time_ms = now_ms;
    json_decref(said);
}

/** A tick, and what came of it in all. */
struct tick {
    struct weir_watch_findings findings;
    int64_t now_ms, n_raised, n_resolved;
    size_t n_open;
};

static weir_status tick_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct tick *tick = context;
    struct weir_alert *alerts;
    WEIR_TRY(weir_watch_sync(txn, &tick->findings, NULL, tick->now_ms, &arena, err));
    WEIR_TRY(weir_txn_query_int(txn, "SELECT count(*) FROM events WHERE kind = 'alert_raised'",
                                WEIR_NO_BINDS, 0, &tick->n_raised, err));
    WEIR_TRY(weir_txn_query_int(txn, "SELECT count(*) FROM events WHERE kind = 'alert_resolved'",
                                WEIR_NO_BINDS, 0, &tick->n_resolved, err));
    return weir_watch_alerts(txn, &arena, &alerts, &tick->n_open, err);
}

/* The model: how many alerts are open now; and those that begin and end. */
static size_t model_tick(int64_t now_ms, int64_t *n_raised, int64_t *n_resolved)
{
    size_t n_open = 0;
    for (int i = 0; i < N_CAMERAS; i++) {
        for (int mood = UNWELL; mood < N_MOODS; mood++) {
            int64_t bound_s = after_s[mood] >= 0 ? after_s[mood] : mood == LOST ? 30 : 60;
            bool is_told = (int)cameras[i].mood == mood && bound_s > 0 &&
                           now_ms - cameras[i].since_ms >= 1000 * bound_s;
            *n_raised += is_told && !cameras[i].is_told[mood];
            *n_resolved += !is_told && cameras[i].is_told[mood];
            cameras[i].is_told[mood] = is_told;
            n_open += is_told;
        }
    }
    return n_open;
}

static void play(struct weir_rng *rng)
{
    struct store_fixture fixture;
    int64_t n_raised = 0, n_resolved = 0;
    set_up();
    fixture_make(&fixture, NULL);
    for (int step = 0; step < N_TICKS; step++) {
        struct tick tick = {.now_ms = START + step * TICK_MS};
        for (int i = 0; i < N_CAMERAS; i++) {
            enum mood mood = step > N_TICKS - 3 ? LIVE : (enum mood)weir_rng_below(rng, N_MOODS);
            bool turns =
                (step > N_TICKS - 3 || weir_rng_below(rng, 12) == 0) && mood != cameras[i].mood;
            cameras[i].since_ms =
                turns ? tick.now_ms - (int64_t)weir_rng_below(rng, TICK_MS) : cameras[i].since_ms;
            cameras[i].mood = turns ? mood : cameras[i].mood;
        }
        report(tick.now_ms);
        const struct weir_watch_seen seen = {.now_ms = tick.now_ms, .ions = &ion, .n_ions = 1};
        weir_watch_find(&seen, &arena, &tick.findings);
        fixture_write(&fixture, tick_in, &tick);
        ck_assert_uint_eq(tick.n_open, model_tick(tick.now_ms, &n_raised, &n_resolved));
        ck_assert_int_eq(tick.n_raised, n_raised);
        ck_assert_int_eq(tick.n_resolved, n_resolved);
    }
    ck_assert_int_eq(n_raised, n_resolved);
    fixture_fini(&fixture);
    weir_arena_fini(&arena);
}

START_TEST(alerts_of_cameras_are_raised_once_and_resolved_once)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    after_s[UNWELL] = after_s[LOST] = -1; /* as it is usual */
    play(&rng);
    if (weir_library_need("libav", "video", NULL) == WEIR_OK) {
        after_s[LOST] = 10 + (int64_t)weir_rng_below(&rng, 50);
        after_s[UNWELL] = 0; /* for ever */
        play(&rng);
    }
}

END_TEST

START_TEST(an_alert_has_the_cameras_own_words_and_what_to_do)
{
    struct weir_watch_findings findings = {0};
    struct weir_watch_seen seen = {.now_ms = START + 60000, .ions = &ion, .n_ions = 1};
    after_s[UNWELL] = after_s[LOST] = -1;
    set_up();
    cameras[1].mood = LOST;
    cameras[2].mood = UNWELL;
    report(seen.now_ms);
    watch_cameras(&seen, &ion, &arena, &findings);
    ck_assert_uint_eq(findings.n, 2);
    ck_assert_str_eq(findings.items[0].key, "camera_lost:site:see:door-1");
    ck_assert_str_eq(findings.items[0].severity, "critical");
    ck_assert_str_eq(findings.items[0].subject, "ion/site");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "refuses the user"));
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "secret"));
    ck_assert_str_eq(findings.items[1].key, "camera_unwell:site:see:door-2");
    ck_assert_ptr_nonnull(strstr(findings.items[1].message, "its picture is covered"));
    findings.n = 0;
    pipeline.paused_by = (char *)"ada";
    watch_cameras(&seen, &ion, &arena, &findings);
    ck_assert_uint_eq(findings.n, 0);
    pipeline.paused_by = NULL;
    seen.now_ms += WEIR_REPLICA_SILENT_MS; /* its replica is silent: told of that */
    watch_cameras(&seen, &ion, &arena, &findings);
    ck_assert_uint_eq(findings.n, 0);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("cameras", alerts_of_cameras_are_raised_once_and_resolved_once,
               an_alert_has_the_cameras_own_words_and_what_to_do)
