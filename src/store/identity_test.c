#include "store/identity.h"

#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

#define NOW 1000000

static struct store_fixture fixture;
static char secrets[4][WEIR_SECRET_BYTES];

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    static const struct weir_user users[] = {
        {.name = "ann", .kind = "person", .role = "admin"},
        {.name = "bob", .kind = "person", .role = "operator"},
        {.name = "eve", .kind = "person", .role = "admin", .is_disabled = true},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(users); i++) {
        MUST(weir_txn_insert(txn, &weir_user_resource, &users[i], err));
    }
    struct weir_token tokens[] = {
        {.id = "t0", .user = "ann", .name = "worker", .role = "worker"},
        {.id = "t1", .user = "bob", .name = "greedy", .role = "admin"},
        {.id = "t2", .user = "ann", .name = "short", .role = "admin", .expires_ms = NOW},
        {.id = "t3", .user = "eve", .name = "gone", .role = "admin"},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tokens); i++) {
        char hash[WEIR_SHA256_TEXT_BYTES];
        weir_secret_hash(secrets[i], hash);
        tokens[i].secret_hash = hash;
        MUST(weir_txn_insert(txn, &weir_token_resource, &tokens[i], err));
    }
    char hash[WEIR_SHA256_TEXT_BYTES];
    weir_secret_hash("cookie", hash);
    MUST(weir_txn_insert(txn, &weir_session_resource,
                         &(struct weir_session){.id = "s",
                                                .user = "bob",
                                                .role = "operator",
                                                .limited_to = "operator",
                                                .proof = "link",
                                                .token = "t1",
                                                .secret_hash = hash,
                                                .csrf = "c",
                                                .expires_ms = NOW + 1},
                         err));
    weir_secret_hash("link", hash);
    return weir_txn_insert(txn, &weir_login_link_resource,
                           &(struct weir_login_link){.id = "l",
                                                     .user = "bob",
                                                     .role = "operator",
                                                     .token = "t1",
                                                     .secret_hash = hash,
                                                     .expires_ms = NOW + 1},
                           err);
}

static void set_up(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){0});
    for (size_t i = 0; i < WEIR_ARRAY_LEN(secrets); i++) {
        weir_secret_make(secrets[i]);
    }
    fixture_write(&fixture, populate, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

START_TEST(secrets_have_their_form_and_differ)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(secrets); i++) {
        ck_assert_uint_eq(strlen(secrets[i]), WEIR_SECRET_BYTES - 1);
        ck_assert_int_eq(strncmp(secrets[i], "weir_", 5), 0);
        ck_assert_int_ne(strcmp(secrets[i], secrets[(i + 1) % 4]), 0);
    }
}

END_TEST

START_TEST(roles_cover_what_is_below_them)
{
    static const enum weir_role order[] = {WEIR_ROLE_VIEWER, WEIR_ROLE_OPERATOR,
                                           WEIR_ROLE_ML_ENGINEER, WEIR_ROLE_ADMIN};

    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            ck_assert(weir_role_covers(order[i], order[k]) == (i >= k));
        }
        ck_assert(weir_role_covers(order[i], WEIR_ROLE_AGENT) == (i == 3));
        ck_assert(!weir_role_covers(WEIR_ROLE_WORKER, order[i]));
    }
    ck_assert(weir_role_covers(WEIR_ROLE_WORKER, WEIR_ROLE_WORKER));
    ck_assert(!weir_role_covers(WEIR_ROLE_WORKER, WEIR_ROLE_AGENT));
    enum weir_role role;
    ck_assert_int_eq(weir_role_from_text("scientist", &role, NULL), WEIR_OK);
    ck_assert_int_eq(role, WEIR_ROLE_ML_ENGINEER);
    ck_assert_int_eq(weir_role_from_text("root", &role, NULL), WEIR_ERR_INVALID);
}

END_TEST

static weir_status tokens(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_identity who;
    MUST(weir_token_identify(txn, secrets[0], NOW, &fixture.arena, &who, err));
    ck_assert_str_eq(who.user.name, "ann");
    ck_assert_int_eq(who.role, WEIR_ROLE_WORKER);
    MUST(weir_token_identify(txn, secrets[1], NOW, &fixture.arena, &who, err));
    ck_assert_int_eq(who.role, WEIR_ROLE_OPERATOR);
    ck_assert_ptr_null(who.csrf);
    ck_assert_int_eq(weir_token_identify(txn, secrets[2], NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    MUST(weir_token_identify(txn, secrets[2], NOW - 1, &fixture.arena, &who, err));
    ck_assert_int_eq(weir_token_identify(txn, secrets[3], NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(weir_token_identify(txn, "weir_x", NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    return WEIR_OK;
}

START_TEST(a_token_gives_the_lesser_role_until_it_expires)
{
    fixture_read(&fixture, tokens, NULL);
}

END_TEST

static weir_status browser(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_identity who;
    struct weir_login_link link;
    MUST(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err));
    ck_assert_str_eq(who.csrf, "c");
    ck_assert_int_eq(weir_session_identify(txn, "cookie", NOW + 1, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(weir_login_link_take(txn, "link", NOW + 1, &fixture.arena, &link, err),
                     WEIR_ERR_UNAUTH);
    MUST(weir_login_link_take(txn, "link", NOW, &fixture.arena, &link, err));
    ck_assert_str_eq(link.user, "bob");
    ck_assert_int_eq(weir_login_link_take(txn, "link", NOW, &fixture.arena, &link, err),
                     WEIR_ERR_UNAUTH);
    MUST(weir_identity_expire(txn, NOW, err));
    MUST(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err));
    MUST(weir_identity_expire(txn, NOW + 1, err));
    ck_assert_int_eq(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    return WEIR_OK;
}

START_TEST(a_login_link_works_once_and_a_session_until_it_expires)
{
    fixture_write(&fixture, browser, NULL);
}

END_TEST

/* A session "c" of ann, who is an admin, from a token of hers with the role and the end given. */
static weir_status session_of(struct weir_txn *txn, char *token_role, int64_t token_ends_ms,
                              struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    weir_secret_hash("of c", hash);
    MUST(weir_txn_insert(txn, &weir_token_resource,
                         &(struct weir_token){.id = "tc",
                                              .user = "ann",
                                              .name = "c",
                                              .role = token_role,
                                              .secret_hash = hash,
                                              .expires_ms = token_ends_ms},
                         err));
    weir_secret_hash("c", hash);
    return weir_txn_insert(txn, &weir_session_resource,
                           &(struct weir_session){.id = "c",
                                                  .user = "ann",
                                                  .role = token_role,
                                                  .limited_to = token_role,
                                                  .proof = "link",
                                                  .token = "tc",
                                                  .secret_hash = hash,
                                                  .csrf = "c",
                                                  .expires_ms = NOW + 1000},
                           err);
}

static weir_status lesser(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_identity who;
    MUST(session_of(txn, "viewer", NOW + 10, err));
    MUST(weir_session_identify(txn, "c", NOW, &fixture.arena, &who, err));
    ck_assert_int_eq(who.role, WEIR_ROLE_VIEWER);
    ck_assert_str_eq(who.session, "c");
    ck_assert_str_eq(who.token, "tc");
    MUST(weir_identity_check(txn, &who, NOW, &fixture.arena, err));
    /* The token expires before the session would. */
    ck_assert_int_eq(weir_session_identify(txn, "c", NOW + 10, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(weir_identity_check(txn, &who, NOW + 10, &fixture.arena, err),
                     WEIR_ERR_UNAUTH);
    return WEIR_OK;
}

START_TEST(a_session_has_its_tokens_role_and_not_its_users)
{
    fixture_write(&fixture, lesser, NULL);
}

END_TEST

static weir_status revoked(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_identity who;
    struct weir_login_link link;
    MUST(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err));
    MUST(weir_txn_delete(txn, &weir_token_resource, "t1", err));
    ck_assert_int_eq(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(weir_login_link_take(txn, "link", NOW, &fixture.arena, &link, err),
                     WEIR_ERR_UNAUTH);
    return WEIR_OK;
}

START_TEST(a_session_and_a_link_die_with_their_token)
{
    fixture_write(&fixture, revoked, NULL);
}

END_TEST

static weir_status user_changes(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_identity who, before;
    struct weir_user bob = {.name = "bob", .role = "viewer"};
    MUST(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &before, err));
    ck_assert_int_eq(before.role, WEIR_ROLE_OPERATOR);
    MUST(weir_txn_update(txn, &weir_user_resource, &bob, WEIR_FIELDS("role"), err));
    MUST(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err));
    ck_assert_int_eq(who.role, WEIR_ROLE_VIEWER);
    ck_assert_int_eq(weir_identity_check(txn, &before, NOW, &fixture.arena, err), WEIR_ERR_UNAUTH);
    bob.is_disabled = true;
    MUST(weir_txn_update(txn, &weir_user_resource, &bob, WEIR_FIELDS("is_disabled"), err));
    ck_assert_int_eq(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    ck_assert_int_eq(weir_token_identify(txn, secrets[1], NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    MUST(weir_user_end_sessions(txn, "bob", err));
    bob.is_disabled = false;
    MUST(weir_txn_update(txn, &weir_user_resource, &bob, WEIR_FIELDS("is_disabled"), err));
    ck_assert_int_eq(weir_session_identify(txn, "cookie", NOW, &fixture.arena, &who, err),
                     WEIR_ERR_UNAUTH);
    MUST(weir_token_identify(txn, secrets[1], NOW, &fixture.arena, &who, err));
    return WEIR_OK;
}

START_TEST(a_user_that_changes_has_lost_at_once)
{
    fixture_write(&fixture, user_changes, NULL);
}

END_TEST

/* eve is an admin too, but disabled. */
static weir_status admins(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_user eve = {.name = "eve", .role = "admin"};
    ck_assert_int_eq(weir_user_check_other_admin(txn, "ann", err), WEIR_ERR_CONFLICT);
    MUST(weir_user_check_other_admin(txn, "bob", err));
    MUST(weir_txn_update(txn, &weir_user_resource, &eve, WEIR_FIELDS("is_disabled"), err));
    return weir_user_check_other_admin(txn, "ann", err);
}

START_TEST(a_disabled_admin_is_no_other_admin)
{
    fixture_write(&fixture, admins, NULL);
}

END_TEST

START_TEST(secrets_never_leave_as_json)
{
    struct weir_token token = {.id = "t", .secret_hash = "hash"};
    json_t *json = weir_record_to_json(&weir_token_resource, &token);
    ck_assert_ptr_null(json_object_get(json, "secret_hash"));
    ck_assert_ptr_nonnull(json_object_get(json, "id"));
    json_decref(json);
}

END_TEST

WEIR_TEST_MAIN_WITH("identity", set_up, tear_down, secrets_have_their_form_and_differ,
                    roles_cover_what_is_below_them, a_token_gives_the_lesser_role_until_it_expires,
                    a_login_link_works_once_and_a_session_until_it_expires,
                    a_session_has_its_tokens_role_and_not_its_users,
                    a_session_and_a_link_die_with_their_token, a_user_that_changes_has_lost_at_once,
                    a_disabled_admin_is_no_other_admin, secrets_never_leave_as_json)
