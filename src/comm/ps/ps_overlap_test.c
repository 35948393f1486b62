/* Parameter servers, while workers do not wait for all: ranges come back by need, workers talk to
 * each other meanwhile, and the weights are the serial program's. */
#include "comm/ps.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "comm/core/test_group.h"

enum { STEPS = 3, N = (1 << 20) + 13, RANGES = 7, N_KINDS = 4 };

static const char *const transports[N_KINDS] = {"shm", "tcp", "ucx", "auto"}; /* auto: 2 hosts */

static weir_status subtract(void *context, const struct weir_ps_step *step, float *weights,
                            const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    (void)context;
    (void)step;
    (void)first_elem;
    for (size_t i = 0; i < n_elems; i++) {
        weights[i] -= gradient_sum[i];
    }
    return WEIR_OK;
}

static int serve(struct weir_comm *comm)
{
    const struct weir_ps_config config = {.idle_timeout_ms = 30000};
    RANK_CHECK(weir_ps_serve(comm, &config, subtract, NULL) == WEIR_OK);
    return 0;
}

static bool is_server(const struct weir_comm *comm)
{
    return weir_comm_rank(comm) >= weir_comm_n_workers(comm);
}

static size_t bound(size_t i_range)
{
    return i_range * N / RANGES;
}

/* One step. The array is posted from its beginning and awaited from its end. */
static int take_step(struct weir_comm *comm, uint64_t s, float *gradients, float *expected)
{
    const int rank = weir_comm_rank(comm), n_workers = weir_comm_n_workers(comm);
    const struct weir_ps_step step = {.step = s, .learning_rate = 1, .n_samples = 1};
    for (size_t i = 0; i < N; i++) {
        gradients[i] = test_value(s, rank, i);
        expected[i] -= test_sum(s, n_workers, i);
    }
    RANK_CHECK(weir_ps_begin(comm, &step) == WEIR_OK);
    for (size_t k = 0; k < RANGES; k++) {
        RANK_CHECK(weir_ps_post(comm, gradients, bound(k), bound(k + 1) - bound(k)) == WEIR_OK);
    }
    int64_t one = 1;
    RANK_CHECK(weir_comm_allreduce(comm, &one, 1, WEIR_COMM_I64) == WEIR_OK);
    RANK_CHECK(one == n_workers);
    for (size_t k = RANGES; k-- > 0;) {
        size_t n = bound(k + 1) - bound(k);
        RANK_CHECK(weir_ps_wait(comm, bound(k), n) == WEIR_OK);
        RANK_CHECK(weir_ps_is_back(comm, bound(k), n));
        for (size_t i = bound(k); i < bound(k + 1); i++) {
            RANK_CHECK(test_is_same(gradients[i], expected[i]));
        }
    }
    RANK_CHECK(weir_ps_is_back(comm, 0, N) && !weir_ps_is_back(comm, 1, N));
    return 0;
}

static int overlap(struct weir_comm *comm, void *context)
{
    (void)context;
    if (is_server(comm)) {
        return serve(comm);
    }
    float *gradients = NULL, *expected = calloc(N, sizeof *expected);
    RANK_CHECK(weir_comm_alloc(comm, N * sizeof *gradients, (void **)&gradients) == WEIR_OK);
    RANK_CHECK(weir_ps_start(comm, gradients, N) == WEIR_OK);
    for (uint64_t s = 0; s < STEPS; s++) {
        RANK_CHECK(take_step(comm, s, gradients, expected) == 0);
    }
    RANK_CHECK(weir_ps_stop(comm) == WEIR_OK);
    free(expected);
    return 0;
}

START_TEST(ranges_come_back_one_by_one_while_workers_sum_something_else)
{
    static const int servers[] = {1, 3};
    const int kind = _i % N_KINDS, n_hosts = kind == N_KINDS - 1 ? 2 : 1;
    ck_assert_int_eq(
        test_group_try(transports[kind], 2, servers[_i / N_KINDS], n_hosts, overlap, NULL), 0);
}

END_TEST

/* ---- by need -------------------------------------------------------------------------------- */

#define RATE 20e6 /* bytes/s: a piece takes two workers 50 ms */

static int wait_for_the_end(struct weir_comm *comm, void *context)
{
    (void)context;
    if (is_server(comm)) {
        return serve(comm);
    }
    size_t first = 0, n = 0;
    float *gradients = calloc(N, sizeof *gradients);
    RANK_CHECK(weir_ps_start(comm, gradients, N) == WEIR_OK);
    RANK_CHECK(weir_ps_piece(N, 1, 0, 0, &first, &n));
    const double piece_s = 2 * (double)n * sizeof(float) / RATE;
    const struct weir_ps_step step = {.step = 0, .learning_rate = 1, .n_samples = 1};
    weir_comm_emulate_link(comm, RATE);
    RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    const uint64_t begin_ns = weir_mono_ns();
    RANK_CHECK(weir_ps_begin(comm, &step) == WEIR_OK);
    RANK_CHECK(weir_ps_post(comm, gradients, 0, N) == WEIR_OK);
    RANK_CHECK(weir_ps_wait(comm, N - n, n) == WEIR_OK);
    bool is_first_back = weir_ps_is_back(comm, 0, 1);
    double waited_s = (double)(weir_mono_ns() - begin_ns) / 1e9;
    /* Up and down; the beginning goes last. On a machine that was busy for so long all is back. */
    RANK_CHECK(waited_s >= 1.9 * piece_s);
    RANK_CHECK(!is_first_back || waited_s > 6 * piece_s);
    RANK_CHECK(weir_ps_wait_all(comm) == WEIR_OK);
    RANK_CHECK((double)(weir_mono_ns() - begin_ns) / 1e9 >= 8.9 * piece_s);
    RANK_CHECK(weir_ps_stop(comm) == WEIR_OK);
    free(gradients);
    return 0;
}

START_TEST(the_end_of_the_array_overtakes_its_beginning)
{
    ck_assert_int_eq(test_group_try("shm", 2, 1, 1, wait_for_the_end, NULL), 0);
}

END_TEST

/* ---- relaxed -------------------------------------------------------------------------------- */

/* Worker 1's link is slow: when worker 0 asks for weights, its gradients are still on their way. */
static int pull_early(struct weir_comm *comm, void *context)
{
    (void)context;
    if (is_server(comm)) {
        return serve(comm);
    }
    const int rank = weir_comm_rank(comm);
    float *gradients = calloc(N, sizeof *gradients), *weights = calloc(N, sizeof *weights);
    RANK_CHECK(weir_ps_start_relaxed(comm, weights, N, 1000) == WEIR_OK);
    weir_comm_emulate_link(comm, rank == 1 ? 2 * RATE : 0);
    for (uint64_t s = 0; s < 2; s++) {
        const struct weir_ps_step step = {.step = s, .learning_rate = 1, .n_samples = 1};
        for (size_t i = 0; i < N; i++) {
            gradients[i] = (float)(rank + 1); /* whole numbers: any order has the same sum */
        }
        RANK_CHECK(weir_ps_begin(comm, &step) == WEIR_OK);
        RANK_CHECK(weir_ps_post(comm, gradients, 0, N) == WEIR_OK);
        int64_t one = 1;
        RANK_CHECK(weir_comm_allreduce(comm, &one, 1, WEIR_COMM_I64) == WEIR_OK);
        RANK_CHECK(weir_ps_wait_all(comm) == WEIR_OK);
    }
    RANK_CHECK(weir_ps_pull(comm, weights, N) == WEIR_OK);
    for (size_t i = 0; i < N; i++) {
        RANK_CHECK(weights[i] == -2 * (1 + 2));
    }
    RANK_CHECK(weir_ps_stop(comm) == WEIR_OK);
    free(weights);
    free(gradients);
    return 0;
}

START_TEST(weights_that_are_pulled_have_the_gradients_that_are_still_in_flight)
{
    ck_assert_int_eq(test_group_try(transports[_i], 2, 1, 1, pull_early, NULL), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ps_overlap");
    TCase *tcase = tcase_create("ps_overlap");
    tcase_add_loop_test(tcase, ranges_come_back_one_by_one_while_workers_sum_something_else, 0,
                        2 * N_KINDS);
    tcase_add_test(tcase, the_end_of_the_array_overtakes_its_beginning);
    tcase_add_loop_test(tcase, weights_that_are_pulled_have_the_gradients_that_are_still_in_flight,
                        0, 2);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
