#include "agent/node/listener.h"

#include "base/macros.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATE_LISTEN    10
#define TABLE_MAX_BYTES ((size_t)1 << 20) /* some 7000 that listen */
#define ANSWER_BYTES    16384
#define PATIENCE_S      2

/* What one listener says, beside what is known. */
static enum listener_owner add(enum listener_owner known, unsigned uid, uid_t user)
{
    return uid != user || known == LISTENER_FOREIGN ? LISTENER_FOREIGN : LISTENER_OWN;
}

static enum listener_owner both(enum listener_owner a, enum listener_owner b)
{
    if (a == LISTENER_FOREIGN || b == LISTENER_FOREIGN) {
        return LISTENER_FOREIGN;
    }
    if (a == LISTENER_UNKNOWN || b == LISTENER_UNKNOWN) {
        return LISTENER_UNKNOWN;
    }
    return a == LISTENER_OWN ? a : b;
}

/* ---- asked --------------------------------------------------------------------------------------- */

static bool is_here(const struct inet_diag_msg *socket)
{
    const struct in6_addr *v6 = (const struct in6_addr *)(const void *)socket->id.idiag_src;
    in_addr_t v4 = socket->id.idiag_src[0];
    if (socket->idiag_family == AF_INET) {
        return v4 == htonl(INADDR_LOOPBACK) || v4 == htonl(INADDR_ANY);
    }
    return IN6_IS_ADDR_LOOPBACK(v6) || IN6_IS_ADDR_UNSPECIFIED(v6) ||
           (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr32[3] == htonl(INADDR_LOOPBACK));
}

/* Read one answer. False: it is the last, and *known is whole, or UNKNOWN. */
static bool take(const char *bytes, size_t len, int port, uid_t user, enum listener_owner *known)
{
    for (const struct nlmsghdr *at = (const struct nlmsghdr *)(const void *)bytes;
         NLMSG_OK(at, len); at = NLMSG_NEXT(at, len)) {
        const struct inet_diag_msg *socket = NLMSG_DATA(at);
        if (at->nlmsg_type == NLMSG_DONE) {
            return false;
        }
        if (at->nlmsg_type != SOCK_DIAG_BY_FAMILY || at->nlmsg_len < NLMSG_LENGTH(sizeof *socket)) {
            *known = LISTENER_UNKNOWN;
            return false;
        }
        if (socket->idiag_state == STATE_LISTEN && ntohs(socket->id.idiag_sport) == port &&
            is_here(socket)) {
            *known = add(*known, socket->idiag_uid, user);
        }
    }
    return true;
}

static enum listener_owner ask_family(int fd, unsigned char family, int port, uid_t user)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } request = {.head = {.nlmsg_len = sizeof request,
                          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                 .body = {.sdiag_family = family,
                          .sdiag_protocol = IPPROTO_TCP,
                          .idiag_states = 1u << STATE_LISTEN,
                          .id = {.idiag_sport = htons((uint16_t)port)}}};

    _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
    enum listener_owner known = LISTENER_NONE;
    if (send(fd, &request, sizeof request, 0) != (ssize_t)sizeof request) {
        return LISTENER_UNKNOWN;
    }
    for (;;) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return LISTENER_UNKNOWN;
        }
        if (!take(answer, (size_t)n, port, user, &known)) {
            return known;
        }
    }
}

static enum listener_owner ask(int port, uid_t user)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) {
        return LISTENER_UNKNOWN;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    enum listener_owner v4 = ask_family(fd, AF_INET, port, user);
    enum listener_owner v6 = v4 == LISTENER_UNKNOWN ? v4 : ask_family(fd, AF_INET6, port, user);
    close(fd);
    return both(v4, v6);
}

/* ---- read ---------------------------------------------------------------------------------------- */

/* "  0: 0100007F:1F90 00000000:0000 0A … uid": a line of /proc/net/tcp. */
static bool read_line(const char *line, unsigned *out_port, unsigned *out_state, unsigned *out_uid,
                      bool *out_is_here)
{
    char address[40] = "";
    unsigned number;
    if (sscanf(line, " %u: %39[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %u", &number,
               address, out_port, out_state, out_uid) != 5) {
        return false;
    }
    static const char *const here[] = {"0100007F", "00000000", "00000000000000000000000000000000",
                                       "00000000000000000000000001000000",
                                       "0000000000000000FFFF00000100007F"};
    *out_is_here = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(here); i++) {
        *out_is_here = *out_is_here || strcmp(address, here[i]) == 0;
    }
    return true;
}

enum listener_owner listener_find_in(const char *table, int port, uid_t user, bool *out_is_whole)
{
    enum listener_owner known = LISTENER_NONE;
    *out_is_whole = false;
    for (const char *line = table; line != NULL && *line != '\0' && !*out_is_whole;) {
        unsigned at = 0, state = 0, uid = 0;
        bool is_near = false;
        if (read_line(line, &at, &state, &uid, &is_near)) {
            *out_is_whole = state != STATE_LISTEN;
            if (state == STATE_LISTEN && is_near && (int)at == port) {
                known = add(known, uid, user);
            }
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return known;
}

static enum listener_owner read_table(const char *path, int port, uid_t user)
{
    char *text = malloc(TABLE_MAX_BYTES + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum listener_owner known = LISTENER_UNKNOWN;
    ssize_t got = fd >= 0 && text != NULL ? 1 : -1;
    size_t n = 0;
    while (got > 0 && n < TABLE_MAX_BYTES) { /* a file of the kernel has no size to ask for */
        got = read(fd, text + n, TABLE_MAX_BYTES - n);
        n += got > 0 ? (size_t)got : 0;
    }
    if (got >= 0) {
        bool is_whole;
        text[n] = '\0';
        known = listener_find_in(text, port, user, &is_whole);
        known = is_whole || got == 0 ? known : LISTENER_UNKNOWN;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(text);
    return known;
}

enum listener_owner listener_find(int port, uid_t user)
{
    enum listener_owner known = ask(port, user);
    if (known != LISTENER_UNKNOWN) {
        return known;
    }
    enum listener_owner v4 = read_table("/proc/self/net/tcp", port, user);
    bool has_v6 = access("/proc/self/net/tcp6", F_OK) == 0;
    return has_v6 ? both(v4, read_table("/proc/self/net/tcp6", port, user)) : v4;
}
