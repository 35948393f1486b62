#include "agent/node/listener.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_LISTENERS   60
#define N_CONNECTIONS 300

START_TEST(a_table_of_the_kernel_says_whose_a_port_is)
{
    static const char head[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                               "retrnsmt   uid  timeout inode\n";
    static const char mine[] = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 "
                               "00000000 70001        0 1 1 0 100 0 0 10 0\n";
    static const char other[] =
        "   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 "
        "00000000 70002        0 1 1 0 100 0 0 10 0\n";
    static const char talk[] = "   2: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 "
                               "00000000 70002        0 1 1 0 100 0 0 10 0\n";
    static const char six[] =
        "   3: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A "
        "00000000:00000000 00:00000000 00000000 70001        0 1 1 0 100 0 0 10 0\n";
    bool is_whole;
    char text[2048];
    (void)snprintf(text, sizeof text, "%s%s%s", head, mine, talk);
    ck_assert_int_eq(listener_find_in(text, 8080, 70001, &is_whole), LISTENER_OWN);
    ck_assert(is_whole); /* it does not end with one that listens */
    ck_assert_int_eq(listener_find_in(text, 8080, 70002, &is_whole), LISTENER_FOREIGN);
    ck_assert_int_eq(listener_find_in(text, 8081, 70001, &is_whole), LISTENER_NONE);
    (void)snprintf(text, sizeof text, "%s%s%s", head, mine, other);
    ck_assert_int_eq(listener_find_in(text, 8080, 70001, &is_whole), LISTENER_FOREIGN);
    ck_assert(!is_whole);
    (void)snprintf(text, sizeof text, "%s%s%s", head, head, six);
    ck_assert_int_eq(listener_find_in(text, 8080, 70001, &is_whole), LISTENER_OWN);
    ck_assert_int_eq(listener_find_in("", 8080, 70001, &is_whole), LISTENER_NONE);
    ck_assert_int_eq(listener_find_in(head, 8080, 0, &is_whole), LISTENER_NONE);
}

END_TEST

struct at {
    int fd, port;
    uid_t user;
    bool is_near; /* on loopback, or on all addresses */
};

/* Somebody's listener, at one of the addresses that a tunnel would reach, or at another of loopback. */
static struct at listen_somewhere(struct weir_rng *rng, int port)
{
    static const char *const v6[] = {"::1", "::"};
    static const char *const v4[] = {"127.0.0.1", "0.0.0.0", "127.0.0.9"};
    struct at at = {.user = geteuid() == 0 ? 70001 + (uid_t)weir_rng_below(rng, 2) : geteuid()};
    size_t i = (size_t)weir_rng_below(rng, 5);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int yes = 1;
    socklen_t len = i < 2 ? sizeof six : sizeof four;
    struct sockaddr *address = i < 2 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    (void)inet_pton(AF_INET6, v6[i % 2], &six.sin6_addr);
    (void)inet_pton(AF_INET, v4[i < 2 ? 0 : i - 2], &four.sin_addr);
    (void)setfsuid(at.user);
    at.fd = socket(i < 2 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setfsuid(geteuid());
    if (i < 2) {
        (void)setsockopt(at.fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    }
    at.is_near = i < 4;
    if (at.fd >= 0 && (bind(at.fd, address, len) != 0 || listen(at.fd, 64) != 0)) {
        close(at.fd);
        at.fd = -1; /* taken, or no IPv6 here */
    }
    if (at.fd >= 0) {
        ck_assert_int_eq(getsockname(at.fd, address, &len), 0);
        at.port = ntohs(i < 2 ? six.sin6_port : four.sin_port);
    }
    return at;
}

/* What is asked agrees with what was done, with connections of these ports beside. */
START_TEST(the_kernel_says_whose_a_port_is)
{
    static struct at all[N_LISTENERS];
    static int fds[2 * N_CONNECTIONS];
    struct weir_rng rng;
    size_t n = 0, n_fds = 0;
    (void)test_seed(&rng);
    while (n < N_LISTENERS) {
        bool is_second = n > 0 && weir_rng_below(&rng, 2) == 0;
        struct at at = listen_somewhere(&rng, is_second ? all[weir_rng_below(&rng, n)].port : 0);
        if (at.fd >= 0) {
            all[n++] = at;
        }
    }
    for (size_t i = 0; i < N_CONNECTIONS; i++) {
        struct sockaddr_storage address;
        socklen_t len = sizeof address;
        const struct at *to = &all[i % n];
        ck_assert_int_eq(getsockname(to->fd, (struct sockaddr *)&address, &len), 0);
        int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, len), 0);
        fds[n_fds++] = fd;
        fds[n_fds++] = accept(to->fd, NULL, NULL);
    }
    for (size_t i = 0; i < n; i++) {
        bool has[2] = {false, false}; /* the user's, and others */
        uid_t user = geteuid() == 0 ? 70001 + (uid_t)weir_rng_below(&rng, 2) : geteuid();
        for (size_t j = 0; j < n; j++) {
            if (all[j].port == all[i].port && all[j].is_near) {
                has[all[j].user != user] = true;
            }
        }
        ck_assert_int_eq(listener_find(all[i].port, user), has[1]   ? LISTENER_FOREIGN
                                                           : has[0] ? LISTENER_OWN
                                                                    : LISTENER_NONE);
    }
    for (size_t i = 0; i < n; i++) {
        close(all[i].fd);
    }
    for (size_t i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
    ck_assert_int_eq(listener_find(all[0].port, all[0].user), LISTENER_NONE);
}

END_TEST

int main(void)
{
    const TTest *tests[] = {a_table_of_the_kernel_says_whose_a_port_is,
                            the_kernel_says_whose_a_port_is};
    return weir_test_run(weir_test_suite("listener", tests, WEIR_ARRAY_LEN(tests)));
}
