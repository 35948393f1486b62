#include "base/relay.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* outer[0] | fds[0] relay fds[1] | outer[1] */
static int outer[2];
static struct weir_relay relay;

static void set_up(void)
{
    int first[2], second[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, first), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, second), 0);
    outer[0] = first[1];
    outer[1] = second[1];
    weir_relay_init(&relay, first[0], second[0], 1000);
}

static void tear_down(void)
{
    weir_relay_fini(&relay);
    for (int i = 0; i < 2; i++) {
        close(relay.fds[i]);
        close(outer[i]);
    }
}

START_TEST(bytes_go_both_ways_in_order)
{
    static char sent[300000], got[300000];
    size_t n_sent = 0, n_got = 0;
    for (size_t i = 0; i < sizeof sent; i++) {
        sent[i] = (char)(i * 31 + i / 251);
    }
    ck_assert(weir_relay_preload(&relay, 1, "early", 5));
    while (n_got < sizeof sent) {
        ssize_t n = send(outer[0], sent + n_sent, sizeof sent - n_sent, MSG_NOSIGNAL);
        n_sent += n > 0 ? (size_t)n : 0;
        ck_assert(weir_relay_pump(&relay, 1001));
        ck_assert_uint_le(relay.ways[0].end - relay.ways[0].begin, WEIR_RELAY_BYTES);
        n = recv(outer[1], got + n_got, 4096, 0);
        n_got += n > 0 ? (size_t)n : 0;
    }
    ck_assert_int_eq(memcmp(sent, got, sizeof sent), 0);
    ck_assert_int_eq(recv(outer[0], got, 100, 0), 5);
    ck_assert_int_eq(memcmp(got, "early", 5), 0);
    ck_assert_uint_eq(relay.ways[0].n_bytes, sizeof sent);
}

END_TEST

START_TEST(an_end_is_passed_on_behind_the_bytes)
{
    char got[16];
    ck_assert_int_eq(send(outer[0], "bye", 3, 0), 3);
    shutdown(outer[0], SHUT_WR);
    ck_assert(weir_relay_pump(&relay, 1001));
    ck_assert_int_eq(recv(outer[1], got, sizeof got, 0), 3);
    ck_assert_int_eq(recv(outer[1], got, sizeof got, 0), 0);
    ck_assert_int_eq(send(outer[1], "answer", 6, 0), 6);
    ck_assert(weir_relay_pump(&relay, 1002));
    ck_assert_int_eq(recv(outer[0], got, sizeof got, 0), 6);
    shutdown(outer[1], SHUT_WR);
    ck_assert(!weir_relay_pump(&relay, 1003));
}

END_TEST

START_TEST(a_side_that_takes_nothing_ends_it)
{
    static char bytes[1 << 20];
    while (send(outer[0], bytes, sizeof bytes, MSG_NOSIGNAL) > 0) {
        ck_assert(weir_relay_pump(&relay, 2000));
    }
    ck_assert(weir_relay_pump(&relay, 2000 + WEIR_RELAY_STUCK_MS - 1));
    ck_assert(!weir_relay_pump(&relay, 2000 + WEIR_RELAY_STUCK_MS));
}

END_TEST

START_TEST(silence_ends_it)
{
    ck_assert(weir_relay_pump(&relay, 1000 + WEIR_RELAY_QUIET_MS - 1));
    ck_assert_int_eq(send(outer[0], "x", 1, 0), 1);
    ck_assert(weir_relay_pump(&relay, 1000 + WEIR_RELAY_QUIET_MS - 1));
    ck_assert(weir_relay_pump(&relay, 1000 + 2 * WEIR_RELAY_QUIET_MS - 2));
    ck_assert(!weir_relay_pump(&relay, 1000 + 2 * WEIR_RELAY_QUIET_MS - 1));
}

END_TEST

START_TEST(a_broken_side_ends_it)
{
    ck_assert_int_eq(send(outer[0], "x", 1, 0), 1);
    close(outer[1]);
    outer[1] = open("/dev/null", O_RDONLY);
    ck_assert(!weir_relay_pump(&relay, 1001));
}

END_TEST

/* What is left when it lets others have their turn brings no event by itself. */
START_TEST(it_says_that_it_is_to_be_pumped_again)
{
    static char bytes[1 << 16];
    size_t n_sent = 0, n_got = 0;
    int size = 4 << 20;
    for (int i = 0; i < 4; i++) {
        int fd = i < 2 ? outer[i] : relay.fds[i - 2];
        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0) {
            return; /* not root: no socket holds more than one turn moves */
        }
    }
    for (ssize_t n; (n = send(outer[0], bytes, sizeof bytes, MSG_NOSIGNAL)) > 0;) {
        n_sent += (size_t)n;
    }
    ck_assert_uint_gt(n_sent, (size_t)1 << 20);
    do { /* as its owner does, without any event */
        ck_assert(weir_relay_pump(&relay, 1001));
        for (ssize_t n; (n = recv(outer[1], bytes, sizeof bytes, 0)) > 0;) {
            n_got += (size_t)n;
        }
    } while (relay.has_more);
    ck_assert_uint_eq(n_got, n_sent);
}

END_TEST

static bool see_no_x(void *context, int from, const void *seen, size_t len)
{
    *(int *)context += from == 0;
    return memchr(seen, 'x', len) == NULL;
}

START_TEST(what_must_not_pass_ends_it)
{
    int n = 0;
    char got[8];
    relay.see = see_no_x;
    relay.context = &n;
    ck_assert_int_eq(send(outer[0], "good", 4, 0), 4);
    ck_assert(weir_relay_pump(&relay, 1001));
    ck_assert_int_eq(recv(outer[1], got, sizeof got, 0), 4);
    ck_assert_int_eq(send(outer[0], "x", 1, 0), 1);
    ck_assert(!weir_relay_pump(&relay, 1002));
    ck_assert_int_eq(recv(outer[1], got, sizeof got, 0), -1);
    ck_assert_int_eq(n, 2);
}

END_TEST

int main(void)
{
    const TTest *tests[] = {bytes_go_both_ways_in_order,
                            an_end_is_passed_on_behind_the_bytes,
                            a_side_that_takes_nothing_ends_it,
                            silence_ends_it,
                            a_broken_side_ends_it,
                            it_says_that_it_is_to_be_pumped_again,
                            what_must_not_pass_ends_it};
    return weir_test_run(
        weir_test_suite_with("relay", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
