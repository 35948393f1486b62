#include "video/open.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define V4L2_MAJOR 81
#define UDP_TRIES  64

static weir_status resolve(const char *host, int port, int type, struct addrinfo **out,
                           struct weir_error *err)
{
    char service[16];
    const struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};
    (void)snprintf(service, sizeof service, "%d", port);
    int rc = getaddrinfo(host, service, &hints, out);
    return rc == 0
               ? WEIR_OK
               : weir_error_set(err, rc == EAI_AGAIN ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_NOT_FOUND,
                                "the camera's name is not known: %s", gai_strerror(rc));
}

/* Until it is connected, the time is over, or somebody wants us to stop. @return 0 or errno. */
static int finish(int fd, int64_t deadline_ms, int stop_fd)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = fd, .events = POLLOUT}, {.fd = stop_fd, .events = POLLIN}};
        int64_t left_ms = deadline_ms - weir_mono_ms();
        int n = left_ms > 0 ? poll(fds, 2, (int)left_ms) : 0;
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || (fds[1].revents & POLLIN) != 0) {
            return n < 0 ? errno : n == 0 ? ETIMEDOUT : ECANCELED;
        }
        int value = 0;
        socklen_t len = sizeof value;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &len) == 0 ? value : errno;
    }
}

weir_status weir_video_open_connection(const char *host, int port, int64_t timeout_ms, int stop_fd,
                                       int *out_fd, struct weir_error *err)
{
    int64_t deadline_ms = weir_mono_ms() + timeout_ms;
    struct addrinfo *list;
    int why = EHOSTUNREACH, fd = -1;
    WEIR_TRY(resolve(host, port, SOCK_STREAM, &list, err));
    for (const struct addrinfo *at = list; at != NULL && fd < 0 && why != ECANCELED;
         at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        why = fd < 0                                          ? errno
              : connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0
              : errno == EINPROGRESS                          ? finish(fd, deadline_ms, stop_fd)
                                                              : errno;
        if (why != 0 && fd >= 0) {
            (void)close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0) {
        return why == ECANCELED
                   ? weir_error_set(err, WEIR_ERR_CANCELLED, "it is being stopped")
                   : weir_error_set_errno(err, why, "cannot connect to %s port %d", host, port);
    }
    *out_fd = fd;
    return WEIR_OK;
}

/* The address that this machine has for the host: a socket of UDP is connected without a packet. */
static weir_status own_address(const char *host, int port, struct sockaddr_storage *out,
                               socklen_t *out_len, struct weir_error *err)
{
    struct addrinfo *list;
    int why = EHOSTUNREACH;
    WEIR_TRY(resolve(host, port, SOCK_DGRAM, &list, err));
    for (const struct addrinfo *at = list; at != NULL && why != 0; at = at->ai_next) {
        WEIR_AUTO(weir_fd_auto_close) int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        *out_len = sizeof *out;
        why = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
                      getsockname(fd, (struct sockaddr *)out, out_len) == 0
                  ? 0
                  : errno;
    }
    freeaddrinfo(list);
    return why == 0 ? WEIR_OK : weir_error_set_errno(err, why, "no way to %s", host);
}

static void set_port(struct sockaddr_storage *address, int port)
{
    if (address->ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
    } else {
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
    }
}

static int port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    (void)getsockname(fd, (struct sockaddr *)&address, &len);
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

static int bind_at(struct sockaddr_storage *address, socklen_t len, int port)
{
    int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    set_port(address, port);
    if (fd >= 0 && bind(fd, (struct sockaddr *)address, len) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

weir_status weir_video_open_udp_pair(const char *host, int port, int out_fds[2], int *out_port,
                                     struct weir_error *err)
{
    static const int buffer_bytes = 4 << 20; /* a key frame comes as one burst */
    struct sockaddr_storage address;
    socklen_t len;
    WEIR_TRY(own_address(host, port, &address, &len, err));
    for (int i = 0; i < UDP_TRIES; i++) {
        int first = bind_at(&address, len, 0), even = first >= 0 ? port_of(first) : 1;
        int second = even % 2 == 0 && even < 65535 ? bind_at(&address, len, even + 1) : -1;
        if (second >= 0) {
            (void)setsockopt(first, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
            out_fds[0] = first;
            out_fds[1] = second;
            *out_port = even;
            return WEIR_OK;
        }
        if (first >= 0) {
            (void)close(first);
        }
    }
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no two ports in a row are free for UDP");
}

weir_status weir_video_open_file(const char *path, bool is_device, int *out_fd,
                                 struct weir_error *err)
{
    struct stat about;
    int fd = open(path, (is_device ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "opening %s", path);
    }
    bool is_right = fstat(fd, &about) == 0 &&
                    (is_device ? S_ISCHR(about.st_mode) && major(about.st_rdev) == V4L2_MAJOR
                               : S_ISREG(about.st_mode));
    if (!is_right) {
        (void)close(fd);
        return weir_error_set(err, WEIR_ERR_INVALID, "%s is no %s", path,
                              is_device ? "camera (a device of Video4Linux)" : "regular file");
    }
    *out_fd = fd;
    return WEIR_OK;
}
