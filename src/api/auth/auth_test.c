/* Tokens, browser sessions and login links: how long they are good, and for what. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define MINUTE_MS ((int64_t)60 * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

/** A request from a browser: its cookie, and the CSRF value if it is shown. */
struct browser {
    char cookie[128], csrf[64];
};

static int browse(const struct browser *browser, const char *first_line, const char *body)
{
    return ask_as("", "%s\nCookie: other=1; weir_session=%s\nX-Weir-Csrf: %s\n\n%s", first_line,
                  browser->cookie, browser->csrf, body);
}

/** A login link of who shows this; its secret. */
static void make_link(const char *authorization, char out[128])
{
    EXPECT_STATUS(200, ask_as(authorization, "POST " API "/session/link"));
    const char *mark = strstr(said_text("url"), "/login?link=");
    ck_assert_ptr_nonnull(mark);
    (void)snprintf(out, 128, "%s", mark + strlen("/login?link="));
    ck_assert_int_eq(json_integer_value(said("expires_s")), 15 * 60);
}

static int log_in(const char *link)
{
    return ask_as("", "POST /login\n\nlink=%s", link);
}

/** Log in with a link made with this token. */
static void open_session(const char *authorization, struct browser *out)
{
    char link[128];
    make_link(authorization, link);
    EXPECT_STATUS(303, log_in(link));
    ck_assert_str_eq(said_header("Location"), "/");
    const char *cookie = said_header("Set-Cookie");
    ck_assert_ptr_nonnull(strstr(cookie, "; HttpOnly; SameSite=Strict"));
    ck_assert_ptr_nonnull(strstr(cookie, "; Max-Age=43200;"));
    *out = (struct browser){0};
    (void)snprintf(out->cookie, sizeof out->cookie, "%.*s",
                   (int)strcspn(cookie + strlen("weir_session="), ";"),
                   cookie + strlen("weir_session="));
    EXPECT_STATUS(200, browse(out, "GET " API "/session", ""));
    (void)snprintf(out->csrf, sizeof out->csrf, "%s", said_text("csrf"));
    ck_assert_int_gt((int)strlen(out->csrf), 40);
}

START_TEST(a_token_is_good_until_it_expires)
{
    char bearer[BEARER_BYTES], expires[WEIR_TIME_TEXT_BYTES];
    callers.now_ms = 1000 * HOUR_MS;
    weir_time_format(callers.now_ms + HOUR_MS, expires);
    EXPECT(200,
           "POST " API "/tokens\n\n{\"user\":\"ann\",\"name\":\"t\",\"role\":\"viewer\","
           "\"expires_ms\":\"%s\"}",
           expires);
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", said_text("secret"));
    callers.now_ms += HOUR_MS - 1;
    EXPECT_STATUS(200, ask_as(bearer, "GET " API "/session"));
    ck_assert_str_eq(said_text("user"), "ann");
    ck_assert_str_eq(said_text("role"), "viewer"); /* the lesser of the token's and the user's */
    ck_assert(json_is_null(said("csrf")));
    callers.now_ms += 1;
    EXPECT_STATUS(401, ask_as(bearer, "GET " API "/session"));
}

END_TEST

START_TEST(who_has_the_lesser_role_loses_at_once)
{
    char bearer[BEARER_BYTES];
    make_caller("sam", "ml-engineer", "", bearer);
    EXPECT_STATUS(200, ask_as(bearer, "POST " API "/datasets\n\n{\"name\":\"one\"}"));
    EXPECT(200, "PATCH " API "/users/sam\n\n{\"role\":\"viewer\"}");
    EXPECT_STATUS(403, ask_as(bearer, "POST " API "/datasets\n\n{\"name\":\"two\"}"));
    EXPECT_STATUS(200, ask_as(bearer, "GET " API "/datasets"));
    EXPECT(200, "PATCH " API "/users/sam\n\n{\"is_disabled\":true}");
    EXPECT_STATUS(401, ask_as(bearer, "GET " API "/datasets"));
    EXPECT(200, "PATCH " API "/users/sam\n\n{\"is_disabled\":false}");
    EXPECT_STATUS(200, ask_as(bearer, "GET " API "/datasets"));
}

END_TEST

START_TEST(a_revoked_token_opens_nothing)
{
    char bearer[BEARER_BYTES], id[64];
    make_caller("vic", "viewer", "", bearer);
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    EXPECT_STATUS(200, ask_as(bearer, "GET " API "/session"));
    EXPECT(204, "DELETE " API "/tokens/%s", id);
    EXPECT_STATUS(401, ask_as(bearer, "GET " API "/session"));
    EXPECT(404, "DELETE " API "/tokens/%s", id);
}

END_TEST

START_TEST(secrets_are_shown_once)
{
    EXPECT(200, "POST " API "/tokens\n\n{\"name\":\"t\"}");
    ck_assert_int_eq((int)strlen(said_text("secret")), WEIR_SECRET_BYTES - 1);
    ck_assert_str_eq(said_text("role"), "viewer"); /* unless another is asked for */
    ck_assert_str_eq(said_text("user"), "ann");
    ck_assert_ptr_null(said("secret_hash"));
    EXPECT(200, "GET " API "/tokens");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_ptr_null(said("items.0.secret"));
    ck_assert_ptr_null(said("items.0.secret_hash"));
}

END_TEST

START_TEST(a_login_link_is_good_once_and_looking_does_not_use_it)
{
    char link[128];
    make_link(NULL, link);
    for (int i = 0; i < 2; i++) {
        EXPECT_STATUS(200, ask_as("", "GET /login?link=%s", link));
        ck_assert_ptr_nonnull(strstr(callers.x->response.body, "Log in as ann"));
        ck_assert_ptr_nonnull(strstr(said_header("Content-Security-Policy"), "form-action 'self'"));
    }
    EXPECT_STATUS(303, log_in(link));
    EXPECT_STATUS(401, log_in(link));
    ck_assert_ptr_null(said_header("Set-Cookie"));
    EXPECT_STATUS(401, ask_as("", "GET /login?link=%s", link));
    EXPECT_STATUS(401, ask_as("", "GET /login"));
    EXPECT_STATUS(400, ask_as("", "POST /login\n\nno=form"));
    EXPECT_STATUS(400, ask_as("", "POST /login\n\nlink=%%zz"));
    EXPECT_STATUS(401, ask_as("", "POST /login\n\nlink=weir_wrong"));
}

END_TEST

START_TEST(a_login_link_is_good_for_15_minutes)
{
    char link[128];
    callers.now_ms = 1000 * HOUR_MS;
    make_link(NULL, link);
    callers.now_ms += 15 * MINUTE_MS;
    EXPECT_STATUS(401, log_in(link));
    make_link(NULL, link);
    callers.now_ms += 15 * MINUTE_MS - 1;
    EXPECT_STATUS(303, log_in(link));
}

END_TEST

START_TEST(another_sites_page_cannot_log_in)
{
    char link[128];
    make_link(NULL, link);
    EXPECT_STATUS(403, ask_as("", "POST /login\nSec-Fetch-Site: cross-site\n\nlink=%s", link));
    EXPECT_STATUS(403,
                  ask_as("", "POST /login\nOrigin: http://evil\nHost: here:1\n\nlink=%s", link));
    EXPECT_STATUS(403, ask_as("", "POST /login\nOrigin: null\nHost: here:1\n\nlink=%s", link));
    EXPECT_STATUS(303,
                  ask_as("", "POST /login\nOrigin: http://here:1\nHost: here:1\n\nlink=%s", link));
}

END_TEST

START_TEST(a_change_from_a_session_shows_its_csrf_value)
{
    struct browser ann, other;
    open_session(NULL, &ann);
    open_session(NULL, &other);
    struct browser mixed = ann;
    memcpy(mixed.csrf, other.csrf, sizeof mixed.csrf);
    struct browser none = ann;
    none.csrf[0] = '\0';
    static const char *const changes[] = {"POST " API "/projects", "DELETE " API "/tokens/x",
                                          "PATCH " API "/users/x", "PUT " API "/retention"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(changes); i++) {
        EXPECT_STATUS(403, browse(&none, changes[i], "{}"));
        ck_assert_ptr_nonnull(strstr(said_text("error.message"), "X-Weir-Csrf"));
        EXPECT_STATUS(403, browse(&mixed, changes[i], "{}"));
    }
    EXPECT_STATUS(200, browse(&none, "GET " API "/projects", ""));
    EXPECT_STATUS(200, browse(&ann, "POST " API "/projects", "{\"name\":\"lab\"}"));
}

END_TEST

START_TEST(a_session_lasts_12_hours_and_never_longer_than_its_token)
{
    struct browser browser;
    char bearer[BEARER_BYTES], id[64];
    callers.now_ms = 1000 * HOUR_MS;
    open_session(NULL, &browser);
    callers.now_ms += 12 * HOUR_MS - 1;
    EXPECT_STATUS(200, browse(&browser, "GET " API "/session", ""));
    callers.now_ms += 1;
    EXPECT_STATUS(401, browse(&browser, "GET " API "/session", ""));
    make_caller("vic", "viewer", "", bearer);
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    open_session(bearer, &browser);
    ck_assert_str_eq(said_text("role"), "viewer");
    EXPECT(204, "DELETE " API "/tokens/%s", id);
    EXPECT_STATUS(401, browse(&browser, "GET " API "/session", ""));
}

END_TEST

START_TEST(who_logs_out_is_out)
{
    struct browser browser;
    open_session(NULL, &browser);
    EXPECT_STATUS(204, browse(&browser, "DELETE " API "/session", ""));
    ck_assert_ptr_nonnull(strstr(said_header("Set-Cookie"), "Max-Age=0"));
    EXPECT_STATUS(401, browse(&browser, "GET " API "/session", ""));
}

END_TEST

START_TEST(sessions_are_seen_and_ended_by_who_may_no_less)
{
    struct browser vic, ann;
    char bearer[BEARER_BYTES], ann_id[64] = "", vic_id[64] = "";
    make_caller("vic", "viewer", "", bearer);
    open_session(bearer, &vic);
    open_session(NULL, &ann);
    EXPECT(200, "GET " API "/sessions");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    for (size_t i = 0; i < 2; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "items.%zu.user", i);
        bool is_ann = strcmp(said_text(path), "ann") == 0;
        (void)snprintf(path, sizeof path, "items.%zu.id", i);
        (void)snprintf(is_ann ? ann_id : vic_id, sizeof ann_id, "%s", said_text(path));
    }
    EXPECT_STATUS(200, ask_as(bearer, "GET " API "/sessions"));
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.user"), "vic");
    EXPECT_STATUS(404, ask_as(bearer, "DELETE " API "/sessions/%s", ann_id));
    EXPECT(204, "DELETE " API "/sessions/%s", vic_id);
    EXPECT_STATUS(401, browse(&vic, "GET " API "/session", ""));
    EXPECT_STATUS(200, browse(&ann, "GET " API "/session", ""));
}

END_TEST

START_TEST(the_page_is_for_who_is_logged_in)
{
    struct browser browser;
    static const char *const pages[] = {"/",           "/app.js",       "/plot.js",     "/dagre.js",
                                        "/alerts.js",  "/cameras.js",   "/clusters.js", "/enrol.js",
                                        "/passage.js", "/snapshots.js", "/app.css"};
    open_session(NULL, &browser);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(pages); i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "GET %s", pages[i]);
        EXPECT_STATUS(200, browse(&browser, line, ""));
        EXPECT_STATUS(303, ask_as("", "%s", line));
        ck_assert_str_eq(said_header("Location"), "/login");
    }
    EXPECT_STATUS(404, browse(&browser, "GET /app.map", ""));
}

END_TEST

START_TEST(the_last_admin_stays)
{
    char eve[BEARER_BYTES];
    EXPECT_ERROR(409, "admin", "PATCH " API "/users/ann\n\n{\"is_disabled\":true}");
    EXPECT_ERROR(409, "admin", "PATCH " API "/users/ann\n\n{\"role\":\"viewer\"}");
    EXPECT_ERROR(409, "admin", "DELETE " API "/users/ann");
    make_caller("eve", "admin", "", eve);
    EXPECT(200, "PATCH " API "/users/ann\n\n{\"role\":\"viewer\"}");
    EXPECT_STATUS(200, ask_as(eve, "PATCH " API "/users/ann\n\n{\"role\":\"admin\"}"));
}

END_TEST

START_TEST(a_user_who_is_named_is_not_deleted)
{
    char sam[BEARER_BYTES];
    EXPECT(200, "POST " API "/users\n\n{\"name\":\"tim\",\"kind\":\"person\",\"role\":\"viewer\"}");
    EXPECT(204, "DELETE " API "/users/tim");
    EXPECT(404, "DELETE " API "/users/tim");
    make_caller("sam", "ml-engineer", "", sam);
    EXPECT_ERROR(409, "named by tokens (1)", "DELETE " API "/users/sam");
    EXPECT_STATUS(200, ask_as(sam, "POST " API "/datasets\n\n{\"name\":\"d\"}"));
    EXPECT(200, "GET " API "/tokens?user=sam");
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("items.0.id"));
    EXPECT(204, "DELETE " API "/tokens/%s", id);
    EXPECT_ERROR(409, "named by datasets (1)", "DELETE " API "/users/sam");
}

END_TEST

START_TEST(users_and_tokens_of_wrong_form_are_refused)
{
    EXPECT_ERROR(400, "$.role: worker",
                 "POST " API "/users\n\n{\"name\":\"w\",\"kind\":\"person\","
                 "\"role\":\"worker\"}");
    EXPECT_ERROR(400, "boss",
                 "POST " API "/users\n\n{\"name\":\"w\",\"kind\":\"person\","
                 "\"role\":\"boss\"}");
    EXPECT_ERROR(400, "$.name",
                 "POST " API "/users\n\n{\"name\":\"Big Boss\","
                 "\"kind\":\"person\",\"role\":\"viewer\"}");
    EXPECT(409, "POST " API "/users\n\n{\"name\":\"ann\",\"kind\":\"person\",\"role\":\"viewer\"}");
    EXPECT_ERROR(400, "$.role: worker",
                 "POST " API "/tokens\n\n{\"name\":\"t\","
                 "\"role\":\"worker\"}");
    EXPECT_ERROR(400, "$.node", "POST " API "/tokens\n\n{\"name\":\"t\",\"role\":\"agent\"}");
    EXPECT_ERROR(400, "$.node",
                 "POST " API "/tokens\n\n{\"name\":\"t\",\"role\":\"viewer\","
                 "\"node\":\"n\"}");
    EXPECT_ERROR(400, "$.secret", "POST " API "/tokens\n\n{\"name\":\"t\",\"secret\":\"mine\"}");
}

END_TEST

/* The address, and who was refused what, are for admins who ask for them. */
START_TEST(refusals_and_logins_are_in_the_audit)
{
    char vic[BEARER_BYTES];
    struct browser browser;
    make_caller("vic", "viewer", "", vic);
    EXPECT_STATUS(403, ask_as(vic, "GET " API "/node-joins"));
    open_session(vic, &browser);
    EXPECT(200, "GET " API "/events?topic=audit&kind=access_refused");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.actor"), "vic");
    ck_assert_str_eq(said_text("items.0.data.address"), "127.0.0.1");
    EXPECT(200, "GET " API "/events?topic=audit&kind=session_begun");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT_STATUS(403, ask_as(vic, "GET " API "/events?topic=audit"));
    EXPECT(200, "GET " API "/events");
    for (size_t i = 0; i < json_array_size(said("items")); i++) {
        const json_t *event = json_array_get(said("items"), i);
        ck_assert_str_ne(json_string_value(json_object_get(event, "topic")), "audit");
    }
}

END_TEST

START_TEST(the_list_of_roles_says_what_each_caller_is_told_of_themselves)
{
    EXPECT(200, "GET " API "/roles");
    size_t n = json_array_size(said("items"));
    ck_assert_uint_eq(n, 7);
    json_t *items = json_deep_copy(said("items"));
    for (size_t i = 0; i < n; i++) {
        const json_t *role = json_array_get(items, i);
        const char *name = json_string_value(json_object_get(role, "name"));
        if (strcmp(name, "admin") == 0) {
            EXPECT(200, "GET " API "/session");
            ck_assert(json_equal(said("rights"), json_object_get(role, "rights")));
        }
        ck_assert(json_is_true(json_object_get(role, "is_of_projects")) ==
                  (json_array_size(json_object_get(role, "project_rights")) > 0));
    }
    json_decref(items);
}

END_TEST

START_TEST(an_attempts_token_ends_with_the_attempt)
{
    char bearer[BEARER_BYTES], other[BEARER_BYTES];
    static const char job[] = "00000000-0000-4000-8000-0000000000b1";
    static const char task[] = "00000000-0000-4000-8000-0000000000a1";
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    place_job(&(struct placed_job){.id = job, .task = task, .kind = "command", .node = "n"});
    task_bearer(task, bearer);
    task_bearer("00000000-0000-4000-8000-0000000000a2", other);
    EXPECT_STATUS(200, ask_as(bearer, "GET " API "/session"));
    ck_assert_str_eq(said_text("role"), "worker");
    EXPECT_STATUS(401, ask_as(other, "GET " API "/session"));
    EXPECT(204,
           "PUT " API "/tasks/%s/status\n\n{\"attempt\":1,\"state\":\"exited\","
           "\"exit_code\":0}",
           task);
    EXPECT_STATUS(401, ask_as(bearer, "GET " API "/session"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "has ended"));
}

END_TEST

WEIR_TEST_MAIN_WITH("auth", callers_open, callers_close, a_token_is_good_until_it_expires,
                    who_has_the_lesser_role_loses_at_once, a_revoked_token_opens_nothing,
                    secrets_are_shown_once, a_login_link_is_good_once_and_looking_does_not_use_it,
                    a_login_link_is_good_for_15_minutes, another_sites_page_cannot_log_in,
                    a_change_from_a_session_shows_its_csrf_value,
                    a_session_lasts_12_hours_and_never_longer_than_its_token, who_logs_out_is_out,
                    sessions_are_seen_and_ended_by_who_may_no_less,
                    the_page_is_for_who_is_logged_in, the_last_admin_stays,
                    a_user_who_is_named_is_not_deleted, users_and_tokens_of_wrong_form_are_refused,
                    refusals_and_logins_are_in_the_audit,
                    the_list_of_roles_says_what_each_caller_is_told_of_themselves,
                    an_attempts_token_ends_with_the_attempt)
