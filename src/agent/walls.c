/* All sources are opened before anything is covered; then targets are covered and filled from the
 * outside in: /dev, private folders, shares, state and agent folder, what of them the task needs, /proc.
 */
#include "agent/walls.h"

#include "agent/idmap.h"
#include "agent/reach.h"
#include "agent/walls_dev.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOUNTS_MAX (2 * CELL_PATHS_MAX + 32)

/* How a mount is owned, and what is done where the file system has no id-mapped mounts. */
enum mapping {
    MAP_NONE,   /* as it is */
    MAP_TRY,    /* mapped, else as it is */
    MAP_OWN,    /* mapped, else given to the user */
    MAP_COMMON, /* mapped, else readable for the group of all tasks */
    MAP_SHARED, /* mapped, else writable for the group of all tasks */
};

/* A mount that is attached later. */
struct planned {
    const char *target;
    int tree_fd;
    bool is_dir;
};

struct walls {
    const struct task *task;
    const struct cell *cell;
    struct weir_arena *arena;
    struct weir_error *err;
    struct idmap_cache maps;
    char *state_dir;   /* without links; NULL: none */
    char *program_dir; /* of Weir's programs; NULL: not known */
    struct planned shares[MOUNTS_MAX], own[MOUNTS_MAX];
    size_t n_shares, n_own;
    const char *made[MOUNTS_MAX]; /* folders of this namespace alone: new names may be made there */
    size_t n_made;
    int covers[MOUNTS_MAX]; /* empty file systems, made read-only at the end */
    size_t n_covers;
};

static weir_status fail(const struct walls *w, const char *what, const char *path)
{
    return weir_error_set_errno(w->err, errno, "cannot isolate task %s: %s %s", w->task->id, what,
                                path);
}

/* From here on files are opened as the task's user, without root's rights; and back. */
static void be_user(const struct walls *w)
{
    (void)setfsgid(w->cell->user);
    (void)setfsuid(w->cell->user);
}

static void be_root(void)
{
    (void)setfsuid(0);
    (void)setfsgid(0);
}

/* ---- sources --------------------------------------------------------------------------------- */

static int give_up_map(const struct walls *w, int fd, enum mapping mapping, uid_t disk_user)
{
    struct idmap map = {disk_user, w->cell->user, 0, 0};
    map.group = mapping == MAP_OWN ? w->cell->user : w->cell->readers;
    switch (mapping) {
    case MAP_OWN:
        return idmap_give(fd, &map);
    case MAP_COMMON:
        return idmap_let_read(fd, &map);
    case MAP_SHARED:
        return idmap_let_write(fd, &map);
    case MAP_NONE:
    case MAP_TRY:
        break;
    }
    return 0;
}

/* A copy of the mount of `fd` (O_PATH), not yet attached anywhere. */
static weir_status clone_tree(struct walls *w, int fd, const char *path, enum mapping mapping,
                              bool is_writable, int *out_tree)
{
    struct stat info;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          (is_writable ? 0 : MOUNT_ATTR_RDONLY)};
    int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 || fstat(fd, &info) != 0 ||
        mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
        return fail(w, "cannot map", path);
    }
    struct idmap map = {info.st_uid, w->cell->user, info.st_gid, w->cell->user};
    /* Where the agent is not root they are the task's already. */
    if (mapping != MAP_NONE && info.st_uid != w->cell->user &&
        idmap_apply(&w->maps, tree, &map) != 0) {
        errno = give_up_map(w, fd, mapping, info.st_uid);
        if (errno != 0) {
            return fail(w, "cannot hand over", path);
        }
    }
    *out_tree = tree;
    return WEIR_OK;
}

static weir_status plan_mount(struct walls *w, struct planned *list, size_t *n, int fd,
                              const char *target, enum mapping mapping, bool is_writable)
{
    struct stat info;
    if (*n == MOUNTS_MAX || fstat(fd, &info) != 0) {
        return fail(w, "too many paths at", target);
    }
    WEIR_TRY(clone_tree(w, fd, target, mapping, is_writable, &list[*n].tree_fd));
    list[*n].target = target;
    list[*n].is_dir = S_ISDIR(info.st_mode);
    (*n)++;
    return WEIR_OK;
}

/* One of Weir's own files, at a fixed place where the task can reach it. */
static weir_status plan_given(struct walls *w, const char *path, const char *name)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? WEIR_OK
                  : plan_mount(w, w->own, &w->n_own, fd, cell_given(w->cell, name, w->arena),
                               MAP_TRY, false);
}

/* Before the mount namespace is left: from another one, the program's own path is told from the
 * top of that namespace, which is not "/" where this process has another root (chroot). */
static void find_programs(struct walls *w)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        w->program_dir = weir_arena_memdup(w->arena, self, (size_t)(slash - self));
    }
}

/* What the caller wants to keep of the agent's folder, as it is. */
static weir_status plan_view(struct walls *w, const struct walls_view *view)
{
    for (size_t i = 0; view != NULL && i < view->n_kept; i++) {
        int fd = open(view->kept[i], O_PATH | O_CLOEXEC);
        if (fd < 0) {
            return fail(w, "cannot open", view->kept[i]);
        }
        WEIR_TRY(plan_mount(w, w->own, &w->n_own, fd, view->kept[i], MAP_NONE, true));
    }
    return WEIR_OK;
}

/* What else is mounted for the task. */
static void fill_view(const struct walls *w, struct walls_view *view)
{
    view->shown = WEIR_ARENA_ARRAY(w->arena, w->n_shares + w->n_own, const char *);
    for (size_t i = 0; i < w->n_shares; i++) {
        view->shown[view->n_shown++] = w->shares[i].target;
    }
    for (size_t i = view->n_kept; i < w->n_own; i++) {
        view->shown[view->n_shown++] = w->own[i].target;
    }
}

static weir_status plan_programs(struct walls *w)
{
    static const char *const names[] = {"weir", "weir-worker"};
    for (size_t i = 0; w->program_dir != NULL && i < WEIR_ARRAY_LEN(names); i++) {
        char *path = weir_arena_printf(w->arena, "%s/%s", w->program_dir, names[i]);
        WEIR_TRY(plan_given(w, path, names[i]));
    }
    return w->cell->ca_file != NULL ? plan_given(w, w->cell->ca_file, "ca.pem") : WEIR_OK;
}

static bool is_planned(const struct planned *list, size_t n, const char *target)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].target, target) == 0) {
            return true;
        }
    }
    return false;
}

/* A folder of the state folder. No part of its path may be a link: a job writes into some. */
static weir_status plan_state(struct walls *w, const char *folder, bool is_own, bool is_writable)
{
    char *target = weir_arena_printf(w->arena, "%s/%s", w->state_dir, folder);
    if (is_planned(w->own, w->n_own, target)) {
        return WEIR_OK;
    }
    if (is_own) {
        WEIR_TRY(weir_dir_make(target, 0700, w->err));
    }
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_DIRECTORY,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int state_fd = open(w->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = (int)syscall(SYS_openat2, state_fd, folder, &how, sizeof how);
    int errno_value = errno;
    if (state_fd >= 0) {
        close(state_fd);
    }
    errno = errno_value;
    if (fd < 0) {
        /* What is not on this node is looked for by the task itself. */
        return errno == ENOENT ? WEIR_OK : fail(w, "cannot open", target);
    }
    enum mapping mapping = is_own ? MAP_OWN : is_writable ? MAP_SHARED : MAP_COMMON;
    return plan_mount(w, w->own, &w->n_own, fd, target, mapping, is_writable);
}

static const char *const private_dirs[] = {"/tmp", "/var/tmp", "/dev/shm"};

static bool is_private(const char *path)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(private_dirs); i++) {
        if (cell_is_below(path, private_dirs[i])) {
            return true;
        }
    }
    return false;
}

static bool is_shared(const struct walls *w, const char *path)
{
    for (size_t i = 0; i < w->cell->n_shares; i++) {
        if (cell_is_below(path, w->cell->shares[i].path)) {
            return true;
        }
    }
    return false;
}

static weir_status plan_shares(struct walls *w)
{
    for (size_t i = 0; i < w->cell->n_shares; i++) {
        const struct cell_path *share = &w->cell->shares[i];
        int fd = open(share->path, O_PATH | O_CLOEXEC | O_DIRECTORY);
        if (fd < 0) {
            return fail(w, "cannot open the shared folder", share->path);
        }
        WEIR_TRY(
            plan_mount(w, w->shares, &w->n_shares, fd, share->path, MAP_TRY, share->is_writable));
    }
    return WEIR_OK;
}

/* A path of the job's own below a folder that is hidden: it is shown again, as it is. */
static weir_status plan_hidden(struct walls *w, const struct cell_path *path)
{
    const char *wanted = path->path;
    be_user(w);
    int fd = open(wanted, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) { /* to be made: its folder */
        wanted = weir_arena_printf(w->arena, "%.*s", (int)(strrchr(wanted, '/') - wanted), wanted);
        fd = open(wanted, O_PATH | O_CLOEXEC | O_DIRECTORY);
    }
    be_root();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(private_dirs); i++) {
        if (fd >= 0 && strcmp(wanted, private_dirs[i]) == 0) {
            return weir_error_set(w->err, WEIR_ERR_INVALID,
                                  "%s: %s is the job's own and vanishes with it: name a path "
                                  "elsewhere, or one in a folder that is there",
                                  path->path, wanted);
        }
    }
    if (fd < 0) {
        return WEIR_OK; /* said by check_reach, or by the task */
    }
    return is_planned(w->shares, w->n_shares, wanted)
               ? WEIR_OK
               : plan_mount(w, w->shares, &w->n_shares, fd, wanted, MAP_NONE, path->is_writable);
}

static weir_status plan_paths(struct walls *w)
{
    const struct cell *cell = w->cell;
    for (size_t i = 0; i < cell->n_paths; i++) {
        struct cell_path *path = &cell->paths[i];
        const char *folder = NULL;
        path->is_dir = weir_path_is_dir(path->path);
        switch (cell_place(cell->state_dir, w->task->job, w->task->rank, path, w->arena, &folder)) {
        case CELL_OWN:
            WEIR_TRY(plan_state(w, folder, true, true));
            break;
        case CELL_COMMON:
            WEIR_TRY(plan_state(w, folder, false, path->is_writable));
            break;
        case CELL_OUTSIDE:
            if (is_private(path->path) && !is_shared(w, path->path)) {
                WEIR_TRY(plan_hidden(w, path));
            }
            break;
        case CELL_REFUSED:
            return weir_error_set(w->err, WEIR_ERR_DENIED,
                                  "%s lies in Weir's own folder and is not this job's", path->path);
        }
    }
    return WEIR_OK;
}

/* ---- targets --------------------------------------------------------------------------------- */

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
        return fail(w, "too many folders at", path);
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
    weir_status status = is_attached ? WEIR_OK : fail(w, "cannot cover", path);
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
    be_user(w);
    bool is_good = faccessat(fd, ".", X_OK, AT_EACCESS) == 0;
    be_root();
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
        return fail(w, "cannot mount at", path);
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
    weir_status status = rc == 0 ? WEIR_OK : fail(w, "cannot mount at", planned->target);
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
        return fail(w, "cannot make", path);
    }
    if (info.st_uid != w->cell->user && info.st_uid != 0) {
        errno = EEXIST; /* somebody else was quicker in a folder that all may write to */
        return fail(w, "not the job's own:", path);
    }
    if (info.st_uid == 0 &&
        (fchown(fd, w->cell->user, w->cell->user) != 0 || fchmod(fd, mode) != 0)) {
        return fail(w, "cannot hand over", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

static weir_status hide_machine(const struct walls *w)
{
    const struct weir_limits *limits = &w->task->limits;
    errno = walls_dev_close_sys();
    errno = errno == 0 ? walls_dev_mount(limits->devices, limits->n_devices) : errno;
    return errno == 0 ? WEIR_OK : fail(w, "cannot build", "/dev and /sys");
}

static weir_status hide_private(struct walls *w)
{
    int tmp_fd = -1, shm_fd = -1;
    WEIR_TRY(
        open_job_dir(w, weir_arena_printf(w->arena, "%s/tmp", w->cell->job_dir), 01777, &tmp_fd));
    WEIR_TRY(open_job_dir(w, w->cell->shm_dir, 0700, &shm_fd));
    WEIR_TRY(hide_machine(w)); /* covers the machine's /dev/shm, which is open by now */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(private_dirs); i++) {
        struct planned planned = {.target = private_dirs[i], .is_dir = true};
        bool is_shm = strcmp(private_dirs[i], "/dev/shm") == 0;
        if (!weir_path_is_dir(private_dirs[i])) {
            continue;
        }
        WEIR_TRY(clone_tree(w, is_shm ? shm_fd : tmp_fd, private_dirs[i], MAP_NONE, true,
                            &planned.tree_fd));
        WEIR_TRY(attach(w, &planned));
        WEIR_TRY(note_made(w, private_dirs[i]));
    }
    return WEIR_OK;
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
    return walls_mount_proc() || !w->cell->is_alone ? WEIR_OK : fail(w, "cannot mount", "/proc");
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
        return fail(w, "cannot find the state folder", dir);
    }
    w->state_dir = weir_arena_strdup(w->arena, resolved);
    return WEIR_OK;
}

static weir_status enter_namespace(struct walls *w)
{
    gid_t readers = w->cell->readers;
    /* A slave: what the machine mounts and unmounts later is seen, nothing goes the other way. */
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
        (readers != 0 && setgroups(1, &readers) != 0)) {
        return fail(w, "no mount namespace for", w->cell->agent_dir);
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
    find_programs(w);
    WEIR_TRY(enter_namespace(w));
    WEIR_TRY(hide_processes(w));
    WEIR_TRY(find_state(w));
    char *work = weir_arena_printf(arena, "%s/work", dir);
    int work_fd = open(work, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (work_fd < 0) {
        return fail(w, "cannot open", work);
    }
    WEIR_TRY(plan_view(w, view)); /* first: see fill_view */
    WEIR_TRY(plan_mount(w, w->own, &w->n_own, work_fd, work, MAP_OWN, true));
    WEIR_TRY(plan_programs(w));
    WEIR_TRY(plan_shares(w));
    WEIR_TRY(plan_paths(w));
    WEIR_TRY(hide_private(w));
    WEIR_TRY(attach_all(w, w->shares, w->n_shares));
    WEIR_TRY(hide_folder(w, w->state_dir));
    if (w->state_dir == NULL || !cell_is_below(w->cell->agent_dir, w->state_dir)) {
        WEIR_TRY(hide_folder(w, w->cell->agent_dir));
    }
    WEIR_TRY(attach_all(w, w->own, w->n_own));
    be_user(w);
    weir_status status = reach_check(w->cell, arena, err);
    be_root();
    WEIR_TRY(status);
    close_covers(w);
    if (view != NULL) {
        fill_view(w, view);
    }
    (void)umask(umask_before);
    return chdir(work) == 0 ? WEIR_OK : fail(w, "cannot enter", work);
}
