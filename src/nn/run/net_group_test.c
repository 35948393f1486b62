/*
 * Groups of emulated GPUs, each a process: gradients against those of each rank alone, added up in the
 * order of ranks, bit for bit. Buckets are small, so that many sums are queued while backward goes on; on
 * one kind of GPU they run as late as they may, on the other as early.
 */
#include "nn/backend/compare_nets.h"
#include "nn/backend/cuda/emulated/emulated.h"
#include "nn/net_group.h"

#include "base/clock.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_STEPS     4 /* the first is not recorded */
#define MAX_ELEMS   100000
#define BUCKET      256
#define TIMEOUT_MS  20000
#define IMPATIENT   300
#define N_RANKS_MAX 3

/* Written by the ranks, each its own. */
static struct shared {
    struct weir_net_group_id id;
    float gradients[N_RANKS_MAX][N_STEPS][MAX_ELEMS];
} * shared;

static void set_up(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
}

static void tear_down(void)
{
    (void)munmap(shared, sizeof *shared);
}

/* Batch norms, a branch, biases: gradients are made in both lanes. */
static struct weir_graph *branched_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    const struct weir_conv_params conv = {
        .k = 8, .kernel_h = 3, .kernel_w = 3, .stride = 1, .pad_h = 1, .pad_w = 1};
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){3, 6, 5});
    x = weir_graph_conv(graph, "conv1", x, &conv);
    x = weir_graph_prelu(graph, "act1", weir_graph_batch_norm(graph, "bn1", x));
    weir_value_t y = weir_graph_conv(graph, "conv2", x, &conv);
    y = weir_graph_relu(graph, "act2", weir_graph_batch_norm(graph, "bn2", y));
    x = weir_graph_add(graph, "add", x, y);
    x = weir_graph_conv(graph, "conv3", x, &conv);
    x = weir_graph_relu(graph, "act3", weir_graph_batch_norm(graph, "bn3", x));
    x = weir_graph_linear(graph, "fc1", x, 12, true);
    x = weir_graph_linear(graph, "fc2", weir_graph_relu(graph, "act4", x), 5, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

static const struct gpu_ops *const kinds[] = {&gpu_emulated_ops, &gpu_emulated_bare_ops};

static struct weir_net *make_net(enum weir_precision precision)
{
    struct weir_graph *graph = branched_graph();
    struct weir_net_config config = {.batch = 4,
                                     .n_threads = 1,
                                     .is_training = true,
                                     .precision = precision,
                                     .backend = &weir_cuda_backend};
    struct weir_net *net = compared_net(graph, config);
    weir_net_set_n_labelled(net, 7);
    weir_graph_destroy(graph);
    return net;
}

/* Another batch for each rank, step and run. The statistics begin again: sums of batch norms are taken of
 * differences to them, and so their rounding. */
static void fill(struct weir_net *net, int rank, int step, int run)
{
    size_t n, first = weir_net_n_trainable_elems(net);
    float *weights = weir_net_weights(net, &n);
    memset(weights + first, 0, (n - first) * sizeof *weights);
    weir_net_statistics_changed(net);
    struct weir_graph *graph = branched_graph();
    random_batch(net, graph, (uint64_t)(1 + rank + 10 * step + 100 * run));
    weir_graph_destroy(graph);
}

static weir_status take_step(struct weir_net *net, int rank, int step, int n_runs)
{
    struct weir_step_result result;
    for (int run = 0; run < n_runs; run++) {
        fill(net, rank, step, run);
        weir_net_group_set_run(net, run == 0, run == n_runs - 1);
        WEIR_TRY(weir_net_step(net, (uint64_t)step, NULL, NULL, &result));
    }
    return WEIR_OK;
}

static weir_status enter(struct weir_net *net, int rank, int size, int timeout_ms,
                         weir_status (*check)(void *context))
{
    const struct weir_net_group group = {.id = shared->id,
                                         .rank = rank,
                                         .size = size,
                                         .timeout_ms = timeout_ms,
                                         .accumulates = true,
                                         .check = check};
    WEIR_TRY(weir_net_group_open(net, &group, NULL));
    weir_net_set_bucket_bytes(net, BUCKET);
    return WEIR_OK;
}

/* What a rank's process does; 0: all went well. */
static int be_rank(int rank, int size, enum weir_precision precision, int n_runs)
{
    struct weir_net *net = make_net(precision);
    if (enter(net, rank, size, TIMEOUT_MS, NULL) != WEIR_OK) {
        return 1;
    }
    for (int step = 0; step < N_STEPS; step++) {
        size_t n = 0;
        if (take_step(net, rank, step, n_runs) != WEIR_OK) {
            return 2 + step;
        }
        const float *gradients = weir_net_gradients(net, &n);
        memcpy(shared->gradients[rank][step], gradients, n * sizeof *gradients);
    }
    weir_net_destroy(net);
    return 0;
}

static void run_ranks(int size, enum weir_precision precision, int n_runs)
{
    pid_t pids[N_RANKS_MAX];
    struct weir_net *net = make_net(precision);
    ck_assert_int_eq(weir_net_group_make_id(net, &shared->id, NULL), WEIR_OK);
    weir_net_destroy(net);
    (void)fflush(NULL);
    for (int r = 0; r < size; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            _exit(be_rank(r, size, precision, n_runs));
        }
    }
    for (int r = 0; r < size; r++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[r], &status, 0), pids[r]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "rank %d: %x", r, status);
    }
}

/* Runs first to last, then ranks in their order. */
static void add_serially(struct weir_net *net, int size, int step, int n_runs, float *sum)
{
    for (int r = 0; r < size; r++) {
        static float own[MAX_ELEMS];
        size_t n = 0;
        struct weir_step_result result;
        for (int run = 0; run < n_runs; run++) {
            fill(net, r, step, run);
            ck_assert_int_eq(weir_net_step(net, (uint64_t)step, NULL, NULL, &result), WEIR_OK);
            const float *gradients = weir_net_gradients(net, &n);
            ck_assert_uint_le(n, MAX_ELEMS);
            for (size_t i = 0; i < n; i++) {
                own[i] = run == 0 ? gradients[i] : own[i] + gradients[i];
            }
        }
        for (size_t i = 0; i < n; i++) {
            sum[i] = r == 0 ? own[i] : sum[i] + own[i];
        }
    }
}

START_TEST(gradients_are_the_serial_sums_of_all_ranks)
{
    static float sum[MAX_ELEMS];
    enum weir_precision precision = _i % 2 == 0 ? WEIR_PRECISION_F32 : WEIR_PRECISION_BF16;
    cuda_gpus = kinds[_i / 2 % 2];
    int size = 1 + _i % 3, n_runs = 1 + _i / 4 % 3;
    run_ranks(size, precision, n_runs);
    struct weir_net *net = make_net(precision);
    for (int step = 0; step < N_STEPS; step++) {
        size_t n = weir_net_n_trainable_elems(net);
        add_serially(net, size, step, n_runs, sum);
        for (int r = 0; r < size; r++) {
            for (size_t i = 0; i < n; i++) {
                float got = shared->gradients[r][step][i];
                ck_assert_msg(got == sum[i], "%d ranks, %d runs, rank %d, step %d: %zu: %g, not %g",
                              size, n_runs, r, step, i, (double)got, (double)sum[i]);
            }
        }
    }
    weir_net_destroy(net);
}

END_TEST

/* ---- losses --------------------------------------------------------------------------------- */

static weir_status all_is_well(void *context)
{
    (void)context;
    return WEIR_OK;
}

static weir_status one_is_lost(void *context)
{
    (void)context;
    return WEIR_ERR_PEER;
}

START_TEST(a_rank_that_never_comes_ends_the_opening_by_the_deadline)
{
    struct weir_error err = {.status = WEIR_OK};
    struct weir_net *net = make_net(WEIR_PRECISION_F32);
    cuda_gpus = kinds[0];
    ck_assert_int_eq(weir_net_group_make_id(net, &shared->id, NULL), WEIR_OK);
    ck_assert_int_eq(enter(net, 0, 2, IMPATIENT, all_is_well), WEIR_ERR_TIMEOUT);
    ck_assert_int_eq(weir_net_group_make_id(net, &shared->id, NULL), WEIR_OK);
    ck_assert_int_eq(enter(net, 0, 2, TIMEOUT_MS, one_is_lost), WEIR_ERR_PEER);
    ck_assert_int_eq(weir_net_group_failure(net, &err), WEIR_OK);
    ck_assert_int_eq(take_step(net, 0, 0, 1), WEIR_OK); /* it is good for everything else */
    weir_net_destroy(net);
}

END_TEST

/* The other rank takes two steps and is gone, without a word. */
static pid_t start_deserter(void)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct weir_net *net = make_net(WEIR_PRECISION_F32);
        bool is_well = enter(net, 1, 2, TIMEOUT_MS, NULL) == WEIR_OK &&
                       take_step(net, 1, 0, 1) == WEIR_OK && take_step(net, 1, 1, 1) == WEIR_OK;
        _exit(is_well ? 0 : 1);
    }
    return pid;
}

START_TEST(a_rank_that_is_lost_ends_the_step_and_leaves_the_weights)
{
    static float before[MAX_ELEMS];
    struct weir_error err = {.status = WEIR_OK};
    int status = 0;
    size_t n = 0;
    cuda_gpus = kinds[_i % 2];
    struct weir_net *net = make_net(WEIR_PRECISION_F32);
    ck_assert_int_eq(weir_net_group_make_id(net, &shared->id, NULL), WEIR_OK);
    pid_t pid = start_deserter();
    ck_assert_int_eq(enter(net, 0, 2, 2000, NULL), WEIR_OK);
    for (int step = 0; step < 2; step++) {
        ck_assert_int_eq(take_step(net, 0, step, 1), WEIR_OK);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
    const float *weights = weir_net_weights(net, &n);
    n = weir_net_n_trainable_elems(net);
    memcpy(before, weights, n * sizeof *weights);
    ck_assert_int_eq(take_step(net, 0, 2, 1), WEIR_ERR_TIMEOUT);
    ck_assert_int_eq(weir_net_group_failure(net, &err), WEIR_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(err.message, "2000 ms"));
    ck_assert_mem_eq(before, weir_net_weights(net, NULL), n * sizeof *before);
    /* Alone it goes on, with its own gradients. */
    struct weir_net *other = make_net(WEIR_PRECISION_F32);
    ck_assert_int_eq(take_step(net, 0, 3, 1), WEIR_OK);
    ck_assert_int_eq(take_step(other, 0, 3, 1), WEIR_OK);
    ck_assert_mem_eq(weir_net_gradients(net, NULL), weir_net_gradients(other, NULL),
                     n * sizeof *before);
    weir_net_destroy(other);
    weir_net_destroy(net);
}

END_TEST

START_TEST(what_cannot_be_in_a_group_says_why)
{
    struct weir_net_config config = {.batch = 1, .backend = &weir_reference_backend};
    struct weir_net_gpu gpu;
    struct weir_error err = {.status = WEIR_OK};
    ck_assert_int_eq(weir_net_gpu_find(&config, &gpu, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "GPU"));
    struct weir_graph *graph = branched_graph();
    struct weir_net *net = compared_net(graph, config);
    ck_assert_int_eq(weir_net_group_make_id(net, &shared->id, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(enter(net, 0, 1, IMPATIENT, NULL), WEIR_ERR_INVALID);
    weir_net_group_close(net);
    weir_net_statistics_changed(net);
    weir_net_destroy(net);
    cuda_gpus = kinds[0];
    config.backend = &weir_cuda_backend;
    net = compared_net(graph, config); /* for inference */
    ck_assert_int_eq(enter(net, 0, 1, IMPATIENT, NULL), WEIR_ERR_INVALID);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("net_group");
    TCase *tcase = tcase_create("net_group");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    cuda_gpus = kinds[0];
    tcase_add_loop_test(tcase, gradients_are_the_serial_sums_of_all_ranks, 0, 12);
    tcase_add_test(tcase, a_rank_that_never_comes_ends_the_opening_by_the_deadline);
    tcase_add_loop_test(tcase, a_rank_that_is_lost_ends_the_step_and_leaves_the_weights, 0, 2);
    tcase_add_test(tcase, what_cannot_be_in_a_group_says_why);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
