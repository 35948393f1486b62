/* The matrix of rights against what people expect of the roles, written down by hand. */
#include "store/rights.h"

#include "base/rng.h"
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

/* The set as text, and read back; in the other order of words; and of a version that knew more. */
START_TEST(a_set_of_rights_is_text_and_back)
{
    struct weir_arena arena;
    uint64_t seed;
    struct weir_rng rng;
    weir_random_bytes(&seed, sizeof seed);
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    weir_arena_init(&arena, 0);
    for (int i = 0; i < 500; i++) {
        weir_rights rights = weir_rng_u64(&rng) & WEIR_RIGHTS_ALL;
        char *text = weir_rights_text(rights, ",", &arena);
        ck_assert_msg(weir_rights_read(text) == rights, "seed %llu: %s", (unsigned long long)seed,
                      text);
        char *more =
            weir_arena_printf(&arena, "fly kites,%s%sread", text, *text != '\0' ? "," : "");
        ck_assert_msg(weir_rights_read(more) == rights, "seed %llu: %s", (unsigned long long)seed,
                      more);
    }
    for (int i = 0; i < WEIR_RIGHT_COUNT; i++) {
        enum weir_right right = (enum weir_right)i, found;
        const char *noun = weir_right_noun(right), *verb = weir_right_verb(right);
        ck_assert_int_eq(
            weir_right_from_text(weir_arena_printf(&arena, "%s %s", verb, noun), &found, NULL),
            WEIR_OK);
        ck_assert_int_eq(found, right);
        ck_assert_int_eq(
            weir_right_from_text(weir_arena_printf(&arena, "%s %s", noun, verb), &found, NULL),
            WEIR_OK);
        ck_assert_int_eq(found, right); /* no two words are one another's */
    }
    ck_assert_str_eq(weir_rights_text(0, ",", &arena), "");
    ck_assert(weir_rights_read("") == 0);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(who_reads_looks_as_every_role_of_weir_does)
{
    weir_rights read = WEIR_RIGHTS_OF(WEIR_RIGHT_MODELS_READ);
    ck_assert(weir_rights_close(read) == (read | WEIR_RIGHTS_OF(WEIR_RIGHT_MODELS_LOOK)));
    ck_assert(weir_rights_close(0) == 0);
    for (int i = 0; i < WEIR_ROLE_COUNT; i++) {
        weir_rights rights = weir_role_rights((enum weir_role)i);
        ck_assert_msg(weir_rights_close(rights) == rights, "%s", weir_role_text((enum weir_role)i));
    }
    ck_assert((weir_rights_of_projects() & WEIR_RIGHTS_OF(WEIR_RIGHT_USERS_CHANGE)) == 0);
    ck_assert((weir_rights_of_projects() & read) != 0);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("rights", {roles_may_what_their_names_say, 0},
                     {members_agents_and_tasks_are_apart, 0}, {a_set_of_rights_is_text_and_back, 0},
                     {who_reads_looks_as_every_role_of_weir_does, 0})
