#include "client/client.h"

#include "base/clock.h"
#include "base/file.h"
#include "http/test_support.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct fixture {
    struct weir_http_server *server;
    struct weir_client *client;
    char dir[64];
    char url[64];
    atomic_int n_calls, n_failures, n_puts;
    sem_t entered;
};

static struct fixture f;

static void handle_blob(struct weir_http_request *request, struct weir_http_response *response)
{
    char *path = weir_arena_printf(request->arena, "%s/blob-%s", f.dir, request->segments[3]);
    if (strcmp(request->method, "PUT") == 0) {
        f.n_puts++;
        ck_assert_int_eq(rename(request->body_file, path), 0);
        weir_http_response_empty(response);
    } else {
        weir_http_response_file(response, 200, "application/octet-stream", path);
    }
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    f.n_calls++;
    const char *what = request->n_segments > 0 ? request->segments[0] : "";
    const char *token = weir_http_request_header(request, "Authorization");
    if (strcmp(what, "fail") == 0) {
        weir_http_response_errorf(response, weir_status_from_name(request->segments[1]),
                                  "project vision: 6 GPUs requested, 4 guaranteed, 0 borrowable");
    } else if (strcmp(what, "html") == 0) {
        weir_http_response_text(response, (int)strtol(request->segments[1], NULL, 10), "text/html",
                                "<html>");
    } else if (strcmp(what, "shaky") == 0 && f.n_failures-- > 0) {
        weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "busy");
    } else if (strcmp(what, "hang") == 0 && !request->is_expired) {
        weir_http_response_wait(response, 1, 60000);
        sem_post(&f.entered);
    } else if (strcmp(what, "log") == 0) {
        weir_http_response_text(response, 200, "text/plain", "step 1\n");
        weir_http_response_header(response, "X-Weir-Offset", "1007");
    } else if (request->n_segments == 4 && strcmp(request->segments[2], "blobs") == 0) {
        handle_blob(request, response);
    } else if (strcmp(what, "empty") == 0) {
        weir_http_response_empty(response);
    } else {
        weir_http_response_json(response, 200,
                                json_pack("{s:s, s:s?, s:s, s:s}", "method", request->method,
                                          "token", token, "body", request->body, "path",
                                          request->path));
    }
}

static void rule(void *context, const struct weir_http_request *request,
                 struct weir_http_body_rule *out)
{
    (void)context;
    out->max_bytes = 64 << 20;
    out->to_file = request->n_segments == 4;
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", f.dir, name);
    ck_assert_int_eq(weir_file_write_atomic(path, text, strlen(text), 0600, NULL), WEIR_OK);
}

static void open_client(const struct weir_client_config *config)
{
    struct weir_error err = {0};
    weir_client_close(f.client);
    f.client = NULL;
    weir_status status = weir_client_open(config, &f.client, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

static void start(void)
{
    memset(&f, 0, sizeof f);
    sem_init(&f.entered, 0, 0);
    strncpy(f.dir, "/tmp/weir-client-XXXXXX", sizeof f.dir - 1);
    ck_assert_ptr_nonnull(mkdtemp(f.dir));
    f.server =
        serve(&(struct weir_http_config){.n_handlers = 2, .body_rule = rule, .upload_dir = f.dir},
              handle, NULL);
    (void)snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", weir_http_server_port(f.server));
    open_client(&(struct weir_client_config){.server = f.url, .token = "weir_t"});
}

static void stop(void)
{
    weir_client_close(f.client);
    weir_http_server_stop(f.server, 1000);
    ck_assert_int_eq(weir_dir_remove(f.dir, NULL), WEIR_OK);
}

static void expect_text(const json_t *value, const char *key, const char *wanted)
{
    ck_assert_str_eq(json_string_value(json_object_get(value, key)), wanted);
}

START_TEST(a_call_sends_json_with_the_token_and_gets_json)
{
    json_t *body = json_pack("{s:i}", "x", 1);
    json_t *answer;
    ck_assert_int_eq(weir_client_call(f.client, "POST", "/a%2Fb?c=d", body, &answer, NULL),
                     WEIR_OK);
    expect_text(answer, "method", "POST");
    expect_text(answer, "token", "Bearer weir_t");
    expect_text(answer, "body", "{\"x\":1}");
    expect_text(answer, "path", "/a%2Fb");
    json_decref(answer);
    json_decref(body);
    ck_assert_int_eq(weir_client_call(f.client, "DELETE", "/empty", NULL, &answer, NULL), WEIR_OK);
    ck_assert(json_is_null(answer));
}

END_TEST

static const char *const statuses[] = {
#define X(name, text, http, exit, retry) #name,
#include "base/status.def"
#undef X
};

START_TEST(every_error_of_the_server_comes_back_as_it_was)
{
    if (weir_status_http(-_i) == 200) {
        return;
    }
    char path[64];
    (void)snprintf(path, sizeof path, "/fail/%s", statuses[_i]);
    struct weir_error err;
    json_t *answer = NULL;
    ck_assert_int_eq(weir_client_call(f.client, "GET", path, NULL, &answer, &err), -_i);
    ck_assert_int_eq(err.status, -_i);
    ck_assert_str_eq(err.message, "project vision: 6 GPUs requested, 4 guaranteed, 0 borrowable");
    ck_assert_ptr_null(answer);
}

END_TEST

START_TEST(a_raw_call_gives_status_and_body_to_who_wants_them)
{
    json_t *answer = NULL;
    int http_status = 0;
    ck_assert_int_eq(weir_client_call_raw(f.client, "GET", "/fail/NOT_FOUND", NULL, NULL, 0,
                                          &http_status, &answer, NULL),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(http_status, 404);
    ck_assert(json_is_object(json_object_get(answer, "error")));
    json_decref(answer);
    ck_assert_int_eq(
        weir_client_call_raw(f.client, "GET", "/fail/NOT_FOUND", NULL, NULL, 0, NULL, NULL, NULL),
        WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(
        weir_client_call_raw(f.client, "GET", "/html/502", NULL, NULL, 0, NULL, &answer, NULL),
        WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_null(answer);
}

END_TEST

START_TEST(an_answer_of_a_stranger_is_told_from_ours)
{
    struct weir_error err;
    json_t *answer;
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/html/200", NULL, &answer, &err),
                     WEIR_ERR_CORRUPT);
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/html/502", NULL, &answer, &err),
                     WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "502"));
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/html/404", NULL, &answer, &err),
                     WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(server_and_token_are_found_in_the_state_folder)
{
    char text[128];
    (void)snprintf(text, sizeof text, "{\"url\":\"%s/\",\"pid\":1,\"version\":\"0\"}", f.url);
    write_file("server.json", text);
    json_t *answer;
    open_client(&(struct weir_client_config){.state_dir = f.dir});
    ck_assert_str_eq(weir_client_server(f.client), f.url);
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/", NULL, &answer, NULL), WEIR_OK);
    ck_assert(json_is_null(json_object_get(answer, "token")));
    json_decref(answer);
    write_file("admin.token", "weir_admin\n");
    open_client(&(struct weir_client_config){.state_dir = f.dir});
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/", NULL, &answer, NULL), WEIR_OK);
    expect_text(answer, "token", "Bearer weir_admin");
    json_decref(answer);
    /* A server that was named by hand does not get this machine's admin token. */
    open_client(&(struct weir_client_config){.state_dir = f.dir, .server = f.url});
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/", NULL, &answer, NULL), WEIR_OK);
    ck_assert(json_is_null(json_object_get(answer, "token")));
    json_decref(answer);
}

END_TEST

START_TEST(without_a_server_the_error_says_how_to_get_one)
{
    struct weir_client *none = NULL;
    struct weir_error err;
    ck_assert_int_eq(
        weir_client_open(&(struct weir_client_config){.state_dir = f.dir}, &none, &err),
        WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "weir server"));
    ck_assert_int_eq(
        weir_client_open(&(struct weir_client_config){.server = "host:80"}, &none, &err),
        WEIR_ERR_INVALID);
    ck_assert_ptr_null(none);
}

END_TEST

START_TEST(a_retried_call_survives_a_busy_server)
{
    f.n_failures = 3;
    json_t *answer;
    ck_assert_int_eq(weir_client_call_retry(f.client, "PUT", "/shaky", NULL, 20000, &answer, NULL),
                     WEIR_OK);
    json_decref(answer);
    ck_assert_int_eq(f.n_calls, 4);
    f.n_failures = 1000;
    int64_t begin_ms = weir_mono_ms();
    ck_assert_int_eq(weir_client_call_retry(f.client, "PUT", "/shaky", NULL, 500, NULL, NULL),
                     WEIR_ERR_UNAVAILABLE);
    ck_assert_int_lt(weir_mono_ms() - begin_ms, 3000);
    f.n_calls = 0;
    ck_assert_int_eq(
        weir_client_call_retry(f.client, "PUT", "/fail/INVALID", NULL, 20000, NULL, NULL),
        WEIR_ERR_INVALID);
    ck_assert_int_eq(f.n_calls, 1);
}

END_TEST

START_TEST(a_blob_is_put_once_and_comes_back_verified)
{
    char file[128];
    char copy[128];
    char digest[WEIR_SHA256_TEXT_BYTES];
    char again[WEIR_SHA256_TEXT_BYTES];
    write_file("model", "weights");
    (void)snprintf(file, sizeof file, "%s/model", f.dir);
    (void)snprintf(copy, sizeof copy, "%s/copy", f.dir);
    ck_assert_int_eq(weir_client_blob_put(f.client, file, digest, NULL), WEIR_OK);
    /* From `printf weights | sha256sum`. */
    ck_assert_str_eq(digest, "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c");
    ck_assert_int_eq(weir_client_blob_put(f.client, file, again, NULL), WEIR_OK);
    ck_assert_int_eq(f.n_puts, 1);
    ck_assert_int_eq(weir_client_blob_get(f.client, digest, copy, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_sha256(copy, again, &(uint64_t){0}, NULL), WEIR_OK);
    ck_assert_str_eq(again, digest);

    char name[128];
    (void)snprintf(name, sizeof name, "blob-%s", digest);
    write_file(name, "damaged");
    (void)unlink(copy);
    ck_assert_int_eq(weir_client_blob_get(f.client, digest, copy, NULL), WEIR_ERR_CORRUPT);
    ck_assert(!weir_path_exists(copy));
}

END_TEST

START_TEST(a_file_that_is_no_model_is_not_sent_as_one)
{
    char file[128], digest[WEIR_SHA256_TEXT_BYTES];
    struct weir_error err;
    write_file("model", "weights");
    (void)snprintf(file, sizeof file, "%s/model", f.dir);
    ck_assert_int_eq(weir_client_model_put(f.client, file, digest, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "neither a model that Weir trained"));
    ck_assert_int_eq(f.n_puts, 0);
    write_file("model", "\x08\x07\x12\x01x");
    ck_assert_int_eq(weir_client_model_put(f.client, file, digest, &err), WEIR_OK);
    ck_assert_int_eq(f.n_puts, 1);
    (void)snprintf(file, sizeof file, "%s/nothing", f.dir);
    ck_assert_int_ne(weir_client_model_put(f.client, file, digest, &err), WEIR_OK);
}

END_TEST

START_TEST(bytes_come_with_their_next_offset)
{
    struct weir_buf out;
    int64_t offset;
    weir_buf_init(&out, 1000);
    ck_assert_int_eq(weir_client_get_bytes(f.client, "/log", &out, &offset, NULL), WEIR_OK);
    ck_assert_str_eq(out.data, "step 1\n");
    ck_assert_int_eq(offset, 1007);
    weir_buf_fini(&out);
}

END_TEST

static void *cancel(void *context)
{
    (void)context;
    sem_wait(&f.entered);
    weir_client_cancel(f.client);
    return NULL;
}

START_TEST(a_call_is_cancelled_and_the_client_can_be_used_again)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel, NULL), 0);
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/hang", NULL, NULL, NULL),
                     WEIR_ERR_CANCELLED);
    pthread_join(thread, NULL);
    ck_assert_int_eq(weir_client_call(f.client, "GET", "/", NULL, NULL, NULL), WEIR_OK);
}

END_TEST

START_TEST(paths_are_made_of_encoded_parts)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *const parts[] = {"a/b", "ü", ".."};
    ck_assert_str_eq(weir_client_path(&arena, "/x/{}/y/{}?z={}", parts, 3),
                     "/x/a%2Fb/y/%C3%BC?z=..");
    weir_arena_fini(&arena);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("client");
    TCase *tcase = tcase_create("client");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, a_call_sends_json_with_the_token_and_gets_json);
    tcase_add_loop_test(tcase, every_error_of_the_server_comes_back_as_it_was, 0,
                        WEIR_STATUS_COUNT);
    tcase_add_test(tcase, a_raw_call_gives_status_and_body_to_who_wants_them);
    tcase_add_test(tcase, an_answer_of_a_stranger_is_told_from_ours);
    tcase_add_test(tcase, server_and_token_are_found_in_the_state_folder);
    tcase_add_test(tcase, without_a_server_the_error_says_how_to_get_one);
    tcase_add_test(tcase, a_retried_call_survives_a_busy_server);
    tcase_add_test(tcase, a_blob_is_put_once_and_comes_back_verified);
    tcase_add_test(tcase, a_file_that_is_no_model_is_not_sent_as_one);
    tcase_add_test(tcase, bytes_come_with_their_next_offset);
    tcase_add_test(tcase, a_call_is_cancelled_and_the_client_can_be_used_again);
    tcase_add_test(tcase, paths_are_made_of_encoded_parts);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
