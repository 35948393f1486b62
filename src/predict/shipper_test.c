/* What the server will never take is set aside; all the rest arrives, once. */
#include "predict/shipper.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/rng.h"
#include "predict/left.h"
#include "predict/test_support.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct test_dir dir;
static struct test_server *server;
static struct outbox *outbox;
static struct pictures *pictures;
static struct refused *refused;
static struct weir_error err;

static void forget(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

static void set_up(void)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    ck_assert_int_eq(weir_dir_make(test_path(&dir, "replica"), 0700, &err), WEIR_OK);
    const struct outbox_config config = {.dir = test_path(&dir, "replica/outbox"),
                                         .on_durable = forget};
    ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
    ck_assert_int_eq(
        pictures_open(test_path(&dir, "replica/images"), PICTURES_MAX, &pictures, &err), WEIR_OK);
    refused = refused_open(test_path(&dir, "replica"));
}

static void tear_down(void)
{
    refused_close(refused);
    outbox_close(outbox);
    pictures_close(pictures);
    test_server_stop(server);
    test_dir_drop(&dir);
}

static void put_frames(int64_t first, int64_t last)
{
    for (int64_t frame = first; frame <= last; frame++) {
        char id[WEIR_UUID_BYTES];
        (void)snprintf(id, sizeof id, "id-%" PRId64, frame);
        test_outbox_put(outbox, id, "cam", frame, NULL);
    }
    ck_assert(outbox_flush(outbox, 20000));
}

static struct consumer *start(void)
{
    static char url[64], token[128], folder[128], ion[] = "door", pipeline[] = "prediction";
    static struct predict_spec spec;
    struct consumer *shipper;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", test_server_port(server));
    (void)snprintf(token, sizeof token, "%s", test_path(&dir, "token"));
    (void)snprintf(folder, sizeof folder, "%s", test_path(&dir, "replica"));
    test_write_file(token, "weir_test\n", 10);
    spec = (struct predict_spec){.host = {.server = url, .token_file = token, .dir = folder},
                                 .ion = ion,
                                 .pipeline = pipeline};
    weir_status status = shipper_start(&spec, outbox, pictures, refused, &shipper, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return shipper;
}

START_TEST(a_batch_that_is_too_large_arrives_in_parts)
{
    size_t n_again;
    set_up();
    test_server_limit(server, 7, 0);
    put_frames(1, 150);
    struct consumer *shipper = start();
    test_wait_for_decisions(server, 150);
    consumers_stop(&shipper, 1, 20000);
    ck_assert_uint_eq(test_server_n_decisions(server, &n_again), 150);
    ck_assert_uint_eq(n_again, 0);
    ck_assert_int_eq(refused_count(refused), 0);
    tear_down();
}

END_TEST

/* The replica before it has ended with the server away. */
START_TEST(what_a_replica_has_left_behind_is_brought_by_the_next_once)
{
    char url[64], token[128], own[128], before[128], nowhere[128], ion[] = "door",
                                                                   pipeline[] = "prediction";
    size_t n_again;
    set_up();
    put_frames(1, 150);
    outbox_close(outbox);
    outbox = NULL;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", test_server_port(server));
    (void)snprintf(token, sizeof token, "%s", test_path(&dir, "token"));
    (void)snprintf(own, sizeof own, "%s", test_path(&dir, "next"));
    (void)snprintf(before, sizeof before, "%s", test_path(&dir, "replica"));
    (void)snprintf(nowhere, sizeof nowhere, "%s", test_path(&dir, "nowhere"));
    test_write_file(token, "weir_test\n", 10);
    const struct predict_spec spec = {.host = {.server = url, .token_file = token, .dir = own},
                                      .ion = ion,
                                      .pipeline = pipeline,
                                      .left = {nowhere, before, before}, /* held by itself: once */
                                      .n_left = 3};
    for (int i = 0; i < 2; i++) {
        struct left *left = left_start(&spec);
        test_wait_for_decisions(server, 150);
        left_stop(left, 20000);
        ck_assert_uint_eq(test_server_n_decisions(server, &n_again), 150);
        ck_assert_uint_eq(n_again, 0);
    }
    tear_down();
}

END_TEST

#define N_FILMS 40
#define SIDE    16

/* The upper half says the frame, the lower one the decision: greys that JPEG keeps apart. */
static struct weir_image flat(int64_t decision, size_t frame)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, SIDE, SIDE, 1, &err), WEIR_OK);
    memset(image.pixels, (int)frame * 18, SIDE * SIDE / 2);
    memset(image.pixels + SIDE * SIDE / 2, (int)(decision % 14) * 18, SIDE * SIDE / 2);
    return image;
}

static void check_flat(const char *data, size_t len, int64_t decision, size_t frame)
{
    struct weir_image image, wanted = flat(decision, frame);
    ck_assert_int_eq(weir_image_decode(data, len, &image, &err), WEIR_OK);
    ck_assert_int_eq(image.width, SIDE);
    ck_assert_int_le(abs(image.pixels[0] - wanted.pixels[0]), 8);
    ck_assert_int_le(abs(image.pixels[SIDE * SIDE - 1] - wanted.pixels[SIDE * SIDE - 1]), 8);
    weir_image_fini(&image);
    weir_image_fini(&wanted);
}

/* A passage whose film has frames with pictures and without; the picture is that of its best frame. */
static void put_film(struct weir_rng *rng, int64_t number)
{
    struct outbox_item item = {.decision = decision_create(), .picture = flat(number, FILM_FRAMES)};
    struct decision_passage *passage =
        WEIR_ARENA_NEW(&item.decision->arena, struct decision_passage);
    *passage = (struct decision_passage){.id = "p"};
    film_init(&passage->film);
    size_t n = 1 + weir_rng_below(rng, FILM_FRAMES), i_best = weir_rng_below(rng, n);
    for (size_t i = 0; i < n; i++) {
        struct film_frame frame = {.time_ms = number * 1000 + (int64_t)i, .score = NAN};
        if (i != i_best && weir_rng_below(rng, 4) > 0) {
            frame.picture = flat(number, i);
        }
        film_add(&passage->film, &frame, i == i_best ? 1 : 0);
    }
    weir_uuid_make(item.decision->id);
    item.decision->passage = passage;
    item.decision->camera = "cam";
    item.decision->frame = number;
    outbox_put(outbox, &item);
}

static void check_film(int64_t number)
{
    static char bytes[1 << 18];
    size_t len, at = 0, i;
    json_t *decision = test_server_decision(server, "cam", number);
    const json_t *frame, *frames = json_object_get(json_object_get(decision, "passage"), "frames");
    ck_assert(test_server_has_blob(server, test_text(decision, "image")));
    ck_assert_int_eq(weir_base64_decode(test_text(decision, "film"), bytes, sizeof bytes, &len),
                     WEIR_OK);
    json_array_foreach(frames, i, frame)
    {
        size_t n = (size_t)test_int(frame, "bytes");
        ck_assert_uint_le(at + n, len);
        int64_t time_ms;
        ck_assert_int_eq(weir_time_parse(test_text(frame, "time_ms"), &time_ms), WEIR_OK);
        if (n > 0) {
            check_flat(bytes + at, n, number, (size_t)(time_ms - number * 1000));
        }
        at += n;
    }
    ck_assert_uint_eq(at, len);
    json_decref(decision);
}

/* Decided, and killed before anything was shipped: the next process ships it, from what is on the disk. */
START_TEST(films_outlive_the_process_and_each_frame_has_its_picture)
{
    const uint64_t seed = 20265;
    struct weir_rng rng;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    set_up();
    outbox_close(outbox);
    for (int life = 0; life < 2; life++) {
        const struct outbox_config config = {
            .dir = test_path(&dir, "replica/outbox"), .on_durable = forget, .pictures = pictures};
        ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
        for (int64_t i = 0; i < N_FILMS && life == 0; i++) {
            put_film(&rng, i);
        }
        ck_assert(outbox_flush(outbox, 20000));
        if (life == 0) {
            outbox_close(outbox);
        }
    }
    struct consumer *shipper = start();
    test_wait_for_decisions(server, N_FILMS);
    consumers_stop(&shipper, 1, 20000);
    for (int64_t i = 0; i < N_FILMS; i++) {
        check_film(i);
    }
    tear_down();
}

END_TEST

/* A line of refused.jsonl, new reference. */
static json_t *only_refused(void)
{
    json_t *line;
    ck_assert_int_eq(weir_json_load(test_path(&dir, "replica/refused.jsonl"), 1 << 20, &line, &err),
                     WEIR_OK);
    return line;
}

START_TEST(one_decision_that_is_too_large_is_set_aside_and_the_rest_goes_on)
{
    size_t n_again;
    set_up();
    test_server_limit(server, 0, 77);
    put_frames(1, 150);
    struct consumer *shipper = start();
    test_wait_for_decisions(server, 149);
    put_frames(151, 160); /* what comes behind it */
    test_wait_for_decisions(server, 159);
    consumers_stop(&shipper, 1, 20000);
    ck_assert_uint_eq(test_server_n_decisions(server, &n_again), 159);
    ck_assert_uint_eq(n_again, 0);
    ck_assert_int_eq(refused_count(refused), 1);
    json_t *line = only_refused();
    ck_assert_int_eq(test_int(line, "frame"), 77);
    ck_assert_ptr_nonnull(strstr(test_text(line, "refused"), "too large"));
    json_decref(line);
    tear_down();
}

END_TEST

START_TEST(what_was_set_aside_is_counted_until_it_is_taken_away)
{
    set_up();
    json_t *decision = json_pack("{s:s,s:s}", "id", "a", "picture", "large");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(refused_put(refused, decision, "no", &err), WEIR_OK);
    }
    refused_close(refused);
    refused = refused_open(test_path(&dir, "replica"));
    ck_assert_int_eq(refused_count(refused), 3);
    ck_assert_int_eq(unlink(test_path(&dir, "replica/refused.jsonl")), 0);
    ck_assert_int_eq(refused_count(refused), 0);
    ck_assert_int_eq(refused_put(refused, decision, "no", &err), WEIR_OK);
    ck_assert_int_eq(refused_count(refused), 1);
    json_t *line = only_refused();
    ck_assert_ptr_null(json_object_get(line, "picture"));
    ck_assert_ptr_nonnull(json_object_get(decision, "picture"));
    json_decref(line);
    json_decref(decision);
    tear_down();
}

END_TEST

START_TEST(what_is_set_aside_has_a_bound)
{
    set_up();
    char *padding = calloc(1, (1 << 20) + 1);
    memset(padding, 'x', 1 << 20);
    json_t *decision = json_pack("{s:s,s:s}", "id", "a", "padding", padding);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(refused_put(refused, decision, "no", &err), WEIR_OK);
    }
    /* A file holds 15 lines of a little more than a mebibyte; the newest has what is left of 100.
     */
    ck_assert_int_eq(refused_count(refused), 3 * 15 + 100 % 15);
    ck_assert(!weir_path_exists(test_path(&dir, "replica/refused.jsonl.4")));
    free(padding);
    json_decref(decision);
    tear_down();
}

END_TEST

WEIR_TEST_MAIN("shipper", films_outlive_the_process_and_each_frame_has_its_picture,
               a_batch_that_is_too_large_arrives_in_parts,
               what_a_replica_has_left_behind_is_brought_by_the_next_once,
               one_decision_that_is_too_large_is_set_aside_and_the_rest_goes_on,
               what_was_set_aside_is_counted_until_it_is_taken_away, what_is_set_aside_has_a_bound)
