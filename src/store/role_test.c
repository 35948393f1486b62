/* Roles by name, and what is granted by them, in the store. */
#include "store/role.h"

#include "store/store_fixture.h"
#include "store/table.h"
#include "store/tenant.h"

#include <string.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    static const struct weir_project projects[] = {{.name = "p"}, {.name = "q"}};
    static const struct weir_user users[] = {{.name = "ann", .kind = "person", .role = "member"},
                                             {.name = "bob", .kind = "person", .role = "member"}};
    static const struct weir_project_member members[] = {
        {.name = "p/user/ann", .project = "p", .user = "ann", .role = "night", .created_by = "x"},
        {.name = "p/group/all",
         .project = "p",
         .group = "all",
         .role = "viewer",
         .created_by = "x"},
        {.name = "q/user/ann", .project = "q", .user = "ann", .role = "ghost", .created_by = "x"},
        {.name = "q/group/all", .project = "q", .group = "all", .role = "night", .created_by = "x"},
    };
    /* A right of the platform that somebody wrote there gives nothing, nor does one of no version. */
    static const struct weir_custom_role role = {.name = "night",
                                                 .rights = "cancel jobs,change users,fly kites",
                                                 .created_by = "x",
                                                 .changed_by = "x"};
    for (size_t i = 0; i < 2; i++) {
        MUST(weir_txn_insert(txn, &weir_project_resource, &projects[i], err));
        MUST(weir_txn_insert(txn, &weir_user_resource, &users[i], err));
    }
    MUST(weir_txn_insert(txn, &weir_group_resource, &(struct weir_group){.name = "all"}, err));
    MUST(weir_txn_insert(
        txn, &weir_group_member_resource,
        &(struct weir_group_member){.name = "all/ann", .group = "all", .user = "ann"}, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        MUST(weir_txn_insert(txn, &weir_project_member_resource, &members[i], err));
    }
    MUST(weir_txn_insert(
        txn, &weir_token_resource,
        &(struct weir_token){
            .id = "t", .user = "bob", .name = "ci", .role = "night", .secret_hash = "h"},
        err));
    return weir_txn_insert(txn, &weir_custom_role_resource, &role, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status find(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_role_found found;
    (void)context;
    MUST(weir_role_find(txn, "viewer", &fixture.arena, &found, err));
    ck_assert(!found.is_custom && found.is_of_projects);
    ck_assert_int_eq(found.role, WEIR_ROLE_VIEWER);
    MUST(weir_role_find(txn, "agent", &fixture.arena, &found, err));
    ck_assert(!found.is_of_projects);
    MUST(weir_role_find(txn, "night", &fixture.arena, &found, err));
    ck_assert(found.is_custom && found.is_of_projects);
    ck_assert_int_eq(found.role, WEIR_ROLE_MEMBER);
    ck_assert(found.rights == WEIR_RIGHTS_OF(WEIR_RIGHT_JOBS_CANCEL));
    ck_assert_int_eq(weir_role_find(txn, "ghost", &fixture.arena, &found, err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err->message, "\"ghost\" is not a role"));
    ck_assert_int_eq(weir_role_find(txn, NULL, &fixture.arena, &found, err), WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(a_name_is_a_role_of_weir_or_a_custom_one)
{
    fixture_read(&fixture, find, NULL);
    ck_assert_int_eq(weir_custom_role_check_name("night", NULL), WEIR_OK);
    ck_assert_int_eq(weir_custom_role_check_name("Night", NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_custom_role_check_name("", NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_custom_role_check_name("scientist", NULL),
                     WEIR_ERR_INVALID); /* old word */
    ck_assert_int_eq(weir_custom_role_check_name("worker", NULL), WEIR_ERR_INVALID);
}

END_TEST

static weir_status look_at_grants(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_grant *grants;
    size_t n;
    weir_rights cancel = WEIR_RIGHTS_OF(WEIR_RIGHT_JOBS_CANCEL);
    (void)context;
    MUST(weir_grants_load(txn, "ann", &fixture.arena, &grants, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(grants[0].project, "p");
    ck_assert(grants[0].rights == (weir_role_rights(WEIR_ROLE_VIEWER) | cancel));
    ck_assert_ptr_null(grants[0].gone_role);
    ck_assert_str_eq(grants[1].project, "q");
    ck_assert(grants[1].rights == cancel);
    ck_assert_str_eq(grants[1].gone_role, "ghost");
    MUST(weir_grants_load(txn, "bob", &fixture.arena, &grants, &n, err));
    ck_assert_uint_eq(n, 0);
    return WEIR_OK;
}

START_TEST(what_is_granted_is_the_union_and_what_is_gone_adds_nothing)
{
    fixture_read(&fixture, look_at_grants, NULL);
}

END_TEST

static weir_status look_at_holders(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char **holders;
    size_t n;
    (void)context;
    MUST(weir_role_holders(txn, "night", &fixture.arena, &holders, &n, err));
    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(holders[0], "group all in project q");
    ck_assert_str_eq(holders[1], "token ci of bob");
    ck_assert_str_eq(holders[2], "user ann in project p");
    MUST(weir_role_holders(txn, "operator", &fixture.arena, &holders, &n, err));
    ck_assert_uint_eq(n, 0);
    return WEIR_OK;
}

START_TEST(who_has_a_role_is_named)
{
    fixture_read(&fixture, look_at_holders, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("store_role", set_up, tear_down, a_name_is_a_role_of_weir_or_a_custom_one,
                    what_is_granted_is_the_union_and_what_is_gone_adds_nothing,
                    who_has_a_role_is_named)
