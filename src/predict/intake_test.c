/* Frames on their way in: names, order of the cameras, bounds of the queue, each frame once. */
#include "predict/intake.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "predict/camera_list.h"
#include "predict/source.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

START_TEST(a_frame_file_is_named_by_a_number)
{
    int64_t number;
    static const char *const good[] = {"7", "7.jpg", "000007.tar.gz", "7."};
    static const char *const bad[] = {
        "", ".7.jpg", "a7.jpg", "7a.jpg", "-7.jpg", "7 .jpg", "1234567890123456789.jpg"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(source_frame_number(good[i], &number), "%s", good[i]);
        ck_assert_int_eq(number, 7);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!source_frame_number(bad[i], &number), "%s", bad[i]);
    }
    ck_assert(source_frame_number("999999999999999999.pgm", &number));
    ck_assert_int_eq(number, 999999999999999999);
}

END_TEST

START_TEST(a_camera_has_a_plain_name)
{
    char longest[FRAME_CAMERA_BYTES + 1];
    memset(longest, 'c', sizeof longest);
    longest[FRAME_CAMERA_BYTES - 1] = '\0';
    ck_assert(frame_camera_is_valid(longest));
    longest[FRAME_CAMERA_BYTES - 1] = 'c';
    longest[FRAME_CAMERA_BYTES] = '\0';
    ck_assert(!frame_camera_is_valid(longest));
    ck_assert(frame_camera_is_valid("Tür 3"));
    ck_assert(!frame_camera_is_valid("\xff\xfe"));
    ck_assert(!frame_camera_is_valid(""));
    ck_assert(!frame_camera_is_valid("."));
    ck_assert(!frame_camera_is_valid("a/b"));
    ck_assert(!frame_camera_is_valid("a\nb"));
}

END_TEST

START_TEST(cameras_take_turns_and_each_gives_its_lowest_frame)
{
    struct camera_list list = {0};
    struct camera *from;
    struct camera_frame frame;
    struct camera *a = camera_list_add(&list, "a"), *b = camera_list_add(&list, "b");
    ck_assert_ptr_eq(camera_list_add(&list, "a"), a);
    static const int64_t numbers[] = {5, 3, 9, 3, 1};
    for (size_t i = 0; i < 5; i++) {
        camera_insert(a, numbers[i], "x");
    }
    camera_insert(b, 100, "y");
    camera_insert(b, 50, "y");

    static const struct {
        char camera;
        int64_t number;
    } wanted[] = {{'a', 1}, {'b', 50}, {'a', 3}, {'b', 100}, {'a', 5}, {'a', 9}};

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        ck_assert(camera_list_take(&list, &from, &frame));
        ck_assert_int_eq(from->name[0], wanted[i].camera);
        ck_assert_int_eq(frame.number, wanted[i].number);
    }
    ck_assert(!camera_list_take(&list, &from, &frame));
    camera_list_remove(&list, a);
    ck_assert_ptr_null(camera_list_find(&list, "a"));
    camera_list_fini(&list);
}

END_TEST

/* What a folder with more frames than the list holds looks like, in any order of reading. */
START_TEST(of_many_frames_the_lowest_are_held_and_the_rest_is_remembered_as_more)
{
    enum { N = 3 * CAMERA_FRAMES_MAX };
    struct camera_list list = {0};
    struct camera *from;
    struct camera_frame frame;
    static uint32_t numbers[N];
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 0);
    for (uint32_t i = 0; i < N; i++) {
        numbers[i] = i;
    }
    weir_rng_shuffle_u32(&rng, numbers, N);
    struct camera *camera = camera_list_add(&list, "c");
    for (uint32_t i = 0; i < N; i++) {
        camera_insert(camera, numbers[i], "x");
    }
    ck_assert(camera->has_more);
    for (int64_t i = 0; i < CAMERA_FRAMES_MAX; i++) {
        /* One that comes while others wait unlisted must not overtake them. */
        camera_insert(camera, N + i, "x");
        ck_assert(camera_list_take(&list, &from, &frame));
        ck_assert_int_eq(frame.number, i);
    }
    ck_assert(!camera_list_take(&list, &from, &frame));
    ck_assert(camera->has_more);
    camera_list_fini(&list);
}

END_TEST

/* ---- intake ---------------------------------------------------------------------------------- */

static struct frame *take(struct intake *intake)
{
    struct frame *frame = NULL;
    if (intake_take(intake, -1, &frame) != WEIR_OK) {
        return NULL;
    }
    intake_over(intake, frame->camera, 0);
    return frame;
}

static const struct intake_limits limits = {.max_queued = 3, .max_in_hand = 2, .max_bytes = 1000};

static weir_status put(struct intake *intake, int64_t number, size_t n_bytes)
{
    struct frame *frame = frame_create("cam", number);
    frame->n_bytes = n_bytes;
    weir_status status = intake_put(intake, frame, 0);
    if (status != WEIR_OK) {
        frame_destroy(frame);
    }
    return status;
}

START_TEST(the_intake_is_bounded_and_has_each_frame_once)
{
    struct intake *intake = intake_create(&limits);
    ck_assert_int_eq(put(intake, 1, 10), WEIR_ERR_UNAVAILABLE); /* Not open yet. */
    intake_open(intake);
    ck_assert_int_eq(put(intake, 1, 2000), WEIR_OK); /* A first one always fits. */
    ck_assert_int_eq(put(intake, 1, 10), WEIR_ERR_EXISTS);
    ck_assert_int_eq(put(intake, 2, 10), WEIR_ERR_UNAVAILABLE); /* Bytes. */
    struct frame *first = take(intake);
    ck_assert_int_eq(first->number, 1);
    ck_assert_int_eq(put(intake, 1, 10), WEIR_ERR_EXISTS); /* In hand. */
    for (int64_t i = 2; i <= 4; i++) {
        ck_assert_int_eq(put(intake, i, 10), WEIR_OK);
    }
    ck_assert_int_eq(put(intake, 5, 10), WEIR_ERR_UNAVAILABLE); /* Frames. */
    intake_done(intake, first);
    struct frame *second = take(intake);
    ck_assert_int_eq(second->number, 2);
    ck_assert_int_eq(put(intake, 1, 10), WEIR_OK); /* Done: may come again. */
    intake_close(intake);
    ck_assert_int_eq(put(intake, 9, 10), WEIR_ERR_CANCELLED);
    intake_done(intake, second);
    int64_t left[] = {3, 4, 1};
    for (size_t i = 0; i < 3; i++) {
        struct frame *frame = take(intake);
        ck_assert_int_eq(frame->number, left[i]);
        intake_done(intake, frame);
    }
    ck_assert_ptr_null(take(intake));
    intake_destroy(intake);
}

END_TEST

struct consumer {
    pthread_t thread;
    struct intake *intake;
    atomic_int n_in_hand, n_most, n_taken;
    int64_t last;
};

static void *consume(void *context)
{
    struct consumer *consumer = context;
    struct frame *frame, *before = NULL;
    while ((frame = take(consumer->intake)) != NULL) {
        ck_assert_int_gt(frame->number, consumer->last);
        consumer->last = frame->number;
        int in_hand = atomic_fetch_add(&consumer->n_in_hand, 1) + 1;
        atomic_store(&consumer->n_most, WEIR_MAX(atomic_load(&consumer->n_most), in_hand));
        atomic_fetch_add(&consumer->n_taken, 1);
        if (before != NULL) {
            atomic_fetch_sub(&consumer->n_in_hand, 1);
            intake_done(consumer->intake, before);
        }
        before = frame;
    }
    if (before != NULL) {
        intake_done(consumer->intake, before);
    }
    return NULL;
}

START_TEST(a_source_that_waits_gets_room_and_order_is_kept)
{
    enum { N = 2000 };
    struct consumer consumer = {.intake = intake_create(&limits), .last = -1};
    ck_assert_int_eq(pthread_create(&consumer.thread, NULL, consume, &consumer), 0);
    intake_open(consumer.intake);
    for (int64_t i = 0; i < N; i++) {
        ck_assert_int_eq(intake_put(consumer.intake, frame_create("c", i), -1), WEIR_OK);
    }
    intake_close(consumer.intake);
    pthread_join(consumer.thread, NULL);
    ck_assert_int_eq(atomic_load(&consumer.n_taken), N);
    ck_assert_int_le(atomic_load(&consumer.n_most), 2);
    intake_destroy(consumer.intake);
}

END_TEST

static int n_released, n_dropped;

static void count_release(struct frame *frame)
{
    n_released++;
    n_dropped += frame->is_dropped;
}

static weir_status put_live(struct intake *intake, const char *camera, int64_t number)
{
    struct frame *frame = frame_create(camera, number);
    frame->is_live = true;
    frame->release = count_release;
    weir_status status = intake_put(intake, frame, 0);
    if (status != WEIR_OK) {
        frame_destroy(frame);
    }
    return status;
}

/* Of a camera that is ahead of the engine its newest stay, in order; no other camera's frame makes room for them. */
START_TEST(the_newest_of_a_live_camera_wins)
{
    static const struct {
        const char *camera;
        int64_t number;
    } left[] = {{"still", 0}, {"a", 8}, {"a", 9}, {"b", 9}};
    const struct intake_limits four = {.max_queued = 4, .max_in_hand = 9, .max_bytes = 1 << 20};
    struct intake *intake = intake_create(&four);
    struct intake_counts counts;
    n_released = n_dropped = 0;
    ck_assert_int_eq(put_live(intake, "a", 0), WEIR_ERR_UNAVAILABLE); /* not open yet */
    intake_open(intake);
    ck_assert_int_eq(intake_put(intake, frame_create("still", 0), 0), WEIR_OK);
    for (int64_t i = 0; i < 9; i++) {
        ck_assert_int_eq(put_live(intake, "a", i), WEIR_OK);
    }
    ck_assert_int_eq(put_live(intake, "b", 8), WEIR_OK);
    ck_assert_int_eq(put_live(intake, "b", 9), WEIR_OK); /* full: in the place of its own */
    ck_assert_int_eq(put_live(intake, "c", 0), WEIR_ERR_UNAVAILABLE);
    ck_assert_int_eq(put_live(intake, "a", 9), WEIR_OK);
    intake_counts(intake, &counts);
    ck_assert_uint_eq(counts.n_dropped, 9);
    ck_assert_int_eq(n_dropped, 9);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(left); i++) {
        struct frame *frame = take(intake);
        size_t k = 0;
        while (strcmp(left[k].camera, frame->camera) != 0 || left[k].number != frame->number) {
            ck_assert_uint_lt(++k, WEIR_ARRAY_LEN(left));
        }
        intake_done(intake, frame);
    }
    ck_assert_int_eq(n_released, 14);
    intake_close(intake);
    intake_destroy(intake);
}

END_TEST

static void check_next(struct intake *intake, const char *camera, int64_t number)
{
    struct frame *frame;
    ck_assert_int_eq(intake_take(intake, 0, &frame), WEIR_OK);
    ck_assert_str_eq(frame->camera, camera);
    ck_assert_int_eq(frame->number, number);
    intake_done(intake, frame); /* durable, before the engine is through with it */
}

START_TEST(of_a_live_camera_one_frame_is_at_work_and_it_is_not_silent_then)
{
    const struct intake_limits room = {.max_queued = 9, .max_in_hand = 9, .max_bytes = 1 << 20};
    struct intake *intake = intake_create(&room);
    struct frame *frame;
    intake_open(intake);
    ck_assert_int_eq(put_live(intake, "a", 0), WEIR_OK);
    ck_assert_int_eq(put_live(intake, "a", 1), WEIR_OK);
    ck_assert_int_eq(put_live(intake, "b", 0), WEIR_OK);
    ck_assert_int_eq(intake_put(intake, frame_create("still", 0), 0), WEIR_OK);
    ck_assert_int_eq(intake_put(intake, frame_create("still", 1), 0), WEIR_OK);
    check_next(intake, "a", 0);
    check_next(intake, "b", 0);
    check_next(intake, "still", 0);
    check_next(intake, "still", 1); /* it is not live */
    ck_assert(!intake_is_silent(intake, "b", 10000));
    ck_assert(!intake_is_silent(intake, "still", 10000));
    intake_over(intake, "b", 0);
    intake_over(intake, "still", 0);
    ck_assert(intake_is_silent(intake, "b", 10000));
    ck_assert(!intake_is_silent(intake, "still", 10000)); /* the other one of it */
    intake_over(intake, "still", 0);
    ck_assert(intake_is_silent(intake, "still", 10000));
    intake_over(intake, "a", 0);
    check_next(intake, "a", 1);
    intake_over(intake, "a", 0);
    ck_assert_int_eq(intake_take(intake, 0, &frame), WEIR_ERR_TIMEOUT);
    intake_destroy(intake);
}

END_TEST

/* ---- laws ------------------------------------------------------------------------------------ */

#define N_CAMERAS 4
#define N_STEPS   4000

static const struct intake_limits wide = {.max_queued = 64, .max_in_hand = 9, .max_bytes = 1 << 20};

/** What the intake ought to hold of a camera, oldest first. */
struct held {
    int64_t numbers[FRAME_UNDECIDED_QUEUED + 1], times_ms[FRAME_UNDECIDED_QUEUED + 1];
    size_t n;
    bool is_undecided;
    uint64_t n_dropped, n_dropped_undecided;
};

static void forget_held(struct held *held, size_t i)
{
    held->n--;
    for (; i < held->n; i++) {
        held->numbers[i] = held->numbers[i + 1];
        held->times_ms[i] = held->times_ms[i + 1];
    }
}

/* Which of those that wait is to go for one of this time; said in another way than the intake does. */
static size_t goes(const struct held *held, int64_t time_ms)
{
    size_t best = 0;
    if (!held->is_undecided || time_ms - held->times_ms[0] > FRAME_UNDECIDED_MS) {
        return 0;
    }
    for (size_t i = held->n; i-- > 1;) {
        int64_t times[FRAME_UNDECIDED_QUEUED + 1];
        memcpy(times, held->times_ms, sizeof times);
        times[held->n] = time_ms;
        if (best == 0 || times[i + 1] - times[i - 1] <= times[best + 1] - times[best - 1]) {
            best = i;
        }
    }
    return best;
}

static void put_law(struct intake *intake, struct held *held, int i_camera, int64_t time_ms)
{
    char name[8];
    size_t n_most = held->is_undecided ? FRAME_UNDECIDED_QUEUED : FRAME_LIVE_QUEUED;
    (void)snprintf(name, sizeof name, "c%d", i_camera);
    struct frame *frame = frame_create(name, time_ms);
    frame->is_live = true;
    frame->received_ms = time_ms;
    ck_assert_int_eq(intake_put(intake, frame, 0), WEIR_OK);
    while (held->n >= n_most) {
        held->n_dropped++;
        held->n_dropped_undecided += held->is_undecided;
        forget_held(held, goes(held, time_ms));
    }
    held->numbers[held->n] = time_ms;
    held->times_ms[held->n++] = time_ms;
}

static void check_camera(struct intake *intake, const struct held *held, int i_camera)
{
    struct intake_camera camera;
    char name[8];
    (void)snprintf(name, sizeof name, "c%d", i_camera);
    intake_camera(intake, name, &camera);
    ck_assert_uint_eq(camera.n_queued, held->n);
    ck_assert_uint_eq(camera.n_dropped, held->n_dropped);
    ck_assert_uint_eq(camera.n_dropped_undecided, held->n_dropped_undecided);
}

/* Whoever is undecided is not dropped without need, and never so that a hole comes up; all others' newest stay. */
START_TEST(frames_of_somebody_who_is_not_decided_give_way_by_time_and_thin_out)
{
    uint64_t seed = weir_mono_ns();
    struct weir_rng rng;
    struct held held[N_CAMERAS] = {0};
    struct intake *intake = intake_create(&wide);
    int64_t time_ms = 1000;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    intake_open(intake);
    for (int step = 0; step < N_STEPS; step++) {
        int i = (int)weir_rng_below(&rng, N_CAMERAS);
        char name[8];
        (void)snprintf(name, sizeof name, "c%d", i);
        time_ms += 1 + (int64_t)weir_rng_below(&rng, 100);
        switch (weir_rng_below(&rng, 8)) {
        case 0:
            held[i].is_undecided = weir_rng_below(&rng, 3) > 0;
            intake_tell(intake, name, held[i].is_undecided);
            break;
        case 1: {
            struct frame *frame;
            if (intake_take(intake, 0, &frame) == WEIR_OK) {
                struct held *its = &held[frame->camera[1] - '0'];
                ck_assert_int_eq(frame->number, its->numbers[0]);
                forget_held(its, 0);
                intake_over(intake, frame->camera, 0);
                intake_done(intake, frame);
            }
            break;
        }
        default:
            put_law(intake, &held[i], i, time_ms);
        }
        for (int k = 0; k < N_CAMERAS; k++) {
            check_camera(intake, &held[k], k);
        }
    }
    intake_destroy(intake);
}

END_TEST

#define PERIOD_NS 100000000
#define SECONDS   60

/** A camera of 10 frames a second. */
struct sender {
    uint64_t cost_ns, next_ns;
    uint64_t n_sent, n_taken, spent_ns;
};

static void send_until(struct intake *intake, struct sender *senders, uint64_t now_ns)
{
    for (int i = 0; i < N_CAMERAS; i++) {
        for (; senders[i].next_ns <= now_ns; senders[i].next_ns += PERIOD_NS) {
            char name[8];
            (void)snprintf(name, sizeof name, "c%d", i);
            struct frame *frame = frame_create(name, (int64_t)senders[i].n_sent++);
            frame->is_live = true;
            frame->received_ms = (int64_t)(senders[i].next_ns / 1000000);
            ck_assert_int_eq(intake_put(intake, frame, 0), WEIR_OK);
        }
    }
}

/** A thread of an engine, at a frame. */
struct at_frame {
    struct sender *its; /**< NULL: at none. */
    uint64_t until_ns;
};

static bool can_take(struct intake *intake)
{
    bool can = false;
    for (int i = 0; i < N_CAMERAS; i++) {
        struct intake_camera camera;
        char name[8];
        (void)snprintf(name, sizeof name, "c%d", i);
        intake_camera(intake, name, &camera);
        can = can || (camera.n_queued > 0 && !camera.is_at_work);
    }
    return can;
}

static void begin_frame(struct intake *intake, struct sender *senders, uint64_t now_ns,
                        struct at_frame *hand)
{
    struct frame *frame;
    ck_assert_int_eq(intake_take(intake, 0, &frame), WEIR_OK);
    struct sender *its = &senders[frame->camera[1] - '0'];
    *hand = (struct at_frame){its, now_ns + its->cost_ns};
    its->n_taken++;
    its->spent_ns += its->cost_ns;
    intake_done(intake, frame);
}

static void end_frame(struct intake *intake, const struct sender *senders, struct at_frame *hand)
{
    char name[8];
    (void)snprintf(name, sizeof name, "c%d", (int)(hand->its - senders));
    intake_tell(intake, name, true);
    intake_over(intake, name, hand->its->cost_ns);
    hand->its = NULL;
}

/* An engine of one or two threads at frames of four cameras, of which one more than threads cost more than there is. */
static void play(struct intake *intake, struct sender *senders, size_t n_hands)
{
    struct at_frame hands[2] = {0};
    for (uint64_t now_ns = 0; now_ns < (uint64_t)SECONDS * 1000000000; now_ns += 1000000) {
        send_until(intake, senders, now_ns);
        for (size_t i = 0; i < n_hands; i++) {
            if (hands[i].its != NULL && hands[i].until_ns <= now_ns) {
                end_frame(intake, senders, &hands[i]);
            }
        }
        for (size_t i = 0; i < n_hands; i++) {
            if (hands[i].its == NULL && can_take(intake)) {
                begin_frame(intake, senders, now_ns, &hands[i]);
            }
        }
    }
}

START_TEST(a_camera_full_of_faces_takes_nothing_from_the_others)
{
    uint64_t seed = weir_mono_ns();
    struct weir_rng rng;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (int round = 0; round < 10; round++) {
        struct intake *intake = intake_create(&wide);
        int n_hands = 1 + round % 2, n_heavy = n_hands + 1; /* a camera has one frame at work */
        struct sender senders[N_CAMERAS] = {0};
        intake_open(intake);
        for (int i = 0; i < N_CAMERAS; i++) {
            uint64_t ms =
                i < n_heavy ? 70 + weir_rng_below(&rng, 140) : 1 + weir_rng_below(&rng, 20);
            senders[i].cost_ns = ms * 1000000;
            senders[i].next_ns = weir_rng_below(&rng, PERIOD_NS);
        }
        play(intake, senders, (size_t)n_hands);
        for (int i = n_heavy; i < N_CAMERAS; i++) {
            ck_assert_uint_ge(senders[i].n_taken + FRAME_UNDECIDED_QUEUED, senders[i].n_sent);
        }
        /* Those that want more than there is share the rest alike. */
        for (int i = 1; i < n_heavy; i++) {
            double share = (double)senders[i].spent_ns / (double)senders[0].spent_ns;
            ck_assert_msg(share > 0.9 && share < 1.1, "%g", share);
        }
        intake_destroy(intake);
    }
}

END_TEST

START_TEST(a_wait_for_a_frame_ends)
{
    struct frame *frame;
    struct intake *intake = intake_create(&wide);
    intake_open(intake);
    ck_assert_int_eq(intake_take(intake, 1, &frame), WEIR_ERR_TIMEOUT);
    ck_assert_int_eq(put(intake, 1, 10), WEIR_OK);
    ck_assert_int_eq(intake_take(intake, 1, &frame), WEIR_OK);
    intake_over(intake, frame->camera, 0);
    intake_done(intake, frame);
    intake_close(intake);
    ck_assert_int_eq(intake_take(intake, 1, &frame), WEIR_ERR_CANCELLED);
    intake_destroy(intake);
}

END_TEST

/* ---- what is done between frames ------------------------------------------------------------- */

#define N_ERRANDS 200
#define N_ASKERS  3
#define N_QUEUED  300

struct between {
    struct intake *intake;
    pthread_t taker;
    char log[N_QUEUED + N_ASKERS * N_ERRANDS + 1]; /* "f": a frame, "e": an errand; the taker's */
    size_t n_log;
    atomic_size_t n_run, n_ok, n_at_work;
    int taken[2]; /* A pipe of frames, from the taker to the finisher. */
};

static void run_between(void *context)
{
    struct between *between = context;
    ck_assert(pthread_equal(pthread_self(), between->taker));
    ck_assert_uint_eq(atomic_load(&between->n_at_work), 0);
    between->log[between->n_log++] = 'e';
    atomic_fetch_add(&between->n_run, 1);
}

static void *ask_between(void *context)
{
    struct between *between = context;
    for (int i = 0; i < N_ERRANDS; i++) {
        weir_status status = intake_run(between->intake, run_between, between);
        ck_assert(status == WEIR_OK || status == WEIR_ERR_CANCELLED);
        atomic_fetch_add(&between->n_ok, status == WEIR_OK);
    }
    return NULL;
}

static void *finish_taken(void *context)
{
    struct between *between = context;
    uintptr_t taken;
    while (read(between->taken[0], &taken, sizeof taken) == sizeof taken) {
        struct frame *frame = (struct frame *)taken;
        atomic_fetch_sub(&between->n_at_work, 1);
        intake_over(between->intake, frame->camera, 0);
        intake_done(between->intake, frame);
    }
    return NULL;
}

/* Frames are at work while others are taken; neither an errand nor the end of a wait comes meanwhile. */
static void *take_between(void *context)
{
    struct between *between = context;
    struct frame *frame;
    weir_status status;
    between->taker = pthread_self();
    while ((status = intake_take(between->intake, 0, &frame)) != WEIR_ERR_CANCELLED) {
        if (status == WEIR_ERR_TIMEOUT) {
            ck_assert_uint_eq(atomic_load(&between->n_at_work), 0);
            continue;
        }
        between->log[between->n_log++] = 'f';
        atomic_fetch_add(&between->n_at_work, 1);
        uintptr_t taken = (uintptr_t)frame;
        ck_assert_int_eq(write(between->taken[1], &taken, sizeof taken), sizeof taken);
    }
    close(between->taken[1]);
    return NULL;
}

/* However many ask, frames go on: one errand at most lies between two frames that wait. */
START_TEST(what_is_asked_is_done_once_between_frames_by_the_thread_that_takes_them)
{
    const struct intake_limits room = {
        .max_queued = N_QUEUED, .max_in_hand = N_QUEUED, .max_bytes = 1 << 20};
    struct between between = {.intake = intake_create(&room)};
    pthread_t taker, finisher, askers[N_ASKERS];
    ck_assert_int_eq(pipe(between.taken), 0);
    intake_open(between.intake);
    for (int i = 0; i < N_QUEUED; i++) {
        ck_assert_int_eq(intake_put(between.intake, frame_create("c", i), 0), WEIR_OK);
    }
    for (int i = 0; i < N_ASKERS; i++) {
        ck_assert_int_eq(pthread_create(&askers[i], NULL, ask_between, &between), 0);
    }
    ck_assert_int_eq(pthread_create(&taker, NULL, take_between, &between), 0);
    ck_assert_int_eq(pthread_create(&finisher, NULL, finish_taken, &between), 0);
    pthread_join(askers[0], NULL);
    intake_close(between.intake); /* while others ask */
    for (int i = 1; i < N_ASKERS; i++) {
        pthread_join(askers[i], NULL);
    }
    pthread_join(taker, NULL);
    pthread_join(finisher, NULL);
    close(between.taken[0]);
    struct intake_counts counts;
    intake_counts(between.intake, &counts);
    ck_assert_uint_eq(counts.n_accepted, N_QUEUED); /* an errand is no frame */
    ck_assert_uint_eq(atomic_load(&between.n_run), atomic_load(&between.n_ok));
    ck_assert_uint_ge(atomic_load(&between.n_ok), N_ERRANDS);
    char *last = strrchr(between.log, 'f'), *twice = strstr(between.log, "ee");
    ck_assert_msg(twice == NULL || twice > last, "%s", between.log);
    ck_assert_int_eq(intake_run(between.intake, run_between, &between), WEIR_ERR_CANCELLED);
    intake_destroy(between.intake);
}

END_TEST

WEIR_TEST_MAIN("intake", the_newest_of_a_live_camera_wins,
               of_a_live_camera_one_frame_is_at_work_and_it_is_not_silent_then,
               a_frame_file_is_named_by_a_number, a_camera_has_a_plain_name,
               cameras_take_turns_and_each_gives_its_lowest_frame,
               of_many_frames_the_lowest_are_held_and_the_rest_is_remembered_as_more,
               the_intake_is_bounded_and_has_each_frame_once,
               a_source_that_waits_gets_room_and_order_is_kept,
               frames_of_somebody_who_is_not_decided_give_way_by_time_and_thin_out,
               a_camera_full_of_faces_takes_nothing_from_the_others, a_wait_for_a_frame_ends,
               what_is_asked_is_done_once_between_frames_by_the_thread_that_takes_them)
