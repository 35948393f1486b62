#include "agent/image/image.h"

#include "agent/image/image_oci.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "client/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOB_PREFIX   "sha256:"
#define HEX_DIGITS    64
#define LOCK_SUFFIX   ".lock"
#define TICK_MS       500
#define TELL_EVERY_MS 10000

static bool is_blob(const char *name)
{
    size_t prefix = sizeof BLOB_PREFIX - 1;
    return strncmp(name, BLOB_PREFIX, prefix) == 0 && strlen(name) == prefix + HEX_DIGITS &&
           strspn(name + prefix, "0123456789abcdef") == HEX_DIGITS;
}

bool image_name_is_good(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-+";
    return is_blob(name) || (name[0] != '\0' && name[0] != '.' && strlen(name) < 128 &&
                             strspn(name, letters) == strlen(name));
}

/* Where a named image lies; its KEY changes when the operator puts another one there. */
static weir_status find_named(const struct image_source *source, struct weir_arena *arena,
                              char **out_path, char **out_key, struct weir_error *err)
{
    struct stat info, index;
    if (source->folder == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "image \"%s\": this node has no folder of images (weir agent "
                              "--images DIR); one that is a blob of the server is named %sHEX",
                              source->name, BLOB_PREFIX);
    }
    char *path = weir_arena_printf(arena, "%s/%s", source->folder, source->name);
    if (lstat(path, &info) != 0 || !(S_ISDIR(info.st_mode) || S_ISREG(info.st_mode))) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "image \"%s\": neither a file nor a folder of this name is in %s",
                              source->name, source->folder);
    }
    if (S_ISDIR(info.st_mode) &&
        stat(weir_arena_printf(arena, "%s/index.json", path), &index) == 0) {
        info = index;
    }
    *out_path = path;
    *out_key = weir_arena_printf(arena, "%s@%llx-%llx-%llx.%lx", source->name,
                                 (unsigned long long)info.st_ino, (unsigned long long)info.st_size,
                                 (unsigned long long)info.st_mtim.tv_sec,
                                 (unsigned long)info.st_mtim.tv_nsec);
    return WEIR_OK;
}

/* *out_path is NULL for a blob. */
static weir_status find(const struct image_source *source, struct weir_arena *arena,
                        char **out_path, char **out_key, struct weir_error *err)
{
    if (!image_name_is_good(source->name)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "image \"%.80s\": expected %sHEX, or the name of one on the node",
                              source->name, BLOB_PREFIX);
    }
    if (!is_blob(source->name)) {
        return find_named(source, arena, out_path, out_key, err);
    }
    *out_path = NULL;
    *out_key = weir_arena_strdup(arena, source->name + sizeof BLOB_PREFIX - 1);
    return WEIR_OK;
}

static char *images_dir(const struct image_source *source, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/images", source->agent_dir);
}

/* A file that was removed meanwhile is locked in vain: then the one that is there now. */
static weir_status lock(const char *path, int operation, int *out_fd, struct weir_error *err)
{
    struct stat locked, there;
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || flock(fd, operation) != 0 || fstat(fd, &locked) != 0) {
            weir_status status = weir_error_set_errno(err, errno, "cannot lock %s", path);
            if (fd >= 0) {
                close(fd);
            }
            return status;
        }
        if (stat(path, &there) == 0 && there.st_ino == locked.st_ino &&
            there.st_dev == locked.st_dev) {
            *out_fd = fd;
            return WEIR_OK;
        }
        close(fd);
    }
}

/* ---- those that nobody uses -------------------------------------------------------------------- */

struct unused {
    char name[NAME_MAX + 1];
    struct timespec used;
};

static int newest_first(const void *a, const void *b)
{
    const struct timespec *x = &((const struct unused *)a)->used;
    const struct timespec *y = &((const struct unused *)b)->used;
    return x->tv_sec != y->tv_sec ? (x->tv_sec < y->tv_sec ? 1 : -1)
                                  : (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* Its lock goes last. */
static void remove_unused(const char *images, const char *lock_name)
{
    char path[PATH_MAX];
    struct weir_error err;
    int fd = -1;
    (void)snprintf(path, sizeof path, "%s/%s", images, lock_name);
    if (lock(path, LOCK_EX | LOCK_NB, &fd, NULL) != WEIR_OK) {
        return; /* in use */
    }
    char *suffix = path + strlen(path) - (sizeof LOCK_SUFFIX - 1);
    *suffix = '\0';
    weir_status status = weir_dir_remove(path, &err);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "image_not_removed", WEIR_KV_STR("dir", path),
                 WEIR_KV_STR("error", err.message));
    }
    *suffix = LOCK_SUFFIX[0];
    if (status == WEIR_OK) {
        (void)unlink(path);
    }
    close(fd);
}

static void sweep(const char *images)
{
    static struct unused found[256];
    size_t n = 0;
    DIR *dir = opendir(images);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
         entry != NULL && n < WEIR_ARRAY_LEN(found); entry = readdir(dir)) {
        struct stat info;
        size_t len = strlen(entry->d_name), suffix = sizeof LOCK_SUFFIX - 1;
        if (len > suffix && strcmp(entry->d_name + len - suffix, LOCK_SUFFIX) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &info, 0) == 0) {
            (void)snprintf(found[n].name, sizeof found[n].name, "%s", entry->d_name);
            found[n++].used = info.st_mtim;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(found, n, sizeof found[0], newest_first);
    for (size_t i = IMAGES_KEPT; i < n; i++) {
        remove_unused(images, found[i].name);
    }
}

/* ---- fetching ---------------------------------------------------------------------------------- */

static weir_status download(const struct image_source *source, const char *file,
                            struct weir_error *err)
{
    struct weir_client *client;
    WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = source->server,
                                                           .token = source->token,
                                                           .ca_file = source->ca_file},
                              &client, err));
    weir_status status =
        weir_client_blob_get(client, source->name + sizeof BLOB_PREFIX - 1, file, err);
    weir_client_close(client);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "image \"%s\": ", source->name);
}

/* The lock is held. What an earlier try left goes first. */
static weir_status make(const struct image_source *source, const char *path, const char *dir,
                        struct image_progress *progress, struct weir_arena *arena,
                        struct weir_error *err)
{
    struct image_bounds *bounds = &progress->bounds;
    char *making = weir_arena_printf(arena, "%s.tmp", dir);
    char *archive = weir_arena_printf(arena, "%s/archive", making);
    int64_t total = 0, free_bytes = 0;
    WEIR_TRY(weir_dir_remove(making, err));
    WEIR_TRY(weir_dir_make(making, 0755, err));
    if (path == NULL) {
        (void)snprintf(progress->archive, sizeof progress->archive, "%s", archive);
        progress->phase = IMAGE_IS_FETCHED;
        WEIR_TRY(download(source, archive, err));
    }
    WEIR_TRY(weir_disk_space(making, &total, &free_bytes, err));
    *bounds = (struct image_bounds){.max_entries = IMAGE_ENTRIES_MAX, .max_bytes = free_bytes / 2};
    progress->phase = IMAGE_IS_UNPACKED;
    weir_status status =
        image_oci_unpack(path != NULL ? path : archive, making, bounds, arena, err);
    if (status != WEIR_OK) {
        struct weir_error ignored;
        if (weir_dir_remove(making, &ignored) != WEIR_OK) {
            weir_log(WEIR_LOG_WARN, "image_not_removed", WEIR_KV_STR("dir", making),
                     WEIR_KV_STR("error", ignored.message));
        }
        return weir_error_prefix(err, "image \"%.80s\": ", source->name);
    }
    (void)unlink(archive);
    return rename(making, dir) == 0 ? WEIR_OK
                                    : weir_error_set_errno(err, errno, "cannot rename %s", making);
}

/**
 * Make sure that the image is here; that may take minutes, so do it in a process of its own. A
 * process that is killed leaves what the next one removes.
 * @return NOT_FOUND for a name or a blob that is not there; INVALID for a bad name; as
 *         image_oci_unpack; as weir_client_blob_get.
 */
static weir_status fetch_image(const struct image_source *source, struct image_progress *progress,
                               struct weir_arena *arena, struct weir_error *err)
{
    char *path = NULL, *key = NULL, *images = images_dir(source, arena);
    int fd = -1;
    WEIR_TRY(find(source, arena, &path, &key, err));
    WEIR_TRY(weir_dir_make(images, 0700, err));
    char *dir = weir_arena_printf(arena, "%s/%s", images, key);
    WEIR_TRY(lock(weir_arena_printf(arena, "%s" LOCK_SUFFIX, dir), LOCK_EX, &fd, err));
    mode_t umask_before = umask(0022);
    weir_status status =
        weir_path_is_dir(dir) ? WEIR_OK : make(source, path, dir, progress, arena, err);
    (void)umask(umask_before);
    close(fd);
    return status;
}

/**
 * Keep it as long as *out_lock_fd is open.
 * @param out_dir  Its folder, with rootfs/ and image.json.
 * @return NOT_FOUND if it is not here.
 */
static weir_status hold_image(const struct image_source *source, struct weir_arena *arena,
                              char **out_dir, int *out_lock_fd, struct weir_error *err)
{
    char *path = NULL, *key = NULL, *images = images_dir(source, arena);
    int fd = -1;
    WEIR_TRY(find(source, arena, &path, &key, err));
    char *dir = weir_arena_printf(arena, "%s/%s", images, key);
    WEIR_TRY(lock(weir_arena_printf(arena, "%s" LOCK_SUFFIX, dir), LOCK_SH, &fd, err));
    if (!weir_path_is_dir(dir)) {
        close(fd);
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "image \"%.80s\" is not on this node",
                              source->name);
    }
    (void)futimens(fd, NULL); /* used now */
    sweep(images);
    *out_dir = dir;
    *out_lock_fd = fd;
    return WEIR_OK;
}

/* ---- in a process of its own ------------------------------------------------------------------- */

/* What it says at its end. */
struct said {
    weir_status status;
    struct weir_error err;
};

static _Noreturn void fetch_and_say(const struct image_source *source,
                                    struct image_progress *progress, struct weir_arena *arena,
                                    int fd)
{
    struct said said = {.status = WEIR_OK};
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    said.status = fetch_image(source, progress, arena, &said.err);
    (void)!write(fd, &said, sizeof said);
    _exit(0);
}

/* Figures that its child is just changing: any of the last moment will do. */
static void tell(const struct image_watch *watch, const struct image_progress *progress)
{
    char text[160];
    struct stat info;
    double mib = 1 << 20;
    switch (progress->phase) {
    case IMAGE_WAITS:
        (void)snprintf(text, sizeof text, "another task of this node is unpacking it");
        break;
    case IMAGE_IS_FETCHED:
        (void)snprintf(text, sizeof text, "fetching it, %.1f MiB so far",
                       stat(progress->archive, &info) == 0 ? (double)info.st_size / mib : 0.0);
        break;
    case IMAGE_IS_UNPACKED:
        (void)snprintf(text, sizeof text, "unpacking it, %lld files and %.1f MiB so far",
                       (long long)progress->bounds.entries, (double)progress->bounds.bytes / mib);
        break;
    }
    watch->tell(watch->context, text);
}

static weir_status wait_for(pid_t child, int fd, const struct image_watch *watch,
                            const struct image_progress *progress, struct weir_error *err)
{
    struct said said;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    bool is_over = false, is_cancelled = false;
    int64_t tell_ms = weir_mono_ms() + watch->tell_after_ms;
    while (!is_over && !is_cancelled) {
        is_over = poll(&ready, 1, TICK_MS) > 0;
        is_cancelled = !is_over && watch->is_stopped(watch->context);
        if (!is_over && watch->tell != NULL && weir_mono_ms() >= tell_ms) {
            tell(watch, progress);
            tell_ms = weir_mono_ms() + TELL_EVERY_MS;
        }
    }
    ssize_t n = is_over ? read(fd, &said, sizeof said) : 0;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    if (is_cancelled) {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped before its image was here");
    }
    if (n != (ssize_t)sizeof said) {
        return weir_error_set(err, WEIR_ERR_IO,
                              "what was to fetch the task's image ended, and did not say why");
    }
    *err = said.err;
    return said.status;
}

/* Shared with the child. NULL: no memory. */
static struct image_progress *progress_map(void)
{
    void *at = mmap(NULL, sizeof(struct image_progress), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED ? at : NULL;
}

static weir_status fetch_in_child(const struct image_source *source,
                                  const struct image_watch *watch, struct image_progress *progress,
                                  struct weir_arena *arena, struct weir_error *err)
{
    int said[2];
    if (pipe2(said, O_CLOEXEC) != 0) {
        return weir_error_set_errno(err, errno, "cannot fetch the task's image");
    }
    pid_t child = fork();
    if (child == 0) {
        close(said[0]);
        fetch_and_say(source, progress, arena, said[1]);
    }
    int errno_value = errno;
    close(said[1]);
    weir_status status =
        child > 0 ? wait_for(child, said[0], watch, progress, err)
                  : weir_error_set_errno(err, errno_value, "cannot fetch the task's image");
    close(said[0]);
    return status;
}

weir_status image_get(const struct image_source *source, const struct image_watch *watch,
                      struct weir_arena *arena, char **out_dir, int *out_lock_fd,
                      struct weir_error *err)
{
    if (hold_image(source, arena, out_dir, out_lock_fd, err) == WEIR_OK) {
        return WEIR_OK;
    }
    struct image_progress *progress = progress_map();
    if (progress == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "cannot fetch the task's image: no memory");
    }
    weir_status status = fetch_in_child(source, watch, progress, arena, err);
    (void)munmap(progress, sizeof *progress);
    return status == WEIR_OK ? hold_image(source, arena, out_dir, out_lock_fd, err) : status;
}
