#include "comm/rendezvous/address.h"

#include "base/buf.h"
#include "comm/rendezvous/auth_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_plain_name(const char *text)
{
    return text[0] != '\0' && strlen(text) < WIRE_JOB_ID_BYTES &&
           text[strspn(
               text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == '\0';
}

weir_status address_split(const char *text, char *host, size_t host_size, char *port,
                          size_t port_size)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return WEIR_ERR_INVALID;
    }
    size_t host_len = (size_t)(colon - text), port_len = strlen(colon + 1);
    if (host_len >= 2 && text[0] == '[' && colon[-1] == ']') {
        text++;
        host_len -= 2;
    }
    if (host_len == 0 || host_len >= host_size || port_len == 0 || port_len >= port_size ||
        port_len > 5 || strspn(colon + 1, "0123456789") != port_len) {
        return WEIR_ERR_INVALID;
    }
    memcpy(host, text, host_len);
    host[host_len] = '\0';
    memcpy(port, colon + 1, port_len + 1);
    return WEIR_OK;
}

weir_status address_rendezvous_parse(const char *url, const char *job_id, int attempt,
                                     struct address_rendezvous *out, struct weir_error *err)
{
    if (url == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a group of several ranks needs a rendezvous");
    }
    if (!is_plain_name(job_id) || attempt < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "job id \"%s\", attempt %d: expected letters, digits, '_', '.', '-', "
                              "and an attempt from 0",
                              job_id, attempt);
    }
    if (strncmp(url, "file://", 7) == 0 && url[7] == '/') {
        int len =
            snprintf(out->path, sizeof out->path, "%s/rendezvous-%s-%d", url + 7, job_id, attempt);
        if (len < 0 || (size_t)len >= sizeof out->path) {
            return weir_error_set(err, WEIR_ERR_INVALID, "rendezvous \"%s\": too long", url);
        }
        out->is_file = true;
        return WEIR_OK;
    }
    if (strncmp(url, "tcp://", 6) == 0 && address_split(url + 6, out->host, sizeof out->host,
                                                        out->port, sizeof out->port) == WEIR_OK) {
        out->is_file = false;
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "rendezvous \"%s\": expected file:///dir or tcp://host:port", url);
}

void address_boot_id(char out[BOOT_ID_BYTES])
{
    out[0] = '\0';
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL) {
        if (fgets(out, BOOT_ID_BYTES, file) != NULL) {
            out[strcspn(out, "\n")] = '\0';
        }
        (void)fclose(file);
    }
    if (out[0] == '\0') {
        (void)snprintf(out, BOOT_ID_BYTES, "unknown");
    }
}

/* A socket listening on one address, or -1 with errno. */
static int listen_on(int family, const struct sockaddr *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1, off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, address, len) != 0 || listen(fd, 512) != 0) {
        int saved = errno;
        (void)close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* All interfaces; IPv6 sockets take IPv4 too, but a host may have no IPv6. */
static int listen_everywhere(uint16_t port)
{
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons(port)};
    int fd = listen_on(AF_INET6, (struct sockaddr *)&six, sizeof six);
    if (fd < 0 && errno != EADDRINUSE) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
        fd = listen_on(AF_INET, (struct sockaddr *)&four, sizeof four);
    }
    return fd;
}

weir_status address_listen(const struct address_rendezvous *where, int *out_fd,
                           struct weir_error *err)
{
    int fd = -1;
    if (where->is_file) {
        fd = listen_everywhere(0);
    } else {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
        int problem = getaddrinfo(where->host, where->port, &hints, &list);
        if (problem != 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "rendezvous tcp://%s:%s: %s", where->host,
                                  where->port, gai_strerror(problem));
        }
        errno = EADDRNOTAVAIL;
        for (struct addrinfo *i = list; i != NULL && fd < 0; i = i->ai_next) {
            fd = listen_on(i->ai_family, i->ai_addr, i->ai_addrlen);
        }
        freeaddrinfo(list);
        /* A name that others reach us by (a service, a forwarded address) need not be ours. */
        if (fd < 0 && errno == EADDRNOTAVAIL) {
            fd = listen_everywhere((uint16_t)strtoul(where->port, NULL, 10));
        }
    }
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "rank 0 cannot listen for the other ranks");
    }
    *out_fd = fd;
    return WEIR_OK;
}

static bool is_usable(const struct ifaddrs *i)
{
    if (i->ifa_addr == NULL || (i->ifa_flags & IFF_UP) == 0) {
        return false;
    }
    if (i->ifa_addr->sa_family == AF_INET6) {
        /* Link-local addresses mean nothing on another host. */
        return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
    }
    return i->ifa_addr->sa_family == AF_INET;
}

static void add_addresses(const struct ifaddrs *list, bool is_loopback, uint16_t port,
                          bool has_ipv6, struct address_notice *out)
{
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        if (!is_usable(i) || ((i->ifa_flags & IFF_LOOPBACK) != 0) != is_loopback ||
            (i->ifa_addr->sa_family == AF_INET6 && !has_ipv6) || out->n_addresses == ADDRESS_MAX) {
            continue;
        }
        char host[INET6_ADDRSTRLEN];
        bool is_six = i->ifa_addr->sa_family == AF_INET6;
        const void *raw = is_six ? (const void *)&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr
                                 : (const void *)&((struct sockaddr_in *)i->ifa_addr)->sin_addr;
        if (inet_ntop(i->ifa_addr->sa_family, raw, host, sizeof host) != NULL) {
            (void)snprintf(out->addresses[out->n_addresses++], ADDRESS_TEXT_BYTES,
                           is_six ? "[%s]:%u" : "%s:%u", host, port);
        }
    }
}

weir_status address_list_own(int listen_fd, struct address_notice *out, struct weir_error *err)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof own;
    struct ifaddrs *list = NULL;
    if (getsockname(listen_fd, (struct sockaddr *)&own, &len) != 0 || getifaddrs(&list) != 0) {
        return weir_error_set_errno(err, errno, "listing this host's addresses");
    }
    bool is_six = own.ss_family == AF_INET6;
    uint16_t port = ntohs(is_six ? ((struct sockaddr_in6 *)&own)->sin6_port
                                 : ((struct sockaddr_in *)&own)->sin_port);
    out->n_addresses = 0;
    /* Loopback first: a reader on this host (same boot id) wants it, others skip it. */
    add_addresses(list, true, port, is_six, out);
    add_addresses(list, false, port, is_six, out);
    freeifaddrs(list);
    return WEIR_OK;
}

bool address_is_loopback(const char *text)
{
    return strncmp(text, "127.", 4) == 0 || strncmp(text, "[::1]", 5) == 0;
}

bool address_of_socket(int fd, char out_host[ADDRESS_HOST_BYTES])
{
    struct sockaddr_storage own;
    socklen_t len = sizeof own;
    if (getsockname(fd, (struct sockaddr *)&own, &len) != 0) {
        return false;
    }
    const void *four = &((const struct sockaddr_in *)&own)->sin_addr;
    if (own.ss_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)&own)->sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED(six)) {
            return inet_ntop(AF_INET6, six, out_host, ADDRESS_HOST_BYTES) != NULL;
        }
        four = &six->s6_addr[12];
    } else if (own.ss_family != AF_INET) {
        return false;
    }
    return inet_ntop(AF_INET, four, out_host, ADDRESS_HOST_BYTES) != NULL;
}

static const char notice_title[] = "weir-rendezvous 1";

void address_notice_write(const struct address_notice *notice, struct weir_buf *buf)
{
    char hex[2 * WIRE_NONCE_BYTES + 1];
    if (notice->is_over) {
        (void)weir_buf_printf(buf, "%s\nover\n", notice_title);
        return;
    }
    for (int i = 0; i < WIRE_NONCE_BYTES; i++) {
        (void)snprintf(hex + (size_t)(2 * i), 3, "%02x", notice->instance[i]);
    }
    (void)weir_buf_printf(buf, "%s\ninstance %s\nboot %s\n", notice_title, hex, notice->boot_id);
    for (int i = 0; i < notice->n_addresses; i++) {
        (void)weir_buf_printf(buf, "address %s\n", notice->addresses[i]);
    }
}

static bool parse_instance(const char *hex, uint8_t out[WIRE_NONCE_BYTES])
{
    if (strlen(hex) != (size_t)2 * WIRE_NONCE_BYTES ||
        strspn(hex, "0123456789abcdef") != (size_t)2 * WIRE_NONCE_BYTES) {
        return false;
    }
    for (size_t i = 0; i < WIRE_NONCE_BYTES; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

static bool parse_line(const char *line, struct address_notice *out)
{
    if (strcmp(line, "over") == 0) {
        out->is_over = true;
        return true;
    }
    if (strncmp(line, "instance ", 9) == 0) {
        return parse_instance(line + 9, out->instance);
    }
    if (strncmp(line, "boot ", 5) == 0) {
        return snprintf(out->boot_id, BOOT_ID_BYTES, "%s", line + 5) < BOOT_ID_BYTES;
    }
    if (strncmp(line, "address ", 8) == 0 && out->n_addresses < ADDRESS_MAX) {
        char host[256], port[16];
        return address_split(line + 8, host, sizeof host, port, sizeof port) == WEIR_OK &&
               snprintf(out->addresses[out->n_addresses++], ADDRESS_TEXT_BYTES, "%s", line + 8) <
                   ADDRESS_TEXT_BYTES;
    }
    return false;
}

weir_status address_notice_parse(const char *text, size_t len, struct address_notice *out)
{
    *out = (struct address_notice){.n_addresses = 0};
    int n_lines = 0;
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        char line[512];
        size_t line_len = end == NULL ? sizeof line : (size_t)(end - text);
        if (line_len >= sizeof line || memchr(text, '\0', line_len) != NULL) {
            return WEIR_ERR_CORRUPT;
        }
        memcpy(line, text, line_len);
        line[line_len] = '\0';
        if (n_lines++ == 0 ? strcmp(line, notice_title) != 0 : !parse_line(line, out)) {
            return WEIR_ERR_CORRUPT;
        }
        text += line_len + 1;
        len -= line_len + 1;
    }
    bool is_whole = out->is_over || (out->n_addresses > 0 && out->boot_id[0] != '\0');
    return is_whole ? WEIR_OK : WEIR_ERR_CORRUPT;
}

/* One non-blocking connect; the descriptor, or -1 with errno. */
static int connect_one(const struct addrinfo *to, uint64_t deadline_ns)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    int problem = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
        socklen_t len = sizeof problem;
        problem = ETIMEDOUT;
        if (poll(&poll_fd, 1, auth_conn_poll_ms(deadline_ns, INT_MAX)) == 1) {
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len);
        }
    }
    if (problem != 0) {
        (void)close(fd);
        errno = problem;
        return -1;
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

weir_status address_connect(const char *text, uint64_t deadline_ns, int *out_fd,
                            struct weir_error *err)
{
    char host[256], port[16];
    if (address_split(text, host, sizeof host, port, sizeof port) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID, "address \"%s\": expected host:port", text);
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int problem = getaddrinfo(host, port, &hints, &list);
    if (problem != 0) {
        return weir_error_set(err, WEIR_ERR_PEER, "%s: %s", text, gai_strerror(problem));
    }
    int fd = -1;
    for (struct addrinfo *i = list; i != NULL && fd < 0; i = i->ai_next) {
        fd = connect_one(i, deadline_ns);
    }
    int saved = errno;
    freeaddrinfo(list);
    if (fd < 0) {
        return weir_error_set(err, saved == ETIMEDOUT ? WEIR_ERR_TIMEOUT : WEIR_ERR_PEER,
                              "connecting to rank 0 at %s: %s", text, strerror(saved));
    }
    *out_fd = fd;
    return WEIR_OK;
}
