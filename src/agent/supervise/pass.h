/** Pass descriptors to another process, over a socket of the machine, with the bytes that say what they are. */
#ifndef WEIR_AGENT_PASS_H
#define WEIR_AGENT_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PASS_MAX 2

/** All of `len` bytes (> 0), with `n` descriptors, which stay this process's too. False: errno. */
bool pass_send(int socket_fd, const void *bytes, size_t len, const int fds[], size_t n);

/**
 * Wait for `len` bytes, and what comes with them, close-on-exec.
 * @param fds  PASS_MAX, -1 where none came.
 * @return as recvmsg: fewer bytes if the other side has ended.
 */
ssize_t pass_receive(int socket_fd, void *bytes, size_t len, int fds[PASS_MAX]);

#endif
