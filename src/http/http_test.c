#include "http/test_support.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/test_seed.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* A server under test and what its handler is told to do. */
struct fixture {
    struct weir_http_server *server;
    char dir[64];
    sem_t entered, leave; /* for "/block" */
    atomic_int n_called, n_admitted, n_checked, n_head_bytes;
    char answer[65536];
};

static struct fixture f;

static void handle_upload(struct weir_http_request *request, struct weir_http_response *response)
{
    char digest[WEIR_SHA256_TEXT_BYTES] = "";
    uint64_t n = 0;
    struct weir_error err = {0};
    bool is_plain = weir_http_request_query(request, "plain") != NULL;
    if (request->body_file == NULL || is_plain != (request->body_file_sha256 == NULL) ||
        weir_file_sha256(request->body_file, digest, &n, &err) != WEIR_OK ||
        (!is_plain && strcmp(digest, request->body_file_sha256) != 0)) {
        weir_http_response_errorf(response, WEIR_ERR_INTERNAL, "no file: %s", err.message);
        return;
    }
    weir_http_response_json(response, 200,
                            json_pack("{s:s, s:I, s:s}", "sha256", digest, "bytes", (json_int_t)n,
                                      "path", request->body_file));
}

#define HEAD_BYTES 16

static weir_status check_head(const struct weir_http_request *request, const void *bytes,
                              size_t len, uint64_t declared_bytes, struct weir_error *err)
{
    (void)request;
    f.n_checked++;
    f.n_head_bytes = (int)len;
    return memchr(bytes, 0, len) == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%llu bytes that begin with a NUL",
                                (unsigned long long)declared_bytes);
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct fixture *fixture = context;
    fixture->n_called++;
    const char *what = request->n_segments > 0 ? request->segments[0] : "";
    if (strcmp(what, "block") == 0) {
        sem_post(&fixture->entered);
        sem_wait(&fixture->leave);
        weir_http_response_text(response, 200, "text/plain", "unblocked");
    } else if (strcmp(what, "query") == 0) {
        size_t n = 0;
        while (weir_http_request_query_at(request, "a", n) != NULL) {
            n++;
        }
        weir_http_response_text(response, 200, "text/plain",
                                weir_arena_printf(request->arena, "%zu arguments, and %s", n,
                                                  weir_http_request_query(request, "last")));
    } else if (strcmp(what, "length") == 0) {
        char text[32];
        (void)snprintf(text, sizeof text, "%zu bytes", request->body_len);
        weir_http_response_text(response, 200, "text/plain", text);
    } else if (strcmp(what, "upload") == 0) {
        handle_upload(request, response);
    } else if (strcmp(what, "inject") == 0) {
        weir_http_response_text(response, 200, "text/plain", "x");
        weir_http_response_header(response, "X-Name", "a\r\nX-Evil: b");
    } else if (strcmp(what, "file") == 0) {
        weir_http_response_file(response, 200, "text/plain",
                                weir_arena_printf(request->arena, "%s/file", fixture->dir));
        weir_http_response_header(response, "Cache-Control", "max-age=60");
    } else if (strcmp(what, "part") == 0) {
        weir_http_response_file_part(response, request, "text/plain",
                                     weir_arena_printf(request->arena, "%s/file", fixture->dir),
                                     "\"v1\"");
    } else if (strcmp(what, "nothing") != 0) {
        weir_http_response_text(response, 200, "text/plain", request->path);
    }
}

static void rule(void *context, const struct weir_http_request *request,
                 struct weir_http_body_rule *out)
{
    (void)context;
    if (request->n_segments > 0 && strcmp(request->segments[0], "upload") == 0) {
        *out = (struct weir_http_body_rule){.max_bytes = 64 << 20, .to_file = true};
        bool is_checked = weir_http_request_query(request, "checked") != NULL;
        out->check = is_checked ? check_head : NULL;
        out->check_bytes = HEAD_BYTES;
        out->wants_sha256 = weir_http_request_query(request, "plain") == NULL;
    } else if (request->n_segments > 0 && strcmp(request->segments[0], "length") == 0) {
        out->max_bytes = 1000;
    }
}

static void admit(void *context, struct weir_http_request *request,
                  struct weir_http_response *response)
{
    struct fixture *fixture = context;
    if (weir_http_request_header(request, "X-Refuse") != NULL) {
        weir_http_response_errorf(response, WEIR_ERR_DENIED, "not for you");
    } else {
        fixture->n_admitted++;
    }
}

static void start(void)
{
    memset(&f, 0, sizeof f);
    sem_init(&f.entered, 0, 0);
    sem_init(&f.leave, 0, 0);
    strncpy(f.dir, "/tmp/weir-http-XXXXXX", sizeof f.dir - 1);
    ck_assert_ptr_nonnull(mkdtemp(f.dir));
    f.server = serve(&(struct weir_http_config){.n_handlers = 1,
                                                .max_queued = 3,
                                                .idle_timeout_s = 1,
                                                .body_rule = rule,
                                                .admit = admit,
                                                .upload_dir = f.dir},
                     handle, &f);
}

static void stop(void)
{
    weir_http_server_stop(f.server, 1000);
    ck_assert_int_eq(weir_dir_remove(f.dir, NULL), WEIR_OK);
}

static const char *ask(const char *request)
{
    return exchange_text(f.server, request, f.answer, sizeof f.answer);
}

static void expect_status(int wanted)
{
    int got = strncmp(f.answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(f.answer + 9, NULL, 10) : -1;
    ck_assert_msg(got == wanted, "expected %d: %.400s", wanted, f.answer);
}

static void expect_text(const char *text)
{
    ck_assert_msg(strstr(f.answer, text) != NULL, "expected \"%s\" in: %s", text, f.answer);
}

#define CLOSE "Host: x\r\nConnection: close\r\n"

START_TEST(every_answer_carries_the_security_headers)
{
    ask("GET /here HTTP/1.1\r\n" CLOSE "\r\n");
    expect_status(200);
    expect_text("X-Content-Type-Options: nosniff\r\n");
    expect_text("X-Frame-Options: DENY\r\n");
    expect_text("Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
    expect_text("Cache-Control: no-store\r\n");
    expect_text("Referrer-Policy: no-referrer\r\n");
    expect_text("\r\n\r\n/here");
}

END_TEST

static const char *const malformed[] = {
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", /* a TLS hello */
    "GET\r\n\r\n",
    "GET / HTTP/1.1\r\nno colon here\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n", /* no Host */
    "POST / HTTP/1.1\r\n" CLOSE "Content-Length: x\r\n\r\n",
    "POST / HTTP/1.1\r\n" CLOSE "Content-Length: -5\r\n\r\n",
    "POST / HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
};

START_TEST(a_malformed_request_never_reaches_the_handler_and_the_server_lives)
{
    const char *answer = ask(malformed[_i]);
    ck_assert_msg(answer[0] == '\0' || strncmp(answer, "HTTP/1.1 4", 10) == 0 ||
                      strncmp(answer, "HTTP/1.0 4", 10) == 0,
                  "%s", answer);
    ck_assert_int_eq(f.n_called, 0);
    ask("GET /alive HTTP/1.1\r\n" CLOSE "\r\n");
    expect_text("/alive");
}

END_TEST

/* What a proxy before the server may read as two requests. Each is followed by one that would be
 * answered on the same connection if the server went on with it. */
static const char *const smuggled[] = {
    "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Content-Length: 0\r\nContent-Length: 4\r\n\r\n",
    "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "Content-Length: 0, 4\r\n\r\n",
    "Content-Length: +0\r\n\r\n",
    "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: gzip\r\n\r\n",
    "Content-Length : 4\r\n\r\n",
    "Host: y\r\n\r\n",
};

START_TEST(a_request_with_two_meanings_is_400_and_ends_the_connection)
{
    char request[1024];
    (void)snprintf(request, sizeof request,
                   "POST /first HTTP/1.1\r\nHost: x\r\n%sGET /second HTTP/1.1\r\n" CLOSE "\r\n",
                   smuggled[_i]);
    ask(request);
    expect_status(400);
    ck_assert_ptr_null(strstr(f.answer, "/second"));
    ck_assert_int_eq(f.n_called, 0);
}

END_TEST

START_TEST(headers_over_the_limit_answer_431)
{
    char *request = calloc(1, 80000);
    size_t n = (size_t)snprintf(request, 80000, "GET / HTTP/1.1\r\n" CLOSE);
    for (int i = 0; i < 600; i++) {
        n += (size_t)snprintf(request + n, 80000 - n, "X-%d: %0100d\r\n", i, i);
    }
    (void)snprintf(request + n, 80000 - n, "\r\n");
    ask(request);
    expect_status(431);
    free(request);
    ck_assert_int_eq(f.n_called, 0);
}

END_TEST

/* Random numbers of arguments, cookies and headers, each short: whoever asks gets an answer, and the arguments
 * are those that were sent, a mark among them, too. */
START_TEST(many_small_parts_are_answered)
{
    static char request[1 << 17];
    struct weir_rng rng;
    int n_served = 0;
    (void)test_seed(&rng);
    for (int round = 0; round < 60; round++) {
        size_t n_most = 1 + weir_rng_below(&rng, round % 2 == 0 ? 6000 : 600), at = 0;
        size_t n_arguments = weir_rng_below(&rng, n_most), n_cookies = weir_rng_below(&rng, 250);
        size_t n_headers = weir_rng_below(&rng, 200);
        at += (size_t)snprintf(request + at, sizeof request - at, "GET /query?last=x?y");
        for (size_t i = 0; i < n_arguments; i++) {
            at += (size_t)snprintf(request + at, sizeof request - at, "&a=%zu", i % 10);
        }
        at += (size_t)snprintf(request + at, sizeof request - at,
                               " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: c=1");
        for (size_t i = 0; i < n_cookies; i++) {
            at += (size_t)snprintf(request + at, sizeof request - at, "; c%zu=1", i);
        }
        for (size_t i = 0; i < n_headers; i++) {
            at += (size_t)snprintf(request + at, sizeof request - at, "\r\nX%zu: 1", i);
        }
        (void)snprintf(request + at, sizeof request - at, "\r\n\r\n");
        exchange_text(f.server, request, f.answer, sizeof f.answer);
        bool is_served = strncmp(f.answer, "HTTP/1.1 200", 12) == 0;
        char wanted[64];
        (void)snprintf(wanted, sizeof wanted, "%zu arguments, and x?y", n_arguments);
        ck_assert_msg(is_served ? strstr(f.answer, wanted) != NULL
                                : strncmp(f.answer, "HTTP/1.1 4", 10) == 0,
                      "%zu arguments, %zu cookies, %zu headers: \"%.200s\"", n_arguments, n_cookies,
                      n_headers, f.answer);
        n_served += is_served;
    }
    ck_assert_int_gt(n_served, 10);
}

END_TEST

START_TEST(pipelined_requests_are_answered_in_order)
{
    ask("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
        "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        "GET /3 HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /4 HTTP/1.1\r\n" CLOSE "\r\n");
    const char *at = f.answer;
    for (int i = 1; i <= 4; i++) {
        char wanted[16];
        (void)snprintf(wanted, sizeof wanted, "\r\n\r\n/%d", i);
        at = strstr(at, wanted);
        ck_assert_msg(at != NULL, "answer %d missing: %s", i, f.answer);
    }
    ck_assert_int_eq(f.n_called, 4);
}

END_TEST

START_TEST(a_body_at_its_limit_is_taken)
{
    char request[2048];
    (void)snprintf(request, sizeof request,
                   "POST /length HTTP/1.1\r\n" CLOSE "Content-Length: 1000\r\n\r\n%01000d", 7);
    ask(request);
    expect_status(200);
    expect_text("1000 bytes");
}

END_TEST

static void expect_413(void)
{
    expect_status(413);
    expect_text("{\"error\":{\"status\":\"LIMIT\",\"message\":\"the body of POST /length is longer "
                "than its limit of 1000 bytes\"}}");
    ck_assert_int_eq(f.n_called, 0);
}

START_TEST(a_body_over_its_limit_answers_413)
{
    char request[2048];
    (void)snprintf(request, sizeof request,
                   "POST /length HTTP/1.1\r\n" CLOSE "Content-Length: 1001\r\n\r\n%01001d", 7);
    ask(request);
    expect_413();
}

END_TEST

START_TEST(a_chunked_body_over_its_limit_answers_413)
{
    char request[2048];
    (void)snprintf(request, sizeof request,
                   "POST /length HTTP/1.1\r\n" CLOSE
                   "Transfer-Encoding: chunked\r\n\r\n258\r\n%0600d\r\n258\r\n%0600d\r\n0\r\n\r\n",
                   7, 8);
    ask(request);
    expect_413();
}

END_TEST

START_TEST(a_declared_body_far_over_its_limit_is_refused_unread)
{
    ask("POST /length HTTP/1.1\r\n" CLOSE "Content-Length: 99999999999\r\n\r\n");
    expect_413();
    ask("POST /length HTTP/1.1\r\n" CLOSE "Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n");
    expect_413();
}

END_TEST

static int count_files(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        n += entry->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}

START_TEST(an_upload_streams_to_a_file_that_is_gone_with_the_answer)
{
    size_t len = 5 << 20;
    char *bytes = malloc(len);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)(i * 2654435761u >> 13);
    }
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(bytes, len, digest);
    int fd = connect_to(f.server);
    char head[256];
    (void)snprintf(head, sizeof head,
                   "PUT /upload HTTP/1.1\r\n" CLOSE "Content-Length: %zu\r\n\r\n", len);
    send_text(fd, head);
    ck_assert_int_eq(weir_fd_write_all(fd, bytes, len, NULL), WEIR_OK);
    read_until(fd, NULL, f.answer, sizeof f.answer);
    close(fd);
    free(bytes);
    expect_status(200);
    expect_text(digest);
    ck_assert_int_eq(f.n_admitted, 1);
    ck_assert_int_eq(count_files(f.dir), 0);
}

END_TEST

/* 40 MB: more than is read past a limit, so that it shows that all of it is. */
START_TEST(an_upload_whose_first_bytes_are_wrong_is_not_stored_and_its_sender_reads_why)
{
    size_t len = (size_t)40 << 20;
    char *bytes = calloc(1, len), head[256];
    int fd = connect_to(f.server);
    (void)snprintf(head, sizeof head,
                   "PUT /upload?checked=1 HTTP/1.1\r\n" CLOSE "Content-Length: %zu\r\n\r\n", len);
    send_text(fd, head);
    ck_assert_int_eq(weir_fd_write_all(fd, bytes, len, NULL), WEIR_OK);
    read_until(fd, NULL, f.answer, sizeof f.answer);
    close(fd);
    free(bytes);
    expect_status(400);
    expect_text("41943040 bytes that begin with a NUL");
    ck_assert_int_eq(count_files(f.dir), 0);
    ck_assert_int_eq(f.n_called, 0);
}

END_TEST

#define CHUNKED "Transfer-Encoding: chunked\r\n\r\n"

/* However the network, or whoever sends, cuts it. */
START_TEST(the_first_bytes_of_an_upload_are_looked_at_once_when_enough_are_there)
{
    ask("PUT /upload?checked=1 HTTP/1.1\r\n" CLOSE CHUNKED
        "3\r\nabc\r\n1\r\nd\r\n14\r\nefghijklmnopqrstuvwx\r\n3\r\nyz1\r\n0\r\n\r\n");
    expect_status(200);
    ck_assert_int_eq(f.n_checked, 1);
    ck_assert_int_eq(f.n_head_bytes, HEAD_BYTES);
    /* Less is all there is. */
    ask("PUT /upload?checked=1&plain=1 HTTP/1.1\r\n" CLOSE CHUNKED "3\r\nabc\r\n0\r\n\r\n");
    expect_status(200);
    ck_assert_int_eq(f.n_checked, 2);
    ck_assert_int_eq(f.n_head_bytes, 3);
    ck_assert_int_eq(f.n_called, 2);
}

END_TEST

START_TEST(what_is_wrong_behind_a_first_small_piece_is_seen)
{
    int fd = connect_to(f.server);
    send_text(fd, "PUT /upload?checked=1 HTTP/1.1\r\n" CLOSE CHUNKED "3\r\nabc\r\n");
    ck_assert_int_eq(weir_fd_write_all(fd, "3\r\nd\0e\r\n0\r\n\r\n", 13, NULL), WEIR_OK);
    read_until(fd, NULL, f.answer, sizeof f.answer);
    close(fd);
    expect_status(400);
    expect_text("6 bytes that begin with a NUL");
    ck_assert_int_eq(f.n_called, 0);
}

END_TEST

START_TEST(an_upload_that_is_not_admitted_is_never_read)
{
    ask("PUT /upload HTTP/1.1\r\n" CLOSE "X-Refuse: 1\r\nContent-Length: 1000000\r\n\r\n");
    expect_status(403);
    expect_text("not for you");
    ck_assert_int_eq(f.n_called, 0);
    ck_assert_int_eq(count_files(f.dir), 0);
}

END_TEST

START_TEST(a_large_body_is_not_read_before_its_sender_is_admitted)
{
    ask("PUT /x HTTP/1.1\r\n" CLOSE "X-Refuse: 1\r\nContent-Length: 900000\r\n\r\n");
    expect_status(403);
    ask("PUT /x HTTP/1.1\r\n" CLOSE "X-Refuse: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
    expect_status(403);
    ck_assert_int_eq(f.n_called, 0);
    ask("PUT /length HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
    expect_text("2 bytes");
    ck_assert_int_eq(f.n_admitted, 1);
    ask("PUT /length HTTP/1.1\r\n" CLOSE "Content-Length: 2\r\n\r\nab"); /* small: unasked */
    expect_text("2 bytes");
    ck_assert_int_eq(f.n_admitted, 1);
}

END_TEST

START_TEST(bodies_in_flight_have_a_bound_for_all_and_for_each_address)
{
    struct weir_http_server *server = serve(
        &(struct weir_http_config){.max_bodies_bytes = 4000, .max_body_bytes = 3000}, handle, &f);
    char answer[4096], *body = calloc(1, 2001);
    memset(body, 'x', 2000);
    int first = connect_to(server), second = connect_to(server);
    send_text(first, "PUT /length HTTP/1.1\r\n" CLOSE "Content-Length: 1500\r\n\r\nbegun");
    exchange_text(server, "PUT /length HTTP/1.1\r\n" CLOSE "Content-Length: 2001\r\n\r\n", answer,
                  sizeof answer); /* over the half of an address */
    ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 503"));
    ck_assert_ptr_nonnull(strstr(answer, "try again"));
    /* Until the first one's part is taken, which its connection's thread does when it likes. */
    do {
        exchange_text(server, "PUT /length HTTP/1.1\r\n" CLOSE "Content-Length: 600\r\n\r\n",
                      answer, 13);
    } while (strcmp(answer, "HTTP/1.1 503") != 0);
    send_text(second, "PUT /length HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n300\r\n");
    body[0x300] = '\0';
    send_text(second, body);
    send_text(second, "\r\n0\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(read_until(second, NULL, answer, sizeof answer), "503"));
    memset(body, 'x', 2000);
    body[1495] = '\0';
    send_text(first, body);
    ck_assert_ptr_nonnull(strstr(read_until(first, NULL, answer, sizeof answer), "1500 bytes"));
    close(first);
    close(second);
    second = connect_to(server); /* its part is free again */
    body[1495] = 'x';
    send_text(second, "PUT /length HTTP/1.1\r\n" CLOSE "Content-Length: 2000\r\n\r\n");
    send_text(second, body);
    ck_assert_ptr_nonnull(strstr(read_until(second, NULL, answer, sizeof answer), "2000 bytes"));
    close(second);
    free(body);
    weir_http_server_stop(server, 1000);
}

END_TEST

START_TEST(a_header_value_cannot_start_another_header)
{
    ask("GET /inject HTTP/1.1\r\n" CLOSE "\r\n");
    expect_status(500);
    ck_assert_ptr_null(strstr(f.answer, "X-Evil"));
}

END_TEST

START_TEST(a_handler_without_answer_is_an_internal_error)
{
    ask("GET /nothing HTTP/1.1\r\n" CLOSE "\r\n");
    expect_status(500);
    expect_text("\"status\":\"INTERNAL\"");
}

END_TEST

START_TEST(a_file_is_sent_and_a_missing_one_is_404)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/file", f.dir);
    ask("GET /file HTTP/1.1\r\n" CLOSE "\r\n");
    expect_status(404);
    ck_assert_ptr_null(strstr(f.answer, f.dir));
    ck_assert_int_eq(weir_file_write_atomic(path, "content", 7, 0600, NULL), WEIR_OK);
    ask("GET /file HTTP/1.1\r\n" CLOSE "\r\n");
    expect_status(200);
    expect_text("Cache-Control: max-age=60\r\n");
    expect_text("Content-Length: 7\r\n");
    expect_text("\r\n\r\ncontent");
    ask("HEAD /file HTTP/1.1\r\n" CLOSE "\r\n");
    expect_text("Content-Length: 7\r\n");
    ck_assert_ptr_null(strstr(f.answer, "content\0"));
}

END_TEST

/* The bytes that come are those of the file at that place, and their number is said. */
START_TEST(a_part_of_a_file_is_sent_to_who_asks_for_it)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/file", f.dir);
    ck_assert_int_eq(weir_file_write_atomic(path, "0123456789", 10, 0600, NULL), WEIR_OK);
    ask("GET /part HTTP/1.1\r\n" CLOSE "Range: bytes=2-4\r\n\r\n");
    expect_status(206);
    expect_text("Content-Range: bytes 2-4/10\r\n");
    expect_text("Content-Length: 3\r\n");
    expect_text("ETag: \"v1\"\r\n");
    expect_text("\r\n\r\n234");
    ask("GET /part HTTP/1.1\r\n" CLOSE "Range: bytes=-3\r\nIf-Range: \"v1\"\r\n\r\n");
    expect_status(206);
    expect_text("\r\n\r\n789");
    ask("GET /part HTTP/1.1\r\n" CLOSE "Range: bytes=2-4\r\nIf-Range: \"v0\"\r\n\r\n");
    expect_status(200);
    expect_text("\r\n\r\n0123456789");
    ask("HEAD /part HTTP/1.1\r\n" CLOSE "Range: bytes=2-4\r\n\r\n");
    expect_status(206);
    expect_text("Content-Length: 3\r\n");
}

END_TEST

START_TEST(a_part_behind_the_end_is_416_and_a_file_that_is_known_304)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/file", f.dir);
    ck_assert_int_eq(weir_file_write_atomic(path, "0123456789", 10, 0600, NULL), WEIR_OK);
    ask("GET /part HTTP/1.1\r\n" CLOSE "Range: bytes=10-\r\n\r\n");
    expect_status(416);
    expect_text("Content-Range: bytes */10\r\n");
    ask("GET /part HTTP/1.1\r\n" CLOSE "If-None-Match: \"v0\", \"v1\"\r\n\r\n");
    expect_status(304);
    ask("GET /part HTTP/1.1\r\n" CLOSE "Range: lines=1\r\n\r\n");
    expect_status(200);
    expect_text("Accept-Ranges: bytes\r\n");
}

END_TEST

START_TEST(a_full_queue_answers_503_with_retry_after)
{
    int fds[4];
    for (int i = 0; i < 4; i++) { /* one runs, three wait */
        fds[i] = connect_to(f.server);
        send_text(fds[i], "GET /block HTTP/1.1\r\n" CLOSE "\r\n");
        if (i == 0) {
            sem_wait(&f.entered);
        }
        struct weir_http_counts counts = {0};
        while (counts.n_requests < i + 1) {
            weir_http_server_counts(f.server, &counts);
        }
    }
    ask("GET /late HTTP/1.1\r\n" CLOSE "\r\n");
    expect_status(503);
    expect_text("Retry-After: 1\r\n");
    expect_text("\"status\":\"UNAVAILABLE\"");
    for (int i = 0; i < 4; i++) {
        sem_post(&f.leave);
    }
    for (int i = 0; i < 4; i++) {
        read_until(fds[i], NULL, f.answer, sizeof f.answer);
        expect_text("unblocked");
        close(fds[i]);
    }
}

END_TEST

START_TEST(a_silent_connection_is_cut)
{
    static const char *const beginnings[] = {
        "", "GET /", "GET / HTTP/1.1\r\nHost: x\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"};
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_to(f.server);
        send_text(fds[i], beginnings[i]);
    }
    for (int i = 0; i < 4; i++) { /* read_until gives up after 20 s: then recv would fail */
        char byte;
        while (recv(fds[i], &byte, 1, 0) > 0) {
        }
        ck_assert_int_ne(recv(fds[i], &byte, 1, 0) == 0 || errno == ECONNRESET, 0);
        close(fds[i]);
    }
    ck_assert_int_eq(f.n_called, 0);
}

END_TEST

/* Headers that trickle, one byte each 0.3 s: never silent for the idle time, yet cut. */
START_TEST(trickling_headers_are_cut)
{
    int fd = connect_to(f.server);
    struct timeval pause = {.tv_usec = 300000};
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause), 0);
    int64_t begin = weir_mono_ms();
    ssize_t got;
    char byte = 'G';
    do {
        (void)send(fd, &byte, 1, MSG_NOSIGNAL);
        byte = 'E';
        char answer[512];
        got = recv(fd, answer, sizeof answer, 0);
    } while (got < 0 && errno == EAGAIN && weir_mono_ms() - begin < 15000);
    ck_assert_int_lt(weir_mono_ms() - begin, 10000);
    close(fd);
}

END_TEST

/* A body that began fast and then trickles: what came before does not buy it time. */
START_TEST(a_body_that_becomes_slow_is_cut)
{
    int fd = connect_to(f.server);
    struct timeval pause = {.tv_usec = 300000};
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause), 0);
    send_text(fd, "PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    char *head = calloc(1, 500001), answer[512];
    memset(head, 'x', 500000);
    send_text(fd, head);
    free(head);
    int64_t begin = weir_mono_ms();
    ssize_t got;
    do {
        (void)send(fd, "x", 1, MSG_NOSIGNAL);
        got = recv(fd, answer, sizeof answer, 0);
    } while (got < 0 && errno == EAGAIN && weir_mono_ms() - begin < 15000);
    ck_assert_int_lt(weir_mono_ms() - begin, 10000);
    close(fd);
}

END_TEST

START_TEST(a_port_in_use_says_what_to_do)
{
    char address[32];
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", weir_http_server_port(f.server));
    struct weir_http_server *second = NULL;
    struct weir_error err;
    int before = count_open_files();
    ck_assert_int_eq(weir_http_server_start(&(struct weir_http_config){.listen = address}, handle,
                                            &f, &second, &err),
                     WEIR_ERR_CONFLICT);
    ck_assert_ptr_null(second);
    ck_assert_ptr_nonnull(strstr(err.message, address));
    ck_assert_ptr_nonnull(strstr(err.message, "--listen"));
    ck_assert_int_eq(count_open_files(), before);
}

END_TEST

static const char *const bad_addresses[] = {"",       "localhost", "127.0.0.1:", ":80",
                                            "::1:80", "x:99999",   "[::1:80",    "a:b:1"};

START_TEST(a_bad_listen_address_is_invalid)
{
    struct weir_http_server *second;
    struct weir_error err;
    ck_assert_int_eq(weir_http_server_start(&(struct weir_http_config){.listen = bad_addresses[_i]},
                                            handle, &f, &second, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

START_TEST(stop_lets_a_running_request_finish_and_leaks_no_descriptor)
{
    weir_http_server_stop(f.server, 1000);
    int before = count_open_files();
    for (int round = 0; round < 5; round++) {
        struct weir_http_server *server = serve(
            &(struct weir_http_config){.n_handlers = 2, .upload_dir = f.dir, .body_rule = rule},
            handle, &f);
        int fd = connect_to(server);
        int idle = connect_to(server);
        int partial = connect_to(server);
        send_text(partial, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nab");
        send_text(fd, "GET /block HTTP/1.1\r\nHost: x\r\n\r\n");
        sem_wait(&f.entered);
        sem_post(&f.leave);
        weir_http_server_stop(server, 5000);
        read_until(fd, NULL, f.answer, sizeof f.answer);
        expect_text("unblocked");
        close(fd);
        close(idle);
        close(partial);
    }
    ck_assert_int_eq(count_open_files(), before);
    ck_assert_int_eq(count_files(f.dir), 0);
    f.server = NULL;
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("http server");
    TCase *tcase = tcase_create("server");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, every_answer_carries_the_security_headers);
    tcase_add_loop_test(tcase, a_malformed_request_never_reaches_the_handler_and_the_server_lives,
                        0, WEIR_ARRAY_LEN(malformed));
    tcase_add_test(tcase, headers_over_the_limit_answer_431);
    tcase_add_test(tcase, many_small_parts_are_answered);
    tcase_add_test(tcase, pipelined_requests_are_answered_in_order);
    tcase_add_test(tcase, a_body_at_its_limit_is_taken);
    tcase_add_test(tcase, a_body_over_its_limit_answers_413);
    tcase_add_test(tcase, a_chunked_body_over_its_limit_answers_413);
    tcase_add_test(tcase, a_declared_body_far_over_its_limit_is_refused_unread);
    tcase_add_test(tcase, an_upload_streams_to_a_file_that_is_gone_with_the_answer);
    tcase_add_test(tcase,
                   an_upload_whose_first_bytes_are_wrong_is_not_stored_and_its_sender_reads_why);
    tcase_add_test(tcase, the_first_bytes_of_an_upload_are_looked_at_once_when_enough_are_there);
    tcase_add_test(tcase, what_is_wrong_behind_a_first_small_piece_is_seen);
    tcase_add_test(tcase, an_upload_that_is_not_admitted_is_never_read);
    tcase_add_test(tcase, a_header_value_cannot_start_another_header);
    tcase_add_test(tcase, a_handler_without_answer_is_an_internal_error);
    tcase_add_test(tcase, a_file_is_sent_and_a_missing_one_is_404);
    tcase_add_test(tcase, a_part_of_a_file_is_sent_to_who_asks_for_it);
    tcase_add_test(tcase, a_part_behind_the_end_is_416_and_a_file_that_is_known_304);
    tcase_add_test(tcase, a_full_queue_answers_503_with_retry_after);
    tcase_add_test(tcase, a_silent_connection_is_cut);
    tcase_add_test(tcase, trickling_headers_are_cut);
    tcase_add_test(tcase, a_body_that_becomes_slow_is_cut);
    tcase_add_test(tcase, a_large_body_is_not_read_before_its_sender_is_admitted);
    tcase_add_test(tcase, bodies_in_flight_have_a_bound_for_all_and_for_each_address);
    tcase_add_loop_test(tcase, a_request_with_two_meanings_is_400_and_ends_the_connection, 0,
                        WEIR_ARRAY_LEN(smuggled));
    tcase_add_test(tcase, a_port_in_use_says_what_to_do);
    tcase_add_loop_test(tcase, a_bad_listen_address_is_invalid, 0, WEIR_ARRAY_LEN(bad_addresses));
    tcase_add_test(tcase, stop_lets_a_running_request_finish_and_leaks_no_descriptor);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
