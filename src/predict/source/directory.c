#include "predict/source.h"

#include "base/clock.h"
#include "base/complaint.h"
#include "base/file.h"
#include "base/log.h"
#include "endpoint/source/directory.h"
#include "predict/camera_list.h"
#include "predict/ignored.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESCAN_MS 5000
#define SETTLE_MS                                                                                  \
    2000 /**< A file that may still be written to is whole when quiet for so long.                 \
          */
#define PUT_WAIT_MS 100
#define PATH_BYTES  4400

#define CAMERA_EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define ROOT_EVENTS   (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)

struct source {
    struct source_config config;
    pthread_t thread;
    bool has_thread;
    atomic_bool is_closing;
    int inotify_fd, wake_fd, root_watch;
    struct camera_list list;
    int64_t rescan_ms; /**< Monotonic: when to look at everything again. */
    struct weir_complaint complaint;
    struct contact contact; /**< With the folder. */
    int64_t look_ms;        /**< Monotonic: when to look for files that are no frames. */
    json_t *told_of;        /**< Cameras that have been warned of: an object used as a set. */
    pthread_mutex_t lock;
    size_t n_ignored; /**< Under lock, like what follows. */
    char why_ignored[IGNORED_TEXT_BYTES];
    atomic_size_t n_waiting; /**< Frames in the list, and the one that finds no room. */
};

static const char *path_of(const struct source *source)
{
    return ((const struct weir_source_directory *)source->config.spec->source.options)->path;
}

static bool keeps_frames(const struct source *source)
{
    return source->config.spec->sandbox_dir != NULL;
}

static void complain(struct source *source, const char *event, const char *path, int errno_value)
{
    if (weir_complaint_is_due(&source->complaint, NULL)) {
        weir_log(WEIR_LOG_WARN, event, WEIR_KV_STR("path", path),
                 WEIR_KV_STR("reason", strerror(errno_value)));
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Nobody has the file open for writing: the kernel grants a read lease only then. */
static bool has_no_writer(int dir_fd, const char *file)
{
    int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) {
        return false;
    }
    bool is_granted = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
    if (is_granted) {
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    }
    close(fd);
    return is_granted;
}

/* Is the file whole, as far as can be told without having seen it being closed? */
static bool has_settled(int dir_fd, const char *file, const struct stat *st)
{
    int64_t changed_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
    int64_t age_ms = weir_time_ms() - changed_ms;
    return age_ms >= SETTLE_MS || age_ms < -SETTLE_MS || has_no_writer(dir_fd, file);
}

static void scan_camera(struct source *source, struct camera *camera)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    (void)snprintf(path, sizeof path, "%s/%s", path_of(source), camera->name);
    DIR *stream = opendir(path);
    if (stream == NULL) {
        if (errno != ENOENT) {
            complain(source, "camera_unreadable", path, errno);
        }
        return;
    }
    camera->n = 0;
    camera->has_more = false;
    while ((entry = readdir(stream)) != NULL) {
        int64_t number;
        struct stat st;
        /* What is no frame ignored_count tells of. */
        if (!source_frame_number(entry->d_name, &number) ||
            fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            S_ISDIR(st.st_mode)) {
            continue;
        }
        if (has_settled(dirfd(stream), entry->d_name, &st)) {
            camera_insert(camera, number, entry->d_name);
        } else {
            source->rescan_ms = WEIR_MIN(source->rescan_ms, weir_mono_ms() + SETTLE_MS / 2);
        }
    }
    closedir(stream);
}

/* The watch comes before the look, so that no file falls between them. */
static void meet_camera(struct source *source, const char *name)
{
    char path[PATH_BYTES];
    if (!frame_camera_is_valid(name) || !source_is_ours(source->config.spec, name)) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/%s", path_of(source), name);
    struct camera *camera = camera_list_find(&source->list, name);
    if (camera == NULL) {
        int watch = inotify_add_watch(source->inotify_fd, path, CAMERA_EVENTS);
        if (watch < 0 && errno == ENOTDIR) {
            return;
        }
        if (watch < 0 || (camera = camera_list_add(&source->list, name)) == NULL) {
            complain(source, "camera_not_watched", path, watch < 0 ? errno : EUSERS);
            return;
        }
        camera->watch = watch;
        weir_log(WEIR_LOG_INFO, "camera_found", WEIR_KV_STR("camera", name));
        scan_camera(source, camera);
    } else if (camera->n == 0) {
        scan_camera(source, camera);
    }
}

static void scan_root(struct source *source)
{
    const char *path = path_of(source);
    const struct dirent *entry;
    source->rescan_ms = weir_mono_ms() + RESCAN_MS;
    DIR *stream = opendir(path);
    if (stream == NULL) {
        contact_is_lost(&source->contact, strerror(errno));
        complain(source, "source_unreadable", path, errno);
        return;
    }
    contact_is_good(&source->contact);
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
            meet_camera(source, entry->d_name);
        }
    }
    closedir(stream);
}

/* ---- what is no frame ------------------------------------------------------------------------ */

static bool counts_camera(void *context, const char *camera)
{
    const struct source *source = context;
    return source_is_ours(source->config.spec, camera);
}

/* Once for each camera, as long as the replica runs. */
static void warn_of(void *context, const struct ignored_place *place)
{
    struct source *source = context;
    const char *camera = place->camera != NULL ? place->camera : "";
    if (json_object_get(source->told_of, camera) == NULL &&
        json_object_size(source->told_of) < CAMERAS_MAX) {
        json_object_set_new(source->told_of, camera, json_true());
        weir_log(WEIR_LOG_WARN, "frames_ignored", WEIR_KV_STR("camera", camera),
                 WEIR_KV_INT("n", (int64_t)place->n), WEIR_KV_STR("why", place->why));
    }
}

/* A large folder is looked at more seldom: at most a fiftieth of the time goes into it. */
static void look_for_ignored(struct source *source)
{
    char why[IGNORED_TEXT_BYTES];
    int64_t began_ms = weir_mono_ms();
    const struct ignored_look look = {.path = path_of(source),
                                      .now_ms = weir_time_ms(),
                                      .is_ours = counts_camera,
                                      .found = warn_of,
                                      .context = source,
                                      .is_first = source->config.spec->rank == 0};
    size_t n = ignored_count(&look, why);
    int64_t now_ms = weir_mono_ms();
    source->look_ms = now_ms + WEIR_MAX((int64_t)RESCAN_MS, 50 * (now_ms - began_ms));
    pthread_mutex_lock(&source->lock);
    source->n_ignored = n;
    memcpy(source->why_ignored, why, sizeof why);
    pthread_mutex_unlock(&source->lock);
}

static size_t ignored(struct source *source, char *why)
{
    pthread_mutex_lock(&source->lock);
    size_t n = source->n_ignored;
    memcpy(why, source->why_ignored, SOURCE_WHY_BYTES);
    pthread_mutex_unlock(&source->lock);
    return n;
}

static void take_event(struct source *source, const struct inotify_event *event)
{
    int64_t number;
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        /* Events are lost: forget what was listed and look at everything. */
        for (size_t i = 0; i < source->list.n; i++) {
            source->list.cameras[i]->n = 0;
        }
        source->rescan_ms = 0;
        return;
    }
    if (event->wd == source->root_watch) {
        if (event->len > 0) {
            meet_camera(source, event->name);
        }
        return;
    }
    struct camera *camera = camera_list_by_watch(&source->list, event->wd);
    if (camera == NULL) {
        return;
    }
    if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0) {
        (void)inotify_rm_watch(source->inotify_fd, camera->watch);
        camera_list_remove(&source->list, camera);
    } else if (event->len > 0 && source_frame_number(event->name, &number)) {
        camera_insert(camera, number, event->name);
    }
}

static void drain_events(struct source *source)
{
    _Alignas(struct inotify_event) char bytes[16384];
    ssize_t n;
    while ((n = read(source->inotify_fd, bytes, sizeof bytes)) > 0) {
        for (char *at = bytes; at < bytes + n;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            take_event(source, event);
            at += sizeof *event + event->len;
        }
    }
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void on_durable(void *context, const struct frame *frame)
{
    if (unlink(frame->path) != 0 && errno != ENOENT) {
        complain(context, "frame_not_removed", frame->path, errno);
    }
}

static void damage(struct frame *frame, const char *what)
{
    frame->damage = weir_xstrdup(what);
}

static void read_bytes(struct frame *frame, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        damage(frame, "not a regular file");
        return;
    }
    if ((uint64_t)st.st_size > FRAME_MAX_BYTES) {
        damage(frame, "the file is larger than 16 MiB");
        return;
    }
    frame->bytes = weir_xalloc((size_t)st.st_size + 1);
    while (frame->n_bytes < (size_t)st.st_size) {
        ssize_t n = read(fd, frame->bytes + frame->n_bytes, (size_t)st.st_size - frame->n_bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            damage(frame, strerror(errno));
        }
        if (n <= 0) {
            break;
        }
        frame->n_bytes += (size_t)n;
    }
}

/* NULL: the file is gone (decided in the meantime, or taken away). */
static struct frame *read_frame(struct source *source, const struct camera *camera,
                                const struct camera_frame *found)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s/%s", path_of(source), camera->name, found->file);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        return NULL;
    }
    struct frame *frame = frame_create(camera->name, found->number);
    frame->path = weir_xstrdup(path);
    /* Of one that is tried the frames are another's too: it looks, and leaves them. */
    frame->on_durable = keeps_frames(source) ? NULL : on_durable;
    frame->context = source;
    if (fd < 0) {
        damage(frame, strerror(errno));
    } else {
        read_bytes(frame, fd);
        close(fd);
    }
    frame->received_ns = weir_mono_ns();
    frame->received_ms = weir_time_ms();
    return frame;
}

static void wait_for_news(struct source *source)
{
    struct pollfd fds[] = {{.fd = source->inotify_fd, .events = POLLIN},
                           {.fd = source->wake_fd, .events = POLLIN}};
    int64_t wait_ms = source->rescan_ms - weir_mono_ms();
    if (wait_ms > 0) {
        (void)poll(fds, WEIR_ARRAY_LEN(fds), (int)wait_ms);
    }
}

static struct frame *next_frame(struct source *source)
{
    struct camera *camera;
    struct camera_frame found;
    while (camera_list_take(&source->list, &camera, &found)) {
        struct frame *frame = read_frame(source, camera, &found);
        camera->first = keeps_frames(source) ? found.number + 1 : 0;
        if (camera->n == 0 && camera->has_more) {
            scan_camera(source, camera);
        }
        if (frame != NULL) {
            return frame;
        }
    }
    return NULL;
}

static void count_waiting(struct source *source, bool has_frame)
{
    size_t n = has_frame;
    for (size_t i = 0; i < source->list.n; i++) {
        n += source->list.cameras[i]->n;
    }
    atomic_store(&source->n_waiting, n);
}

static void *directory_main(void *context)
{
    struct source *source = context;
    struct frame *frame = NULL;
    while (!atomic_load(&source->is_closing)) {
        drain_events(source);
        if (weir_mono_ms() >= source->rescan_ms) {
            scan_root(source);
        }
        if (weir_mono_ms() >= source->look_ms) {
            look_for_ignored(source);
        }
        bool has_frame = frame != NULL || (frame = next_frame(source)) != NULL;
        count_waiting(source, has_frame);
        if (!has_frame) {
            wait_for_news(source);
            continue;
        }
        /* Full: keep this one frame and look at events meanwhile; nothing else is read. */
        weir_status status = intake_put(source->config.intake, frame, PUT_WAIT_MS);
        if (status == WEIR_ERR_EXISTS) {
            frame_destroy(frame);
        }
        if (status == WEIR_OK || status == WEIR_ERR_EXISTS) {
            frame = NULL;
        }
    }
    frame_destroy(frame);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void close_source(struct source *source)
{
    const uint64_t one = 1;
    atomic_store(&source->is_closing, true);
    if (source->has_thread) {
        (void)!write(source->wake_fd, &one, sizeof one);
        pthread_join(source->thread, NULL);
        source->has_thread = false;
    }
}

static void stop(struct source *source)
{
    close_source(source);
    camera_list_fini(&source->list);
    json_decref(source->told_of);
    contact_fini(&source->contact);
    pthread_mutex_destroy(&source->lock);
    if (source->inotify_fd >= 0) {
        close(source->inotify_fd);
    }
    if (source->wake_fd >= 0) {
        close(source->wake_fd);
    }
    free(source);
}

/* A folder that is made here is for who may write into the folder around it: cameras are other users.
 * Around a sticky folder (/tmp) that would be everybody, so there it stays the replica's. */
static weir_status make_root(const char *path, struct weir_error *err)
{
    struct stat parent, made;
    char around[PATH_BYTES];
    if (weir_path_is_dir(path)) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(path, 0755, err));
    (void)snprintf(around, sizeof around, "%s/..", path);
    if (stat(around, &parent) == 0 && stat(path, &made) == 0 && (parent.st_mode & S_ISVTX) == 0 &&
        chmod(path, (made.st_mode & 07777) | (parent.st_mode & 0777)) != 0) {
        return weir_error_set_errno(err, errno, "opening %s to cameras", path);
    }
    return WEIR_OK;
}

static weir_status open_parts(struct source *source, struct weir_error *err)
{
    const char *path = path_of(source);
    WEIR_TRY(make_root(path, err));
    /* Sent when somebody opens a file for writing in the microseconds of has_no_writer's lease. */
    (void)signal(SIGIO, SIG_IGN);
    source->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    source->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (source->inotify_fd < 0 || source->wake_fd < 0) {
        return weir_error_set_errno(err, errno, "watching %s", path);
    }
    source->root_watch = inotify_add_watch(source->inotify_fd, path, ROOT_EVENTS);
    if (source->root_watch < 0) {
        return weir_error_set_errno(err, errno, "watching %s", path);
    }
    int failed = pthread_create(&source->thread, NULL, directory_main, source);
    if (failed != 0) {
        return weir_error_set_errno(err, failed, "starting a thread");
    }
    source->has_thread = true;
    return WEIR_OK;
}

static weir_status start(const struct source_config *config, struct source **out,
                         struct weir_error *err)
{
    struct source *source = weir_xalloc(sizeof *source);
    memset(source, 0, sizeof *source);
    source->config = *config;
    source->told_of = json_object();
    contact_init(&source->contact);
    pthread_mutex_init(&source->lock, NULL);
    source->inotify_fd = source->wake_fd = -1;
    weir_status status = open_parts(source, err);
    if (status != WEIR_OK) {
        stop(source);
        return status;
    }
    *out = source;
    return WEIR_OK;
}

static size_t waiting(struct source *source)
{
    return atomic_load(&source->n_waiting);
}

static json_t *status_of(struct source *source)
{
    return contact_to_json(&source->contact);
}

/* The folder is its own queue: little is read ahead. */
const struct source_ops source_directory = {
    .limits = {.max_queued = 2, .max_in_hand = 64, .max_bytes = (size_t)64 << 20},
    .start = start,
    .close = close_source,
    .stop = stop,
    .waiting = waiting,
    .ignored = ignored,
    .status = status_of,
};
