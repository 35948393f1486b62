/* Parameter server: the weights are those of a serial program, with momentum kept on the servers.
 */
#include "comm/ps.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "comm/core/test_group.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* What takes long is not done with UCX too, which carries the same messages as sockets. */
enum { N_TRANSPORTS = 3, N_SWEPT = 2, N_KINDS };

static const char *const transports[N_TRANSPORTS] = {"shm", "tcp", "ucx"};

enum { STEPS = 6, N_MOST = 300007, RANGES = 5 };

struct layout {
    int n_workers, n_servers;
    size_t n_elems;
    bool is_shared; /**< Gradients in weir_comm_alloc memory. */
};

/* SGD with momentum, one element: what both the servers and the serial program do. */
static void update_one(float *weight, float *momentum, float gradient, double rate)
{
    *momentum = 0.9f * *momentum + gradient;
    *weight -= (float)rate * *momentum;
}

struct optimizer {
    float momentum[N_MOST + 1];
    uint8_t n_updates[N_MOST + 1]; /* by element */
};

static weir_status update(void *context, const struct weir_ps_step *step, float *weights,
                          const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    struct optimizer *optimizer = context;
    for (size_t i = 0; i < n_elems; i++) {
        if (optimizer->n_updates[first_elem + i]++ != step->step) {
            return WEIR_ERR_INTERNAL;
        }
        update_one(&weights[i], &optimizer->momentum[first_elem + i],
                   gradient_sum[i] / (float)step->n_samples, step->learning_rate);
    }
    return WEIR_OK;
}

static double rate_of(uint64_t step)
{
    return 0.1 / (double)(step + 1);
}

static int serve(struct weir_comm *comm, const struct layout *layout)
{
    struct optimizer *optimizer = calloc(1, sizeof *optimizer);
    struct weir_ps_config config = {.idle_timeout_ms = 0};
    int i_server = weir_comm_rank(comm) - layout->n_workers;
    RANK_CHECK(weir_ps_serve(comm, &config, update, optimizer) == WEIR_OK);
    /* Its own pieces in every step, and nobody else's. */
    size_t first = 0, n = 0;
    for (size_t i = 0; weir_ps_piece(layout->n_elems, layout->n_servers, i_server, i, &first, &n);
         i++) {
        for (size_t k = first; k < first + n; k++) {
            RANK_CHECK(optimizer->n_updates[k] == STEPS);
            optimizer->n_updates[k] = 0;
        }
    }
    for (size_t k = 0; k <= N_MOST; k++) {
        RANK_CHECK(optimizer->n_updates[k] == 0);
    }
    free(optimizer);
    return 0;
}

static int work(struct weir_comm *comm, const struct layout *layout)
{
    size_t n = layout->n_elems;
    int rank = weir_comm_rank(comm);
    float *gradients = malloc((n + 1) * sizeof(float)), *plain = gradients;
    float *weights = malloc((n + 1) * sizeof(float)), *expected = malloc((n + 1) * sizeof(float));
    float *momentum = calloc(n + 1, sizeof(float));
    if (layout->is_shared) {
        RANK_CHECK(weir_comm_alloc(comm, (n + 5) * sizeof(float), (void **)&gradients) == WEIR_OK);
        gradients += 3;
    }
    for (size_t i = 0; i < n; i++) {
        expected[i] = test_value(1, 0, i);
        weights[i] = rank == 0 ? expected[i] : -1;
    }
    RANK_CHECK(weir_ps_start(comm, weights, n) == WEIR_OK);
    RANK_CHECK(memcmp(weights, expected, n * sizeof *weights) == 0);
    for (uint64_t s = 0; s < STEPS; s++) {
        for (size_t i = 0; i < n; i++) {
            gradients[i] = test_value(10 + s, rank, i);
            update_one(&expected[i], &momentum[i], test_sum(10 + s, layout->n_workers, i) / 32.0f,
                       rate_of(s));
        }
        struct weir_ps_step step = {.step = s, .learning_rate = rate_of(s), .n_samples = 32};
        RANK_CHECK(weir_ps_push_pull(comm, gradients, weights, n, &step) == WEIR_OK);
        RANK_CHECK(memcmp(weights, expected, n * sizeof *weights) == 0);
        /* The workers' own collectives go on beside it. */
        int64_t one = 1;
        RANK_CHECK(weir_comm_allreduce(comm, &one, 1, WEIR_COMM_I64) == WEIR_OK);
        RANK_CHECK(one == layout->n_workers);
    }
    RANK_CHECK(weir_ps_stop(comm) == WEIR_OK);
    free(momentum);
    free(expected);
    free(weights);
    free(plain);
    return 0;
}

static int run(struct weir_comm *comm, void *context)
{
    const struct layout *layout = context;
    return weir_comm_rank(comm) < layout->n_workers ? work(comm, layout) : serve(comm, layout);
}

START_TEST(weights_are_those_of_the_serial_program)
{
    static const struct layout layouts[] = {
        {1, 1, 1, false}, {2, 1, 0, true},      {2, 1, 1000, true},    {4, 2, 4099, false},
        {3, 3, 20, true}, {4, 1, N_MOST, true}, {2, 3, N_MOST, false},
    };
    struct layout layout = layouts[_i / N_SWEPT];
    ck_assert_int_eq(test_group_try(transports[_i % N_SWEPT], layout.n_workers, layout.n_servers, 1,
                                    run, &layout),
                     0);
}

END_TEST

/* ---- failures ------------------------------------------------------------------------------- */

static weir_status never_called(void *context, const struct weir_ps_step *step, float *weights,
                                const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    (void)context;
    (void)step;
    (void)weights;
    (void)gradient_sum;
    (void)first_elem;
    (void)n_elems;
    return WEIR_ERR_INTERNAL;
}

static weir_status die(void *context, const struct weir_ps_step *step, float *weights,
                       const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    (void)raise(SIGKILL);
    return never_called(context, step, weights, gradient_sum, first_elem, n_elems);
}

/* Rank *context kills itself; the others, workers and server, hear of it. A worker does so after
 * the start, the server in the first step: all others have their communicator by then. */
static int lose_one(struct weir_comm *comm, void *context)
{
    int victim = *(int *)context, at_fault = -1;
    struct weir_ps_config config = {.idle_timeout_ms = 0};
    float weights[100] = {0}, gradients[100] = {0};
    struct weir_ps_step step = {.step = 0, .learning_rate = 1, .n_samples = 1};
    weir_status status;
    if (weir_comm_rank(comm) == weir_comm_n_workers(comm)) {
        bool is_victim = victim == weir_comm_rank(comm);
        status = weir_ps_serve(comm, &config, is_victim ? die : never_called, NULL);
    } else {
        status = weir_ps_start(comm, weights, 100);
        if (victim == weir_comm_rank(comm)) {
            (void)raise(SIGKILL);
        }
        if (status == WEIR_OK) {
            status = weir_ps_push_pull(comm, gradients, weights, 100, &step);
        }
    }
    RANK_CHECK(status == WEIR_ERR_PEER);
    RANK_CHECK(weir_comm_failure(comm, &at_fault, NULL) == WEIR_ERR_PEER && at_fault == victim);
    return 0;
}

START_TEST(a_dead_worker_or_server_is_named_to_all)
{
    int victim = _i / N_TRANSPORTS == 0 ? 1 : 3;
    struct test_group group;
    test_group_init(&group, 4, transports[_i % N_TRANSPORTS]);
    group.n_servers = 1;
    uint64_t start_ns = weir_mono_ns();
    test_group_start(&group, lose_one, &victim);
    for (int r = 0; r < group.size; r++) {
        ck_assert_int_eq(test_group_wait(&group, r), r == victim ? 256 + SIGKILL : 0);
    }
    ck_assert_uint_lt(weir_mono_ns() - start_ns, UINT64_C(10000000000)); /* deadline: 60 s */
    test_group_fini(&group);
}

END_TEST

static int fail_update(struct weir_comm *comm, void *context)
{
    (void)context;
    float weights[100] = {0}, gradients[100] = {0};
    struct weir_ps_config config = {.idle_timeout_ms = 0};
    struct weir_ps_step step = {.step = 0, .learning_rate = 1, .n_samples = 1};
    if (weir_comm_rank(comm) == 2) {
        RANK_CHECK(weir_ps_serve(comm, &config, never_called, NULL) == WEIR_ERR_INTERNAL);
        return 0;
    }
    RANK_CHECK(weir_ps_start(comm, weights, 100) == WEIR_OK);
    RANK_CHECK(weir_ps_push_pull(comm, gradients, weights, 99, &step) == WEIR_ERR_INVALID);
    RANK_CHECK(weir_ps_push_pull(comm, gradients, weights, 100, &step) == WEIR_ERR_PEER);
    return 0;
}

START_TEST(an_update_that_fails_ends_the_group)
{
    ck_assert_int_eq(test_group_try(transports[_i], 2, 1, 1, fail_update, NULL), 0);
}

END_TEST

/* ---- relaxed -------------------------------------------------------------------------------- */

enum { RELAXED_STEPS = 60, N_RELAXED = 20000 };

struct relaxed {
    int n_workers, n_servers;
    uint64_t staleness;
};

/* Worker r adds 1 to the elements i with i mod n_workers = r: weights count everybody's steps. */
static weir_status count_up(void *context, const struct weir_ps_step *step, float *weights,
                            const float *gradients, size_t first_elem, size_t n_elems)
{
    uint64_t *last = context; /* by element: updates of a piece are numbered one after the other */
    if (last[first_elem]++ != step->step) {
        return WEIR_ERR_INTERNAL;
    }
    for (size_t i = 0; i < n_elems; i++) {
        weights[i] += gradients[i];
    }
    return WEIR_OK;
}

/* Some are slower than others, and not always. */
static void dawdle(int rank, uint64_t step)
{
    volatile float value = test_value(7, rank, step);
    int n = (rank == 1 ? 300000 : 1000) * (int)((step * 7 + (uint64_t)rank) % 5);
    for (int i = 0; i < n; i++) {
        value = value * 0.5f + 1;
    }
}

/* Own steps all, and everybody else's but the last few. */
static int check_counts(struct weir_comm *comm, const struct relaxed *relaxed, const float *weights,
                        uint64_t n_steps)
{
    int rank = weir_comm_rank(comm);
    for (size_t i = 0; i < N_RELAXED; i++) {
        int owner = (int)(i % (size_t)relaxed->n_workers);
        float least = (float)n_steps - (owner == rank ? 0 : (float)relaxed->staleness);
        RANK_CHECK(weights[i] >= least);
        RANK_CHECK(owner == rank ? weights[i] == (float)n_steps
                                 : weights[i] <= (float)(n_steps + relaxed->staleness + 1));
    }
    return 0;
}

static int work_relaxed(struct weir_comm *comm, const struct relaxed *relaxed)
{
    float *values = NULL;
    int rank = weir_comm_rank(comm);
    RANK_CHECK(weir_comm_alloc(comm, N_RELAXED * sizeof *values, (void **)&values) == WEIR_OK);
    RANK_CHECK(weir_ps_start_relaxed(comm, values, N_RELAXED, relaxed->staleness) == WEIR_OK);
    for (uint64_t s = 0; s < RELAXED_STEPS; s++) {
        const struct weir_ps_step step = {.step = s, .learning_rate = 1, .n_samples = 1};
        dawdle(rank, s);
        for (size_t i = 0; i < N_RELAXED; i++) {
            values[i] = (int)(i % (size_t)relaxed->n_workers) == rank ? 1 : 0;
        }
        RANK_CHECK(weir_ps_begin(comm, &step) == WEIR_OK);
        for (size_t k = 0; k < RANGES; k++) {
            size_t first = N_RELAXED * k / RANGES, end = N_RELAXED * (k + 1) / RANGES;
            RANK_CHECK(weir_ps_post(comm, values, first, end - first) == WEIR_OK);
        }
        RANK_CHECK(weir_ps_wait_all(comm) == WEIR_OK);
        RANK_CHECK(check_counts(comm, relaxed, values, s + 1) == 0);
    }
    RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    RANK_CHECK(weir_ps_pull(comm, values, N_RELAXED) == WEIR_OK);
    for (size_t i = 0; i < N_RELAXED; i++) { /* every gradient, once */
        RANK_CHECK(values[i] == RELAXED_STEPS);
    }
    RANK_CHECK(weir_ps_stop(comm) == WEIR_OK);
    return 0;
}

static int run_relaxed(struct weir_comm *comm, void *context)
{
    const struct relaxed *relaxed = context;
    const struct weir_ps_config config = {.idle_timeout_ms = 0};
    if (weir_comm_rank(comm) < relaxed->n_workers) {
        return work_relaxed(comm, relaxed);
    }
    uint64_t *last = calloc(N_RELAXED, sizeof *last);
    RANK_CHECK(weir_ps_serve(comm, &config, count_up, last) == WEIR_OK);
    free(last);
    return 0;
}

START_TEST(relaxed_workers_see_their_own_gradients_and_all_but_the_last_few_of_others)
{
    static const struct relaxed kinds[] = {{3, 1, 1}, {2, 2, 3}, {4, 1, 8}};
    struct relaxed relaxed = kinds[_i / N_TRANSPORTS];
    ck_assert_int_eq(test_group_try(transports[_i % N_TRANSPORTS], relaxed.n_workers,
                                    relaxed.n_servers, 1, run_relaxed, &relaxed),
                     0);
}

END_TEST

/* ---- a server without pieces ---------------------------------------------------------------- */

enum { N_MISSED = 500, N_AFTER = 5000 };

static weir_status subtract(void *context, const struct weir_ps_step *step, float *weights,
                            const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    (void)context, (void)step, (void)first_elem;
    for (size_t i = 0; i < n_elems; i++) {
        weights[i] -= gradient_sum[i];
    }
    return WEIR_OK;
}

/* The last server has none of the few weights and sleeps through the steps, then there are more. */
static int start_anew_before_one_who_sleeps(struct weir_comm *comm, const pid_t *sleeper)
{
    static float weights[N_AFTER], ones[N_AFTER];
    const struct weir_ps_step step = {.step = 0, .learning_rate = 1, .n_samples = 1};
    for (size_t i = 0; i < N_AFTER; i++) {
        ones[i] = 1;
        weights[i] = (float)i;
    }
    RANK_CHECK(weir_ps_start(comm, weights, 1) == WEIR_OK);
    RANK_CHECK(kill(*sleeper, SIGSTOP) == 0);
    weir_status status = WEIR_OK;
    for (int i = 0; i < N_MISSED && status == WEIR_OK; i++) {
        status = weir_ps_push_pull(comm, ones, weights, 1, &step);
    }
    RANK_CHECK(kill(*sleeper, SIGCONT) == 0 && status == WEIR_OK && weights[0] == -N_MISSED);
    RANK_CHECK(weir_ps_start(comm, weights, N_AFTER) == WEIR_OK);
    RANK_CHECK(weir_ps_push_pull(comm, ones, weights, N_AFTER, &step) == WEIR_OK);
    for (size_t i = 0; i < N_AFTER; i++) {
        RANK_CHECK(weights[i] == (i == 0 ? -N_MISSED : (float)i) - 1);
    }
    RANK_CHECK(weir_ps_stop(comm) == WEIR_OK);
    return 0;
}

static int sleep_through_steps(struct weir_comm *comm, void *context)
{
    const struct weir_ps_config config = {.idle_timeout_ms = 0};
    pid_t *sleeper = context;
    if (weir_comm_rank(comm) == 0) {
        return start_anew_before_one_who_sleeps(comm, sleeper);
    }
    if (weir_comm_rank(comm) == weir_comm_size(comm) - 1) {
        *sleeper = getpid();
    }
    RANK_CHECK(weir_ps_serve(comm, &config, subtract, NULL) == WEIR_OK);
    return 0;
}

START_TEST(a_server_without_pieces_may_be_late_for_new_weights)
{
    pid_t *sleeper =
        mmap(NULL, sizeof *sleeper, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(sleeper, MAP_FAILED);
    ck_assert_int_eq(test_group_try(transports[_i], 1, 2, 1, sleep_through_steps, sleeper), 0);
    ck_assert_int_eq(munmap(sleeper, sizeof *sleeper), 0);
}

END_TEST

/* ---- posted ranges -------------------------------------------------------------------------- */

/* The optimiser of a rank, whose slices are anywhere. */
static weir_status update_anywhere(void *context, const struct weir_ps_step *step, float *weights,
                                   const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    float *momentum = context;
    for (size_t i = 0; i < n_elems; i++) {
        update_one(&weights[i], &momentum[first_elem + i], gradient_sum[i] / (float)step->n_samples,
                   step->learning_rate);
    }
    return WEIR_OK;
}

static int post_ranges(struct weir_comm *comm, const struct weir_ps_work *all, size_t n)
{
    for (size_t k = 0; k < RANGES; k++) {
        struct weir_ps_work work = *all;
        work.first_elem = n * k / RANGES;
        work.n_elems = n * (k + 1) / RANGES - work.first_elem;
        RANK_CHECK(weir_ps_shared_post(comm, &work) == WEIR_OK);
    }
    RANK_CHECK(weir_comm_wait_all(comm) == WEIR_OK);
    return 0;
}

static int share_ranges(struct weir_comm *comm, void *context)
{
    const struct layout *layout = context;
    size_t n = layout->n_elems;
    int rank = weir_comm_rank(comm);
    float *gradients = malloc((n + 1) * sizeof(float)), *plain = gradients;
    float *weights = malloc((n + 1) * sizeof(float)), *before = malloc((n + 1) * sizeof(float));
    float *expected = malloc((n + 1) * sizeof(float)), *momentum = calloc(n + 1, sizeof(float));
    float *own_momentum = calloc(n + 1, sizeof(float));
    if (layout->is_shared) {
        RANK_CHECK(weir_comm_alloc(comm, (n + 5) * sizeof(float), (void **)&gradients) == WEIR_OK);
        gradients += 3;
    }
    for (size_t i = 0; i < n; i++) {
        weights[i] = expected[i] = test_value(1, 0, i);
    }
    for (uint64_t s = 0; s < STEPS; s++) {
        for (size_t i = 0; i < n; i++) {
            gradients[i] = test_value(10 + s, rank, i);
            update_one(&expected[i], &momentum[i], test_sum(10 + s, layout->n_workers, i) / 32.0f,
                       rate_of(s));
        }
        const struct weir_ps_work work = {
            .gradients = gradients,
            .weights = weights,
            .step = {.step = s, .learning_rate = rate_of(s), .n_samples = 32},
            .update = update_anywhere,
            .context = own_momentum};
        memcpy(before, weights, n * sizeof *weights);
        RANK_CHECK(post_ranges(comm, &work, n) == 0);
        RANK_CHECK(memcmp(weights, before, n * sizeof *weights) == 0);
        RANK_CHECK(memcmp(gradients, expected, n * sizeof *weights) == 0);
        memcpy(weights, gradients, n * sizeof *weights);
    }
    /* Nobody keeps more of the state than its own slices. */
    for (size_t i = 0; i < n && layout->n_workers > 1; i++) {
        RANK_CHECK(own_momentum[i] == 0 || own_momentum[i] == momentum[i]);
    }
    free(plain);
    free(weights);
    free(before);
    free(expected);
    free(momentum);
    free(own_momentum);
    return 0;
}

START_TEST(queued_ranges_become_the_serial_programs_weights_where_the_gradients_were)
{
    static const struct layout layouts[] = {{1, 0, 1000, true},
                                            {2, 0, N_MOST, true},
                                            {3, 0, 100003, false},
                                            {4, 0, 7, true},
                                            {5, 0, 33, false}};
    struct layout layout = layouts[_i / N_KINDS];
    /* The third kind: on two hosts, that hold several ranks. */
    const bool is_apart = _i % N_KINDS == N_SWEPT;
    ck_assert_int_eq(test_group_try(is_apart ? "auto" : transports[_i % N_KINDS], layout.n_workers,
                                    0, is_apart ? 2 : 1, share_ranges, &layout),
                     0);
}

END_TEST

static int sum_queued(struct weir_comm *comm, void *context)
{
    float values[100];
    size_t first = 0, n = 0;
    (void)context;
    for (size_t i = 0; i < 100; i++) {
        values[i] = test_value(3, weir_comm_rank(comm), i);
    }
    const struct weir_ps_work work = {.gradients = values, .first_elem = 10, .n_elems = 80};
    RANK_CHECK(weir_ps_shared_post(comm, &work) == WEIR_OK);
    RANK_CHECK(weir_comm_wait_all(comm) == WEIR_OK);
    weir_comm_slice(comm, 80, weir_comm_rank(comm), &first, &n);
    for (size_t i = 10 + first; i < 10 + first + n; i++) {
        RANK_CHECK(test_is_same(values[i], test_sum(3, 3, i)));
    }
    RANK_CHECK(test_is_same(values[9], test_value(3, weir_comm_rank(comm), 9)));
    return 0;
}

START_TEST(without_an_update_a_queued_range_is_summed_in_its_own_slice)
{
    ck_assert_int_eq(test_group_try(transports[_i], 3, 0, 1, sum_queued, NULL), 0);
}

END_TEST

static int fail_queued(struct weir_comm *comm, void *context)
{
    (void)context;
    float weights[100] = {0}, gradients[100] = {0};
    const struct weir_ps_work work = {.gradients = gradients,
                                      .weights = weights,
                                      .n_elems = 100,
                                      .update = weir_comm_rank(comm) == 1 ? never_called
                                                                          : update_anywhere,
                                      .context = gradients};
    RANK_CHECK(weir_ps_shared_post(comm, &work) == WEIR_OK);
    weir_status status = weir_comm_wait_all(comm);
    RANK_CHECK(status == (weir_comm_rank(comm) == 1 ? WEIR_ERR_INTERNAL : WEIR_ERR_PEER));
    return 0;
}

START_TEST(a_queued_update_that_fails_ends_the_group)
{
    ck_assert_int_eq(test_group_try(transports[_i], 3, 0, 1, fail_queued, NULL), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ps");
    TCase *tcase = tcase_create("ps");
    tcase_add_loop_test(tcase, weights_are_those_of_the_serial_program, 0, 7 * N_SWEPT);
    tcase_add_loop_test(tcase, a_dead_worker_or_server_is_named_to_all, 0, 2 * N_TRANSPORTS);
    tcase_add_loop_test(tcase, an_update_that_fails_ends_the_group, 0, N_TRANSPORTS);
    tcase_add_loop_test(tcase, a_server_without_pieces_may_be_late_for_new_weights, 0,
                        N_TRANSPORTS);
    tcase_add_loop_test(tcase,
                        queued_ranges_become_the_serial_programs_weights_where_the_gradients_were,
                        0, 5 * N_KINDS);
    tcase_add_loop_test(tcase,
                        relaxed_workers_see_their_own_gradients_and_all_but_the_last_few_of_others,
                        0, 3 * N_TRANSPORTS);
    tcase_add_loop_test(tcase, without_an_update_a_queued_range_is_summed_in_its_own_slice, 0,
                        N_TRANSPORTS);
    tcase_add_loop_test(tcase, a_queued_update_that_fails_ends_the_group, 0, N_TRANSPORTS);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
