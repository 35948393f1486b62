/*
 * Groups on real GPUs, as far as one GPU can show them, and on emulated ones (run/net_group_test.c has
 * those of several ranks): a group of one; and two processes that share the GPU, where NCCL lets them
 * (NCCL_MULTI_RANK_GPU_ENABLE), of which one is lost.
 */
#include "cuda_test.h"

#include "cuda_fixture.h"
#include "nn/net_group.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_CLASSES 7
#define TOLERANCE 1e-5

static struct weir_graph *norm_graph(void)
{
    struct weir_conv_params conv = {
        .k = 8, .kernel_h = 3, .kernel_w = 3, .stride = 1, .pad_h = 1, .pad_w = 1};
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){3, 8, 8});
    x = weir_graph_conv(graph, "conv", x, &conv);
    x = weir_graph_batch_norm(graph, "norm", x);
    x = weir_graph_relu(graph, "relu", x);
    x = weir_graph_linear(graph, "fc1", x, 24, true);
    x = weir_graph_linear(graph, "fc2", x, N_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

/* ---- alone ------------------------------------------------------------------------------------ */

#define GROUP_STEPS 4 /* the first is not recorded */

/* @return false on a real GPU without NCCL. */
static bool can_be_in_group(int i_gpu)
{
    const struct weir_net_config config = {.batch = 1, .backend = &weir_cuda_backend};
    struct weir_net_gpu gpu;
    struct weir_error err = {0};
    if (i_gpu < N_GPUS - 1) {
        return true;
    }
    weir_status status = weir_net_gpu_find(&config, &gpu, &err);
    printf("NCCL: %s\n", status == WEIR_OK ? gpu.place : err.message);
    ck_assert(status == WEIR_OK || status == WEIR_ERR_UNSUPPORTED);
    return status == WEIR_OK;
}

static weir_status enter_group(struct weir_net *net, int size, weir_status (*check)(void *context),
                               struct weir_error *err)
{
    struct weir_net_group group = {.size = size, .timeout_ms = 2000, .check = check};
    if (size == 1) {
        group.timeout_ms = 60000;
        group.accumulates = true;
    }
    ck_assert_int_eq(weir_net_group_make_id(net, &group.id, err), WEIR_OK);
    WEIR_TRY(weir_net_group_open(net, &group, err));
    weir_net_set_bucket_bytes(net, 1024);
    return WEIR_OK;
}

/* The weights after some steps from `from`, of one run or of two of the same batch. */
static void train_from(struct weir_net *net, const float *from, int n_runs, float *out)
{
    size_t n;
    struct weir_step_result result;
    struct weir_optimizer *optimizer = make_optimizer("sgd", net);
    float *weights = weir_net_weights(net, &n);
    memcpy(weights, from, n * sizeof *weights);
    weir_net_weights_changed(net);
    for (uint64_t step = 0; step < GROUP_STEPS; step++) {
        for (int run = 0; run < n_runs; run++) {
            weir_net_group_set_run(net, run == 0, run == n_runs - 1);
            ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, &result), WEIR_OK);
        }
        weir_optimizer_update_net(optimizer, net, NULL, 0.05, step);
    }
    memcpy(out, weir_net_weights(net, NULL), n * sizeof *out);
    weir_optimizer_destroy(optimizer);
}

/* One net, whose convolutions are planned once: without a group, twice, to see whether the library gives
 * the same bits at all; in a group of one; and after it. */
static void compare_with_group(const struct weir_graph *graph, int i_gpu,
                               enum weir_precision precision)
{
    struct weir_net_config config = {
        .batch = 6, .is_training = true, .precision = precision, .backend = &gpus[i_gpu]};
    struct weir_net *net = make_net(graph, config);
    struct weir_error err = {0};
    size_t n;
    const float *weights = weir_net_weights(net, &n);
    float *all = calloc(6 * n, sizeof *all), *first = all + n,
          *got[] = {all + 2 * n, all + 3 * n, all + 4 * n, all + 5 * n};
    memcpy(all, weights, n * sizeof *all);
    train_from(net, all, 1, first);
    train_from(net, all, 1, got[0]);
    bool is_same = memcmp(first, got[0], n * sizeof *first) == 0;
    weir_status status = enter_group(net, 1, NULL, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    train_from(net, all, 1, got[1]);
    train_from(net, all, 1, got[2]); /* all of it recorded */
    weir_net_group_close(net);
    train_from(net, all, 1, got[3]);
    for (int i = 0; i < 4; i++) {
        double d = distance(first, got[i], n, 1e-6);
        ck_assert_msg(is_same ? memcmp(first, got[i], n * sizeof *first) == 0 : d < 1e-3,
                      "GPU %d, %s, %d: differs by %g", i_gpu, weir_precision_text(precision), i, d);
    }
    printf("GPU %d, %s: a group of one has %s\n", i_gpu, weir_precision_text(precision),
           is_same ? "the same bits" : "the same numbers; the library has others in each run");
    free(all);
    weir_net_destroy(net);
}

START_TEST(a_group_of_one_changes_nothing)
{
    struct weir_graph *graph = norm_graph();
    for (int i = 0; i < n_gpus(); i++) {
        for (int p = 0; p < 3 && can_be_in_group(i); p++) {
            compare_with_group(graph, i, (enum weir_precision)p);
        }
    }
    weir_graph_destroy(graph);
}

END_TEST

/* The same batch twice is twice its gradients, whose rounding is none. */
START_TEST(runs_of_a_step_are_added_up_on_the_gpu)
{
    struct weir_graph *graph = norm_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct weir_net_config config = {.batch = 6, .is_training = true, .backend = &gpus[i]};
        struct weir_step_result result;
        size_t n;
        if (!can_be_in_group(i)) {
            continue;
        }
        struct weir_net *net = make_net(graph, config);
        ck_assert_int_eq(enter_group(net, 1, NULL, NULL), WEIR_OK);
        ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &result), WEIR_OK);
        const float *gradients = weir_net_gradients(net, &n);
        float *once = calloc(n, sizeof *once);
        for (size_t k = 0; k < n; k++) {
            once[k] = 3 * gradients[k];
        }
        for (int step = 0; step < 3; step++) {
            for (int run = 0; run < 3; run++) {
                weir_net_group_set_run(net, run == 0, run == 2);
                ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &result), WEIR_OK);
            }
            ck_assert_double_lt(distance(once, weir_net_gradients(net, NULL), n, 1e-6), TOLERANCE);
        }
        free(once);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

static weir_status one_is_lost(void *context)
{
    (void)context;
    return WEIR_ERR_PEER;
}

/* A second rank never comes. */
START_TEST(a_group_that_is_not_complete_is_given_up)
{
    struct weir_graph *graph = norm_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct weir_net_config config = {.batch = 6, .is_training = true, .backend = &gpus[i]};
        struct weir_step_result result;
        struct weir_error err = {0};
        if (!can_be_in_group(i)) {
            continue;
        }
        struct weir_net *net = make_net(graph, config);
        ck_assert_int_eq(enter_group(net, 2, NULL, &err), WEIR_ERR_TIMEOUT);
        printf("GPU %d: %s\n", i, err.message);
        ck_assert_int_eq(enter_group(net, 2, one_is_lost, &err), WEIR_ERR_PEER);
        ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &result), WEIR_OK);
        ck_assert_int_eq(enter_group(net, 1, NULL, &err), WEIR_OK);
        ck_assert_int_eq(weir_net_step(net, 1, NULL, NULL, &result), WEIR_OK);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* ---- two processes, one GPU ------------------------------------------------------------------- */

#define PAIR_STEPS 4 /* the first is not recorded */
#define PAIR_ELEMS 100000

enum pair_result { PAIR_NOT_RUN, PAIR_OK, PAIR_UNSUPPORTED, PAIR_FAILED };

/* In a file that both have in their memory. */
struct pair {
    _Atomic int n_come;
    struct weir_net_group_id id;
    float alone[2][PAIR_STEPS][PAIR_ELEMS], summed[2][PAIR_STEPS][PAIR_ELEMS];
    size_t n;
    int results[2];
    int64_t lost_ms;
    int lost_status;
    struct weir_error err[2];
};

static struct pair *map_pair(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct pair)) != 0) {
        return NULL;
    }
    void *at = mmap(NULL, sizeof(struct pair), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* @return false if the other does not come within a minute. */
static bool meet(struct pair *pair, int n)
{
    int64_t end_ms = weir_mono_ms() + 60000;
    (void)atomic_fetch_add(&pair->n_come, 1);
    while (atomic_load(&pair->n_come) < n && weir_mono_ms() < end_ms) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
    return atomic_load(&pair->n_come) >= n;
}

/* Statistics begin again, as in run/net_group_test.c. */
static weir_status take_pair_step(struct weir_net *net, const struct weir_graph *graph, int rank,
                                  int step)
{
    struct weir_step_result result;
    size_t n, first = weir_net_n_trainable_elems(net);
    float *weights = weir_net_weights(net, &n);
    memset(weights + first, 0, (n - first) * sizeof *weights);
    weir_net_statistics_changed(net);
    random_batch(net, graph, (uint64_t)(1 + rank + 10 * step));
    return weir_net_step(net, (uint64_t)step, NULL, NULL, &result);
}

static weir_status take_pair_steps(struct pair *pair, struct weir_net *net,
                                   const struct weir_graph *graph, int rank, bool is_alone)
{
    for (int step = 0; step < PAIR_STEPS; step++) {
        WEIR_TRY(take_pair_step(net, graph, rank, step));
        const float *gradients = weir_net_gradients(net, &pair->n);
        memcpy(is_alone ? pair->alone[rank][step] : pair->summed[rank][step], gradients,
               pair->n * sizeof *gradients);
    }
    return WEIR_OK;
}

/* Rank 1 goes without a word; rank 0 waits for it in a recorded step, gives up, and goes on alone. */
static weir_status lose_one(struct pair *pair, struct weir_net *net, const struct weir_graph *graph)
{
    int64_t begin_ms = weir_mono_ms();
    pair->lost_status = take_pair_step(net, graph, 0, PAIR_STEPS);
    pair->lost_ms = weir_mono_ms() - begin_ms;
    (void)weir_net_group_failure(net, &pair->err[0]);
    WEIR_TRY(take_pair_step(net, graph, 0, PAIR_STEPS));
    return weir_net_wait(net);
}

/* Outside of a test: no assertion may fail here. */
static enum pair_result be_rank(struct pair *pair, int rank, bool is_real)
{
    struct weir_graph *graph = norm_graph();
    struct weir_net_config config = {
        .batch = 6, .is_training = true, .backend = &weir_cuda_backend};
    struct weir_net_group group = {.rank = rank, .size = 2, .timeout_ms = is_real ? 30000 : 4000};
    struct weir_error *err = &pair->err[rank];
    struct weir_net *net = NULL;
    if (weir_net_create(graph, &config, &net, err) != WEIR_OK) {
        return PAIR_FAILED;
    }
    weir_net_init_weights(net, 3);
    weir_net_set_n_labelled(net, 10);
    if (rank == 0 && weir_net_group_make_id(net, &pair->id, err) != WEIR_OK) {
        return PAIR_FAILED;
    }
    if (take_pair_steps(pair, net, graph, rank, true) != WEIR_OK || !meet(pair, 2)) {
        return PAIR_FAILED;
    }
    group.id = pair->id;
    if (weir_net_group_open(net, &group, err) != WEIR_OK) {
        return PAIR_UNSUPPORTED;
    }
    weir_net_set_bucket_bytes(net, 1024);
    if (take_pair_steps(pair, net, graph, rank, false) != WEIR_OK || !meet(pair, 4)) {
        (void)weir_net_group_failure(net, err);
        return PAIR_FAILED;
    }
    if (rank == 1) {
        pair->results[1] = PAIR_OK;
        _exit(0);
    }
    weir_status status = lose_one(pair, net, graph);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    return status == WEIR_OK ? PAIR_OK : PAIR_FAILED;
}

/* nn_cuda_test RANK GPU FILE */
int cuda_rank_main(int argc, char **argv)
{
    struct pair *pair = argc == 4 ? map_pair(argv[3]) : NULL;
    if (!pair) {
        return 2;
    }
    int rank = strcmp(argv[1], "1") == 0, i_gpu = argv[2][0] - '0';
    const struct gpu_ops *const kinds[N_GPUS] = {&gpu_emulated_ops, &gpu_emulated_bare_ops,
                                                 &gpu_cuda_ops};
    cuda_gpus = kinds[i_gpu % N_GPUS];
    pair->results[rank] = (int)be_rank(pair, rank, i_gpu == N_GPUS - 1);
    return 0;
}

static void run_pair(int i_gpu, const char *path)
{
    pid_t pids[2];
    (void)fflush(NULL);
    for (int r = 0; r < 2; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            char rank[2] = {(char)('0' + r), 0}, gpu[2] = {(char)('0' + i_gpu), 0};
            setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
            (void)execl("/proc/self/exe", "nn_cuda_test", rank, gpu, path, (char *)NULL);
            _exit(127);
        }
    }
    for (int r = 0; r < 2; r++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[r], &status, 0), pids[r]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "rank %d: %x", r, status);
    }
}

/* Two addends have one sum, whatever the order: the bits are known, if the library's convolutions have
 * the same in each run. */
static void check_pair(int i_gpu, const struct pair *pair)
{
    static float expected[PAIR_ELEMS];
    bool is_same = true;
    for (int step = 0; step < PAIR_STEPS; step++) {
        for (size_t i = 0; i < pair->n; i++) {
            expected[i] = pair->alone[0][step][i] + pair->alone[1][step][i];
        }
        ck_assert_mem_eq(pair->summed[0][step], pair->summed[1][step], pair->n * sizeof(float));
        double d = distance(expected, pair->summed[0][step], pair->n, 1e-6);
        is_same = is_same && d == 0;
        ck_assert_msg(d < TOLERANCE, "step %d: sums differ by %g", step, d);
    }
    printf("GPU %d, two ranks: sums have the same bits on both, and are %s the serial ones\n",
           i_gpu, is_same ? "exactly" : "nearly");
    printf("GPU %d, a lost rank: %s after %lld ms: %s\n", i_gpu,
           weir_status_text(pair->lost_status), (long long)pair->lost_ms, pair->err[0].message);
    ck_assert(pair->lost_status == WEIR_ERR_TIMEOUT || pair->lost_status == WEIR_ERR_PEER);
}

static void try_pair(int i_gpu)
{
    char path[] = "/tmp/weir-cuda-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    run_pair(i_gpu, path);
    struct pair *pair = map_pair(path);
    ck_assert_ptr_nonnull(pair);
    (void)unlink(path);
    if (pair->results[0] == PAIR_UNSUPPORTED && pair->results[1] == PAIR_UNSUPPORTED) {
        ck_assert_int_eq(i_gpu, N_GPUS - 1);
        printf("GPU %d, two ranks: NCCL does not let them share it: %s; %s\n", i_gpu,
               pair->err[0].message, pair->err[1].message);
    } else {
        ck_assert_msg(pair->results[0] == PAIR_OK && pair->results[1] == PAIR_OK,
                      "GPU %d: %d %s, %d %s", i_gpu, pair->results[0], pair->err[0].message,
                      pair->results[1], pair->err[1].message);
        check_pair(i_gpu, pair);
    }
    (void)munmap(pair, sizeof *pair);
}

START_TEST(two_ranks_that_share_a_gpu_sum_and_one_is_lost)
{
    for (int i = 0; i < n_gpus(); i++) {
        if (can_be_in_group(i)) {
            try_pair(i);
        }
    }
}

END_TEST

TCase *cuda_group_cases(void)
{
    TCase *tcase = tcase_create("groups");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, a_group_of_one_changes_nothing);
    tcase_add_test(tcase, runs_of_a_step_are_added_up_on_the_gpu);
    tcase_add_test(tcase, a_group_that_is_not_complete_is_given_up);
    tcase_add_test(tcase, two_ranks_that_share_a_gpu_sum_and_one_is_lost);
    return tcase;
}
