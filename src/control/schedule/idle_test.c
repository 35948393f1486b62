/* Idle devices, against what each says by hand, in a real store placed by the real planner. */
#include "control/schedule/idle.h"

#include "base/test_main.h"
#include "control/schedule/scheduler_fixture.h"
#include "job/device.h"
#include "job/queue.h"

#include <math.h>

#define HOUR 3600000

static struct scheduler_fixture fixture;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

/* ---- devices of node a, with their use in percent ---------------------------------------------- */

#define N_DEVICES 3

static weir_status report_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const ids[N_DEVICES] = {"d0", "d1", "d2"};
    const double *use = context;
    struct weir_device_report reports[N_DEVICES] = {0};
    bool is_news;
    for (size_t i = 0; i < N_DEVICES; i++) {
        reports[i].device = (struct weir_device){.id = (char *)ids[i],
                                                 .kind = "gpu",
                                                 .model = "H100",
                                                 .numa = -1,
                                                 .state = WEIR_DEVICE_OK,
                                                 .temperature_c = NAN,
                                                 .power_w = NAN,
                                                 .utilisation_pct = use[i]};
    }
    return weir_devices_report(txn, "a", reports, N_DEVICES, fixture.now_ms, &fixture.store.arena,
                               &is_news, err);
}

/* The node reports `after_ms` later. */
static void reports(int64_t after_ms, double first, double second, double third)
{
    double use[N_DEVICES] = {first, second, third};
    fixture.now_ms += after_ms;
    heartbeat(&fixture, "a", 64);
    fixture_write(&fixture.store, report_in, use);
}

/* ---- queues and jobs --------------------------------------------------------------------------- */

static weir_status queue_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_queue_set(txn, context, fixture.now_ms, err);
}

static void queue(const char *name, const char *project, const char *parent, int64_t idle_after_ms)
{
    struct weir_queue set = {.name = (char *)name,
                             .project = (char *)project,
                             .parent = (char *)parent,
                             .priority = 100,
                             .min_run_ms = -1,
                             .idle_after_ms = idle_after_ms};
    fixture_write(&fixture.store, queue_in, &set);
}

struct asked {
    const char *project;
    int64_t n_devices;
    bool is_service;
    char *id;
};

static weir_status submit_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct asked *asked = context;
    struct weir_task task = {.id = weir_arena_printf(&fixture.store.arena, "%s-0", asked->id),
                             .role = "command",
                             .cpu_millis = 1000,
                             .n_accelerators = asked->n_devices,
                             .accelerator_milli = 1000};
    const struct weir_job job = {.id = asked->id,
                                 .name = asked->id,
                                 .project = (char *)asked->project,
                                 .kind = "command",
                                 .is_service = asked->is_service,
                                 .spec = "{}",
                                 .priority = 50,
                                 .is_preemptible = true};
    return weir_job_create(txn, &job, &task, 1, fixture.now_ms, err);
}

/* A job that runs, on the first devices that are free. */
static char *runs(const char *project, int64_t n_devices, bool is_service)
{
    struct asked asked = {project, n_devices, is_service,
                          weir_arena_printf(&fixture.store.arena, "job-%03d", ++fixture.n_jobs)};
    fixture_write(&fixture.store, submit_in, &asked);
    ck_assert_int_eq(cycle(&fixture), 1);
    report(&fixture, asked.id, 0, WEIR_JOB_EVENT_TASK_RUNNING, 0);
    return asked.id;
}

static weir_status look_for_idle(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct control control = {.arena = &fixture.store.arena, .now_ms = fixture.now_ms};
    struct control_idle_job *jobs;
    char **out = context;
    size_t n;
    WEIR_TRY(control_idle_jobs(&control, txn, &jobs, &n, err));
    *out = "";
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(strstr(jobs[i].text, "have been idle for 3600 s"));
        *out = weir_arena_printf(control.arena, "%s%s%s", *out, i > 0 ? " " : "", jobs[i].id);
    }
    return WEIR_OK;
}

/* "job-001 job-002" */
static char *idle_jobs(void)
{
    char *said;
    fixture_read(&fixture.store, look_for_idle, &said);
    return said;
}

/* ---- tests ------------------------------------------------------------------------------------- */

START_TEST(a_job_is_idle_when_the_last_of_its_devices_has_been_for_so_long)
{
    queue("q", "default", NULL, HOUR);
    reports(0, 0, 0, 0);
    (void)runs("default", 2, false);
    reports(1000, 80, 4, 0);
    reports(HOUR, 4, 4.9, 0); /* the first is idle from here on */
    ck_assert_str_eq(idle_jobs(), "");
    reports(HOUR - 1, 0, 0, 0);
    ck_assert_str_eq(idle_jobs(), "");
    reports(1, 0, 0, 99); /* the third is nobody's */
    ck_assert_str_eq(idle_jobs(), "job-001");
    reports(1, 0, 5, 0);
    ck_assert_str_eq(idle_jobs(), "");
    reports(HOUR, NAN, NAN, 0);
    reports(HOUR, NAN, NAN, 0);
    ck_assert_str_eq(idle_jobs(), "");
}

END_TEST

START_TEST(what_was_idle_before_the_job_came_is_not_counted)
{
    queue("q", "default", NULL, HOUR);
    reports(0, 0, 0, 0);
    reports(9 * (int64_t)HOUR, 0, 0, 0);
    (void)runs("default", 1, false);
    ck_assert_str_eq(idle_jobs(), "");
    reports(HOUR, 0, 0, 0);
    ck_assert_str_eq(idle_jobs(), "job-001");
}

END_TEST

START_TEST(a_queue_says_it_or_its_parent_and_services_are_left_alone)
{
    queue("department", NULL, NULL, HOUR);
    queue("q", "default", "department", -1);
    queue("o", "other", "department", 0);
    reports(0, 0, 0, 0);
    (void)runs("default", 1, true);
    (void)runs("other", 1, false);
    (void)runs("default", 1, false);
    reports(2 * (int64_t)HOUR, 0, 0, 0);
    ck_assert_str_eq(idle_jobs(), "job-003");
    queue("o", "other", "department", HOUR);
    ck_assert_str_eq(idle_jobs(), "job-002 job-003");
    queue("department", NULL, NULL, 0);
    ck_assert_str_eq(idle_jobs(), "job-002");
}

END_TEST

START_TEST(one_that_is_held_or_has_gone_is_not_told_twice)
{
    queue("q", "default", NULL, HOUR);
    reports(0, 0, 0, 0);
    char *held = runs("default", 1, false), *gone = runs("default", 1, false);
    reports(2 * (int64_t)HOUR, 0, 0, 0);
    ck_assert_str_eq(idle_jobs(), "job-001 job-002");
    job_event(&fixture, held, (struct weir_job_event){.type = WEIR_JOB_EVENT_HOLD, .text = "held"});
    report(&fixture, gone, 0, WEIR_JOB_EVENT_TASK_EXITED, 0);
    ck_assert_str_eq(idle_jobs(), "");
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {a_job_is_idle_when_the_last_of_its_devices_has_been_for_so_long,
                                  what_was_idle_before_the_job_came_is_not_counted,
                                  a_queue_says_it_or_its_parent_and_services_are_left_alone,
                                  one_that_is_held_or_has_gone_is_not_told_twice};
    return weir_test_run(
        weir_test_suite_with("idle", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
