/**
 * Id-mapped mounts: a folder shown with its owner changed, without a change on disk (Linux 5.12;
 * which file systems can is in mount_setattr(2)).
 */
#ifndef WEIR_AGENT_IDMAP_H
#define WEIR_AGENT_IDMAP_H

#include <stdbool.h>
#include <sys/types.h>

/** What an owner's user and group on disk are shown as. Others are shown as they are. */
struct idmap {
    uid_t disk_user, user;
    gid_t disk_group, group;
};

#define IDMAPS_MAX 8

/** User namespaces made for maps so far, one per map: making one costs a process. Zeroed at first.
 */
struct idmap_cache {
    struct idmap maps[IDMAPS_MAX];
    int fds[IDMAPS_MAX];
    size_t n;
};

/**
 * Apply a map to a mount that is not attached yet (open_tree with OPEN_TREE_CLONE).
 * @return 0; else an errno: EINVAL or EPERM where the file system, the kernel or this process may
 *         not. The mount is as before then.
 */
int idmap_apply(struct idmap_cache *cache, int tree_fd, const struct idmap *map);

/**
 * For where there are no such mounts: give a folder and all in it that `map` speaks of to
 * map->user. Does not follow links, and not into other mounts.
 * @return 0 or the first errno.
 */
int idmap_give(int dir_fd, const struct idmap *map);

/** The same for what others use too: only the group changes, and it may read. */
int idmap_let_read(int dir_fd, const struct idmap *map);

/**
 * The same for what others write too: the group may write, and what is made in its folders later is
 * the group's (set-group-ID; its mode is its maker's business). A file of several names is left as
 * it is: a task may have given one of them to a file elsewhere.
 */
int idmap_let_write(int dir_fd, const struct idmap *map);

#endif
