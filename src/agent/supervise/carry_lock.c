#include "agent/supervise/carry_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

static bool is_still(int fd, const char *path)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && stat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

int carry_lock(const char *folder, const char *name, int how)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s%s", folder, name);
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        int rc = fd >= 0 ? flock(fd, how) : -1;
        if (rc == 0 && is_still(fd, path)) {
            return fd;
        }
        int errno_value = errno;
        if (fd >= 0) {
            close(fd);
        }
        if (fd < 0 || (rc != 0 && errno_value != EINTR)) {
            errno = errno_value;
            return -1;
        }
    }
}

/* flock(2): a lock that cannot become another one is lost. */
bool carry_lock_is_alone(int used_fd)
{
    bool is_alone = flock(used_fd, LOCK_EX | LOCK_NB) == 0;
    if (!is_alone) {
        carry_lock_share(used_fd);
    }
    return is_alone;
}

/* It is had alone for a moment only. */
void carry_lock_share(int used_fd)
{
    while (flock(used_fd, LOCK_SH) != 0 && errno == EINTR) {
    }
}
