/* A source of video, whose weir-camera is this test's own program: frames with names, views and turns; the newest wins. */
#include "predict/camera_source.h"

#include "base/library.h"
#include "base/test_main.h"
#include "endpoint/source/camera.h"
#include "video/camera.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WIDTH    64
#define HEIGHT   32
#define N_FRAMES 30

/* ---- weir-camera: as many frames as there are slots for; after N_FRAMES of them the camera hangs up ------------------------ */

static int be_camera(void)
{
    struct weir_video_message message;
    static char text[WEIR_VIDEO_SETUP_MAX_BYTES];
    int fds[2];
    if (weir_video_receive(0, &message, fds) != WEIR_OK || read(0, text, sizeof text) <= 0) {
        return 1;
    }
    size_t slot_bytes = (size_t)message.frame.seq;
    uint8_t *slots =
        mmap(NULL, message.slot * slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    struct weir_video_message live = {.kind = WEIR_VIDEO_LIVE, .text = "h264"};
    if (strstr(text, "/nowhere/rude") != NULL) {
        struct weir_video_message rude = {.kind = WEIR_VIDEO_END, .status = WEIR_ERR_UNAUTH};
        for (size_t i = 0; i + 1 < sizeof rude.text; i++) {
            rude.text[i] = (char)(i % 2 == 0 ? '"' : 1 + i % 31);
        }
        return weir_video_send(0, &rude, NULL, 0, true) == WEIR_OK ? 0 : 6;
    }
    if (slots == MAP_FAILED || strstr(text, "/nowhere/filled") == NULL ||
        weir_video_send(0, &live, NULL, 0, true) != WEIR_OK) {
        return 2;
    }
    for (int64_t seq = 0; seq < N_FRAMES; seq++) {
        if (weir_video_receive(0, &message, fds) != WEIR_OK) {
            return 3;
        }
        message.kind = WEIR_VIDEO_FRAME;
        message.frame = (struct weir_video_frame){.seq = seq,
                                                  .width = WIDTH,
                                                  .height = HEIGHT,
                                                  .media_us = 7000000 * seq,
                                                  .received_ns = UINT64_MAX,
                                                  .epoch = 1,
                                                  .condition = 1};
        memset(slots + message.slot * slot_bytes, (int)seq, WIDTH * HEIGHT);
        if (weir_video_send(0, &message, NULL, 0, true) != WEIR_OK) {
            return 4;
        }
    }
    if (strstr(text, "/nowhere/filled/dark") != NULL) {
        struct weir_video_message report = {.kind = WEIR_VIDEO_REPORT,
                                            .counts.clock_off_ms = -WEIR_CAMERA_CLOCK_OFF_MS - 1};
        weir_status status = weir_video_send(0, &report, NULL, 0, true);
        while (status == WEIR_OK) {
            status = weir_video_receive(0, &message, fds);
        }
        return 0;
    }
    struct weir_video_message end = {
        .kind = WEIR_VIDEO_END, .status = WEIR_ERR_END, .text = "the file is over"};
    return weir_video_send(0, &end, NULL, 0, true) == WEIR_OK ? 0 : 5;
}

/* ---- the test -------------------------------------------------------------------------------- */

static struct weir_arena arena;
static struct predict_spec spec;
static struct intake *intake;
static struct source *source;
static char folder[] = "/tmp/weir-camera-source-XXXXXX";

static void start_at(const char *at, const char *name, bool is_fast)
{
    struct weir_error err;
    char path[PATH_MAX];
    weir_arena_init(&arena, 0);
    (void)snprintf(path, sizeof path, "%s/spec.json", folder);
    json_t *json =
        json_pack("{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:f,s:[{s:s,s:s}]}}", "ion", "i", "pipeline", "p",
                  "replica", "r-0", "dir", folder, "source", "kind", "video", "pace",
                  is_fast ? "fast" : "own", "fps", 0.0, "cameras", "name", name, "path", at);
    ck_assert_int_eq(json_dump_file(json, path, 0), 0);
    json_decref(json);
    ck_assert_msg(predict_spec_load(path, &arena, &spec, &err) == WEIR_OK, "%s", err.message);
    (void)unlink(path);
    intake = intake_create(
        &(struct intake_limits){.max_queued = 4, .max_in_hand = 2, .max_bytes = 1 << 20});
    intake_open(intake);
    const struct source_config config = {.spec = &spec, .intake = intake};
    ck_assert_msg(camera_source_start(&config, &source, &err) == WEIR_OK, "%s", err.message);
}

static void start(bool is_fast)
{
    start_at("/nowhere/filled", "porch", is_fast);
}

static void stop(void)
{
    intake_close(intake);
    camera_source_close(source);
    camera_source_stop(source);
    intake_destroy(intake);
    predict_spec_fini(&spec);
    weir_arena_fini(&arena);
}

static int64_t seq_of(const struct frame *frame)
{
    const char *slash = strrchr(frame->key, '/');
    ck_assert_int_eq(strncmp(frame->key, "porch/", 6), 0);
    ck_assert(frame->is_keyed && slash != NULL);
    return strtoll(slash + 1, NULL, 10);
}

static void wait_for(const char *name, const char *state, json_t **out)
{
    for (;;) {
        json_t *status = camera_source_status(source);
        const json_t *porch = json_object_get(json_object_get(status, "cameras"), name);
        bool is_over = strcmp(state, "ended") == 0; /* the camera says so first, then its source */
        if (strcmp(json_string_value(json_object_get(porch, "state")), state) == 0 &&
            !(is_over && json_boolean_value(json_object_get(status, "connected")))) {
            *out = status;
            return;
        }
        json_decref(status);
        (void)poll(NULL, 0, 1);
    }
}

static struct frame *take(void)
{
    struct frame *frame;
    ck_assert_int_eq(intake_take(intake, -1, &frame), WEIR_OK);
    intake_over(intake, frame->camera, 0);
    return frame;
}

START_TEST(frames_that_wait_for_the_engine_come_all)
{
    int64_t begun_ms = 0;
    start(true);
    for (int64_t seq = 0; seq < N_FRAMES; seq++) {
        struct frame *frame = take();
        ck_assert_int_eq(seq_of(frame), seq);
        ck_assert_int_eq(frame->number, seq);
        ck_assert_int_eq(frame->view.form, WEIR_VIEW_I420);
        ck_assert_int_eq(frame->view.width, WIDTH);
        for (int i = 0; i < WIDTH * HEIGHT; i++) {
            ck_assert_int_eq(frame->view.planes[0][i], seq);
        }
        ck_assert_int_gt(frame->received_ms, 0);
        begun_ms = seq == 0 ? frame_taken_ms(frame) : begun_ms;
        ck_assert_int_le(begun_ms, frame->received_ms);
        ck_assert_int_eq(frame_taken_ms(frame), begun_ms + 7000 * seq);
        intake_done(intake, frame);
    }
    stop();
}

END_TEST

START_TEST(of_frames_that_nobody_takes_the_newest_stay)
{
    json_t *status;
    struct intake_counts counts;
    start(false);
    wait_for("porch", "ended", &status);
    const json_t *porch = json_object_get(json_object_get(status, "cameras"), "porch");
    ck_assert_int_eq(json_integer_value(json_object_get(porch, "frames")), N_FRAMES);
    ck_assert_int_eq(json_integer_value(json_object_get(porch, "dropped")),
                     N_FRAMES - FRAME_LIVE_QUEUED);
    ck_assert_str_eq(json_string_value(json_object_get(porch, "cause")), "END");
    ck_assert(json_is_string(json_object_get(porch, "lost_since")));
    ck_assert(json_is_null(json_object_get(porch, "clock_since")));
    ck_assert_str_eq(json_string_value(json_object_get(porch, "error")), "the file is over");
    ck_assert(!json_boolean_value(json_object_get(status, "connected")));
    ck_assert_str_eq(json_string_value(json_object_get(status, "error")),
                     "porch: the file is over");
    json_decref(status);
    intake_counts(intake, &counts);
    ck_assert_uint_eq(counts.n_queued, FRAME_LIVE_QUEUED);
    ck_assert_uint_eq(counts.n_dropped, N_FRAMES - FRAME_LIVE_QUEUED);
    for (int64_t seq = N_FRAMES - FRAME_LIVE_QUEUED; seq < N_FRAMES; seq++) {
        struct frame *frame = take();
        ck_assert_int_eq(seq_of(frame), seq);
        ck_assert_int_eq(frame->view.planes[0][5], seq);
        ck_assert_int_eq(frame_taken_ms(frame), frame->received_ms);
        if (seq < N_FRAMES - 1) {
            intake_done(intake, frame);
        } /* the last one outlives its source */
    }
    stop();
}

END_TEST

/* It stays lost since the first time while it is tried again, and what is said of it has its bound. */
START_TEST(a_camera_that_is_lost_says_since_when_and_why_in_bounded_words)
{
    char name[WEIR_CAMERA_NAME_BYTES], lost_since[64] = "";
    json_t *status;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    start_at("/nowhere/rude", name, false);
    for (int64_t n_tries = 0; n_tries < 2;) {
        wait_for(name, "lost", &status);
        json_t *cameras = json_object_get(status, "cameras"),
               *camera = json_object_get(cameras, name);
        char *text = json_dumps(cameras, JSON_COMPACT);
        const char *since = json_string_value(json_object_get(camera, "lost_since"));
        ck_assert_uint_lt(strlen(text), CAMERA_STATUS_BYTES);
        ck_assert_uint_gt(strlen(json_string_value(json_object_get(camera, "error"))), 400);
        ck_assert_str_eq(json_string_value(json_object_get(camera, "cause")), "UNAUTH");
        ck_assert(lost_since[0] == '\0' || strcmp(lost_since, since) == 0);
        (void)snprintf(lost_since, sizeof lost_since, "%s", since);
        n_tries = json_integer_value(json_object_get(camera, "connections"));
        free(text);
        json_decref(status);
        (void)poll(NULL, 0, 1);
    }
    stop();
}

END_TEST

START_TEST(a_live_camera_says_since_when_pictures_and_clock_are_not_well)
{
    bool is_told = false;
    start_at("/nowhere/filled/dark", "porch", false);
    while (!is_told) {
        json_t *status;
        wait_for("porch", "live", &status);
        const json_t *porch = json_object_get(json_object_get(status, "cameras"), "porch");
        bool is_dark = strcmp(json_string_value(json_object_get(porch, "health")), "black") == 0;
        ck_assert_int_eq(is_dark, json_is_string(json_object_get(porch, "health_since")));
        ck_assert(json_is_null(json_object_get(porch, "lost_since")));
        is_told = is_dark && json_is_string(json_object_get(porch, "clock_since"));
        json_decref(status);
        (void)poll(NULL, 0, 1);
    }
    stop();
}

END_TEST

int main(int argc, char **argv)
{
    char link[64], self[PATH_MAX];
    if (argc > 1 && strcmp(argv[1], "--serve") == 0) {
        return be_camera();
    }
    if (weir_library_need("libav", "video", NULL) != WEIR_OK) {
        return 77; /* the kinds are refused */
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0 || mkdtemp(folder) == NULL) {
        return 1;
    }
    self[n] = '\0';
    (void)snprintf(link, sizeof link, "%s/weir-camera", folder);
    if (symlink(self, link) != 0 || setenv("PATH", folder, 1) != 0) {
        return 1;
    }
    const TTest *const tests[] = {frames_that_wait_for_the_engine_come_all,
                                  of_frames_that_nobody_takes_the_newest_stay,
                                  a_live_camera_says_since_when_pictures_and_clock_are_not_well,
                                  a_camera_that_is_lost_says_since_when_and_why_in_bounded_words};
    int rc = weir_test_run(weir_test_suite("camera_source", tests, WEIR_ARRAY_LEN(tests)));
    (void)unlink(link);
    (void)rmdir(folder);
    return rc;
}
