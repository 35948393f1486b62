/* What the desk shows of frames, and what it says of photos: a replica in this process, and frames that the test makes. */
#include "predict/desk.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/rng.h"
#include "predict/passage.h"
#include "predict/test_support.h"

#include <string.h>

#define N_PEOPLE 10
#define N_VIEWS  WEIR_TEST_TIMES(40, 10)

static struct test_dir dir;
static struct test_server *server;
static struct weir_error err;

static void set_up(void)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
}

static void tear_down(void)
{
    test_server_stop(server);
    test_dir_drop(&dir);
}

/* How much of a list has come. */
struct awaited {
    const char *list;
    size_t n;
};

static bool has_come(void *context)
{
    const struct awaited *awaited = context;
    json_t *all = test_server_desk_said(server, awaited->list);
    bool has = json_array_size(all) >= awaited->n;
    json_decref(all);
    return has;
}

/* The n-th that came, counted from 1; a new reference. */
static json_t *wait_for(const char *list, size_t n)
{
    struct awaited awaited = {list, n};
    ck_assert_msg(test_wait(has_come, &awaited), "%zu of %s did not come", n, list);
    json_t *all = test_server_desk_said(server, list);
    json_t *one = json_incref(json_array_get(all, n - 1));
    json_decref(all);
    return one;
}

static json_t *in(const json_t *json, const char *name, size_t i)
{
    return json_array_get(json_object_get(json, name), i);
}

/* ---- a whole replica ------------------------------------------------------------------------- */

static struct replica *start_replica(void)
{
    test_write_model(test_path(&dir, "model"), 1, NULL);
    test_server_deploy(
        server, test_deployment(server, &dir, test_path(&dir, "model"), 1, N_PEOPLE, 4, 1, true));
    return test_replica_start(&dir, test_server_port(server), test_directory_source(&dir), NULL);
}

static json_t *photo(int person, int number)
{
    char bytes[1024], text[WEIR_BASE64_TEXT_BYTES(sizeof bytes)];
    return json_string(weir_base64_encode(bytes, test_picture(person, number, bytes), text));
}

static void put_frame(const char *camera, int person, int number)
{
    char bytes[1024];
    size_t len = test_picture(person, number, bytes);
    test_put_frame(&dir, camera, number, bytes, len);
}

START_TEST(a_watched_camera_shows_what_was_decided_and_no_other_does)
{
    set_up();
    struct replica *replica = start_replica();
    put_frame("west", 3, 100);
    test_wait_for_decisions(server, 1); /* nobody watches */
    test_server_ask_desk(server, json_pack("{s:[s]}", "watched", "west"));
    for (int i = 101, n = 1; n < 2; i++) { /* until it has heard of it */
        json_t *all = test_server_desk_said(server, "live");
        n += json_array_size(all) > 0;
        json_decref(all);
        put_frame(i % 2 != 0 ? "west" : "east", 3, i);
        test_wait_for_decisions(server, (size_t)(i - 99));
    }
    json_t *live = wait_for("live", 1);
    json_t *box = in(live, "boxes", 0);
    ck_assert_str_eq(test_text(live, "camera"), "west");
    ck_assert_int_eq(test_int(live, "width"), TEST_SIDE);
    ck_assert_str_eq(test_text(box, "name"), "p03");
    ck_assert_str_eq(test_text(box, "verdict"), "grant");
    ck_assert(json_is_null(json_object_get(box, "passage")));
    ck_assert(json_is_false(json_object_get(box, "barred")));
    ck_assert_double_eq(json_number_value(json_object_get(box, "w")), TEST_SIDE);
    json_decref(live);
    test_replica_stop(replica);
    tear_down();
}

END_TEST

START_TEST(photos_get_the_scores_that_frames_get)
{
    set_up();
    struct replica *replica = start_replica();
    put_frame("west", 3, 500);
    test_wait_for_decisions(server, 1);
    json_t *decision = test_server_decision(server, "west", 500);
    test_server_ask_desk(server,
                         json_pack("{s:[{s:s,s:[o,s,o],s:s}]}", "looks", "id", "q", "pictures",
                                   photo(3, 500), "bm8gcGhvdG8=", photo(5, 7), "person", "p03"));
    json_t *said = wait_for("looks", 1), *answer = json_object_get(said, "answer");
    ck_assert_str_eq(test_text(said, "id"), "q");
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "pictures")), 3);
    json_t *first = in(answer, "pictures", 0), *none = in(answer, "pictures", 1);
    ck_assert(json_is_true(json_object_get(first, "usable")));
    ck_assert_uint_eq(json_array_size(json_object_get(first, "nearest")), 5);
    ck_assert_str_eq(test_text(in(first, "nearest", 0), "person"), "p03");
    /* One comparison adds in another order than many. */
    ck_assert_double_eq_tol(json_number_value(json_object_get(in(first, "nearest", 0), "score")),
                            json_number_value(json_object_get(decision, "score")), 1e-6);
    ck_assert_double_eq(json_number_value(json_object_get(answer, "threshold")),
                        json_number_value(json_object_get(decision, "threshold")));
    ck_assert(json_is_false(json_object_get(none, "usable")));
    ck_assert_str_ne(test_text(none, "why"), "");
    ck_assert_str_eq(test_text(in(in(answer, "pictures", 2), "nearest", 0), "person"), "p05");
    ck_assert_str_eq(test_text(in(answer, "nearest", 0), "person"), "p05"); /* without p03 */
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "nearest")), 5);
    for (size_t i = 1; i < 5; i++) {
        ck_assert_str_ne(test_text(in(answer, "nearest", i), "person"), "p03");
        ck_assert_double_le(
            json_number_value(json_object_get(in(answer, "nearest", i), "score")),
            json_number_value(json_object_get(in(answer, "nearest", i - 1), "score")));
    }
    json_decref(said);
    json_decref(decision);
    ck_assert_uint_eq(test_server_n_decisions(server, NULL), 1); /* a look decides nothing */
    test_replica_stop(replica);
    tear_down();
}

END_TEST

/* ---- a desk alone ---------------------------------------------------------------------------- */

/** Frames come until so many pictures have. */
struct showing {
    struct desk *desk;
    const struct stage_frame *at;
    struct awaited awaited;
};

static bool show_until_it_came(void *context)
{
    struct showing *showing = context;
    desk_show(showing->desk, showing->at); /* as an engine does: it hears of the camera soon */
    return has_come(&showing->awaited);
}

struct alone {
    struct weir_arena arena;
    struct predict_spec spec;
    struct intake *intake;
    struct serving_slot slot;
    struct desk *desk;
};

static void open_alone(struct alone *alone)
{
    const struct intake_limits limits = {.max_queued = 1, .max_in_hand = 1, .max_bytes = 1};
    *alone = (struct alone){.intake = intake_create(&limits)};
    weir_arena_init(&alone->arena, 0);
    const char *spec =
        test_write_spec(&dir, test_server_port(server), test_directory_source(&dir), NULL);
    ck_assert_int_eq(predict_spec_load(spec, &alone->arena, &alone->spec, &err), WEIR_OK);
    serving_slot_init(&alone->slot);
    const struct desk_config config = {&alone->spec, alone->intake, &alone->slot};
    ck_assert_msg(desk_start(&config, &alone->desk, &err) == WEIR_OK, "%s", err.message);
}

static void close_alone(struct alone *alone)
{
    int64_t begun_ms = weir_mono_ms();
    intake_close(alone->intake);
    desk_stop(alone->desk);
    ck_assert_int_lt(weir_mono_ms() - begun_ms,
                     WEIR_TEST_TIMES(1000, 10000)); /* in a long poll, too */
    intake_destroy(alone->intake);
    serving_slot_fini(&alone->slot);
    predict_spec_fini(&alone->spec);
    weir_arena_fini(&alone->arena);
}

/* A view of random form, size and strides, over memory that is full of noise. */
static struct weir_view random_view(struct weir_rng *rng, uint8_t *memory, size_t size)
{
    static const enum weir_view_form forms[] = {WEIR_VIEW_GREY, WEIR_VIEW_RGB, WEIR_VIEW_I420};
    struct weir_view view = {.form = forms[weir_rng_below(rng, 3)],
                             .width = 1 + (int)weir_rng_below(rng, 900),
                             .height = 1 + (int)weir_rng_below(rng, 300),
                             .is_full_range = weir_rng_below(rng, 2) == 0};
    int bytes = view.form == WEIR_VIEW_RGB ? 3 : 1;
    for (size_t i = 0; i < size; i++) {
        memory[i] = (uint8_t)(i / 7 + weir_rng_below(rng, 9));
    }
    view.planes[0] = memory;
    view.strides[0] = view.width * bytes + (int)weir_rng_below(rng, 40);
    if (view.form == WEIR_VIEW_I420) {
        view.planes[1] = memory + (size_t)view.strides[0] * (size_t)view.height;
        view.strides[1] = (view.width + 1) / 2 + (int)weir_rng_below(rng, 40);
        view.planes[2] = view.planes[1] + view.strides[1] * ((view.height + 1) / 2);
        view.strides[2] = (view.width + 1) / 2 + (int)weir_rng_below(rng, 40);
    }
    return view;
}

static struct lists barred = {
    .deny = (const char *[]){"eve"}, .n_deny = 1, .fallback = VERDICT_GRANT};

/* Something found, and what has to be told of it: of a passage what is decided, else what the frame says. */
static struct stage_object random_object(struct weir_rng *rng, bool has_tracks,
                                         struct passage *passage, const char **out_name,
                                         const char **out_verdict)
{
    static const char *const names[] = {"eve", "ada", NULL};
    const char *seen = names[weir_rng_below(rng, 3)], *known = names[weir_rng_below(rng, 2)];
    bool is_refused = weir_rng_below(rng, 3) == 0, is_sure = weir_rng_below(rng, 2) == 0;
    struct stage_object object = {.has_box = true,
                                  .detection.box = {1, 2, 3, 4},
                                  .refused = is_refused ? "too dark" : NULL,
                                  .finding = {.name = is_refused ? NULL : seen,
                                              .score = is_sure ? 0.9 : 0.1,
                                              .threshold = 0.5}};
    *passage = (struct passage){.id = "7-1",
                                .is_known = weir_rng_below(rng, 2) == 0,
                                .best = {.name = known, .score = 0.8, .threshold = 0.5}};
    object.passage = has_tracks && weir_rng_below(rng, 4) > 0 ? passage : NULL;
    bool is_decided = has_tracks ? object.passage != NULL && passage->is_known : !is_refused;
    bool is_known = has_tracks ? is_decided : is_decided && seen != NULL && is_sure;
    *out_name = !is_known ? "" : has_tracks ? known : seen;
    *out_verdict = !is_decided                     ? ""
                   : !is_known                     ? "unknown"
                   : strcmp(*out_name, "eve") == 0 ? "deny"
                                                   : "grant";
    return object;
}

static void expect_picture(const json_t *live, const struct weir_view *view)
{
    struct weir_image image = {0};
    struct weir_buf jpeg;
    weir_buf_init(&jpeg, 4 << 20);
    ck_assert_int_eq(weir_view_to_image(view, DESK_SIDE_MAX, &image, &err), WEIR_OK);
    ck_assert_int_eq(weir_image_encode(&image, WEIR_IMAGE_FORMAT_JPEG, 75, &jpeg, &err), WEIR_OK);
    size_t size = WEIR_BASE64_TEXT_BYTES(jpeg.len);
    char *text = calloc(1, size);
    ck_assert_ptr_nonnull(text);
    if (jpeg.len <= DESK_JPEG_BYTES) {
        ck_assert_str_eq(test_text(live, "picture"), weir_base64_encode(jpeg.data, jpeg.len, text));
    } else {
        ck_assert_uint_lt(strlen(test_text(live, "picture")),
                          WEIR_BASE64_TEXT_BYTES(DESK_JPEG_BYTES));
    }
    ck_assert_int_eq(test_int(live, "width"), view->width);
    ck_assert_int_eq(test_int(live, "height"), view->height);
    free(text);
    weir_buf_fini(&jpeg);
    weir_image_fini(&image);
}

/* "c0", "c1" … */
static json_t *all_cameras(void)
{
    json_t *cameras = json_array();
    for (size_t i = 0; i < N_VIEWS; i++) {
        json_array_append_new(cameras, json_sprintf("c%zu", i));
    }
    return json_pack("{s:o}", "watched", cameras);
}

/* Each picture is another camera's: no interval is waited for. */
START_TEST(pictures_and_boxes_are_those_of_the_frame)
{
    struct alone alone;
    struct weir_rng rng;
    static uint8_t memory[2 << 20];
    set_up();
    open_alone(&alone);
    weir_rng_init(&rng, 11, 0);
    test_server_ask_desk(server, all_cameras());
    for (size_t i = 0; i < N_VIEWS; i++) {
        struct serving serving = {.lists = barred};
        struct passage passage;
        const char *name, *verdict;
        bool has_tracks = weir_rng_below(&rng, 2) == 0;
        struct stage_object object = random_object(&rng, has_tracks, &passage, &name, &verdict);
        struct frame frame = {.received_ms = 1000 + (int64_t)i};
        (void)snprintf(frame.camera, sizeof frame.camera, "c%zu", i);
        const struct stage_frame at = {.frame = &frame,
                                       .serving = &serving,
                                       .view = random_view(&rng, memory, sizeof memory),
                                       .objects = &object,
                                       .n_objects = 1,
                                       .has_tracks = has_tracks,
                                       .has_detector = true};
        struct showing showing = {alone.desk, &at, {"live", i + 1}};
        ck_assert(test_wait(show_until_it_came, &showing));
        json_t *live = wait_for("live", i + 1), *box = in(live, "boxes", 0);
        ck_assert_str_eq(test_text(live, "camera"), frame.camera);
        ck_assert_str_eq(test_text(box, "name"), name);
        ck_assert_str_eq(test_text(box, "verdict"), verdict);
        ck_assert_int_eq(json_is_true(json_object_get(box, "barred")), strcmp(name, "eve") == 0);
        ck_assert_str_eq(test_text(box, "passage"), object.passage != NULL ? "7-1" : "");
        expect_picture(live, &at.view);
        json_decref(live);
    }
    close_alone(&alone);
    tear_down();
}

END_TEST

START_TEST(a_camera_has_two_pictures_a_second_at_most_however_many_frames_come)
{
    struct alone alone;
    struct serving serving = {.lists = barred};
    uint8_t pixels[64] = {0};
    struct frame frame = {.camera = "c", .received_ms = 1};
    const struct stage_frame at = {
        .frame = &frame,
        .serving = &serving,
        .view = {
            .form = WEIR_VIEW_GREY, .width = 8, .height = 8, .planes = {pixels}, .strides = {8}}};
    set_up();
    open_alone(&alone);
    test_server_ask_desk(server, json_pack("{s:[s]}", "watched", "c"));
    int64_t begun_ms = weir_mono_ms();
    struct showing showing = {alone.desk, &at, {"live", 2}};
    ck_assert(test_wait(show_until_it_came, &showing));
    ck_assert_int_ge(weir_mono_ms() - begun_ms, 1000 / DESK_A_SECOND);
    close_alone(&alone);
    tear_down();
}

END_TEST

WEIR_TEST_MAIN("desk", a_watched_camera_shows_what_was_decided_and_no_other_does,
               photos_get_the_scores_that_frames_get, pictures_and_boxes_are_those_of_the_frame,
               a_camera_has_two_pictures_a_second_at_most_however_many_frames_come)
