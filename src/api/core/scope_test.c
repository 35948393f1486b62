/* Which routes are open to tasks and agents, and the form of a task's token. The rest needs jobs
 * and runs: tests/system/identity_test.py. */
#include "api/attempt_token.h"
#include "api/routes.h"

#include "base/test_main.h"

#include <string.h>

static bool may(enum weir_role role, enum weir_right right)
{
    return (weir_role_rights(role) & WEIR_RIGHTS_OF(right)) != 0;
}

START_TEST(a_route_for_tasks_or_agents_says_what_must_be_their_own)
{
    size_t n_tasks = 0, n_agents = 0;
    const struct weir_route *route;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        bool is_for_tasks = may(WEIR_ROLE_WORKER, route->right);
        bool is_for_agents = may(WEIR_ROLE_AGENT, route->right);
        /* What a task may by MLflow's API alone, as far as who it works for may. */
        bool is_mlflows =
            route->right == WEIR_RIGHT_RUNS_READ || route->right == WEIR_RIGHT_MODELS_READ ||
            route->right == WEIR_RIGHT_MODELS_LOOK || route->right == WEIR_RIGHT_MODELS_LABEL ||
            route->right == WEIR_RIGHT_RUNS_CHANGE || route->right == WEIR_RIGHT_EXPERIMENTS_CHANGE;
        bool is_agents = route->owns == ROUTE_OWNS_NODE || route->owns == ROUTE_OWNS_TASK;
        bool is_flagged = route->owns != ROUTE_OWNS_CLOSED && !is_agents;
        ck_assert_msg(is_for_tasks == is_flagged || (is_for_tasks && is_mlflows), "%s %s",
                      route->method, route->pattern);
        ck_assert_msg(is_for_agents == is_agents, "%s %s", route->method, route->pattern);
        n_tasks += is_flagged;
        n_agents += is_for_agents;
    }
    ck_assert_uint_eq(n_tasks, 43);
    ck_assert_uint_eq(n_agents, 6);
}

END_TEST

START_TEST(a_tasks_token_is_of_one_key_task_and_attempt)
{
    static const unsigned char key[ATTEMPT_TOKEN_KEY_BYTES] = "one", other[sizeof key] = "two";
    struct weir_arena arena;
    char *task;
    int64_t attempt;
    weir_arena_init(&arena, 0);
    const char *token = attempt_token_make(key, "0192-ab", 12, &arena);
    ck_assert(attempt_token_is(token));
    ck_assert(!attempt_token_is("weir_AbC"));
    ck_assert_int_eq(attempt_token_open(key, token, &arena, &task, &attempt, NULL), WEIR_OK);
    ck_assert_str_eq(task, "0192-ab");
    ck_assert_int_eq(attempt, 12);
    ck_assert_int_eq(attempt_token_open(other, token, &arena, &task, &attempt, NULL),
                     WEIR_ERR_UNAUTH);
    ck_assert_str_ne(token, attempt_token_make(key, "0192-ab", 1, &arena));
    for (size_t i = 0; i < strlen(token); i++) { /* not a bit of it may differ, and none be gone */
        char *wrong = weir_arena_strdup(&arena, token);
        wrong[i] ^= 1;
        ck_assert_int_eq(attempt_token_open(key, wrong, &arena, &task, &attempt, NULL),
                         WEIR_ERR_UNAUTH);
        wrong[i] = '\0';
        ck_assert_int_eq(attempt_token_open(key, wrong, &arena, &task, &attempt, NULL),
                         WEIR_ERR_UNAUTH);
    }
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("scope", a_route_for_tasks_or_agents_says_what_must_be_their_own,
               a_tasks_token_is_of_one_key_task_and_attempt)
