#include "job/attempt.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;

/* A job of two tasks on the nodes a and b: "train" is a gang, "predict" a service. */
static weir_status make_job(struct weir_txn *txn, void *context, struct weir_error *err)
{
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    for (int i = 0; i < 2; i++) {
        const struct weir_node node = {.name = i == 0 ? "a" : "b", .cpu_slots = 1};
        MUST(weir_node_heartbeat(txn, &node, 1, err));
    }
    const struct weir_task tasks[] = {{.id = "t0", .rank = 0, .role = "worker"},
                                      {.id = "t1", .rank = 1, .role = "worker"}};
    const struct weir_job job = {.id = "j",
                                 .name = "x",
                                 .project = "default",
                                 .kind = context,
                                 .is_service = strcmp(context, "predict") == 0,
                                 .has_known_exits = true,
                                 .spec = "{}",
                                 .run = "r",
                                 .ion = "doors",
                                 .pipeline = "p",
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

static void place(struct weir_txn *txn, const char *first, const char *second, int64_t now_ms)
{
    const char *names[] = {first, second};
    step(txn,
         &(struct weir_job_event){
             .type = WEIR_JOB_EVENT_BIND, .place = names, .n_place = second != NULL ? 2 : 1},
         now_ms);
}

static void end(struct weir_txn *txn, const char *task, int64_t attempt, int64_t exit_code,
                int64_t signal, int64_t now_ms)
{
    step(txn,
         &(struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_EXITED,
                                  .task = task,
                                  .attempt = attempt,
                                  .exit_code = exit_code,
                                  .signal = signal},
         now_ms);
}

static weir_status load(struct weir_txn *txn, const char *task, int64_t number)
{
    struct weir_attempt attempt;
    return weir_attempt_load(txn, task, number, &fixture.arena, &attempt, NULL);
}

static weir_status is_on(struct weir_txn *txn, const char *task, int64_t number, const char *node)
{
    return weir_attempt_check_node(txn, task, number, node, NULL);
}

static weir_status replicas(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_attempt attempt;
    ck_assert_int_eq(load(txn, "t0", 1), WEIR_ERR_NOT_FOUND);
    place(txn, "a", "b", 2000);
    ck_assert_int_eq(load(txn, "t0", 0), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(load(txn, "t0", 2), WEIR_ERR_NOT_FOUND);
    MUST(weir_attempt_load(txn, "t0", 1, &fixture.arena, &attempt, err));
    ck_assert_str_eq(attempt.job, "j");
    ck_assert_str_eq(attempt.kind, "predict");
    ck_assert_str_eq(attempt.run, "r");
    ck_assert_str_eq(attempt.ion, "doors");
    ck_assert_str_eq(attempt.pipeline, "p");
    /* t0 ends by a signal, t1 is lost with its node: only t0 is known to be over. */
    end(txn, "t0", 1, -1, 9, 3000);
    ck_assert_int_eq(load(txn, "t0", 1), WEIR_ERR_CONFLICT);
    step(txn, &(struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "b"}, 3000);
    ck_assert_int_eq(load(txn, "t1", 1), WEIR_OK);
    place(txn, "b", "a", 100000);
    ck_assert_int_eq(load(txn, "t1", 1), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(load(txn, "t1", 2), WEIR_OK);
    /* Each was placed where it was, also once it runs elsewhere. */
    ck_assert_int_eq(is_on(txn, "t0", 1, "a"), WEIR_OK);
    ck_assert_int_eq(is_on(txn, "t0", 2, "b"), WEIR_OK);
    ck_assert_int_eq(is_on(txn, "t0", 2, "a"), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(is_on(txn, "t0", 3, "b"), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(is_on(txn, "none", 1, "a"), WEIR_ERR_NOT_FOUND);
    /* A job that is over has no attempts that live, whoever is silent. */
    step(txn, &(struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "a"}, 100001);
    ck_assert_int_eq(load(txn, "t1", 2), WEIR_OK);
    step(txn, &(struct weir_job_event){.type = WEIR_JOB_EVENT_CANCEL, .text = "x"}, 100002);
    ck_assert_int_eq(load(txn, "t0", 2), WEIR_OK); /* asked to end, and may hand in what it has */
    end(txn, "t0", 2, 0, 0, 100003);
    ck_assert_int_eq(load(txn, "t0", 2), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(load(txn, "t1", 2), WEIR_ERR_CONFLICT);
    return WEIR_OK;
}

START_TEST(an_attempt_lives_until_its_end_is_known_or_another_one_is_placed)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){0});
    fixture_write(&fixture, make_job, "predict");
    fixture_write(&fixture, replicas, NULL);
    fixture_fini(&fixture);
}

END_TEST

static weir_status many(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    (void)err;
    int64_t now_ms = 2000;
    place(txn, "a", "b", now_ms);
    for (int64_t attempt = 1; attempt <= 2 * WEIR_ATTEMPTS_KEPT; attempt++) {
        now_ms += 200000;
        end(txn, "t0", attempt, 1, 0, now_ms);
        now_ms += 200000;
        place(txn, "a", NULL, now_ms);
    }
    int64_t last = 2 * WEIR_ATTEMPTS_KEPT + 1;
    ck_assert_int_eq(is_on(txn, "t0", last, "a"), WEIR_OK);
    ck_assert_int_eq(is_on(txn, "t0", last - WEIR_ATTEMPTS_KEPT + 1, "a"), WEIR_OK);
    ck_assert_int_eq(is_on(txn, "t0", last - WEIR_ATTEMPTS_KEPT, "a"), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(is_on(txn, "t1", 1, "b"), WEIR_OK);
    return WEIR_OK;
}

START_TEST(a_replica_that_always_restarts_leaves_a_bounded_trail)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){0});
    fixture_write(&fixture, make_job, "predict");
    fixture_write(&fixture, many, NULL);
    fixture_fini(&fixture);
}

END_TEST

WEIR_TEST_MAIN("attempt", an_attempt_lives_until_its_end_is_known_or_another_one_is_placed,
               a_replica_that_always_restarts_leaves_a_bounded_trail)
