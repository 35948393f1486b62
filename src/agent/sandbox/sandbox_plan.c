/* The sources of what a task sees in its sandbox: opened while nothing is covered yet. */
#include "agent/node/reach.h"
#include "agent/sandbox/sandbox_private.h"
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

weir_status sandbox_fail(const struct sandbox_builder *builder, const char *what, const char *path)
{
    return weir_error_set_errno(builder->err, errno, "cannot isolate task %s: %s %s",
                                builder->task->id, what, path);
}

void sandbox_be_user(const struct sandbox_builder *builder)
{
    (void)setfsgid(builder->sandbox->user);
    (void)setfsuid(builder->sandbox->user);
}

void sandbox_be_root(void)
{
    (void)setfsuid(0);
    (void)setfsgid(0);
}

static int give_up_map(const struct sandbox_builder *builder, int fd, enum mapping mapping,
                       uid_t disk_user)
{
    struct idmap map = {disk_user, builder->sandbox->user, 0, 0};
    map.group = mapping == MAP_OWN ? builder->sandbox->user : builder->sandbox->readers;
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

weir_status sandbox_clone(struct sandbox_builder *builder, int fd, const char *path,
                          enum mapping mapping, bool is_writable, int *out_tree)
{
    struct stat info;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          (is_writable ? 0 : MOUNT_ATTR_RDONLY)};
    int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 || fstat(fd, &info) != 0 ||
        mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
        return sandbox_fail(builder, "cannot map", path);
    }
    struct idmap map = {info.st_uid, builder->sandbox->user, info.st_gid, builder->sandbox->user};
    /* Where the agent is not root they are the task's already. */
    if (mapping != MAP_NONE && info.st_uid != builder->sandbox->user &&
        idmap_apply(&builder->maps, tree, &map) != 0) {
        errno = give_up_map(builder, fd, mapping, info.st_uid);
        if (errno != 0) {
            return sandbox_fail(builder, "cannot hand over", path);
        }
    }
    *out_tree = tree;
    return WEIR_OK;
}

static weir_status plan_mount(struct sandbox_builder *builder, struct planned *list, size_t *n,
                              int fd, const char *target, enum mapping mapping, bool is_writable)
{
    struct stat info;
    if (*n == MOUNTS_MAX || fstat(fd, &info) != 0) {
        return sandbox_fail(builder, "too many paths at", target);
    }
    WEIR_TRY(sandbox_clone(builder, fd, target, mapping, is_writable, &list[*n].tree_fd));
    list[*n].target = target;
    list[*n].is_dir = S_ISDIR(info.st_mode);
    list[*n].is_writable = is_writable;
    (*n)++;
    return WEIR_OK;
}

/* One of Weir's own files, at a fixed place where the task can reach it. */
static weir_status plan_given(struct sandbox_builder *builder, const char *path, const char *name)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0
               ? WEIR_OK
               : plan_mount(builder, builder->own, &builder->n_own, fd,
                            sandbox_given(builder->sandbox, name, builder->arena), MAP_TRY, false);
}

/* Before the mount namespace is left: from another one, the program's own path is told from the
 * top of that namespace, which is not "/" where this process has another root (chroot). */
void sandbox_find_programs(struct sandbox_builder *builder)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        builder->program_dir = weir_arena_memdup(builder->arena, self, (size_t)(slash - self));
    }
}

/* What the caller wants to keep of the agent's folder, as it is. */
static weir_status plan_view(struct sandbox_builder *builder, const struct sandbox_view *view)
{
    for (size_t i = 0; view != NULL && i < view->n_kept; i++) {
        int fd = open(view->kept[i], O_PATH | O_CLOEXEC);
        if (fd < 0) {
            return sandbox_fail(builder, "cannot open", view->kept[i]);
        }
        WEIR_TRY(
            plan_mount(builder, builder->own, &builder->n_own, fd, view->kept[i], MAP_NONE, true));
    }
    return WEIR_OK;
}

/* What else is mounted for the task. */
static void add_shown(struct sandbox_view *view, const struct planned *planned)
{
    view->shown[view->n_shown++] =
        (struct sandbox_path){planned->target, planned->is_writable, planned->is_dir};
}

void sandbox_fill_view(const struct sandbox_builder *builder, struct sandbox_view *view)
{
    view->shown =
        WEIR_ARENA_ARRAY(builder->arena, builder->n_shares + builder->n_own, struct sandbox_path);
    for (size_t i = 0; i < builder->n_shares; i++) {
        add_shown(view, &builder->shares[i]);
    }
    for (size_t i = view->n_kept; i < builder->n_own; i++) {
        add_shown(view, &builder->own[i]);
    }
}

static weir_status plan_programs(struct sandbox_builder *builder)
{
    static const char *const names[] = {"weir", "weir-worker", "weir-camera"};
    for (size_t i = 0; builder->program_dir != NULL && i < WEIR_ARRAY_LEN(names); i++) {
        char *path = weir_arena_printf(builder->arena, "%s/%s", builder->program_dir, names[i]);
        WEIR_TRY(plan_given(builder, path, names[i]));
    }
    return builder->sandbox->ca_file != NULL
               ? plan_given(builder, builder->sandbox->ca_file, "ca.pem")
               : WEIR_OK;
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
static weir_status plan_state(struct sandbox_builder *builder, const char *folder, bool is_own,
                              bool is_writable)
{
    char *target = weir_arena_printf(builder->arena, "%s/%s", builder->state_dir, folder);
    if (is_planned(builder->own, builder->n_own, target)) {
        return WEIR_OK;
    }
    if (is_own) {
        WEIR_TRY(weir_dir_make(target, 0700, builder->err));
    }
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_DIRECTORY,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int state_fd = open(builder->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = (int)syscall(SYS_openat2, state_fd, folder, &how, sizeof how);
    int errno_value = errno;
    if (state_fd >= 0) {
        close(state_fd);
    }
    errno = errno_value;
    if (fd < 0) {
        /* What is not on this node is looked for by the task itself. */
        return errno == ENOENT ? WEIR_OK : sandbox_fail(builder, "cannot open", target);
    }
    enum mapping mapping = is_own ? MAP_OWN : is_writable ? MAP_SHARED : MAP_COMMON;
    return plan_mount(builder, builder->own, &builder->n_own, fd, target, mapping, is_writable);
}

const char *const sandbox_private_dirs[SANDBOX_N_PRIVATE] = {"/tmp", "/var/tmp", "/dev/shm"};

static bool is_private(const char *path)
{
    for (size_t i = 0; i < SANDBOX_N_PRIVATE; i++) {
        if (sandbox_is_below(path, sandbox_private_dirs[i])) {
            return true;
        }
    }
    return false;
}

static bool is_shared(const struct sandbox_builder *builder, const char *path)
{
    for (size_t i = 0; i < builder->sandbox->n_shares; i++) {
        if (sandbox_is_below(path, builder->sandbox->shares[i].path)) {
            return true;
        }
    }
    return false;
}

static weir_status plan_shares(struct sandbox_builder *builder)
{
    for (size_t i = 0; i < builder->sandbox->n_shares; i++) {
        const struct sandbox_path *share = &builder->sandbox->shares[i];
        int fd = open(share->path, O_PATH | O_CLOEXEC | O_DIRECTORY);
        if (fd < 0) {
            return sandbox_fail(builder, "cannot open the shared folder", share->path);
        }
        WEIR_TRY(plan_mount(builder, builder->shares, &builder->n_shares, fd, share->path, MAP_TRY,
                            share->is_writable));
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

static weir_status find_hidden(struct sandbox_builder *builder)
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
        if (builder->n_hidden == MOUNTS_MAX / 2) {
            closedir(dir);
            errno = ENOSPC;
            return sandbox_fail(builder, "too many folders in", "/");
        }
        builder->hidden[builder->n_hidden++] =
            weir_arena_printf(builder->arena, "/%s", entry->d_name);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return WEIR_OK;
}

static bool is_hidden(const struct sandbox_builder *builder, const char *path)
{
    for (size_t i = 0; i < builder->n_hidden; i++) {
        if (sandbox_is_below(path, builder->hidden[i])) {
            return true;
        }
    }
    return is_private(path);
}

/* Settings and sockets of the machine that programs look for in a hidden folder, and what Weir's own image has
 * (packaging/image.py): its programs do not start without those libraries. */
static weir_status plan_common(struct sandbox_builder *builder)
{
    static const char *const paths[] = {"/run/systemd/resolve",
                                        "/run/resolvconf",
                                        "/run/NetworkManager/resolv.conf",
                                        "/run/nvidia-persistenced",
                                        "/run/nvidia-fabricmanager",
                                        "/weir/bin",
                                        "/weir/lib",
                                        "/weir/share"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(paths); i++) {
        int fd = open(paths[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            WEIR_TRY(plan_mount(builder, builder->shares, &builder->n_shares, fd, paths[i],
                                MAP_NONE, false));
            close(fd);
        }
    }
    return WEIR_OK;
}

/* `source` at the place `target`, unless it is seen there anyway. */
static weir_status show(struct sandbox_builder *builder, const char *source, const char *target,
                        bool is_writable)
{
    if (!is_hidden(builder, target) || is_shared(builder, target) ||
        is_planned(builder->shares, builder->n_shares, target)) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < SANDBOX_N_PRIVATE; i++) {
        if (strcmp(target, sandbox_private_dirs[i]) == 0) {
            return weir_error_set(builder->err, WEIR_ERR_INVALID,
                                  "%s is the job's own and vanishes with it: name a path "
                                  "elsewhere, or one in a folder that is there",
                                  target);
        }
    }
    sandbox_be_user(builder);
    int fd = open(source, O_PATH | O_CLOEXEC);
    sandbox_be_root();
    if (fd < 0) {
        return WEIR_OK; /* gone meanwhile */
    }
    weir_status status =
        plan_mount(builder, builder->shares, &builder->n_shares, fd,
                   weir_arena_strdup(builder->arena, target), MAP_NONE, is_writable);
    close(fd);
    return status;
}

/* A path of the job's own that may lie below a folder that is hidden: it is shown again, as it is;
 * if a link leads to it, where that leads too. */
static weir_status plan_hidden(struct sandbox_builder *builder, const struct sandbox_path *path)
{
    char resolved[PATH_MAX];
    const char *wanted = path->path;
    sandbox_be_user(builder);
    bool is_there = realpath(wanted, resolved) != NULL;
    if (!is_there && errno == ENOENT) { /* to be made: its folder */
        wanted =
            weir_arena_printf(builder->arena, "%.*s", (int)(strrchr(wanted, '/') - wanted), wanted);
        is_there = realpath(wanted[0] != '\0' ? wanted : "/", resolved) != NULL;
    }
    int errno_value = errno;
    sandbox_be_root();
    if (!is_there) {
        return errno_value == EACCES && is_hidden(builder, wanted)
                   ? reach_refuse(builder->sandbox, path, builder->err)
                   : WEIR_OK; /* said by reach_check, or by the task */
    }
    if ((builder->state_dir != NULL && sandbox_is_below(resolved, builder->state_dir)) ||
        sandbox_is_below(resolved, builder->sandbox->agent_dir)) {
        return reach_refuse_place(path->path, builder->err);
    }
    WEIR_TRY(show(builder, resolved, resolved, path->is_writable));
    return show(builder, resolved, wanted, path->is_writable);
}

static weir_status plan_paths(struct sandbox_builder *builder)
{
    const struct sandbox *sandbox = builder->sandbox;
    for (size_t i = 0; i < sandbox->n_paths; i++) {
        struct sandbox_path *path = &sandbox->paths[i];
        const char *folder = NULL;
        path->is_dir = weir_path_is_dir(path->path);
        switch (sandbox_place(sandbox, builder->task->job, builder->task->rank, path,
                              builder->arena, &folder)) {
        case SANDBOX_OWN:
            WEIR_TRY(plan_state(builder, folder, true, true));
            break;
        case SANDBOX_COMMON:
            WEIR_TRY(plan_state(builder, folder, false, path->is_writable));
            break;
        case SANDBOX_OUTSIDE:
            if (!is_shared(builder, path->path)) {
                WEIR_TRY(plan_hidden(builder, path));
            }
            break;
        case SANDBOX_REFUSED:
            return reach_refuse_place(path->path, builder->err);
        }
    }
    for (size_t i = 0; i < sandbox->n_left; i++) {
        char *folder = weir_arena_printf(builder->arena, "replicas/%s", sandbox->left[i]);
        if (weir_path_is_dir(
                weir_arena_printf(builder->arena, "%s/%s", builder->state_dir, folder))) {
            WEIR_TRY(plan_state(builder, folder, true, true));
        }
    }
    return WEIR_OK;
}

/* Made by the agent for all tasks of a project, which share it. */
static weir_status plan_cache(struct sandbox_builder *builder)
{
    const char *path = builder->sandbox->cache_dir;
    int fd = path != NULL ? open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0) {
        return path == NULL ? WEIR_OK : sandbox_fail(builder, "cannot open", path);
    }
    return plan_mount(builder, builder->own, &builder->n_own, fd, path, MAP_SHARED, true);
}

/* The task's user has no account, and programs exist that end without one (Java's login of Hadoop): in
 * its sandbox /etc/passwd has one more line. Not in images: there the file is their own. */
static weir_status plan_account(struct sandbox_builder *builder, const char *work)
{
    static const char path[] = "/etc/passwd";
    struct stat info;
    char *text;
    size_t len;
    bool is_own = builder->sandbox->user != geteuid();
    if (!is_own || lstat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
        weir_file_read(path, ACCOUNTS_MAX_BYTES, builder->arena, &text, &len, NULL) != WEIR_OK) {
        return WEIR_OK;
    }
    char *file =
        weir_arena_printf(builder->arena, "%.*s/passwd", (int)(strrchr(work, '/') - work), work);
    char *all =
        weir_arena_printf(builder->arena, "%s%sweir-task:x:%u:%u::%s:/bin/sh\n", text,
                          len > 0 && text[len - 1] != '\n' ? "\n" : "",
                          (unsigned)builder->sandbox->user, (unsigned)builder->sandbox->user, work);
    WEIR_TRY(weir_file_replace(file, all, strlen(all), 0600, builder->err));
    if (lchown(file, builder->sandbox->user, (gid_t)-1) != 0) { /* nobody else reads it */
        return sandbox_fail(builder, "cannot give its user", file);
    }
    int fd = open(file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return sandbox_fail(builder, "cannot open", file);
    }
    weir_status status =
        plan_mount(builder, builder->shares, &builder->n_shares, fd, path, MAP_NONE, false);
    close(fd);
    return status;
}

weir_status sandbox_plan(struct sandbox_builder *builder, const char *work,
                         const struct sandbox_view *view)
{
    int work_fd = open(work, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (work_fd < 0) {
        return sandbox_fail(builder, "cannot open", work);
    }
    WEIR_TRY(plan_view(builder, view)); /* first: see sandbox_fill_view */
    WEIR_TRY(plan_mount(builder, builder->own, &builder->n_own, work_fd, work, MAP_OWN, true));
    WEIR_TRY(plan_cache(builder));
    WEIR_TRY(find_hidden(builder));
    WEIR_TRY(plan_programs(builder));
    WEIR_TRY(plan_common(builder));
    if (view == NULL) {
        WEIR_TRY(plan_account(builder, work));
    }
    WEIR_TRY(plan_shares(builder));
    return plan_paths(builder);
}
