#include "base/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_MAX 65535

/* "[::1]:80" → "::1", "80"; "host:80" → "host", "80". */
static bool split_address(const char *address, char *host, size_t host_size, const char **out_port)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon[1] == '\0' || strlen(colon + 1) > 5 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strtol(colon + 1, NULL, 10) > PORT_MAX) { /* getaddrinfo takes another one for it */
        return false;
    }
    const char *begin = address;
    const char *end = colon;
    if (*begin == '[') {
        if (end - begin < 2 || end[-1] != ']') {
            return false;
        }
        begin++;
        end--;
    } else if (memchr(begin, ':', (size_t)(end - begin)) != NULL) {
        return false;
    }
    size_t len = (size_t)(end - begin);
    if (len == 0 || len >= host_size) {
        return false;
    }
    memcpy(host, begin, len);
    host[len] = '\0';
    *out_port = colon + 1;
    return true;
}

static weir_status bind_error(int errno_value, const char *address, const char *option,
                              struct weir_error *err)
{
    switch (errno_value) {
    case EADDRINUSE:
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "cannot listen on %s: the port is in use by another program; stop "
                              "that one, or choose another address with %s",
                              address, option);
    case EACCES:
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "cannot listen on %s: ports below 1024 need root or "
                              "CAP_NET_BIND_SERVICE; choose a higher one with %s",
                              address, option);
    case EADDRNOTAVAIL:
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "cannot listen on %s: this machine has no such address; choose one "
                              "of its own with %s",
                              address, option);
    default:
        return weir_error_set_errno(err, errno_value, "cannot listen on %s", address);
    }
}

static int port_of(int fd)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof name;
    if (getsockname(fd, (struct sockaddr *)&name, &len) != 0) {
        return 0;
    }
    return ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port
                                            : ((struct sockaddr_in *)&name)->sin_port);
}

weir_status weir_listen_open(const char *address, const char *option, int *out_fd, int *out_port,
                             struct weir_error *err)
{
    char host[256];
    const char *port;
    if (!split_address(address, host, sizeof host, &port)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "listen address \"%s\": expected HOST:PORT, such as 127.0.0.1:8440 or "
            "[::]:8440",
            address);
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "listen address \"%s\": %s", address,
                              gai_strerror(rc));
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    bool is_open = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                   bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
    int errno_value = errno;
    freeaddrinfo(found);
    if (!is_open) {
        if (fd >= 0) {
            close(fd);
        }
        return bind_error(errno_value, address, option, err);
    }
    *out_fd = fd;
    *out_port = port_of(fd);
    return WEIR_OK;
}
