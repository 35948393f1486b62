/* Services as people of two teams see them, and what the proxy is told of visitors. */
#include "api/caller_fixture.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "job/service.h"
#include "proxy/proxy.h"

#define HOST "Host: weir.example:8470\n"

static char ada[BEARER_BYTES], bob[BEARER_BYTES], eve[BEARER_BYTES];

static void member(const char *name, const char *project, char out[BEARER_BYTES])
{
    EXPECT(200, "POST " API "/users\n\n{\"name\":\"%s\",\"kind\":\"person\",\"role\":\"member\"}",
           name);
    EXPECT(200, "PUT " API "/projects/%s/members/user/%s\n\n{\"role\":\"ml-engineer\"}", project,
           name);
    EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"%s\",\"name\":\"t\",\"role\":\"ml-engineer\"}",
           name);
    (void)snprintf(out, BEARER_BYTES, "Bearer %s", said_text("secret"));
}

static void set_up(void)
{
    callers_open();
    weir_api_attach_services(callers.fixture.api, NULL, 8471);
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"red\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"blue\"}");
    member("ada", "red", ada);
    member("bob", "red", bob);
    member("eve", "blue", eve);
}

static void tear_down(void)
{
    callers_close();
}

static int as(const char *who, const char *line, const char *body)
{
    return ask_as(who, "%s\n" HOST "\n%s", line, body);
}

static char *made(const char *more)
{
    static char id[64];
    EXPECT_STATUS(200, ask_as(ada,
                              "POST " API "/services\n" HOST
                              "\n{\"name\":\"web\",\"spec\":{\"argv\":[\"/bin/x\"]}%s}",
                              more));
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    return id;
}

static const char *line(const char *method, const char *id, const char *rest)
{
    static char text[160];
    (void)snprintf(text, sizeof text, "%s " API "/services/%s%s", method, id, rest);
    return text;
}

START_TEST(a_service_is_its_owners_unless_it_is_shared)
{
    char *id = made("");
    ck_assert_str_eq(said_text("project"), "red");
    ck_assert_str_eq(said_text("state"), "STARTING");
    char url[128];
    (void)snprintf(url, sizeof url, "http://weir.example:8471/services/%s/", id);
    ck_assert_str_eq(said_text("url"), url);
    ck_assert(json_is_true(said("is_mine")));
    ck_assert_ptr_null(said("secret"));
    ck_assert_ptr_null(said("spec"));
    ck_assert_ptr_null(said("address"));
    EXPECT_STATUS(200, as(ada, line("POST", id, "/ticket"), ""));
    ck_assert_ptr_nonnull(strstr(said_text("url"), "/.weir/enter?ticket=weir_"));
    /* Of the same project: seen, not opened. */
    EXPECT_STATUS(200, as(bob, line("GET", id, ""), ""));
    ck_assert(!json_is_true(said("is_mine")));
    EXPECT_STATUS(403, as(bob, line("POST", id, "/ticket"), ""));
    EXPECT_STATUS(403, as(bob, line("DELETE", id, ""), ""));

    /* Of another one: not there at all. */
    static const struct {
        const char *method, *rest;
    } asked[] = {
        {"GET", ""}, {"DELETE", ""}, {"POST", "/start"}, {"POST", "/stop"}, {"POST", "/ticket"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(asked); i++) {
        EXPECT_STATUS(404, as(eve, line(asked[i].method, id, asked[i].rest), ""));
    }
    EXPECT_STATUS(200, as(eve, "GET " API "/services", ""));
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT_STATUS(200, as(ada, "GET " API "/services?name=web", ""));
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    /* An admin stops it, and does not look into it. */
    EXPECT(403, "POST " API "/services/%s/ticket\n" HOST "\n", id);
    EXPECT(200, "POST " API "/services/%s/stop\n" HOST "\n", id);
}

END_TEST

START_TEST(a_shared_one_is_open_to_its_project)
{
    char *id = made(",\"is_shared\":true");
    EXPECT_STATUS(200, as(bob, line("POST", id, "/ticket"), ""));
    EXPECT_STATUS(404, as(eve, line("POST", id, "/ticket"), ""));
    EXPECT_STATUS(409, as(bob, line("POST", id, "/start"), ""));
    EXPECT_STATUS(409, as(ada, line("DELETE", id, ""), ""));
}

END_TEST

START_TEST(a_server_without_a_listener_says_so)
{
    weir_api_attach_services(callers.fixture.api, NULL, 0);
    EXPECT_STATUS(501, as(ada, "POST " API "/services",
                          "{\"name\":\"web\",\"spec\":{\"argv\":[\"/bin/x\"]}}"));
}

END_TEST

/* ---- what the proxy asks ------------------------------------------------------------------------------ */

static weir_status visit(const char *id, const char *login, const char *bearer,
                         struct weir_proxy_service *out)
{
    static struct weir_arena arena;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    struct weir_proxy_shown shown = {login, bearer != NULL ? bearer + strlen("Bearer ") : NULL};
    weir_status status =
        weir_api_proxy_ops.find(callers.fixture.api, id, &shown, &arena, out, &err);
    static char user[32];
    (void)snprintf(user, sizeof user, "%s", status == WEIR_OK ? out->user : "");
    out->user = user;
    weir_arena_fini(&arena);
    return status;
}

START_TEST(a_visitor_is_asked_who_it_is_each_time)
{
    struct weir_proxy_service service;
    struct weir_arena arena;
    struct weir_error err;
    const char *login = NULL;
    char *id = made("");
    ck_assert_int_eq(visit(id, NULL, NULL, &service), WEIR_ERR_UNAUTH);
    ck_assert_int_eq(visit(id, NULL, eve, &service), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(visit(id, NULL, bob, &service), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(visit("bbcdefghijklmnopqrstuvwxyz", NULL, ada, &service), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(visit(id, NULL, ada, &service), WEIR_OK);
    ck_assert_str_eq(service.user, "ada");
    /* By a ticket: whose it was. */
    EXPECT_STATUS(200, as(ada, line("POST", id, "/ticket"), ""));
    char ticket[96];
    (void)snprintf(ticket, sizeof ticket, "%s", strstr(said_text("url"), "ticket=") + 7);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_api_proxy_ops.enter(callers.fixture.api, "bbcdefghijklmnopqrstuvwxyz",
                                              ticket, "", &arena, &login, &err),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(
        weir_api_proxy_ops.enter(callers.fixture.api, id, ticket, "", &arena, &login, &err),
        WEIR_OK);
    ck_assert_int_eq(visit(id, login, NULL, &service), WEIR_OK);
    ck_assert_str_eq(service.user, "ada");
    ck_assert_int_eq(visit(id, "weir_wrong", NULL, &service), WEIR_ERR_UNAUTH);
    ck_assert_int_eq(
        weir_api_proxy_ops.enter(callers.fixture.api, id, ticket, "", &arena, &login, &err),
        WEIR_ERR_UNAUTH);
    /* Who leaves the project is not let in any more. */
    EXPECT(204, "DELETE " API "/projects/red/members/user/ada");
    ck_assert_int_eq(visit(id, login, NULL, &service), WEIR_ERR_NOT_FOUND);
    weir_arena_fini(&arena);
}

END_TEST

/** A page's bytes do not end with a NUL. */
static bool body_has(const char *text)
{
    return memmem(callers.x->response.body, callers.x->response.body_len, text, strlen(text)) !=
           NULL;
}

START_TEST(the_consoles_side_sends_a_browser_on_or_asks_who_it_is)
{
    char *id = made("");
    static const char nonce[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    EXPECT(404, "GET /services/enter?service=x&nonce=%s\n" HOST "\n", nonce);
    EXPECT(404, "GET /services/enter?service=%s&nonce=x\n" HOST "\n", id);
    /* First it asks the browser to ask from here, then it shows the login. */
    EXPECT(200, "GET /services/enter?service=%s&nonce=%s&next=%%2Fx\n" HOST "\n", id, nonce);
    ck_assert_ptr_nonnull(strstr(said_header("Refresh"), "0;url=/services/enter?service="));
    ck_assert_ptr_nonnull(strstr(said_header("Refresh"), "&again=1"));
    EXPECT(401, "GET /services/enter?service=%s&nonce=%s&again=1\n" HOST "\n", id, nonce);
    ck_assert(body_has("<input type=hidden name=next value=\"/services/enter?service="));
    EXPECT(401, "GET /services/enter?service=%s&nonce=%s&again=1&next=\"><b>\n" HOST "\n", id,
           nonce);
    ck_assert(!body_has("<b>"));
}

END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_service_is_its_owners_unless_it_is_shared, a_shared_one_is_open_to_its_project,
        a_server_without_a_listener_says_so, a_visitor_is_asked_who_it_is_each_time,
        the_consoles_side_sends_a_browser_on_or_asks_who_it_is};
    return weir_test_run(
        weir_test_suite_with("service routes", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
