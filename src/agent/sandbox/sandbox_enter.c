/* All sources are opened before anything is covered; then targets are covered and filled from the
 * outside in: /dev, private folders, shares, state and agent folder, what of them the task needs, /proc.
 */
#include "agent/node/reach.h"
#include "agent/sandbox/sandbox_dev.h"
#include "agent/sandbox/sandbox_private.h"
#include "base/fd.h"
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

static bool is_made(const struct sandbox_builder *builder, const char *path)
{
    for (size_t i = 0; i < builder->n_made; i++) {
        if (sandbox_is_below(path, builder->made[i])) {
            return true;
        }
    }
    return false;
}

static weir_status note_made(struct sandbox_builder *builder, const char *path)
{
    if (builder->n_made == MOUNTS_MAX) {
        errno = ENOSPC;
        return sandbox_fail(builder, "too many folders at", path);
    }
    builder->made[builder->n_made++] = weir_arena_strdup(builder->arena, path);
    return WEIR_OK;
}

/* Attach an empty file system to the folder `fd`, in which names can be made. */
static weir_status cover(struct sandbox_builder *builder, int fd, const char *path)
{
    WEIR_AUTO(weir_fd_auto_close) int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
    int tree = -1;
    if (context >= 0 && builder->n_covers < MOUNTS_MAX &&
        fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0) == 0 &&
        fsconfig(context, FSCONFIG_SET_STRING, "size", "1m", 0) == 0 &&
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        tree = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    }
    bool is_attached =
        tree >= 0 &&
        move_mount(tree, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
    if (!is_attached) {
        return sandbox_fail(builder, "cannot cover", path);
    }
    builder->covers[builder->n_covers++] = tree;
    return note_made(builder, path);
}

static bool is_searchable(const struct sandbox_builder *builder, int fd)
{
    sandbox_be_user(builder);
    bool is_good = faccessat(fd, ".", X_OK, AT_EACCESS) == 0;
    sandbox_be_root();
    return is_good;
}

/* Another task of the job may make it at the same time: they share /tmp. */
static bool make_part(int dir_fd, const char *name, bool is_dir)
{
    int rc = is_dir ? mkdirat(dir_fd, name, 0755) : mknodat(dir_fd, name, S_IFREG | 0644, 0);
    return rc == 0 || errno == EEXIST;
}

/* The entry `name` of `dir_fd`; made first if it is missing and this namespace's own. */
static int open_part(const struct sandbox_builder *builder, int dir_fd, const char *name,
                     const char *so_far, bool is_dir)
{
    int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_dir ? O_DIRECTORY : 0);
    int fd = openat(dir_fd, name, flags);
    if (fd < 0 && errno == ENOENT && is_made(builder, so_far) && make_part(dir_fd, name, is_dir)) {
        fd = openat(dir_fd, name, flags);
    }
    return fd;
}

/* Where `path` is to be mounted; every folder on the way can be searched by the task's user, if
 * need be after it was covered. Links are not followed. */
static weir_status open_target(struct sandbox_builder *builder, const char *path, bool is_dir,
                               int *out_fd)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *at = path + strspn(path, "/");
    while (fd >= 0 && *at != '\0') {
        size_t len = strcspn(at, "/");
        char *name = weir_arena_printf(builder->arena, "%.*s", (int)len, at);
        char *so_far = weir_arena_printf(builder->arena, "%.*s", (int)(at + len - path), path);
        at += len;
        at += strspn(at, "/");
        bool is_last = *at == '\0';
        int next = open_part(builder, fd, name, so_far, is_dir || !is_last);
        if (next >= 0 && !is_last && !is_searchable(builder, next)) {
            weir_status status = cover(builder, next, so_far);
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
        return sandbox_fail(builder, "cannot mount at", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

static weir_status attach(struct sandbox_builder *builder, const struct planned *planned)
{
    int fd = -1;
    WEIR_TRY(open_target(builder, planned->target, planned->is_dir, &fd));
    int rc =
        move_mount(planned->tree_fd, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    weir_status status =
        rc == 0 ? WEIR_OK : sandbox_fail(builder, "cannot mount at", planned->target);
    close(fd);
    close(planned->tree_fd);
    return status;
}

static weir_status attach_all(struct sandbox_builder *builder, const struct planned *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(attach(builder, &list[i]));
    }
    return WEIR_OK;
}

/* A folder that is the job's alone, made at its first task here. */
static weir_status open_job_dir(struct sandbox_builder *builder, const char *path, mode_t mode,
                                int *out_fd)
{
    struct stat info;
    (void)mkdir(path, 0700);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return sandbox_fail(builder, "cannot make", path);
    }
    if (info.st_uid != builder->sandbox->user && info.st_uid != 0) {
        errno = EEXIST; /* somebody else was quicker in a folder that all may write to */
        return sandbox_fail(builder, "not the job's own:", path);
    }
    if (info.st_uid == 0 && (fchown(fd, builder->sandbox->user, builder->sandbox->user) != 0 ||
                             fchmod(fd, mode) != 0)) {
        return sandbox_fail(builder, "cannot hand over", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

static weir_status hide_machine(const struct sandbox_builder *builder)
{
    const struct weir_limits *limits = &builder->task->limits;
    errno = sandbox_dev_close_sys();
    errno = errno == 0 ? sandbox_dev_mount(limits->devices, limits->n_devices) : errno;
    return errno == 0 ? WEIR_OK : sandbox_fail(builder, "cannot build", "/dev and /sys");
}

static weir_status hide_folder(struct sandbox_builder *builder, const char *path)
{
    int fd = -1;
    if (path == NULL || (!is_made(builder, path) && !weir_path_is_dir(path))) {
        return WEIR_OK;
    }
    WEIR_TRY(open_target(builder, path, true, &fd));
    weir_status status = cover(builder, fd, path);
    close(fd);
    return status;
}

/* The job's own folders are opened before the machine's are covered. */
static weir_status hide_rest_and_private(struct sandbox_builder *builder)
{
    int tmp_fd = -1, shm_fd = -1;
    WEIR_TRY(open_job_dir(builder,
                          weir_arena_printf(builder->arena, "%s/tmp", builder->sandbox->job_dir),
                          01777, &tmp_fd));
    WEIR_TRY(open_job_dir(builder, builder->sandbox->shm_dir, 0700, &shm_fd));
    WEIR_TRY(hide_machine(builder));
    for (size_t i = 0; i < builder->n_hidden; i++) {
        WEIR_TRY(hide_folder(builder, builder->hidden[i]));
    }
    for (size_t i = 0; i < SANDBOX_N_PRIVATE; i++) {
        struct planned planned = {.target = sandbox_private_dirs[i], .is_dir = true};
        bool is_shm = strcmp(sandbox_private_dirs[i], "/dev/shm") == 0;
        if (!is_made(builder, sandbox_private_dirs[i]) &&
            !weir_path_is_dir(sandbox_private_dirs[i])) {
            continue;
        }
        WEIR_TRY(sandbox_clone(builder, is_shm ? shm_fd : tmp_fd, sandbox_private_dirs[i], MAP_NONE,
                               true, &planned.tree_fd));
        WEIR_TRY(attach(builder, &planned));
        WEIR_TRY(note_made(builder, sandbox_private_dirs[i]));
    }
    return WEIR_OK;
}

static void close_covers(struct sandbox_builder *builder)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    for (size_t i = 0; i < builder->n_covers; i++) {
        (void)mount_setattr(builder->covers[i], "", AT_EMPTY_PATH, &attr, sizeof attr);
        close(builder->covers[i]);
    }
}

/* Processes of others are not shown: their command lines are nobody's business. Without a PID
 * namespace /proc may stay as it is: whatever matters in it asks for the same user anyway. In one,
 * numbers mean other processes there, and id-mapped mounts are made by number. */
static weir_status hide_processes(struct sandbox_builder *builder)
{
    return sandbox_mount_proc() || !builder->sandbox->is_alone
               ? WEIR_OK
               : sandbox_fail(builder, "cannot mount", "/proc");
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The state folder without links; on a node without one it is made if the task needs it. */
static weir_status find_state(struct sandbox_builder *builder)
{
    char resolved[PATH_MAX];
    const char *dir = builder->sandbox->state_dir;
    if (dir == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(dir, 0700, builder->err));
    if (realpath(dir, resolved) == NULL) {
        return sandbox_fail(builder, "cannot find the state folder", dir);
    }
    builder->state_dir = weir_arena_strdup(builder->arena, resolved);
    return WEIR_OK;
}

static weir_status enter_namespace(struct sandbox_builder *builder)
{
    gid_t readers = builder->sandbox->readers;
    /* A slave: what the machine mounts and unmounts later is seen, nothing goes the other way. */
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
        (readers != 0 && (errno = weir_privileges_set_group(readers)) != 0)) {
        return sandbox_fail(builder, "no mount namespace for", builder->sandbox->agent_dir);
    }
    return WEIR_OK;
}

weir_status sandbox_enter(const char *dir, const struct task *task, struct sandbox_view *view,
                          struct weir_arena *arena, struct weir_error *err)
{
    struct sandbox_builder *builder = weir_arena_alloc(arena, sizeof *builder);
    memset(builder, 0, sizeof *builder);
    builder->task = task;
    builder->sandbox = &task->sandbox;
    builder->arena = arena;
    builder->err = err;
    mode_t umask_before = umask(0022);
    sandbox_find_programs(builder);
    WEIR_TRY(enter_namespace(builder));
    WEIR_TRY(hide_processes(builder));
    WEIR_TRY(find_state(builder));
    char *work = weir_arena_printf(arena, "%s/work", dir);
    WEIR_TRY(sandbox_plan(builder, work, view));
    WEIR_TRY(hide_rest_and_private(builder));
    WEIR_TRY(attach_all(builder, builder->shares, builder->n_shares));
    WEIR_TRY(hide_folder(builder, builder->state_dir));
    if (builder->state_dir == NULL ||
        !sandbox_is_below(builder->sandbox->agent_dir, builder->state_dir)) {
        WEIR_TRY(hide_folder(builder, builder->sandbox->agent_dir));
    }
    WEIR_TRY(attach_all(builder, builder->own, builder->n_own));
    sandbox_be_user(builder);
    weir_status status = reach_check(builder->sandbox, arena, err);
    sandbox_be_root();
    WEIR_TRY(status);
    close_covers(builder);
    if (view != NULL) {
        sandbox_fill_view(builder, view);
    }
    (void)umask(umask_before);
    return chdir(work) == 0 ? WEIR_OK : sandbox_fail(builder, "cannot enter", work);
}
