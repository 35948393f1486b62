/* Which addresses are the console for a browser, and what programs and people without a session get there. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define BROWSER                                                                                    \
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

/** Every first part of a screen's address: tests/system/api_test.py asks for those of web/src. */
static const char *const screens[] = {
    "alerts", "audit",  "datasets", "deployments", "events", "experiments",
    "home",   "ions",   "jobs",     "models",      "nodes",  "notebooks",
    "people", "queues", "runs",     "storage",     "sweeps", "usage",
};

static char cookie[128];

static void log_in(void)
{
    EXPECT(200, "POST " API "/session/link");
    const char *link = strstr(said_text("url"), "?link=");
    ck_assert_ptr_nonnull(link);
    EXPECT_STATUS(303, ask_as("", "POST /login\n\n%s", link + 1));
    const char *value = said_header("Set-Cookie");
    (void)snprintf(cookie, sizeof cookie, "%.*s", (int)strcspn(value, ";"), value);
}

/** Ask with a session and this Accept; NULL: without the header. */
static int open_as(const char *accept, const char *method, const char *path)
{
    return accept != NULL
               ? ask_as("", "%s %s\nCookie: %s\nAccept: %s\n", method, path, cookie, accept)
               : ask_as("", "%s %s\nCookie: %s\n", method, path, cookie);
}

static bool is_page(void)
{
    const char *type = said_header("Content-Type");
    const struct weir_http_response *response = &callers.x->response;
    return type != NULL && strncmp(type, "text/html", 9) == 0 &&
           memmem(response->body, response->body_len, "id=\"app\"", 8) != NULL;
}

START_TEST(a_screen_without_its_project_is_the_console_for_a_browser)
{
    char path[64];
    log_in();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(screens); i++) {
        static const char *const more[] = {"", "/one", "/one/two?q=a%20b", "?tab=x"};
        for (size_t k = 0; k < WEIR_ARRAY_LEN(more); k++) {
            (void)snprintf(path, sizeof path, "/%s%s", screens[i], more[k]);
            EXPECT_STATUS(200, open_as(BROWSER, "GET", path));
            ck_assert_msg(is_page(), "%s is not the page", path);
            ck_assert_str_eq(said_header("Vary"), "Accept, Accept-Encoding");
        }
    }
    EXPECT_STATUS(200, open_as(BROWSER, "GET", "/p"));
    EXPECT_STATUS(200, open_as(BROWSER, "HEAD", "/runs"));
}

END_TEST

/* The page names its files by their bytes, so that a browser may keep them; without that it asks again. */
START_TEST(a_file_that_the_page_names_by_its_bytes_is_kept)
{
    static const char *const names[] = {"/app.js?v=", "/app.css?v="};
    char path[64];
    log_in();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        EXPECT_STATUS(200, open_as(BROWSER, "GET", "/"));
        ck_assert_str_eq(said_header("Cache-Control"), "private, no-cache");
        const struct weir_http_response *response = &callers.x->response;
        const char *at = memmem(response->body, response->body_len, names[i], strlen(names[i]));
        ck_assert_msg(at != NULL, "the page does not name %s…", names[i]);
        (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\""), at);
        EXPECT_STATUS(200, open_as(NULL, "GET", path));
        ck_assert_str_eq(said_header("Cache-Control"), "private, max-age=31536000, immutable");
    }
    EXPECT_STATUS(200, open_as(NULL, "GET", "/plot.js"));
    ck_assert_str_eq(said_header("Cache-Control"), "private, no-cache");
}

END_TEST

START_TEST(programs_are_told_as_ever_that_there_is_no_such_thing)
{
    static const char *const programs[] = {NULL,
                                           "*/*",
                                           "application/json",
                                           "application/json, text/html;q=0.9",
                                           "text/html;q=0",
                                           "text/htmlx",
                                           "text/*"};
    char path[64];
    log_in();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(screens); i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(programs); k++) {
            (void)snprintf(path, sizeof path, "/%s", screens[i]);
            EXPECT_STATUS(404, open_as(programs[k], "GET", path));
            ck_assert_str_eq(said_text("error.status"), "NOT_FOUND");
        }
    }
    EXPECT_STATUS(404, open_as("*/*", "GET", "/p"));
    EXPECT_STATUS(404, open_as(BROWSER, "POST", "/runs"));
}

END_TEST

START_TEST(what_is_no_screen_is_no_page_for_a_browser_either)
{
    static const char *const others[] = {"/run",      "/runsx",   "/x/runs", "/api/v1/run",
                                         "/api/runs", "/app.map", "//runs",  "/settings"};
    log_in();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        EXPECT_STATUS(404, open_as(BROWSER, "GET", others[i]));
        ck_assert_str_eq(said_text("error.status"), "NOT_FOUND");
    }
    EXPECT_STATUS(200, open_as(BROWSER, "GET", API "/runs"));
    ck_assert_ptr_nonnull(said("items"));
    EXPECT_STATUS(200, open_as(BROWSER, "GET", "/health"));
    ck_assert_str_eq(said_text("status"), "ok");
}

END_TEST

START_TEST(who_has_no_session_logs_in_and_goes_on_there)
{
    static const char *const ways[][2] = {
        {"/runs", "/login?next=%2Fruns"},
        {"/jobs?q=kind:a%20b", "/login?next=%2Fjobs%3Fq%3Dkind%3Aa%2520b"},
        {"/p/-/jobs/7", "/login?next=%2Fp%2F-%2Fjobs%2F7"},
        {"/", "/login"},
    };
    static char path[2048];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ways); i++) {
        EXPECT_STATUS(303, ask_as("", "GET %s\nAccept: " BROWSER "\n", ways[i][0]));
        ck_assert_str_eq(said_header("Location"), ways[i][1]);
    }
    EXPECT_STATUS(404, ask_as("", "GET /runs\nAccept: */*\n"));
    (void)snprintf(path, sizeof path, "/runs?%01200d", 0);
    EXPECT_STATUS(303, ask_as("", "GET %s\nAccept: " BROWSER "\n", path));
    ck_assert_str_eq(said_header("Location"), "/login");
}

END_TEST

static bool body_has(const char *text)
{
    const struct weir_http_response *response = &callers.x->response;
    return memmem(response->body, response->body_len, text, strlen(text)) != NULL;
}

START_TEST(the_login_page_leads_to_screens_of_this_server_only)
{
    static const char *const elsewhere[] = {"https:%2F%2Fevil.test%2Fruns",
                                            "%2F%2Fevil.test%2Fruns",
                                            "%2F%5Cevil.test",
                                            "evil",
                                            "%2Frunsx",
                                            "%2Fruns%22%3E%3Cb%3E",
                                            "%2Fapi%2Fv1%2Fruns"};
    EXPECT_STATUS(401, ask_as("", "GET /login?next=%%2Fjobs%%3Fq%%3Da%%26b"));
    ck_assert(body_has("<input type=hidden name=next value=\"/jobs?q=a&amp;b\">"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(elsewhere); i++) {
        EXPECT_STATUS(401, ask_as("", "GET /login?next=%s", elsewhere[i]));
        ck_assert_msg(!body_has("name=next"), "%s", elsewhere[i]);
    }
    EXPECT(204, "PUT " API "/users/ann/password\n\n{\"password\":\"correct horse battery\"}");
    EXPECT_STATUS(303, ask_as("", "POST /login/password\n\nuser=ann&password=correct+horse+battery"
                                  "&next=%%2Fjobs%%3Fq%%3Da%%2520b"));
    ck_assert_str_eq(said_header("Location"), "/jobs?q=a%20b");
    EXPECT_STATUS(303, ask_as("", "POST /login/password\n\nuser=ann&password=correct+horse+battery"
                                  "&next=%%2F%%2Fevil.test"));
    ck_assert_str_eq(said_header("Location"), "/");
}

END_TEST

WEIR_TEST_MAIN_WITH("page", callers_open, callers_close,
                    a_screen_without_its_project_is_the_console_for_a_browser,
                    a_file_that_the_page_names_by_its_bytes_is_kept,
                    programs_are_told_as_ever_that_there_is_no_such_thing,
                    what_is_no_screen_is_no_page_for_a_browser_either,
                    who_has_no_session_logs_in_and_goes_on_there,
                    the_login_page_leads_to_screens_of_this_server_only)
