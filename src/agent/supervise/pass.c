#include "agent/supervise/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
    char bytes[CMSG_SPACE(PASS_MAX * sizeof(int))];
    struct cmsghdr align;
};

bool pass_send(int socket_fd, const void *bytes, size_t len, const int fds[], size_t n)
{
    union control control = {.bytes = {0}};
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (n > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(head), fds, n * sizeof(int));
    }
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL) == (ssize_t)len;
}

ssize_t pass_receive(int socket_fd, void *bytes, size_t len, int fds[PASS_MAX])
{
    union control control = {.bytes = {0}};
    struct iovec part = {.iov_base = bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t n;
    for (size_t i = 0; i < PASS_MAX; i++) {
        fds[i] = -1;
    }
    do {
        n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (n < 0 && errno == EINTR);
    const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
    }
    return n;
}
