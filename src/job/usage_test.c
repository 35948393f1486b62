/* The account over random histories. The oracle keeps for each attempt when it began and ended, and what
 * it had; it knows nothing of meters. */
#include "job/usage.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "job/device.h"
#include "job/job.h"
#include "job/queue_history.h"
#include "job/task_device.h"
#include "job/usage_report.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

#define N_DEVICES 4
#define N_JOBS    6
#define N_STEPS   120
#define N_SEEDS   12
#define BEAT_MS   5000
#define BEGIN_MS  (INT64_C(20000) * WEIR_USAGE_DAY_MS + 40 * 60000)
#define TASKS_MAX 2

static struct store_fixture fixture;

/* One attempt, as the test saw it. */
struct had {
    int64_t since_ms, devices, cpus;
    bool is_on;
};

struct world {
    struct weir_txn *txn;
    struct weir_rng rng;
    int64_t now_ms, beat_ms;
    struct had had[N_JOBS][TASKS_MAX];
    int64_t waits_since_ms[N_JOBS];
    bool waits[N_JOBS];
    double given[N_JOBS], cpu[N_JOBS], waited[N_JOBS];
    double utilisation;
    struct weir_arena arena;
};

static weir_status report(struct world *world, double utilisation, struct weir_error *err)
{
    struct weir_device_report reports[N_DEVICES];
    bool is_news;
    for (int i = 0; i < N_DEVICES; i++) {
        reports[i] = (struct weir_device_report){
            .device = {.id = weir_arena_printf(&world->arena, "GPU-%d", i),
                       .kind = "gpu",
                       .model = i < 2 ? "H100" : "A100",
                       .memory_bytes = 1 << 30,
                       .numa = -1,
                       .state = WEIR_DEVICE_OK,
                       .temperature_c = NAN,
                       .power_w = NAN,
                       .utilisation_pct = utilisation}};
    }
    return weir_devices_report(world->txn, "a", reports, N_DEVICES, world->now_ms, &world->arena,
                               &is_news, err);
}

/* Job i has 1 or 2 tasks, of no device, a half, or one. */
static int64_t milli_of(int i)
{
    static const int64_t millis[] = {1000, 500, 0};
    return millis[i % 3];
}

static size_t n_tasks_of(int i)
{
    return 1 + (size_t)(i / 3) % TASKS_MAX;
}

static weir_status populate(struct world *world, struct weir_error *err)
{
    const struct weir_node node = {.name = "a", .cpu_slots = 64};
    MUST(weir_txn_insert(world->txn, &weir_project_resource, &(struct weir_project){.name = "red"},
                         err));
    MUST(weir_txn_insert(world->txn, &weir_project_resource, &(struct weir_project){.name = "blue"},
                         err));
    MUST(weir_node_heartbeat(world->txn, &node, world->now_ms, err));
    MUST(report(world, NAN, err));
    for (int i = 0; i < N_JOBS; i++) {
        struct weir_task tasks[TASKS_MAX];
        for (size_t t = 0; t < n_tasks_of(i); t++) {
            tasks[t] = (struct weir_task){.id = weir_arena_printf(&world->arena, "t%d-%zu", i, t),
                                          .role = "worker",
                                          .rank = (int64_t)t,
                                          .cpu_millis = 1000 * (1 + i),
                                          .n_accelerators = milli_of(i) > 0,
                                          .accelerator_milli = milli_of(i)};
        }
        const struct weir_job job = {.id = weir_arena_printf(&world->arena, "j%d", i),
                                     .name = "job",
                                     .project = i % 2 == 0 ? "red" : "blue",
                                     .kind = "command",
                                     .spec = "{}",
                                     .created_by = i < 3 ? "ann" : "bob",
                                     .max_restarts = 1000000};
        MUST(weir_job_create(world->txn, &job, tasks, n_tasks_of(i), world->now_ms, err));
        world->waits[i] = true;
        world->waits_since_ms[i] = world->now_ms;
    }
    return WEIR_OK;
}

/* ---- the oracle ------------------------------------------------------------------------------- */

/* What the oracle has of jobs after a save: attempts that began and ended, and whether it asks. */
static void see(struct world *world, int i, const struct weir_job_state *state)
{
    size_t wants[TASKS_MAX];
    bool waits = weir_job_wants(state, world->now_ms, wants) > 0;
    int64_t asked = milli_of(i) * (int64_t)n_tasks_of(i);
    if (world->waits[i] && !waits) {
        world->waited[i] += (double)((world->now_ms - world->waits_since_ms[i]) * asked);
    } else if (!world->waits[i] && waits) {
        world->waits_since_ms[i] = world->now_ms;
    }
    world->waits[i] = waits;
    for (size_t t = 0; t < state->n_tasks; t++) {
        struct had *had = &world->had[i][t];
        bool is_on = weir_task_is_alive(&state->tasks[t]);
        if (had->is_on && !is_on) {
            world->given[i] += (double)((world->now_ms - had->since_ms) * had->devices);
            world->cpu[i] += (double)((world->now_ms - had->since_ms) * had->cpus);
        } else if (!had->is_on && is_on) {
            *had = (struct had){world->now_ms, milli_of(i), 1000 * (1 + i), true};
        }
        had->is_on = is_on;
    }
}

/* ---- what happens ----------------------------------------------------------------------------- */

static weir_status load(struct world *world, int i, struct weir_job_state *out,
                        struct weir_error *err)
{
    return weir_job_load(world->txn, weir_arena_printf(&world->arena, "j%d", i), &world->arena, out,
                         err);
}

static weir_status apply(struct world *world, int i, struct weir_job_state *state,
                         const struct weir_job_event *event, struct weir_error *err)
{
    struct weir_job_actions actions = {0};
    bool is_given = true;
    if (weir_job_step(state, event, world->now_ms, &world->arena, &actions, err) != WEIR_OK) {
        return WEIR_OK; /* It does not fit what the job does now. */
    }
    if (event->type == WEIR_JOB_EVENT_BIND) {
        MUST(weir_task_devices_give(world->txn, state, world->now_ms, &is_given, err));
    }
    if (is_given) {
        MUST(weir_job_save(world->txn, state, &actions, world->now_ms, err));
        see(world, i, state);
    }
    return WEIR_OK;
}

static weir_status bind(struct world *world, int i, struct weir_job_state *state,
                        struct weir_error *err)
{
    size_t wants[TASKS_MAX];
    const char *nodes[TASKS_MAX] = {"a", "a"}, *devices[TASKS_MAX] = {NULL, NULL};
    size_t n = weir_job_wants(state, world->now_ms, wants);
    if (n == 0) {
        return WEIR_OK;
    }
    for (size_t t = 0; t < n && milli_of(i) > 0; t++) {
        devices[t] =
            weir_arena_printf(&world->arena, "%d", (int)weir_rng_below(&world->rng, N_DEVICES));
    }
    return apply(world, i, state,
                 &(struct weir_job_event){.type = WEIR_JOB_EVENT_BIND,
                                          .place = nodes,
                                          .devices = milli_of(i) > 0 ? devices : NULL,
                                          .n_place = n},
                 err);
}

static weir_status end_task(struct world *world, int i, struct weir_job_state *state,
                            struct weir_error *err)
{
    const struct weir_task *task =
        &state->tasks[weir_rng_below(&world->rng, (uint32_t)state->n_tasks)];
    const struct weir_job_event event = {.type = weir_rng_below(&world->rng, 2) == 0
                                                     ? WEIR_JOB_EVENT_TASK_EXITED
                                                     : WEIR_JOB_EVENT_TASK_LOST,
                                         .task = task->id,
                                         .attempt = task->attempt,
                                         .exit_code = 1,
                                         .text = "x"};
    MUST(apply(world, i, state, &event, err));
    return weir_task_devices_end(world->txn, event.task, event.attempt, err);
}

static weir_status act(struct world *world, struct weir_error *err)
{
    static const enum weir_job_event_type others[] = {WEIR_JOB_EVENT_EVICT, WEIR_JOB_EVENT_HOLD,
                                                      WEIR_JOB_EVENT_RELEASE, WEIR_JOB_EVENT_TICK,
                                                      WEIR_JOB_EVENT_NODE_LOST};

    int i = (int)weir_rng_below(&world->rng, N_JOBS);
    struct weir_job_state state;
    MUST(load(world, i, &state, err));
    switch (weir_rng_below(&world->rng, 5)) {
    case 0:
    case 1:
        return bind(world, i, &state, err);
    case 2:
    case 3:
        return end_task(world, i, &state, err);
    default:
        return apply(world, i, &state,
                     &(struct weir_job_event){
                         .type = others[weir_rng_below(&world->rng, WEIR_ARRAY_LEN(others))],
                         .node = "a",
                         .text = "x"},
                     err);
    }
}

static weir_status beat(struct world *world, struct weir_error *err)
{
    const struct weir_node node = {.name = "a", .cpu_slots = 64};
    int64_t n;
    MUST(weir_node_heartbeat(world->txn, &node, world->now_ms, err));
    MUST(report(world, world->utilisation, err));
    MUST(weir_usage_roll_running(world->txn, world->now_ms, &n, err));
    MUST(weir_usage_roll_waiting(world->txn, world->now_ms, &n, err));
    world->beat_ms = world->now_ms;
    return WEIR_OK;
}

/* ---- comparing -------------------------------------------------------------------------------- */

static const struct weir_usage_row *row_of(const struct weir_usage_row *rows, size_t n,
                                           const char *key)
{
    static const struct weir_usage_row none;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].key, key) == 0) {
            return &rows[i];
        }
    }
    return &none;
}

/* The account has what has ended, and of what goes on all but the time since it was counted last. */
static void compare(const struct world *world, int i, const struct weir_usage_figures *is)
{
    double given = world->given[i], cpu = world->cpu[i], lacks = 0, cpu_lacks = 0;
    for (size_t t = 0; t < n_tasks_of(i); t++) {
        const struct had *had = &world->had[i][t];
        double ms = had->is_on ? (double)(world->now_ms - had->since_ms) : 0;
        double since_beat =
            WEIR_MIN(ms, (double)(world->now_ms - world->beat_ms + WEIR_USAGE_ROLL_MS));
        given += ms * (double)had->devices;
        cpu += ms * (double)had->cpus;
        lacks += had->is_on ? since_beat * (double)had->devices : 0;
        cpu_lacks += had->is_on ? since_beat * (double)had->cpus : 0;
    }
    ck_assert_double_le(is->given, given / 1e6 + 1e-6);
    ck_assert_double_ge(is->given, (given - lacks) / 1e6 - 1e-6);
    ck_assert_double_le(is->cpu_given, cpu / 1e6 + 1e-6);
    ck_assert_double_ge(is->cpu_given, (cpu - cpu_lacks) / 1e6 - 1e-6);
    ck_assert_double_le(is->used + is->unknown, is->given + 1e-3);
    ck_assert_double_ge(is->used, 0);
    double waited =
        world->waited[i] + (world->waits[i] ? (double)(world->now_ms - world->waits_since_ms[i]) *
                                                  (double)milli_of(i) * (double)n_tasks_of(i)
                                            : 0);
    ck_assert_double_le(is->waited, waited / 1e6 + 1e-6);
}

static weir_status check(struct world *world, struct weir_error *err)
{
    struct weir_usage_query query = {.by = WEIR_USAGE_BY_JOB, .to_ms = INT64_MAX};
    struct weir_usage_row *rows;
    double total = 0, by_total[WEIR_USAGE_N_BY] = {0};
    size_t n;
    MUST(weir_usage_report(world->txn, &query, &world->arena, &rows, &n, err));
    for (int i = 0; i < N_JOBS; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "j%d", i);
        const struct weir_usage_row *row = row_of(rows, n, id);
        compare(world, i, &row->is);
        total += row->is.given;
    }
    for (int by = 0; by < WEIR_USAGE_BY_CLUSTER; by++) {
        query.by = (enum weir_usage_by)by;
        MUST(weir_usage_report(world->txn, &query, &world->arena, &rows, &n, err));
        for (size_t i = 0; i < n; i++) {
            by_total[by] += rows[i].is.given;
        }
        ck_assert_double_eq_tol(by_total[by], total, 1e-6);
    }
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    MUST(weir_stmt_open(world->txn, "SELECT coalesce(sum(given), 0) / 1e6 FROM usage_totals", NULL,
                        0, &row, err));
    MUST(weir_stmt_step(row, &has_row, err));
    ck_assert_double_eq_tol(weir_stmt_f64(row, 0), total, 1e-6);
    return WEIR_OK;
}

/* ---- histories -------------------------------------------------------------------------------- */

static weir_status play(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct world *world = context;
    world->txn = txn;
    return act(world, err);
}

static weir_status play_beat(struct weir_txn *txn, void *context, struct weir_error *err)
{
    ((struct world *)context)->txn = txn;
    return beat(context, err);
}

static weir_status play_start(struct weir_txn *txn, void *context, struct weir_error *err)
{
    ((struct world *)context)->txn = txn;
    return populate(context, err);
}

static weir_status play_check(struct weir_txn *txn, void *context, struct weir_error *err)
{
    ((struct world *)context)->txn = txn;
    return check(context, err);
}

/* The server is killed before the commit: the same again changes nothing. */
static weir_status play_and_die(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct world copy = *(struct world *)context;
    copy.txn = txn;
    weir_arena_init(&copy.arena, 0);
    MUST(act(&copy, err));
    MUST(beat(&copy, err));
    weir_arena_fini(&copy.arena);
    return weir_error_set(err, WEIR_ERR_CANCELLED, "killed");
}

static void play_history(uint64_t seed)
{
    struct world world = {.now_ms = BEGIN_MS, .beat_ms = BEGIN_MS, .utilisation = 40};
    struct weir_error err;
    weir_rng_init(&world.rng, seed, 0);
    weir_arena_init(&world.arena, 0);
    fixture_make(&fixture, NULL);
    fixture_write(&fixture, play_start, &world);
    for (int step = 0; step < N_STEPS; step++) {
        uint32_t what = weir_rng_below(&world.rng, 10);
        world.now_ms += (int64_t)weir_rng_below(&world.rng, what == 0 ? 3000000 : 4000);
        if (what < 3) {
            world.utilisation = what == 1 ? NAN : (double)weir_rng_below(&world.rng, 101);
            fixture_write(&fixture, play_beat, &world);
        } else if (what == 3) {
            ck_assert_int_eq(weir_store_write(fixture.store, play_and_die, &world, &err),
                             WEIR_ERR_CANCELLED);
        } else {
            fixture_write(&fixture, play, &world);
        }
        fixture_write(&fixture, play_check, &world);
    }
    double given = 0;
    for (int i = 0; i < N_JOBS; i++) {
        given += world.given[i];
    }
    ck_assert_double_gt(given, 0); /* Something has happened. */
    weir_arena_fini(&world.arena);
    fixture_fini(&fixture);
}

START_TEST(the_account_is_what_attempts_had_whatever_happens)
{
    printf("seed %d\n", _i + 1);
    play_history((uint64_t)_i + 1);
}

END_TEST

/* ---- single rules ----------------------------------------------------------------------------- */

static struct world world;

static void set_up(void)
{
    world = (struct world){.now_ms = BEGIN_MS, .beat_ms = BEGIN_MS, .utilisation = 40};
    weir_rng_init(&world.rng, 1, 0);
    weir_arena_init(&world.arena, 0);
    fixture_make(&fixture, NULL);
    fixture_write(&fixture, play_start, &world);
}

static void tear_down(void)
{
    weir_arena_fini(&world.arena);
    fixture_fini(&fixture);
}

static weir_status bind_first(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_job_state state;
    (void)context;
    world.txn = txn;
    MUST(load(&world, 0, &state, err));
    return bind(&world, 0, &state, err);
}

struct asked {
    struct weir_usage_query query;
    struct weir_usage_row *rows;
    size_t n;
};

static weir_status ask_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    return weir_usage_report(txn, &asked->query, &world.arena, &asked->rows, &asked->n, err);
}

static struct weir_usage_figures figures(enum weir_usage_by by, const char *key)
{
    struct asked asked = {.query = {.by = by, .to_ms = INT64_MAX}};
    fixture_read(&fixture, ask_in, &asked);
    return row_of(asked.rows, asked.n, key)->is;
}

START_TEST(what_devices_say_is_taken_for_the_time_since_the_heartbeat_before)
{
    fixture_write(&fixture, play_beat, &world);
    fixture_write(&fixture, bind_first, &world);
    world.now_ms += BEAT_MS;
    fixture_write(&fixture, play_beat, &world); /* 40 % of 5 s */
    world.utilisation = 2;
    world.now_ms += BEAT_MS;
    fixture_write(&fixture, play_beat, &world); /* 2 %, so idle */
    struct weir_usage_figures is = figures(WEIR_USAGE_BY_PROJECT, "red");
    ck_assert_double_eq_tol(is.given, 10, 1e-6);
    ck_assert_double_eq_tol(is.used, 2.1, 1e-6);
    ck_assert_double_eq_tol(is.idle, 5, 1e-6);
    ck_assert_double_eq_tol(is.unknown, 0, 1e-6);
    world.now_ms += 60000; /* The node was silent: what it says now is not of that time. */
    fixture_write(&fixture, play_beat, &world);
    is = figures(WEIR_USAGE_BY_USER, "ann");
    ck_assert_double_eq_tol(is.given, 70, 1e-6);
    ck_assert_double_eq_tol(is.unknown, 60, 1e-6);
}

END_TEST

static weir_status sample(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_queue_sample *samples = context;
    return weir_queue_history_add(txn, samples, 1, world.now_ms, err);
}

START_TEST(what_is_above_the_guarantee_is_borrowed)
{
    struct weir_queue_sample red = {"red", "red", {1000, 4000, 3000, 0}, {0, 1000, 1000, 0}, 0};
    fixture_write(&fixture, bind_first, &world);
    fixture_write(&fixture, sample, &red);
    world.now_ms += BEAT_MS;
    fixture_write(&fixture, play_beat, &world);
    struct weir_usage_figures is = figures(WEIR_USAGE_BY_JOB, "j0");
    ck_assert_double_eq_tol(is.borrowed, 0.75 * 5, 1e-6);
    ck_assert_double_eq_tol(is.cpu_borrowed, 5, 1e-6);
}

END_TEST

static struct weir_usage_figures summed(enum weir_usage_by by, const char *project)
{
    struct asked asked = {.query = {.by = by, .to_ms = INT64_MAX, .project = project}};
    struct weir_usage_figures sum = {0};
    fixture_read(&fixture, ask_in, &asked);
    for (size_t i = 0; i < asked.n; i++) {
        sum.given += asked.rows[i].is.given;
        sum.waited += asked.rows[i].is.waited;
    }
    return sum;
}

static weir_status fold_all(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "DELETE FROM usage WHERE span_ms = 3600000", WEIR_NO_BINDS, NULL,
                         err);
}

START_TEST(hours_become_days_without_a_loss)
{
    fixture_write(&fixture, bind_first, &world);
    for (int i = 0; i < 60; i++) {
        world.now_ms += WEIR_USAGE_HOUR_MS;
        fixture_write(&fixture, play_beat, &world);
    }
    struct asked hours = {.query = {.by = WEIR_USAGE_BY_HOUR, .to_ms = INT64_MAX}};
    fixture_read(&fixture, ask_in, &hours);
    ck_assert_uint_eq(hours.n, 61); /* 60 h, begun in the middle of one. */
    struct weir_usage_figures before = summed(WEIR_USAGE_BY_USER, "red");
    ck_assert_double_eq_tol(before.given, 60 * 3600, 1e-6);
    fixture_write(&fixture, fold_all, &world);
    struct weir_usage_figures after = summed(WEIR_USAGE_BY_USER, "red");
    ck_assert_double_eq_tol(after.given, before.given, 1e-6);
    ck_assert_double_eq_tol(after.waited, before.waited, 1e-6);
    struct asked days = {.query = {.by = WEIR_USAGE_BY_HOUR, .to_ms = INT64_MAX}};
    fixture_read(&fixture, ask_in, &days);
    ck_assert_uint_eq(days.n, 3);
}

END_TEST

START_TEST(a_clock_that_is_set_back_counts_nothing_twice)
{
    fixture_write(&fixture, bind_first, &world);
    world.now_ms += 60000;
    fixture_write(&fixture, play_beat, &world);
    world.now_ms -= 50000;
    fixture_write(&fixture, play_beat, &world);
    world.now_ms += 60000;
    fixture_write(&fixture, play_beat, &world);
    struct weir_usage_figures is = figures(WEIR_USAGE_BY_JOB, "j0");
    ck_assert_double_le(is.given, 120 + 1e-6);
    ck_assert_double_ge(is.given, 70 - 1e-6);
}

END_TEST

struct points {
    struct weir_queue_point *points;
    size_t n;
    int64_t step_ms;
};

static weir_status points_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct points *points = context;
    return weir_queue_history_read(txn, NULL, "red", 0, INT64_MAX, points->step_ms, &world.arena,
                                   &points->points, &points->n, err);
}

START_TEST(samples_of_queues_are_means_by_steps)
{
    struct weir_queue_sample red = {"r", "red", {2000, 1000, 0, 0}, {0, 0, 0, 0}, 0};
    for (int i = 0; i < 40; i++) { /* 20 min */
        red.devices.used = i < 20 ? 1000 : 3000;
        red.devices.borrowed = i < 20 ? 0 : 1000;
        fixture_write(&fixture, sample, &red);
        world.now_ms += WEIR_QUEUE_SAMPLE_MS;
    }
    struct points points = {.step_ms = WEIR_QUEUE_BUCKET_MS};
    fixture_read(&fixture, points_in, &points);
    ck_assert_uint_eq(points.n, 4);
    ck_assert_int_eq(points.points[0].mean.devices.used, 1000);
    ck_assert_int_eq(points.points[3].mean.devices.borrowed, 1000);
    points.step_ms = 4 * WEIR_QUEUE_BUCKET_MS;
    fixture_read(&fixture, points_in, &points);
    ck_assert_uint_eq(points.n, 1);
    ck_assert_int_eq(points.points[0].mean.devices.used, 2000);
    ck_assert_int_eq(points.points[0].mean.devices.guarantee, 2000);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("usage");
    TCase *tcase = tcase_create("usage");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, the_account_is_what_attempts_had_whatever_happens, 0, N_SEEDS);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("rules");
    tcase_set_timeout(tcase, 120); /* Each write is durable: a busy disk takes its time. */
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, what_devices_say_is_taken_for_the_time_since_the_heartbeat_before);
    tcase_add_test(tcase, what_is_above_the_guarantee_is_borrowed);
    tcase_add_test(tcase, hours_become_days_without_a_loss);
    tcase_add_test(tcase, a_clock_that_is_set_back_counts_nothing_twice);
    tcase_add_test(tcase, samples_of_queues_are_means_by_steps);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
