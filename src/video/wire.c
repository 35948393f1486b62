#include "video/wire.h"

#include "base/macros.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 2

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

weir_status weir_video_send(int socket, struct weir_video_message *message, const int *fds,
                            size_t n_fds, bool may_wait)
{
    union control control = {0};
    struct iovec bytes = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
    int flags = MSG_NOSIGNAL | (may_wait ? 0 : MSG_DONTWAIT);
    ssize_t n;
    message->protocol = WEIR_VIDEO_PROTOCOL;
    if (n_fds > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *item = CMSG_FIRSTHDR(&header);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(item), fds, n_fds * sizeof(int));
    }
    do { /* a process that has given up its rights may not name an address: sendmsg could */
        n = n_fds > 0 ? sendmsg(socket, &header, flags)
                      : send(socket, message, sizeof *message, flags);
    } while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof *message) {
        return WEIR_OK;
    }
    return errno == EAGAIN                                              ? WEIR_ERR_UNAVAILABLE
           : errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN ? WEIR_ERR_PEER
                                                                        : WEIR_ERR_IO;
}

static void take_fds(struct msghdr *header, int fds[FDS_MAX])
{
    for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item != NULL;
         item = CMSG_NXTHDR(header, item)) {
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS) {
            size_t n = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(fds, CMSG_DATA(item), WEIR_MIN(n, FDS_MAX) * sizeof(int));
        }
    }
}

static bool is_whole(const struct weir_video_message *message, ssize_t n, int flags)
{
    return n == (ssize_t)sizeof *message && message->protocol == WEIR_VIDEO_PROTOCOL &&
           message->kind <= WEIR_VIDEO_END && (flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
}

weir_status weir_video_receive(int socket, struct weir_video_message *out, int fds[2])
{
    union control control = {0};
    struct iovec bytes = {.iov_base = out, .iov_len = sizeof *out};
    struct msghdr header = {.msg_iov = &bytes,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    ssize_t n;
    fds[0] = fds[1] = -1;
    do { /* ECONNRESET: it went without reading all that was said to it; its own last words are still there */
        n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n <= 0) {
        return n == 0 ? WEIR_ERR_PEER : errno == EAGAIN ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_IO;
    }
    take_fds(&header, fds);
    if (is_whole(out, n, header.msg_flags)) {
        out->text[sizeof out->text - 1] = '\0';
        return WEIR_OK;
    }
    for (size_t i = 0; i < FDS_MAX; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
            fds[i] = -1;
        }
    }
    return WEIR_ERR_CORRUPT;
}

size_t weir_video_frame_bytes(int64_t width, int64_t height)
{
    if (width < 1 || height < 1 || width > WEIR_VIDEO_SIDE_MAX || height > WEIR_VIDEO_SIDE_MAX) {
        return 0;
    }
    return (size_t)(width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2));
}
