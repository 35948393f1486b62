/* Files of a task, copied by ourselves: an image may have no program that does. In the task's walls, as its user:
 * paths, links and rights are what the task's own are. */
#include "agent/visit.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BYTES 65536

static int complain(const char *path, const char *what)
{
    dprintf(2, "%s: %s\n", path, what);
    return 1;
}

/* Until the end of `from`. False: errno. */
static bool copy(int from, int to)
{
    static char bytes[BYTES];
    ssize_t n;
    while ((n = read(from, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0 && weir_fd_write_all(to, bytes, (size_t)n, NULL) != WEIR_OK) {
            return false;
        }
    }
    return true;
}

int visit_file_read(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return complain(path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return complain(path, S_ISDIR(info.st_mode)
                                  ? "is a folder: one file is copied at a time, or all of it by "
                                    "weir job exec JOB -- tar -c FOLDER | tar -x"
                                  : "is no file");
    }
    struct statfs place;
    if (fstatfs(fd, &place) == 0 &&
        place.f_type == PROC_SUPER_MAGIC) { /* it tells of who reads it */
        return complain(path, "is no file, but tells of a process: weir job exec JOB -- cat it");
    }
    return copy(fd, 1) ? 0 : complain(path, strerror(errno));
}

static char temporary[4200];

static void on_hangup(int signal_number)
{
    (void)signal_number;
    (void)unlink(temporary);
    _exit(1);
}

/* The file is there whole, or as it was. */
int visit_file_write(const char *path, mode_t mode)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return complain(path, S_ISDIR(info.st_mode) ? "is a folder: end it with / to copy into it"
                                                    : "is no file");
    }
    int n = snprintf(temporary, sizeof temporary, "%s.weir-XXXXXX", path);
    (void)signal(SIGHUP, on_hangup);
    (void)signal(SIGTERM, on_hangup);
    int fd = n > 0 && (size_t)n < sizeof temporary ? mkstemp(temporary) : -1;
    if (fd < 0) {
        return complain(path, strerror(errno));
    }
    bool is_good =
        copy(0, fd) && fchmod(fd, mode) == 0 && close(fd) == 0 && rename(temporary, path) == 0;
    if (!is_good) {
        int errno_value = errno;
        (void)unlink(temporary);
        return complain(path, strerror(errno_value));
    }
    return 0;
}
