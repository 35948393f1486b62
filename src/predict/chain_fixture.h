/*
 * Chains with a detector in tests: an engine over frames that are drawn, in which people stand on black.
 * The detector finds squares that are bright (find/detector_fixture.h).
 */
#ifndef WEIR_PREDICT_CHAIN_FIXTURE_H
#define WEIR_PREDICT_CHAIN_FIXTURE_H

#include "find/detector_fixture.h"
#include "find/finder.h"
#include "predict/count.h"
#include "predict/engine.h"
#include "predict/outcome.h"
#include "predict/test_support.h"

#include "base/clock.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

#define WIDTH       96
#define HEIGHT      64
#define SCENE_BYTES (WIDTH * HEIGHT + 64)
#define N_PEOPLE    8
#define N_PHOTOS    4
#define T0          INT64_C(1764000000000)

static struct test_dir dir;
static struct weir_error err;
static struct weir_arena arena;

/* ---- scenes ---------------------------------------------------------------------------------- */

/* Somebody at a place. */
struct standing {
    int person, x, y;
};

static size_t draw(const struct standing *people, size_t n, int photo, char out[SCENE_BYTES])
{
    size_t len = (size_t)snprintf(out, SCENE_BYTES, "P5 %d %d 255\n", WIDTH, HEIGHT);
    memset(out + len, 0, WIDTH * HEIGHT);
    for (size_t i = 0; i < n; i++) {
        char face[1024];
        size_t face_len = test_picture(people[i].person, photo, face);
        const char *pixels = face + face_len - TEST_SIDE * TEST_SIDE;
        for (int y = 0; y < TEST_SIDE; y++) {
            for (int x = 0; x < TEST_SIDE; x++) {
                int at_x = people[i].x + x, at_y = people[i].y + y;
                if (at_x >= 0 && at_x < WIDTH && at_y >= 0 && at_y < HEIGHT) {
                    out[len + (size_t)(at_y * WIDTH + at_x)] = pixels[y * TEST_SIDE + x];
                }
            }
        }
    }
    return len + WIDTH * HEIGHT;
}

/* ---- an engine ------------------------------------------------------------------------------- */

#define DETECT                                                                                     \
    "\"decode\",{\"kind\":\"detect\",\"model\":\"squares\",\"as\":\"centernet\",\"threshold\":"    \
    "0.42,\"width\":96,\"height\":64},{\"kind\":\"align\",\"by\":\"box\"},\"embed\",\"match\","

static struct {
    struct predict_spec spec;
    struct serving_slot slot;
    struct intake *intake;
    struct outbox *outbox;
    struct pictures *pictures;
    struct outbox_reader *reader;
    struct engine *engine;
    struct counts *counts;
    json_t *photos;
    struct gallery *gallery;
    size_t n_at_once; /**< Of the next start; 0: 1. */
} it;

static atomic_size_t n_durable; /* Frames. */

static void on_frame(void *context, const struct frame *frame)
{
    (void)context;
    (void)frame;
    atomic_fetch_add(&n_durable, 1);
}

static void on_durable(void *context, void *const *tickets, size_t n)
{
    (void)context;
    engine_durable(it.intake, tickets, n);
}

/* Photos of people who stand somewhere in a picture. */
static json_t *write_photos(void)
{
    json_t *files = json_array();
    for (int i = 0; i < N_PEOPLE * N_PHOTOS; i++) {
        char bytes[SCENE_BYTES], digest[WEIR_SHA256_TEXT_BYTES];
        const struct standing one = {i / N_PHOTOS, 18 + 4 * (i % 5), 14 + 4 * (i % 3)};
        size_t len = draw(&one, 1, i % N_PHOTOS, bytes);
        ck_assert_int_eq(weir_dir_make(test_path(&dir, "people/p%02d", one.person), 0755, &err),
                         WEIR_OK);
        test_write_file(test_path(&dir, "people/p%02d/%d.pgm", one.person, i % N_PHOTOS), bytes,
                        len);
        weir_sha256(bytes, len, digest);
        json_array_append_new(
            files, json_pack("{s:o,s:o,s:s}", "class", json_sprintf("p%02d", one.person), "file",
                             json_sprintf("%d.pgm", i % N_PHOTOS), "sha256", digest));
    }
    return json_pack("{s:o}", "files", files);
}

static struct serving *make_serving(const char *list_text)
{
    const struct model_name model = {.name = "face", .id = "m", .blob = "m", .version = 3};
    const struct model_name squares = {.name = "squares", .id = "d", .blob = "d", .version = 2};
    struct serving_parts parts = {0};
    struct lists lists = {.fallback = VERDICT_GRANT};
    const char *deny[] = {"p07"};
    lists.deny = deny;
    lists.n_deny = 1;
    json_t *list = json_loads(list_text, 0, NULL);
    char model_path[256], detector_path[256];
    (void)snprintf(model_path, sizeof model_path, "%s", test_path(&dir, "model"));
    (void)snprintf(detector_path, sizeof detector_path, "%s", test_path(&dir, "detector.onnx"));
    bool has_model = strstr(list_text, "\"embed\"") != NULL;
    ck_assert_msg(!has_model || model_load(model_path, &model, 8, &parts.model, &err) == WEIR_OK,
                  "%s", err.message);
    ck_assert_msg(stages_create(list, parts.model, &parts.stages, &err) == WEIR_OK, "%s",
                  err.message);
    struct finder_wish wish;
    ck_assert(finder_wish_of(stages_chain(parts.stages), &wish));
    for (; parts.n_finders < WEIR_MAX(it.n_at_once, (size_t)1); parts.n_finders++) {
        ck_assert_msg(finder_load(detector_path, &squares, &wish, &parts.finders[parts.n_finders],
                                  &err) == WEIR_OK,
                      "%s", err.message);
    }
    const struct gallery_request request = {
        .people = {.what = "gallery",
                   .manifest = it.photos,
                   .version = 5,
                   .blob = "g",
                   .photo_dir = test_path(&dir, "people")},
        .embedder = {.model_path = model_path,
                     .model = model,
                     .detector_path = detector_path,
                     .detector = squares,
                     .chain = stages_chain(parts.stages),
                     .store_path = test_path(&dir, "embeddings"),
                     .cache_dir = dir.path},
        .rates = {0.01, 0.01}};
    ck_assert_msg(!has_model || gallery_build(&request, &parts.gallery, &err) == WEIR_OK, "%s",
                  err.message);
    it.gallery = parts.gallery;
    json_decref(list);
    return serving_create(&parts, &lists, 1, 1);
}

/* Begin, or go on where the last one ended. */
static void start(const char *list)
{
    const struct intake_limits limits = {512, 64, 64 << 20};
    it.spec = (struct predict_spec){.ion = (char *)"building", .pipeline = (char *)"entrance"};
    it.spec.host.replica = (char *)"job-0";
    serving_slot_init(&it.slot);
    it.intake = intake_create(&limits);
    it.counts = counts_create(it.intake);
    ck_assert_int_eq(pictures_open(test_path(&dir, "images"), PICTURES_MAX, &it.pictures, &err),
                     WEIR_OK);
    const struct outbox_config outbox = {
        .dir = test_path(&dir, "outbox"), .on_durable = on_durable, .pictures = it.pictures};
    ck_assert_msg(outbox_open(&outbox, &it.outbox, &err) == WEIR_OK, "%s", err.message);
    const struct engine_config engine = {.spec = &it.spec,
                                         .intake = it.intake,
                                         .slot = &it.slot,
                                         .outbox = it.outbox,
                                         .counts = it.counts,
                                         .n_at_once = it.n_at_once,
                                         .present_path = test_path(&dir, "passages.json")};
    serving_slot_publish(&it.slot, make_serving(list));
    ck_assert_int_eq(engine_start(&engine, &it.engine, &err), WEIR_OK);
    intake_open(it.intake);
}

static void stop(void)
{
    intake_close(it.intake);
    engine_stop(it.engine);
    (void)outbox_flush(it.outbox, 10000);
    outbox_close(it.outbox);
    pictures_close(it.pictures);
    serving_slot_fini(&it.slot);
    counts_destroy(it.counts);
    intake_destroy(it.intake);
}

/* Every decision that was ever made durable; a new reference. */
static json_t *all_decisions(void)
{
    json_t *all = json_array(), *some;
    struct outbox *outbox;
    struct outbox_reader *reader;
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"),
                                         .on_durable = on_durable};
    ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
    ck_assert_int_eq(outbox_reader_open(outbox, "test", &reader, &err), WEIR_OK);
    while (outbox_reader_next(reader, 200, 0, &some, &err) == WEIR_OK) {
        json_array_extend(all, some);
        json_decref(some);
        outbox_reader_done(reader);
    }
    outbox_reader_close(reader);
    outbox_close(outbox);
    return all;
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    test_dir_make(&dir);
    test_write_model(test_path(&dir, "model"), 1, NULL);
    detector_fixture_write(test_path(&dir, "detector.onnx"));
    it.photos = write_photos();
    atomic_store(&n_durable, 0);
}

static void tear_down(void)
{
    json_decref(it.photos);
    test_dir_drop(&dir);
    weir_arena_fini(&arena);
}

static void put(const char *camera, int64_t number, int64_t time_ms, const char *bytes, size_t len)
{
    struct frame *frame = frame_create(camera, number);
    frame->bytes = weir_xalloc(len);
    memcpy(frame->bytes, bytes, len);
    frame->n_bytes = len;
    frame->received_ms = time_ms;
    frame->received_ns = weir_mono_ns();
    frame->on_durable = on_frame;
    ck_assert_int_eq(intake_put(it.intake, frame, -1), WEIR_OK);
}

static bool are_durable(void *context)
{
    return atomic_load(&n_durable) >= *(const size_t *)context;
}

#endif
