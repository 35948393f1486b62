/** The cameras: a thread each, and the ledger of what they show. */
#include "demo/cameras.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>

#define DAMAGED_EVERY 97 /* frames: one that is cut off */

weir_status camera_note(const struct camera *camera, const char *kind, int64_t number,
                        const struct demo_person *person, bool is_damaged, struct weir_error *err)
{
    char line[512];
    struct demo *demo = camera->demo;
    int len = snprintf(
        line, sizeof line,
        "{\"camera\":\"%s\",\"%s\":%lld,\"person\":\"%s\",\"damaged\":%s,\"time_ms\":%lld}\n",
        camera->name, kind, (long long)number, person->name, is_damaged ? "true" : "false",
        (long long)weir_time_ms());
    if (demo->ledger_fd < 0) {
        return WEIR_OK;
    }
    pthread_mutex_lock(&demo->ledger_lock);
    weir_status status = weir_fd_write_all(demo->ledger_fd, line, (size_t)len, err);
    pthread_mutex_unlock(&demo->ledger_lock);
    return status;
}

const struct demo_person *camera_draw(struct camera *camera, const struct demo_person *other)
{
    const struct demo *demo = camera->demo;
    const struct demo_person *person = other;
    while (person == other) {
        person = &demo->people[weir_rng_below(&camera->rng, demo->n_people)];
        other = demo->n_people > 1 ? other : NULL;
    }
    return person;
}

weir_status camera_photo(struct camera *camera, const struct demo_person *person, size_t *out_len,
                         struct weir_error *err)
{
    uint32_t n_enrolled = (uint32_t)camera->demo->n_enrolled_photos;
    uint32_t i_photo =
        n_enrolled + (uint32_t)weir_rng_below(&camera->rng, person->n_photos - n_enrolled);
    return demo_photo(camera->demo, person, i_photo, camera->photo, CAMERA_PHOTO_MAX_BYTES, out_len,
                      err);
}

weir_status camera_frame(struct camera *camera, int64_t i_tick, int64_t *out_number,
                         size_t *out_len, struct weir_error *err)
{
    const struct demo_person *person = camera_draw(camera, NULL);
    bool is_damaged = i_tick % DAMAGED_EVERY == DAMAGED_EVERY - 1;
    size_t len;
    *out_number = camera->demo->first_frame + i_tick;
    WEIR_TRY(camera_photo(camera, person, &len, err));
    *out_len = is_damaged ? len / 2 : len;
    return camera_note(camera, "frame", *out_number, person, is_damaged, err);
}

static void *camera_main(void *argument)
{
    struct camera *camera = argument;
    struct demo *demo = camera->demo;
    const struct camera_kind *kind = demo->kind;
    struct weir_error err;
    int64_t period_ns = (int64_t)(1e9 / demo->options->frames_per_second), i_tick = 0;
    uint64_t next_ns = weir_mono_ns() + (uint64_t)period_ns * camera->index / demo->n_cameras;
    while (!atomic_load(&demo->is_stopping) || (kind->is_busy != NULL && kind->is_busy(camera))) {
        struct timespec until = {.tv_sec = (time_t)(next_ns / 1000000000u),
                                 .tv_nsec = (long)(next_ns % 1000000000u)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        next_ns += (uint64_t)period_ns;
        if (kind->tick(camera, i_tick++, &err) != WEIR_OK) {
            demo_say("%s: %s", camera->name, err.message);
        }
    }
    if (kind->end != NULL) {
        kind->end(camera);
    }
    return NULL;
}

weir_status demo_ledger_open(struct demo *demo, struct weir_error *err)
{
    demo->ledger_fd =
        open(demo->ledger_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    return demo->ledger_fd >= 0
               ? WEIR_OK
               : weir_error_set_errno(err, errno, "cannot create %s", demo->ledger_path);
}

char *demo_camera_name(struct weir_arena *arena, size_t i_camera)
{
    return weir_arena_printf(arena, "door-%zu", i_camera + 1);
}

weir_status demo_cameras_start(struct demo *demo, const struct camera_kind *kind,
                               struct weir_error *err)
{
    struct weir_arena *arena = demo->call->arena;
    size_t n = (size_t)demo->options->cameras;
    demo->kind = kind;
    atomic_store(&demo->is_stopping, false);
    for (size_t i = 0; i < n; i++) {
        struct camera *camera = WEIR_ARENA_NEW(arena, struct camera);
        camera->demo = demo;
        camera->index = i;
        camera->photo = weir_arena_alloc(arena, CAMERA_PHOTO_MAX_BYTES);
        (void)snprintf(camera->name, sizeof camera->name, "%s", demo_camera_name(arena, i));
        weir_rng_init(&camera->rng, (uint64_t)demo->options->seed, 1000 + i);
        WEIR_TRY(kind->start(camera, err));
        demo->n_cameras = n;
        int reason = pthread_create(&demo->cameras[i], NULL, camera_main, camera);
        if (reason != 0) {
            demo->n_cameras = i;
            return weir_error_set_errno(err, reason, "cannot start a camera");
        }
    }
    return WEIR_OK;
}

void demo_cameras_stop(struct demo *demo)
{
    atomic_store(&demo->is_stopping, true);
    for (size_t i = 0; i < demo->n_cameras; i++) {
        pthread_join(demo->cameras[i], NULL);
    }
    demo->n_cameras = 0;
}
