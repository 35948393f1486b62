/* Requests over sockets, through the gateway, to replicas that note what they were asked. */
#include "fixture.h"

#include <poll.h>

START_TEST(a_request_reaches_a_replica_and_its_answer_comes_back)
{
    publish_replicas(1);
    const char *answer = ask("/v2/models/cats/versions/2/infer", AS_VISION, "hello");
    expect_text(answer, "HTTP/1.1 200");
    expect_text(answer, "POST /v2/models/cats/versions/2/infer text/csv [hello] by http");
    expect_text(answer, "Weir-Model-Version: 2");
    expect_text(ask("/v1/models/cats/versions/1:predict", AS_VISION, "x"),
                "POST /v1/models/cats/versions/1:predict text/csv [x]");
    expect_text(ask("/models/cats/versions/1/invocations", AS_VISION, "x"),
                "POST /models/cats/versions/1/invocations");
    expect_text(ask("/invocations", AS_VISION "Weir-Deployment: cats\r\n", "x"),
                "POST /models/cats/versions/");
    expect_text(get("/v2/models/cats/versions/1", AS_VISION), "GET /v2/models/cats/versions/1 -");
    expect_text(get("/v2/models/cats/config", AS_VISION), "/config");
    struct weir_gateway_figures figures = figures_now();
    ck_assert_int_eq(figures.n_requests, 4);
    ck_assert_int_eq(figures.n_failed, 0);
    ck_assert_int_eq(figures.n_in_flight, 0);
}

END_TEST

/** The identifier that the answer has; it lies in the arena. */
static struct weir_receipt receipt_of(const char *answer, struct weir_arena *arena)
{
    struct weir_receipt receipt = {0};
    struct weir_error err;
    const char *at = strstr(answer, "Weir-Request: ");
    ck_assert_ptr_nonnull(at);
    at += strlen("Weir-Request: ");
    char *text = weir_arena_printf(arena, "%.*s", (int)strcspn(at, "\r"), at);
    ck_assert_int_eq(weir_receipt_open(fixture_key, text, arena, &receipt, &err), WEIR_OK);
    return receipt;
}

START_TEST(an_answer_names_its_request_and_who_answered)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    publish_replicas(1);
    int64_t before_ms = weir_time_ms();
    for (int i = 0; i < 20; i++) {
        const char *answer = ask("/v2/models/cats/infer", AS_VISION, "hello");
        struct weir_receipt receipt = receipt_of(answer, &arena);
        ck_assert_str_eq(receipt.deployment, "cats");
        expect_text(answer,
                    weir_arena_printf(&arena, "Weir-Model-Version: %d\r\n", (int)receipt.version));
        ck_assert_int_ge(receipt.time_ms, before_ms);
        ck_assert_int_le(receipt.time_ms, weir_time_ms());
    }
    struct weir_receipt one = receipt_of(ask("/v2/models/cats/infer", AS_VISION, "x"), &arena),
                        other = receipt_of(ask("/v2/models/cats/infer", AS_VISION, "x"), &arena);
    ck_assert_uint_ne(one.number, other.number);
    ck_assert_ptr_null(strstr(get("/v2/models/cats/config", AS_VISION), "Weir-Request"));
    f.replicas[0].http_status = 400; /* nothing can come of it */
    ck_assert_ptr_null(strstr(ask("/v2/models/cats/infer", AS_VISION, "x"), "Weir-Request"));
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_the_gateway_knows_it_answers_itself)
{
    publish_replicas(1);
    expect_text(get("/v2", ""), "\"name\":\"weir\"");
    expect_text(get("/v2/health/live", ""), "200");
    expect_text(get("/v2/health/ready", ""), "200");
    expect_text(get("/v2/models/cats/ready", AS_VISION), "HTTP/1.1 200");
    expect_text(get("/v1/models/cats", AS_VISION), "\"state\":\"AVAILABLE\"");
    expect_text(get("/v1/models/cats", AS_VISION), "{\"name\":\"cats\",\"ready\":true,");
    expect_text(get("/v1/models", AS_VISION), "\"cats\"");
    expect_text(get("/models/cats/ping", AS_VISION), "HTTP/1.1 200");
    expect_text(ask("/v2/repository/index", AS_VISION, "{}"),
                "{\"name\":\"cats\",\"version\":\"2\",\"state\":\"READY\"");
    expect_text(ask("/v2/repository/models/cats/load", AS_VISION, "{}"), "HTTP/1.1 200");
    expect_text(ask("/v2/repository/models/cats/unload", AS_VISION, "{}"), "HTTP/1.1 501");
    expect_text(get("/v1/models/cats/labels/x", AS_VISION), "HTTP/1.1 501");
    ck_assert_int_eq(f.replicas[0].n_requests, 0);
}

END_TEST

START_TEST(wrong_paths_and_methods_are_refused_with_a_sentence)
{
    static const struct {
        const char *path;
        int http_status;
    } cases[] = {{"/v2/models", 404},
                 {"/v2/nothing", 404},
                 {"/v2/models/cats/infer/more", 404},
                 {"/v2/models/cats/versions/x/infer", 400},
                 {"/v2/models/cats/versions/0/infer", 400},
                 {"/v2/models/cats/versions/7/infer", 404},
                 {"/v2/models/dogs/infer", 404},
                 {"/v1/models/cats:explain", 405},
                 {"/v1/models/cats/versions/1:predict/x", 404},
                 {"/v1/models/cats", 405},
                 {"/models/cats/x/invocations", 404},
                 {"/invocations", 400}};

    publish_replicas(1);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        char status[32];
        const char *answer = ask(cases[i].path, AS_VISION, "");
        (void)snprintf(status, sizeof status, "HTTP/1.1 %d", cases[i].http_status);
        ck_assert_msg(strstr(answer, status) != NULL, "%s: %s", cases[i].path, answer);
        expect_text(answer, "{\"error\":\"");
    }
    const char *answer = get(INFER, AS_VISION);
    expect_text(answer, "HTTP/1.1 405");
    expect_text(answer, "Allow: POST\r\n");
    answer = ask("/v2/models/cats", AS_VISION, "{}");
    expect_text(answer, "HTTP/1.1 405");
    expect_text(answer, "Allow: GET, HEAD\r\n");
    answer = ask(INFER, AS_VISION "Content-Encoding: br\r\n", "x");
    expect_text(answer, "HTTP/1.1 415");
    expect_text(answer, "Accept-Encoding: gzip, deflate, identity\r\n");
    expect_text(ask(INFER, AS_VISION "Content-Encoding: gzip\r\n", "x"), "HTTP/1.1 400");
    ck_assert_int_eq(f.replicas[0].n_requests, 0);
}

END_TEST

START_TEST(only_who_may_gets_an_answer_and_a_revocation_holds_at_once)
{
    publish_replicas(1);
    expect_text(ask(INFER, "", "x"), "HTTP/1.1 401");
    expect_text(ask(INFER, "Authorization: Bearer nobody\r\n", "x"), "HTTP/1.1 404");
    for (int i = 0; i < 20; i++) {
        expect_text(ask(INFER, AS_VISION, "x"), "HTTP/1.1 200");
    }
    ck_assert_int_eq(f.n_authorised, 3); /* it is remembered */
    f.is_revoked = true;
    expect_text(ask(INFER, AS_VISION, "x"), "HTTP/1.1 200");
    weir_gateway_forget_callers(f.gateway);
    expect_text(ask(INFER, AS_VISION, "x"), "HTTP/1.1 401");
    ck_assert_int_eq(f.replicas[0].n_requests, 21);
    char headers[] = "Authorization: Bearer all\r\nExpect: 100-continue\r\nContent-Length: 900000";
    int fd = connect_to(f.server);
    send_text(fd, "POST " INFER " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    send_text(fd, headers);
    send_text(fd, "\r\n\r\n");
    expect_text(answer_of(fd), "HTTP/1.1 401"); /* before its body has come */
}

END_TEST

START_TEST(shares_and_keys_choose_the_version)
{
    int n_second = 0;
    char first_version[64] = "";
    publish_replicas(2);
    for (int i = 0; i < 300; i++) {
        n_second += strstr(ask(INFER, AS_VISION, ""), "Weir-Model-Version: 2") != NULL;
        const char *answer = ask(INFER, AS_VISION "Weir-Key: alice\r\n", "");
        const char *version = strstr(answer, "Weir-Model-Version: ");
        ck_assert_ptr_nonnull(version);
        if (i == 0) {
            (void)snprintf(first_version, sizeof first_version, "%.21s", version);
        }
        ck_assert_int_eq(strncmp(version, first_version, 21), 0);
    }
    ck_assert_int_gt(n_second, 5); /* 30 expected, 5.2 its deviation */
    ck_assert_int_lt(n_second, 62);
    ck_assert_int_gt(f.replicas[0].n_requests, 200);
    ck_assert_int_gt(f.replicas[1].n_requests, 200);
}

END_TEST

START_TEST(requests_are_held_until_a_replica_is_there)
{
    int fds[50];
    publish(&(struct weir_gateway_deployment){.can_start = true, .hold_ms = 20000});
    for (int i = 0; i < 50; i++) {
        fds[i] = ask_with(INFER, AS_VISION, "");
    }
    UNTIL(figures_now().n_held == 50);
    ck_assert_int_eq(f.n_started, 1);
    struct weir_gateway_load load;
    ck_assert(weir_gateway_load(f.gateway, "cats", &load));
    ck_assert_int_eq(load.n_held, 50);
    publish(&(struct weir_gateway_deployment){
        .replicas = &(struct weir_gateway_replica){"r-0", f.replicas[0].url, 0, false},
        .n_replicas = 1,
        .can_start = true});
    UNTIL(figures_now().n_held == 50); /* it has loaded nothing yet */
    publish_replicas(1);
    for (int i = 0; i < 50; i++) {
        expect_text(answer_of(fds[i]), "HTTP/1.1 200");
    }
    ck_assert_int_eq(figures_now().n_held, 0);
}

END_TEST

/* People are told that it serves by the rows that the next table is made of. */
START_TEST(a_request_that_comes_before_the_table_is_answered)
{
    publish(&(struct weir_gateway_deployment){.can_start = false});
    int fd = ask_with(INFER, AS_VISION, "");
    UNTIL(f.n_authorised == 1);
    publish_replicas(1);
    expect_text(answer_of(fd), "HTTP/1.1 200");
    ck_assert_int_eq(f.n_started, 0);
}

END_TEST

START_TEST(nobody_is_held_for_ever_or_for_nothing)
{
    publish(&(struct weir_gateway_deployment){.can_start = true, .hold_ms = 150});
    const char *answer = ask(INFER, AS_VISION, "");
    expect_text(answer, "HTTP/1.1 503");
    expect_text(answer, "Retry-After: 1");
    publish(&(struct weir_gateway_deployment){.can_start = false});
    int fd = ask_with(INFER, AS_VISION, "");
    for (struct pollfd answered = {.fd = fd, .events = POLLIN}; poll(&answered, 1, 1) == 0;) {
        ck_assert_int_eq(figures_now().n_held, 0); /* it asks for no replicas */
    }
    expect_text(answer_of(fd), "has no replica");
    publish(&(struct weir_gateway_deployment){.can_start = true});
    fd = ask_with(INFER, AS_VISION, "");
    UNTIL(figures_now().n_held == 1);
    weir_gateway_publish(f.gateway, weir_gateway_table_create());
    expect_text(answer_of(fd), "HTTP/1.1 404");
}

END_TEST

START_TEST(over_its_bound_a_deployment_refuses)
{
    struct weir_gateway_replica replica = {"r-0", f.replicas[0].url, 3, false};
    publish(
        &(struct weir_gateway_deployment){.replicas = &replica, .n_replicas = 1, .n_calls_max = 5});
    f.replicas[0].wait_ms = 100000;
    int fds[5];
    for (int i = 0; i < 5; i++) {
        fds[i] = ask_with(INFER, AS_VISION, "");
    }
    UNTIL(figures_now().n_in_flight == 5);
    const char *answer = ask(INFER, AS_VISION, "");
    expect_text(answer, "HTTP/1.1 503");
    expect_text(answer, "Retry-After: 1");
    ck_assert_int_eq(figures_now().n_refused, 1);
    f.replicas[0].wait_ms = 0;
    weir_http_wake(f.replicas[0].server, 1);
    for (int i = 0; i < 5; i++) {
        expect_text(answer_of(fds[i]), "HTTP/1.1 200");
    }
}

END_TEST

/* A port at which nobody listens. */
static void dead_url(char out[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    (void)snprintf(out, 64, "http://127.0.0.1:%d", ntohs(address.sin_port));
}

START_TEST(a_replica_that_is_not_there_or_full_costs_no_request)
{
    char dead[64];
    dead_url(dead);
    const struct weir_gateway_replica replicas[] = {{"dead", dead, 3, false},
                                                    {"full", f.replicas[0].url, 3, false},
                                                    {"good", f.replicas[1].url, 3, false}};
    publish(&(struct weir_gateway_deployment){.replicas = replicas, .n_replicas = 3});
    f.replicas[0].http_status = 503;
    for (int i = 0; i < 60; i++) {
        expect_text(ask(INFER, AS_VISION, ""), "HTTP/1.1 200");
    }
    ck_assert_int_eq(f.replicas[1].n_requests, 60);
    ck_assert_int_gt(f.replicas[0].n_requests, 5);
    ck_assert_int_ge(figures_now().n_retried, f.replicas[0].n_requests);
    publish(&(struct weir_gateway_deployment){.replicas = replicas, .n_replicas = 2});
    expect_text(ask(INFER, AS_VISION, ""), "HTTP/1.1 503"); /* what the last one said */
}

END_TEST

/* A replica of which the test is the other end. */
static int raw_replica(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    char url[64];
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    struct weir_gateway_replica replica = {"raw", url, 3, false};
    publish(&(struct weir_gateway_deployment){.replicas = &replica, .n_replicas = 1});
    return fd;
}

static int accept_request(int listen_fd)
{
    char text[4096];
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    read_until(fd, "\r\n\r\n", text, sizeof text);
    return fd;
}

START_TEST(what_was_begun_is_not_begun_again)
{
    int listen_fd = raw_replica();
    int client = ask_with(INFER, AS_VISION, "");
    close(accept_request(listen_fd));
    expect_text(answer_of(client), "HTTP/1.1 502");
    struct timeval patience = {.tv_usec = 100000};
    (void)setsockopt(listen_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ck_assert_int_lt(accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC), 0);
    ck_assert_int_eq(figures_now().n_retried, 0);
    close(listen_fd);
}

END_TEST

START_TEST(a_silent_replica_ends_with_the_deadline_and_is_told)
{
    char byte;
    int listen_fd = raw_replica();
    int client = ask_with(INFER, AS_VISION "Weir-Timeout-Ms: 200\r\n", "");
    int fd = accept_request(listen_fd);
    expect_text(answer_of(client), "HTTP/1.1 504");
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0); /* its end of the connection is closed */
    close(fd);
    close(listen_fd);
}

END_TEST

/* Its machine is cut off: nobody closes the connection. */
START_TEST(a_request_ends_when_its_replica_is_known_to_be_silent)
{
    char url[64];
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    int listen_fd = raw_replica();
    int client = ask_with(INFER, AS_VISION, "");
    int fd = accept_request(listen_fd);
    ck_assert_int_eq(getsockname(listen_fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    struct weir_gateway_replica silent = {"raw", url, 0, true};
    publish(&(struct weir_gateway_deployment){.replicas = &silent, .n_replicas = 1});
    const char *answer = answer_of(client);
    expect_text(answer, "HTTP/1.1 502");
    expect_text(answer, "was not heard of any more");
    expect_text(ask(INFER, AS_VISION, ""), "has no replica that answers");
    close(fd);
    close(listen_fd);
}

END_TEST

START_TEST(a_client_that_leaves_cancels_its_request)
{
    char byte;
    int listen_fd = raw_replica();
    int client = ask_with(INFER, AS_VISION, "");
    int fd = accept_request(listen_fd);
    close(client);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    UNTIL(figures_now().n_cancelled == 1);
    ck_assert_int_eq(figures_now().n_in_flight, 0);
    close(fd);
    close(listen_fd);
}

END_TEST

START_TEST(garbage_from_a_replica_is_no_answer)
{
    int listen_fd = raw_replica();
    int client = ask_with(INFER, AS_VISION, "");
    int fd = accept_request(listen_fd);
    send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc");
    expect_text(answer_of(client), "HTTP/1.1 502");
    close(fd);
    close(listen_fd);
}

END_TEST

static void count_differed(void *context, const struct weir_gateway_differed *one)
{
    ck_assert_int_eq(one->version, 2);
    ck_assert_int_eq(one->live_version, 1);
    ck_assert_ptr_nonnull(strstr(one->live_answer, "[0.1,0.7,0.2]"));
    ck_assert_ptr_nonnull(strstr(one->answer, "[0.6,0.2,0.2]"));
    ++*(int *)context;
}

START_TEST(a_mirror_is_compared_and_never_answers)
{
    struct weir_gateway_replica replica = {"r-0", f.replicas[0].url, 3, false};
    const struct weir_gateway_version all_first[] = {{1, 1000000}, {2, 0}};
    const struct weir_gateway_deployment d = {
        .replicas = &replica, .n_replicas = 1, .versions = all_first, .n_versions = 2, .mirror = 2};
    f.replicas[0].answers[1] = "{\"outputs\":[{\"name\":\"y\",\"data\":[0.1,0.7,0.2]}]}";
    f.replicas[0].answers[2] = "{\"outputs\":[{\"name\":\"y\",\"data\":[0.2,0.6,0.2]}]}";
    publish(&d);
    for (int i = 0; i < 20; i++) {
        expect_text(ask(INFER, AS_VISION, "x"), "[0.1,0.7,0.2]");
    }
    UNTIL(figures_now().n_mirrored == 20);
    ck_assert_int_eq(figures_now().n_disagreed, 0);
    f.replicas[0].answers[2] = "{\"outputs\":[{\"name\":\"y\",\"data\":[0.6,0.2,0.2]}]}";
    for (int i = 0; i < 5; i++) {
        expect_text(ask(INFER, AS_VISION, "x"), "[0.1,0.7,0.2]");
    }
    UNTIL(figures_now().n_mirrored == 25);
    ck_assert_int_eq(figures_now().n_disagreed, 5);
    int n_differed = 0;
    weir_gateway_differed_each(f.gateway, "cats", count_differed, &n_differed);
    ck_assert_int_eq(n_differed, 5);
    ck_assert_int_eq(figures_now().n_requests, 25);
    ck_assert_int_eq(f.replicas[0].n_requests, 50);
}

END_TEST

struct sender {
    pthread_t thread;
    atomic_bool *is_over;
    int n_sent, n_failed;
};

static void *send_on_and_on(void *context)
{
    struct sender *sender = context;
    while (!*sender->is_over) {
        sender->n_sent++;
        sender->n_failed += strstr(ask(INFER, AS_VISION, "x"), "HTTP/1.1 200") == NULL;
    }
    return NULL;
}

START_TEST(tables_change_under_load_and_nothing_fails)
{
    struct sender senders[4];
    atomic_bool is_over = false;
    publish_replicas(1);
    for (int i = 0; i < 4; i++) {
        senders[i] = (struct sender){.is_over = &is_over};
        pthread_create(&senders[i].thread, NULL, send_on_and_on, &senders[i]);
    }
    for (int i = 0; i < 100; i++) {
        int32_t first = 10000 * (i % 100);
        const struct weir_gateway_version versions[] = {{1, first}, {2, 1000000 - first}};
        struct weir_gateway_replica replicas[3];
        for (int j = 0; j < 3; j++) {
            replicas[j] = (struct weir_gateway_replica){j == 0   ? "a"
                                                        : j == 1 ? "b"
                                                                 : "c",
                                                        f.replicas[(i + j) % 4].url, 3, false};
        }
        publish(&(struct weir_gateway_deployment){.versions = versions,
                                                  .n_versions = 2,
                                                  .replicas = replicas,
                                                  .n_replicas = (size_t)(1 + i % 3)});
        (void)usleep(2000); /* so that requests fall into it */
    }
    is_over = true;
    int n_sent = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(senders[i].thread, NULL);
        ck_assert_int_eq(senders[i].n_failed, 0);
        n_sent += senders[i].n_sent;
    }
    printf("%d requests\n", n_sent);
    ck_assert_int_gt(n_sent, 20);
}

END_TEST

START_TEST(who_is_under_way_when_it_stops_is_told)
{
    publish_replicas(1);
    f.replicas[0].wait_ms = 100000;
    int fd = ask_with(INFER, AS_VISION, "");
    UNTIL(figures_now().n_in_flight == 1);
    weir_gateway_stop(f.gateway);
    expect_text(answer_of(fd), "HTTP/1.1 503");
    expect_text(ask(INFER, AS_VISION, ""), "HTTP/1.1 503");
}

END_TEST

START_TEST(large_bodies_come_through_whole)
{
    static char body[800000], answer[900000];
    publish_replicas(1);
    int fd = connect_to(f.server);
    memset(body, 'a', sizeof body);
    send_text(fd, "POST " INFER " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" AS_VISION
                  "Content-Length: 800000\r\n\r\n");
    for (size_t at = 0; at < sizeof body;) {
        ssize_t n = send(fd, body + at, sizeof body - at, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        at += (size_t)n;
    }
    expect_text(read_until(fd, NULL, answer, sizeof answer), "[aaaaaaaaaaaaaaaaa");
    close(fd);
    fd = connect_to(f.server);
    send_text(fd, "POST " INFER " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" AS_VISION
                  "Content-Length: 99000000\r\n\r\n");
    expect_text(answer_of(fd), "HTTP/1.1 413");
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "forward", set_up, tear_down, a_request_reaches_a_replica_and_its_answer_comes_back,
    an_answer_names_its_request_and_who_answered, what_the_gateway_knows_it_answers_itself,
    wrong_paths_and_methods_are_refused_with_a_sentence,
    only_who_may_gets_an_answer_and_a_revocation_holds_at_once, shares_and_keys_choose_the_version,
    requests_are_held_until_a_replica_is_there, a_request_that_comes_before_the_table_is_answered,
    nobody_is_held_for_ever_or_for_nothing, over_its_bound_a_deployment_refuses,
    a_replica_that_is_not_there_or_full_costs_no_request,
    a_request_ends_when_its_replica_is_known_to_be_silent, what_was_begun_is_not_begun_again,
    a_silent_replica_ends_with_the_deadline_and_is_told, a_client_that_leaves_cancels_its_request,
    garbage_from_a_replica_is_no_answer, a_mirror_is_compared_and_never_answers,
    tables_change_under_load_and_nothing_fails, who_is_under_way_when_it_stops_is_told,
    large_bodies_come_through_whole)
