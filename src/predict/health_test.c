/* Drift: a replica reports when light changes, when a classifier is less sure, when a camera froze. */
#include "predict/health.h"

#include "predict/farthest.h"
#include "predict/model.h"
#include "predict/test_support.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define N_CAMERAS 40

static struct test_dir dir;
static struct test_server *server;

/* What the brightness of the test's pictures is like, as training would have found it. */
static char *baseline_text(struct weir_arena *arena)
{
    struct weir_histogram hist;
    double values[400];
    for (int i = 0; i < 400; i++) {
        char bytes[1024];
        double sum = 0;
        size_t len = test_picture(i % 10, 100 + i, bytes);
        for (size_t k = len - TEST_SIDE * TEST_SIDE; k < len; k++) {
            sum += (unsigned char)bytes[k];
        }
        values[i] = sum / (TEST_SIDE * TEST_SIDE) / 255;
    }
    ck_assert_int_eq(weir_histogram_from_values(&hist, values, 400), WEIR_OK);
    return weir_arena_printf(arena, "{\"brightness\":%s}", weir_histogram_to_text(&hist, arena));
}

/* Every camera gives one value per interval, so a window is as many cameras. */
static void put_round(int round, int n_cameras, int brighter)
{
    for (int camera = 0; camera < n_cameras; camera++) {
        char bytes[1024], name[16];
        size_t len = test_picture(camera % 10, 1000 * round + camera, bytes);
        for (size_t k = len - TEST_SIDE * TEST_SIDE; k < len; k++) {
            bytes[k] = (char)(unsigned char)WEIR_MIN(255, (unsigned char)bytes[k] + brighter);
        }
        (void)snprintf(name, sizeof name, "cam-%02d", camera);
        test_put_frame(&dir, name, round, bytes, len);
    }
}

static size_t n_reports(bool drifted)
{
    size_t n = 0, i;
    json_t *reports = test_server_health_reports(server), *report;
    json_array_foreach(reports, i, report)
    {
        n += json_is_true(json_object_get(report, "drifted")) == drifted;
    }
    json_decref(reports);
    return n;
}

/* The first report of drift; borrowed from the reports. */
static const json_t *first_drift(const json_t *reports)
{
    size_t i;
    json_t *report;
    json_array_foreach(reports, i, report)
    {
        if (json_is_true(json_object_get(report, "drifted"))) {
            return report;
        }
    }
    return NULL;
}

static bool has_drift_report(void *context)
{
    (void)context;
    return n_reports(true) > 0;
}

/* A replica that looks at every frame, and has a window of one for each camera. */
static struct predict_spec spec;

static struct replica *start_watched(struct weir_arena *arena)
{
    struct weir_error err = {0};
    struct replica *replica;
    const char *path =
        test_write_spec(&dir, test_server_port(server), test_directory_source(&dir), NULL);
    ck_assert_int_eq(predict_spec_load(path, arena, &spec, &err), WEIR_OK);
    spec.health_window = N_CAMERAS;
    spec.health_interval_ms = 0;
    spec.health_frozen_after_ms = 0;
    ck_assert_int_eq(replica_start(&spec, &replica, &err), WEIR_OK);
    return replica;
}

START_TEST(a_change_of_light_is_reported_once_it_is_confirmed)
{
    struct weir_arena arena;
    test_dir_make(&dir);
    weir_arena_init(&arena, 0);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-1"), 1, baseline_text(&arena));
    test_server_deploy(
        server, test_deployment(server, &dir, test_path(&dir, "model-1"), 6, 10, 4, 1, true));
    struct replica *replica = start_watched(&arena);
    for (int round = 0; round < 5; round++) {
        put_round(round, N_CAMERAS, 0);
    }
    test_wait_for_decisions(server, 5 * N_CAMERAS);
    ck_assert_uint_eq(n_reports(true), 0);
    for (int round = 5; round < 10; round++) {
        put_round(round, N_CAMERAS, 60);
    }
    ck_assert(test_wait(has_drift_report, NULL));
    json_t *reports = test_server_health_reports(server);
    const json_t *report = first_drift(reports);
    ck_assert_str_eq(test_text(report, "signal"), "brightness");
    ck_assert_str_eq(test_text(report, "ion"), "building");
    ck_assert_int_eq(test_int(report, "model_version"), 6);
    ck_assert_int_eq(test_int(report, "n_samples"), N_CAMERAS);
    ck_assert_double_le(json_number_value(json_object_get(report, "p_value")), 0.001);
    const json_t *detail = json_object_get(report, "detail");
    ck_assert_uint_eq(json_array_size(json_object_get(json_object_get(detail, "live"), "counts")),
                      WEIR_HISTOGRAM_NORMAL_BINS);
    const json_t *ks = json_object_get(json_object_get(detail, "distances"), "ks");
    ck_assert_double_gt(json_number_value(ks), json_number_value(json_object_get(
                                                   json_object_get(detail, "limits"), "ks")));
    const json_t *far = json_object_get(detail, "farthest");
    ck_assert_uint_eq(json_array_size(far), FARTHEST_MAX);
    for (size_t i = 0; i < FARTHEST_MAX; i++) {
        const json_t *frame = json_array_get(far, i);
        ck_assert_int_ge(test_int(frame, "frame"), 5); /* of the brighter rounds */
        ck_assert(strncmp(test_text(frame, "camera"), "cam-", 4) == 0);
        ck_assert_double_gt(json_number_value(json_object_get(frame, "sigmas")), 1);
    }
    json_decref(reports);
    replica_stop(replica);
    test_server_stop(server);
    predict_spec_fini(&spec);
    weir_arena_fini(&arena);
    test_dir_drop(&dir);
}

END_TEST

/* What the model thinks of the test's pictures: the probabilities of its likeliest labels. */
static char *probabilities_text(const char *path, struct weir_arena *arena)
{
    struct weir_histogram hist;
    struct model *model;
    struct weir_error err = {0};
    double values[400];
    const struct model_name name = {"sorter", "i", "b", 1, NULL, NULL};
    ck_assert_msg(model_load(path, &name, 1, &model, &err) == WEIR_OK, "%s", err.message);
    for (int i = 0; i < 400; i++) {
        char bytes[1024];
        struct weir_image image = {0};
        const float *probabilities;
        double brightness;
        size_t len = test_picture(i % 10, 100 + i, bytes);
        ck_assert_int_eq(
            weir_image_decode_within(bytes, len, &weir_image_limits_frame, &image, &err), WEIR_OK);
        ck_assert_int_eq(model_put(model, 0, &image, &brightness, &err), WEIR_OK);
        ck_assert_int_eq(model_run(model, 1, &probabilities, &err), WEIR_OK);
        values[i] = (double)fmaxf(probabilities[0], probabilities[1]);
        weir_image_fini(&image);
    }
    model_unref(model);
    ck_assert_int_eq(weir_histogram_from_values(&hist, values, 400), WEIR_OK);
    return weir_arena_printf(arena, "{\"score\":%s}", weir_histogram_to_text(&hist, arena));
}

/* Nothing but the score is in this baseline: it alone can tell. */
START_TEST(a_classifier_whose_probabilities_change_is_reported)
{
    struct weir_arena arena;
    test_dir_make(&dir);
    weir_arena_init(&arena, 0);
    server = test_server_start(&dir, 0);
    const char *model = weir_arena_strdup(&arena, test_path(&dir, "model-1"));
    test_write_classifier(model, 4, NULL);
    test_write_classifier(model, 4, probabilities_text(model, &arena));
    test_server_deploy(server, test_classifier_deployment(server, model, 6, NULL));
    struct replica *replica = start_watched(&arena);
    for (int round = 0; round < 5; round++) {
        put_round(round, N_CAMERAS, 0);
    }
    test_wait_for_decisions(server, 5 * N_CAMERAS);
    ck_assert_uint_eq(n_reports(true), 0);
    for (int round = 5; round < 10; round++) {
        put_round(round, N_CAMERAS, 110); /* nearly white: little is left to tell them by */
    }
    ck_assert(test_wait(has_drift_report, NULL));
    json_t *reports = test_server_health_reports(server);
    const json_t *report = first_drift(reports);
    ck_assert_str_eq(test_text(report, "signal"), "score");
    ck_assert_int_eq(test_int(report, "model_version"), 6);
    json_decref(reports);
    replica_stop(replica);
    test_server_stop(server);
    predict_spec_fini(&spec);
    weir_arena_fini(&arena);
    test_dir_drop(&dir);
}

END_TEST

static bool is_frozen_told(void *context)
{
    bool is_told = false;
    json_t *reports = test_server_health_reports(server), *report;
    size_t i;
    (void)context;
    json_array_foreach(reports, i, report)
    {
        const json_t *cameras = json_object_get(json_object_get(report, "detail"), "cameras");
        is_told = is_told || (strcmp(test_text(report, "signal"), "frozen") == 0 &&
                              json_is_true(json_object_get(report, "drifted")) &&
                              strcmp(json_string_value(json_array_get(cameras, 0)), "stuck") == 0);
    }
    json_decref(reports);
    return is_told;
}

/* A model without any baseline is enough. */
START_TEST(a_camera_that_shows_the_same_picture_is_never_healthy)
{
    struct weir_arena arena;
    char bytes[1024];
    test_dir_make(&dir);
    weir_arena_init(&arena, 0);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-1"), 1, NULL);
    test_server_deploy(
        server, test_deployment(server, &dir, test_path(&dir, "model-1"), 6, 10, 4, 1, true));
    struct replica *replica = start_watched(&arena);
    for (int round = 0; round < 15; round++) {
        put_round(round, 2, 0);
    }
    test_wait_for_decisions(server, 30);
    ck_assert(!is_frozen_told(NULL));
    size_t len = test_picture(1, 7, bytes);
    for (int frame = 0; frame < WEIR_FROZEN_FRAMES; frame++) {
        test_put_frame(&dir, "stuck", frame, bytes, len);
    }
    ck_assert(test_wait(is_frozen_told, NULL));
    replica_stop(replica);
    test_server_stop(server);
    predict_spec_fini(&spec);
    weir_arena_fini(&arena);
    test_dir_drop(&dir);
}

END_TEST

WEIR_TEST_MAIN("health", a_camera_that_shows_the_same_picture_is_never_healthy,
               a_change_of_light_is_reported_once_it_is_confirmed,
               a_classifier_whose_probabilities_change_is_reported)
