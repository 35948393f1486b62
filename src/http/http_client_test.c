#include "http/test_support.h"

#include "base/clock.h"
#include "base/file.h"
#include "http/http_client.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

struct fixture {
    struct weir_http_server *server;
    struct weir_http_client *client;
    char dir[64];
    char url[128];
    sem_t entered;
};

static struct fixture f;

/* Says what arrived; "/big/N" sends N bytes; "/hang" waits. */
static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    const char *what = request->n_segments > 0 ? request->segments[0] : "";
    const char *token = weir_http_request_header(request, "Authorization");
    if (strcmp(what, "big") == 0) {
        size_t n = (size_t)strtoul(request->segments[1], NULL, 10);
        weir_http_response_bytes(response, 200, "application/octet-stream",
                                 weir_arena_alloc(request->arena, n), n);
    } else if (strcmp(what, "hang") == 0) {
        if (!request->is_expired) {
            weir_http_response_wait(response, 1, 60000);
            sem_post(&f.entered);
        } else {
            weir_http_response_empty(response);
        }
    } else if (strcmp(what, "missing") == 0) {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "there is no such thing");
    } else {
        char digest[WEIR_SHA256_TEXT_BYTES];
        weir_sha256(request->body, request->body_len, digest);
        const char *type = weir_http_request_header(request, "Content-Type");
        weir_http_response_header(response, "X-Weir-Offset", "42");
        weir_http_response_json(
            response, 200,
            json_pack("{s:s, s:s?, s:I, s:s, s:s?, s:s?}", "method", request->method, "token",
                      token, "bytes", (json_int_t)request->body_len, "sha256", digest, "type", type,
                      "extra", weir_http_request_header(request, "X-Extra")));
    }
}

static void start_with(const struct weir_http_config *config, const char *ca_file)
{
    struct weir_error err = {0};
    f.server = serve(config, handle, NULL);
    (void)snprintf(f.url, sizeof f.url, "%s://127.0.0.1:%d",
                   config->tls_cert_file != NULL ? "https" : "http",
                   weir_http_server_port(f.server));
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){.ca_file = ca_file},
                                           &f.client, &err),
                     WEIR_OK);
}

static void start(void)
{
    memset(&f, 0, sizeof f);
    sem_init(&f.entered, 0, 0);
    strncpy(f.dir, "/tmp/weir-client-XXXXXX", sizeof f.dir - 1);
    ck_assert_ptr_nonnull(mkdtemp(f.dir));
    start_with(&(struct weir_http_config){.n_handlers = 2, .max_body_bytes = 8 << 20}, NULL);
}

static void stop(void)
{
    weir_http_client_close(f.client);
    weir_http_server_stop(f.server, 1000);
    ck_assert_int_eq(weir_dir_remove(f.dir, NULL), WEIR_OK);
}

static weir_status call(struct weir_http_call *wanted, const char *path,
                        struct weir_http_reply *reply, struct weir_error *err)
{
    char url[256];
    (void)snprintf(url, sizeof url, "%s%s", f.url, path);
    wanted->url = url;
    wanted->method = wanted->method != NULL ? wanted->method : "GET";
    wanted->timeout_ms = wanted->timeout_ms != 0 ? wanted->timeout_ms : 15000;
    weir_status status = weir_http_client_call(f.client, wanted, reply, err);
    wanted->url = NULL;
    return status;
}

static json_t *reply_json(struct weir_http_reply *reply)
{
    json_t *value = json_loadb(reply->body.data, reply->body.len, 0, NULL);
    ck_assert_ptr_nonnull(value);
    weir_http_reply_fini(reply);
    return value;
}

static const char *text_of(const json_t *value, const char *key)
{
    return json_string_value(json_object_get(value, key));
}

static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

START_TEST(method_token_headers_and_body_arrive)
{
    struct weir_http_reply reply;
    struct weir_error err = {0};
    const char *const headers[] = {"X-Extra: more"};
    struct weir_http_call wanted = {.method = methods[_i],
                                    .bearer = "weir_secret",
                                    .headers = headers,
                                    .n_headers = 1,
                                    .content_type = "application/json",
                                    .body = "{\"a\":1}",
                                    .body_len = 7};
    ck_assert_msg(call(&wanted, "/", &reply, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(reply.http_status, 200);
    char offset[8];
    ck_assert(weir_http_reply_header(&reply, "x-weir-offset", offset, sizeof offset));
    ck_assert_str_eq(offset, "42");
    ck_assert(!weir_http_reply_header(&reply, "x-weir", offset, sizeof offset));
    json_t *value = reply_json(&reply);
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_sha256("{\"a\":1}", 7, digest);
    ck_assert_str_eq(text_of(value, "method"), methods[_i]);
    ck_assert_str_eq(text_of(value, "token"), "Bearer weir_secret");
    ck_assert_str_eq(text_of(value, "sha256"), digest);
    ck_assert_str_eq(text_of(value, "type"), "application/json");
    ck_assert_str_eq(text_of(value, "extra"), "more");
    json_decref(value);
}

END_TEST

START_TEST(a_file_is_sent_from_its_offset)
{
    char path[128];
    char *bytes = malloc(3 << 20);
    for (size_t i = 0; i < 3 << 20; i++) {
        bytes[i] = (char)(i * 2654435761u >> 11);
    }
    (void)snprintf(path, sizeof path, "%s/body", f.dir);
    ck_assert_int_eq(weir_file_write_atomic(path, bytes, 3 << 20, 0600, NULL), WEIR_OK);
    struct weir_http_reply reply;
    struct weir_http_call wanted = {.method = "PUT", .body_file = path, .body_offset = 1000};
    ck_assert_int_eq(call(&wanted, "/", &reply, NULL), WEIR_OK);
    json_t *value = reply_json(&reply);
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(bytes + 1000, (3 << 20) - 1000, digest);
    ck_assert_str_eq(text_of(value, "sha256"), digest);
    json_decref(value);
    free(bytes);
    wanted.body_file = "/nowhere/at/all";
    ck_assert_int_eq(call(&wanted, "/", &reply, NULL), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(an_answer_goes_to_a_descriptor_and_an_error_does_not)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/out", f.dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct weir_http_reply reply;
    struct weir_http_call wanted = {.out_fd = fd};
    ck_assert_int_eq(call(&wanted, "/missing", &reply, NULL), WEIR_OK);
    ck_assert_int_eq(reply.http_status, 404);
    ck_assert_ptr_nonnull(strstr(reply.body.data, "there is no such thing"));
    weir_http_reply_fini(&reply);
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), 0);
    ck_assert_int_eq(call(&wanted, "/big/3000000", &reply, NULL), WEIR_OK);
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), 3000000);
    ck_assert_uint_eq(reply.n_body_bytes, 3000000);
    ck_assert_uint_eq(reply.body.len, 0);
    weir_http_reply_fini(&reply);
    close(fd);
}

END_TEST

START_TEST(an_answer_over_the_maximum_is_a_limit_error)
{
    struct weir_http_reply reply;
    struct weir_error err;
    struct weir_http_call wanted = {.max_reply_bytes = 1000};
    ck_assert_int_eq(call(&wanted, "/big/1000", &reply, &err), WEIR_OK);
    weir_http_reply_fini(&reply);
    ck_assert_int_eq(call(&wanted, "/big/1001", &reply, &err), WEIR_ERR_LIMIT);
    ck_assert_int_eq(call(&wanted, "/big/10", &reply, &err), WEIR_OK); /* usable after */
    weir_http_reply_fini(&reply);
}

END_TEST

START_TEST(a_call_without_answer_times_out)
{
    struct weir_http_reply reply;
    struct weir_http_call wanted = {.timeout_ms = 200};
    int64_t begin_ms = weir_mono_ms();
    ck_assert_int_eq(call(&wanted, "/hang", &reply, NULL), WEIR_ERR_TIMEOUT);
    ck_assert_int_ge(weir_mono_ms() - begin_ms, 190);
}

END_TEST

static void *cancel(void *context)
{
    (void)context;
    sem_wait(&f.entered);
    weir_http_client_cancel(f.client);
    return NULL;
}

START_TEST(a_call_is_cancelled_from_another_thread_at_once)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel, NULL), 0);
    struct weir_http_reply reply;
    int64_t begin_ms = weir_mono_ms();
    ck_assert_int_eq(call(&(struct weir_http_call){0}, "/hang", &reply, NULL), WEIR_ERR_CANCELLED);
    ck_assert_int_lt(weir_mono_ms() - begin_ms, 5000);
    pthread_join(thread, NULL);
    ck_assert_int_eq(call(&(struct weir_http_call){0}, "/", &reply, NULL), WEIR_OK);
    weir_http_reply_fini(&reply);
    weir_http_client_cancel(f.client); /* nothing in progress: the next one */
    ck_assert_int_eq(call(&(struct weir_http_call){0}, "/", &reply, NULL), WEIR_ERR_CANCELLED);
}

END_TEST

START_TEST(nobody_listening_says_how_to_start_the_server)
{
    struct weir_http_reply reply;
    struct weir_error err;
    weir_http_server_stop(f.server, 0);
    f.server = NULL;
    ck_assert_int_eq(call(&(struct weir_http_call){0}, "/", &reply, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "weir server"));
}

END_TEST

static const char *const bad_urls[] = {"", "nothing", "ftp://x/", "file:///etc/passwd",
                                       "http://[::1"};

START_TEST(a_url_that_is_none_is_refused)
{
    struct weir_http_reply reply;
    struct weir_error err = {0};
    struct weir_http_call wanted = {.method = "GET", .url = bad_urls[_i], .timeout_ms = 5000};
    weir_status status = weir_http_client_call(f.client, &wanted, &reply, &err);
    ck_assert_msg(status == WEIR_ERR_INVALID || status == WEIR_ERR_UNAVAILABLE, "%s: %s",
                  bad_urls[_i], err.message);
    wanted.url = f.url;
    const char *const injected[] = {"X-A: b\r\nX-Evil: c"};
    wanted.headers = injected;
    wanted.n_headers = 1;
    ck_assert_int_eq(weir_http_client_call(f.client, &wanted, &reply, &err), WEIR_ERR_INVALID);
}

END_TEST

static bool make_certificate(const char *cert, const char *key)
{
    char *const argv[] = {"openssl",
                          "req",
                          "-x509",
                          "-newkey",
                          "ec",
                          "-pkeyopt",
                          "ec_paramgen_curve:P-256",
                          "-nodes",
                          "-days",
                          "2",
                          "-subj",
                          "/CN=weir-test",
                          "-addext",
                          "subjectAltName=IP:127.0.0.1",
                          "-keyout",
                          (char *)key,
                          "-out",
                          (char *)cert,
                          NULL};
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int status = -1;
    int rc = posix_spawnp(&pid, "openssl", &quiet, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&quiet);
    return rc == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

START_TEST(tls_is_verified_against_the_given_authority)
{
    char cert[128];
    char key[128];
    (void)snprintf(cert, sizeof cert, "%s/cert.pem", f.dir);
    (void)snprintf(key, sizeof key, "%s/key.pem", f.dir);
    if (!make_certificate(cert, key)) {
        printf("no openssl command: TLS is not tested\n");
        return;
    }
    weir_http_client_close(f.client);
    weir_http_server_stop(f.server, 0);
    start_with(&(struct weir_http_config){.tls_cert_file = cert, .tls_key_file = key}, cert);
    struct weir_http_reply reply;
    struct weir_error err = {0};
    weir_status status = call(&(struct weir_http_call){0}, "/", &reply, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    weir_http_reply_fini(&reply);
    weir_http_client_close(f.client); /* the same server, seen with the system's authorities */
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &f.client, NULL),
                     WEIR_OK);
    ck_assert_int_eq(call(&(struct weir_http_call){0}, "/", &reply, &err), WEIR_ERR_DENIED);
    ck_assert_ptr_nonnull(strstr(err.message, "--ca-file"));

    weir_http_client_close(f.client);
    weir_http_server_stop(f.server, 1000); /* its descriptors close when they like: none left */
    f.client = NULL;
    f.server = NULL;
    struct weir_http_server *none;
    int before = count_open_files();
    struct weir_http_config broken = {
        .listen = "127.0.0.1:0", .tls_cert_file = key, .tls_key_file = cert};
    ck_assert_int_eq(weir_http_server_start(&broken, handle, NULL, &none, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(count_open_files(), before);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("http client");
    TCase *tcase = tcase_create("client");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_loop_test(tcase, method_token_headers_and_body_arrive, 0, WEIR_ARRAY_LEN(methods));
    tcase_add_test(tcase, a_file_is_sent_from_its_offset);
    tcase_add_test(tcase, an_answer_goes_to_a_descriptor_and_an_error_does_not);
    tcase_add_test(tcase, an_answer_over_the_maximum_is_a_limit_error);
    tcase_add_test(tcase, a_call_without_answer_times_out);
    tcase_add_test(tcase, a_call_is_cancelled_from_another_thread_at_once);
    tcase_add_test(tcase, nobody_listening_says_how_to_start_the_server);
    tcase_add_loop_test(tcase, a_url_that_is_none_is_refused, 0, WEIR_ARRAY_LEN(bad_urls));
    tcase_add_test(tcase, tls_is_verified_against_the_given_authority);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
