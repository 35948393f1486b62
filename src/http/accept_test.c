/* Which connections the server takes, and that it ends in order however many are coming. */
#include "http/test_support.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define N_CALLERS      3
#define N_ROUNDS       40
#define ANSWERS_A_TIME 5

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    weir_http_response_text(response, 200, "text/plain", request->path);
}

/* Clients that connect, ask and leave, as long as the test runs. */
struct callers {
    pthread_t threads[N_CALLERS];
    atomic_int port; /* 0: the test is over */
    atomic_int n_answers;
};

static bool call_once(int port, char *answer, size_t size)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    bool is_answered = false;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        const char *request = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        (void)send(fd, request, strlen(request), MSG_NOSIGNAL);
        is_answered = strstr(read_until(fd, NULL, answer, size), "/hello") != NULL;
    }
    close(fd);
    return is_answered;
}

static void *call_on(void *context)
{
    struct callers *callers = context;
    char answer[2048];
    for (int port = callers->port; port != 0; port = callers->port) {
        if (call_once(port, answer, sizeof answer)) {
            callers->n_answers++;
        }
    }
    return NULL;
}

static void await_answers(struct callers *callers)
{
    int wanted = callers->n_answers + ANSWERS_A_TIME;
    while (callers->n_answers < wanted) {
        sched_yield();
    }
}

START_TEST(stopping_while_clients_connect_ends_in_order)
{
    static struct callers callers;
    int before = count_open_files();
    const struct weir_http_config config = {.n_handlers = 2, .n_io_threads = 2};
    struct weir_http_server *server = serve(&config, handle, NULL);
    callers.port = weir_http_server_port(server);
    for (int i = 0; i < N_CALLERS; i++) {
        ck_assert_int_eq(pthread_create(&callers.threads[i], NULL, call_on, &callers), 0);
    }
    for (int round = 0; round < N_ROUNDS; round++) {
        await_answers(&callers);
        weir_http_server_stop(server, 5000);
        server = serve(&config, handle, NULL);
        callers.port = weir_http_server_port(server);
    }
    callers.port = 0;
    for (int i = 0; i < N_CALLERS; i++) {
        pthread_join(callers.threads[i], NULL);
    }
    weir_http_server_stop(server, 5000);
    ck_assert_int_eq(count_open_files(), before);
}

END_TEST

static int64_t n_connections(struct weir_http_server *server)
{
    struct weir_http_counts counts;
    weir_http_server_counts(server, &counts);
    return counts.n_connections;
}

/* "known" is who proves who they are. */
static void handle_known(void *context, struct weir_http_request *request,
                         struct weir_http_response *response)
{
    if (strcmp(request->path, "/known") == 0) {
        weir_http_request_is_known(request);
    }
    handle(context, request, response);
}

START_TEST(a_client_over_the_limit_is_served_when_another_leaves)
{
    struct weir_http_server *server = serve(
        &(struct weir_http_config){.max_connections = 3, .n_io_threads = 2}, handle_known, NULL);
    int fds[3];
    char answer[2048];
    const char *request = "GET /known HTTP/1.1\r\nHost: x\r\n\r\n";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        fds[i] = connect_to(server);
        send_text(fds[i], request);
        ck_assert_ptr_nonnull(strstr(read_until(fds[i], "/known", answer, sizeof answer), "200"));
    }
    int late = connect_to(server); /* the kernel takes it; the server does not */
    send_text(late, request);
    struct pollfd waiting = {.fd = late, .events = POLLIN};
    ck_assert_int_eq(poll(&waiting, 1, 100), 0);
    ck_assert_int_eq(n_connections(server), 3);
    close(fds[1]);
    ck_assert_ptr_nonnull(strstr(read_until(late, "/known", answer, sizeof answer), "200"));
    ck_assert_int_le(n_connections(server), 3);
    close(late);
    close(fds[0]);
    close(fds[2]);
    weir_http_server_stop(server, 1000);
}

END_TEST

/* Waits for ever on /wait; answers the rest. */
static void handle_or_wait(void *context, struct weir_http_request *request,
                           struct weir_http_response *response)
{
    if (strcmp(request->path, "/wait") == 0 && !request->is_expired) {
        weir_http_response_wait(response, 1, 600000);
    } else {
        handle(context, request, response);
    }
}

static bool has_ended(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

START_TEST(an_address_over_its_limit_gives_its_idle_connections_for_new_ones)
{
    const struct weir_http_config config = {.max_connections_per_address = 3};
    struct weir_http_server *server = serve(&config, handle_or_wait, NULL);
    int busy = connect_to(server), silent[2], n_answered = 0;
    char answer[2048];
    send_text(busy, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    struct weir_http_counts counts = {0};
    while (counts.n_waiting == 0) {
        sched_yield();
        weir_http_server_counts(server, &counts);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(silent); i++) {
        silent[i] = connect_to(server);
    }
    while (!has_ended(silent[0]) || !has_ended(silent[1])) {
        n_answered += call_once(weir_http_server_port(server), answer, sizeof answer);
        int more = connect_to(server); /* silent too */
        weir_http_server_counts(server, &counts);
        ck_assert_int_le(counts.n_connections, 6); /* three, and those that are being closed */
        close(more);
    }
    ck_assert_int_gt(n_answered, 0);
    ck_assert(!has_ended(busy)); /* a request is in progress on it */
    weir_http_server_counts(server, &counts);
    ck_assert_int_eq(counts.n_waiting, 1);
    close(busy);
    close(silent[0]);
    close(silent[1]);
    weir_http_server_stop(server, 1000);
}

END_TEST

START_TEST(an_address_without_an_idle_connection_gets_no_more)
{
    const struct weir_http_config config = {.max_connections_per_address = 2};
    struct weir_http_server *server = serve(&config, handle_or_wait, NULL);
    int fds[2];
    char answer[2048];
    struct weir_http_counts counts = {0};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        fds[i] = connect_to(server);
        send_text(fds[i], "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    while (counts.n_waiting < 2) {
        sched_yield();
        weir_http_server_counts(server, &counts);
    }
    int late = connect_to(server);
    ck_assert_int_le(recv(late, answer, sizeof answer, 0), 0);
    close(late);
    close(fds[0]);
    close(fds[1]);
    weir_http_server_stop(server, 1000);
}

END_TEST

START_TEST(idle_connections_of_one_address_give_way_when_all_places_are_taken)
{
    const struct weir_http_config config = {.max_connections = 24,
                                            .max_connections_per_address = 100};
    struct weir_http_server *server = serve(&config, handle, NULL);
    int idle[40];
    char answer[2048];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(idle); i++) {
        idle[i] = connect_to(server); /* says nothing */
    }
    int late = connect_to(server);
    send_text(late, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(read_until(late, "/hello", answer, sizeof answer), "200"));
    close(late);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(idle); i++) {
        close(idle[i]);
    }
    weir_http_server_stop(server, 1000);
}

END_TEST

static int connect_from(struct weir_http_server *server, const char *address)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)weir_http_server_port(server));
    ck_assert_int_eq(inet_pton(AF_INET, address, &from.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* From many addresses, none of which has more than its part: half of a request each. */
START_TEST(strangers_of_many_addresses_give_way_and_who_is_known_does_not)
{
    const struct weir_http_config config = {.max_connections = 24,
                                            .max_connections_per_address = 100};
    struct weir_http_server *server = serve(&config, handle_known, NULL);
    int strangers[60], known = connect_to(server);
    char answer[2048];
    send_text(known, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(read_until(known, "/known", answer, sizeof answer), "200"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(strangers); i++) {
        char address[32];
        (void)snprintf(address, sizeof address, "127.0.1.%zu", i + 1);
        strangers[i] = connect_from(server, address);
        send_text(strangers[i], i % 2 == 0 ? "GET /hello HTTP/1.1\r\nHo"
                                           : "POST /hello HTTP/1.1\r\nHost: x\r\n"
                                             "Content-Length: 10\r\n\r\nabc");
    }
    int late = connect_to(server);
    send_text(late, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(read_until(late, "/known", answer, sizeof answer), "200"));
    send_text(known, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n"); /* its place was not taken */
    ck_assert_ptr_nonnull(strstr(read_until(known, "/known", answer, sizeof answer), "200"));
    close(late);
    close(known);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(strangers); i++) {
        close(strangers[i]);
    }
    weir_http_server_stop(server, 1000);
}

END_TEST

WEIR_TEST_MAIN("http accept", strangers_of_many_addresses_give_way_and_who_is_known_does_not,
               stopping_while_clients_connect_ends_in_order,
               a_client_over_the_limit_is_served_when_another_leaves,
               an_address_over_its_limit_gives_its_idle_connections_for_new_ones,
               an_address_without_an_idle_connection_gets_no_more,
               idle_connections_of_one_address_give_way_when_all_places_are_taken)
