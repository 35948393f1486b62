/* The matrix of rights against what people expect of the roles, written down by hand. */
#include "store/rights.h"

#include "base/test_main.h"

#include <check.h>
#include <string.h>

/* What each role may do beyond reading, in words. */
static const struct {
    enum weir_role role;
    const char *may[24];
} expected[] = {
    {WEIR_ROLE_VIEWER, {NULL}},
    {WEIR_ROLE_APPROVER, {"ions review"}},
    {WEIR_ROLE_OPERATOR,
     {"ions review", "ions roll back", "ions list people", "ions trigger", "jobs cancel",
      "alerts acknowledge", "nodes operate", "deployments predict with"}},
    {WEIR_ROLE_DATA_SCIENTIST,
     {"datasets change", "jobs submit", "jobs cancel", "runs change", "models register",
      "blobs write", "ions apply", "ions trigger", "deployments predict with"}},
    {WEIR_ROLE_ML_ENGINEER,
     {"ions review", "ions roll back", "ions list people", "ions trigger", "jobs cancel",
      "alerts acknowledge", "nodes operate", "datasets change", "jobs submit", "runs change",
      "models register", "blobs write", "ions apply", "deployments predict with"}},
};

/* What only an admin, an agent or a task may. */
static const char *const others[] = {
    "projects create", "projects grant", "users change",   "tokens change",   "nodes change",
    "nodes speak",     "nodes leave",    "replicas speak", "platform change", "queues change"};

static bool has(enum weir_role role, const char *words)
{
    char text[80];
    for (int i = 0; i < WEIR_RIGHT_COUNT; i++) {
        enum weir_right right = (enum weir_right)i;
        (void)snprintf(text, sizeof text, "%s %s", weir_right_noun(right), weir_right_verb(right));
        if (strcmp(text, words) == 0) {
            return (weir_role_rights(role) & WEIR_RIGHTS_OF(right)) != 0;
        }
    }
    ck_abort_msg("there is no right \"%s\"", words);
}

static bool is_expected(size_t i, const char *words)
{
    for (size_t k = 0; expected[i].may[k] != NULL; k++) {
        if (strcmp(expected[i].may[k], words) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(roles_may_what_their_names_say)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(expected); i++) {
        for (size_t k = 0; expected[4].may[k] != NULL; k++) { /* an ML engineer's are all */
            const char *words = expected[4].may[k];
            ck_assert_msg(has(expected[i].role, words) == is_expected(i, words), "%s: %s",
                          weir_role_text(expected[i].role), words);
        }
        for (size_t k = 0; k < WEIR_ARRAY_LEN(others); k++) {
            ck_assert_msg(!has(expected[i].role, others[k]), "%s: %s",
                          weir_role_text(expected[i].role), others[k]);
            ck_assert(has(WEIR_ROLE_ADMIN, others[k]));
        }
        ck_assert(has(expected[i].role, "decisions read"));
        ck_assert(weir_role_covers(expected[i].role, WEIR_ROLE_VIEWER));
    }
}

END_TEST

START_TEST(members_agents_and_tasks_are_apart)
{
    ck_assert(!has(WEIR_ROLE_MEMBER, "jobs read"));
    ck_assert(!has(WEIR_ROLE_MEMBER, "users read"));
    ck_assert(has(WEIR_ROLE_MEMBER, "nodes read"));
    ck_assert(has(WEIR_ROLE_AGENT, "nodes speak"));
    ck_assert(!has(WEIR_ROLE_AGENT, "jobs read"));
    ck_assert(has(WEIR_ROLE_WORKER, "replicas speak"));
    ck_assert(!has(WEIR_ROLE_WORKER, "jobs read"));
    ck_assert(!weir_role_covers(WEIR_ROLE_DATA_SCIENTIST, WEIR_ROLE_APPROVER));
    ck_assert(!weir_role_covers(WEIR_ROLE_OPERATOR, WEIR_ROLE_DATA_SCIENTIST));
    ck_assert(weir_role_covers(WEIR_ROLE_ML_ENGINEER, WEIR_ROLE_OPERATOR));
    ck_assert(!weir_role_is_of_projects(WEIR_ROLE_MEMBER));
    ck_assert(!weir_role_is_of_projects(WEIR_ROLE_WORKER));
}

END_TEST

WEIR_TEST_LOOPS_MAIN("rights", {roles_may_what_their_names_say, 0},
                     {members_agents_and_tasks_are_apart, 0})
