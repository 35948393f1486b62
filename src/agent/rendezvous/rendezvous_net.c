/* Where this machine is reached: addresses, interfaces and ports. */
#include "agent/rendezvous/rendezvous.h"

#include "base/rng.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
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
                                     "%.100s (weir agent --address says it)",
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

/* ---- by a setting ------------------------------------------------------------------------------- */

/* An address of either family; of a network its first `n_bits`. */
struct address {
    int family;
    unsigned char bytes[sizeof(struct in6_addr)];
    unsigned n_bits;
};

static bool read_number(const char *text, struct address *out)
{
    out->family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    out->n_bits = out->family == AF_INET6 ? 128 : 32;
    return inet_pton(out->family, text, out->bytes) == 1;
}

/* "ADDRESS/LENGTH" */
static bool read_network(const char *text, struct address *out)
{
    char address[RENDEZVOUS_NETWORK_BYTES];
    const char *slash = strchr(text, '/');
    if (slash == NULL || strlen(text) >= sizeof address) {
        return false;
    }
    (void)snprintf(address, sizeof address, "%.*s", (int)(slash - text), text);
    size_t n_digits = strspn(slash + 1, "0123456789");
    if (!read_number(address, out) || n_digits == 0 || n_digits > 3 ||
        slash[1 + n_digits] != '\0') {
        return false;
    }
    unsigned long n_bits = strtoul(slash + 1, NULL, 10);
    bool is_good = n_bits <= out->n_bits;
    out->n_bits = (unsigned)n_bits;
    return is_good;
}

static bool is_interface(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-:@";
    size_t len = strlen(text);
    return len > 0 && len < IFNAMSIZ && strspn(text, letters) == len;
}

weir_status rendezvous_setting_check(const char *setting, struct weir_error *err)
{
    struct address address;
    bool is_good = read_number(setting, &address) || read_network(setting, &address) ||
                   (strchr(setting, '/') == NULL && is_interface(setting));
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "--address %.60s: expected an address (10.1.0.7), a network "
                                    "(10.1.0.0/16) or an interface (ib0) of this machine",
                                    setting);
}

static bool is_within(const struct address *address, const struct address *network)
{
    if (address->family != network->family) {
        return false;
    }
    size_t n_whole = network->n_bits / 8;
    unsigned n_rest = network->n_bits % 8;
    unsigned char mask = (unsigned char)(0xFF00U >> n_rest);
    return memcmp(address->bytes, network->bytes, n_whole) == 0 &&
           (n_rest == 0 || ((address->bytes[n_whole] ^ network->bytes[n_whole]) & mask) == 0);
}

/* False: none, or one of a link alone. */
static bool read_interface(const struct ifaddrs *at, char text[RENDEZVOUS_ADDRESS_BYTES],
                           struct address *out)
{
    int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
    const void *raw = family == AF_INET
                          ? (const void *)&((const struct sockaddr_in *)at->ifa_addr)->sin_addr
                          : (const void *)&((const struct sockaddr_in6 *)at->ifa_addr)->sin6_addr;
    if ((family != AF_INET && family != AF_INET6) ||
        (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)raw))) {
        return false;
    }
    return inet_ntop(family, raw, text, RENDEZVOUS_ADDRESS_BYTES) != NULL && read_number(text, out);
}

static weir_status none_found(const char *setting, const struct ifaddrs *list,
                              struct weir_error *err)
{
    char all[WEIR_ERROR_MESSAGE_BYTES / 2] = "", text[RENDEZVOUS_ADDRESS_BYTES];
    struct address address;
    size_t len = 0;
    for (const struct ifaddrs *at = list; at != NULL && len < sizeof all; at = at->ifa_next) {
        if (read_interface(at, text, &address)) {
            len += (size_t)snprintf(all + len, sizeof all - len, "%s%s %s", len > 0 ? ", " : "",
                                    at->ifa_name, text);
        }
    }
    return weir_error_set(
        err, WEIR_ERR_NOT_FOUND,
        "no address of this node is meant by its agent's --address %.60s: it has %s", setting, all);
}

weir_status rendezvous_address_by(const char *setting, char out[RENDEZVOUS_ADDRESS_BYTES],
                                  struct weir_error *err)
{
    struct address wanted, found;
    struct ifaddrs *list = NULL;
    char text[RENDEZVOUS_ADDRESS_BYTES];
    int family = AF_UNSPEC; /* which is in `out` */
    WEIR_TRY(rendezvous_setting_check(setting, err));
    if (read_number(setting, &wanted)) {
        (void)snprintf(out, RENDEZVOUS_ADDRESS_BYTES, "%s", setting);
        return WEIR_OK;
    }
    bool is_network = read_network(setting, &wanted);
    if (getifaddrs(&list) != 0) {
        return weir_error_set(err, WEIR_ERR_IO, "the addresses of this node cannot be listed");
    }
    for (const struct ifaddrs *at = list; at != NULL && family != AF_INET; at = at->ifa_next) {
        bool is_meant =
            read_interface(at, text, &found) &&
            (is_network ? is_within(&found, &wanted) : strcmp(at->ifa_name, setting) == 0);
        if (is_meant && (family == AF_UNSPEC || found.family == AF_INET)) {
            family = found.family;
            (void)snprintf(out, RENDEZVOUS_ADDRESS_BYTES, "%s", text);
        }
    }
    weir_status status = family != AF_UNSPEC ? WEIR_OK : none_found(setting, list, err);
    freeifaddrs(list);
    return status;
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
