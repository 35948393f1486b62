#include "agent/sandbox/sandbox_dev.h"

#include "base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES_MAX      256
#define NODE_MAX_BYTES 64
#define DEV_BYTES      (sizeof "/dev/" - 1)

/* Nodes of the machine, to be shown in the new /dev under the same name. */
struct node {
    char name[NODE_MAX_BYTES]; /* below /dev */
    int tree_fd;
    bool is_dir;
};

struct dev {
    struct node nodes[NODES_MAX];
    size_t n;
    int tree_fd; /* the new /dev, not attached yet */
};

static const char *const basic[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                    "/dev/random", "/dev/urandom", "/dev/tty"};

static const char *const accelerators[] = {"/dev/nvidia*", "/dev/kfd", "/dev/dri",
                                           "/dev/accel*",  "/dev/hl*", "/dev/davinci*"};

/* A task that was given a device on the left needs these nodes of its driver too. */
static const struct {
    const char *prefix, *pattern;
} drivers[] = {
    {"/dev/nvidia", "/dev/nvidiactl"},
    {"/dev/nvidia", "/dev/nvidia-uvm*"},
    {"/dev/nvidia", "/dev/nvidia-modeset"},
    {"/dev/dri/", "/dev/kfd"},
};

bool sandbox_dev_is_node(const char *path)
{
    return strncmp(path, "/dev/", DEV_BYTES) == 0 && path[DEV_BYTES] != '\0' &&
           strlen(path) < NODE_MAX_BYTES && strstr(path, "..") == NULL &&
           strstr(path, "//") == NULL;
}

static void add_node(struct dev *dev, const char *path)
{
    struct stat info;
    struct node *node = &dev->nodes[dev->n];
    if (dev->n == NODES_MAX || !sandbox_dev_is_node(path) || stat(path, &info) != 0) {
        return;
    }
    for (size_t i = 0; i < dev->n; i++) {
        if (strcmp(dev->nodes[i].name, path + DEV_BYTES) == 0) {
            return;
        }
    }
    int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree >= 0) {
        (void)snprintf(node->name, sizeof node->name, "%s", path + DEV_BYTES);
        node->tree_fd = tree;
        node->is_dir = S_ISDIR(info.st_mode);
        dev->n++;
    }
}

static void add_matching(struct dev *dev, const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            add_node(dev, found.gl_pathv[i]);
        }
        globfree(&found);
    }
}

static void add_given(struct dev *dev, const char *const devices[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add_node(dev, devices[i]);
        for (size_t j = 0; j < WEIR_ARRAY_LEN(drivers); j++) {
            if (strncmp(devices[i], drivers[j].prefix, strlen(drivers[j].prefix)) == 0) {
                add_matching(dev, drivers[j].pattern);
            }
        }
    }
}

/* A file system of its own, not attached. */
static int make_tree(const char *type, const char *const options[][2], size_t n,
                     unsigned attributes)
{
    int context = fsopen(type, FSOPEN_CLOEXEC);
    bool is_good = context >= 0;
    for (size_t i = 0; i < n && is_good; i++) {
        is_good = fsconfig(context, options[i][1] != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
                           options[i][0], options[i][1], 0) == 0;
    }
    int tree = is_good && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0
                   ? fsmount(context, FSMOUNT_CLOEXEC, attributes)
                   : -1;
    int errno_value = errno;
    if (context >= 0) {
        close(context);
    }
    errno = errno_value;
    return tree;
}

/* The folder or file that a node is mounted on, and the folders before it. */
static bool make_place(int dev_fd, const struct node *node)
{
    char part[NODE_MAX_BYTES];
    for (const char *slash = strchr(node->name, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - node->name), node->name);
        if (mkdirat(dev_fd, part, 0755) != 0 && errno != EEXIST) {
            return false;
        }
    }
    return (node->is_dir ? mkdirat(dev_fd, node->name, 0755)
                         : mknodat(dev_fd, node->name, S_IFREG | 0444, 0)) == 0 ||
           errno == EEXIST;
}

static bool fill(const struct dev *dev)
{
    static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                           {"/proc/self/fd/0", "stdin"},
                                           {"/proc/self/fd/1", "stdout"},
                                           {"/proc/self/fd/2", "stderr"},
                                           {"pts/ptmx", "ptmx"}};
    int fd = dev->tree_fd;
    bool is_good = mkdirat(fd, "pts", 0755) == 0 && mkdirat(fd, "shm", 0755) == 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(links) && is_good; i++) {
        is_good = symlinkat(links[i][0], fd, links[i][1]) == 0;
    }
    for (size_t i = 0; i < dev->n && is_good; i++) {
        is_good = make_place(fd, &dev->nodes[i]);
    }
    return is_good;
}

static bool attach(const struct dev *dev)
{
    static const char *const options[][2] = {
        {"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"}};
    char path[NODE_MAX_BYTES + DEV_BYTES];
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    bool is_good = move_mount(dev->tree_fd, "", AT_FDCWD, "/dev", MOVE_MOUNT_F_EMPTY_PATH) == 0;
    for (size_t i = 0; i < dev->n && is_good; i++) {
        (void)snprintf(path, sizeof path, "/dev/%s", dev->nodes[i].name);
        is_good =
            move_mount(dev->nodes[i].tree_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0;
    }
    int pts = is_good ? make_tree("devpts", options, WEIR_ARRAY_LEN(options),
                                  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)
                      : -1;
    if (pts >= 0) { /* a container may not have it: then there are no terminals */
        (void)move_mount(pts, "", AT_FDCWD, "/dev/pts", MOVE_MOUNT_F_EMPTY_PATH);
        close(pts);
    }
    return is_good &&
           mount_setattr(dev->tree_fd, "", AT_EMPTY_PATH, &read_only, sizeof read_only) == 0;
}

int sandbox_dev_close_sys(void)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    int rc = mount_setattr(AT_FDCWD, "/sys", AT_RECURSIVE, &attr, sizeof attr);
    return rc == 0 || errno == ENOENT || errno == EINVAL ? 0 : errno;
}

int sandbox_dev_mount(const char *const devices[], size_t n)
{
    static const char *const options[][2] = {{"mode", "0755"}, {"size", "1m"}};
    static struct dev dev; /* large; one process builds one */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(basic); i++) {
        add_node(&dev, basic[i]);
    }
    add_node(&dev, "/dev/infiniband");
    if (devices != NULL) {
        add_given(&dev, devices, n);
    } else {
        for (size_t i = 0; i < WEIR_ARRAY_LEN(accelerators); i++) {
            add_matching(&dev, accelerators[i]);
        }
    }
    dev.tree_fd =
        make_tree("tmpfs", options, WEIR_ARRAY_LEN(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    int errno_value = dev.tree_fd >= 0 && fill(&dev) && attach(&dev) ? 0 : errno;
    for (size_t i = 0; i < dev.n; i++) {
        close(dev.nodes[i].tree_fd);
    }
    if (dev.tree_fd >= 0) {
        close(dev.tree_fd);
    }
    return errno_value;
}
