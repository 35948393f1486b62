#include "agent/namespaces.h"
#include "agent/node/disk_quota.h"
#include "agent/sandbox/idmap.h"
#include "agent/sandbox_enter.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

bool sandbox_mount_proc(void)
{
    int context = fsopen("proc", FSOPEN_CLOEXEC);
    int tree = -1;
    if (context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) == 0 &&
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        tree = fsmount(context, FSMOUNT_CLOEXEC,
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    }
    bool is_mounted =
        tree >= 0 && move_mount(tree, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) == 0;
    if (tree >= 0) {
        close(tree);
    }
    if (context >= 0) {
        close(context);
    }
    return is_mounted;
}

/* What the child found out, as its exit status. */
enum { HAS_MOUNTS = 1, HAS_IDMAP = 2, HAS_NAMESPACES = 4 };

static bool has_mounts(void)
{
    int context;
    return unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
           (context = fsopen("tmpfs", FSOPEN_CLOEXEC)) >= 0 &&
           fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0 &&
           fsmount(context, FSMOUNT_CLOEXEC, 0) >= 0;
}

static bool has_idmap(const char *dir)
{
    struct idmap_cache maps = {.n = 0};
    struct idmap map = {0, 1, 0, 1};
    int fd = open(dir, O_PATH | O_CLOEXEC); /* now: of this namespace's mount */
    int tree =
        fd >= 0 ? open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
    return tree >= 0 && idmap_apply(&maps, tree, &map) == 0;
}

/* Also a /proc of it can be mounted: a container that hides parts of its own forbids that. */
static bool has_namespaces(void)
{
    int status;
    if (unshare(CLONE_NEWPID | CLONE_NEWIPC) != 0) {
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        _exit(sandbox_mount_proc() ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int try_sandbox(const char *dir)
{
    bool is_root = geteuid() == 0;
    if ((!is_root && !namespaces_enter_user()) || !has_mounts()) {
        return 0;
    }
    return HAS_MOUNTS | (is_root && has_idmap(dir) ? HAS_IDMAP : 0) |
           (has_namespaces() ? HAS_NAMESPACES : 0);
}

void sandbox_probe(const char *dir, struct sandbox_probe *out)
{
    int status = 0;
    *out = (struct sandbox_probe){.is_root = geteuid() == 0,
                                  .has_disk_quota = disk_quota_is_here(dir)};
    pid_t pid = fork();
    if (pid == 0) {
        _exit(try_sandbox(dir));
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
        int found = WEXITSTATUS(status);
        out->has_mounts = (found & HAS_MOUNTS) != 0;
        out->has_idmap = (found & HAS_IDMAP) != 0;
        out->has_namespaces = (found & HAS_NAMESPACES) != 0;
    }
}
