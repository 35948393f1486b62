#include "job/service.h"

#include "base/macros.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

#define NOW ((int64_t)1700000000000)

static struct store_fixture fixture;

static weir_status make_project(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                           err);
}

static void set_up(void)
{
    fixture_make(&fixture, make_project);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

START_TEST(ids_are_made_that_nobody_guesses)
{
    char a[WEIR_SERVICE_ID_BYTES], b[WEIR_SERVICE_ID_BYTES];
    weir_service_id_make(a);
    weir_service_id_make(b);
    ck_assert(weir_service_id_is_valid(a));
    ck_assert_str_ne(a, b);
    ck_assert(!weir_service_id_is_valid("short"));
    ck_assert(!weir_service_id_is_valid("ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
}

END_TEST

START_TEST(an_address_is_a_number_and_a_port)
{
    static const char *const good[] = {"127.0.0.1:1", "10.0.0.7:65535", "[::1]:80", "[fe80::1]:9"};
    static const char *const bad[] = {"",
                                      "localhost:80",
                                      "10.0.0.7",
                                      "10.0.0.7:",
                                      "10.0.0.7:65536",
                                      "10.0.0.7:8a",
                                      "[::1]",
                                      "::1:80",
                                      "10.0.0.7:80/x",
                                      "user@10.0.0.7:80",
                                      "[10.0.0.7]:80",
                                      "10.0.0.7:80\r\nX: y"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_msg(weir_service_address_is_valid(good[i]), "%s", good[i]);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(!weir_service_address_is_valid(bad[i]), "%s", bad[i]);
    }
    ck_assert(weir_service_name_is_valid("my-notebook2"));
    ck_assert(!weir_service_name_is_valid("-x"));
    ck_assert(!weir_service_name_is_valid("My"));
    ck_assert(!weir_service_name_is_valid("a/b"));
}

END_TEST

static const char id[] = "abcdefghijklmnopqrstuvwxyz";
static const char other[] = "bbcdefghijklmnopqrstuvwxyz";

static weir_status insert(struct weir_txn *txn, const char *with_id, const char *name,
                          struct weir_error *err)
{
    struct weir_service service = {.id = (char *)with_id,
                                   .name = (char *)name,
                                   .project = "default",
                                   .kind = "service",
                                   .owner = "ada",
                                   .spec = "{}",
                                   .secret = "s",
                                   .job = "job-1",
                                   .created_ms = NOW};
    return weir_txn_insert(txn, &weir_service_resource, &service, err);
}

static weir_status use_tickets(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char ticket[WEIR_SECRET_BYTES], login[WEIR_SECRET_BYTES], token_secret[WEIR_SECRET_BYTES];
    char hash[WEIR_SHA256_TEXT_BYTES];
    struct weir_error refused;
    struct weir_identity who = {.token = "t1"}, found;
    struct weir_arena *arena = &fixture.arena;
    (void)context;
    MUST(insert(txn, id, "a", err));
    MUST(insert(txn, other, "b", err));
    struct weir_user user = {.name = "ada", .kind = "person", .role = "admin"};
    MUST(weir_txn_insert(txn, &weir_user_resource, &user, err));
    weir_secret_make(token_secret);
    weir_secret_hash(token_secret, hash);
    struct weir_token token = {
        .id = "t1", .name = "t", .user = "ada", .role = "admin", .secret_hash = hash};
    MUST(weir_txn_insert(txn, &weir_token_resource, &token, err));

    /* For one service, one browser, once. */
    MUST(weir_service_ticket_make(txn, id, &who, "nonce", NOW, ticket, err));
    ck_assert_int_eq(weir_service_ticket_take(txn, other, ticket, "nonce", NOW, login, &refused),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(weir_service_login_identify(txn, id, ticket, NOW, arena, &found, &refused),
                     WEIR_ERR_UNAUTH);
    MUST(weir_service_ticket_take(txn, id, ticket, "nonce", NOW, login, err));
    ck_assert_int_eq(weir_service_ticket_take(txn, id, ticket, "nonce", NOW, login, &refused),
                     WEIR_ERR_UNAUTH);
    MUST(weir_service_login_identify(txn, id, login, NOW, arena, &found, err));
    ck_assert_str_eq(found.user.name, "ada");
    ck_assert_int_eq(weir_service_login_identify(txn, other, login, NOW, arena, &found, &refused),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(weir_service_ticket_take(txn, id, login, "", NOW, ticket, &refused),
                     WEIR_ERR_UNAUTH);

    /* Another browser; too late; and one that any browser may use. */
    char second[WEIR_SECRET_BYTES];
    MUST(weir_service_ticket_make(txn, id, &who, "nonce", NOW, ticket, err));
    ck_assert_int_eq(weir_service_ticket_take(txn, id, ticket, "another", NOW, second, &refused),
                     WEIR_ERR_UNAUTH);
    MUST(weir_service_ticket_make(txn, id, &who, "", NOW, ticket, err));
    ck_assert_int_eq(weir_service_ticket_take(txn, id, ticket, "x", NOW + WEIR_SERVICE_TICKET_MS,
                                              second, &refused),
                     WEIR_ERR_UNAUTH);
    MUST(weir_service_ticket_make(txn, id, &who, "", NOW, ticket, err));
    MUST(weir_service_ticket_take(txn, id, ticket, "x", NOW, second, err));

    /* A login ends with its time, and with what it was made with. */
    ck_assert_int_eq(weir_service_login_identify(txn, id, login, NOW + WEIR_SERVICE_LOGIN_MS, arena,
                                                 &found, &refused),
                     WEIR_ERR_UNAUTH);
    MUST(weir_txn_delete(txn, &weir_token_resource, "t1", err));
    ck_assert_int_eq(weir_service_login_identify(txn, id, login, NOW, arena, &found, &refused),
                     WEIR_ERR_UNAUTH);
    return WEIR_OK;
}

START_TEST(a_ticket_is_good_once_and_a_login_for_one_service)
{
    fixture_write(&fixture, use_tickets, NULL);
}

END_TEST

static weir_status note_addresses(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_service service;
    struct weir_error refused;
    (void)context;
    MUST(insert(txn, id, "a", err));
    MUST(weir_service_note_address(txn, "job-1", 2, "10.0.0.7:40123", err));
    MUST(weir_service_note_address(txn, "job-1", 1, "10.0.0.6:40123", err)); /* late */
    MUST(weir_service_note_address(txn, "job-2", 3, "10.0.0.5:40123", err)); /* another's */
    ck_assert_int_eq(weir_service_note_address(txn, "job-1", 2, "evil.example:80", &refused),
                     WEIR_ERR_INVALID);
    MUST(weir_txn_get(txn, &weir_service_resource, id, &fixture.arena, &service, err));
    ck_assert_str_eq(service.address, "10.0.0.7:40123");
    ck_assert_int_eq(service.address_attempt, 2);
    /* Its job is not there: it does not run, and has no address. */
    struct weir_service_look look;
    MUST(weir_service_look(txn, id, &fixture.arena, &look, err));
    ck_assert_str_eq(look.state, WEIR_SERVICE_STOPPED);
    ck_assert_ptr_null(look.service.address);
    MUST(weir_service_note_use(txn, id, NOW + 5, err));
    MUST(weir_service_note_use(txn, id, NOW + 3, err));
    MUST(weir_txn_get(txn, &weir_service_resource, id, &fixture.arena, &service, err));
    ck_assert_int_eq(service.used_ms, NOW + 5);
    char *found;
    MUST(weir_service_find(txn, "default", "a", &fixture.arena, &found, err));
    ck_assert_str_eq(found, id);
    MUST(weir_service_find(txn, "default", "zz", &fixture.arena, &found, err));
    ck_assert_ptr_null(found);
    return WEIR_OK;
}

START_TEST(the_newest_attempts_address_counts)
{
    fixture_write(&fixture, note_addresses, NULL);
}

END_TEST

int main(void)
{
    const TTest *tests[] = {ids_are_made_that_nobody_guesses, an_address_is_a_number_and_a_port,
                            a_ticket_is_good_once_and_a_login_for_one_service,
                            the_newest_attempts_address_counts};
    return weir_test_run(
        weir_test_suite_with("services", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
