/**
 * Random histories of the control plane: people, agents and trainings do what they please, nodes
 * are lost, the wall clock jumps, transactions fail at their end. After each step the nouns agree
 * with each other, whatever happened. The seed is printed when a law is broken.
 */
#include "control/job/control_fixture.h"

#include "base/rng.h"
#include "store/set_clock.h"

#define N_HISTORIES WEIR_TEST_TIMES(40, 6)
#define N_STEPS     60

static struct control_fixture fixture;
static struct weir_rng rng;
static int step_number;

/* Law: names the seed and the step when it does not hold. */
#define LAW(condition, ...)                                                                        \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ck_abort_msg("seed %d, step %d: " #condition ": " __VA_ARGS__);                        \
        }                                                                                          \
    } while (0)

static bool is_over(const struct weir_job *job)
{
    return weir_job_phase_is_final((enum weir_job_phase)weir_job_phase_from_text(job->state));
}

/* ---- laws ------------------------------------------------------------------------------------ */

static void check_jobs(int seed)
{
    void *items;
    size_t n = list_records(&fixture, &weir_job_resource, &items), n_open = 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_job *job = (const struct weir_job *)items + i;
        struct weir_run run;
        n_open += !is_over(job) && job->ion != NULL && strcmp(job->pipeline, "t") == 0;
        LAW((job->finished_ms != 0) == is_over(job), "%s is %s", seed, step_number, job->name,
            job->state);
        if (job->run == NULL) {
            continue;
        }
        REQUIRE(find_record(&fixture, &weir_run_resource, job->run, &run));
        bool is_scheduled = strcmp(run.status, "SCHEDULED") == 0;
        bool has_ended = !is_scheduled && strcmp(run.status, "RUNNING") != 0;
        LAW(has_ended == is_over(job), "%s is %s, its run %s", seed, step_number, job->name,
            job->state, run.status);
        LAW(strcmp(job->state, "PENDING") != 0 || is_scheduled, "%s waits, its run is %s", seed,
            step_number, job->name, run.status);
        LAW(strcmp(job->state, "RUNNING") != 0 || !is_scheduled, "%s runs, its run is %s", seed,
            step_number, job->name, run.status);
        LAW((strcmp(run.status, "FINISHED") == 0) == (strcmp(job->state, "SUCCEEDED") == 0),
            "%s is %s, its run %s", seed, step_number, job->name, job->state, run.status);
    }
    LAW(n_open <= 1, "%zu trainings of one pipeline", seed, step_number, n_open);
}

static void check_ion(int seed)
{
    struct weir_ion_state state = ion_state(&fixture);
    size_t n_serving = 0;
    for (size_t i = 0; i < state.n_candidates; i++) {
        n_serving += strcmp(state.candidates[i].state, WEIR_CANDIDATE_SERVING) == 0;
    }
    LAW(n_serving <= 1, "%zu candidates serve", seed, step_number, n_serving);
    const struct weir_ion_pipeline *t = pipeline_of(&state, "t");
    bool is_training = strcmp(t->state, "TRAINING") == 0;
    if (is_training && t->job != NULL) {
        struct weir_job job = job_record(&fixture, t->job);
        LAW(!is_over(&job), "the ION trains by a job that is %s", seed, step_number, job.state);
        LAW(job.training == t->runs.training, "training %lld", seed, step_number,
            (long long)job.training);
    }
    LAW(is_training || t->job == NULL, "%s with a job", seed, step_number, t->state);
}

/* Events are numbered without a gap: what a failed transaction wrote is gone. */
static void check_events(int seed)
{
    void *items;
    size_t n = list_records(&fixture, &weir_event_resource, &items);
    for (size_t i = 0; i < n; i++) {
        LAW(((const struct weir_event *)items)[i].seq == (int64_t)i + 1, "%zu", seed, step_number,
            i);
    }
}

/* ---- what happens ---------------------------------------------------------------------------- */

/* Any job that is not over; NULL if there is none. */
static char *any_open_job(void)
{
    void *items;
    size_t n = list_records(&fixture, &weir_job_resource, &items);
    size_t start = n > 0 ? (size_t)weir_rng_below(&rng, n) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_job *job = (const struct weir_job *)items + (start + i) % n;
        if (!is_over(job)) {
            return job->id;
        }
    }
    return NULL;
}

static void an_agent_reports(char *job)
{
    static const int64_t codes[] = {0, 0, 1, 2, 137};
    switch (weir_rng_below(&rng, 4)) {
    case 0:
        place(&fixture, job);
        break;
    case 1:
        runs(&fixture, job, 0);
        break;
    case 2:
        exits(&fixture, job, 0, codes[weir_rng_below(&rng, 5)]);
        break;
    default:
        place(&fixture, job);
        runs(&fixture, job, 0);
    }
}

static void something_is_lost_or_cancelled(char *job)
{
    static const enum weir_job_event_type types[] = {WEIR_JOB_EVENT_NODE_LOST,
                                                     WEIR_JOB_EVENT_CANCEL, WEIR_JOB_EVENT_TICK};
    struct weir_job_event event = {
        .type = types[weir_rng_below(&rng, 3)], .node = "n", .text = "ann"};
    ck_assert_int_eq(try_job_event(&fixture, job, event), WEIR_OK);
}

static void a_training_registers_a_model(char *job)
{
    const char *run = job_record(&fixture, job).run;
    if (run != NULL) {
        char *id = weir_arena_printf(&fixture.store.arena, "m%d", (int)weir_rng_below(&rng, 20));
        (void)register_model(&fixture, id, run);
    }
}

static void a_person_decides(void)
{
    static const enum weir_ion_event_type types[] = {WEIR_ION_EVENT_APPROVE, WEIR_ION_EVENT_REJECT,
                                                     WEIR_ION_EVENT_ROLLBACK, WEIR_ION_EVENT_TICK};
    struct weir_ion_event event = {.type = types[weir_rng_below(&rng, 4)], .actor = "bob"};
    weir_status status = try_turn(&fixture, ion_event_in, &event, weir_rng_below(&rng, 8) == 0);
    ck_assert_msg(status == WEIR_OK || status == WEIR_ERR_NOT_FOUND ||
                      status == WEIR_ERR_CONFLICT || status == WEIR_ERR_PEER,
                  "%s: %s", weir_status_name(status), fixture.err.message);
}

/* Minutes pass; now and then somebody sets the clock, an hour back or a day ahead. */
static void time_passes(void)
{
    switch (weir_rng_below(&rng, 6)) {
    case 0:
        fixture.now_ms = WEIR_MAX(fixture.now_ms - 3600000, (int64_t)1);
        break;
    case 1:
        fixture.now_ms += 86400000;
        break;
    default:
        fixture.now_ms += (int64_t)weir_rng_below(&rng, 120000);
    }
}

static void take_step(void)
{
    char *job = any_open_job();
    uint64_t what = weir_rng_below(&rng, 10);
    if (what == 0) {
        trigger(&fixture);
    } else if (what == 1) {
        carry_out(&fixture, (int)weir_rng_below(&rng, 2));
    } else if (what == 2) {
        a_person_decides();
    } else if (what == 3) {
        time_passes();
    } else if (job == NULL) {
        (void)make_job(&fixture, "c", "command", "{\"argv\":[\"true\"]}");
    } else if (what == 4) {
        something_is_lost_or_cancelled(job);
    } else if (what == 5) {
        a_training_registers_a_model(job);
    } else {
        an_agent_reports(job);
    }
}

START_TEST(the_nouns_agree_with_each_other)
{
    weir_rng_init(&rng, (uint64_t)_i, 0);
    fixture.now_ms = 86400000;
    apply(&fixture, weir_rng_below(&rng, 2) == 0 ? "manual" : "always-update", 1);
    for (step_number = 0; step_number < N_STEPS; step_number++) {
        take_step();
        check_jobs(_i);
        check_ion(_i);
    }
    check_events(_i);
}

END_TEST

/* ---- a clock that is set --------------------------------------------------------------------- */

static weir_status set_clock(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_set_clock(txn, *(const int64_t *)context, err);
}

static weir_status limit_jobs(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, "UPDATE jobs SET time_limit_ms = :limit WHERE time_limit_ms = 0",
                         WEIR_BINDS(WEIR_BIND_INT("limit", *(const int64_t *)context)), NULL, err);
}

struct loading {
    const char *job;
    struct weir_job_state *out;
};

static weir_status load_job(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct loading *loading = context;
    return weir_job_load(txn, loading->job, &fixture.store.arena, loading->out, err);
}

/* What has become of everything, and when what waits is due, as seen from now. */
static void tell_all(struct weir_buf *out)
{
    void *items;
    size_t n = list_records(&fixture, &weir_event_resource, &items);
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_printf(out, "%s: %s\n", ((const struct weir_event *)items)[i].kind,
                              ((const struct weir_event *)items)[i].message);
    }
    n = list_records(&fixture, &weir_job_resource, &items);
    for (size_t i = 0; i < n; i++) {
        const struct weir_job *job = (const struct weir_job *)items + i;
        struct weir_job_state state;
        fixture_read(&fixture.store, load_job, &(struct loading){job->id, &state});
        int64_t tick_ms = weir_job_next_tick_ms(&state, fixture.now_ms);
        (void)weir_buf_printf(out, "%s %s %lld, due %lld\n", job->name, job->state,
                              (long long)job->attempt,
                              tick_ms < INT64_MAX ? (long long)(tick_ms - fixture.now_ms) : -1);
    }
}

static void tick_jobs(void)
{
    void *items;
    size_t n = list_records(&fixture, &weir_job_resource, &items);
    const struct weir_job_event tick = {.type = WEIR_JOB_EVENT_TICK};
    for (size_t i = 0; i < n; i++) {
        (void)try_job_event(&fixture, ((const struct weir_job *)items)[i].id, tick);
    }
}

/* One history by its seed; the clock is set now and then by dice of its own, or never. */
static void play_clock(int seed, bool is_set, struct weir_buf *out)
{
    struct weir_rng jumps;
    weir_rng_init(&rng, (uint64_t)seed, 0);
    weir_rng_init(&jumps, (uint64_t)seed, 1);
    fixture.now_ms = 1800000000000;
    apply(&fixture, "manual", 1);
    for (step_number = 0; step_number < N_STEPS; step_number++) {
        int64_t limit_ms = 60000;
        fixture.now_ms += (int64_t)weir_rng_below(&rng, 20000);
        if (is_set && weir_rng_below(&jumps, 4) == 0) {
            int64_t by_ms = (int64_t)weir_rng_below(&jumps, 172800000) - 86400000;
            fixture.now_ms += by_ms;
            fixture_write(&fixture.store, set_clock, &by_ms);
        }
        char *job = any_open_job();
        if (job == NULL || weir_rng_below(&rng, 6) == 0) {
            (void)make_job(&fixture, "c", "command", "{\"argv\":[\"true\"]}");
            fixture_write(&fixture.store, limit_jobs, &limit_ms);
        } else {
            an_agent_reports(job);
        }
        tick_jobs();
    }
    tell_all(out);
}

START_TEST(a_clock_that_is_set_changes_nothing)
{
    struct weir_buf even, set;
    weir_buf_init(&even, 1 << 20);
    weir_buf_init(&set, 1 << 20);
    play_clock(_i, false, &even);
    control_fixture_fini(&fixture);
    control_fixture_make(&fixture);
    play_clock(_i, true, &set);
    ck_assert_uint_gt(even.len, 100);
    size_t at = 0;
    while (even.data[at] == set.data[at] && even.data[at] != '\0') {
        at++;
    }
    ck_assert_msg(strcmp(even.data, set.data) == 0,
                  "seed %d: %.300s\nand with a clock that is set: %.300s", _i, even.data + at,
                  set.data + at);
    weir_buf_fini(&even);
    weir_buf_fini(&set);
}

END_TEST

static void set_up(void)
{
    control_fixture_make(&fixture);
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

int main(void)
{
    Suite *suite = suite_create("control_property");
    TCase *tcase = tcase_create("control_property");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, the_nouns_agree_with_each_other, 0, N_HISTORIES);
    tcase_add_loop_test(tcase, a_clock_that_is_set_changes_nothing, 0, WEIR_TEST_TIMES(20, 3));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
