#include "host/address.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* "http://HOST:PORT/…" taken apart. */
static bool split_url(const char *url, char *host, size_t size, char *port, size_t port_size)
{
    const char *at = strstr(url, "://");
    bool is_tls = strncmp(url, "https", 5) == 0;
    at = at != NULL ? at + 3 : url;
    bool is_v6 = at[0] == '[';
    size_t len = is_v6 ? strcspn(++at, "]") : strcspn(at, ":/");
    if (len == 0 || len >= size) {
        return false;
    }
    memcpy(host, at, len);
    host[len] = '\0';
    at += len + (is_v6 && at[len] == ']');
    len = at[0] == ':' ? strspn(at + 1, "0123456789") : 0;
    (void)snprintf(port, port_size, "%.*s", len > 0 ? (int)len : 4,
                   len > 0 ? at + 1 : (is_tls ? "443" : "80"));
    return true;
}

/* The address from which this machine reaches the server: by it the server reaches us. No packet is
 * sent. */
static bool own_address(const char *server, char *out, size_t size)
{
    char host[256], port[16];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    bool is_found = false;
    if (!split_url(server, host, sizeof host, port, sizeof port) ||
        getaddrinfo(host, port, &hints, &found) != 0) {
        return false;
    }
    for (const struct addrinfo *at = found; at != NULL && !is_found; at = at->ai_next) {
        struct sockaddr_storage own;
        socklen_t len = sizeof own;
        int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        is_found = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
                   getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
                   getnameinfo((struct sockaddr *)&own, len, out, (socklen_t)size, NULL, 0,
                               NI_NUMERICHOST) == 0;
        if (fd >= 0) {
            close(fd);
        }
    }
    freeaddrinfo(found);
    return is_found;
}

static bool is_any_address(const char *host)
{
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

void weir_host_url(const char *listen, int port, const char *server, char out[WEIR_HOST_URL_BYTES])
{
    char host[256], said[16], own[NI_MAXHOST];
    if (!split_url(listen, host, sizeof host, said, sizeof said) || is_any_address(host)) {
        if (!own_address(server, own, sizeof own)) {
            (void)snprintf(own, sizeof own, "127.0.0.1");
        }
        (void)snprintf(host, sizeof host, "%.250s", own);
    }
    bool is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(out, WEIR_HOST_URL_BYTES, is_v6 ? "http://[%s]:%d" : "http://%s:%d", host, port);
}
