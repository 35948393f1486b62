/* Who the gateway is told may predict, and that it forgets with the next change by a person. */
#include "api/caller_fixture.h"
#include "gateway/gateway.h"

#include "base/test_main.h"

static struct weir_arena arena;
static struct weir_gateway_caller caller;
static struct weir_error err;

static void open_all(void)
{
    callers_open();
    weir_arena_init(&arena, 0);
}

static void close_all(void)
{
    weir_arena_fini(&arena);
    callers_close();
}

static weir_status authorise(const char *token)
{
    caller = (struct weir_gateway_caller){.is_all = false};
    return weir_api_authorise(callers.fixture.api, token, NULL, &arena, &caller, &err);
}

/* The secret of a new token; *out_id, if wanted, its identifier. */
static const char *token_of(const char *body, char out_id[64])
{
    ck_assert_int_eq(ask("POST /api/v1/tokens\n\n%s", body), 200);
    if (out_id != NULL) {
        (void)snprintf(out_id, 64, "%s", said_text("id"));
    }
    return weir_arena_strdup(&arena, said_text("secret"));
}

START_TEST(an_admin_may_predict_in_every_project)
{
    ck_assert_int_eq(authorise(callers.fixture.bearer + strlen("Bearer ")), WEIR_OK);
    ck_assert(caller.is_all);
    ck_assert_int_eq(caller.expires_ms, 0);
}

END_TEST

START_TEST(who_has_a_role_in_a_project_may_there)
{
    ck_assert_int_eq(ask("POST /api/v1/projects\n\n{\"name\":\"vision\"}"), 200);
    ck_assert_int_eq(
        ask("POST /api/v1/users\n\n{\"name\":\"dan\",\"kind\":\"person\",\"role\":\"member\"}"),
        200);
    ck_assert_int_eq(ask("PUT /api/v1/projects/vision/members/user/dan\n\n"
                         "{\"role\":\"data-scientist\"}"),
                     200);
    const char *token = token_of("{\"user\":\"dan\",\"name\":\"t\",\"role\":\"member\"}", NULL);
    ck_assert_msg(authorise(token) == WEIR_OK, "%s", err.message);
    ck_assert(!caller.is_all);
    ck_assert_uint_eq(caller.n_projects, 1);
    ck_assert_str_eq(caller.projects[0], "vision");
}

END_TEST

START_TEST(who_may_only_look_is_refused_with_a_sentence)
{
    ck_assert_int_eq(
        ask("POST /api/v1/users\n\n{\"name\":\"vic\",\"kind\":\"person\",\"role\":\"viewer\"}"),
        200);
    const char *token = token_of("{\"user\":\"vic\",\"name\":\"t\",\"role\":\"viewer\"}", NULL);
    ck_assert_int_eq(authorise(token), WEIR_ERR_DENIED);
    ck_assert_ptr_nonnull(strstr(err.message, "predict with deployments"));
    ck_assert_int_eq(authorise("weir_wrong"), WEIR_ERR_UNAUTH);
    ck_assert_int_eq(authorise(NULL), WEIR_ERR_UNAUTH);
}

END_TEST

START_TEST(a_revoked_token_is_nobodys)
{
    char id[64];
    const char *token = token_of("{\"user\":\"ann\",\"name\":\"t2\",\"role\":\"admin\"}", id);
    ck_assert_int_eq(authorise(token), WEIR_OK);
    ck_assert_int_eq(ask("DELETE /api/v1/tokens/%s", id), 204);
    ck_assert_int_eq(authorise(token), WEIR_ERR_UNAUTH);
}

END_TEST

WEIR_TEST_MAIN_WITH("inference", open_all, close_all, an_admin_may_predict_in_every_project,
                    who_has_a_role_in_a_project_may_there,
                    who_may_only_look_is_refused_with_a_sentence, a_revoked_token_is_nobodys)
