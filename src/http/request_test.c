#include "http/test_support.h"

/* Answers with what it understood of the request, as JSON. */
static void echo(void *context, struct weir_http_request *request,
                 struct weir_http_response *response)
{
    (void)context;
    json_t *segments = json_array();
    for (size_t i = 0; i < request->n_segments; i++) {
        json_array_append_new(segments, json_string(request->segments[i]));
    }
    json_t *body =
        json_pack("{s:s, s:s, s:o, s:s?, s:s?, s:s?, s:s?, s:s}", "method", request->method, "path",
                  request->path, "segments", segments, "a", weir_http_request_query(request, "a"),
                  "flag", weir_http_request_query(request, "flag"), "header",
                  weir_http_request_header(request, "x-tEsT"), "cookie",
                  weir_http_request_cookie(request, "session"), "body", request->body);
    weir_http_response_json(response, 200, body);
}

static struct weir_http_server *server;

static void start(void)
{
    server = serve(&(struct weir_http_config){0}, echo, NULL);
}

static void stop(void)
{
    weir_http_server_stop(server, 1000);
}

static json_t *ask(const char *target, const char *headers)
{
    char request[2048];
    char answer[8192];
    (void)snprintf(request, sizeof request,
                   "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", target, headers);
    exchange_text(server, request, answer, sizeof answer);
    const char *body = strstr(answer, "\r\n\r\n");
    ck_assert_msg(strncmp(answer, "HTTP/1.1 200", 12) == 0, "%s", answer);
    ck_assert_ptr_nonnull(body);
    json_t *value = json_loads(body + 4, 0, NULL);
    ck_assert_ptr_nonnull(value);
    return value;
}

static const char *text_of(const json_t *value, const char *key)
{
    return json_string_value(json_object_get(value, key));
}

START_TEST(path_parts_are_decoded_after_splitting)
{
    json_t *value = ask("/api//v1/jobs/a%2Fb%20c/?a=1", "");
    char *segments = json_dumps(json_object_get(value, "segments"), JSON_COMPACT);
    ck_assert_str_eq(segments, "[\"api\",\"v1\",\"jobs\",\"a/b c\"]");
    ck_assert_str_eq(text_of(value, "path"), "/api//v1/jobs/a%2Fb%20c/");
    free(segments);
    json_decref(value);
}

END_TEST

START_TEST(query_values_are_decoded_and_the_first_wins)
{
    json_t *value = ask("/?a=x%26y+z%3D&a=second&flag&=n&%61=third", "");
    ck_assert_str_eq(text_of(value, "a"), "x&y z=");
    ck_assert_str_eq(text_of(value, "flag"), "");
    json_decref(value);
}

END_TEST

START_TEST(headers_and_cookies_are_found)
{
    json_t *value = ask("/", "X-Test: seven\r\nCookie: a=b; sessions=no; session=yes=1; c=d\r\n");
    ck_assert_str_eq(text_of(value, "header"), "seven");
    ck_assert_str_eq(text_of(value, "cookie"), "yes=1");
    json_decref(value);
    /* The same twice is one; two that differ are none: one of them may be somebody else's. */
    value = ask("/", "Cookie: session=a; b=c\r\nCookie: session=a\r\n");
    ck_assert_str_eq(text_of(value, "cookie"), "a");
    json_decref(value);
    value = ask("/", "Cookie: session=evil; session=mine\r\n");
    ck_assert(json_is_null(json_object_get(value, "cookie")));
    json_decref(value);
}

END_TEST

START_TEST(absent_values_are_null)
{
    json_t *value = ask("/", "Cookie: session\r\n");
    ck_assert(json_is_null(json_object_get(value, "a")));
    ck_assert(json_is_null(json_object_get(value, "header")));
    ck_assert(json_is_null(json_object_get(value, "cookie")));
    json_decref(value);
}

END_TEST

static const char *const bad_targets[] = {"/%",      "/%0",       "/%zz",      "/a%00b",
                                          "/a/../b", "/%2e%2E/x", "/x?a=%4",   "/x?%=1",
                                          "/a/%ff",  "/a\xc3(",   "/?a=%c3%28"};

START_TEST(malformed_targets_are_refused)
{
    char request[256];
    char answer[4096];
    (void)snprintf(request, sizeof request,
                   "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", bad_targets[_i]);
    exchange_text(server, request, answer, sizeof answer);
    ck_assert_msg(strncmp(answer, "HTTP/1.1 400", 12) == 0, "%s: %s", bad_targets[_i], answer);
    ck_assert_ptr_nonnull(strstr(answer, "{\"error\":{\"status\":\"INVALID\""));
}

END_TEST

START_TEST(encoding_and_decoding_are_inverse_for_all_bytes)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char all[256];
    for (int i = 1; i < 256; i++) {
        all[i - 1] = (char)i;
    }
    all[255] = '\0';
    char *encoded = weir_http_percent_encode(&arena, all);
    for (const char *c = encoded; *c != '\0'; c++) {
        ck_assert_ptr_nonnull(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789-._~%",
                                     *c));
    }
    ck_assert_str_eq(weir_http_percent_decode(&arena, encoded, strlen(encoded), false), all);
    ck_assert_str_eq(weir_http_percent_encode(&arena, "a/b ü"), "a%2Fb%20%C3%BC");
    weir_arena_fini(&arena);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("http request");
    TCase *tcase = tcase_create("request");
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, path_parts_are_decoded_after_splitting);
    tcase_add_test(tcase, query_values_are_decoded_and_the_first_wins);
    tcase_add_test(tcase, headers_and_cookies_are_found);
    tcase_add_test(tcase, absent_values_are_null);
    tcase_add_loop_test(tcase, malformed_targets_are_refused, 0, WEIR_ARRAY_LEN(bad_targets));
    tcase_add_test(tcase, encoding_and_decoding_are_inverse_for_all_bytes);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
