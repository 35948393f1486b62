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
                                                  .received_ns = UINT64_MAX,
                                                  .epoch = 1,
                                                  .condition = 1};
        memset(slots + message.slot * slot_bytes, (int)seq, WIDTH * HEIGHT);
        if (weir_video_send(0, &message, NULL, 0, true) != WEIR_OK) {
            return 4;
        }
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

static void start(bool is_fast)
{
    struct weir_error err;
    char path[PATH_MAX];
    weir_arena_init(&arena, 0);
    (void)snprintf(path, sizeof path, "%s/spec.json", folder);
    json_t *json = json_pack("{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:f,s:[{s:s,s:s}]}}", "ion", "i",
                             "pipeline", "p", "replica", "r-0", "dir", folder, "source", "kind",
                             "video", "pace", is_fast ? "fast" : "own", "fps", 0.0, "cameras",
                             "name", "porch", "path", "/nowhere/filled");
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

static void wait_ended(json_t **out)
{
    for (;;) {
        json_t *status = camera_source_status(source);
        const json_t *porch = json_object_get(json_object_get(status, "cameras"), "porch");
        if (strcmp(json_string_value(json_object_get(porch, "state")), "ended") == 0) {
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
    return frame;
}

START_TEST(frames_that_wait_for_the_engine_come_all)
{
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
    wait_ended(&status);
    const json_t *porch = json_object_get(json_object_get(status, "cameras"), "porch");
    ck_assert_int_eq(json_integer_value(json_object_get(porch, "frames")), N_FRAMES);
    ck_assert_int_eq(json_integer_value(json_object_get(porch, "dropped")),
                     N_FRAMES - FRAME_LIVE_QUEUED);
    ck_assert_str_eq(json_string_value(json_object_get(porch, "health")), "black");
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
        if (seq < N_FRAMES - 1) {
            intake_done(intake, frame);
        } /* the last one outlives its source */
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
                                  of_frames_that_nobody_takes_the_newest_stay};
    int rc = weir_test_run(weir_test_suite("camera_source", tests, WEIR_ARRAY_LEN(tests)));
    (void)unlink(link);
    (void)rmdir(folder);
    return rc;
}
