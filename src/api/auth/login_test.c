/* Ways to log in: what their pages say, what the audit says of them, and what nobody learns from a refusal. */
#include "api/caller_fixture.h"
#include "identity/identity.h"

#include "base/base64.h"
#include "base/test_main.h"
#include "store/password.h"

#include <sodium.h>
#include <time.h>

#define MEMBER "{\"name\":\"%s\",\"kind\":\"person\",\"role\":\"%s\"}"

static char cheap_hash[crypto_pwhash_STRBYTES];

static weir_status set_hash_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_user user = {.name = context, .password_hash = cheap_hash};
    return weir_txn_update(txn, &weir_user_resource, &user, WEIR_FIELDS("password_hash"), err);
}

/** A person of this role, with "right-password". */
static void make_person(const char *name, const char *role)
{
    struct weir_error err;
    EXPECT(200, "POST " API "/users\n\n" MEMBER, name, role);
    must(weir_store_write(callers.fixture.store, set_hash_in, (void *)name, &err), &err);
}

static void set_up(void)
{
    callers_open();
    ck_assert_int_ge(sodium_init(), 0);
    ck_assert_int_eq(crypto_pwhash_str(cheap_hash, "right-password", 14, crypto_pwhash_OPSLIMIT_MIN,
                                       crypto_pwhash_MEMLIMIT_MIN),
                     0);
    make_person("amy", "viewer");
}

static int by_json(const char *user, const char *password)
{
    return ask_as("", "POST " API "/password-login\n\n{\"user\":\"%s\",\"password\":\"%s\"}", user,
                  password);
}

static int by_form(const char *user, const char *password)
{
    return ask_as("", "POST /login/password\n\nuser=%s&password=%s", user, password);
}

static int by_basic(const char *user, const char *password)
{
    char pair[128], basic[256] = "Basic ";
    int len = snprintf(pair, sizeof pair, "%s:%s", user, password);
    (void)weir_base64_encode(pair, (size_t)len, basic + strlen(basic));
    return ask_as(basic, "GET /api/2.0/mlflow/experiments/search?max_results=1");
}

typedef int (*way_fn)(const char *user, const char *password);
static const way_fn ways[] = {by_json, by_form, by_basic};

/** A browser: its session's cookie and CSRF value. */
struct browser {
    char cookie[128], csrf[64];
};

static int browse(const struct browser *browser, const char *first_line, const char *body)
{
    return ask_as("", "%s\nCookie: weir_session=%s\nX-Weir-Csrf: %s\n\n%s", first_line,
                  browser->cookie, browser->csrf, body);
}

/** The session that the last answer began. */
static void keep_session(struct browser *out)
{
    const char *cookie = said_header("Set-Cookie");
    ck_assert_ptr_nonnull(cookie);
    ck_assert_ptr_nonnull(strstr(cookie, "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"));
    *out = (struct browser){0};
    cookie += strlen("weir_session=");
    (void)snprintf(out->cookie, sizeof out->cookie, "%.*s", (int)strcspn(cookie, ";"), cookie);
    EXPECT_STATUS(200, browse(out, "GET " API "/session", ""));
    (void)snprintf(out->csrf, sizeof out->csrf, "%s", said_text("csrf"));
}

static void make_link(char out[128])
{
    EXPECT(200, "POST " API "/session/link");
    (void)snprintf(out, 128, "%s", strstr(said_text("url"), "?link=") + strlen("?link="));
}

static void check_body(const char *expected)
{
    const struct weir_http_response *response = &callers.x->response;
    ck_assert_msg(response->body_len == strlen(expected) &&
                      memcmp(response->body, expected, response->body_len) == 0,
                  "%.*s", (int)response->body_len, response->body);
}

#define HEAD                                                                                       \
    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "                        \
    "content=\"width=device-width\"><meta name=color-scheme content=\"light dark\"><title>Weir: "  \
    "log in</title><body style=\"font:16px "                                                       \
    "system-ui;max-width:34rem;margin:4rem auto;padding:0 1rem\"><h1>Log in to Weir</h1>"
#define FIELD                                                                                      \
    "style=\"font:inherit;display:block;box-sizing:border-box;width:100%;padding:.5rem;"           \
    "margin:.2rem 0 1rem\""
#define FORM                                                                                       \
    "<form method=post action=\"/login/password\"><label>Name<input name=user required "           \
    "autocomplete=username " FIELD "></label><label>Password<input name=password type=password "   \
    "required autocomplete=current-password " FIELD                                                \
    "></label><button id=log-in-with-password style=\"font:inherit;padding:.6rem 1.2rem\">Log "    \
    "in</button></form>"
#define HINT "<p>Or get a one-time link on the server's machine with</p><pre>weir login</pre>"

START_TEST(the_login_page_is_as_it_was)
{
    char link[128], page[2048];
    EXPECT_STATUS(401, ask_as("", "GET /login"));
    check_body(HEAD "<p>With your name and password:</p>" FORM HINT);
    /* Else the form's origin is "null" where the address is no localhost and not https. */
    ck_assert_str_eq(said_header("Referrer-Policy"), "same-origin");
    ck_assert_str_eq(said_header("Content-Security-Policy"),
                     "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                     "frame-ancestors 'none'; base-uri 'none'");
    EXPECT_STATUS(401, by_form("amy", "wrong-password"));
    check_body(HEAD "<p>Name and password do not fit.</p>" FORM HINT);
    EXPECT_STATUS(401, ask_as("", "GET /login?link=weir_none"));
    check_body(HEAD "<p>This link was used before or is too old.</p>" FORM HINT);
    EXPECT_STATUS(401, ask_as("", "POST /login\n\nlink=weir_none"));
    check_body(HEAD "<p>This link was used before or is too old.</p>" FORM HINT);
    make_link(link);
    EXPECT_STATUS(200, ask_as("", "GET /login?link=%s", link));
    (void)snprintf(page, sizeof page,
                   HEAD "<form method=post action=\"/login\"><input type=hidden name=link "
                        "value=\"%s\"><p>This link is good once.</p><button id=log-in autofocus "
                        "style=\"font:inherit;padding:.6rem 1.2rem\">Log in as ann</button></form>",
                   link);
    check_body(page);
}

END_TEST

/* Somebody who is not there, may not log in, or has no password is as one whose password is another. */
START_TEST(a_refusal_does_not_tell_who_is_there)
{
    static const char *const nobodies[] = {"nobody", "off", "bare"};
    static char first[4096];
    make_person("off", "viewer");
    EXPECT(200, "PATCH " API "/users/off\n\n{\"is_disabled\":true}");
    EXPECT(200, "POST " API "/users\n\n" MEMBER, "bare", "viewer");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ways); i++) {
        callers.fixture.remote = "10.0.0.1";
        EXPECT_STATUS(401, ways[i]("amy", "wrong-password"));
        size_t len = callers.x->response.body_len;
        ck_assert_uint_lt(len, sizeof first);
        memcpy(first, callers.x->response.body, len);
        for (size_t k = i; k <= (i == 0 ? 2 : i); k++) { /* each takes as long as a password */
            EXPECT_STATUS(401, ways[i](nobodies[k], "right-password"));
            ck_assert_msg(callers.x->response.body_len == len &&
                              memcmp(first, callers.x->response.body, len) == 0,
                          "way %zu tells of %s: %.*s", i, nobodies[k],
                          (int)callers.x->response.body_len, callers.x->response.body);
            ck_assert_ptr_null(said_header("Set-Cookie"));
        }
        callers.now_ms = weir_time_ms() + (int64_t)(i + 1) * 2 * 3600 * 1000;
    }
}

END_TEST

static int64_t cpu_ns(void)
{
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* By the time of the processor, of which a neighbour takes nothing. */
START_TEST(a_refusal_of_nobody_costs_a_password)
{
    struct weir_error err;
    int64_t begun = 0, one = 0;
    for (int i = 0; i < 2; i++) { /* the first makes the hash that nobody has */
        begun = cpu_ns();
        ck_assert_int_eq(weir_password_check("wrong-password", NULL, WEIR_PASSWORD_KNOWN, &err),
                         WEIR_ERR_UNAUTH);
        one = cpu_ns() - begun;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ways); i++) {
        begun = cpu_ns();
        EXPECT_STATUS(401, ways[i]("nobody", "wrong-password"));
        int64_t took = cpu_ns() - begun;
        ck_assert_msg(took > one / 4, "way %zu: %lld ns of %lld", i, (long long)took,
                      (long long)one);
    }
}

END_TEST

static const char *message_of_last(const char *kind)
{
    EXPECT(200, "GET " API "/audit?kind=%s&limit=1", kind);
    ck_assert_msg(json_array_size(said("items")) == 1, "no %s", kind);
    return said_text("items.0.message");
}

START_TEST(the_audit_says_how_sessions_began_and_what_was_refused)
{
    char link[128];
    EXPECT_STATUS(200, by_json("amy", "right-password"));
    ck_assert_str_eq(said_text("user"), "amy");
    ck_assert_ptr_nonnull(strstr(message_of_last("session_begun"),
                                 "A session of amy (viewer) was begun with a password"));
    EXPECT_STATUS(303, by_form("amy", "right-password"));
    ck_assert_ptr_nonnull(strstr(message_of_last("session_begun"),
                                 "A session of amy (viewer) was begun with a password"));
    make_link(link);
    EXPECT_STATUS(303, ask_as("", "POST /login\n\nlink=%s", link));
    ck_assert_ptr_nonnull(
        strstr(message_of_last("session_begun"), "A session of ann (admin) was begun with a link"));
    callers.fixture.remote = "10.0.0.1";
    EXPECT_STATUS(401, ask_as("", "POST /login\n\nlink=%s", link));
    ck_assert_ptr_nonnull(
        strstr(message_of_last("login_refused"), "the link is unknown, was used or is too old"));
    callers.fixture.remote = "10.0.0.2";
    EXPECT_STATUS(401, by_form("amy", "wrong-password"));
    ck_assert_ptr_nonnull(strstr(message_of_last("login_refused"), "user and password do not fit"));
    ck_assert_str_eq(said_text("items.0.subject"), "user/amy");
    ck_assert_ptr_nonnull(strstr(said_text("items.0.message"),
                                 "POST /login/password of nobody who claims to be amy from"));
    callers.fixture.remote = "10.0.0.3";
    EXPECT_STATUS(401, by_basic("amy", "wrong-password"));
    (void)message_of_last("login_refused");
    ck_assert_str_eq(said_text("items.0.subject"), "user/amy");
}

END_TEST

START_TEST(another_sites_page_cannot_log_in_with_a_password)
{
    static const char *const heads[] = {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site",
                                        "Origin: http://evil\nHost: here:1",
                                        "Origin: null\nHost: here:1"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(heads); i++) {
        EXPECT_STATUS(
            403,
            ask_as("", "POST /login/password\n%s\n\nuser=amy&password=right-password", heads[i]));
        EXPECT_STATUS(403, ask_as("",
                                  "POST " API "/password-login\n%s\n\n{\"user\":\"amy\","
                                  "\"password\":\"right-password\"}",
                                  heads[i]));
        ck_assert_ptr_null(said_header("Set-Cookie"));
    }
    EXPECT_STATUS(400, ask_as("", "POST /login/password\n\nuser=amy"));
    EXPECT_STATUS(400, ask_as("", "POST /login/password\n\npassword=right-password"));
}

END_TEST

START_TEST(a_session_of_a_password_shows_its_csrf_value_too)
{
    struct browser browser, none;
    EXPECT_STATUS(303, by_form("amy", "right-password"));
    keep_session(&browser);
    ck_assert_str_eq(said_text("user"), "amy");
    ck_assert_str_eq(said_text("role"), "viewer");
    none = browser;
    none.csrf[0] = '\0';
    EXPECT_STATUS(403, browse(&none, "DELETE " API "/session", ""));
    EXPECT_STATUS(200, browse(&browser, "GET " API "/runs", ""));
    EXPECT_STATUS(204, browse(&browser, "DELETE " API "/session", ""));
    EXPECT_STATUS(401, browse(&browser, "GET " API "/runs", ""));
}

END_TEST

/* ---- which proofs are on ----------------------------------------------------------------------- */

/** Another API on the same store, with these proofs on. */
static void restart(const char *proofs, const struct weir_registry *kinds)
{
    callers_forget();
    weir_api_destroy(callers.fixture.api);
    callers.fixture.proofs = proofs;
    callers.fixture.proof_kinds = kinds;
    request_fixture_start_api(&callers.fixture);
}

START_TEST(what_is_off_says_so_and_is_not_on_the_page)
{
    char link[128];
    make_link(link);
    EXPECT(200, "GET " API "/session");
    ck_assert_uint_eq(json_array_size(said("proofs")), 4);
    restart("{kind: link, minutes: 2},token", NULL);
    EXPECT(200, "GET " API "/session");
    ck_assert_uint_eq(json_array_size(said("proofs")), 2);
    ck_assert_str_eq(said_text("proofs.0"), "link");
    EXPECT_STATUS(401, ask_as("", "GET /login"));
    check_body(HEAD "<p>With a one-time link:</p><p>Get a one-time link on the server's machine "
                    "with</p><pre>weir login</pre>");
    EXPECT_STATUS(501, by_form("amy", "right-password"));
    EXPECT_STATUS(501, ask_as("", "GET /login/password"));
    EXPECT_STATUS(501, by_json("amy", "right-password"));
    ck_assert_str_eq(said_text("error.message"),
                     "this server takes no password: its operator has not turned \"password\" on "
                     "(weir server --proofs)");
    EXPECT_STATUS(401, by_basic("amy", "right-password"));
    ck_assert_ptr_nonnull(memmem(callers.x->response.body, callers.x->response.body_len,
                                 "takes no password with each request", 35));
    EXPECT(200, "POST " API "/session/link");
    ck_assert_int_eq(json_integer_value(said("expires_s")), 120);
    restart("password,token", NULL);
    EXPECT_STATUS(501, ask_as("", "GET /login?link=%s", link));
    EXPECT_STATUS(501, ask_as("", "POST /login\n\nlink=%s", link));
    EXPECT_STATUS(501, ask("POST " API "/session/link"));
    EXPECT_STATUS(401, ask_as("", "GET /login"));
    check_body(HEAD "<p>With your name and password:</p>" FORM);
    restart("token", NULL);
    EXPECT_STATUS(401, ask_as("", "GET /login"));
    check_body(HEAD "<p>Nobody logs in on this server's page: programs show a token with each "
                    "request.</p>");
}

END_TEST

START_TEST(steps_that_a_kind_does_not_have_are_not_there)
{
    static const struct {
        const char *request;
        int status;
    } rows[] = {{"GET /login/password", 200},
                {"GET /login/link", 200},
                {"GET /login/token", 404},
                {"GET /login/basic", 404},
                {"GET /login/ldap", 404},
                {"POST /login/token\n\ntoken=weir_x", 404},
                {"POST /login/basic\n\nuser=a", 404},
                {"GET /login/link/back", 404},
                {"GET /login/password/back", 404},
                {"GET /login/ldap/back", 404}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        int status = ask_as("", "%s", rows[i].request);
        ck_assert_msg(status == rows[i].status, "%s: %d", rows[i].request, status);
    }
    EXPECT_STATUS(200, ask_as("", "GET /login/password"));
    check_body(HEAD FORM);
}

END_TEST

/* ---- a kind whose provider is elsewhere, as a test has it --------------------------------------- */

static char used_state[64];

static weir_status elsewhere_begin(struct weir_identity_ask *ask, struct weir_identity_step *out,
                                   struct weir_error *err)
{
    (void)ask;
    (void)err;
    out->location = "https://idp.test/authorize?state=S1";
    out->cookie = "weir_login=S1; Path=/login/elsewhere; Max-Age=600; HttpOnly; SameSite=Lax";
    return WEIR_OK;
}

static weir_status elsewhere_look(struct weir_txn *txn, struct weir_identity_ask *ask,
                                  struct weir_identity_proven *out, struct weir_error *err)
{
    const char *state = weir_http_request_query(ask->request, "state");
    const char *kept = weir_http_request_cookie(ask->request, "weir_login");
    (void)txn;
    (void)out;
    if (state == NULL || kept == NULL || strcmp(state, kept) != 0) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "another state");
    }
    return WEIR_OK;
}

/* It asks the provider, which takes a while. */
static weir_status elsewhere_prove(struct weir_identity_ask *ask,
                                   struct weir_identity_proven *proven, struct weir_error *err)
{
    static const char *const groups[] = {"lab"};
    (void)err;
    if (ask->request->state == NULL) {
        ask->request->state = used_state;
        ask->is_put_off = true;
        weir_http_response_wait(ask->response, WEIR_HTTP_ALL_TOPICS, 1000);
        return WEIR_OK;
    }
    proven->user = weir_http_request_query(ask->request, "code");
    proven->issuer = "https://idp.test";
    proven->subject = "17";
    proven->groups = groups;
    proven->n_groups = 1;
    return WEIR_OK;
}

static weir_status elsewhere_callback(struct weir_txn *txn, struct weir_identity_ask *ask,
                                      const struct weir_identity_proven *proven,
                                      struct weir_error *err)
{
    const char *state = weir_http_request_query(ask->request, "state");
    (void)txn;
    (void)proven;
    if (strcmp(used_state, state) == 0) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "used before");
    }
    (void)snprintf(used_state, sizeof used_state, "%s", state);
    return WEIR_OK;
}

static const char *elsewhere_draw(const struct weir_identity_ask *ask, const char *more)
{
    (void)ask;
    (void)more;
    return "<a href=/login/elsewhere>Elsewhere</a>";
}

static bool header_shown(struct weir_identity_ask *ask)
{
    ask->given[0] = weir_http_request_header(ask->request, "X-Test-User");
    return ask->given[0] != NULL;
}

static weir_status header_look(struct weir_txn *txn, struct weir_identity_ask *ask,
                               struct weir_identity_proven *out, struct weir_error *err)
{
    (void)txn;
    (void)err;
    out->user = ask->given[0];
    out->limited_to = "viewer";
    return WEIR_OK;
}

static const struct weir_identity_ops elsewhere_ops = {.words = "an account elsewhere",
                                                       .refused = "elsewhere says no",
                                                       .refusal = "Elsewhere says no.",
                                                       .lead = "with your account elsewhere",
                                                       .is_default = true,
                                                       .comes_back = true,
                                                       .look = elsewhere_look,
                                                       .prove = elsewhere_prove,
                                                       .callback = elsewhere_callback,
                                                       .draw = elsewhere_draw,
                                                       .begin = elsewhere_begin};
static const struct weir_identity_ops header_ops = {.words = "a header",
                                                    .refused = "no such user",
                                                    .is_default = true,
                                                    .shown = header_shown,
                                                    .look = header_look};
static const struct weir_kind elsewhere = {
    .name = "elsewhere", .doc = "A test's provider.", .ops = &elsewhere_ops};
static const struct weir_kind header = {
    .name = "header", .doc = "A test's header.", .ops = &header_ops};
static const struct weir_kind *const test_kinds[] = {&elsewhere, &header, &weir_identity_password,
                                                     &weir_identity_link, &weir_identity_token};
static const struct weir_registry test_registry = {.noun = "proof",
                                                   .plural = "proofs",
                                                   .doc = "A test's.",
                                                   .kinds = test_kinds,
                                                   .n_kinds = WEIR_ARRAY_LEN(test_kinds)};

static int come_back(const char *state, const char *code)
{
    return ask_as("",
                  "GET /login/elsewhere/back?state=%s&code=%s\nSec-Fetch-Site: cross-site\n"
                  "Cookie: weir_login=S1\n",
                  state, code);
}

START_TEST(a_provider_elsewhere_proves_who_somebody_is)
{
    struct browser browser;
    EXPECT(200, "POST " API "/groups\n\n{\"name\":\"lab\"}");
    EXPECT(200, "PUT " API "/projects/default/members/group/lab\n\n{\"role\":\"operator\"}");
    EXPECT(200, "POST " API "/users\n\n" MEMBER, "max", "member");
    restart(NULL, &test_registry);
    used_state[0] = '\0';
    EXPECT_STATUS(401, ask_as("", "GET /login"));
    check_body(
        HEAD "<p>With your account elsewhere:</p><a href=/login/elsewhere>Elsewhere</a>" FORM HINT);
    EXPECT_STATUS(303, ask_as("", "GET /login/elsewhere"));
    ck_assert_str_eq(said_header("Location"), "https://idp.test/authorize?state=S1");
    ck_assert_ptr_nonnull(strstr(said_header("Set-Cookie"), "SameSite=Lax"));
    EXPECT_STATUS(401, come_back("S2", "max"));
    ck_assert_ptr_nonnull(strstr(message_of_last("login_refused"), "elsewhere says no"));
    EXPECT_STATUS(401, come_back("S1", "nobody"));
    ck_assert_ptr_null(said_header("Set-Cookie"));
    used_state[0] = '\0'; /* that transaction was undone */
    EXPECT_STATUS(404, ask_as("", "POST /login/elsewhere\n\ncode=max"));
    /* The page leads on: along a redirect the browser would not send the session's cookie. */
    EXPECT_STATUS(200, come_back("S1", "max"));
    ck_assert_ptr_nonnull(memmem(callers.x->response.body, callers.x->response.body_len,
                                 "url=/\"><p><a id=go-on href=\"/\"", 30));
    keep_session(&browser);
    ck_assert_str_eq(said_text("user"), "max");
    EXPECT_STATUS(401, come_back("S1", "max"));
    ck_assert_ptr_nonnull(
        strstr(message_of_last("session_begun"),
               "A session of max (member) was begun with an account elsewhere, as 17 of "
               "https://idp.test, by max from"));
    /* What it may is the group's, now. */
    EXPECT_STATUS(200, browse(&browser, "GET " API "/datasets", ""));
    EXPECT(200, "PUT " API "/projects/default/members/group/lab\n\n{\"role\":\"viewer\"}");
    EXPECT_STATUS(200, browse(&browser, "GET " API "/session", ""));
    const size_t n_less = json_array_size(said("projects.default"));
    EXPECT(200, "PUT " API "/projects/default/members/group/lab\n\n{\"role\":\"admin\"}");
    EXPECT_STATUS(200, browse(&browser, "GET " API "/session", ""));
    ck_assert_uint_gt(json_array_size(said("projects.default")), n_less);
    EXPECT(204, "DELETE " API "/groups/lab/members/max");
    EXPECT_STATUS(403, browse(&browser, "GET " API "/datasets", ""));
}

END_TEST

START_TEST(a_proof_with_each_request_answers_it_and_no_more)
{
    EXPECT_STATUS(200, by_basic("amy", "right-password"));
    EXPECT_STATUS(401, ask_as("Basic YW15OnJpZ2h0LXBhc3N3b3Jk", "GET " API "/session"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "no token and no session"));
    EXPECT_STATUS(401, ask_as("", "GET " API "/session\nX-Test-User: amy\n"));
    restart(NULL, &test_registry);
    EXPECT_STATUS(200, ask_as("", "GET " API "/session\nX-Test-User: amy\n"));
    ck_assert_str_eq(said_text("user"), "amy");
    EXPECT_STATUS(200, ask_as("", "GET " API "/session\nX-Test-User: ann\n"));
    ck_assert_str_eq(said_text("role"), "viewer"); /* to which it is limited */
    EXPECT_STATUS(401, ask_as("", "GET " API "/session\nX-Test-User: nobody\n"));
    EXPECT_STATUS(403, ask_as("", "POST " API "/projects\nX-Test-User: ann\n\n{\"name\":\"p\"}"));
    restart("token,password", &test_registry);
    EXPECT_STATUS(401, ask_as("", "GET " API "/session\nX-Test-User: amy\n"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "takes no header"));
}

END_TEST

START_TEST(a_session_has_gained_and_lost_with_its_user)
{
    struct browser browser;
    EXPECT_STATUS(303, by_form("amy", "right-password"));
    keep_session(&browser);
    EXPECT_STATUS(403, browse(&browser, "POST " API "/projects", "{\"name\":\"lab\"}"));
    EXPECT(200, "PATCH " API "/users/amy\n\n{\"role\":\"admin\"}");
    EXPECT_STATUS(200, browse(&browser, "POST " API "/projects", "{\"name\":\"lab\"}"));
    EXPECT(200, "PATCH " API "/users/amy\n\n{\"role\":\"member\"}");
    EXPECT_STATUS(403, browse(&browser, "POST " API "/projects", "{\"name\":\"den\"}"));
    EXPECT(200, "PATCH " API "/users/amy\n\n{\"role\":\"viewer\"}");
    EXPECT_STATUS(200, browse(&browser, "GET " API "/runs", ""));
    EXPECT_STATUS(200, browse(&browser, "GET " API "/sessions", ""));
    ck_assert_str_eq(said_text("items.0.proof"), "password");
    ck_assert_str_eq(said_text("items.0.role"), "viewer");
    EXPECT(200, "PATCH " API "/users/amy\n\n{\"is_disabled\":true}");
    EXPECT_STATUS(401, browse(&browser, "GET " API "/runs", ""));
}

END_TEST

WEIR_TEST_MAIN_WITH("login", set_up, callers_close, the_login_page_is_as_it_was,
                    a_refusal_does_not_tell_who_is_there, a_refusal_of_nobody_costs_a_password,
                    the_audit_says_how_sessions_began_and_what_was_refused,
                    another_sites_page_cannot_log_in_with_a_password,
                    a_session_of_a_password_shows_its_csrf_value_too,
                    what_is_off_says_so_and_is_not_on_the_page,
                    steps_that_a_kind_does_not_have_are_not_there,
                    a_provider_elsewhere_proves_who_somebody_is,
                    a_proof_with_each_request_answers_it_and_no_more,
                    a_session_has_gained_and_lost_with_its_user)
