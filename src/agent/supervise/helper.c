#include "agent/supervise/helper.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 200

int helper_open_beneath(int dir_fd, const char *name, uint64_t flags)
{
    struct open_how how = {.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);
}

bool helper_wait(pid_t child, int said_fd, bool (*must_end)(void *context), void *context,
                 void *out_said, size_t size)
{
    struct pollfd ready = {.fd = said_fd, .events = POLLIN};
    bool is_over = false, is_cut = false;
    while (!is_over && !is_cut) {
        is_over = poll(&ready, 1, TICK_MS) > 0;
        is_cut = !is_over && must_end(context);
    }
    ssize_t n = is_over ? read(said_fd, out_said, size) : 0;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    return n == (ssize_t)size;
}
