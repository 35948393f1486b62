/*
 * The scheduler on random programs: every task once, stages in order, deadlines kept; for one to
 * four threads. The tasks themselves check what must have ended before they may run.
 */
#include "workers.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdatomic.h>

enum { MAX_STAGES = 40, MAX_DEFERRED = 60, MAX_TILES = 20 };

struct run_record {
    struct program program;
    struct program_stage stages[MAX_STAGES + 1];
    struct deferred_task deferred[MAX_DEFERRED];
    int32_t opened_by[MAX_DEFERRED];
    atomic_int n_tile_runs[MAX_STAGES][MAX_TILES];
    atomic_int n_tiles_ended[MAX_STAGES], n_stage_ends[MAX_STAGES], n_deferred_runs[MAX_DEFERRED];
    atomic_int n_wrong;
    int32_t i_failing_tile; /* -1: none */
    int64_t sum;            /* plain memory handed from stage to stage: for the thread sanitizer */
};

static void expect(struct run_record *r, bool is_right)
{
    if (!is_right) {
        atomic_fetch_add(&r->n_wrong, 1);
    }
}

static weir_status run_tile(void *context, int32_t i_thread, int32_t i_stage, int32_t i_tile)
{
    struct run_record *r = context;
    (void)i_thread;
    if (i_stage > 0) {
        expect(r, atomic_load(&r->n_stage_ends[i_stage - 1]) == 1);
    }
    for (int32_t i = 0; i < r->program.n_deferred; i++) {
        expect(r, r->deferred[i].deadline > i_stage || atomic_load(&r->n_deferred_runs[i]) == 1);
    }
    expect(r, r->sum == i_stage);
    atomic_fetch_add(&r->n_tile_runs[i_stage][i_tile], 1);
    atomic_fetch_add(&r->n_tiles_ended[i_stage], 1);
    return i_stage == 0 && i_tile == r->i_failing_tile ? WEIR_ERR_INTERNAL : WEIR_OK;
}

static weir_status end_stage(void *context, int32_t i_thread, int32_t i_stage)
{
    struct run_record *r = context;
    (void)i_thread;
    expect(r, atomic_load(&r->n_tiles_ended[i_stage]) == r->program.n_tiles);
    atomic_fetch_add(&r->n_stage_ends[i_stage], 1);
    r->sum++;
    return WEIR_OK;
}

static weir_status run_deferred(void *context, int32_t i_thread, int32_t i_deferred)
{
    struct run_record *r = context;
    (void)i_thread;
    expect(r, r->program.n_stages == 0 ||
                  atomic_load(&r->n_stage_ends[r->opened_by[i_deferred]]) == 1);
    atomic_fetch_add(&r->n_deferred_runs[i_deferred], 1);
    return WEIR_OK;
}

static struct run_record *make_record(struct weir_rng *rng)
{
    struct run_record *r = calloc(1, sizeof(*r));
    struct program *p = &r->program;
    *p = (struct program){.stages = r->stages,
                          .deferred = r->deferred,
                          .n_stages = (int32_t)weir_rng_below(rng, MAX_STAGES + 1),
                          .n_tiles = 1 + (int32_t)weir_rng_below(rng, MAX_TILES),
                          .run_tile = run_tile,
                          .end_stage = end_stage,
                          .run_deferred = run_deferred,
                          .context = r};
    int32_t n_deferred = (int32_t)weir_rng_below(rng, MAX_DEFERRED);
    for (int32_t s = 0; s < p->n_stages; s++) {
        r->stages[s].i_deferred = p->n_deferred;
        while (p->n_deferred < n_deferred && weir_rng_below(rng, 2) == 0) {
            int32_t deadline = s + 1 + (int32_t)weir_rng_below(rng, 4);
            deadline = WEIR_MIN(deadline, p->n_stages);
            r->opened_by[p->n_deferred] = s;
            r->deferred[p->n_deferred++].deadline = deadline;
            r->stages[s].n_deferred++;
            r->stages[deadline].n_due++;
        }
    }
    if (p->n_stages == 0) {
        p->n_deferred = n_deferred;
    }
    r->i_failing_tile = -1;
    return r;
}

static void check_record(const struct run_record *r)
{
    ck_assert_int_eq(atomic_load(&r->n_wrong), 0);
    for (int32_t s = 0; s < r->program.n_stages; s++) {
        ck_assert_int_eq(atomic_load(&r->n_stage_ends[s]), 1);
        for (int32_t t = 0; t < r->program.n_tiles; t++) {
            ck_assert_int_eq(atomic_load(&r->n_tile_runs[s][t]), 1);
        }
    }
    for (int32_t i = 0; i < r->program.n_deferred; i++) {
        ck_assert_int_eq(atomic_load(&r->n_deferred_runs[i]), 1);
    }
}

START_TEST(every_task_runs_once_after_what_it_waits_for)
{
    for (int32_t n_threads = 1; n_threads <= 4; n_threads++) {
        struct workers *workers;
        struct weir_rng rng;
        weir_rng_init(&rng, 7, (uint64_t)n_threads);
        ck_assert_int_eq(workers_create(n_threads, MAX_STAGES, NULL, &workers), WEIR_OK);
        for (int i_program = 0; i_program < 150; i_program++) {
            struct run_record *r = make_record(&rng);
            ck_assert_int_eq(workers_run(workers, &r->program), WEIR_OK);
            check_record(r);
            free(r);
        }
        workers_destroy(workers);
    }
}

END_TEST

START_TEST(a_failing_task_is_reported_and_the_program_still_ends)
{
    struct workers *workers;
    struct weir_rng rng;
    weir_rng_init(&rng, 8, 0);
    ck_assert_int_eq(workers_create(3, MAX_STAGES, NULL, &workers), WEIR_OK);
    struct run_record *r = make_record(&rng);
    while (r->program.n_stages == 0) {
        free(r);
        r = make_record(&rng);
    }
    r->i_failing_tile = 0;
    ck_assert_int_eq(workers_run(workers, &r->program), WEIR_ERR_INTERNAL);
    check_record(r);
    free(r);
    r = make_record(&rng);
    ck_assert_int_eq(workers_run(workers, &r->program), WEIR_OK); /* the next one is not affected */
    free(r);
    workers_destroy(workers);
}

END_TEST

START_TEST(idle_workers_can_be_destroyed_at_once)
{
    for (int i = 0; i < 50; i++) {
        struct workers *workers;
        ck_assert_int_eq(workers_create(4, 1, NULL, &workers), WEIR_OK);
        workers_destroy(workers);
    }
    workers_destroy(NULL);
}

END_TEST

/* Two threads on two processors, as counted by the kernel: 37 preemptions a second alone, 190
 * beside a process that takes one of them. */
START_TEST(who_shares_processors_spins_less)
{
    const uint64_t second = 1000000000;
    uint64_t alone = workers_spin_ns(37, second, 2), beside = workers_spin_ns(190, second, 2);
    ck_assert_uint_gt(alone, 5 * beside);
    ck_assert_uint_eq(workers_spin_ns(0, second, 2), alone);
    ck_assert_uint_eq(workers_spin_ns(19, second / 10, 2), beside);
    ck_assert_uint_eq(workers_spin_ns(190, second, 16), alone);
    ck_assert_uint_eq(workers_spin_ns(1, 0, 2), beside); /* no time, no quotient */
}

END_TEST

WEIR_TEST_MAIN("workers", every_task_runs_once_after_what_it_waits_for,
               a_failing_task_is_reported_and_the_program_still_ends,
               idle_workers_can_be_destroyed_at_once, who_shares_processors_spins_less)
