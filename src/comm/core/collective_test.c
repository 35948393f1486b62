/* Property tests: whatever the transport, the size and the number of ranks, the result is the
 * serial sum in rank order, bit for bit. */
#include "comm/core/test_group.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <pthread.h>

static uint64_t seed;

/* What takes long is not done with UCX too, which carries the same messages as sockets. */
enum { N_TRANSPORTS = 3, N_SWEPT = 2 };

static const char *const transports[N_TRANSPORTS] = {"shm", "tcp", "ucx"};

enum { LARGEST = WEIR_TEST_TIMES(100003, 30011) };

static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 63, 1000, 2047, 2049, 16385, LARGEST};

static void fill(float *buf, size_t n, uint64_t salt, int rank)
{
    for (size_t i = 0; i < n; i++) {
        buf[i] = test_value(seed + salt, rank, i);
    }
}

static bool is_serial_sum(const float *buf, size_t n, uint64_t salt, int n_ranks)
{
    for (size_t i = 0; i < n; i++) {
        float expected = test_sum(seed + salt, n_ranks, i);
        if (!test_is_same(buf[i], expected)) {
            (void)fprintf(stderr, "element %zu of %zu: %a, expected %a\n", i, n, (double)buf[i],
                          (double)expected);
            return false;
        }
    }
    return true;
}

static int sum_all_sizes(struct weir_comm *comm, void *context)
{
    float *shared = NULL, *plain = malloc(LARGEST * sizeof *plain);
    (void)context;
    RANK_CHECK(weir_comm_alloc(comm, (LARGEST + 3) * sizeof *shared, (void **)&shared) == WEIR_OK);
    for (size_t k = 0; k < WEIR_ARRAY_LEN(sizes); k++) {
        size_t n = sizes[k];
        float *in_place = shared + k % 4; /* any alignment of the element */
        fill(in_place, n, k, weir_comm_rank(comm));
        RANK_CHECK(weir_comm_allreduce(comm, in_place, n, WEIR_COMM_F32) == WEIR_OK);
        RANK_CHECK(is_serial_sum(in_place, n, k, weir_comm_size(comm)));
        fill(plain, n, k + 50, weir_comm_rank(comm));
        RANK_CHECK(weir_comm_allreduce(comm, plain, n, WEIR_COMM_F32) == WEIR_OK);
        RANK_CHECK(is_serial_sum(plain, n, k + 50, weir_comm_size(comm)));
    }
    free(plain);
    return 0;
}

START_TEST(sums_are_the_serial_ones_for_every_size_and_number_of_ranks)
{
    int n_ranks = _i / N_SWEPT + 1;
    struct test_group group;
    test_group_init(&group, n_ranks, transports[_i % N_SWEPT]);
    ck_assert_int_eq(test_group_run(&group, sum_all_sizes, NULL), 0);
    test_group_fini(&group);
}

END_TEST

/* Many chunks of each slice: the windows of the transports wrap around several times. */
static int sum_large(struct weir_comm *comm, void *context)
{
    (void)context;

    enum { N = 3000001 };

    float *buf = NULL;
    RANK_CHECK(weir_comm_alloc(comm, N * sizeof *buf, (void **)&buf) == WEIR_OK);
    fill(buf, N, 99, weir_comm_rank(comm));
    RANK_CHECK(weir_comm_allreduce(comm, buf, N, WEIR_COMM_F32) == WEIR_OK);
    RANK_CHECK(is_serial_sum(buf, N, 99, weir_comm_size(comm)));
    return 0;
}

START_TEST(sums_of_many_chunks_are_the_serial_ones)
{
    struct test_group group;
    test_group_init(&group, 2 + _i / N_SWEPT, transports[_i % N_SWEPT]);
    ck_assert_int_eq(test_group_run(&group, sum_large, NULL), 0);
    test_group_fini(&group);
}

END_TEST

static int sum_other_types(struct weir_comm *comm, void *context)
{
    (void)context;
    int rank = weir_comm_rank(comm), size = weir_comm_size(comm);
    for (size_t n = 1; n < 5000; n = n * 3 + 1) {
        double reals[5000], expected[5000];
        int64_t integers[5000];
        for (size_t i = 0; i < n; i++) {
            integers[i] = (int64_t)(i + 1) << rank;
            reals[i] = (double)test_value(seed, rank, i);
            expected[i] = (double)test_value(seed, 0, i);
            for (int r = 1; r < size; r++) {
                expected[i] += (double)test_value(seed, r, i);
            }
        }
        RANK_CHECK(weir_comm_allreduce(comm, reals, n, WEIR_COMM_F64) == WEIR_OK);
        RANK_CHECK(weir_comm_allreduce(comm, integers, n, WEIR_COMM_I64) == WEIR_OK);
        RANK_CHECK(memcmp(reals, expected, n * sizeof *reals) == 0);
        for (size_t i = 0; i < n; i++) {
            RANK_CHECK(integers[i] == (int64_t)(i + 1) * ((1 << size) - 1));
        }
    }
    return 0;
}

START_TEST(metrics_are_summed_as_f64_and_i64)
{
    struct test_group group;
    test_group_init(&group, 3, transports[_i]);
    ck_assert_int_eq(test_group_run(&group, sum_other_types, NULL), 0);
    test_group_fini(&group);
}

END_TEST

/* The halves of an all-reduce: each rank has its slice of the sum; then all have all of it. */
static int reduce_in_halves(struct weir_comm *comm, void *context)
{
    (void)context;
    float *shared = NULL, *plain = malloc(LARGEST * sizeof *plain);
    int size = weir_comm_size(comm), rank = weir_comm_rank(comm);
    RANK_CHECK(weir_comm_alloc(comm, (LARGEST + 3) * sizeof *shared, (void **)&shared) == WEIR_OK);
    for (size_t k = 0; k < 2 * WEIR_ARRAY_LEN(sizes); k++) {
        size_t n = sizes[k / 2], first, n_own, next = 0;
        float *buf = k % 2 == 0 ? shared + k % 3 : plain;
        fill(buf, n, k, rank);
        RANK_CHECK(weir_comm_reduce_scatter(comm, buf, n, WEIR_COMM_F32) == WEIR_OK);
        for (int r = 0; r < size; r++) {
            weir_comm_slice(comm, n, r, &first, &n_own);
            RANK_CHECK(first == next);
            next += n_own;
        }
        RANK_CHECK(next == n);
        weir_comm_slice(comm, n, rank, &first, &n_own);
        for (size_t i = 0; i < n; i++) {
            bool is_own = i >= first && i - first < n_own;
            RANK_CHECK(!is_own || test_is_same(buf[i], test_sum(seed + k, size, i)));
            buf[i] = is_own ? buf[i] : 7; /* what is not one's own is taken from the others */
        }
        RANK_CHECK(weir_comm_allgather(comm, buf, n, WEIR_COMM_F32) == WEIR_OK);
        RANK_CHECK(is_serial_sum(buf, n, k, size));
    }
    free(plain);
    return 0;
}

START_TEST(a_reduce_scatter_and_an_allgather_are_an_allreduce)
{
    for (int n_ranks = 1; n_ranks <= 6; n_ranks++) {
        struct test_group group;
        test_group_init(&group, n_ranks, transports[_i]);
        ck_assert_int_eq(test_group_run(&group, reduce_in_halves, NULL), 0);
        test_group_fini(&group);
    }
}

END_TEST

static int broadcast_all_sizes(struct weir_comm *comm, void *context)
{
    (void)context;
    uint8_t *shared = NULL, *plain = malloc(LARGEST);
    RANK_CHECK(weir_comm_alloc(comm, LARGEST, (void **)&shared) == WEIR_OK);
    for (size_t k = 0; k < WEIR_ARRAY_LEN(sizes); k++) {
        int root = (int)k % weir_comm_size(comm);
        uint8_t own = (uint8_t)(100 + weir_comm_rank(comm)), theirs = (uint8_t)(100 + root);
        memset(shared, own, sizes[k]);
        memset(plain, own, sizes[k]);
        RANK_CHECK(weir_comm_broadcast(comm, shared, sizes[k], root) == WEIR_OK);
        RANK_CHECK(weir_comm_broadcast(comm, plain, sizes[k], root) == WEIR_OK);
        for (size_t i = 0; i < sizes[k]; i++) {
            RANK_CHECK(shared[i] == theirs && plain[i] == theirs);
        }
    }
    free(plain);
    return 0;
}

START_TEST(everybody_gets_what_the_root_sends)
{
    for (int n_ranks = 1; n_ranks <= 5; n_ranks += 2) {
        struct test_group group;
        test_group_init(&group, n_ranks, transports[_i]);
        ck_assert_int_eq(test_group_run(&group, broadcast_all_sizes, NULL), 0);
        test_group_fini(&group);
    }
}

END_TEST

/* Another thread posts buckets, as the backward pass does, while blocking calls queue up behind. */
struct poster {
    struct weir_comm *comm;
    float *buf;
    weir_status status;
};

enum { N_BUCKETS = 40, BUCKET = 5003 };

static void *post_buckets(void *argument)
{
    struct poster *poster = argument;
    for (int i = 0; i < N_BUCKETS && poster->status == WEIR_OK; i++) {
        poster->status =
            weir_comm_allreduce_post(poster->comm, poster->buf + (size_t)i * BUCKET, BUCKET);
    }
    return NULL;
}

static int sum_queued(struct weir_comm *comm, void *context)
{
    (void)context;
    float *buf = NULL;
    size_t n = (size_t)N_BUCKETS * BUCKET;
    RANK_CHECK(weir_comm_alloc(comm, n * sizeof *buf, (void **)&buf) == WEIR_OK);
    for (uint64_t step = 0; step < 5; step++) {
        struct poster poster = {.comm = comm, .buf = buf};
        pthread_t thread;
        fill(buf, n, step, weir_comm_rank(comm));
        RANK_CHECK(pthread_create(&thread, NULL, post_buckets, &poster) == 0);
        RANK_CHECK(pthread_join(thread, NULL) == 0);
        RANK_CHECK(poster.status == WEIR_OK);
        int64_t one = 1; /* behind the posted ones */
        RANK_CHECK(weir_comm_allreduce(comm, &one, 1, WEIR_COMM_I64) == WEIR_OK);
        RANK_CHECK(one == weir_comm_size(comm));
        RANK_CHECK(weir_comm_wait_all(comm) == WEIR_OK);
        RANK_CHECK(is_serial_sum(buf, n, step, weir_comm_size(comm)));
    }
    return 0;
}

START_TEST(queued_buckets_give_what_blocking_calls_give)
{
    for (int n_ranks = 1; n_ranks <= 4; n_ranks++) {
        struct test_group group;
        test_group_init(&group, n_ranks, transports[_i]);
        ck_assert_int_eq(test_group_run(&group, sum_queued, NULL), 0);
        test_group_fini(&group);
    }
}

END_TEST

static int leave_at_once(struct weir_comm *comm, void *context)
{
    (void)context;
    float value = 1;
    RANK_CHECK(weir_comm_allreduce(comm, &value, 1, WEIR_COMM_F32) == WEIR_OK);
    RANK_CHECK(value == (float)weir_comm_size(comm));
    RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    return 0;
}

START_TEST(a_rank_that_leaves_after_its_last_call_harms_nobody)
{
    for (int i = 0; i < 10; i++) {
        struct test_group group;
        test_group_init(&group, 4, transports[_i]);
        ck_assert_int_eq(test_group_run(&group, leave_at_once, NULL), 0);
        test_group_fini(&group);
    }
}

END_TEST

static int check_auto(struct weir_comm *comm, void *context)
{
    (void)context;
    RANK_CHECK(strcmp(weir_comm_transport(comm), "shm") == 0);
    return leave_at_once(comm, NULL);
}

START_TEST(ranks_of_one_host_share_memory_by_default)
{
    struct test_group group;
    test_group_init(&group, 2, "auto");
    ck_assert_int_eq(test_group_run(&group, check_auto, NULL), 0);
    test_group_fini(&group);
}

END_TEST

int main(void)
{
    seed = (uint64_t)weir_time_ms();
    printf("seed %llu\n", (unsigned long long)seed);
    Suite *suite = suite_create("collective");
    TCase *tcase = tcase_create("collective");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, sums_are_the_serial_ones_for_every_size_and_number_of_ranks, 0,
                        8 * N_SWEPT);
    tcase_add_loop_test(tcase, sums_of_many_chunks_are_the_serial_ones, 0, 2 * N_SWEPT);
    tcase_add_loop_test(tcase, metrics_are_summed_as_f64_and_i64, 0, N_TRANSPORTS);
    tcase_add_loop_test(tcase, a_reduce_scatter_and_an_allgather_are_an_allreduce, 0, N_TRANSPORTS);
    tcase_add_loop_test(tcase, everybody_gets_what_the_root_sends, 0, N_TRANSPORTS);
    tcase_add_loop_test(tcase, queued_buckets_give_what_blocking_calls_give, 0, N_TRANSPORTS);
    tcase_add_loop_test(tcase, a_rank_that_leaves_after_its_last_call_harms_nobody, 0,
                        N_TRANSPORTS);
    tcase_add_test(tcase, ranks_of_one_host_share_memory_by_default);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
