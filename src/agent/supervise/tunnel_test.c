#include "agent/tunnel.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET  "opensesame"
#define WELCOME "HTTP/1.1 200 OK\r\n\r\n"

static struct tunnel tunnel;
static int program_fd;

/* Who listens on a port of loopback, as this user (root may). */
static int listen_as(uid_t user, int *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    if (user != 0) {
        (void)setfsuid(user);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setfsuid(geteuid());
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

static void open_tunnel(uid_t user)
{
    struct namespaces ns = NAMESPACES_NONE;
    struct weir_error err = {0};
    memset(&tunnel, 0, sizeof tunnel);
    program_fd = listen_as(user, &tunnel.port);
    tunnel.secret = SECRET;
    ck_assert_msg(tunnel_listen(&tunnel, "127.0.0.1", &err) == WEIR_OK, "%s", err.message);
    tunnel.user = user;
    tunnel_start(&tunnel, &ns);
    ck_assert_int_gt(tunnel.pid, 0);
}

static void set_up(void)
{
    open_tunnel(0);
}

static void tear_down(void)
{
    (void)kill(tunnel.pid, SIGKILL);
    (void)waitpid(tunnel.pid, NULL, 0);
    close(tunnel.fd);
    if (program_fd >= 0) {
        close(program_fd);
    }
}

static int knock(const char *head)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 10};
    address.sin_port = htons((uint16_t)strtol(strrchr(tunnel.address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
    return fd;
}

static const char *answer_to(const char *head)
{
    static char text[512];
    int fd = knock(head);
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    return text;
}

#define ASK(secret)                                                                                \
    "CONNECT x:80 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer " secret "\r\n\r\n"

START_TEST(who_has_the_secret_is_let_in)
{
    char text[64];
    int fd = knock(ASK(SECRET) "first");
    int inner = accept(program_fd, NULL, NULL);
    ck_assert_int_ge(inner, 0);
    ck_assert_int_eq(recv(fd, text, sizeof WELCOME - 1, MSG_WAITALL), sizeof WELCOME - 1);
    ck_assert_int_eq(memcmp(text, WELCOME, sizeof WELCOME - 1), 0);
    ck_assert_int_eq(recv(inner, text, 5, MSG_WAITALL), 5);
    ck_assert_int_eq(memcmp(text, "first", 5), 0);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(send(inner, "answer", 6, MSG_NOSIGNAL), 6);
        ck_assert_int_eq(recv(fd, text, 6, MSG_WAITALL), 6);
        ck_assert_int_eq(send(fd, "again", 5, MSG_NOSIGNAL), 5);
        ck_assert_int_eq(recv(inner, text, 5, MSG_WAITALL), 5);
    }
    close(inner);
    ck_assert_int_eq(recv(fd, text, 1, 0), 0);
    close(fd);
}

END_TEST

START_TEST(strangers_are_turned_away)
{
    static const char *const heads[] = {
        ASK("opensesam"), ASK("opensesame2"), ASK(""), "CONNECT x:80 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nProxy-Authorization: Bearer " SECRET "\r\n\r\n"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(heads); i++) {
        ck_assert_msg(strncmp(answer_to(heads[i]), "HTTP/1.1 407", 12) == 0, "case %zu", i);
    }
}

END_TEST

START_TEST(nobody_listens)
{
    close(program_fd);
    program_fd = -1;
    ck_assert_int_eq(strncmp(answer_to(ASK(SECRET)), "HTTP/1.1 502", 12), 0);
}

END_TEST

START_TEST(the_oldest_stranger_gives_way)
{
    static int fds[TUNNEL_UNAUTHORIZED_MAX + 1];
    char text[8];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        fds[i] = knock("CONNECT");
    }
    ck_assert_int_le(recv(fds[0], text, sizeof text, 0), 0);
    ck_assert_int_eq(strncmp(answer_to(ASK("x")), "HTTP/1.1 407", 12), 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        close(fds[i]);
    }
}

END_TEST

START_TEST(it_comes_back_when_it_was_killed)
{
    struct namespaces ns = NAMESPACES_NONE;
    pid_t before = tunnel.pid;
    ck_assert_int_eq(kill(before, SIGKILL), 0);
    ck_assert_int_eq(waitpid(before, NULL, 0), before);
    tunnel_note_end(&tunnel, before + 1, &ns);
    ck_assert_int_eq(tunnel.pid, before);
    tunnel_note_end(&tunnel, before, &ns);
    ck_assert_int_ne(tunnel.pid, before);
    ck_assert_int_eq(strncmp(answer_to(ASK("x")), "HTTP/1.1 407", 12), 0);
}

END_TEST

START_TEST(a_neighbours_listener_is_not_the_tasks)
{
    if (geteuid() != 0) {
        return;
    }
    tear_down();
    open_tunnel(71234);
    int fd = knock(ASK(SECRET));
    int inner = accept(program_fd, NULL, NULL);
    ck_assert_int_ge(inner, 0);
    close(inner);
    close(fd);
    tear_down();
    /* The same tunnel, but the port is somebody else's. */
    open_tunnel(71234);
    int port = tunnel.port;
    tear_down();
    memset(&tunnel, 0, sizeof tunnel);
    program_fd = listen_as(71235, &port);
    tunnel = (struct tunnel){.secret = SECRET, .port = port, .user = 71234};
    struct namespaces ns = NAMESPACES_NONE;
    struct weir_error err = {0};
    ck_assert_int_eq(tunnel_listen(&tunnel, "127.0.0.1", &err), WEIR_OK);
    tunnel_start(&tunnel, &ns);
    ck_assert_int_eq(strncmp(answer_to(ASK(SECRET)), "HTTP/1.1 409", 12), 0);
    close(program_fd);
    program_fd = -1;
    ck_assert_int_eq(strncmp(answer_to(ASK(SECRET)), "HTTP/1.1 502", 12), 0);
}

END_TEST

int main(void)
{
    const TTest *tests[] = {who_has_the_secret_is_let_in,
                            strangers_are_turned_away,
                            nobody_listens,
                            the_oldest_stranger_gives_way,
                            it_comes_back_when_it_was_killed,
                            a_neighbours_listener_is_not_the_tasks};
    return weir_test_run_here(
        weir_test_suite_with("door", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
