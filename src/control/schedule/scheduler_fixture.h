/** Tests: the scheduler over a store of its own, with a driven clock and nodes that do what the test
 *  says. No thread, no network. */
#ifndef WEIR_CONTROL_SCHEDULER_FIXTURE_H
#define WEIR_CONTROL_SCHEDULER_FIXTURE_H

#include "control/scheduler.h"
#include "nouns/nouns.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

struct scheduler_fixture {
    struct store_fixture store;
    struct scheduler *scheduler;
    int64_t now_ms, since_ms, next_ms;
    const struct weir_registry *drivers; /**< Of clusters; NULL: the server's. */
    int32_t n_jobs;                      /**< Made so far. */
    char failed[64];                     /**< Of the last job that was written alone. */
    weir_status failed_status;
};

static inline weir_status populate_projects(struct weir_txn *txn, void *context,
                                            struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "other"},
                           err);
}

static inline int64_t note_write(void *context, const char *job, weir_status status,
                                 const struct weir_error *err)
{
    struct scheduler_fixture *fixture = context;
    (void)err;
    (void)snprintf(fixture->failed, sizeof fixture->failed, "%s", job);
    fixture->failed_status = status;
    return 1000;
}

static inline void scheduler_restart(struct scheduler_fixture *fixture)
{
    const struct scheduler_config config = {.store = fixture->store.store,
                                            .state_dir = "/s",
                                            .server_url = "http://h:1",
                                            .drivers = fixture->drivers,
                                            .wrote = note_write,
                                            .context = fixture};
    scheduler_destroy(fixture->scheduler);
    fixture->scheduler = scheduler_create(&config);
}

static inline void scheduler_fixture_make(struct scheduler_fixture *fixture)
{
    *fixture = (struct scheduler_fixture){.now_ms = 1000000, .since_ms = 1000000};
    fixture_init(&fixture->store);
    fixture_open(&fixture->store, (struct weir_store_config){.noun_at = weir_noun_at});
    fixture_write(&fixture->store, populate_projects, NULL);
    scheduler_restart(fixture);
}

static inline void scheduler_fixture_fini(struct scheduler_fixture *fixture)
{
    scheduler_destroy(fixture->scheduler);
    fixture_fini(&fixture->store);
}

/* ---- steps of a cycle ------------------------------------------------------------------------ */

static inline void plan(struct scheduler_fixture *fixture)
{
    struct weir_error *err = &fixture->store.err;
    MUST(scheduler_read(fixture->scheduler, fixture->now_ms, fixture->since_ms, err));
    MUST(scheduler_plan(fixture->scheduler, fixture->now_ms, err));
}

static inline int32_t commit(struct scheduler_fixture *fixture)
{
    fixture->next_ms = scheduler_commit(fixture->scheduler, fixture->now_ms, fixture->since_ms);
    return scheduler_n_bound(fixture->scheduler);
}

/** A whole cycle. @return Tasks bound. */
static inline int32_t cycle(struct scheduler_fixture *fixture)
{
    plan(fixture);
    return commit(fixture);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct heartbeat {
    struct weir_node node;
    int64_t now_ms;
};

static inline weir_status heartbeat_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct heartbeat *heartbeat = context;
    return weir_node_heartbeat(txn, &heartbeat->node, heartbeat->now_ms, err);
}

/** A node registers, or says that it is still there. */
static inline void heartbeat(struct scheduler_fixture *fixture, const char *name, int64_t cpu_slots)
{
    struct heartbeat beat = {
        {.name = (char *)name, .cpu_slots = cpu_slots, .memory_bytes = (int64_t)8 << 30},
        fixture->now_ms};
    fixture_write(&fixture->store, heartbeat_in, &beat);
}

static inline weir_status exec_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

/** Any statement. */
static inline void execute(struct scheduler_fixture *fixture, const char *sql)
{
    fixture_write(&fixture->store, exec_in, (void *)sql);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

struct new_job {
    const char *kind, *project;
    size_t n_tasks;
    int64_t cpu_millis, memory_bytes, created_ms;
    size_t definition_bytes;
    char *id;
    struct weir_arena *arena;
};

static inline weir_status new_job_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct new_job *wanted = context;
    bool is_service = strcmp(wanted->kind, "predict") == 0;
    char *definition = weir_arena_alloc(wanted->arena, wanted->definition_bytes + 3);
    memset(definition, ' ', wanted->definition_bytes + 2);
    definition[0] = '{';
    definition[wanted->definition_bytes + 1] = '}';
    struct weir_task *tasks = WEIR_ARENA_ARRAY(wanted->arena, wanted->n_tasks, struct weir_task);
    for (size_t i = 0; i < wanted->n_tasks; i++) {
        tasks[i] =
            (struct weir_task){.id = weir_arena_printf(wanted->arena, "%s-%03zu", wanted->id, i),
                               .rank = (int64_t)i,
                               .role = is_service ? "replica" : "worker",
                               .cpu_millis = wanted->cpu_millis,
                               .memory_bytes = wanted->memory_bytes,
                               .definition = definition};
    }
    const struct weir_job job = {.id = wanted->id,
                                 .name = wanted->id,
                                 .project = (char *)wanted->project,
                                 .kind = (char *)wanted->kind,
                                 .is_service = is_service,
                                 .spec = "{}",
                                 .max_restarts = 3,
                                 .priority = is_service ? 125 : 50,
                                 .is_preemptible = true,
                                 .created_by = "ann"};
    return weir_job_create(txn, &job, tasks, wanted->n_tasks, wanted->created_ms, err);
}

/** @return Its identifier, "job-001" …; it is a millisecond younger than the one before. */
static inline char *add_job(struct scheduler_fixture *fixture, struct new_job wanted)
{
    wanted.arena = &fixture->store.arena;
    wanted.id = weir_arena_printf(wanted.arena, "job-%03d", ++fixture->n_jobs);
    wanted.created_ms = fixture->now_ms - 1000 + fixture->n_jobs;
    wanted.project = wanted.project != NULL ? wanted.project : "default";
    fixture_write(&fixture->store, new_job_in, &wanted);
    return wanted.id;
}

/** A gang of n tasks with so many thousandths of a CPU each. */
static inline char *gang_of_millis(struct scheduler_fixture *fixture, size_t n_tasks,
                                   int64_t millis)
{
    return add_job(fixture,
                   (struct new_job){"command", NULL, n_tasks, millis, 0, 0, 0, NULL, NULL});
}

/** A gang of n tasks with so many whole CPUs each. */
static inline char *gang(struct scheduler_fixture *fixture, size_t n_tasks, int64_t cpus)
{
    return gang_of_millis(fixture, n_tasks, cpus * 1000);
}

static inline char *service_of_millis(struct scheduler_fixture *fixture, size_t n_tasks,
                                      int64_t millis)
{
    return add_job(fixture,
                   (struct new_job){"predict", NULL, n_tasks, millis, 0, 0, 0, NULL, NULL});
}

static inline char *service(struct scheduler_fixture *fixture, size_t n_tasks, int64_t cpus)
{
    return service_of_millis(fixture, n_tasks, cpus * 1000);
}

struct job_look {
    struct scheduler_fixture *fixture;
    const char *id;
    struct weir_job_state state;
};

static inline weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct job_look *look = context;
    return weir_job_load(txn, look->id, &look->fixture->store.arena, &look->state, err);
}

static inline struct weir_job_state job_state(struct scheduler_fixture *fixture, const char *id)
{
    struct job_look look = {fixture, id, {.job = {0}}};
    fixture_read(&fixture->store, look_in, &look);
    return look.state;
}

/** Where its tasks are: "a b -". */
static inline char *places(struct scheduler_fixture *fixture, const char *id)
{
    struct weir_job_state state = job_state(fixture, id);
    char *text = weir_arena_strdup(&fixture->store.arena, "");
    for (size_t i = 0; i < state.n_tasks; i++) {
        text = weir_arena_printf(&fixture->store.arena, "%s%s%s", text, i > 0 ? " " : "",
                                 state.tasks[i].node != NULL ? state.tasks[i].node : "-");
    }
    return text;
}

struct job_step {
    struct scheduler_fixture *fixture;
    const char *id;
    struct weir_job_event event;
};

static inline weir_status step_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct job_step *step = context;
    struct weir_job_state state;
    struct weir_job_actions actions = {0};
    struct weir_arena *arena = &step->fixture->store.arena;
    MUST(weir_job_load(txn, step->id, arena, &state, err));
    MUST(weir_job_step(&state, &step->event, step->fixture->now_ms, arena, &actions, err));
    return weir_job_save(txn, &state, &actions, step->fixture->now_ms, err);
}

static inline void job_event(struct scheduler_fixture *fixture, const char *id,
                             struct weir_job_event event)
{
    struct job_step step = {fixture, id, event};
    fixture_write(&fixture->store, step_in, &step);
}

static inline void cancel(struct scheduler_fixture *fixture, const char *id)
{
    job_event(fixture, id, (struct weir_job_event){.type = WEIR_JOB_EVENT_CANCEL, .text = "x"});
}

/** What an agent reports of a task's current attempt. */
static inline void report(struct scheduler_fixture *fixture, const char *id, size_t task,
                          enum weir_job_event_type type, int64_t exit_code)
{
    struct weir_job_state state = job_state(fixture, id);
    job_event(fixture, id,
              (struct weir_job_event){.type = type,
                                      .task = state.tasks[task].id,
                                      .attempt = state.tasks[task].attempt,
                                      .exit_code = exit_code});
}

/** All tasks of a gang run. */
static inline void run_all(struct scheduler_fixture *fixture, const char *id)
{
    size_t n = job_state(fixture, id).n_tasks;
    for (size_t i = 0; i < n; i++) {
        report(fixture, id, i, WEIR_JOB_EVENT_TASK_RUNNING, 0);
    }
}

static inline void end_all(struct scheduler_fixture *fixture, const char *id)
{
    size_t n = job_state(fixture, id).n_tasks;
    for (size_t i = 0; i < n; i++) {
        report(fixture, id, i, WEIR_JOB_EVENT_TASK_EXITED, 0);
    }
}

#endif
