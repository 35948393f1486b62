/* Slots between a writer and readers: a law over random interleavings. */
#include "video/slots.h"

#include "base/arena.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_SLOTS  5
#define N_FRAMES 3000
#define WIDTH    31
#define HEIGHT   17

static const size_t slot_bytes = WIDTH * HEIGHT + 2 * 16 * 9;

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;

    struct {
        uint32_t slot;
        uint8_t value;
        struct weir_view view;
    } items[N_SLOTS];

    size_t n;
    bool is_over;
    size_t n_wrong;
    struct weir_video_slots *slots;
};

/* Holds a frame for a while, as another's work: it must stay as it was written. */
static void *read_frames(void *context)
{
    struct queue *queue = context;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        while (queue->n == 0 && !queue->is_over) {
            pthread_cond_wait(&queue->changed, &queue->lock);
        }
        if (queue->n == 0) {
            pthread_mutex_unlock(&queue->lock);
            return NULL;
        }
        size_t i = --queue->n;
        uint32_t slot = queue->items[i].slot;
        uint8_t value = queue->items[i].value;
        const uint8_t *bytes = queue->items[i].view.planes[0];
        pthread_mutex_unlock(&queue->lock);
        size_t n_wrong = 0;
        for (size_t k = 0; k < slot_bytes; k++) {
            n_wrong += bytes[k] != value;
        }
        weir_video_slots_free(queue->slots, slot);
        pthread_mutex_lock(&queue->lock);
        queue->n_wrong += n_wrong;
        pthread_mutex_unlock(&queue->lock);
    }
}

START_TEST(a_slot_is_of_one_side_at_a_time)
{
    struct weir_error err;
    struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    int pair[2], fds[2];
    pthread_t readers[3];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    ck_assert_int_eq(weir_video_slots_create(N_SLOTS, slot_bytes, &queue.slots, &err), WEIR_OK);
    uint8_t *bytes = mmap(NULL, N_SLOTS * slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                          weir_video_slots_fd(queue.slots), 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    weir_video_slots_attach(queue.slots, pair[0]);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_frames, &queue), 0);
    }
    const struct weir_video_frame frame = {.width = WIDTH, .height = HEIGHT};
    for (int n = 0; n < N_FRAMES; n++) {
        struct weir_video_message message;
        struct weir_view view;
        ck_assert_int_eq(weir_video_receive(pair[1], &message, fds), WEIR_OK);
        ck_assert_uint_eq(message.kind, WEIR_VIDEO_FREE);
        memset(bytes + message.slot * slot_bytes, n, slot_bytes);
        pthread_mutex_lock(&queue.lock);
        ck_assert_int_eq(weir_video_slots_hold(queue.slots, message.slot, &frame, &view), WEIR_OK);
        ck_assert_int_eq(weir_video_slots_hold(queue.slots, message.slot, &frame, &view),
                         WEIR_ERR_CORRUPT);
        queue.items[queue.n].slot = message.slot;
        queue.items[queue.n].value = (uint8_t)n;
        queue.items[queue.n++].view = view;
        pthread_cond_broadcast(&queue.changed);
        pthread_mutex_unlock(&queue.lock);
    }
    pthread_mutex_lock(&queue.lock);
    queue.is_over = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(readers[i], NULL);
    }
    ck_assert_uint_eq(queue.n_wrong, 0);
    ck_assert_uint_eq(weir_video_slots_n_held(queue.slots), 0);
    weir_video_slots_unref(queue.slots);
    (void)munmap(bytes, N_SLOTS * slot_bytes);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

END_TEST

START_TEST(what_does_not_fit_is_no_frame_and_nobody_shortens_the_memory)
{
    struct weir_error err;
    struct weir_view view;
    struct weir_video_slots *slots;
    ck_assert_int_eq(weir_video_slots_create(2, slot_bytes, &slots, &err), WEIR_OK);
    const struct weir_video_frame wrong[] = {{.width = WIDTH + 2, .height = HEIGHT},
                                             {.width = 0, .height = HEIGHT},
                                             {.width = -1, .height = -1},
                                             {.width = INT32_MAX, .height = INT32_MAX},
                                             {.width = 1, .height = 16385}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_video_slots_hold(slots, 0, &wrong[i], &view), WEIR_ERR_CORRUPT);
    }
    const struct weir_video_frame right = {.width = WIDTH, .height = HEIGHT};
    ck_assert_int_eq(weir_video_slots_hold(slots, 2, &right, &view), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(weir_video_slots_hold(slots, 1, &right, &view), WEIR_OK);
    ck_assert_int_eq(ftruncate(weir_video_slots_fd(slots), 0), -1);
    weir_video_slots_unref(slots); /* the hold is a reference */
    ck_assert_int_eq(view.planes[2][16 * 9 - 1], 0);
    weir_video_slots_free(slots, 1);
}

END_TEST

WEIR_TEST_MAIN("video_slots", a_slot_is_of_one_side_at_a_time,
               what_does_not_fit_is_no_frame_and_nobody_shortens_the_memory)
