/* What is wrong with a camera is said when it has lasted, and nothing is said of what is usual. */
#include "vision/condition.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEED    464
#define W       WEIR_CONDITION_WIDTH
#define H       WEIR_CONDITION_HEIGHT
#define STEP_MS 200

/* What a camera shows. */
enum show {
    PLACE,
    BLACK,
    WHITE,
    STILL,
    SHIFTED,
    OTHER_PLACE,
    COVERED,
    BLURRED,
    CODED, /* Covered, and what an encoder has left of the noise. */
    N_SHOWS,
    LORRY = N_SHOWS
};

static const enum weir_condition_kind kind_of[N_SHOWS] = {
    [PLACE] = WEIR_CONDITION_WELL,      [BLACK] = WEIR_CONDITION_BLACK,
    [WHITE] = WEIR_CONDITION_DAZZLED,   [STILL] = WEIR_CONDITION_FROZEN,
    [SHIFTED] = WEIR_CONDITION_MOVED,   [OTHER_PLACE] = WEIR_CONDITION_MOVED,
    [COVERED] = WEIR_CONDITION_COVERED, [BLURRED] = WEIR_CONDITION_BLURRED,
    [CODED] = WEIR_CONDITION_COVERED,
};

struct camera {
    struct weir_rng rng;
    uint8_t places[2][H][W], blurred[H][W];
    int8_t noise[4][W * H];
    uint8_t grey[H][W];
    double light;    /* Factor of all grey values. */
    double walker_x; /* Left edge of somebody; NAN: nobody. */
    int64_t time_ms;
    size_t n_pictures;
    struct weir_condition_watch *watch;
};

static struct camera camera;

/* A place: walls, doors and furniture are rectangles, with texture. */
static void furnish(uint8_t place[H][W])
{
    memset(place, 110, (size_t)W * H);
    for (int k = 0; k < 60; k++) {
        int w = 10 + (int)weir_rng_below(&camera.rng, 70),
            h = 8 + (int)weir_rng_below(&camera.rng, 60);
        int left = (int)weir_rng_below(&camera.rng, W), top = (int)weir_rng_below(&camera.rng, H);
        int value = 40 + (int)weir_rng_below(&camera.rng, 150);
        int texture = (int)weir_rng_below(&camera.rng, 30);
        for (int y = top; y < WEIR_MIN(top + h, H); y++) {
            for (int x = left; x < WEIR_MIN(left + w, W); x++) {
                place[y][x] = (uint8_t)(value + (x % 3 == 0 ? texture : 0));
            }
        }
    }
}

static void set_up(void)
{
    struct weir_error err = {0};
    memset(&camera, 0, sizeof camera);
    weir_rng_init(&camera.rng, SEED, 0);
    furnish(camera.places[0]);
    furnish(camera.places[1]);
    for (int i = 0; i < W * H; i++) {
        int sum = 0;
        for (int k = 0; k < 25; k++) {
            sum += camera.places[0][WEIR_MIN(i / W + k / 5, H - 1)][WEIR_MIN(i % W + k % 5, W - 1)];
        }
        camera.blurred[i / W][i % W] = (uint8_t)(sum / 25);
        for (int k = 0; k < 4; k++) {
            camera.noise[k][i] = (int8_t)((int)weir_rng_below(&camera.rng, 9) - 4);
        }
    }
    camera.light = 1;
    camera.walker_x = NAN;
    ck_assert_msg(weir_condition_create(&weir_condition_usual, &camera.watch, &err) == WEIR_OK,
                  "%s", err.message);
}

static void tear_down(void)
{
    weir_condition_destroy(camera.watch);
}

static double shown(enum show show, int x, int y)
{
    switch (show) {
    case BLACK:
        return 8;
    case WHITE:
        return 253;
    case COVERED:
        return 90;
    case CODED:
        return ((size_t)(x * 7 + y * 5) + camera.n_pictures) % 9 == 8 ? 93 : 90;
    case LORRY: /* It hides a third. */
        return x < 110 ? 70 : camera.places[0][y][x];
    case SHIFTED:
        return camera.places[0][(y + 9) % H][(x + 14) % W];
    case OTHER_PLACE:
        return camera.places[1][y][x];
    case BLURRED:
        return camera.blurred[y][x];
    default:
        if (x >= camera.walker_x && x < camera.walker_x + 24 && y > 60 && y < 150) {
            return 30 + (y % 7) * 5;
        }
        return camera.places[0][y][x];
    }
}

/* The next picture, with noise that differs from one to the next, is looked at. */
static struct weir_condition look(enum show show)
{
    double scale = show == BLACK || show == WHITE ? 1 : camera.light;
    const int8_t *noise = camera.noise[camera.n_pictures++ % 4];
    for (int y = 0; y < H && show != STILL; y++) {
        for (int x = 0; x < W; x++) {
            int value = (int)(scale * shown(show, x, y)) + (show == CODED ? 0 : noise[y * W + x]);
            camera.grey[y][x] = (uint8_t)WEIR_MAX(0, WEIR_MIN(255, value));
        }
    }
    camera.time_ms += STEP_MS;
    return weir_condition_look(camera.watch, camera.time_ms, camera.grey[0]);
}

/* Show for some time. @return What is said at the end. */
static struct weir_condition look_for(enum show show, int64_t ms)
{
    struct weir_condition condition = {0};
    for (int64_t t = 0; t < ms; t += STEP_MS) {
        condition = look(show);
    }
    return condition;
}

START_TEST(nothing_is_said_of_what_is_usual)
{
    for (int i = 0; i < 300; i++) {
        camera.light = i < 100 ? 1 : (i < 150 ? 0.4 : 1.1);         /* A lamp, the sun. */
        camera.walker_x = i % 60 < 20 ? (i % 60) * 16.0 - 24 : NAN; /* Somebody goes past. */
        struct weir_condition condition = look(PLACE);
        ck_assert_msg(condition.kind == WEIR_CONDITION_WELL && !condition.has_changed,
                      "picture %d: %s, sharpness %g, agreement %g", i,
                      weir_condition_name(condition.kind), (double)condition.sharpness,
                      (double)condition.agreement);
        ck_assert_int_eq(condition.since_ms, STEP_MS);
        ck_assert_int_eq(isnan(condition.agreement), i * STEP_MS <= 10000);
        ck_assert(isnan(condition.sharpness) || condition.sharpness > 0.6F);
        ck_assert(isnan(condition.agreement) || condition.agreement > 0.8F);
    }
}

END_TEST

START_TEST(what_is_wrong_is_said_once_with_its_begin_and_so_is_its_end)
{
    (void)look_for(PLACE, 15000);
    for (int show = BLACK; show < N_SHOWS; show++) {
        int64_t begin_ms = camera.time_ms + STEP_MS, said_ms = 0;
        int64_t needs_ms = show == STILL ? 10000 : (show > STILL ? 30000 : 3000);
        for (int64_t i = 0; i < needs_ms / STEP_MS + 3; i++) {
            struct weir_condition condition = look((enum show)show);
            if (condition.has_changed) {
                ck_assert_msg(condition.kind == kind_of[show], "%d is said to be %s", show,
                              weir_condition_name(condition.kind));
                ck_assert_int_eq(said_ms, 0);
                said_ms = camera.time_ms;
                ck_assert_int_ge(condition.since_ms, begin_ms);
            }
        }
        ck_assert_msg(said_ms > 0, "%d is not said", show);
        ck_assert_int_ge(said_ms - begin_ms, needs_ms - STEP_MS);
        ck_assert_int_le(said_ms - begin_ms, needs_ms + STEP_MS);
        struct weir_condition condition = look_for(PLACE, 3000);
        ck_assert_int_eq(condition.kind, kind_of[show]);
        condition = look_for(PLACE, 400);
        ck_assert_int_eq(condition.kind, WEIR_CONDITION_WELL);
    }
}

END_TEST

START_TEST(what_does_not_last_is_not_said)
{
    (void)look_for(PLACE, 15000);
    for (int k = 0; k < 30; k++) {
        enum show show = (enum show)(1 + weir_rng_below(&camera.rng, N_SHOWS - 1));
        int64_t ms = STEP_MS * (1 + (int64_t)weir_rng_below(&camera.rng, 14)); /* 2,800 at most. */
        for (int64_t t = 0; t < ms; t += STEP_MS) {
            ck_assert_int_eq(look(show).kind, WEIR_CONDITION_WELL);
        }
        struct weir_condition condition =
            look_for(PLACE, STEP_MS * (1 + (int64_t)weir_rng_below(&camera.rng, 5)));
        ck_assert_int_eq(condition.kind, WEIR_CONDITION_WELL);
    }
}

END_TEST

START_TEST(a_place_that_is_gone_is_said_once_whatever_the_pictures_look_like)
{
    static const enum show gone[] = {COVERED, BLURRED, OTHER_PLACE, SHIFTED, CODED};

    (void)look_for(PLACE, 15000);
    int64_t begin_ms = camera.time_ms + STEP_MS, said_ms = 0;
    for (int i = 0; i < 60000 / STEP_MS; i++) {
        struct weir_condition condition =
            look(gone[weir_rng_below(&camera.rng, WEIR_ARRAY_LEN(gone))]);
        if (condition.has_changed) {
            ck_assert_int_eq(said_ms, 0);
            said_ms = camera.time_ms;
            ck_assert_int_eq(condition.since_ms, begin_ms);
            ck_assert_int_ge(condition.kind, WEIR_CONDITION_COVERED);
        }
    }
    ck_assert_int_eq(said_ms - begin_ms, 30000);
    ck_assert_int_eq(look_for(PLACE, 3400).kind, WEIR_CONDITION_WELL);
}

END_TEST

START_TEST(something_that_hides_a_third_of_the_place_is_not_said)
{
    (void)look_for(PLACE, 15000);
    struct weir_condition condition = look_for(LORRY, 40000);
    ck_assert_int_eq(condition.kind, WEIR_CONDITION_WELL);
    ck_assert(condition.agreement > 0.8F);
}

END_TEST

START_TEST(a_camera_that_was_moved_is_well_when_that_is_accepted)
{
    (void)look_for(PLACE, 15000);
    struct weir_condition condition = look_for(OTHER_PLACE, 31000);
    ck_assert_int_eq(condition.kind, WEIR_CONDITION_MOVED);
    weir_condition_accept(camera.watch);
    condition = look_for(OTHER_PLACE, 15000);
    ck_assert_int_eq(condition.kind, WEIR_CONDITION_WELL);
    ck_assert(condition.agreement > 0.8F);
    condition = look_for(PLACE, 31000);
    ck_assert_int_eq(condition.kind, WEIR_CONDITION_MOVED);
}

END_TEST

START_TEST(motion_is_seen_where_it_is_looked_for)
{
    uint8_t blocks[WEIR_CONDITION_BLOCKS];
    (void)look_for(PLACE, 5000);
    camera.light = 0.8;
    for (int i = 0; i < 20; i++) { /* Neither light nor noise is motion. */
        ck_assert(!look(PLACE).is_moving);
    }
    for (int i = 0; i < 20; i++) {
        camera.walker_x = 16.0 * i;
        struct weir_condition condition = look(PLACE);
        ck_assert_msg(condition.is_moving, "picture %d: %g", i, (double)condition.motion);
        ck_assert(condition.motion > 0.01F && condition.motion < 0.2F);
    }
    for (int i = 0; i < WEIR_CONDITION_BLOCKS; i++) { /* Above the walker. */
        blocks[i] = i / WEIR_CONDITION_COLS < 6;
    }
    weir_condition_mask(camera.watch, blocks);
    for (int i = 0; i < 20; i++) {
        camera.walker_x = 16.0 * i;
        ck_assert(look(PLACE).motion == 0);
    }
    memset(blocks, 0, sizeof blocks);
    weir_condition_mask(camera.watch, blocks);
    ck_assert(look(PLACE).motion == 0 && look(OTHER_PLACE).motion == 0);
    weir_condition_mask(camera.watch, NULL);
    ck_assert(look(OTHER_PLACE).is_moving);
}

END_TEST

START_TEST(a_clock_that_jumps_back_stops_nothing)
{
    (void)look_for(PLACE, 15000);
    camera.time_ms = INT64_MIN;
    ck_assert_int_eq(look_for(BLACK, 2000).kind, WEIR_CONDITION_WELL);
    ck_assert_int_eq(look_for(BLACK, 2000).kind, WEIR_CONDITION_BLACK);
    camera.time_ms = INT64_MAX - STEP_MS; /* So long ago it has been black. */
    ck_assert_int_eq(look(BLACK).kind, WEIR_CONDITION_BLACK);
}

END_TEST

START_TEST(still_pictures_as_a_camera_are_never_frozen)
{
    struct weir_condition_options options = weir_condition_usual;
    struct weir_error err = {0};
    weir_condition_destroy(camera.watch);
    options.frozen_ms = 0;
    ck_assert(weir_condition_create(&options, &camera.watch, &err) == WEIR_OK);
    (void)look(PLACE);
    ck_assert_int_eq(look_for(STILL, 60000).kind, WEIR_CONDITION_WELL);
    struct weir_condition_watch *watch = NULL;
    options.changed = NAN;
    ck_assert(weir_condition_create(&options, &watch, &err) == WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "changed of the watch of a camera is nan: give 0 to 255");
    ck_assert_ptr_null(watch);
    weir_condition_destroy(NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("condition", set_up, tear_down, nothing_is_said_of_what_is_usual,
                    what_is_wrong_is_said_once_with_its_begin_and_so_is_its_end,
                    what_does_not_last_is_not_said,
                    a_place_that_is_gone_is_said_once_whatever_the_pictures_look_like,
                    something_that_hides_a_third_of_the_place_is_not_said,
                    a_camera_that_was_moved_is_well_when_that_is_accepted,
                    motion_is_seen_where_it_is_looked_for, a_clock_that_jumps_back_stops_nothing,
                    still_pictures_as_a_camera_are_never_frozen)
