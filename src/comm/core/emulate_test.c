/* An emulated link against the clock: nothing arrives before its bytes could have. */
#include "comm/core/comm_private.h"
#include "comm/core/test_group.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "comm/ps.h"

#include <stdio.h>
#include <stdlib.h>

#define N_ELEMS 65536
#define N_POSTS 8
#define RATE    20e6 /* bytes/s: 13 ms for one array of one rank */

/* A busy machine may be late by any time; later than this it is not the link's doing. */
#define LATE_FACTOR 20

static double since_s(uint64_t begin_ns)
{
    return (double)(weir_mono_ns() - begin_ns) / 1e9;
}

static int check_queued(struct weir_comm *comm, void *context)
{
    float *all = NULL;
    (void)context;
    RANK_CHECK(weir_comm_alloc(comm, N_POSTS * N_ELEMS * sizeof(float), (void **)&all) == WEIR_OK);
    weir_comm_emulate_link(comm, RATE);
    RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    for (size_t i = 0; i < (size_t)N_POSTS * N_ELEMS; i++) {
        all[i] = 1;
    }
    uint64_t begin_ns = weir_mono_ns();
    for (size_t i = 0; i < N_POSTS; i++) {
        RANK_CHECK(weir_comm_allreduce_post(comm, all + i * N_ELEMS, N_ELEMS) == WEIR_OK);
    }
    double queued_s = since_s(begin_ns);
    RANK_CHECK(weir_comm_wait_all(comm) == WEIR_OK);
    double done_s = since_s(begin_ns), n = weir_comm_n_workers(comm);
    double wire_s = N_POSTS * 2 * (n - 1) / n * N_ELEMS * sizeof(float) / RATE;
    RANK_CHECK(queued_s < done_s);
    RANK_CHECK(done_s >= 0.99 * wire_s);
    RANK_CHECK(done_s < LATE_FACTOR * wire_s);
    for (size_t i = 0; i < (size_t)N_POSTS * N_ELEMS; i++) {
        RANK_CHECK(all[i] == (float)n);
    }
    begin_ns = weir_mono_ns();
    RANK_CHECK(weir_comm_reduce_scatter(comm, all, N_ELEMS, WEIR_COMM_F32) == WEIR_OK);
    RANK_CHECK(weir_comm_allgather(comm, all, N_ELEMS, WEIR_COMM_F32) == WEIR_OK);
    /* Who is late by less than this was not idle: the link went on meanwhile. */
    RANK_CHECK(since_s(begin_ns) >= 0.99 * wire_s / N_POSTS - COMM_LATE_NS / 1e9);
    weir_comm_emulate_link(comm, 0);
    begin_ns = weir_mono_ns();
    RANK_CHECK(weir_comm_allreduce(comm, all, N_ELEMS, WEIR_COMM_F32) == WEIR_OK);
    return 0;
}

START_TEST(queued_sums_take_the_time_of_their_bytes_one_after_the_other)
{
    for (int size = 2; size <= 3; size++) {
        ck_assert_int_eq(test_group_try("shm", size, 0, 1, check_queued, NULL), 0);
    }
}

END_TEST

static weir_status on_update(void *context, const struct weir_ps_step *step, float *weights,
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

static int check_server(struct weir_comm *comm, void *context)
{
    float *gradients = NULL, *weights = NULL;
    (void)context;
    if (weir_comm_rank(comm) >= weir_comm_n_workers(comm)) {
        const struct weir_ps_config config = {.idle_timeout_ms = 30000};
        return weir_ps_serve(comm, &config, on_update, NULL) == WEIR_OK ? 0 : 1;
    }
    gradients = calloc(N_ELEMS, sizeof *gradients);
    weights = calloc(N_ELEMS, sizeof *weights);
    RANK_CHECK(weir_ps_start(comm, weights, N_ELEMS) == WEIR_OK);
    weir_comm_emulate_link(comm, RATE);
    RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    gradients[0] = 1;
    uint64_t begin_ns = weir_mono_ns();
    const struct weir_ps_step step = {.step = 0, .n_samples = 1};
    RANK_CHECK(weir_ps_push_pull(comm, gradients, weights, N_ELEMS, &step) == WEIR_OK);
    /* The first piece has to be there before it can come back: the others meanwhile follow. */
    size_t first = 0, n_piece = 0;
    RANK_CHECK(weir_ps_piece(N_ELEMS, 1, 0, 0, &first, &n_piece) && n_piece < N_ELEMS);
    double n = weir_comm_n_workers(comm);
    double wire_s = n * (double)(N_ELEMS + n_piece) * sizeof(float) / RATE;
    RANK_CHECK(since_s(begin_ns) >= 0.99 * wire_s);
    RANK_CHECK(since_s(begin_ns) < LATE_FACTOR * wire_s);
    RANK_CHECK(weights[0] == (float)-n);
    RANK_CHECK(weir_ps_stop(comm) == WEIR_OK);
    free(gradients);
    free(weights);
    return 0;
}

START_TEST(a_servers_link_carries_all_workers_pieces_there_and_back)
{
    ck_assert_int_eq(test_group_try("shm", 2, 1, 1, check_server, NULL), 0);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {queued_sums_take_the_time_of_their_bytes_one_after_the_other,
                                  a_servers_link_carries_all_workers_pieces_there_and_back};
    return weir_test_run_here(weir_test_suite("emulate", tests, WEIR_ARRAY_LEN(tests)));
}
