/* What the gateway adds to a request: the same request straight to a replica that answers at once, and
 * through the gateway, in turn, each over a connection that is kept.
 *
 *     gateway-overhead [N_REQUESTS [BODY_BYTES]]
 *
 * Prints p50 and p99 of both in microseconds, and the difference. Exit status 1: p50 adds over 300. */
#include "base/clock.h"
#include "gateway/gateway.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATH     "/v2/models/cats/versions/1/infer"
#define LIMIT_US 300.0

static void answer(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    (void)request;
    weir_http_response_text(response, 200, "application/json", "{\"outputs\":[]}");
}

static void handle(void *gateway, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    weir_gateway_handle(gateway, request, response);
}

static void body_rule(void *gateway, const struct weir_http_request *request,
                      struct weir_http_body_rule *rule)
{
    weir_gateway_body_rule(gateway, request, rule);
}

static weir_status authorise(void *context, const char *token,
                             const struct weir_http_request *request, struct weir_arena *arena,
                             struct weir_gateway_caller *out, struct weir_error *err)
{
    (void)context;
    (void)token;
    (void)request;
    (void)arena;
    (void)err;
    *out = (struct weir_gateway_caller){.is_all = true};
    return WEIR_OK;
}

static void check(weir_status status, const struct weir_error *err)
{
    if (status != WEIR_OK) {
        fprintf(stderr, "gateway-overhead: %s\n", err->message);
        exit(2);
    }
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("gateway-overhead");
        exit(2);
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, bytes + at, len - at, MSG_NOSIGNAL);
        if (n <= 0) {
            perror("gateway-overhead: sending");
            exit(2);
        }
        at += (size_t)n;
    }
}

/* One request and its answer, in microseconds. */
static double ask(int fd, const char *request, size_t len)
{
    char bytes[4096];
    size_t n = 0;
    uint64_t begun_ns = weir_mono_ns();
    send_all(fd, request, len);
    do {
        ssize_t got = recv(fd, bytes + n, sizeof bytes - 1 - n, 0);
        if (got <= 0) {
            fprintf(stderr, "gateway-overhead: no answer\n");
            exit(2);
        }
        n += (size_t)got;
        bytes[n] = '\0';
    } while (strstr(bytes, "{\"outputs\":[]}") == NULL);
    return (double)(weir_mono_ns() - begun_ns) / 1000;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5000;
    size_t body_bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
    struct weir_error err = {0};
    struct weir_gateway *gateway;
    struct weir_http_server *replica, *front;
    const struct weir_http_config replica_config = {.listen = "127.0.0.1:0",
                                                    .max_body_bytes = 64 << 20};
    check(weir_http_server_start(&replica_config, answer, NULL, &replica, &err), &err);
    check(
        weir_gateway_create(&(struct weir_gateway_config){.authorise = authorise}, &gateway, &err),
        &err);
    const struct weir_http_config front_config = {.listen = "127.0.0.1:0", .body_rule = body_rule};
    check(weir_http_server_start(&front_config, handle, gateway, &front, &err), &err);
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", weir_http_server_port(replica));
    const struct weir_gateway_version version = {1, WEIR_GATEWAY_PPM};
    const struct weir_gateway_replica row = {"r", url, 1, false};
    const struct weir_gateway_deployment d = {.name = "cats",
                                              .project = "p",
                                              .secret = "s",
                                              .versions = &version,
                                              .n_versions = 1,
                                              .replicas = &row,
                                              .n_replicas = 1};
    struct weir_gateway_table *table = weir_gateway_table_create();
    check(weir_gateway_table_add(table, &d, &err), &err);
    weir_gateway_publish(gateway, table);

    char *request = malloc(body_bytes + 512);
    double *times[2] = {malloc((size_t)n * sizeof(double)), malloc((size_t)n * sizeof(double))};
    if (request == NULL || times[0] == NULL || times[1] == NULL || n < 100) {
        return 2;
    }
    int len = snprintf(request, 512,
                       "POST " PATH " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       body_bytes);
    memset(request + len, ' ', body_bytes);
    int fds[2] = {connect_to(weir_http_server_port(replica)),
                  connect_to(weir_http_server_port(front))};
    for (int i = -100; i < n; i++) { /* the first hundred do not count */
        for (int k = 0; k < 2; k++) {
            double us = ask(fds[k], request, (size_t)len + body_bytes);
            if (i >= 0) {
                times[k][i] = us;
            }
        }
    }
    for (int k = 0; k < 2; k++) {
        qsort(times[k], (size_t)n, sizeof(double), compare);
        printf("%s p50 %.0f us, p99 %.0f us\n", k == 0 ? "direct " : "gateway", times[k][n / 2],
               times[k][n * 99 / 100]);
        close(fds[k]);
    }
    double added_us = times[1][n / 2] - times[0][n / 2];
    printf("added   p50 %.0f us\n", added_us);
    weir_gateway_stop(gateway);
    weir_http_server_stop(front, 1000);
    weir_http_server_stop(replica, 1000);
    weir_gateway_destroy(gateway);
    free(request);
    free(times[0]);
    free(times[1]);
    return added_us > LIMIT_US;
}
