/* Roles that admins define: what they give, when, and to whom. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "store/role.h"
#include "store/stmt.h"

#define MEMBER API "/projects/%s/members/%s/%s"

static bool has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

static void define(const char *name, const char *members)
{
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"%s\",%s}", name, members);
}

START_TEST(a_role_is_defined_looked_at_changed_and_deleted)
{
    define("night", "\"rights\":[\"models read\",\"cancel jobs\"],\"description\":\"At night\"");
    ck_assert(json_is_true(said("is_custom")));
    ck_assert_uint_eq(json_array_size(said("rights")), 3);
    ck_assert(has_text(said("rights"), "read models"));
    ck_assert(has_text(said("rights"), "look models")); /* comes with reading */
    ck_assert(has_text(said("project_rights"), "cancel jobs"));
    ck_assert_str_eq(said_text("created_by"), "ann");
    EXPECT_ERROR(409, "night", "POST " API "/roles\n\n{\"name\":\"night\",\"like\":\"viewer\"}");
    EXPECT(200, "PUT " API "/roles/night\n\n{\"without\":[\"cancel jobs\"]}");
    ck_assert_uint_eq(json_array_size(said("rights")), 2);
    ck_assert_str_eq(said_text("description"), "At night"); /* what is left out stays */
    EXPECT(200, "PUT " API "/roles/night\n\n{\"like\":\"night\",\"rights\":[\"jobs read\"]}");
    ck_assert_uint_eq(json_array_size(said("rights")), 3);
    EXPECT(200, "PUT " API "/roles/night\n\n{\"rights\":[\"jobs read\"]}"); /* all it allows now */
    ck_assert_uint_eq(json_array_size(said("rights")), 1);
    EXPECT(200, "GET " API "/roles/night");
    ck_assert_str_eq(said_text("rights.0"), "read jobs");
    EXPECT(200, "GET " API "/roles/viewer");
    ck_assert(json_is_false(said("is_custom")));
    EXPECT(200, "GET " API "/roles");
    ck_assert_uint_eq(json_array_size(said("items")), 8);
    ck_assert_str_eq(said_text("items.7.name"), "night");
    EXPECT(204, "DELETE " API "/roles/night");
    EXPECT(404, "GET " API "/roles/night");
    EXPECT(404, "PUT " API "/roles/night\n\n{\"like\":\"viewer\"}");
    EXPECT(404, "GET " API "/roles/agent");
}

END_TEST

START_TEST(like_a_role_means_its_rights_in_projects)
{
    define("engineer", "\"like\":\"ml-engineer\",\"without\":[\"ions review\"]");
    ck_assert(has_text(said("rights"), "roll back ions"));
    ck_assert(!has_text(said("rights"), "review ions"));
    ck_assert(!has_text(said("rights"), "operate nodes")); /* of the platform */
    EXPECT_ERROR(400, "$.like", "POST " API "/roles\n\n{\"name\":\"x\",\"like\":\"boss\"}");
    EXPECT_ERROR(400, "allow nothing", "POST " API "/roles\n\n{\"name\":\"x\",\"like\":\"agent\"}");
    EXPECT_ERROR(400, "take that away too",
                 "POST " API "/roles\n\n{\"name\":\"x\",\"like\":\"viewer\","
                 "\"without\":[\"look models\"]}");
}

END_TEST

START_TEST(what_is_no_role_of_projects_is_refused)
{
    static const struct {
        const char *body, *why;
    } bad[] = {
        {"{\"like\":\"viewer\"}", "$.name"},
        {"{\"name\":\"Night\",\"like\":\"viewer\"}", "no name for a role"},
        {"{\"name\":\"admin\",\"like\":\"viewer\"}", "role of Weir itself"},
        {"{\"name\":\"worker\",\"like\":\"viewer\"}", "role of Weir itself"},
        {"{\"name\":\"x\"}", "allow nothing"},
        {"{\"name\":\"x\",\"rights\":[]}", "allow nothing"},
        {"{\"name\":\"x\",\"rights\":\"read jobs\"}", "$.rights: expected a list"},
        {"{\"name\":\"x\",\"rights\":[3]}", "$.rights[0]: expected text"},
        {"{\"name\":\"x\",\"rights\":[\"read jobs\",\"fly kites\"]}", "$.rights[1]"},
        {"{\"name\":\"x\",\"rights\":[\"use self\"]}", "no right of projects"},
        {"{\"name\":\"x\",\"like\":\"viewer\",\"colour\":\"red\"}", "colour"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        EXPECT_ERROR(400, bad[i].why, "POST " API "/roles\n\n%s", bad[i].body);
    }
    for (int i = 0; i < WEIR_RIGHT_COUNT; i++) {
        enum weir_right right = (enum weir_right)i;
        bool is_of_projects = weir_right_scope(right) == WEIR_RIGHT_IS_OF_PROJECT;
        EXPECT_STATUS(is_of_projects ? 200 : 400,
                      ask("POST " API "/roles\n\n{\"name\":\"x\",\"rights\":[\"%s %s\"]}",
                          weir_right_verb(right), weir_right_noun(right)));
        if (is_of_projects) {
            EXPECT(204, "DELETE " API "/roles/x");
        }
    }
    EXPECT_ERROR(400, "role of Weir itself", "PUT " API "/roles/viewer\n\n{\"like\":\"admin\"}");
    EXPECT_ERROR(400, "role of Weir itself", "DELETE " API "/roles/viewer");
    define("x", "\"like\":\"viewer\"");
    EXPECT_ERROR(400, "is a role of projects",
                 "POST " API "/users\n\n{\"name\":\"sam\",\"kind\":\"person\",\"role\":\"x\"}");
}

END_TEST

START_TEST(there_are_so_many_roles_and_no_more)
{
    for (int i = 0; i < WEIR_CUSTOM_ROLES_MAX; i++) {
        EXPECT(200, "POST " API "/roles\n\n{\"name\":\"r%d\",\"like\":\"viewer\"}", i);
    }
    EXPECT_STATUS(413, ask("POST " API "/roles\n\n{\"name\":\"x\",\"like\":\"viewer\"}"));
    EXPECT(204, "DELETE " API "/roles/r7");
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"x\",\"like\":\"viewer\"}");
}

END_TEST

/* The next request after the change, with the same token and in the same session. */
START_TEST(a_change_counts_from_the_next_request_on)
{
    char sam[BEARER_BYTES];
    make_caller("sam", "member", "", sam);
    EXPECT_STATUS(403, ask_as(sam, "POST " API "/datasets\n\n{\"name\":\"one\"}"));
    define("maker", "\"like\":\"viewer\",\"rights\":[\"datasets change\"]");
    EXPECT(200, "PUT " MEMBER "\n\n{\"role\":\"maker\"}", "default", "user", "sam");
    EXPECT_STATUS(200, ask_as(sam, "POST " API "/datasets\n\n{\"name\":\"one\"}"));
    EXPECT(200, "PUT " API "/roles/maker\n\n{\"without\":[\"change datasets\"]}");
    EXPECT_STATUS(403, ask_as(sam, "POST " API "/datasets\n\n{\"name\":\"two\"}"));
    EXPECT_STATUS(200, ask_as(sam, "GET " API "/datasets"));
    EXPECT(200, "PUT " API "/roles/maker\n\n{\"like\":\"data-scientist\"}");
    EXPECT_STATUS(200, ask_as(sam, "POST " API "/datasets\n\n{\"name\":\"two\"}"));
}

END_TEST

START_TEST(a_group_has_a_role_and_a_token_no_more_than_it)
{
    char bob[BEARER_BYTES], lesser[BEARER_BYTES];
    make_caller("bob", "member", "", bob);
    define("maker", "\"like\":\"viewer\",\"rights\":[\"datasets change\",\"jobs cancel\"]");
    define("looker", "\"rights\":[\"datasets read\",\"projects read\",\"delete models\"]");
    EXPECT(200, "POST " API "/groups\n\n{\"name\":\"team\"}");
    EXPECT(200, "PUT " API "/groups/team/members/bob");
    EXPECT(200, "PUT " MEMBER "\n\n{\"role\":\"maker\"}", "default", "group", "team");
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"one\"}"));
    EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"bob\",\"name\":\"l\",\"role\":\"looker\"}");
    (void)snprintf(lesser, sizeof lesser, "Bearer %s", said_text("secret"));
    EXPECT_STATUS(200, ask_as(lesser, "GET " API "/datasets"));
    EXPECT_STATUS(403, ask_as(lesser, "POST " API "/datasets\n\n{\"name\":\"two\"}"));
    EXPECT_STATUS(200, ask_as(lesser, "GET " API "/session"));
    const json_t *rights = said("projects.default");
    ck_assert(has_text(rights, "read datasets"));
    ck_assert(!has_text(rights, "delete models")); /* the token's, not its user's */
    ck_assert(!has_text(rights, "cancel jobs"));   /* its user's, not the token's */
    EXPECT_ERROR(409, "group team in project default", "DELETE " API "/roles/maker");
    EXPECT_ERROR(409, "token l of bob", "DELETE " API "/roles/looker");
    EXPECT_ERROR(400, "not a role",
                 "POST " API "/tokens\n\n{\"user\":\"bob\",\"name\":\"n\",\"role\":\"boss\"}");
}

END_TEST

/* An admin's token of a custom role is not an admin's: not on the platform, and in no project. */
START_TEST(an_admins_token_of_a_custom_role_is_no_admins)
{
    char less[BEARER_BYTES];
    define("looker", "\"rights\":[\"datasets read\",\"projects grant\"]");
    EXPECT(200, "POST " API "/tokens\n\n{\"name\":\"l\",\"role\":\"looker\"}");
    (void)snprintf(less, sizeof less, "Bearer %s", said_text("secret"));
    EXPECT_STATUS(200, ask_as(less, "GET " API "/session"));
    ck_assert_str_eq(said_text("role"), "looker");
    EXPECT_STATUS(200, ask_as(less, "GET " API "/datasets"));
    EXPECT_STATUS(200, ask_as(less, "GET " API "/nodes")); /* as a member */
    EXPECT_STATUS(403, ask_as(less, "GET " API "/users"));
    EXPECT_STATUS(403, ask_as(less, "GET " API "/jobs"));
    EXPECT_STATUS(403, ask_as(less, "POST " API "/roles\n\n{\"name\":\"x\",\"like\":\"viewer\"}"));
    EXPECT_STATUS(403, ask_as(less, "PUT " API "/roles/looker\n\n{\"like\":\"admin\"}"));
    EXPECT_STATUS(404, ask_as(less, "DELETE " API "/tokens/token-of-ann"));
    EXPECT_STATUS(200, ask_as(less, "POST " API "/session/link"));
}

END_TEST

/* ---- gone ------------------------------------------------------------------------------------ */

static weir_status remove_role(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_delete(txn, &weir_custom_role_resource, context, err);
}

/* As in a database whose row was lost: by no route it can be so. */
START_TEST(a_role_that_is_gone_gives_nothing_and_says_so)
{
    struct weir_error err;
    char sam[BEARER_BYTES], token[BEARER_BYTES];
    make_caller("sam", "member", "", sam);
    define("ghost", "\"like\":\"data-scientist\"");
    EXPECT(200, "PUT " MEMBER "\n\n{\"role\":\"ghost\"}", "default", "user", "sam");
    EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"sam\",\"name\":\"g\",\"role\":\"ghost\"}");
    (void)snprintf(token, sizeof token, "Bearer %s", said_text("secret"));
    EXPECT_STATUS(200, ask_as(sam, "GET " API "/datasets"));
    EXPECT_STATUS(200, ask_as(token, "GET " API "/datasets"));
    EXPECT(200, "GET " API "/projects/default/members");
    ck_assert(json_is_null(said("items.0.problem")));
    must(weir_store_write(callers.fixture.store, remove_role, "ghost", &err), &err);
    EXPECT_STATUS(403, ask_as(sam, "GET " API "/datasets"));
    ck_assert_ptr_nonnull(
        strstr(said_text("error.message"), "the role \"ghost\" in project default is gone"));
    EXPECT_STATUS(401, ask_as(token, "GET " API "/datasets"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "\"ghost\", which is gone"));
    EXPECT_STATUS(200, ask_as(sam, "GET " API "/session"));
    ck_assert_str_eq(said_text("gone_roles.0.role"), "ghost");
    ck_assert_str_eq(said_text("gone_roles.0.project"), "default");
    ck_assert_uint_eq(json_array_size(said("projects.default")), 0);
    EXPECT(200, "GET " API "/projects/default/members");
    ck_assert_str_eq(said_text("items.0.problem"), "the role ghost is gone: it gives no rights");
    EXPECT(204, "DELETE " MEMBER, "default", "user", "sam");
}

END_TEST

/* ---- the audit ------------------------------------------------------------------------------- */

static bool was_audited(const char *kind, const char *part)
{
    EXPECT(200, "GET " API "/audit?kind=%s", kind);
    for (size_t i = 0; i < json_array_size(said("items")); i++) {
        const json_t *item = json_array_get(said("items"), i);
        const char *message = json_string_value(json_object_get(item, "message"));
        if (strstr(message, part) != NULL &&
            strcmp(json_string_value(json_object_get(item, "subject")), "role/night") == 0 &&
            strcmp(json_string_value(json_object_get(item, "actor")), "ann") == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(each_change_is_in_the_audit_with_what_was_before)
{
    define("night", "\"rights\":[\"cancel jobs\"]");
    EXPECT(200, "PUT " API "/roles/night\n\n{\"rights\":[\"trigger ions\",\"cancel jobs\"]}");
    EXPECT(200, "PUT " API "/roles/night\n\n{\"description\":\"At night\"}");
    EXPECT(204, "DELETE " API "/roles/night");
    ck_assert(was_audited("role_created", "Role night was defined: it allows cancel jobs, by ann"));
    ck_assert(was_audited("role_changed", "it allows cancel jobs, trigger ions; before it allowed "
                                          "cancel jobs, by ann"));
    ck_assert(was_audited("role_changed", "was described anew"));
    ck_assert(was_audited("role_deleted", "it allowed cancel jobs, trigger ions"));
    /* The longest there is has room. */
    define("night", "\"like\":\"admin\"");
    EXPECT(200, "PUT " API "/roles/night\n\n{\"without\":[\"cancel jobs\"]}");
    ck_assert(was_audited("role_changed", "give feedback, by ann"));
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "role", callers_open, callers_close, a_role_is_defined_looked_at_changed_and_deleted,
    like_a_role_means_its_rights_in_projects, what_is_no_role_of_projects_is_refused,
    there_are_so_many_roles_and_no_more, a_change_counts_from_the_next_request_on,
    a_group_has_a_role_and_a_token_no_more_than_it, an_admins_token_of_a_custom_role_is_no_admins,
    a_role_that_is_gone_gives_nothing_and_says_so, each_change_is_in_the_audit_with_what_was_before)
