#include "http/stream.h"
#include "http/test_support.h"

#include "base/clock.h"
#include "base/sha256.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define BODY_BYTES ((size_t)8 << 20)

/* What one request is about: its other side is a thread here. */
struct side {
    pthread_t thread;
    bool is_started;
    struct weir_http_pipe *in, *out;
    struct weir_sha256_stream hash;
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_status status; /* of the body's end */
    size_t n_bytes, n_most;
};

static struct weir_http_server *server;
static sem_t woken, ended;
static atomic_int n_ended, n_upgraded;
static struct side last; /* of a request that ended */

static void post(void *context)
{
    sem_post(context);
}

static void make_bytes(unsigned char *out, size_t n, size_t at)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (unsigned char)((at + i) * 2654435761u >> 13);
    }
}

/* Reads the body to its end. */
static void *take_body(void *context)
{
    struct side *side = context;
    unsigned char bytes[5000];
    weir_sha256_begin(&side->hash);
    while (!weir_http_pipe_is_over(side->in, &side->status)) {
        size_t in_pipe = WEIR_HTTP_PIPE_BYTES - weir_http_pipe_room(side->in);
        side->n_most = WEIR_MAX(side->n_most, in_pipe);
        size_t n = weir_http_pipe_read(side->in, bytes, sizeof bytes);
        weir_sha256_add(&side->hash, bytes, n);
        side->n_bytes += n;
        if (n == 0) {
            sem_wait(&woken);
        }
    }
    weir_sha256_end(&side->hash, side->digest);
    return NULL;
}

/* Writes an answer of BODY_BYTES. */
static void *give_answer(void *context)
{
    struct side *side = context;
    unsigned char bytes[3000];
    while (side->n_bytes < BODY_BYTES && !weir_http_pipe_is_closed(side->out)) {
        make_bytes(bytes, sizeof bytes, side->n_bytes);
        size_t want = WEIR_MIN(sizeof bytes, BODY_BYTES - side->n_bytes);
        size_t n = weir_http_pipe_write(side->out, bytes, want);
        side->n_bytes += n;
        if (n < want) {
            sem_wait(&woken);
        }
    }
    weir_http_pipe_end(side->out, side->status);
    return NULL;
}

static void end_side(void *state)
{
    struct side *side = state;
    if (side->is_started) {
        pthread_join(side->thread, NULL);
    }
    last = *side;
    weir_http_pipe_unref(side->in);
    weir_http_pipe_unref(side->out);
    free(side);
    n_ended++;
    sem_post(&ended);
}

static struct side *begin_side(struct weir_http_request *request)
{
    struct side *side = weir_xalloc(sizeof *side);
    memset(side, 0, sizeof *side);
    request->state = side;
    request->end_fn = end_side;
    return side;
}

static void start(struct side *side, void *(*fn)(void *))
{
    side->is_started = true;
    ck_assert_int_eq(pthread_create(&side->thread, NULL, fn, side), 0);
}

static void admit(void *context, struct weir_http_request *request,
                  struct weir_http_response *response)
{
    (void)context;
    if (strcmp(request->path, "/refused") == 0) {
        weir_http_response_errorf(response, WEIR_ERR_DENIED, "no");
        return;
    }
    struct side *side = begin_side(request);
    side->in = weir_http_pipe_ref(request->body_pipe);
    weir_http_pipe_watch_bytes(side->in, post, &woken);
    if (strcmp(request->path, "/closed") == 0) {
        weir_http_pipe_close(side->in);
    } else {
        start(side, take_body);
    }
}

static void rule(void *context, const struct weir_http_request *request,
                 struct weir_http_body_rule *out)
{
    (void)context;
    (void)request;
    out->to_pipe = true;
}

static void on_upgrade(void *context, struct weir_http_upgraded *upgraded, int fd,
                       const void *extra, size_t extra_len)
{
    (void)context;
    char bytes[64];
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(send(fd, extra, extra_len, MSG_NOSIGNAL), (ssize_t)extra_len);
    ck_assert_int_eq(poll(&poll_fd, 1, 10000), 1);
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(send(fd, bytes, (size_t)n, MSG_NOSIGNAL), n);
    weir_http_upgraded_close(upgraded);
    n_upgraded++;
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    struct side *side = request->state;
    if (strcmp(request->path, "/up") == 0) {
        (void)begin_side(request);
        weir_http_response_upgrade(response, "echo", on_upgrade, NULL);
        return;
    }
    if (strcmp(request->segments[0], "empty") == 0) {
        side = begin_side(request);
        side->out = weir_http_pipe_create(WEIR_HTTP_PIPE_BYTES);
        weir_http_response_stream(response, (int)strtol(request->segments[1], NULL, 10),
                                  strtol(request->segments[2], NULL, 10), side->out);
        weir_http_response_foreign(response);
        weir_http_pipe_end(side->out, WEIR_OK);
        return;
    }
    if (strncmp(request->path, "/down", 5) == 0) {
        side = begin_side(request);
        side->out = weir_http_pipe_create(WEIR_HTTP_PIPE_BYTES);
        side->status = strcmp(request->path, "/down-broken") == 0 ? WEIR_ERR_PEER : WEIR_OK;
        weir_http_pipe_watch_room(side->out, post, &woken);
        weir_http_response_stream(
            response, 200, strcmp(request->path, "/down-known") == 0 ? (int64_t)BODY_BYTES : -1,
            side->out);
        weir_http_response_foreign(response);
        ck_assert_int_eq(weir_http_response_foreign_header(response, "X-Twice", "a"), WEIR_OK);
        ck_assert_int_eq(weir_http_response_foreign_header(response, "X-Twice", "b"), WEIR_OK);
        ck_assert_int_eq(weir_http_response_foreign_header(response, "X-Bad", "a\r\nb: c"),
                         WEIR_ERR_INVALID);
        ck_assert_int_eq(weir_http_response_foreign_header(response, "X Bad", "a"),
                         WEIR_ERR_INVALID);
        start(side, give_answer);
        return;
    }
    if (side != NULL && side->is_started) {
        pthread_join(side->thread, NULL);
        side->is_started = false;
    }
    weir_http_response_text(response, 200, "text/plain",
                            side == NULL ? "no body"
                                         : weir_arena_strdup(request->arena, side->digest));
}

static void set_up(void)
{
    sem_init(&woken, 0, 0);
    sem_init(&ended, 0, 0);
    n_ended = n_upgraded = 0;
    struct weir_http_config config = {.body_rule = rule,
                                      .admit = admit,
                                      .has_upgrades = true,
                                      .idle_timeout_s = 1,
                                      .n_io_threads = 1,
                                      .n_handlers = 2};
    server = serve(&config, handle, NULL);
}

static void tear_down(void)
{
    weir_http_server_stop(server, 5000);
}

static void send_body(int fd, bool is_chunked)
{
    static unsigned char bytes[65536];
    for (size_t at = 0; at < BODY_BYTES; at += sizeof bytes) {
        char head[32];
        make_bytes(bytes, sizeof bytes, at);
        (void)snprintf(head, sizeof head, "%zx\r\n", sizeof bytes);
        if (is_chunked) {
            send_text(fd, head);
        }
        for (size_t n = 0; n < sizeof bytes;) {
            ssize_t sent = send(fd, bytes + n, sizeof bytes - n, MSG_NOSIGNAL);
            ck_assert_int_gt(sent, 0);
            n += (size_t)sent;
        }
        if (is_chunked) {
            send_text(fd, "\r\n");
        }
    }
    if (is_chunked) {
        send_text(fd, "0\r\n\r\n");
    }
}

static void digest_of_all(char out[WEIR_SHA256_TEXT_BYTES])
{
    static unsigned char bytes[65536];
    struct weir_sha256_stream hash;
    weir_sha256_begin(&hash);
    for (size_t at = 0; at < BODY_BYTES; at += sizeof bytes) {
        make_bytes(bytes, sizeof bytes, at);
        weir_sha256_add(&hash, bytes, sizeof bytes);
    }
    weir_sha256_end(&hash, out);
}

START_TEST(a_body_comes_through_a_bounded_pipe)
{
    char answer[4096], digest[WEIR_SHA256_TEXT_BYTES], head[128];
    digest_of_all(digest);
    int fd = connect_to(server);
    (void)snprintf(head, sizeof head, "Content-Length: %zu", BODY_BYTES);
    send_text(fd, "POST /up-load HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    send_text(fd, _i == 0 ? head : "Transfer-Encoding: chunked");
    send_text(fd, "\r\n\r\n");
    send_body(fd, _i == 1);
    read_until(fd, NULL, answer, sizeof answer);
    close(fd);
    ck_assert_msg(strstr(answer, digest) != NULL, "%s", answer);
    sem_wait(&ended);
    ck_assert_int_eq(last.status, WEIR_OK);
    ck_assert_uint_eq(last.n_bytes, BODY_BYTES);
    ck_assert_uint_le(last.n_most, WEIR_HTTP_PIPE_BYTES);
}

END_TEST

START_TEST(a_request_without_a_body_has_no_pipe)
{
    char answer[4096];
    exchange_text(server, "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", answer,
                  sizeof answer);
    ck_assert_msg(strstr(answer, "no body") != NULL, "%s", answer);
}

END_TEST

START_TEST(a_body_that_is_refused_is_not_read)
{
    char answer[4096];
    exchange_text(server,
                  "POST /refused HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                  "Content-Length: 10\r\n\r\n",
                  answer, sizeof answer);
    ck_assert_msg(strstr(answer, "HTTP/1.1 403") != NULL, "%s", answer);
    ck_assert_int_eq(n_ended, 0);
}

END_TEST

START_TEST(a_body_that_nobody_wants_any_more_is_dropped)
{
    char answer[4096], head[128];
    int fd = connect_to(server);
    (void)snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", BODY_BYTES);
    send_text(fd, "POST /closed HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    send_text(fd, head);
    send_body(fd, false);
    read_until(fd, NULL, answer, sizeof answer);
    close(fd);
    ck_assert_msg(strstr(answer, "HTTP/1.1 200") != NULL, "%s", answer);
}

END_TEST

START_TEST(a_body_whose_sender_goes_away_ends_with_an_error)
{
    int fd = connect_to(server);
    send_text(fd, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc");
    shutdown(fd, SHUT_RDWR);
    close(fd);
    sem_wait(&ended);
    ck_assert_int_eq(last.status, WEIR_ERR_PEER);
}

END_TEST

/* What stood behind such an answer would be taken for the beginning of the next one. (There is no next
 * one behind the head of what comes in chunks.) */
START_TEST(an_answer_that_has_no_body_ends_with_its_head)
{
    static const char *const requests[] = {"GET /empty/204/-1",   "GET /empty/304/-1",
                                           "GET /empty/304/500",  "HEAD /empty/200/-1",
                                           "HEAD /empty/200/500", "HEAD /empty/304/-1"};
    char answer[4096], request[256];
    (void)snprintf(request, sizeof request,
                   "%s HTTP/1.1\r\nHost: x\r\n\r\n"
                   "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                   requests[_i]);
    exchange_text(server, request, answer, sizeof answer);
    const char *end = strstr(answer, "\r\n\r\n"), *closes = strstr(answer, "Connection: close");
    ck_assert_msg(end != NULL && (strncmp(end + 4, "HTTP/1.1 200 OK", 15) == 0 ||
                                  (closes != NULL && closes < end)),
                  "%s: %s", requests[_i], answer);
}

END_TEST

static const char *const downs[] = {"/down", "/down-known"};

START_TEST(an_answer_is_sent_as_it_comes)
{
    static char answer[BODY_BYTES + 400000];
    char request[256];
    static unsigned char bytes[3000];
    (void)snprintf(request, sizeof request,
                   "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", downs[_i]);
    int fd = connect_to(server);
    send_text(fd, request);
    size_t n = 0;
    ssize_t got;
    while ((got = recv(fd, answer + n, sizeof answer - 1 - n, 0)) > 0) {
        n += (size_t)got;
    }
    close(fd);
    answer[n] = '\0';
    char *body = strstr(answer, "\r\n\r\n");
    ck_assert_ptr_nonnull(body);
    ck_assert_ptr_nonnull(strstr(answer, "X-Twice: a"));
    ck_assert_ptr_nonnull(strstr(answer, "X-Twice: b"));
    ck_assert_ptr_null(strstr(answer, "X-Frame-Options"));
    ck_assert_ptr_null(strstr(answer, "X-Bad"));
    if (_i == 1) {
        body += 4;
        ck_assert_uint_eq((size_t)(answer + n - body), BODY_BYTES);
        for (size_t at = 0; at + sizeof bytes <= BODY_BYTES; at += sizeof bytes) {
            make_bytes(bytes, sizeof bytes, at);
            ck_assert_int_eq(memcmp(body + at, bytes, sizeof bytes), 0);
        }
    } else {
        ck_assert_int_eq(memcmp(answer + n - 5, "0\r\n\r\n", 5), 0);
    }
}

END_TEST

START_TEST(an_answer_that_breaks_off_is_seen_to)
{
    static char answer[BODY_BYTES + 400000];
    int fd = connect_to(server);
    send_text(fd, "GET /down-broken HTTP/1.1\r\nHost: x\r\n\r\n");
    size_t n = 0;
    ssize_t got;
    while ((got = recv(fd, answer + n, sizeof answer - n, 0)) > 0) {
        n += (size_t)got;
    }
    close(fd);
    ck_assert_uint_gt(n, BODY_BYTES / 2);
    ck_assert_int_ne(memcmp(answer + n - 5, "0\r\n\r\n", 5), 0);
}

END_TEST

/* It takes some bytes every now and then: not idle, but far too slow. */
START_TEST(a_slow_reader_is_cut)
{
    char bytes[512];
    int fd = connect_to(server);
    int64_t begun_ms = weir_mono_ms();
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    send_text(fd, "GET /down HTTP/1.1\r\nHost: x\r\n\r\n");
    struct pollfd quiet = {.fd = -1};
    bool is_cut = false;
    while (!is_cut && weir_mono_ms() - begun_ms < 15000) {
        ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        is_cut = n_ended > 0 && got <= 0;
        (void)poll(&quiet, 1, 250);
        is_cut = is_cut || n_ended > 0;
    }
    close(fd);
    ck_assert(is_cut);
    ck_assert_uint_lt(last.n_bytes, BODY_BYTES);
}

END_TEST

START_TEST(a_connection_becomes_the_callers)
{
    char answer[4096];
    int fd = connect_to(server);
    send_text(fd,
              "GET /up HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
    read_until(fd, "early", answer, sizeof answer);
    ck_assert_msg(strstr(answer, "HTTP/1.1 101") != NULL, "%s", answer);
    ck_assert_msg(strstr(answer, "Upgrade: echo") != NULL, "%s", answer);
    ck_assert_msg(strstr(answer, "\r\n\r\nearly") != NULL, "%s", answer);
    send_text(fd, "later");
    read_until(fd, NULL, answer, sizeof answer);
    close(fd);
    ck_assert_str_eq(answer, "later");
    sem_wait(&ended);
    ck_assert_int_eq(n_upgraded, 1);
}

END_TEST

START_TEST(a_pipe_holds_no_more_than_its_size)
{
    char out[16];
    weir_status status = WEIR_OK;
    struct weir_http_pipe *pipe = weir_http_pipe_create(8);
    ck_assert_uint_eq(weir_http_pipe_write(pipe, "abcdef", 6), 6);
    ck_assert_uint_eq(weir_http_pipe_read(pipe, out, 4), 4);
    ck_assert_uint_eq(weir_http_pipe_write(pipe, "ghijklmn", 8), 6);
    ck_assert_uint_eq(weir_http_pipe_room(pipe), 0);
    ck_assert_uint_eq(weir_http_pipe_read(pipe, out, sizeof out), 8);
    ck_assert_int_eq(memcmp(out, "efghijkl", 8), 0);
    ck_assert(!weir_http_pipe_is_over(pipe, &status));
    weir_http_pipe_end(pipe, WEIR_ERR_PEER);
    weir_http_pipe_end(pipe, WEIR_OK);
    ck_assert(weir_http_pipe_is_over(pipe, &status));
    ck_assert_int_eq(status, WEIR_ERR_PEER);
    weir_http_pipe_close(pipe);
    ck_assert_uint_eq(weir_http_pipe_write(pipe, "opq", 3), 3);
    weir_http_pipe_unref(pipe);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("http_stream");
    TCase *tests = tcase_create("streams");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_body_comes_through_a_bounded_pipe, 0, 2);
    tcase_add_test(tests, a_request_without_a_body_has_no_pipe);
    tcase_add_test(tests, a_body_that_is_refused_is_not_read);
    tcase_add_test(tests, a_body_that_nobody_wants_any_more_is_dropped);
    tcase_add_test(tests, a_body_whose_sender_goes_away_ends_with_an_error);
    tcase_add_loop_test(tests, an_answer_that_has_no_body_ends_with_its_head, 0, 6);
    tcase_add_loop_test(tests, an_answer_is_sent_as_it_comes, 0, 2);
    tcase_add_test(tests, an_answer_that_breaks_off_is_seen_to);
    tcase_add_test(tests, a_slow_reader_is_cut);
    tcase_add_test(tests, a_connection_becomes_the_callers);
    tcase_add_test(tests, a_pipe_holds_no_more_than_its_size);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
