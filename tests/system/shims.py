"""Libraries that are put between a program and the C library: a disk that fails, and a wall clock that is off.

What each does is said by a file, which may change while the program runs.
"""
import shutil
import subprocess
import unittest

# Below DISK_STATE what the file DISK_FAULT says: an errno for every write, or with "new" for every new file alone.
DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int fault(int *is_new_only)
{
    char text[32] = "";
    int fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("DISK_FAULT"), O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) < 0) { text[0] = 0; }
        close(fd);
    }
    *is_new_only = strstr(text, "new") != NULL;
    return atoi(text);
}
static int in_state(int dir, const char *path)
{
    char full[8192], link[64];
    const char *state = getenv("DISK_STATE");
    size_t len = strlen(state);
    if (path != NULL && path[0] == '/') { return strncmp(path, state, len) == 0; }
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t n = dir == AT_FDCWD ? readlink("/proc/self/cwd", full, sizeof full - 1) : readlink(link, full, sizeof full - 1);
    return n > 0 && (size_t)n >= len && strncmp(full, state, len) == 0;
}
static int fails_write(int fd)
{
    int only, reason = fault(&only);
    if (reason == 0 || only || !in_state(fd, NULL)) { return 0; }
    errno = reason;
    return 1;
}
static int fails_name(int dir, const char *path)
{
    int only, reason = fault(&only);
    if (reason == 0 || !in_state(dir, path)) { return 0; }
    errno = reason;
    return 1;
}
static int fails_open(int dir, const char *path, int flags)
{
    int only, reason = fault(&only);
    if (reason == 0 || !in_state(dir, path)) { return 0; }
    int creates = (flags & O_CREAT) != 0 && faccessat(dir, path, F_OK, 0) != 0;
    int writes = (flags & O_ACCMODE) != O_RDONLY && reason == EROFS;
    if (!creates && (only || !writes)) { return 0; }
    errno = reason;
    return 1;
}
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MODE va_list more; va_start(more, flags); int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, int) : 0; va_end(more)
int open(const char *path, int flags, ...) { MODE; return fails_open(AT_FDCWD, path, flags) ? -1 : NEXT(open)(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; return fails_open(AT_FDCWD, path, flags) ? -1 : NEXT(open64)(path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE; return fails_open(dir, path, flags) ? -1 : NEXT(openat)(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE; return fails_open(dir, path, flags) ? -1 : NEXT(openat64)(dir, path, flags, mode); }
ssize_t write(int fd, const void *bytes, size_t n) { return fails_write(fd) ? -1 : NEXT(write)(fd, bytes, n); }
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) { return fails_write(fd) ? -1 : NEXT(pwrite)(fd, bytes, n, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) { return fails_write(fd) ? -1 : NEXT(pwrite64)(fd, bytes, n, at); }
int fsync(int fd) { return fails_write(fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return fails_write(fd) ? -1 : NEXT(fdatasync)(fd); }
int ftruncate(int fd, off_t n) { return fails_write(fd) ? -1 : NEXT(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { return fails_write(fd) ? -1 : NEXT(ftruncate64)(fd, n); }
int mkdir(const char *path, mode_t mode) { return fails_name(AT_FDCWD, path) ? -1 : NEXT(mkdir)(path, mode); }
int mkdirat(int dir, const char *path, mode_t mode) { return fails_name(dir, path) ? -1 : NEXT(mkdirat)(dir, path, mode); }
"""
DISK_FAULTS = {"read-only": "30", "failing": "5", "full": "28", "without inodes": "28 new"}

# The wall clock is off by the seconds in a file.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void)
{
    long seconds = 0;
    FILE *file = fopen(getenv("CLOCK_SHIFT"), "re");
    if (file != NULL) {
        if (fscanf(file, "%ld", &seconds) != 1) { seconds = 0; }
        fclose(file);
    }
    return seconds;
}
int clock_gettime(clockid_t id, struct timespec *out)
{
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL) { next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime"); }
    int result = next(id, out);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) { out->tv_sec += shift(); }
    return result;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) { *out = now.tv_sec; }
    return now.tv_sec;
}
"""


def build(folder, name, source):
    """The library's path. Skips the test where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise unittest.SkipTest("no C compiler: neither disk nor clock can be made to fail")
    path = folder / f"{name}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, "-x", "c", "-", "-ldl"], input=source, text=True, check=True)
    return path


def environment(libraries, **words):
    """What a program is started with, so that it meets these."""
    return {"LD_PRELOAD": ":".join(map(str, libraries)), "ASAN_OPTIONS": "verify_asan_link_order=0",
            **{name: str(word) for name, word in words.items()}}
