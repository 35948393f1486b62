/* A camera and its process, which is this test's own program: frames come, and whatever the process does is a sentence and a new try. */
#include "video/camera.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_SLOTS 3
#define WIDTH   64
#define HEIGHT  48
#define N_BYTES ((size_t)WIDTH * HEIGHT * 3 / 2)

/* ---- the process ----------------------------------------------------------------------------- */

static uint8_t *slots;

static uint32_t next_free(void)
{
    struct weir_video_message message;
    int fds[2];
    if (weir_video_receive(0, &message, fds) != WEIR_OK || message.kind != WEIR_VIDEO_FREE) {
        _exit(3);
    }
    return message.slot;
}

static void give(uint32_t slot, int64_t seq, int height)
{
    struct weir_video_message message = {
        .kind = WEIR_VIDEO_FRAME,
        .slot = slot,
        .frame = {.seq = seq, .width = WIDTH, .height = height, .received_ns = UINT64_MAX}};
    memset(slots + slot * N_BYTES, (int)(seq % 251), N_BYTES);
    if (weir_video_send(0, &message, NULL, 0, true) != WEIR_OK) {
        _exit(4);
    }
}

static void say(enum weir_video_message_kind kind, weir_status status, const char *text)
{
    struct weir_video_message message = {.kind = kind, .status = status};
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    (void)!weir_video_send(0, &message, NULL, 0, true);
}

static void ask(enum weir_video_thing thing)
{
    struct weir_video_message message = {.kind = WEIR_VIDEO_OPEN, .slot = thing};
    int fds[2];
    (void)!weir_video_send(0, &message, NULL, 0, true);
    do {
        if (weir_video_receive(0, &message, fds) != WEIR_OK) {
            _exit(5);
        }
    } while (message.kind != WEIR_VIDEO_OPENED);
    say(WEIR_VIDEO_END, message.status == WEIR_OK ? WEIR_ERR_END : message.status, message.text);
}

static int act(const char *role)
{
    if (strstr(role, "\"steady\"") != NULL || strstr(role, "\"dies\"") != NULL) {
        say(WEIR_VIDEO_LIVE, WEIR_OK, "h264");
        for (int64_t seq = 0;; seq++) {
            give(next_free(), seq, HEIGHT);
            if (seq == 20 && strstr(role, "\"dies\"") != NULL) {
                _exit(0);
            }
        }
    } else if (strstr(role, "\"twice\"") != NULL) {
        uint32_t slot = next_free();
        give(slot, 0, HEIGHT);
        give(slot, 1, HEIGHT);
    } else if (strstr(role, "\"tall\"") != NULL) {
        give(next_free(), 0, HEIGHT + 2);
    } else if (strstr(role, "\"noise\"") != NULL) {
        (void)!write(0, "noise", 5);
    } else if (strstr(role, "\"over\"") != NULL) {
        say(WEIR_VIDEO_END, WEIR_ERR_END, "the file is over");
    } else if (strstr(role, "\"file\"") != NULL) {
        ask(WEIR_VIDEO_FILE);
    } else if (strstr(role, "\"network\"") != NULL) {
        ask(WEIR_VIDEO_CONNECTION);
    }
    (void)!read(0, slots, 1); /* until the parent has gone */
    return 0;
}

static int be_camera(void)
{
    struct weir_video_message setup;
    static char text[WEIR_VIDEO_SETUP_MAX_BYTES];
    int fds[2];
    if (weir_video_receive(0, &setup, fds) != WEIR_OK || recv(0, text, sizeof text - 1, 0) <= 0) {
        return 1;
    }
    slots = mmap(NULL, N_SLOTS * N_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    return slots == MAP_FAILED ? 2 : act(text);
}

/* ---- the test -------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct weir_video_taken held[N_SLOTS];
    struct weir_video_frame held_frames[N_SLOTS];
    size_t n_held, n_keep, n_frames, n_connections;
    int64_t connection, seq;
    bool is_in_order;
    enum weir_video_state state;
    bool has_state[4];
    char why[WEIR_VIDEO_TEXT_BYTES];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool shows(const struct weir_video_taken *taken, int64_t seq)
{
    const uint8_t *y = taken->view.planes[0];
    for (size_t i = 0; i < N_BYTES; i++) {
        if (y[i] != (uint8_t)(seq % 251)) {
            return false;
        }
    }
    return true;
}

static void on_frame(void *context, const struct weir_video_taken *taken)
{
    (void)context;
    pthread_mutex_lock(&seen.lock);
    seen.n_frames++;
    seen.n_connections += seen.connection != taken->connection;
    seen.is_in_order = seen.is_in_order && shows(taken, taken->frame->seq) &&
                       (taken->connection > seen.connection ||
                        (taken->connection == seen.connection && taken->frame->seq > seen.seq)) &&
                       taken->frame->received_ns <= weir_mono_ns();
    seen.connection = taken->connection;
    seen.seq = taken->frame->seq;
    bool is_kept = seen.n_held < seen.n_keep;
    if (is_kept) {
        seen.held[seen.n_held] = *taken;
        seen.held_frames[seen.n_held++] = *taken->frame;
    }
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
    if (!is_kept) {
        weir_video_slots_free(taken->slots, taken->slot);
    }
}

static void on_state(void *context, enum weir_video_state state, const char *why)
{
    (void)context;
    pthread_mutex_lock(&seen.lock);
    seen.state = state;
    seen.has_state[state] = true;
    (void)snprintf(seen.why, sizeof seen.why, "%s", why);
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

static json_t *source;
static struct weir_video_config config;
static struct weir_video_camera *camera;

static void start(const char *role, size_t n_keep)
{
    struct weir_error err;
    seen.n_held = seen.n_frames = seen.n_connections = 0;
    seen.connection = 0;
    seen.seq = -1;
    seen.is_in_order = true;
    seen.n_keep = n_keep;
    memset(seen.has_state, 0, sizeof seen.has_state);
    source = json_pack("{s:s}", "role", role);
    config = (struct weir_video_config){.program = "/proc/self/exe",
                                        .name = role,
                                        .source = source,
                                        .n_slots = N_SLOTS,
                                        .slot_bytes = N_BYTES,
                                        .on_frame = on_frame,
                                        .on_state = on_state};
    ck_assert_msg(weir_video_start(&config, &camera, &err) == WEIR_OK, "%s", err.message);
}

static void stop(void)
{
    weir_video_stop(camera);
    json_decref(source);
}

static void wait_frames(size_t n)
{
    pthread_mutex_lock(&seen.lock);
    while (seen.n_frames < n) {
        pthread_cond_wait(&seen.changed, &seen.lock);
    }
    pthread_mutex_unlock(&seen.lock);
}

static void wait_state(enum weir_video_state state)
{
    pthread_mutex_lock(&seen.lock);
    while (!seen.has_state[state]) {
        pthread_cond_wait(&seen.changed, &seen.lock);
    }
    pthread_mutex_unlock(&seen.lock);
}

START_TEST(frames_come_in_order_and_a_held_one_stays_as_it_is)
{
    start("steady", N_SLOTS - 1);
    wait_frames(500);
    for (size_t i = 0; i < N_SLOTS - 1; i++) {
        ck_assert(shows(&seen.held[i], seen.held_frames[i].seq));
    }
    ck_assert(seen.has_state[WEIR_VIDEO_IS_LIVE]);
    stop();
    ck_assert(seen.is_in_order);
    for (size_t i = 0; i < N_SLOTS - 1; i++) { /* longer than its camera */
        ck_assert(shows(&seen.held[i], seen.held_frames[i].seq));
        weir_video_slots_free(seen.held[i].slots, seen.held[i].slot);
    }
}

END_TEST

START_TEST(a_camera_that_dies_is_lost_and_comes_again_with_the_slots_that_are_free)
{
    struct weir_video_status status;
    start("dies", 1);
    wait_frames(60);
    weir_video_status(camera, &status);
    ck_assert_str_eq(status.why, "weir-camera has died");
    ck_assert_str_eq(status.codec, "h264");
    ck_assert_int_ge(status.n_connections, 3);
    ck_assert(seen.has_state[WEIR_VIDEO_IS_LOST]);
    ck_assert(shows(&seen.held[0], seen.held_frames[0].seq));
    stop();
    ck_assert(seen.is_in_order);
    weir_video_slots_free(seen.held[0].slots, seen.held[0].slot);
    ck_assert_uint_ge(seen.n_connections, 3);
}

END_TEST

static const struct {
    const char *role, *why;
    enum weir_video_state state;
} ends[] = {
    {"twice", "weir-camera gave a frame that is none", WEIR_VIDEO_IS_LOST},
    {"tall", "weir-camera gave a frame that is none", WEIR_VIDEO_IS_LOST},
    {"noise", "weir-camera broke the rules", WEIR_VIDEO_IS_LOST},
    {"over", "the file is over", WEIR_VIDEO_ENDED},
    {"file", "the document names no such thing", WEIR_VIDEO_IS_LOST},
    {"network", "the document names no such thing", WEIR_VIDEO_IS_LOST},
};

START_TEST(whatever_it_does_is_a_sentence)
{
    start(ends[_i].role, 1);
    wait_state(ends[_i].state);
    ck_assert_str_eq(seen.why, ends[_i].why);
    stop();
    if (seen.n_held > 0) {
        weir_video_slots_free(seen.held[0].slots, seen.held[0].slot);
    }
}

END_TEST

START_TEST(a_program_that_is_not_there_is_told)
{
    char path[4096];
    struct weir_error err;
    ck_assert_int_eq(setenv("PATH", "/nowhere", 1), 0);
    ck_assert_int_eq(weir_video_program(path, sizeof path, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "the package weir-camera"));
}

END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--serve") == 0) {
        return be_camera();
    }
    const struct weir_test_loop tests[] = {
        {frames_come_in_order_and_a_held_one_stays_as_it_is, 0},
        {a_camera_that_dies_is_lost_and_comes_again_with_the_slots_that_are_free, 0},
        {whatever_it_does_is_a_sentence, WEIR_ARRAY_LEN(ends)},
        {a_program_that_is_not_there_is_told, 0},
    };
    return weir_test_run(weir_test_loops("video", tests, WEIR_ARRAY_LEN(tests)));
}
