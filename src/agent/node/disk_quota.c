#include "agent/node/disk_quota.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROJECT_BIT 0x80000000U
#define BLOCK_BYTES 1024 /* the unit of the kernel's limits */

/* QCMD shifts an int beyond its sign. */
static int call(int fd, unsigned command, uint32_t project, void *data)
{
    unsigned whole = command << SUBCMDSHIFT | PRJQUOTA;
    return (int)syscall(SYS_quotactl_fd, fd, (int)whole, project, data);
}

static int open_dir(const char *dir)
{
    return open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool disk_quota_is_here(const char *dir)
{
    struct if_dqinfo info;
    int fd = open_dir(dir);
    bool is_here = fd >= 0 && geteuid() == 0 && call(fd, Q_GETINFO, 0, &info) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_here;
}

static bool join(int fd, uint32_t project)
{
    struct fsxattr attributes;
    if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) != 0) {
        return false;
    }
    attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    attributes.fsx_projid = project;
    return ioctl(fd, FS_IOC_FSSETXATTR, &attributes) == 0;
}

bool disk_quota_set(const char *dir, int64_t max_bytes, int64_t max_files)
{
    struct stat info;
    struct if_dqblk limits = {.dqb_bhardlimit = (uint64_t)max_bytes / BLOCK_BYTES + 1,
                              .dqb_ihardlimit = (uint64_t)max_files,
                              .dqb_valid = QIF_BLIMITS | QIF_ILIMITS};
    int fd = open_dir(dir);
    bool is_set = false;
    if (fd >= 0 && max_bytes > 0 && fstat(fd, &info) == 0) {
        uint32_t project = PROJECT_BIT | (uint32_t)info.st_ino;
        is_set = call(fd, Q_SETQUOTA, project, &limits) == 0 && join(fd, project);
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_set;
}
