/* The generator against a server of src/http, which counts on its own. */
#include "infer_load/load.h"

#include "base/arena.h"
#include "base/test_main.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct answers {
    atomic_int n_asked, n_refused;
    int every_refused; /* 0: none */
    bool must_close, first_waits;
    const char *body; /* expected; NULL: any */
    size_t body_len;
    atomic_int n_wrong_bodies;
};

#define FIRST_WAIT_MS 300

static void answer(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct answers *answers = context;
    if (request->is_expired) {
        weir_http_response_text(response, 200, "text/plain", "late");
        return;
    }
    int n = atomic_fetch_add(&answers->n_asked, 1);
    if (answers->first_waits && n == 0) {
        weir_http_response_wait(response, 0, FIRST_WAIT_MS);
        return;
    }
    if (answers->body != NULL && (request->body_len != answers->body_len ||
                                  memcmp(request->body, answers->body, answers->body_len) != 0)) {
        atomic_fetch_add(&answers->n_wrong_bodies, 1);
    }
    bool is_refused = answers->every_refused > 0 && n % answers->every_refused == 0;
    atomic_fetch_add(&answers->n_refused, is_refused);
    weir_http_response_text(response, is_refused ? 503 : 200, "text/plain", "an answer");
    weir_http_response_header(response, "Weir-Model-Version", n % 2 == 0 ? "7" : "12");
    if (answers->must_close) {
        weir_http_response_header(response, "Connection", "close");
    }
}

/* Run against a server that answers so; the caller frees the records. */
static struct load_result run(struct answers *answers, struct load_options options)
{
    struct weir_http_server *server;
    struct load_result result;
    struct weir_error err = {0};
    char url[64];
    const struct weir_http_config config = {.listen = "127.0.0.1:0", .max_body_bytes = 8 << 20};
    ck_assert_int_eq(weir_http_server_start(&config, answer, answers, &server, &err), WEIR_OK);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/x", weir_http_server_port(server));
    options.url = url;
    options.headers = options.headers != NULL ? options.headers : "";
    options.patience_ms = 20000;
    ck_assert_msg(load_run(&options, &result, &err) == WEIR_OK, "%s", err.message);
    weir_http_server_stop(server, 1000);
    return result;
}

START_TEST(every_answer_is_counted_as_the_server_counts_it)
{
    struct answers answers = {.every_refused = 10};
    struct load_result result = run(
        &answers,
        (struct load_options){
            .rate_s = 1000, .n_requests = 500, .n_connections = 4, .body = "{}", .body_len = 2});
    struct load_summary summary;
    size_t n_even = 0;
    load_summarise(&result, &summary);
    ck_assert_uint_eq(summary.n, 500);
    ck_assert_int_eq(atomic_load(&answers.n_asked), 500);
    ck_assert_uint_eq(summary.n_failed, (size_t)atomic_load(&answers.n_refused));
    for (size_t i = 0; i < result.n; i++) {
        n_even += result.records[i].version == 7;
        ck_assert_uint_ge(result.records[i].sent_ns, result.records[i].due_ns);
        ck_assert_uint_gt(result.records[i].done_ns, result.records[i].sent_ns);
    }
    ck_assert_uint_eq(n_even, 250);
    ck_assert_double_ge(result.seconds, 0.499); /* no faster than the rate */
    free(result.records);
}

END_TEST

START_TEST(a_stall_shows_in_every_request_that_was_due_meanwhile)
{
    struct answers answers = {.first_waits = true};
    struct load_result result =
        run(&answers, (struct load_options){.rate_s = 100, .n_requests = 40, .n_connections = 1});
    for (size_t i = 0; i < 25; i++) {
        double taken_ms = (double)(result.records[i].done_ns - result.records[i].due_ns) / 1e6;
        ck_assert_int_eq(result.records[i].http_status, 200);
        ck_assert_double_ge(taken_ms, FIRST_WAIT_MS - 10.0 * (double)i - 2);
    }
    free(result.records);
}

END_TEST

START_TEST(large_bodies_arrive_whole_and_in_a_closed_loop)
{
    size_t len = 3 << 20;
    char *body = weir_xalloc(len);
    for (size_t i = 0; i < len; i++) {
        body[i] = (char)(i * 31 + i / 7);
    }
    struct answers answers = {.body = body, .body_len = len};
    struct load_result result = run(
        &answers,
        (struct load_options){.n_requests = 20, .n_connections = 3, .body = body, .body_len = len});
    struct load_summary summary;
    load_summarise(&result, &summary);
    ck_assert_uint_eq(summary.n_failed, 0);
    ck_assert_int_eq(atomic_load(&answers.n_wrong_bodies), 0);
    free(result.records);
    free(body);
}

END_TEST

START_TEST(a_connection_that_the_server_closes_is_opened_again)
{
    struct answers answers = {.must_close = true};
    struct load_result result =
        run(&answers, (struct load_options){.rate_s = 500, .n_requests = 100, .n_connections = 2});
    struct load_summary summary;
    load_summarise(&result, &summary);
    ck_assert_uint_eq(summary.n_failed, 0);
    free(result.records);
}

END_TEST

/* Two connections end without an answer or with what is none; the first one is the look whether anybody is there. */
static void *say_nonsense(void *context)
{
    static const char *const said[] = {"", "", "SSH-2.0-x\r\n\r\n",
                                       "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"};
    int listening = *(int *)context;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        char bytes[256];
        int fd = accept(listening, NULL, NULL);
        if (i > 0) {
            (void)recv(fd, bytes, sizeof bytes, 0);
        }
        (void)send(fd, said[i], strlen(said[i]), MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

START_TEST(what_is_no_answer_is_a_failure_without_a_status)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, say_nonsense, &fd), 0);
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    struct load_options options = {
        .url = url, .headers = "", .n_requests = 3, .n_connections = 1, .patience_ms = 10000};
    struct load_result result;
    struct weir_error err;
    ck_assert_int_eq(load_run(&options, &result, &err), WEIR_OK);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < result.n; i++) {
        ck_assert_int_eq(result.records[i].http_status, 0);
        ck_assert_uint_ne(result.records[i].done_ns, 0);
    }
    free(result.records);
    close(fd); /* nobody is there any more */
    ck_assert_int_eq(load_run(&options, &result, &err), WEIR_ERR_PEER);
    options.url = "https://127.0.0.1:1/";
    ck_assert_int_eq(load_run(&options, &result, &err), WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN("infer_load", every_answer_is_counted_as_the_server_counts_it,
               a_stall_shows_in_every_request_that_was_due_meanwhile,
               large_bodies_arrive_whole_and_in_a_closed_loop,
               a_connection_that_the_server_closes_is_opened_again,
               what_is_no_answer_is_a_failure_without_a_status)
