#include "job/board.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;

static weir_status make_job(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    MUST(weir_node_heartbeat(txn, &(struct weir_node){.name = "a", .cpu_slots = 4}, 1, err));
    const struct weir_task tasks[] = {{.id = "t0", .rank = 0, .role = "worker"},
                                      {.id = "t1", .rank = 1, .role = "worker"}};
    const struct weir_job job = {.id = "j",
                                 .name = "x",
                                 .project = "default",
                                 .kind = "command",
                                 .spec = "{}",
                                 .max_restarts = 9};
    return weir_job_create(txn, &job, tasks, 2, 1000, err);
}

static void step(struct weir_txn *txn, const struct weir_job_event *event, int64_t now_ms)
{
    struct weir_error err;
    struct weir_job_state state;
    struct weir_job_actions actions = {0};
    ck_assert_int_eq(weir_job_load(txn, "j", &fixture.arena, &state, &err), WEIR_OK);
    ck_assert_int_eq(weir_job_step(&state, event, now_ms, &fixture.arena, &actions, &err), WEIR_OK);
    ck_assert_int_eq(weir_job_save(txn, &state, &actions, now_ms, &err), WEIR_OK);
}

static void place(struct weir_txn *txn, int64_t now_ms)
{
    const char *names[] = {"a", "a"};
    step(txn, &(struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = names, .n_place = 2},
         now_ms);
}

static void end(struct weir_txn *txn, const char *task, int64_t attempt, int64_t exit_code)
{
    step(txn,
         &(struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_EXITED,
                                  .task = task,
                                  .attempt = attempt,
                                  .exit_code = exit_code},
         3000);
}

static weir_status put(struct weir_txn *txn, const char *task, int64_t attempt, const char *key,
                       const char *value)
{
    const struct weir_attempt by = {.task = (char *)task, .number = attempt, .job = "j"};
    return weir_board_put(txn, &by, key, value, &fixture.err);
}

/* "KEY=VALUE " of all that is seen. */
static const char *seen(struct weir_txn *txn, const char *prefix)
{
    static char text[512];
    struct weir_board_value *values;
    size_t n, len = 0;
    int64_t count, seq;
    ck_assert_int_eq(weir_board_list(txn, "j", prefix, &fixture.arena, &values, &n, &fixture.err),
                     WEIR_OK);
    ck_assert_int_eq(weir_board_look(txn, "j", prefix, &count, &seq, &fixture.err), WEIR_OK);
    ck_assert_uint_eq(n, (size_t)count);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s=%s ", values[i].key,
                                values[i].value);
    }
    return text;
}

static weir_status attempts_come_and_go(struct weir_txn *txn, void *context, struct weir_error *err)
{
    MUST(make_job(txn, context, err));
    place(txn, 2000);
    ck_assert_int_eq(put(txn, "t0", 1, "at.0", "10.0.0.1 7"), WEIR_OK);
    ck_assert_int_eq(put(txn, "t1", 1, "at.1", "10.0.0.2 7"), WEIR_OK);
    ck_assert_int_eq(put(txn, "t1", 1, "run.0", "x"), WEIR_OK);
    ck_assert_int_eq(put(txn, "t1", 1, "at.1", "10.0.0.3 8"), WEIR_OK); /* another one */
    ck_assert_str_eq(seen(txn, "at."), "at.0=10.0.0.1 7 at.1=10.0.0.3 8 ");
    ck_assert_str_eq(seen(txn, "at.1"), "at.1=10.0.0.3 8 ");
    int64_t n, first, second;
    MUST(weir_board_look(txn, "j", "at.", &n, &first, err));
    ck_assert_int_eq(put(txn, "t0", 1, "at.2", "x"), WEIR_OK);
    ck_assert_int_eq(put(txn, "t1", 1, "at.2", NULL), WEIR_OK); /* by another task */
    ck_assert_int_eq(put(txn, "t1", 1, "at.2", NULL), WEIR_OK);
    ck_assert_int_eq(put(txn, "t0", 1, "at.0", "10.0.0.1 7"), WEIR_OK);
    MUST(weir_board_look(txn, "j", "at.", &n, &second, err));
    ck_assert_int_eq(n, 2);
    ck_assert_int_gt(second, first);
    ck_assert_str_eq(seen(txn, ""), "at.0=10.0.0.1 7 at.1=10.0.0.3 8 run.0=x ");
    end(txn, "t1", 1, 1); /* the gang restarts */
    ck_assert_str_eq(seen(txn, ""), "at.0=10.0.0.1 7 ");
    end(txn, "t0", 1, 0);
    step(txn, &(struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, 900000);
    place(txn, 900001);
    ck_assert_str_eq(seen(txn, ""), "");
    ck_assert_int_eq(put(txn, "t0", 2, "at.0", "10.0.0.9 1"), WEIR_OK);
    ck_assert_str_eq(seen(txn, ""), "at.0=10.0.0.9 1 ");
    end(txn, "t0", 2, 0);
    end(txn, "t1", 2, 0);
    MUST(weir_txn_query_int(txn, "SELECT count(*) FROM board", WEIR_NO_BINDS, 0, &n, err));
    ck_assert_int_eq(n, 0); /* it has succeeded */
    return WEIR_OK;
}

START_TEST(a_value_lives_as_long_as_the_attempt_that_wrote_it)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){0});
    fixture_write(&fixture, attempts_come_and_go, NULL);
    fixture_fini(&fixture);
}

END_TEST

static weir_status fill(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static char large[WEIR_BOARD_VALUE_MAX_BYTES + 2];
    char key[WEIR_BOARD_KEY_MAX_BYTES + 2];
    MUST(make_job(txn, context, err));
    place(txn, 2000);
    memset(large, 'x', sizeof large - 1);
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    static const char *const bad[] = {"", "A", "a b", "a/b", "a~"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(put(txn, "t0", 1, bad[i], "x"), WEIR_ERR_INVALID);
    }
    ck_assert_int_eq(put(txn, "t0", 1, key, "x"), WEIR_ERR_INVALID);
    ck_assert_int_eq(put(txn, "t0", 1, key + 1, "x"), WEIR_OK);
    ck_assert_int_eq(put(txn, "t0", 1, "a", large), WEIR_ERR_LIMIT);
    large[WEIR_BOARD_VALUE_MAX_BYTES] = '\0';
    weir_status status = WEIR_OK;
    int n = 0;
    for (; status == WEIR_OK && n < 1000; n++) {
        (void)snprintf(key, sizeof key, "b.%d", n);
        status = put(txn, "t0", 1, key, large);
    }
    ck_assert_int_eq(status, WEIR_ERR_LIMIT);
    ck_assert_int_eq(n, (int)(WEIR_BOARD_MAX_BYTES / (int64_t)WEIR_BOARD_VALUE_MAX_BYTES));
    ck_assert_int_eq(put(txn, "t0", 1, "b.0", "y"), WEIR_OK); /* in its place */
    return WEIR_OK;
}

START_TEST(a_board_is_bounded)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){0});
    fixture_write(&fixture, fill, NULL);
    fixture_fini(&fixture);
}

END_TEST

WEIR_TEST_MAIN("board", a_value_lives_as_long_as_the_attempt_that_wrote_it, a_board_is_bounded)
