/* The sources of what a task sees in its cell: opened while nothing is covered yet. */
#include "agent/reach.h"
#include "agent/walls_private.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACCOUNTS_MAX_BYTES ((size_t)1 << 20)

weir_status walls_fail(const struct walls *w, const char *what, const char *path)
{
    return weir_error_set_errno(w->err, errno, "cannot isolate task %s: %s %s", w->task->id, what,
                                path);
}

void walls_be_user(const struct walls *w)
{
    (void)setfsgid(w->cell->user);
    (void)setfsuid(w->cell->user);
}

void walls_be_root(void)
{
    (void)setfsuid(0);
    (void)setfsgid(0);
}

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

weir_status walls_clone(struct walls *w, int fd, const char *path, enum mapping mapping,
                        bool is_writable, int *out_tree)
{
    struct stat info;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          (is_writable ? 0 : MOUNT_ATTR_RDONLY)};
    int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 || fstat(fd, &info) != 0 ||
        mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
        return walls_fail(w, "cannot map", path);
    }
    struct idmap map = {info.st_uid, w->cell->user, info.st_gid, w->cell->user};
    /* Where the agent is not root they are the task's already. */
    if (mapping != MAP_NONE && info.st_uid != w->cell->user &&
        idmap_apply(&w->maps, tree, &map) != 0) {
        errno = give_up_map(w, fd, mapping, info.st_uid);
        if (errno != 0) {
            return walls_fail(w, "cannot hand over", path);
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
        return walls_fail(w, "too many paths at", target);
    }
    WEIR_TRY(walls_clone(w, fd, target, mapping, is_writable, &list[*n].tree_fd));
    list[*n].target = target;
    list[*n].is_dir = S_ISDIR(info.st_mode);
    list[*n].is_writable = is_writable;
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
void walls_find_programs(struct walls *w)
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
            return walls_fail(w, "cannot open", view->kept[i]);
        }
        WEIR_TRY(plan_mount(w, w->own, &w->n_own, fd, view->kept[i], MAP_NONE, true));
    }
    return WEIR_OK;
}

/* What else is mounted for the task. */
static void add_shown(struct walls_view *view, const struct planned *planned)
{
    view->shown[view->n_shown++] =
        (struct cell_path){planned->target, planned->is_writable, planned->is_dir};
}

void walls_fill_view(const struct walls *w, struct walls_view *view)
{
    view->shown = WEIR_ARENA_ARRAY(w->arena, w->n_shares + w->n_own, struct cell_path);
    for (size_t i = 0; i < w->n_shares; i++) {
        add_shown(view, &w->shares[i]);
    }
    for (size_t i = view->n_kept; i < w->n_own; i++) {
        add_shown(view, &w->own[i]);
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
        return errno == ENOENT ? WEIR_OK : walls_fail(w, "cannot open", target);
    }
    enum mapping mapping = is_own ? MAP_OWN : is_writable ? MAP_SHARED : MAP_COMMON;
    return plan_mount(w, w->own, &w->n_own, fd, target, mapping, is_writable);
}

const char *const walls_private_dirs[WALLS_N_PRIVATE] = {"/tmp", "/var/tmp", "/dev/shm"};

static bool is_private(const char *path)
{
    for (size_t i = 0; i < WALLS_N_PRIVATE; i++) {
        if (cell_is_below(path, walls_private_dirs[i])) {
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
            return walls_fail(w, "cannot open the shared folder", share->path);
        }
        WEIR_TRY(
            plan_mount(w, w->shares, &w->n_shares, fd, share->path, MAP_TRY, share->is_writable));
    }
    return WEIR_OK;
}

/* What a task sees of the machine's root: programs, libraries and their settings, and what is its
 * own in there. Every other folder is empty but for what is shown again. */
static bool is_common(const char *name)
{
    static const char *const names[] = {".",     "..",     "bin",  "sbin", "lib", "lib32",
                                        "lib64", "libx32", "usr",  "etc",  "opt", "nix",
                                        "gnu",   "dev",    "proc", "sys",  "tmp"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status find_hidden(struct walls *w)
{
    DIR *dir = opendir("/");
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        struct stat info;
        if (is_common(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(info.st_mode)) {
            continue;
        }
        if (w->n_hidden == MOUNTS_MAX / 2) {
            closedir(dir);
            errno = ENOSPC;
            return walls_fail(w, "too many folders in", "/");
        }
        w->hidden[w->n_hidden++] = weir_arena_printf(w->arena, "/%s", entry->d_name);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return WEIR_OK;
}

static bool is_hidden(const struct walls *w, const char *path)
{
    for (size_t i = 0; i < w->n_hidden; i++) {
        if (cell_is_below(path, w->hidden[i])) {
            return true;
        }
    }
    return is_private(path);
}

/* Settings and sockets of the machine that programs look for in a hidden folder. */
static weir_status plan_common(struct walls *w)
{
    static const char *const paths[] = {"/run/systemd/resolve", "/run/resolvconf",
                                        "/run/NetworkManager/resolv.conf",
                                        "/run/nvidia-persistenced", "/run/nvidia-fabricmanager"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(paths); i++) {
        int fd = open(paths[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            WEIR_TRY(plan_mount(w, w->shares, &w->n_shares, fd, paths[i], MAP_NONE, false));
            close(fd);
        }
    }
    return WEIR_OK;
}

/* `source` at the place `target`, unless it is seen there anyway. */
static weir_status show(struct walls *w, const char *source, const char *target, bool is_writable)
{
    if (!is_hidden(w, target) || is_shared(w, target) ||
        is_planned(w->shares, w->n_shares, target)) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < WALLS_N_PRIVATE; i++) {
        if (strcmp(target, walls_private_dirs[i]) == 0) {
            return weir_error_set(w->err, WEIR_ERR_INVALID,
                                  "%s is the job's own and vanishes with it: name a path "
                                  "elsewhere, or one in a folder that is there",
                                  target);
        }
    }
    walls_be_user(w);
    int fd = open(source, O_PATH | O_CLOEXEC);
    walls_be_root();
    if (fd < 0) {
        return WEIR_OK; /* gone meanwhile */
    }
    weir_status status = plan_mount(w, w->shares, &w->n_shares, fd,
                                    weir_arena_strdup(w->arena, target), MAP_NONE, is_writable);
    close(fd);
    return status;
}

/* A path of the job's own that may lie below a folder that is hidden: it is shown again, as it is;
 * if a link leads to it, where that leads too. */
static weir_status plan_hidden(struct walls *w, const struct cell_path *path)
{
    char resolved[PATH_MAX];
    const char *wanted = path->path;
    walls_be_user(w);
    bool is_there = realpath(wanted, resolved) != NULL;
    if (!is_there && errno == ENOENT) { /* to be made: its folder */
        wanted = weir_arena_printf(w->arena, "%.*s", (int)(strrchr(wanted, '/') - wanted), wanted);
        is_there = realpath(wanted[0] != '\0' ? wanted : "/", resolved) != NULL;
    }
    int errno_value = errno;
    walls_be_root();
    if (!is_there) {
        return errno_value == EACCES && is_hidden(w, wanted)
                   ? reach_refuse(w->cell, path, w->err)
                   : WEIR_OK; /* said by reach_check, or by the task */
    }
    if ((w->state_dir != NULL && cell_is_below(resolved, w->state_dir)) ||
        cell_is_below(resolved, w->cell->agent_dir)) {
        return reach_refuse_place(path->path, w->err);
    }
    WEIR_TRY(show(w, resolved, resolved, path->is_writable));
    return show(w, resolved, wanted, path->is_writable);
}

static weir_status plan_paths(struct walls *w)
{
    const struct cell *cell = w->cell;
    for (size_t i = 0; i < cell->n_paths; i++) {
        struct cell_path *path = &cell->paths[i];
        const char *folder = NULL;
        path->is_dir = weir_path_is_dir(path->path);
        switch (cell_place(cell, w->task->job, w->task->rank, path, w->arena, &folder)) {
        case CELL_OWN:
            WEIR_TRY(plan_state(w, folder, true, true));
            break;
        case CELL_COMMON:
            WEIR_TRY(plan_state(w, folder, false, path->is_writable));
            break;
        case CELL_OUTSIDE:
            if (!is_shared(w, path->path)) {
                WEIR_TRY(plan_hidden(w, path));
            }
            break;
        case CELL_REFUSED:
            return reach_refuse_place(path->path, w->err);
        }
    }
    for (size_t i = 0; i < cell->n_left; i++) {
        char *folder = weir_arena_printf(w->arena, "replicas/%s", cell->left[i]);
        if (weir_path_is_dir(weir_arena_printf(w->arena, "%s/%s", w->state_dir, folder))) {
            WEIR_TRY(plan_state(w, folder, true, true));
        }
    }
    return WEIR_OK;
}

/* Made by the agent for all tasks of a project, which share it. */
static weir_status plan_cache(struct walls *w)
{
    const char *path = w->cell->cache_dir;
    int fd = path != NULL ? open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0) {
        return path == NULL ? WEIR_OK : walls_fail(w, "cannot open", path);
    }
    return plan_mount(w, w->own, &w->n_own, fd, path, MAP_SHARED, true);
}

/* The task's user has no account, and programs exist that end without one (Java's login of Hadoop): in
 * its cell /etc/passwd has one more line. Not in images, whose own file it is. */
static weir_status plan_account(struct walls *w, const char *work)
{
    static const char path[] = "/etc/passwd";
    struct stat info;
    char *text;
    size_t len;
    bool is_own = w->cell->user != geteuid();
    if (!is_own || lstat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
        weir_file_read(path, ACCOUNTS_MAX_BYTES, w->arena, &text, &len, NULL) != WEIR_OK) {
        return WEIR_OK;
    }
    char *file = weir_arena_printf(w->arena, "%.*s/passwd", (int)(strrchr(work, '/') - work), work);
    char *all = weir_arena_printf(w->arena, "%s%sweir-task:x:%u:%u::%s:/bin/sh\n", text,
                                  len > 0 && text[len - 1] != '\n' ? "\n" : "",
                                  (unsigned)w->cell->user, (unsigned)w->cell->user, work);
    WEIR_TRY(weir_file_replace(file, all, strlen(all), 0600, w->err));
    if (lchown(file, w->cell->user, (gid_t)-1) != 0) { /* nobody else reads it */
        return walls_fail(w, "cannot give its user", file);
    }
    int fd = open(file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return walls_fail(w, "cannot open", file);
    }
    weir_status status = plan_mount(w, w->shares, &w->n_shares, fd, path, MAP_NONE, false);
    close(fd);
    return status;
}

weir_status walls_plan(struct walls *w, const char *work, const struct walls_view *view)
{
    int work_fd = open(work, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (work_fd < 0) {
        return walls_fail(w, "cannot open", work);
    }
    WEIR_TRY(plan_view(w, view)); /* first: see walls_fill_view */
    WEIR_TRY(plan_mount(w, w->own, &w->n_own, work_fd, work, MAP_OWN, true));
    WEIR_TRY(plan_cache(w));
    WEIR_TRY(find_hidden(w));
    WEIR_TRY(plan_programs(w));
    WEIR_TRY(plan_common(w));
    if (view == NULL) {
        WEIR_TRY(plan_account(w, work));
    }
    WEIR_TRY(plan_shares(w));
    return plan_paths(w);
}
