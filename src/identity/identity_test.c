/* Which proofs are on, and what a session that was begun from one may: what its user may now. */
#include "identity/identity.h"

#include "base/kind_laws.h"
#include "base/test_seed.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "store/tenant.h"

#define NOW 1000000

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_user_resource,
                         &(struct weir_user){.name = "ann", .kind = "person", .role = "viewer"},
                         err));
    MUST(weir_txn_insert(
        txn, &weir_user_resource,
        &(struct weir_user){.name = "off", .kind = "person", .role = "viewer", .is_disabled = true},
        err));
    for (const char *const *name = (const char *const[]){"red", "green", NULL}; *name != NULL;
         name++) {
        MUST(weir_txn_insert(txn, &weir_project_resource,
                             &(struct weir_project){.name = (char *)*name}, err));
        MUST(weir_txn_insert(txn, &weir_group_resource, &(struct weir_group){.name = (char *)*name},
                             err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* ---- which are on ------------------------------------------------------------------------------ */

START_TEST(the_registry_keeps_the_laws)
{
    kind_laws_check(&weir_identity_kinds);
    for (size_t i = 0; i < weir_identity_kinds.n_kinds; i++) {
        const struct weir_kind *kind = weir_identity_kinds.kinds[i];
        const struct weir_identity_ops *ops = kind->ops;
        ck_assert_msg(ops->look != NULL && ops->refused != NULL && strchr(ops->words, ' ') != NULL,
                      "%s", kind->name);
        ck_assert_msg(ops->draw == NULL || (ops->lead != NULL && ops->refusal != NULL), "%s",
                      kind->name);
        size_t n = 0;
        while (ops->fields != NULL && ops->fields[n] != NULL) {
            n++;
        }
        ck_assert_uint_le(n, WEIR_IDENTITY_FIELDS);
        ck_assert_msg((ops->open == NULL) == (ops->close == NULL), "%s", kind->name);
    }
}

END_TEST

/* The names of those that are on, by blanks; "!" and the error, if there is none. */
static const char *on(const char *proofs)
{
    static char text[sizeof(struct weir_error) + 64];
    struct weir_identities *identities;
    struct weir_error err;
    const struct weir_identities_config config = {.store = fixture.store, .proofs = proofs};
    if (weir_identities_create(&config, &identities, &err) != WEIR_OK) {
        (void)snprintf(text, sizeof text, "!%s %s", weir_status_name(err.status), err.message);
        return text;
    }
    size_t n, len = 0;
    const struct weir_identity_way *ways = weir_identities_list(identities, &n);
    ck_assert_uint_eq(n, weir_identity_kinds.n_kinds);
    text[0] = '\0';
    for (size_t i = 0; i < n && ways[i].is_on; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i > 0 ? " " : "",
                                ways[i].kind->name);
    }
    weir_identities_destroy(identities);
    return text;
}

START_TEST(an_operator_chooses_which_are_on)
{
    static const char *const refused[][2] = {
        {"password", "\"token\" must be among them"},
        {"", "\"token\" must be among them"},
        {"token, token", "\"token\" is named twice"},
        {"token, pasword", "\"pasword\" is none of"},
        {"token, {kind: link, minutes: 0}", "minutes"},
        {"token, {kind: link, hours: 1}", "hours"},
        {"token, {kind: password, minutes: 1}", "minutes"},
        {"token, [link]", "expected the name of a proof"},
        {"token, {kind: link", "--proofs"},
    };
    ck_assert_str_eq(on(NULL), "password link basic token");
    ck_assert_str_eq(on("token"), "token");
    ck_assert_str_eq(on("link,token, password"), "link token password");
    ck_assert_str_eq(on("{kind: link, minutes: 5}, token"), "link token");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused); i++) {
        const char *said = on(refused[i][0]);
        ck_assert_msg(strncmp(said, "!INVALID --proofs", 17) == 0 &&
                          strstr(said, refused[i][1]) != NULL,
                      "%s: %s", refused[i][0], said);
    }
}

END_TEST

START_TEST(one_that_is_off_says_so)
{
    struct weir_identities *identities;
    const struct weir_identity_way *way;
    struct weir_error err;
    const struct weir_identities_config config = {.store = fixture.store, .proofs = "token,link"};
    ck_assert_int_eq(weir_identities_create(&config, &identities, &err), WEIR_OK);
    ck_assert_int_eq(weir_identities_find(identities, "link", &way, &err), WEIR_OK);
    ck_assert_ptr_eq(way->kind, &weir_identity_link);
    ck_assert_int_eq(weir_identities_find(identities, "password", &way, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message, "this server takes no password: its operator has not turned "
                                  "\"password\" on (weir server --proofs)");
    ck_assert_int_eq(weir_identities_find(identities, "ldap", &way, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_str_eq(err.message,
                     "\"ldap\" is no way to prove who one is: this server has token, link");
    weir_identities_destroy(identities);
}

END_TEST

/* ---- what a session may ------------------------------------------------------------------------ */

struct begun {
    struct weir_identity_proven proven;
    char secret[WEIR_SECRET_BYTES];
    struct weir_session session;
    weir_status status;
};

static weir_status begin_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct begun *begun = context;
    struct weir_http_request request = {.remote = "10.0.0.1"};
    const struct weir_identity_ask ask = {
        .arena = &fixture.arena, .now_ms = NOW, .request = &request};
    (void)err;
    begun->status = weir_identity_begin_session(txn, &begun->proven, &ask, begun->secret,
                                                &begun->session, NULL);
    return WEIR_OK;
}

static weir_status begin(struct begun *begun)
{
    fixture_write(&fixture, begin_in, begun);
    return begun->status;
}

START_TEST(a_session_says_what_it_was_begun_from)
{
    struct begun begun = {.proven = {.user = "ann", .by = "password"}};
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    ck_assert_str_eq(begun.session.user, "ann");
    ck_assert_str_eq(begun.session.role, "viewer");
    ck_assert_str_eq(begun.session.proof, "password");
    ck_assert_str_eq(begun.session.address, "10.0.0.1");
    ck_assert_ptr_null(begun.session.limited_to);
    ck_assert_int_eq(begun.session.expires_ms - NOW, WEIR_SESSION_MS);
    begun.proven.user = "off";
    ck_assert_int_eq(begin(&begun), WEIR_ERR_UNAUTH);
    begun.proven.user = "nobody";
    ck_assert_int_eq(begin(&begun), WEIR_ERR_UNAUTH);
}

END_TEST

/** The user, changed at random, as the session and as a password shows it. */
struct life {
    struct weir_rng *rng;
    const struct begun *begun;
    int step;
};

static const char *const roles[] = {"member", "viewer",         "approver",    "operator",
                                    "admin",  "data-scientist", "ml-engineer", "agent"};

static weir_status change_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const names[] = {"red", "green"};
    struct life *life = context;
    char *name = (char *)names[weir_rng_u64(life->rng) % 2];
    char *other = (char *)names[weir_rng_u64(life->rng) % 2];
    char *role = (char *)roles[weir_rng_u64(life->rng) % WEIR_ARRAY_LEN(roles)];
    char *of_project = (char *)roles[1 + weir_rng_u64(life->rng) % 3];
    struct weir_arena *arena = &fixture.arena;
    switch (weir_rng_u64(life->rng) % 5) {
    case 0:
        return weir_txn_update(txn, &weir_user_resource,
                               &(struct weir_user){.name = "ann", .role = role},
                               WEIR_FIELDS("role"), err);
    case 1:
        return weir_txn_upsert(txn, &weir_project_member_resource,
                               &(struct weir_project_member){
                                   .name = weir_arena_printf(arena, "%s/group/%s", name, other),
                                   .project = name,
                                   .group = other,
                                   .role = of_project,
                                   .created_by = "ann"},
                               err);
    case 2:
        return weir_txn_upsert(
            txn, &weir_group_member_resource,
            &(struct weir_group_member){
                .name = weir_arena_printf(arena, "%s/ann", name), .group = name, .user = "ann"},
            err);
    case 3: {
        weir_status status = weir_txn_delete(txn, &weir_group_member_resource,
                                             weir_arena_printf(arena, "%s/ann", name), err);
        return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
    }
    default:
        return weir_groups_take(txn, "ann", "idp", (const char *const[]){name}, 1, NOW, arena, err);
    }
}

static weir_status compare_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct life *life = context;
    struct weir_identity by_session, now;
    MUST(weir_session_identify(txn, life->begun->secret, NOW, &fixture.arena, &by_session, err));
    MUST(weir_user_identify(txn, "ann", &fixture.arena, &now, err));
    ck_assert_msg(by_session.rights == now.rights && by_session.limit == now.limit &&
                      by_session.role == now.role && by_session.n_grants == now.n_grants,
                  "step %d: %s", life->step, now.role_name);
    for (size_t i = 0; i < now.n_grants; i++) {
        ck_assert_str_eq(by_session.grants[i].project, now.grants[i].project);
        ck_assert_msg(by_session.grants[i].rights == now.grants[i].rights, "step %d", life->step);
    }
    return WEIR_OK;
}

START_TEST(a_session_may_what_its_user_may_now)
{
    struct weir_rng rng;
    struct begun begun = {.proven = {.user = "ann", .by = "password"}};
    struct life life = {.rng = &rng, .begun = &begun};
    (void)test_seed(&rng);
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    for (life.step = 0; life.step < 60; life.step++) {
        fixture_write(&fixture, change_in, &life);
        fixture_read(&fixture, compare_in, &life);
    }
}

END_TEST

static weir_status limited_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct begun *begun = context;
    struct weir_identity identity;
    MUST(weir_session_identify(txn, begun->secret, NOW, &fixture.arena, &identity, err));
    ck_assert_int_eq(identity.role, WEIR_ROLE_VIEWER);
    ck_assert_str_eq(begun->session.role, "viewer");
    return WEIR_OK;
}

static weir_status be_admin_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_update(txn, &weir_user_resource,
                           &(struct weir_user){.name = "ann", .role = "admin"}, WEIR_FIELDS("role"),
                           err);
}

START_TEST(a_limit_that_is_proven_stays)
{
    struct begun begun = {.proven = {.user = "ann", .by = "link", .limited_to = "viewer"}};
    fixture_write(&fixture, be_admin_in, NULL);
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    fixture_read(&fixture, limited_in, &begun);
}

END_TEST

/* ---- groups that an issuer names --------------------------------------------------------------- */

struct membership {
    char **groups;
    size_t n;
};

static weir_status groups_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct membership *out = context;
    return weir_txn_query_texts(
        txn,
        "SELECT \"group\" || coalesce(' of ' || issuer, '') FROM group_members "
        "WHERE \"user\" = 'ann' ORDER BY \"group\"",
        WEIR_NO_BINDS, &fixture.arena, &out->groups, &out->n, err);
}

static void check_groups(const char *first, const char *second)
{
    const char *const expected[] = {first, second};
    struct membership of_ann;
    fixture_read(&fixture, groups_in, &of_ann);
    for (size_t i = 0; i < 2; i++) {
        const char *found = i < of_ann.n ? of_ann.groups[i] : "";
        ck_assert_str_eq(found, expected[i]);
    }
    ck_assert_uint_le(of_ann.n, 2);
}

static weir_status put_into_green(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(
        txn, &weir_group_member_resource,
        &(struct weir_group_member){.name = "green/ann", .group = "green", .user = "ann"}, err);
}

START_TEST(each_login_takes_the_issuers_word_for_groups)
{
    static const char *const both[] = {"green", "red", "not-here", "red"};
    struct begun begun = {
        .proven = {.user = "ann", .by = "test", .issuer = "idp", .groups = both, .n_groups = 4}};
    fixture_write(&fixture, put_into_green, NULL);
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    check_groups("green", "red of idp"); /* where an admin put her she stays */
    begun.proven.n_groups = 1;
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    check_groups("green", "");
    begun.proven.groups = both + 1;
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    begun.proven.issuer = "other";
    begun.proven.n_groups = 0;
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    check_groups("green", "red of idp"); /* another's word is about its own */
    begun.proven.issuer = NULL;
    ck_assert_int_eq(begin(&begun), WEIR_OK);
    check_groups("green", "red of idp");
}

END_TEST

WEIR_TEST_MAIN_WITH("identity", set_up, tear_down, the_registry_keeps_the_laws,
                    an_operator_chooses_which_are_on, one_that_is_off_says_so,
                    a_session_says_what_it_was_begun_from, a_session_may_what_its_user_may_now,
                    a_limit_that_is_proven_stays, each_login_takes_the_issuers_word_for_groups)
