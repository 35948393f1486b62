/** For the tests of http: a server on a free port, and requests over raw sockets. */
#ifndef WEIR_HTTP_TEST_SUPPORT_H
#define WEIR_HTTP_TEST_SUPPORT_H

#include "base/test_main.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static inline struct weir_http_server *serve(const struct weir_http_config *config,
                                             weir_http_handler_fn handler, void *context)
{
    struct weir_http_config with_address = *config;
    with_address.listen = "127.0.0.1:0";
    struct weir_http_server *server;
    struct weir_error err = {0};
    weir_status status = weir_http_server_start(&with_address, handler, context, &server, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return server;
}

/** A connected socket whose reads give up after 20 s. */
static inline int connect_to(const struct weir_http_server *server)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)weir_http_server_port(server)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 20};
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static inline void send_text(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/** Read until `wanted` was seen (NULL: until the end); returns what was read, in `out`. */
static inline const char *read_until(int fd, const char *wanted, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    while (n + 1 < size && (wanted == NULL || strstr(out, wanted) == NULL)) {
        ssize_t got = recv(fd, out + n, size - 1 - n, 0);
        if (got <= 0) {
            break;
        }
        n += (size_t)got;
        out[n] = '\0';
    }
    return out;
}

/** Send a raw request on a new connection, read to the end (the request must say close). */
static inline const char *exchange_text(const struct weir_http_server *server, const char *request,
                                        char *out, size_t size)
{
    int fd = connect_to(server);
    send_text(fd, request);
    read_until(fd, NULL, out, size);
    close(fd);
    return out;
}

static inline int count_open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    int n = 0;
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

#endif
