/* Who guesses passwords, on every way to one: slowed, told of, and in nobody's way. */
#include "identity/guard.h"

#include "api/caller_fixture.h"
#include "api/core/call.h"

#include "base/base64.h"
#include "base/test_main.h"
#include "store/event.h"

#include <sodium.h>

#define START ((int64_t)2000000000000)

static char hash_of_amy[crypto_pwhash_STRBYTES];

static weir_status set_hash_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_user user = {.name = context, .password_hash = hash_of_amy};
    return weir_txn_update(txn, &weir_user_resource, &user, WEIR_FIELDS("password_hash"), err);
}

/* "amy" and "bob" have the same password, whose hash is cheap. */
static void set_up(void)
{
    static char bearer[2][BEARER_BYTES];
    struct weir_error err;
    callers_open();
    callers.now_ms = START;
    ck_assert_int_ge(sodium_init(), 0);
    ck_assert_int_eq(crypto_pwhash_str(hash_of_amy, "right-password", 14,
                                       crypto_pwhash_OPSLIMIT_MIN, crypto_pwhash_MEMLIMIT_MIN),
                     0);
    make_caller("amy", "viewer", "", bearer[0]);
    make_caller("bob", "viewer", "", bearer[1]);
    must(weir_store_write(callers.fixture.store, set_hash_in, "amy", &err), &err);
    must(weir_store_write(callers.fixture.store, set_hash_in, "bob", &err), &err);
}

static int by_login(const char *user, const char *password)
{
    return ask_as("none", "POST " API "/password-login\n\n{\"user\":\"%s\",\"password\":\"%s\"}",
                  user, password);
}

static int by_form(const char *user, const char *password)
{
    return ask_as("none", "POST /login/password\n\nuser=%s&password=%s", user, password);
}

static int by_mlflow(const char *user, const char *password)
{
    char pair[128], basic[256] = "Basic ";
    int len = snprintf(pair, sizeof pair, "%s:%s", user, password);
    (void)weir_base64_encode(pair, (size_t)len, basic + strlen(basic));
    return ask_as(basic, "GET /api/2.0/mlflow/experiments/search?max_results=1");
}

typedef int (*try_fn)(const char *user, const char *password);
static const try_fn ways[] = {by_login, by_form, by_mlflow};

static bool is_slowed(void)
{
    const char *when = said_header("Retry-After");
    const struct weir_http_response *response = &callers.x->response;
    return (when != NULL && strtol(when, NULL, 10) >= 1 && response->http_status == 503) ||
           memmem(response->body, response->body_len, "try again in", 12) != NULL;
}

/* Five wrong ones are for nothing on any way, and more are not looked at on any. */
static void check_way(try_fn way)
{
    callers.fixture.remote = "10.0.0.1";
    for (int i = 0; i < 5; i++) {
        int status = ways[i % 3]("amy", "wrong-password");
        ck_assert_msg(status == 401, "%d on way %d", status, i % 3);
        ck_assert(!is_slowed());
    }
    int status = way("amy", "wrong-password");
    ck_assert_msg(is_slowed(), "%d", status);
    (void)way("amy", "right-password"); /* nor is the right one, from there */
    ck_assert(is_slowed());
    callers.fixture.remote = "10.0.0.2";
    status = way("amy", "right-password");
    ck_assert_msg(status == 200 || status == 303, "%d", status);
    callers.fixture.remote = "10.0.0.1";
    callers.now_ms += 2000;
    status = way("amy", "right-password");
    ck_assert_msg(status == 200 || status == 303, "%d", status);
}

START_TEST(every_way_to_a_password_is_slowed)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ways); i++) {
        check_way(ways[i]);
        callers_close();
        set_up();
    }
}

END_TEST

/* Rows of the audit about amy whose password was wrong. */
static int n_told_of_amy(const char *part)
{
    int n = 0;
    EXPECT(200, "GET " API "/audit?limit=1000&subject=user/amy");
    for (size_t i = 0; i < json_array_size(said("items")); i++) {
        const json_t *item = json_array_get(said("items"), i);
        n += strcmp(json_string_value(json_object_get(item, "kind")), "login_refused") == 0 &&
             strstr(json_string_value(json_object_get(item, "message")), part) != NULL;
    }
    return n;
}

static const char *alert_of_amy(void)
{
    EXPECT(200, "GET " API "/alerts?kind=password_guessing");
    const char *state = said_text("items.0.state");
    ck_assert(*state == '\0' || strcmp(said_text("items.0.subject"), "user/amy") == 0);
    return state;
}

START_TEST(whose_password_is_guessed_is_told)
{
    callers.fixture.remote = "10.0.0.1";
    EXPECT_STATUS(401, ask_as("Bearer weir_nonsense", "GET " API "/jobs"));
    for (int i = 0; i < WEIR_GUARD_TELLS_AT; i++) {
        char address[32];
        (void)snprintf(address, sizeof address, "10.0.0.%d", i % 5 + 1);
        callers.fixture.remote = address;
        ck_assert_str_eq(alert_of_amy(), "");
        ck_assert_int_eq(by_login("amy", "wrong-password"), 401);
        ck_assert_int_eq(by_login("nobody-is-called-so", "wrong-password"), 401);
    }
    callers.fixture.remote = NULL;
    ck_assert_str_eq(alert_of_amy(), "open");
    ck_assert_int_eq(n_told_of_amy("who claims to be amy"), 5); /* of each address the first */
    callers.now_ms += 61000;
    weir_guard_tick(weir_identities_guard(callers.fixture.api->identities), callers.now_ms);
    EXPECT_STATUS(401,
                  ask_as("Bearer weir_nonsense", "GET " API "/jobs")); /* it writes the counts */
    ck_assert_int_eq(n_told_of_amy("3 more passwords for amy"), 5);
    ck_assert_str_eq(alert_of_amy(), "open");
    callers.now_ms += 3600000;
    weir_guard_tick(weir_identities_guard(callers.fixture.api->identities), callers.now_ms);
    ck_assert_str_eq(alert_of_amy(), "resolved");
}

END_TEST

/* One's own password is set with the old one: a stolen session does not guess it. */
START_TEST(setting_a_password_is_no_way_around)
{
    char amy[BEARER_BYTES];
    EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"amy\",\"name\":\"u\",\"role\":\"viewer\"}");
    (void)snprintf(amy, sizeof amy, "Bearer %s", said_text("secret"));
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(401, ask_as(amy, "PUT " API "/users/amy/password\n\n{\"password\":\"new-"
                                       "password\",\"current\":\"wrong-password\"}"));
    }
    EXPECT_STATUS(503, ask_as(amy, "PUT " API "/users/amy/password\n\n{\"password\":\"new-"
                                   "password\",\"current\":\"right-password\"}"));
    ck_assert(is_slowed());
    ck_assert_int_eq(by_login("bob", "right-password"), 200); /* the other user, from there */
}

END_TEST

WEIR_TEST_MAIN_WITH("guard", set_up, callers_close, every_way_to_a_password_is_slowed,
                    whose_password_is_guessed_is_told, setting_a_password_is_no_way_around)
