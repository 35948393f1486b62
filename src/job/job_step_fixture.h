/** Tests: a job whose steps the test takes one by one. */
#ifndef WEIR_JOB_JOB_STEP_FIXTURE_H
#define WEIR_JOB_JOB_STEP_FIXTURE_H

#include "job/job_step.h"
#include "job/restart.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;
static struct weir_job_actions actions;

/** A job of n tasks; the last n_servers are parameter servers. */
static inline struct weir_job_state make_job(const char *kind, size_t n, size_t n_servers,
                                             int64_t restarts)
{
    struct weir_job_state state = {.job = {.id = "j",
                                           .name = "j",
                                           .kind = (char *)kind,
                                           .is_service = strcmp(kind, "predict") == 0,
                                           .has_known_exits = strcmp(kind, "command") != 0,
                                           .state = "PENDING",
                                           .max_restarts = restarts},
                                   .tasks = WEIR_ARENA_ARRAY(&arena, n, struct weir_task),
                                   .n_tasks = n};
    for (size_t i = 0; i < n; i++) {
        const char *role = strcmp(kind, "predict") == 0 ? "replica"
                           : i >= n - n_servers         ? "parameter_server"
                                                        : "worker";
        state.tasks[i] = (struct weir_task){.id = weir_arena_printf(&arena, "t%zu", i),
                                            .rank = (int64_t)i,
                                            .role = (char *)role,
                                            .state = "WAITING",
                                            .desired = "stopped",
                                            .exit_code = -1};
    }
    return state;
}

static inline weir_status step(struct weir_job_state *state, struct weir_job_event event,
                               int64_t now_ms)
{
    return weir_job_step(state, &event, now_ms, &arena, &actions, &err);
}

static inline void must(struct weir_job_state *state, struct weir_job_event event, int64_t now_ms)
{
    weir_status status = step(state, event, now_ms);
    if (status != WEIR_OK) {
        ck_abort_msg("%s", err.message);
    }
}

/** Put all tasks that want a node on `node`. */
static inline void place(struct weir_job_state *state, const char *node, int64_t now_ms)
{
    size_t wants[16];
    const char *nodes[16];
    size_t n = weir_job_wants(state, now_ms, wants);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++) {
        nodes[i] = node;
    }
    must(state, (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = n},
         now_ms);
}

static inline void run(struct weir_job_state *state, size_t i_task, int64_t now_ms)
{
    must(state,
         (struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_RUNNING,
                                 .task = state->tasks[i_task].id,
                                 .attempt = state->tasks[i_task].attempt,
                                 .pid = 7},
         now_ms);
}

static inline void run_all(struct weir_job_state *state, int64_t now_ms)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        run(state, i, now_ms);
    }
}

static inline void end(struct weir_job_state *state, size_t i_task, int64_t code, int64_t now_ms)
{
    must(state,
         (struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_EXITED,
                                 .task = state->tasks[i_task].id,
                                 .attempt = state->tasks[i_task].attempt,
                                 .exit_code = code},
         now_ms);
}

static inline void set_up(void)
{
    weir_arena_init(&arena, 0);
    actions = (struct weir_job_actions){0};
}

static inline void tear_down(void)
{
    weir_arena_fini(&arena);
}

#endif
