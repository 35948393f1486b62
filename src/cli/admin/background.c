#include "cli/admin/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's word, or its end. */
static _Noreturn void await(pid_t child, int fd)
{
    char word;
    ssize_t n;
    int status;
    while ((n = read(fd, &word, 1)) < 0 && errno == EINTR) {
    }
    if (n == 1) {
        _exit(EXIT_SUCCESS);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

weir_status cli_background_start(int *out_fd, struct weir_error *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return weir_error_set_errno(err, errno, "cannot make a pipe");
    }
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        weir_status status = weir_error_set_errno(err, errno, "cannot start a process");
        (void)close(fds[0]);
        (void)close(fds[1]);
        return status;
    }
    if (child > 0) {
        (void)close(fds[1]);
        await(child, fds[0]);
    }
    (void)close(fds[0]);
    (void)setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null,
                   STDOUT_FILENO); /* or who reads the command's output waits for the child's end */
        (void)close(null);
    }
    *out_fd = fds[1];
    return WEIR_OK;
}

void cli_background_ready(int fd)
{
    while (write(fd, "r", 1) < 0 && errno == EINTR) {
    }
    (void)close(fd);
}
