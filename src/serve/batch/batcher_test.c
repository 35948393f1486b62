/* The model of these tests adds a thousand to each element, and says how it was called. */
#include "serve/batch/batcher.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define WIDTH 3

struct fixture {
    struct batcher *batcher;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    bool is_shut; /* the model computes nothing before it is opened */
    int n_done, n_runs, n_rows_max;
    size_t n_in_run;
    atomic_int fails_at;       /* a row with this value makes the run fail; 0: none */
    atomic_bool forgets_batch; /* answers one row, whatever came in */
};

static struct fixture f;

static weir_status run(void *context, struct weir_tensor *const *in, struct weir_tensor **out,
                       struct weir_error *err)
{
    (void)context;
    const float *from = in[0]->data;
    pthread_mutex_lock(&f.lock);
    f.n_in_run++;
    pthread_cond_broadcast(&f.changed);
    while (f.is_shut) {
        pthread_cond_wait(&f.changed, &f.lock);
    }
    f.n_in_run--;
    f.n_runs++;
    f.n_rows_max = WEIR_MAX(f.n_rows_max, (int)in[0]->dims[0]);
    pthread_mutex_unlock(&f.lock);
    for (size_t i = 0; i < in[0]->n_elems; i++) {
        if (f.fails_at != 0 && (int)from[i] == f.fails_at) {
            return weir_error_set(err, WEIR_ERR_INVALID, "there is a %d", f.fails_at);
        }
    }
    int64_t dims[2] = {f.forgets_batch ? 1 : in[0]->dims[0], WIDTH};
    WEIR_TRY(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, dims, out, err));
    float *to = out[0]->data;
    for (size_t i = 0; i < out[0]->n_elems; i++) {
        to[i] = from[i] + 1000;
    }
    return WEIR_OK;
}

static void start(void)
{
    memset(&f, 0, sizeof f);
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    const struct batcher_config config = {.n_inputs = 1,
                                          .n_outputs = 1,
                                          .is_batched = true,
                                          .rules = {.batch_max = 8, .queue_max = 64},
                                          .run = run};
    ck_assert_int_eq(batcher_start(&config, &f.batcher, NULL), WEIR_OK);
}

static void stop(void)
{
    batcher_stop(f.batcher);
}

struct job {
    struct batch_request request; /* first */
    struct weir_tensor *in[1];
    bool is_gone, is_done;
};

static void on_done(struct batch_request *request)
{
    pthread_mutex_lock(&f.lock);
    ((struct job *)request)->is_done = true;
    f.n_done++;
    pthread_cond_broadcast(&f.changed);
    pthread_mutex_unlock(&f.lock);
}

static bool is_gone(const struct batch_request *request)
{
    return ((const struct job *)request)->is_gone;
}

static void make(struct job *job, int64_t n_rows, int64_t width, float first)
{
    memset(job, 0, sizeof *job);
    ck_assert_int_eq(
        weir_tensor_create(WEIR_DTYPE_FLOAT, 2, (int64_t[]){n_rows, width}, &job->in[0], NULL),
        WEIR_OK);
    for (size_t i = 0; i < job->in[0]->n_elems; i++) {
        ((float *)job->in[0]->data)[i] = first + (float)i;
    }
    job->request = (struct batch_request){.in = job->in,
                                          .n_rows = n_rows,
                                          .deadline_ns = BATCH_NO_DEADLINE,
                                          .is_gone = is_gone,
                                          .done = on_done};
}

static weir_status submit(struct job *job)
{
    struct weir_error err;
    return batcher_submit(f.batcher, &job->request, &err);
}

static void set_shut(bool is_shut)
{
    pthread_mutex_lock(&f.lock);
    f.is_shut = is_shut;
    pthread_cond_broadcast(&f.changed);
    pthread_mutex_unlock(&f.lock);
}

/* A job that is being computed, and does not end before the model is opened. */
static void block(struct job *job)
{
    set_shut(true);
    make(job, 1, WIDTH, 0);
    ck_assert_int_eq(submit(job), WEIR_OK);
    pthread_mutex_lock(&f.lock);
    while (f.n_in_run == 0) {
        pthread_cond_wait(&f.changed, &f.lock);
    }
    pthread_mutex_unlock(&f.lock);
}

static void await_done(int n)
{
    pthread_mutex_lock(&f.lock);
    while (f.n_done < n) {
        pthread_cond_wait(&f.changed, &f.lock);
    }
    pthread_mutex_unlock(&f.lock);
}

/* The answer is what the model makes of this job's own input. */
static void check_answer(struct job *job)
{
    ck_assert_msg(job->request.status == WEIR_OK, "%s", job->request.error.message);
    const struct weir_tensor *out = job->request.out[0];
    ck_assert_int_eq(out->dims[0], job->request.n_rows);
    for (size_t i = 0; i < out->n_elems; i++) {
        ck_assert_float_eq(((const float *)out->data)[i],
                           ((const float *)job->in[0]->data)[i] + 1000);
    }
}

static void drop(struct job *job)
{
    weir_tensor_release(job->in[0]);
    weir_tensor_release(job->request.out[0]);
}

START_TEST(what_waits_is_computed_together_and_each_gets_its_own_rows)
{
    static struct job first, jobs[5];
    block(&first);
    for (int i = 0; i < 5; i++) {
        make(&jobs[i], 1 + i % 2, WIDTH, (float)(10 * i));
        ck_assert_int_eq(submit(&jobs[i]), WEIR_OK);
    }
    ck_assert_uint_eq(batcher_n_waiting(f.batcher), 6);
    set_shut(false);
    await_done(6);
    ck_assert_int_eq(f.n_runs, 2);
    ck_assert_int_eq(f.n_rows_max, 7);
    for (int i = 0; i < 5; i++) {
        check_answer(&jobs[i]);
        drop(&jobs[i]);
    }
    struct batch_stats stats;
    batcher_stats(f.batcher, &stats);
    ck_assert_uint_eq(stats.success.n, 6);
    ck_assert_uint_eq(stats.n_batches, 2);
    ck_assert_uint_eq(stats.n_rows, 8);
    ck_assert_uint_eq(stats.n_sizes, 2);
    ck_assert_int_eq(stats.sizes[1].n_rows, 7);
    check_answer(&first);
    drop(&first);
}

END_TEST

START_TEST(one_request_does_not_fail_for_anothers_input)
{
    static struct job first, jobs[4];
    f.fails_at = 500;
    block(&first);
    for (int i = 0; i < 4; i++) {
        make(&jobs[i], 1, WIDTH, i == 2 ? 499 : (float)i);
        ck_assert_int_eq(submit(&jobs[i]), WEIR_OK);
    }
    set_shut(false);
    await_done(5);
    for (int i = 0; i < 4; i++) {
        if (i == 2) {
            ck_assert_int_eq(jobs[i].request.status, WEIR_ERR_INVALID);
            ck_assert_str_eq(jobs[i].request.error.message, "there is a 500");
        } else {
            check_answer(&jobs[i]);
        }
        drop(&jobs[i]);
    }
    drop(&first);
}

END_TEST

START_TEST(a_model_that_forgets_the_batch_is_asked_one_by_one)
{
    static struct job first, jobs[3];
    f.forgets_batch = true;
    block(&first);
    for (int i = 0; i < 3; i++) {
        make(&jobs[i], 1, WIDTH, (float)i);
        ck_assert_int_eq(submit(&jobs[i]), WEIR_OK);
    }
    set_shut(false);
    await_done(4);
    for (int i = 0; i < 3; i++) {
        check_answer(&jobs[i]);
        drop(&jobs[i]);
    }
    ck_assert_int_eq(f.n_runs, 5); /* the first, the batch, three alone */
    drop(&first);
}

END_TEST

START_TEST(other_shapes_late_ones_and_those_nobody_waits_for_are_not_mixed_in)
{
    static struct job first, jobs[4];
    block(&first);
    for (int i = 0; i < 4; i++) {
        make(&jobs[i], 1, i == 1 ? WIDTH + 1 : WIDTH, (float)i);
        jobs[i].is_gone = i == 2;
        jobs[i].request.deadline_ns = i == 3 ? weir_mono_ns() + 1000000 : BATCH_NO_DEADLINE;
        ck_assert_int_eq(submit(&jobs[i]), WEIR_OK);
    }
    while (weir_mono_ns() < jobs[3].request.deadline_ns) {
    }
    set_shut(false);
    await_done(5);
    check_answer(&jobs[0]);
    ck_assert_int_eq(jobs[1].request.status, WEIR_OK);
    ck_assert_int_eq(jobs[2].request.status, WEIR_ERR_CANCELLED);
    ck_assert_int_eq(jobs[3].request.status, WEIR_ERR_TIMEOUT);
    ck_assert_int_eq(f.n_runs, 3);
    struct batch_stats stats;
    batcher_stats(f.batcher, &stats);
    ck_assert_uint_eq(stats.n_gone, 1);
    ck_assert_uint_eq(stats.n_expired, 1);
    ck_assert_uint_eq(stats.failure.n, 2);
    for (int i = 0; i < 4; i++) {
        drop(&jobs[i]);
    }
    drop(&first);
}

END_TEST

START_TEST(a_full_queue_says_so_and_wrong_requests_are_not_taken)
{
    static struct job first, jobs[3];
    struct weir_error err;
    batcher_set_rules(f.batcher, &(struct batcher_rules){.batch_max = 8, .queue_max = 1});
    block(&first);
    for (int i = 0; i < 3; i++) {
        make(&jobs[i], 1, WIDTH, 0);
    }
    ck_assert_int_eq(submit(&jobs[0]), WEIR_OK);
    ck_assert_int_eq(batcher_submit(f.batcher, &jobs[1].request, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "the model is busy: 1 requests are waiting; try again");
    jobs[2].request.n_rows = 0;
    ck_assert_int_eq(submit(&jobs[2]), WEIR_ERR_INVALID);
    jobs[2].request.n_rows = BATCHER_ROWS_MAX + 1;
    ck_assert_int_eq(submit(&jobs[2]), WEIR_ERR_LIMIT);
    jobs[2].request.n_rows = 1;
    jobs[2].request.deadline_ns = 1;
    ck_assert_int_eq(submit(&jobs[2]), WEIR_ERR_TIMEOUT);
    set_shut(false);
    await_done(2);
    for (int i = 0; i < 3; i++) {
        drop(&jobs[i]);
    }
    drop(&first);
}

END_TEST

START_TEST(stop_answers_what_waits)
{
    static struct job first, jobs[20];
    block(&first);
    for (int i = 0; i < 20; i++) {
        make(&jobs[i], 1, WIDTH, (float)i);
        ck_assert_int_eq(submit(&jobs[i]), WEIR_OK);
    }
    set_shut(false);
    batcher_stop(f.batcher);
    f.batcher = NULL;
    ck_assert_int_eq(f.n_done, 21);
    for (int i = 0; i < 20; i++) {
        check_answer(&jobs[i]);
        drop(&jobs[i]);
    }
    drop(&first);
}

END_TEST

#define N_CLIENTS  6
#define N_REQUESTS WEIR_TEST_TIMES(2000, 300)

static void *ask_many(void *context)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 7, (uint64_t)(uintptr_t)context);
    for (int i = 0; i < N_REQUESTS; i++) {
        struct job job;
        make(&job, 1 + (int64_t)weir_rng_below(&rng, 4), WIDTH,
             (float)weir_rng_below(&rng, 100000));
        if (submit(&job) == WEIR_OK) {
            pthread_mutex_lock(&f.lock);
            while (!job.is_done) {
                pthread_cond_wait(&f.changed, &f.lock);
            }
            pthread_mutex_unlock(&f.lock);
            check_answer(&job);
        }
        drop(&job);
    }
    return NULL;
}

START_TEST(answers_under_load_are_those_of_a_serial_run)
{
    pthread_t threads[N_CLIENTS];
    for (uintptr_t i = 0; i < N_CLIENTS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_many, (void *)i), 0);
    }
    for (int i = 0; i < 50; i++) {
        const struct batcher_rules rules = {
            .batch_max = 1 + i % 8, .delay_ns = (uint64_t)(i % 3) * 100000, .queue_max = 64};
        batcher_set_rules(f.batcher, &rules);
        sched_yield();
    }
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_eq(f.n_done, N_CLIENTS * N_REQUESTS);
    ck_assert_int_le(f.n_rows_max, 8);
}

END_TEST

START_TEST(quantiles_of_the_latency_lie_in_their_bucket)
{
    static struct batch_stats stats;
    memset(&stats, 0, sizeof stats);
    ck_assert_double_eq(batch_latency_quantile_s(&stats, 0.5), 0);
    for (int i = 0; i < 100; i++) {
        batch_stats_add_request(&stats, WEIR_OK, &(struct batch_times){0},
                                i < 90 ? 150000u : 3000000u);
    }
    double p50 = batch_latency_quantile_s(&stats, 0.5),
           p99 = batch_latency_quantile_s(&stats, 0.99);
    ck_assert(p50 > 100e-6 && p50 <= 200e-6);
    ck_assert(p99 > 1600e-6 && p99 <= 3200e-6);
}

END_TEST

WEIR_TEST_MAIN_WITH("batcher", start, stop,
                    what_waits_is_computed_together_and_each_gets_its_own_rows,
                    one_request_does_not_fail_for_anothers_input,
                    a_model_that_forgets_the_batch_is_asked_one_by_one,
                    other_shapes_late_ones_and_those_nobody_waits_for_are_not_mixed_in,
                    a_full_queue_says_so_and_wrong_requests_are_not_taken, stop_answers_what_waits,
                    answers_under_load_are_those_of_a_serial_run,
                    quantiles_of_the_latency_lie_in_their_bucket)
