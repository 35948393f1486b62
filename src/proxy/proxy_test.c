/* The proxy between raw sockets: a browser on one side, a tunnel with a program behind it on the other. */
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/test_main.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ID     "abcdefghijklmnopqrstuvwxyz"
#define OTHER  "bbcdefghijklmnopqrstuvwxyz"
#define BASE   "/services/" ID "/"
#define SECRET "door-secret"
#define LOGIN  "the-login"
#define KEY    "dGhlIHNhbXBsZSBub25jZQ=="
#define BIG    ((size_t)6 << 20)

struct fixture {
    struct weir_proxy *proxy;
    struct weir_http_server *server;
    int tunnel_fd, tunnel_port;
    pthread_t tunnel;
    atomic_bool is_over;
    atomic_int n_used, n_tunnels;
    char address[64];
    bool has_domain;
};

static struct fixture f;

/* ---- the program, and the tunnel before it ----------------------------------------------------------- */

static void send_all(int fd, const void *bytes, size_t len)
{
    for (size_t n = 0; n < len;) {
        ssize_t sent = send(fd, (const char *)bytes + n, len - n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        n += (size_t)sent;
    }
}

static void send_text(int fd, const char *text)
{
    send_all(fd, text, strlen(text));
}

/* Up to and with an empty line; the length. */
static size_t read_head(int fd, char *out, size_t size)
{
    size_t n = 0;
    while (n + 1 < size && (n < 4 || memcmp(out + n - 4, "\r\n\r\n", 4) != 0) &&
           recv(fd, out + n, 1, 0) == 1) {
        n++;
    }
    out[n] = '\0';
    return n;
}

/* Says what it was asked, as the body. */
static void answer_echo(int fd, const char *head)
{
    char text[16384];
    (void)snprintf(text, sizeof text,
                   "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nSet-Cookie: sid=1; Path=/; "
                   "Domain=evil\r\nSet-Cookie: b=2\r\nStrict-Transport-Security: max-age=1\r\n"
                   "WWW-Authenticate: Basic\r\nX-Program: yes\r\n\r\n%s",
                   strlen(head), head);
    send_text(fd, text);
}

static void answer_big(int fd)
{
    static char bytes[65536];
    memset(bytes, 'x', sizeof bytes);
    send_text(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    for (size_t n = 0; n < BIG; n += sizeof bytes) {
        send_all(fd, bytes, sizeof bytes);
    }
}

static void take_body(int fd, const char *head)
{
    char bytes[4096], text[128];
    const char *length = strcasestr(head, "Content-Length: ");
    size_t left = length != NULL ? (size_t)strtoul(length + 16, NULL, 10) : 0, n = 0;
    while (n < left) {
        ssize_t got = recv(fd, bytes, WEIR_MIN(sizeof bytes, left - n), 0);
        if (got <= 0) {
            break;
        }
        n += (size_t)got;
    }
    (void)snprintf(text, sizeof text, "HTTP/1.1 201 Made\r\nContent-Length: 8\r\n\r\n%08zu", n);
    send_text(fd, text);
}

static void answer_websocket(int fd)
{
    char bytes[1024];
    ssize_t n;
    send_text(fd,
              "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nX-Odd: 1\r\n\r\nhello");
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        send_all(fd, bytes, (size_t)n);
    }
}

static void be_program(int fd)
{
    char head[8192];
    while (read_head(fd, head, sizeof head) > 4) {
        if (strncmp(head, "GET /big", 8) == 0) {
            answer_big(fd);
            return;
        }
        if (strncmp(head, "GET /ws", 7) == 0) {
            answer_websocket(fd);
            return;
        }
        if (strncmp(head, "GET /other-protocol", 19) == 0) {
            send_text(fd, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n"
                          "Connection: Upgrade\r\n\r\n");
            return;
        }
        if (strncmp(head, "GET /no-ws", 10) == 0) {
            send_text(fd, "HTTP/1.1 403 No\r\nContent-Length: 6\r\n\r\nsecret");
        } else if (strncmp(head, "GET /two-lengths", 16) == 0) {
            send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello");
            return;
        } else if (strncmp(head, "GET /broken", 11) == 0) {
            send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
            return;
        } else if (strncmp(head, "GET /nonsense", 13) == 0) {
            send_text(fd, "no http at all\r\n\r\n");
            return;
        } else if (strncmp(head, "GET /empty", 10) == 0) {
            send_text(fd, "HTTP/1.1 204 None\r\n\r\n");
        } else if (strncmp(head, "GET /moved", 10) == 0) {
            send_text(fd, "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n");
        } else if (strncmp(head, "PUT", 3) == 0) {
            take_body(fd, head);
        } else {
            answer_echo(fd, head);
        }
    }
}

static void *tunnel_one(void *context)
{
    int fd = (int)(intptr_t)context;
    char head[4096];
    (void)read_head(fd, head, sizeof head);
    if (strncmp(head, "CONNECT " ID ":80 HTTP/1.1\r\n", 20 + sizeof ID) == 0 &&
        strstr(head, "\r\nProxy-Authorization: Bearer " SECRET "\r\n") != NULL) {
        send_text(fd, "HTTP/1.1 200 OK\r\n\r\n");
        be_program(fd);
    } else {
        send_text(fd, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
    }
    close(fd);
    f.n_tunnels--;
    return NULL;
}

static void *tunnel_main(void *context)
{
    (void)context;
    int fd;
    while ((fd = accept(f.tunnel_fd, NULL, NULL)) >= 0) {
        pthread_t thread;
        f.n_tunnels++;
        ck_assert_int_eq(pthread_create(&thread, NULL, tunnel_one, (void *)(intptr_t)fd), 0);
        pthread_detach(thread);
    }
    return NULL;
}

static void open_tunnel(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    f.tunnel_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(f.tunnel_fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(f.tunnel_fd, 64), 0);
    ck_assert_int_eq(getsockname(f.tunnel_fd, (struct sockaddr *)&address, &len), 0);
    f.tunnel_port = ntohs(address.sin_port);
    (void)snprintf(f.address, sizeof f.address, "127.0.0.1:%d", f.tunnel_port);
    ck_assert_int_eq(pthread_create(&f.tunnel, NULL, tunnel_main, NULL), 0);
}

/* ---- the owner --------------------------------------------------------------------------------------- */

static weir_status find(void *context, const char *id, const struct weir_proxy_shown *shown,
                        struct weir_arena *arena, struct weir_proxy_service *out,
                        struct weir_error *err)
{
    (void)context;
    (void)arena;
    bool is_known = (shown->login != NULL && strcmp(shown->login, LOGIN) == 0) ||
                    (shown->token != NULL && strcmp(shown->token, "weir_token") == 0);
    if (!is_known) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "who are you?");
    }
    if (strcmp(id, ID) != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no such service");
    }
    *out = (struct weir_proxy_service){.id = id,
                                       .project = "vision",
                                       .user = "eve",
                                       .address = f.is_over ? NULL : f.address,
                                       .secret = SECRET,
                                       .credential = "token jupyter",
                                       .message = "it waits for a node"};
    return WEIR_OK;
}

static bool keeps(void *context, const char *id)
{
    (void)context;
    (void)id;
    return false;
}

static weir_status enter(void *context, const char *id, const char *ticket, const char *nonce,
                         struct weir_arena *arena, const char **out_login, struct weir_error *err)
{
    (void)context;
    (void)id;
    (void)arena;
    if (strcmp(ticket, "good") != 0 || strlen(nonce) != 64) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "this ticket was used before");
    }
    *out_login = LOGIN;
    return WEIR_OK;
}

static void used(void *context, const char *id)
{
    (void)context;
    (void)id;
    f.n_used++;
}

static void start(const char *domain)
{
    static const struct weir_proxy_ops ops = {find, keeps, enter, used};
    struct weir_proxy_config config = {.ops = &ops, .console_port = 8440, .domain = domain};
    struct weir_http_config http = {.listen = "127.0.0.1:0",
                                    .body_rule = weir_proxy_body_rule,
                                    .admit = weir_proxy_admit,
                                    .has_upgrades = true,
                                    .n_handlers = 2,
                                    .n_io_threads = 1};
    struct weir_error err = {0};
    memset(&f, 0, sizeof f);
    open_tunnel();
    ck_assert_msg(weir_proxy_create(&config, &f.proxy, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(weir_http_server_start(&http, weir_proxy_handle, f.proxy, &f.server, &err) ==
                      WEIR_OK,
                  "%s", err.message);
}

static void set_up(void)
{
    start(NULL);
}

static void set_up_domain(void)
{
    start("svc.example:9");
}

static void tear_down(void)
{
    weir_proxy_stop(f.proxy);
    weir_http_server_stop(f.server, 5000);
    weir_proxy_destroy(f.proxy);
    shutdown(f.tunnel_fd, SHUT_RDWR);
    pthread_join(f.tunnel, NULL);
    close(f.tunnel_fd);
    for (int i = 0; i < 1000 && f.n_tunnels > 0; i++) {
        (void)usleep(5000);
    }
}

/* ---- the browser ------------------------------------------------------------------------------------- */

static int connect_browser(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)weir_http_server_port(f.server))};
    struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static char answer[BIG + (1 << 20)];

static const char *read_all(int fd)
{
    size_t n = 0;
    ssize_t got;
    while ((got = recv(fd, answer + n, sizeof answer - 1 - n, 0)) > 0) {
        n += (size_t)got;
    }
    answer[n] = '\0';
    close(fd);
    return answer;
}

/* A request with these lines; the whole answer. */
static const char *ask(const char *line, const char *headers)
{
    char text[4096];
    int fd = connect_browser();
    (void)snprintf(text, sizeof text,
                   "%s HTTP/1.1\r\nHost: weir.example:8441\r\nConnection: close\r\n%s\r\n", line,
                   headers);
    send_text(fd, text);
    return read_all(fd);
}

#define COOKIE "Cookie: weir_service_" ID "=" LOGIN "\r\n"

static void expect(const char *text, const char *wanted)
{
    ck_assert_msg(strstr(text, wanted) != NULL, "no \"%s\" in: %.1500s", wanted, text);
}

static void expect_not(const char *text, const char *unwanted)
{
    ck_assert_msg(strcasestr(text, unwanted) == NULL, "\"%s\" in: %.1500s", unwanted, text);
}

START_TEST(a_request_reaches_the_program_without_weirs_secrets)
{
    const char *got =
        ask("GET " BASE "a?b=c", COOKIE
            "Cookie: weir_session=console; weir-svc-" ID "-sid=1\r\n"
            "X-Forwarded-For: 6.6.6.6\r\nX-Weir-User: root\r\nX-Own: 1\r\nX-Weir-Secret: mine\r\n"
            "Connection: x-hop\r\nX-Hop: 1\r\n");
    expect(got, "HTTP/1.1 200");
    expect(got, "GET /a?b=c HTTP/1.1\r\n");
    expect(got, "\r\nHost: weir.example:8441\r\n");
    expect(got, "\r\nCookie: sid=1\r\n");
    expect(got, "\r\nX-Forwarded-For: 127.0.0.1\r\n");
    expect(got, "\r\nX-Forwarded-Prefix: /services/" ID "\r\n");
    expect(got, "\r\nX-Weir-User: eve\r\n");
    expect(got, "\r\nX-Weir-Secret: ");
    expect_not(got, "X-Weir-Secret: mine");
    expect(got, "\r\nAuthorization: token jupyter\r\n");
    expect(got, "\r\nX-Own: 1\r\n");
    expect_not(got, LOGIN);
    expect_not(got, "console");
    expect_not(got, "6.6.6.6");
    expect_not(got, "root");
    expect_not(got, "X-Hop");
    expect_not(got, "\r\nAccept:");
}

END_TEST

START_TEST(an_answer_comes_without_what_speaks_for_the_host)
{
    const char *got = ask("GET " BASE, COOKIE);
    expect(got, "X-Program: yes");
    expect(got, "Set-Cookie: weir-svc-" ID "-sid=1; Path=" BASE "; SameSite=Lax\r\n");
    expect(got, "Set-Cookie: weir-svc-" ID "-b=2; Path=" BASE "; SameSite=Lax\r\n");
    expect(got, "Content-Security-Policy: frame-ancestors 'self'\r\n");
    expect_not(got, "Strict-Transport");
    expect_not(got, "WWW-Auth");
    expect_not(got, "X-Frame-Options");
    expect(ask("GET " BASE "moved", COOKIE), "Location: " BASE "there\r\n");
    got = ask("GET " BASE "empty", COOKIE);
    expect(got, "HTTP/1.1 204");
    expect_not(got, "chunked");
    got = ask("HEAD " BASE "x", COOKIE);
    expect(got, "HTTP/1.1 200");
    expect(got, "Content-Length: ");
    ck_assert_str_eq(strstr(got, "\r\n\r\n"), "\r\n\r\n");
}

END_TEST

START_TEST(a_token_of_a_program_is_shown_to_weir_alone)
{
    const char *got = ask("POST " BASE "x", "Authorization: Bearer weir_token\r\n");
    expect(got, "HTTP/1.1 200");
    expect(got, "Authorization: token jupyter");
    expect_not(got, "weir_token");
    expect(ask("GET " BASE, "Authorization: Bearer weir_wrong\r\n"), "HTTP/1.1 401");
}

END_TEST

START_TEST(whoever_is_not_logged_in_is_sent_to_the_console)
{
    char request[512];
    const char *got = ask("GET " BASE "a?b", "Accept: text/html\r\n");
    expect(got, "HTTP/1.1 303");
    expect(got, "Location: http://weir.example:8440/services/enter?service=" ID "&nonce=");
    expect(got, "&next=%2Fservices%2F" ID "%2Fa%3Fb\r\n");
    expect(got, "Set-Cookie: weir_enter_" ID "=");
    char nonce[64];
    (void)snprintf(nonce, sizeof nonce, "%.32s", strstr(got, "weir_enter_" ID "=") + 38);
    expect(ask("GET " BASE "a", ""), "HTTP/1.1 401");
    expect(ask("GET " BASE ".weir/enter?ticket=good", ""), "HTTP/1.1 401");
    (void)snprintf(request, sizeof request, "Cookie: weir_enter_" ID "=%s\r\n", nonce);
    expect(ask("GET " BASE ".weir/enter?ticket=bad", request), "HTTP/1.1 401");
    got = ask("GET " BASE ".weir/enter?ticket=good&next=%2Fservices%2F" ID "%2Fa%3Fb", request);
    expect(got, "HTTP/1.1 303");
    expect(got, "Location: " BASE "a?b\r\n");
    expect(got, "Set-Cookie: weir_service_" ID "=" LOGIN "; Path=" BASE
                "; Max-Age=43200; HttpOnly; SameSite=Lax\r\n");
    expect(ask("GET " BASE ".weir/enter?ticket=good&next=https:%2F%2Fevil", request),
           "Location: " BASE "\r\n");
    expect(ask("GET " BASE ".weir/other", COOKIE), "HTTP/1.1 404");
}

END_TEST

START_TEST(what_is_not_there_is_not_told_from_what_is_not_shown)
{
    static const char *const lines[] = {"GET /", "GET /services/short/", "GET /services/" ID "x/",
                                        "GET /api/v1/session",
                                        "GET /services/%61bcdefghijklmnopq/"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(lines); i++) {
        expect(ask(lines[i], COOKIE), "HTTP/1.1 404");
    }
    expect(ask("GET /services/" OTHER "/", "Cookie: weir_service_" OTHER "=" LOGIN "\r\n"),
           "HTTP/1.1 404");
    expect(ask("GET /services/" OTHER "/", COOKIE), "HTTP/1.1 401");
    expect(ask("GET /services/" ID, COOKIE), "Location: " BASE "\r\n");
    expect(ask("GET " BASE "../" OTHER "/", COOKIE), "HTTP/1.1 400");
    expect(ask("GET " BASE "%2e%2e/" OTHER "/", COOKIE), "HTTP/1.1 400");
}

END_TEST

START_TEST(requests_that_could_be_read_in_two_ways_are_refused)
{
    expect(ask("POST " BASE, COOKIE "Content-Length: 5\r\nContent-Length: 6\r\n"), "HTTP/1.1 400");
    expect(ask("POST " BASE, COOKIE "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
           "HTTP/1.1 400");
    expect(ask("GET " BASE, COOKIE "Host: evil\r\n"), "HTTP/1.1 400");
    expect(ask("TRACE " BASE, COOKIE), "HTTP/1.1 400");
    expect(ask("POST " BASE, COOKIE "Origin: https://evil.example\r\n"), "HTTP/1.1 403");
    expect(ask("GET " BASE, COOKIE "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n"),
           "HTTP/1.1 403");
}

END_TEST

START_TEST(answers_of_any_length_pass)
{
    const char *got = ask("GET " BASE "big", COOKIE);
    expect(got, "HTTP/1.1 200");
    size_t n = 0;
    for (const char *c = strstr(got, "\r\n\r\n"); *c != '\0'; c++) {
        n += *c == 'x';
    }
    ck_assert_uint_eq(n, BIG);
}

END_TEST

START_TEST(bodies_of_any_length_pass)
{
    static char bytes[65536];
    char text[512];
    int fd = connect_browser();
    (void)snprintf(text, sizeof text,
                   "PUT " BASE
                   "x HTTP/1.1\r\nHost: weir.example:8441\r\nConnection: close\r\n" COOKIE
                   "Origin: http://weir.example:8441\r\nContent-Length: %zu\r\n\r\n",
                   BIG);
    send_text(fd, text);
    for (size_t n = 0; n < BIG; n += sizeof bytes) {
        send_all(fd, bytes, sizeof bytes);
    }
    const char *got = read_all(fd);
    expect(got, "HTTP/1.1 201");
    (void)snprintf(text, sizeof text, "\r\n\r\n%08zu", BIG);
    expect(got, text);
}

END_TEST

START_TEST(a_program_that_is_no_server_is_said_to_be_none)
{
    expect(ask("GET " BASE "nonsense", COOKIE), "HTTP/1.1 502");
    expect(ask("GET " BASE "two-lengths", COOKIE), "HTTP/1.1 502");
    const char *got = ask("GET " BASE "broken", COOKIE);
    expect(got, "HTTP/1.1 200");
    expect(got, "Content-Length: 50");
    f.is_over = true;
    expect(ask("GET " BASE, COOKIE), "it waits for a node");
    f.is_over = false;
    (void)snprintf(f.address, sizeof f.address, "127.0.0.1:1");
    expect(ask("GET " BASE, COOKIE), "HTTP/1.1 503");
}

END_TEST

#define WEBSOCKET                                                                                  \
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: " KEY "\r\n"
#define OWN_ORIGIN "Origin: http://weir.example:8441\r\n"

/* As `ask`, but the connection stays. */
static int ask_websocket(const char *path, const char *headers)
{
    char text[2048];
    int fd = connect_browser();
    (void)snprintf(text, sizeof text,
                   "GET " BASE "%s HTTP/1.1\r\nHost: weir.example:8441\r\n%s\r\n", path, headers);
    send_text(fd, text);
    return fd;
}

START_TEST(a_websocket_is_relayed)
{
    char head[4096], bytes[64];
    int fd = ask_websocket("ws", COOKIE OWN_ORIGIN WEBSOCKET);
    (void)read_head(fd, head, sizeof head);
    expect(head, "HTTP/1.1 101");
    expect(head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");
    expect_not(head, "X-Odd");
    ck_assert_int_eq(recv(fd, bytes, 5, MSG_WAITALL), 5);
    ck_assert_int_eq(memcmp(bytes, "hello", 5), 0);
    for (int i = 0; i < 100; i++) {
        send_text(fd, "frame");
        ck_assert_int_eq(recv(fd, bytes, 5, MSG_WAITALL), 5);
        ck_assert_int_eq(memcmp(bytes, "frame", 5), 0);
    }
    shutdown(fd, SHUT_WR);
    ck_assert_int_eq(recv(fd, bytes, 5, 0), 0);
    close(fd);
}

END_TEST

START_TEST(only_a_websocket_of_the_places_own_page_is_an_upgrade)
{
    char head[4096];
    static const char *const bad[] = {COOKIE WEBSOCKET,
                                      COOKIE WEBSOCKET "Origin: http://weir.example:8440\r\n",
                                      COOKIE WEBSOCKET "Origin: http://evil.example\r\n"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        int fd = ask_websocket("ws", bad[i]);
        (void)read_head(fd, head, sizeof head);
        expect(head, "HTTP/1.1 403");
        close(fd);
    }
    int fd = ask_websocket("ws", COOKIE OWN_ORIGIN "Upgrade: websocket\r\nConnection: Upgrade\r\n");
    (void)read_head(fd, head, sizeof head);
    expect(head, "HTTP/1.1 400");
    close(fd);
    /* Another protocol is not asked for at all. */
    const char *got =
        ask("GET " BASE "x", COOKIE "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n");
    expect(got, "HTTP/1.1 200");
    expect_not(got, "h2c");
    /* And is not given. */
    fd = ask_websocket("other-protocol", COOKIE OWN_ORIGIN WEBSOCKET);
    (void)read_head(fd, head, sizeof head);
    expect(head, "HTTP/1.1 502");
    close(fd);
    fd = ask_websocket("no-ws", COOKIE OWN_ORIGIN WEBSOCKET);
    (void)read_head(fd, head, sizeof head);
    expect(head, "HTTP/1.1 403");
    close(fd);
}

END_TEST

START_TEST(stopping_ends_what_is_under_way)
{
    char head[4096], bytes[64];
    int fd = ask_websocket("ws", COOKIE OWN_ORIGIN WEBSOCKET);
    (void)read_head(fd, head, sizeof head);
    ck_assert_int_eq(recv(fd, bytes, 5, MSG_WAITALL), 5);
    int slow = connect_browser();
    send_text(slow, "GET " BASE "big HTTP/1.1\r\nHost: weir.example:8441\r\n" COOKIE "\r\n");
    (void)read_head(slow, head, sizeof head);
    expect(head, "HTTP/1.1 200");
    int64_t begun_ms = weir_mono_ms();
    weir_proxy_stop(f.proxy);
    ck_assert_int_eq(recv(fd, bytes, 5, 0), 0);
    ck_assert_int_lt(weir_mono_ms() - begun_ms, 5000);
    expect(ask("GET " BASE, COOKIE), "HTTP/1.1 503");
    close(fd);
    close(slow);
}

END_TEST

START_TEST(a_service_has_so_many_under_way_and_no_more)
{
    static int fds[PROXY_OF_SERVICE_MAX];
    char head[4096];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        fds[i] = ask_websocket("ws", COOKIE OWN_ORIGIN WEBSOCKET);
        (void)read_head(fds[i], head, sizeof head);
        expect(head, "HTTP/1.1 101");
    }
    expect(ask("GET " BASE, COOKIE), "HTTP/1.1 503");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        close(fds[i]);
    }
    const char *got = "";
    for (int i = 0; i < 200 && strstr(got, "HTTP/1.1 200") == NULL; i++) {
        got = ask("GET " BASE, COOKIE);
    }
    expect(got, "HTTP/1.1 200");
    ck_assert_int_ge(f.n_used, 1);
}

END_TEST

static const char *ask_host(const char *host, const char *line, const char *headers)
{
    char text[2048];
    int fd = connect_browser();
    (void)snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n",
                   line, host, headers);
    send_text(fd, text);
    return read_all(fd);
}

START_TEST(with_a_domain_a_service_has_a_host_of_its_own)
{
    const char *got = ask_host(ID ".svc.example:9", "GET /a", "Cookie: weir_service=" LOGIN "\r\n");
    expect(got, "GET /a HTTP/1.1\r\n");
    expect(got, "Set-Cookie: weir-svc-" ID "-sid=1; Path=/; SameSite=Lax\r\n");
    expect(ask_host("svc.example:9", "GET " BASE, "Cookie: weir_service=" LOGIN "\r\n"),
           "HTTP/1.1 404");
    expect(ask_host("evil" ID ".svc.example", "GET /", ""), "HTTP/1.1 404");
    expect(ask_host(ID ".svc.example.evil", "GET /", ""), "HTTP/1.1 404");
    expect(ask_host(OTHER ".svc.example", "GET /", "Cookie: weir_service=" LOGIN "\r\n"),
           "HTTP/1.1 404");
    /* Hosts of two services are two sites to each other. */
    expect(ask_host(ID ".svc.example:9", "POST /a",
                    "Cookie: weir_service=" LOGIN "\r\nOrigin: http://" OTHER ".svc.example:9\r\n"),
           "HTTP/1.1 403");
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    ck_assert_str_eq(weir_proxy_url("svc.example", true, "x:1", 8441, ID, false, &arena),
                     "https://" ID ".svc.example:8441/");
    ck_assert_str_eq(weir_proxy_url("svc.example:443", true, "x:1", 8441, ID, true, &arena),
                     "https://" ID ".svc.example:443" BASE);
    ck_assert_str_eq(weir_proxy_url(NULL, false, "[::1]:8440", 8441, ID, false, &arena),
                     "http://[::1]:8441" BASE);
    weir_arena_fini(&arena);
}

END_TEST

int main(void)
{
    const TTest *tests[] = {a_request_reaches_the_program_without_weirs_secrets,
                            an_answer_comes_without_what_speaks_for_the_host,
                            a_token_of_a_program_is_shown_to_weir_alone,
                            whoever_is_not_logged_in_is_sent_to_the_console,
                            what_is_not_there_is_not_told_from_what_is_not_shown,
                            requests_that_could_be_read_in_two_ways_are_refused,
                            answers_of_any_length_pass,
                            bodies_of_any_length_pass,
                            a_program_that_is_no_server_is_said_to_be_none,
                            a_websocket_is_relayed,
                            only_a_websocket_of_the_places_own_page_is_an_upgrade,
                            stopping_ends_what_is_under_way,
                            a_service_has_so_many_under_way_and_no_more};
    const TTest *domain[] = {with_a_domain_a_service_has_a_host_of_its_own};
    Suite *suite = weir_test_suite_with("proxy", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests));
    TCase *with_domain = tcase_create("domain");
    tcase_add_checked_fixture(with_domain, set_up_domain, tear_down);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(domain); i++) {
        tcase_add_test(with_domain, domain[i]);
    }
    suite_add_tcase(suite, with_domain);
    return weir_test_run(suite);
}
