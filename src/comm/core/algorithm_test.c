/* Property tests of the algorithms between hosts: whatever the algorithm, the number of ranks, the
 * size, the type and what is sent, all ranks hold the same bits, and these are the serial sum: to
 * the last bit where whole numbers leave no room for rounding, else within the stated bound. */
#include "comm/core/test_group.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <math.h>

enum { LARGEST = WEIR_TEST_TIMES(40003, 12007) };

static uint64_t seed;
static const size_t sizes[] = {0, 1, 15, 17, 1000, 2049, 8191, LARGEST};

/* Messages small enough that the largest size takes many blocks. */
static const char *const algorithms[] = {"flat#4K", "direct#2K", "ring#1K", "halving#2K",
                                         "tree#3000"};
static const char *const wires[] = {"f32", "bf16", "fp16"};

/* Both within fp16's range, and with different magnitudes. */
static float element(uint64_t salt, int rank, size_t i)
{
    return test_value(seed + salt, rank, i) / 64;
}

/* The same bits on all ranks: those of rank 0. */
static int check_alike(struct weir_comm *comm, const float *buf, size_t n)
{
    float *first = malloc(n * sizeof *first + 1);
    memcpy(first, buf, n * sizeof *first);
    RANK_CHECK(weir_comm_broadcast(comm, first, n * sizeof *first, 0) == WEIR_OK);
    RANK_CHECK(memcmp(first, buf, n * sizeof *first) == 0);
    free(first);
    return 0;
}

/* Roundings in turn, as comm.h states them for each algorithm. */
static int roundings(const char *algorithm, int n_ranks)
{
    if (strncmp(algorithm, "ring", 4) == 0) {
        return n_ranks;
    }
    return strncmp(algorithm, "direct", 6) == 0 ? 2 : 2 + (int)ceil(log2(n_ranks));
}

static double bound(const char *algorithm, const char *wire, int n_ranks, double sum_of_sizes)
{
    double unit = strcmp(wire, "bf16") == 0 ? 0x1p-8 : 0x1p-11, f32 = 0x1p-23 * n_ranks;
    bool is_narrow = strcmp(wire, "f32") != 0 && strncmp(algorithm, "flat", 4) != 0;
    double relative = is_narrow ? pow(1 + unit, roundings(algorithm, n_ranks)) - 1 : 0;
    return (relative + f32) * sum_of_sizes + (is_narrow ? 6e-5 : 0);
}

static int check_size(struct weir_comm *comm, const char *algorithm, const char *wire, float *buf,
                      size_t n, uint64_t salt)
{
    int size = weir_comm_size(comm);
    bool is_in_rank_order = strncmp(algorithm, "flat", 4) == 0 ||
                            (strncmp(algorithm, "direct", 6) == 0 && strcmp(wire, "f32") == 0);
    for (size_t i = 0; i < n; i++) {
        buf[i] = element(salt, weir_comm_rank(comm), i);
    }
    RANK_CHECK(weir_comm_allreduce(comm, buf, n, WEIR_COMM_F32) == WEIR_OK);
    RANK_CHECK(check_alike(comm, buf, n) == 0);
    for (size_t i = 0; i < n; i++) {
        double exact = 0, sum_of_sizes = 0;
        float serial = element(salt, 0, i);
        for (int r = 0; r < size; r++) {
            float term = element(salt, r, i);
            exact += (double)term;
            sum_of_sizes += fabs((double)term);
            serial = r == 0 ? serial : serial + term;
        }
        RANK_CHECK(!is_in_rank_order || test_is_same(buf[i], serial));
        RANK_CHECK(size == 1 ||
                   fabs((double)buf[i] - exact) <= bound(algorithm, wire, size, sum_of_sizes));
    }
    return 0;
}

static int sum_by_all(struct weir_comm *comm, void *context)
{
    const char *wire = context;
    float *buf = NULL;
    RANK_CHECK(weir_comm_alloc(comm, LARGEST * sizeof *buf, (void **)&buf) == WEIR_OK);
    for (size_t a = 0; a < WEIR_ARRAY_LEN(algorithms); a++) {
        RANK_CHECK(weir_comm_set_algorithm(comm, algorithms[a], NULL) == WEIR_OK);
        for (size_t k = 0; k < WEIR_ARRAY_LEN(sizes); k++) {
            if (check_size(comm, algorithms[a], wire, buf, sizes[k], a * 100 + k) != 0) {
                (void)fprintf(stderr, "%s as %s, %zu elements\n", algorithms[a], wire, sizes[k]);
                return 1;
            }
        }
    }
    return 0;
}

START_TEST(all_ranks_hold_the_serial_sum)
{
    int n_ranks = _i + 1;
    struct test_group group;
    test_group_init(&group, n_ranks, "tcp");
    group.wire = wires[n_ranks % 3];
    ck_assert_int_eq(test_group_run(&group, sum_by_all, (void *)(uintptr_t)group.wire), 0);
    test_group_fini(&group);
}

END_TEST

START_TEST(all_ranks_hold_it_whatever_is_sent)
{
    struct test_group group;
    test_group_init(&group, 5, "tcp");
    group.wire = wires[_i];
    ck_assert_int_eq(test_group_run(&group, sum_by_all, (void *)(uintptr_t)group.wire), 0);
    test_group_fini(&group);
}

END_TEST

/* Whole numbers: every order of the sum gives the same, so every bit is known. */
static int sum_whole_numbers(struct weir_comm *comm, void *context)
{
    (void)context;
    int size = weir_comm_size(comm);

    enum { N = 5003 };

    static double reals[N];
    static int64_t integers[N];
    for (size_t a = 0; a < WEIR_ARRAY_LEN(algorithms); a++) {
        RANK_CHECK(weir_comm_set_algorithm(comm, algorithms[a], NULL) == WEIR_OK);
        for (size_t i = 0; i < N; i++) {
            integers[i] = (int64_t)(i + 1) << weir_comm_rank(comm);
            reals[i] = (double)integers[i];
        }
        RANK_CHECK(weir_comm_allreduce(comm, reals, N, WEIR_COMM_F64) == WEIR_OK);
        RANK_CHECK(weir_comm_allreduce(comm, integers, N, WEIR_COMM_I64) == WEIR_OK);
        for (size_t i = 0; i < N; i++) {
            int64_t expected = (int64_t)(i + 1) * (((int64_t)1 << size) - 1);
            RANK_CHECK(integers[i] == expected && reals[i] == (double)expected);
        }
    }
    return 0;
}

START_TEST(sums_of_f64_and_i64_are_sent_as_they_are)
{
    static const int n_ranks[] = {2, 7, 8};
    struct test_group group;
    test_group_init(&group, n_ranks[_i], "tcp");
    group.wire = wires[_i];
    ck_assert_int_eq(test_group_run(&group, sum_whole_numbers, NULL), 0);
    test_group_fini(&group);
}

END_TEST

/* Rank 0's plan is everybody's, whatever the others were told. */
static int sum_some(struct weir_comm *comm, void *context)
{
    (void)context;
    float buf[3000];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(buf); i++) {
        buf[i] = 1;
    }
    RANK_CHECK(weir_comm_allreduce(comm, buf, WEIR_ARRAY_LEN(buf), WEIR_COMM_F32) == WEIR_OK);
    RANK_CHECK(buf[0] == 3 && buf[2999] == 3);
    return 0;
}

/* Several ranks on a host: each host's sum in rank order, then over the hosts in their order. */
static int sum_by_hosts(struct weir_comm *comm, void *context)
{
    const struct test_group *group = context;
    int size = weir_comm_size(comm);
    float *shared = NULL, *plain = malloc(LARGEST * sizeof *plain);
    RANK_CHECK(strcmp(weir_comm_transport(comm), "hier") == 0);
    RANK_CHECK(weir_comm_alloc(comm, (LARGEST + 3) * sizeof *shared, (void **)&shared) == WEIR_OK);
    for (size_t k = 0; k < 2 * WEIR_ARRAY_LEN(sizes); k++) {
        size_t n = sizes[k / 2];
        float *buf = k % 2 == 0 ? shared + k % 3 : plain;
        for (size_t i = 0; i < n; i++) {
            buf[i] = element(k, weir_comm_rank(comm), i);
        }
        RANK_CHECK(weir_comm_allreduce(comm, buf, n, WEIR_COMM_F32) == WEIR_OK);
        for (size_t i = 0; i < n; i++) {
            float sum = 0;
            for (int h = 0; h < group->n_hosts; h++) {
                float of_host = 0;
                bool has_one = false;
                for (int r = 0; r < size; r++) {
                    if (r * group->n_hosts / size == h) {
                        float term = element(k, r, i);
                        of_host = has_one ? of_host + term : term;
                        has_one = true;
                    }
                }
                sum = h == 0 ? of_host : sum + of_host;
            }
            RANK_CHECK(test_is_same(buf[i], sum));
        }
        /* By all ranks, between those by leaders. */
        int64_t root = weir_comm_rank(comm);
        RANK_CHECK(weir_comm_broadcast(comm, &root, sizeof root, size - 1) == WEIR_OK);
        RANK_CHECK(root == size - 1);
        RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    }
    free(plain);
    return 0;
}

START_TEST(ranks_of_a_host_add_up_in_shared_memory_first)
{
    static const struct {
        int n_ranks, n_hosts;
    } cases[] = {{3, 2}, {4, 2}, {5, 3}, {7, 2}, {9, 4}, {16, 3}};
    struct test_group group;
    test_group_init(&group, cases[_i].n_ranks, "auto");
    group.n_hosts = cases[_i].n_hosts;
    ck_assert_int_eq(test_group_run(&group, sum_by_hosts, &group), 0);
    test_group_fini(&group);
}

END_TEST

START_TEST(what_no_algorithm_is_called_is_refused)
{
    struct weir_comm *comm = NULL;
    struct weir_error err;
    struct weir_comm_config config = {.size = 1, .algorithm = "best"};
    ck_assert_int_eq(weir_comm_create(&config, &comm, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "halving"));
    config = (struct weir_comm_config){.size = 1, .wire = "f8"};
    ck_assert_int_eq(weir_comm_create(&config, &comm, &err), WEIR_ERR_INVALID);
    config =
        (struct weir_comm_config){.size = 1, .transport = "ucx", .tuning = "/nowhere/tuning.json"};
    ck_assert_int_eq(weir_comm_create(&config, &comm, &err), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(several_algorithms_by_size_work_together)
{
    struct test_group group;
    test_group_init(&group, 3, "ucx");
    group.algorithm = "flat:100:tree#1K:11K:ring#2K:1M:halving";
    ck_assert_int_eq(test_group_run(&group, sum_some, NULL), 0);
    test_group_fini(&group);
}

END_TEST

int main(void)
{
    seed = (uint64_t)weir_time_ms();
    printf("seed %llu\n", (unsigned long long)seed);
    Suite *suite = suite_create("algorithm");
    TCase *tcase = tcase_create("algorithm");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, all_ranks_hold_the_serial_sum, 0, 16);
    tcase_add_loop_test(tcase, all_ranks_hold_it_whatever_is_sent, 0, 3);
    tcase_add_loop_test(tcase, sums_of_f64_and_i64_are_sent_as_they_are, 0, 3);
    tcase_add_loop_test(tcase, ranks_of_a_host_add_up_in_shared_memory_first, 0, 6);
    tcase_add_test(tcase, what_no_algorithm_is_called_is_refused);
    tcase_add_test(tcase, several_algorithms_by_size_work_together);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
