/* No device is given twice, whatever is placed, killed, lost and reported in whatever order. The
 * oracle is what the agents' processes have: they end when the agent says so, and not before. */
#include "job/task_device.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "job/device.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

#define N_NODES   2
#define N_DEVICES 3 /* of each node; the last has 40 GB, the others 80 */
#define N_JOBS    9
#define N_STEPS   150
#define N_SEEDS   WEIR_TEST_TIMES(60, 10)
#define GB        ((int64_t)1000000007) /* odd on purpose */

static struct store_fixture fixture;
static const char *const nodes[N_NODES] = {"a", "b"};

static int64_t bytes_of(int64_t idx)
{
    return idx == N_DEVICES - 1 ? 40 * GB : 80 * GB;
}

static weir_status report(struct weir_txn *txn, const char *node, const bool *bad, int64_t now_ms,
                          struct weir_error *err)
{
    struct weir_device_report reports[N_DEVICES];
    bool is_news;
    for (int i = 0; i < N_DEVICES; i++) {
        reports[i] = (struct weir_device_report){
            .device = {.id = weir_arena_printf(&fixture.arena, "GPU-%d", i),
                       .kind = "gpu",
                       .model = "H100",
                       .memory_bytes = bytes_of(i),
                       .numa = -1,
                       .state = bad != NULL && bad[i] ? WEIR_DEVICE_BAD : WEIR_DEVICE_OK,
                       .temperature_c = NAN,
                       .power_w = NAN,
                       .utilisation_pct = NAN}};
    }
    return weir_devices_report(txn, node, reports, N_DEVICES, now_ms, &fixture.arena, &is_news,
                               err);
}

/* Job i asks for 1 or 2 devices: whole, a share of them, or memory. */
static struct weir_task asked(int i)
{
    static const int64_t millis[] = {1000, 500, 333, 0, 250, 1000, 667, 0, 1};
    return (struct weir_task){.id = weir_arena_printf(&fixture.arena, "t%d", i),
                              .role = "worker",
                              .n_accelerators = 1 + i % 2,
                              .accelerator_milli = millis[i],
                              .accelerator_memory_bytes =
                                  millis[i] == 0 ? (20 + 7 * i) * GB / 3 : 0};
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    for (int i = 0; i < N_NODES; i++) {
        const struct weir_node node = {.name = (char *)nodes[i], .cpu_slots = 1};
        MUST(weir_node_heartbeat(txn, &node, 1, err));
        MUST(report(txn, nodes[i], NULL, 1, err));
    }
    for (int i = 0; i < N_JOBS; i++) {
        const struct weir_task task = asked(i);
        const struct weir_job job = {.id = weir_arena_printf(&fixture.arena, "j%d", i),
                                     .name = weir_arena_printf(&fixture.arena, "job%d", i),
                                     .project = "default",
                                     .kind = "command",
                                     .spec = "{}",
                                     .max_restarts = 1000000};
        MUST(weir_job_create(txn, &job, &task, 1, 1, err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* ---- a world ---------------------------------------------------------------------------------- */

/* A process on a node, with what it was given. */
struct process {
    int64_t attempt, milli, bytes[WEIR_TASK_DEVICES_MAX], idx[WEIR_TASK_DEVICES_MAX];
    size_t n;
    int job, node;
    bool is_alive;
};

struct world {
    int64_t whole_milli[N_NODES];
    struct weir_txn *txn;
    struct weir_rng rng;
    uint64_t seed;
    int64_t now_ms;
    struct process processes[N_STEPS];
    int n_processes, n_given, n_refused, n_left;
    bool bad[N_NODES][N_DEVICES];
};

static int below(struct world *world, int n)
{
    return (int)weir_rng_below(&world->rng, (uint64_t)n);
}

static struct weir_job_state load(struct world *world, int job)
{
    struct weir_error error, *err = &error;
    struct weir_job_state state;
    MUST(weir_job_load(world->txn, weir_arena_printf(&fixture.arena, "j%d", job), &fixture.arena,
                       &state, err));
    return state;
}

static void step(struct world *world, struct weir_job_state *state, struct weir_job_event event,
                 bool *out_is_given)
{
    struct weir_error error, *err = &error;
    struct weir_job_actions actions = {0};
    MUST(weir_job_step(state, &event, world->now_ms, &fixture.arena, &actions, err));
    if (out_is_given != NULL) {
        MUST(weir_task_devices_give(world->txn, state, world->now_ms, out_is_given, err));
    }
    if (out_is_given == NULL || *out_is_given) {
        MUST(weir_job_save(world->txn, state, &actions, world->now_ms, err));
    }
}

static void note_process(struct world *world, int job, int node, const struct weir_task *task)
{
    struct process *process = &world->processes[world->n_processes++];
    *process =
        (struct process){.attempt = task->attempt, .job = job, .node = node, .is_alive = true};
    process->n = weir_task_device_indices(task->devices, process->idx);
    process->milli = task->accelerator_milli;
    for (size_t i = 0; i < process->n; i++) {
        process->bytes[i] = task->accelerator_milli > 0
                                ? bytes_of(process->idx[i]) * task->accelerator_milli / 1000
                                : task->accelerator_memory_bytes;
    }
}

/* Anything at all, also devices twice, devices that are not there, and a number that is wrong. */
static void try_place(struct world *world)
{
    int job = below(world, N_JOBS), node = below(world, N_NODES);
    struct weir_job_state state = load(world, job);
    const char *place = nodes[node], *devices = "";
    bool is_given;
    if (strcmp(state.job.state, "PENDING") != 0) {
        return;
    }
    int n = below(world, 12) == 0 ? below(world, 4) : (int)state.tasks[0].n_accelerators;
    for (int i = 0; i < n; i++) {
        devices = weir_arena_printf(&fixture.arena, "%s%s%d", devices, i > 0 ? "," : "",
                                    below(world, 20) == 0 ? 7 : below(world, N_DEVICES));
    }
    step(world, &state,
         (struct weir_job_event){
             .type = WEIR_JOB_EVENT_BIND, .place = &place, .devices = &devices, .n_place = 1},
         &is_given);
    if (is_given) {
        note_process(world, job, node, &state.tasks[0]);
    }
    world->n_given += is_given;
    world->n_refused += !is_given;
}

/* The agent reports the end of a process, of whatever attempt. */
static void end_process(struct world *world)
{
    struct weir_error error, *err = &error;
    if (world->n_processes == 0) {
        return;
    }
    struct process *process = &world->processes[below(world, world->n_processes)];
    struct weir_job_state state = load(world, process->job);
    if (!process->is_alive) {
        return;
    }
    process->is_alive = false;
    MUST(weir_task_devices_end(world->txn, state.tasks[0].id, process->attempt, err));
    step(world, &state,
         (struct weir_job_event){.type = below(world, 2) ? WEIR_JOB_EVENT_TASK_EXITED
                                                         : WEIR_JOB_EVENT_TASK_LOST,
                                 .task = state.tasks[0].id,
                                 .attempt = process->attempt,
                                 .exit_code = 1},
         NULL);
}

static void lose_node(struct world *world)
{
    const char *node = nodes[below(world, N_NODES)];
    for (int i = 0; i < N_JOBS; i++) {
        struct weir_job_state state = load(world, i);
        step(world, &state, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = node},
             NULL);
    }
}

/* The node's agent says what has not ended; what ended with it unseen is free then. */
static void settle(struct world *world)
{
    struct weir_error error, *err = &error;
    struct weir_attempt_name alive[N_STEPS];
    size_t n_alive = 0, n_freed;
    int node = below(world, N_NODES);
    bool was_wiped = below(world, 3) == 0;
    for (int i = 0; i < world->n_processes; i++) {
        struct process *process = &world->processes[i];
        if (process->is_alive && process->node == node) {
            struct weir_job_state state = load(world, process->job);
            bool is_current =
                state.tasks[0].attempt == process->attempt && weir_task_is_alive(&state.tasks[0]);
            process->is_alive = is_current || !was_wiped; /* its machine was started again */
            if (process->is_alive) {
                alive[n_alive++] = (struct weir_attempt_name){state.tasks[0].id, process->attempt};
            }
        }
    }
    MUST(weir_task_devices_settle(world->txn, nodes[node], alive, n_alive, &n_freed, err));
    world->n_left += (int)n_freed;
}

static void change_device(struct world *world)
{
    struct weir_error error, *err = &error;
    int node = below(world, N_NODES), idx = below(world, N_DEVICES);
    world->bad[node][idx] = !world->bad[node][idx];
    MUST(report(world->txn, nodes[node], world->bad[node], world->now_ms, err));
    for (int i = 0; i < N_JOBS && world->bad[node][idx]; i++) {
        struct weir_job_state state = load(world, i);
        const struct weir_task *task = &state.tasks[0];
        if (task->node != NULL && strcmp(task->node, nodes[node]) == 0) {
            step(world, &state,
                 (struct weir_job_event){.type = WEIR_JOB_EVENT_DEVICE_LOST,
                                         .task = task->id,
                                         .attempt = task->attempt,
                                         .text = "device 0 of node a is bad"},
                 NULL);
        }
    }
}

static void pass_time(struct world *world)
{
    for (int i = 0; i < N_JOBS; i++) {
        struct weir_job_state state = load(world, i);
        step(world, &state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, NULL);
    }
}

/* ---- the laws --------------------------------------------------------------------------------- */

static int64_t ask(struct world *world, const char *sql)
{
    struct weir_error error, *err = &error;
    int64_t value;
    MUST(weir_txn_query_int(world->txn, sql, WEIR_NO_BINDS, 0, &value, err));
    return value;
}

static void check_laws(struct world *world, int at)
{
    int n_rows = 0;
    for (int node = 0; node < N_NODES; node++) {
        for (int64_t idx = 0; idx < N_DEVICES; idx++) {
            int64_t milli = 0, bytes = 0;
            for (int p = 0; p < world->n_processes; p++) {
                const struct process *process = &world->processes[p];
                for (size_t i = 0; i < process->n && process->is_alive; i++) {
                    bool has = process->node == node && process->idx[i] == idx;
                    milli += has ? process->milli : 0;
                    bytes += has ? process->bytes[i] : 0;
                    n_rows += has;
                }
            }
            ck_assert_msg(milli <= world->whole_milli[node] && bytes <= bytes_of(idx),
                          "seed %llu step %d: device %s/%lld has %lld thousandths, %lld bytes",
                          (unsigned long long)world->seed, at, nodes[node], (long long)idx,
                          (long long)milli, (long long)bytes);
        }
    }
    ck_assert_msg(ask(world, "SELECT count(*) FROM task_devices") == n_rows,
                  "seed %llu step %d: the table has other rows than there are processes' devices",
                  (unsigned long long)world->seed, at);
    ck_assert_int_eq(ask(world, "SELECT count(*) FROM (SELECT 1 FROM task_devices"
                                " GROUP BY node, idx HAVING sum(milli) > 1000)"),
                     0);
    ck_assert_int_eq(ask(world, "SELECT count(*) FROM devices v WHERE used_milli <>"
                                " (SELECT coalesce(sum(milli), 0) FROM task_devices d"
                                " WHERE d.node = v.node AND d.idx = v.idx)"),
                     0);
}

static weir_status play_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static void (*const moves[])(struct world * world) = {try_place,   try_place,   try_place,
                                                          end_process, end_process, pass_time,
                                                          lose_node,   settle,      change_device};
    struct world *world = context;
    world->txn = txn;
    for (int node = 0; node < N_NODES; node++) { /* of some nodes' devices there is a part */
        int64_t milli = below(world, 3) == 0 ? 1 + below(world, 999) : 0;
        MUST(weir_txn_exec(
            txn, "UPDATE nodes SET device_milli = :milli WHERE name = :name",
            WEIR_BINDS(WEIR_BIND_INT("milli", milli), WEIR_BIND_TEXT("name", nodes[node])), NULL,
            err));
        world->whole_milli[node] = milli > 0 ? milli : 1000;
    }
    for (int i = 0; i < N_STEPS; i++) {
        world->now_ms += 1 + below(world, 120000);
        moves[below(world, (int)WEIR_ARRAY_LEN(moves))](world);
        check_laws(world, i);
    }
    return WEIR_OK;
}

START_TEST(no_device_is_given_twice_whatever_is_placed_lost_and_reported)
{
    int n_given = 0, n_refused = 0, n_left = 0;
    printf("seeds 1 to %d\n", N_SEEDS);
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct world world = {.seed = seed, .now_ms = 1000};
        tear_down();
        set_up();
        weir_rng_init(&world.rng, seed, 0);
        fixture_write(&fixture, play_in, &world);
        n_given += world.n_given;
        n_refused += world.n_refused;
        n_left += world.n_left;
    }
    ck_assert_int_gt(n_given, N_SEEDS * 10); /* it did happen */
    ck_assert_int_gt(n_refused, N_SEEDS * 2);
    ck_assert_int_gt(n_left, N_SEEDS / 2);
}

END_TEST

/* ---- single cases ----------------------------------------------------------------------------- */

static const struct {
    const char *text;
    size_t n;
    int64_t first;
} lists[] = {{NULL, 0, 0}, {"", 0, 0},    {"0", 1, 0},  {"3,0,12", 3, 3}, {"3,", 1, 3},
             {"x", 0, 0},  {"1;2", 0, 0}, {"-1", 0, 0}, {",1", 0, 0},     {"1,,2", 0, 0}};

START_TEST(indices_are_read_and_any_other_text_is_none)
{
    int64_t out[WEIR_TASK_DEVICES_MAX] = {-7};
    ck_assert_uint_eq(weir_task_device_indices(lists[_i].text, out), lists[_i].n);
    if (lists[_i].n > 0) {
        ck_assert_int_eq(out[0], lists[_i].first);
    }
}

END_TEST

static weir_status look_at_holders_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct world world = {.txn = txn, .now_ms = 1000};
    struct weir_device *devices;
    size_t n;
    const char *place = "a", *first = "0,1", *second = "1";
    bool is_given;
    (void)context;
    struct weir_job_state of_1 = load(&world, 1), of_4 = load(&world, 4);
    step(&world, &of_1,
         (struct weir_job_event){
             .type = WEIR_JOB_EVENT_BIND, .place = &place, .devices = &first, .n_place = 1},
         &is_given);
    ck_assert(is_given);
    step(&world, &of_4,
         (struct weir_job_event){
             .type = WEIR_JOB_EVENT_BIND, .place = &place, .devices = &second, .n_place = 1},
         &is_given);
    ck_assert(is_given);
    MUST(weir_devices_of_node(txn, "a", &fixture.arena, &devices, &n, err));
    ck_assert_uint_eq(n, N_DEVICES);
    ck_assert_str_eq(devices[0].holders, "job1/0");
    ck_assert_str_eq(devices[1].holders, "job1/0, job4/0");
    ck_assert_int_eq(devices[1].used_milli, 750);
    ck_assert_ptr_null(devices[2].holders);
    MUST(report(txn, "a", NULL, 2000, err)); /* a heartbeat changes nothing of it */
    MUST(weir_devices_of_node(txn, "a", &fixture.arena, &devices, &n, err));
    ck_assert_str_eq(devices[1].holders, "job1/0, job4/0");
    MUST(weir_task_devices_end(txn, "t1", 1, err));
    MUST(weir_devices_of_node(txn, "a", &fixture.arena, &devices, &n, err));
    ck_assert_str_eq(devices[1].holders, "job4/0");
    ck_assert_ptr_null(devices[0].holders);
    return WEIR_OK;
}

START_TEST(a_device_says_which_tasks_have_it)
{
    fixture_write(&fixture, look_at_holders_in, NULL);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("task_device");
    TCase *tcase = tcase_create("task_device");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, no_device_is_given_twice_whatever_is_placed_lost_and_reported);
    tcase_add_loop_test(tcase, indices_are_read_and_any_other_text_is_none, 0,
                        (int)WEIR_ARRAY_LEN(lists));
    tcase_add_test(tcase, a_device_says_which_tasks_have_it);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
