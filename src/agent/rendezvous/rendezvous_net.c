/* Where this machine is reached: addresses, interfaces and ports. */
#include "agent/rendezvous/rendezvous.h"

#include "base/rng.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Below what Linux gives to connections (net.ipv4.ip_local_port_range begins at 32768), above what
 * services of the machine have. */
#define PORT_FIRST 20000
#define PORT_LAST  31999
#define PORT_TRIES 64

/* "http://HOST:PORT": HOST may be in brackets. */
static bool split_server(const char *server, char host[256], char port[8])
{
    const char *begin = strstr(server, "://");
    begin = begin != NULL ? begin + 3 : server;
    bool is_bracket = *begin == '[';
    begin += is_bracket;
    const char *end = is_bracket ? strchr(begin, ']') : begin + strcspn(begin, ":/");
    if (end == NULL || end == begin || end - begin >= 256) {
        return false;
    }
    (void)snprintf(host, 256, "%.*s", (int)(end - begin), begin);
    end += is_bracket;
    (void)snprintf(port, 8, "%.*s", *end == ':' ? (int)strcspn(end + 1, "/") : 3,
                   *end == ':'                           ? end + 1
                   : strncmp(server, "https://", 8) == 0 ? "443"
                                                         : "80");
    return true;
}

/* No packet is sent: the kernel chooses the way. */
static bool address_towards(const struct addrinfo *target, char out[RENDEZVOUS_ADDRESS_BYTES])
{
    struct sockaddr_storage own;
    socklen_t len = sizeof own;
    int fd = socket(target->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_known = fd >= 0 && connect(fd, target->ai_addr, target->ai_addrlen) == 0 &&
                    getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
                    getnameinfo((struct sockaddr *)&own, len, out, RENDEZVOUS_ADDRESS_BYTES, NULL,
                                0, NI_NUMERICHOST) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_known;
}

/* Nobody has this address (RFC 5737): the way to it is the machine's way out. */
static bool address_outwards(char out[RENDEZVOUS_ADDRESS_BYTES])
{
    struct sockaddr_in stranger = {.sin_family = AF_INET, .sin_port = htons(9)};
    (void)inet_pton(AF_INET, "192.0.2.1", &stranger.sin_addr);
    const struct addrinfo target = {.ai_family = AF_INET,
                                    .ai_addr = (struct sockaddr *)&stranger,
                                    .ai_addrlen = sizeof stranger};
    return address_towards(&target, out);
}

bool rendezvous_is_local(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

weir_status rendezvous_address_to(const char *server, char out[RENDEZVOUS_ADDRESS_BYTES],
                                  struct weir_error *err)
{
    char host[256], port[8];
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    if (!split_server(server, host, port)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.100s\" is not the address of a server",
                              server);
    }
    bool is_known = false;
    int rc = getaddrinfo(host, port, &hints, &list);
    for (const struct addrinfo *at = list; rc == 0 && at != NULL && !is_known; at = at->ai_next) {
        is_known = address_towards(at, out);
    }
    if (rc == 0) {
        freeaddrinfo(list);
    }
    return is_known ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_IO,
                                     "this node's own address is not known: there is no way to "
                                     "%.100s (weir agent --address names it)",
                                     host);
}

weir_status rendezvous_own_address(const char *server, char out[RENDEZVOUS_ADDRESS_BYTES],
                                   struct weir_error *err)
{
    char outwards[RENDEZVOUS_ADDRESS_BYTES];
    WEIR_TRY(rendezvous_address_to(server, out, err));
    if (rendezvous_is_local(out) && address_outwards(outwards)) {
        (void)snprintf(out, RENDEZVOUS_ADDRESS_BYTES, "%s", outwards);
    }
    return WEIR_OK;
}

void rendezvous_interface(const char *address, char *out, size_t size)
{
    struct ifaddrs *list = NULL;
    char text[RENDEZVOUS_ADDRESS_BYTES];
    out[0] = '\0';
    if (getifaddrs(&list) != 0) {
        return;
    }
    for (const struct ifaddrs *at = list; at != NULL && out[0] == '\0'; at = at->ifa_next) {
        int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t len = family == AF_INET    ? sizeof(struct sockaddr_in)
                        : family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                             : 0;
        if (len > 0 &&
            getnameinfo(at->ifa_addr, len, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0 &&
            strcmp(text, address) == 0) {
            (void)snprintf(out, size, "%s", at->ifa_name);
        }
    }
    freeifaddrs(list);
}

static bool is_free(int port)
{
    const struct sockaddr_in6 any = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons((uint16_t)port)};
    const struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0); /* both, where there is IPv6 */
    bool is_v6 = fd >= 0;
    fd = is_v6 ? fd : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = is_v6 ? bind(fd, (const struct sockaddr *)&any, sizeof any)
                   : bind(fd, (const struct sockaddr *)&any4, sizeof any4);
    if (fd >= 0) {
        close(fd);
    }
    return rc == 0;
}

int rendezvous_free_port(void)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        uint16_t random;
        weir_random_bytes(&random, sizeof random);
        int port = PORT_FIRST + random % (PORT_LAST - PORT_FIRST + 1);
        if (is_free(port)) {
            return port;
        }
    }
    return 0;
}
