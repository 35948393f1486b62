#include "proxy/rules.h"

#include "proxy/proxy.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <string.h>

#define ID   "abcdefghijklmnopqrstuvwxyz"
#define PATH "/services/" ID "/"

static struct weir_arena arena;

/* A program that knows its path, one that does not, and one with a host of its own. */
static const struct proxy_place keeps = {ID, "weir.example:8441", PATH, PATH, true};
static const struct proxy_place strips = {ID, "weir.example:8441", PATH, "/", false};
static const struct proxy_place hosted = {ID, ID ".services.example", "/", "/", true};

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static void expect(const char *got, const char *wanted)
{
    ck_assert_msg((got == NULL && wanted == NULL) ||
                      (got != NULL && wanted != NULL && strcmp(got, wanted) == 0),
                  "got %s, expected %s", got != NULL ? got : "nothing",
                  wanted != NULL ? wanted : "nothing");
}

START_TEST(targets_are_mapped_to_what_the_program_knows)
{
    expect(rules_target(&keeps, PATH "lab?x=1%2F", &arena), PATH "lab?x=1%2F");
    expect(rules_target(&strips, PATH "lab?x=1%2F", &arena), "/lab?x=1%2F");
    expect(rules_target(&strips, PATH, &arena), "/");
    expect(rules_target(&hosted, "/a//b", &arena), "/a//b");
    expect(rules_target(&strips, "/services/other/x", &arena), NULL);
    expect(rules_target(&strips, PATH "a b", &arena), NULL);
    expect(rules_target(&strips, PATH "a\r\nX: y", &arena), NULL);
    expect(rules_target(&strips, PATH "a#b", &arena), NULL);
}

END_TEST

START_TEST(a_host_is_a_name_or_address_and_a_port)
{
    static const char *const good[] = {"a", "weir.example:8441", "127.0.0.1:80", "[::1]:8441"};
    static const char *const bad[] = {"",         "a/b", "a:b",   "user@a", "a b", "[::1",
                                      "a:123456", "a:",  "a\r\n", "a,b",    ":80", "[::1]x"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_msg(weir_proxy_is_host(good[i]), "%s", good[i]);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(!weir_proxy_is_host(bad[i]), "%s", bad[i]);
    }
}

END_TEST

static weir_status check(const struct proxy_place *place, struct rules_source source)
{
    struct weir_error err;
    source.has_cookie = true;
    return rules_check_source(place, &source, &err);
}

START_TEST(another_sites_page_may_only_link)
{
    /* A page of the place itself. */
    ck_assert_int_eq(check(&keeps, (struct rules_source){.method = "POST",
                                                         .origin = "https://weir.example:8441",
                                                         .site = "same-origin"}),
                     WEIR_OK);
    ck_assert_int_eq(check(&strips, (struct rules_source){.method = "DELETE",
                                                          .origin = "http://Weir.example:8441"}),
                     WEIR_OK);
    /* Somebody types the address, or follows a link. */
    ck_assert_int_eq(check(&keeps, (struct rules_source){.method = "GET", .site = "none"}),
                     WEIR_OK);
    ck_assert_int_eq(check(&keeps, (struct rules_source){.method = "GET",
                                                         .site = "cross-site",
                                                         .mode = "navigate",
                                                         .dest = "document"}),
                     WEIR_OK);
    /* Other pages: the console's port, another scheme, another service's host, a frame, an image. */
    static const struct rules_source bad[] = {
        {.method = "POST", .origin = "https://weir.example:8440", .site = "same-site"},
        {.method = "POST", .origin = "http://weir.example:8441"},
        {.method = "POST", .origin = "https://weir.example:8441.evil.example"},
        {.method = "POST", .origin = "null"},
        {.method = "GET", .origin = "https://evil.example", .site = "cross-site"},
        {.method = "GET", .site = "same-site", .mode = "no-cors", .dest = "script"},
        {.method = "GET", .site = "cross-site", .mode = "navigate", .dest = "iframe"},
        {.method = "POST", .site = "cross-site", .mode = "navigate", .dest = "document"},
        {.method = "POST"},
        {.method = "GET", .is_upgrade = true},
        {.method = "GET", .is_upgrade = true, .site = "same-origin"},
        {.method = "GET", .is_upgrade = true, .origin = "https://evil.example"},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(check(&keeps, bad[i]) == WEIR_ERR_DENIED, "case %zu was let in", i);
    }
    /* A program shows a token, and has no page. */
    struct weir_error err;
    ck_assert_int_eq(rules_check_source(&keeps, &(struct rules_source){.method = "POST"}, &err),
                     WEIR_OK);
}

END_TEST

START_TEST(weirs_own_headers_do_not_reach_the_program)
{
    static const char *const refused[] = {"Authorization",
                                          "authorization",
                                          "Cookie",
                                          "Host",
                                          "X-Forwarded-For",
                                          "x-forwarded-host",
                                          "Forwarded",
                                          "X-Weir-User",
                                          "X-Weir-Csrf",
                                          "Transfer-Encoding",
                                          "Content-Length",
                                          "Connection",
                                          "Upgrade",
                                          "TE",
                                          "Proxy-Authorization",
                                          "Expect",
                                          "X_Forwarded_For",
                                          "Content_Length",
                                          "Sec-WebSocket-Key",
                                          "X-Listed",
                                          "HTTP2-Settings"};
    static const char *const passed[] = {"Accept",  "Content-Type",  "X-XSRFToken",
                                         "Range",   "If-None-Match", "Origin",
                                         "Referer", "User-Agent"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused); i++) {
        ck_assert_msg(!rules_request_header(refused[i], "close, x-listed"), "%s", refused[i]);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passed); i++) {
        ck_assert_msg(rules_request_header(passed[i], "close, x-listed"), "%s", passed[i]);
    }
}

END_TEST

START_TEST(a_program_does_not_speak_for_the_host)
{
    static const char *const refused[] = {"Set-Cookie",
                                          "Strict-Transport-Security",
                                          "Clear-Site-Data",
                                          "Service-Worker-Allowed",
                                          "WWW-Authenticate",
                                          "Alt-Svc",
                                          "Access-Control-Allow-Origin",
                                          "NEL",
                                          "Transfer-Encoding",
                                          "Connection",
                                          "Content-Length",
                                          "X-Weir-User",
                                          "Keep-Alive",
                                          "X-Sendfile"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused); i++) {
        ck_assert_msg(!rules_response_header(refused[i], NULL), "%s", refused[i]);
    }
    ck_assert(rules_response_header("Content-Security-Policy", NULL));
    ck_assert(rules_response_header("Content-Encoding", NULL));
    ck_assert(!rules_response_header("X-Hop", "close, X-Hop"));
}

END_TEST

START_TEST(only_the_services_own_cookies_go_in)
{
    expect(rules_cookies_inward(&keeps,
                                "weir_session=s; weir-svc-" ID "-_xsrf=2|x=y; other=1; "
                                "weir_service_" ID "=l;weir-svc-" ID "-b=",
                                &arena),
           "_xsrf=2|x=y; b=");
    expect(rules_cookies_inward(&keeps, "weir_session=s", &arena), NULL);
    expect(rules_cookies_inward(&keeps, "weir-svc-" ID "-=x", &arena), NULL);
    expect(rules_cookies_inward(&keeps, "weir-svc-zbcdefghijklmnopqrstuvwxyz-a=x", &arena), NULL);
    expect(rules_cookies_inward(&keeps, "", &arena), NULL);
}

END_TEST

START_TEST(cookies_come_out_under_the_services_name_and_path)
{
    static const struct {
        const char *given, *keeps, *strips;
    } cases[] = {
        {"a=b", "weir-svc-" ID "-a=b; Path=" PATH "; Secure; SameSite=Lax",
         "weir-svc-" ID "-a=b; Path=" PATH "; SameSite=Lax"},
        {"weir_session=evil; Path=/; Domain=weir.example; HttpOnly",
         "weir-svc-" ID "-weir_session=evil; Path=" PATH "; HttpOnly; Secure; SameSite=Lax",
         "weir-svc-" ID "-weir_session=evil; Path=" PATH "; HttpOnly; SameSite=Lax"},
        {"a=b; path=/x; Max-Age=60; SameSite=None; Secure",
         "weir-svc-" ID "-a=b; Path=" PATH "; Max-Age=60; Secure; SameSite=Lax",
         "weir-svc-" ID "-a=b; Path=" PATH "x; Max-Age=60; SameSite=Lax"},
        {"a=b; Path=" PATH "lab; SameSite=Strict",
         "weir-svc-" ID "-a=b; Path=" PATH "lab; Secure; SameSite=Strict",
         "weir-svc-" ID "-a=b; Path=" PATH "lab; SameSite=Strict"},
        {"a=b; Path=/services/other/", "weir-svc-" ID "-a=b; Path=" PATH "; Secure; SameSite=Lax",
         "weir-svc-" ID "-a=b; Path=" PATH "services/other/; SameSite=Lax"},
        {"a=b; Path=" PATH "../x", "weir-svc-" ID "-a=b; Path=" PATH "; Secure; SameSite=Lax",
         "weir-svc-" ID "-a=b; Path=" PATH "; SameSite=Lax"},
        {"a=b; Max-Age=1\r\n; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
         "weir-svc-" ID "-a=b; Path=" PATH
         "; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; SameSite=Lax",
         "weir-svc-" ID "-a=b; Path=" PATH "; Expires=Thu, 01 Jan 1970 00:00:00 GMT; SameSite=Lax"},
        {"nothing", NULL, NULL},
        {"=x", NULL, NULL},
        {"a b=x", NULL, NULL},
        {"a=b\nc", NULL, NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        expect(rules_cookie_outward(&keeps, cases[i].given, &arena), cases[i].keeps);
        expect(rules_cookie_outward(&strips, cases[i].given, &arena), cases[i].strips);
    }
}

END_TEST

START_TEST(redirects_stay_in_the_place_or_leave_for_good)
{
    static const struct {
        const char *given, *keeps, *strips, *hosted;
    } cases[] = {
        {"/login", "/login", PATH "login", "/login"},
        {PATH "lab", PATH "lab", PATH "lab", PATH "lab"},
        {"lab?x", "lab?x", "lab?x", "lab?x"},
        {"http://weir.example:8441/x", "/x", PATH "x", "http://weir.example:8441/x"},
        {"https://weir.example:8441" PATH "x", PATH "x", PATH "x",
         "https://weir.example:8441" PATH "x"},
        {"https://elsewhere.example/x", "https://elsewhere.example/x",
         "https://elsewhere.example/x", "https://elsewhere.example/x"},
        {"https://weir.example:84410/x", "https://weir.example:84410/x",
         "https://weir.example:84410/x", "https://weir.example:84410/x"},
        {"/a\r\nSet-Cookie: x=y", NULL, NULL, NULL},
        {"/\\evil.example", NULL, NULL, NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        expect(rules_location_outward(&keeps, cases[i].given, &arena), cases[i].keeps);
        expect(rules_location_outward(&strips, cases[i].given, &arena), cases[i].strips);
        expect(rules_location_outward(&hosted, cases[i].given, &arena), cases[i].hosted);
    }
    ck_assert(rules_is_next(&keeps, PATH "lab?x=1"));
    ck_assert(!rules_is_next(&keeps, "https://evil.example/"));
    ck_assert(!rules_is_next(&hosted, "//evil.example/"));
    ck_assert(!rules_is_next(&hosted, "/\\evil.example/"));
    ck_assert(!rules_is_next(&keeps, "/services/other/"));
}

END_TEST

START_TEST(a_head_is_read_whole_or_not_at_all)
{
    static const char text[] =
        "HTTP/1.1 101 Switching\r\nUpgrade:  websocket \r\nEmpty:\r\n\r\nrest";
    struct rules_head head;
    size_t len;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        weir_status status = rules_read_head(text, n, &arena, &head, &len);
        ck_assert_int_eq(status, n < sizeof text - 5 ? WEIR_ERR_END : WEIR_OK);
    }
    ck_assert_int_eq(rules_read_head(text, sizeof text - 1, &arena, &head, &len), WEIR_OK);
    ck_assert_uint_eq(len, sizeof text - 5);
    ck_assert_int_eq(head.http_status, 101);
    expect(rules_head_value(&head, "upgrade"), "websocket");
    expect(rules_head_value(&head, "empty"), "");
    expect(rules_head_value(&head, "absent"), NULL);
    static const char *const bad[] = {"HTTP/2 200\r\n\r\n",
                                      "HTTP/1.1 99 x\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
                                      "GET / HTTP/1.1\r\n\r\n"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(rules_read_head(bad[i], strlen(bad[i]), &arena, &head, &len) ==
                          WEIR_ERR_CORRUPT,
                      "case %zu", i);
    }
}

END_TEST

START_TEST(a_websocket_key_is_16_bytes)
{
    ck_assert(rules_is_websocket_key("dGhlIHNhbXBsZSBub25jZQ=="));
    ck_assert(!rules_is_websocket_key("dGhlIHNhbXBsZSBub25jZQ="));
    ck_assert(!rules_is_websocket_key("dGhlIHNhbXBsZSBub25jZ==="));
    ck_assert(!rules_is_websocket_key("dGhlIHNhbXBsZSBub25j\r\n=="));
    ck_assert(!rules_is_websocket_key(NULL));
    ck_assert(rules_has_token("keep-alive, Upgrade", "upgrade"));
    ck_assert(!rules_has_token("upgraded", "upgrade"));
    ck_assert(!rules_has_token(NULL, "upgrade"));
}

END_TEST

int main(void)
{
    const TTest *tests[] = {targets_are_mapped_to_what_the_program_knows,
                            a_host_is_a_name_or_address_and_a_port,
                            another_sites_page_may_only_link,
                            weirs_own_headers_do_not_reach_the_program,
                            a_program_does_not_speak_for_the_host,
                            only_the_services_own_cookies_go_in,
                            cookies_come_out_under_the_services_name_and_path,
                            redirects_stay_in_the_place_or_leave_for_good,
                            a_head_is_read_whole_or_not_at_all,
                            a_websocket_key_is_16_bytes};
    return weir_test_run(
        weir_test_suite_with("rules", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
