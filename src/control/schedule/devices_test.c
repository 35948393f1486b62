/* Devices from a job's request to its tasks, by the real planner over a real store, with agents that
 * do what the test says. */
#include "control/schedule/scheduler_fixture.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "job/device.h"
#include "job/task_device.h"

#include <math.h>

#define GIB ((int64_t)1 << 30)

static struct scheduler_fixture fixture;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

/* ---- what nodes have, and what jobs ask for --------------------------------------------------- */

/** "4*H100": so many devices of a model with 80 GiB; "2*mig:1g.10gb<0": slices of device 0. */
struct has {
    const char *node, *devices;
    const char *bad; /* Index of one that is bad, as a text; NULL: none. */
};

static void add_reports(const struct has *has, const char *word, struct weir_device_report *reports,
                        size_t *n)
{
    struct weir_arena *arena = &fixture.store.arena;
    long count = strtol(word, NULL, 10);
    const char *model = strchr(word, '*') + 1, *parent = strchr(word, '<');
    bool is_slice = strncmp(model, "mig:", 4) == 0;
    for (long i = 0; i < count; i++) {
        char *id = weir_arena_printf(arena, "id-%zu", *n);
        bool is_bad = has->bad != NULL && strtoul(has->bad, NULL, 10) == *n;
        reports[(*n)++] = (struct weir_device_report){
            .device = {.id = id,
                       .kind = is_slice ? "mig" : "gpu",
                       .model = is_slice ? "H100" : weir_arena_strdup(arena, model),
                       .profile = is_slice ? weir_arena_printf(arena, "%.*s",
                                                               (int)(parent - model - 4), model + 4)
                                           : NULL,
                       .memory_bytes = is_slice ? 10 * GIB : 80 * GIB,
                       .numa = -1,
                       .state = is_bad ? WEIR_DEVICE_BAD : WEIR_DEVICE_OK,
                       .temperature_c = NAN,
                       .power_w = NAN,
                       .utilisation_pct = NAN},
            .parent_id = is_slice ? weir_arena_printf(arena, "id-%s", parent + 1) : NULL};
    }
}

static weir_status report_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct has *has = context;
    struct weir_device_report reports[64];
    size_t n = 0;
    bool is_news;
    char *rest = weir_arena_strdup(&fixture.store.arena, has->devices), *word;
    while ((word = strsep(&rest, " ")) != NULL && word[0] != '\0') {
        add_reports(has, word, reports, &n);
    }
    return weir_devices_report(txn, has->node, reports, n, fixture.now_ms, &fixture.store.arena,
                               &is_news, err);
}

/** A node of 64 CPUs with these devices reports. */
static void node_has(const char *node, const char *devices, const char *bad)
{
    struct has has = {node, devices, bad};
    heartbeat(&fixture, node, 64);
    fixture_write(&fixture.store, report_in, &has);
}

/** What each task of a job asks for. */
struct asked {
    size_t n_tasks;
    int64_t n, milli, memory_bytes;
    const char *model, *mig_profile, *placement;
    int64_t time_limit_ms, min_tasks;
    char *id;
};

static weir_status submit_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct asked *asked = context;
    struct weir_task tasks[8];
    for (size_t i = 0; i < asked->n_tasks; i++) {
        tasks[i] = (struct weir_task){
            .id = weir_arena_printf(&fixture.store.arena, "%s-%zu", asked->id, i),
            .rank = (int64_t)i,
            .role = "command",
            .cpu_millis = 1000,
            .n_accelerators = asked->n,
            .accelerator_milli = asked->milli,
            .accelerator_memory_bytes = asked->memory_bytes,
            .accelerator_model = (char *)asked->model,
            .mig_profile = (char *)asked->mig_profile};
    }
    const struct weir_job job = {.id = asked->id,
                                 .name = asked->id,
                                 .project = "default",
                                 .kind = "command",
                                 .spec = "{}",
                                 .max_restarts = 3,
                                 .priority = 50,
                                 .is_preemptible = true,
                                 .time_limit_ms = asked->time_limit_ms,
                                 .min_tasks = asked->min_tasks,
                                 .placement = (char *)asked->placement};
    return weir_job_create(txn, &job, tasks, asked->n_tasks, fixture.now_ms - 1000 + fixture.n_jobs,
                           err);
}

static char *submit(struct asked asked)
{
    asked.n_tasks = asked.n_tasks > 0 ? asked.n_tasks : 1;
    asked.milli = asked.memory_bytes > 0 ? 0 : asked.milli > 0 ? asked.milli : 1000;
    asked.id = weir_arena_printf(&fixture.store.arena, "job-%03d", ++fixture.n_jobs);
    fixture_write(&fixture.store, submit_in, &asked);
    return asked.id;
}

/** Where its tasks are, with devices: "a:0,1 b:3"; "-" for none. */
static const char *given(const char *id)
{
    struct weir_job_state state = job_state(&fixture, id);
    const char *text = "";
    for (size_t i = 0; i < state.n_tasks; i++) {
        const struct weir_task *task = &state.tasks[i];
        text = weir_arena_printf(&fixture.store.arena, "%s%s%s%s%s", text, i > 0 ? " " : "",
                                 task->node != NULL ? task->node : "-",
                                 task->devices != NULL ? ":" : "",
                                 task->devices != NULL ? task->devices : "");
    }
    return text;
}

static const char *why(const char *id)
{
    const char *reason = job_state(&fixture, id).job.reason;
    return reason != NULL ? reason : "";
}

/** The agent says how a task's process has ended, as the route takes it down. */
struct ended {
    const char *job;
    size_t task;
    int64_t attempt;
};

static weir_status end_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct ended *ended = context;
    struct weir_job_state state;
    struct control control = {.arena = &fixture.store.arena,
                              .now_ms = fixture.now_ms,
                              .actor = "agent",
                              .publish = json_array()};
    MUST(weir_job_load(txn, ended->job, control.arena, &state, err));
    const struct weir_job_event event = {.type = WEIR_JOB_EVENT_TASK_EXITED,
                                         .task = state.tasks[ended->task].id,
                                         .attempt = ended->attempt};
    MUST(control_job_event(&control, txn, ended->job, &event, err));
    json_decref(control.publish);
    return WEIR_OK;
}

static void ends(const char *job, size_t task, int64_t attempt)
{
    struct ended ended = {job, task, attempt};
    fixture_write(&fixture.store, end_in, &ended);
}

static void next_cycle(int64_t ms)
{
    fixture.now_ms += ms;
    cycle(&fixture);
}

/* ---- whole devices ---------------------------------------------------------------------------- */

START_TEST(tasks_get_different_devices_and_the_next_waits_for_what_lacks)
{
    node_has("a", "4*H100", NULL);
    char *first = submit((struct asked){.n_tasks = 2, .n = 1}),
         *second = submit((struct asked){.n = 1});
    char *third = submit((struct asked){.n = 2, .model = "H100"});
    ck_assert_int_eq(cycle(&fixture), 3);
    struct weir_job_state state = job_state(&fixture, first);
    ck_assert_str_ne(state.tasks[0].devices, state.tasks[1].devices);
    ck_assert_str_eq(given(third), "-");
    ck_assert_str_eq(why(third), "waits for 2 × H100 on one node: 1 free on node a");
    ends(second, 0, 1);
    next_cycle(10);
    ck_assert_ptr_nonnull(strstr(given(third), "a:"));
}

END_TEST

START_TEST(a_model_is_given_where_it_is_and_one_that_nobody_has_is_said)
{
    node_has("a", "2*A100", NULL);
    node_has("b", "2*H100", NULL);
    char *h = submit((struct asked){.n = 2, .model = "H100"}),
         *x = submit((struct asked){.n = 1, .model = "X1"}),
         *large = submit((struct asked){.n = 8});
    cycle(&fixture);
    ck_assert_str_eq(given(h), "b:0,1");
    ck_assert_ptr_nonnull(strstr(why(x), "needs 1 × X1, and no node that it may have has any"));
    ck_assert_ptr_nonnull(strstr(why(large), "needs 8 × accelerator on one node, and the node with "
                                             "the most, a, has 2"));
}

END_TEST

/* ---- parts ------------------------------------------------------------------------------------ */

START_TEST(shares_and_memory_of_a_device_add_up_to_no_more_than_it_has)
{
    node_has("a", "1*H100", NULL);
    char *half = submit((struct asked){.n = 1, .milli = 500});
    char *part = submit((struct asked){.n = 1, .memory_bytes = 30 * GIB});
    char *much = submit((struct asked){.n = 1, .memory_bytes = 11 * GIB});
    cycle(&fixture);
    ck_assert_str_eq(given(half), "a:0");
    ck_assert_str_eq(given(part), "a:0");
    ck_assert_str_eq(given(much), "-");
    ck_assert_ptr_nonnull(strstr(why(much), "11.0 GiB of each"));
    ends(half, 0, 1);
    next_cycle(10);
    ck_assert_str_eq(given(much), "a:0");
}

END_TEST

START_TEST(mig_slices_are_given_one_by_one_and_their_device_to_nobody)
{
    node_has("a", "2*H100 3*mig:1g.10gb<0", NULL);
    char *slices = submit((struct asked){.n = 2, .mig_profile = "1g.10gb"});
    char *other = submit((struct asked){.n = 1, .mig_profile = "1g.10gb"});
    char *none = submit((struct asked){.n = 1, .mig_profile = "1g.10gb"});
    char *whole = submit((struct asked){.n = 1}), *waits = submit((struct asked){.n = 1});
    cycle(&fixture);
    ck_assert_str_eq(given(slices), "a:2,3");
    ck_assert_str_eq(given(other), "a:4");
    ck_assert_str_eq(given(none), "-");
    ck_assert_ptr_nonnull(strstr(why(none), "MIG slice 1g.10gb on one node: 0 free on node a"));
    ck_assert_str_eq(given(whole), "a:1");
    ck_assert_str_eq(given(waits), "-");
    ends(slices, 0, 1);
    next_cycle(10);
    ck_assert_str_eq(given(none), "a:2");
}

END_TEST

/* ---- which nodes ------------------------------------------------------------------------------ */

START_TEST(labels_and_taints_say_which_nodes_a_job_may_have)
{
    node_has("a", "1*H100", NULL);
    node_has("b", "1*H100", NULL);
    execute(&fixture, "UPDATE nodes SET labels = '{\"zone\":\"x\"}' WHERE name = 'a'");
    execute(&fixture, "UPDATE nodes SET taints = '[{\"key\":\"team\",\"value\":\"v\","
                      "\"effect\":\"NoSchedule\"}]' WHERE name = 'b'");
    char *labelled =
        submit((struct asked){.n = 1, .placement = "{\"node_selector\":{\"zone\":\"x\"}}"});
    char *nowhere =
        submit((struct asked){.n = 1, .placement = "{\"node_selector\":{\"zone\":\"y\"}}"});
    char *other = submit((struct asked){.n = 1});
    cycle(&fixture);
    ck_assert_str_eq(given(labelled), "a:0");
    ck_assert_ptr_nonnull(strstr(why(nowhere), "no node has the labels that it asks for: zone=y"));
    ck_assert_ptr_nonnull(strstr(why(other), "waits for 1 × accelerator"));
    char *tolerant = submit((struct asked){
        .n = 1, .placement = "{\"tolerations\":[{\"key\":\"team\",\"value\":\"v\"}]}"});
    char *wrong = submit(
        (struct asked){.n = 1,
                       .placement = "{\"node_selector\":{\"weir/node\":\"b\"},\"tolerations\":"
                                    "[{\"key\":\"team\",\"value\":\"w\"}]}"});
    next_cycle(10);
    ck_assert_str_eq(given(tolerant), "b:0");
    ck_assert_ptr_nonnull(strstr(why(wrong), "has a taint that it does not tolerate, as team=v"));
}

END_TEST

START_TEST(a_gang_lies_in_one_domain_of_the_topology_that_it_requires)
{
    node_has("a", "1*H100", NULL);
    node_has("b", "1*H100", NULL);
    node_has("c", "1*H100", NULL);
    execute(&fixture, "UPDATE nodes SET labels = '{\"rack\":\"1\"}' WHERE name = 'a'");
    execute(&fixture, "UPDATE nodes SET labels = '{\"rack\":\"2\"}' WHERE name <> 'a'");
    const char *racks = "{\"topology\":{\"required\":\"rack\"}}";
    char *two = submit((struct asked){.n_tasks = 2, .n = 1, .placement = racks});
    char *again = submit((struct asked){.n_tasks = 2, .n = 1, .placement = racks});
    cycle(&fixture);
    ck_assert_ptr_null(strchr(given(two), '-'));
    ck_assert_ptr_null(strstr(given(two), "a:"));
    ck_assert_str_eq(given(again), "- -");
}

END_TEST

/* ---- devices and nodes that fail -------------------------------------------------------------- */

START_TEST(what_a_lost_node_had_is_free_only_when_its_agent_says_so)
{
    node_has("a", "1*H100", NULL);
    char *job = submit((struct asked){.n = 1});
    cycle(&fixture);
    ck_assert_str_eq(given(job), "a:0");
    job_event(&fixture, job,
              (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "a"});
    fixture.now_ms += 60000;
    job_event(&fixture, job, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK});
    node_has("a", "1*H100", NULL); /* it is back, and its old process runs */
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(given(job), "-");
    scheduler_restart(&fixture);
    ck_assert_int_eq(cycle(&fixture), 0);
    ends(job, 0, 1); /* the old attempt's end */
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(given(job), "a:0");
    ck_assert_int_eq(job_state(&fixture, job).tasks[0].attempt, 2);
}

END_TEST

START_TEST(a_bad_device_is_given_to_nobody_and_what_has_it_moves)
{
    node_has("a", "2*H100", "1");
    char *first = submit((struct asked){.n = 1}), *second = submit((struct asked){.n = 1});
    cycle(&fixture);
    ck_assert_str_eq(given(first), "a:0");
    ck_assert_str_eq(given(second), "-");
    node_has("a", "2*H100", "0"); /* the other one, now */
    next_cycle(10);
    ck_assert_str_eq(given(second), "a:1");
    job_event(&fixture, first,
              (struct weir_job_event){.type = WEIR_JOB_EVENT_DEVICE_LOST,
                                      .task = job_state(&fixture, first).tasks[0].id,
                                      .attempt = 1,
                                      .text = "device 0 of node a is bad: heat"});
    ck_assert_str_eq(job_state(&fixture, first).job.state, "RESTARTING");
    ck_assert_str_eq(why(first), "device 0 of node a is bad: heat");
    ck_assert_int_eq(cycle(&fixture), 0); /* its process runs yet */
    ends(first, 0, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_int_eq(job_state(&fixture, first).job.n_restarts, 0);
    ck_assert_ptr_nonnull(strstr(why(first), "needs") != NULL ? why(first)
                                                              : strstr(why(first), "waits for"));
    ends(second, 0, 1);
    next_cycle(10);
    ck_assert_str_eq(given(first), "a:1");
}

END_TEST

START_TEST(a_device_that_went_bad_since_the_plan_is_not_given)
{
    node_has("a", "1*H100", NULL);
    char *job = submit((struct asked){.n = 1});
    plan(&fixture);
    node_has("a", "1*H100", "0");
    ck_assert_int_eq(commit(&fixture), 0);
    ck_assert_str_eq(given(job), "-");
    node_has("a", "1*H100", NULL);
    fixture.now_ms = fixture.next_ms;
    ck_assert_int_eq(cycle(&fixture), 1);
}

END_TEST

START_TEST(a_time_limit_stops_a_gang_with_a_reason)
{
    node_has("a", "1*H100", NULL);
    char *job = submit((struct asked){.n = 1, .time_limit_ms = 60000});
    cycle(&fixture);
    run_all(&fixture, job);
    struct weir_job_state state = job_state(&fixture, job);
    ck_assert_int_eq(weir_job_next_tick_ms(&state, fixture.now_ms), fixture.now_ms + 60000);
    fixture.now_ms += 59999;
    job_event(&fixture, job, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK});
    ck_assert_str_eq(job_state(&fixture, job).job.state, "RUNNING");
    fixture.now_ms += 1;
    job_event(&fixture, job, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK});
    ck_assert_str_eq(job_state(&fixture, job).job.state, "STOPPING");
    ck_assert_str_eq(job_state(&fixture, job).tasks[0].desired, "stopped");
    ends(job, 0, 1);
    ck_assert_str_eq(job_state(&fixture, job).job.state, "FAILED");
    ck_assert_str_eq(why(job), "its time limit of 60 s is over");
}

END_TEST

START_TEST(an_elastic_gang_begins_with_its_least_and_grows_as_there_is_room)
{
    node_has("a", "4*H100", NULL);
    char *other = submit((struct asked){.n = 2});
    ck_assert_int_eq(cycle(&fixture), 1);
    char *gang = submit((struct asked){.n_tasks = 4, .n = 1, .min_tasks = 2});
    char *large = submit((struct asked){.n_tasks = 8, .n = 1, .min_tasks = 5});
    next_cycle(10);
    ck_assert_str_eq(given(gang), "a:2 a:3 - -");
    ck_assert_str_eq(given(large), "- - - - - - - -");
    run_all(&fixture, gang);
    ck_assert_str_eq(job_state(&fixture, gang).job.state, "RUNNING");
    cancel(&fixture, large);
    ends(other, 0, 1);
    next_cycle(10);
    ck_assert_ptr_null(strchr(given(gang), '-'));
    job_event(&fixture, gang,
              (struct weir_job_event){.type = WEIR_JOB_EVENT_EVICT,
                                      .task = job_state(&fixture, gang).tasks[3].id,
                                      .text = "reclaimed"});
    ends(gang, 3, 1);
    ck_assert_str_eq(job_state(&fixture, gang).job.state, "RUNNING");
    ck_assert_int_eq(job_state(&fixture, gang).job.n_restarts, 0);
    next_cycle(10); /* nobody else wants it: it comes back */
    ck_assert_int_eq(job_state(&fixture, gang).tasks[3].attempt, 2);
}

END_TEST

/* ---- the law ---------------------------------------------------------------------------------- */

#define LAW_SEEDS WEIR_TEST_TIMES(12, 3)
#define LAW_STEPS 60
#define LAW_JOBS  40

/* What agents have running, which is the truth. */
struct process {
    char *job;
    int64_t attempt, milli, bytes;
    const char *node;
    int64_t idx[WEIR_TASK_DEVICES_MAX];
    size_t task, n;
};

struct law {
    struct weir_rng rng;
    uint64_t seed;
    char *jobs[LAW_JOBS];
    int n_jobs;
    struct process processes[1024];
    size_t n_processes;
    int n_started;
};

static int below(struct law *law, int n)
{
    return (int)weir_rng_below(&law->rng, (uint64_t)n);
}

static void submit_any(struct law *law)
{
    static const char *const models[] = {NULL, NULL, "H100", "A100"};
    static const int64_t millis[] = {1000, 1000, 500, 333, 250};
    if (law->n_jobs < LAW_JOBS) {
        bool is_by_memory = below(law, 5) == 0;
        struct asked asked = {.n_tasks = (size_t)(1 + below(law, 3)),
                              .n = 1 + below(law, 3),
                              .milli = millis[below(law, 5)],
                              .memory_bytes = is_by_memory ? (5 + below(law, 60)) * GIB : 0,
                              .model = models[below(law, 4)],
                              .mig_profile = below(law, 5) == 0 ? "1g.10gb" : NULL};
        asked.min_tasks = below(law, 3);
        asked.milli = asked.mig_profile != NULL ? 1000 : asked.milli;
        asked.memory_bytes = asked.mig_profile != NULL ? 0 : asked.memory_bytes;
        law->jobs[law->n_jobs++] = submit(asked);
    }
}

/* Agents start what they find placed. */
static void start_placed(struct law *law)
{
    for (int i = 0; i < law->n_jobs; i++) {
        struct weir_job_state state = job_state(&fixture, law->jobs[i]);
        for (size_t k = 0; k < state.n_tasks; k++) {
            const struct weir_task *task = &state.tasks[k];
            if (strcmp(task->state, "STARTING") != 0 || below(law, 4) == 0) {
                continue;
            }
            struct process *process = &law->processes[law->n_processes];
            ck_assert_uint_lt(law->n_processes++, 1024);
            *process = (struct process){.job = law->jobs[i],
                                        .attempt = task->attempt,
                                        .milli = task->accelerator_milli,
                                        .bytes = task->accelerator_memory_bytes,
                                        .node = task->node,
                                        .task = k};
            process->n = weir_task_device_indices(task->devices, process->idx);
            ck_assert_int_eq((int64_t)process->n, task->n_accelerators);
            report(&fixture, law->jobs[i], k, WEIR_JOB_EVENT_TASK_RUNNING, 0);
            law->n_started++;
        }
    }
}

static void end_any(struct law *law)
{
    if (law->n_processes > 0) {
        size_t at = (size_t)below(law, (int)law->n_processes);
        ends(law->processes[at].job, law->processes[at].task, law->processes[at].attempt);
        law->processes[at] = law->processes[--law->n_processes];
    }
}

static void lose_any(struct law *law)
{
    const char *node = below(law, 2) ? "a" : "b";
    for (int i = 0; i < law->n_jobs; i++) {
        job_event(&fixture, law->jobs[i],
                  (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = node});
    }
}

static void cancel_any(struct law *law)
{
    if (law->n_jobs > 0) {
        char *job = law->jobs[below(law, law->n_jobs)];
        int phase = weir_job_phase_from_text(job_state(&fixture, job).job.state);
        if (!weir_job_phase_is_final((enum weir_job_phase)phase)) {
            cancel(&fixture, job);
        }
    }
}

static void break_any(struct law *law)
{
    static const char *const bad[] = {NULL, NULL, "0", "2", "5"};
    node_has("a", "4*H100 4*mig:1g.10gb<0", bad[below(law, 5)]);
    node_has("b", "3*A100", bad[below(law, 4)]);
}

static void tick_all(struct law *law)
{
    for (int i = 0; i < law->n_jobs; i++) {
        job_event(&fixture, law->jobs[i], (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK});
    }
}

static void restart_server(struct law *law)
{
    (void)law;
    scheduler_restart(&fixture);
}

static void check_law(const struct law *law, int step)
{
    static const char *const nodes[] = {"a", "b"};
    for (size_t node = 0; node < 2; node++) {
        for (int64_t idx = 0; idx < 8; idx++) {
            int64_t milli = 0, bytes = 0;
            for (size_t p = 0; p < law->n_processes; p++) {
                const struct process *process = &law->processes[p];
                for (size_t i = 0; i < process->n; i++) {
                    bool has = strcmp(process->node, nodes[node]) == 0 && process->idx[i] == idx;
                    milli += has ? process->milli : 0;
                    bytes += has ? process->bytes + process->milli * (80 * GIB / 1000) : 0;
                }
            }
            ck_assert_msg(milli <= 1000 && (bytes <= 80 * GIB || idx > 3),
                          "seed %llu step %d: %s/%lld has %lld thousandths and %lld bytes",
                          (unsigned long long)law->seed, step, nodes[node], (long long)idx,
                          (long long)milli, (long long)bytes);
        }
    }
}

static void play_law(uint64_t seed, int *n_started)
{
    static void (*const moves[])(struct law * law) = {
        submit_any, submit_any, submit_any, end_any,   end_any,  end_any,
        end_any,    lose_any,   cancel_any, break_any, tick_all, restart_server};
    static struct law law;
    law = (struct law){.seed = seed};
    weir_rng_init(&law.rng, seed, 0);
    break_any(&law);
    for (int i = 0; i < LAW_STEPS; i++) {
        fixture.now_ms += 1 + below(&law, 20000);
        heartbeat(&fixture, "a", 64);
        heartbeat(&fixture, "b", 64);
        moves[below(&law, (int)WEIR_ARRAY_LEN(moves))](&law);
        cycle(&fixture);
        start_placed(&law);
        check_law(&law, i);
    }
    *n_started += law.n_started;
}

START_TEST(no_device_has_more_than_it_is_whatever_is_submitted_lost_and_killed)
{
    int n_started = 0;
    printf("seeds 1 to %d\n", LAW_SEEDS);
    for (uint64_t seed = 1; seed <= (uint64_t)LAW_SEEDS; seed++) {
        play_law(seed, &n_started);
        tear_down();
        set_up();
    }
    ck_assert_int_gt(n_started, LAW_SEEDS * 10);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tasks_get_different_devices_and_the_next_waits_for_what_lacks,
        a_model_is_given_where_it_is_and_one_that_nobody_has_is_said,
        shares_and_memory_of_a_device_add_up_to_no_more_than_it_has,
        mig_slices_are_given_one_by_one_and_their_device_to_nobody,
        labels_and_taints_say_which_nodes_a_job_may_have,
        a_gang_lies_in_one_domain_of_the_topology_that_it_requires,
        what_a_lost_node_had_is_free_only_when_its_agent_says_so,
        a_bad_device_is_given_to_nobody_and_what_has_it_moves,
        a_device_that_went_bad_since_the_plan_is_not_given,
        a_time_limit_stops_a_gang_with_a_reason,
        an_elastic_gang_begins_with_its_least_and_grows_as_there_is_room,
        no_device_has_more_than_it_is_whatever_is_submitted_lost_and_killed};
    return weir_test_run(
        weir_test_suite_with("devices", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
