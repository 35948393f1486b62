/* Posts to a server in this process, which answers as it is told. */
#include "http/post.h"

#include "base/clock.h"
#include "http/test_support.h"

#include <semaphore.h>

static struct {
    struct weir_http_server *server;
    struct weir_poster *poster;
    struct weir_arena arena;
    struct weir_post_answer answer;
    struct weir_error err;
    char url[64], body[256];
    int n, status;
    sem_t entered;
} f;

/* "/hang" does not answer, "/away" sends elsewhere, "/big" says too much; all else answers f.status. */
static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    const char *signature = weir_http_request_header(request, "Weir-Signature");
    const char *time = weir_http_request_header(request, "Weir-Timestamp");
    f.n++;
    (void)snprintf(f.body, sizeof f.body, "%s %s %s", signature != NULL ? signature : "-",
                   time != NULL ? time : "-", request->body);
    if (strcmp(request->path, "/hang") == 0 && !request->is_expired) {
        weir_http_response_wait(response, 1, 60000);
        sem_post(&f.entered);
    } else if (strcmp(request->path, "/big") == 0) {
        weir_http_response_bytes(response, 200, "text/plain",
                                 weir_arena_alloc(request->arena, 100000), 100000);
    } else {
        weir_http_response_header(response, "Location", "/elsewhere");
        weir_http_response_header(response, "Retry-After", "7");
        weir_http_response_text(response, f.status, "text/plain", request->path);
    }
}

static void set_up(void)
{
    memset(&f, 0, sizeof f);
    sem_init(&f.entered, 0, 0);
    weir_arena_init(&f.arena, 0);
    f.server = serve(&(struct weir_http_config){.n_handlers = 2}, handle, NULL);
    (void)snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", weir_http_server_port(f.server));
    ck_assert_int_eq(weir_poster_open(&f.poster, &f.err), WEIR_OK);
}

static void tear_down(void)
{
    weir_poster_close(f.poster);
    weir_http_server_stop(f.server, 0);
    weir_arena_fini(&f.arena);
}

static weir_status post_to(const char *path, int64_t timeout_ms)
{
    const struct weir_post post = {.url = weir_arena_printf(&f.arena, "%s%s", f.url, path),
                                   .secret = "secret",
                                   .id = "d1",
                                   .body = "{}",
                                   .now_ms = 1700000000999,
                                   .timeout_ms = timeout_ms};
    return weir_poster_post(f.poster, &post, &f.arena, &f.answer, &f.err);
}

/* Made with Python: hmac.new(key, time + b"." + body, hashlib.sha256).hexdigest() */
START_TEST(a_signature_is_hmac_sha256)
{
    char out[WEIR_POST_SIGNATURE_BYTES];
    weir_post_signature("secret", "1700000000", "{}", 2, out);
    ck_assert_str_eq(out, "b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163");
    weir_post_signature(
        "a key that is longer than one block of the hash function, which has 64 bytes",
        "1700000000", "{\"a\":1}", 7, out);
    ck_assert_str_eq(out, "c025cd4828da4d82e0468605e3ad8b4f1864e88692659d0d200c9097932c5c8d");
}

END_TEST

/* The example of the specification, and a secret that is its own key; as Python's hmac has them. */
START_TEST(a_standard_signature_is_as_the_specification_has_it)
{
    static const char body[] = "{\"test\": 2432232314}";
    char out[WEIR_POST_STANDARD_BYTES];
    weir_post_signature_standard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                 "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body,
                                 sizeof body - 1, out);
    ck_assert_str_eq(out, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    weir_post_signature_standard("plain", "a", "1", "{}", 2, out);
    ck_assert_str_eq(out, "v1,9gANenXI7azKMUSDjUP7zfn/2LL7b0dhDFZeVWclj6E=");
}

END_TEST

START_TEST(an_answer_says_whether_a_second_try_would_end_alike)
{
    static const struct {
        int http;
        weir_status status;
    } rows[] = {{200, WEIR_OK},
                {204, WEIR_OK},
                {302, WEIR_ERR_INVALID},
                {400, WEIR_ERR_INVALID},
                {404, WEIR_ERR_INVALID},
                {408, WEIR_ERR_UNAVAILABLE},
                {425, WEIR_ERR_UNAVAILABLE},
                {429, WEIR_ERR_UNAVAILABLE},
                {500, WEIR_ERR_UNAVAILABLE},
                {503, WEIR_ERR_UNAVAILABLE}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        f.status = rows[i].http;
        ck_assert_msg(post_to("/in", 20000) == rows[i].status, "%d", rows[i].http);
        ck_assert_int_eq(f.answer.http_status, rows[i].http);
        ck_assert_int_eq(f.answer.retry_ms, 7000);
        ck_assert_int_eq(f.n, (int)i + 1); /* no redirect is followed */
    }
    ck_assert_str_eq(
        f.body,
        "v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163 1700000000 {}");
}

END_TEST

START_TEST(an_error_does_not_say_where_the_message_went)
{
    f.status = 404;
    ck_assert_int_eq(post_to("/s3cret", 20000), WEIR_ERR_INVALID);
    ck_assert_ptr_null(strstr(f.err.message, "s3cret"));
    ck_assert_str_eq(f.answer.said, "/s3cret");
    ck_assert_int_eq(post_to("/big?s3cret", 20000), WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_null(strstr(f.err.message, "s3cret"));
    ck_assert_int_eq(post_to("/hang", 1), WEIR_ERR_TIMEOUT);
    ck_assert_ptr_null(strstr(f.err.message, "127.0.0.1"));
    weir_http_server_stop(f.server, 0);
    f.server = NULL;
    ck_assert_int_eq(post_to("/s3cret", 20000), WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_null(strstr(f.err.message, "127.0.0.1"));
    ck_assert_ptr_nonnull(strstr(f.answer.said, "127.0.0.1"));
}

END_TEST

static void *stop_when_it_hangs(void *unused)
{
    while (sem_wait(&f.entered) != 0) {
    }
    weir_poster_stop(f.poster);
    return unused;
}

START_TEST(a_stop_ends_the_post_in_progress_and_each_after_it)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_when_it_hangs, NULL), 0);
    ck_assert_int_eq(post_to("/hang", 50000), WEIR_ERR_CANCELLED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    int n = f.n;
    ck_assert_int_eq(post_to("/in", 50000), WEIR_ERR_CANCELLED);
    ck_assert_int_eq(f.n, n);
    ck_assert(weir_poster_is_stopped(f.poster));
}

END_TEST

WEIR_TEST_MAIN_WITH("post", set_up, tear_down, a_signature_is_hmac_sha256,
                    a_standard_signature_is_as_the_specification_has_it,
                    an_answer_says_whether_a_second_try_would_end_alike,
                    an_error_does_not_say_where_the_message_went,
                    a_stop_ends_the_post_in_progress_and_each_after_it)
