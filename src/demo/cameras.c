/** The cameras: threads that write frames into the folder the replica reads, and keep the ledger.
 */
#include "demo/demo.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PHOTO_MAX_BYTES ((size_t)1 << 20)
#define DAMAGED_EVERY   97 /* frames: one that is cut off */

struct camera {
    struct demo *demo;
    size_t index;
    char name[32];
    char folder[4096];
    uint8_t *photo;
    struct weir_rng rng;
};

static weir_status note(struct demo *demo, const char *camera, int64_t frame, const char *person,
                        bool is_damaged, struct weir_error *err)
{
    char line[512];
    int len = snprintf(
        line, sizeof line,
        "{\"camera\":\"%s\",\"frame\":%lld,\"person\":\"%s\",\"damaged\":%s,\"time_ms\":%lld}\n",
        camera, (long long)frame, person, is_damaged ? "true" : "false", (long long)weir_time_ms());
    pthread_mutex_lock(&demo->ledger_lock);
    weir_status status = weir_fd_write_all(demo->ledger_fd, line, (size_t)len, err);
    pthread_mutex_unlock(&demo->ledger_lock);
    return status;
}

/* What the folder grants to its group, its entry grants too: the folder is the group's of all tasks
 * where tasks cannot be shown root's files as theirs (agent/sandbox.h), and this process, which is root
 * there, makes files that only root may read. The entry has the folder's group by set-group-ID, or
 * is given it if the folder was handed over in this moment. */
static void grant_as_folder(const char *folder, int fd, mode_t bits)
{
    struct stat parent;
    if (stat(folder, &parent) == 0 && (parent.st_mode & S_ISGID) != 0) {
        struct stat own;
        (void)!fchown(fd, (uid_t)-1, parent.st_gid);
        if (fstat(fd, &own) == 0) {
            (void)fchmod(fd, (own.st_mode & 07777) | bits);
        }
    }
}

static weir_status make_folder(const struct camera *camera, struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(camera->folder, 0755, err));
    int fd = open(camera->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", camera->folder);
    }
    grant_as_folder(camera->demo->frames_dir, fd, S_ISGID | S_IRWXG);
    (void)close(fd);
    return WEIR_OK;
}

static weir_status write_frame(const struct camera *camera, int64_t frame, size_t len,
                               struct weir_error *err)
{
    char temporary[4200], path[4200];
    (void)snprintf(temporary, sizeof temporary, "%s/.%lld.tmp", camera->folder, (long long)frame);
    (void)snprintf(path, sizeof path, "%s/%lld.pgm", camera->folder, (long long)frame);
    WEIR_TRY(weir_file_write(temporary, camera->photo, len, 0644, err));
    int fd = open(temporary, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", temporary);
    }
    grant_as_folder(camera->folder, fd, S_IRGRP);
    weir_status status = rename(temporary, path) == 0
                             ? WEIR_OK
                             : weir_error_set_errno(err, errno, "cannot rename %s", temporary);
    grant_as_folder(camera->folder, fd, S_IRGRP); /* handed over between the two */
    (void)close(fd);
    return status;
}

/* Someone comes by: anyone, with a photo that is not among the enrolled ones. The ledger knows of
 * the frame before the frame can be seen. */
static weir_status send_frame(struct camera *camera, int64_t i_frame, struct weir_error *err)
{
    int64_t frame = camera->demo->first_frame + i_frame;
    struct demo *demo = camera->demo;
    const struct demo_person *person = &demo->people[weir_rng_below(&camera->rng, demo->n_people)];
    uint32_t n_shown = person->n_photos - (uint32_t)demo->n_enrolled_photos;
    uint32_t i_photo =
        (uint32_t)demo->n_enrolled_photos + (uint32_t)weir_rng_below(&camera->rng, n_shown);
    bool is_damaged = i_frame % DAMAGED_EVERY == DAMAGED_EVERY - 1;
    size_t len;
    WEIR_TRY(demo_photo(demo, person, i_photo, camera->photo, PHOTO_MAX_BYTES, &len, err));
    WEIR_TRY(note(demo, camera->name, frame, person->name, is_damaged, err));
    return write_frame(camera, frame, is_damaged ? len / 2 : len, err);
}

static void *camera_main(void *argument)
{
    struct camera *camera = argument;
    struct demo *demo = camera->demo;
    struct weir_error err;
    int64_t period_ns = (int64_t)(1e9 / demo->options->frames_per_second), frame = 0;
    uint64_t next_ns = weir_mono_ns() + (uint64_t)period_ns * camera->index / demo->n_cameras;
    while (!atomic_load(&demo->is_stopping)) {
        struct timespec until = {.tv_sec = (time_t)(next_ns / 1000000000u),
                                 .tv_nsec = (long)(next_ns % 1000000000u)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        next_ns += (uint64_t)period_ns;
        if (send_frame(camera, frame++, &err) != WEIR_OK) {
            demo_say("%s: %s", camera->name, err.message);
        }
    }
    return NULL;
}

weir_status demo_cameras_start(struct demo *demo, struct weir_error *err)
{
    struct weir_arena *arena = demo->call->arena;
    demo->ledger_fd =
        open(demo->ledger_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (demo->ledger_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot create %s", demo->ledger_path);
    }
    for (size_t i = 0; i < (size_t)demo->options->cameras; i++) {
        struct camera *camera = WEIR_ARENA_NEW(arena, struct camera);
        camera->demo = demo;
        camera->index = i;
        camera->photo = weir_arena_alloc(arena, PHOTO_MAX_BYTES);
        (void)snprintf(camera->name, sizeof camera->name, "door-%zu", i + 1);
        (void)snprintf(camera->folder, sizeof camera->folder, "%s/%s", demo->frames_dir,
                       camera->name);
        weir_rng_init(&camera->rng, (uint64_t)demo->options->seed, 1000 + i);
        WEIR_TRY(make_folder(camera, err));
        demo->n_cameras = (size_t)demo->options->cameras;
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
