#include "video/slots.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct weir_video_slots {
    pthread_mutex_t lock;
    uint8_t *bytes;
    size_t n, slot_bytes;
    int fd;
    /* Under lock. */
    int socket;
    size_t n_refs;
    bool is_held[WEIR_VIDEO_SLOTS_MAX];
};

/* A file in memory that nobody can make shorter: what is mapped here is there. */
static weir_status make_memory(struct weir_video_slots *slots, struct weir_error *err)
{
    size_t size = slots->n * slots->slot_bytes;
    slots->fd = memfd_create("weir-video", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (slots->fd < 0 || ftruncate(slots->fd, (off_t)size) != 0 ||
        fcntl(slots->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return weir_error_set_errno(err, errno, "memory for %zu frames", slots->n);
    }
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, slots->fd, 0);
    if (bytes == MAP_FAILED) {
        return weir_error_set_errno(err, errno, "memory for %zu frames", slots->n);
    }
    slots->bytes = bytes;
    return WEIR_OK;
}

weir_status weir_video_slots_create(size_t n_slots, size_t slot_bytes,
                                    struct weir_video_slots **out, struct weir_error *err)
{
    if (n_slots < 1 || n_slots > WEIR_VIDEO_SLOTS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%zu slots: expected 1 to %d", n_slots,
                              WEIR_VIDEO_SLOTS_MAX);
    }
    struct weir_video_slots *slots = weir_xalloc(sizeof *slots);
    *slots = (struct weir_video_slots){
        .n = n_slots, .slot_bytes = slot_bytes, .fd = -1, .socket = -1, .n_refs = 1};
    pthread_mutex_init(&slots->lock, NULL);
    weir_status status = make_memory(slots, err);
    if (status != WEIR_OK) {
        weir_video_slots_unref(slots);
        return status;
    }
    *out = slots;
    return WEIR_OK;
}

void weir_video_slots_unref(struct weir_video_slots *slots)
{
    if (slots == NULL) {
        return;
    }
    pthread_mutex_lock(&slots->lock);
    bool is_last = --slots->n_refs == 0;
    pthread_mutex_unlock(&slots->lock);
    if (!is_last) {
        return;
    }
    if (slots->bytes != NULL) {
        (void)munmap(slots->bytes, slots->n * slots->slot_bytes);
    }
    if (slots->fd >= 0) {
        (void)close(slots->fd);
    }
    pthread_mutex_destroy(&slots->lock);
    free(slots);
}

int weir_video_slots_fd(const struct weir_video_slots *slots)
{
    return slots->fd;
}

/* Under lock. A socket that takes no more has a reader that does not read: it will be ended for that. */
static void tell_free(struct weir_video_slots *slots, uint32_t slot)
{
    struct weir_video_message message = {.kind = WEIR_VIDEO_FREE, .slot = slot};
    if (slots->socket >= 0 && weir_video_send(slots->socket, &message, NULL, 0, false) != WEIR_OK) {
        slots->socket = -1;
    }
}

void weir_video_slots_attach(struct weir_video_slots *slots, int socket)
{
    pthread_mutex_lock(&slots->lock);
    slots->socket = socket;
    for (uint32_t i = 0; i < slots->n; i++) {
        if (!slots->is_held[i]) {
            tell_free(slots, i);
        }
    }
    pthread_mutex_unlock(&slots->lock);
}

weir_status weir_video_slots_hold(struct weir_video_slots *slots, uint32_t slot,
                                  const struct weir_video_frame *frame, struct weir_view *out_view)
{
    size_t bytes = weir_video_frame_bytes(frame->width, frame->height);
    if (slot >= slots->n || bytes == 0 || bytes > slots->slot_bytes) {
        return WEIR_ERR_CORRUPT;
    }
    pthread_mutex_lock(&slots->lock);
    bool is_free = !slots->is_held[slot];
    slots->is_held[slot] = true;
    slots->n_refs += is_free;
    pthread_mutex_unlock(&slots->lock);
    if (!is_free) {
        return WEIR_ERR_CORRUPT;
    }
    *out_view = weir_video_view(slots->bytes + slot * slots->slot_bytes, frame);
    return WEIR_OK;
}

void weir_video_slots_free(struct weir_video_slots *slots, uint32_t slot)
{
    pthread_mutex_lock(&slots->lock);
    slots->is_held[slot] = false;
    tell_free(slots, slot);
    pthread_mutex_unlock(&slots->lock);
    weir_video_slots_unref(slots);
}

size_t weir_video_slots_n_held(struct weir_video_slots *slots)
{
    size_t n = 0;
    pthread_mutex_lock(&slots->lock);
    for (size_t i = 0; i < slots->n; i++) {
        n += slots->is_held[i];
    }
    pthread_mutex_unlock(&slots->lock);
    return n;
}

struct weir_view weir_video_view(const uint8_t *bytes, const struct weir_video_frame *frame)
{
    int width = frame->width, height = frame->height, half = (width + 1) / 2;
    const uint8_t *u = bytes + (size_t)width * (size_t)height;
    return (struct weir_view){
        .form = WEIR_VIEW_I420,
        .width = width,
        .height = height,
        .planes = {bytes, u, u + (size_t)half * (size_t)((height + 1) / 2)},
        .strides = {width, half, half},
        .is_full_range = frame->is_full_range != 0,
    };
}
