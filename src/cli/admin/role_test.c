/* weir role, and the matrix that weir explain roles prints. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"

/** The line of the last output that begins with this; its columns, split at blanks. */
static size_t line_of(const char *begin, char *words[24])
{
    static char line[512];
    const char *at = strstr(cli.out, begin);
    ck_assert_msg(at != NULL, "no line \"%s\" in:\n%s", begin, cli.out);
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    char *rest = line + strlen(begin), *word;
    size_t n = 0;
    while ((word = strsep(&rest, " ")) != NULL && n < 24) {
        if (*word != '\0') {
            words[n++] = word;
        }
    }
    return n;
}

START_TEST(a_role_is_defined_changed_and_deleted)
{
    EXPECT_EXIT(0, "role", "create", "reviewer", "--like", "viewer", "--right", "ions review",
                "--right", "cancel jobs", "--without", "read usage", "--description", "They look",
                "-ojson");
    const json_t *rights = json_object_get(cli.json, "rights");
    ck_assert_ptr_nonnull(rights);
    bool reviews = false, cancels = false, reads_usage = false;
    for (size_t i = 0; i < json_array_size(rights); i++) {
        const char *right = json_string_value(json_array_get(rights, i));
        reviews = reviews || strcmp(right, "review ions") == 0;
        cancels = cancels || strcmp(right, "cancel jobs") == 0;
        reads_usage = reads_usage || strcmp(right, "read usage") == 0;
    }
    ck_assert(reviews && cancels && !reads_usage);
    EXPECT_EXIT(0, "role", "set", "reviewer", "--without", "cancel jobs", "-oyaml");
    ck_assert_ptr_null(strstr(cli.out, "cancel jobs"));
    ck_assert_ptr_nonnull(strstr(cli.out, "They look"));
    EXPECT_EXIT(0, "role", "set", "reviewer", "--without", "cancel jobs");
    ck_assert_int_eq(strncmp(cli.out, "role/reviewer allows ", 21), 0);
    ck_assert_ptr_eq(strchr(cli.out, '\n'), cli.out + strlen(cli.out) - 1); /* one line */
    EXPECT_EXIT(0, "get", "roles");
    ck_assert_ptr_nonnull(strstr(cli.out, "reviewer"));
    EXPECT_EXIT(0, "get", "role", "reviewer");
    EXPECT_EXIT(0, "role", "delete", "reviewer");
    ck_assert_str_eq(cli.out, "reviewer: deleted\n");
    EXPECT_REFUSED(4, "reviewer", "role", "delete", "reviewer");
}

END_TEST

START_TEST(what_cannot_be_a_role_is_refused)
{
    EXPECT_REFUSED(2, "did you mean \"read models\"", "role", "create", "r", "--right",
                   "read model");
    EXPECT_REFUSED(2, "no right of projects", "role", "create", "r", "--right", "users change");
    EXPECT_REFUSED(2, "allow nothing", "role", "create", "r");
    EXPECT_REFUSED(2, "role of Weir itself", "role", "create", "viewer", "--right", "jobs read");
    EXPECT_REFUSED(2, "say what of it", "role", "set", "r");
    EXPECT_REFUSED(4, "weir role create r", "role", "set", "r", "--right", "jobs read");
    EXPECT_REFUSED(2, "usage", "role", "delete", "r", "--like", "viewer");
    EXPECT_REFUSED(2, "usage", "role", "make", "r");
}

END_TEST

START_TEST(the_matrix_has_the_custom_roles_beside_the_others)
{
    char *words[24];
    EXPECT_EXIT(0, "role", "create", "zebra", "--right", "cancel jobs");
    EXPECT_EXIT(0, "explain", "roles");
    size_t n = line_of("RIGHT", words);
    ck_assert_uint_eq(n, 8);
    ck_assert_str_eq(words[0], "member");
    ck_assert_str_eq(words[n - 1], "zebra");
    ck_assert_uint_eq(line_of("cancel jobs ", words), n);
    ck_assert_str_eq(words[1], "-"); /* viewer */
    ck_assert_str_eq(words[n - 2], "yes");
    ck_assert_str_eq(words[n - 1], "yes");
    ck_assert_uint_eq(line_of("operate nodes ", words), n);
    ck_assert_str_eq(words[3], "platform"); /* operator */
    ck_assert_str_eq(words[n - 1], "-");
    EXPECT_EXIT(0, "explain", "role");
    ck_assert_ptr_nonnull(strstr(cli.out, "project_rights"));
}

END_TEST

START_TEST(who_has_a_role_is_said_before_it_goes)
{
    EXPECT_EXIT(0, "role", "create", "canceller", "--right", "cancel jobs");
    EXPECT_EXIT(0, "user", "create", "sam", "--role", "member");
    EXPECT_EXIT(0, "project", "grant", "default", "sam", "--role", "canceller");
    EXPECT_REFUSED(5, "user sam in project default", "role", "delete", "canceller");
    EXPECT_REFUSED(2, "weir project grant", "user", "role", "sam", "canceller");
    EXPECT_EXIT(0, "token", "create", "ci", "--user", "sam", "--role", "canceller");
    EXPECT_EXIT(0, "project", "revoke", "default", "sam");
    ck_assert_str_eq(cli.out, "sam: revoked\n");
    EXPECT_EXIT(0, "group", "create", "team");
    EXPECT_EXIT(0, "group", "add", "team", "sam");
    EXPECT_EXIT(0, "group", "remove", "team", "sam");
    ck_assert_str_eq(cli.out, "sam: removed\n");
    EXPECT_REFUSED(5, "token ci of sam", "role", "delete", "canceller");
}

END_TEST

WEIR_TEST_MAIN_WITH("cli_role", cli_open, cli_close, a_role_is_defined_changed_and_deleted,
                    what_cannot_be_a_role_is_refused,
                    the_matrix_has_the_custom_roles_beside_the_others,
                    who_has_a_role_is_said_before_it_goes)
