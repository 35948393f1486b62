/* What could not be run is not tried again, and the reason says so in words. */
#include "job/restart.h"

#include "base/test_main.h"

#include <string.h>

static const struct {
    const char *kind;
    int64_t code;
    const char *said, *state, *reason;
} ends[] = {
    {"command", 126, "./go: Permission denied", "FAILED",
     "worker 0: ./go: Permission denied (exit 126: it may not be run)"},
    {"command", 127, "nosuch: not found", "FAILED",
     "worker 0: nosuch: not found (exit 127: there is no such program)"},
    {"train", 127, NULL, "FAILED", "worker 0 exited with 127: there is no such program"},
    {"command", 125, "no", "RESTARTING", "worker 0: no (exit 125)"},
    {"command", 128, "no", "RESTARTING", "worker 0: no (exit 128)"},
    {"train", 8, "disk", "RESTARTING", "worker 0: disk (exit 8)"},
    {"train", 2, "epochs", "FAILED", "worker 0: epochs (exit 2)"},
    {"command", 2, "usage", "RESTARTING", "worker 0: usage (exit 2)"},
    {"predict", 127, "no", "RESTARTING",
     "worker 0 restarts: worker 0: no (exit 127: there is no such program)"},
};

START_TEST(only_what_a_second_try_may_mend_is_tried_again)
{
    struct weir_arena arena;
    struct weir_error err;
    struct weir_job_actions actions = {0};
    struct weir_task task = {.id = "t",
                             .role = "worker",
                             .node = "a",
                             .attempt = 1,
                             .state = "RUNNING",
                             .desired = "running",
                             .exit_code = -1};
    struct weir_job_state state = {.job = {.id = "j",
                                           .name = "j",
                                           .kind = (char *)ends[_i].kind,
                                           .is_service = strcmp(ends[_i].kind, "predict") == 0,
                                           .has_known_exits = strcmp(ends[_i].kind, "command") != 0,
                                           .state = "RUNNING",
                                           .attempt = 1,
                                           .max_restarts = 3},
                                   .tasks = &task,
                                   .n_tasks = 1};
    const struct weir_job_event end = {.type = WEIR_JOB_EVENT_TASK_EXITED,
                                       .task = "t",
                                       .attempt = 1,
                                       .exit_code = ends[_i].code,
                                       .text = ends[_i].said};
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_job_step(&state, &end, 500, &arena, &actions, &err), WEIR_OK);
    ck_assert_str_eq(state.job.state, ends[_i].state);
    ck_assert_str_eq(state.job.reason, ends[_i].reason);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_replica_that_cannot_be_run_is_tried_less_and_less_often)
{
    struct weir_task replica = {.exit_code = 127, .n_restarts = 1};
    ck_assert_int_eq(weir_replica_backoff_ms(&replica), 500);
    replica.n_restarts = 20;
    ck_assert_int_eq(weir_replica_backoff_ms(&replica), 60000);
    replica.exit_code = 128;
    ck_assert_int_eq(weir_replica_backoff_ms(&replica), 1000);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("restart",
                     {only_what_a_second_try_may_mend_is_tried_again, WEIR_ARRAY_LEN(ends)},
                     {a_replica_that_cannot_be_run_is_tried_less_and_less_often, 0})
