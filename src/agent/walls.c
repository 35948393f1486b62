/* All sources are opened before anything is covered; then targets are covered and filled from the
 * outside in: /dev, private folders, shares, state and agent folder, what of them the task needs, /proc.
 */
#include "agent/reach.h"
#include "agent/walls_dev.h"
#include "agent/walls_private.h"
#include "base/file.h"
#include "base/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_made(const struct walls *w, const char *path)
{
    for (size_t i = 0; i < w->n_made; i++) {
        if (cell_is_below(path, w->made[i])) {
            return true;
        }
    }
    return false;
}

static weir_status note_made(struct walls *w, const char *path)
{
    if (w->n_made == MOUNTS_MAX) {
        errno = ENOSPC;
        return walls_fail(w, "too many folders at", path);
    }
    w->made[w->n_made++] = weir_arena_strdup(w->arena, path);
    return WEIR_OK;
}

/* Attach an empty file system to the folder `fd`, in which names can be made. */
static weir_status cover(struct walls *w, int fd, const char *path)
{
    int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
    int tree = -1;
    if (context >= 0 && w->n_covers < MOUNTS_MAX &&
        fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0) == 0 &&
        fsconfig(context, FSCONFIG_SET_STRING, "size", "1m", 0) == 0 &&
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        tree = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    }
    bool is_attached =
        tree >= 0 &&
        move_mount(tree, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
    weir_status status = is_attached ? WEIR_OK : walls_fail(w, "cannot cover", path);
    if (context >= 0) {
        close(context);
    }
    if (status == WEIR_OK) {
        w->covers[w->n_covers++] = tree;
        status = note_made(w, path);
    }
    return status;
}

static bool is_searchable(const struct walls *w, int fd)
{
    walls_be_user(w);
    bool is_good = faccessat(fd, ".", X_OK, AT_EACCESS) == 0;
    walls_be_root();
    return is_good;
}

/* Another task of the job may make it at the same time: they share /tmp. */
static bool make_part(int dir_fd, const char *name, bool is_dir)
{
    int rc = is_dir ? mkdirat(dir_fd, name, 0755) : mknodat(dir_fd, name, S_IFREG | 0644, 0);
    return rc == 0 || errno == EEXIST;
}

/* The entry `name` of `dir_fd`; made first if it is missing and this namespace's own. */
static int open_part(const struct walls *w, int dir_fd, const char *name, const char *so_far,
                     bool is_dir)
{
    int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_dir ? O_DIRECTORY : 0);
    int fd = openat(dir_fd, name, flags);
    if (fd < 0 && errno == ENOENT && is_made(w, so_far) && make_part(dir_fd, name, is_dir)) {
        fd = openat(dir_fd, name, flags);
    }
    return fd;
}

/* Where `path` is to be mounted; every folder on the way can be searched by the task's user, if
 * need be after it was covered. Links are not followed. */
static weir_status open_target(struct walls *w, const char *path, bool is_dir, int *out_fd)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *at = path + strspn(path, "/");
    while (fd >= 0 && *at != '\0') {
        size_t len = strcspn(at, "/");
        char *name = weir_arena_printf(w->arena, "%.*s", (int)len, at);
        char *so_far = weir_arena_printf(w->arena, "%.*s", (int)(at + len - path), path);
        at += len;
        at += strspn(at, "/");
        bool is_last = *at == '\0';
        int next = open_part(w, fd, name, so_far, is_dir || !is_last);
        if (next >= 0 && !is_last && !is_searchable(w, next)) {
            weir_status status = cover(w, next, so_far);
            close(next);
            next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
            if (status != WEIR_OK) {
                close(fd);
                return status;
            }
        }
        int errno_value = errno;
        close(fd);
        errno = errno_value;
        fd = next;
    }
    if (fd < 0) {
        return walls_fail(w, "cannot mount at", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

static weir_status attach(struct walls *w, const struct planned *planned)
{
    int fd = -1;
    WEIR_TRY(open_target(w, planned->target, planned->is_dir, &fd));
    int rc =
        move_mount(planned->tree_fd, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    weir_status status = rc == 0 ? WEIR_OK : walls_fail(w, "cannot mount at", planned->target);
    close(fd);
    close(planned->tree_fd);
    return status;
}

static weir_status attach_all(struct walls *w, const struct planned *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(attach(w, &list[i]));
    }
    return WEIR_OK;
}

/* A folder that is the job's alone, made at its first task here. */
static weir_status open_job_dir(struct walls *w, const char *path, mode_t mode, int *out_fd)
{
    struct stat info;
    (void)mkdir(path, 0700);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return walls_fail(w, "cannot make", path);
    }
    if (info.st_uid != w->cell->user && info.st_uid != 0) {
        errno = EEXIST; /* somebody else was quicker in a folder that all may write to */
        return walls_fail(w, "not the job's own:", path);
    }
    if (info.st_uid == 0 &&
        (fchown(fd, w->cell->user, w->cell->user) != 0 || fchmod(fd, mode) != 0)) {
        return walls_fail(w, "cannot hand over", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

static weir_status hide_machine(const struct walls *w)
{
    const struct weir_limits *limits = &w->task->limits;
    errno = walls_dev_close_sys();
    errno = errno == 0 ? walls_dev_mount(limits->devices, limits->n_devices) : errno;
    return errno == 0 ? WEIR_OK : walls_fail(w, "cannot build", "/dev and /sys");
}

static weir_status hide_folder(struct walls *w, const char *path)
{
    int fd = -1;
    if (path == NULL || (!is_made(w, path) && !weir_path_is_dir(path))) {
        return WEIR_OK;
    }
    WEIR_TRY(open_target(w, path, true, &fd));
    weir_status status = cover(w, fd, path);
    close(fd);
    return status;
}

/* The job's own folders are opened before the machine's are covered. */
static weir_status hide_rest_and_private(struct walls *w)
{
    int tmp_fd = -1, shm_fd = -1;
    WEIR_TRY(
        open_job_dir(w, weir_arena_printf(w->arena, "%s/tmp", w->cell->job_dir), 01777, &tmp_fd));
    WEIR_TRY(open_job_dir(w, w->cell->shm_dir, 0700, &shm_fd));
    WEIR_TRY(hide_machine(w));
    for (size_t i = 0; i < w->n_hidden; i++) {
        WEIR_TRY(hide_folder(w, w->hidden[i]));
    }
    for (size_t i = 0; i < WALLS_N_PRIVATE; i++) {
        struct planned planned = {.target = walls_private_dirs[i], .is_dir = true};
        bool is_shm = strcmp(walls_private_dirs[i], "/dev/shm") == 0;
        if (!is_made(w, walls_private_dirs[i]) && !weir_path_is_dir(walls_private_dirs[i])) {
            continue;
        }
        WEIR_TRY(walls_clone(w, is_shm ? shm_fd : tmp_fd, walls_private_dirs[i], MAP_NONE, true,
                             &planned.tree_fd));
        WEIR_TRY(attach(w, &planned));
        WEIR_TRY(note_made(w, walls_private_dirs[i]));
    }
    return WEIR_OK;
}

static void close_covers(struct walls *w)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    for (size_t i = 0; i < w->n_covers; i++) {
        (void)mount_setattr(w->covers[i], "", AT_EMPTY_PATH, &attr, sizeof attr);
        close(w->covers[i]);
    }
}

/* Processes of others are not shown: their command lines are nobody's business. Without a PID
 * namespace /proc may stay as it is: whatever matters in it asks for the same user anyway. In one,
 * numbers mean other processes there, and id-mapped mounts are made by number. */
static weir_status hide_processes(struct walls *w)
{
    return walls_mount_proc() || !w->cell->is_alone ? WEIR_OK
                                                    : walls_fail(w, "cannot mount", "/proc");
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The state folder without links; on a node without one it is made if the task needs it. */
static weir_status find_state(struct walls *w)
{
    char resolved[PATH_MAX];
    const char *dir = w->cell->state_dir;
    if (dir == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(dir, 0700, w->err));
    if (realpath(dir, resolved) == NULL) {
        return walls_fail(w, "cannot find the state folder", dir);
    }
    w->state_dir = weir_arena_strdup(w->arena, resolved);
    return WEIR_OK;
}

static weir_status enter_namespace(struct walls *w)
{
    gid_t readers = w->cell->readers;
    /* A slave: what the machine mounts and unmounts later is seen, nothing goes the other way. */
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
        (readers != 0 && (errno = weir_privileges_set_group(readers)) != 0)) {
        return walls_fail(w, "no mount namespace for", w->cell->agent_dir);
    }
    return WEIR_OK;
}

weir_status walls_build(const char *dir, const struct task *task, struct walls_view *view,
                        struct weir_arena *arena, struct weir_error *err)
{
    struct walls *w = weir_arena_alloc(arena, sizeof *w);
    memset(w, 0, sizeof *w);
    w->task = task;
    w->cell = &task->cell;
    w->arena = arena;
    w->err = err;
    mode_t umask_before = umask(0022);
    walls_find_programs(w);
    WEIR_TRY(enter_namespace(w));
    WEIR_TRY(hide_processes(w));
    WEIR_TRY(find_state(w));
    char *work = weir_arena_printf(arena, "%s/work", dir);
    WEIR_TRY(walls_plan(w, work, view));
    WEIR_TRY(hide_rest_and_private(w));
    WEIR_TRY(attach_all(w, w->shares, w->n_shares));
    WEIR_TRY(hide_folder(w, w->state_dir));
    if (w->state_dir == NULL || !cell_is_below(w->cell->agent_dir, w->state_dir)) {
        WEIR_TRY(hide_folder(w, w->cell->agent_dir));
    }
    WEIR_TRY(attach_all(w, w->own, w->n_own));
    walls_be_user(w);
    weir_status status = reach_check(w->cell, arena, err);
    walls_be_root();
    WEIR_TRY(status);
    close_covers(w);
    if (view != NULL) {
        walls_fill_view(w, view);
    }
    (void)umask(umask_before);
    return chdir(work) == 0 ? WEIR_OK : walls_fail(w, "cannot enter", work);
}
